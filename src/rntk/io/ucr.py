"""The UCR format: one univariate sequence per line, the label first, separated by tabs.

Sets of unequal length are padded with NaN at the end of their lines, and that padding is a length. Lines may as well
be of unequal length themselves. The archive's older ``.txt`` files are separated by runs of spaces, which is read
where a file has no tab at all.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import ProblemReport
from .errors import refusal
from .fields import Missing, fill_gaps, parse_values, trim_padding
from .labels import Rows
from .source import numbered_lines

__all__ = ["parse_ucr"]

_ONE_PER_LINE = (
    "write one sequence per line, its label first, separated by tabs; "
    "pass label='none' if there are no labels, format='csv' if commas separate"
)


def parse_ucr(path: Path, text: str, report: ProblemReport, *, label: str, missing: Missing) -> Rows:
    """Return the sequences and labels of a UCR file; problems of lines go to the report."""
    if label not in ("auto", "first", "last", "none"):
        advice = "pass 'first' (which 'auto' means here), 'last' or 'none'"
        raise refusal(path, f"label={label!r} names a column, and UCR files have no column names", advice)
    separator = "\t" if "\t" in text else None
    if separator is None and _looks_like_commas(text):
        raise refusal(path, "its first line is separated by commas, expected tabs", "pass format='csv'")
    rows = Rows(labels=None if label == "none" else [])
    at = -1 if label == "last" else 0
    shift = 1 if label in ("auto", "first") else 0  # fields before the values
    for number, line in numbered_lines(text):
        fields = line.split(separator)
        if rows.labels is not None:
            rows.add_label(fields.pop(at), number)
            if not fields:
                report.add(
                    "no values", f"line {number}: one field, and no values", position=number, advice=_ONE_PER_LINE
                )
                continue
        values = parse_values(report, fields, number, lambda k: f"field {k + shift + 1}")
        if values is not None:
            steps = trim_padding(values)[:, None]
            filled = fill_gaps(report, steps, number, lambda t, _: f"field {t + shift + 1}", missing)
            if filled is not None:
                rows.series.append(filled)
    return rows


def _looks_like_commas(text: str) -> bool:
    first = next(numbered_lines(text))[1]
    return first.count(",") > len(first.split()) - 1
