"""Kernel ridge regression for every ridge at once, with its leave-one-out predictions, from one eigendecomposition.

With G = (K + λI)⁻¹ the prediction for a sequence by the model fitted to all others is y_i - (G y)_i / G_ii.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[Any]


class RidgePath(NamedTuple):
    """Solutions for several ridges: `dual` (R, n, k), `left_out` (R, n, k), `ridges` (R,)."""

    ridges: Array
    dual: Array
    left_out: Array


def ridge_path(K: Array, targets: Array, ridges: Array) -> RidgePath:
    """Fit (n, k) `targets` for every ridge in `ridges`, all positive."""
    value, vector = linalg.eigh(K)
    # Rounding, float32 Gram matrices included, can leave eigenvalues a little below zero.
    value = np.maximum(value, 0.0)
    inside, squares = vector.T @ targets, np.square(vector)
    dual = np.empty((len(ridges), *targets.shape))
    left_out = np.empty_like(dual)
    for r, ridge in enumerate(ridges):
        inverse = 1.0 / (value + ridge)
        dual[r] = vector @ (inverse[:, None] * inside)
        left_out[r] = targets - dual[r] / (squares @ inverse)[:, None]
    return RidgePath(np.asarray(ridges, dtype=np.float64), dual, left_out)
