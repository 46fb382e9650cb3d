"""`read`, the one door, and `LabelledSequences`, what comes through it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..sequences import SequenceBatch, as_batch
from ..sequences.gaps import MISSING, Missing
from .arff import parse_arff
from .table import parse_table
from .text import DataFile, find_file, read_text, refusal
from .ts import parse_ts
from .ucr import parse_ucr


class Format(NamedTuple):
    """A format: the function that reads it, its suffixes, who uses it, and how its comments begin."""

    parse: Callable[[DataFile, str], None]
    suffixes: tuple[str, ...]
    origin: str = ""
    comments: str = ""


#: A new format is a file with a function, and a row.
FORMATS = {
    "tsv": Format(parse_ucr, (".tsv", ".txt"), " (UCR)"),
    "ts": Format(parse_ts, (".ts",), " (aeon)", "#%"),
    "arff": Format(parse_arff, (".arff",), " (Weka)", "%"),
    "csv": Format(parse_table, (".csv",)),
}


@dataclass(frozen=True, slots=True, eq=False)
class LabelledSequences:
    """Sequences read from a file, with their labels.

    Attributes
    ----------
    X : SequenceBatch
        The n sequences, float64, in the order of the file.
    y : ndarray of shape (n,) or None
        int64 if all labels are whole numbers, float64 for regression targets, str otherwise; None without labels.
    path : Path
        The file.
    format : "tsv", "ts", "arff" or "csv"
        How it was read.
    """

    X: SequenceBatch
    y: NDArray[Any] | None
    path: Path
    format: str

    def __iter__(self) -> Iterator[Any]:
        """`X` and `y`: ``X, y = rntk.read(path)``."""
        return iter((self.X, self.y))

    def __repr__(self) -> str:
        labels = "None" if self.y is None else f"<{self.y.dtype.type.__name__.rstrip('_')} of shape {self.y.shape}>"
        return f"LabelledSequences(X={self.X!r}, y={labels}, path={str(self.path)!r}, format={self.format!r})"


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str = "auto",
    missing: Missing = "error",
    header: bool | None = None,
    decimal: str | None = None,
) -> LabelledSequences:
    """Return the labelled sequences in a file.

    Parameters
    ----------
    path : str or path-like
        - ``.tsv``, ``.txt``: the UCR format, one univariate sequence per line, label first, separated by tabs;
        - ``.ts``: the format of aeon and sktime, univariate or multivariate, without time stamps;
        - ``.arff``: the format of Weka, univariate or with the dimensions in one relational attribute;
        - ``.csv``: one univariate sequence per row. Long tables, with one row per step, are refused.
    format : "tsv", "ts", "arff", "csv" or None
        The format, if the suffix does not tell.
    label : "auto", "first", "last", "none" or the name of a column
        Where the label stands. "auto" is what the format says: the first field in ``.tsv``; what the header
        announces in ``.ts``; in ``.arff`` the last attribute if it is nominal, or named label, class, target or y;
        in ``.csv`` the column of such a name, else the first if there are more. "none" gives ``y = None``: every
        field is a value then, except what a header calls a label.
    missing : "error" or "interpolate"
        What to do about missing values (NaN, NA, ``?``, ``null`` or an empty field): refuse the file, or fill
        them linearly between their neighbours, and with the nearest value at the ends.
    header : bool or None
        Whether the first row of a ``.csv`` holds names. None looks at it.
    decimal : ".", "," or None
        How numbers are written in ``.csv`` and ``.tsv``. With decimal commas the fields of a ``.csv`` are separated by
        semicolons, or quoted. None is points, and refuses a ``.csv`` in which either may be meant, such as ``1;2,5``.

    Returns
    -------
    LabelledSequences
        With attributes `X` (a `SequenceBatch`), `y`, `path` and `format`.

    Raises
    ------
    DataFileError
        Naming the file, the lines, what was expected and what to do.

    Notes
    -----
    In ``.tsv``, ``.arff`` and ``.csv``, missing values at the end of a row are padding: they mark its length, before
    `missing` is considered. In ``.ts`` lengths are explicit, and a missing value is missing wherever it stands.

    Class labels keep their case, unlike with aeon's reader. Whole numbers may be written ``1`` or ``1.0``; where
    nothing tells classes from targets, numbers that are not whole make `y` float64.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "toy.tsv"
    >>> _ = path.write_text("1\\t0.5\\t0.25\\t0.75\\n2\\t1.5\\t2.5\\tNaN\\n")
    >>> data = read(path)
    >>> data.X
    SequenceBatch(2 sequences, lengths 2 to 3, 1 channel, float64)
    >>> data.y
    array([1, 2])
    >>> folder.cleanup()

    References
    ----------
    H. A. Dau et al., The UCR Time Series Classification Archive, 2018; M. Middlehurst et al., aeon, JMLR 2024.
    """
    where = _as_path(path)
    find_file(where, [suffix for each in FORMATS.values() for suffix in each.suffixes])
    chosen = _choose_format(where, format)
    _check_arguments(where, chosen, label, missing, header, decimal)
    file = DataFile(where, label, missing, header, decimal)
    FORMATS[chosen].parse(file, read_text(where, FORMATS[chosen].comments))
    y = file.parsed_labels()
    file.stop_if_wrong()
    if not file.series:
        raise file.refusal("it holds no sequences", "put one sequence per line after the header")
    return LabelledSequences(
        as_batch(file.series, dtype="float64", name=str(where), layout="time-first"), y, where, chosen
    )


def _as_path(path: object) -> Path:
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, str) and name and "\x00" not in name:
            return Path(name)
        raise refusal(f"path {name!r}", "it names no file", "pass the path of a file")
    raise refusal("path", f"it is of type {type(path).__name__}", "pass the path of a file, as a string or a Path")


def _choose_format(path: Path, format: object) -> str:
    say = f"pass format={_either(map(repr, FORMATS))}"
    if format is None:
        suffix = path.suffix.lower()
        for name, each in FORMATS.items():
            if suffix in each.suffixes:
                return name
        problem = f"its suffix {suffix!r} is not known" if suffix else "its name has no suffix"
        known = _either(f"{' or '.join(each.suffixes)}{each.origin}" for each in FORMATS.values())
        raise refusal(path, f"{problem}, expected {known}", say)
    if not isinstance(format, str) or format not in FORMATS:
        raise refusal(path, f"format={format!r} is not known", f"{say}, or leave it out")
    return format


def _either(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"


def _check_arguments(path: Path, format: str, label: object, missing: object, header: object, decimal: object) -> None:
    if not isinstance(label, str) or not label:
        raise refusal(path, f"label={label!r} is not a name", "pass 'auto', 'first', 'last', 'none' or a column's name")
    if not isinstance(missing, str) or missing not in MISSING:
        raise refusal(path, f"missing={missing!r} is not known", "pass missing='error' or 'interpolate'")
    if header is not None and not isinstance(header, bool):
        raise refusal(path, f"header={header!r} is not known", "pass header=True, header=False or None")
    if header is not None and format != "csv":
        raise refusal(path, f"header={header} is for .csv files, and this is read as .{format}", "leave header out")
    if decimal not in (None, ".", ","):
        raise refusal(path, f"decimal={decimal!r} is not known", "pass decimal='.' or ',', or leave it out")
    if decimal is not None and format not in ("csv", "tsv"):
        raise refusal(path, f"decimal={decimal!r} is not for .{format} files, which have points", "leave decimal out")
