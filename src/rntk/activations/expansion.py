"""Gaussian expectations of any function in ball arithmetic: its Hermite series, with what the series leaves out.

With orthonormal Hermite polynomials he_k, a_k = E[φ(√q z) he_k(z)] and d_k = E[φ'(√q z) he_k(z)],

    V = Σ_k a_k a'_k c^k,    V' = Σ_k d_k d'_k c^k.

By the Cauchy-Schwarz inequality K orders leave out no more than |c|^K √(R R'), R = E[φ²] - Σ a_k², which joins as a
radius. Integrals are sums over Gauss-Legendre panels that shrink towards zero. The same with half the nodes says how
good they are: a kink within a panel shows there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from . import balls
from .balls import dot

#: Ends of the panels on the positive half; how far depends on the precision.
INNER = tuple(2.0**k for k in range(-7, 0))

#: φ and φ' at some balls.
Function = Callable[[list[Any]], tuple[list[Any], list[Any]]]


class Series(NamedTuple):
    """φ, or φ', at one variance: its coefficients, the expectation of its square, and what they miss of that."""

    coefficients: list[Any]
    square: Any
    rest: Any


class ExpandedSide(NamedTuple):
    """The root of a variance, and the series of φ and φ' there."""

    root: Any
    values: Series
    slopes: Series


def expand(function: Function, q: Any) -> ExpandedSide:
    """The series of φ at variance q, of four times as many orders as there are bits."""
    bits, root = balls.bits(), q.sqrt()
    if root.is_zero():
        (value,), (slope,) = function([balls.ball(0)])
        return ExpandedSide(root, *(Series([each], each * each, balls.ball(0)) for each in (value, slope)))
    fine, coarse = (_integrals(function, root, bits, share) for share in (1, 2))
    return ExpandedSide(root, *(_series(*both) for both in zip(fine, coarse, strict=True)))


def _integrals(function: Function, root: Any, bits: int, share: int) -> list[tuple[list[Any], Any]]:
    """Coefficients and mean square of φ, and of φ', by one rule."""
    nodes, weights = rule(bits, share)
    up, down = (function([sign * root * z for z in nodes]) for sign in (1, -1))
    return [
        (_project(bits, share, plus, minus), dot(weights, [a * a + b * b for a, b in zip(plus, minus, strict=True)]))
        for plus, minus in zip(up, down, strict=True)
    ]


def _series(fine: tuple[list[Any], Any], coarse: tuple[list[Any], Any]) -> Series:
    """What two rules agree on: their differences are radii."""

    def agreed(a: Any, b: Any) -> Any:
        return a + balls.ball(0, (a - b).abs_upper())

    coefficients = [agreed(*each) for each in zip(fine[0], coarse[0], strict=True)]
    square = agreed(fine[1], coarse[1])
    return Series(coefficients, square, (square - dot(coefficients, coefficients)).abs_upper())


def expectations(left: ExpandedSide, right: ExpandedSide, s: Any) -> tuple[Any, Any]:
    """(V, V') of two variances and a covariance."""
    c = balls.correlation(s, left.root * right.root)
    return _sum(left.values, right.values, c), _sum(left.slopes, right.slopes, c)


def _sum(left: Series, right: Series, c: Any) -> Any:
    products = [a * b for a, b in zip(left.coefficients, right.coefficients, strict=False)]
    beyond = (left.rest * right.rest).sqrt() * abs(c) ** max(len(left.coefficients), len(right.coefficients))
    return balls.flint().arb_poly(products)(c) + balls.ball(0, beyond.abs_upper())


@lru_cache(maxsize=16)
def rule(bits: int, share: int) -> tuple[list[Any], list[Any]]:
    """Nodes on the positive half and weights of E[f(z)], z standard normal; one `share`-th of the nodes per panel."""
    arb = balls.flint().arb
    last = 2 + int((1.4 * bits) ** 0.5)  # the density beyond is below 2^-bits
    edges = [balls.ball(edge) for edge in (0.0, *INNER, *range(1, last))]
    order = (16 + bits // 4) // share
    roots = [arb.legendre_p_root(order, k, weight=True) for k in range(order)]
    density = 1 / (2 * balls.pi()).sqrt()
    nodes, weights = [], []
    for a, b in pairwise(edges):
        for root, weight in roots:
            z = a + (b - a) * (root + 1) / 2
            nodes.append(z)
            weights.append(weight * (b - a) / 2 * density * (-z * z / 2).exp())
    return nodes, weights


@lru_cache(maxsize=4)  # at 256 bits half a gigabyte
def _polynomials(bits: int, share: int) -> tuple[Any, Any]:
    """Even and odd orthonormal Hermite polynomials below order 4 `bits`, at the nodes, times weights: two matrices."""
    nodes, weights = rule(bits, share)
    # The recursion is stable: its rounding stays at the last of all these bits. Radii would grow with every order, and
    # are left out.
    before, now = [0 * z for z in nodes], [weight.mid() for weight in weights]
    rows: tuple[list[Any], list[Any]] = ([now], [])
    for k in range(1, 4 * bits):
        by, from_before = 1 / balls.ball(k).sqrt(), balls.ball(k - 1).sqrt()
        now, before = [((z * a - from_before * b) * by).mid() for z, a, b in zip(nodes, now, before, strict=True)], now
        rows[k % 2].append(now)
    return tuple(balls.flint().arb_mat(part) for part in rows)


def _project(bits: int, share: int, plus: list[Any], minus: list[Any]) -> list[Any]:
    """Coefficients of a function from its values at the nodes and at their negatives."""
    matrix = balls.flint().arb_mat
    coefficients = [balls.ball(0)] * (4 * bits)
    for parity, sign in ((0, 1), (1, -1)):
        part = [a + sign * b for a, b in zip(plus, minus, strict=True)]
        if any(not value.is_zero() for value in part):
            product = _polynomials(bits, share)[parity] * matrix([[value] for value in part])
            coefficients[parity::2] = [product[i, 0] for i in range(product.nrows())]
    return coefficients
