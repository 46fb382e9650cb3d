"""What is wrong with an input: finding defects in arrays, and filing them in a `ProblemReport`.

Nothing here raises a report or builds a batch; that is for the callers, who go on looking for further
problems after the first. Sequences are named by the indices under which the user knows them.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ProblemReport

__all__ = [
    "FILL",
    "NUMBERS_ONLY",
    "PLAIN_NUMBERS",
    "UNMASK",
    "RawArray",
    "UnreadableError",
    "all_finite",
    "check_numbers",
    "describe",
    "file_blank",
    "file_channels",
    "file_dtype",
    "file_single",
    "float_dtype",
    "holds_masked",
    "report_nonfinite",
]

RawArray = NDArray[Any]  # any dtype; possibly masked

NUMBERS_ONLY = "encode everything as real numbers first"
#: The one thing that fills gaps, by all its names.
FILL = (
    "to fill gaps linearly, rntk.preprocessing.Interpolate().fit_transform(X); before a learner, "
    "make_pipeline(Interpolate(), learner); rntk.as_batch, rntk.read and the command line call it missing='interpolate'"
)
UNMASK = "a mask is never read as a length: drop masked steps, or fill them"
PLAIN_NUMBERS = frozenset({float, int, bool})


# ---- Things: what cannot be read as an array at all --------------------------------------------------------


class UnreadableError(Exception):
    """Something is not an array of anything; says how it reads after the subject of a sentence."""

    def __init__(self, kind: str, predicate: str, advice: str) -> None:
        super().__init__(predicate)
        self.kind, self.predicate, self.advice = kind, predicate, advice

    def file(self, report: ProblemReport, subject: str, position: int = -1) -> None:
        report.add(self.kind, f"{subject} {self.predicate}", position=position, advice=self.advice)


def describe(item: object) -> str:
    """Name a thing for a message, never by its own repr: that may be long, or raise."""
    if item is None:
        return "None"
    if item is np.ma.masked:
        return "a masked value"
    if type(item) in (str, np.str_, bytes, np.bytes_):
        assert isinstance(item, (str, bytes))
        return f"the {'string' if isinstance(item, str) else 'bytes'} {item[:20]!r}"
    if isinstance(item, (complex, np.complexfloating)):
        return "a complex number"
    if isinstance(item, (float, int, np.floating, np.integer, np.bool_)) and not _is_duration(item):
        return "a bare number"
    return f"an object of type {type(item).__name__}"


def holds_masked(rows: Iterable[Any], depth: int) -> bool:
    """Whether a nested list mentions a masked value: NumPy would warn, or silently use what is under it."""
    for row in rows:
        if isinstance(row, np.ma.MaskedArray):
            if np.ma.is_masked(row):
                return True
        elif isinstance(row, (list, tuple)):
            is_plain = PLAIN_NUMBERS.issuperset(map(type, row))
            if depth > 1 and not is_plain and holds_masked(row, depth - 1):
                return True
    return False


def _is_real(cell: object) -> bool:
    if type(cell) in PLAIN_NUMBERS:
        return True
    return isinstance(cell, (numbers.Real, Decimal, np.bool_)) and not _is_duration(cell)


def _is_duration(cell: object) -> bool:
    return isinstance(cell, np.timedelta64)  # which NumPy derives from its integers


# ---- Arrays: what their shape and dtype rule out -----------------------------------------------------------


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype in which numbers of a dtype are kept, None if it holds no real numbers."""
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    if dtype.isbuiltin == 2 and ("float" in dtype.name or "int" in dtype.name):  # registered by ml_dtypes
        return np.dtype(np.float32 if "float" in dtype.name else np.float64)
    return None


def file_dtype(report: ProblemReport, subject: str, dtype: np.dtype[Any], position: int = -1) -> None:
    held, advice = {
        "c": ("complex numbers", "pass real and imaginary parts as two channels"),
        "M": ("dates", "pass times as numbers, seconds since the first step for instance"),
        "m": ("time differences", "divide by a unit, np.timedelta64(1, 's') for instance"),
    }.get(dtype.kind, ("strings" if dtype.kind in "UST" else "no real numbers", NUMBERS_ONLY))
    text = f"{subject} holds {held} (dtype {dtype})"
    report.add("not numbers", text[:200], position=position, advice=advice)


def file_single(report: ProblemReport, length: int) -> None:
    report.add(
        "single sequence",
        f"{report.name} is one sequence of {length} numbers, not a collection of sequences",
        advice=f"pass a single sequence as {report.name}[None, :], or in a list: [{report.name}]",
    )


def file_channels(report: ProblemReport, members: dict[int, NDArray[np.intp]]) -> None:
    """File that sequences disagree; `members` maps numbers of channels to the sequences that have them."""
    parts = []
    for n_channels, sequences in sorted(members.items(), key=lambda item: -len(item[1])):
        listed = ", ".join(map(str, sequences[:5].tolist()))
        rest = f" and {len(sequences) - 5} more" if len(sequences) > 5 else ""
        parts.append(f"{n_channels} in sequence{'s' if len(sequences) > 1 else ''} {listed}{rest}")
    shown = "; ".join(parts[:5]) + (f"; and {len(parts) - 5} other numbers" if len(parts) > 5 else "")
    report.add(
        "channels",
        f"{report.name} mixes different numbers of channels: {shown}",
        advice="give every sequence the same channels; as_batch reads (T_i, m) with time first, "
        "SequenceBatch.from_aeon reads (m, T_i)",
    )


# ---- Cells: which sequence, step and channel ---------------------------------------------------------------


class Offences(NamedTuple):
    """Where marked cells lie, one entry per affected sequence, in ascending order."""

    sequences: NDArray[np.intp]  # position in the offsets
    rows: NDArray[np.intp]  # marked rows of all sequences, ascending
    groups: NDArray[np.intp]  # where in `rows` each sequence begins
    steps: NDArray[np.intp]  # first marked step, counted within the sequence
    channels: NDArray[np.intp]  # first marked channel of that step

    def tally(self, marked_rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return per sequence the number of true cells of a mask (len(rows), m) over the marked rows."""
        return np.add.reduceat(marked_rows.sum(axis=1, dtype=np.int64), self.groups)

    def place(self, entry: int, n_channels: int) -> str:
        """Say where the first marked cell of an entry lies."""
        channel = f", channel {self.channels[entry]}" if n_channels > 1 else ""
        return f"step {self.steps[entry]}{channel}"


def locate(marked: NDArray[np.bool_], offsets: NDArray[np.int64]) -> Offences:
    """Return where the true cells of a mask (S, m), at least one, lie in the sequences of `offsets`."""
    rows = np.flatnonzero(marked.any(axis=1))
    owners = np.searchsorted(offsets, rows, side="right") - 1
    sequences, groups = np.unique(owners, return_index=True)
    steps = rows[groups] - offsets[sequences]
    channels = marked[rows[groups]].argmax(axis=1)
    return Offences(sequences, rows, groups, steps, channels)


def check_numbers(
    report: ProblemReport,
    raw: RawArray,
    offsets: NDArray[np.int64],
    sequences: NDArray[np.intp] | None,
    subject: str,
    fills: bool,
) -> RawArray | None:
    """Return steps (S, m) of any dtype as real numbers, or None if their dtype is hopeless.

    Cells that are masked or no numbers are filed and replaced by 0, so that the search for problems goes on
    in the others. `sequences` are the user's indices, 0, 1, ... if None; `subject` is the name of the whole. With
    `fills`, what is masked or missing is NaN in the result.
    """
    if raw.dtype.kind != "O" and float_dtype(raw.dtype) is None:
        file_dtype(report, subject, raw.dtype, -1 if sequences is None else int(sequences[0]))
        return None
    if isinstance(raw, np.ma.MaskedArray):
        masked = np.broadcast_to(raw.mask, raw.shape)  # a lone False if nothing is masked
        raw = np.asarray(raw)
        if fills and masked.any():
            kept = raw.astype(raw.dtype if raw.dtype.kind in "O" else float_dtype(raw.dtype))
            raw = np.where(masked, np.array(np.nan, kept.dtype), kept)
        elif masked.any():
            _file_cells(report, "masked", "masked value", masked, offsets, sequences)
            report.advise(UNMASK)
            report.advise(FILL)
            raw = np.where(masked, np.zeros((), dtype=raw.dtype), raw)
    if raw.dtype.kind == "O":
        return _numbers_from_objects(report, raw, offsets, sequences, fills)
    if raw.dtype.isbuiltin == 2:  # bfloat16 and its kin, which mix with nothing
        return raw.astype(float_dtype(raw.dtype))
    return raw


def _numbers_from_objects(
    report: ProblemReport,
    cells: RawArray,
    offsets: NDArray[np.int64],
    sequences: NDArray[np.intp] | None,
    fills: bool,
) -> RawArray:
    """Return objects (S, m) as float64, filing those that are not real numbers or have no float64."""
    floats = np.zeros(cells.shape)
    wrong = np.zeros(cells.shape, dtype=bool)
    absent = np.zeros(cells.shape, dtype=bool)
    too_large = np.zeros(cells.shape, dtype=bool)
    with np.errstate(all="ignore"):
        for position, cell in enumerate(cells.flat):
            where = divmod(position, cells.shape[1])
            if not _is_real(cell):
                absent[where] = is_gap = cell is None or cell is np.ma.masked or type(cell).__name__ == "NAType"
                wrong[where] = not is_gap
                continue
            try:
                floats[where] = float(cell)
            except OverflowError:
                too_large[where] = True
            except Exception:  # a signalling NaN, or a foreign number type with its own ideas
                wrong[where] = True
    if wrong.any():
        _file_cells(report, "not numbers", "value that is no real number", wrong, offsets, sequences, cells)
        report.advise(NUMBERS_ONLY)
    if fills:
        floats[absent] = np.nan
    elif absent.any():
        _file_cells(report, "missing", "missing value", absent, offsets, sequences, cells)
        report.advise(FILL)
    if too_large.any():
        _file_cells(report, "not finite", "value too large for float64", too_large, offsets, sequences)
        report.advise("rescale the values")
    return floats


def _file_cells(
    report: ProblemReport,
    kind: str,
    what: str,
    marked: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    sequences: NDArray[np.intp] | None,
    cells: RawArray | None = None,
) -> None:
    """File one problem per sequence with marked cells (S, m); describe the first if `cells` are given."""
    found = locate(marked, offsets)
    counts = found.tally(marked[found.rows])
    names = found.sequences if sequences is None else sequences[found.sequences]
    for entry, sequence in enumerate(names[: report.LINE_LIMIT].tolist()):
        cell = ""
        if cells is not None:
            row = found.rows[found.groups[entry]]
            cell = f" ({describe(cells[row, found.channels[entry]])})"
        place = found.place(entry, marked.shape[1])
        tally = f"a {what}{cell} at" if counts[entry] == 1 else f"{counts[entry]} times a {what}, first{cell} at"
        report.add(kind, f"sequence {sequence} has {tally} {place}", position=sequence)
    report.count_further(kind, len(names) - report.LINE_LIMIT)


def file_blank(
    report: ProblemReport,
    values: NDArray[Any],
    offsets: NDArray[np.int64],
    sequences: NDArray[np.intp] | None,
) -> None:
    """File channels of sequences in which nothing is known: NaN is left there after filling."""
    gaps = np.isnan(values)
    if not gaps.any():
        return
    found = locate(gaps, offsets)
    names = found.sequences if sequences is None else sequences[found.sequences]
    for entry, sequence in enumerate(names[: report.LINE_LIMIT].tolist()):
        which = f", channel {found.channels[entry]}" if values.shape[1] > 1 else ""
        report.add("no values", f"sequence {sequence}{which} holds no values", position=sequence)
    report.count_further("no values", len(names) - report.LINE_LIMIT)
    report.advise("drop sequences, or channels, that hold no values: there is nothing to fill them from")


def all_finite(values: NDArray[Any]) -> bool:
    """Whether a contiguous array is finite, in cache-sized pieces that need no mask of the whole."""
    flat = values.reshape(-1)
    piece = 1 << 16
    return all(bool(np.isfinite(flat[i : i + piece]).all()) for i in range(0, len(flat), piece))


def report_nonfinite(
    report: ProblemReport,
    values: NDArray[Any],
    offsets: NDArray[np.int64],
    *,
    before_cast: NDArray[Any] | None = None,
    sequences: NDArray[np.intp] | None = None,
) -> None:
    """File one problem per sequence with NaN, infinite or overflowed values, and the advice that fits.

    Parameters
    ----------
    report : ProblemReport
        Where to file.
    values : ndarray of shape (S, m)
        The values in their final dtype, at least one of them not finite.
    offsets : ndarray of shape (n + 1,)
        The sequences.
    before_cast : ndarray of shape (S, m), optional
        The same values before they were cast: what was finite here is too large for the final dtype.
    sequences : ndarray of shape (n,), optional
        The indices under which the user knows the sequences; 0, 1, ... if not given.
    """
    found = locate(~np.isfinite(values), offsets)
    rows = values[found.rows]
    source = rows if before_cast is None else before_cast[found.rows]
    is_nan = np.isnan(rows)
    too_large = ~np.isfinite(rows) & np.isfinite(source)
    counts = {
        "NaN": found.tally(is_nan),
        "infinite value(s)": found.tally(np.isinf(rows) & ~too_large),
        f"value(s) too large for {values.dtype}": found.tally(too_large),
    }
    names = found.sequences if sequences is None else sequences[found.sequences]
    for entry, sequence in enumerate(names[: report.LINE_LIMIT].tolist()):
        parts = [f"{count[entry]} {what}" for what, count in counts.items() if count[entry]]
        total = sum(int(count[entry]) for count in counts.values())
        where = f"{', the first' if total > 1 else ''} at {found.place(entry, values.shape[1])}"
        report.add("not finite", f"sequence {sequence} has {' and '.join(parts)}{where}", position=sequence)
    report.count_further("not finite", len(names) - report.LINE_LIMIT)

    # NaN look like padding when they fill all channels of all steps from the first one to the end.
    lengths = np.diff(offsets)[found.sequences]
    n_rows = np.diff(np.append(found.groups, len(found.rows)))
    padded = np.logical_and.reduceat(is_nan.all(axis=1), found.groups) & (found.steps + n_rows == lengths)
    blank = padded & (found.steps == 0)
    padded &= ~blank
    has_nan, has_infinite, has_large = (count > 0 for count in counts.values())
    if padded.any():
        report.advise(
            f"NaN is never a length marker: if the trailing NaN of sequence {names[padded][0]} are padding, "
            "state the lengths with SequenceBatch.from_padded(values, lengths)"
        )
    if blank.any():
        report.advise(f"NaN is never a length marker: drop sequence {names[blank][0]}, NaN throughout, and its label")
    interior = has_nan & ~padded & ~blank
    if interior.any():
        report.advise(
            f"NaN is never a length marker, nor filled in silently: see those of sequence {names[interior][0]}"
        )
        report.advise(FILL)
    if has_infinite.any():
        report.advise("clip, replace or drop infinite values")
    if has_large.any() and values.dtype == np.float32:
        report.advise("pass dtype='float64', or rescale the values")
    elif has_large.any():
        report.advise("rescale the values")
