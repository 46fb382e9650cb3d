"""Arithmetic on numbers kept as mantissa and exponent: just what normalisation needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scale(NamedTuple):
    """Positive numbers of any size, mantissa 2^exponent: one per sequence (or per step)."""

    mantissa: NDArray[np.float64]
    exponent: NDArray[np.int64]


#: Exponents up to this are no danger: products of a few such numbers are far from the ends of the range.
PLAIN = 200


def add(a: Scale, b: Scale) -> Scale:
    """a + b on the larger exponent; a zero has no exponent."""
    low = np.iinfo(np.int32).min
    exponent = np.maximum(np.where(a.mantissa > 0, a.exponent, low), np.where(b.mantissa > 0, b.exponent, low))
    exponent = np.where(exponent == low, 0, exponent)
    return Scale(_shifted(a, exponent) + _shifted(b, exponent), exponent)


def _shifted(a: Scale, exponent: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(np.ldexp(a.mantissa, np.clip(a.exponent - exponent, -5000, 5000)))


def largest(a: Scale, starts: NDArray[np.int64]) -> Scale:
    """The power of two next to the largest number of each run that begins at `starts`; 0 where all are 0."""
    low = np.iinfo(np.int32).min
    exponent = np.maximum.reduceat(np.where(a.mantissa > 0, np.frexp(a.mantissa)[1] + a.exponent, low), starts)
    return Scale((exponent > low).astype(np.float64), np.where(exponent > low, exponent, 0))


def inverse_root(a: Scale) -> Scale:
    """1/√a, and 0 where a is 0: a sequence without variance has no direction."""
    odd = a.exponent % 2
    root = np.sqrt(a.mantissa * (1 + odd))
    return Scale(np.divide(1.0, root, out=np.zeros_like(root), where=root > 0), -(a.exponent - odd) // 2)


def folded(a: Scale) -> Scale:
    """The same numbers, those with a small exponent as plain floats: their products stay in range too."""
    small = np.abs(a.exponent) <= PLAIN
    plain = np.ldexp(a.mantissa, np.where(small, a.exponent, 0).astype(np.intc))
    return Scale(np.where(small, plain, a.mantissa), np.where(small, 0, a.exponent))


def take(a: Scale, at: NDArray[np.int64]) -> Scale:
    """The numbers at positions `at`."""
    return Scale(a.mantissa[at], a.exponent[at])


def to_float(a: Scale) -> NDArray[np.float64]:
    """Plain floats; what is too large becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(a.mantissa, np.clip(a.exponent, -(1 << 30), 1 << 30).astype(np.intc)))


def times(a: Scale, b: Scale) -> Scale:
    """a b."""
    return Scale(a.mantissa * b.mantissa, a.exponent + b.exponent)
