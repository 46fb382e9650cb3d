"""The error function: closed forms by arcsin, stable for variances from tiny to huge (theory.md, section 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from . import balls
from .arc import arcsin_excess
from .arrays import LINEAR, ArrayForm, arcsin_series, inverse, not_zero, signed
from .base import Activation, Array, Moments, Step, common_marks, ratio, register
from .compiled import no_overlap, part_of_loop, wide_vectors
from .signatures import FARTHEST

#: Relative differences of variances up to which two sides are compared by their difference.
COMPARABLE = 0.25
TINY = 1e-305
#: Derivatives beyond it belong to sides that don't move: times zero they must be zero.
LARGEST = 1e300


class ErrorFunction(Activation):
    """φ(z) = erf(z)."""

    name = "erf"
    odd = True

    def __call__(self, z: Array) -> Array:
        return np.asarray(special.erf(z))

    def derivative(self, z: Array) -> Array:
        return np.asarray(2 / np.sqrt(np.pi) * np.exp(-np.square(z)))

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        pi, product = balls.pi(), (1 + 2 * left) * (1 + 2 * right)
        return 2 / pi * (2 * s / product.sqrt()).asin(), 4 / pi / (product - 4 * s * s).sqrt()

    def moments(self, q: Array) -> Moments:
        # arcsin(2q/(1+2q)) = arctan(2q/√(1+4q)) and q V'(q,q,q) = 4q/(π√(1+4q)): nothing cancels.
        root = np.sqrt(1 + 4 * q)
        square = 2 / np.pi * np.arctan(2 * q / root)
        slope = np.where(q > 0, ratio(4 / np.pi * q / root, square), 1.0)
        growth = np.where(q > 0, ratio(4 / np.pi * (q / (1 + 2 * q)) / root, square), 1.0)
        return Moments(square, slope, growth)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        psi, t, h = np.sqrt(moments.square), np.sqrt(1 + 4 * q), 1 / np.sqrt(1 + 2 * q)
        return np.stack(
            [
                *common_marks(q),
                np.sqrt(2 * q) * h,  # ρ
                0.5 * h * h,  # τ²/2
                h,
                t * h,
                4 * q / (1 + t) * h,  # (t - 1) h
                psi,
                ratio(np.ones_like(psi), psi),
                np.arctan2(1.0, t),  # half the angle arccos ρ² of the sequence with itself
                0.5 * h * h,  # d log ρ / d log q
                0.5 * moments.growth,  # d log ψ / d log q
            ]
        )

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        return ErrorFunctionArrays(xp)

    def in_jax(self, z: Any) -> Any:
        from jax.scipy.special import erf

        return erf(z)


@part_of_loop
def _pair(
    v: float, gap: float,
    rho: float, tau: float, h: float, t: float, less: float, psi: float, over: float, angle: float,
    rho2: float, tau2: float, h2: float, t2: float, less2: float, psi2: float, over2: float, angle2: float,
) -> Any:  # fmt: skip
    """w = 1 - V̂, V̂' , 1 - r² and r ≥ 0 for one pair at c = 1 - v ≥ 0; r = c ρ ρ' is the argument of the arcsin."""
    product, both = rho * rho2, over * over2
    difference = gap * product * (h * h2) / max(rho + rho2, TINY)  # ρ - ρ', with its digits however large q is
    r = product * (1.0 - v)
    y = 0.5 * difference * difference + (tau + tau2) + product * v  # 1 - r, a sum of non-negative terms (28)
    deficit = y * (1.0 + r)
    # The angle between the two activations exceeds the mean of their own by `turn`: its sine from (29a).
    root = math.sqrt(deficit)
    sines = t * h2 + t2 * h
    share = h * h2 * gap / sines  # (t - t') h h' = 2 ρρ' × it
    scaled = product / max(root * (less * t2 + less2 * h) + r * sines, TINY)  # without variance both are zero
    arc = scaled * 2.0 * (v * (2.0 - v) + share * share)
    sine = product * arc
    comparable = abs(gap) <= COMPARABLE
    close = comparable and sine <= 0.5
    near = y <= 0.5
    x = sine if close else (math.sqrt(0.5 * y) if near else r)
    excess = arcsin_excess(min(x, 0.5))
    # Close: half a squared distance, all terms small with it. Large variances: from small angles. Else from V.
    tangent = 2.0 * product * share / (h * h2 + t * t2)
    step = tangent * tangent
    bend = 1.0 - step * (1 / 3 - step * (1 / 5 - step * (1 / 7 - step * (1 / 9 - step * (1 / 11 - step * (1 / 13))))))
    norms = 4 / math.pi * tangent * bend * over / max(psi + psi2, TINY)  # (ψ - ψ')/ψ
    norms = norms if comparable else (psi - psi2) * over
    apart = 0.5 * norms * norms * (psi * over2)
    from_close = 2 / math.pi * (product * both) * arc * (1.0 + excess)
    from_angles = 2 / math.pi * (2.0 * (x + x * excess) - (angle + angle2)) * both
    from_value = 1.0 - 2 / math.pi * (x + x * excess) * both
    w = from_close - apart if close else (from_angles - apart if near else from_value)
    return max(w, 0.0), 2 / math.pi * (product * both) / root, deficit, r


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    for k in range(first, n):
        d = u[k]
        value, slope, _, _ = _pair(
            abs(d), gap[k], left[2], left[3], left[4], left[5], left[6], left[7], left[8], left[9],
            right[2, k], right[3, k], right[4, k], right[5, k], right[6, k], right[7, k], right[8, k], right[9, k],
        )  # fmt: skip
        w[k] = value if d >= 0.0 else min(-value, FARTHEST)
        q[k] = slope * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    for k in range(first, n):
        d = u[k]
        v = abs(d)
        value, slope, deficit, argument = _pair(
            v, gap[k], left[2], left[3], left[4], left[5], left[6], left[7], left[8],
            left[9], right[2, k], right[3, k], right[4, k], right[5, k], right[6, k], right[7, k], right[8, k],
            right[9, k],
        )  # fmt: skip
        sign = 1.0 if d >= 0.0 else -1.0
        L2, L3, R2, R3 = left[2], left[3], right[2, k], right[3, k]
        both = 2 / math.pi * left[8] * right[8, k]
        product, root = L2 * R2, math.sqrt(deficit)
        # At c = 1 the argument is ρρ'; from there V̂ = arcsin(r)/ψψ' moves by terms that are small with 1 - c.
        difference = gap[k] * product * (left[4] * right[4, k]) / max(L2 + R2, TINY)
        root1 = math.sqrt((0.5 * difference * difference + L3 + R3) * (1.0 + product))
        turn = product * (v * (2.0 - v)) / max(product * root + argument * root1, TINY)
        sine = min(product * turn, 1.0)
        angle = sine + sine * arcsin_excess(sine) if sine <= 0.5 else math.asin(sine)
        by_angle = both * (product * turn) / (root * root1)
        at_one = both * (product / root1)
        value1 = 1.0 - max(value - both * angle, 0.0)
        curve = argument * argument / deficit
        out[0, k] = value if d >= 0.0 else min(-value, FARTHEST)
        out[1, k] = slope
        out[2, k] = -sign * min(slope * product * argument / deficit, LARGEST)
        out[3, k] = sign * (by_angle * left[10] - both * angle * left[11])
        out[4, k] = sign * (by_angle * right[10, k] - both * angle * right[11, k])
        out[5, k] = slope * ((1.0 + curve) * left[10] - left[11])
        out[6, k] = slope * ((1.0 + curve) * right[10, k] - right[11, k])
        # Equal variances don't move w₁.
        moves = sign if gap[k] != 0.0 else 0.0
        out[7, k] = moves * (value1 * left[11] - at_one * left[10])
        out[8, k] = moves * (value1 * right[11, k] - at_one * right[10, k])


class ErrorFunctionArrays(ArrayForm):
    """erf: (28) to (29b)."""

    odd = True

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
            inverse(xp, psi),
            xp.atan2(xp.ones_like(t), t),
        )

    def growth(self, root: Any) -> tuple[Any, Any]:
        xp, q = self.xp, root * root
        ratio = root * inverse(xp, self.norm(root))
        growth = 4 / math.pi * ratio * ratio / (1 + 2 * q) / xp.sqrt(1 + 4 * q)
        return growth, growth * (1 - 2 * q / (1 + 2 * q) - 2 * q / (1 + 4 * q) - growth)

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (root, rho, tau, h, t, less, psi, over, angle) = left
        (root2, rho2, tau2, h2, t2, less2, psi2, over2, angle2) = right
        v, product, ratio = xp.abs(d), rho * rho2, (rho * over) * (rho2 * over2)
        difference = gap * product * (h * h2) / not_zero(xp, rho + rho2)  # ρ - ρ', with its digits however large q is
        r = product * (1 - v)
        y = 0.5 * difference * difference + (tau + tau2) + product * v  # 1 - r, a sum of non-negative terms (28)
        deficit = xp.sqrt(y * (1 + r))
        # The angle between the two activations exceeds the mean of their own by an angle with this sine (29b).
        sines = t * h2 + t2 * h
        share = h * h2 * gap / sines
        arc = (
            2 * (product / not_zero(xp, deficit * (less * t2 + less2 * h) + r * sines)) * (v * (2 - v) + share * share)
        )
        sine = product * arc
        comparable = xp.abs(gap) <= COMPARABLE
        tangent = 2 * product * share / (h * h2 + t * t2)
        norms = 4 / math.pi * xp.atan(tangent) * over / not_zero(xp, psi + psi2)  # (ψ - ψ')/ψ
        norms = xp.where(comparable, norms, (psi - psi2) * over)
        apart = 0.5 * norms * norms * (psi * over2)
        half = xp.clip(sine, 0.0, 0.5)
        close = 2 / math.pi * ratio * arc * (1 + half * half * arcsin_series(half * half))
        angles = 2 / math.pi * (2 * xp.asin(xp.sqrt(xp.clip(0.5 * y, 0.0, 1.0))) - (angle + angle2)) * (over * over2)
        value = 1 - 2 / math.pi * xp.asin(xp.clip(r, 0.0, 1.0)) * (over * over2)
        w = xp.where(y <= 0.5, angles - apart, value)
        w = xp.where(comparable & (sine <= 0.5), close - apart, w)
        w, slope = xp.where(w > 0, w, xp.zeros_like(w)), 2 / math.pi * ratio / deficit
        return signed(xp, d, v, w, root, root2), slope


erf = register(ErrorFunction())
