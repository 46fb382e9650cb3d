"""Numbers that callers give: a budget of memory, how many kernel values fit into it at once, and counts."""

from __future__ import annotations

import numbers
import re
from typing import Any

import numpy as np

from ..base import BLOCK_BYTES

#: Bytes behind a kernel value in use: as the kernel returns it, as float64, and in the precision of a product.
BYTES_PER_VALUE = 24

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def read_memory(memory: Any) -> int:
    """Bytes meant by a number, or by a text such as "1GB", "500 MB" or "2GiB".

    Examples
    --------
    >>> read_memory("1.5 GB"), read_memory("2GiB"), read_memory(4096)
    (1500000000, 2147483648, 4096)
    """
    count = 0.0
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if found and (found[2] or not found[3]):
            count = float(found[1]) * (_BINARY if found[3] else _FACTORS)[found[2]]
    elif isinstance(memory, numbers.Real) and not isinstance(memory, bool):
        count = float(memory)
    if not 1 <= count < 2**63:
        raise ValueError(f'memory must be a number of bytes or a text such as "1GB", not {memory!r}')
    return int(count)


def say_memory(count: float) -> str:
    """A number of bytes for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def count_rows(columns: int, memory: int, reserved: int = 0) -> int:
    """Rows of a block with this many columns, at least one, of what `memory` leaves beside `reserved` bytes.

    Blocks of more than `BLOCK_BYTES` are no faster, so a large budget is not used up.
    """
    row = BYTES_PER_VALUE * columns
    if memory < reserved + row:
        raise ValueError(
            f"memory is {say_memory(memory)}, and {columns} landmarks need at least {say_memory(reserved + row)}; "
            "take more memory or fewer landmarks"
        )
    return max(1, min((memory - reserved) // row, BLOCK_BYTES // (8 * columns)))


def check_count(name: str, value: Any, least: int) -> int:
    """`value` as a whole number from `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, not {value!r}")
    return int(value)
