"""Sizes: each sequence to norm 1, each channel of each sequence to deviation 1, each channel over the training data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..sequences import SequenceBatch
from .base import SequenceTransformer, give_back, quietly, scale_runs, seal


@quietly
def unit_norm(batch: SequenceBatch) -> SequenceBatch:
    """Return each sequence divided by its Euclidean norm; see `UnitNorm`. The result never overflows.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> unit_norm(as_batch([[3.0, 4.0], [0.0]])).values.ravel()
    array([0.6, 0.8, 0. ])
    """
    # One norm for all channels: read the m channels of a step as m steps of one channel.
    runs = scale_runs(batch.values.reshape(-1, 1), batch.offsets * batch.n_channels)
    norms = np.sqrt(runs.sums(runs.values * runs.values))
    norms[norms == 0] = 1
    unit = runs.values / runs.spread(norms)
    return SequenceBatch.from_checked(unit.reshape(batch.values.shape).astype(batch.dtype, copy=False), batch.offsets)


class UnitNorm(SequenceTransformer):
    """Divide each sequence by its Euclidean norm over all steps and channels: x / ‖x‖.

    The preprocessing of the RNTK paper. A sequence of zeros stays what it is.

    References
    ----------
    S. Alemohammad, Z. Wang, R. Balestriero and R. Baraniuk, "The Recurrent Neural Tangent Kernel", ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> UnitNorm().fit_transform(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    function = staticmethod(unit_norm)


@quietly
def z_normalize(batch: SequenceBatch) -> SequenceBatch:
    """Return each channel of each sequence at mean 0 and deviation 1; see `ZNormalize`. The result never overflows.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> z_normalize(as_batch([[1.0, 3.0], [0.1, 0.1, 0.1]])).values.ravel()
    array([-1.,  1.,  0.,  0.,  0.])
    """
    runs = scale_runs(batch.values, batch.offsets)
    _, deviations, centred = runs.moments()
    factors = np.where(runs.are_constant(), 0.0, 1.0 / deviations)
    centred *= runs.spread(factors)
    centred += 0.0  # no negative zeros where a channel is constant
    return SequenceBatch.from_checked(centred.astype(batch.dtype, copy=False), batch.offsets)


class ZNormalize(SequenceTransformer):
    """Bring each channel of each sequence to mean 0 and standard deviation 1.

    Every sequence is treated on its own, with its population standard deviation (divided by T_i). A channel is
    constant, and becomes zeros, if its range is within the rounding of its own size: at most 4 machine epsilons of its
    dtype times its largest magnitude. Variation that is small in absolute terms is kept.

    See Also
    --------
    ChannelScaler : one mean and deviation for all sequences, which keeps their differences in level and size.

    Examples
    --------
    >>> ZNormalize().fit_transform([[1.0, 3.0], [0.1, 0.1, 0.1]])
    [array([-1.,  1.]), array([0., 0., 0.])]
    """

    function = staticmethod(z_normalize)


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
