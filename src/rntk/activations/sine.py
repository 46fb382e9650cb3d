"""The sine: V = e^{-(q+q')/2} sinh s in a form that neither overflows nor cancels (theory.md, section 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compile_pointer, inlined
from .base import Activation, Array, Lanes, Moments, ratio
from .signatures import forward_signature, partials_signature


class Sine(Activation):
    """φ(z) = sin(z)."""

    name = "sin"

    def __call__(self, z: Array) -> Array:
        return np.sin(z)

    def derivative(self, z: Array) -> Array:
        return np.cos(z)

    def dual(self, q1: Array, q2: Array, s: Array) -> tuple[Array, Array]:
        mean = (q1 + q2) / 2
        plus, minus = np.exp(s - mean), np.exp(-s - mean)
        return (plus - minus) / 2, (plus + minus) / 2

    def moments(self, q: Array) -> Moments:
        decay = np.exp(-2 * q)
        square = -np.expm1(-2 * q) / 2
        slope = np.where(q > 0, ratio(q * (1 + decay) / 2, square), 1.0)
        growth = np.where(q > 0, ratio(q * decay, square), 1.0)
        return Moments(square, slope, growth)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, tolerance: float, least: int = 0) -> Array:
        psi = np.sqrt(moments.square)
        return np.stack([np.sqrt(q), ratio(np.ones_like(psi), psi), q / 2 + moments.growth / 2])

    @property
    def parameters(self) -> Array:
        return np.empty(0)

    def lanes(self, dtype: np.dtype[Any]) -> Lanes:
        return Lanes(
            compile_pointer(_forward, forward_signature(dtype)),
            compile_pointer(_partials, partials_signature(dtype)),
        )


@inlined
def _pair(u: Any, root: Any, root2: Any, over: Any, constants: Any) -> Any:
    """V̂ = sinh(s) e^{-(q+q')/2}/(ψψ') and the same with cosh; s may have either sign and any size."""
    zero, half, one, two = constants
    c = one - u
    distance = root - root2
    product = root * root2
    size = abs(c)
    # (q+q')/2 - |s| as a sum of non-negative terms; u or 2 - u, whichever measures from the nearer end.
    gap = half * distance * distance + product * (u if c >= zero else two - u)
    peak = half * math.exp(-gap) * over
    tail = math.expm1(-two * product * size)
    sinh = -peak * tail
    # Equal sides stay equal to the last bit: in a chaotic network a rounding error would grow with every step.
    sinh = one if u == zero and root == root2 and root > zero else sinh
    return (sinh if c >= zero else -sinh), peak * (two + tail), product


def _forward(parameters: Any, left: Any, right: Any, w: Any, q: Any, rows: int, first: int, n: int) -> None:
    real = w.dtype.type
    one = real(1)
    constants = (real(0), real(0.5), one, real(2))
    for r in range(rows):
        for k in range(first, n):
            sinh, cosh, product = _pair(w[r, k], left[0, r], right[0, k], left[1, r] * right[1, k], constants)
            w[r, k] = one - sinh
            q[r, k] *= cosh * product


def _partials(parameters: Any, left: Any, right: Any, u: Any, out: Any, rows: int, first: int, n: int) -> None:
    real = u.dtype.type
    one, half = real(1), real(0.5)
    constants = (real(0), half, one, real(2))
    for r in range(rows):
        for k in range(first, n):
            sinh, cosh, product = _pair(u[r, k], left[0, r], right[0, k], left[1, r] * right[1, k], constants)
            s = (one - u[r, k]) * product
            out[0, r, k] = one - sinh
            out[1, r, k] = cosh * product
            out[2, r, k] = -sinh * product * product
            # Along log q: s moves by s/2, e^{-q/2}/ψ by -(q + growth)/2, which is mark 2.
            out[3, r, k] = left[2, r] * sinh - half * s * cosh
            out[4, r, k] = right[2, k] * sinh - half * s * cosh
            out[5, r, k] = product * ((half - left[2, r]) * cosh + half * s * sinh)
            out[6, r, k] = product * ((half - right[2, k]) * cosh + half * s * sinh)


sin = Sine()
