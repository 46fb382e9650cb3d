"""What it takes to compute any tile of a matrix, here or in another process."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from ..errors import KernelOverflowError, check_count, check_dtype, say_bytes
from ..kernels import pairwise
from ..kernels.pairwise import Pairwise, called, settings_of, with_settings
from ..runtime import count_threads
from .identity import identify
from .layout import Layout, Tile

Array = NDArray[Any]
#: Sequences per side of a tile, at most and at least. A larger tile holds more memory and gains no speed.
LARGEST_BLOCK, SMALLEST_BLOCK = 2048, 16
#: Sequences per side that a tile keeps when it is made smaller only to give more workers something to do.
SHARED_BLOCK = 256
#: Pair-steps of a tile: a second or two of work, so that little is lost with it.
TILE_STEPS = 1e9
#: Tiles in memory at once: the one computed, what the engine needs beside it, and its copies on the way to the disk.
HELD_TILES = 6


@dataclass
class Work:
    """Kernel and sequences of one Gram matrix.

    Attributes
    ----------
    kernel : object
        Of which the matrix is.
    X : SequenceBatch or ArrayBatch
        The latter where sequences lie on a device.
    Y : SequenceBatch, ArrayBatch or None
        None for a symmetric matrix.
    dtype : dtype
        Of the values as they are kept.
    """

    kernel: Any
    X: Any
    Y: Any
    dtype: np.dtype[Any]

    @property
    def sides(self) -> tuple[Any, ...]:
        """X and, if there is one, Y."""
        return (self.X,) if self.Y is None else (self.X, self.Y)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return len(self.X), len(self.sides[-1])

    def identity(self, key: str | None) -> dict[str, Any]:
        """What tells this matrix from others; see `identify`."""
        sides = [each.on_host() for each in self.sides]
        return identify(self.kernel, self.dtype, sides[0], None if self.Y is None else sides[1], key)

    def alone(self) -> Work:
        """The same on one thread, for a worker that has others beside it; what all sequences decide is decided."""
        work = replace(self, kernel=with_settings(self.kernel, n_jobs=1))
        _ = work.pairwise
        return work

    @cached_property
    def pairwise(self) -> Pairwise:
        """The kernel as prepare, pairs, diagonal; planned for all sequences."""
        found = pairwise.of(self.kernel)
        found.plan(*self.sides)
        return found

    def part(self, which: int, places: slice) -> Any:
        """Consecutive sequences of X (0) or Y (1)."""
        return self.sides[-which].take(np.arange(places.start, places.stop))

    def try_out(self) -> None:
        """Evaluate the kernel once, on as little as possible: raises what is wrong with it."""
        TileMaker(self, Layout((min(len(self.X), 2), 1), 2, False), 0).compute((0, 0))

    # -- how the matrix is cut -----------------------------------------------------------------------------------------

    def layout(self, block: int | None, memory: int, tiles: int = 0) -> Layout:
        """Blocks of `block` sequences, or as suits memory, work and the number of tiles wanted."""
        block = self._choose_block(memory, tiles) if block is None else self.fitting_block(block)
        needed = self.working_bytes(block)
        if needed > memory:
            raise ValueError(
                f"tiles of block={block} sequences need about {say_bytes(needed)}, and memory leaves "
                f"{say_bytes(memory)}; take a smaller block (None chooses one) or more memory"
            )
        return Layout(self.shape, block, self.Y is None)

    def layout_in_memory(self, block: int | None, memory: int, tiles: int = 0) -> Layout:
        """The same where all tiles are kept in memory, beside those at work."""
        n, columns = self.shape
        least = (n * (n + 1) // 2 if self.Y is None else n * columns) * self.dtype.itemsize
        if least >= memory:
            raise ValueError(
                f"the Gram matrix takes {say_bytes(least)}, and memory is {say_bytes(memory)}; pass "
                'out="name.zarr" to have it on disk, or more memory'
            )
        layout = self.layout(block, memory - least, tiles)
        # Tiles on the diagonal are kept in full, so there is less room than was thought.
        return self.layout(block, memory - layout.numbers() * self.dtype.itemsize, tiles)

    def fitting_block(self, block: Any) -> int:
        """`block` as a number of sequences that there are."""
        return min(check_count("block", block), max(self.shape))

    def _choose_block(self, memory: int, tiles: int) -> int:
        """The largest block that fits into memory, takes a second or two, and leaves something for everybody."""
        largest, cost = max(self.shape), self._steps_per_pair()
        block = min(LARGEST_BLOCK, largest)
        while block > 1 and (
            self.working_bytes(block) > memory
            or (block > SMALLEST_BLOCK and block * block * cost > TILE_STEPS)
            or (block > SHARED_BLOCK and len(Layout(self.shape, block, self.Y is None)) < tiles)
        ):
            block = block * 4 // 5
        # Blocks of equal size: ten of 2000 rather than nine of 2048 and a small one.
        return math.ceil(largest / math.ceil(largest / block))

    def _steps_per_pair(self) -> float:
        """Work of a typical pair."""
        left, right = self.X.lengths, self.sides[-1].lengths
        return self.pairwise.cost(left, right) / (len(left) * len(right))

    def working_bytes(self, block: int) -> int:
        """Memory while tiles of `block` sequences are computed and written, on the high side."""
        steps = sum(_most_steps(side, block) for side in (self.X, self.sides[-1]))
        return self.tile_bytes(block) + math.ceil(steps * self._bytes_per_step)

    def tile_bytes(self, block: int) -> int:
        """Memory for the values of tiles at work."""
        # A kernel without a dtype of its own computes in double precision, whatever is kept.
        return HELD_TILES * block * block * (self.dtype.itemsize if settings_of(self.kernel, "dtype") else 8)

    @cached_property
    def _bytes_per_step(self) -> float:
        """Memory of a prepared side, measured on the first few sequences."""
        few = slice(0, min(len(self.X), 4))
        steps = int(self.X.offsets[few.stop])
        return self.pairwise.nbytes(self.pairwise.prepare(self.part(0, few))) / steps


def _most_steps(batch: Any, block: int) -> int:
    """Steps of the `block` consecutive sequences that have most."""
    block = min(block, len(batch))
    return int((batch.offsets[block:] - batch.offsets[:-block]).max())


class TileMaker:
    """The tiles of a Gram matrix, computed from sides that are prepared once and kept while there is room.

    Parameters
    ----------
    work : Work
        What is computed.
    layout : Layout
        How it is cut.
    memory : int
        Bytes for sides and for tiles at work. The least recently used sides go first; two are always kept.
    """

    def __init__(self, work: Work, layout: Layout, memory: int) -> None:
        self.work = work
        self.layout = layout
        self._room = memory - work.tile_bytes(layout.block)
        self._forget()

    def _forget(self) -> None:
        self._sides: OrderedDict[tuple[int, int], tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_sides", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def in_order(self) -> list[Tile]:
        """All tiles, so that a side is met again while it is kept."""
        side = self.work.working_bytes(self.layout.block) - self.work.tile_bytes(self.layout.block)
        kept = int(2 * self._room // max(side, 1))
        return list(self.layout.in_strips(max(1, min(kept - 2, max(self.layout.blocks)))))

    def compute(self, tile: Tile) -> Array:
        """The kernel values of a tile."""
        i, j = tile
        symmetric = self.layout.symmetric
        row = self._side(0, i)
        column = None if symmetric and i == j else self._side(0 if symmetric else 1, j)
        try:
            values = self.work.pairwise.pairs(row, column)
        except KernelOverflowError as error:
            raise self._renamed(error, j if error.side == "Y" else i, "" if symmetric else error.side) from None
        return self._checked(values)

    def _side(self, which: int, k: int) -> Any:
        """Block k of X (0) or Y (1), prepared."""
        with self._lock:
            if (which, k) not in self._sides:
                places = self.layout.columns(k) if which else self.layout.rows(k)
                try:
                    side = self.work.pairwise.prepare(self.work.part(which, places))
                except KernelOverflowError as error:
                    raise self._renamed(error, k, "" if self.layout.symmetric else "XY"[which]) from None
                self._sides[which, k] = side, self.work.pairwise.nbytes(side)
                while len(self._sides) > 2 and sum(size for _, size in self._sides.values()) > self._room:
                    self._sides.popitem(last=False)
            self._sides.move_to_end((which, k))
            return self._sides[which, k][0]

    def _renamed(self, error: KernelOverflowError, k: int, side: str) -> KernelOverflowError:
        """The error with the sequence's index in all of X (or Y) instead of that in block k."""
        return error.known_as(error.sequence + k * self.layout.block, side) if error.sequence >= 0 else error

    def _checked(self, found: Array) -> Array:
        """The values in the form in which tiles are kept, or what is wrong with them."""
        # A function may return the same memory again and again.
        is_object = isinstance(self.work.kernel, Kernel)
        with np.errstate(over="ignore"):  # reported just below
            kept: Array = (np.ascontiguousarray if is_object else np.array)(found, dtype=self.work.dtype)
        # NaN and infinities show in the extremes, which take no memory to find.
        if not np.isfinite([kept.min(), kept.max()]).all():
            raise ValueError(f"the kernel has values up to {np.abs(found).max():.4g}, beyond {self.work.dtype}")
        return kept


def make_work(kernel: Any, X: Any, Y: Any, dtype: Any, n_jobs: int | None = None) -> Work:
    """Check what `rntk.gram.compute` was given. The caller's kernel stays as it is."""
    if isinstance(kernel, type):
        raise TypeError(f"kernel must be a kernel, such as {kernel.__name__}(), not the class {kernel.__name__}")
    if not callable(kernel):
        raise TypeError(f"kernel must be a kernel or a function of two batches of sequences, not {kernel!r}")
    if pairwise.of(kernel).per_step:
        raise ValueError(
            'readout="sequence" has one row per step of every sequence, and tiles have one per sequence; take readout '
            '"last" or "mean", or call the kernel itself'
        )
    if dtype is None:
        dtype = np.result_type(*(settings_of(kernel, "dtype") or ["float64"]))
    kept = check_dtype(dtype)
    kernel = with_settings(kernel, dtype=kept.name, progress=False)
    if n_jobs is not None:
        count_threads(n_jobs)
        if not settings_of(kernel, "n_jobs"):
            raise ValueError(f"n_jobs={n_jobs} has no effect: {called(kernel)} has no threads of its own")
        kernel = with_settings(kernel, n_jobs=n_jobs)
    sides = pairwise.of(kernel).read(*((name, each) for name, each in (("X", X), ("Y", Y)) if each is not None))
    return Work(kernel, sides[0], sides[1] if len(sides) > 1 else None, kept)
