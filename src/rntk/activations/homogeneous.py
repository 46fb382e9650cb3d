"""Positively homogeneous activations: ReLU, leaky ReLU, identity, absolute value.

All of them are φ(z) = max(z, 0) + a min(z, 0), and in the unit-vector form all of them are one function of one
number: with β = (1-a)²/(1+a²), V̂ = β κ₁(c) + (1-β) c and V̂' = β κ₀(c) + 1 - β (theory.md, section 7).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import balls
from .arc import polynomial_a, polynomial_b
from .base import Activation, Array, Lanes, Moments
from .compiled import compile_pointer, inlined, wide_vectors
from .signatures import forward_signature, partials_signature


class Homogeneous(Activation):
    """φ(z) = z for z > 0 and a z below: every positively homogeneous activation of slope one."""

    homogeneous = True

    def __init__(self, name: str, a: float) -> None:
        if not np.isfinite(a):
            raise ValueError(f"the slope of a leaky ReLU must be a finite number, not {a!r}")
        self.name = name
        self.a = float(a)

    @property
    def unit_square(self) -> float:
        """ν = E[φ(z)²] for a standard normal z."""
        return (1 + self.a**2) / 2

    def __call__(self, z: Array) -> Array:
        return np.where(z > 0, z, self.a * z)

    def derivative(self, z: Array) -> Array:
        # At the kink the mean of both sides: what the Gaussian expectations see.
        return np.where(z > 0, 1.0, np.where(z < 0, self.a, (1 + self.a) / 2))

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        n, pi = (left * right).sqrt(), balls.pi()
        c = balls.correlation(s, n)
        low, high = balls.ends(c)
        # κ₁ rises by at most the change of c: a bound in which the two square roots that it is made of don't part.
        middle = min(max(c.mid(), balls.ball(-1)), balls.ball(1))
        sine = ((1 - middle) * (1 + middle)).sqrt()
        kappa1 = (sine + middle * (pi - balls.arccos(middle))) / pi + balls.ball(0, c.rad())
        kappa0 = 1 - balls.arccos(low).union(balls.arccos(high)) / pi  # rises with c
        spread = (1 - balls.ball(self.a)) ** 2 / 2
        return spread * n * kappa1 + self.a * s, spread * kappa0 + self.a

    def moments(self, q: Array) -> Moments:
        one = np.broadcast_to(1.0, q.shape)  # no memory: hot paths never read it
        return Moments(self.unit_square * q, one, one)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        return np.empty((0, *q.shape))

    @property
    def parameters(self) -> Array:
        return np.array([(1 - self.a) ** 2 / (1 + self.a**2)])

    def lanes(self, dtype: np.dtype[Any]) -> Lanes:
        return Lanes(
            compile_pointer(_forward, forward_signature(dtype)),
            compile_pointer(_partials, partials_signature(dtype)),
        )

    def _key(self) -> tuple[object, ...]:
        return (self.a,)


@inlined
def _dual(d: Any, beta: Any, one: Any, two: Any) -> Any:
    """w = 1 - V̂ and V̂' at the signed distance d: (24). The constants come in the precision of d."""
    rest = one - beta
    near = d >= 0
    v = min(abs(d), one)
    s = beta * math.sqrt(v)
    root = s * polynomial_b(v)
    # At the far end w is 2 - β, which for the absolute value is zero: opposite sides are equal there.
    w = (v if near else (two - beta) - rest * v) - s * v * polynomial_a(v)
    return w, (one - root if near else rest + root)


def _forward(parameters: Any, left: Any, right: Any, gap: Any, w: Any, q: Any, rows: int, first: int, n: int) -> None:
    wide_vectors()
    real = w.dtype.type
    one, two = real(1), real(2)
    beta = parameters[0]
    for r in range(rows):
        wr, qr = w[r, first:n], q[r, first:n]
        for k in range(n - first):
            value, slope = _dual(wr[k], beta, one, two)
            wr[k] = value
            qr[k] *= slope


def _partials(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, rows: int, first: int, n: int
) -> None:
    wide_vectors()
    real = u.dtype.type
    zero, one, two = real(0), real(1), real(2)
    beta = parameters[0]
    rest = one - beta
    over_pi = beta / real(math.pi)
    for r in range(rows):
        ur, value, slope, curve = u[r, first:n], out[0, r, first:n], out[1, r, first:n], out[2, r, first:n]
        for k in range(n - first):
            near = ur[k] >= 0
            v = min(abs(ur[k]), one)
            s = beta * math.sqrt(v)
            side = s * polynomial_b(v)
            value[k] = (v if near else (two - beta) - rest * v) - s * v * polynomial_a(v)
            slope[k] = one - side if near else rest + side
            # At v = 0 the derivative of V̂' by u is a cusp, and u doesn't move to first order.
            curve[k] = -over_pi / math.sqrt(v * (two - v)) if v > zero else zero


relu = Homogeneous("relu", 0.0)
identity = Homogeneous("identity", 1.0)
absolute = Homogeneous("abs", -1.0)


def leaky_relu(a: float = 0.01) -> Homogeneous:
    """max(z, 0) + a min(z, 0) in closed form.

    Examples
    --------
    >>> from rntk.activations import leaky_relu
    >>> leaky_relu(0.2)
    leaky_relu(0.2)
    """
    return Homogeneous(f"leaky_relu({a:g})", a)
