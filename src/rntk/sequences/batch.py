"""`SequenceBatch`: ragged sequences in one contiguous block, with invariants that hold by construction."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import ProblemReport, SequenceError
from .defects import all_finite, report_nonfinite

__all__ = ["FloatArray", "SequenceBatch", "offsets_of", "resolve_dtype"]

FloatArray = NDArray[np.floating[Any]]

_FLOAT_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SequenceBatch:
    """A batch of n finite sequences with m channels, stored one after another in a single array.

    Sequence i is ``values[offsets[i]:offsets[i + 1]]``, of shape (T_i, m). Usually built by `as_batch`,
    `from_aeon` or `from_padded`; the constructor is for data already in this layout, and checks it.

    Parameters
    ----------
    values : ndarray of shape (S, m), float32 or float64
        All steps of all sequences, time-major, with S the sum of the lengths and m >= 1. Finite.
    offsets : ndarray of shape (n + 1,), int64
        Starts at 0, ends at S and strictly increases: there is at least one sequence, and none is empty.

    Raises
    ------
    SequenceError
        If the arrays break one of the conditions above. All problems are listed at once.

    Notes
    -----
    Both arrays are C-contiguous, aligned, in native byte order and flagged read-only. `offsets` is always a
    copy. `values` is a *view* of the array given wherever its layout allows: nothing is copied, the caller's
    own array stays writable, and writing to it changes the batch behind its back. Copy first if that array is
    about to be reused.

    Batches compare and hash by identity. They can be pickled and copied; ``copy.deepcopy`` and pickle detach
    from the caller's memory.

    Examples
    --------
    >>> import numpy as np
    >>> batch = SequenceBatch(np.array([[1.0], [2.0], [3.0]]), np.array([0, 2, 3]))
    >>> batch
    SequenceBatch(2 sequences, lengths 1 to 2, 1 channel, float64)
    >>> batch[0]
    array([[1.],
           [2.]])
    """

    values: FloatArray
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        report = ProblemReport("SequenceBatch(values, offsets)")
        values = _check_values(self.values, report)
        offsets = _check_offsets(self.offsets, None if values is None else len(values), report)
        if values is not None and offsets is not None and not report and not all_finite(values):
            report_nonfinite(report, values, offsets)
        if report:
            report.advise("build batches with rntk.sequences.as_batch, which reads arrays, lists and frames")
            raise report.error()
        assert values is not None
        assert offsets is not None
        self._fill(values, offsets)

    def _fill(self, values: FloatArray, offsets: NDArray[np.int64]) -> None:
        """Store read-only views, so that no flag of an array owned by someone else is touched."""
        for name, array in (("values", values), ("offsets", offsets)):
            view = array.view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)

    @classmethod
    def from_checked(cls, values: FloatArray, offsets: NDArray[np.int64]) -> SequenceBatch:
        """Build from arrays known to satisfy the invariants, without scanning them again."""
        batch = object.__new__(cls)
        batch._fill(np.asarray(values), np.asarray(offsets))
        return batch

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back from a pickle writable; rebuilding through `_fill` restores the flags.
        return SequenceBatch.from_checked, (self.values, self.offsets)

    @classmethod
    def from_aeon(cls, X: Any, dtype: DTypeLike | None = None, *, missing: str = "error") -> SequenceBatch:
        """Return the batch held in aeon's channel-major layout.

        Parameters
        ----------
        X : array of shape (n, m, T) or (n, T), or list of arrays of shape (m, T_i) or (T_i,)
            The collection types of aeon (``numpy3D``, ``numpy2D``, ``np-list``, ``df-list``, ``pd-wide``).
            Everything `as_batch` reads is read, with the last two axes of three-dimensional arrays, and the
            two axes of list elements, in the other order. A `SequenceBatch` passes through.
        dtype : "float32", "float64" or None
            As for `as_batch`.
        missing : "error" or "interpolate"
            As for `as_batch`.

        Returns
        -------
        SequenceBatch
            Univariate input is not copied where `as_batch` would not copy it; m > 1 takes a transposed copy.

        Raises
        ------
        SequenceError
            As for `as_batch`.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.arange(12.0).reshape(1, 2, 6)  # 1 sequence, 2 channels, 6 steps
        >>> SequenceBatch.from_aeon(X)
        SequenceBatch(1 sequence, length 6, 2 channels, float64)
        """
        # The gate imports this module. Deferring the way back keeps the module graph one-way while the
        # alternative constructors stay where a caller looks for them.
        from .gate import read_aeon

        return read_aeon(X, dtype=dtype, missing=missing)

    @classmethod
    def from_padded(
        cls, values: Any, lengths: ArrayLike, dtype: DTypeLike | None = None, *, missing: str = "error"
    ) -> SequenceBatch:
        """Return the batch of the first ``lengths[i]`` steps of each row of a padded array.

        Parameters
        ----------
        values : array of shape (n, Tmax) or (n, Tmax, m)
            What lies past a row's length is ignored entirely: it may be NaN, infinite, masked or None.
        lengths : array of shape (n,), integers between 1 and Tmax
            How many leading steps of each row are data.
        dtype : "float32", "float64" or None
            As for `as_batch`.
        missing : "error" or "interpolate"
            As for `as_batch`, before the lengths.

        Returns
        -------
        SequenceBatch
            The padding is gone. If every length is Tmax nothing needs cutting, and nothing is copied.

        Raises
        ------
        SequenceError
            If `values` or `lengths` is unusable, or the data before the lengths breaks a rule of `as_batch`.

        Examples
        --------
        >>> import numpy as np
        >>> padded = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, np.nan]])
        >>> SequenceBatch.from_padded(padded, [3, 1])
        SequenceBatch(2 sequences, lengths 1 to 3, 1 channel, float64)
        """
        from .gate import read_padded  # deferred for the reason given in `from_aeon`

        return read_padded(values, lengths, dtype=dtype, missing=missing)

    @classmethod
    def from_long(
        cls,
        df: Any,
        *,
        id: Any,
        time: Any = None,
        values: Any = None,
        dtype: DTypeLike | None = None,
        missing: str = "error",
    ) -> SequenceBatch:
        """Return the batch held in a long data frame, which has a row for each step.

        Parameters
        ----------
        df : data frame
            Of pandas, polars or Arrow. Of pandas, levels of the index count as columns.
        id : name of a column
            Which sequence a row belongs to.
        time : name of a column or None
            Numbers or dates that order the steps of a sequence, and do nothing else: distances between them don't
            count. None keeps the order of the rows.
        values : name, list of names or None
            The columns that are channels; None takes all others.
        dtype : "float32", "float64" or None
            As for `as_batch`.
        missing : "error" or "interpolate"
            As for `as_batch`.

        Returns
        -------
        SequenceBatch
            In the order of sorted ids, as pandas' `groupby` and `pivot` have them. Labels in the same order:
            ``y = df.groupby(id)["label"].first()``.

        Raises
        ------
        SequenceError
            If a column isn't there, an id or a time is missing, a time occurs twice in a sequence, or the values
            break a rule of `as_batch`.

        Examples
        --------
        >>> import pandas as pd
        >>> df = pd.DataFrame({"id": [7, 7, 3], "t": [1, 0, 0], "v": [20.0, 10.0, 5.0]})
        >>> [x.ravel().tolist() for x in SequenceBatch.from_long(df, id="id", time="t", values="v")]
        [[5.0], [10.0, 20.0]]
        """
        from .gate import read_long  # deferred for the reason given in `from_aeon`

        return read_long(df, id, time, values, dtype=dtype, missing=missing)

    @property
    def shape(self) -> tuple[int, int | None, int]:
        """(n, T, m): sequences, steps and channels; T is None where lengths differ."""
        return len(self), self.max_length if self.is_equal_length else None, self.n_channels

    @property
    def n_channels(self) -> int:
        """Number of channels m."""
        return int(self.values.shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Lengths T_i of the sequences, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def max_length(self) -> int:
        """Length of the longest sequence."""
        return int(self.lengths.max())

    @property
    def is_equal_length(self) -> bool:
        """Whether all sequences have the same length."""
        lengths = self.lengths
        return bool((lengths == lengths[0]).all())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values, float32 or float64."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> FloatArray: ...
    @overload
    def __getitem__(self, index: slice | list[Any] | NDArray[Any] | tuple[Any, ...]) -> SequenceBatch: ...
    def __getitem__(self, index: Any) -> FloatArray | SequenceBatch:
        """Return sequence `index` as a read-only view (T_i, m); for a slice, a mask or indices, the batch of those."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:
            index = index[0]  # how scikit-learn picks rows of what has a shape
        if isinstance(index, slice):
            index = np.arange(len(self))[index]
        if hasattr(index, "to_numpy"):  # a mask that is a column of a frame
            index = index.to_numpy()
        if isinstance(index, (list, np.ndarray)) and np.ndim(index) == 1:
            chosen = np.asarray(index)
            if chosen.dtype.kind == "b":
                if len(chosen) != len(self):
                    raise IndexError(f"a mask of {len(chosen)} entries for a batch of {len(self)} sequences")
                chosen = np.flatnonzero(chosen)
            return self.take(chosen)
        try:
            position = operator.index(index)
        except TypeError:
            raise TypeError(
                "batch[i] takes an integer, a slice, a mask or a list of integers, as batch.take does, got "
                f"{type(index).__name__}"
            ) from None
        n_sequences = len(self)
        if not -n_sequences <= position < n_sequences:
            raise IndexError(f"sequence {position} of a batch of {n_sequences}")
        position %= n_sequences
        return self.values[self.offsets[position] : self.offsets[position + 1]]

    def __iter__(self) -> Iterator[FloatArray]:
        bounds = self.offsets.tolist()
        for start, stop in pairwise(bounds):
            yield self.values[start:stop]

    def __repr__(self) -> str:
        lengths = self.lengths
        shortest, longest = lengths.min(), lengths.max()
        span = f"length {longest}" if shortest == longest else f"lengths {shortest} to {longest}"
        return (
            f"SequenceBatch({len(self)} sequence{'s' if len(self) != 1 else ''}, {span}, "
            f"{self.n_channels} channel{'s' if self.n_channels != 1 else ''}, {self.dtype})"
        )

    def on_host(self) -> SequenceBatch:
        """This batch: sequences on a device have to be copied, these don't."""
        return self

    def take(self, indices: ArrayLike) -> SequenceBatch:
        """Return the batch of the sequences at `indices`, in that order.

        Parameters
        ----------
        indices : array of shape (k,), integers
            Repeats are allowed; negative indices count from the end. k >= 1.

        Returns
        -------
        SequenceBatch
            Shares memory with this batch when the indices are a run i, i + 1, ..., j.

        Raises
        ------
        TypeError
            If the indices are not a one-dimensional array of integers. Boolean masks are not indices.
        IndexError
            If an index is out of range.
        SequenceError
            If there are no indices: an empty batch does not exist.

        Examples
        --------
        >>> import numpy as np
        >>> batch = SequenceBatch(np.array([[1.0], [2.0], [3.0]]), np.array([0, 2, 3]))
        >>> batch.take([1, 0]).values.ravel()
        array([3., 1., 2.])
        """
        chosen = self._check_indices(indices)
        starts = self.offsets[chosen]
        lengths = self.lengths[chosen]
        offsets = offsets_of(lengths)
        if (np.diff(chosen) == 1).all():
            return self.from_checked(self.values[starts[0] : starts[0] + offsets[-1]], offsets)
        # Row r of the result, in sequence i of the result, is row starts[i] + (r - offsets[i]) of this batch.
        rows = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return self.from_checked(self.values[rows], offsets)

    def _check_indices(self, indices: ArrayLike) -> NDArray[np.int64]:
        array = np.asarray(indices)
        if array.shape == (0,):
            raise SequenceError("take needs at least one index: a batch holds at least one sequence")
        if array.ndim != 1 or array.dtype.kind not in "iu":
            hint = "; for a boolean mask use np.flatnonzero(mask)" if array.dtype.kind == "b" else ""
            raise TypeError(
                f"take needs a one-dimensional array of integers, got shape {array.shape} and dtype {array.dtype}{hint}"
            )
        n_sequences = len(self)
        outside = array[(array < -n_sequences) | (array >= n_sequences)]
        if outside.size:
            raise IndexError(f"take: index {outside[0]} is outside a batch of {n_sequences} sequences")
        chosen = array.astype(np.int64)
        chosen[chosen < 0] += n_sequences
        return chosen

    def reversed(self) -> SequenceBatch:
        """Return the batch in which every sequence is read backwards in time; their order stays.

        Examples
        --------
        >>> import numpy as np
        >>> batch = SequenceBatch(np.array([[1.0], [2.0], [3.0]]), np.array([0, 2, 3]))
        >>> batch.reversed().values.ravel()
        array([2., 1., 3.])
        """
        # Within a sequence the source row r and the target row r' satisfy r + r' = start + stop - 1.
        mirror = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, self.lengths)
        return self.from_checked(self.values[mirror - np.arange(len(self.values))], self.offsets)

    def astype(self, dtype: DTypeLike) -> SequenceBatch:
        """Return the batch in the given precision; this very batch if it has it already.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Strings, dtypes and scalar types are fine.

        Raises
        ------
        SequenceError
            If the dtype is another one, or a value is too large for float32.
        """
        return self._cast(dtype, "batch")

    def _cast(self, dtype: DTypeLike, name: str) -> SequenceBatch:
        """`astype`, with the name under which the caller knows this batch."""
        report = ProblemReport(name)
        target = resolve_dtype(dtype, report)
        if target is not None and target == self.dtype:  # NumPy finds None equal to float64
            return self
        if target is not None:
            with np.errstate(all="ignore"):  # what overflows is reported just below
                values = self.values.astype(target)
            if all_finite(values):
                return self.from_checked(values, self.offsets)
            report_nonfinite(report, values, self.offsets, before_cast=self.values)
        raise report.error()


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets (n + 1,) of sequences with the given lengths (n,)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _check_values(values: object, report: ProblemReport) -> FloatArray | None:
    """Return `values` contiguous and aligned, or file what is wrong with it."""
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        found = type(values).__name__
        report.add("not an array", f"values must be a plain NumPy array, got {found}")
        return None
    if values.dtype not in _FLOAT_TYPES or not values.dtype.isnative:
        report.add("dtype", f"values must be native float32 or float64, got {values.dtype}")
    if values.ndim != 2 or values.shape[1] == 0:
        report.add("shape", f"values must have shape (S, m) with m >= 1, got {values.shape}")
    return None if report else np.require(np.asarray(values), requirements=["C", "A"])


def _check_offsets(offsets: object, n_steps: int | None, report: ProblemReport) -> NDArray[np.int64] | None:
    """Return a private int64 copy of `offsets`, or file what is wrong with them.

    `n_steps` is S, or None when the values are unusable and the end cannot be compared.
    """
    array = np.asarray(offsets)
    if array.ndim != 1 or len(array) < 2 or array.dtype.kind not in "iu":
        report.add(
            "offsets",
            f"offsets must be integers of shape (n + 1,) with n >= 1, got shape {array.shape} and dtype {array.dtype}",
        )
        return None
    if array[0] != 0:
        report.add("offsets", f"offsets must start at 0, got {array[0]}")
    if n_steps is not None and array[-1] != n_steps:
        report.add("offsets", f"offsets must end at the number of steps, {n_steps}, got {array[-1]}")
    stuck = np.flatnonzero(array[1:] <= array[:-1])
    if stuck.size:
        report.add("offsets", f"offsets must strictly increase, sequence {stuck[0]} has no steps")
    return array.astype(np.int64)


def resolve_dtype(dtype: DTypeLike | None, report: ProblemReport) -> np.dtype[Any] | None:
    """Return float32 or float64 in native order, None for None; file any other request."""
    if dtype is None:
        return None
    try:
        resolved = np.dtype(dtype).newbyteorder("=")
    except Exception:  # np.dtype raises whatever its argument raises
        resolved = None
    if resolved is not None and resolved in _FLOAT_TYPES:  # NumPy finds None equal to float64
        return resolved
    shown = repr(dtype) if isinstance(dtype, str) else str(resolved or type(dtype).__name__)
    advice = "leave dtype out to keep the precision of the data"
    report.add("dtype", f"dtype must be 'float32', 'float64' or None, got {shown}", advice=advice)
    return None
