"""Shorter sequences: means of blocks of consecutive steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rntk.preprocessing.base import SequenceTransformer
from rntk.preprocessing.runs import quietly, scale_runs
from rntk.sequences import SequenceBatch
from rntk.sequences.batch import offsets_of

from ..errors import check_count

__all__ = ["Downsample", "block_means", "downsample"]


@quietly
def downsample(batch: SequenceBatch, max_length: int) -> SequenceBatch:
    """Return the sequences with at most `max_length` steps, by averaging blocks of consecutive ones.

    A sequence of length T_i is cut into blocks of k = ceil(T_i / max_length) steps, the last of them possibly
    shorter, and each block replaced by its mean. Sequences that are short enough stay exactly what they are. The
    result never overflows.

    Parameters
    ----------
    batch : SequenceBatch
    max_length : int
        At least 1.

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
    return SequenceBatch._from_checked(means.astype(batch.dtype, copy=False), offsets)


class Downsample(SequenceTransformer):
    """Shorten sequences to at most `max_length` steps, by averaging blocks of consecutive ones.

    A sequence of length T_i is cut into blocks of k = ceil(T_i / max_length) steps, the last of them possibly
    shorter, and each block replaced by its mean. The new length is ceil(T_i / k), which may be less than
    `max_length`. Sequences that are short enough stay exactly what they are.

    Parameters
    ----------
    max_length : int
        At least 1.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.

    Examples
    --------
    >>> Downsample(3).fit_transform([[1.0, 3.0, 5.0, 7.0, 9.0], [4.0, 2.0]])
    [array([2., 6., 9.]), array([4., 2.])]
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    def _learn(self, batch: SequenceBatch) -> None:
        check_count("max_length", self.max_length)

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return downsample(batch, self.max_length)
