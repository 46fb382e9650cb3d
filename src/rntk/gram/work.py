"""The work behind a matrix: what it takes to compute any tile of it, here or in another process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from ..engine.array.batch import ArrayBatch, read_arrays
from ..engine.array.libraries import foreign_arrays, is_elsewhere, to_host
from ..errors import KernelOverflowError
from ..kernels.pairwise import evaluate, leaves_of, settings_of, suited, with_settings
from ..runtime import count_threads, say_bytes
from ..sequences import SequenceBatch, as_batch
from .identity import describe, digest_batch
from .layout import Layout, Tile, make_layout

Array = NDArray[Any]
KINDS = ("ntk", "nngp")


@dataclass(frozen=True)
class Work:
    """Kernel and sequences of one Gram matrix.

    Attributes
    ----------
    kernel, kind : see `rntk.kernels.pairwise.evaluate`.
    X, Y : the sequences; Y is None for a symmetric matrix. Of sequences on a device, the shapes.
    dtype : of the values as they are kept.
    device : X and, if there is one, Y where they lie, if that is on a device.
    """

    kernel: Any
    X: SequenceBatch
    Y: SequenceBatch | None
    kind: str
    dtype: np.dtype[Any]
    device: tuple[ArrayBatch, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return len(self.X), len(self.X if self.Y is None else self.Y)

    def layout(self, block: int | None, memory: int, tiles: int = 0) -> Layout:
        """How the matrix is cut; into `tiles` at least, if that makes them not too small."""
        # A kernel without a dtype of its own computes in double precision, whatever is kept.
        itemsize = self.dtype.itemsize if settings_of(self.kernel, "dtype") else 8
        return make_layout(self.kernel, self.X, self.Y, block, memory, itemsize, tiles)

    def layout_in_memory(self, block: int | None, memory: int, tiles: int = 0) -> Layout:
        """The same where all tiles are kept in memory, beside those at work."""
        n, columns = self.shape
        least = (n * (n + 1) // 2 if self.Y is None else n * columns) * self.dtype.itemsize
        if least >= memory:
            raise ValueError(
                f"the Gram matrix takes {say_bytes(least)}, and memory is {say_bytes(memory)}; pass "
                'out="name.gram" to have it on disk, or more memory'
            )
        layout = self.layout(block, memory - least, tiles)
        # Tiles on the diagonal are kept in full, so there is less room than was thought.
        return self.layout(block, memory - layout.numbers() * self.dtype.itemsize, tiles)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What tells this matrix from others, as JSON; the block is added by the store."""
        from .. import __version__

        sides = [each.on_host() for each in self.device] or [self.X, *([] if self.Y is None else [self.Y])]
        digests = [digest_batch(side) for side in sides]
        return {
            "X": digests[0],
            "Y": None if self.Y is None else digests[1],
            "kernel": describe(self.kernel),
            "kind": self.kind,
            "dtype": self.dtype.name,
            "rntk": __version__,
        }

    def compute(self, layout: Layout, tile: Tile) -> Array:
        """The kernel values of a tile."""
        i, j = tile
        rows, columns = layout.rows(i), layout.columns(j)
        alone = self.Y is None and i == j
        try:
            values = self._values(rows, None if alone else columns, self.Y is not None)
        except KernelOverflowError as error:
            raise _rename(error, rows.start, columns.start, self.Y is None) from None
        return self._check(values, layout, tile)

    def try_out(self) -> None:
        """Evaluate the kernel once, on as little as possible: raises what is wrong with it."""
        if not self.device:
            for batch in (self.X, self.Y):
                if batch is not None:
                    suited(self.kernel, batch)
        few = Layout((min(len(self.X), 2), 1), 2, False)
        self._check(self._values(few.rows(0), few.columns(0)), few, (0, 0))

    def _values(self, rows: slice, columns: slice | None, of_y: bool = False) -> Any:
        """The kernel of some sequences of X with themselves, or with others of X or Y, as it comes."""
        if self.device:
            function = self.kernel if self.kind == "ntk" else self.kernel.nngp
            places = [(0, rows), *([] if columns is None else [(int(of_y), columns)])]
            return to_host(function(*(self.device[which].part(part) for which, part in places)))
        others = self.Y if of_y else self.X
        right = None if columns is None or others is None else _part(others, columns)
        return evaluate(self.kernel, _part(self.X, rows), right, self.kind)

    def _check(self, values: Any, layout: Layout, tile: Tile) -> Array:
        """The values in the form in which tiles are kept, or what is wrong with them."""
        found, shape = np.asarray(values), layout.tile_shape(tile)
        if found.shape != shape or found.dtype.kind not in "fiu":
            raise ValueError(
                f"the kernel of {shape[0]} and {shape[1]} sequences must be a real array of shape {shape}, and is one "
                f"of shape {found.shape} and dtype {found.dtype}"
            )
        # A function may return the same memory again and again.
        own = isinstance(self.kernel, Kernel)
        with np.errstate(over="ignore"):  # reported just below
            kept: Array = (np.ascontiguousarray if own else np.array)(found, dtype=self.dtype)
        # NaN and infinities show in the extremes, which take no memory to find.
        if not np.isfinite([kept.min(), kept.max()]).all():
            a, b = np.argwhere(~np.isfinite(kept))[0]
            row, column = layout.rows(tile[0]).start + a, layout.columns(tile[1]).start + b
            raise ValueError(f"the kernel of sequences {row} and {column} is {kept[a, b]} in {self.dtype}")
        return kept


def _part(batch: SequenceBatch, places: slice) -> SequenceBatch:
    """Consecutive sequences."""
    return batch.take(np.arange(places.start, places.stop))


def make_work(kernel: Any, X: Any, Y: Any, kind: str, dtype: Any, n_jobs: int | None = None) -> Work:
    """Check what `rntk.gram.compute` was given. The caller's kernel stays as it is."""
    if isinstance(kernel, type):
        raise TypeError(f"kernel must be a kernel, such as {kernel.__name__}(), not the class {kernel.__name__}")
    if not callable(kernel):
        raise TypeError(f"kernel must be a kernel or a function of two batches of sequences, not {kernel!r}")
    if kind not in KINDS:
        raise ValueError(f'kind must be "ntk" or "nngp", not {kind!r}')
    if kind == "nngp" and not callable(getattr(kernel, "nngp", None)):
        raise ValueError(f'kind="nngp" is for kernels of networks; {describe_briefly(kernel)} has no nngp kernel')
    if "sequence" in settings_of(kernel, "readout"):
        raise ValueError(
            'readout="sequence" has one row per step of every sequence, and tiles have one per sequence; take readout '
            '"last" or "mean", or call the kernel itself'
        )
    if dtype is None:
        dtype = np.result_type(*(settings_of(kernel, "dtype") or ["float64"]))
    try:
        kept: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        kept = np.dtype(object)
    if kept not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, not {dtype!r}")
    kernel = with_settings(kernel, dtype=kept.name, progress=False)
    if n_jobs is not None:
        count_threads(n_jobs)
        if not settings_of(kernel, "n_jobs"):
            raise ValueError(f"n_jobs={n_jobs} has no effect: {describe_briefly(kernel)} has no threads of its own")
        kernel = with_settings(kernel, n_jobs=n_jobs)
    if any(map(is_elsewhere, [*foreign_arrays(X), *foreign_arrays(Y)])):
        if not all(hasattr(each, "compares_vectors") for each in leaves_of(kernel)):
            raise TypeError(f"sequences on a device are for kernels of networks, not for {describe_briefly(kernel)}")
        device = tuple(read_arrays(lambda data, name: as_batch(data, name=name), X, Y))
        return Work(kernel, device[0].shape, device[1].shape if Y is not None else None, kind, kept, device)
    left = as_batch(X, name="X")
    right = None if Y is None else as_batch(Y, name="Y")
    if right is not None and right.n_channels != left.n_channels:
        raise ValueError(f"X has {left.n_channels} channels and Y has {right.n_channels}; they must agree")
    return Work(kernel, left, right, kind, kept)


def describe_briefly(kernel: Any) -> str:
    """A kernel in a message."""
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def _rename(error: KernelOverflowError, row: int, column: int, symmetric: bool) -> KernelOverflowError:
    """The error with the sequence's index in all of X (or Y) instead of that in the tile."""
    match = re.search(r"sequence (\d+)(?: of ([XY]))?", str(error))
    if match is None:
        return error
    k = int(match[1]) + (column if match[2] == "Y" else row)
    side = f" of {match[2]}" if match[2] and not symmetric else ""
    message = f"{str(error)[: match.start()]}sequence {k}{side}{str(error)[match.end() :]}"
    return KernelOverflowError(message, sequence=k)
