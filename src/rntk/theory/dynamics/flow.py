"""Training of one infinitely wide network under any loss: an ordinary differential equation in N d numbers.

Parameters that start at θ_0 move only along gradients at the training points, θ = θ_0 + Jᵀa, whatever the loss; so

    da/ds = -η (∂ℓ/∂f(f_s(X), y) + λ a),    f_s(x) = f_0(x) + Θ(x, X) a_s,    a_0 = 0.

For the squared loss a_s has the closed form of `spectrum`; for others SciPy integrates. (3) and (4) of the RNTK paper.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from ...sequences.losses import Loss
from .clock import Array, Instants

#: Relative and absolute tolerance of the solver.
TOLERANCES = (1e-8, 1e-11)


def coefficients(K: Array, start: Array, y: Array, loss: Loss, ridge: float, clock: Instants) -> Array:
    """(S, N, d) a_s at the moments of the clock, from outputs `start` (N, d) before training.

    Parameters
    ----------
    K : ndarray of shape (N, N)
        Θ(X, X): of the limit, or of a finite network at its start, whose linearised training this is then.
    start, y : ndarray of shape (N, d)
        Outputs before training, and targets.
    loss : Loss
        ℓ.
    ridge : float
        λ.
    clock : Instants
        When to look; finite.

    Raises
    ------
    ValueError
        For the end of training, which only the squared loss has in closed form; or where the solver gives up.
    """
    if not np.isfinite(clock.at).all():
        raise ValueError("the end of training has a closed form for the squared loss only; give finite times or steps")

    def slope(a: Array) -> Array:
        return np.asarray(-clock.learning_rate * (loss.slope(np, start + K @ a, y) + ridge * a))

    found = np.empty((len(clock.at), *y.shape))
    if clock.steps:
        a, done = np.zeros_like(y), 0
        for k in np.argsort(clock.at, kind="stable"):
            for _ in range(done, int(clock.at[k])):
                a = a + slope(a)
            found[k], done = a, int(clock.at[k])
        return found
    moments, inverse = np.unique(np.append(clock.at, 0.0), return_inverse=True)
    if len(moments) == 1:
        return np.zeros_like(found)
    solved = solve_ivp(
        lambda _, flat: slope(flat.reshape(y.shape)).ravel(),
        (0.0, float(moments[-1])),
        np.zeros(y.size),
        method="LSODA",
        t_eval=moments,
        rtol=TOLERANCES[0],
        atol=TOLERANCES[1],
    )
    if not solved.success:
        raise ValueError(f"the flow could not be integrated: {solved.message}")
    return np.asarray(solved.y.T[inverse[:-1]].reshape(found.shape))
