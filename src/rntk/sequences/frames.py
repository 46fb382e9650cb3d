"""Data frames: which sequences they hold, told by columns and not guessed.

A frame may be wide (a row is a sequence, a column a step), nested (cells hold sequences, a column is a channel, as in
sktime and aeon, or as a list column of polars and Arrow), or long (a row is a step, and columns say of which sequence
and when). Long frames look like wide ones, so columns that don't look like steps make a frame doubtful, and the message
has the line for each meaning. Frames of pandas, polars and Arrow, and those that behave like them, are recognised by
what they offer; none is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ProblemReport
from .defects import describe

#: Names by which columns are recognised, in lower case; of data files, too.
LABEL_NAMES = frozenset({"label", "class", "target", "y"})
TIME_NAMES = frozenset(
    {"time", "times", "timestamp", "timestamps", "date", "datetime", "ds", "t", "step", "timestep", "timepoint"}
    | {"time_step", "time_index", "time_point", "timepoints", "reading_id"}
)
ROW_NAMES = frozenset(
    {"", "id", "index", "idx", "row", "case", "case_id", "series", "series_id", "sequence", "sequence_id", "sample"}
    | {"sample_id", "instance", "instance_id", "instances", "unique_id", "unnamed: 0", "subject", "subject_id"}
    | {"patient", "patient_id", "trial", "trial_id"}
)


@dataclass(frozen=True)
class Frame:
    """A data frame of any library.

    Attributes
    ----------
    names : list
        Of its columns.
    column : function
        The k-th column, as its library has it.
    kinds : list of str
        NumPy's letter for what each column holds; "O" for objects, and for columns of lists.
    index : object
        Of the rows, in the manner of pandas; None elsewhere.
    count : int
        How many rows there are.
    without : str
        The code that leaves columns out, to go between the frame and their names.
    """

    names: list[Any]
    column: Callable[[int], Any]
    kinds: list[str]
    index: Any
    count: int
    without: str

    def cells(self, k: int) -> NDArray[Any]:
        """The k-th column as an array; (n,), or (n, T) for lists of one length."""
        return np.asarray(self.column(k))

    def holds_sequences(self, k: int) -> bool:
        """Whether the cells of the k-th column are sequences."""
        if self.kinds[k] != "O":
            return False
        cells = self.cells(k)
        first = next((cell for cell in cells if cell is not None), None)
        return cells.ndim > 1 or (hasattr(first, "__len__") and not isinstance(first, (str, bytes, dict)))

    def drop(self, name: str, columns: Sequence[int]) -> str:
        """The code that leaves columns out of the frame that users call `name`."""
        listed = ", ".join(repr(self.names[k]) for k in columns)
        return f"{name}{self.without}[{listed}])"


def as_frame(X: Any) -> Frame | None:
    """`X` as a frame, if it is one."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns"):  # pandas
        kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
        return Frame(list(X.columns), lambda k: X.iloc[:, k], kinds, X.index, len(X), ".drop(columns=")
    if hasattr(X, "get_columns") and hasattr(X, "columns"):  # polars
        columns, names, without = list(X.get_columns()), list(X.columns), ".drop("
    elif hasattr(X, "column_names") and hasattr(X, "num_rows"):  # tables and record batches of Arrow
        columns, names, without = list(X.columns), list(X.column_names), ".drop_columns("
    else:
        return None
    arrays = [np.asarray(column) for column in columns]
    kinds = ["O" if array.ndim > 1 else array.dtype.kind for array in arrays]
    return Frame(names, columns.__getitem__, kinds, None, len(arrays[0]) if arrays else 0, without)


# -- wide or not -------------------------------------------------------------------------------------------------------


def file_doubts(report: ProblemReport, frame: Frame, name: str) -> None:
    """File what in a flat frame doesn't look like a sequence per row."""
    say = f'if every column is a step: rntk.as_batch({name}, layout="time-first")'
    levels = getattr(frame.index, "nlevels", 1)
    if levels > 1:
        words = list(frame.index.names)
        axes = "" if all(word is not None for word in words[:2]) else '.rename_axis(["id", "time"])'
        one, two = words[:2] if not axes else ("id", "time")
        report.add("layout", f"{name} is a frame with an index of {levels} levels, as long frames have")
        report.advise(f"if a row is a step: rntk.SequenceBatch.from_long({name}{axes}, id={one!r}, time={two!r})")
        return report.advise(say)
    if getattr(getattr(frame.index, "dtype", None), "kind", "") in "Mm" and frame.index is not None and frame.count:
        report.add("layout", f"{name} is a frame with a row for each date, and a row is read as a sequence")
        report.advise(f"if {name} is one sequence, a row a step: rntk.as_batch([{name}])")
        return report.advise(say)
    if frame.names and all(isinstance(each, tuple) for each in frame.names):
        report.add("layout", f"{name} is a frame whose columns have several levels, and a column is read as a step")
        channels = len({each[0] for each in frame.names})
        report.advise(
            f"if the first level is the channel, the second the step: rntk.as_batch({name}.to_numpy()"
            f".reshape(len({name}), {channels}, -1).transpose(0, 2, 1))"
        )
        return report.advise(say)
    ids, times, labels = _meanings(frame)
    doubtful = sorted({*ids, *times, *labels})
    if not doubtful:
        return None
    words = ["an id" if k in ids else "a time" if k in times else "a label" for k in doubtful]
    pairs = list(zip(doubtful, words, strict=True))[:4]
    listed = ", ".join(f"{frame.names[k]!r} looks like {word}" for k, word in pairs)
    report.add("layout", f"{name} is a frame whose columns are read as steps, and {listed}")
    values = [frame.names[k] for k in range(len(frame.names)) if k not in doubtful]
    chosen = f"{values[:6]!r}"[:-1] + (", ...]" if len(values) > 6 else "]")
    if ids and (times or _repeats(frame.cells(ids[0]))):
        at = f", time={frame.names[times[0]]!r}" if times else ""
        report.advise(
            f"if a row is a step: rntk.SequenceBatch.from_long({name}, id={frame.names[ids[0]]!r}{at}, values={chosen})"
        )
    elif times:
        report.advise(f"if {name} is one sequence, a row a step: rntk.as_batch([{frame.drop(name, doubtful)}])")
        report.advise(
            "if a row is a step, and a column says of which sequence: "
            f"rntk.SequenceBatch.from_long({name}, id=..., time={frame.names[times[0]]!r}, values=[...])"
        )
    elif labels:
        own = labels if not ids else doubtful
        report.advise(
            f"if a row is a sequence with its label: X, y = {frame.drop(name, own)}, {name}[{frame.names[labels[0]]!r}]"
        )
    else:
        report.advise(f"if a row is a sequence: rntk.as_batch({frame.drop(name, doubtful)})")
    return report.advise(say)


def file_doubtful_channels(report: ProblemReport, frame: Frame, subject: str, position: int, name: str) -> None:
    """File the columns of the frame of one sequence, a row a step, that don't look like channels."""
    found = [k for k, word in enumerate(map(_word, frame.names)) if word in TIME_NAMES | ROW_NAMES | LABEL_NAMES]
    found += [k for k, kind in enumerate(frame.kinds) if kind in "Mm" and k not in found]
    if found:
        listed = ", ".join(repr(frame.names[k]) for k in found[:4])
        report.add(
            "layout", f"{subject} is a frame whose column {listed} doesn't look like a channel", position=position
        )
        report.advise(f"if it is none: [{frame.drop('frame', found)} for frame in {name}]")
        report.advise(f'if it is one: rntk.as_batch({name}, layout="time-first")')


def _word(name: Any) -> str | None:
    return name.strip().casefold() if isinstance(name, str) else None


def _meanings(frame: Frame) -> tuple[list[int], list[int], list[int]]:
    """The columns that look like ids, times and labels."""
    words = [_word(name) for name in frame.names]
    ids = [k for k, word in enumerate(words) if word in ROW_NAMES]
    times = [k for k, word in enumerate(words) if word in TIME_NAMES or frame.kinds[k] in "Mm"]
    labels = [k for k, word in enumerate(words) if word in LABEL_NAMES and k not in times]
    others = [k for k in range(len(words)) if k not in {*ids, *times, *labels}]
    labels += [k for k in others if frame.kinds[k] not in "biuf" and _holds_words(frame.cells(k))]
    if not (ids or times or labels) and _is_coded(frame):
        labels = [0 if _is_whole(frame, 0) else len(words) - 1]
    return ids, times, labels


def _holds_words(cells: NDArray[Any]) -> bool:
    """Whether a column holds names and no numbers."""
    first = next((cell for cell in cells.ravel() if isinstance(cell, str)), None)
    return first is not None


def _is_coded(frame: Frame) -> bool:
    """Whether the first column or the last one holds a few whole numbers, and all others fractions."""
    if len(frame.names) < 3 or frame.count < 2 or not set(frame.kinds) <= set("biuf"):
        return False
    whole = [k for k in (0, len(frame.names) - 1) if _is_whole(frame, k)]
    if len(whole) != 1:
        return False
    return not any(_is_whole(frame, k) for k in range(1, len(frame.names) - 1)) and _is_class(frame.cells(whole[0]))


def _is_whole(frame: Frame, k: int) -> bool:
    if frame.kinds[k] in "biu":
        return True
    cells = frame.cells(k)
    if cells.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        return bool((cells == np.floor(cells)).all())


def _is_class(cells: NDArray[Any]) -> bool:
    return 1 < len(np.unique(cells)) < len(cells)


def _repeats(cells: NDArray[Any]) -> bool:
    return len(set(cells.tolist())) < len(cells)


# -- nested ------------------------------------------------------------------------------------------------------------


def nested_rows(
    report: ProblemReport, frame: Frame, name: str, open_cell: Callable[[Any], NDArray[Any]]
) -> list[Any] | None:
    """The rows (T_i, m) of a frame whose cells are sequences (T_i,), None if they aren't; what is wrong is filed."""
    nested = [k for k in range(len(frame.names)) if frame.holds_sequences(k)]
    if not nested:
        return None
    if len(nested) < len(frame.names):
        others = [k for k in range(len(frame.names)) if k not in nested]
        listed = ", ".join(repr(frame.names[k]) for k in others[:4])
        report.add("layout", f"{name} is a frame of sequences, but the cells of column {listed} are none")
        report.advise(
            f"if it is a label: X, y = {frame.drop(name, others)}, {name}[{frame.names[others[0]]!r}]; if it is "
            "something else, leave it out"
        )
        return []
    columns = [list(frame.cells(k)) for k in nested]
    if len(columns) == 1:
        return columns[0]
    rows: list[Any] = []
    for i, cells in enumerate(zip(*columns, strict=True)):
        channels = [open_cell(cell) for cell in cells]
        shapes = [channel.shape for channel in channels]
        if any(len(shape) != 1 for shape in shapes) or len(set(shapes)) > 1:
            text = f"the cells of row {i} have the shapes {', '.join(map(str, shapes[:5]))}"
            advice = "of several columns each is a channel: the cells of a row are arrays (T_i,) of one length"
            report.add("ragged channels", text, position=i, advice=advice)
        else:
            rows.append(np.ma.stack(channels, axis=1) if any(map(np.ma.isMA, channels)) else np.stack(channels, axis=1))
    return rows


# -- long --------------------------------------------------------------------------------------------------------------


def open_long(
    report: ProblemReport, df: Any, id: Any, time: Any, values: Any
) -> tuple[list[NDArray[Any]], NDArray[np.int64]] | None:
    """The columns of values of a long frame, in the order of sequence and time, and the lengths; problems are filed."""
    frame = as_frame(df)
    if frame is None:
        report.add(
            "not frames", f"df is {describe(df)}, not a data frame", advice="pass a frame of pandas, polars or Arrow"
        )
        return None
    if any(name is not None and name not in frame.names for name in (id, time)) and any(
        name is not None for name in getattr(frame.index, "names", ())
    ):
        frame = as_frame(df.reset_index())  # id or time are levels of the index
        assert frame is not None
    wanted, places = _choose_columns(report, frame, id, time, values)
    if not frame.count:
        report.add("empty batch", "df has no rows")
    if report:
        return None
    owners = _order(report, frame.cells(places["id", id]), "id", id)
    moments = None if time is None else _order(report, frame.cells(places["time", time]), "time", time)
    if owners is None or (time is not None and moments is None):
        return None
    order = np.argsort(owners, kind="stable") if moments is None else np.lexsort((moments, owners))
    if moments is not None:
        again = np.flatnonzero((np.diff(owners[order]) == 0) & (np.diff(moments[order]) == 0))
        if again.size:
            row = int(order[again[0] + 1])
            whose, when = (frame.cells(places[each])[row] for each in (("id", id), ("time", time)))
            report.add(
                "times", f"{id} {whose} has {time} {when} more than once; {len(again)} rows repeat a time in all"
            )
            report.advise("average such rows or leave them out, or give what tells their sequences apart in id=")
            return None
    columns = [frame.cells(places["values", name])[order] for name in wanted]
    return columns, np.bincount(owners)


def _choose_columns(
    report: ProblemReport, frame: Frame, id: Any, time: Any, values: Any
) -> tuple[list[Any], dict[tuple[str, Any], int]]:
    """The names of the channels, and where each column stands, by its role and name."""
    if values is None:
        wanted = [name for name in frame.names if name != id and (time is None or name != time)]
    else:
        wanted = list(values) if isinstance(values, (list, tuple)) and values not in frame.names else [values]
    if id == time:
        report.add("columns", f"id= and time= both name {id!r}", advice="leave time= out to keep the order of the rows")
    places: dict[tuple[str, Any], int] = {}
    for role, name in [("id", id), *([] if time is None else [("time", time)]), *(("values", each) for each in wanted)]:
        found = [k for k, each in enumerate(frame.names) if each == name]
        if len(found) == 1:
            places[role, name] = found[0]
        else:
            listed = ", ".join(map(repr, frame.names[:8])) + (", ..." if len(frame.names) > 8 else "")
            many = f"{len(found)} columns are" if found else "no column is"
            report.add("columns", f"{many} named {name!r} ({role}=); the columns are {listed}")
    if not wanted:
        report.add("columns", "no column is left for values", advice="pass values=[...], the columns that are channels")
    if values is None:
        doubtful = [k for each in _meanings(frame) for k in each if frame.names[k] in wanted]
        if doubtful:
            listed = ", ".join(repr(frame.names[k]) for k in doubtful[:4])
            report.add("columns", f"column {listed} doesn't look like a channel")
            report.advise("say which columns are channels: values=[...]")
    return wanted, places


def _order(report: ProblemReport, cells: NDArray[Any], role: str, name: Any) -> NDArray[np.int64] | None:
    """The ranks of ids or times, equal ones for equal cells."""
    if cells.dtype.kind == "O" and any(cell is None or type(cell).__name__ in ("NAType", "NaTType") for cell in cells):
        missing = True
    else:
        missing = cells.dtype.kind in "fMm" and bool((cells != cells).any())  # NaN, NaT
    if missing:
        report.add("missing", f"column {name!r} ({role}=) has missing entries", advice="leave those rows out")
        return None
    if role == "time" and (cells.dtype.kind in "SUT" or (cells.dtype.kind == "O" and isinstance(cells[0], str))):
        report.add("words", f"column {name!r} (time=) holds words, which sort as words: '10' comes before '9'")
        report.advise("make numbers or dates of it: pandas.to_numeric, pandas.to_datetime")
        return None
    try:
        return np.asarray(np.unique(cells, return_inverse=True)[1], dtype=np.int64).reshape(-1)
    except TypeError:
        report.add("mixed", f"column {name!r} ({role}=) mixes things that can't be put in order")
        report.advise("make all of one type, with .astype(str) for instance")
        return None
