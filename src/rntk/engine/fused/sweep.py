"""The sweep: the pair recursion over a block of lanes, all layers and steps, state in cache.

One compiled function serves every readout, depth and activation. Rows of a block are sequences on the left; lanes
run along memory and are vectorised. Two geometries exist, and only the packing knows them apart:

* `last`: a lane is a sequence on the right, all aligned at their last step; a lane keeps its place from step to
  step (shift 0), and the right side's numbers change with the step.
* `mean` and `sequence`: a lane is a step s of a sequence on the right. Going from t to t + 1, the pair (t, s) feeds
  (t + 1, s + 1): state moves one lane on (shift 1), and the right side's numbers stay. Before each sequence lies one
  spare lane that always holds the state of "nothing before" (w = 1, Q = 0).

Equation numbers are those of docs/theory.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations.compiled import compile_function, inlined
from ...activations.signatures import forward_signature, partials_signature
from .close import complete, plain, quiet, settle
from .lanes import (
    accumulate,
    apply_partials,
    mix,
    mix_in_place,
    mix_own,
    mix_rates,
    oppose_rates,
    spread_variances,
    untie,
)
from .memory import LANES
from .stack import RATES, RowLayout

LAST, MEAN, SEQUENCE = 0, 1, 2
#: Rows of derivatives that an activation gives.
PARTIALS = 9


@inlined
def _start_anew(state, rates, buffer, rows, lane):
    """Put a lane back to "nothing before": w = 1, Q = 0, and no tangents."""
    for layer in range(state.shape[2]):
        for r in range(rows):
            state[0, buffer, layer, r, lane] = 1
            state[1, buffer, layer, r, lane] = 0
            if state.shape[0] == 3:
                state[2, buffer, layer, r, lane] = np.nan
            for p in range(rates.shape[3]):
                rates[0, buffer, layer, p, r, lane] = 0
                rates[1, buffer, layer, p, r, lane] = 0


@inlined
def _emit(state, rates, buffer, rows, first, n, at, value, tangent):
    """Copy V̂ and Q of the last layer, and their tangents, to step `at` of the output."""
    top = state.shape[2] - 1
    for r in range(rows):
        for k in range(first, n):
            value[r, 0, at, k] = 1 - plain(state[0, buffer, top, r, k])
            tangent[r, 0, at, k] = state[1, buffer, top, r, k]
            for p in range(rates.shape[3]):
                value[r, 1 + p, at, k] = -rates[0, buffer, top, p, r, k]
                tangent[r, 1 + p, at, k] = rates[1, buffer, top, p, r, k]


@inlined
def _step(
    forward, partials, parameters, layout, layer, tied, step, L, R, left_lengths, right_lengths, lane_steps,
    state, rates, scratch, gap, a, b, rows, first, n, shift,
):  # fmt: skip
    """One layer at one step: mix what flows in, then pass it through the activation; from buffer a to buffer b."""
    depth, P = layout.depth, layout.n_directions
    upper = layer > 0
    under = layer - 1 if upper else 0
    w_in, q_in = state[0, a, layer], state[1, a, layer]
    w_out, q_out = state[0, b, layer], state[1, b, layer]
    w_below, q_below = state[0, b, under], state[1, b, under]
    row, channels = layout.unit[layer], layout.channels[layer]
    own, own_channels = layout.own[layer], layout.own_channels[layer]
    farthest = state.dtype.type(layout.farthest)
    careful = state.shape[0] == 3
    if a == b:
        mix_in_place(L, R, row, w_out, q_out, rows, first, n, farthest)
    else:
        mix(L, R, row, channels, upper, w_in, q_in, w_below, q_below, w_out, q_out, rows, first, n, shift, farthest)
    if own >= 0:
        mix_own(L, R, own, own_channels, upper, w_in, q_in, w_below, q_below, q_out, rows, first, n, shift)
    if not tied:
        untie(w_out, q_out, 1, step, shift, left_lengths, right_lengths, lane_steps, rows, first, n)
    marks = layout.marks[layer]
    left_marks, right_marks = L[marks : marks + layout.n_marks], R[marks : marks + layout.n_marks]
    if layout.n_marks > 0:
        spread_variances(L, R, marks, gap, rows, first, n)
    for p in range(P):
        dw, dq = rates[0, b, layer, p], rates[1, b, layer, p]
        mix_rates(
            L, R, row, channels, layout.has_bias[layer], upper, layout.rates + RATES * (p * depth + layer),
            own, own_channels, layout.own_shift[p, layer], w_in, q_in, w_below, q_below,
            rates[0, a, layer, p], rates[1, a, layer, p], rates[0, b, under, p], rates[1, b, under, p],
            dw, dq, rows, first, n, shift,
        )  # fmt: skip
        oppose_rates(
            L, R, row, channels, layout.has_bias[layer], upper, layout.rates + RATES * (p * depth + layer),
            w_out, w_in, w_below, rates[0, a, layer, p], rates[0, b, under, p], dw, rows, first, n, shift,
        )  # fmt: skip
        if not tied:
            untie(dw, dq, 0, step, shift, left_lengths, right_lengths, lane_steps, rows, first, n)
    if careful:
        settle(
            L, R, layout, layer, gap, w_out, w_in, w_below, state[2, a, layer], state[2, b, under], state[2, b, layer],
            rates[0, b, layer], rates[0, a, layer], rates[0, b, under],
            rates[2, a, layer], rates[2, b, under], rates[2, b, layer], rates[3, b, layer], rows, first, n, shift,
        )  # fmt: skip
    if P == 0:
        forward(parameters, left_marks, right_marks, gap, w_out, q_out, rows, first, n)
        return
    partials(parameters, left_marks, right_marks, gap, w_out, scratch, rows, first, n)
    if careful:
        quiet(scratch, rates[3, b, layer], rows, first, n)
    apply_partials(
        scratch, L, R, layout.rates + RATES * layer, RATES * depth, layout.n_marks, w_out, q_out,
        rates[0, b, layer], rates[1, b, layer], rows, first, n,
    )  # fmt: skip
    if careful:
        complete(rates[0, b, layer], rates[3, b, layer], rows, first, n)


@inlined
def _sweep(
    forward, partials, parameters, layout, geometry, tied,
    left, right, left_lengths, right_lengths, starts, lane_steps, same, first, state, rates, scratch, gap,
    value, tangent,
) -> None:  # fmt: skip
    """Run the recursion for all pairs of a block and leave V̂ and Q in `value` and `tangent`.

    left : (T, C, rows) and right : (T' or 1, C, n), packed rows of either side, lengths descending.
    starts : spare lanes (geometry with shift 1). lane_steps : s of each lane, -1 in spare lanes.
    state (w, Q and, where lanes are taken care of, λ), rates (their tangents), scratch, gap : working memory, zero on
        entry; the first two double-buffered.
    same : per row, the lane whose initial state is the row's own (σ_h), or -1.
    value, tangent : (rows, 1 + P, steps kept, n); P directions follow the kernel itself. `last` keeps one step,
        `sequence` all of the left side's, `mean` one, the weighted sum over steps.
    """
    depth = layout.depth
    rows, n = left.shape[2], right.shape[2]
    shift = 0 if geometry == LAST else 1
    buffers = state.shape[1]
    state[0] = 1  # w of "nothing before"; Q and all tangents start at zero
    if state.shape[0] == 3:
        state[2] = np.nan  # λ is not carried yet
    for r in range(rows):
        if same[r] >= 0:
            state[0, :, :, r, same[r]] = 0
            if state.shape[0] == 3:
                state[2, :, :, r, same[r]] = 0
    steps = left.shape[0] if shift == 1 else min(left.shape[0], right.shape[0])
    a = 0
    active, lanes, begun = 0, 0, 0
    for d in range(steps):
        # `last` counts steps from the end: d-th of `steps` is `back` before the last one of either side.
        if shift == 0:
            back = steps - 1 - d
            at_left, at_right = left.shape[0] - 1 - back, right.shape[0] - 1 - back
            while active < rows and left_lengths[active] > back:
                active += 1
            while begun < n and right_lengths[begun] > back:
                begun += 1
            # Whole vectors: lanes past `begun` have not started; they are computed all the same and put back below.
            lanes = min(n, (begun + LANES - 1) // LANES * LANES)
        else:
            at_left, at_right = d, 0
            active = rows
            while active > 0 and left_lengths[active - 1] <= d:
                active -= 1
            lanes = n
        if active == 0 or lanes <= first:
            continue
        L, R = left[at_left], right[at_right]
        b = 1 - a if buffers == 2 else a
        for layer in range(depth):
            _step(
                forward, partials, parameters, layout, layer, tied, d, L, R, left_lengths, right_lengths, lane_steps,
                state, rates, scratch, gap, a, b, active, first, lanes, shift,
            )  # fmt: skip
        top = depth - 1
        if geometry == MEAN:
            accumulate(
                L, layout.weights, state[0, b, top], state[1, b, top], rates[0, b, top], rates[1, b, top],
                value, tangent, active, first, lanes,
            )  # fmt: skip
        elif geometry == SEQUENCE:
            _emit(state, rates, b, active, first, lanes, d, value, tangent)
        if shift == 0:
            for lane in range(begun, lanes):
                _start_anew(state, rates, b, active, lane)
        else:
            for lane in starts:
                _start_anew(state, rates, b, active, lane)
        a = b
    if geometry == LAST:
        _emit(state, rates, a, rows, first, n, 0, value, tangent)


def sweep(
    forward, partials, parameters, layout, geometry, tied,
    left, right, left_lengths, right_lengths, starts, lane_steps, same, first, chunk, work, value, tangent,
) -> None:  # fmt: skip
    """`_sweep` for all rows of a tile, `chunk` of them at a time: as many as keep their state in the first cache.

    first : per row, the first lane it needs; never decreasing.
    work : working memory, at least `work_size` numbers.
    """
    n = right.shape[2]
    depth, P = layout.depth, layout.n_directions
    buffers = count_buffers(layout, geometry, tied)
    for a in range(0, left.shape[2], chunk):
        b = min(a + chunk, left.shape[2])
        rows = b - a
        careful = min(layout.raw + 1, 1)
        plane = buffers * depth * rows * n
        size = (2 + careful) * plane
        gaps = rows * min(layout.n_marks, 1)
        end = size + (2 + 2 * careful) * plane * P
        work[:end] = 0
        state = work[:size].reshape((2 + careful, buffers, depth, rows, n))
        rates = work[size:end].reshape((2 + 2 * careful, buffers, depth, P, rows, n))
        scratch = work[end : end + PARTIALS * rows * n * min(P, 1)].reshape((PARTIALS, rows * min(P, 1), n))
        end += PARTIALS * rows * n * min(P, 1)
        gap = work[end : end + gaps * n].reshape((gaps, n))
        _sweep(
            forward, partials, parameters, layout, geometry, tied, left[:, :, a:b], right,
            left_lengths[a:b], right_lengths, starts, lane_steps, same[a:b], first[a],
            state, rates, scratch, gap, value[a:b], tangent[a:b],
        )  # fmt: skip


def _count_buffers(layout, geometry, tied) -> int:
    """Where lanes stay in place and nothing looks back at what they held, one buffer will do."""
    alone = layout.depth == 1 and layout.channels[0] == 1 and layout.own[0] < 0 and layout.n_directions == 0
    alone = alone and layout.raw < 0
    return 1 if geometry == LAST and tied and alone else 2


count_buffers = inlined(_count_buffers)


def work_size(layout: RowLayout, geometry: int, tied: bool, chunk: int, n: int) -> int:
    """Numbers of working memory `sweep` needs."""
    planes = 3 if layout.raw >= 0 else 2
    state = planes * _count_buffers(layout, geometry, tied) * layout.depth * chunk * n
    partials, gap = PARTIALS * (layout.n_directions > 0), layout.n_marks > 0
    tangents = (planes + (layout.raw >= 0)) * (state // planes) * layout.n_directions
    return int(state + tangents + (partials + gap) * chunk * n)


@cache
def compiled_sweep(dtype: np.dtype[Any]) -> Any:
    """`sweep` for `dtype`."""
    real = from_dtype(dtype)
    integers, out = types.Array(types.int64, 1, "C"), types.Array(real, 4, "C")
    kinds = {
        int: types.int64,
        float: types.float64,
        NDArray[np.int64]: integers,
        NDArray[np.float64]: types.Array(types.float64, 3, "C"),
    }
    layout = types.NamedTuple([kinds[kind] for kind in get_type_hints(RowLayout).values()], RowLayout)
    signature = types.void(
        types.FunctionType(forward_signature(dtype)),
        types.FunctionType(partials_signature(dtype)),
        types.Array(real, 1, "C"),
        layout,
        types.int64,
        types.boolean,
        types.Array(real, 3, "C"),
        types.Array(real, 3, "C"),
        *(integers,) * 6,
        types.int64,
        types.Array(real, 1, "C"),
        out,
        out,
    )
    return compile_function(sweep, signature)
