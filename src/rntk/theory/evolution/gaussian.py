"""Gaussian vectors whose covariance may have any rank, none included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Share of the variance of a coordinate below which a direction counts as absent.
NULL = 1e-13


def square_root(covariance: Array, scale: Array | None = None) -> Array:
    """(k, r) root with root rootᵀ = covariance, (k, k), and r its rank.

    Directions are judged after each coordinate is divided by its own deviation: a coordinate that is small beside the
    others is not null. Null directions are left out, as are negative eigenvalues, which only rounding or the error of
    an expectation can cause.

    Parameters
    ----------
    covariance : ndarray
        (k, k), symmetric.
    scale : ndarray or None
        (k,) what to divide by; the deviations unless given.

    Examples
    --------
    >>> import numpy as np
    >>> square_root(np.array([[4.0, 2.0], [2.0, 1.0]])).shape
    (2, 1)
    """
    if scale is None:
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    present = scale > 0
    unit = np.where(present, scale, 1.0)
    correlation = np.where(np.outer(present, present), covariance / unit[:, None] / unit, 0.0)
    values, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    keep = values > NULL * len(values)
    return np.asarray(scale[:, None] * vectors[:, keep] * np.sqrt(values[keep]))


class GaussianWalk:
    """Samples of Q_0, Q_1, … drawn one after another, each given those before it.

    This is how Lemma C.1 itself builds the process: what is known from the past, (70d), and an independent rest, (70f).
    Samples of the past stay as they are, and covariances that determine Q_{t+1} exactly add no noise.

    Parameters
    ----------
    samples : int
        How many.
    columns : int
        Of each Q_t.
    steps : int
        How many at most.
    """

    def __init__(self, samples: int, columns: int, steps: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._noise = np.empty((samples, columns * steps))  # standard normal, as many columns in use as `_root` has
        self._root = np.empty((0, 0))  # (t d, r): the samples so far are _noise[:, :r] @ _root.T

    def extend(self, cross: Array, variance: Array) -> Array:
        """(samples, d) of Q_{t+1}, from cov((Q_0, …, Q_t), Q_{t+1}), (t d, d), and cov(Q_{t+1}), (d, d)."""
        rank, deviation = self._root.shape[1], np.sqrt(np.maximum(np.diagonal(variance), 0.0))
        known = np.zeros((len(variance), rank))
        if rank:
            size = np.linalg.norm(self._root, axis=1)
            rows, unit = size > 0, np.where(deviation > 0, deviation, 1.0)
            size = size[rows, None]
            known = np.linalg.lstsq(self._root[rows] / size, cross[rows] / size / unit, rcond=None)[0].T * unit[:, None]
        fresh = square_root(variance - known @ known.T, deviation)
        end = rank + fresh.shape[1]
        self._noise[:, rank:end] = self._rng.standard_normal((len(self._noise), fresh.shape[1]))
        past = np.pad(self._root, ((0, 0), (0, fresh.shape[1])))
        self._root = np.concatenate([past, np.concatenate([known, fresh], axis=1)])
        return np.asarray(self._noise[:, :end] @ self._root[-len(variance) :].T)
