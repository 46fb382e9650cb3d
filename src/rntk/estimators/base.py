"""What all learners share: reading data, evaluating any kernel on it, and keeping only what prediction needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from ..errors import SequenceError
from ..evaluation import compares_vectors, evaluate, suited
from ..kernels import RNTK
from ..kernels.network import NetworkKernel
from ..sequences import SequenceBatch, as_batch, check_channels

Array = NDArray[Any]
#: Bytes of kernel values held at once during prediction.
BLOCK_BYTES = 1 << 26


class KernelLearner(BaseEstimator):  # type: ignore[misc]
    """Base of the learners. Their parameter `kernel` is None, a kernel object, or a function of two sets."""

    kernel: Any

    def _read_training(self, X: Any) -> SequenceBatch:
        batch = read_sequences(X)
        self.n_channels_in_ = batch.n_channels
        self.n_features_in_ = batch.max_length if batch.is_equal_length else None
        if self.n_features_in_ is None:
            del self.n_features_in_  # unequal lengths have no number of features
        return batch

    def _read_new(self, X: Any) -> SequenceBatch:
        check_is_fitted(self)
        batch = read_sequences(X)
        check_channels(batch, self.n_channels_in_, self)
        if (
            any(map(compares_vectors, self._fitted_kernels()))
            and batch.is_equal_length
            and batch.max_length != self.n_features_in_
        ):
            raise ValueError(
                f"X has {batch.max_length} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: its kernel compares sequences step by step. Kernels such as RNTK take any length"
            )
        return batch

    def _fitted_kernels(self) -> list[Any]:
        return [self.kernel_]

    def _make_kernel(self) -> Any:
        kernel = self.kernel
        if kernel is None:
            return RNTK()
        if isinstance(kernel, Kernel):
            return clone(kernel)
        if callable(kernel) and not isinstance(kernel, type):
            return kernel
        raise ValueError(
            f"kernel must be a kernel of rntk or scikit-learn, or a function of two sets of sequences, not {kernel!r}"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def read_sequences(X: Any) -> SequenceBatch:
    """`as_batch`, whose refusals also use the words of scikit-learn, since its tools and its users look for them."""
    if sparse.issparse(X):
        raise SequenceError("Sparse data was passed for X, but sequences are dense: pass X.toarray()")
    try:
        return as_batch(X)
    except SequenceError as error:
        if not isinstance(X, np.ndarray):
            raise
        if X.dtype.kind == "c":
            words = "Complex data not supported"
        elif X.ndim == 2 and X.shape[1] == 0:
            words = f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        elif X.ndim == 1 and X.dtype.kind in "biuf":
            words = "Reshape your data: X.reshape(1, -1) is one sequence, X.reshape(-1, 1) many of one step"
        else:
            raise
        raise SequenceError(f"{error}\n{words}", error.problems) from None


def gram(kernel: Any, X: SequenceBatch, Y: SequenceBatch | None = None) -> Array:
    """kernel(X), or kernel(X, Y), as a float64 matrix, whatever kind of kernel it is."""
    shape = (len(X), len(X if Y is None else Y))
    K = np.asarray(evaluate(kernel, X, Y), dtype=np.float64)
    if K.shape != shape:
        hint = '; readout="sequence" has no single value per pair' if K.size > np.prod(shape) else ""
        raise ValueError(f"the kernel returned a matrix of shape {K.shape} where {shape} was expected{hint}")
    if not np.isfinite(K).all():
        raise ValueError("the kernel returned values that are not finite numbers")
    return K


def self_gram(kernel: Any, X: SequenceBatch) -> Array:
    """k(x, x) for every x, as `kernel(X)` has it on its diagonal."""
    if isinstance(kernel, Kernel):
        return np.asarray(kernel.diag(suited(kernel, X)), dtype=np.float64)
    return np.array([gram(kernel, X.take([i]))[0, 0] for i in range(len(X))])


def in_blocks(
    new: SequenceBatch, columns: int, evaluate: Callable[[SequenceBatch], Array], block_bytes: int = BLOCK_BYTES
) -> Array:
    """`evaluate` on consecutive parts of `new`, so that no more than `block_bytes` of kernel values exist at once."""
    rows = max(1, block_bytes // (8 * max(columns, 1)))
    parts = [evaluate(new.take(np.arange(a, min(a + rows, len(new))))) for a in range(0, len(new), rows)]
    return np.concatenate(parts)


def is_tangent_kernel(kernel: Any) -> bool:
    """Whether `kernel` is a network's: then it has an NNGP kernel beside the tangent kernel."""
    return isinstance(kernel, NetworkKernel)
