"""From a path to text, from text to numbers and labels: what all formats have in common.

A format is a function of a `DataFile` and its text, which adds sequences and labels line by line. What is wrong with a
line is filed, so that one message tells everything; what makes a file unreadable as a whole is raised as a `refusal`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError, ProblemReport
from ..sequences.gaps import Missing, interpolate

Values = NDArray[np.float64]
#: Where step t of channel c stands in its line, in words.
Locate = Callable[[int, int], str]

#: How missing values are written, in lower case. An empty field is what spreadsheets and pandas leave.
_GAPS = frozenset({"", "nan", "na", "?", "null"})
_LABEL_GAPS = frozenset({"", "?", "nan", "-nan", "+nan"})  # no "na", which may well be a class
_LENGTH_LIMIT = 256  # NumPy stores every label at the width of the longest

# What users keep beside text files, by the first bytes.
_CONTAINERS = {
    b"PK\x03\x04": ("a zip archive (also .npz and .xlsx are)", "unpack it, or export the data as .csv"),
    b"\x1f\x8b": ("compressed with gzip", "unpack it first"),
    b"BZh": ("compressed with bzip2", "unpack it first"),
    b"\xfd7zXZ\x00": ("compressed with xz", "unpack it first"),
    b"\x93NUMPY": ("a NumPy .npy file", "load it with numpy.load and pass the array to rntk.as_batch"),
}
_ENCODE = "save it as UTF-8 text"


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def refusal(path: Path | str, problem: str, advice: str) -> DataFileError:
    """Return the error for a file, or a call, that gives no reason to look at single lines."""
    return DataFileError(f"{path} cannot be read: {problem}; {advice}", [problem], str(path))


def clip(text: str, limit: int = 30) -> str:
    """Quote what stands in a file for a message: on one line, and short however long it is."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: 1 field, 2 fields."""
    return f"{count} {noun}{'s' if count > 1 else ''}"


# -- a file while it is read -------------------------------------------------------------------------------------------


class DataFile:
    """A file while it is read: what the caller asked for, what was found, and what is wrong with it.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Where the label stands, as in `rntk.read`.
    missing : "error" or "interpolate"
        What to do about missing values.
    header : bool or None
        Whether the first row of a table holds names.
    decimal : "." or "," or None
        How numbers are written, as in `rntk.read`.

    Attributes
    ----------
    series : list of ndarray
        The sequences (T_i, m); those whose problems were filed are left out.
    labels : list of str or None
        None where the file, or the caller, says that there are none.
    kind : "class", "target" or "unknown"
        What the format knows of its labels.
    """

    def __init__(
        self, path: Path, label: str, missing: Missing, header: bool | None = None, decimal: str | None = None
    ) -> None:
        self.path, self.label, self.missing, self.header, self.decimal = path, label, missing, header, decimal
        self.report = ProblemReport(str(path))
        self.series: list[Values] = []
        self.labels: list[str] | None = None
        self.kind = "unknown"
        self._lines: list[int] = []  # of the labels

    def refusal(self, problem: str, advice: str) -> DataFileError:
        """Return the error for the file as a whole."""
        return refusal(self.path, problem, advice)

    def complain(self, line: int, kind: str, text: str, advice: str) -> None:
        """File a problem of a line."""
        self.report.add(kind, f"line {line}: {text}", position=line, advice=advice)

    def stop_if_wrong(self) -> None:
        """Raise what was filed, if anything was."""
        if self.report:
            raise self.report.error(DataFileError)

    def with_points(self, line: int, fields: list[str]) -> list[str]:
        """Fields as they would be with decimal points, if the caller says that the file has decimal commas."""
        if self.decimal != ",":
            return fields
        for field in fields:
            if "." in field and parse_number(field) is not None:
                problem = f"line {line}: {clip(field)} has a decimal point, and with decimal=',' numbers have commas"
                raise self.refusal(problem, "leave out thousands separators, or pass decimal='.'")
        return [field.replace(",", ".") if has_decimal_comma(field) else field for field in fields]

    def begin_labels(self, wanted: bool, kind: str = "unknown") -> None:
        """Say whether lines have labels, and what the format knows of them."""
        self.labels, self.kind = [] if wanted else None, kind

    def check_lengths(
        self, line: int, dimensions: Sequence[Sequence[str]], length: int, source: str, advice: str
    ) -> bool:
        """Whether all dimensions of a line have `length` values, as `source` says; if not, that is filed."""
        for index, values in enumerate(dimensions, start=1):
            if len(values) != length:
                text = f"dimension {index} has {len(values)} values, {source} {length}"
                self.complain(line, "ragged dimensions", text, advice)
                return False
        return True

    def add_label(self, line: int, label: str) -> None:
        """Take down the label of a line."""
        assert self.labels is not None
        self.labels.append(label.strip())
        self._lines.append(line)

    def add_sequence(
        self, line: int, dimensions: Sequence[Sequence[str]], locate: Locate, *, padded: bool = True
    ) -> bool:
        """Take down the values of a line, one list of equal length per channel; return whether they are numbers.

        With `padded`, missing values of all channels at the end mark the length.
        """
        length = len(dimensions[0])
        fields = [field for dimension in dimensions for field in dimension]
        values = parse_values(self.report, fields, line, lambda k: locate(k % length, k // length))
        if values is None:
            return False
        steps = values.reshape(len(dimensions), length).T
        if padded and length and np.isnan(steps[-1]).all():
            known = np.flatnonzero(~np.isnan(steps).all(axis=1))
            steps = steps[: known[-1] + 1 if known.size else 0]
        filled = self._fill_gaps(line, steps, locate)
        if filled is not None:
            self.series.append(filled)
        return True

    def _fill_gaps(self, line: int, values: Values, locate: Locate) -> Values | None:
        """Return the values (T, m) without NaN, or file the gaps if they are errors, or too wide to fill.

        Between two known values of a channel the gap is filled linearly; before the first and after the last known
        value, with that value.
        """
        gaps = np.isnan(values)
        if len(values) and not gaps.any():
            return values
        empty = np.flatnonzero(gaps.all(axis=0))
        if empty.size:
            which = f"dimension {empty[0] + 1} " if values.shape[1] > 1 else ""
            self.complain(line, "no values", f"{which}holds no values", "drop the line, or repair it")
            return None
        if self.missing == "error":
            step, channel = (int(index) for index in np.argwhere(gaps)[0])
            count = f", the first of {gaps.sum()} in this line" if gaps.sum() > 1 else ""
            text = f"line {line}, {locate(step, channel)} (step {step}): the value is missing{count}"
            advice = "pass missing='interpolate' to fill gaps linearly, or fill them in the file"
            self.report.add("missing values", text, position=line, advice=advice)
            return None
        return interpolate(values, np.array([0, len(values)]))

    def parsed_labels(self) -> NDArray[Any] | None:
        """Return the labels (n,) as int64 if all are whole numbers, float64 for targets, str otherwise.

        Labels written ``1.0`` or ``1.0000000e+00`` are whole numbers. Where the format does not tell classes from
        targets, labels that are all numbers, some of them not whole, are targets.
        """
        if self.labels is None:
            return None
        numbers = _as_numbers(self.labels)
        for line, label in zip(self._lines, self.labels, strict=True):
            self._check_label(line, label, all_numbers=numbers is not None)
        self.stop_if_wrong()
        if self.kind == "target":
            return numbers
        # Whole numbers beyond int64 are names: a double would not keep them apart from their neighbours.
        is_word = numbers is None or any(not -(2**63) <= int(each) < 2**63 for each in self.labels if _is_whole(each))
        found = None if numbers is None or is_word else _as_whole(self.labels, numbers)
        if found is None:
            return np.array(self.labels, dtype=np.str_) if is_word or self.kind == "class" else numbers
        return found

    def _check_label(self, line: int, label: str, *, all_numbers: bool) -> None:
        number = _as_numbers([label])
        if label.lower() in _LABEL_GAPS:
            missing = "give every sequence a label; if the file has none, pass label='none'"
            self.complain(line, "labels missing", "the label is missing", missing)
        elif len(label) > _LENGTH_LIMIT:
            text = f"the label {clip(label)} is {len(label)} characters long, expected a word or a number"
            self.complain(line, "long labels", text, "check that the line is separated as expected")
        elif self.kind == "target" and number is None:
            advice = "class names go with @classLabel, not @targetLabel"
            self.complain(line, "targets", f"the target {clip(label)} is not a number", advice)
        elif all_numbers and number is not None and np.isinf(number[0]):
            text = f"the label {clip(label)} is infinite in float64"
            self.complain(line, "infinite labels", text, "give a finite number, or a word")


class Expected:
    """A number that every line has to have, and who says so: the header, or else the first line.

    Parameters
    ----------
    value : int or None
        What the header says.
    first : str
        How a message quotes the first line, whose number goes between the braces.
    """

    def __init__(self, value: int | None, first: str = "line {} has") -> None:
        self.value, self.source, self._first = value, "the header says", first

    def agrees(self, file: DataFile, line: int, found: int, noun: str, advice: str, *, sound: bool = True) -> bool:
        """Whether a line has that number of things; if not, that is filed. The first `sound` line may set it."""
        if self.value is None and sound:
            self.value, self.source = found, self._first.format(line)
        agrees = self.value in (None, found)
        if not agrees:
            file.complain(line, f"{noun}s", f"{plural(found, noun)}, {self.source} {self.value}", advice)
        return agrees


# -- paths and bytes ---------------------------------------------------------------------------------------------------


def find_file(path: Path, suffixes: Collection[str] = ()) -> None:
    """Raise unless there is a regular file at the path, with a hint at what may have been meant."""
    try:
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            path.stat()  # is_file() and the like keep other errors to themselves from Python 3.14 on
        if path.is_file():
            return
        if path.is_dir():
            inside = sorted(entry.name for entry in path.iterdir() if entry.suffix.lower() in suffixes)
            advice = f"pass a file in it, such as {inside[0]}" if inside else "pass the path of a file"
            raise refusal(path, "it is a folder, not a file", advice)
        if path.exists():
            raise refusal(path, "it is not a regular file", "write the data to a file first")
        if not path.parent.is_dir():
            raise refusal(path, f"there is no such file, nor the folder {path.parent}", "check the path")
        names = [entry.name for entry in islice(path.parent.iterdir(), 1000)]  # comparing names takes its time
        close = difflib.get_close_matches(path.name, names, n=1)
    except OSError as error:
        raise refusal(path, f"the system says: {error.strerror or error}", "check the path") from error
    raise refusal(path, "there is no such file", f"did you mean {close[0]}?" if close else "check the path")


def read_text(path: Path, comments: str = "") -> str:
    """Return the text of a file, its lines separated by ``\\n`` whatever system wrote it.

    Lines that begin with one of `comments` may hold any bytes: some of the archive's files name their authors in
    another encoding.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise refusal(path, f"the system says: {error.strerror or error}", "check its permissions") from error
    for start, (what, advice) in _CONTAINERS.items():
        if content.startswith(start):
            raise refusal(path, f"it is {what}, not text", advice)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise refusal(path, "it is encoded as UTF-16", _ENCODE)
    if b"\x00" in content:
        line = content[: content.index(b"\x00")].count(b"\n") + 1
        raise refusal(path, f"line {line} holds a zero byte, so it is binary data, not text", "pass a text file")
    if comments and not content.isascii():
        content = re.sub(rb"(?m)^[ \t]*[%s][^\r\n]*" % comments.encode(), b"", content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = f"line {line} holds bytes that are not UTF-8 text, the first being 0x{content[error.start]:02x}"
        raise refusal(path, problem, f"pass a text file; if it is one, {_ENCODE}") from error
    if not text.strip():
        raise refusal(path, "it is empty", "pass a file with one sequence per line")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def numbered_lines(text: str, comments: str = "") -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1; with `comments`, stripped, and without those."""
    # Not `splitlines`, which also splits at characters that no editor counts as the end of a line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.isspace():
            stripped = line.strip() if comments else line
            if not stripped.startswith(tuple(comments)):
                yield number, stripped


def tagged_lines(file: DataFile, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the lines of a header up to @data: number, tag and what follows it. What else comes is filed."""
    advice, number = "put the line '@data' before the first sequence", 0
    for number, line in lines:
        tag = line.split(maxsplit=1)[0]
        if not line.startswith("@"):
            text = f"{clip(line)} comes before @data, expected a tag that begins with @"
            return file.complain(number, "header", text, advice)
        yield number, tag, line[len(tag) :]
        if tag.lower() == "@data":
            return None
    return file.complain(number, "header", "the file ends without @data", advice)


# -- numbers -----------------------------------------------------------------------------------------------------------


def parse_values(
    report: ProblemReport, fields: Sequence[str], line: int, locate: Callable[[int], str]
) -> Values | None:
    """Return fields as numbers of shape (len(fields),), NaN where a value is missing; file what is no number.

    `locate` says where the k-th field stands, and is called for messages only.
    """
    values = _as_numbers(fields)
    if values is None:
        # Something is missing, or wrong: only such lines are looked at field by field.
        numbers = [parse_number(field) for field in fields]
        wrong = [index for index, number in enumerate(numbers) if number is None]
        if wrong:
            count = f", the first of {len(wrong)} such fields in this line" if len(wrong) > 1 else ""
            text = f"line {line}, {locate(wrong[0])}: {clip(fields[wrong[0]])} is not a number{count}"
            advice = "write numbers with a decimal point, and missing values as NaN, ? or an empty field"
            if any(has_decimal_comma(fields[index]) for index in wrong):
                advice = "pass decimal=',' if numbers have decimal commas"
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


def parse_number(field: str) -> float | None:
    """Return the number in a field, NaN if it is missing, None if the field is text."""
    field = field.strip()
    if field.lower() in _GAPS:
        return np.nan
    found = _as_numbers([field])
    return None if found is None else float(found[0])


def has_decimal_comma(field: str) -> bool:
    """Whether a field is a number written with a decimal comma: 2,5."""
    return re.fullmatch(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", field) is not None


def _as_numbers(fields: Sequence[str]) -> Values | None:
    """Return fields as float64 if every one is a number, infinite or not; else None."""
    try:
        numbers = np.array(list(map(float, fields)), dtype=np.float64)
    except ValueError:
        return None
    return None if "_" in "".join(fields) else numbers  # Python reads 1_0 as ten


def _is_whole(label: str) -> bool:
    return label.lstrip("+-").isdigit()


def _as_whole(labels: Sequence[str], numbers: Values) -> NDArray[np.int64] | None:
    """Return the labels as int64 if they are whole numbers that int64 holds exactly."""
    if (np.abs(numbers) < 2**53).all():  # below, a double is the number that was written
        return numbers.astype(np.int64) if (numbers == np.floor(numbers)).all() else None
    try:
        return np.array(list(map(int, labels)), dtype=np.int64)
    except ValueError:
        return None
