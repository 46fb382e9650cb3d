"""The types under which compiled code passes an activation around.

A *lane* is one pair of sequence positions. A block has `rows` positions on the left and `n` on the right;
its state arrays are (rows, n), C-contiguous, so that the loop over right positions runs along memory. Lanes before
`first` are left alone; loops run over slices that begin there, because an index that starts at zero vectorises.

Distances u = 1 - c and w = 1 - V̂ are *signed*: up to one they are stored as they are, and beyond, where two sides are
closer to being opposite than to being equal, as minus the distance from there, -(1 + c). So both ends keep all digits.
Exact opposites are stored as `FARTHEST`, because minus zero is zero.

forward(parameters, left, right, gap, w, q, rows, first, n)
    On entry w holds u and q holds Θ̂; on return they hold w = 1 - V̂ and Q = V̂' Θ̂ (theory.md, section 7). `gap` is the
    relative difference of the variances, (q - q')/√(q q').
partials(parameters, left, right, gap, u, out, rows, first, n)
    Fills out[0:9] with w, V̂', ∂V̂'/∂u, then ∂(w - w₁)/∂log q, ∂(w - w₁)/∂log q', ∂V̂'/∂log q, ∂V̂'/∂log q', and
    ∂w₁/∂log q, ∂w₁/∂log q'. w₁ is w at c = 1, that is what the variances alone make of it. The first two are as small
    as u, the last two as `gap`.

`parameters` are the activation's own, followed by one where close sides need all their digits, else by zero.
`left` is (M, rows) and `right` (M, n): the marks of either side. The first two marks are q and 1/√q. An activation
without marks (M = 0) doesn't depend on the variances: `gap` and the last six rows of `out` are then never read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types

#: The signed distance of exact opposites, by precision: the negative number next to zero.
FARTHEST = float(np.nextafter(0.0, -1.0))
FARTHEST32 = float(np.nextafter(np.float32(0), np.float32(-1)))


@cache
def forward_signature(dtype: np.dtype[Any]) -> Any:
    """Type of `Lanes.forward` for `dtype`."""
    real = from_dtype(dtype)
    side, block = types.Array(real, 2, "A"), types.Array(real, 2, "C")
    return types.void(types.Array(real, 1, "C"), side, *(block,) * 4, *(types.int64,) * 3)


@cache
def partials_signature(dtype: np.dtype[Any]) -> Any:
    """Type of `Lanes.partials` for `dtype`."""
    real = from_dtype(dtype)
    side, block, blocks = types.Array(real, 2, "A"), types.Array(real, 2, "C"), types.Array(real, 3, "C")
    return types.void(types.Array(real, 1, "C"), side, *(block,) * 3, blocks, *(types.int64,) * 3)
