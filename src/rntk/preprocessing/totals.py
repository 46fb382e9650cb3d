"""Running sums: the inverse of differences, up to the first step."""

from __future__ import annotations

import numpy as np

from rntk.preprocessing.base import SequenceTransformer, seal
from rntk.preprocessing.runs import quietly
from rntk.sequences import SequenceBatch

__all__ = ["CumulativeSum", "cumulative_sum"]


@quietly
def cumulative_sum(batch: SequenceBatch) -> SequenceBatch:
    """Return the running sums x_1 + ... + x_t of each channel of each sequence.

    Raises
    ------
    SequenceError
        If a sum is too large for the dtype.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> cumulative_sum(as_batch([[1.0, 2.0, 3.0], [4.0]])).values.ravel()
    array([1., 3., 6., 4.])
    """
    # One running sum over everything, minus what it was at the starts, would carry the rounding (and the overflow) of
    # all earlier sequences into each. Sequences of one length stack into an array instead; there are never more than
    # sqrt(2 S) different lengths among S steps.
    sums = np.empty(batch.values.shape, dtype=np.float64)
    by_length = np.argsort(batch.lengths, kind="stable")
    distinct, first = np.unique(batch.lengths[by_length], return_index=True)
    for length, members in zip(distinct.tolist(), np.split(by_length, first[1:]), strict=True):
        rows = batch.offsets[members, None] + np.arange(length)
        sums[rows] = np.cumsum(batch.values[rows], axis=1, dtype=np.float64)
    return seal(sums, batch.offsets, batch.dtype, "the running sum of X")


class CumulativeSum(SequenceTransformer):
    """Replace each channel of each sequence by its running sum x_1 + ... + x_t.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.

    Examples
    --------
    >>> CumulativeSum().fit_transform([[1.0, 2.0, 3.0], [4.0]])
    [array([1., 3., 6.]), array([4.])]
    """

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return cumulative_sum(batch)
