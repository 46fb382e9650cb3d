"""How close is close: one tolerance per dtype, and the two errors the tests speak of."""

from __future__ import annotations

import numpy as np

#: Agreement of two computations that are both meant to be exact to rounding, relative to the largest entry.
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-5}


def relative_error(got: object, expected: object) -> float:
    """Largest difference, relative to the largest expected entry; NaN or a wrong shape is an infinite error."""
    got, expected = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if got.shape != expected.shape or not np.isfinite(got).all():
        return float("inf")
    largest = np.abs(expected).max(initial=0.0)
    gap = np.abs(got - expected).max(initial=0.0)
    return float(gap / largest) if largest > 0 else float(gap)


def entry_error(got: object, expected: object, floor: float = 1e-3) -> float:
    """Largest relative difference entry by entry, over entries of at least `floor` times the largest one."""
    got, expected = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if got.shape != expected.shape or not np.isfinite(got).all():
        return float("inf")
    size = np.abs(expected)
    counted = (size >= floor * size.max(initial=0.0)) & (size > 0)
    return float((np.abs(got - expected)[counted] / size[counted]).max(initial=0.0))
