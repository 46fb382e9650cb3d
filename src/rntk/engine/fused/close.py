"""Close pairs: differences carried from step to step where rounding would outgrow them (theory.md, section 7).

Where a network is chaotic, small distances grow with every step, and with them what rounding made of the unit vectors
they were taken from: two sequences that differ by 1e-12 have 4 digits of difference left there. But the difference of
two inputs is exact, and what it does to the variances follows from step to step by relative changes, in which nothing
cancels. So for lanes whose sides are close to being equal, or opposite, this module computes u and the relative
difference of variances anew from

    ℓ = log q'/q,  λ = log ψ'²/ψ²,  λ being carried.

Few lanes are ever close, so all of it is scalar code on single lanes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from ...activations import Activation
from ...activations.compiled import inlined

#: Distances (u and ℓ²/8 together) below which a lane is close: there 1e-16/√u is still far below any tolerance.
CLOSE = 1e-8
#: Below this, ℓ² (1 + V̂'(1)) allows derivatives of w₁ to be taken to lowest order in ℓ.
CLOSER = 1e-9
#: Growth of Θ̂ per step of a sequence, in powers of two, beyond which close lanes are taken care of.
CALM = 12
#: Rows per layer: slope, growth and spread, each followed by its derivative along log q.
SLOPE, GROWTH, SPREAD = 0, 2, 4
CLOSE_ROWS = 6
#: Points per unit of log q at which slope and growth are interpolated, and the degree.
DENSITY, DEGREE = 16, 7


def close_rows(activation: Activation, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """(6, *q.shape): V̂'(1), d log ψ²/d log q and half the squared speed of the unit activation along log q.

    With s = V̂'(1) and g the growth, the last is (2 ds/dlog q + s (2g - 1) - g²)/8: to lowest order
    w = s u + spread ℓ².
    """
    rows = np.zeros((CLOSE_ROWS, *q.shape))
    some = q > 0
    at = np.log(q[some])
    if at.size == 0:
        return rows
    low, high = np.floor(at.min() * DENSITY) - DEGREE, np.ceil(at.max() * DENSITY) + DEGREE
    grid = np.arange(low, high + 1) / DENSITY
    moments = activation.moments(np.exp(grid))
    slope, growth = (make_interp_spline(grid, part, DEGREE) for part in (moments.slope, moments.growth))
    s, ds, dds = (slope(at, nu) for nu in range(3))
    g, dg = (growth(at, nu) for nu in range(2))
    spread = (2 * ds + s * (2 * g - 1) - g * g) / 8
    d_spread = (2 * dds + ds * (2 * g - 1) + 2 * s * dg - 2 * g * dg) / 8
    for row, part in enumerate((s, ds, g, dg, np.maximum(spread, 0.0), d_spread)):
        rows[row][some] = part
    return rows


@inlined
def plain(w):
    """A signed distance as it is: from being equal."""
    return w if w >= 0 else 2 + w


@inlined
def mirrored(w):
    """The same from being opposite."""
    return 2 - w if w >= 0 else -w


@inlined
def norm_change(carried, part, part2, over, over2):
    """λ of what arrived through weights: as carried, or from the parts themselves; NaN where only one has any."""
    if not np.isnan(carried):
        return carried
    if part == 0 and part2 == 0:
        return 0.0
    if part == 0 or part2 == 0:
        return np.nan
    return 2 * math.log((part2 * over) / (part * over2))


@inlined
def compare(x, y, scale, gamma, gamma2, norm, w, eta, eta2, below, v, b, b2, sign):
    """u, q'/q - 1, √(q/q') - 1, γ'/γ - 1 and η'/η - 1 of one lane, from changes; u is NaN where these are large.

    x, y : inputs, whose share of the unit vector is `scale` on the left; none above the first layer. norm, below : λ of
    what arrives with γ and η. w, v : its distances. b, b2 : biases. sign : -1 measures from being opposite.
    """
    if (gamma > 0) != (gamma2 > 0) or (eta > 0) != (eta2 > 0):
        return np.nan, 0.0, 0.0, 0.0, 0.0  # what only one side has is no small change
    change = gamma * gamma * math.expm1(norm) if gamma > 0 else 0.0
    if eta > 0:
        change += eta * eta * math.expm1(below)
    for c in range(x.size):
        change += (scale * (y[c] - x[c])) * (scale * (y[c] + x[c]))
    if not abs(change) < 0.01:
        return np.nan, 0.0, 0.0, 0.0, 0.0
    ell = math.log1p(change)
    shrink = math.expm1(-0.5 * ell)
    turn = math.expm1(0.5 * (norm - ell)) if gamma > 0 else 0.0
    turn_below = math.expm1(0.5 * (below - ell)) if eta > 0 else 0.0
    squares = (gamma * turn) ** 2 + (eta * turn_below) ** 2
    rest = turned(gamma, turn, b, shrink)
    for c in range(x.size):
        squares += apart(x[c], y[c], scale, sign, shrink, rest, x.size) ** 2
    squares += (b + b2 if sign < 0 else b * shrink) ** 2
    return gamma * gamma2 * w + eta * eta2 * v + 0.5 * squares, change, shrink, turn, turn_below


@inlined
def turned(gamma, turn, b, shrink):
    """γ'² - γ² + b̂'² - b̂²: what the inputs have less of the other side's unit vector."""
    return gamma * gamma * turn * (2 + turn) + b * b * shrink * (2 + shrink)


@inlined
def apart(x, y, scale, sign, shrink, rest, channels):
    """x̂ - x̂', or their sum, x̂ being `scale` x. A single large channel follows from all that is small."""
    unit = scale * x
    if channels == 1 and unit * unit > 0.5:
        return rest / math.copysign(abs(unit) + math.sqrt(unit * unit - rest), unit)
    return scale * ((x - sign * y) - sign * y * shrink)


@inlined
def carry_on(ell, growth, growth2, curve, curve2):
    """λ after the activation: the growth, and its derivative, of either side integrated from one to the other."""
    return 0.5 * ell * (growth + growth2) - ell * ell / 12 * (curve2 - curve)


@inlined
def settle(
    L, R, r, layout, layer, gap, u_all, w_in, w_below, norms, norms_below,
    du_all, dw_in, dw_below, dnorms, dnorms_below, dw_norms, offset, first, n,
):  # fmt: skip
    """Put u, the gap of variances and their tangents right in lanes that are close; carry λ on.

    u_all : u, signed. du_all : its tangents. norms : λ of the step before, then of this one; NaN where it isn't known
    better than from the two sides. dw_norms : tangents of w₁, to lowest order in ℓ, or NaN. Tangents are (P, slots),
    those of the state from slot `offset` on.
    """
    upper = layer > 0
    row, channels = layout.unit[layer], layout.channels[layer]
    bias = layout.has_bias[layer]
    marks, own = layout.marks[layer], layout.close[layer]
    depth, P = layout.depth, du_all.shape[0]
    inputs = 0 if upper else layout.n_inputs
    for p in range(P):
        for k in range(first, n):
            dw_norms[p, k] = np.nan
    found = 0
    for k in range(first, n):
        found += abs(u_all[k]) < 2 * CLOSE
    if found == 0:
        for k in range(first, n):
            norms[k] = np.nan
        return
    for k in range(first, n):
        d, carried = u_all[k], norms[k]
        norms[k] = np.nan
        if abs(d) >= 2 * CLOSE:
            continue
        i = offset + np.int64(k)
        far = d < 0
        sign = -1.0 if far else 1.0
        over, over2 = L[marks + 1, r], R[marks + 1, k]
        gamma, gamma2 = L[row, r], R[row, k]
        w = mirrored(w_in[k]) if far else plain(w_in[k])
        norm = norm_change(carried, gamma, gamma2, over, over2)
        eta, eta2, v, below, carried_below = 0.0, 0.0, 0.0, 0.0, np.nan
        if upper:
            eta, eta2 = L[row + 1, r], R[row + 1, k]
            carried_below = norms_below[k]
            below = norm_change(carried_below, eta, eta2, over, over2)
            v = mirrored(w_below[k]) if far else plain(w_below[k])
        scale = layout.input_scale * over
        x, y = L[layout.raw : layout.raw + inputs, r], R[layout.raw : layout.raw + inputs, k]
        b = L[row + channels, r] if bias else 0.0
        b2 = R[row + channels, k] if bias else 0.0
        u, change, shrink, turn, turn_below = compare(
            x, y, scale, gamma, gamma2, norm, w, eta, eta2, below, v, b, b2, sign
        )  # fmt: skip
        ell = math.log1p(change)
        if not u + 0.125 * ell * ell < CLOSE:
            continue
        g, g2 = L[own + GROWTH, r], R[own + GROWTH, k]
        dg, dg2 = L[own + GROWTH + 1, r], R[own + GROWTH + 1, k]
        u_all[k] = min(-u, layout.farthest) if far else u
        gap[k] = -2 * math.sinh(0.5 * ell)
        norms[k] = carry_on(ell, g, g2, dg, dg2)
        for p in range(P):
            rate = layout.rates + 4 * (p * depth + layer)
            tau, tau2 = L[rate, r], R[rate, k]
            tg, tg2, tf, tb = L[rate + 1, r], R[rate + 1, k], L[rate + 2, r], L[rate + 3, r]
            dnorm = dnorms[p, i]
            if np.isnan(carried):
                dnorm = 2 * (tg2 - tg) + (tau2 - tau)
            d_change = gamma * gamma * (2 * tg * math.expm1(norm) + math.exp(norm) * dnorm) if gamma > 0 else 0.0
            tf2, dbelow = R[rate + 2, k], 0.0
            if upper:
                dbelow = dnorms_below[p, i]
                if np.isnan(carried_below):
                    dbelow = 2 * (tf2 - tf) + (tau2 - tau)
                if eta > 0:
                    d_change += eta * eta * (2 * tf * math.expm1(below) + math.exp(below) * dbelow)
            for c in range(inputs):
                d_change += 2 * tf * (scale * (y[c] - x[c])) * (scale * (y[c] + x[c]))
            d_ell = d_change / (1 + change)
            du = gamma * gamma2 * ((tg + tg2) * w + sign * dw_in[p, i])
            if gamma > 0:
                du += gamma * gamma * turn * (tg * turn + (1 + turn) * 0.5 * (dnorm - d_ell))
            if upper and eta > 0:
                du += eta * eta2 * ((tf + tf2) * v + sign * dw_below[p, i])
                du += eta * eta * turn_below * (tf * turn_below + (1 + turn_below) * 0.5 * (dbelow - d_ell))
            for c in range(inputs):
                distance = apart(x[c], y[c], scale, sign, shrink, turned(gamma, turn, b, shrink), inputs)
                du += distance * (tf * distance + 0.5 * (sign * scale * y[c]) * (1 + shrink) * d_ell)
            if bias:
                if far:
                    du += (b + b2) * (b * tb + b2 * R[rate + 3, k])
                else:
                    du += b * b * shrink * (tb * shrink - 0.5 * (1 + shrink) * d_ell)
            dnorms[p, i] = 0.5 * ((g + g2) * d_ell + ell * (dg * tau + dg2 * tau2))
            du_all[p, k] = sign * du
            if layout.odd == 1 or not far:
                s = 0.5 * (L[own + SLOPE, r] + R[own + SLOPE, k])
                if ell * ell * (1 + s) < CLOSER:
                    spread = 0.5 * (L[own + SPREAD, r] + R[own + SPREAD, k])
                    d_spread = 0.5 * (L[own + SPREAD + 1, r] * tau + R[own + SPREAD + 1, k] * tau2)
                    dw_norms[p, k] = sign * ell * (2 * spread * d_ell + ell * d_spread)
