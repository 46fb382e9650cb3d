"""How good a kernel is: ridge regression for every ridge at once, judged by predictions of what was left out.

With G = (K + λ W⁻¹)⁻¹ and W the diagonal of weights, the prediction for a sequence by the model fitted to all others is
y_i - (G y)_i / G_ii: one eigendecomposition gives all of them, for every λ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...sequences.targets import Array


class RidgePath(NamedTuple):
    """Solutions for several ridges.

    Attributes
    ----------
    ridges : ndarray of shape (R,)
        The ridges λ.
    dual : ndarray of shape (R, n, k)
        Dual coefficients G y.
    left_out : ndarray of shape (R, n, k)
        What each sequence is predicted to be by the others.
    """

    ridges: Array
    dual: Array
    left_out: Array


def ridge_path(K: Array, targets: Array, ridges: Array, weight: Array | None = None) -> RidgePath:
    """Fit (n, k) `targets` for every ridge in `ridges`, all positive; `weight` (n,) is one for every sequence."""
    root = np.ones(len(K)) if weight is None else np.sqrt(weight)
    # With V diag(value) Vᵀ = W^½ K W^½ it is G = W^½ V diag(1 / (value + λ)) Vᵀ W^½.
    value, vector = linalg.eigh(K if weight is None else K * np.outer(root, root))
    # Rounding, float32 Gram matrices included, can leave eigenvalues a little below zero.
    value = np.maximum(value, 0.0)
    inside, squares = vector.T @ (root[:, None] * targets), np.square(vector)
    dual = np.empty((len(ridges), *targets.shape))
    left_out = np.empty_like(dual)
    for r, ridge in enumerate(ridges):
        inverse = 1.0 / (value + ridge)
        dual[r] = root[:, None] * (vector @ (inverse[:, None] * inside))
        left_out[r] = targets - dual[r] / (np.square(root) * (squares @ inverse))[:, None]
    return RidgePath(np.asarray(ridges, dtype=np.float64), dual, left_out)


class Judgement(NamedTuple):
    """How good left-out predictions (n, k) are.

    Attributes
    ----------
    score : float
        Decides; larger is better.
    error : float
        Of equal scores the smaller decides.
    losses : ndarray of shape (n,)
        What each sequence has lost; their mean falls as `score` grows.
    """

    score: float
    error: float
    losses: Array

    @property
    def merit(self) -> tuple[float, float]:
        """To sort by."""
        return self.score, -self.error


def judge_classes(left_out: Array, targets: Array, weight: Array) -> Judgement:
    """Accuracy of scores (n, classes); `targets` are largest at the class of each sequence."""
    losses = weight * (left_out.argmax(axis=1) != targets.argmax(axis=1))
    return Judgement(1 - float(losses.mean()), _squared_error(left_out, targets, weight), losses)


def judge_values(left_out: Array, targets: Array, weight: Array) -> Judgement:
    """Minus the squared error of values (n, k)."""
    losses = weight * np.square(left_out - targets).mean(axis=1)
    return Judgement(-float(losses.mean()), float(losses.mean()), losses)


def _squared_error(left_out: Array, targets: Array, weight: Array) -> float:
    return float(np.mean(weight[:, None] * np.square(left_out - targets)))


def best_ridge(
    K: Array, targets: Array, weight: Array, judge: Callable[[Array, Array, Array], Judgement], relative: Array
) -> tuple[Judgement, int, RidgePath]:
    """The best verdict over ridges, and where; of equals the largest ridge, the smoothest model.

    `relative` are ridges as multiples of the mean of the diagonal; `weight` is one on average.
    """
    scale = float(np.trace(K)) / len(K)
    # A kernel that sees nothing (differences of two steps are one number, normalised to zero) predicts nothing.
    ridges = relative * (scale if scale > 1e-300 else 1.0)
    path = ridge_path(K, targets, ridges, None if (weight == 1).all() else weight)
    verdicts = [judge(each, targets, weight) for each in path.left_out]
    best = max(range(len(verdicts)), key=lambda r: (verdicts[r].merit, r))
    return verdicts[best], best, path
