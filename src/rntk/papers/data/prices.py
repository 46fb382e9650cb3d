"""Daily prices of a stock, as finance sites export them: a header line, then one line per trading day."""

from __future__ import annotations

import csv
import math
import os
import re
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataFileError, ProblemReport
from ...io.text import clip, find_file, read_text, refusal
from .folder import DataPath, find_prices

_EXPORT = "export daily prices as a .csv whose first line is Date,Open,High,Low,Close,Adj Close,Volume"


class Prices(NamedTuple):
    """Daily prices, the oldest first: dates (n,), datetime64[D], and closing prices (n,)."""

    dates: NDArray[np.datetime64]
    close: NDArray[np.float64]


def load_prices(path: DataPath) -> Prices:
    """Return the daily prices in a file, or in the file that `find_prices` finds in a folder.

    Parameters
    ----------
    path : path
        A ``.csv`` with the columns Date and Close, in any order and any case, dates as YYYY-MM-DD and increasing.
        Further columns are passed over.

    Raises
    ------
    DataFileError
        Naming the lines: dates that do not increase, and prices that are no numbers above 0.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rntk.papers.data import load_prices
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "GOOG.csv")
    ...     _ = file.write_text("Date,Open,High,Low,Close,Adj Close,Volume\\n2018-12-31,105,106,103,104,52,1400\\n")
    ...     load_prices(folder).close
    array([104.])
    """
    where = Path(os.fspath(path)).expanduser()
    if where.is_dir():
        found = find_prices(where)
        if found is None:
            raise refusal(where, "no .csv in it has a name that begins with GOOG", f"put one there: {_EXPORT}")
        where = found
    find_file(where)
    reader = csv.reader(read_text(where).split("\n"), skipinitialspace=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise refusal(
            where, f"line {reader.line_num}: {error}", "check the quotes, and that commas separate"
        ) from error
    header = [re.sub(r"[\s_.]", "", name).casefold() for name in rows[0][1]] if rows else []
    absent = [name for name in ("Date", "Close") if header.count(name.casefold()) != 1]
    if absent:
        raise refusal(where, f"expected a column {' and a column '.join(absent)}, once each", _EXPORT)
    if len(rows) == 1:
        raise refusal(where, "it has no line after its header", _EXPORT)
    return _parse(where, rows[1:], header.index("date"), header.index("close"))


def _parse(path: Path, rows: list[tuple[int, list[str]]], date_at: int, close_at: int) -> Prices:
    """The lines after the header, with all that is wrong with them in one message."""
    report = ProblemReport(str(path))
    days: list[date] = []
    close: list[float] = []
    for line, row in rows:
        day, price = (row[at].strip() if at < len(row) else "" for at in (date_at, close_at))
        try:
            days.append(datetime.strptime(day[:10], "%Y-%m-%d").date())  # a time may follow
            if len(days) > 1 and days[-1] <= days[-2]:
                text = f"line {line}: {days[-1]} does not come after {days[-2]}"
                report.add("order", text, position=line, advice="sort the lines by date, each day once")
        except ValueError:
            text = f"line {line}: {clip(day)} is not a date"
            report.add("dates", text, position=line, advice="write dates as YYYY-MM-DD")
        try:
            close.append(float(price))
        except ValueError:
            close.append(math.nan)
        if not 0 < close[-1] < math.inf:
            text = f"line {line}, Close: expected a number above 0, got {clip(price)}"
            report.add("prices", text, position=line, advice="drop days without prices from the file")
    if report:
        raise report.error(DataFileError)
    return Prices(np.array(days, dtype="datetime64[D]"), np.array(close))
