"""Ball arithmetic: numbers that carry a bound on their error, so that formulas can be used as textbooks print them.

Numbers are python-flint's `arb`: a midpoint of as many bits as asked for, and a radius that every operation carries on.
What cancels in a formula shows in the radius, and more bits repair it.

    pip install "rntk[reference]"
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

from ..errors import need_extra

#: Bits to begin with; twice as many, and so on, where they aren't enough.
BITS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
#: Bits that a result must be sure of to be rounded to a float64.
SURE = 60
#: An error below 2^-NEGLIGIBLE of the most that a result may be is accepted: a sum that cancels has no digits left.
NEGLIGIBLE = 100

#: The precision is one number for the whole process.
_PRECISION = RLock()


@cache
def flint() -> Any:
    """The library of balls, for textbook formulas and engine="reference"."""
    return need_extra("reference", "flint")


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits; other threads wait."""
    context = flint().ctx
    with _PRECISION:
        before, context.prec = context.prec, bits
        try:
            yield
        finally:
            context.prec = before


def bits() -> int:
    """The present precision."""
    return int(flint().ctx.prec)


def ball(middle: Any, radius: Any = 0) -> Any:
    """A number, exact unless a radius is given; floats are taken as they are."""
    return flint().arb(middle, radius)


def pi() -> Any:
    """π to the present precision."""
    return flint().arb.pi()


def dot(x: Iterable[Any], y: Iterable[Any]) -> Any:
    """The inner product."""
    return sum((a * b for a, b in zip(x, y, strict=True)), ball(0))


def doubt(value: Any, most: Any) -> float:
    """Bound on the error of a result: zero if it is right to the last digit of a float64, else relative to `most`."""
    if not value.is_finite():
        return math.inf
    largest = most.abs_lower()
    if value.rel_accuracy_bits() >= SURE or bool(value.rad() <= largest * ball(2) ** -NEGLIGIBLE):
        return 0.0
    return abs(to_float(value.rad() / largest)) if largest > 0 else math.inf


def to_parts(value: Any) -> tuple[float, int]:
    """(mantissa, exponent): the midpoint as a float64 from one half to one, times a power of two."""
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    length = mantissa.bit_length()
    return mantissa / (1 << length), exponent + length  # Python rounds quotients of integers correctly


def to_float(value: Any) -> float:
    """The midpoint as a float64; infinite where that is too large."""
    mantissa, exponent = to_parts(value)
    try:
        return math.ldexp(mantissa, max(exponent, -2000))
    except OverflowError:
        return math.copysign(math.inf, mantissa)


def arccos(c: Any) -> Any:
    """The angle whose cosine is c, an exact number between -1 and 1, with all digits near the ends."""
    return flint().arb.atan2(((1 - c) * (1 + c)).sqrt(), c)


def correlation(s: Any, n: Any) -> Any:
    """s/n, cut to the range of correlations; zero where n is."""
    if n.is_zero():
        return ball(0)
    c = s / n
    low, high = (min(max(end, ball(-1)), ball(1)) for end in (c.lower(), c.upper()))
    return low.union(high)


def ends(c: Any) -> tuple[Any, Any]:
    """The least and the largest correlation in a ball."""
    return max(c.lower(), ball(-1)), min(c.upper(), ball(1))
