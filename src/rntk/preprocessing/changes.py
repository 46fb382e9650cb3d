"""Changes from step to step."""

from __future__ import annotations

import numpy as np

from rntk.preprocessing.base import SequenceTransformer, seal
from rntk.preprocessing.runs import quietly
from rntk.sequences import SequenceBatch
from rntk.sequences.batch import offsets_of

from ..errors import check_count

__all__ = ["Differences", "differences"]


@quietly
def differences(batch: SequenceBatch, order: int = 1) -> SequenceBatch:
    """Return x_{t+1} - x_t of each sequence, `order` times over.

    Lengths become max(T_i - order, 1): a sequence with nothing left to subtract becomes a single step of zeros, so
    that none is empty.

    Parameters
    ----------
    batch : SequenceBatch
    order : int
        At least 1.

    Raises
    ------
    SequenceError
        If a difference is too large for the dtype, or one of lower order on the way for double precision.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> differences(as_batch([[1.0, 4.0, 9.0], [5.0]])).values.ravel()
    array([3., 5., 0.])
    """
    order = check_count("order", order)
    values, lengths = batch.values.astype(np.float64, copy=False), batch.lengths
    for _ in range(min(order, batch.max_length)):  # after that many, all is zeros
        ends = np.cumsum(lengths) - 1
        changes = np.zeros_like(values)
        np.subtract(values[1:], values[:-1], out=changes[:-1])
        # The last row of each sequence reaches into the next one: it goes, or is the only one and becomes zeros.
        changes[ends] = 0
        kept = np.ones(len(values), dtype=bool)
        kept[ends] = lengths == 1
        values, lengths = changes[kept], np.maximum(lengths - 1, 1)
    return seal(values, offsets_of(lengths), batch.dtype, f"the differences of order {order} of X")


class Differences(SequenceTransformer):
    """Replace each sequence by its changes from step to step, x_{t+1} - x_t, `order` times over.

    Lengths become max(T_i - order, 1): a sequence of length 1 gives a single step of zeros, so that none is empty.

    Parameters
    ----------
    order : int
        How many times differences are taken, at least 1.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.

    Examples
    --------
    >>> Differences().fit_transform([[1.0, 4.0, 9.0], [5.0]])
    [array([3., 5.]), array([0.])]
    >>> Differences(order=2).fit_transform([[1.0, 4.0, 9.0], [5.0]])
    [array([2.]), array([0.])]
    """

    def __init__(self, order: int = 1) -> None:
        self.order = order

    def _learn(self, batch: SequenceBatch) -> None:
        check_count("order", self.order)

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return differences(batch, self.order)
