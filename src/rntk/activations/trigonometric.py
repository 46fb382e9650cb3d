"""The sine: V = e^{-(q+q')/2} sinh s in forms that neither overflow nor cancel (theory.md, section 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arc import decay
from .arrays import LINEAR, ArrayForm, inverse, not_zero, signed
from .base import Activation, Array, Moments, Step, common_marks, ratio, register
from .compiled import no_overlap, part_of_loop, wide_vectors
from .signatures import FARTHEST

#: Relative differences of variances up to which two sides are compared by their difference.
COMPARABLE = 0.25
TINY = 1e-305
#: Derivatives beyond it belong to sides that don't move: times zero they must be zero.
LARGEST = 1e300


class Sine(Activation):
    """φ(z) = sin(z)."""

    name = "sin"
    odd = True

    def __call__(self, z: Array) -> Array:
        return np.sin(z)

    def derivative(self, z: Array) -> Array:
        return np.cos(z)

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        mean = (left + right) / 2
        if s.is_zero():
            return s, (-mean).exp()
        plus, minus = (s - mean).exp(), (-s - mean).exp()
        return (plus - minus) / 2, (plus + minus) / 2

    def moments(self, q: Array) -> Moments:
        decayed = np.exp(-2 * q)
        square = -np.expm1(-2 * q) / 2
        slope = np.where(q > 0, ratio(q * (1 + decayed) / 2, square), 1.0)
        growth = np.where(q > 0, ratio(q * decayed, square), 1.0)
        return Moments(square, slope, growth)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        psi = np.sqrt(moments.square)
        parts = [*common_marks(q), np.sqrt(q), np.exp(-q), psi, ratio(np.ones_like(psi), psi)]
        return np.stack([*parts, 0.5 * moments.growth])

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        return SineArrays(xp)

    def in_jax(self, z: Any) -> Any:
        import jax.numpy as jnp

        return jnp.sin(z)


@part_of_loop
def _pair(
    v: float, gap: float, root: float, fall: float, psi: float, over: float,
    root2: float, fall2: float, psi2: float, over2: float,
) -> Any:  # fmt: skip
    """w = 1 - V̂, V̂ by itself, V̂'/√(qq'), √(qq') and s (V̂'/√(qq') - V̂) for a pair at c = 1 - v ≥ 0; fall = e^-q."""
    product, both = root * root2, over * over2
    # D = (q+q')/2 - s, a sum of non-negative terms; V is half of e^-D - e^-(D + 2s).
    difference = root - root2
    square = gap * gap
    comparable = abs(gap) <= COMPARABLE
    norms = product * (square / (2.0 + math.sqrt(4.0 + square))) if comparable else difference * difference
    distance = 0.5 * norms + product * v
    peak, less = decay(distance)
    s = product * (1.0 - v)
    tail, fewer = decay(2.0 * s)
    value = -0.5 * peak * fewer * both
    cosh = 0.5 * peak * (1.0 + tail) * both
    # Close: half a squared distance, in which all terms are small, less that of the norms.
    _, drop = decay(abs(gap) * product)
    falls = drop * max(fall, fall2)
    apart = 0.5 * falls * (fall + fall2) / max(psi + psi2, TINY) * over
    near = 0.5 * (fall * fall2 / peak + 1.0) * -less - 0.25 * falls * falls
    close = comparable and distance <= 0.5 and norms <= product
    w = near * both - 0.5 * apart * apart * (psi * over2) if close else 1.0 - value
    return max(w, 0.0), value, cosh, product, s * (peak * tail * both)


def _forward(parameters: Any, left: Any, right: Any, gap: Any, w: Any, q: Any, rows: int, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    R2, R3, R4, R5 = right[2, first:n], right[3, first:n], right[4, first:n], right[5, first:n]
    for r in range(rows):
        wr, qr, gr = w[r, first:n], q[r, first:n], gap[r, first:n]
        L2, L3, L4, L5 = left[2, r], left[3, r], left[4, r], left[5, r]
        for k in range(n - first):
            d = wr[k]
            value, _, cosh, product, _ = _pair(abs(d), gr[k], L2, L3, L4, L5, R2[k], R3[k], R4[k], R5[k])
            wr[k] = value if d >= 0.0 else min(-value, FARTHEST)
            qr[k] *= cosh * product


def _partials(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, rows: int, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    for r in range(rows):
        for i in range(n - first):
            k = first + i
            d = u[r, k]
            v = abs(d)
            w, sinh, cosh, product, rest = _pair(
                v, gap[r, k], left[2, r], left[3, r], left[4, r], left[5, r],
                right[2, k], right[3, k], right[4, k], right[5, k],
            )  # fmt: skip
            sign = 1.0 if d >= 0.0 else -1.0
            out[0, r, k] = w if d >= 0.0 else min(-w, FARTHEST)
            out[1, r, k] = cosh * product
            out[2, r, k] = -sign * min(sinh * product * product, LARGEST)
            # Along log q, s moves by s/2 and e^{-q/2}/ψ by -(q + growth)/2; q - s and q' - s without cancellation.
            s, turn = product * (1.0 - v), gap[r, k] * product / max(left[2, r] + right[2, k], TINY)  # √q - √q'
            beyond, beyond2 = left[2, r] * turn, -right[2, k] * turn  # q - √(qq'), q' - √(qq')
            ahead, ahead2 = product * v + beyond, product * v + beyond2
            out[5, r, k] = product * ((0.5 - left[6, r]) * cosh - 0.5 * (ahead * cosh + rest))
            out[6, r, k] = product * ((0.5 - right[6, k]) * cosh - 0.5 * (ahead2 * cosh + rest))
            # V̂ at c = 1, and what it loses from there, which is small with v.
            height = 0.5 * decay(0.5 * turn * turn)[0] * left[5, r] * right[5, k]
            tail, fewer = decay(2.0 * product)
            other, less = decay(product + s)[0], -decay(product * v)[1]
            lost = height * (1.0 + other) * less
            moves = sign if gap[r, k] != 0.0 else 0.0
            comparable = abs(gap[r, k]) <= COMPARABLE
            for side in range(2):
                q = left[0, r] if side == 0 else right[0, k]
                half_growth = left[6, r] if side == 0 else right[6, k]
                over, off = (beyond, ahead) if side == 0 else (beyond2, ahead2)
                steps = product * v * (1.0 + tail) - less * (off + (q + s) * other)
                out[3 + side, r, k] = sign * (0.5 * height * steps - half_growth * lost)
                # q - √(qq') - (q + √(qq')) e^{-2√(qq')}: both ways cancel, where the other doesn't.
                step = over - (q + product) * tail if comparable else -q * fewer - product * (1.0 + tail)
                at_one = 0.5 * step - half_growth * fewer
                out[7 + side, r, k] = moves * height * at_one


class SineArrays(ArrayForm):
    """sin: (30) and (30a)."""

    odd = True

    def norm(self, root: Any) -> Any:
        return self.xp.where(root < LINEAR, root, self.xp.sqrt(-0.5 * self.xp.expm1(-2 * root * root)))

    def marks(self, root: Any) -> tuple[Any, ...]:
        psi = self.norm(root)
        return root, self.xp.exp(-root * root), psi, inverse(self.xp, psi)

    def growth(self, root: Any) -> tuple[Any, Any]:
        q, ratio = root * root, root * inverse(self.xp, self.norm(root))
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
        apart = 0.5 * falls * (fall + fall2) / not_zero(xp, psi + psi2) * over
        close = -0.5 * (fall * fall2 / not_zero(xp, peak) + 1) * xp.expm1(-distance) - 0.25 * falls * falls
        close = close * (over * over2) - 0.5 * apart * apart * (psi * over2)
        w = xp.where(comparable & (distance <= 0.5) & (norms <= product), close, 1 - value)
        w = xp.where(w > 0, w, xp.zeros_like(w))
        return signed(xp, d, v, w, root, root2), 0.5 * ratio * peak * (1 + tail)


sin = register(Sine())
