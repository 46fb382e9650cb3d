"""V, V' and their partial derivatives by variances and covariance, for derivatives of kernels.

With f1, f2 for an activation at the two ends of a Gaussian pair of variances q, r and covariance s, Price's theorem
gives V_s = E[f1' f2'], V_q = E[f1'' f2]/2 and, one derivative further, V'_s = E[f1'' f2''], V'_q = E[f1''' f2']/2.
Closed forms are differentiated by hand and work at the precision that ``mpmath`` is set to.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

import mpmath
from mpmath import mpf

from .battery import LEAKY_SLOPE


class Partials(NamedTuple):
    """V, V' = V_s, and derivatives by q, r and s. ``parallel``: |c| = 1 exactly and V' has a kink there."""

    value: mpf
    slope: mpf
    value_q: mpf
    value_r: mpf
    slope_s: mpf
    slope_q: mpf
    slope_r: mpf
    parallel: bool = False


class Own(NamedTuple):
    """V(q, q, q), V'(q, q, q) and their derivatives by q."""

    value: mpf
    slope: mpf
    value_q: mpf
    slope_q: mpf


class Activation(Protocol):
    """What the recursion needs.

    ``at_zero`` is the value of the activation at zero, or None if `pair` knows variances of zero by itself.
    """

    at_zero: mpf | None

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials: ...

    def own(self, q: mpf) -> Own: ...


class _Smooth:
    """An activation whose partial derivatives are finite at q = r = s, so that `own` follows from `pair`."""

    at_zero: mpf | None = mpf(0)

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        raise NotImplementedError

    def own(self, q: mpf) -> Own:
        p = self.pair(q, q, q)
        return Own(p.value, p.slope, p.slope + p.value_q + p.value_r, p.slope_s + p.slope_q + p.slope_r)


class Identity(_Smooth):
    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        zero = mpf(0)
        return Partials(s, mpf(1), zero, zero, zero, zero, zero)


class Rectifier:
    """max(z, 0) + a min(z, 0): (1 - a) ReLU + a z. Slope a = 0 is ReLU, a = -1 the absolute value."""

    at_zero = mpf(0)

    def __init__(self, a: float) -> None:
        self.a = mpf(a)

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        """With the angle in units of 2π: V = (√(qr - s²) + s angle)/2π for ReLU, V' = angle/2π."""
        squared = q * r - s * s
        parallel = abs(squared) < q * r * mpf(10) ** (-3 * mpmath.mp.dps // 4)
        root = mpf(0) if parallel else mpmath.sqrt(squared)
        angle = mpmath.atan2(root, -s)  # π - arccos c
        turn, weight = 2 * mpmath.pi, (1 - self.a) ** 2
        bend = mpf(0) if parallel else weight / (turn * root)
        return Partials(
            value=weight * (root + s * angle) / turn + self.a * s,
            slope=weight * angle / turn + self.a,
            value_q=weight * root / (2 * turn * q),
            value_r=weight * root / (2 * turn * r),
            slope_s=bend,
            slope_q=-bend * s / (2 * q),
            slope_r=-bend * s / (2 * r),
            parallel=parallel,
        )

    def own(self, q: mpf) -> Own:
        half = (1 + self.a**2) / 2
        return Own(half * q, half, half, mpf(0))


class Erf(_Smooth):
    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        a, b = 1 + 2 * q, 1 + 2 * r
        determinant = a * b - 4 * s * s
        slope = 4 / (mpmath.pi * mpmath.sqrt(determinant))
        return Partials(
            value=2 / mpmath.pi * mpmath.asin(2 * s / mpmath.sqrt(a * b)),
            slope=slope,
            value_q=-slope * s / a,
            value_r=-slope * s / b,
            slope_s=slope * 4 * s / determinant,
            slope_q=-slope * b / determinant,
            slope_r=-slope * a / determinant,
        )


class Wave(_Smooth):
    """trend z + level + height sin(a z + b), given a and the sine and cosine of b.

    With e = exp(-a² q/2): E[sin(a z + b)] = e sin b and E[z' sin(a z + b)] = a s e cos b.
    """

    def __init__(self, a: mpf, sine: mpf, cosine: mpf, trend: mpf = 0, level: mpf = 0, height: mpf = 1) -> None:
        self.a, self.sine, self.cosine = mpf(a), mpf(sine), mpf(cosine)
        self.trend, self.level, self.height = mpf(trend), mpf(level), mpf(height)
        self.at_zero = None if self.sine or self.level else mpf(0)

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        A, k = self.a**2, self.cosine**2 - self.sine**2
        plus, minus = mpmath.exp(A * (s - (q + r) / 2)) / 2, k * mpmath.exp(A * (-s - (q + r) / 2)) / 2
        value, slope = self.height**2 * (plus - minus), self.height**2 * A * (plus + minus)
        e, f = mpmath.exp(-A * q / 2), mpmath.exp(-A * r / 2)
        tilt, lift = self.trend * self.height * self.a * self.cosine, self.level * self.height * self.sine
        return Partials(
            value=value + self.trend**2 * s + tilt * s * (e + f) + self.level**2 + lift * (e + f),
            slope=slope + self.trend**2 + tilt * (e + f),
            value_q=-A / 2 * (value + (tilt * s + lift) * e),
            value_r=-A / 2 * (value + (tilt * s + lift) * f),
            slope_s=A**2 * value,
            slope_q=-A / 2 * (slope + tilt * e),
            slope_r=-A / 2 * (slope + tilt * f),
        )


class Bell(_Smooth):
    """exp(-z²): V = 1/√D with D = (1 + 2q)(1 + 2r) - 4s²."""

    at_zero = None

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        a, b = 1 + 2 * q, 1 + 2 * r
        D = a * b - 4 * s * s
        value = 1 / mpmath.sqrt(D)
        slope = 4 * s * value / D
        return Partials(
            value=value,
            slope=slope,
            value_q=-value * b / D,
            value_r=-value * a / D,
            slope_s=4 * value / D * (1 + 12 * s * s / D),
            slope_q=-3 * slope * b / D,
            slope_r=-3 * slope * a / D,
        )


class Power:
    """max(z, 0)^p. W_n = 2π V of order n: W_0 = π - θ, W_1 = √(qr - s²) + s W_0, and
    W_{n+1} = (2n+1) s W_n + n² (qr - s²) W_{n-1}; V_s is p² times V of order p - 1."""

    at_zero = mpf(0)

    def __init__(self, p: int) -> None:
        self.p = p

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        p, squared = self.p, q * r - s * s
        if abs(squared) < q * r * mpf(10) ** (-3 * mpmath.mp.dps // 4):
            squared = mpf(0)
        root = mpmath.sqrt(squared)
        W = [mpmath.atan2(root, -s)]
        W.append(root + s * W[0])
        for n in range(1, p):
            W.append((2 * n + 1) * s * W[n] + n**2 * squared * W[n - 1])
        value, slope, bend = (
            factor * W[p - k] / (2 * mpmath.pi) for k, factor in enumerate((1, p**2, (p * (p - 1)) ** 2))
        )
        return Partials(
            value=value,
            slope=slope,
            value_q=(p * value - s * slope) / (2 * q),
            value_r=(p * value - s * slope) / (2 * r),
            slope_s=bend,
            slope_q=((p - 1) * slope - s * bend) / (2 * q),
            slope_r=((p - 1) * slope - s * bend) / (2 * r),
        )

    def own(self, q: mpf) -> Own:
        p, half = self.p, mpmath.fac2(2 * self.p - 3) / 2
        return Own(
            half * (2 * p - 1) * q**p,
            half * p**2 * q ** (p - 1),
            half * (2 * p - 1) * p * q ** (p - 1),
            half * p**2 * (p - 1) * q ** (p - 2),
        )


class Gelu(_Smooth):
    """z Φ(z). With a = 1 + q, b = 1 + r, D = ab - s², p = 1/(2π √D) and e = 1/a + 1/b + 1/D:

    V = s (1/4 + arcsin(s/√(ab))/2π) + p (qr - s² + s²/a + s²/b), V' = 1/4 + arcsin(s/√(ab))/2π + s p e.
    """

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        a, b = 1 + q, 1 + r
        determinant = a * b - s * s
        p = 1 / (2 * mpmath.pi * mpmath.sqrt(determinant))
        e = 1 / a + 1 / b + 1 / determinant
        both = mpf(1) / 4 + mpmath.asin(s / mpmath.sqrt(a * b)) / (2 * mpmath.pi)
        rest = q * r - s * s + s * s / a + s * s / b

        def by_variance(own: mpf, other: mpf) -> tuple[mpf, mpf]:
            """Derivatives of V and V' by the variance own - 1."""
            shrink = -other / (2 * determinant)  # of log p
            value = -p * s * s / (2 * own) + p * (shrink * rest + (other - 1) - s * s / own**2)
            slope = -p * s / (2 * own) + s * p * (shrink * e - 1 / own**2 - other / determinant**2)
            return value, slope

        (value_q, slope_q), (value_r, slope_r) = by_variance(a, b), by_variance(b, a)
        return Partials(
            value=s * both + p * rest,
            slope=both + s * p * e,
            value_q=value_q,
            value_r=value_r,
            slope_s=p * (1 + e + s * s * (e / determinant + 2 / determinant**2)),
            slope_q=slope_q,
            slope_r=slope_r,
        )


def closed_form(name: str) -> Activation:
    """An activation by name; sigmoid and tanh have no closed form."""
    if name in ("relu", "leaky_relu", "abs"):
        return Rectifier({"relu": 0.0, "leaky_relu": LEAKY_SLOPE, "abs": -1.0}[name])
    base, numbers = name.partition("(")[0], [mpf(float(x)) for x in re.findall(r"[\d.]+", name.partition("(")[2])]
    if base == "sinusoid":
        a, b = numbers
        return Wave(a, mpmath.sin(b), mpmath.cos(b))
    if base == "snake":  # z + sin²(a z)/a
        (a,) = numbers
        return Wave(2 * a, 1, 0, trend=1, level=1 / (2 * a), height=-1 / (2 * a))
    if base == "tilted_sin":
        return Wave(1, 0, 1, trend=numbers[0])
    if base == "rectified_power":
        return Power(int(numbers[0]))
    return {
        "identity": Identity,
        "erf": Erf,
        "sin": lambda: Wave(1, 0, 1),
        "cos": lambda: Wave(1, 1, 0),
        "gaussian": Bell,
        "gelu": Gelu,
    }[name]()
