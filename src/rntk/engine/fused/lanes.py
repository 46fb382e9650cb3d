"""What happens to the lanes of one row in one step: loops that a sweep is made of, each a line or two of theory.md.

A row is one position on the left (number r of L), lanes are positions on the right and run along memory (see `sweep`).
Each loop runs over lanes `first` to `n`, unsigned, reads the state and writes what is to pass through the activation.
"""

from __future__ import annotations

from ...activations.compiled import part_of_loop
from .close import mirrored

#: Distances from being opposite below which they are summed up by themselves: 2 - u would lose too many digits.
OPPOSITE = 0.01
#: Rows whose inputs are compared together, where there are more channels than that.
TOGETHER = 4


@part_of_loop
def _plain(w, zero, two):
    """A signed distance as it is, between 0 and 2."""
    return w if w >= zero else two + w


@part_of_loop
def distances(L, R, r, rows, row, channels, far, first, n):
    """Squared distances of the one or more channels that follow `row`, summed up, of `rows` rows from r on."""
    for i in range(rows):
        f, sums = L[row + 1, r + i], far[i]
        for k in range(first, n):
            d = f - R[row + 1, k]
            sums[k] = d * d
    # Four channels at a time: the running sum is loaded and stored once for all of them. All rows before the next four:
    # what they read on the right is in the first cache for all rows but one.
    fours = row + 2 + (channels - 1) // 4 * 4
    for c in range(row + 2, fours, 4):
        A, B, D, E = R[c], R[c + 1], R[c + 2], R[c + 3]
        for i in range(rows):
            a, b, d, e, sums = L[c, r + i], L[c + 1, r + i], L[c + 2, r + i], L[c + 3, r + i], far[i]
            for k in range(first, n):
                da, db, dd, de = a - A[k], b - B[k], d - D[k], e - E[k]
                sums[k] += (da * da + db * db) + (dd * dd + de * de)
    for c in range(fours, row + 1 + channels):
        E = R[c]
        for i in range(rows):
            e, sums = L[c, r + i], far[i]
            for k in range(first, n):
                de = e - E[k]
                sums[k] += de * de


@part_of_loop
def mix(L, R, r, row, far, w, q, u, theta, farthest, first, n):
    """u, signed, and Θ̂ = 1 - u + γγ'Q: (21) and (22)."""
    real = u.dtype.type
    zero, half, one, two = real(0), real(0.5), real(1), real(2)
    gamma, G = L[row, r], R[row]
    for k in range(first, n):
        g, dg = gamma * G[k], gamma - G[k]
        d = g * _plain(w[k], zero, two) + half * (dg * dg + far[k])
        u[k] = d if d <= one else min(d - two, farthest)
        theta[k] = (one - d) + g * q[k]


@part_of_loop
def mix_upper(L, R, r, row, far, w, q, w_below, q_below, u, theta, farthest, first, n):
    """Likewise above the first layer, with what comes from below."""
    real = u.dtype.type
    zero, half, one, two = real(0), real(0.5), real(1), real(2)
    gamma, G, eta, H = L[row, r], R[row], L[row + 1, r], R[row + 1]
    for k in range(first, n):
        g, h, dg = gamma * G[k], eta * H[k], gamma - G[k]
        d = g * _plain(w[k], zero, two) + h * _plain(w_below[k], zero, two) + half * (dg * dg + far[k])
        u[k] = d if d <= one else min(d - two, farthest)
        theta[k] = (one - d) + g * q[k] + h * q_below[k]


@part_of_loop
def oppose(L, R, r, row, channels, upper, w, w_below, u, farthest, first, n):
    """Lanes that are almost opposite: 1 + c as a sum of non-negative terms, as 1 - c is (21a). How many there are."""
    real = u.dtype.type
    limit = real(-OPPOSITE)
    found = 0
    for k in range(first, n):
        found += (limit < u[k]) & (u[k] < real(0))
    if found == 0:
        return 0
    for k in range(first, n):
        if limit < u[k] < real(0):
            rest = (L[row, r] - R[row, k]) ** 2
            total = L[row, r] * R[row, k] * mirrored(w[k])
            start = row + 1
            if upper:  # norms of activations: what is opposite are those themselves
                rest += (L[start, r] - R[start, k]) ** 2
                total += L[start, r] * R[start, k] * mirrored(w_below[k])
                start += 1
            for c in range(start, row + 1 + channels):
                rest += (L[c, r] + R[c, k]) ** 2
            u[k] = min(real(-(total + 0.5 * rest)), farthest)
    return found


@part_of_loop
def spread_variances(L, R, r, marks, gap, first, n):
    """Relative differences of the variances of both sides, (q - q')/√(q q')."""
    q, over = L[marks, r], L[marks + 1, r]
    for k in range(first, n):
        gap[k] = ((q - R[marks, k]) * over) * R[marks + 1, k]


@part_of_loop
def mix_own(L, R, r, own, channels, upper, w, q, w_below, q_below, theta, first, n):
    """Θ̂ from its gradient rows where its own term is not 1 - u: (17) in units."""
    real = theta.dtype.type
    zero, one, two = real(0), real(1), real(2)
    b, B, omega, W = L[own, r], R[own], L[own + 1, r], R[own + 1]
    for k in range(first, n):
        theta[k] = b * B[k] * q[k] + omega * W[k] * (one - _plain(w[k], zero, two))
    start = own + 2
    if upper:
        d, D, p, P = L[own + 2, r], R[own + 2], L[own + 3, r], R[own + 3]
        for k in range(first, n):
            theta[k] += d * D[k] * q_below[k] + p * P[k] * (one - _plain(w_below[k], zero, two))
        start = own + 4
    for c in range(start, start + channels):
        z, Z = L[c, r], R[c]
        for k in range(first, n):
            theta[k] += z * Z[k]


@part_of_loop
def mix_rates(
    L, R, r, row, channels, has_bias, upper, rate, own, own_channels, own_shift,
    w, q, w_below, q_below, dw, dq, dw_below, dq_below, du, dtheta, first, n,
):  # fmt: skip
    """Tangents of u and Θ̂ along one direction (section 8)."""
    real = du.dtype.type
    zero, one, two = real(0), real(1), real(2)
    gamma, G, f, F = L[row, r], R[row], L[row + 1, r], R[row + 1]
    tg, TG, tf, TF, tb, TB = (
        L[rate + 1, r], R[rate + 1], L[rate + 2, r], R[rate + 2], L[rate + 3, r], R[rate + 3],
    )  # fmt: skip
    for k in range(first, n):
        # (γ - γ')(γ t - γ' t') written with differences, so that equal sequences give exactly zero.
        dg, df = gamma - G[k], f - F[k]
        step = dg * (dg * tg + G[k] * (tg - TG[k])) + df * (df * tf + F[k] * (tf - TF[k]))
        du[k] = step + (gamma * G[k]) * ((tg + TG[k]) * _plain(w[k], zero, two) + dw[k])
    for c in range(row + 2, row + 1 + channels - has_bias):
        e, E = L[c, r], R[c]
        for k in range(first, n):
            de = e - E[k]
            du[k] += de * (de * tf + E[k] * (tf - TF[k]))
    if has_bias:
        e, E = L[row + channels, r], R[row + channels]
        for k in range(first, n):
            de = e - E[k]
            du[k] += de * (de * tb + E[k] * (tb - TB[k]))
    if upper:
        for k in range(first, n):
            du[k] += (f * F[k]) * ((tf + TF[k]) * _plain(w_below[k], zero, two) + dw_below[k])
    if own < 0:
        for k in range(first, n):
            dtheta[k] = (gamma * G[k]) * ((tg + TG[k]) * q[k] + dq[k]) - du[k]
        if upper:
            for k in range(first, n):
                dtheta[k] += (f * F[k]) * ((tf + TF[k]) * q_below[k] + dq_below[k])
        return
    sw, su, sb = real(own_shift[0]), real(own_shift[1]), real(own_shift[2])
    b, B, omega, W = L[own, r], R[own], L[own + 1, r], R[own + 1]
    for k in range(first, n):
        t = tg + TG[k]
        near = one - _plain(w[k], zero, two)
        dtheta[k] = b * B[k] * (t * q[k] + dq[k]) + omega * W[k] * ((t + sw + sw) * near - dw[k])
    start = own + 2
    if upper:
        d, D, p, P = L[own + 2, r], R[own + 2], L[own + 3, r], R[own + 3]
        for k in range(first, n):
            t = tf + TF[k]
            near = one - _plain(w_below[k], zero, two)
            dtheta[k] += d * D[k] * (t * q_below[k] + dq_below[k]) + p * P[k] * ((t + su + su) * near - dw_below[k])
        start = own + 4
    # The last own channel is the bias where there is one; the others are inputs.
    for c in range(start, start + own_channels):
        z, Z = L[c, r], R[c]
        is_bias = has_bias == 1 and c == start + own_channels - 1
        for k in range(first, n):
            t = tb + TB[k] + sb + sb if is_bias else tf + TF[k] + su + su
            dtheta[k] += t * z * Z[k]


@part_of_loop
def move(L, R, r, row, channels, has_bias, rate, w, q, out, theta, du, dw, dq, first, n):
    """`mix_rates` and `follow` in one loop: one layer, no marks, Θ̂ begins with 1 - u. `du` is working memory."""
    real = du.dtype.type
    zero, two = real(0), real(2)
    gamma, G, f, F = L[row, r], R[row], L[row + 1, r], R[row + 1]
    tg, TG, tf, TF = L[rate + 1, r], R[rate + 1], L[rate + 2, r], R[rate + 2]
    for k in range(first, n):
        df = f - F[k]
        du[k] = df * (df * tf + F[k] * (tf - TF[k]))
    for c in range(row + 2, row + 1 + channels):
        at = rate + 3 if has_bias == 1 and c == row + channels else rate + 2
        e, E, te, TE = L[c, r], R[c], L[at, r], R[at]
        for k in range(first, n):
            de = e - E[k]
            du[k] += de * (de * te + E[k] * (te - TE[k]))
    for k in range(first, n):
        g, dg, t = gamma * G[k], gamma - G[k], tg + TG[k]
        step = du[k] + dg * (dg * tg + G[k] * (tg - TG[k])) + g * (t * _plain(w[k], zero, two) + dw[k])
        turn = g * (t * q[k] + dq[k]) - step
        dw[k] = out[1, k] * step
        dq[k] = out[1, k] * turn + theta[k] * (out[2, k] * step)


@part_of_loop
def oppose_rates(L, R, r, row, channels, has_bias, upper, rate, u, w, w_below, dw, dw_below, du, first, n):
    """du of lanes that are almost opposite, from the terms of 1 + c."""
    real = u.dtype.type
    limit = real(-OPPOSITE)
    for k in range(first, n):
        if not limit < u[k] < real(0):
            continue
        gamma, gamma2, tg, tg2 = L[row, r], R[row, k], L[rate + 1, r], R[rate + 1, k]
        gap = gamma - gamma2
        total = gap * (gap * tg + gamma2 * (tg - tg2))
        total += gamma * gamma2 * ((tg + tg2) * mirrored(w[k]) - dw[k])
        start, end = row + 1, row + 1 + channels
        if upper:
            eta, eta2, tf, tf2 = L[start, r], R[start, k], L[rate + 2, r], R[rate + 2, k]
            gap = eta - eta2
            total += gap * (gap * tf + eta2 * (tf - tf2))
            total += eta * eta2 * ((tf + tf2) * mirrored(w_below[k]) - dw_below[k])
            start += 1
        for c in range(start, end):
            at = rate + 3 if has_bias == 1 and c == end - 1 else rate + 2
            both = L[c, r] + R[c, k]
            total += both * (both * L[at, r] + R[c, k] * (R[at, k] - L[at, r]))
        du[k] = real(-total)


@part_of_loop
def untie(u, theta, blank, other, first, n):
    """Steps with different weights share nothing: Σ = Θ = 0, so u = 1 (Theorem 3)."""
    for k in range(first, n):
        if other[k]:
            u[k] = blank
            theta[k] = 0


@part_of_loop
def follow(out, t, T, n_marks, du, dtheta, theta, dw, dq, first, n):
    """Tangents of w and Q from those of u and Θ̂, by the chain rule; `out` holds the activation's partials."""
    if n_marks == 0:
        for k in range(first, n):
            dw[k] = out[1, k] * du[k]
            dq[k] = out[1, k] * dtheta[k] + theta[k] * (out[2, k] * du[k])
        return
    for k in range(first, n):
        by_left, by_right = out[3, k] * t + out[4, k] * T[k], out[7, k] * t + out[8, k] * T[k]
        dw[k] = out[1, k] * du[k] + by_left + by_right
        turn = out[2, k] * du[k] + out[5, k] * t + out[6, k] * T[k]
        dq[k] = out[1, k] * dtheta[k] + theta[k] * turn


@part_of_loop
def accumulate(by_value, by_tangent, w, q, V, Q, first, n):
    """Add one step of the left side to the weighted sums of the mean readout."""
    real = V.dtype.type
    zero, one, two = real(0), real(1), real(2)
    for k in range(first, n):
        V[k] += by_value * (one - _plain(w[k], zero, two))
        Q[k] += by_tangent * q[k]


@part_of_loop
def accumulate_rates(by_value, by_tangent, rate, w, q, dw, dq, dV, dQ, first, n):
    """Likewise d(ψ x) = ψ (dx + x d log ψ)."""
    real = dV.dtype.type
    zero, one, two = real(0), real(1), real(2)
    for k in range(first, n):
        dV[k] += by_value * (rate * (one - _plain(w[k], zero, two)) - dw[k])
        dQ[k] += by_tangent * (rate * q[k] + dq[k])
