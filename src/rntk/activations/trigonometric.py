"""Waves, φ(z) = sin(a z + b): sine, cosine and every phase between, in forms that neither overflow nor cancel.

With Q = a² q, and s in the same units, V = e^{-(Q+Q')/2} (e^s - k e^{-s})/2 with k = cos 2b: one for the sine, minus
one for the cosine (theory.md, section 7).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import balls
from .arc import decay
from .arrays import LINEAR, ArrayForm, inverse, not_zero, signed
from .base import Activation, Array, Moments, Step, check_parameter, common_marks, ratio, register, register_family
from .compiled import no_overlap, part_of_loop, wide_vectors
from .signatures import FARTHEST

#: Relative differences of variances up to which two sides are compared by their difference.
COMPARABLE = 0.25
TINY = 1e-305
#: Derivatives beyond it belong to sides that don't move: times zero they must be zero.
LARGEST = 1e300
#: Frequencies and phases that have a name of their own.
NAMES = {(1.0, 0.0): "sin", (1.0, math.pi / 2): "cos"}


class Wave(Activation):
    """φ(z) = sin(a z + b)."""

    def __init__(self, a: float, b: float) -> None:
        self.a = check_parameter("sinusoid needs a frequency", a, signed=True)
        self.b = check_parameter("sinusoid needs a phase", b, 0.0, signed=True)
        self.name = NAMES.get((self.a, self.b), f"sinusoid({self.a!r}, {self.b!r})")
        self.largest_variance = min(4e307, 4e307 / self.a**2)

    @property
    def odd(self) -> bool:  # type: ignore[override]
        return math.sin(self.b) == 0

    @property
    def parameters(self) -> Array:
        """cos 2b, 1 - cos 2b and 1 + cos 2b."""
        return np.array([math.cos(2 * self.b), 2 * math.sin(self.b) ** 2, 2 * math.cos(self.b) ** 2])

    def __call__(self, z: Array) -> Array:
        return np.asarray(np.sin(self.a * z + self.b))

    def derivative(self, z: Array) -> Array:
        return np.asarray(self.a * np.cos(self.a * z + self.b))

    def in_jax(self, z: Any) -> Any:
        import jax.numpy as jnp

        return jnp.sin(self.a * z + self.b)

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        A, k = balls.ball(self.a) ** 2, (2 * balls.ball(self.b)).cos()
        mean = A * (left + right) / 2
        if s.is_zero():
            return (1 - k) / 2 * (-mean).exp(), A * (1 + k) / 2 * (-mean).exp()
        plus, minus = (A * s - mean).exp(), k * (-A * s - mean).exp()
        return (plus - minus) / 2, A * (plus + minus) / 2

    def moments(self, q: Array) -> Moments:
        k, twice_sine, twice_cosine = self.parameters
        Q = self.a**2 * q
        decayed, less = np.exp(-2 * Q), np.expm1(-2 * Q)
        square = 0.5 * twice_sine - k * less / 2
        slopes = 1 + k * decayed if k >= 0 else twice_cosine + k * less
        slope = np.where(square > 0, ratio(Q * slopes / 2, square), 1.0)
        growth = np.where(square > 0, ratio(k * Q * decayed, square), 1.0)
        return Moments(square, slope, growth)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        psi, Q = np.sqrt(moments.square), self.a**2 * q
        parts = [*common_marks(q), np.sqrt(Q), np.exp(-Q), psi, ratio(np.ones_like(psi), psi)]
        return np.stack([*parts, 0.5 * moments.growth, Q])

    def compiled_steps(self) -> tuple[Step, Step]:
        return (_odd_forward, _odd_partials) if self.odd else (_forward, _partials)

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        return WaveArrays(self, xp)

    def _key(self) -> tuple[object, ...]:
        return (self.a, self.b)


@part_of_loop
def _pair(
    v: float, far: bool, gap: float, k: float, twice_sine: float, twice_cosine: float,
    root: float, fall: float, psi: float, over: float, root2: float, fall2: float, psi2: float, over2: float,
) -> Any:  # fmt: skip
    """w = 1 - V̂, V̂ by itself, V̂'/√(QQ'), √(QQ') and s (V̂'/√(QQ') - V̂) for a pair at c = 1 - v ≥ 0; fall = e^-Q.

    Or, if `far`, at c = v - 1 ≤ 0.
    """
    product, both = root * root2, over * over2
    # D = (Q+Q')/2 - |s|, a sum of non-negative terms; 2V is e^-D - k e^-(D + 2s), or the other way round.
    difference = root - root2
    square = gap * gap
    comparable = abs(gap) <= COMPARABLE and product > 0.0
    norms = product * (square / (2.0 + math.sqrt(4.0 + square))) if comparable else difference * difference
    distance = 0.5 * norms + product * v
    peak, less = decay(distance)
    s = product * (1.0 - v)
    tail, fewer = decay(2.0 * s)
    short = less + peak * fewer  # e^-(D + 2s) - 1
    value = 0.5 * peak * (fewer + twice_sine) * both if far else -0.5 * peak * (k * fewer - twice_sine) * both
    sum_near = 1.0 + k * tail if k >= 0.0 else twice_cosine + k * fewer
    cosh = 0.5 * peak * (fewer + twice_cosine if far else sum_near) * both
    # Close: half a squared distance, in which all terms are small, less that of the norms (30a).
    apart_variances = abs(gap) * product if comparable else abs(difference) * (root + root2)
    _, drop = decay(apart_variances)
    falls = drop * max(fall, fall2)
    apart = 0.5 * k * falls * (fall + fall2) / max(psi + psi2, TINY) * over
    other_near = k * (fall * fall2 / peak) + 1.0 if k >= 0.0 else twice_cosine + k * short
    other_far = k * peak + 1.0 if k >= 0.0 else twice_cosine + k * less
    near = 0.5 * (other_far if far else other_near) * -(short if far else less) - 0.25 * k * falls * falls
    close = near * both <= 0.5 if twice_sine > 0.0 else comparable and distance <= 0.5
    w = near * both - 0.5 * apart * apart * (psi * over2) if close else 1.0 - value
    rest = s * (peak * tail * both) if far else s * (k * peak * tail * both)
    return max(w, 0.0), value, cosh, product, rest


@part_of_loop
def _forward_lanes(
    phase: float, twice_sine: float, twice_cosine: float, odd: bool,
    left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int,
) -> None:  # fmt: skip
    for k in range(first, n):
        d = u[k]
        value, _, cosh, product, _ = _pair(
            abs(d), d < 0.0 and not odd, gap[k], phase, twice_sine, twice_cosine,
            left[2], left[3], left[4], left[5], right[2, k], right[3, k], right[4, k], right[5, k],
        )  # fmt: skip
        w[k] = value if d >= 0.0 or not odd else min(-value, FARTHEST)
        q[k] = (cosh * product) * theta[k]


@part_of_loop
def _partials_lanes(
    phase: float, twice_sine: float, twice_cosine: float, odd: bool,
    left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int,
) -> None:  # fmt: skip
    for k in range(first, n):
        d = u[k]
        v = abs(d)
        far = d < 0.0 and not odd
        w, sinh, cosh, product, rest = _pair(
            v, far, gap[k], phase, twice_sine, twice_cosine, left[2], left[3], left[4], left[5],
            right[2, k], right[3, k], right[4, k], right[5, k],
        )  # fmt: skip
        sign = -1.0 if d < 0.0 and odd else 1.0
        out[0, k] = w if sign > 0.0 else min(-w, FARTHEST)
        out[1, k] = cosh * product
        out[2, k] = -sign * max(min(sinh * product * product, LARGEST), -LARGEST)
        # Along log q, s moves by s/2 and e^{-Q/2}/ψ by -(Q + growth)/2; Q - s and Q' - s without cancellation.
        s, turn = product * (1.0 - v), gap[k] * product / max(left[2] + right[2, k], TINY)  # √Q - √Q'
        turn = turn if product > 0.0 else left[2] - right[2, k]
        beyond, beyond2 = left[2] * turn, -right[2, k] * turn  # Q - √(QQ'), Q' - √(QQ')
        ahead, ahead2 = product * v + beyond, product * v + beyond2
        out[5, k] = product * ((0.5 - left[6]) * cosh - 0.5 * (ahead * cosh + rest))
        out[6, k] = product * ((0.5 - right[6, k]) * cosh - 0.5 * (ahead2 * cosh + rest))
        # V̂ at c = 1, and what it loses from there, which is small with 1 - c.
        height = 0.5 * decay(0.5 * turn * turn)[0] * left[5] * right[5, k]
        tail, fewer = decay(2.0 * product)
        tail_sum = 1.0 + phase * tail if phase >= 0.0 else twice_cosine + phase * fewer
        near_decay, near_less = decay(product * v)
        far_decay, far_less = decay(product + s)
        other, less = (near_decay, -far_less) if far else (far_decay, -near_less)
        other_sum = 1.0 + phase * other if phase >= 0.0 else twice_cosine + phase * (near_less if far else far_less)
        lost = height * other_sum * less
        moves = sign if gap[k] != 0.0 else 0.0
        comparable = abs(gap[k]) <= COMPARABLE
        for side in range(2):
            q = left[7] if side == 0 else right[7, k]
            half_growth = left[6] if side == 0 else right[6, k]
            over, off = (beyond, ahead) if side == 0 else (beyond2, ahead2)
            away, minus, plus = (product + s, q + s, off) if far else (product * v, off, q + s)  # √(QQ') - s, Q ∓ s
            steps = away * tail_sum - less * (minus + phase * plus * other)
            out[3 + side, k] = sign * (0.5 * height * steps - half_growth * lost)
            without = phase * fewer - twice_sine  # k e^{-2√(QQ')} - 1
            if odd or not comparable:
                # Q - √(QQ') - (Q + √(QQ')) e^{-2√(QQ')}: both ways cancel, where the other doesn't.
                step = over - phase * (q + product) * tail if comparable else -q * without - product * tail_sum
                at_one = 0.5 * step - half_growth * without
            else:
                # Proportional to Q - √(QQ'), by which e^-2Q differs from e^{-2√(QQ')} (30g).
                fall, inverse = (left[3], left[5]) if side == 0 else (right[3, k], right[5, k])
                change = decay(2.0 * abs(over))[1]
                change = tail * change if over >= 0.0 else -(fall * fall) * change
                scale = 0.5 * phase * (inverse * inverse)
                at_one = over * (scale * (fall * fall) + 0.5) * -without + scale * product * change
            out[7 + side, k] = moves * height * at_one


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    _forward_lanes(parameters[0], parameters[1], parameters[2], False, left, right, gap, u, theta, w, q, first, n)


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    _partials_lanes(parameters[0], parameters[1], parameters[2], False, left, right, gap, u, out, first, n)


# With constants for parameters half of the work falls away.


def _odd_forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    _forward_lanes(1.0, 0.0, 2.0, True, left, right, gap, u, theta, w, q, first, n)


def _odd_partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    _partials_lanes(1.0, 0.0, 2.0, True, left, right, gap, u, out, first, n)


class WaveArrays(ArrayForm):
    """sin(a z + b): (30) and (30a)."""

    def __init__(self, activation: Wave, xp: Any) -> None:
        super().__init__(xp)
        self.a, self.odd = abs(activation.a), activation.odd
        self.k, self.twice_sine, self.twice_cosine = map(float, activation.parameters)

    def norm(self, root: Any) -> Any:
        xp, Q = self.xp, (self.a * root) ** 2
        norm = xp.sqrt(0.5 * self.twice_sine - 0.5 * self.k * xp.expm1(-2 * Q))
        return xp.where(root < LINEAR, self.a * root, norm) if self.odd else norm

    def marks(self, root: Any) -> tuple[Any, ...]:
        psi = self.norm(root)
        return self.a * root, self.xp.exp(-((self.a * root) ** 2)), psi, inverse(self.xp, psi)

    def growth(self, root: Any) -> tuple[Any, Any]:
        Q, ratio = (self.a * root) ** 2, self.a * root * inverse(self.xp, self.norm(root))
        growth = self.k * ratio * ratio * self.xp.exp(-2 * Q)
        return growth, growth * (1 - 2 * Q - growth)

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp, k = self.xp, self.k
        (root, fall, psi, over), (root2, fall2, psi2, over2) = left, right
        v, product, ratio = xp.abs(d), root * root2, (root * over) * (root2 * over2)
        comparable = (xp.abs(gap) <= COMPARABLE) & (product > 0)
        # D = (Q+Q')/2 - |s|, a sum of non-negative terms; 2V is e^-D - k e^-(D + 2s), or the other way round.
        square, difference = gap * gap, root - root2
        norms = xp.where(comparable, product * (square / (2 + xp.sqrt(4 + square))), difference * difference)
        distance = 0.5 * norms + product * v
        s = product * (1 - v)
        peak, tail, less, fewer = xp.exp(-distance), xp.exp(-2 * s), xp.expm1(-distance), xp.expm1(-2 * s)
        short = less + peak * fewer
        value = -0.5 * peak * (k * fewer - self.twice_sine) * (over * over2)
        slopes = 1 + k * tail if k >= 0 else self.twice_cosine + k * fewer
        other = k * fall * fall2 / not_zero(xp, peak) + 1 if k >= 0 else self.twice_cosine + k * short
        larger = less
        if not self.odd:
            far = d < 0
            value = xp.where(far, 0.5 * peak * (fewer + self.twice_sine) * (over * over2), value)
            slopes = xp.where(far, fewer + self.twice_cosine, slopes)
            other = xp.where(far, 1 + k * peak if k >= 0 else self.twice_cosine + k * less, other)
            larger = xp.where(far, short, less)
        # Close: half a squared distance, in which all terms are small, less that of the norms.
        variances = xp.where(comparable, xp.abs(gap) * product, xp.abs(difference) * (root + root2))
        falls = xp.expm1(-variances) * xp.where(fall > fall2, fall, fall2)
        apart = 0.5 * k * falls * (fall + fall2) / not_zero(xp, psi + psi2) * over
        near = (-0.5 * other * larger - 0.25 * k * falls * falls) * (over * over2)
        close = near - 0.5 * apart * apart * (psi * over2)
        w = xp.where(comparable & (distance <= 0.5) if self.odd else near <= 0.5, close, 1 - value)
        w = xp.where(w > 0, w, xp.zeros_like(w))
        return signed(xp, d, v, w, root, root2) if self.odd else w, 0.5 * ratio * peak * slopes


sin = register(Wave(1.0, 0.0))
cos = register(Wave(1.0, math.pi / 2))


@register_family
def sinusoid(a: float = 1.0, b: float = 0.0) -> Wave:
    """sin(a z + b) in closed form.

    Examples
    --------
    >>> from rntk.activations import sinusoid
    >>> sinusoid(2.0, 0.5)
    sinusoid(2.0, 0.5)
    >>> sinusoid()
    sin
    """
    return Wave(a, b)
