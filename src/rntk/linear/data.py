"""Inputs and targets of sequence-to-sequence models: one row per step, and back to the user's layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SequenceError
from ..sequences import SequenceBatch, as_batch

Array = NDArray[np.float64]


def read_inputs(X: Any, name: str = "X", channels: int | None = None) -> SequenceBatch:
    """`X` as float64 sequences, with as many channels as the model has inputs."""
    batch = as_batch(X, name=name).astype(np.float64)
    if channels is not None and batch.n_channels != channels:
        raise SequenceError(f"{name} has {batch.n_channels} channels, the model is for {channels}")
    return batch


def read_targets(y: Any, batch: SequenceBatch, name: str = "y") -> Array:
    """`y`, one value or vector per step of `batch`, as (S, n_y). It comes in the layouts of `X`."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    targets = as_batch(y, name=name).astype(np.float64)
    if len(targets) != len(batch):
        raise SequenceError(f"{len(batch)} sequences and {len(targets)} targets: there must be one per sequence")
    different = np.flatnonzero(targets.lengths != batch.lengths)
    if different.size:
        i = int(different[0])
        raise SequenceError(
            f"{different.size} of {len(batch)} targets differ from their sequences in length: sequence {i} has "
            f"{batch.lengths[i]} steps, its target {targets.lengths[i]}. There is one output per step"
        )
    return np.asarray(targets.values)


def is_flat(y: Any) -> bool:
    """Whether targets came without an axis of outputs, as numbers per step."""
    try:
        return np.ndim(y[0]) == 1
    except (KeyError, IndexError, TypeError):
        return False


def laid_out(values: Array, batch: SequenceBatch, flat: bool = False) -> Any:
    """Rows per step as users know them: (n, T, n_y), or a list of (T_i, n_y); without the last axis if `flat`."""
    values = values[:, 0] if flat else values
    if batch.is_equal_length:
        return values.reshape(len(batch), -1, *values.shape[1:])
    return np.split(values, batch.offsets[1:-1])
