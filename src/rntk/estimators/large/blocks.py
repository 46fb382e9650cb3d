"""Kernels on blocks of sequences: a quiet copy, its precision, and rows of kernel values one block after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from ...sequences import SequenceBatch
from ...threads import count_threads
from ..base import suited


def working_copy(kernel: Any, n_jobs: int | None = None) -> Any:
    """The kernel without progress bars of its own, which would come and go with every block.

    `n_jobs` threads, unless None, for every kernel of the library in it. Functions are returned as they are.
    """
    if n_jobs is not None:
        count_threads(n_jobs)  # refuses what is no number of threads, whatever the kernel
    if not isinstance(kernel, Kernel):
        return kernel
    wanted: dict[str, Any] = {"progress": False} | ({} if n_jobs is None else {"n_jobs": n_jobs})
    copy = clone(kernel)
    changes = {
        name: wanted[name.rpartition("__")[2]] for name in copy.get_params() if name.rpartition("__")[2] in wanted
    }
    return copy.set_params(**changes) if changes else copy


def precision_of(kernel: Any, X: SequenceBatch) -> np.dtype[Any]:
    """float32 if that is what the kernel returns, else float64; asked of the first sequence."""
    one = suited(kernel, X.take([0]))
    found = np.asarray(kernel(one, one)).dtype
    return np.dtype(np.float32 if found == np.float32 else np.float64)


def default_tolerance(precision: np.dtype[Any]) -> float:
    """Eigenvalues below this part of the largest are rounding of kernel values: a hundred units in the last place."""
    return 100 * float(np.finfo(precision).eps)


def split(X: SequenceBatch, rows: int) -> Iterator[tuple[slice, SequenceBatch]]:
    """Consecutive parts of at most `rows` sequences, and where they stand. Nothing is copied."""
    for start in range(0, len(X), rows):
        stop = min(start + rows, len(X))
        yield slice(start, stop), X.take(np.arange(start, stop))
