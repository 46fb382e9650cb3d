"""The reverse pass, compiled: blocks of lanes through the recursion and back (theory.md, sections 7 and 8).

A *lane* is one diagonal of the (t, t') table of a pair, because (10) to (12) couple (t, t') to (t-1, t'-1) and to
nothing else. For the readout "last" a pair is one lane; for "mean" it is all its diagonals, whose gradients add up.
Steps are counted by *lag*, backwards from the last step of x, so that lanes of different lengths end together. A lane
takes part from lag `BEGIN` - 1 down to lag `SKIP`; before, it holds the state of "nothing before".

Forwards, every (lag, layer) leaves behind what the way back needs: the activation's partials, Θ̂, u, the unit parts of x
and how far those of y are from them, or from their negatives where the two are nearer to being opposite. Backwards, a
lane carries per layer the adjoints of w, of Q, and of log ψ² of x; from the last one the variances of x get their share
of the derivative in the same loop. What u does to a part is proportional to these differences, so nothing cancels where
two sequences are close; there, the differences themselves come from `rntk.engine.fused.close`.

Loops run over whole vectors of lanes. Lanes that pad a block, or take no part at a lag, compute on numbers of a step
that exists; what they make of it is overwritten by a state with slopes of zero, through which no adjoint passes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numba import types
from numpy.typing import NDArray

from ...activations.compiled import compile_function, inlined, no_overlap, wide_vectors
from ...activations.signatures import FARTHEST, partials_signature
from .close import (
    CLOSER,
    GROWTH,
    SLOPE,
    SPREAD,
    apart,
    carry_on,
    compare,
    mirrored,
    norm_change,
    plain,
    turned,
)

#: Rows of the table that describes lanes. Steps are rows of the batch, OUT the gradient's row for lag 0, STRIDE ±1 the
#: way from there to the next lag. SAME: one sequence with itself. SHARED: steps share weights, as untied ones may not.
X_LAST, X_STEPS, Y_LAST, BEGIN, SKIP, SAME, SHARED, OUT, STRIDE = range(9)
LANE_ROWS = 9

#: Squared differences of unit vectors, relative to those of their norms, that are rounding: what coincides moves apart
#: to second order only, and V̂' has a cusp there.
CUSP = 1e-28
#: Distances below which differences are computed from changes.
CLOSE = 1e-7
#: Rows of an activation's partials, and lanes of a whole vector; blocks have a multiple of them.
ROOM, VECTOR = 9, 8
#: Lags whose gradients are written together: a cache line of each sequence.
TOGETHER = 8


#: Rows of a layer after the activation's partials: Θ̂, u (signed), ρ and how far that of y is from it, 1/√q, λ; then the
#: inputs of x over √q (or η/σ_u) and how far those of y are.
THETA, DISTANCE, RHO, RHO_APART, OVER, NORM, SOURCE = range(7)


class Rows(NamedTuple):
    """Where the numbers of a layer begin among the rows kept per lag; arrays have one entry per layer.

    first : the activation's partials, `n_partials` rows, then those named above. What is divided by √q is kept without
        its deviation, as in `rntk.engine.fused.units.Units`.
    bias : how far 1/√q of y is from that of x, where the layer has biases, or -1.
    growth : d log ψ²/d log q of x; -1 where it is one.
    n_rows : in all.
    """

    first: NDArray[np.int64]
    bias: NDArray[np.int64]
    growth: NDArray[np.int64]
    n_partials: int
    n_rows: int


class Parts(NamedTuple):
    """Everything about each sequence alone: (L, S) tables; `inputs` over √q and `raw` as they came, (m, S);

    `readout` (S,); `marks` (L, S, M); `close` (L, S, 6), empty for homogeneous activations.
    """

    recurrent: NDArray[np.float64]
    below: NDArray[np.float64]
    bias: NDArray[np.float64]
    growth: NDArray[np.float64]
    inputs: NDArray[np.float64]
    raw: NDArray[np.float64]
    readout: NDArray[np.float64]
    marks: NDArray[np.float64]
    close: NDArray[np.float64]


class Factors(NamedTuple):
    """The network in numbers. factors : (L, 6), forward factors of W, U, b, then their gradient factors (17)."""

    factors: NDArray[np.float64]
    own: float  # what the readout adds to Θ per unit of V
    variance: float  # σ_v²
    every_step: bool  # the readout reads every step, not the last one only
    tied: bool


# -- from sequences to lanes ------------------------------------------------------------------------------------------


@inlined
def _locate(lanes: Any, lag: int, at_x: Any, at_y: Any) -> None:
    """Rows of the batch that the lanes see at `lag`; where there is none, the nearest one they do see."""
    wide_vectors()
    last_x, steps_x, last_y = lanes[X_LAST], lanes[X_STEPS], lanes[Y_LAST]
    begin, skip = lanes[BEGIN], lanes[SKIP]
    for k in range(at_x.size):
        at_x[k] = last_x[k] - min(lag, steps_x[k] - 1)
    for k in range(at_y.size):
        at_y[k] = last_y[k] - max(min(lag, begin[k] - 1), skip[k])


@inlined
def _gather(source: Any, at: Any, out: Any) -> None:
    wide_vectors()
    no_overlap()
    for k in range(out.size):
        out[k] = source[np.uint64(at[k])]


@inlined
def _spread(source: Any, at: Any, runs: Any, out: Any) -> None:
    """`_gather` for few different steps, each of which a run of lanes shares."""
    wide_vectors()
    no_overlap()
    first = 0
    while first < out.size:
        same, part = source[np.uint64(at[first])], out[first : runs[first]]
        for k in range(part.size):
            part[k] = same
        first = runs[first]


@inlined
def _take(source: Any, at: Any, runs: Any, few_runs: bool, out: Any) -> None:
    if few_runs:
        _spread(source, at, runs, out)
    else:
        _gather(source, at, out)


@inlined
def _gather_left(rows: Any, parts: Any, at: Any, runs: Any, few_runs: bool, step: Any) -> None:
    for layer in range(rows.first.size):
        row = rows.first[layer] + rows.n_partials
        _take(parts.recurrent[layer], at, runs, few_runs, step[row + RHO])
        _take(parts.bias[layer], at, runs, few_runs, step[row + OVER])
        if layer == 0:
            for c in range(parts.inputs.shape[0]):
                _take(parts.inputs[c], at, runs, few_runs, step[row + SOURCE + c])
        else:
            _take(parts.below[layer], at, runs, few_runs, step[row + SOURCE])
        if rows.growth[layer] >= 0:
            _take(parts.growth[layer], at, runs, few_runs, step[rows.growth[layer]])


@inlined
def _gather_right(rows: Any, parts: Any, at: Any, step: Any) -> None:
    """Parts of y, where their differences will stand."""
    channels = parts.inputs.shape[0]
    for layer in range(rows.first.size):
        row = rows.first[layer] + rows.n_partials
        _gather(parts.recurrent[layer], at, step[row + RHO_APART])
        if layer == 0:
            for c in range(channels):
                _gather(parts.inputs[c], at, step[row + SOURCE + channels + c])
        else:
            _gather(parts.below[layer], at, step[row + SOURCE + 1])
        if rows.bias[layer] >= 0:
            _gather(parts.bias[layer], at, step[rows.bias[layer]])


@inlined
def _gather_marks(marks: Any, at: Any, out: Any) -> None:
    """(S, M) at some steps into (M, n): a line of eight lanes at a time."""
    for first in range(0, at.size, 8):
        for j in range(out.shape[0]):
            for k in range(first, first + 8):
                out[j, k] = marks[at[k], j]


@inlined
def _scatter(slopes: Any, lanes: Any, first: int, end: int, real: int, gradient: Any) -> None:
    """Add ∂Θ/∂x at lags `first` to `end`, (lags, m, n), to the rows of its sequences."""
    for k in range(real):
        start, stride = lanes[OUT, k], lanes[STRIDE, k]
        for c in range(slopes.shape[1]):
            for lag in range(first, min(end, lanes[X_STEPS, k])):
                gradient[np.uint64(start + stride * lag), c] += slopes[lag - first, c, k]


# -- forwards ---------------------------------------------------------------------------------------------------------


@inlined
def _arrival(f: float, g: float, a: float, a2: float, w: float, q: float) -> Any:
    """What activations with state w, Q add to u, to 2 - u and to Θ̂ through weights: terms of (21), (22) and (17)."""
    both = a * a2
    square = 0.5 * (a - a2) * (a - a2)
    near, far = (w, 2.0 - w) if w >= 0.0 else (2.0 + w, -w)
    return f * (square + both * near), f * (square + both * far), both * (f * q + g * (1.0 - near))


@inlined
def _arrive(f: float, g: float, a: Any, a2: Any, w: Any, slope: Any, inner: Any, u: Any, rest: Any, theta: Any) -> None:
    """Begin with the recurrent state; Q is `slope` × `inner`."""
    wide_vectors()
    no_overlap()
    for k in range(u.size):
        u[k], rest[k], theta[k] = _arrival(f, g, a[k], a2[k], w[k], slope[k] * inner[k])


@inlined
def _arrive_from_below(
    f: float, g: float, a: Any, a2: Any, w: Any, slope: Any, inner: Any, u: Any, rest: Any, theta: Any
) -> None:
    wide_vectors()
    no_overlap()
    for k in range(u.size):
        distance, opposite, tangent = _arrival(f, g, a[k], a2[k], w[k], slope[k] * inner[k])
        u[k] += distance
        rest[k] += opposite
        theta[k] += tangent


@inlined
def _enter(f: float, g: float, a: Any, a2: Any, u: Any, rest: Any, theta: Any) -> None:
    """Add what an input channel, or a bias, brings: a given number over √q."""
    wide_vectors()
    no_overlap()
    for k in range(u.size):
        gap, both = a[k] - a2[k], a[k] + a2[k]
        u[k] += 0.5 * f * gap * gap
        rest[k] += 0.5 * f * both * both
        theta[k] += g * a[k] * a2[k]


@inlined
def _sign(rest: Any, d: Any) -> None:
    """The signed distance, from u in d and 2 - u in `rest`."""
    wide_vectors()
    no_overlap()
    for k in range(d.size):
        d[k] = d[k] if d[k] <= 1.0 else min(-rest[k], FARTHEST)


@inlined
def _differ(a: Any, a2: Any) -> None:
    """How far a norm of y is from that of x."""
    wide_vectors()
    no_overlap()
    for k in range(a.size):
        a2[k] = a[k] - a2[k]


@inlined
def _differ_signed(d: Any, a: Any, a2: Any) -> None:
    """Likewise for what may be opposite."""
    wide_vectors()
    no_overlap()
    for k in range(a.size):
        a2[k] = a[k] - a2[k] if d[k] >= 0.0 else a[k] + a2[k]


@inlined
def _differ_by_rest(
    fw: float, fu: float, fb: float, rho: Any, rho_gap: Any, over: Any, bias_gap: Any, a: Any, gap: Any
) -> None:
    """A single large part differs by what all others do: exactly, however small that is."""
    wide_vectors()
    no_overlap()
    for k in range(a.size):
        # a² - a'² = (γ'² - γ² + b̂'² - b̂²)/f; a part's other side is itself less the gap, but for its sign.
        rest = fw * rho_gap[k] * (rho_gap[k] - 2.0 * rho[k]) + fb * bias_gap[k] * (bias_gap[k] - 2.0 * over[k])
        # Not where the other side points the other way: a bias or a state may outweigh what it brings.
        large = fu * a[k] * a[k] > 0.5 and abs(rest) < 0.25 and a[k] * (a[k] - gap[k]) > 0.0
        size = abs(a[k])
        found = rest / (fu * (size + math.sqrt(max(size * size - rest / fu, 0.0)))) if large else 0.0
        gap[k] = (found if a[k] >= 0.0 else -found) if large else gap[k]


@inlined
def _compare(
    network: Any, rows: Any, parts: Any, layer: int, at_x: Any, at_y: Any, step: Any, before: Any, gap: Any
) -> None:
    """λ, and for lanes that are close also u and the differences, from changes."""
    channels, kept = parts.inputs.shape[0], rows.n_partials
    row = rows.first[layer] + kept
    fw, fu, fb = network.factors[layer, 0], network.factors[layer, 1], network.factors[layer, 2]
    d, norms = step[row + DISTANCE], step[row + NORM]
    under = rows.first[layer - 1] if layer > 0 else 0
    nearest = CLOSE
    for k in range(d.size):
        norms[k] = np.nan
        nearest = min(nearest, abs(d[k]))
    if nearest >= CLOSE:
        return
    for k in range(d.size):
        if abs(d[k]) >= CLOSE:
            continue
        over, over2 = step[row + OVER, k], parts.bias[layer, at_y[k]]
        gamma, gamma2 = math.sqrt(fw) * step[row + RHO, k], math.sqrt(fw) * parts.recurrent[layer, at_y[k]]
        far = d[k] < 0.0
        sign = -1.0 if far else 1.0
        state = before[rows.first[layer], k]
        w = mirrored(state) if far else plain(state)
        carried = before[row + NORM, k]
        norm = norm_change(carried, gamma, gamma2, over, over2)
        known = gamma == 0.0 or not np.isnan(carried)
        eta, eta2, v, below = 0.0, 0.0, 0.0, 0.0
        if layer > 0:
            eta, eta2 = math.sqrt(fu) * step[row + SOURCE, k], math.sqrt(fu) * parts.below[layer, at_y[k]]
            state = step[under, k]
            v = mirrored(state) if far else plain(state)
            carried = step[under + kept + NORM, k]
            below = norm_change(carried, eta, eta2, over, over2)
            known = known and (eta == 0.0 or not np.isnan(carried))
        inputs = channels if layer == 0 else 0
        x, y = parts.raw[:inputs, at_x[k]], parts.raw[:inputs, at_y[k]]
        b = math.sqrt(fb) * over if rows.bias[layer] >= 0 else 0.0
        b2 = math.sqrt(fb) * over2 if rows.bias[layer] >= 0 else 0.0
        scale = math.sqrt(fu) * over
        u, change, shrink, turn, turn_below = compare(
            x, y, scale, gamma, gamma2, norm, w, eta, eta2, below, v, b, b2, sign
        )  # fmt: skip
        ell = math.log1p(change)
        # What is not known better than from the two sides would make a cusp of its rounding.
        if not (known and u + 0.125 * ell * ell < CLOSE):
            continue
        d[k] = min(-u, FARTHEST) if far else u
        gap[k] = -2.0 * math.sinh(0.5 * ell)
        step[row + RHO_APART, k] = -step[row + RHO, k] * turn
        if layer > 0:
            step[row + SOURCE + 1, k] = -step[row + SOURCE, k] * turn_below
        for c in range(inputs):
            distance = apart(x[c], y[c], scale, sign, shrink, turned(gamma, turn, b, shrink), inputs)
            step[row + SOURCE + channels + c, k] = distance / math.sqrt(fu)
        if rows.bias[layer] >= 0:
            step[rows.bias[layer], k] = over + over2 if far else -over * shrink
        norms[k] = ell
        if parts.close.shape[1] > 0:
            one, two = parts.close[layer, at_x[k]], parts.close[layer, at_y[k]]
            norms[k] = carry_on(ell, one[GROWTH], two[GROWTH], one[GROWTH + 1], two[GROWTH + 1])


@inlined
def _trim(parts: Any, layer: int, at_x: Any, at_y: Any, step: Any, row: int, kept: int, gap: Any) -> None:
    """Derivatives that rounding would spoil: by u on the cusp, and of w₁ by log q where two sides are close."""
    curve, d, norms = step[row + 2], step[row + kept + DISTANCE], step[row + kept + NORM]
    for k in range(d.size):
        near = not np.isnan(norms[k])
        if abs(d[k]) <= CUSP * (gap[k] * gap[k] if near else 1.0) and (kept == 3 or parts.raw.shape[0] > 1):
            curve[k] = 0.0
        # Opposite sides are like equal ones only if they come out opposite: then w is negative, too.
        if near and kept > 3 and (d[k] >= 0.0 or step[row, k] < 0.0):
            one, two = parts.close[layer, at_x[k]], parts.close[layer, at_y[k]]
            if gap[k] * gap[k] * (1.0 + one[SLOPE]) < CLOSER:
                by = gap[k] * ((one[SPREAD] + two[SPREAD]) + 0.5 * gap[k] * one[SPREAD + 1])
                step[row + 7, k] = by if d[k] >= 0.0 else -by


@inlined
def _forward_step(
    partials: Any, parameters: Any, network: Any, rows: Any, parts: Any, lanes: Any, runs: Any, all_begun: bool,
    lag: int, at_x: Any, at_y: Any, step: Any, before: Any, gap: Any, rest: Any, room: Any, right_marks: Any,
) -> None:  # fmt: skip
    """All layers at one lag, into `step`; `before` holds the lag before this one in time."""
    n, kept = at_x.size, rows.n_partials
    channels, n_marks = parts.inputs.shape[0], parts.marks.shape[2]
    for layer in range(rows.first.size):
        fw, fu, fb = network.factors[layer, 0], network.factors[layer, 1], network.factors[layer, 2]
        gw, gu, gb = network.factors[layer, 3], network.factors[layer, 4], network.factors[layer, 5]
        row = rows.first[layer]
        own, source = row + kept, row + kept + SOURCE
        theta, u = step[own + THETA], step[own + DISTANCE]
        _arrive(
            fw, gw, step[own + RHO], step[own + RHO_APART], before[row], before[row + 1], before[own + THETA],
            u, rest, theta,
        )  # fmt: skip
        if layer == 0:
            for c in range(channels):
                _enter(fu, gu, step[source + c], step[source + channels + c], u, rest, theta)
        else:
            under = rows.first[layer - 1]
            _arrive_from_below(
                fu, gu, step[source], step[source + 1], step[under], step[under + 1], step[under + kept + THETA],
                u, rest, theta,
            )  # fmt: skip
        if rows.bias[layer] >= 0:
            _enter(fb, gb, step[own + OVER], step[rows.bias[layer]], u, rest, theta)
        if not network.tied:
            for k in range(n):
                if lanes[SHARED, k] == 0:
                    u[k] = 1.0
        _sign(rest, u)
        _differ(step[own + RHO], step[own + RHO_APART])
        if layer == 0:
            for c in range(channels):
                _differ_signed(u, step[source + c], step[source + channels + c])
        else:
            _differ(step[source], step[source + 1])
        biased = rows.bias[layer] >= 0
        if biased:
            _differ_signed(u, step[own + OVER], step[rows.bias[layer]])
        if fu > 0.0 and (layer > 0 or channels == 1):
            _differ_by_rest(
                fw, fu, fb if biased else 0.0, step[own + RHO], step[own + RHO_APART], step[own + OVER],
                step[rows.bias[layer] if biased else own + OVER], step[source],
                step[source + (1 if layer > 0 else channels)],
            )  # fmt: skip
        if n_marks > 0:
            for k in range(n):
                one, two = parts.marks[layer, at_x[k]], parts.marks[layer, at_y[k]]
                gap[k] = ((one[0] - two[0]) * one[1]) * two[1]
        _compare(network, rows, parts, layer, at_x, at_y, step, before, gap)
        out = step[row : row + kept]
        if n_marks == 0:
            partials(parameters, parts.marks[layer, 0], right_marks, gap, u, out, np.uint64(0), np.uint64(n))
        else:
            _gather_marks(parts.marks[layer], at_y, right_marks)
            # The compiled activation takes one step on the left and many on the right: lanes that share x go together.
            first = 0
            while first < n:
                # In whole vectors, or the last bits would depend on where a run begins.
                end, left_marks = runs[first], parts.marks[layer, at_x[first]]
                whole = np.uint64(first // VECTOR * VECTOR), np.uint64(-(-end // VECTOR) * VECTOR)
                partials(parameters, left_marks, right_marks, gap, u, room, *whole)
                for j in range(kept):
                    for k in range(first, end):
                        out[j, k] = room[j, k]
                first = end
        _trim(parts, layer, at_x, at_y, step, row, kept, gap)
        if not network.tied:
            for k in range(n):
                if lanes[SHARED, k] == 0:
                    step[row + 1, k] = step[row + 2, k] = theta[k] = 0.0
        if not all_begun:
            for k in range(n):
                if lag >= lanes[BEGIN, k]:
                    step[row, k] = 1.0 - lanes[SAME, k]
                    step[own + NORM, k] = 0.0 if lanes[SAME, k] == 1 else np.nan
                    for j in range(1, kept + 1):  # no slopes, and Θ̂ = 0
                        step[row + j, k] = 0.0


@inlined
def _weigh(parts: Any, lanes: Any, scale: Any, lag: int, at_x: Any, at_y: Any, weight: Any) -> None:
    """What a lane's outputs at this lag count for in the kernel."""
    for k in range(weight.size):
        reads = lanes[SKIP, k] <= lag < lanes[BEGIN, k]
        weight[k] = scale[k] * parts.readout[at_x[k]] * parts.readout[at_y[k]] if reads else 0.0


# -- backwards --------------------------------------------------------------------------------------------------------


@inlined
def _read_back(
    own: float, variance: float, weight: Any, w: Any, slope: Any, theta: Any, w_bar: Any, q_bar: Any, psi_bar: Any
) -> None:
    """From Θ to the state it is read from: the adjoint of (26)."""
    wide_vectors()
    no_overlap()
    for k in range(weight.size):
        psi_bar[k] += 0.5 * weight[k] * (own * (1.0 - plain(w[k])) + variance * (slope[k] * theta[k]))
        w_bar[k] -= weight[k] * own
        q_bar[k] += weight[k] * variance


@inlined
def _grow_back(growth: Any, total: Any) -> None:
    """From log ψ² to log q."""
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        total[k] *= growth[k]


@inlined
def _moments_back(by_w: Any, by_w1: Any, by_slope: Any, theta: Any, w_bar: Any, q_bar: Any, total: Any) -> None:
    """The adjoint of (23) by log q, on which the activation's marks depend."""
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        total[k] += (by_w[k] + by_w1[k]) * w_bar[k] + by_slope[k] * theta[k] * q_bar[k]


@inlined
def _arrival_back(
    f: float, g: float, a: float, gap: float, w: float, q: float, d: float, u_bar: float, theta_bar: float
) -> Any:
    """The adjoint of `_arrival` by w, by Q, and half that by log a: of Θ̂, and of u with what it does to log q."""
    a2 = a - gap
    both = a * a2
    near, far = (w, 2.0 - w) if w >= 0.0 else (2.0 + w, -w)
    share = 0.5 * both * theta_bar * (f * q + g * (1.0 - near))
    turned = (gap - abs(d) * a) + a2 * (near if d >= 0.0 else far)
    by_u = 0.5 * f * a * (turned if d >= 0.0 else -turned) * u_bar
    return both * (u_bar * f - theta_bar * g), both * (theta_bar * f), share, by_u


@inlined
def _activate_back(
    f: float, g: float, slope: Any, curve: Any, theta: Any, d: Any, a: Any, gap: Any, w: Any, slope_in: Any, inner: Any,
    w_bar: Any, q_bar: Any, u_bar: Any, theta_bar: Any, by: Any, total: Any,
) -> None:  # fmt: skip
    """The adjoint of (23) by u and Θ̂, and on to the recurrent state: w_bar and q_bar move one step back in time."""
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        ub = slope[k] * w_bar[k] + curve[k] * theta[k] * q_bar[k]
        tb = slope[k] * q_bar[k]
        u_bar[k] = ub
        theta_bar[k] = tb
        w_bar[k], q_bar[k], share, by_u = _arrival_back(
            f, g, a[k], gap[k], w[k], slope_in[k] * inner[k], d[k], ub, tb
        )  # fmt: skip
        by[k] = share + by_u
        total[k] -= share


@inlined
def _below_back(
    f: float, g: float, d: Any, a: Any, gap: Any, w: Any, slope: Any, inner: Any, u_bar: Any, theta_bar: Any,
    w_bar: Any, q_bar: Any, by: Any, total: Any,
) -> None:  # fmt: skip
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        wb, qb, share, by_u = _arrival_back(
            f, g, a[k], gap[k], w[k], slope[k] * inner[k], d[k], u_bar[k], theta_bar[k]
        )  # fmt: skip
        w_bar[k] += wb
        q_bar[k] += qb
        by[k] = share + by_u
        total[k] -= share


@inlined
def _enter_back(g: float, d: Any, a: Any, gap: Any, theta_bar: Any, total: Any) -> None:
    """The adjoint of `_enter`, as far as Θ̂ reaches log q; what u does there is part of `_input_back`."""
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        a2 = a[k] - gap[k]
        total[k] -= 0.5 * (a[k] * (a2 if d[k] >= 0.0 else -a2)) * (theta_bar[k] * g)


@inlined
def _input_back(
    f: float, g: float, d: Any, a: Any, gap: Any, over: Any, u_bar: Any, theta_bar: Any, total: Any, out: Any
) -> None:
    """∂Θ/∂x: through x itself and through its share of the variance; u by how x differs from y, projected."""
    wide_vectors()
    no_overlap()
    for k in range(out.size):
        a2 = a[k] - gap[k]
        turned = (gap[k] - abs(d[k]) * a[k]) * u_bar[k]
        far = d[k] < 0.0
        by_u, other = (-turned, -a2) if far else (turned, a2)
        out[k] = over[k] * (other * (theta_bar[k] * g) + f * by_u + 2.0 * f * total[k] * a[k])


@inlined
def _norm_below_back(f: float, a: Any, by: Any, total: Any, psi_bar: Any) -> None:
    """From log q to log ψ² of what arrived through weights: its share of the variance, and its own part's norm."""
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        psi_bar[k] += f * (a[k] * a[k]) * total[k] + by[k]


@inlined
def _norm_back(f: float, a: Any, by: Any, total: Any) -> None:
    """Likewise for the recurrent state: log q becomes log ψ² one step back in time."""
    wide_vectors()
    no_overlap()
    for k in range(total.size):
        total[k] = f * (a[k] * a[k]) * total[k] + by[k]


@inlined
def _backward_step(
    network: Any, rows: Any, channels: int, paired: bool, step: Any, before: Any, bars: Any, local: Any, slope_out: Any
) -> None:
    """All layers at one lag, from the top: adjoints of the state before into `bars`, ∂Θ/∂x into `slope_out`.

    bars : (3, L, n), adjoints of w, Q and log ψ². local : working memory. paired : whether any lane takes part; if
    none does, only the variances of x are left.
    """
    kept = rows.n_partials
    u_bar, theta_bar, by, by_below = local[0], local[1], local[2], local[3]
    for layer in range(rows.first.size - 1, -1, -1):
        fw, fu = network.factors[layer, 0], network.factors[layer, 1]
        gw, gu, gb = network.factors[layer, 3], network.factors[layer, 4], network.factors[layer, 5]
        row = rows.first[layer]
        own, source = row + kept, row + kept + SOURCE
        # The same numbers are in turn the adjoints of log ψ² at this step, of log q, and of log ψ² a step before.
        w_bar, q_bar, total = bars[0, layer], bars[1, layer], bars[2, layer]
        theta, d, rho = step[own + THETA], step[own + DISTANCE], step[own + RHO]
        if rows.growth[layer] >= 0:
            _grow_back(step[rows.growth[layer]], total)
        if paired:
            if kept > 3:
                _moments_back(step[row + 3], step[row + 7], step[row + 5], theta, w_bar, q_bar, total)
            _activate_back(
                fw, gw, step[row + 1], step[row + 2], theta, d, rho, step[own + RHO_APART],
                before[row], before[row + 1], before[own + THETA], w_bar, q_bar, u_bar, theta_bar, by, total,
            )  # fmt: skip
            if layer > 0:
                under = rows.first[layer - 1]
                _below_back(
                    fu, gu, d, step[source], step[source + 1], step[under], step[under + 1],
                    step[under + kept + THETA], u_bar, theta_bar, bars[0, layer - 1], bars[1, layer - 1], by_below,
                    total,
                )  # fmt: skip
            else:
                for c in range(channels):
                    _enter_back(gu, d, step[source + c], step[source + channels + c], theta_bar, total)
            if rows.bias[layer] >= 0:
                _enter_back(gb, d, step[own + OVER], step[rows.bias[layer]], theta_bar, total)
        if layer > 0:
            _norm_below_back(fu, step[source], by_below, total, bars[2, layer - 1])
        else:
            for c in range(channels):
                _input_back(
                    fu, gu, d, step[source + c], step[source + channels + c], step[own + OVER], u_bar, theta_bar, total,
                    slope_out[c],
                )  # fmt: skip
        _norm_back(fw, rho, by, total)


# -- a block, and all of them -----------------------------------------------------------------------------------------


@inlined
def _block(
    partials: Any, parameters: Any, network: Any, rows: Any, parts: Any, lanes: Any, scale: Any, runs: Any, real: int,
    steps: Any, small: Any, at: Any, right_marks: Any, value: Any, gradient: Any,
) -> None:  # fmt: skip
    depth, n, channels = rows.first.size, lanes.shape[1], parts.inputs.shape[0]
    common, shortest, longest, latest = 0, 1 << 60, 0, 1 << 60
    for k in range(n):
        common, shortest = max(common, lanes[BEGIN, k]), min(shortest, lanes[BEGIN, k])
        longest, latest = max(longest, lanes[X_STEPS, k]), min(latest, lanes[SKIP, k])
    count = 0
    first = 0
    while first < n:
        count += 1
        first = runs[first]
    few_runs = 16 * count <= n
    gap, weight, rest, local, room = small[0], small[1], small[2], small[3:7], small[7 : 7 + ROOM]
    middle = 7 + ROOM + TOGETHER * channels
    slopes, bars = small[7 + ROOM : middle].reshape((TOGETHER, channels, n)), small[middle:].reshape((3, depth, n))
    at_x, at_y = at[0], at[1]
    top = rows.first[depth - 1]
    # The state of "nothing before" stands where the step before the first would.
    for layer in range(depth):
        row = rows.first[layer]
        for k in range(n):
            steps[common, row, k] = 1.0 - lanes[SAME, k]
            steps[common, row + 1, k] = steps[common, row + rows.n_partials + THETA, k] = 0.0
            steps[common, row + rows.n_partials + NORM, k] = 0.0 if lanes[SAME, k] == 1 else np.nan
    for lag in range(common - 1, latest - 1, -1):
        step = steps[lag]
        _locate(lanes, lag, at_x, at_y)
        _gather_left(rows, parts, at_x, runs, few_runs, step)
        _gather_right(rows, parts, at_y, step)
        _forward_step(
            partials, parameters, network, rows, parts, lanes, runs, lag < shortest, lag, at_x, at_y,
            step, steps[lag + 1], gap, rest, room, right_marks,
        )  # fmt: skip
        if network.every_step or lag == 0:
            _weigh(parts, lanes, scale, lag, at_x, at_y, weight)
            w, inner, theta = step[top], step[top + 1], step[top + rows.n_partials]
            for k in range(real):
                value[k] += weight[k] * (network.own * (1.0 - plain(w[k])) + network.variance * (inner[k] * theta[k]))
    bars[:] = 0.0
    written = latest
    for lag in range(latest, longest):
        paired = lag < common
        step, before = steps[min(lag, common)], steps[min(lag + 1, common)]
        reads = paired and (network.every_step or lag == 0)
        if reads or not paired:
            _locate(lanes, lag, at_x, at_y)
        if reads:
            _weigh(parts, lanes, scale, lag, at_x, at_y, weight)
            _read_back(
                network.own, network.variance, weight, step[top], step[top + 1], step[top + rows.n_partials],
                bars[0, depth - 1], bars[1, depth - 1], bars[2, depth - 1],
            )  # fmt: skip
        if not paired:
            # Only the variances of x are left: nothing of y, and no adjoint of the pair.
            if lag == common:
                step[:] = 0.0
                local[:] = 0.0
            _gather_left(rows, parts, at_x, runs, few_runs, step)
        _backward_step(network, rows, channels, paired, step, before, bars, local, slopes[lag - written])
        if lag - written == TOGETHER - 1 or lag == longest - 1:
            _scatter(slopes, lanes, written, lag + 1, real, gradient)
            written = lag + 1


def reverse_pass(
    partials: Any, parameters: Any,
    factors: Any, own: float, variance: float, every_step: bool, tied: bool,
    first: Any, bias: Any, growth: Any, n_partials: int, n_rows: int,
    recurrent: Any, below: Any, over: Any, growths: Any, inputs: Any, raw: Any, readout: Any, marks: Any, close: Any,
    lanes: Any, scale: Any, runs: Any, n_real: int, steps: Any, small: Any, at: Any, right_marks: Any,
    value: Any, gradient: Any,
) -> None:  # fmt: skip
    """Kernel values and their derivatives by x, for all lanes, block by block.

    The fields of a `Factors`, a `Rows` and a `Parts` come one by one, which Python hands over faster.
    lanes : (blocks, 9, n), n lanes to a block, a multiple of 8; the last ones may be padding: `n_real` counts the
        others. scale : (blocks, n), what multiplies the outputs of a lane. runs : (blocks, n), end of the run of lanes
        with the same x, read where a run begins.
    steps : (D + 1, rows, n), small, at, right_marks : working memory, of any content.
    value : (blocks, n), gradient : (rows of x, m), added to.
    """
    network = Factors(factors, own, variance, every_step, tied)
    rows = Rows(first, bias, growth, n_partials, n_rows)
    parts = Parts(recurrent, below, over, growths, inputs, raw, readout, marks, close)
    n = lanes.shape[2]
    for block in range(lanes.shape[0]):
        _block(
            partials, parameters, network, rows, parts, lanes[block], scale[block], runs[block],
            min(n, n_real - n * block), steps, small, at, right_marks, value[block], gradient,
        )  # fmt: skip


def small_rows(depth: int, channels: int) -> int:
    """Rows of working memory `reverse_pass` needs besides its steps."""
    return 7 + ROOM + TOGETHER * channels + 3 * depth


def _fields(kind: Any) -> list[Any]:
    """The Numba types of the fields of a named tuple."""
    plain = {int: types.int64, float: types.float64, bool: types.boolean, NDArray[np.int64]: _integers}
    arrays = {"readout": 1, "marks": 3, "close": 3}
    hints = get_type_hints(kind)
    return [plain.get(hint) or types.Array(types.float64, arrays.get(name, 2), "C") for name, hint in hints.items()]


_integers = types.Array(types.int64, 1, "C")


@cache
def compiled_reverse_pass() -> Any:
    """`reverse_pass`, in double precision."""
    real, dtype = types.float64, np.dtype(np.float64)
    vector, table = types.Array(real, 1, "C"), types.Array(real, 2, "C")
    signature = types.void(
        types.FunctionType(partials_signature(dtype)),
        vector,
        *_fields(Factors),
        *_fields(Rows),
        *_fields(Parts),
        types.Array(types.int64, 3, "C"),
        table,
        types.Array(types.int64, 2, "C"),
        types.int64,
        types.Array(real, 3, "C"),
        table,
        types.Array(types.int64, 2, "C"),
        *(table,) * 3,
    )
    return compile_function(reverse_pass, signature)
