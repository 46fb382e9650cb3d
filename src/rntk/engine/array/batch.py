"""Sequences where they lie: checked by the gate's rules, never moved.

What the gate says about shapes (time before channels, no empty sequences, one number of channels) holds here too, and
in its words: it is shown zeros of the same shapes. What it says about values is asked on the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import ProblemReport, SequenceError
from ...sequences import SequenceBatch
from ..contract import Reader
from .libraries import Library, foreign_arrays, library_name, library_of, to_host


@dataclass(frozen=True)
class ArrayBatch:
    """n sequences with m channels on one device, in the layout of a `SequenceBatch`.

    Attributes
    ----------
    library : Library
        Whose arrays they are.
    values
        (S, m), all steps of all sequences, one after another; finite.
    shape : SequenceBatch
        a batch in host memory with the lengths and channels of these sequences; its values mean nothing.
    name : str
        What messages call it.
    """

    library: Library
    values: Any
    shape: SequenceBatch
    name: str

    def __len__(self) -> int:
        return len(self.shape)

    @property
    def lengths(self) -> np.ndarray[Any, Any]:
        return self.shape.lengths

    @property
    def n_channels(self) -> int:
        return self.shape.n_channels

    @property
    def offsets(self) -> np.ndarray[Any, Any]:
        return self.shape.offsets

    def take(self, places: Any) -> ArrayBatch:
        """Consecutive sequences; nothing leaves the device."""
        first, last = int(places[0]), int(places[-1]) + 1
        assert last - first == len(places)
        begin, end = (int(self.shape.offsets[at]) for at in (first, last))
        return replace(self, values=self.values[begin:end, :], shape=self.shape.take(places))

    def on_host(self) -> SequenceBatch:
        """A copy in host memory."""
        return SequenceBatch(to_host(self.values), self.shape.offsets)

    def padded(self, chosen: list[int], dtype: Any, *, at_end: bool, backwards: bool) -> Any:
        """The sequences `chosen`, (T, m, k), aligned at their last steps (`at_end`) or at their first ones.

        What lies outside of a sequence repeats one of its own steps: finite numbers, which nobody reads. Read
        `backwards`, each sequence is turned around, not the padding.
        """
        xp, device = self.library.xp, self.library.device
        begins, lengths = self.shape.offsets[chosen][:, None], self.shape.lengths[chosen][:, None]
        steps, count, channels = int(lengths.max()), len(chosen), self.shape.n_channels
        if (np.diff(begins, axis=0) == steps).all() and (lengths == steps).all():
            block = xp.reshape(self.values[int(begins[0, 0]) : int(begins[-1, 0]) + steps, :], (count, steps, channels))
            block = xp.permute_dims(xp.astype(block, dtype), (1, 2, 0))
            return xp.flip(block, axis=0) if backwards else block
        # Where step t of each sequence stands among all steps.
        t = np.clip(np.arange(steps) - (steps - lengths if at_end else 0), 0, lengths - 1)
        at = begins + (lengths - 1 - t if backwards else t)
        block = xp.take(self.values, xp.asarray(at.T.ravel(), device=device), axis=0)
        return xp.permute_dims(xp.reshape(xp.astype(block, dtype), (steps, count, channels)), (0, 2, 1))


def read_arrays(read: Reader, *given: tuple[str, Any]) -> list[ArrayBatch]:
    """What is given, (name, data) each, as batches on their common device; `read` is how the kernel reads its data.

    Raises
    ------
    SequenceError
        Libraries or devices differ, a tensor holds integers, records gradients or isn't finite, or its shape holds no
        sequences.
    """
    opened = [(name, *_open(read, data, name)) for name, data in given]
    library = library_of([(name, arrays) for name, arrays, _ in opened])
    return [ArrayBatch(library, _join(library, *each), each[2], each[0]) for each in opened]


def _open(read: Reader, data: Any, name: str) -> tuple[Any, SequenceBatch]:
    """The array, or the list of arrays, that `data` is, and a batch of the same shape."""
    arrays = foreign_arrays(data)
    if not arrays:  # host memory: the gate itself
        batch = read(data, name)
        return batch.values, batch
    if not isinstance(data, (list, tuple)):
        return data, read(np.zeros(tuple(data.shape), dtype=np.float32), name)
    if len(arrays) < len(data):
        i, odd = next((i, item) for i, item in enumerate(data) if not foreign_arrays(item))
        raise SequenceError(
            f"{name} mixes arrays of {library_name(arrays[0])} and others: sequence {i} is a {type(odd).__qualname__}; "
            "all must be arrays of one library on one device"
        )
    return arrays, read([np.zeros(tuple(array.shape), dtype=np.float32) for array in arrays], name)


def _join(library: Library, name: str, arrays: Any, shape: SequenceBatch) -> Any:
    """All steps (S, m), finite floating-point numbers; or raise."""
    xp, report, several = library.xp, ProblemReport(name), isinstance(arrays, list)
    for i, array in enumerate(arrays if several else [arrays]):
        subject = f"sequence {i}" if several else name
        if not xp.isdtype(array.dtype, "real floating"):
            text = f"{subject} holds {array.dtype}, not floating-point numbers"
            advice = "convert it, with X.float() in PyTorch or X.astype(float) in JAX"
            report.add("dtype", text, position=i, advice=advice)
        if getattr(array, "requires_grad", False):
            text = f"{subject} records gradients (requires_grad), and kernels are not differentiated that way"
            advice = "pass X.detach(); derivatives by the inputs come from rntk.input_gradient"
            report.add("gradients", text, position=i, advice=advice)
    if report:
        raise report.error()
    if several:
        # (T,) and (T, 1) may be mixed, and must agree before they are joined.
        whole = len({array.ndim for array in arrays}) == 1
        arrays = xp.concat(arrays if whole else [xp.reshape(array, (-1,)) for array in arrays], axis=0)
    values = xp.reshape(arrays, (len(shape.values), shape.n_channels))
    finite = xp.all(xp.isfinite(values), axis=1)
    if not bool(xp.all(finite)):
        _refuse_nonfinite(xp, finite, report, shape)
    return values


def _refuse_nonfinite(xp: Any, finite: Any, report: ProblemReport, shape: SequenceBatch) -> None:
    wrong = xp.where(finite, xp.zeros_like(finite, dtype=xp.int32), xp.ones_like(finite, dtype=xp.int32))
    step = int(xp.argmax(wrong))
    i = int(np.searchsorted(shape.offsets, step, side="right")) - 1
    text = f"sequence {i} holds NaN or an infinite value at step {step - int(shape.offsets[i])}"
    others = int(xp.sum(wrong)) - 1
    report.add("not finite", text + (f", the first of {others + 1} such steps" if others else ""), position=i)
    report.advise("fill gaps or cut them out; padded arrays become lists of sequences of their true lengths")
    raise report.error()
