"""The ``.ts`` format of aeon and sktime: tags that describe the data, then one sequence per line.

After ``@data``, a line holds the dimensions separated by ``:``, each with its values separated by ``,``, and the
label last if the header announces one. Lengths may differ between lines, never between the dimensions of one line;
as lengths are explicit, a missing value at the end of a line is a missing value. Lines that begin with ``#`` or ``%``
are comments.

What the header says is checked against the lines, because a contradiction is how a damaged file shows. What it
does not say is not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ProblemReport
from .errors import clip, from_report, refusal
from .fields import Missing, Values, fill_gaps, parse_values
from .labels import Rows
from .source import numbered_lines

__all__ = ["parse_ts"]

_DESCRIBE_LABEL = (
    "if the lines end in a label, announce it with '@classLabel true a b c' or '@targetLabel true', "
    "or pass label='last'"
)
_FIX_TAG = "see aeon's description of the .ts format, or remove the tag"
_FIX_LINE = "repair the line, or correct what the header says"


@dataclass(slots=True)
class _Header:
    """What the tags say; None where they say nothing."""

    timestamps: bool | None = None
    univariate: bool | None = None
    equallength: bool | None = None
    classlabel: bool | None = None
    targetlabel: bool | None = None
    dimension: int | None = None
    serieslength: int | None = None
    classes: frozenset[str | float] = frozenset()


def parse_ts(path: Path, text: str, report: ProblemReport, *, label: str, missing: Missing) -> Rows:
    """Return the sequences and labels of a ``.ts`` file; problems of lines go to the report."""
    if label not in ("auto", "last", "none"):
        advice = "pass 'auto', 'last' or 'none'"
        raise refusal(path, f"label={label!r} does not fit: the label of a .ts file is the last part of a line", advice)
    lines = ((number, line.strip()) for number, line in numbered_lines(text))
    lines = ((number, line) for number, line in lines if not line.startswith(("#", "%")))
    header = _parse_header(report, lines)
    if report:
        raise from_report(report)
    if header.timestamps:
        problem = "its header says '@timeStamps true', and sequences with time stamps are not supported"
        raise refusal(path, problem, "export the values alone, at regular steps")
    return _parse_data(report, header, lines, label=label, missing=missing)


# ---- Header ------------------------------------------------------------------------------------------------


def _parse_header(report: ProblemReport, lines: Iterator[tuple[int, str]]) -> _Header:
    """Return what the tags say, and leave the iterator at the first line of data."""
    header = _Header()
    number = 0
    for number, line in lines:
        tag, *values = line.split()
        name = tag.lower().removeprefix("@")
        if not line.startswith("@"):
            text = f"line {number}: {clip(line)} comes before @data, expected a tag that begins with @"
            report.add("header", text, position=number, advice="put the line '@data' before the first sequence")
            return header
        if name == "data":
            _check_header(report, header, number)
            return header
        _parse_tag(report, header, name, values, f"line {number}: {tag}", number)
    text = f"line {number}: the file ends without @data"
    report.add("header", text, position=number, advice="put the line '@data' before the first sequence")
    return header


def _parse_tag(report: ProblemReport, header: _Header, name: str, values: list[str], subject: str, number: int) -> None:
    """Store what one tag says. Tags that do not concern the layout are passed over."""
    name = "dimension" if name == "dimensions" else name
    if name in ("dimension", "serieslength"):
        # Digits of ASCII, few enough to be a size: `int` takes far more than a header means.
        if len(values) == 1 and values[0].isascii() and values[0].isdigit() and 0 < len(values[0].lstrip("0")) < 10:
            setattr(header, name, int(values[0]))
        else:
            text = f"{subject} takes a whole number from 1, got {clip(' '.join(values))}"
            report.add("header", text, position=number, advice=_FIX_TAG)
    elif name in ("timestamps", "univariate", "equallength", "classlabel", "targetlabel"):
        truth = {"true": True, "false": False}.get(values[0].lower() if values else "")
        if truth is None or (len(values) > 1 and name != "classlabel"):
            text = f"{subject} takes true or false, got {clip(' '.join(values))}"
            report.add("header", text, position=number, advice=_FIX_TAG)
            return
        setattr(header, name, truth)
        if name == "classlabel":
            header.classes = frozenset(map(_normalise, values[1:]))


def _check_header(report: ProblemReport, header: _Header, number: int) -> None:
    if header.univariate and header.dimension not in (None, 1):
        text = f"line {number}: the header says both '@univariate true' and '@dimension {header.dimension}'"
        report.add("header", text, position=number, advice="correct one of the two tags")
    if header.classlabel and header.targetlabel:
        text = f"line {number}: the header announces both class labels and target labels"
        report.add("header", text, position=number, advice="correct one of the two tags")


# ---- Data --------------------------------------------------------------------------------------------------


def _parse_data(
    report: ProblemReport, header: _Header, lines: Iterator[tuple[int, str]], *, label: str, missing: Missing
) -> Rows:
    has_label = label == "last" or bool(header.classlabel or header.targetlabel)
    rows = Rows(labels=[] if has_label and label != "none" else None)
    rows.kind = "target" if header.targetlabel else "class" if header.classlabel else "unknown"
    layout = _Layout(header, has_label)
    for number, line in lines:
        parts = line.split(":")
        if has_label:
            if len(parts) == 1 or "," in parts[-1]:
                text = f"line {number}: the label is missing, the line ends in values"
                report.add("labels missing", text, position=number, advice="end every line with ':' and its label")
                continue
            word = parts.pop()
            if rows.labels is not None:
                rows.add_label(word, number)
                _check_class(report, header, word, number)
        dimensions = [part.split(",") for part in parts]
        if layout.agrees(report, dimensions, number):
            steps = _parse_steps(report, dimensions, number, missing)
            if steps is not None:
                rows.series.append(steps)
    return rows


def _parse_steps(report: ProblemReport, dimensions: list[list[str]], number: int, missing: Missing) -> Values | None:
    """Return the dimensions, equally long, as steps (T, m)."""
    n_channels, length = len(dimensions), len(dimensions[0])

    def locate(step: int, channel: int) -> str:
        return f"dimension {channel + 1}, field {step + 1}" if n_channels > 1 else f"field {step + 1}"

    fields = [field for dimension in dimensions for field in dimension]
    values = parse_values(report, fields, number, lambda k: locate(k % length, k // length))
    if values is None:
        return None
    return fill_gaps(report, values.reshape(n_channels, length).T, number, locate, missing)


class _Layout:
    """The number of dimensions and of steps that lines have to have, and who says so."""

    def __init__(self, header: _Header, has_label: bool) -> None:
        self.has_label = has_label
        self.dimensions = 1 if header.univariate else header.dimension
        self.length = header.serieslength if header.equallength else None
        self.is_equal = header.equallength
        self.dimension_source = self.length_source = "the header says"

    def agrees(self, report: ProblemReport, dimensions: list[list[str]], number: int) -> bool:
        """Whether a line has the shape expected; the first line sets what the header left open."""
        found = len(dimensions)
        lengths = [len(dimension) for dimension in dimensions]
        odd = next((index for index, length in enumerate(lengths) if length != lengths[0]), None)
        if self.dimensions is not None and found != self.dimensions:
            plural = "s" if found > 1 else ""
            text = f"line {number}: {found} dimension{plural}, {self.dimension_source} {self.dimensions}"
            report.add("dimensions", text, position=number, advice=_FIX_LINE)
            if not self.has_label:
                report.advise(_DESCRIBE_LABEL)
            return False
        if odd is not None:
            text = f"line {number}: dimension {odd + 1} has {lengths[odd]} values, dimension 1 has {lengths[0]}"
            advice = "give all dimensions of a line the same number of values"
            report.add("ragged dimensions", text, position=number, advice=advice)
            if not self.has_label:
                report.advise(_DESCRIBE_LABEL)
            return False
        if self.dimensions is None:
            self.dimensions, self.dimension_source = found, f"line {number} has"
        if self.is_equal and self.length is None:
            self.length, self.length_source = lengths[0], f"'@equalLength true', and line {number} has"
        if self.length is not None and lengths[0] != self.length:
            text = f"line {number}: {lengths[0]} steps, {self.length_source} {self.length}"
            report.add("lengths", text, position=number, advice=f"{_FIX_LINE} (@equalLength, @seriesLength)")
            return False
        return True


def _check_class(report: ProblemReport, header: _Header, word: str, number: int) -> None:
    """File a label that the header does not list. A label of several words appears there word by word."""
    words = word.split()
    if words and header.classes and not all(_normalise(part) in header.classes for part in words):
        text = f"line {number}: the label {clip(word.strip())} is not among the {len(header.classes)} of @classLabel"
        report.add("unknown labels", text, position=number, advice="list every label after '@classLabel true'")


def _normalise(word: str) -> str | float:
    """Return what decides whether two labels are the same: 1 and 1.0 are, and so are walk and Walk."""
    try:
        return float(word)
    except ValueError:
        return word.casefold()
