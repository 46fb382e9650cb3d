"""V, V' and their partial derivatives by variances and covariance, for derivatives of kernels.

With f1, f2 for an activation at the two ends of a Gaussian pair of variances q, r and covariance s, Price's theorem
gives V_s = E[f1' f2'], V_q = E[f1'' f2]/2 and, one derivative further, V'_s = E[f1'' f2''], V'_q = E[f1''' f2']/2.
Closed forms are differentiated by hand and work at the precision that ``mpmath`` is set to.
"""

from __future__ import annotations

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
    """What the recursion needs. ``at_zero`` is the value of the activation at zero."""

    at_zero: mpf

    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials: ...

    def own(self, q: mpf) -> Own: ...


class _Smooth:
    """An activation whose partial derivatives are finite at q = r = s, so that `own` follows from `pair`."""

    at_zero = mpf(0)

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


class Sine(_Smooth):
    def pair(self, q: mpf, r: mpf, s: mpf) -> Partials:
        plus, minus = mpmath.exp(s - (q + r) / 2) / 2, mpmath.exp(-s - (q + r) / 2) / 2
        value, slope = plus - minus, plus + minus
        return Partials(value, slope, -value / 2, -value / 2, value, -slope / 2, -slope / 2)


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
    return {"identity": Identity, "erf": Erf, "sin": Sine, "gelu": Gelu}[name]()
