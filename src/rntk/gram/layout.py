"""How a Gram matrix is cut: which tiles there are, where each lies, in which order they are computed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

Tile = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Blocks of sequences; tile (i, j) pairs block i of X with block j of Y, or of X.

    A symmetric matrix has tiles on and above the diagonal only.

    Attributes
    ----------
    shape : (int, int)
        Of the matrix.
    block : int
        Sequences per block; the last one may have fewer.
    symmetric : bool
        Whether it is the matrix of one batch of sequences.
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
        return self.in_strips(1)

    def in_strips(self, height: int) -> Iterator[Tile]:
        """All tiles, the diagonal first, then columns of `height` tiles from left to right, strip below strip.

        Whoever keeps the sides of one strip's rows and of two columns prepares each column once per strip. A kernel
        value that is too large lies under a diagonal value that is too large (Cauchy-Schwarz): it is found in the first
        minutes, not in the last.
        """
        rows, columns = self.blocks
        if self.symmetric:
            yield from ((i, i) for i in range(rows))
        for top in range(0, rows, height):
            for j in range(top + 1 if self.symmetric else 0, columns):
                bottom = min(top + height, rows, j if self.symmetric else rows)
                yield from ((i, j) for i in range(top, bottom))

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

    def numbers(self, *tiles: Tile) -> int:
        """Kernel values in these tiles, or in all of them."""
        return sum(math.prod(self.tile_shape(tile)) for tile in tiles or self)
