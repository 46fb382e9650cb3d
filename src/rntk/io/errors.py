"""`DataFileError`, and the two ways one comes about: a file refused as a whole, or the problems of its lines."""

from __future__ import annotations

from pathlib import Path

from ..errors import ProblemReport, SequenceError

__all__ = ["DataFileError", "clip", "from_report", "refusal"]


class DataFileError(SequenceError):
    """A data file cannot be read; the message names the file, the lines, what was expected and what to do.

    It is a `rntk.errors.SequenceError`, so whoever guards against unusable data guards against unusable files, and
    with it a ``ValueError``. The attribute `problems` holds the problem lines one by one.

    Examples
    --------
    >>> from rntk.io import read
    >>> try:
    ...     read("nowhere/GunPoint_TRAIN.tsv")
    ... except DataFileError as error:
    ...     print(error)
    nowhere/GunPoint_TRAIN.tsv cannot be read: there is no such file, nor the folder nowhere; check the path
    """


def refusal(path: Path | str, problem: str, advice: str) -> DataFileError:
    """Return the error for a file, or a call, that gives no reason to look at single lines."""
    return DataFileError(f"{path} cannot be read: {problem}; {advice}", [problem])


def from_report(report: ProblemReport) -> DataFileError:
    """Return everything filed in the report as one `DataFileError`."""
    error = report.error()
    return DataFileError(str(error), error.problems)


def clip(text: str, limit: int = 30) -> str:
    """Quote what stands in a file for a message: on one line, and short however long it is."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
