"""The gate: whatever users bring becomes one `SequenceBatch`, here and nowhere else.

In: arrays (n, T) or (n, T, m), lists of (T_i,) or (T_i, m) arrays, data frames, Arrow lists, tensors.
Out: a frozen `SequenceBatch`, contiguous values plus offsets, time-major, finite, float32 or float64.

The layout is that of ragged columns in Arrow: one block of memory that compiled code walks without padding
and without Python objects, whether the lengths agree or not. All checks happen at this gate and all problems
of an input are raised together in one `rntk.errors.SequenceError`; code downstream holds a batch and checks
nothing.

Imports run one way: ``errors`` <- ``defects`` (what is wrong with an input) <- ``batch`` (the class and its
invariants) <- ``gate`` (reading user data). ``targets`` is the gate of labels, values and weights.
"""

from __future__ import annotations

from .batch import SequenceBatch
from .gate import as_batch, check_channels, check_channels_agree

__all__ = ["SequenceBatch", "as_batch", "check_channels", "check_channels_agree"]
