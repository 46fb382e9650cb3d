"""The sweep of ReLU networks, values only: what most people run, and so a function of its own.

The same recursion as in `sweep`, written for speed. It carries 2w and 2Q, so that no halves are left in the loop. ReLU
has V̂ ≥ 0, hence w ≤ 1: only inputs can make two sides opposite, never the state. So their distance is summed up on its
own, in `far`, as -Σ(x̂ + x̂')² where they are nearly opposite; that keeps all digits of both ends (21a).

Polynomials come from an array, as operands of multiply-adds, in even and odd halves, which don't wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations import arc_coefficients as coefficients
from ...activations.compiled import compile_function, no_overlap, wide_vectors
from .lanes import distances
from .memory import LANES

#: Squared distances beyond which inputs are nearly opposite; 4 is exactly so.
NEARLY = 3.96
#: A and B, by precision.
POLYNOMIALS = {
    "float64": (coefficients.A64, coefficients.B64),
    "float32": (coefficients.A32, coefficients.B32),
}
#: Where the polynomials begin in the array of constants.
A_FIRST = 6


@cache
def constants(dtype: np.dtype[Any]) -> NDArray[Any]:
    """0, 1, 2, 4, `NEARLY`, `far` of exact opposites; A and B (25) as polynomials in 2v, to be multiplied by √(2v)."""
    scaled = (value / (2**k * math.sqrt(2)) for each in POLYNOMIALS[dtype.name] for k, value in enumerate(each))
    return np.array([0, 1, 2, 4, NEARLY, -np.finfo(dtype).tiny, *scaled], dtype)


def make_relu(mean: bool, deep: bool, orders_a: int, orders_b: int) -> Callable[..., None]:
    """The sweep for the readout `mean`, or `last`; `deep` for more than one layer."""
    a, b = A_FIRST, A_FIRST + orders_a
    a_top, b_top = b - 1, b + orders_b - 1
    a_odd, a_even = (a_top, a_top - 1) if orders_a % 2 == 0 else (a_top - 1, a_top)
    b_odd, b_even = (b_top, b_top - 1) if orders_b % 2 == 0 else (b_top - 1, b_top)

    def sweep(
        c, unit, channels, weights, left, right, left_lengths, right_lengths, starts, same, firsts, chunk, W, Q,
        far, more, value, tangent,
    ):  # fmt: skip
        """As in `rntk.engine.fused.sweep`. unit, channels : rows of γ, and how many follow, by layer."""
        wide_vectors()
        no_overlap()
        zero, one, two, four, nearly, farthest = c[0], c[1], c[2], c[3], c[4], c[5]
        n = right.shape[2]
        steps = left.shape[0] if mean else min(left.shape[0], right.shape[0])
        for begin in range(0, left.shape[2], chunk):
            rows, first = min(chunk, left.shape[2] - begin), np.uint64(firsts[begin])
            W[:] = two
            Q[:] = zero
            for r in range(rows):
                if same[begin + r] >= 0:
                    W[:, r, same[begin + r] + (steps if mean else 0)] = zero
            active, lanes, begun = 0, n, 0
            for t in range(steps):
                if mean:
                    at_left, at_right, offset = t, 0, steps - 1 - t
                    active = rows
                    while active > 0 and left_lengths[begin + active - 1] <= t:
                        active -= 1
                else:
                    back, offset = steps - 1 - t, 0
                    at_left, at_right = left.shape[0] - 1 - back, right.shape[0] - 1 - back
                    while active < rows and left_lengths[begin + active] > back:
                        active += 1
                    while begun < n and right_lengths[begun] > back:
                        begun += 1
                    lanes = min(n, (begun + LANES - 1) // LANES * LANES)
                end = np.uint64(lanes)
                if end <= first:
                    continue
                L, R = left[at_left], right[at_right]
                for r in range(active):
                    row = begin + r
                    for layer in range(W.shape[0] if deep else 1):
                        at = unit[layer]
                        gamma, G = L[at, row], R[at]
                        w, q = W[layer, r, offset : offset + n], Q[layer, r, offset : offset + n]
                        distances(L, R, row, at, channels[layer], far, first, end)
                        if layer == 0 and gamma * gamma <= four - nearly:
                            for k in range(first, end):
                                if far[k] > nearly:
                                    rest = zero
                                    for j in range(at + 1, at + 1 + channels[0]):
                                        rest += (L[j, row] + R[j, k]) ** 2
                                    far[k] = min(-rest, farthest)
                        if deep:  # what comes from below, with the distances and by itself
                            eta, H = (L[at + 1, row] if layer > 0 else zero), R[at + 1]
                            w_below, q_below = W[max(layer - 1, 0), r, offset:], Q[max(layer - 1, 0), r, offset:]
                            for k in range(first, end):
                                far[k] += eta * H[k] * w_below[k]
                                more[k] = eta * H[k] * q_below[k]
                        for k in range(first, end):
                            d, g = gamma - G[k], gamma * G[k]
                            m = far[k]
                            opposite = m < zero
                            before = four - w[k] if opposite else w[k]
                            x = g * before + (d * d + abs(m))  # 2u, or 4 - 2u
                            theta = (x - two if opposite else two - x) + g * q[k]
                            if deep:
                                theta += more[k]
                            near = (x <= two) & (not opposite)
                            v = min(x, four - x)
                            s, v2 = math.sqrt(v), v * v
                            odd, even = c[a_odd], c[a_even]
                            for j in range(a_odd - 2, a, -2):
                                odd = odd * v2 + c[j]
                            for j in range(a_even - 2, a - 1, -2):
                                even = even * v2 + c[j]
                            w[k] = (x if near else two) - (s * v) * (odd * v + even)
                            odd, even = c[b_odd], c[b_even]
                            for j in range(b_odd - 2, b, -2):
                                odd = odd * v2 + c[j]
                            for j in range(b_even - 2, b - 1, -2):
                                even = even * v2 + c[j]
                            side = s * (odd * v + even)
                            q[k] = (one - side if near else side) * theta
                    if mean:
                        weight, V, T = L[weights, row], value[row, 0, 0], tangent[row, 0, 0]
                        for k in range(first, end):
                            V[k] += weight * (two - w[k])
                            T[k] += weight * q[k]
                for i in range(starts.size if mean else lanes - begun):
                    slot = offset + (starts[i] if mean else begun + i)
                    for layer in range(W.shape[0]):
                        for r in range(active):
                            W[layer, r, slot] = two
                            Q[layer, r, slot] = zero
            half = one / two
            for r in range(rows):
                V, T = value[begin + r, 0, 0], tangent[begin + r, 0, 0]
                for k in range(first, np.uint64(n)):
                    V[k] = half * (V[k] if mean else two - W[W.shape[0] - 1, r, k])
                    T[k] = half * (T[k] if mean else Q[W.shape[0] - 1, r, k])

    return sweep


@cache
def compiled_relu(dtype: np.dtype[Any], mean: bool, deep: bool) -> Any:
    """The sweep for `dtype`; the rest as in `make_relu`."""
    real, orders = from_dtype(dtype), map(len, POLYNOMIALS[dtype.name])
    integers, vector = types.Array(types.int64, 1, "C"), types.Array(real, 1, "C")
    cube, block = types.Array(real, 3, "C"), types.Array(real, 4, "C")
    signature = types.void(
        vector, integers, integers, types.int64, cube, cube, *(integers,) * 5, types.int64,
        cube, cube, vector, vector, block, block,
    )  # fmt: skip
    return compile_function(make_relu(mean, deep, *orders), signature)
