"""Which sequences stand for the others: uniformly, spread out, or by how hard they are to explain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ...kernels.pairwise import gram, self_gram
from ...sequences import SequenceBatch
from ..base import Array
from .approximation import reserve
from .blocks import BYTES_PER_VALUE, count_rows, default_tolerance, precision_of, split

Indices = NDArray[np.int64]
SELECTIONS = ("uniform", "kmeans++", "leverage")
#: Sequences looked at per landmark. Beyond, a uniform sample of them is searched instead of all.
CANDIDATES = 10
#: Columns of kernel values per round of seeding.
COLUMNS = 64


def choose_landmarks(
    kernel: Any, X: SequenceBatch, count: int, selection: str, random: np.random.RandomState, memory: int
) -> Indices:
    """Positions of at most `count` landmarks in `X`; see `NystromFeatures` for what `selection` means."""
    if count >= len(X):
        return np.arange(len(X))
    if selection == "uniform":
        return np.sort(random.choice(len(X), count, replace=False)).astype(np.int64)
    at = np.arange(len(X))
    if len(X) > CANDIDATES * count:
        at = np.sort(random.choice(len(X), CANDIDATES * count, replace=False))
        X = X.take(at)
    chosen = (spread_out if selection == "kmeans++" else hard_to_explain)(kernel, X, count, random, memory)
    return at[chosen].astype(np.int64)


def spread_out(kernel: Any, X: SequenceBatch, count: int, random: np.random.RandomState, memory: int) -> Indices:
    """k-means++ seeding: each landmark drawn with probability proportional to the distance to the nearest before it.

    The distance is squared and in feature space, k(x, x) + k(z, z) - 2 k(x, z). Draws are made many at a time, since
    columns of kernel values are cheaper together. That changes nothing: a draw made by the distances d' before this
    round and kept with probability d/d' follows the distances d after the draws kept before it.

    Duplicates of a landmark are never drawn, so there may be fewer landmarks than asked for.
    """
    size = _squares(kernel, X)
    rounding = default_tolerance(precision_of(kernel, X))
    chosen = [int(random.randint(len(X)))]
    far = _distance(gram(kernel, X, X.take(chosen))[:, 0], size, chosen[0], rounding)
    most = max(1, min(COLUMNS, memory // (BYTES_PER_VALUE * len(X))))
    while len(chosen) < count and far.any():
        draws = random.choice(len(X), min(most, len(chosen), count - len(chosen)), p=far / far.sum())
        K = gram(kernel, X, X.take(draws))
        before = far
        for column, draw in zip(K.T, draws, strict=True):
            if random.random_sample() * before[draw] < far[draw]:
                chosen.append(int(draw))
                far = np.minimum(far, _distance(column, size, draw, rounding))
    return np.array(chosen, dtype=np.int64)


def _squares(kernel: Any, X: SequenceBatch) -> Array:
    """k(x, x) for every x, without the noise that some kernels add on the diagonal of kernel(X)."""
    few = X.take(np.arange(min(len(X), 8)))
    size = self_gram(kernel, few)
    if np.allclose(size, np.diagonal(gram(kernel, few, few)), rtol=1e-5, atol=0.0):
        return self_gram(kernel, X)
    return np.concatenate([np.diagonal(gram(kernel, part, part)) for _, part in split(X, 16)])


def _distance(column: Array, size: Array, at: int, rounding: float) -> Array:
    """Squared distances to sequence `at`; zero where they are rounding, and at that sequence itself."""
    both = size + size[at]
    distance = both - 2 * column
    distance[distance <= rounding * both] = 0.0
    distance[at] = 0.0
    return np.asarray(distance)


def hard_to_explain(kernel: Any, X: SequenceBatch, count: int, random: np.random.RandomState, memory: int) -> Indices:
    """Landmarks drawn by approximate ridge leverage scores l_i = (K (K + λI)⁻¹)_ii.

    A uniform pilot S of `count` sequences stands for the others: K is replaced by K_nS (n/s) K_Sn where it is inverted,
    which gives, by Woodbury,

        l_i ≈ (1/λ) (k(x_i, x_i) - k(x_i, S) (K_SS + (s/n) λ I)⁻¹ k(S, x_i)),

    at most 1. What the pilot doesn't explain scores high. λ is the mean tail, (1/c) Σ_{j>c} λ_j with c = count/2 and
    the eigenvalues of K estimated by (n/s) times those of K_SS.
    """
    n, pilot = len(X), X.take(np.sort(random.choice(len(X), count, replace=False)))
    K = gram(kernel, pilot, pilot)
    value, vector = linalg.eigh((K + K.T) / 2)
    value = np.maximum(value, 0.0)  # rounding can leave them a little below zero
    if value[-1] == 0:
        return np.sort(random.choice(n, count, replace=False)).astype(np.int64)
    half = max(1, count // 2)
    share = count / n
    ridge = max(value[: count - half].sum() / share / half, default_tolerance(precision_of(kernel, X)) * value[-1])
    size = _squares(kernel, X)
    score = np.empty(n)
    for place, part in split(X, count_rows(count, memory, reserve(count, memory))):
        explained = np.square(gram(kernel, part, pilot) @ vector) / (value + share * ridge)
        score[place] = (size[place] - explained.sum(axis=1)) / ridge
    # A floor far below any score of use, so that there are always enough to draw.
    score = np.clip(score, 1e-12, 1.0)
    return np.sort(random.choice(n, count, replace=False, p=score / score.sum())).astype(np.int64)
