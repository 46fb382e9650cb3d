"""Kernel ridge regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_array

from ..sequences import SequenceBatch
from .base import Array, KernelLearner, gram, in_blocks


class RNTKRegressor(RegressorMixin, KernelLearner):  # type: ignore[misc]
    """Kernel ridge regression on sequences of any length: minimises ‖y - f‖² + alpha ‖f‖².

    It is the mean of infinitely many infinitely wide networks trained to the end by gradient descent (alpha = 0), or
    with the ridge of docs/theory.md.

    Parameters
    ----------
    kernel : None for `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.
    alpha : ridge, one number or one per target. Zero interpolates; where the Gram matrix is singular (duplicate
        sequences, say) that means the least-squares solution of smallest norm.

    Attributes
    ----------
    dual_coef_ : (n,) or (n, targets). kernel_ : the kernel used.
    sequences_ : the training sequences with a non-zero dual coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal(n) for n in (5, 8, 6, 9, 7, 5)]
    >>> y = [x.mean() for x in X]
    >>> RNTKRegressor(alpha=0.0).fit(X, y).score(X, y) > 0.999
    True
    """

    def __init__(self, kernel: Any = None, alpha: Any = 1.0) -> None:
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRegressor:
        """Fit to sequences `X` and targets `y`, (n,) or (n, targets)."""
        batch = self._read_training(X)
        y = check_targets(y, len(batch))
        self.kernel_ = self._make_kernel()
        self._fit_gram(gram(self.kernel_, batch), batch, y, sample_weight)
        return self

    def _fit_gram(self, K: Array, batch: SequenceBatch, y: Array, sample_weight: Any = None) -> None:
        weight = None if sample_weight is None else np.sqrt(_check_sample_weight(sample_weight, K))
        targets = y.reshape(len(y), -1)
        alpha = np.broadcast_to(check_ridge(self.alpha), targets.shape[1])
        dual = np.empty(targets.shape)
        if weight is not None:
            K, targets = K * np.outer(weight, weight), targets * weight[:, None]
        for value in np.unique(alpha):
            dual[:, alpha == value] = solve_ridge(K, targets[:, alpha == value], float(value))
        if weight is not None:
            dual *= weight[:, None]
        used = np.flatnonzero(np.any(dual != 0, axis=1))
        used = used if used.size else np.array([0])
        self.dual_coef_ = dual[used].reshape(len(used), *y.shape[1:])
        self.sequences_ = batch.take(used)

    def predict(self, X: Any) -> Array:
        """Values at the sequences in `X`, (n,) or (n, targets)."""
        new = self._read_new(X)
        return in_blocks(
            new,
            len(self.sequences_),
            lambda part: gram(self.kernel_, part, self.sequences_) @ self.dual_coef_,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def solve_ridge(K: Array, targets: Array, alpha: float) -> Array:
    """(K + alpha I)⁻¹ targets; the solution of smallest norm where that matrix is singular."""
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += alpha
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(shifted, targets, assume_a="pos"))
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        value, vector = linalg.eigh(shifted)
        # Directions whose eigenvalue is rounding carry no information about the targets.
        kept = value > len(K) * np.finfo(float).eps * max(value[-1], 0.0)
        vector = vector[:, kept]
        return np.asarray((vector / value[kept]) @ (vector.T @ targets))


def check_targets(y: Any, count: int) -> Array:
    """Targets as finite floats, (n,) or (n, targets)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", ensure_min_samples=0)
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, not {y.ndim}")
    if len(y) != count:
        raise ValueError(f"{count} sequences and {len(y)} targets: there must be one target per sequence")
    return np.asarray(y)


def check_ridge(alpha: Any) -> Array:
    """`alpha` as non-negative numbers."""
    value = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    if value.ndim > 1 or not np.isfinite(value).all() or (value < 0).any():
        raise ValueError(f"alpha must be a non-negative number, or one per target, not {alpha!r}")
    return value
