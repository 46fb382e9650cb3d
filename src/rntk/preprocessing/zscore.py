"""Every channel of every sequence to mean 0 and standard deviation 1, on its own."""

from __future__ import annotations

import numpy as np

from rntk.preprocessing.base import SequenceTransformer
from rntk.preprocessing.runs import quietly, scale_runs
from rntk.sequences import SequenceBatch

__all__ = ["ZNormalize", "z_normalize"]


@quietly
def z_normalize(batch: SequenceBatch) -> SequenceBatch:
    """Return each channel of each sequence minus its mean, divided by its standard deviation.

    The deviation is that of the population (divided by T_i). A channel is constant, and becomes zeros, if its range
    is within the rounding of its own size: at most 4 machine epsilons of its dtype times its largest magnitude. The
    result never overflows.

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
    return SequenceBatch._from_checked(centred.astype(batch.dtype, copy=False), batch.offsets)


class ZNormalize(SequenceTransformer):
    """Bring each channel of each sequence to mean 0 and standard deviation 1.

    Every sequence is treated on its own, with its population standard deviation. A channel that is constant up to
    the rounding of its own size becomes zeros; variation that is small in absolute terms is kept.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.

    See Also
    --------
    ChannelScaler : one mean and deviation for all sequences, which keeps their differences in level and size.

    Examples
    --------
    >>> ZNormalize().fit_transform([[1.0, 3.0], [0.1, 0.1, 0.1]])
    [array([-1.,  1.]), array([0., 0., 0.])]
    """

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return z_normalize(batch)
