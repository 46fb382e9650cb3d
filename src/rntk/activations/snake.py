"""Waves on a slope: Snake, z + sin²(az)/a, and a z + sin z (theory.md, section 7).

Both are h f(ωz) with f(y) = αy + λ + sin(y + b), b a multiple of a right angle: Snake with α = λ = 1 and the phase of a
negative cosine. Scales h and ω leave V̂ as it is but for Q = ω² q in place of q; everything below is about f.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import balls
from .arc import decay
from .base import Activation, Array, Moments, Step, check_parameter, common_marks, ratio, register_family
from .compiled import no_overlap, part_of_loop, wide_vectors
from .signatures import FARTHEST

#: Relative differences of variances up to which two sides are compared by their difference.
COMPARABLE = 0.25
TINY = 1e-305
#: Derivatives beyond it belong to sides that don't move: times zero they must be zero.
LARGEST = 1e300


class TiltedWave(Activation):
    """φ(z) = h f(ωz), f(y) = αy + λ + sin(y + b).

    Parameters
    ----------
    name : str
        By which it can be asked for.
    height, frequency : float
        h and ω.
    slope, level : float
        α and λ.
    sine, cosine : float
        Of the phase b: one of them is zero.
    """

    def __init__(
        self, name: str, height: float, frequency: float, slope: float, level: float, sine: float, cosine: float
    ) -> None:
        self.name = name
        self.height, self.frequency = float(height), float(frequency)
        self.parts = (float(slope), float(level), float(sine), float(cosine))
        self.largest_variance = 1e300 / max(1.0, self.frequency**2, (height * frequency * slope) ** 2)

    @property
    def odd(self) -> bool:  # type: ignore[override]
        return self.parts[1] == 0 and self.parts[2] == 0

    @property
    def parameters(self) -> Array:
        return np.array(self.parts)

    def __call__(self, z: Array) -> Array:
        alpha, level, sine, cosine = self.parts
        y = self.frequency * z
        return np.asarray(self.height * (alpha * y + (cosine * np.sin(y) + (level + sine * np.cos(y)))))

    def derivative(self, z: Array) -> Array:
        alpha, _, sine, cosine = self.parts
        y = self.frequency * z
        return np.asarray(self.height * self.frequency * (alpha + cosine * np.cos(y) - sine * np.sin(y)))

    def in_jax(self, z: Any) -> Any:
        import jax.numpy as jnp

        alpha, level, sine, cosine = self.parts
        y = self.frequency * z
        return self.height * (alpha * y + (cosine * jnp.sin(y) + (level + sine * jnp.cos(y))))

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        alpha, level, sine, cosine = map(balls.ball, self.parts)
        square, h = balls.ball(self.frequency) ** 2, balls.ball(self.height)
        mean, s = square * (left + right) / 2, square * s
        e, e2 = (-square * left / 2).exp(), (-square * right / 2).exp()
        plus, minus = (s - mean).exp() / 2, (-s - mean).exp() / 2
        linear = alpha**2 + alpha * cosine * (e + e2)
        value = (level + sine * e) * (level + sine * e2) + linear * s
        if not s.is_zero():
            value += sine**2 * (plus + minus - e * e2) + cosine**2 * (plus - minus)
        return h**2 * value, h**2 * square * (linear + sine**2 * (plus - minus) + cosine**2 * (plus + minus))

    def moments(self, q: Array) -> Moments:
        alpha, level, sine, cosine = self.parts
        k, tilt, lift = cosine**2 - sine**2, alpha * cosine, level * sine
        Q = self.frequency**2 * q
        e, E2 = np.exp(-Q / 2), np.exp(-2 * Q)
        square = self._unit_square(Q)
        slope = Q * (alpha**2 + 2 * tilt * e + cosine**2 + k * np.expm1(-2 * Q) / 2)
        growth = Q * (alpha**2 + tilt * e * (2 - Q) - lift * e + k * E2)
        some = square > 0
        return Moments(
            self.height**2 * square,
            np.where(some, ratio(slope, square), 1.0),
            np.where(some, ratio(growth, square), 1.0),
        )

    def _unit_square(self, Q: Array) -> Array:
        """E[f²]: of the mean, of the linear part, and of the rest, each a square."""
        alpha, _, sine, cosine = self.parts
        e, E, less = np.exp(-Q / 2), np.exp(-Q), np.expm1(-Q)
        rest = sine**2 * less**2 / 2 + cosine**2 * np.maximum(-np.expm1(-2 * Q) / 2 - Q * E, 0.0)
        return np.asarray(np.square(self._mean(Q)) + Q * np.square(alpha + e * cosine) + rest)

    def _mean(self, Q: Array) -> Array:
        """E[f], with its digits where it is small."""
        _, level, sine, _ = self.parts
        return np.asarray((level + sine) + sine * np.expm1(-Q / 2))

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        alpha, level, sine, cosine = self.parts
        k, Q = cosine**2 - sine**2, self.frequency**2 * q
        e, square = np.exp(-Q / 2), self._unit_square(Q)
        psi = np.sqrt(square)
        # Growth beyond that of a homogeneous function, which for large Q is what the wave adds.
        large = k * np.exp(-2 * Q) * (Q + 0.5) - (level**2 + 0.5)
        large = large - e * (alpha * cosine * Q * Q + level * sine * (Q + 2))
        beyond = np.where(Q > 1, ratio(large, square), moments.growth - 1)
        parts = [np.sqrt(Q), e, psi, ratio(np.ones_like(psi), psi), self._mean(Q), Q, 0.5 * beyond]
        return np.stack([*common_marks(q), *parts])

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def _key(self) -> tuple[object, ...]:
        return (self.height, self.frequency, self.parts)


@part_of_loop
def _pair(
    v: float, far: bool, gap: float, alpha: float, level: float, sine: float, cosine: float,
    root: float, e: float, psi: float, over: float, mean: float,
    root2: float, e2: float, psi2: float, over2: float, mean2: float,
) -> Any:  # fmt: skip
    """w, V̂', and of the wave alone V̂, V̂'/√(QQ') and s times the smaller exponential; at c = 1 - v, or v - 1 if far."""
    k, tilt, lift = cosine * cosine - sine * sine, alpha * cosine, level * sine
    product, both, falls = root * root2, over * over2, e + e2
    difference, square = root - root2, gap * gap
    comparable = abs(gap) <= COMPARABLE and product > 0.0
    norms = product * (square / (2.0 + math.sqrt(4.0 + square))) if comparable else difference * difference
    distance, s = 0.5 * norms + product * v, product * (1.0 - v)  # (Q+Q')/2 - |s|, and |s|
    peak, less = decay(distance)
    half, lesser = decay(s)
    tail, fewer = half * half, lesser * (half + 1.0)
    short = less + peak * fewer  # e^-(Q+Q')/2-|s| - 1
    linear = alpha * alpha + tilt * falls
    wave = 0.5 * peak * (2.0 * sine * sine + (fewer if far else -k * fewer))
    slope = 0.5 * peak * (2.0 * cosine * cosine + (fewer if far else k * fewer))
    rest = s * (peak * tail) * (1.0 if far else k)
    # From the means, the linear parts and the rest of either side.
    odd_part = cosine * cosine * (-0.5 * peak * fewer - e * e2 * s)
    value = (alpha + e * cosine) * (alpha + e2 * cosine) * s + odd_part
    value = mean * mean2 + 0.5 * sine * sine * peak * lesser * lesser + (-value if far else value)
    # Close: half a squared distance, in which all terms are small, less that of the norms.
    spread = gap * product if comparable else difference * (root + root2)  # Q - Q'
    drop = decay(0.5 * abs(spread))[1] * max(e, e2)
    turn = drop if spread >= 0.0 else -drop  # e - e'
    turns = turn * falls  # of their squares
    away, gone, other = (distance + 2.0 * s, short, less) if far else (distance, less, short)
    near = away * linear + 0.5 * tilt * spread * turn - 0.5 * gone * (2.0 * cosine * cosine + k * other)
    near -= 0.25 * k * turns * turns
    squares = spread * linear + turn * (tilt * (root * root + root2 * root2) + 2.0 * lift)
    squares -= 0.5 * k * turns * (e * e + e2 * e2)
    apart = squares / max(psi + psi2, TINY) * over
    close = comparable and near * both <= 0.5
    w = near * both - 0.5 * apart * apart * (psi * over2) if close else 1.0 - value * both
    return max(w, 0.0), product * (linear + slope) * both, wave * both, slope * both, rest * both


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    alpha, level, sine, cosine = parameters[0], parameters[1], parameters[2], parameters[3]
    odd = sine == 0.0
    for k in range(first, n):
        d = u[k]
        value, slope, _, _, _ = _pair(
            abs(d), d < 0.0 and not odd, gap[k], alpha, level, sine, cosine,
            left[2], left[3], left[4], left[5], left[6],
            right[2, k], right[3, k], right[4, k], right[5, k], right[6, k],
        )  # fmt: skip
        w[k] = value if d >= 0.0 or not odd else min(-value, FARTHEST)
        q[k] = slope * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    alpha, level, sine, cosine = parameters[0], parameters[1], parameters[2], parameters[3]
    phase, tilt, odd = cosine * cosine - sine * sine, alpha * cosine, sine == 0.0
    for k in range(first, n):
        d = u[k]
        v = abs(d)
        far, sign = d < 0.0 and not odd, -1.0 if d < 0.0 and odd else 1.0
        root, root2 = left[2], right[2, k]
        w, slope, wave, wave_slope, rest = _pair(
            v, far, gap[k], alpha, level, sine, cosine, root, left[3], left[4], left[5], left[6],
            root2, right[3, k], right[4, k], right[5, k], right[6, k],
        )  # fmt: skip
        product, both = root * root2, left[5] * right[5, k]
        s = product * (1.0 - v)
        out[0, k] = w if sign > 0.0 else min(-w, FARTHEST)
        out[1, k] = slope
        out[2, k] = -sign * max(min(wave * product * product, LARGEST), -LARGEST)
        turn = gap[k] * product / max(root + root2, TINY) if product > 0.0 else root - root2  # √Q - √Q'
        linear = alpha * alpha + tilt * (left[3] + right[3, k])
        # V at c = 1 but for its linear part, and what V loses from there, which is small with 1 - c.
        peak = decay(0.5 * turn * turn)[0]
        half, lesser = decay(product)
        tail, fewer = half * half, lesser * (half + 1.0)
        tail_sum = 2.0 * cosine * cosine + phase * fewer  # 1 + k e^{-2√(QQ')}
        near_decay, near_less = decay(product * v)
        far_decay, far_less = decay(product + s)
        other, less, other_less = (near_decay, -far_less, near_less) if far else (far_decay, -near_less, far_less)
        away = product + s if far else product * v  # √(QQ') - s
        lost = both * (away * linear + 0.5 * peak * less * (2.0 * cosine * cosine + phase * other_less))
        one = left[6] * right[6, k] + 0.5 * peak * (sine * sine * lesser * lesser - cosine * cosine * fewer)
        moves = sign if gap[k] != 0.0 else 0.0
        for side in range(2):
            Q, over = (left[7], root * turn) if side == 0 else (right[7, k], -root2 * turn)  # Q - √(QQ')
            e, beyond = (left[3], left[8]) if side == 0 else (right[3, k], right[8, k])
            mean = right[6, k] if side == 0 else left[6]
            ahead = product * v + over  # Q - |s|
            minus, plus = (Q + s, ahead) if far else (ahead, Q + s)
            steps = away * tail_sum - less * (minus + phase * plus * other)
            bent = tilt * Q * e
            by = 0.5 * away * (linear - bent) + 0.25 * peak * steps
            out[3 + side, k] = sign * (both * by - (0.5 + beyond) * lost)
            out[5 + side, k] = -beyond * slope - 0.5 * product * (ahead * wave_slope + rest + bent * both)
            # What a homogeneous function would give cancels, and is left out.
            by_one = sine * sine * -lesser * (product * half + 0.5 * over * lesser)
            by_one += cosine * cosine * (product * tail + 0.5 * over * fewer)
            by_one = 0.5 * (peak * by_one - Q * sine * e * mean)
            at_one = 0.5 * one + 0.5 * bent * product - by_one + beyond * (linear * product + one)
            out[7 + side, k] = moves * both * at_one


@register_family
def snake(a: float = 1.0) -> TiltedWave:
    """z + sin²(a z)/a in closed form, a > 0.

    Examples
    --------
    >>> from rntk.activations import snake
    >>> snake(0.5)
    snake(0.5)
    """
    a = check_parameter("snake needs a number", a)
    return TiltedWave(f"snake({a!r})", 1 / (2 * a), 2 * a, 1.0, 1.0, -1.0, 0.0)


@register_family
def tilted_sin(a: float = 1.0) -> TiltedWave:
    """a z + sin z in closed form, a > 0.

    Examples
    --------
    >>> from rntk.activations import tilted_sin
    >>> tilted_sin(0.5)
    tilted_sin(0.5)
    """
    a = check_parameter("tilted_sin needs a number", a)
    return TiltedWave(f"tilted_sin({a!r})", 1.0, 1.0, a, 0.0, 0.0, 1.0)
