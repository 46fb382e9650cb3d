"""What all transformers share: the contract, giving back what came, refusing results that overflow, sums of runs.

Sums over runs of consecutive steps can neither overflow nor drown in rounding. A run is a whole sequence, a block of
one, or all steps of a batch: rows ``offsets[j]:offsets[j + 1]`` of the values. Every channel of every run is first
divided by the power of two just above its largest magnitude. That is exact, but for values some 300 orders of magnitude
below the largest, which vanish beside it anyway. It leaves numbers below 1 whose squares and sums are harmless, be the
data of size 1e-300 or 1e300.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ..errors import ProblemReport
from ..sequences import SequenceBatch, as_batch, check_channels
from ..sequences.defects import all_finite, locate

FloatArray = NDArray[np.floating[Any]]

#: Overflow is looked for in results, where it can be named, not warned about on the way there.
quietly = np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")

#: A range of this many rounding units of the largest magnitude is what computing a constant twice may leave.
_ROUNDING_UNITS = 4


class SequenceTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the transformers: a subclass names its function, whose parameters are those of its constructor.

    As it stands it learns nothing but the number of channels, and may transform without having been fitted.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.
    """

    #: What happens to a batch; it checks its parameters itself.
    function: ClassVar[Callable[..., SequenceBatch]]
    #: What becomes of missing values, as in `as_batch`.
    missing: ClassVar[str] = "error"
    n_channels_in_: int

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        """The transformed batch."""
        return type(self).function(batch, **self.get_params())

    def _learn(self, batch: SequenceBatch) -> None:
        """Check the parameters, on a single step; what learns from the training data does it here."""
        self._apply(SequenceBatch(np.zeros((1, batch.n_channels)), np.array([0, 1])))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the data and the parameters.

        Parameters
        ----------
        X : sequences
            Whatever `rntk.sequences.as_batch` reads.
        y : object
            Ignored.

        Returns
        -------
        self
            Fitted.
        """
        batch = as_batch(X, missing=self.missing)
        self._learn(batch)
        self.n_channels_in_ = batch.n_channels
        return self

    def transform(self, X: Any) -> Any:
        """Return the transformed sequences, in the form in which they came.

        Parameters
        ----------
        X : sequences
            Whatever `rntk.sequences.as_batch` reads, with as many channels as those of `fit`, if that was called.

        Returns
        -------
        ndarray, list of ndarray or SequenceBatch
            An array (n, T) or (n, T, m) for an array, a list for a list or tuple, of arrays (T_i,) or (T_i, m) as in
            `X`, and a `SequenceBatch` for a `SequenceBatch`. For anything else, data frames among them, an array if
            the lengths are equal and a list if not. Arrays are new and writable.

        Raises
        ------
        SequenceError
            If `X` cannot be read, has another number of channels, or a result is too large for its dtype.
        """
        return give_back(X, self._apply(self._read(X)))

    def _read(self, X: Any) -> SequenceBatch:
        batch = as_batch(X, missing=self.missing)
        check_channels(batch, getattr(self, "n_channels_in_", batch.n_channels), self)
        return batch

    def set_output(self, *, transform: str | None = None) -> Self:
        """Accept the default output, the only one: sequences have no columns to name.

        scikit-learn's own method exists only where columns have names, and pipelines that set the default output
        would fail for want of it.
        """
        if transform not in (None, "default"):
            raise ValueError(
                f"{type(self).__name__} gives back the kind of container it was given, and no {transform!r} output; "
                'use set_output(transform="default")'
            )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.three_d_array = True
        return tags


# ---- Giving back what came ---------------------------------------------------------------------------------


def give_back(X: Any, batch: SequenceBatch) -> Any:
    """Return `batch`, made from what `as_batch` read from `X`, in the form of `X`.

    Parameters
    ----------
    X : sequences, see `rntk.sequences.as_batch`
    batch : SequenceBatch
        As many sequences, of any lengths and channels; of equal lengths if `X` is an array.

    Returns
    -------
    ndarray, list of ndarray or SequenceBatch
        See `SequenceTransformer.transform`. Arrays are copies: nobody else's memory, and writable.

    Examples
    --------
    >>> batch = as_batch([[1.0, 2.0], [3.0]])
    >>> give_back([[0.0], [0.0]], batch)
    [array([1., 2.]), array([3.])]
    >>> give_back(batch, batch) is batch
    True
    """
    if isinstance(X, SequenceBatch):
        return batch
    values = batch.values.copy()
    has_channels = batch.n_channels > 1
    if isinstance(X, (list, tuple)):
        # Sequences (T_i,) and (T_i, 1) may be mixed, so each item is asked.
        sequences = _split(values, batch.offsets)
        if has_channels:
            return sequences
        return [x if _count_axes(item) == 2 else x[:, 0] for x, item in zip(sequences, X, strict=True)]
    has_channels = has_channels or _count_axes(X) == 3
    if batch.is_equal_length:
        return values.reshape(len(batch), -1, *values.shape[1:]) if has_channels else values.reshape(len(batch), -1)
    return _split(values if has_channels else values[:, 0], batch.offsets)


def _split(values: FloatArray, offsets: NDArray[np.int64]) -> list[FloatArray]:
    return [values[start:stop] for start, stop in pairwise(offsets.tolist())]


def _count_axes(item: Any) -> int:
    """Return the number of axes of something that `as_batch` has read, judging nested lists by their first items."""
    ndim = getattr(item, "ndim", None)
    if ndim is not None and (ndim != 1 or getattr(getattr(item, "dtype", None), "kind", None) != "O"):
        return int(ndim)
    try:
        first = next(iter(item))
    except TypeError:  # a number, or a tensor of which only `__dlpack__` is known
        return np.from_dlpack(item).ndim if hasattr(item, "__dlpack__") else 0
    return 1 + _count_axes(first)


# ---- Results -----------------------------------------------------------------------------------------------


@quietly
def seal(values: NDArray[np.float64], offsets: NDArray[np.int64], dtype: np.dtype[Any], what: str) -> SequenceBatch:
    """Return results computed in double precision as a batch of `dtype`.

    Parameters
    ----------
    values : ndarray of shape (S, m)
        Not finite where the computation overflowed.
    offsets : ndarray of shape (n + 1,)
        The sequences.
    dtype : float32 or float64
        That of the input.
    what : str
        What error messages call the result.

    Raises
    ------
    SequenceError
        Naming each sequence that has a value beyond the range of `dtype`.
    """
    result = values.astype(dtype, copy=False)
    if all_finite(result):
        return SequenceBatch.from_checked(result, offsets)
    report = ProblemReport(what)
    found = locate(~np.isfinite(result), offsets)
    for entry, sequence in enumerate(found.sequences[: report.LINE_LIMIT].tolist()):
        text = f"sequence {sequence} has a result too large for {dtype} at {found.place(entry, result.shape[1])}"
        report.add("too large", text, position=sequence)
    report.count_further("too large", len(found.sequences) - report.LINE_LIMIT)
    report.advise(f"rescale the sequences first{', or pass them as float64' if dtype == np.float32 else ''}")
    raise report.error()


# ---- Sums of runs --------------------------------------------------------------------------------------------


class Spread(NamedTuple):
    """Means and population standard deviations of k scaled runs, and their S steps minus the means."""

    means: NDArray[np.float64]  # (k, m)
    deviations: NDArray[np.float64]  # (k, m)
    centred: NDArray[np.float64]  # (S, m)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of steps, scaled by powers of two. S steps, k runs, m channels."""

    values: NDArray[np.float64]  # (S, m), x / 2**exponent: magnitudes below 1
    offsets: NDArray[np.int64]  # (k + 1,)
    exponents: NDArray[np.int32]  # (k, m)
    lowest: NDArray[np.float64]  # (k, m), smallest scaled value
    highest: NDArray[np.float64]  # (k, m), largest scaled value
    resolution: float  # spacing of the numbers of the data's dtype at 1

    def spread(self, per_run: NDArray[Any]) -> NDArray[Any]:
        """Return (S, m): for every step the entry of its run in (k, m)."""
        return np.repeat(per_run, np.diff(self.offsets), axis=0)

    def sums(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (k, m): the sums of (S, m) over each run."""
        return np.asarray(np.add.reduceat(steps, self.offsets[:-1], axis=0))

    def means(self) -> NDArray[np.float64]:
        """Return (k, m): the scaled mean of each run."""
        means = self.sums(self.values) / np.diff(self.offsets)[:, None]
        # A mean lies between the extremes; rounding may push it out, so that 0.1 repeated would not average to 0.1.
        return np.clip(means, self.lowest, self.highest)

    def moments(self) -> Spread:
        """Return means and standard deviations of the scaled runs, and the steps without their means."""
        counts = np.diff(self.offsets)[:, None]
        means = self.means()
        centred = self.values - self.spread(means)
        # The mean is rounded at the size of the values; what it missed shows now, at the size of the deviations.
        centred -= self.spread(self.sums(centred) / counts)
        deviations = np.sqrt(self.sums(centred * centred) / counts)
        # Half the range bounds the deviation (Popoviciu); rounded above it, that of the largest floats would overflow.
        deviations = np.minimum(deviations, (self.highest - self.lowest) / 2)
        return Spread(means, deviations, centred)

    def are_constant(self) -> NDArray[np.bool_]:
        """Return (k, m): whether a run is constant up to the rounding of its own size.

        Judged by the range, which is exact. The computed deviation of a constant is not reliably zero, and no
        absolute bound is right for all units of measurement.
        """
        largest = np.maximum(-self.lowest, self.highest)
        return np.asarray(self.highest - self.lowest <= _ROUNDING_UNITS * self.resolution * largest)


def scale_runs(values: FloatArray, offsets: NDArray[np.int64]) -> Runs:
    """Return the runs of finite `values` (S, m) between strictly increasing `offsets` (k + 1,), in double precision."""
    starts = offsets[:-1]
    lowest = np.minimum.reduceat(values, starts, axis=0).astype(np.float64)
    highest = np.maximum.reduceat(values, starts, axis=0).astype(np.float64)
    _, exponents = np.frexp(np.maximum(-lowest, highest))
    per_step = np.repeat(exponents, np.diff(offsets), axis=0)
    return Runs(
        values=np.ldexp(values.astype(np.float64, copy=False), -per_step),
        offsets=offsets,
        exponents=exponents,
        lowest=np.ldexp(lowest, -exponents),
        highest=np.ldexp(highest, -exponents),
        resolution=float(np.finfo(values.dtype).eps),
    )
