"""How good features are: ridge regression for every ridge at once, judged by predictions of what was left out.

With G = (K + λ W⁻¹)⁻¹ and W the diagonal of weights, the prediction for a sequence by the model fitted to all others is
y_i - (G y)_i / G_ii: one eigendecomposition gives all of them, for every λ. Of features Φ it is K = ΦΦᵀ, and the
smaller of ΦΦᵀ and ΦᵀΦ is decomposed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...sequences.targets import Array

#: Ridges that are tried, as multiples of the mean of the diagonal of ΦΦᵀ; single precision has no smaller ones.
RIDGES = np.logspace(-5, 1, 13)
#: Place of the ridge that is taken where nothing can be left out.
UNJUDGED = 2


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
    value, vector = linalg.eigh(K if weight is None else K * np.outer(root, root), driver="evd")
    return _path(value, vector, root, targets, ridges)


def feature_path(features: Array, targets: Array, ridges: Array, weight: Array | None = None) -> RidgePath:
    """`ridge_path` of the products of (n, d) `features`, in O(n d min(n, d))."""
    n, d = features.shape
    if n <= d:
        return ridge_path(features @ features.T, targets, ridges, weight)
    root = np.ones(n) if weight is None else np.sqrt(weight)
    scaled = features * root[:, None]
    value, right = linalg.eigh(scaled.T @ scaled, driver="evd")
    kept = value > value[-1] * d * np.finfo(np.float64).eps
    value = value[kept]
    return _path(value, scaled @ (right[:, kept] / np.sqrt(value)), root, targets, ridges)


def _path(value: Array, vector: Array, root: Array, targets: Array, ridges: Array) -> RidgePath:
    """From V diag(value) Vᵀ = W^½ K W^½, where G = W^½ (V diag(1 / (value + λ) - 1 / λ) Vᵀ + 1 / λ) W^½.

    With as many eigenvectors as sequences the terms 1 / λ cancel, and are left out.
    """
    # Rounding, float32 Gram matrices included, can leave eigenvalues a little below zero.
    value = np.maximum(value, 0.0)
    scaled = root[:, None] * targets
    inside, squares = vector.T @ scaled, np.square(vector)
    dual = np.empty((len(ridges), *targets.shape))
    left_out = np.empty_like(dual)
    for r, ridge in enumerate(ridges):
        beyond = 0.0 if vector.shape[1] == len(root) else 1.0 / ridge
        inverse = 1.0 / (value + ridge) - beyond
        dual[r] = root[:, None] * (vector @ (inverse[:, None] * inside) + beyond * scaled)
        left_out[r] = targets - dual[r] / (np.square(root) * (squares @ inverse + beyond))[:, None]
    return RidgePath(np.asarray(ridges, dtype=np.float64), dual, left_out)


class Fit(NamedTuple):
    """The ridge that is best by the squared error of what was left out.

    Attributes
    ----------
    ridge : float
        The ridge; of equals the largest, the smoothest model.
    error : float
        The weighted mean of the squared error.
    coefficients : ndarray of shape (n, k) or (d, k)
        What kernel values with the training sequences, or features, are multiplied by.
    left_out : ndarray of shape (n, k)
        What each sequence is predicted to be by the others.
    """

    ridge: float
    error: float
    coefficients: Array
    left_out: Array


def fit_ridge(matrix: Array, gram: bool, targets: Array, weight: Array, counts: Array) -> Fit:
    """The best ridge model.

    Parameters
    ----------
    matrix : ndarray of shape (n, n) or (n, d)
        A Gram matrix, or features.
    gram : bool
        Which.
    targets : ndarray of shape (n, k)
        What is to be predicted.
    weight : ndarray of shape (n,)
        In the fit and in the error; one on average.
    counts : ndarray of bool, shape (n,)
        Whose error counts: without the only member of a class nobody can know of that class.

    Returns
    -------
    Fit
        The model.
    """
    matrix = matrix.astype(np.float64, copy=False)
    scale = float(np.trace(matrix) if gram else np.square(matrix).sum()) / len(matrix)
    # A kernel that sees nothing (differences of two steps are one number, normalised to zero) predicts nothing.
    ridges = RIDGES * (scale if scale > 1e-300 else 1.0)
    path = (ridge_path if gram else feature_path)(matrix, targets, ridges, None if (weight == 1).all() else weight)
    errors = np.square(path.left_out - targets).mean(axis=2) @ (weight * counts)
    best = len(errors) - 1 - int(np.argmin(errors[::-1])) if counts.any() else UNJUDGED
    dual = path.dual[best].copy()
    return Fit(
        float(ridges[best]),
        float(errors[best]) / max(float(weight @ counts), 1e-300),
        dual if gram else matrix.T @ dual,
        path.left_out[best].astype(np.float32),
    )
