"""The bell curve, φ(z) = exp(-z²): V = 1/√((1+2q)(1+2q') - 4s²), of which nothing cancels (theory.md, section 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arrays import ArrayForm
from .base import Activation, Array, Moments, Step, common_marks, register
from .compiled import no_overlap, part_of_loop, wide_vectors

#: Relative differences of variances up to which they are taken from what is given, with all their digits.
COMPARABLE = 0.25
#: Numbers are cut here, where V̂ is zero to the last digit, and derivatives belong to sides that don't move.
LARGEST = 1e300


class Gaussian(Activation):
    """φ(z) = exp(-z²)."""

    name = "gaussian"

    def __call__(self, z: Array) -> Array:
        return np.asarray(np.exp(-np.square(z)))

    def derivative(self, z: Array) -> Array:
        return np.asarray(-2 * z * np.exp(-np.square(z)))

    def in_jax(self, z: Any) -> Any:
        import jax.numpy as jnp

        return jnp.exp(-jnp.square(z))

    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        # A variance with itself: exactly 1 + 4q, where a difference of squares would cost the size of q in digits.
        determinant = 1 + 4 * left if same else (1 + 2 * left) * (1 + 2 * right) - 4 * s * s
        value = 1 / determinant.sqrt()
        return value, 4 * s * value / determinant

    def moments(self, q: Array) -> Moments:
        t = 1 + 4 * q
        return Moments(1 / np.sqrt(t), 4 * q * (q / t), -2 * q / t)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, **expansion: Any) -> Array:
        return np.stack([*common_marks(q), np.sqrt(q), np.sqrt(1 + 4 * q)])

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        return GaussianArrays(xp)


@part_of_loop
def _parts(gap: float, root: float, t: float, root2: float, t2: float) -> Any:
    """X = 4qq'/tt', t - t' and tt', t = √(1+4q): V̂ is one over the root of (t/t' + t'/t)/2 + X (1 - c²)."""
    product, both = root * root2, t * t2
    comparable = abs(gap) <= COMPARABLE and product > 0.0
    difference = gap * product if comparable else (root - root2) * (root + root2)  # q - q'
    return 4.0 * product * (product / both), 4.0 * difference / (t + t2), both


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    no_overlap()
    for k in range(first, n):
        d = u[k]
        v = abs(d)
        X, apart, both = _parts(gap[k], left[2], left[3], right[2, k], right[3, k])
        more = 0.5 * apart * (apart / both) + X * (v * (2.0 - v))  # V̂⁻² - 1, small where two sides are close
        root = math.sqrt(1.0 + more)
        w[k] = more / (root * (1.0 + root))
        slope = X / (1.0 + more) * ((1.0 - v) / root)
        q[k] = (slope if d >= 0.0 else -slope) * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    no_overlap()
    for k in range(first, n):
        d = u[k]
        v = abs(d)
        t, t2 = left[3], right[3, k]
        X, apart, both = _parts(gap[k], left[2], t, right[2, k], t2)
        at_one, x = 0.5 * apart * (apart / both), X * (v * (2.0 - v))  # V̂⁻² is 1 + at_one at c = 1, and x more
        root, root1 = math.sqrt(1.0 + at_one + x), math.sqrt(1.0 + at_one)
        over, over1 = 1.0 / root, 1.0 / root1
        c = 1.0 - v if d >= 0.0 else v - 1.0
        steep = X * over * over
        out[0, k] = (at_one + x) / (root * (1.0 + root))
        out[1, k] = steep * over * c
        out[2, k] = -min(steep * over * (1.0 + 3.0 * steep * c * c), LARGEST)
        fallen = x * over * over1 / (root + root1) * (over * over + over * over1 + over1 * over1)  # V̂(1)³ - V̂³
        # Along log q, t moves by 2q/t² and X by one less; t/t' + t'/t as t - t' is.
        for side in range(2):
            own, sign = (t, 1.0) if side == 0 else (t2, -1.0)
            grow = 0.5 + 0.5 / (own * own)
            turn = sign * (1.0 - grow) * (apart * (t + t2)) / (2.0 * both)
            out[3 + side, k] = 0.5 * (grow * (x * over * over) * over - fallen * turn)
            out[5 + side, k] = out[1, k] * (grow - 1.5 * (turn + grow * x) * over * over)
            out[7 + side, k] = 0.5 * turn * over1 * over1 * over1


class GaussianArrays(ArrayForm):
    """exp(-z²), by the formulas of the compiled form."""

    def norm(self, root: Any) -> Any:
        return 1 / self.xp.sqrt(self.xp.sqrt(1 + 4 * root * root))

    def marks(self, root: Any) -> tuple[Any, ...]:
        return root, self.xp.sqrt(1 + 4 * root * root)

    def growth(self, root: Any) -> tuple[Any, Any]:
        t = 1 + 4 * root * root
        return -2 * root * root / t, -2 * root * root / t / t

    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (root, t), (root2, t2) = left, right
        v, product, both = xp.abs(d), root * root2, t * t2
        comparable = (xp.abs(gap) <= COMPARABLE) & (product > 0)
        apart = 4 * xp.where(comparable, gap * product, (root - root2) * (root + root2)) / (t + t2)
        X = 4 * product * (product / both)
        more = 0.5 * apart * (apart / both) + X * (v * (2 - v))
        deep = xp.sqrt(1 + more)
        slope = X / (1 + more) * ((1 - v) / deep)
        return more / (deep * (1 + deep)), xp.where(d >= 0, slope, -slope)


gaussian = register(Gaussian())
