"""The two ways a `DataFileError` comes about: a file refused as a whole, or the problems of its lines."""

from __future__ import annotations

from pathlib import Path

from ..errors import DataFileError, ProblemReport

__all__ = ["DataFileError", "clip", "from_report", "refusal"]


def refusal(path: Path | str, problem: str, advice: str) -> DataFileError:
    """Return the error for a file, or a call, that gives no reason to look at single lines."""
    return DataFileError(f"{path} cannot be read: {problem}; {advice}", [problem], str(path))


def from_report(report: ProblemReport) -> DataFileError:
    """Return everything filed in the report as one `DataFileError`."""
    error = report.error()
    return DataFileError(str(error), error.problems, error.subject)


def clip(text: str, limit: int = 30) -> str:
    """Quote what stands in a file for a message: on one line, and short however long it is."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
