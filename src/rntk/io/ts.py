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
from typing import Any

from .text import DataFile, Expected, clip, numbered_lines, tagged_lines

#: What the tags say, by their names in lower case; absent where they say nothing.
Tags = dict[str, Any]

_SIZES = ("dimension", "serieslength")
_CHOICES = ("timestamps", "univariate", "equallength", "classlabel", "targetlabel")
_DESCRIBE_LABEL = (
    "if the lines end in a label, announce it with '@classLabel true a b c' or '@targetLabel true', "
    "or pass label='last'"
)
_FIX_TAG = "see aeon's description of the .ts format, or remove the tag"
_FIX_LINE = "repair the line, or correct what the header says"
_FIX_LENGTHS = "give all dimensions of a line the same number of values"
_FIX_STEPS = f"{_FIX_LINE} (@equalLength, @seriesLength)"


def parse_ts(file: DataFile, text: str) -> None:
    """Add the sequences and labels of a ``.ts`` file."""
    if file.label not in ("auto", "last", "none"):
        problem = f"label={file.label!r} does not fit: the label of a .ts file is the last part of a line"
        raise file.refusal(problem, "pass 'auto', 'last' or 'none'")
    lines = numbered_lines(text, "#%")
    tags = _parse_header(file, lines)
    file.stop_if_wrong()
    if tags.get("timestamps"):
        problem = "its header says '@timeStamps true', and sequences with time stamps are not supported"
        raise file.refusal(problem, "export the values alone, at regular steps")
    _parse_data(file, tags, lines)


def _parse_header(file: DataFile, lines: Iterator[tuple[int, str]]) -> Tags:
    """Return what the tags say, and leave the iterator at the first line of data."""
    tags: Tags = {}
    for number, tag, rest in tagged_lines(file, lines):
        name = tag.lower().removeprefix("@").replace("dimensions", "dimension")
        problem = _parse_tag(tags, name, rest.split())
        if problem:
            file.complain(number, "header", f"{tag} takes {problem}, got {clip(' '.join(rest.split()))}", _FIX_TAG)
        elif name == "data":
            _check_header(file, tags, number)
    return tags


def _parse_tag(tags: Tags, name: str, values: list[str]) -> str | None:
    """Store what one tag says, or return what it takes. Tags that do not concern the layout are passed over."""
    first = values[0].lower() if values else ""
    if name in _SIZES:
        # Digits of ASCII, few enough to be a size: `int` takes far more than a header means.
        if len(values) != 1 or not (first.isascii() and first.isdigit() and 0 < len(first.lstrip("0")) < 10):
            return "a whole number from 1"
        tags[name] = int(first)
    elif name in _CHOICES:
        if first not in ("true", "false") or (len(values) > 1 and name != "classlabel"):
            return "true or false"
        tags[name] = first == "true"
        if name == "classlabel":
            tags["classes"] = frozenset(map(_normalise, values[1:]))
    return None


def _check_header(file: DataFile, tags: Tags, number: int) -> None:
    if tags.get("univariate") and tags.get("dimension", 1) != 1:
        text = f"the header says both '@univariate true' and '@dimension {tags['dimension']}'"
        file.complain(number, "header", text, "correct one of the two tags")
    if tags.get("classlabel") and tags.get("targetlabel"):
        text = "the header announces both class labels and target labels"
        file.complain(number, "header", text, "correct one of the two tags")


def _parse_data(file: DataFile, tags: Tags, lines: Iterator[tuple[int, str]]) -> None:
    announced = "target" if tags.get("targetlabel") else "class" if tags.get("classlabel") else "unknown"
    has_label = file.label == "last" or announced != "unknown"
    file.begin_labels(has_label and file.label != "none", announced)
    count = Expected(1 if tags.get("univariate") else tags.get("dimension"))
    length = Expected(tags.get("serieslength"), "'@equalLength true', and line {} has")
    for number, line in lines:
        parts = line.split(":")
        if has_label:
            if len(parts) == 1 or "," in parts[-1]:
                text = "the label is missing, the line ends in values"
                file.complain(number, "labels missing", text, "end every line with ':' and its label")
                continue
            word = parts.pop()
            if file.labels is not None:
                file.add_label(number, word)
                _check_class(file, tags.get("classes"), word, number)
        dimensions = [part.split(",") for part in parts]
        steps = len(dimensions[0])
        even = all(len(values) == steps for values in dimensions)
        if not (
            count.agrees(file, number, len(dimensions), "dimension", _FIX_LINE, sound=even)
            and file.check_lengths(number, dimensions, steps, "dimension 1 has", _FIX_LENGTHS)
        ):
            if not has_label:
                file.report.advise(_DESCRIBE_LABEL)
        elif not tags.get("equallength") or length.agrees(file, number, steps, "step", _FIX_STEPS):
            file.add_sequence(number, dimensions, _locate if len(dimensions) > 1 else _locate_step, padded=False)


def _locate(step: int, channel: int) -> str:
    return f"dimension {channel + 1}, {_locate_step(step, channel)}"


def _locate_step(step: int, channel: int) -> str:
    return f"field {step + 1}"


def _check_class(file: DataFile, classes: frozenset[str | float] | None, word: str, number: int) -> None:
    """File a label that the header does not list. A label of several words appears there word by word."""
    words = word.split()
    if words and classes and not all(_normalise(part) in classes for part in words):
        text = f"the label {clip(word.strip())} is not among the {len(classes)} of @classLabel"
        file.complain(number, "unknown labels", text, "list every label after '@classLabel true'")


def _normalise(word: str) -> str | float:
    """Return what decides whether two labels are the same: 1 and 1.0 are, and so are walk and Walk."""
    try:
        return float(word)
    except ValueError:
        return word.casefold()
