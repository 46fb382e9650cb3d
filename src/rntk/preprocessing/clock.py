"""A clock: one more channel, which says how far the sequence has come."""

from __future__ import annotations

import numbers

import numpy as np

from rntk.preprocessing.base import SequenceTransformer, seal
from rntk.preprocessing.runs import quietly
from rntk.sequences import SequenceBatch

__all__ = ["Clock", "add_clock"]


@quietly
def add_clock(batch: SequenceBatch, reach: float = 3.0) -> SequenceBatch:
    """Return the sequences with a last channel that runs evenly from -`reach` to `reach` over each.

    Where the sequence has a single step, it is 0 there.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> add_clock(as_batch([[5.0, 6.0, 7.0], [4.0]]), 1.0).values
    array([[ 5., -1.],
           [ 6.,  0.],
           [ 7.,  1.],
           [ 4.,  0.]])
    """
    step = np.arange(len(batch.values)) - np.repeat(batch.offsets[:-1], batch.lengths)
    last = np.repeat(batch.lengths - 1, batch.lengths)
    time = np.where(last > 0, 2.0 * step / np.maximum(last, 1) - 1.0, 0.0)
    return seal(np.column_stack([batch.values, reach * time]), batch.offsets, batch.dtype, "X with a clock")


class Clock(SequenceTransformer):
    """Append a channel that runs evenly from -`reach` to `reach` over each sequence.

    A kernel that averages over time, such as ``RNTK(readout="mean")``, compares every step of one sequence with every
    step of the other. With a clock it tells what happens early from what happens late.

    Parameters
    ----------
    reach : float, default 3.0
        Positive. For channels of deviation 1, values of 1 to 3 have worked well.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`; the result has one more.

    Examples
    --------
    >>> Clock(1.0).fit_transform([[5.0, 6.0, 7.0]])
    [array([[ 5., -1.],
           [ 6.,  0.],
           [ 7.,  1.]])]
    """

    def __init__(self, reach: float = 3.0) -> None:
        self.reach = reach

    def _learn(self, batch: SequenceBatch) -> None:
        self._check()

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return add_clock(batch, self._check())

    def _check(self) -> float:
        reach = self.reach
        if isinstance(reach, bool) or not isinstance(reach, numbers.Real) or not 0 < float(reach) < np.inf:
            raise ValueError(f"reach must be a positive number, not {reach!r}")
        return float(reach)
