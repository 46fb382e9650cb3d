"""The error function: closed forms by arcsin, stable for variances from tiny to huge (theory.md, section 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from ..compiled import compile_pointer, inlined, wide_vectors
from .arc import angle_over_root, arcsin_over_argument
from .base import Activation, Array, Lanes, Moments, ratio
from .signatures import forward_signature, partials_signature


class ErrorFunction(Activation):
    """φ(z) = erf(z)."""

    name = "erf"

    def __call__(self, z: Array) -> Array:
        return np.asarray(special.erf(z))

    def derivative(self, z: Array) -> Array:
        return np.asarray(2 / np.sqrt(np.pi) * np.exp(-np.square(z)))

    def dual(self, q1: Array, q2: Array, s: Array) -> tuple[Array, Array]:
        product = (1 + 2 * q1) * (1 + 2 * q2)
        value = 2 / np.pi * np.arcsin(np.clip(2 * s / np.sqrt(product), -1.0, 1.0))
        return value, 4 / np.pi / np.sqrt(product - 4 * s * s)

    def moments(self, q: Array) -> Moments:
        # arcsin(2q/(1+2q)) = arctan(2q/√(1+4q)) and q V'(q,q,q) = 4q/(π√(1+4q)): nothing cancels.
        root = np.sqrt(1 + 4 * q)
        square = 2 / np.pi * np.arctan(2 * q / root)
        slope = np.where(q > 0, ratio(4 / np.pi * q / root, square), 1.0)
        growth = np.where(q > 0, ratio(4 / np.pi * q / ((1 + 2 * q) * root), square), 1.0)
        return Moments(square, slope, growth)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, tolerance: float, least: int = 0) -> Array:
        psi = np.sqrt(moments.square)
        return np.stack(
            [
                np.sqrt(2 * q / (1 + 2 * q)),  # ρ
                0.5 / (1 + 2 * q),  # τ²/2
                psi,
                ratio(np.ones_like(psi), psi),
                # Half the angle arccos(ρ²) of the sequence with itself, as an arctan that keeps its digits.
                0.5 * np.arctan2(np.sqrt(1 + 4 * q), 2 * q),
                0.5 / (1 + 2 * q),  # d log ρ / d log q
                0.5 * moments.growth,  # d log ψ / d log q
            ]
        )

    @property
    def parameters(self) -> Array:
        return np.empty(0)

    def lanes(self, dtype: np.dtype[Any]) -> Lanes:
        return Lanes(
            compile_pointer(_forward, forward_signature(dtype)),
            compile_pointer(_partials, partials_signature(dtype)),
        )


@inlined
def _pair(u: Any, rho: Any, rho2: Any, tau: Any, psi: Any, psi2: Any, over: Any, angles: Any, constants: Any) -> Any:
    """w = 1 - V̂, 1 - r² and r for one pair, r = c ρ ρ' the argument of the arcsin."""
    zero, half, one, three_halves, two, two_over_pi = constants
    difference = rho - rho2
    # y = 1 - r as a sum of non-negative terms.
    y = half * difference * difference + tau + rho * rho2 * u
    v = max(min(y, two - y), zero)
    tail = min(v, half)
    angle = math.sqrt(tail) * angle_over_root(tail)
    r = (one - u) * (rho * rho2)
    bounded = max(min(r, half), -half)
    direct = two_over_pi * (bounded * arcsin_over_argument(bounded * bounded))
    # r near 1: half the squared distance of the two activations, from the angles; nothing of order one cancels.
    gap = psi - psi2
    distance = two_over_pi * (angle - angles) - half * gap * gap
    # r near -1: V = (2/π)(angle to the opposite) - 1.
    value = direct if y <= three_halves else two_over_pi * angle - one
    w = distance * over if y < half else one - value * over
    # Equal sides stay equal to the last bit: in a chaotic network a rounding error would grow with every step.
    w = zero if u == zero and rho == rho2 else w
    return w, v * (two - v), r


def _forward(parameters: Any, left: Any, right: Any, w: Any, q: Any, rows: int, first: int, n: int) -> None:
    wide_vectors()
    real = w.dtype.type
    two_over_pi, tiny = real(2 / math.pi), real(1e-305)
    constants = (real(0), real(0.5), real(1), real(1.5), real(2), two_over_pi)
    R0, R1, R2 = right[0, first:n], right[1, first:n], right[2, first:n]
    R3, R4 = right[3, first:n], right[4, first:n]
    for r in range(rows):
        wr, qr = w[r, first:n], q[r, first:n]
        rho, tau, psi, inverse, angle = left[0, r], left[1, r], left[2, r], left[3, r], left[4, r]
        for k in range(n - first):
            over = inverse * R3[k]
            value, deficit, _ = _pair(wr[k], rho, R0[k], tau + R1[k], psi, R2[k], over, angle + R4[k], constants)
            wr[k] = value
            qr[k] *= two_over_pi * (rho * R0[k]) * over / math.sqrt(max(deficit, tiny))


def _partials(parameters: Any, left: Any, right: Any, u: Any, out: Any, rows: int, first: int, n: int) -> None:
    wide_vectors()
    real = u.dtype.type
    one, two_over_pi, tiny = real(1), real(2 / math.pi), real(1e-305)
    constants = (real(0), real(0.5), one, real(1.5), real(2), two_over_pi)
    for r in range(rows):
        for i in range(n - first):
            k = first + i
            over = left[3, r] * right[3, k]
            product = left[0, r] * right[0, k]
            value, deficit, argument = _pair(
                u[r, k],
                left[0, r],
                right[0, k],
                left[1, r] + right[1, k],
                left[2, r],
                right[2, k],
                over,
                left[4, r] + right[4, k],
                constants,
            )
            deficit = max(deficit, tiny)
            slope = two_over_pi * product * over / math.sqrt(deficit)
            # V̂ and V̂' through r = c ρ ρ' and through the norms ψ ψ'.
            by_angle = two_over_pi * over / math.sqrt(deficit) * argument
            curve = argument * argument / deficit
            norm = one - value
            out[0, r, k] = value
            out[1, r, k] = slope
            out[2, r, k] = -slope * product * argument / deficit
            out[3, r, k] = norm * left[6, r] - by_angle * left[5, r]
            out[4, r, k] = norm * right[6, k] - by_angle * right[5, k]
            out[5, r, k] = slope * ((one + curve) * left[5, r] - left[6, r])
            out[6, r, k] = slope * ((one + curve) * right[5, k] - right[6, k])


erf = ErrorFunction()
