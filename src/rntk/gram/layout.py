"""How a Gram matrix is cut: which tiles there are, where each lies, and how large they may be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..activations import HermiteActivation, as_activation
from ..errors import check_count
from ..kernels.pairwise import settings_of
from ..runtime import say_bytes
from ..sequences import SequenceBatch

#: Sequences per side of a tile, at most and at least. A larger tile holds more memory and gains no speed.
LARGEST_BLOCK, SMALLEST_BLOCK = 2048, 16
#: Sequences per side that a tile keeps when it is made smaller only to give more workers something to do.
SHARED_BLOCK = 256
#: Pair-steps of a tile: a second or two of work, so that little is lost with it and preparation doesn't show.
TILE_STEPS = 1e9
#: Tiles of one matrix: each has an entry in the index, which is read as a whole.
MOST_TILES = 1_000_000
#: Tiles in memory at once: the one computed, what the engine needs beside it, one that waits, one that is written.
HELD_TILES = 6
#: Orders of an expansion that the engine may keep for every step.
EXPANSION_BYTES = 9000

Tile = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Blocks of `block` sequences (the last may be smaller); tile (i, j) pairs block i of X with block j of Y, or of X.

    A symmetric matrix has tiles on and above the diagonal only.
    """

    shape: tuple[int, int]
    block: int
    symmetric: bool

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of blocks along rows and columns."""
        return -(-self.shape[0] // self.block), -(-self.shape[1] // self.block)

    def __len__(self) -> int:
        rows, columns = self.blocks
        return rows * (rows + 1) // 2 if self.symmetric else rows * columns

    def __iter__(self) -> Iterator[Tile]:
        """All tiles, the diagonal first.

        A kernel value that is too large lies under a diagonal value that is too large (Cauchy-Schwarz): it is found in
        the first minutes, not in the last.
        """
        rows, columns = self.blocks
        if self.symmetric:
            yield from ((i, i) for i in range(rows))
        yield from ((i, j) for i in range(rows) for j in range(i + 1 if self.symmetric else 0, columns))

    def slot(self, tile: Tile) -> int:
        """Position of a tile in the index."""
        i, j = tile
        rows, columns = self.blocks
        return i * rows - i * (i - 1) // 2 + j - i if self.symmetric else i * columns + j

    def rows(self, i: int) -> slice:
        """Rows of the tiles (i, ·)."""
        return slice(i * self.block, min((i + 1) * self.block, self.shape[0]))

    def columns(self, j: int) -> slice:
        """Columns of the tiles (·, j)."""
        return slice(j * self.block, min((j + 1) * self.block, self.shape[1]))

    def tile_shape(self, tile: Tile) -> tuple[int, int]:
        """Rows and columns of a tile."""
        rows, columns = self.rows(tile[0]), self.columns(tile[1])
        return rows.stop - rows.start, columns.stop - columns.start

    def numbers(self, tile: Tile | None = None) -> int:
        """Kernel values in a tile, or in all tiles."""
        if tile is not None:
            return math.prod(self.tile_shape(tile))
        last = (self.blocks[0] - 1, self.blocks[1] - 1)
        return self.start(last) + self.numbers(last)

    def start(self, tile: Tile) -> int:
        """Kernel values in the tiles before this one, row of tiles by row of tiles."""
        i, j = tile
        height = self.tile_shape(tile)[0]
        n, columns = self.shape[0], self.shape[1]
        if self.symmetric:
            # Rows of tiles before: full ones of `block` rows, each reaching from the diagonal to the right edge.
            return self.block * (i * n - self.block * (i * (i - 1) // 2)) + height * (j - i) * self.block
        return i * self.block * columns + height * j * self.block


def make_layout(
    kernel: Any,
    X: SequenceBatch,
    Y: SequenceBatch | None,
    block: int | None,
    memory: int,
    itemsize: int,
    tiles: int = 0,
) -> Layout:
    """The layout with blocks of `block` sequences, or as suits memory, work and the number of tiles wanted."""
    shape = (len(X), len(X if Y is None else Y))
    sides = (X,) if Y is None else (X, Y)
    block = fitting_block(block, shape)
    if block is None:
        block = _choose_block(kernel, sides, memory, itemsize)
        while block > SHARED_BLOCK and len(Layout(shape, block, Y is None)) < tiles:
            block = max(SHARED_BLOCK, block * 4 // 5)
    else:
        needed = working_bytes(kernel, sides, block, itemsize)
        if needed > memory:
            raise ValueError(
                f"tiles of block={block} sequences need about {say_bytes(needed)}, and memory leaves "
                f"{say_bytes(memory)}; take a smaller block (None chooses one) or more memory"
            )
    layout = Layout(shape, block, Y is None)
    if len(layout) > MOST_TILES:
        raise ValueError(
            f"block={block} cuts {shape[0]} x {shape[1]} values into {len(layout)} tiles; take a larger one"
        )
    return layout


def fitting_block(block: Any, shape: tuple[int, int]) -> int | None:
    """`block` as a number of sequences that there are; None stays None."""
    return None if block is None else min(check_count("block", block), max(shape))


def _choose_block(kernel: Any, sides: tuple[SequenceBatch, ...], memory: int, itemsize: int) -> int:
    largest = max(len(side) for side in sides)
    # However long the sequences, a matrix isn't cut into more tiles than the index has room for.
    least = max(SMALLEST_BLOCK, math.ceil(largest / math.sqrt(MOST_TILES)))
    steps = _steps_per_pair(kernel, sides)
    block = LARGEST_BLOCK
    while block > least and block * block * steps > TILE_STEPS:
        block = max(least, block * 4 // 5)
    block = min(block, largest)
    while (needed := working_bytes(kernel, sides, block, itemsize)) > memory:
        if block == 1:
            raise ValueError(
                f"a single pair of sequences needs about {say_bytes(needed)}, and memory leaves {say_bytes(memory)}; "
                "give more"
            )
        block = block * 4 // 5
    # Blocks of equal size: ten of 2000 rather than nine of 2048 and a small one.
    return math.ceil(largest / math.ceil(largest / block))


def _steps_per_pair(kernel: Any, sides: tuple[SequenceBatch, ...]) -> float:
    """Steps of the recursion for a typical pair. Averaging outputs over time compares every step with every step."""
    lengths = [float(side.lengths.mean()) for side in (sides[0], sides[-1])]
    together = lengths[0] * lengths[1] if "mean" in settings_of(kernel, "readout") else min(lengths)
    return together * _layers(kernel)


def working_bytes(kernel: Any, sides: tuple[SequenceBatch, ...], block: int, itemsize: int) -> int:
    """Memory while tiles of `block` sequences are computed and written, on the high side."""
    depth = _layers(kernel)
    each = 40 + 24 * sides[0].n_channels + 60 * depth
    if any(map(_expands, settings_of(kernel, "activation"))):
        each += EXPANSION_BYTES * depth
    steps = sum(_most_steps(side, block) for side in (sides[0], sides[-1]))
    return HELD_TILES * block * block * itemsize + steps * each


def _layers(kernel: Any) -> int:
    return max([1, *(depth for depth in settings_of(kernel, "depth") if isinstance(depth, int))])


def _most_steps(batch: SequenceBatch, block: int) -> int:
    """Steps of the `block` consecutive sequences that have most."""
    block = min(block, len(batch))
    return int((batch.offsets[block:] - batch.offsets[:-block]).max())


def _expands(activation: Any) -> bool:
    """Whether the engine expands this activation, and keeps hundreds of coefficients for every step."""
    try:
        return isinstance(as_activation(activation), HermiteActivation)
    except (ValueError, TypeError):  # the kernel will say so itself
        return False
