"""Missing values: what may become of them, by the same names in readers, at the gate, in preprocessing and commands.

"error" refuses them. "interpolate" fills them: between two known values of a channel linearly, before the first and
after the last known value with that value.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Real = TypeVar("Real", bound=np.floating[Any])
Missing = Literal["error", "interpolate"]
MISSING = ("error", "interpolate")


def interpolate(values: NDArray[Real], offsets: NDArray[np.int64]) -> NDArray[Real]:
    """Return a copy of `values` without NaN, but for channels of a sequence that hold nothing else.

    Parameters
    ----------
    values : ndarray of shape (S, m)
        Steps of all sequences.
    offsets : ndarray of shape (n + 1,)
        The sequences, none of them empty.

    Examples
    --------
    >>> values = np.array([[1.0], [np.nan], [2.0], [np.nan], [7.0]])
    >>> interpolate(values, np.array([0, 4, 5])).ravel()
    array([1. , 1.5, 2. , 2. , 7. ])
    """
    filled = values.copy()
    gaps = np.isnan(values)
    for channel in np.flatnonzero(gaps.any(axis=0)):
        known, steps = np.flatnonzero(~gaps[:, channel]), np.flatnonzero(gaps[:, channel])
        if not known.size:
            continue
        # The known neighbours of each gap, if they belong to its sequence.
        after = np.searchsorted(known, steps)
        left, right = known[np.maximum(after - 1, 0)], known[np.minimum(after, len(known) - 1)]
        sequence = np.searchsorted(offsets, steps, side="right") - 1
        has_left = (left < steps) & (left >= offsets[sequence])
        has_right = (right > steps) & (right < offsets[sequence + 1])
        left, right = np.where(has_left, left, right), np.where(has_right, right, left)
        weight = np.where(has_left & has_right, (steps - left) / np.maximum(right - left, 1), 0.0)
        # A convex combination and not np.interp, whose slope overflows between values of opposite sign near the
        # largest double.
        column = values[:, channel].astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):  # of infinite neighbours, which are refused later
            found = (1.0 - weight) * column[left] + weight * column[right]
        filled[steps, channel] = np.where(has_left | has_right, found, np.nan)
    return filled
