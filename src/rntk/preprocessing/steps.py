"""Steps: missing ones filled in, their differences and running sums, fewer of them, and a channel that counts them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_count, check_positive
from ..sequences import SequenceBatch
from ..sequences.batch import offsets_of
from .base import SequenceTransformer, quietly, scale_runs, seal


class Interpolate(SequenceTransformer):
    """Fill missing values: linearly between two known ones of a channel, with the nearest at the ends.

    The only transformer that takes NaN, None, pandas' NA and masked values: put it first. As a function it is
    ``rntk.as_batch(X, missing="interpolate")``, and readers and commands have the same word for it. NaN that pad
    sequences to one length are filled like any others: `rntk.SequenceBatch.from_padded` cuts those off.

    Examples
    --------
    >>> import numpy as np
    >>> Interpolate().fit_transform([[1.0, np.nan, 3.0], [np.nan, 5.0]])
    [array([1., 2., 3.]), array([5., 5.])]
    """

    missing = "interpolate"

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return batch  # it was filled when it was read

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@quietly
def differences(batch: SequenceBatch, order: int = 1) -> SequenceBatch:
    """Return x_{t+1} - x_t of each sequence, `order` times over; see `Differences`.

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

    Examples
    --------
    >>> Differences().fit_transform([[1.0, 4.0, 9.0], [5.0]])
    [array([3., 5.]), array([0.])]
    >>> Differences(order=2).fit_transform([[1.0, 4.0, 9.0], [5.0]])
    [array([2.]), array([0.])]
    """

    function = staticmethod(differences)

    def __init__(self, order: int = 1) -> None:
        self.order = order


@quietly
def cumulative_sum(batch: SequenceBatch) -> SequenceBatch:
    """Return the running sums of each channel of each sequence; see `CumulativeSum`.

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

    The inverse of `Differences`, up to the first step.

    Examples
    --------
    >>> CumulativeSum().fit_transform([[1.0, 2.0, 3.0], [4.0]])
    [array([1., 3., 6.]), array([4.])]
    """

    function = staticmethod(cumulative_sum)


@quietly
def downsample(batch: SequenceBatch, max_length: int) -> SequenceBatch:
    """Return the sequences with at most `max_length` steps; see `Downsample`. The result never overflows.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> downsample(as_batch([[1.0, 3.0, 5.0, 7.0, 9.0], [4.0, 2.0]]), 3).values.ravel()
    array([2., 6., 9., 4., 2.])
    """
    max_length = check_count("max_length", max_length)
    if batch.max_length <= max_length:
        return batch
    return _averaged(batch, -(-batch.lengths // max_length))


@quietly
def block_means(batch: SequenceBatch, size: int) -> SequenceBatch:
    """Return the sequences with every `size` consecutive steps replaced by their mean; the last block may be shorter.

    One size for all sequences, so that a step means the same time in each of them.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> block_means(as_batch([[1.0, 3.0, 5.0], [4.0, 2.0]]), 2).values.ravel()
    array([2., 5., 3.])
    """
    size = check_count("size", size)
    return batch if size == 1 else _averaged(batch, np.full(len(batch), size, dtype=np.int64))


def _averaged(batch: SequenceBatch, block_sizes: NDArray[np.int64]) -> SequenceBatch:
    """The means of blocks of `block_sizes` (n,) steps."""
    n_blocks = -(-batch.lengths // block_sizes)  # (n,): the new lengths
    offsets = offsets_of(n_blocks)
    # Block b of the batch, number b - offsets[i] of sequence i, starts that many blocks after the sequence does.
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_blocks)
    starts = np.repeat(batch.offsets[:-1], n_blocks) + number * np.repeat(block_sizes, n_blocks)
    # Blocks are scaled one by one, not by sequence: small values beside a large outlier keep all their digits.
    blocks = scale_runs(batch.values, np.append(starts, batch.offsets[-1]))
    means = np.ldexp(blocks.means(), blocks.exponents)
    return SequenceBatch.from_checked(means.astype(batch.dtype, copy=False), offsets)


class Downsample(SequenceTransformer):
    """Shorten sequences to at most `max_length` steps, by averaging blocks of consecutive ones.

    A sequence of length T_i is cut into blocks of k = ceil(T_i / max_length) steps, the last of them possibly
    shorter, and each block replaced by its mean. The new length is ceil(T_i / k), which may be less than
    `max_length`. Sequences that are short enough stay exactly what they are.

    Parameters
    ----------
    max_length : int
        At least 1.

    Examples
    --------
    >>> Downsample(3).fit_transform([[1.0, 3.0, 5.0, 7.0, 9.0], [4.0, 2.0]])
    [array([2., 6., 9.]), array([4., 2.])]
    """

    function = staticmethod(downsample)

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length


@quietly
def add_clock(batch: SequenceBatch, reach: float = 3.0) -> SequenceBatch:
    """Return the sequences with a last channel that runs evenly over each; see `Clock`.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> add_clock(as_batch([[5.0, 6.0, 7.0], [4.0]]), 1.0).values
    array([[ 5., -1.],
           [ 6.,  0.],
           [ 7.,  1.],
           [ 4.,  0.]])
    """
    reach = check_positive("reach", reach)
    step = np.arange(len(batch.values)) - np.repeat(batch.offsets[:-1], batch.lengths)
    last = np.repeat(batch.lengths - 1, batch.lengths)
    time = np.where(last > 0, 2.0 * step / np.maximum(last, 1) - 1.0, 0.0)
    return seal(np.column_stack([batch.values, reach * time]), batch.offsets, batch.dtype, "X with a clock")


class Clock(SequenceTransformer):
    """Append a channel that runs evenly from -`reach` to `reach` over each sequence; it is 0 on a single step.

    A kernel that averages over time, such as ``RNTK(readout="mean")``, compares every step of one sequence with every
    step of the other. With a clock it tells what happens early from what happens late.

    Parameters
    ----------
    reach : float, default 3.0
        Positive. For channels of deviation 1, values of 1 to 3 have worked well.

    Examples
    --------
    >>> Clock(1.0).fit_transform([[5.0, 6.0, 7.0]])
    [array([[ 5., -1.],
           [ 6.,  0.],
           [ 7.,  1.]])]
    """

    function = staticmethod(add_clock)

    def __init__(self, reach: float = 3.0) -> None:
        self.reach = reach
