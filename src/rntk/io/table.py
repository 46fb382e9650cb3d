"""Comma-separated tables: one univariate sequence per row, its label in a column, with or without a header line.

Rows may be padded at the end with empty fields or NaN, or be of unequal length themselves. Which line and which
column means what is decided from the first two rows, so that the rest streams through. Where those leave a real
doubt the file is refused, and the message says which argument settles it: a header read as data would be one wrong
sequence that nobody sees.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..sequences.frames import LABEL_NAMES, ROW_NAMES, TIME_NAMES
from .text import DataFile, clip, has_decimal_comma, parse_number

Row = tuple[int, list[str]]  # the line where it begins, and its fields

_CLASS_WORDS = frozenset({"target", "y"})  # label names that may as well be the name of a class
_PLACES = ("auto", "first", "last", "none")  # the values of `label` that are not names
_SAY_HEADER = "pass header=True if it is a header, header=False if it is a sequence"
_SAY_LONG = (
    "write one row per sequence and one column per step, or read it with pandas and pass the frame to "
    "rntk.SequenceBatch.from_long"
)
_SAY_LABEL = "pass label='first', 'last', 'none' or the name of a column"


def parse_table(file: DataFile, text: str) -> None:
    """Add the sequences and labels of a table."""
    rows = _split(file, text)
    first, second = next(rows, None), next(rows, None)
    if first is None:
        raise file.refusal("it holds no sequences", "pass a file with one sequence per row")
    header = file.header
    if header is None:
        header = _is_header(file, first, None if second is None else second[1])
    if header and second is None:
        raise file.refusal("its only row is read as a header, so it holds no sequences", _SAY_HEADER)
    columns = _read_header(file, first) if header else _without_header(file, first)
    file.begin_labels(columns.label is not None)
    for number, fields in chain([] if header else [first], [] if second is None else [second], rows):
        _parse_row(file, columns, number, fields)


def _split(file: DataFile, text: str) -> Iterator[Row]:
    """Yield the rows that are not blank, refusing what no row can be made of."""
    start = next(line for line in text.split("\n") if line.strip())
    semicolons, commas = start.count(";"), start.count(",")
    if start.count("\t") > commas:
        raise file.refusal("its first line is separated by tabs, expected commas", "pass format='tsv'")
    if file.decimal is None and semicolons and (semicolons > commas or any(map(has_decimal_comma, start.split(";")))):
        problem = "its first line is separated by semicolons, expected commas"
        if semicolons <= commas:
            problem = f"its first line, {clip(start)}, may be separated by semicolons, or by commas"
        advice = "pass decimal=',' if semicolons separate numbers with decimal commas"
        raise file.refusal(problem, f"{advice}, decimal='.' if commas separate; otherwise save it with commas")
    separator = ";" if file.decimal == "," and semicolons else ","
    reader = csv.reader(text.split("\n"), delimiter=separator, skipinitialspace=True, strict=True)
    number = 1
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield number, file.with_points(number, fields)
            number = reader.line_num + 1
    except csv.Error as error:
        raise file.refusal(f"line {number}: {error}", "check the quotes, and that commas separate") from error


def _parse_row(file: DataFile, columns: _Columns, number: int, fields: list[str]) -> None:
    """Add one row to what was found."""
    if columns.names is not None and len(fields) > len(columns.names):
        text = f"{len(fields)} fields, the header names {len(columns.names)}"
        file.complain(number, "long rows", text, "give every field a name, and quote commas in text")
        return
    if columns.label is not None:
        at = len(fields) - 1 if columns.label < 0 else columns.label
        file.add_label(number, fields[at] if at < len(fields) else "")
        if len(fields) <= 1:
            advice = "pass label='none' if there are no labels"
            file.complain(number, "no values", "one field, and no values", advice)
            return
    skipped = {index % len(fields) if index < 0 else index for index in columns.skipped}
    kept = [index for index in range(len(fields)) if index not in skipped]
    if not file.add_sequence(number, [[fields[k] for k in kept]], lambda step, _: f"field {kept[step] + 1}"):
        if kept and _is_text(fields[kept[-1]]) and not any(_is_text(fields[k]) for k in kept[:-1]):
            file.report.advise("if the label is the last field, pass label='last'")
        elif number == 1:
            file.report.advise("if line 1 is a header, pass header=True")


def _is_text(field: str) -> bool:
    """Whether a field holds something that is neither a number nor a missing value."""
    return parse_number(field) is None


def _is_number(field: str) -> bool:
    """Whether a field holds a number, finite or not."""
    number = parse_number(field)
    return number is not None and not np.isnan(number)


# ---- Which line is a header --------------------------------------------------------------------------------


def _is_header(file: DataFile, first: Row, second: Sequence[str] | None) -> bool:
    """Whether the first row holds names."""
    label, (line, fields) = file.label, first
    texts = [index for index, field in enumerate(fields) if _is_text(field)]
    numbers = [field for field in fields if _is_number(field)]
    if not texts:
        if len(fields) > 1 and not fields[0].strip() and _counts_up(fields[1:]):
            return True  # what pandas writes unless told index=False
        if len(fields) >= 4 and fields[0].strip() == "0" and _counts_up(fields):
            raise file.refusal(f"line {line} may be a header or a sequence, its fields count up", _SAY_HEADER)
        if second is not None and _has_grid(fields) and not _has_grid(second):
            problem = f"line {line} may be a header or a sequence, its fields increase evenly, as times do"
            raise file.refusal(problem, _SAY_HEADER)
        return False
    if not numbers:
        return True
    label_names = LABEL_NAMES if label in _PLACES else LABEL_NAMES | {label.strip().casefold()}
    names = {fields[index].strip().casefold() for index in texts}
    if len(texts) > 1:
        return bool(names & label_names) or 2 * len(texts) > len(fields)
    # One word among numbers: the name of the label column, or the label of a sequence.
    (word,), (at,) = names, texts
    if word in label_names - _CLASS_WORDS:
        return True
    is_first_of_numbers = second is not None and at < len(second) and _is_number(second[at])
    if word in label_names and (_counts_up(numbers) or is_first_of_numbers):
        return True
    is_at_end = at in (0, len(fields) - 1)
    if word in label_names or (is_at_end and (is_first_of_numbers or (len(numbers) >= 4 and _is_grid(numbers)))):
        problem = f"line {line} may be a header or a sequence, {clip(fields[at])} being a column or a class"
        raise file.refusal(problem, _SAY_HEADER)
    return False


def _counts_up(fields: Sequence[str]) -> bool:
    """Whether the fields are 0, 1, 2, ... or 1, 2, 3, ..., as columns without names are numbered."""
    words = [field.strip() for field in fields]
    return any(words == [str(k) for k in range(start, start + len(words))] for start in (0, 1))


def _has_grid(fields: Sequence[str]) -> bool:
    """Whether the fields, apart from one for the label, are a grid of four numbers or more."""
    parts = [part for part in (fields, fields[1:], fields[:-1]) if len(part) >= 4 and all(map(_is_number, part))]
    return any(map(_is_grid, parts))


def _is_grid(numbers: Sequence[str]) -> bool:
    """Whether the numbers increase evenly, as the times do that columns may be named after."""
    with np.errstate(all="ignore"):  # of infinite values, which are no grid
        steps = np.diff(np.array(list(map(float, numbers))))
    return bool(np.isfinite(steps).all() and steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0.0))


# ---- Which column is the label -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the columns of a table are."""

    label: int | None  # -1 for the last field of each row, None without labels
    skipped: frozenset[int]  # columns that are not steps
    names: list[str] | None  # as in the header


def _without_header(file: DataFile, first: Row) -> _Columns:
    label = file.label
    if label not in _PLACES:
        problem = f"label={label!r} names a column, and line {first[0]} is not a header"
        raise file.refusal(problem, "pass 'first', 'last' or 'none', or header=True if that line holds names")
    if label == "none" or (label == "auto" and len(first[1]) == 1):
        return _Columns(None, frozenset(), None)
    at = -1 if label == "last" else 0
    return _Columns(at, frozenset({at}), None)


def _read_header(file: DataFile, first: Row) -> _Columns:
    label, (line, fields) = file.label, first
    names = [name.strip() for name in fields]
    folded = [name.casefold() for name in names]
    named = [index for index, name in enumerate(folded) if name in LABEL_NAMES]
    if label == "none":
        # A column that the file itself calls a label is never a step.
        at, skipped = None, set(named)
    elif label in ("auto", "first", "last"):
        at = _choose_label(file, names, named)
        skipped = set() if at is None else {at}
    else:
        at = _find_column(file, names, folded)
        skipped = {at}
    # A label that was only supposed, being first, may as well be a clock or a row number.
    is_supposed = label == "auto" and not named
    _refuse_other_columns(file, line, names, folded, set() if is_supposed else skipped)
    rest = [names[index] for index in named if index not in skipped]
    if rest:
        problem = f"line {line} names a column {clip(rest[0])} besides the label, which cannot be a step"
        raise file.refusal(problem, f"remove it from the file, or {_SAY_LABEL}")
    if len(names) == len(skipped):
        raise file.refusal(f"line {line} names no column but the label, so there are no values", _SAY_HEADER)
    return _Columns(at, frozenset(skipped), names)


def _choose_label(file: DataFile, names: list[str], named: list[int]) -> int | None:
    """Return the column that is the label where the caller gave no name."""
    if file.label != "auto":
        return 0 if file.label == "first" else len(names) - 1
    if named:
        return named[0]
    if len(names) == 1:
        return None
    if _is_next(names[0], names[1]):
        problem = f"no column is named label, class, target or y, and {clip(names[0])} looks like a step"
        raise file.refusal(problem, _SAY_LABEL)
    return 0


def _is_next(name: str, following: str) -> bool:
    """Whether two names are numbered one after the other, as in t0, t1."""
    one, two = (re.fullmatch(r"(.*?)([0-9]{1,9})", word) for word in (name, following))
    return one is not None and two is not None and one[1] == two[1] and int(one[2]) + 1 == int(two[2])


def _find_column(file: DataFile, names: list[str], folded: list[str]) -> int:
    """Return the one column of the name that the caller gave, exactly or in another case."""
    label = file.label.strip()
    matches = [k for k, name in enumerate(names) if name == label]
    matches = matches or [k for k, name in enumerate(folded) if name == label.casefold()]
    if len(matches) == 1:
        return matches[0]
    shown = ", ".join(map(clip, names[:5])) + (", …" if len(names) > 5 else "")
    if matches:
        raise file.refusal(f"{len(matches)} columns are named {clip(file.label)}", "give them different names")
    raise file.refusal(f"no column is named {clip(file.label)}; the columns are {shown}", _SAY_LABEL)


def _refuse_other_columns(file: DataFile, line: int, names: list[str], folded: list[str], skipped: set[int]) -> None:
    """Raise if the header names a column that is no step: a clock, or a row number."""
    steps = [k for k in range(len(names)) if k not in skipped]
    shown = ", ".join(map(clip, names[:4])) + (", …" if len(names) > 4 else "")
    if any(folded[k] in TIME_NAMES for k in steps):
        problem = f"line {line} names the columns {shown}: a long table, with one row per step, is not read"
        raise file.refusal(problem, _SAY_LONG)
    for k in steps:
        if folded[k] in ROW_NAMES:
            problem = f"line {line}, field {k + 1}: the column {clip(names[k])} looks like a row number, not a step"
            raise file.refusal(problem, "remove it from the file (pandas: to_csv(..., index=False)), or rename it")
