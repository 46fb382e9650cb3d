"""Kernels on blocks of sequences: a quiet copy, its precision, how much at once, and one block after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...kernels.pairwise import BLOCK_BYTES, evaluate, settings_of, with_settings
from ...runtime import count_threads, say_bytes
from ...sequences import SequenceBatch

#: Bytes behind a kernel value in use: as the kernel returns it, as float64, and in the precision of a product.
BYTES_PER_VALUE = 24


def working_copy(kernel: Any, n_jobs: int | None = None) -> Any:
    """The kernel without progress bars of its own, which would come and go with every block.

    `n_jobs` threads, unless None, for every kernel of the library in it. Functions are returned as they are.
    """
    if n_jobs is None:
        return with_settings(kernel, progress=False)
    count_threads(n_jobs)  # refuses what is no number of threads, whatever the kernel
    return with_settings(kernel, progress=False, n_jobs=n_jobs)


def precision_of(kernel: Any, X: SequenceBatch) -> np.dtype[Any]:
    """float32 if the kernel, or one that it is made of, computes in that, else float64; asked of the first sequence."""
    one = X.take([0])
    found = [np.asarray(evaluate(kernel, one, one)).dtype, *map(np.dtype, settings_of(kernel, "dtype"))]
    return np.dtype(np.float32 if np.dtype(np.float32) in found else np.float64)


def default_tolerance(precision: np.dtype[Any]) -> float:
    """Eigenvalues below this part of the largest are rounding of kernel values: a hundred units in the last place."""
    return 100 * float(np.finfo(precision).eps)


def count_rows(columns: int, memory: int, reserved: int = 0) -> int:
    """Rows of a block with this many columns, at least one, of what `memory` leaves beside `reserved` bytes.

    Blocks of more than `BLOCK_BYTES` are no faster, so a large budget is not used up.
    """
    row = BYTES_PER_VALUE * columns
    if memory < reserved + row:
        raise ValueError(
            f"memory is {say_bytes(memory)}, and {columns} landmarks need at least {say_bytes(reserved + row)}; "
            "take more memory or fewer landmarks"
        )
    return max(1, min((memory - reserved) // row, BLOCK_BYTES // (8 * columns)))


def split(X: SequenceBatch, rows: int) -> Iterator[tuple[slice, SequenceBatch]]:
    """Consecutive parts of at most `rows` sequences, and where they stand. Nothing is copied."""
    for start in range(0, len(X), rows):
        stop = min(start + rows, len(X))
        yield slice(start, stop), X.take(np.arange(start, stop))
