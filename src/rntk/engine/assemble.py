"""Runs the tiles of a problem on threads and assembles their blocks in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ..activations.compiled import compile_function
from ..runtime import count_threads, progress_bar, run_in_threads
from . import Block, Problem


@dataclass(frozen=True)
class Grams:
    """Gram matrices: `nngp` and `ntk` (n, n'), `gradient` (n, n', P) along each direction."""

    nngp: NDArray[Any]
    ntk: NDArray[Any]
    gradient: NDArray[Any]


def run_tiles(
    problem: Problem,
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
    title: str = "Gram matrix",
    want_nngp: bool = True,
    want_ntk: bool = True,
) -> Grams:
    """Compute every tile of `problem` and return the assembled matrices; what is not wanted comes back empty."""
    shape, dtype = problem.shape, problem.dtype
    nngp = np.empty(shape if want_nngp else (0, 0), dtype)
    ntk = np.empty(shape if want_ntk else (0, 0), dtype)
    gradient = np.empty((problem.n_directions, *shape), dtype)
    place = compiled_place(dtype)

    def finish(tile: Any) -> float:
        block = problem.compute(tile)
        for wanted, part, out in ((want_nngp, block.nngp, nngp), (want_ntk, block.ntk, ntk)):
            if wanted:
                place(part, *_index(block), problem.symmetric, out)
        for part, out in zip(block.gradient, gradient, strict=True):
            place(part, *_index(block), problem.symmetric, out)
        return float(tile.cost)

    # The largest first: what is left over at the end is small, and all threads finish together.
    tiles = sorted(problem.tiles, key=lambda tile: -tile.cost)
    with progress_bar(title, sum(tile.cost for tile in tiles), progress) as advance:
        run_in_threads(finish, tiles, count_threads(n_jobs), advance)
    return Grams(nngp, ntk, np.moveaxis(gradient, 0, 2))


def _index(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return block.row_index, block.column_index, block.valid


@cache
def compiled_place(dtype: np.dtype[Any]) -> Any:
    """`_place` for `dtype`."""
    real, index = from_dtype(dtype), types.Array(types.int64, 1, "C")
    source, target = types.Array(real, 2, "A"), types.Array(real, 2, "C")
    return compile_function(_place, types.void(source, index, index, index, types.boolean, target))


def _place(block: Any, rows: Any, columns: Any, valid: Any, symmetric: bool, out: Any) -> None:
    for a in range(rows.size):
        for b in range(valid[a], columns.size):
            out[rows[a], columns[b]] = block[a, b]
            if symmetric:
                out[columns[b], rows[a]] = block[a, b]
