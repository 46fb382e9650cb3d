"""Closed forms of V̂ and V̂' as array expressions, in the unit-vector form of theory.md, section 7.

The compiled steps live with their activations; these live here, because what they are written in, the namespace of
the caller's arrays, exists in this engine only. Like those they take a signed distance (u = 1 - c, or beyond a right
angle -(1 + c)) and the relative difference of variances, give w = 1 - V̂ and V̂', and keep the digits of w however close
two sequences are.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from ...activations import Activation, Homogeneous
from ...activations.arc_coefficients import ARCSIN64
from ...activations.compiled import horner
from ...activations.error_function import ErrorFunction
from ...activations.gaussian_linear import GaussianLinear
from ...activations.sine import Sine

#: Below this u, the ReLU family's w is a short series: the closed form would subtract nearly equal terms. At this u it
#: loses two bits, and the next term of the series is below rounding.
SMALL = 0.01
#: Terms of that series by precision.
TERMS = {"float32": 3, "float64": 6}
#: Deviations below which an activation is linear to the last digit.
LINEAR = 1e-10
#: Relative differences of variances up to which two sides are compared by their difference.
COMPARABLE = 0.25
#: Relative differences below which GELU's V̂(1) is taken from its first, and from its second derivative.
CLOSE, CLOSER = 3e-4, 1e-6
TINY = 1e-305

_excess = horner(ARCSIN64, float)  # type: ignore[arg-type]


class Dual(Protocol):
    """What the recursion asks of an activation. Arrays are of the namespace the dual was made for."""

    homogeneous: bool
    odd: bool

    def norm(self, root: Any) -> Any:
        """ψ for a deviation √q."""
        ...

    def marks(self, root: Any) -> tuple[Any, ...]:
        """What `step` needs to know of each side, for deviations √q."""
        ...

    def growth(self, root: Any) -> tuple[Any, Any]:
        """d log ψ²/d log q, and its own derivative; not asked of homogeneous activations."""
        ...

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        """(w, V̂') at the signed distance d (23), w signed too if φ is odd; `gap` is (q - q')/√(q q')."""
        ...


def dual_of(activation: Activation, xp: Any, precision: str) -> Dual:
    """The array form of an activation, for arrays of namespace `xp`."""
    if isinstance(activation, Homogeneous):
        return HomogeneousDual(activation, xp, TERMS[precision])
    for kind, dual in ((ErrorFunction, ErrorFunctionDual), (Sine, SineDual), (GaussianLinear, GaussianLinearDual)):
        if isinstance(activation, kind):
            return dual(xp)
    raise ValueError(
        f"{activation.name} has no closed form, and the array engine has only those: relu, leaky_relu(a), identity, "
        "abs, erf, sin, gelu. Take one of them (erf is close to tanh), or bring the arrays to the CPU and take "
        'engine="fused"'
    )


class HomogeneousDual:
    """ReLU, leaky ReLU, identity, absolute value: (24) with the angle θ = arccos c in place of polynomials.

    w = u - β (sin θ - θ cos θ)/π and V̂' = 1 - β θ/π; beyond a right angle the same with the angle from being opposite.
    From v, θ = 2 arctan(√v/√(2-v)) has a small relative error, and where the difference of sines cancels, (25) takes
    over.
    """

    homogeneous, odd = True, False

    def __init__(self, activation: Homogeneous, xp: Any, terms: int) -> None:
        self.xp = xp
        self.root = math.sqrt(activation.unit_square)
        self.beta = (1 - activation.a) ** 2 / (1 + activation.a**2)
        self.series = [
            math.sqrt(2) / math.pi * math.comb(2 * k, k) / 8**k / (2 * k + 1) / (k + 1.5) for k in range(terms)
        ]

    def norm(self, root: Any) -> Any:
        return self.root * root

    def marks(self, root: Any) -> tuple[Any, ...]:
        return ()

    def growth(self, root: Any) -> tuple[Any, Any]:
        raise AssertionError("close pairs of homogeneous activations need no care")

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp, beta = self.xp, self.beta
        near, v = d >= 0, xp.abs(d)
        if beta == 0:
            return xp.where(near, v, 2 - v), xp.ones_like(d)
        root, other = xp.sqrt(v), xp.sqrt(2 - v)  # sin θ is their product
        turn = (2 * beta / math.pi) * xp.atan2(root, other)  # β θ/π
        sines = (beta / math.pi) * root * other - turn * (1 - v)
        tail = v * self.series[-1]
        for coefficient in self.series[-2:0:-1]:
            tail = (tail + coefficient) * v
        sines = xp.where(v < SMALL, (tail + self.series[0]) * (beta * v * root), sines)
        # At the far end w is 2 - β, which for the absolute value is zero: opposite sides are equal there.
        return xp.where(near, v, (2 - beta) - (1 - beta) * v) - sines, xp.where(near, 1 - turn, (1 - beta) + turn)


class ErrorFunctionDual:
    """erf: (28) to (29b)."""

    homogeneous, odd = False, True

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def norm(self, root: Any) -> Any:
        # arcsin(2q/(1+2q)) = arctan(2q/√(1+4q)): nothing cancels.
        q = root * root
        square = 2 / math.pi * self.xp.atan(2 * q / self.xp.sqrt(1 + 4 * q))
        return self.xp.where(root < LINEAR, math.sqrt(4 / math.pi) * root, self.xp.sqrt(square))

    def marks(self, root: Any) -> tuple[Any, ...]:
        xp, q = self.xp, root * root
        psi, t, h = self.norm(root), xp.sqrt(1 + 4 * q), 1 / xp.sqrt(1 + 2 * q)
        # √q, ρ, τ²/2, h, t h, (t - 1) h, ψ, 1/ψ and half the angle arccos ρ² of a sequence with itself.
        rho = math.sqrt(2) * root * h
        return (
            root,
            rho,
            0.5 * h * h,
            h,
            t * h,
            4 * q / (1 + t) * h,
            psi,
            _inverse(xp, psi),
            xp.atan2(xp.ones_like(t), t),
        )

    def growth(self, root: Any) -> tuple[Any, Any]:
        xp, q = self.xp, root * root
        ratio = root * _inverse(xp, self.norm(root))
        growth = 4 / math.pi * ratio * ratio / (1 + 2 * q) / xp.sqrt(1 + 4 * q)
        return growth, growth * (1 - 2 * q / (1 + 2 * q) - 2 * q / (1 + 4 * q) - growth)

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (root, rho, tau, h, t, less, psi, over, angle) = left
        (root2, rho2, tau2, h2, t2, less2, psi2, over2, angle2) = right
        v, product, ratio = xp.abs(d), rho * rho2, (rho * over) * (rho2 * over2)
        difference = gap * product * (h * h2) / _least(xp, rho + rho2)  # ρ - ρ', with its digits however large q is
        r = product * (1 - v)
        y = 0.5 * difference * difference + (tau + tau2) + product * v  # 1 - r, a sum of non-negative terms (28)
        deficit = xp.sqrt(y * (1 + r))
        # The angle between the two activations exceeds the mean of their own by an angle with this sine (29b).
        sines = t * h2 + t2 * h
        share = h * h2 * gap / sines
        arc = 2 * (product / _least(xp, deficit * (less * t2 + less2 * h) + r * sines)) * (v * (2 - v) + share * share)
        sine = product * arc
        comparable = xp.abs(gap) <= COMPARABLE
        tangent = 2 * product * share / (h * h2 + t * t2)
        norms = 4 / math.pi * xp.atan(tangent) * over / _least(xp, psi + psi2)  # (ψ - ψ')/ψ
        norms = xp.where(comparable, norms, (psi - psi2) * over)
        apart = 0.5 * norms * norms * (psi * over2)
        half = xp.clip(sine, 0.0, 0.5)
        close = 2 / math.pi * ratio * arc * (1 + half * half * _excess(half * half))
        angles = 2 / math.pi * (2 * xp.asin(xp.sqrt(xp.clip(0.5 * y, 0.0, 1.0))) - (angle + angle2)) * (over * over2)
        value = 1 - 2 / math.pi * xp.asin(xp.clip(r, 0.0, 1.0)) * (over * over2)
        w = xp.where(y <= 0.5, angles - apart, value)
        w = xp.where(comparable & (sine <= 0.5), close - apart, w)
        w, slope = xp.where(w > 0, w, xp.zeros_like(w)), 2 / math.pi * ratio / deficit
        return _linear(xp, d, v, w, root, root2), slope


class SineDual:
    """sin: (30) and (30a)."""

    homogeneous, odd = False, True

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def norm(self, root: Any) -> Any:
        return self.xp.where(root < LINEAR, root, self.xp.sqrt(-0.5 * self.xp.expm1(-2 * root * root)))

    def marks(self, root: Any) -> tuple[Any, ...]:
        psi = self.norm(root)
        return root, self.xp.exp(-root * root), psi, _inverse(self.xp, psi)

    def growth(self, root: Any) -> tuple[Any, Any]:
        q, ratio = root * root, root * _inverse(self.xp, self.norm(root))
        growth = ratio * ratio * self.xp.exp(-2 * q)
        return growth, growth * (1 - 2 * q - growth)

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (root, fall, psi, over), (root2, fall2, psi2, over2) = left, right
        v, product, ratio = xp.abs(d), root * root2, (root * over) * (root2 * over2)
        comparable = xp.abs(gap) <= COMPARABLE
        # D = (q+q')/2 - s, a sum of non-negative terms; V is half of e^-D - e^-(D + 2s).
        square = gap * gap
        norms = xp.where(comparable, product * (square / (2 + xp.sqrt(4 + square))), (root - root2) * (root - root2))
        distance = 0.5 * norms + product * v
        s = product * (1 - v)
        peak, tail = xp.exp(-distance), xp.exp(-2 * s)
        value = -0.5 * peak * xp.expm1(-2 * s) * (over * over2)
        # Close: half a squared distance, in which all terms are small, less that of the norms.
        falls = xp.expm1(-xp.abs(gap) * product) * xp.where(fall > fall2, fall, fall2)
        apart = 0.5 * falls * (fall + fall2) / _least(xp, psi + psi2) * over
        close = -0.5 * (fall * fall2 / _least(xp, peak) + 1) * xp.expm1(-distance) - 0.25 * falls * falls
        close = close * (over * over2) - 0.5 * apart * apart * (psi * over2)
        w = xp.where(comparable & (distance <= 0.5) & (norms <= product), close, 1 - value)
        w = xp.where(w > 0, w, xp.zeros_like(w))
        return _linear(xp, d, v, w, root, root2), 0.5 * ratio * peak * (1 + tail)


class GaussianLinearDual:
    """GELU: (30b) and (30c)."""

    homogeneous, odd = False, False

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def _parts(self, root: Any) -> tuple[Any, ...]:
        """1/(1+q), q/(1+q), and √(1 - ε) for ψ² = (q/2)(1 - ε), with ε."""
        xp, q = self.xp, root * root
        b, rim = 1 / (1 + q), xp.sqrt(1 + 2 * q)
        share = q * b
        lost = (2 * xp.atan2(xp.ones_like(rim), rim) - 2 * share / rim) / math.pi
        return b, share, lost, xp.sqrt(1 - lost)

    def norm(self, root: Any) -> Any:
        return math.sqrt(0.5) * root * self._parts(root)[3]

    def _rise(self, root: Any) -> Any:
        """d log(ψ/√q) / d log q (30c)."""
        b, share, lost, _ = self._parts(root)
        rise = b * share / (1 - lost) * (3 + 2 * share) / (2 * math.pi)
        return rise * self.xp.sqrt(b / (1 + share)) / (1 + share)

    def growth(self, root: Any) -> tuple[Any, Any]:
        b, share, _, _ = self._parts(root)
        rise, turn = self._rise(root), share * b / (1 + share)
        curve = b - share - 2 * rise + 2 * share * b / (3 + 2 * share) - 0.5 * (share + turn) - turn
        return 1 + 2 * rise, 2 * rise * curve

    def marks(self, root: Any) -> tuple[Any, ...]:
        b, share, lost, left = self._parts(root)
        rise, rim = self._rise(root), b * (1 + share)
        turn = (0.5 * b - rise) * (3 + 2 * share) / (1 + share) + b / rim * share * (1.5 * share / (1 + share) - b)
        spread = share * b * b / self.xp.sqrt(rim) * turn / (4 * math.pi * (1 - lost))
        R = root * self.xp.sqrt(b)
        # √q, R, b/2, ε, √(1-ε), R √(1+q)/ψ, its growth beyond that of √q, and half a squared speed along log q.
        return root, R, 0.5 * b, lost, left, math.sqrt(2) / left, rise, spread

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (root, R, half, lost, part, norm, rise, spread) = left
        (root2, R2, half2, lost2, part2, norm2, rise2, spread2) = right
        near, v = d >= 0, xp.abs(d)
        N = R * R2
        both = norm * norm2 / _least(xp, N)
        sigma = 2 * (half + half2)
        # R² is 1 - 1/(1+q): where both are close to one, their difference is that of the small parts.
        difference = xp.where(half + half2 < 0.25, 2 * (half2 - half) / _least(xp, R + R2), R - R2)
        short = 0.5 * difference * difference + (half + half2)  # 1 - N, a sum of non-negative terms
        size = N * (1 - v)
        y = short + N * v  # 1 - |r|
        deficit, rim = y * (1 + size), short * (1 + N)
        A, B = xp.sqrt(deficit), xp.sqrt(rim)
        across = N * N * (v * (2 - v))
        angle, angle1 = _arccos(xp, y, size), _arccos(xp, short, N)
        product = 4 * half * half2  # 1/((1+q)(1+q'))
        # V̂ at c = 1: what it lacks of one follows from the deficits of either side and of the pair, all small together.
        apart = (angle1 - N * sigma / B) / math.pi - 0.5 * (lost + lost2) - 0.5 * (part - part2) * (part - part2)
        apart = apart / (part * part2)
        # For close variances it is a quarter of its own derivative along their difference, times that.
        b, b2, share, share2, square = 2 * half, 2 * half2, R * R, R2 * R2, N * N
        by = b * ((share * share2 * b2 + square * b) / rim + square * (b - share))
        by2 = b2 * ((share * share2 * b + square * b2) / rim + square * (b2 - share2))
        close = 0.25 * gap * ((rise - rise2) - both / (4 * math.pi) / B * (by - by2))
        apart = xp.where(xp.abs(gap) < CLOSE, close, apart)
        apart = xp.where(apart > 0, apart, xp.zeros_like(apart))
        apart = xp.where(xp.abs(gap) < CLOSER, 0.5 * (spread + spread2) * gap * gap, apart)
        # From c = 1 to c: every term small with v.
        joint = _least(xp, N * A + size * B)
        sine = across / joint
        low = xp.clip(sine, 0.0, 0.5)
        excess = xp.where(sine <= 0.5, low * (low * low) * _excess(low * low), (angle - angle1) - sine)
        steps = across / (A + B) * (product / (A * B) + sigma - N * v * A / joint)
        drop = N * v * (math.pi - angle1) + size * excess + steps
        # Beyond a right angle: V itself, small.
        value = (across + size * size * sigma) / A - size * angle
        w = xp.where(near, apart + drop * both / (2 * math.pi), 1 - value * both / (2 * math.pi))
        r = xp.where(near, size, -size)
        slope = xp.where(near, math.pi - angle, angle) + r / A * (sigma + product / deficit)
        tiny = (root < LINEAR) & (root2 < LINEAR)  # half the identity
        w = xp.where(tiny, xp.where(near, v, 2 - v), w)
        return w, xp.where(tiny, xp.ones_like(w), norm * norm2 * slope / (2 * math.pi))


def _linear(xp: Any, d: Any, v: Any, w: Any, root: Any, root2: Any) -> Any:
    """w of an odd activation, signed as d is; where both variances are tiny it is the distance itself."""
    w = xp.where((root < LINEAR) & (root2 < LINEAR), v, w)
    return xp.where(d >= 0, w, opposite(xp, w))


def opposite(xp: Any, v: Any) -> Any:
    """The signed distance of sides that are v from being opposite; never zero, which would mean equal."""
    return -xp.where(v > 0, v, xp.full_like(v, float(xp.finfo(v.dtype).smallest_normal)))


def _arccos(xp: Any, y: Any, r: Any) -> Any:
    """arccos(r) for r in [0, 1]; y is 1 - r, given with all its digits."""
    return 2 * xp.atan2(xp.sqrt(y), xp.sqrt(1 + r))


def _least(xp: Any, x: Any) -> Any:
    """x, but not zero: for denominators of what is zero anyway."""
    return xp.where(x > TINY, x, xp.full_like(x, TINY))


def _inverse(xp: Any, x: Any) -> Any:
    """1/x, and 0 where x is 0."""
    some = x > 0
    return xp.where(some, 1 / xp.where(some, x, xp.ones_like(x)), xp.zeros_like(x))
