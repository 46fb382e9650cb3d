"""Arc functions and exponentials without loss of digits, as polynomials that vectorise (theory.md, section 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from . import arc_coefficients as coefficients
from .compiled import horner, part_of_loop

#: Adding it to a number of moderate size rounds that to an integer, which then stands in the lowest bits.
MAGIC = 1.5 * 2.0**52
LOG2_HIGH, LOG2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
#: Beyond it e^-x counts as zero: the bits of the smallest floats mean something else.
LARGEST_EXPONENT = 700.0


def _by_precision(k: int) -> Any:
    """One of the three polynomials, in either precision."""
    narrow, broad = horner(coefficients.ARC32[k], np.float32), horner(coefficients.ARC64[k], np.float64)
    return lambda v: narrow if v == types.float32 else broad


def _p(v: Any) -> Any: ...
def _r(v: Any) -> Any: ...
def _q(v: Any) -> Any: ...


for _k, _polynomial in enumerate((_p, _r, _q)):
    overload(_polynomial)(_by_precision(_k))


@part_of_loop
def arcs(v: Any, root: Any, one: Any) -> Any:
    """A(v) and B(v) = arccos(1 - v)/(π √v) on [0, 1], each times `root` (25). All in one precision."""
    z = one - v
    over = root / _q(z)
    return over * _p(z), over * _r(z)


@part_of_loop
def arcs_and_rate(v: Any, one: Any) -> Any:
    """√v A(v), √v B(v), and the latter's derivative 1/(π √(v(2-v))) without its π: one division for all three.

    The last is of no use at v = 0.
    """
    z, near, far = one - v, math.sqrt(v if v > 0 else one), math.sqrt(one + (one - v))
    bottom = _q(z)
    over = one / (bottom * (near * far))
    root = v * (far * over)
    return root * _p(z), root * _r(z), bottom * over


_excess = part_of_loop(horner(coefficients.ARCSIN64, np.float64))
_growth = part_of_loop(horner(coefficients.EXP64, np.float64))


@part_of_loop
def arcsin_excess(r: Any) -> Any:
    """arcsin(r)/r - 1 on [0, 1/2], with a small relative error."""
    z = r * r
    return z * _excess(z)


@part_of_loop
def arccos_near(y: Any, r: Any) -> Any:
    """arccos(r) for r in [0, 1], to a small relative error; y is 1 - r, given with all its digits."""
    close = y <= 0.5
    x = math.sqrt(0.5 * y) if close else r
    angle = x + x * arcsin_excess(min(x, 0.5))
    return 2.0 * angle if close else 0.5 * math.pi - angle


@intrinsic  # type: ignore[untyped-decorator]
def _as_bits(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _as_float(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@part_of_loop
def decay(x: Any) -> Any:
    """e^-x and e^-x - 1 for x ≥ 0, both with a small relative error."""
    some = x < LARGEST_EXPONENT
    x = x if some else LARGEST_EXPONENT
    shifted = MAGIC - x * (1 / math.log(2))
    k = shifted - MAGIC
    # What is left after k powers of two, in two parts: the first product is exact.
    rest = (-x - k * LOG2_HIGH) - k * LOG2_LOW
    less = rest * _growth(rest)
    power = _as_float((_as_bits(shifted) << 52) + (1023 << 52)) if some else 0.0
    return power + power * less, power * less + (power - 1.0)
