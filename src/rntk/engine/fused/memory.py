"""Arrays that begin on a cache line: a vector load across two lines costs twice, and a sweep does little else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes of a cache line, and of the widest vector.
LINE = 64
#: Lanes are padded to a multiple of this, so that every row begins on a line in either precision.
LANES = 16


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """`np.zeros` on a cache line."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def padded(lanes: int) -> int:
    """`lanes` rounded up to whole vectors."""
    return -(-lanes // LANES) * LANES
