"""From text to labels: integers, real targets, or the words themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import ProblemReport
from .errors import clip
from .fields import Values

__all__ = ["LabelKind", "Rows", "parse_labels"]

#: What a format knows of its labels: names of classes, real numbers, or nothing.
LabelKind = Literal["class", "target", "unknown"]

_GAPS = frozenset({"", "?", "nan", "-nan", "+nan"})  # no "na", which may well be a class
_LENGTH_LIMIT = 256  # NumPy stores every label at the width of the longest


@dataclass(slots=True)
class Rows:
    """What a format found, line by line; sequences whose problems were filed are left out."""

    series: list[Values] = field(default_factory=list)  # (T_i, m) each
    labels: list[str] | None = None  # None where the file, or the caller, says that there are none
    lines: list[int] = field(default_factory=list)  # of the labels
    kind: LabelKind = "unknown"

    def add_label(self, label: str, line: int) -> None:
        """Take down the label of a line."""
        assert self.labels is not None
        self.labels.append(label.strip())
        self.lines.append(line)


def parse_labels(report: ProblemReport, rows: Rows) -> NDArray[Any] | None:
    """Return the labels (n,) as int64 if all are whole numbers, float64 for targets, str otherwise.

    Labels written ``1.0`` or ``1.0000000e+00`` are whole numbers. Where the format does not tell classes from
    targets, labels that are all numbers, some of them not whole, are targets.
    """
    if rows.labels is None:
        return None
    missing = "give every sequence a label; if the file has none, pass label='none'"
    for label, line in zip(rows.labels, rows.lines, strict=True):
        if label.lower() in _GAPS:
            report.add("labels missing", f"line {line}: the label is missing", position=line, advice=missing)
        elif len(label) > _LENGTH_LIMIT:
            text = f"line {line}: the label {clip(label)} is {len(label)} characters long, expected a word or a number"
            report.add("long labels", text, position=line, advice="check that the line is separated as expected")
    numbers = _parse_numbers(rows.labels)
    if rows.kind == "target" and numbers is None:
        for label, line in zip(rows.labels, rows.lines, strict=True):
            if label.lower() not in _GAPS and _parse_numbers([label]) is None:
                text = f"line {line}: the target {clip(label)} is not a number"
                report.add("targets", text, position=line, advice="class names go with @classLabel, not @targetLabel")
    if numbers is not None:
        for index in np.flatnonzero(np.isinf(numbers)):
            line = rows.lines[index]
            text = f"line {line}: the label {clip(rows.labels[index])} is infinite in float64"
            report.add("infinite labels", text, position=line, advice="give a finite number, or a word")
    if report:
        return None
    if rows.kind == "target":
        return numbers
    if numbers is None or any(map(_is_identifier, rows.labels)):
        return np.array(rows.labels, dtype=np.str_)
    whole = _parse_whole(rows.labels, numbers)
    if whole is not None:
        return whole
    return numbers if rows.kind == "unknown" else np.array(rows.labels, dtype=np.str_)


def _parse_numbers(labels: Sequence[str]) -> Values | None:
    """Return the labels as float64 if every one is a number, infinite or not; else None."""
    try:
        numbers = np.array(list(map(float, labels)), dtype=np.float64)
    except ValueError:
        return None
    return None if "_" in "".join(labels) else numbers  # Python reads 1_0 as ten


def _is_identifier(label: str) -> bool:
    """Whether a label is a whole number beyond int64, which a double would not keep apart from its neighbours."""
    digits = label.lstrip("+-").lstrip("0")
    if len(digits) < 19 or not digits.isdigit():
        return False
    return len(digits) > 19 or int(digits) >= 2**63 + label.startswith("-")


def _parse_whole(labels: Sequence[str], numbers: Values) -> NDArray[np.int64] | None:
    """Return the labels as int64 if they are whole numbers that int64 holds exactly."""
    if (np.abs(numbers) < 2**53).all():  # below, a double is the number that was written
        return numbers.astype(np.int64) if (numbers == np.floor(numbers)).all() else None
    try:
        return np.array(list(map(int, labels)), dtype=np.int64)
    except ValueError:
        return None
