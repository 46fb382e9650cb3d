"""What a Gram computation is made of: independent tiles, whatever the engine and wherever they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Tile(NamedTuple):
    """A rectangle of the Gram matrix, computed as one piece of work.

    Attributes
    ----------
    rows, columns : what the engine calls its two sides; opaque to everybody else.
    cost : pair-steps, for progress and for scheduling the large ones first.
    """

    rows: tuple[int, int, int]
    columns: int
    cost: float


@dataclass(frozen=True)
class Block:
    """What a tile yields: the kernels at `row_index` × `column_index` of the Gram matrices.

    Attributes
    ----------
    nngp, ntk : (rows, columns).
    gradient : (P, rows, columns), the ntk along each direction.
    valid : (rows,), first column that was computed in each row; what lies before belongs to the mirror image.
    """

    row_index: NDArray[np.int64]
    column_index: NDArray[np.int64]
    nngp: NDArray[Any]
    ntk: NDArray[Any]
    gradient: NDArray[Any]
    valid: NDArray[np.int64]


class Problem(Protocol):
    """A Gram computation, prepared: every tile can be computed on its own, in any order, on any thread.

    Attributes
    ----------
    shape : of each Gram matrix.
    symmetric : whether only tiles on and above the diagonal are listed.
    """

    shape: tuple[int, int]
    symmetric: bool
    n_directions: int
    dtype: np.dtype[Any]
    tiles: list[Tile]

    def compute(self, tile: Tile) -> Block:
        """The kernels of one tile; thread-safe, free of side effects."""
        ...


class Scale(NamedTuple):
    """Positive numbers of any size, mantissa 2^exponent: one per sequence (or per step)."""

    mantissa: NDArray[np.float64]
    exponent: NDArray[np.int64]
