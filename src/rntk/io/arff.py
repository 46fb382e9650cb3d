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

from ..sequences.frames import LABEL_NAMES
from .text import DataFile, Expected, clip, numbered_lines, plural, tagged_lines

_NUMERIC = frozenset({"numeric", "real", "integer"})
_FIX_TAG = "declare '@attribute NAME numeric' for every step, and '@attribute NAME {a,b,c}' for the class"
_FIX_LINE = "repair the line, or correct what the header declares"
_FIX_DIMENSIONS = "give every line the same number of dimensions"
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


def parse_arff(file: DataFile, text: str) -> None:
    """Add the sequences and labels of an ``.arff`` file."""
    lines = numbered_lines(text, "%")
    attributes = _parse_header(file, lines)
    file.stop_if_wrong()
    at = _find_label(file, attributes)
    layout = _Layout(attributes, at, _find_steps(file, attributes, at))
    is_class = at is not None and attributes[at].kind == "nominal"
    file.begin_labels(at is not None and file.label != "none", "class" if is_class else "unknown")
    for number, line in lines:
        _parse_line(file, layout, number, line)


# ---- Header ------------------------------------------------------------------------------------------------


def _parse_header(file: DataFile, lines: Iterator[tuple[int, str]]) -> list[_Attribute]:
    """Return what is declared, and leave the iterator at the first line of data."""
    attributes: list[_Attribute] = []
    open_relation: _Attribute | None = None
    for number, tag, rest in tagged_lines(file, lines):
        problem = None
        match tag.lower():
            case "@data" if open_relation is not None:
                problem = f"the relational attribute of line {open_relation.line} has no @end"
            case "@data" if not attributes:
                problem = "@data, and no attribute is declared"
            case "@attribute":
                attribute = _parse_attribute(rest, number)
                if attribute is None:
                    problem = f"{clip(tag + rest)} declares no attribute of a known type"
                elif open_relation is not None:
                    open_relation.steps.append(attribute)
                    if attribute.kind != "numeric":
                        problem = f"{clip(attribute.name)} is {attribute.kind}, and the steps of a relation are numeric"
                else:
                    attributes.append(attribute)
                    open_relation = attribute if attribute.kind == "relational" else None
            case "@end":
                if open_relation is None or rest.strip().strip("'\"") != open_relation.name:
                    problem = f"{clip(tag + rest)} ends no relational attribute"
                elif not open_relation.steps:
                    problem = f"the relational attribute {clip(open_relation.name)} declares no steps"
                open_relation = None
            case "@relation" | "@data":
                pass
            case _:
                problem = f"{clip(tag)} is not known, expected @relation, @attribute, @end or @data"
        if problem:
            file.complain(number, "header", problem, _FIX_TAG)
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


def _find_label(file: DataFile, attributes: list[_Attribute]) -> int | None:
    """Return which attribute is the label, None if none is."""
    label, last = file.label, len(attributes) - 1
    if label in ("auto", "none"):
        is_label = attributes[last].kind in ("nominal", "string") or attributes[last].name.lower() in LABEL_NAMES
        return last if is_label and attributes[last].kind != "relational" else None
    if label in ("first", "last"):
        return 0 if label == "first" else last
    found = [k for k, attribute in enumerate(attributes) if attribute.name == label]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found) or 'no'} attribute{'s are' if found else ' is'} named {clip(label)}"
    raise file.refusal(problem, "pass label='first', 'last', 'none' or the name of one attribute")


def _find_steps(file: DataFile, attributes: list[_Attribute], at: int | None) -> int:
    """Return how many steps a line has, refusing what is neither steps nor the label."""
    if at is not None and attributes[at].kind in ("relational", "date"):
        problem = f"line {attributes[at].line}: the attribute {clip(attributes[at].name)} is {attributes[at].kind}"
        raise file.refusal(f"{problem}, which a label cannot be", "pass label='last', 'none' or the name of another")
    others = [attribute for k, attribute in enumerate(attributes) if k != at]
    if not others:
        raise file.refusal("its header declares no attribute but the label", _FIX_TAG)
    if others[0].kind == "relational" and len(others) == 1:
        return len(others[0].steps)
    odd = next((attribute for attribute in others if attribute.kind != "numeric"), None)
    if odd is None:
        return len(others)
    beside = " beside others" if odd.kind == "relational" else ""
    problem = f"line {odd.line}: the attribute {clip(odd.name)} is {odd.kind}{beside}, expected numbers"
    raise file.refusal(problem, f"remove it from the file, or pass label={clip(odd.name)} if it is the label")


class _Layout:
    """Where the label stands, and how many dimensions and steps every line has to have."""

    def __init__(self, attributes: list[_Attribute], label: int | None, steps: int) -> None:
        self.fields = len(attributes)
        self.label = label
        self.classes = frozenset[str]() if label is None else attributes[label].classes
        self.is_relational = any(attribute.kind == "relational" for attribute in attributes)
        self.steps = steps
        self.dimensions = Expected(None if self.is_relational else 1)  # which no header declares

    def locate(self, step: int, dimension: int) -> str:
        """Say where a value stands."""
        if self.is_relational:
            return f"dimension {dimension + 1}, field {step + 1}"
        return f"field {step + 1 + (self.label is not None and step >= self.label)}"


# ---- Data --------------------------------------------------------------------------------------------------


def _parse_line(file: DataFile, layout: _Layout, number: int, line: str) -> None:
    """Add one line to what was found."""
    if line.startswith("{"):
        text = f"{clip(line)} is a sparse line, which is not read"
        return file.complain(number, "sparse lines", text, "write every value, separated by commas")
    fields = _split(line)
    if fields is None:
        return file.complain(number, "quotes", "the quotes do not pair", _FIX_QUOTES)
    if len(fields) != layout.fields:
        text = f"{plural(len(fields), 'field')}, the header declares {layout.fields}"
        return file.complain(number, "fields", text, _FIX_LINE)
    if layout.label is not None:
        word = _unescape(fields.pop(layout.label)).strip()
        if file.labels is not None:
            file.add_label(number, word)
            if layout.classes and word not in layout.classes and word not in ("", "?"):
                text = f"the label {clip(word)} is not among the {len(layout.classes)} declared"
                file.complain(number, "unknown labels", text, "declare every label, in {} and exactly")
    dimensions = [part.split(",") for part in fields[0].split("\\n")] if layout.is_relational else [fields]
    even = file.check_lengths(number, dimensions, layout.steps, "the header declares", _FIX_LINE)
    if even and layout.dimensions.agrees(file, number, len(dimensions), "dimension", _FIX_DIMENSIONS):
        file.add_sequence(number, dimensions, layout.locate)
    return None


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
