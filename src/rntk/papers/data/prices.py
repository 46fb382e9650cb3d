"""Daily prices of a stock, as finance sites export them: a header line, then one line per trading day."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import ProblemReport
from ...io.errors import clip, from_report, refusal
from ...io.fields import parse_values
from ...io.source import find_file, read_text
from .folder import DataPath, find_prices

Array = NDArray[np.float64]

#: Columns of the file, spelled without spaces and in lower case, in the order of the fields of `Prices`.
_COLUMNS = {
    "date": "Date",
    "open": "Open",
    "high": "High",
    "low": "Low",
    "close": "Close",
    "adjclose": "Adj Close",
    "volume": "Volume",
}
_EXPORT = "export daily prices as a .csv whose first line is Date,Open,High,Low,Close,Adj Close,Volume"


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Daily prices, the oldest first: arrays of shape (n,), float64 but for `dates`, which are datetime64[D].

    `adjusted_close` is the closing price after splits and dividends; `volume` counts the shares traded.
    """

    dates: NDArray[np.datetime64]
    open: Array
    high: Array
    low: Array
    close: Array
    adjusted_close: Array
    volume: Array

    def __len__(self) -> int:
        return len(self.dates)

    def __repr__(self) -> str:
        return f"Prices({len(self)} day{'s' if len(self) != 1 else ''}, {self.dates[0]} to {self.dates[-1]})"


def load_prices(path: DataPath) -> Prices:
    """Return the daily prices in a file, or in the file that `find_prices` finds in a folder.

    Parameters
    ----------
    path : path
        A ``.csv`` with the columns Date, Open, High, Low, Close, Adj Close and Volume, in any order and any case,
        dates as YYYY-MM-DD and increasing. Further columns are passed over.

    Raises
    ------
    DataFileError
        Naming the lines: dates that do not increase, values that are missing, no numbers, or prices not above 0.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rntk.papers.data import load_prices
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "GOOG.csv")
    ...     _ = file.write_text("Date,Open,High,Low,Close,Adj Close,Volume\\n2018-12-31,105,106,103,104,52,1400\\n")
    ...     prices = load_prices(folder)
    >>> prices
    Prices(1 day, 2018-12-31 to 2018-12-31)
    >>> prices.close
    array([104.])
    """
    where = Path(os.fspath(path)).expanduser()
    if where.is_dir():
        found = find_prices(where)
        if found is None:
            raise refusal(where, "no .csv in it has a name that begins with GOOG", f"put one there: {_EXPORT}")
        where = found
    find_file(where)
    return _parse(where, read_text(where))


def _parse(path: Path, text: str) -> Prices:
    reader = csv.reader(text.split("\n"), skipinitialspace=True)
    report = ProblemReport(str(path))
    days: list[tuple[int, date]] = []  # line and date
    rows: list[Array] = []
    try:
        header = next(row for row in reader if any(map(str.strip, row)))
        places = _read_header(path, header)
        for row in reader:
            if any(map(str.strip, row)):
                _parse_day(report, row, places, reader.line_num, days, rows)
    except csv.Error as error:
        raise refusal(path, f"line {reader.line_num}: {error}", "check the quotes, and that commas separate") from error
    if report:
        raise from_report(report)
    if not rows:
        raise refusal(path, "it has no line after its header", _EXPORT)
    columns = np.array(rows).T
    names = [part.name for part in fields(Prices)][1:]
    dates = np.array([day for _, day in days], dtype="datetime64[D]")
    return Prices(dates, **dict(zip(names, np.ascontiguousarray(columns), strict=True)))


def _read_header(path: Path, names: list[str]) -> list[int]:
    """Return where the columns of `_COLUMNS` stand."""
    folded = [re.sub(r"[\s_.]", "", name).casefold() for name in names]
    absent = [shown for name, shown in _COLUMNS.items() if folded.count(name) != 1]
    if absent:
        shown = ", ".join(map(clip, names[:8])) + (", …" if len(names) > 8 else "")
        once = "column" if len(absent) == 1 else "columns"
        raise refusal(path, f"expected the {once} {', '.join(absent)} once each, got {shown}", _EXPORT)
    return [folded.index(name) for name in _COLUMNS]


def _parse_day(
    report: ProblemReport, row: list[str], places: list[int], line: int, days: list[tuple[int, date]], rows: list[Array]
) -> None:
    """Add one line to what was found, or file what is wrong with it."""
    names = list(_COLUMNS.values())
    cells = [row[at].strip() if at < len(row) else "" for at in places]
    day = _parse_date(cells[0])
    if day is None:
        text = f"line {line}: {clip(cells[0])} is not a date"
        report.add("dates", text, position=line, advice="write dates as YYYY-MM-DD")
    else:
        if days and day <= days[-1][1]:
            text = f"line {line}: {day} does not come after {days[-1][1]} of line {days[-1][0]}"
            report.add("order", text, position=line, advice="sort the lines by date, the oldest first, each day once")
        days.append((line, day))
    values = parse_values(report, cells[1:], line, lambda k: names[k + 1])
    if values is None:
        return
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        text = f"line {line}, {names[missing[0] + 1]}: the value is missing"
        report.add("missing values", text, position=line, advice="drop days without prices from the file")
    below = np.flatnonzero(np.append(values[:-1] <= 0, values[-1] < 0))  # the last is the volume
    if below.size:
        k = int(below[0])
        bound = "above 0" if k < len(values) - 1 else "from 0 on"
        text = f"line {line}, {names[k + 1]}: expected a number {bound}, got {clip(cells[k + 1])}"
        report.add("bounds", text, position=line, advice="check that the columns are what their names say")
    rows.append(values)


def _parse_date(text: str) -> date | None:
    """Return the day at the start of a field; a time may follow, as some exports have it."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d(?:[T ].{0,30})?", text, flags=re.ASCII):
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
