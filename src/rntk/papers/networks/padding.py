"""Ragged sequences as arrays of few shapes: every new shape is compiled anew, which takes seconds.

Sequences are padded in front, so that all of them end at the same step, the last. A network starts from the zero state
and its padded steps leave that state at exactly zero (`elman`, `gru`), so each sequence meets the state it would meet
alone, and nothing depends on how much padding there is or on what stands in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...sequences import SequenceBatch


class Padded(NamedTuple):
    """B sequences of T steps, time first. A pytree: it passes through `jax.jit`.

    Attributes
    ----------
    values
        (T, B, m) float32; what stands before a sequence is ignored.
    lengths
        (B,) int32; zero for a row that only fills the batch.
    """

    values: NDArray[np.float32]
    lengths: NDArray[np.int32]


def pad(batch: SequenceBatch, rows: NDArray[np.intp], count: int, longest: int) -> Padded:
    """The sequences at `rows`, with empty rows added up to `count`, in a shape that other batches are likely to have.

    `longest` is a length that is likely to return, that of the longest training sequence.
    """
    chosen = [batch[row] for row in rows.tolist()]
    steps = rounded(max(map(len, chosen)), longest)
    values = np.zeros((steps, count, batch.n_channels), dtype=np.float32)
    lengths = np.zeros(count, dtype=np.int32)
    for k, sequence in enumerate(chosen):
        values[steps - len(sequence) :, k] = sequence
        lengths[k] = len(sequence)
    return Padded(values, lengths)


def rounded(length: int, longest: int) -> int:
    """The number of steps to pad `length` to: at most a quarter more, and four values between powers of two.

    Nothing up to `longest` is padded beyond it, so sequences of equal length aren't padded at all.
    """
    quantum = max(1, 1 << (length - 1).bit_length() >> 3)
    up = -(-length // quantum) * quantum
    return min(up, longest) if length <= longest else up
