"""What all learners share: reading data, evaluating any kernel on it, and keeping only what prediction needs."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from ..kernels import RNTK
from ..kernels.pairwise import compares_vectors, read_sequences
from ..sequences import SequenceBatch, check_channels

Array = NDArray[Any]


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
