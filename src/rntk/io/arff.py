"""Weka's ``.arff`` format, as the UCR and UEA archives offer it: attributes declared, then one sequence per line.

A univariate file declares one numeric attribute per step, and the class last. A multivariate file declares one
relational attribute, which in turn declares the steps, and the class: a line holds the dimensions in quotes, with a
backslash and an n between them. Every line has as many steps as the header declares. Shorter sequences are padded
with ``?``, and that padding is a length: it ends at the last step at which any dimension has a value. Lines that
begin with ``%`` are comments.

Other attributes, sparse lines and dates are refused: nothing in such a file says which step they would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import ProblemReport
from .errors import clip, from_report, refusal
from .fields import Missing, Values, fill_gaps, parse_values
from .labels import Rows
from .source import numbered_lines

__all__ = ["parse_arff"]

_NUMERIC = frozenset({"numeric", "real", "integer"})
_LABEL_NAMES = frozenset({"label", "class", "target", "y"})
_GAPS = frozenset({"", "?"})
_BEFORE_DATA = "put the line '@data' before the first sequence"
_FIX_TAG = "declare '@attribute NAME numeric' for every step, and '@attribute NAME {a,b,c}' for the class"
_FIX_LINE = "repair the line, or correct what the header declares"
_FIX_QUOTES = "open and close every quote in the same line, and write one within as \\'"

# The quantifiers never give back what they took, so that no text takes longer than its length.
_QUOTED = r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)\""""
_FIELD = re.compile(rf"""\s*+(?:{_QUOTED}|([^,'"]*+))\s*+(,|$)""")
_ATTRIBUTE = re.compile(rf"""\s*+(?:{_QUOTED}|([^\s{{'"]++))\s*+(.*)""")


@dataclass(slots=True)
class _Attribute:
    """One declaration: its kind is "numeric", "nominal", "relational", or a type that no step can have."""

    name: str
    kind: str
    line: int
    classes: frozenset[str] = frozenset()
    steps: list[_Attribute] = field(default_factory=list)  # of a relational attribute


def parse_arff(path: Path, text: str, report: ProblemReport, *, label: str, missing: Missing) -> Rows:
    """Return the sequences and labels of an ``.arff`` file; problems of lines go to the report."""
    lines = ((number, line.strip()) for number, line in numbered_lines(text))
    lines = ((number, line) for number, line in lines if not line.startswith("%"))
    attributes = _parse_header(report, lines)
    if report:
        raise from_report(report)
    at = _find_label(path, attributes, label)
    steps = _find_steps(path, attributes, at)
    rows = Rows(labels=None if at is None or label == "none" else [])
    if at is not None:
        rows.kind = "class" if attributes[at].kind == "nominal" else "unknown"
    layout = _Layout(attributes, at, steps)
    for number, line in lines:
        _parse_line(report, rows, layout, number, line, missing)
    return rows


# ---- Header ------------------------------------------------------------------------------------------------


def _parse_header(report: ProblemReport, lines: Iterator[tuple[int, str]]) -> list[_Attribute]:
    """Return what is declared, and leave the iterator at the first line of data."""
    attributes: list[_Attribute] = []
    open_relation: _Attribute | None = None
    number = 0

    def complain(text: str, advice: str = _FIX_TAG) -> None:
        report.add("header", f"line {number}: {text}", position=number, advice=advice)

    for number, line in lines:
        tag = line.split(maxsplit=1)[0]
        rest = line[len(tag) :]
        match tag.lower():
            case "@data":
                if open_relation is not None:
                    complain(f"the relational attribute of line {open_relation.line} has no @end")
                elif not attributes:
                    complain("@data, and no attribute is declared")
                return attributes
            case "@attribute":
                attribute = _parse_attribute(rest, number)
                if attribute is None:
                    complain(f"{clip(line)} declares no attribute of a known type")
                    continue
                if open_relation is not None and attribute.kind != "numeric":
                    complain(f"{clip(attribute.name)} is {attribute.kind}, and the steps of a relation are numeric")
                (attributes if open_relation is None else open_relation.steps).append(attribute)
                if attribute.kind == "relational" and open_relation is None:
                    open_relation = attribute
            case "@end":
                if open_relation is None or rest.strip().strip("'\"") != open_relation.name:
                    complain(f"{clip(line)} ends no relational attribute")
                elif not open_relation.steps:
                    complain(f"the relational attribute {clip(open_relation.name)} declares no steps")
                open_relation = None
            case "@relation":
                pass
            case _ if line.startswith("@"):
                complain(f"{clip(tag)} is not known, expected @relation, @attribute, @end or @data")
            case _:
                complain(f"{clip(line)} comes before @data, expected a tag that begins with @", _BEFORE_DATA)
                return attributes
    complain("the file ends without @data", _BEFORE_DATA)
    return attributes


def _parse_attribute(text: str, line: int) -> _Attribute | None:
    """Return the attribute that stands after the tag, None if there is none."""
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        return None
    name = _unescape(next(group for group in match.groups() if group is not None))
    kind = match[4].strip()
    if kind.startswith("{") and kind.endswith("}"):
        classes = _split(kind[1:-1])
        return None if classes is None else _Attribute(name, "nominal", line, frozenset(map(_unescape, classes)))
    word = kind.split(maxsplit=1)[0].lower() if kind else ""
    if word in _NUMERIC:
        return _Attribute(name, "numeric", line)
    return _Attribute(name, word, line) if word in ("relational", "string", "date") else None


# ---- Which attribute means what ----------------------------------------------------------------------------


def _find_label(path: Path, attributes: list[_Attribute], label: str) -> int | None:
    """Return which attribute is the label, None if none is."""
    last = len(attributes) - 1
    if label in ("auto", "none"):
        is_label = attributes[last].kind in ("nominal", "string") or attributes[last].name.lower() in _LABEL_NAMES
        return last if is_label and attributes[last].kind != "relational" else None
    if label in ("first", "last"):
        return 0 if label == "first" else last
    found = [k for k, attribute in enumerate(attributes) if attribute.name == label]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found) or 'no'} attribute{'s are' if found else ' is'} named {clip(label)}"
    raise refusal(path, problem, "pass label='first', 'last', 'none' or the name of one attribute")


def _find_steps(path: Path, attributes: list[_Attribute], at: int | None) -> int:
    """Return how many steps a line has, refusing what is neither steps nor the label."""
    if at is not None and attributes[at].kind in ("relational", "date"):
        problem = f"line {attributes[at].line}: the attribute {clip(attributes[at].name)} is {attributes[at].kind}"
        raise refusal(path, f"{problem}, which a label cannot be", "pass label='last', 'none' or the name of another")
    others = [attribute for k, attribute in enumerate(attributes) if k != at]
    if not others:
        raise refusal(path, "its header declares no attribute but the label", _FIX_TAG)
    if others[0].kind == "relational" and len(others) == 1:
        return len(others[0].steps)
    odd = next((attribute for attribute in others if attribute.kind != "numeric"), None)
    if odd is None:
        return len(others)
    beside = " beside others" if odd.kind == "relational" else ""
    problem = f"line {odd.line}: the attribute {clip(odd.name)} is {odd.kind}{beside}, expected numbers"
    raise refusal(path, problem, f"remove it from the file, or pass label={clip(odd.name)} if it is the label")


class _Layout:
    """Where the label stands, and how many dimensions and steps every line has to have."""

    def __init__(self, attributes: list[_Attribute], label: int | None, steps: int) -> None:
        self.fields = len(attributes)
        self.label = label
        self.classes = frozenset[str]() if label is None else attributes[label].classes
        self.is_relational = any(attribute.kind == "relational" for attribute in attributes)
        self.steps = steps
        self.dimensions = None if self.is_relational else 1  # which no header declares
        self.first_line = 0

    def locate(self, step: int, dimension: int) -> str:
        """Say where a value stands."""
        if self.is_relational:
            return f"dimension {dimension + 1}, field {step + 1}"
        return f"field {step + 1 + (self.label is not None and step >= self.label)}"

    def agrees(self, report: ProblemReport, dimensions: list[list[str]], number: int) -> bool:
        """Whether a line has the shape expected; the first line sets the number of dimensions."""
        odd = next((index for index, values in enumerate(dimensions) if len(values) != self.steps), None)
        if odd is not None:
            text = f"line {number}: dimension {odd + 1} has {len(dimensions[odd])} values, the header declares"
            report.add("ragged dimensions", f"{text} {self.steps}", position=number, advice=_FIX_LINE)
            return False
        if self.dimensions is None:
            self.dimensions, self.first_line = len(dimensions), number
        if len(dimensions) != self.dimensions:
            text = f"line {number}: {len(dimensions)} dimension{'s' if len(dimensions) > 1 else ''}"
            text = f"{text}, line {self.first_line} has {self.dimensions}"
            report.add("dimensions", text, position=number, advice="give every line the same number of dimensions")
            return False
        return True


# ---- Data --------------------------------------------------------------------------------------------------


def _parse_line(report: ProblemReport, rows: Rows, layout: _Layout, number: int, line: str, missing: Missing) -> None:
    """Add one line to what was found."""
    if line.startswith("{"):
        text = f"line {number}: {clip(line)} is a sparse line, which is not read"
        report.add("sparse lines", text, position=number, advice="write every value, separated by commas")
        return
    fields = _split(line)
    if fields is None:
        text = f"line {number}: the quotes do not pair"
        report.add("quotes", text, position=number, advice=_FIX_QUOTES)
        return
    if len(fields) != layout.fields:
        plural = "s" if len(fields) > 1 else ""
        text = f"line {number}: {len(fields)} field{plural}, the header declares {layout.fields}"
        report.add("fields", text, position=number, advice=_FIX_LINE)
        return
    if layout.label is not None:
        word = _unescape(fields.pop(layout.label)).strip()
        if rows.labels is not None:
            rows.add_label(word, number)
            if layout.classes and word not in layout.classes and word not in _GAPS:
                text = f"line {number}: the label {clip(word)} is not among the {len(layout.classes)} declared"
                report.add("unknown labels", text, position=number, advice="declare every label, in {} and exactly")
    dimensions = [part.split(",") for part in fields[0].split("\\n")] if layout.is_relational else [fields]
    if layout.agrees(report, dimensions, number):
        steps = _parse_steps(report, layout, dimensions, number, missing)
        if steps is not None:
            rows.series.append(steps)


def _parse_steps(
    report: ProblemReport, layout: _Layout, dimensions: list[list[str]], number: int, missing: Missing
) -> Values | None:
    """Return the dimensions, equally long, as steps (T, m) without padding."""
    fields = [value for dimension in dimensions for value in dimension]
    values = parse_values(report, fields, number, lambda k: layout.locate(k % layout.steps, k // layout.steps))
    if values is None:
        return None
    steps = values.reshape(len(dimensions), layout.steps).T
    known = np.flatnonzero(~np.isnan(steps).all(axis=1))
    return fill_gaps(report, steps[: known[-1] + 1 if known.size else 0], number, layout.locate, missing)


def _split(line: str) -> list[str] | None:
    """Return the fields between commas, without their quotes; None if those do not pair."""
    if "'" not in line and '"' not in line:
        return [field.strip() for field in line.split(",")]
    fields, position = [], 0
    while True:
        match = _FIELD.match(line, position)
        if match is None:
            return None
        single, double, bare, comma = match.groups()
        fields.append(next(text for text in (single, double, bare.strip() if bare else bare) if text is not None))
        if not comma:
            return fields
        position = match.end()


def _unescape(text: str) -> str:
    """Return a quoted name as it is meant: a backslash stands before a quote or a backslash of its own."""
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text
