"""Runs the tiles of a problem on threads and assembles their blocks in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Event, Lock
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ..compiled import compile_function
from ..engine import Block, Problem
from .progress import progress_bar


@dataclass(frozen=True)
class Grams:
    """Gram matrices: `nngp` and `ntk` (n, n'), `gradient` (n, n', P) of the ntk along each direction."""

    nngp: NDArray[Any]
    ntk: NDArray[Any]
    gradient: NDArray[Any]


def count_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None is every core this process may use, negative counts back from all, as in joblib."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a non-zero integer or None, not {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


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
    gradient = np.empty((problem.n_directions, *(shape if want_ntk else (0, 0))), dtype)
    place = compiled_place(dtype)

    def finish(tile: Any) -> float:
        block = problem.compute(tile)
        for wanted, part, out in ((want_nngp, block.nngp, nngp), (want_ntk, block.ntk, ntk)):
            if wanted:
                place(part, *_index(block), problem.symmetric, out)
        if want_ntk:
            for part, out in zip(block.gradient, gradient, strict=True):
                place(part, *_index(block), problem.symmetric, out)
        return float(tile.cost)

    # The largest first: what is left over at the end is small, and all threads finish together.
    tiles = sorted(problem.tiles, key=lambda tile: -tile.cost)
    with progress_bar(title, sum(tile.cost for tile in tiles), progress) as advance:
        run_in_threads(finish, tiles, min(count_threads(n_jobs), len(tiles)), advance)
    return Grams(nngp, ntk, np.moveaxis(gradient, 0, 2))


def _index(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return block.row_index, block.column_index, block.valid


def run_in_threads(
    work: Callable[[Any], float], items: list[Any], threads: int, advance: Callable[[float], None]
) -> None:
    """work(item) for every item; `advance` is told each result. An error or an interrupt stops what has not begun.

    Workers take items themselves: with a future per item, the bookkeeping of the waiting thread would cost more
    than small tiles do.
    """
    waiting, lock, stop = iter(items), Lock(), Event()

    def worker() -> None:
        while not stop.is_set():
            with lock:
                item = next(waiting, None)
            if item is None:
                return
            try:
                done = work(item)
            except BaseException:
                stop.set()
                raise
            with lock:
                advance(done)

    if threads <= 1:
        worker()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="rntk") as pool:
        futures = [pool.submit(worker) for _ in range(threads)]
        try:
            for future in futures:
                future.result()
        finally:
            stop.set()


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
