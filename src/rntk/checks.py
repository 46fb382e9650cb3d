"""Numbers that callers give: counts, and sizes of memory as people write them."""

from __future__ import annotations

import math
import numbers
import operator
import re
from typing import Any

import numpy as np

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def check_count(name: str, value: Any, least: int = 1) -> int:
    """`value` as an integer of at least `least`, or a ValueError."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if isinstance(value, (bool, np.bool_)) or count < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return count


def parse_bytes(memory: Any) -> int:
    """Bytes meant by a number, or by a text such as "1GB", "500 MB" or "2 GiB".

    Examples
    --------
    >>> parse_bytes("1.5 GB"), parse_bytes("2GiB"), parse_bytes(4096)
    (1500000000, 2147483648, 4096)
    """
    count = math.nan
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if match and (match[2] or not match[3]):
            unit = 1024 ** "kmgt".index(match[2]) * 1024 if match[3] else _UNITS[match[2]]
            count = float(match[1]) * unit
    elif isinstance(memory, numbers.Real) and not isinstance(memory, (bool, np.bool_)):
        count = float(memory)
    if not 1 <= count < 2**63:
        raise ValueError(f'memory must be a number of bytes or a text such as "1GB", not {memory!r}')
    return int(count)


def say_bytes(count: float) -> str:
    """A number of bytes as people say it: 1.6 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
