"""Reading what users bring: `as_batch`, and the readers behind the other constructors of `SequenceBatch`.

Three stages. *Open*: find the sequences in whatever came, as raw arrays of any dtype. *Check*: turn raw
arrays into real numbers, filing every problem on the way (with ``defects``). *Seal*: join, cast, look for
values that are not finite, and raise the report if it is not empty. No package but NumPy is imported; others
are recognised by the protocols they speak (``__array__``, ``__dlpack__``, buffers) or, for Arrow's list
columns, by being loaded already.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import ProblemReport, SequenceError, check_choice
from .batch import SequenceBatch, offsets_of, resolve_dtype
from .defects import (
    NUMBERS_ONLY,
    PLAIN_NUMBERS,
    UNMASK,
    RawArray,
    UnreadableError,
    all_finite,
    check_numbers,
    describe,
    file_blank,
    file_channels,
    file_dtype,
    file_single,
    float_dtype,
    holds_masked,
    report_nonfinite,
)
from .frames import as_frame, file_doubtful_channels, file_doubts, nested_rows, open_long
from .gaps import MISSING, interpolate

__all__ = ["as_batch", "check_channels", "check_channels_agree"]

_ACCEPTED = "pass an array of shape (n, T) or (n, T, m), or a list of arrays of shape (T_i,) or (T_i, m)"
#: Channels from which a batch that has fewer steps looks like series in another layout.
_MANY = 8
_COUNT_STEPS = "pass for each row of values the number of its leading steps that are data, as an integer"


def as_batch(
    X: Any, *, dtype: DTypeLike | None = None, name: str = "X", layout: str | None = None, missing: str = "error"
) -> SequenceBatch:
    """Return the sequences in `X` as one validated `SequenceBatch`.

    Parameters
    ----------
    X : array, list of arrays, data frame, Arrow column, tensor or SequenceBatch
        - array of shape (n, T): n univariate sequences; (n, T, m): n sequences with m channels;
        - list, tuple or one-dimensional object array (a pandas Series of arrays, say) of (T_i,) or (T_i, m)
          arrays, nested lists of numbers, Series or DataFrames; (T_i,) and (T_i, 1) may be mixed;
        - data frame of pandas, polars or Arrow: rows are sequences, columns are steps; where cells hold sequences
          (sktime's nested frames, list columns), columns are channels. Long frames go to `SequenceBatch.from_long`;
        - Arrow list, large list or fixed-size list array, chunked or not;
        - anything with ``__array__``, ``__dlpack__`` or a buffer, such as tensors in host memory;
        - a `SequenceBatch`, which passes through.

        Time comes before channels. No layout is guessed: aeon's (n, m, T) goes to `SequenceBatch.from_aeon`,
        padded arrays go to `SequenceBatch.from_padded`.
    dtype : "float32", "float64" or None
        The precision wanted. None keeps float32 and float64, makes float16 float32 and everything else
        (integers, booleans, extended precision) float64, and takes ``np.result_type`` over mixed input.
    name : str
        What error messages call the argument.
    layout : "time-first", "channels-first" or None
        "channels-first" reads aeon's layout, as `SequenceBatch.from_aeon` does. "time-first" says that time does come
        first where that is doubtful, which is refused otherwise: with 8 channels or more and fewer steps (nearly
        always series in aeon's layout), and in frames with columns that look like ids, times or labels.
    missing : "error" or "interpolate"
        What becomes of NaN, None, pandas' NA and masked values. "interpolate" fills them linearly, and at the ends
        with the nearest value. Padding is filled like any other gap: where NaN are padding, `from_padded` cuts it off.

    Returns
    -------
    SequenceBatch
        A view of `X`, not a copy, if that is a C-contiguous array of the final dtype: writing to `X`
        afterwards changes the batch. The batch itself is read-only; flags of `X` are not touched.

    Raises
    ------
    SequenceError
        Listing every problem found: sequences that are empty, not numbers, not finite (also after a cast to
        float32), masked, or that disagree on the number of channels, and data that holds no sequences.

    Examples
    --------
    >>> import numpy as np
    >>> as_batch([[1.0, 2.0, 3.0], [4.0]])
    SequenceBatch(2 sequences, lengths 1 to 3, 1 channel, float64)
    >>> as_batch(np.zeros((5, 7, 2), dtype="float32"))
    SequenceBatch(5 sequences, length 7, 2 channels, float32)
    >>> as_batch([[1.0, np.nan, 3.0]], missing="interpolate").values.ravel()
    array([1., 2., 3.])
    """
    if layout is not None:
        check_choice("layout", layout, ("time-first", "channels-first"))
    batch = _read(X, dtype, name, layout, missing)
    n_channels, longest = batch.n_channels, batch.max_length
    if layout is None and not isinstance(X, SequenceBatch) and n_channels >= _MANY and n_channels > longest:
        report = ProblemReport(name)
        steps = (
            "1 step" if longest == 1 else f"{longest} steps" if batch.is_equal_length else f"at most {longest} steps"
        )
        text = f"every sequence has {steps} and {n_channels} channels; channels come last, as in (n, T, m) and (T_i, m)"
        report.add("layout", text)
        series = f"{n_channels} steps and {longest} channel{'s' if longest > 1 else ''}"
        shape = f"(n, {longest}, {n_channels})"
        report.advise(f"if they are series of {series}, as in aeon's {shape}: rntk.SequenceBatch.from_aeon({name})")
        report.advise(f'if they are {steps} of {n_channels} channels: rntk.as_batch({name}, layout="time-first")')
        raise report.error()
    return batch


def read_aeon(X: Any, *, dtype: DTypeLike | None, missing: str) -> SequenceBatch:
    """Read data in aeon's layout; see `SequenceBatch.from_aeon`."""
    return _read(X, dtype, "X", "channels-first", missing)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the caller wants: a precision (None keeps that of the data), a layout, and whether gaps are filled."""

    dtype: np.dtype[Any] | None
    layout: str | None = None
    fills: bool = False

    @classmethod
    def of(cls, report: ProblemReport, dtype: DTypeLike | None, layout: str | None, missing: str) -> _Wish:
        fills = check_choice("missing", missing, MISSING) == "interpolate"
        return cls(resolve_dtype(dtype, report), layout, fills)


def _read(X: Any, dtype: DTypeLike | None, name: str, layout: str | None, missing: str) -> SequenceBatch:
    report = ProblemReport(name)
    wish = _Wish.of(report, dtype, layout, missing)
    if isinstance(X, SequenceBatch):
        return X if dtype is None else X._cast(dtype, name)
    try:
        frame = as_frame(X)
        rows = None if frame is None else nested_rows(report, frame, name, _open_array)
        if frame is not None and rows is None and layout != "time-first":
            file_doubts(report, frame, name)
        if frame is not None and report:
            raise report.error()
        if rows is not None:
            return _read_list(report, rows, _Wish(wish.dtype, "time-first", wish.fills))
        arrow = _open_arrow(X)
        if arrow is not None:
            return _check_and_seal(report, *arrow, wish)
        collection = _open_collection(X)
    except UnreadableError as unreadable:
        unreadable.file(report, name)
        raise report.error() from unreadable.__cause__
    if isinstance(collection, list):
        return _read_list(report, collection, wish)
    return _read_array(report, collection, wish)


def read_long(df: Any, id: Any, time: Any, values: Any, *, dtype: DTypeLike | None, missing: str) -> SequenceBatch:
    """Read a frame with a row per step; see `SequenceBatch.from_long`."""
    report = ProblemReport("df")
    wish = _Wish.of(report, dtype, None, missing)
    found = open_long(report, df, id, time, values)
    if found is None:
        raise report.error()
    columns, lengths = found
    return _check_and_seal(report, np.stack(columns, axis=1), offsets_of(lengths), wish)


def read_padded(values: Any, lengths: Any, *, dtype: DTypeLike | None, missing: str) -> SequenceBatch:
    """Read padded rows with explicit lengths; see `SequenceBatch.from_padded`."""
    report = ProblemReport("values")
    wish = _Wish.of(report, dtype, None, missing)
    shape: tuple[int, ...] | None = None
    try:
        padded = _open_array(values)
        shape = padded.shape
        if padded.ndim not in (2, 3) or 0 in shape:
            report.add(
                "shape",
                f"values has shape {shape}; expected (n, Tmax) or (n, Tmax, m), none of them 0",
                advice="sequences that are not padded need no lengths: pass a list of arrays to as_batch",
            )
            shape = None
    except UnreadableError as unreadable:
        unreadable.file(report, "values")
    counts = _check_lengths(report, lengths, shape)
    if shape is not None and counts is not None:
        # Cut before looking: what lies past the lengths is never converted and never judged.
        inside = np.arange(shape[1]) < counts[:, None]
        steps = padded.reshape(-1, *shape[2:]) if inside.all() else padded[inside]
        steps = steps.reshape(len(steps), -1)
        return _check_and_seal(report, steps, offsets_of(counts), wish)
    if shape is not None and padded.dtype.kind != "O" and float_dtype(padded.dtype) is None:
        file_dtype(report, "values", padded.dtype)
    raise report.error()


def _check_lengths(report: ProblemReport, lengths: Any, shape: tuple[int, ...] | None) -> NDArray[np.int64] | None:
    """Return the lengths as int64, or file what is wrong; `shape` is that of usable padded values."""
    try:
        array = _open_array(lengths)
    except UnreadableError as unreadable:
        unreadable.file(report, "lengths")
        return None
    if array.ndim != 1 or array.dtype.kind not in "iu" or isinstance(array, np.ma.MaskedArray):
        text = f"lengths must be integers of shape (n,), got shape {array.shape} and dtype {array.dtype}"
        report.add("lengths", text, advice=_COUNT_STEPS)
        return None
    if shape is None:
        return None
    if len(array) != shape[0]:
        text = f"lengths has {len(array)} entries for {shape[0]} rows of values"
        report.add("lengths", text, advice=_COUNT_STEPS)
        return None
    outside = np.flatnonzero((array < 1) | (array > shape[1]))
    for row in outside[: report.LINE_LIMIT].tolist():
        text = f"sequence {row} has length {array[row]}, not between 1 and {shape[1]}"
        report.add("lengths", text, position=row, advice=_COUNT_STEPS)
    report.count_further("lengths", len(outside) - report.LINE_LIMIT)
    return None if outside.size else array.astype(np.int64)


# ---- Open: from what came to raw arrays --------------------------------------------------------------------


def _open_collection(X: Any) -> RawArray | list[Any]:
    """Return the list of items in `X`, or the array it is."""
    if isinstance(X, (list, tuple)):
        return list(X)
    opened = _open_any(X)
    if isinstance(opened, np.ndarray) and opened.ndim == 1 and opened.dtype.kind == "O":
        return list(opened)
    return opened


def _open_array(item: Any) -> RawArray:
    """Return one item as a raw array, stacking nested lists."""
    if type(item) is not np.ndarray:
        item = _open_any(item)
    if isinstance(item, np.ndarray):
        # Columns of nested lists arrive as object arrays whose cells are the steps.
        is_nested = item.dtype.kind == "O" and item.ndim == 1 and any(map(_is_row, item))
        return _stack_rows(list(item)) if is_nested else item
    return _stack_rows(item)


def _is_row(cell: object) -> bool:
    return isinstance(cell, (list, tuple, np.ndarray)) and not isinstance(cell, np.ma.core.MaskedConstant)


def _open_any(item: Any) -> RawArray | list[Any]:
    """Return an item as a raw array if it is one, as a list if it is a sequence; refuse the rest."""
    try:
        if isinstance(item, (list, tuple)):
            return list(item)
        if isinstance(item, np.ndarray):
            return item if isinstance(item, np.ma.MaskedArray) else np.asarray(item)
        _refuse_hopeless(item)
        if hasattr(item, "combine_chunks"):
            item = item.combine_chunks()
        if hasattr(item, "to_numpy_ndarray") and not item.null_count:
            array: RawArray = item.to_numpy_ndarray()  # Arrow tensors, whose `__array__` forgets their shape
        elif hasattr(item, "to_numpy_ndarray"):
            raise UnreadableError("nulls", "is an Arrow tensor column with nulls", "drop the nulls")
        elif _speaks_array(item):
            array = np.asarray(item)
        elif hasattr(item, "__dlpack__"):
            array = np.from_dlpack(item)
        elif hasattr(item, "__len__") and hasattr(item, "__getitem__"):
            return [item[i] for i in range(len(item))]
        elif isinstance(item, Iterable):
            raise UnreadableError("iterators", f"is {describe(item)}, which can be read only once", _AS_LIST)
        else:
            raise UnreadableError("not arrays", f"is {describe(item)}, not an array", _ACCEPTED)
    except (UnreadableError, MemoryError):
        raise
    except Exception as error:  # foreign conversion code raises anything at all
        reason = " ".join(str(error).split())[:160]
        predicate = f"is {describe(item)} that could not be read: {type(error).__name__}: {reason}"
        raise UnreadableError("unreadable", predicate, f"convert it to a NumPy array; {_ACCEPTED}") from error
    return array


_AS_LIST = "pass a list: list(...) of a generator, list(d.values()) of a dict"


def _refuse_hopeless(item: Any) -> None:
    """Raise for things that look convertible to NumPy but hold no sequences."""
    if item is None:
        raise UnreadableError("None", "is None", _ACCEPTED)
    if isinstance(item, (str, bytes, bytearray)):
        raise UnreadableError("strings", f"is {describe(item)}", NUMBERS_ONLY)
    if isinstance(item, (Mapping, Set)):
        predicate = f"is {describe(item)}, not a list"
        raise UnreadableError("not lists", predicate, _AS_LIST)
    if isinstance(item, SequenceBatch):
        raise UnreadableError("batches", "is itself a SequenceBatch", "pass list(batch), or the batch alone")
    if isinstance(item, (numbers.Number, np.generic)):
        raise UnreadableError("scalars", f"is {describe(item)}, not an array", _ACCEPTED)
    if hasattr(item, "ngroups") and hasattr(item, "obj"):
        advice = "pass [group[[...]] for _, group in X], with the columns that are channels"
        raise UnreadableError("groups", f"is {describe(item)}", advice)
    if hasattr(item, "collect") and hasattr(item, "collect_schema"):
        raise UnreadableError("lazy frames", f"is {describe(item)}, not computed yet", "call .collect() first")
    if hasattr(item, "nnz") and hasattr(item, "toarray"):
        raise UnreadableError("sparse matrices", f"is {describe(item)}, a sparse matrix", "call .toarray() first")


def _speaks_array(item: Any) -> bool:
    """Whether NumPy reads an item as an array, not element by element."""
    if any(hasattr(item, protocol) for protocol in ("__array__", "__array_interface__", "__array_struct__")):
        return True
    try:
        memoryview(item).release()
    except TypeError:
        return False
    return True


def _stack_rows(rows: list[Any]) -> RawArray:
    """Return a list of numbers (T,) or of steps (T, m) as one array; of objects if not all are numbers."""
    kinds = set(map(type, rows))
    if kinds <= PLAIN_NUMBERS:
        return np.array(rows)
    if bytearray in kinds:  # which NumPy reads as small integers, unlike bytes
        raise UnreadableError("strings", "holds bytes", NUMBERS_ONLY)
    try:
        if holds_masked(rows, depth=3):
            raise UnreadableError("masked", "holds masked values", UNMASK)
        array = np.asarray(rows)
        if array.dtype.kind != "O" and float_dtype(array.dtype) is None:
            # One string among numbers turns all into strings. As objects, the culprit can be named.
            array = np.array(rows, dtype=object)
    except (UnreadableError, MemoryError):
        raise
    except Exception as error:
        predicate = "is a nested list that does not stack into one array: its steps differ in shape"
        advice = "give all steps of a sequence the same channels; sequences of any length go in a list of arrays"
        raise UnreadableError("ragged steps", predicate, advice) from error
    return array


def _open_arrow(X: Any) -> tuple[RawArray, NDArray[np.int64]] | None:
    """Return steps (S, 1) and offsets of an Arrow column of lists of numbers, else None.

    Such a column has our layout already, nulls among its numbers being NaN. Other Arrow data, nested or with
    nulls or empty lists among the sequences, goes through ``__array__``.
    """
    if type(X).__module__.partition(".")[0] != "pyarrow":
        return None
    arrow = sys.modules["pyarrow"]
    if not isinstance(X, (arrow.Array, arrow.ChunkedArray)):
        return None
    column = X.combine_chunks() if isinstance(X, arrow.ChunkedArray) else X
    types = arrow.types
    is_fixed = types.is_fixed_size_list(X.type)
    if not (is_fixed or types.is_list(X.type) or types.is_large_list(X.type)):
        return None
    if not isinstance(column, arrow.Array) or len(column) == 0 or column.null_count:
        return None
    steps = column.flatten()
    if not (types.is_floating(steps.type) or types.is_integer(steps.type)):
        return None
    if is_fixed:
        lengths = np.full(len(column), X.type.list_size, dtype=np.int64)
    else:
        lengths = np.asarray(column.value_lengths()).astype(np.int64)
    return None if (lengths == 0).any() else (np.asarray(steps)[:, None], offsets_of(lengths))


# ---- Check: from raw arrays to real numbers ----------------------------------------------------------------


def _read_array(report: ProblemReport, raw: RawArray, wish: _Wish) -> SequenceBatch:
    """Read sequences of equal length from one array."""
    shape, channels_first = raw.shape, wish.layout == "channels-first"
    if raw.ndim == 0:
        report.add("scalars", f"{report.name} is {describe(raw[()])}, not an array", advice=_ACCEPTED)
    elif shape[0] == 0:
        report.add("empty batch", f"{report.name} holds no sequences (shape {shape})", advice=_ACCEPTED)
    elif raw.ndim == 1 and float_dtype(raw.dtype) is None:
        file_dtype(report, report.name, raw.dtype)
    elif raw.ndim == 1:
        file_single(report, shape[0])
    elif raw.ndim > 3:
        text = f"{report.name} has {raw.ndim} dimensions (shape {shape}), expected 2 or 3"
        report.add("shape", text, advice=_ACCEPTED)
    elif 0 in shape:
        channels, time = (1, 2) if channels_first else (2, 1)
        time = 1 if raw.ndim == 2 else time
        if shape[time] == 0:
            text = f"every sequence of {report.name} is empty (shape {shape}, no steps)"
            report.add("empty", text, advice=_DROP_EMPTY)
        if raw.ndim == 3 and shape[channels] == 0:
            report.add("no channels", f"{report.name} has no channels (shape {shape})", advice=_ACCEPTED)
    else:
        if raw.ndim == 3 and channels_first:
            raw = raw.transpose(0, 2, 1)
        steps = raw.reshape(shape[0] * raw.shape[1], -1)
        offsets = np.arange(shape[0] + 1, dtype=np.int64) * raw.shape[1]
        return _check_and_seal(report, steps, offsets, wish)
    raise report.error()


def _read_list(report: ProblemReport, items: list[Any], wish: _Wish) -> SequenceBatch:
    """Read sequences of any lengths from a list, one item each."""
    if not items:
        report.add("empty batch", f"{report.name} holds no sequences", advice=_ACCEPTED)
        raise report.error()
    if all(isinstance(item, (numbers.Number, np.bool_)) for item in items):
        file_single(report, len(items))
        raise report.error()
    indices: list[int] = []
    arrays: list[RawArray] = []
    for index, item in enumerate(items):
        steps = _read_item(report, item, index, wish)
        if steps is not None:
            indices.append(index)
            arrays.append(steps)
    return _join_and_seal(report, arrays, np.array(indices, dtype=np.intp), wish)


def _read_item(report: ProblemReport, item: Any, index: int, wish: _Wish) -> RawArray | None:
    """Return one item of a list as real numbers (T, m), or None with its problems filed."""
    subject = f"sequence {index}"
    if wish.layout is None and type(item) is not np.ndarray and (frame := as_frame(item)) is not None:
        file_doubtful_channels(report, frame, subject, index, report.name)
    try:
        raw = _open_array(item)
    except UnreadableError as unreadable:
        unreadable.file(report, subject, index)
        return None
    shape = raw.shape
    if raw.ndim == 0:
        text = f"{subject} is {describe(raw[()])}, not an array"
        report.add("scalars", text, position=index, advice=_ACCEPTED)
        return None
    if raw.ndim > 2:
        text = f"{subject} has {raw.ndim} dimensions (shape {shape}), expected 1 or 2"
        report.add("shape", text, position=index, advice=_ACCEPTED)
        return None
    steps = raw[:, None] if raw.ndim == 1 else raw.T if wish.layout == "channels-first" else raw
    if len(steps) == 0:
        text = f"{subject} is empty (shape {shape}); every sequence needs at least one step"
        report.add("empty", text, position=index, advice=_DROP_EMPTY)
        return None
    if steps.shape[1] == 0:
        report.add("no channels", f"{subject} has no channels (shape {shape})", position=index, advice=_ACCEPTED)
        return None
    if type(steps) is np.ndarray and steps.dtype.kind in "biuf" and steps.dtype.isbuiltin != 2:
        return steps  # nothing to check: spare long lists the set-up
    return check_numbers(report, steps, np.array([0, len(steps)]), np.array([index]), subject, wish.fills)


_DROP_EMPTY = "drop empty sequences, and their labels"


# ---- Seal: from real numbers to a batch --------------------------------------------------------------------


def _check_and_seal(report: ProblemReport, raw: RawArray, offsets: NDArray[np.int64], wish: _Wish) -> SequenceBatch:
    """Turn raw steps (S, m) of all sequences into the batch, or raise."""
    steps = check_numbers(report, raw, offsets, None, report.name, wish.fills)
    batch = None
    if steps is not None:
        batch = _seal(report, [steps], offsets, None, wish.dtype or float_dtype(steps.dtype), wish.fills)
    if batch is None:
        raise report.error()
    return batch


def _join_and_seal(
    report: ProblemReport, arrays: list[RawArray], indices: NDArray[np.intp], wish: _Wish
) -> SequenceBatch:
    """Turn sequences (T_i, m_i), known to the user by their indices, into the batch, or raise."""
    members: dict[int, list[int]] = {}  # number of channels -> positions in `arrays`
    for position, steps in enumerate(arrays):
        members.setdefault(steps.shape[1], []).append(position)
    if len(members) > 1:
        file_channels(report, {width: indices[positions] for width, positions in members.items()})
    target = wish.dtype
    if target is None and arrays:
        target = np.result_type(*{float_dtype(steps.dtype) for steps in arrays})
    batch = None
    for positions in members.values():  # one group, unless problems are being gathered from each
        group = [arrays[position] for position in positions]
        offsets = offsets_of(np.array([len(steps) for steps in group], dtype=np.int64))
        batch = _seal(report, group, offsets, indices[positions], target, wish.fills)
    if batch is None:
        raise report.error()
    return batch


def _seal(
    report: ProblemReport,
    arrays: list[RawArray],
    offsets: NDArray[np.int64],
    sequences: NDArray[np.intp] | None,
    target: np.dtype[Any] | None,
    fills: bool,
) -> SequenceBatch | None:
    """Join arrays of steps, cast, fill gaps if wanted, and return the batch if all is finite and nothing was filed."""
    values = _join(arrays, target)
    if fills and np.isnan(values).any():
        values = interpolate(values, offsets)
        file_blank(report, values, offsets, sequences)
        values = np.where(np.isnan(values), 0, values)  # they are filed
    if not all_finite(values):
        report_nonfinite(report, values, offsets, before_cast=_join(arrays, None), sequences=sequences)
    return None if report else SequenceBatch.from_checked(values, offsets)


def _join(arrays: list[RawArray], dtype: np.dtype[Any] | None) -> RawArray:
    """Return arrays one below the other, C-contiguous and aligned; a single one as it is if it can be."""
    with np.errstate(all="ignore"):  # what a cast makes infinite is reported, not warned about
        joined = arrays[0]
        if len(arrays) > 1:
            joined = np.concatenate(arrays, axis=0, dtype=dtype, casting="same_kind")
        # Concatenation keeps the order of its inputs, so transposed ones still have to be laid out by rows.
        return np.require(joined, dtype=dtype, requirements=["C", "A"])


def check_channels(batch: SequenceBatch, expected: int, owner: object) -> None:
    """Raise a `SequenceError` unless `batch` has as many channels as `owner` saw in fit."""
    if batch.n_channels != expected:
        found, wanted = (f"{count} channel{'s' if count != 1 else ''}" for count in (batch.n_channels, expected))
        raise SequenceError(f"X has {found}, but {type(owner).__name__} is expecting {wanted} as input, as in fit")


def check_channels_agree(batches: Sequence[SequenceBatch], names: Sequence[str]) -> None:
    """Refuse to compare sequences with different numbers of channels."""
    for batch, name in zip(batches[1:], names[1:], strict=True):
        if batch.n_channels != batches[0].n_channels:
            raise ValueError(
                f"{names[0]} has {batches[0].n_channels} channels and {name} has {batch.n_channels}; they must agree"
            )
