"""State evolution for the caller: one function, which chooses how expectations are computed, and what it finds."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .gaussian import Array
from .monte_carlo import by_monte_carlo
from .quadrature import GridTooLargeError, by_quadrature
from .recursion import RowFunction, read_count, read_recursion

#: Rows at which "auto" lets quadrature evaluate G, all pairs of steps together: some seconds.
BUDGET = 1e8


@dataclass(frozen=True, eq=False)
class StateEvolution:
    """The Gaussian process (Q_0, …, Q_{T-1}), zero in the mean, that a row of (q_0, …, q_{T-1}) is at infinite width.

    Attributes
    ----------
    covariance : ndarray
        (T, d, T, d) cov(Q_s, Q_t) at [s, :, t, :].
    error : ndarray
        (T, d, T, d) standard error (Monte Carlo), or distance to quadrature of lower order. Zero where a value isn't
        computed: cov(Q_0), and cov(Q_0, Q_t) = 0.
    method : str
        "quadrature" or "monte carlo".
    reason : str
        Why, and with how many nodes or samples.
    """

    covariance: Array
    error: Array
    method: str
    reason: str

    @property
    def T(self) -> int:  # noqa: N802
        """Number of states."""
        return int(self.covariance.shape[0])

    @property
    def d(self) -> int:
        """Length of a row."""
        return int(self.covariance.shape[1])

    def at(self, s: int, t: int) -> Array:
        """(d, d) cov(Q_s, Q_t) = E[Q_sᵀ Q_t]; negative steps count from the end."""
        return np.array(self.covariance[self._step(s), :, self._step(t), :])

    def __repr__(self) -> str:
        mean = np.einsum("tata->t", self.covariance) / self.d
        shown = [f"{value:.4g}" for value in mean]
        shown = shown if self.T <= 7 else [*shown[:4], "…", *shown[-2:]]
        states = "Q_0" if self.T == 1 else f"Q_0 to Q_{self.T - 1}"
        return (
            f"<StateEvolution of {states}, {self.d} column{'s' if self.d > 1 else ''}, by {self.method} "
            f"({self.reason}): variance {', '.join(shown)}; largest error {self.error.max():.1e}>"
        )

    def _step(self, t: int) -> int:
        if not -self.T <= operator.index(t) < self.T:
            raise IndexError(f"there are {self.T} states, Q_0 to Q_{self.T - 1}; Q_{t} isn't one of them")
        return int(t) % self.T


def state_evolution(
    G: Sequence[RowFunction],
    nu: Any,
    cov0: Any,
    T: int,
    *,
    inputs: Any = None,
    method: str = "auto",
    order: int | None = None,
    samples: int = 2**13,
    replicates: int = 32,
    seed: int = 0,
) -> StateEvolution:
    r"""Covariances of the rows of a random recursion at infinite width (Lemma C.1 of [1]_).

    For q_{t+1} = Σ_i A_i G_i(q_t, u_t)/√n with q_t (n, d_q), independent matrices of entries (A_i)_{ab} ~ N(0, ν_i)
    that are the same at every step, and rows of q_0 ~ N(0, cov0), the rows become for n → ∞ independent copies of a
    Gaussian process Q with zero mean, independent of the inputs U, and

        cov(Q_{s+1}, Q_{t+1}) = Σ_i ν_i E[G_i(Q_s, U_s)ᵀ G_i(Q_t, U_t)],    cov(Q_0, Q_{t+1}) = 0.

    Parameters
    ----------
    G : sequence of RowFunction
        List of functions of rows: G_i(q) without inputs, G_i(q, u) with them. q is (B, d_q), u is (B, d_u), B any
        number, both read-only; the result is (B, d_q), each row a Lipschitz function of the same row of q and u.
    nu
        ν_i, the variance of the entries of A_i, one for each function.
    cov0
        (d_q, d_q) covariance of a row of q_0, of any rank, or a scalar for d_q = 1.
    T : int
        Number of states, Q_0 to Q_{T-1}.
    inputs
        None; (T, d_u), the same for every row; or (M, T, d_u), the law of U as M equally likely paths. The error of
        such a law as a sample of another one isn't part of `error`. The last step, u_{T-1}, has no effect.
    method : str
        "quadrature", "monte carlo", or "auto": quadrature where the rank of cov(Q_s, Q_t) is at most four (two
        independent states count one by one) and the number of paths and steps allows, otherwise Monte Carlo.
    order : int or None
        Nodes of the quadrature along each direction, at least 2; unless given, 400, 128, 48 or 24 by rank. A polynomial
        G of a degree below half the order is integrated exactly, with an error that shows it: for those a small order
        reaches ranks beyond four.
    samples : int
        Of Monte Carlo, in each replicate. There is a bias of O(1/samples) beside the standard error, negligible as long
        as replicates are far fewer than samples. Memory: 8 (L + 1) · samples · T · d_q bytes, L = len(G).
    replicates : int
        Each runs its own recursion, and the standard error is that of their mean.
    seed : int
        Of Monte Carlo.

    Returns
    -------
    StateEvolution
        Covariances, their errors, and how they were computed.

    Raises
    ------
    ValueError
        For arguments of the wrong shape or sign, a function that returns another shape or a value that isn't finite,
        covariances beyond float64, or a method="quadrature" whose grid would be too large.

    Notes
    -----
    Quadrature is accurate to many digits for smooth G, and to three or four if G has kinks such as ReLU's. Its grids
    are those of Gauss and Hermite below 48 nodes along a direction, and lattices of equal steps from there on.

    Inputs may enter through weights as well: a function G_i(q, u) = u adds u_t times one Gaussian vector of variance
    ν_i, the same at all steps, and a constant function a bias. So q_t = σ_w W φ(q_{t-1})/√n + σ_u U x_t + σ_b b, the
    pre-activation of a recurrent network with one channel, is G = [φ(q), u, 1] with ν = [σ_w², σ_u², σ_b²], cov0 = 0
    (if φ(0) = 0) and u_t = x_{t+1}.

    The covariances say the same as (70) of [1]_ once its ν_W in (70f) is read as ν_ℓ, the variance of the matrix at
    hand; (74), (98) and (100) leave the variance out. With a Z that has zero columns or depends linearly on the past,
    which includes (45b), the inverse in (84) doesn't exist; least squares takes its place.

    References
    ----------
    .. [1] Emami, Sahraee-Ardakan, Pandit, Rangan, Fletcher, "Implicit Bias of Linear RNNs", ICML 2021, Appendix C.

    Examples
    --------
    Impulse response of a linear network: variance ν_F ν_W^t, independent from step to step.

    >>> import numpy as np
    >>> from rntk.theory.evolution import state_evolution
    >>> linear = state_evolution([lambda q: q], nu=[0.5], cov0=2.0, T=4)
    >>> [round(float(linear.at(t, t)[0, 0]), 12) for t in range(4)]
    [2.0, 1.0, 0.5, 0.25]
    >>> bool(abs(linear.at(1, 3)[0, 0]) < 1e-12)
    True

    A tanh network with a bias, from rest:

    >>> network = state_evolution([np.tanh, np.ones_like], nu=[1.5, 0.1], cov0=0.0, T=4)
    >>> network.covariance[1:, 0, 1:, 0].round(4)
    array([[0.1   , 0.1   , 0.1   ],
           [0.1   , 0.2263, 0.2156],
           [0.1   , 0.2156, 0.3421]])
    >>> network.method, bool(network.error.max() < 1e-6)
    ('quadrature', True)
    """
    recursion = read_recursion(G, nu, cov0, T, inputs)
    if method not in ("auto", "quadrature", "monte carlo"):
        raise ValueError(f'method must be "auto", "quadrature" or "monte carlo", not {method!r}')
    if order is not None:
        order = read_count("order", order, 2, "the nodes along each direction")
    samples = read_count("samples", samples, 2, "the sample paths of one replicate")
    replicates = read_count("replicates", replicates, 2, "the independent runs behind the standard error")
    seed = read_count("seed", seed, 0, "which draws")

    why = "as asked"
    if method != "monte carlo":
        try:
            budget = BUDGET if method == "auto" else math.inf
            covariance, error, how = by_quadrature(recursion, order, budget)
            return StateEvolution(covariance, error, "quadrature", how)
        except GridTooLargeError as refusal:
            why = str(refusal)
            if method == "quadrature":
                raise ValueError(f'{why}; take method="monte carlo", or a smaller order') from None
    covariance, error, how = by_monte_carlo(recursion, samples, replicates, seed)
    return StateEvolution(covariance, error, "monte carlo", f"{how}; {why}")
