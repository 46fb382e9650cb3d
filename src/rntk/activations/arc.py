"""Arc functions without loss of digits near c = ±1, as polynomials that vectorise (theory.md, section 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ..compiled import horner
from . import arc_coefficients as coefficients


def _by_precision(single: tuple[float, ...], double: tuple[float, ...]) -> Any:
    narrow, broad = horner(single, np.float32), horner(double, np.float64)
    return lambda v: narrow if v == types.float32 else broad


def polynomial_a(v: Any) -> Any:
    """A(v) on [0, 1]; compiled code only."""
    raise AssertionError("compiled code only")


def polynomial_b(v: Any) -> Any:
    """B(v) = arccos(1 - v) / (π √v) on [0, 1]; compiled code only."""
    raise AssertionError("compiled code only")


def angle_over_root(v: Any) -> Any:
    """arccos(1 - v) / √v on [0, 1/2]; compiled code only."""
    raise AssertionError("compiled code only")


def arcsin_over_argument(z: Any) -> Any:
    """arcsin(r) / r at z = r² in [0, 1/4]; compiled code only."""
    raise AssertionError("compiled code only")


overload(polynomial_a)(_by_precision(coefficients.A32, coefficients.A64))
overload(polynomial_b)(_by_precision(coefficients.B32, coefficients.B64))
overload(angle_over_root)(_by_precision(coefficients.ANGLE32, coefficients.ANGLE64))
overload(arcsin_over_argument)(_by_precision(coefficients.ARCSIN32, coefficients.ARCSIN64))
