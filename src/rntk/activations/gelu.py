"""GELU, φ(z) = z Φ(z): closed forms by arcsin, as good where it is a ReLU, at huge variances (theory.md, section 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from . import balls
from .arc import arccos_near, arcsin_excess
from .arrays import LINEAR, ArrayForm, arccos, arcsin_series, not_zero
from .base import Activation, Array, Moments, Step, common_marks, inverse_root, register
from .compiled import no_overlap, part_of_loop, wide_vectors

TINY = 1e-305
#: Relative differences of variances below which V̂(1) is taken from its derivative; the next term is below 1e-16 there.
CLOSE = 3e-4
#: And where that is rounding, from its second derivative.
CLOSER = 1e-6


class Gelu(Activation):
    """φ(z) = z Φ(z), Φ the distribution function of the standard normal."""

    name = "gelu"

    def __call__(self, z: Array) -> Array:
        return np.asarray(z * special.ndtr(z))

    def derivative(self, z: Array) -> Array:
        return np.asarray(special.ndtr(z) + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        pi, over = balls.pi(), 1 / (1 + left) + 1 / (1 + right)
        # A variance with itself: exactly zero, where a difference of huge numbers would cost their size in digits.
        across = balls.ball(0) if same else left * right - s * s
        determinant = 1 + left + right + across
        root = determinant.sqrt()
        both = balls.ball(1) / 4 + balls.flint().arb.atan2(s, root) / (2 * pi)  # arcsin s/√((1+q)(1+q'))
        return s * both + (across + s * s * over) / (2 * pi * root), both + s * (over + 1 / determinant) / (
            2 * pi * root
        )

    def moments(self, q: Array) -> Moments:
        _, share, b, deficit = self._sides(q)
        square = 0.5 * q * (1 - deficit)
        # V'(q, q, q) with arcsin q/(1+q) = π/2 - 2 arctan 1/√(1+2q) and D = 1 + 2q.
        root = np.sqrt(1 + 2 * q)
        step = 0.5 - np.arctan2(1.0, root) / np.pi + q / (2 * np.pi * root) * (2 * b + 1 / (1 + 2 * q))
        return Moments(square, 2 / (1 - deficit) * step, 1 + 2 * self._rise(share, b, deficit))

    def _rise(self, share: Array, b: Array, deficit: Array) -> Array:
        """d log(ψ/√q) / d log q, which vanishes at both ends (30c)."""
        rise = b * share / (1 - deficit) * (3 + 2 * share) / (2 * np.pi)
        return np.asarray(rise * np.sqrt(b / (1 + share)) / (1 + share))

    def _spread(self, share: Array, b: Array, deficit: Array, rise: Array) -> Array:
        """Half the squared speed of the unit activation along log q: V̂(1) is 1 - spread × ℓ² for close variances."""
        rim = b * (1 + share)
        turn = (0.5 * b - rise) * (3 + 2 * share) / (1 + share) + b / rim * share * (1.5 * share / (1 + share) - b)
        return np.asarray(share * np.square(b) / np.sqrt(rim) * turn / (4 * np.pi * (1 - deficit)))

    def _sides(self, q: Array) -> tuple[Array, Array, Array, Array]:
        """√q/√(1+q), its square, 1/(1+q), and the deficit ε of ψ² = (q/2)(1 - ε)."""
        b = 1 / (1 + q)
        root = np.sqrt(1 + 2 * q)
        share = q * b
        return np.sqrt(share), share, b, (2 * np.arctan2(1.0, root) - 2 * share / root) / np.pi

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        R, share, b, deficit = self._sides(q)
        # √(1+q)/ψ, so that V̂ = V/√((1+q)(1+q')) × both sides' marks.
        norm = inverse_root(0.5 * share * (1 - deficit))
        root = np.sqrt(1 - deficit)
        rise = self._rise(share, b, deficit)
        return np.stack(
            [*common_marks(q), R, 0.5 * b, deficit, root, 1 / root, norm, rise, self._spread(share, b, deficit, rise)]
        )

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        return GeluArrays(xp)

    def in_jax(self, z: Any) -> Any:
        import jax

        return jax.nn.gelu(z, approximate=False)


@part_of_loop
def _apart(R: float, half: float, R2: float, half2: float) -> float:
    """R - R'. R² is 1 - 1/(1+q): where both are close to one, their difference is that of the small parts."""
    return 2.0 * (half2 - half) / max(R + R2, TINY) if half + half2 < 0.25 else R - R2


@part_of_loop
def _pair(
    d: float, gap: float, R: float, half: float, lost: float, root: float, over: float, norm: float,
    rise: float, spread: float,
    R2: float, half2: float, lost2: float, root2: float, over2: float, norm2: float, rise2: float, spread2: float,
) -> Any:  # fmt: skip
    """w = 1 - V̂, V̂', and for the derivatives r, √(1 - r²), N²(1 - c²) and w at c = 1, of one pair.

    Everything is divided by √((1+q)(1+q')): N is √(qq') so divided, r = cN is s.
    """
    N, both = R * R2, norm * norm2
    v = abs(d)
    difference = _apart(R, half, R2, half2)
    sigma = 2.0 * (half + half2)  # 1/(1+q) + 1/(1+q')
    short = 0.5 * difference * difference + (half + half2)  # 1 - N, a sum of non-negative terms
    size = N * (1.0 - v)  # |r|
    y = short + N * v  # 1 - |r|
    deficit = y * (1.0 + size)
    A, B = math.sqrt(deficit), math.sqrt(short * (1.0 + N))
    across = N * N * (v * (2.0 - v))
    angle = arccos_near(y, size)
    product = 4.0 * half * half2  # 1/((1+q)(1+q'))
    # V̂ at c = 1: what it lacks of one follows from the deficits of either side and of the pair, all small together.
    angle1 = arccos_near(short, N)
    pair = (angle1 - N * sigma / B) / math.pi
    gaps = root - root2
    apart = (pair - 0.5 * (lost + lost2) - 0.5 * gaps * gaps) * (over * over2)
    # For close variances it is a quarter of its own derivative along their difference, times that.
    b, b2, share, share2 = 2.0 * half, 2.0 * half2, R * R, R2 * R2
    square, rim = N * N, short * (1.0 + N)
    by = b * ((share * share2 * b2 + square * b) / rim + square * (b - share))
    by2 = b2 * ((share * share2 * b + square * b2) / rim + square * (b2 - share2))
    close = 0.25 * gap * ((rise - rise2) - both / (4 * math.pi) / B * (by - by2))
    closer = 0.5 * (spread + spread2) * gap * gap
    apart = closer if abs(gap) < CLOSER else max(close if abs(gap) < CLOSE else apart, 0.0)
    # From c = 1 to c: every term small with v.
    joint = max(N * A + size * B, TINY)
    sine = across / joint
    excess = sine * arcsin_excess(min(sine, 0.5)) if sine <= 0.5 else (angle - angle1) - sine
    steps = across / (A + B) * (product / (A * B) + sigma - N * v * A / joint)
    drop = N * v * (math.pi - angle1) + size * excess + steps
    # Beyond a right angle: V itself, small.
    value = (across + size * size * sigma) / A - size * angle
    near = d >= 0.0
    w = apart + drop * both / (2 * math.pi) if near else 1.0 - value * both / (2 * math.pi)
    r = size if near else -size
    step = ((math.pi - angle if near else angle) + r / A * (sigma + product / deficit)) * both / (2 * math.pi)
    return w, N * step, r, A, across, apart


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    for k in range(first, n):
        value, slope, _, _, _, _ = _pair(
            u[k], gap[k], left[2], left[3], left[4], left[5], left[6], left[7], left[8], left[9],
            right[2, k], right[3, k], right[4, k], right[5, k], right[6, k], right[7, k], right[8, k], right[9, k],
        )  # fmt: skip
        w[k] = value
        q[k] = slope * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    for k in range(first, n):
        w, slope, r, A, across, apart = _pair(
            u[k], gap[k], left[2], left[3], left[4], left[5], left[6], left[7],
            left[8], left[9], right[2, k], right[3, k], right[4, k], right[5, k], right[6, k], right[7, k],
            right[8, k], right[9, k],
        )  # fmt: skip
        b, b2, share, share2 = 2 * left[3], 2 * right[3, k], left[2] * left[2], right[2, k] * right[2, k]
        both, N = left[7] * right[7, k] / (4 * math.pi), left[2] * right[2, k]
        deficit, square, rise, rise2 = A * A, r * r, left[8], right[8, k]
        ratio, ratio2 = b / deficit, b2 / deficit
        difference = _apart(left[2], left[3], right[2, k], right[3, k])
        short = 0.5 * difference * difference + 0.5 * (b + b2)
        rim = short * (1.0 + N)  # 1 - N²
        B = math.sqrt(rim)
        near = u[k] >= 0.0
        out[0, k] = w
        out[1, k] = slope
        curve = 1.0 + (ratio + ratio2) + b * ratio2 + 3.0 * square * ratio * ratio2
        out[2, k] = -2.0 * both * N * N * (curve / A)
        # How V and V' depart from those of a homogeneous φ along log q, and along log q' (30d).
        bend = (b - share) + (ratio + 2.0 * ratio2) - 3.0 * (across * ratio2 + share * b2 * ratio2) / deficit
        bend2 = (b2 - share2) + (ratio2 + 2.0 * ratio) - 3.0 * (across * ratio + share2 * b * ratio) / deficit
        turn = both * N * r / A
        out[5, k] = turn * b * bend - slope * rise
        out[6, k] = turn * b2 * bend2 - slope * rise2
        # Of V̂ at c = 1, and of the rest, which is small with 1 - c² (30e).
        at_one, at_one2 = 2.0 * b + b * b2 / rim, 2.0 * b2 + b * b2 / rim
        value1 = 1.0 - apart
        moves = 1.0 if gap[k] != 0.0 else 0.0
        out[7, k] = moves * (value1 * rise - both * b * N * N * at_one / B)
        out[8, k] = moves * (value1 * rise2 - both * b2 * N * N * at_one2 / B)
        if near:
            common = (rim - b * b2 * (1.0 - rim) / rim) / B * (1.0 + B / (A + B) * (B / A)) / A
            common -= (rim + b * b2) / deficit
            common -= rim / (B * (A + B))
            steps = 1.0 + common - 2.0 * b - 2.0 * b * (1.0 - rim) / (B * (A + B))
            steps2 = 1.0 + common - 2.0 * b2 - 2.0 * b2 * (1.0 - rim) / (B * (A + B))
            out[3, k] = -(w - apart) * rise - both * b * across / A * steps
            out[4, k] = -(w - apart) * rise2 - both * b2 * across / A * steps2
        else:
            by = (share2 * across + share * share2 * b2 + square * b) / deficit + square * (b - share)
            by2 = (share * across + share * share2 * b + square * b2) / deficit + square * (b2 - share2)
            out[3, k] = (1.0 - w) * rise - both / A * b * by - out[7, k]
            out[4, k] = (1.0 - w) * rise2 - both / A * b2 * by2 - out[8, k]


class GeluArrays(ArrayForm):
    """GELU: (30b) and (30c)."""

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
        both = norm * norm2 / not_zero(xp, N)
        sigma = 2 * (half + half2)
        # R² is 1 - 1/(1+q): where both are close to one, their difference is that of the small parts.
        difference = xp.where(half + half2 < 0.25, 2 * (half2 - half) / not_zero(xp, R + R2), R - R2)
        short = 0.5 * difference * difference + (half + half2)  # 1 - N, a sum of non-negative terms
        size = N * (1 - v)
        y = short + N * v  # 1 - |r|
        deficit, rim = y * (1 + size), short * (1 + N)
        A, B = xp.sqrt(deficit), xp.sqrt(rim)
        across = N * N * (v * (2 - v))
        angle, angle1 = arccos(xp, y, size), arccos(xp, short, N)
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
        joint = not_zero(xp, N * A + size * B)
        sine = across / joint
        low = xp.clip(sine, 0.0, 0.5)
        excess = xp.where(sine <= 0.5, low * (low * low) * arcsin_series(low * low), (angle - angle1) - sine)
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


gelu = register(Gelu())
