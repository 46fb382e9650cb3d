"""The recursion at finite width, to see how far the limit is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .gaussian import Array, square_root
from .recursion import RowFunction, read_count, read_recursion


def simulate(
    G: Sequence[RowFunction],
    nu: Any,
    cov0: Any,
    T: int,
    width: int,
    *,
    inputs: Any = None,
    seed: int = 0,
) -> Array:
    """(T, width, d_q) states of one random recursion q_{t+1} = Σ_i A_i G_i(q_t, u_t)/√n of width n.

    Its empirical covariances q_sᵀ q_t/n differ from those of `state_evolution` by O(1/√n).

    Parameters
    ----------
    G, nu, cov0, T
        As for `state_evolution`.
    width : int
        n. The matrices A_i, one (n, n) for each function with ν_i > 0, are all held in memory: 8 n² bytes each, 0.8 GB
        for n = 10 000.
    inputs
        None; (T, d_u), the same for every row; or (M, T, d_u). Every row takes one of the M paths, and each path serves
        as many rows as any other, give or take one: with M = n every row has a path of its own.
    seed : int
        Of A_i, q_0, and of who takes which path.

    Raises
    ------
    ValueError
        As `state_evolution`.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.theory.evolution import simulate
    >>> q = simulate([np.tanh], [1.0], 1.0, T=3, width=2000)
    >>> q.shape
    (3, 2000, 1)
    >>> bool(abs(np.mean(q[1] ** 2) - 0.394) < 0.05)  # E[tanh(z)²] = 0.394
    True
    """
    recursion = read_recursion(G, nu, cov0, T, inputs)
    n = read_count("width", width, 1, "the number of rows of q_t")
    rng = np.random.default_rng(read_count("seed", seed, 0, "which draw"))
    paths = recursion.draw_paths(n, rng)
    q = np.zeros((recursion.T, n, recursion.d))
    root = square_root(recursion.cov0)
    q[0] = rng.standard_normal((n, root.shape[1])) @ root.T
    matrices = {i: rng.standard_normal((n, n)) for i in recursion.active} if recursion.T > 1 else {}
    for t in range(recursion.T - 1):
        for i, A in matrices.items():
            z = recursion.values(i, t, q[t], None if paths is None else paths[:, t])
            q[t + 1] += np.sqrt(recursion.nu[i] / n) * (A @ z)
    return q
