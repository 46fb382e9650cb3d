"""Rectified powers, φ(z) = max(z, 0)^p for p = 2, 3, …: arc-cosine kernels of order p (theory.md, section 7).

V̂ is a function of the correlation alone, κ_p(c), by κ_{n+1} = c κ_n + ρ_n (1 - c²) κ_{n-1}, ρ_n = n²/(4n² - 1), from
the κ₀ and κ₁ of the ReLU; and its derivative is p²/(2p - 1) κ_{p-1}. φ(k z) = k^p φ(z): variances grow with the power p
at every step, and are refused where no float64 holds them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import balls
from .arc import arcs
from .base import Activation, Array, Moments, Step, common_marks, register_family
from .compiled import no_overlap, part_of_loop, wide_vectors

#: Orders beyond it have no use, and variances that soon leave any range.
LARGEST_ORDER = 20


class RectifiedPower(Activation):
    """φ(z) = max(z, 0)^p."""

    def __init__(self, p: int) -> None:
        if p not in range(2, LARGEST_ORDER + 1):
            raise ValueError(
                f"the order of a rectified power must be a whole number from 2 to {LARGEST_ORDER}, not {p!r}; "
                "order 1 is relu"
            )
        self.p = int(p)
        self.name = f"rectified_power({self.p})"
        #: E[φ(z)²] for a standard normal z: half of 1 · 3 · … · (2p - 1).
        self.unit_square = math.prod(range(1, 2 * self.p, 2)) / 2
        self.largest_variance = (1e300 / self.unit_square) ** (1 / self.p)

    def __call__(self, z: Array) -> Array:
        return np.asarray(np.maximum(z, 0.0) ** self.p)

    def derivative(self, z: Array) -> Array:
        return np.asarray(self.p * np.maximum(z, 0.0) ** (self.p - 1))

    def in_jax(self, z: Any) -> Any:
        import jax.numpy as jnp

        return jnp.maximum(z, 0) ** self.p

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        p, n, pi = self.p, (left * right).sqrt(), balls.pi()
        c = balls.ball(1) if same else balls.correlation(s, n)
        # Every order rises with c between -1 and 1, so what few bits leave open of c lies between the ends.
        ends = [self._orders(end, pi) for end in balls.ends(c)]
        value, slope = (ends[0][k].union(ends[1][k]) for k in (p, p - 1))
        return n**p * value / (2 * pi), p**2 * n ** (p - 1) * slope / (2 * pi)

    def _orders(self, c: Any, pi: Any) -> list[Any]:
        """J₀ to J_p at an exact correlation: J_{n+1} = (2n+1) c J_n + n² (1 - c²) J_{n-1}."""
        squared = (1 - c) * (1 + c)
        J = [pi - balls.arccos(c)]
        J.append(squared.sqrt() + c * J[0])
        for n in range(1, self.p):
            J.append((2 * n + 1) * c * J[n] + n**2 * squared * J[n - 1])
        return J

    def moments(self, q: Array) -> Moments:
        one = np.ones_like(q)
        return Moments(self.unit_square * q**self.p, self.p**2 / (2 * self.p - 1) * one, self.p * one)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        return np.stack(common_marks(q))

    @property
    def parameters(self) -> Array:
        return np.array([float(self.p)])

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def _key(self) -> tuple[object, ...]:
        return (self.p,)


@part_of_loop
def _orders(d: float, p: int) -> Any:
    """1 - κ_p, κ_{p-1} and κ_{p-2} at a signed distance."""
    v = abs(d)
    root = math.sqrt(v)
    m = v * (2.0 - v)
    A, B = arcs(v, root, 1.0)
    A *= v
    if d >= 0.0:
        # Of κ₀ and κ₁, then of every order, what is missing of one: a sum of terms that are small with v.
        before, now, last = 0.0, B, v - A
        for n in range(1, p):
            squares = float(n * n)
            share = squares / (4.0 * squares - 1.0)
            following = v * (1.0 - share * (2.0 - v)) + (1.0 - v) * last + share * m * now
            before, now, last = now, last, following
        return last, 1.0 - now, 1.0 - before
    before, now, last = 0.0, B, A
    for n in range(1, p):
        squares = float(n * n)
        following = (v - 1.0) * last + squares / (4.0 * squares - 1.0) * m * now
        before, now, last = now, last, following
    return 1.0 - last, now, before


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    p = int(parameters[0])
    steep = parameters[0] * parameters[0] / (2.0 * parameters[0] - 1.0)
    for k in range(first, n):
        value, slope, _ = _orders(u[k], p)
        w[k] = value
        q[k] = (steep * slope) * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    order = parameters[0]
    p = int(order)
    steep = order * order / (2.0 * order - 1.0)
    bent = steep * (order - 1.0) * (order - 1.0) / (2.0 * order - 3.0)
    for k in range(first, n):
        value, slope, curve = _orders(u[k], p)
        out[0, k] = value
        out[1, k] = steep * slope
        out[2, k] = -bent * curve
        for row in range(3, 9):  # variances take no part
            out[row, k] = 0.0


@register_family
def rectified_power(p: float) -> RectifiedPower:
    """max(z, 0)^p in closed form, p from 2 on.

    Examples
    --------
    >>> from rntk.activations import rectified_power
    >>> rectified_power(2)
    rectified_power(2)
    """
    return RectifiedPower(p)  # type: ignore[arg-type]
