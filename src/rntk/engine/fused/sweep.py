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

from ...activations.signatures import forward_signature, partials_signature
from ...compiled import compile_function, inlined, wide_vectors
from .memory import LANES
from .stack import Layout

LAST, MEAN, SEQUENCE = 0, 1, 2


@inlined
def _mix(left, right, row, channels, upper, w_in, q_in, w_below, q_below, w_out, q_out, rows, first, n, shift):
    """u into w_out and Θ̂ = 1 - u + γγ'Q (+ ηη'Q_below) into q_out: (21) and (22)."""
    wide_vectors()
    real = w_out.dtype.type
    half, one = real(0.5), real(1)
    count = n - first
    G, F = right[row, first:n], right[row + 1, first:n]
    for r in range(rows):
        gamma, f = left[row, r], left[row + 1, r]
        wi, qi = w_in[r, first - shift : n - shift], q_in[r, first - shift : n - shift]
        wo, qo = w_out[r, first:n], q_out[r, first:n]
        if channels == 1 and not upper:
            for k in range(count):
                g = gamma * G[k]
                dg = gamma - G[k]
                df = f - F[k]
                u = g * wi[k] + half * (dg * dg + df * df)
                wo[k] = u
                qo[k] = (one - u) + g * qi[k]
            continue
        for k in range(count):
            df = f - F[k]
            wo[k] = df * df
        # Four channels at a time: the running sum is loaded and stored once for all of them.
        fours = row + 2 + (channels - 1) // 4 * 4
        for c in range(row + 2, fours, 4):
            a, A, b, B = left[c, r], right[c, first:n], left[c + 1, r], right[c + 1, first:n]
            d, D, e, E = left[c + 2, r], right[c + 2, first:n], left[c + 3, r], right[c + 3, first:n]
            for k in range(count):
                da, db, dd, de = a - A[k], b - B[k], d - D[k], e - E[k]
                wo[k] += (da * da + db * db) + (dd * dd + de * de)
        for c in range(fours, row + 1 + channels):
            e, E = left[c, r], right[c, first:n]
            for k in range(count):
                de = e - E[k]
                wo[k] += de * de
        if upper:
            wb, qb = w_below[r, first:n], q_below[r, first:n]
            for k in range(count):
                g = gamma * G[k]
                h = f * F[k]
                dg = gamma - G[k]
                u = g * wi[k] + h * wb[k] + half * (dg * dg + wo[k])
                wo[k] = u
                qo[k] = (one - u) + g * qi[k] + h * qb[k]
        else:
            for k in range(count):
                g = gamma * G[k]
                dg = gamma - G[k]
                u = g * wi[k] + half * (dg * dg + wo[k])
                wo[k] = u
                qo[k] = (one - u) + g * qi[k]


@inlined
def _mix_own(left, right, row, channels, upper, w_in, q_in, w_below, q_below, q_out, rows, first, n, shift):
    """Θ̂ from its gradient rows where its own term is not 1 - u: (17) in units."""
    wide_vectors()
    one = q_out.dtype.type(1)
    count = n - first
    start = row + 4 if upper else row + 2
    B, W = right[row, first:n], right[row + 1, first:n]
    for r in range(rows):
        b, omega = left[row, r], left[row + 1, r]
        wi, qi = w_in[r, first - shift : n - shift], q_in[r, first - shift : n - shift]
        qo = q_out[r, first:n]
        for k in range(count):
            qo[k] = b * B[k] * qi[k] + omega * W[k] * (one - wi[k])
        if upper:
            d, p = left[row + 2, r], left[row + 3, r]
            D, P = right[row + 2, first:n], right[row + 3, first:n]
            wb, qb = w_below[r, first:n], q_below[r, first:n]
            for k in range(count):
                qo[k] += d * D[k] * qb[k] + p * P[k] * (one - wb[k])
        for c in range(start, start + channels):
            z, Z = left[c, r], right[c, first:n]
            for k in range(count):
                qo[k] += z * Z[k]


@inlined
def _mix_rates(
    left, right, row, channels, has_bias, upper, rate, own, own_channels, own_shift,
    w_in, q_in, w_below, q_below, dw_in, dq_in, dw_below, dq_below, dw_out, dq_out, rows, first, n, shift,
):  # fmt: skip
    """Tangents of `_mix` and `_mix_own` along one direction: du into dw_out, dΘ̂ into dq_out (section 8)."""
    wide_vectors()
    real = dw_out.dtype.type
    one = real(1)
    count = n - first
    inputs = channels - has_bias
    G, tG, tF, tB = (
        right[row, first:n],
        right[rate + 1, first:n],
        right[rate + 2, first:n],
        right[rate + 3, first:n],
    )
    for r in range(rows):
        gamma, tg, tf, tb = left[row, r], left[rate + 1, r], left[rate + 2, r], left[rate + 3, r]
        a, b = first - shift, n - shift
        wi, qi, dwi, dqi = w_in[r, a:b], q_in[r, a:b], dw_in[r, a:b], dq_in[r, a:b]
        du, dq = dw_out[r, first:n], dq_out[r, first:n]
        if channels == 1 and not upper and own < 0:
            # One input channel, nothing else. Two loops that write one array each: with two, LLVM would need more
            # checks for overlapping arrays than it is willing to make before it vectorises.
            f, F = left[row + 1, r], right[row + 1, first:n]
            for k in range(count):
                dg = gamma - G[k]
                df = f - F[k]
                step = dg * (dg * tg + G[k] * (tg - tG[k])) + df * (df * tf + F[k] * (tf - tF[k]))
                du[k] = step + (gamma * G[k]) * ((tg + tG[k]) * wi[k] + dwi[k])
            for k in range(count):
                dq[k] = (gamma * G[k]) * ((tg + tG[k]) * qi[k] + dqi[k]) - du[k]
            continue
        for k in range(count):
            # (γ - γ')(γ t - γ' t') written with differences, so that equal sequences give exactly zero.
            dg = gamma - G[k]
            du[k] = dg * (dg * tg + G[k] * (tg - tG[k]))
        for c in range(row + 1, row + 1 + inputs):
            f, F = left[c, r], right[c, first:n]
            for k in range(count):
                df = f - F[k]
                du[k] += df * (df * tf + F[k] * (tf - tF[k]))
        if has_bias:
            f, F = left[row + channels, r], right[row + channels, first:n]
            for k in range(count):
                df = f - F[k]
                du[k] += df * (df * tb + F[k] * (tb - tB[k]))
        for k in range(count):
            du[k] += (gamma * G[k]) * ((tg + tG[k]) * wi[k] + dwi[k])
        if upper:
            eta, H = left[row + 1, r], right[row + 1, first:n]
            wb, dwb = w_below[r, first:n], dw_below[r, first:n]
            for k in range(count):
                du[k] += (eta * H[k]) * ((tf + tF[k]) * wb[k] + dwb[k])
        if own < 0:
            for k in range(count):
                dq[k] = (gamma * G[k]) * ((tg + tG[k]) * qi[k] + dqi[k]) - du[k]
            if upper:
                eta, H = left[row + 1, r], right[row + 1, first:n]
                qb, dqb = q_below[r, first:n], dq_below[r, first:n]
                for k in range(count):
                    dq[k] += (eta * H[k]) * ((tf + tF[k]) * qb[k] + dqb[k])
            continue
        sw, su, sb = real(own_shift[0]), real(own_shift[1]), real(own_shift[2])
        bb, BB, oo, OO = left[own, r], right[own, first:n], left[own + 1, r], right[own + 1, first:n]
        for k in range(count):
            t = tg + tG[k]
            dq[k] = bb * BB[k] * (t * qi[k] + dqi[k]) + oo * OO[k] * ((t + sw + sw) * (one - wi[k]) - dwi[k])
        start = own + 2
        if upper:
            dd, DD, pp, PP = (
                left[own + 2, r],
                right[own + 2, first:n],
                left[own + 3, r],
                right[own + 3, first:n],
            )
            wb, qb, dwb, dqb = (
                w_below[r, first:n],
                q_below[r, first:n],
                dw_below[r, first:n],
                dq_below[r, first:n],
            )
            for k in range(count):
                t = tf + tF[k]
                dq[k] += dd * DD[k] * (t * qb[k] + dqb[k]) + pp * PP[k] * ((t + su + su) * (one - wb[k]) - dwb[k])
            start = own + 4
        # The last own channel is the bias where there is one; the others are inputs.
        for c in range(start, start + own_channels):
            z, Z = left[c, r], right[c, first:n]
            is_bias = has_bias == 1 and c == start + own_channels - 1
            for k in range(count):
                t = tb + tB[k] + sb + sb if is_bias else tf + tF[k] + su + su
                dq[k] += t * z * Z[k]


@inlined
def _apply_partials(scratch, left, right, rate, stride, n_marks, w, q, dw_all, dq_all, rows, first, n):
    """From (u, Θ̂) and their tangents to (w, Q) and theirs, by the chain rule; `scratch` holds the partials."""
    wide_vectors()
    count = n - first
    for r in range(rows):
        wr, theta, W = w[r, first:n], q[r, first:n], scratch[0, r, first:n]
        D, Du = scratch[1, r, first:n], scratch[2, r, first:n]
        wa, wb = scratch[3, r, first:n], scratch[4, r, first:n]
        Da, Db = scratch[5, r, first:n], scratch[6, r, first:n]
        for p in range(dw_all.shape[0]):
            dw, dq = dw_all[p, r, first:n], dq_all[p, r, first:n]
            t, T = left[rate + stride * p, r], right[rate + stride * p, first:n]
            if n_marks == 0:
                for k in range(count):
                    du = dw[k]
                    dw[k] = D[k] * du
                    dq[k] = D[k] * dq[k] + theta[k] * (Du[k] * du)
            else:
                for k in range(count):
                    du = dw[k]
                    dw[k] = D[k] * du + wa[k] * t + wb[k] * T[k]
                    dq[k] = D[k] * dq[k] + theta[k] * (Du[k] * du + Da[k] * t + Db[k] * T[k])
        for k in range(count):
            wr[k] = W[k]
            theta[k] *= D[k]


@inlined
def _accumulate(left, weight, w_all, q_all, dw_all, dq_all, value, tangent, rows, first, n):
    """Add one step of the left side to the weighted sums of the mean readout."""
    wide_vectors()
    one = value.dtype.type(1)
    count = n - first
    for r in range(rows):
        w, q = w_all[r, first:n], q_all[r, first:n]
        V, Q = value[r, 0, 0, first:n], tangent[r, 0, 0, first:n]
        by_value, by_tangent = left[weight, r], left[weight + 1, r]
        for k in range(count):
            V[k] += by_value * (one - w[k])
            Q[k] += by_tangent * q[k]
        for p in range(dw_all.shape[0]):
            # d(ψ x) = ψ (dx + x d log ψ); the rates of ψ follow the two weights.
            t = left[weight + 2 + p, r]
            dw, dq = dw_all[p, r, first:n], dq_all[p, r, first:n]
            dV, dQ = value[r, 1 + p, 0, first:n], tangent[r, 1 + p, 0, first:n]
            for k in range(count):
                dV[k] += by_value * (t * (one - w[k]) - dw[k])
                dQ[k] += by_tangent * (t * q[k] + dq[k])


@inlined
def _untie(w, q, blank, step, shift, left_lengths, right_lengths, lane_steps, rows, first, n):
    """Steps with different weights share nothing: Σ = Θ = 0, so u = 1 (Theorem 3)."""
    for r in range(rows):
        for k in range(first, n):
            other = lane_steps[k] != step if shift == 1 else right_lengths[k] != left_lengths[r]
            if other:
                w[r, k] = blank
                q[r, k] = 0


@inlined
def _start_anew(state, rates, buffer, rows, lane):
    """Put a lane back to "nothing before": w = 1, Q = 0, and no tangents."""
    for layer in range(state.shape[2]):
        for r in range(rows):
            state[0, buffer, layer, r, lane] = 1
            state[1, buffer, layer, r, lane] = 0
            for p in range(rates.shape[3]):
                rates[0, buffer, layer, p, r, lane] = 0
                rates[1, buffer, layer, p, r, lane] = 0


@inlined
def _sweep(
    forward, partials, parameters, layout, geometry, tied,
    left, right, left_lengths, right_lengths, starts, lane_steps, same, first, state, rates, scratch, value, tangent,
) -> None:  # fmt: skip
    """Run the recursion for all pairs of a block and leave V̂ and Q in `value` and `tangent`.

    left : (T, C, rows) and right : (T' or 1, C, n), packed rows of either side, lengths descending.
    starts : spare lanes (geometry with shift 1). lane_steps : s of each lane, -1 in spare lanes.
    state (w and Q), rates (their tangents), scratch : working memory, double-buffered; zero on entry.
    same : per row, the lane whose initial state is the row's own (σ_h), or -1.
    value, tangent : (rows, 1 + P, steps kept, n); P directions follow the kernel itself. `last` keeps one step,
        `sequence` all of the left side's, `mean` one, the weighted sum over steps.
    """
    depth, P = layout.depth, layout.n_directions
    rows, n = left.shape[2], right.shape[2]
    real = right.dtype.type
    one = real(1)
    shift = 0 if geometry == LAST else 1
    state[0] = one  # w of "nothing before"; Q and all tangents start at zero
    for r in range(rows):
        if same[r] >= 0:
            state[0, :, :, r, same[r]] = 0
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
        b = 1 - a
        for layer in range(depth):
            upper = layer > 0
            under = layer - 1 if upper else 0
            w_in, q_in, w_out, q_out = (
                state[0, a, layer],
                state[1, a, layer],
                state[0, b, layer],
                state[1, b, layer],
            )
            w_below, q_below = state[0, b, under], state[1, b, under]
            row, channels = layout.unit[layer], layout.channels[layer]
            own = layout.own[layer]
            _mix(
                L,
                R,
                row,
                channels,
                upper,
                w_in,
                q_in,
                w_below,
                q_below,
                w_out,
                q_out,
                active,
                first,
                lanes,
                shift,
            )
            if own >= 0:
                own_channels = layout.own_channels[layer]
                _mix_own(
                    L,
                    R,
                    own,
                    own_channels,
                    upper,
                    w_in,
                    q_in,
                    w_below,
                    q_below,
                    q_out,
                    active,
                    first,
                    lanes,
                    shift,
                )
            if not tied:
                _untie(w_out, q_out, one, d, shift, left_lengths, right_lengths, lane_steps, active, first, lanes)
            marks = layout.marks[layer]
            left_marks, right_marks = L[marks : marks + layout.n_marks], R[marks : marks + layout.n_marks]
            if P == 0:
                forward(parameters, left_marks, right_marks, w_out, q_out, active, first, lanes)
                continue
            for p in range(P):
                rate = layout.rates + 4 * (p * depth + layer)
                _mix_rates(
                    L, R, row, channels, layout.has_bias[layer], upper, rate, own, layout.own_channels[layer],
                    layout.own_shift[p, layer], w_in, q_in, w_below, q_below,
                    rates[0, a, layer, p], rates[1, a, layer, p], rates[0, b, under, p], rates[1, b, under, p],
                    rates[0, b, layer, p], rates[1, b, layer, p], active, first, lanes, shift,
                )  # fmt: skip
                if not tied:
                    dw, dq = rates[0, b, layer, p], rates[1, b, layer, p]
                    _untie(
                        dw,
                        dq,
                        real(0),
                        d,
                        shift,
                        left_lengths,
                        right_lengths,
                        lane_steps,
                        active,
                        first,
                        lanes,
                    )
            partials(parameters, left_marks, right_marks, w_out, scratch, active, first, lanes)
            _apply_partials(
                scratch, L, R, layout.rates + 4 * layer, 4 * depth, layout.n_marks, w_out, q_out,
                rates[0, b, layer], rates[1, b, layer], active, first, lanes,
            )  # fmt: skip
        top = depth - 1
        if geometry == MEAN:
            _accumulate(
                L, layout.weights, state[0, b, top], state[1, b, top], rates[0, b, top], rates[1, b, top],
                value, tangent, active, first, lanes,
            )  # fmt: skip
        elif geometry == SEQUENCE:
            for r in range(active):
                for k in range(first, lanes):
                    value[r, 0, d, k] = one - state[0, b, top, r, k]
                    tangent[r, 0, d, k] = state[1, b, top, r, k]
                    for p in range(P):
                        value[r, 1 + p, d, k] = -rates[0, b, top, p, r, k]
                        tangent[r, 1 + p, d, k] = rates[1, b, top, p, r, k]
        if shift == 0:
            for lane in range(begun, lanes):
                _start_anew(state, rates, b, active, lane)
        else:
            for lane in starts:
                _start_anew(state, rates, b, active, lane)
        a = b
    if geometry == LAST:
        top = depth - 1
        for r in range(rows):
            for k in range(first, n):
                value[r, 0, 0, k] = one - state[0, a, top, r, k]
                tangent[r, 0, 0, k] = state[1, a, top, r, k]
                for p in range(P):
                    value[r, 1 + p, 0, k] = -rates[0, a, top, p, r, k]
                    tangent[r, 1 + p, 0, k] = rates[1, a, top, p, r, k]


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
    for a in range(0, left.shape[2], chunk):
        b = min(a + chunk, left.shape[2])
        rows = b - a
        size = 4 * depth * rows * n
        work[: size * (1 + P)] = 0
        state = work[:size].reshape((2, 2, depth, rows, n))
        rates = work[size : size * (1 + P)].reshape((2, 2, depth, P, rows, n))
        scratch = work[size * (1 + P) : size * (1 + P) + 7 * rows * n * min(P, 1)].reshape((7, rows * min(P, 1), n))
        _sweep(
            forward, partials, parameters, layout, geometry, tied, left[:, :, a:b], right,
            left_lengths[a:b], right_lengths, starts, lane_steps, same[a:b], first[a],
            state, rates, scratch, value[a:b], tangent[a:b],
        )  # fmt: skip


def work_size(layout: Layout, chunk: int, n: int) -> int:
    """Numbers of working memory `sweep` needs."""
    return 4 * layout.depth * chunk * n * (1 + layout.n_directions) + 7 * chunk * n * (layout.n_directions > 0)


@cache
def compiled_sweep(dtype: np.dtype[Any]) -> Any:
    """`sweep` for `dtype`."""
    real = from_dtype(dtype)
    integers, out = types.Array(types.int64, 1, "C"), types.Array(real, 4, "C")
    kinds = {
        int: types.int64,
        NDArray[np.int64]: integers,
        NDArray[np.float64]: types.Array(types.float64, 3, "C"),
    }
    layout = types.NamedTuple([kinds[kind] for kind in get_type_hints(Layout).values()], Layout)
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
