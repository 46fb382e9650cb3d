"""Every channel to mean 0 and standard deviation 1 over the training data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rntk.preprocessing.base import SequenceTransformer, give_back, seal
from rntk.preprocessing.runs import quietly, scale_runs
from rntk.sequences import SequenceBatch

__all__ = ["ChannelScaler"]


class ChannelScaler(SequenceTransformer):
    """Bring each channel to mean 0 and standard deviation 1 over all steps of all training sequences.

    The same shift and scale for every sequence, learned in `fit`: differences in level and size between sequences
    stay. Long sequences count for more than short ones, every step for the same.

    Attributes
    ----------
    mean_ : ndarray of shape (m,)
        Mean of each channel.
    scale_ : ndarray of shape (m,)
        Population standard deviation of each channel, and 1 for one that is constant up to the rounding of its size.
    n_channels_in_ : int
        Number of channels m.

    See Also
    --------
    ZNormalize : every sequence on its own.

    Examples
    --------
    >>> scaler = ChannelScaler().fit([[1.0, 3.0], [3.0, 1.0, 2.0, 2.0, 2.0, 2.0]])
    >>> scaler.mean_, scaler.scale_ ** 2
    (array([2.]), array([0.5]))
    >>> scaler.inverse_transform(scaler.transform([[2.0, 5.0]]))
    [array([2., 5.])]
    """

    mean_: NDArray[np.float64]
    scale_: NDArray[np.float64]

    @quietly
    def _learn(self, batch: SequenceBatch) -> None:
        runs = scale_runs(batch.values, np.array([0, len(batch.values)]))
        moments = runs.moments()
        self.mean_ = np.ldexp(moments.means, runs.exponents)[0]
        scale = np.ldexp(moments.deviations, runs.exponents)[0]
        # The deviation of the smallest subnormal numbers is zero in floating point, though they differ.
        self.scale_ = np.where(runs.are_constant()[0] | (scale == 0), 1.0, scale)

    @quietly
    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        exponents = self._exponents()
        centred = np.ldexp(batch.values.astype(np.float64, copy=False), -exponents) - np.ldexp(self.mean_, -exponents)
        return seal(centred / np.ldexp(self.scale_, -exponents), batch.offsets, batch.dtype, "the scaled X")

    def transform(self, X: Any) -> Any:
        """Return (x - mean_) / scale_, in the form in which the sequences came; see `UnitNorm.transform`.

        Raises
        ------
        NotFittedError
            If there is no mean and scale yet.
        SequenceError
            If `X` cannot be read, has another number of channels, or a result is too large for its dtype.
        """
        check_is_fitted(self)
        return super().transform(X)

    @quietly
    def inverse_transform(self, X: Any) -> Any:
        """Return x * scale_ + mean_, in the form in which the sequences came; see `transform`."""
        check_is_fitted(self)
        batch = self._read(X)
        exponents = self._exponents()
        values = batch.values * np.ldexp(self.scale_, -exponents) + np.ldexp(self.mean_, -exponents)
        return give_back(X, seal(np.ldexp(values, exponents), batch.offsets, batch.dtype, "the X before scaling"))

    def _exponents(self) -> NDArray[np.int32]:
        """Powers of two, one per channel, that bring mean and scale below 1.

        Divided by them first, which does not round, x - mean_ overflows only if the result does.
        """
        return np.asarray(np.frexp(np.maximum(np.abs(self.mean_), self.scale_))[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = True
        return tags
