"""Where arrays of the fused engine lie.

On a cache line, because a vector load across two lines costs twice and a sweep does little else; and, for what only
lives during preparation, in memory that was used before, because the first touch of a fresh page costs more than all
arithmetic on it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes of a cache line, and of the widest vector.
LINE = 64
#: Lanes are padded to a multiple of this, so that every row begins on a line in either precision.
LANES = 16
#: Bytes of scratch memory that a thread keeps for its next call.
KEPT_BYTES = 1 << 25

_kept = threading.local()


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """`np.zeros` on a cache line."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def padded(lanes: int) -> int:
    """`lanes` rounded up to whole vectors."""
    return -(-lanes // LANES) * LANES


@contextmanager
def scratch() -> Iterator[Callable[..., NDArray[Any]]]:
    """`np.empty` on memory that is taken back at the end of the block: nothing made of it may live longer."""
    free: list[NDArray[np.uint8]] = getattr(_kept, "buffers", [])
    _kept.buffers = []  # a block inside this one takes memory of its own
    taken: list[NDArray[np.uint8]] = []

    def empty(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        fitting = [k for k, buffer in enumerate(free) if size <= buffer.size <= 2 * size + LINE]
        buffer = free.pop(fitting[0]) if fitting else np.empty(size, dtype=np.uint8)
        taken.append(buffer)
        return np.asarray(buffer[:size].view(dtype).reshape(shape))

    try:
        yield empty
    finally:
        kept, total = [], 0
        for buffer in (*taken, *free):
            total += buffer.size
            if total <= KEPT_BYTES:
                kept.append(buffer)
        _kept.buffers = kept
