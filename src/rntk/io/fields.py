"""From text to numbers: the values of one sequence, what is missing among them, and how it is filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import ProblemReport
from .errors import clip

__all__ = ["Missing", "Values", "fill_gaps", "is_number", "is_text", "parse_values", "trim_padding"]

Values = NDArray[np.float64]
Missing = Literal["error", "interpolate"]

#: How missing values are written, in lower case. An empty field is what spreadsheets and pandas leave.
_GAPS = frozenset({"", "nan", "na", "?", "null"})

_DROP = "drop the line, or repair it"


def parse_values(
    report: ProblemReport, fields: Sequence[str], line: int, locate: Callable[[int], str]
) -> Values | None:
    """Return fields as numbers of shape (len(fields),), NaN where a value is missing; file what is no number.

    `locate` says where the k-th field stands, and is called for messages only.
    """
    try:
        values = np.array(list(map(float, fields)), dtype=np.float64)
        is_plain = "_" not in "".join(fields)  # which Python allows between digits
    except ValueError:
        is_plain = False
    if not is_plain:
        # Something is missing, or wrong: only such lines are looked at field by field.
        numbers = [_parse_number(field) for field in fields]
        wrong = [index for index, number in enumerate(numbers) if number is None]
        if wrong:
            count = f", the first of {len(wrong)} such fields in this line" if len(wrong) > 1 else ""
            text = f"line {line}, {locate(wrong[0])}: {clip(fields[wrong[0]])} is not a number{count}"
            advice = "write numbers with a decimal point, and missing values as NaN, ? or an empty field"
            report.add("not numbers", text, position=line, advice=advice)
            return None
        values = np.array(numbers, dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        text = f"line {line}, {locate(int(infinite[0]))}: {clip(fields[infinite[0]])} is infinite in float64"
        advice = "replace infinite values by finite ones, or by NaN and pass missing='interpolate'"
        report.add("infinite values", text, position=line, advice=advice)
        return None
    return values


def _parse_number(field: str) -> float | None:
    """Return the number in a field, NaN if it is missing, None if the field is text."""
    field = field.strip()
    if field.lower() in _GAPS:
        return np.nan
    try:
        return None if "_" in field else float(field)
    except ValueError:
        return None


def is_text(field: str) -> bool:
    """Whether a field holds something that is neither a number nor a missing value."""
    return _parse_number(field) is None


def is_number(field: str) -> bool:
    """Whether a field holds a number, finite or not."""
    number = _parse_number(field)
    return number is not None and not np.isnan(number)


def trim_padding(values: Values) -> Values:
    """Return the values (T,) up to the last one that is not NaN: in padded rows, NaN at the end mark the length."""
    if not np.isnan(values[-1:]).any():
        return values
    known = np.flatnonzero(~np.isnan(values))
    return values[: known[-1] + 1 if known.size else 0]


def fill_gaps(
    report: ProblemReport, values: Values, line: int, locate: Callable[[int, int], str], missing: Missing
) -> Values | None:
    """Return the values (T, m) without NaN, or file the gaps if they are errors, or too wide to fill.

    Between two known values of a channel the gap is filled linearly; before the first and after the last known
    value, with that value. `locate` says where step t of channel c stands.
    """
    gaps = np.isnan(values)
    if len(values) and not gaps.any():
        return values
    empty = np.flatnonzero(gaps.all(axis=0))
    if empty.size:
        which = f"dimension {empty[0] + 1} " if values.shape[1] > 1 else ""
        text = f"line {line}: {which}holds no values"
        report.add("no values", text, position=line, advice=_DROP)
        return None
    if missing == "error":
        step, channel = (int(index) for index in np.argwhere(gaps)[0])
        count = f", the first of {gaps.sum()} in this line" if gaps.sum() > 1 else ""
        text = f"line {line}, {locate(step, channel)} (step {step}): the value is missing{count}"
        advice = "pass missing='interpolate' to fill gaps linearly, or fill them in the file"
        report.add("missing values", text, position=line, advice=advice)
        return None
    filled = values.copy()
    for channel in np.flatnonzero(gaps.any(axis=0)):
        _interpolate(filled[:, channel], gaps[:, channel])
    return filled


def _interpolate(values: Values, gaps: NDArray[np.bool_]) -> None:
    """Fill the gaps of one channel (T,) in place."""
    known, steps = np.flatnonzero(~gaps), np.flatnonzero(gaps)
    after = np.searchsorted(known, steps)
    left = known[np.maximum(after - 1, 0)]
    right = known[np.minimum(after, len(known) - 1)]
    weight = (steps - left) / np.maximum(right - left, 1)
    weight[left == right] = 0.0  # outside the known values, where both neighbours are the nearest one
    # A convex combination and not np.interp, whose slope overflows between values of opposite sign near the
    # largest double.
    values[steps] = (1.0 - weight) * values[left] + weight * values[right]
