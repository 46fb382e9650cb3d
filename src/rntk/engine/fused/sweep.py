"""The sweep: the pair recursion over a block of lanes, all layers and steps, state in cache.

Rows of a block are sequences on the left; lanes run along memory and are vectorised. Two geometries exist:

* `last`: a lane is a sequence on the right, all aligned at their last step; the right side's numbers change with the
  step.
* `mean` and `steps`: a lane is a step s of a sequence on the right, and the right side's numbers stay. The pair (t, s)
  feeds (t + 1, s + 1): state is kept by diagonal, so that it stays in place while the lanes that read it move on by
  one. Before each sequence lies one spare lane that is put back to "nothing before" (w = 1, Q = 0) after every step.

`make_sweep` writes one function per readout, for values or gradients, with or without what few networks need; Numba
compiles what is asked for. ReLU has a faster one of its own for values (`relu`). Equation numbers are those of
docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations.compiled import compile_function, no_overlap, wide_vectors
from ...activations.signatures import forward_signature, partials_signature
from .close import plain, settle
from .lanes import (
    TOGETHER,
    accumulate,
    accumulate_rates,
    distances,
    follow,
    mix,
    mix_own,
    mix_rates,
    mix_upper,
    move,
    oppose,
    oppose_rates,
    spread_variances,
    untie,
)
from .memory import LANES
from .stack import RATES, RowLayout

LAST, MEAN, STEPS = 0, 1, 2
#: Derivatives that an activation gives.
PARTIALS = 9


def make_sweep(readout: int, gradients: bool, careful: bool, simple: bool) -> Callable[..., None]:
    """A sweep for one readout; `careful` of close lanes; `simple` for one layer, tied, whose Θ̂ begins with 1 - u."""
    by_step = readout != LAST

    def sweep(
        step, parameters, layout, tied, left, right, left_lengths, right_lengths, starts, lane_steps,
        same, firsts, chunk, W, Q, norms, dW, dQ, dnorms,
        fars, u, theta, gap, other, out, du, dtheta, dw_norms, value, tangent,
    ):  # fmt: skip
        """All pairs of a block: V̂ and Q into `value` and `tangent`, (rows, 1 + P, steps kept, n).

        step : the activation's, `forward` or `partials`.
        left : (T, C, rows) and right : (T' or 1, C, n), packed rows of either side, lengths descending.
        starts : spare lanes. lane_steps : s of each lane, -1 in spare ones.
        same : per row, the lane whose initial state is the row's own (σ_h), or -1. firsts : the first lane it needs.
        W, Q, norms : state (w, Q, λ of close lanes), (L, chunk, slots), of `chunk` rows at a time: as many as stay in
            the first cache. dW, dQ, dnorms : their tangents, (L, P, chunk, slots).
        fars : squared distances, working memory of `TOGETHER` rows. u, theta, gap, other : of one row: u, Θ̂, the gap of
            variances, lanes that share no weights. out, du, dtheta, dw_norms : the activation's partials, tangents of
            u, Θ̂ and w₁.
        """
        wide_vectors()
        no_overlap()
        depth, P = layout.depth, layout.n_directions
        n = right.shape[2]
        farthest = W.dtype.type(layout.farthest)
        steps = left.shape[0] if by_step else min(left.shape[0], right.shape[0])
        together = TOGETHER if layout.channels[0] > TOGETHER else 1
        for begin in range(0, left.shape[2], chunk):
            rows, first = min(chunk, left.shape[2] - begin), np.uint64(firsts[begin])
            W[:] = 1
            Q[:] = 0
            if careful:
                norms[:] = np.nan
            if gradients:
                dW[:] = 0
                dQ[:] = 0
            for r in range(rows):
                if same[begin + r] >= 0:
                    W[:, r, same[begin + r] + (steps if by_step else 0)] = 0
                    if careful:
                        norms[:, r, same[begin + r] + (steps if by_step else 0)] = 0
            active, lanes, begun = 0, n, 0
            for t in range(steps):
                if by_step:
                    at_left, at_right, offset = t, 0, steps - 1 - t
                    active = rows
                    while active > 0 and left_lengths[begin + active - 1] <= t:
                        active -= 1
                else:  # steps are counted from the end: this one is `back` before the last one of either side
                    back, offset = steps - 1 - t, 0
                    at_left, at_right = left.shape[0] - 1 - back, right.shape[0] - 1 - back
                    while active < rows and left_lengths[begin + active] > back:
                        active += 1
                    while begun < n and right_lengths[begun] > back:
                        begun += 1
                    # Whole vectors: lanes past `begun` have not begun; they are computed all the same and put back.
                    lanes = min(n, (begun + LANES - 1) // LANES * LANES)
                end = np.uint64(lanes)
                if end <= first:
                    continue
                L, R = left[at_left], right[at_right]
                for r in range(active):
                    a = begin + r
                    if not simple and not tied:
                        for k in range(n):
                            other[k] = lane_steps[k] != t if by_step else right_lengths[k] != left_lengths[a]
                    for layer in range(1 if simple else depth):
                        row, channels = layout.unit[layer], layout.channels[layer]
                        marks = layout.marks[layer]
                        if simple:  # constants, by which most of what follows falls away
                            upper, under, own = False, 0, -1
                        else:
                            upper, under, own = layer > 0, max(layer - 1, 0), layout.own[layer]
                        w, q = W[layer, r, offset : offset + n], Q[layer, r, offset : offset + n]
                        w_below, q_below = W[under, r, offset : offset + n], Q[under, r, offset : offset + n]
                        own_channels = layout.own_channels[layer]
                        far = fars[r % together]
                        if upper:
                            distances(L, R, a, 1, row, channels, fars[r % together :], first, end)
                        elif r % together == 0:
                            distances(L, R, a, min(together, active - r), row, channels, fars, first, end)
                        if simple or not upper:
                            mix(L, R, a, row, far, w, q, u, theta, farthest, first, end)
                        else:
                            mix_upper(L, R, a, row, far, w, q, w_below, q_below, u, theta, farthest, first, end)
                        opposed = oppose(L, R, a, row, channels, upper, w, w_below, u, farthest, first, end)
                        if not simple:
                            if own >= 0:
                                mix_own(
                                    L, R, a, own, own_channels, upper, w, q, w_below, q_below, theta, first, end
                                )  # fmt: skip
                            if not tied:
                                untie(u, theta, 1, other, first, end)
                        if layout.n_marks > 0:
                            spread_variances(L, R, a, marks, gap, first, end)
                        quick = simple and gradients and not careful and layout.n_marks == 0 and opposed == 0
                        if gradients and not quick:
                            for p in range(P):
                                rate = layout.rates + RATES * (p * depth + layer)
                                dw, dq = dW[layer, p, r, offset : offset + n], dQ[layer, p, r, offset : offset + n]
                                dw_below = dW[under, p, r, offset : offset + n]
                                dq_below = dQ[under, p, r, offset : offset + n]
                                mix_rates(
                                    L, R, a, row, channels, layout.has_bias[layer], upper, rate,
                                    own, own_channels, layout.own_shift[p, layer],
                                    w, q, w_below, q_below, dw, dq, dw_below, dq_below, du[p], dtheta[p], first, end,
                                )  # fmt: skip
                                if opposed > 0:
                                    oppose_rates(
                                        L, R, a, row, channels, layout.has_bias[layer], upper, rate, u, w, w_below,
                                        dw, dw_below, du[p], first, end,
                                    )  # fmt: skip
                                if not simple and not tied:
                                    untie(du[p], dtheta[p], 0, other, first, end)
                        if careful:
                            settle(
                                L, R, a, layout, layer, gap, u, w, w_below, norms[layer, r, offset : offset + n],
                                norms[under, r, offset : offset + n], du, dW[layer, :, r], dW[under, :, r],
                                dnorms[layer, :, r], dnorms[under, :, r], dw_norms, offset, first, end,
                            )  # fmt: skip
                        left_marks = L[marks : marks + layout.n_marks, a]
                        right_marks = R[marks : marks + layout.n_marks]
                        if gradients:
                            step(parameters, left_marks, right_marks, gap, u, out, first, end)
                            for p in range(P):
                                rate = layout.rates + RATES * (p * depth + layer)
                                dw, dq = dW[layer, p, r, offset : offset + n], dQ[layer, p, r, offset : offset + n]
                                if careful:  # what `settle` knows better
                                    for k in range(first, end):
                                        if not np.isnan(dw_norms[p, k]):
                                            out[7, k] = out[8, k] = 0
                                if simple and not careful and quick:
                                    move(
                                        L, R, a, row, channels, layout.has_bias[layer], rate, w, q, out, theta, du[p],
                                        dw, dq, first, end,
                                    )  # fmt: skip
                                else:
                                    follow(
                                        out, L[rate, a], R[rate], layout.n_marks, du[p], dtheta[p], theta,
                                        dw, dq, first, end,
                                    )  # fmt: skip
                                if careful:
                                    for k in range(first, end):
                                        if not np.isnan(dw_norms[p, k]):
                                            dw[k] += dw_norms[p, k]
                            for k in range(first, end):
                                w[k] = out[0, k]
                                q[k] = out[1, k] * theta[k]
                        else:
                            step(parameters, left_marks, right_marks, gap, u, theta, w, q, first, end)
                    top = 0 if simple else depth - 1
                    if by_step:
                        w, q = W[top, r, offset : offset + n], Q[top, r, offset : offset + n]
                        at = layout.weights
                        if readout == MEAN:
                            accumulate(L[at, a], L[at + 1, a], w, q, value[a, 0, 0], tangent[a, 0, 0], first, end)
                        else:
                            for k in range(first, end):
                                value[a, 0, t, k] = 1 - plain(w[k])
                                tangent[a, 0, t, k] = q[k]
                        if gradients:
                            for p in range(P):
                                dw, dq = dW[top, p, r, offset : offset + n], dQ[top, p, r, offset : offset + n]
                                if readout == MEAN:
                                    accumulate_rates(
                                        L[at, a], L[at + 1, a], L[at + 2 + p, a], w, q, dw, dq,
                                        value[a, 1 + p, 0], tangent[a, 1 + p, 0], first, end,
                                    )  # fmt: skip
                                else:
                                    for k in range(first, end):
                                        value[a, 1 + p, t, k] = -dw[k]
                                        tangent[a, 1 + p, t, k] = dq[k]
                # Lanes that have not begun, and spare ones: nothing before.
                for i in range(starts.size if by_step else lanes - begun):
                    slot = offset + (starts[i] if by_step else begun + i)
                    for layer in range(depth):
                        for r in range(active):
                            W[layer, r, slot] = 1
                            Q[layer, r, slot] = 0
                            if careful:
                                norms[layer, r, slot] = np.nan
                            if gradients:
                                for p in range(P):
                                    dW[layer, p, r, slot] = dQ[layer, p, r, slot] = 0
            if readout == LAST:
                for r in range(rows):
                    a = begin + r
                    for k in range(first, np.uint64(n)):
                        value[a, 0, 0, k] = 1 - plain(W[depth - 1, r, k])
                        tangent[a, 0, 0, k] = Q[depth - 1, r, k]
                        if gradients:
                            for p in range(P):
                                value[a, 1 + p, 0, k] = -dW[depth - 1, p, r, k]
                                tangent[a, 1 + p, 0, k] = dQ[depth - 1, p, r, k]

    return sweep


def slots(readout: int, lanes: int, steps: int) -> int:
    """Numbers per row of state: one per lane, or per diagonal of the table of steps."""
    return lanes if readout == LAST else lanes + steps


@cache
def compiled_sweep(dtype: np.dtype[Any], readout: int, gradients: bool, careful: bool, simple: bool) -> Any:
    """The sweep for `dtype`; the rest as in `make_sweep`."""
    real = from_dtype(dtype)
    integers, vector, table = types.Array(types.int64, 1, "C"), types.Array(real, 1, "C"), types.Array(real, 2, "C")
    cube, block = types.Array(real, 3, "C"), types.Array(real, 4, "C")
    kinds = {
        int: types.int64,
        float: types.float64,
        NDArray[np.int64]: integers,
        NDArray[np.float64]: types.Array(types.float64, 3, "C"),
    }
    layout = types.NamedTuple([kinds[kind] for kind in get_type_hints(RowLayout).values()], RowLayout)
    signature = types.void(
        types.FunctionType(partials_signature(dtype) if gradients else forward_signature(dtype)),
        vector,
        layout,
        types.boolean,
        cube,
        cube,
        *(integers,) * 6,
        types.int64,
        *(cube,) * 3,
        *(block,) * 3,
        table,
        *(vector,) * 3,
        types.Array(types.boolean, 1, "C"),
        *(table,) * 4,
        block,
        block,
    )
    return compile_function(make_sweep(readout, gradients, careful, simple), signature)
