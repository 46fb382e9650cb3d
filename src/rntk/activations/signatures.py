"""The types under which compiled code passes an activation around.

A *lane* is one pair of sequence positions. A compiled step takes one position on the left and n on the right; its
arrays run over the lanes, so that the loop over right positions runs along memory, from lane `first` on. `first` and
`n` are unsigned: an index that can't be negative vectorises. No two arrays overlap.

Distances u = 1 - c and w = 1 - V̂ are *signed*: up to one they are stored as they are, and beyond, where two sides are
closer to being opposite than to being equal, as minus the distance from there, -(1 + c). So both ends keep all digits.
Exact opposites are stored as `FARTHEST`, because minus zero is zero.

forward(parameters, left, right, gap, u, theta, w, q, first, n)
    From u and Θ̂ come w = 1 - V̂ and Q = V̂' Θ̂ (theory.md, section 7). `gap` is the relative difference of the variances,
    (q - q')/√(q q').
partials(parameters, left, right, gap, u, out, first, n)
    Fills out[0:9] with w, V̂', ∂V̂'/∂u, then ∂(w - w₁)/∂log q, ∂(w - w₁)/∂log q', ∂V̂'/∂log q, ∂V̂'/∂log q', and
    ∂w₁/∂log q, ∂w₁/∂log q'. w₁ is w at c = 1, that is what the variances alone make of it. The first two are as small
    as u, the last two as `gap`.

`parameters` are the activation's own, followed by one where close sides need all their digits, else by zero.
`left` is (M,) and `right` (M, n): the marks of either side. The first two marks are q and 1/√q. An activation
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
    """Type of `forward` for `dtype`."""
    real = from_dtype(dtype)
    marks, lanes, table = types.Array(real, 1, "A"), types.Array(real, 1, "C"), types.Array(real, 2, "C")
    return types.void(lanes, marks, table, *(lanes,) * 5, types.uint64, types.uint64)


@cache
def partials_signature(dtype: np.dtype[Any]) -> Any:
    """Type of `partials` for `dtype`."""
    real = from_dtype(dtype)
    marks, lanes, table = types.Array(real, 1, "A"), types.Array(real, 1, "C"), types.Array(real, 2, "C")
    return types.void(lanes, marks, table, lanes, lanes, table, types.uint64, types.uint64)
