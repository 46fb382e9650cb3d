"""The sweep of ReLU networks, values only: what most people run, and so a function of its own.

The same recursion as in `sweep`, written for speed. It carries 2w and 2Q, so that no halves are left in the loop. ReLU
has V̂ ≥ 0, hence w ≤ 1: only inputs can make two sides opposite, never the state. So their distance is summed up on its
own, in `far`, as -Σ(x̂ + x̂')² where they are nearly opposite; that keeps all digits of both ends (21a).

Polynomials come from an array, as operands of multiply-adds; literals would be fetched by instructions of their own.
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
from .lanes import TOGETHER, distances
from .memory import LANES

#: Squared distances beyond which inputs are nearly opposite; 4 is exactly so.
NEARLY = 3.96
#: P, R and Q of A = P/Q and B = R/Q, by precision.
POLYNOMIALS = {"float64": coefficients.ARC64, "float32": coefficients.ARC32}
#: Where the polynomials begin in the array of constants.
FIRST = 6


@cache
def constants(dtype: np.dtype[Any]) -> NDArray[Any]:
    """0, 1, 2, 4, `NEARLY`, `far` of exact opposites; then P, R and Q in powers of 2 - 2v, highest first.

    Roots are taken of 2v: P and R are divided by √2.
    """
    P, R, Q = ([value / 2**k for k, value in enumerate(part)][::-1] for part in POLYNOMIALS[dtype.name])
    root = math.sqrt(2)
    return np.array(
        [0, 1, 2, 4, NEARLY, -np.finfo(dtype).tiny, *(p / root for p in P), *(r / root for r in R), *Q], dtype
    )


def make_relu(mean: bool, deep: bool, orders_p: int, orders_r: int, orders_q: int) -> Callable[..., None]:
    """The sweep for the readout `mean`, or `last`; `deep` for more than one layer."""
    p_first, r_first, q_first = FIRST, FIRST + orders_p, FIRST + orders_p + orders_r
    q_end = q_first + orders_q

    def sweep(
        c, unit, channels, weights, left, right, left_lengths, right_lengths, starts, same, firsts, chunk, W, Q,
        fars, more, value, tangent,
    ):  # fmt: skip
        """As in `rntk.engine.fused.sweep`. unit, channels : rows of γ, and how many follow, by layer."""
        wide_vectors()
        no_overlap()
        zero, one, two, four, nearly, farthest = c[0], c[1], c[2], c[3], c[4], c[5]
        n = right.shape[2]
        steps = left.shape[0] if mean else min(left.shape[0], right.shape[0])
        together = TOGETHER if channels[0] > TOGETHER else 1
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
                    if mean:
                        weight, V, T = L[weights, row], value[row, 0, 0], tangent[row, 0, 0]
                    for layer in range(W.shape[0] if deep else 1):
                        at = unit[layer]
                        gamma, G = L[at, row], R[at]
                        w, q = W[layer, r, offset : offset + n], Q[layer, r, offset : offset + n]
                        far = fars[r % together]
                        if layer > 0:
                            distances(L, R, row, 1, at, channels[layer], fars[r % together :], first, end)
                        elif r % together == 0:
                            distances(L, R, row, min(together, active - r), at, channels[0], fars, first, end)
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
                            z = two - v
                            top, turn, bottom = c[p_first], c[r_first], c[q_first]
                            for j in range(p_first + 1, r_first):
                                top = top * z + c[j]
                            for j in range(r_first + 1, q_first):
                                turn = turn * z + c[j]
                            for j in range(q_first + 1, q_end):
                                bottom = bottom * z + c[j]
                            root = math.sqrt(v) / bottom
                            side = root * turn
                            w1 = (x if near else two) - (root * v) * top
                            q1 = (one - side if near else side) * theta
                            w[k], q[k] = w1, q1
                            if mean and not deep:
                                V[k] += weight * (two - w1)
                                T[k] += weight * q1
                    if mean and deep:
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
        cube, cube, types.Array(real, 2, "C"), vector, block, block,
    )  # fmt: skip
    return compile_function(make_relu(mean, deep, *orders), signature)
