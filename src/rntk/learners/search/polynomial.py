"""The polynomial kernel of the paper's comparison, as a kernel object: scikit-learn has it as a function only."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from ...kernels.description import register


@register
class Polynomial(Kernel):  # type: ignore[misc]
    """(offset + <x, y>)^degree; with `cosine`, of vectors divided by their norm."""

    def __init__(self, degree: int = 2, offset: float = 1.0, cosine: bool = False) -> None:
        self.degree = degree
        self.offset = offset
        self.cosine = cosine

    def _ready(self, X: Any) -> Any:
        X = np.asarray(X, dtype=np.float64)
        if not self.cosine:
            return X
        norm = np.linalg.norm(X, axis=1, keepdims=True)
        return np.divide(X, norm, out=np.zeros_like(X), where=norm > 0)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix; there is nothing to take a gradient by."""
        left = self._ready(X)
        K = (self.offset + left @ (left if Y is None else self._ready(Y)).T) ** self.degree
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Any:
        """Diagonal of the Gram matrix."""
        left = self._ready(X)
        return (self.offset + np.einsum("ij,ij->i", left, left)) ** self.degree

    def is_stationary(self) -> bool:
        """False: it sees where a vector lies."""
        return False
