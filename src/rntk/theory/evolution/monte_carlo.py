"""State evolution by Monte Carlo: replicates of the whole recursion, so that errors include what steps inherit."""

from __future__ import annotations

import numpy as np

from .gaussian import Array, GaussianWalk
from .recursion import Recursion


def by_monte_carlo(recursion: Recursion, samples: int, replicates: int, seed: int) -> tuple[Array, Array, str]:
    """(T, d, T, d) mean over replicates and its standard error, and in words what was done."""
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    found = np.stack([one_replicate(recursion, samples, np.random.default_rng(each)) for each in seeds])
    gaps = found - found[0]  # so that nothing cancels
    mean, error = found[0] + gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / np.sqrt(replicates)
    return mean, error, f"{replicates} replicates of {samples} samples"


def one_replicate(recursion: Recursion, samples: int, rng: np.random.Generator) -> Array:
    """(T, d, T, d) the recursion with averages over one set of sample paths instead of expectations.

    All covariances come from the same samples, so that they are those of some Gaussian process: positive semi-definite
    whatever the number of samples, and fit to draw the next step from.
    """
    T, d = recursion.T, recursion.d
    C = np.zeros((T * d, T * d))
    C[:d, :d] = recursion.cov0
    paths = recursion.draw_paths(samples, rng)
    walk = GaussianWalk(samples, d, T, rng)
    q = walk.extend(np.zeros((0, d)), recursion.cov0)
    Z = np.empty((len(recursion.nu), samples, (T - 1) * d))  # G_i(Q_t, U_t), steps side by side
    for t in range(T - 1):
        now, past = slice(t * d, (t + 1) * d), slice((t + 1) * d)
        block = np.zeros(((t + 1) * d, d))  # cov(Q_{s+1}, Q_{t+1}) for s = 0..t
        for i in recursion.active:
            Z[i, :, now] = recursion.values(i, t, q, None if paths is None else paths[:, t])
            with np.errstate(over="ignore", invalid="ignore"):
                block += recursion.nu[i] / samples * (Z[i, :, past].T @ Z[i, :, now])
        recursion.checked(block, t + 1, t + 1)
        then = slice((t + 1) * d, (t + 2) * d)
        C[d : (t + 2) * d, then] = block
        C[then, d : (t + 2) * d] = block.T
        if t < T - 2:
            q = walk.extend(C[: (t + 1) * d, then], C[then, then])
    return C.reshape(T, d, T, d)
