"""The types under which compiled code passes an activation around.

A *lane* is one pair of sequence positions. A block has `rows` positions on the left and `n` on the right;
its state arrays are (rows, n), C-contiguous, so that the loop over right positions runs along memory. Lanes before
`first` are left alone; loops run over slices that begin there, because an index that starts at zero vectorises.

forward(parameters, left, right, w, q, rows, first, n)
    On entry w holds u and q holds Θ̂; on return they hold w = 1 - V̂ and Q = V̂' Θ̂ (theory.md, section 7).
partials(parameters, left, right, u, out, rows, first, n)
    Fills out[0:7] with w, V̂', ∂V̂'/∂u, ∂w/∂log q, ∂w/∂log q', ∂V̂'/∂log q, ∂V̂'/∂log q'.

`left` is (M, rows) and `right` (M, n): the marks of either side. An activation without marks (M = 0) doesn't
depend on the variances: the last four rows of `out` are then never read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types


@cache
def forward_signature(dtype: np.dtype[Any]) -> Any:
    """Type of `Lanes.forward` for `dtype`."""
    real = from_dtype(dtype)
    side, block = types.Array(real, 2, "A"), types.Array(real, 2, "C")
    return types.void(types.Array(real, 1, "C"), side, block, block, block, *(types.int64,) * 3)


@cache
def partials_signature(dtype: np.dtype[Any]) -> Any:
    """Type of `Lanes.partials` for `dtype`."""
    real = from_dtype(dtype)
    side, block, blocks = types.Array(real, 2, "A"), types.Array(real, 2, "C"), types.Array(real, 3, "C")
    return types.void(types.Array(real, 1, "C"), side, block, block, blocks, *(types.int64,) * 3)
