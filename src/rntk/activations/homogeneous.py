"""Positively homogeneous activations: ReLU, leaky ReLU, identity, absolute value.

All of them are φ(z) = max(z, 0) + a min(z, 0), and in the unit-vector form all of them are one function of one
number: with β = (1-a)²/(1+a²), V̂ = β κ₁(c) + (1-β) c and V̂' = β κ₀(c) + 1 - β (theory.md, section 7).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import balls
from .arc import arcs, arcs_and_rate
from .arrays import ArrayForm
from .base import Activation, Array, Moments, Step, check_parameter, register, register_family
from .compiled import inlined, no_overlap, wide_vectors

#: Below this u, w as an array expression is a short series: the closed form would subtract nearly equal terms. At this
#: u it loses two bits, and the next term of the series is below rounding.
SMALL = 0.01
#: Terms of that series by precision.
TERMS = {"float32": 3, "float64": 6}
#: Slopes below zero that have a name of their own.
NAMES = {0.0: "relu", 1.0: "identity", -1.0: "abs"}


class Homogeneous(Activation):
    """φ(z) = z for z > 0 and a z below: every positively homogeneous activation of slope one."""

    homogeneous = True

    def __init__(self, a: float) -> None:
        self.a = check_parameter("leaky_relu needs a slope", a, 0.0, signed=True)
        self.name = NAMES.get(self.a, f"leaky_relu({self.a!r})")

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

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        return HomogeneousArrays(self, xp, TERMS[precision])

    def in_jax(self, z: Any) -> Any:
        import jax.numpy as jnp

        return jnp.where(z > 0, z, self.a * z)

    def _key(self) -> tuple[object, ...]:
        return (self.a,)


@inlined
def _dual(d: Any, beta: Any, one: Any, two: Any) -> Any:
    """w = 1 - V̂ and V̂' at the signed distance d: (24). The constants come in the precision of d."""
    rest = one - beta
    near = d >= 0
    v = min(abs(d), one)
    less, root = arcs(v, beta * math.sqrt(v), one)
    # At the far end w is 2 - β, which for the absolute value is zero: opposite sides are equal there.
    w = (v if near else (two - beta) - rest * v) - v * less
    return w, (one - root if near else rest + root)


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    one, two = w.dtype.type(1), w.dtype.type(2)
    beta = parameters[0]
    for k in range(first, n):
        value, slope = _dual(u[k], beta, one, two)
        w[k] = value
        q[k] = slope * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    real = u.dtype.type
    zero, one, two = real(0), real(1), real(2)
    beta = parameters[0]
    rest = one - beta
    over_pi = beta / real(math.pi)
    for k in range(first, n):
        near = u[k] >= 0
        v = min(abs(u[k]), one)
        less, side, rate = arcs_and_rate(v, one)
        out[0, k] = (v if near else (two - beta) - rest * v) - v * (beta * less)
        out[1, k] = one - beta * side if near else rest + beta * side
        # At v = 0 the derivative of V̂' by u is a cusp, and u doesn't move to first order.
        out[2, k] = -over_pi * rate if v > zero else zero


class HomogeneousArrays(ArrayForm):
    """ReLU, leaky ReLU, identity, absolute value: (24) with the angle θ = arccos c in place of polynomials.

    w = u - β (sin θ - θ cos θ)/π and V̂' = 1 - β θ/π; beyond a right angle the same with the angle from being opposite.
    From v, θ = 2 arctan(√v/√(2-v)) has a small relative error, and where the difference of sines cancels, (25) takes
    over.
    """

    homogeneous = True

    def __init__(self, activation: Homogeneous, xp: Any, terms: int) -> None:
        super().__init__(xp)
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


relu = register(Homogeneous(0.0))
identity = register(Homogeneous(1.0))
absolute = register(Homogeneous(-1.0))


@register_family
def leaky_relu(a: float = 0.01) -> Homogeneous:
    """max(z, 0) + a min(z, 0) in closed form.

    Examples
    --------
    >>> from rntk.activations import leaky_relu
    >>> leaky_relu(0.2)
    leaky_relu(0.2)
    """
    return Homogeneous(a)
