"""Partial derivatives of V and V' for tanh and sigmoid, by sums that converge exponentially.

Three kinds of sums, all in integers with a fixed binary point:

- one sequence: the trapezoidal rule on the line;
- a pair with correlation near one: rotated coordinates g = √q (cos a z1 + sin a z2), g' = √r (cos a z1 - sin a z2) with
  cos 2a = c and independent z1, z2. The trapezoidal rule along z1; along z2 the activation hardly bends, and a short
  Gauss-Hermite rule does. Nothing happens at c = 1;
- any other pair: the trapezoidal rule in the plane. The density is a factor per axis times a function of the
  difference, so the double sum is a convolution, done by multiplying two long integers.

The nearest poles of tanh lie at ±iπ/2; they set the steps. Where inputs are large, tanh is ±1 almost everywhere, and
only sums over the neighbourhood of zero are left: of 1 - tanh tanh' on the line and in rotated coordinates, and in the
plane of what remains of tanh when an error function, which has closed forms, is taken away. How many digits are right
is for the caller to find out, by asking for more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import mul, sub

import mpmath
import numpy as np
from mpmath import mpf
from mpmath.libmp import MPZ

from .partials import Own, Partials

GUARD_DIGITS = 12  # for poles of order four, and for rounding
ERF_SLOPE = mpf(0.875)  # √π/2 would give erf the slope of tanh at zero; any number near it will do
NEAR = 0.03  # up to this √q sin a the rotated sum is the cheaper one

Integers = list[int]


class Tanh:
    """tanh to about ``digits`` digits, absolute for V' and relative to √(qr) for V."""

    at_zero = mpf(0)

    def __init__(self, digits: int) -> None:
        self.digits = digits

    def own(self, q: mpf) -> Own:
        if not q:
            return Own(mpf(0), mpf(1), mpf(1), mpf(-4))  # z² - 2z⁴/3 + ..., 1 - 2z² + ...
        need = _Need.of(self.digits, q, q)
        bits, root = need.bits, mpmath.sqrt(q)
        step = need.step(root)
        count = need.count(step, root)
        weight = _gaussian(step, count, mpf(1), bits)
        f, f1, f2, f3 = _derivatives(mpf(0), root * step, count, bits)

        def mean(a: Integers, b: Integers) -> mpf:
            total = sum(w * (x * y >> bits) for w, x, y in zip(weight, a, b, strict=True))
            total = mpf(2 * total - weight[0] * (a[0] * b[0] >> bits))
            return mpmath.ldexp(total, -2 * bits) * step / mpmath.sqrt(2 * mpmath.pi)

        value = 1 - mean(f1, [MPZ(1) << bits] * len(f1)) if need.saturated else mean(f, f)
        slope = mean(f1, f1)
        return Own(value, slope, slope + mean(f, f2), mean(f2, f2) + mean(f1, f3))

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        """For s < 0 by symmetry: V, V_q and V'_s are odd in s, V' and V'_q even."""
        c = min(abs(s) / mpmath.sqrt(q * r), mpf(1))
        if mpmath.sqrt(max(q, r) * (1 - c) / 2) < NEAR:
            sums = self._rotated(q, r, c)
        else:
            sums = self._plane(q, r, c)
        value, slope, left, right, bend, left_slope, right_slope = sums
        sign = -1 if s < 0 else 1
        return Partials(
            value=sign * value,
            slope=slope,
            value_q=sign * left / 2,
            value_r=sign * right / 2,
            slope_s=sign * bend,
            slope_q=left_slope / 2,
            slope_r=right_slope / 2,
        )

    def _rotated(self, q: mpf, r: mpf, c: mpf) -> list[mpf]:
        need = _Need.of(self.digits, q, r)
        bits, roots = need.bits, (mpmath.sqrt(q), mpmath.sqrt(r))
        along, across = mpmath.sqrt((1 + c) / 2), mpmath.sqrt((1 - c) / 2)
        step = need.step(max(roots) * along)
        count = need.count(step, min(roots) * along)
        weight = _gaussian(step, count, mpf(1), bits)
        weight = [weight[0]] + [2 * w for w in weight[1:]]  # (z1, z2) and (-z1, -z2) count alike
        totals = [mpf(0)] * len(PRODUCTS)
        order = need.order(max(roots) * across)
        for node, share in _gauss_hermite(order, bits // 128 * 128 + 128):
            g, h = (
                _derivatives(sign * root * across * node, root * along * step, count, bits)
                for sign, root in zip((1, -1), roots, strict=True)
            )
            g = [[w * value >> bits for w, value in zip(weight, values, strict=True)] for values in g]
            for k, (i, j) in enumerate(PRODUCTS):
                total = sum(map(mul, g[i], h[j]))
                totals[k] += share * ((sum(weight) << bits) - total if need.saturated and not k else total)
        result = [mpmath.ldexp(total, -2 * bits) * step / mpmath.sqrt(2 * mpmath.pi) for total in totals]
        return [1 - result[0], *result[1:]] if need.saturated else result

    def _plane(self, q: mpf, r: mpf, c: mpf) -> list[mpf]:
        need = _Need.of(self.digits, q, r)
        bits, roots = need.bits, (mpmath.sqrt(q), mpmath.sqrt(r))
        step = need.step(max(roots), 1 / (1 - c * c))
        counts = [need.count(step, root) for root in roots]
        sides, background = [], [mpf(0)] * len(PRODUCTS)
        for near, (root, count) in enumerate(zip(roots, counts, strict=True)):
            functions = list(_derivatives(mpf(0), root * step, count, bits))
            if need.saturated:
                functions[0] = list(map(sub, functions[0], _erf(ERF_SLOPE * root * step, count, bits)))
                # Given g, the mean of erf(k g') is an error function of g again.
                other = roots[1 - near]
                spread = 1 + 2 * (ERF_SLOPE * other) ** 2 * (1 - c * c)
                mean = _erf(ERF_SLOPE * c * other * step / mpmath.sqrt(spread), count, bits)
                mean = list(map(mul, mean, _gaussian(step, count, mpf(1), bits)))
                for k, order in ((0, 0), (2 + near, 2)):
                    total = mpmath.ldexp(mpf(2 * sum(map(mul, mean, functions[order]))), -3 * bits)
                    background[k] += total * step / mpmath.sqrt(2 * mpmath.pi)
            axis = _gaussian(step, count, 1 / (1 + c), bits)
            sides.append([[w * value >> bits for w, value in zip(axis, values, strict=True)] for values in functions])
        if need.saturated:
            a, b = (ERF_SLOPE * root / mpmath.sqrt(mpf(1) / 2 + (ERF_SLOPE * root) ** 2) for root in roots)
            background[0] += 2 / mpmath.pi * mpmath.asin(a * b * c)
        band = _gaussian(step, sum(counts), c / (1 - c * c), bits)
        blur = _Band([w for w in band if w], *counts, bits)
        smooth = [blur(right, parity) for right, parity in zip(sides[1], PARITIES, strict=True)]
        factor = step**2 / (2 * mpmath.pi * mpmath.sqrt(1 - c * c))
        result = []
        for (i, j), known in zip(PRODUCTS, background, strict=True):
            total = 2 * sum(map(mul, sides[0][i], smooth[j])) - sides[0][i][0] * smooth[j][0]
            result.append(known + factor * mpmath.ldexp(mpf(total), -2 * bits))
        return result


@dataclass(frozen=True)
class _Need:
    """What sums over g, g' of variances q, r need: errors below e^{-exponent}, integers of so many bits."""

    exponent: float
    bits: int
    saturated: bool  # the longer sum would reach far beyond the bend of tanh

    @classmethod
    def of(cls, digits: int, q: mpf, r: mpf) -> _Need:
        """More digits for small variances, for V is small too, and for large ones, whose derivatives cancel."""
        small, large = (max(0.0, float(mpmath.log(v))) for v in (1 / min(q, r), max(q, r)))
        exponent = (digits + GUARD_DIGITS) * math.log(10) + large
        bits = math.ceil((digits + 2 * GUARD_DIGITS) * math.log2(10) + (small + large) / math.log(2))
        need = cls(exponent, bits, False)
        return cls(exponent, bits, max(q, r) > (6 * need.bend / need.reach) ** 2)

    @property
    def reach(self) -> float:
        """Where the normal density is small enough."""
        return math.sqrt(2 * self.exponent)

    @property
    def bend(self) -> float:
        """From where on tanh is one."""
        return self.exponent / 2 + 1

    def count(self, step: mpf, deviation: mpf) -> int:
        """Steps on either side for f(deviation z)."""
        return math.ceil(min(self.reach, (self.bend + 1) / deviation) / step if self.saturated else self.reach / step)

    def step(self, deviation: mpf, sharpness: mpf | int = 1) -> mpf:
        """Step of the trapezoidal rule for f(deviation z) under a density that falls like e^{-sharpness z²/2}.

        Moving the line of integration up by y gains 2πy/h and costs sharpness y²/2; y ends at the pole.
        """
        pole, exponent = mpmath.pi / (2 * deviation), mpf(self.exponent)
        if sharpness * pole**2 > 2 * exponent:
            return 2 * mpmath.pi / mpmath.sqrt(2 * exponent * sharpness)
        return 2 * mpmath.pi * pole / (exponent + sharpness * pole**2 / 2)

    def order(self, deviation: mpf) -> int:
        """Nodes of a Gauss-Hermite rule for f(deviation z), from the growth of Hermite functions up to the pole."""
        if not deviation:
            return 1
        pole, order = mpmath.pi / (2 * deviation), 1
        while True:
            angle = float(mpmath.asinh(pole / (2 * math.sqrt(order + 0.5))))
            if 2 * order * (angle - math.expm1(-2 * angle) / 2) > self.bits * math.log(2):
                return order
            order += 1


PARITIES = (-1, 1, -1, 1)  # of tanh and its derivatives
PRODUCTS = ((0, 0), (1, 1), (2, 0), (0, 2), (2, 2), (3, 1), (1, 3))  # orders of derivatives on both sides


class Sigmoid:
    """1/(1 + e^{-z}) = (1 + tanh(z/2))/2, and tanh has mean zero."""

    at_zero = mpf(0.5)

    def __init__(self, digits: int) -> None:
        self.tanh = Tanh(digits)

    def own(self, q: mpf) -> Own:
        own = self.tanh.own(q / 4)
        return Own((1 + own.value) / 4, own.slope / 16, own.value_q / 16, own.slope_q / 64)

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        p = self.tanh.pair(q / 4, r / 4, s / 4)
        return Partials(
            value=(1 + p.value) / 4,
            slope=p.slope / 16,
            value_q=p.value_q / 16,
            value_r=p.value_r / 16,
            slope_s=p.slope_s / 64,
            slope_q=p.slope_q / 64,
            slope_r=p.slope_r / 64,
        )


def _derivatives(start: mpf, step: mpf, count: int, bits: int) -> tuple[Integers, Integers, Integers, Integers]:
    """tanh and its first three derivatives at start + i step, i = 0..count."""
    with mpmath.workprec(bits + 30):
        one = MPZ(1) << bits
        power, factor = (MPZ(int(mpmath.ldexp(mpmath.exp(-2 * z), bits + 30))) for z in (start, step))
    f = []
    for _ in range(count + 1):
        small = power >> 30
        f.append(((one - small) << bits) // (one + small))
        power = power * factor >> (bits + 30)
    f1 = [one - (t * t >> bits) for t in f]
    f2 = [-(t * p >> (bits - 1)) for t, p in zip(f, f1, strict=True)]
    f3 = [p * (4 * one - 6 * p) >> bits for p in f1]
    return f, f1, f2, f3


def _gaussian(step: mpf, count: int, sharpness: mpf, bits: int) -> Integers:
    """e^{-sharpness z²/2} at z = i step, i = 0..count."""
    more = bits + 30
    with mpmath.workprec(more):
        ratio = mpmath.exp(-sharpness * step * step / 2)
        value, factor, square = (MPZ(int(mpmath.ldexp(z, more))) for z in (mpf(1), ratio, ratio * ratio))
    result = []
    for _ in range(count + 1):
        result.append(value >> 30)
        value, factor = value * factor >> more, factor * square >> more
    return result


def _erf(step: mpf, count: int, bits: int) -> Integers:
    """erf(i step), i = 0..count."""
    one = MPZ(1) << bits
    result: Integers = []
    for i in range(count + 1):
        result.append(one if i and result[-1] >= one - 1 else MPZ(int(mpmath.ldexp(mpmath.erf(i * step), bits))))
    return result


@lru_cache(maxsize=256)
def _gauss_hermite(order: int, precision: int) -> tuple[tuple[mpf, mpf], ...]:
    """Nodes and weights for the standard normal density: Newton's method on the nodes in float64."""
    with mpmath.workprec(precision + 20):
        rule = []
        for start in np.polynomial.hermite_e.hermegauss(order)[0]:
            node, digits = mpf(float(start)), 12
            while True:
                before, last = mpf(0), mpf(1)  # orthonormal: √(k+1) he_{k+1} = z he_k - √k he_{k-1}
                for k in range(order):
                    before, last = last, (node * last - mpmath.sqrt(k) * before) / mpmath.sqrt(k + 1)
                if digits > 2 * mpmath.mp.dps:
                    break
                node -= last / (mpmath.sqrt(order) * before)
                digits *= 2
            rule.append((node, 1 / (order * before**2)))
        return tuple(rule)


class _Band:
    """Convolution with a symmetric band of positive integers, by one multiplication of long integers."""

    def __init__(self, band: Integers, left: int, right: int, bits: int) -> None:
        """From sequences with indices up to ±right to indices 0..left."""
        self.width, self.left, self.right, self.bits = len(band) - 1, left, right, bits
        self.size = (2 * bits + (2 * right + 1).bit_length() + 2 + 7) // 8  # bytes per term
        self.half = 1 << (8 * self.size - 1)
        self.terms = 2 * (right + self.width) + 1
        self.lift = MPZ(int.from_bytes(self.half.to_bytes(self.size, "little") * self.terms, "little"))
        self.packed = self._pack(band[:0:-1] + band)

    def __call__(self, values: Integers, parity: int) -> Integers:
        """Σ_j band[|i - j|] values[j] for i = 0..left, where values[-j] = parity values[j]."""
        mirrored, place = self._pack(values[:0:-1]), 8 * self.size * self.right
        product = ((self._pack(values) << place) + parity * mirrored) * self.packed + self.lift  # no term is negative
        content = int(product).to_bytes(self.size * self.terms + 1, "little")
        begin, size = self.right + self.width, self.size
        present = min(self.left, begin)  # beyond it there is nothing
        pieces = (content[size * k : size * (k + 1)] for k in range(begin, begin + present + 1))
        result = [(MPZ(int.from_bytes(piece, "little")) - self.half) >> self.bits for piece in pieces]
        return result + [MPZ(0)] * (self.left - present)

    def _pack(self, values: Integers) -> int:
        """Σ_k values[k] 2^(8 size k)."""
        packed = MPZ(0)
        for sign in (1, -1):
            if any(sign * value > 0 for value in values):
                parts = [int(max(sign * value, 0)).to_bytes(self.size, "little") for value in values]
                packed += sign * MPZ(int.from_bytes(b"".join(parts), "little"))
        return packed
