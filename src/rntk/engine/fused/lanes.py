"""What happens to a block of lanes in one step: compiled loops that a sweep calls, each a line or two of theory.md.

Rows are sequences on the left, lanes run along memory (see `sweep`). Each function works on lanes `first` to `n` of
`rows` rows. Loops write one or two arrays and run over slices that begin at zero: that is what LLVM vectorises.
"""

from __future__ import annotations

from ...activations.compiled import inlined, wide_vectors
from .close import mirrored

#: Distances from being opposite below which they are summed up by themselves: 2 - u would lose too many digits.
OPPOSITE = 0.01


@inlined
def _signed(u, rest, one, farthest):
    """The signed distance, from u and 2 - u, each with its own digits: from equal or opposite, whichever is nearer."""
    return u if u <= one else min(-rest, farthest)


@inlined
def _plain(w, zero, two):
    """A signed distance as it is, between 0 and 2."""
    return w if w >= zero else two + w


@inlined
def mix_in_place(left, right, row, w, q, rows, first, n, farthest):
    """`mix` for one distance channel, nothing below and lanes that stay: no second buffer, half the memory."""
    wide_vectors()
    real = w.dtype.type
    zero, half, one, two = real(0), real(0.5), real(1), real(2)
    G, F = right[row, first:n], right[row + 1, first:n]
    for r in range(rows):
        gamma, f = left[row, r], left[row + 1, r]
        wr, qr = w[r, first:n], q[r, first:n]
        for k in range(n - first):
            g = gamma * G[k]
            dg = gamma - G[k]
            df, sf = f - F[k], f + F[k]
            before = wr[k]
            u = g * _plain(before, zero, two) + half * (dg * dg + df * df)
            rest = g * (two - before if before >= zero else -before) + half * (dg * dg + sf * sf)
            wr[k] = _signed(u, rest, one, farthest)
            qr[k] = (one - u) + g * qr[k]


@inlined
def mix(
    left, right, row, channels, upper, w_in, q_in, w_below, q_below, w_out, q_out, rows, first, n, shift, farthest
):  # fmt: skip
    """u, signed, into w_out and Θ̂ = 1 - u + γγ'Q (+ ηη'Q_below) into q_out: (21) and (22)."""
    wide_vectors()
    real = w_out.dtype.type
    zero, half, one, two = real(0), real(0.5), real(1), real(2)
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
                df, sf = f - F[k], f + F[k]
                before = wi[k]
                u = g * _plain(before, zero, two) + half * (dg * dg + df * df)
                rest = g * (two - before if before >= zero else -before) + half * (dg * dg + sf * sf)
                wo[k] = _signed(u, rest, one, farthest)
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
                u = g * _plain(wi[k], zero, two) + h * _plain(wb[k], zero, two) + half * (dg * dg + wo[k])
                wo[k] = _signed(u, two - u, one, farthest)
                qo[k] = (one - u) + g * qi[k] + h * qb[k]
        else:
            for k in range(count):
                g = gamma * G[k]
                dg = gamma - G[k]
                u = g * _plain(wi[k], zero, two) + half * (dg * dg + wo[k])
                wo[k] = _signed(u, two - u, one, farthest)
                qo[k] = (one - u) + g * qi[k]
        _oppose(left, right, row, channels, upper, wi, w_below, wo, r, first, n, farthest)


@inlined
def _oppose(left, right, row, channels, upper, wi, w_below, wo, r, first, n, farthest):
    """Lanes that are almost opposite: 1 + c as a sum of non-negative terms, as 1 - c is (21a)."""
    real = wo.dtype.type
    limit, none = real(-OPPOSITE), real(-1)
    nearest = none
    for k in range(n - first):
        nearest = max(nearest, wo[k] if wo[k] < real(0) else none)
    if nearest < limit:
        return
    for k in range(n - first):
        if limit < wo[k] < real(0):
            j = first + k
            rest = (left[row, r] - right[row, j]) ** 2
            total = left[row, r] * right[row, j] * mirrored(wi[k])
            start = row + 1
            if upper:  # norms of activations: what is opposite are those themselves
                rest += (left[start, r] - right[start, j]) ** 2
                total += left[start, r] * right[start, j] * mirrored(w_below[r, j])
                start += 1
            for c in range(start, row + 1 + channels):
                rest += (left[c, r] + right[c, j]) ** 2
            wo[k] = min(real(-(total + 0.5 * rest)), farthest)


@inlined
def spread_variances(left, right, row, gap, rows, first, n):
    """Relative differences of the variances of both sides, (q - q')/√(q q')."""
    wide_vectors()
    Q, O = right[row, first:n], right[row + 1, first:n]  # noqa: E741
    for r in range(rows):
        q, over = left[row, r], left[row + 1, r]
        out = gap[r, first:n]
        for k in range(n - first):
            out[k] = ((q - Q[k]) * over) * O[k]


@inlined
def mix_own(left, right, row, channels, upper, w_in, q_in, w_below, q_below, q_out, rows, first, n, shift):
    """Θ̂ from its gradient rows where its own term is not 1 - u: (17) in units."""
    wide_vectors()
    real = q_out.dtype.type
    zero, one, two = real(0), real(1), real(2)
    count = n - first
    start = row + 4 if upper else row + 2
    B, W = right[row, first:n], right[row + 1, first:n]
    for r in range(rows):
        b, omega = left[row, r], left[row + 1, r]
        wi, qi = w_in[r, first - shift : n - shift], q_in[r, first - shift : n - shift]
        qo = q_out[r, first:n]
        for k in range(count):
            qo[k] = b * B[k] * qi[k] + omega * W[k] * (one - _plain(wi[k], zero, two))
        if upper:
            d, p = left[row + 2, r], left[row + 3, r]
            D, P = right[row + 2, first:n], right[row + 3, first:n]
            wb, qb = w_below[r, first:n], q_below[r, first:n]
            for k in range(count):
                qo[k] += d * D[k] * qb[k] + p * P[k] * (one - _plain(wb[k], zero, two))
        for c in range(start, start + channels):
            z, Z = left[c, r], right[c, first:n]
            for k in range(count):
                qo[k] += z * Z[k]


@inlined
def mix_rates(
    left, right, row, channels, has_bias, upper, rate, own, own_channels, own_shift,
    w_in, q_in, w_below, q_below, dw_in, dq_in, dw_below, dq_below, dw_out, dq_out, rows, first, n, shift,
):  # fmt: skip
    """Tangents of `mix` and `mix_own` along one direction: du into dw_out, dΘ̂ into dq_out (section 8)."""
    wide_vectors()
    real = dw_out.dtype.type
    zero, one, two = real(0), real(1), real(2)
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
                du[k] = step + (gamma * G[k]) * ((tg + tG[k]) * _plain(wi[k], zero, two) + dwi[k])
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
            du[k] += (gamma * G[k]) * ((tg + tG[k]) * _plain(wi[k], zero, two) + dwi[k])
        if upper:
            eta, H = left[row + 1, r], right[row + 1, first:n]
            wb, dwb = w_below[r, first:n], dw_below[r, first:n]
            for k in range(count):
                du[k] += (eta * H[k]) * ((tf + tF[k]) * _plain(wb[k], zero, two) + dwb[k])
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
            near = one - _plain(wi[k], zero, two)
            dq[k] = bb * BB[k] * (t * qi[k] + dqi[k]) + oo * OO[k] * ((t + sw + sw) * near - dwi[k])
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
                near = one - _plain(wb[k], zero, two)
                dq[k] += dd * DD[k] * (t * qb[k] + dqb[k]) + pp * PP[k] * ((t + su + su) * near - dwb[k])
            start = own + 4
        # The last own channel is the bias where there is one; the others are inputs.
        for c in range(start, start + own_channels):
            z, Z = left[c, r], right[c, first:n]
            is_bias = has_bias == 1 and c == start + own_channels - 1
            for k in range(count):
                t = tb + tB[k] + sb + sb if is_bias else tf + tF[k] + su + su
                dq[k] += t * z * Z[k]


@inlined
def oppose_rates(
    left, right, row, channels, has_bias, upper, rate, d, w_in, w_below, dw_in, dw_below, dw_out, rows, first, n, shift
):  # fmt: skip
    """du of lanes that are almost opposite, from the terms of 1 + c."""
    real = d.dtype.type
    limit = real(-OPPOSITE)
    for r in range(rows):
        for k in range(first, n):
            if not limit < d[r, k] < real(0):
                continue
            i = k - shift
            gamma, gamma2, tg, tg2 = left[row, r], right[row, k], left[rate + 1, r], right[rate + 1, k]
            gap = gamma - gamma2
            total = gap * (gap * tg + gamma2 * (tg - tg2))
            total += gamma * gamma2 * ((tg + tg2) * mirrored(w_in[r, i]) - dw_in[r, i])
            start, end = row + 1, row + 1 + channels
            if upper:
                eta, eta2, tf, tf2 = left[start, r], right[start, k], left[rate + 2, r], right[rate + 2, k]
                gap = eta - eta2
                total += gap * (gap * tf + eta2 * (tf - tf2))
                total += eta * eta2 * ((tf + tf2) * mirrored(w_below[r, k]) - dw_below[r, k])
                start += 1
            for c in range(start, end):
                at = rate + 3 if has_bias == 1 and c == end - 1 else rate + 2
                both = left[c, r] + right[c, k]
                total += both * (both * left[at, r] + right[c, k] * (right[at, k] - left[at, r]))
            dw_out[r, k] = real(-total)


@inlined
def apply_partials(scratch, left, right, rate, stride, n_marks, w, q, dw_all, dq_all, rows, first, n):
    """From (u, Θ̂) and their tangents to (w, Q) and theirs, by the chain rule; `scratch` holds the partials."""
    wide_vectors()
    count = n - first
    for r in range(rows):
        wr, theta, W = w[r, first:n], q[r, first:n], scratch[0, r, first:n]
        D, Du = scratch[1, r, first:n], scratch[2, r, first:n]
        wa, wb = scratch[3, r, first:n], scratch[4, r, first:n]
        Da, Db = scratch[5, r, first:n], scratch[6, r, first:n]
        va, vb = scratch[7, r, first:n], scratch[8, r, first:n]
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
                    dw[k] = D[k] * du + (wa[k] * t + wb[k] * T[k]) + (va[k] * t + vb[k] * T[k])
                    dq[k] = D[k] * dq[k] + theta[k] * (Du[k] * du + Da[k] * t + Db[k] * T[k])
        for k in range(count):
            wr[k] = W[k]
            theta[k] *= D[k]


@inlined
def accumulate(left, weight, w_all, q_all, dw_all, dq_all, value, tangent, rows, first, n):
    """Add one step of the left side to the weighted sums of the mean readout."""
    wide_vectors()
    real = value.dtype.type
    zero, one, two = real(0), real(1), real(2)
    count = n - first
    for r in range(rows):
        w, q = w_all[r, first:n], q_all[r, first:n]
        V, Q = value[r, 0, 0, first:n], tangent[r, 0, 0, first:n]
        by_value, by_tangent = left[weight, r], left[weight + 1, r]
        for k in range(count):
            V[k] += by_value * (one - _plain(w[k], zero, two))
            Q[k] += by_tangent * q[k]
        for p in range(dw_all.shape[0]):
            # d(ψ x) = ψ (dx + x d log ψ); the rates of ψ follow the two weights.
            t = left[weight + 2 + p, r]
            dw, dq = dw_all[p, r, first:n], dq_all[p, r, first:n]
            dV, dQ = value[r, 1 + p, 0, first:n], tangent[r, 1 + p, 0, first:n]
            for k in range(count):
                dV[k] += by_value * (t * (one - _plain(w[k], zero, two)) - dw[k])
                dQ[k] += by_tangent * (t * q[k] + dq[k])


@inlined
def untie(w, q, blank, step, shift, left_lengths, right_lengths, lane_steps, rows, first, n):
    """Steps with different weights share nothing: Σ = Θ = 0, so u = 1 (Theorem 3)."""
    for r in range(rows):
        for k in range(first, n):
            other = lane_steps[k] != step if shift == 1 else right_lengths[k] != left_lengths[r]
            if other:
                w[r, k] = blank
                q[r, k] = 0
