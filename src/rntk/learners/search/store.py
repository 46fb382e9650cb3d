"""Gram matrices of a search, each computed once and, in a folder, kept across interruptions."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.pairwise import gram
from ...sequences import SequenceBatch
from .candidates import Candidate

Array = NDArray[Any]


class GramStore:
    """Gram matrices of `batch` for candidates, from a folder where there is one."""

    def __init__(self, batch: SequenceBatch, folder: Any, n_jobs: int | None) -> None:
        self.batch = batch
        self.n_jobs = n_jobs
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(f"cache={str(folder)!r} can't be used as a folder: {error.strerror}") from None
        self._views: dict[Any, SequenceBatch] = {}

    @cached_property
    def _digest(self) -> str:
        values, offsets = self.batch.values, self.batch.offsets
        return hashlib.sha256(values.tobytes() + offsets.tobytes() + str(values.dtype).encode()).hexdigest()

    def view(self, candidate: Candidate) -> SequenceBatch:
        """The sequences as this candidate sees them."""
        if candidate.view not in self._views:
            self._views = {candidate.view: candidate.view(self.batch)}  # the last one: grids go view by view
        return self._views[candidate.view]

    def gram(self, candidate: Candidate) -> Array:
        """The Gram matrix of this candidate on all sequences, float64."""
        path = self._path(candidate)
        if path is not None and path.exists():
            try:
                K = np.load(path, allow_pickle=False)
                if K.shape == (len(self.batch),) * 2:
                    return np.asarray(K, dtype=np.float64)
            except (OSError, ValueError, EOFError):
                pass  # a broken file is computed anew
        K = gram(with_threads(candidate.kernel, self.n_jobs), self.view(candidate))
        if path is not None:
            # Written under another name first: an interrupted run leaves whole files or none.
            partial = path.with_suffix(f".{os.getpid()}.partial.npy")
            np.save(partial, K.astype(np.float32) if getattr(candidate.kernel, "dtype", "") == "float32" else K)
            os.replace(partial, path)
        return K

    def _path(self, candidate: Candidate) -> Path | None:
        if self.folder is None:
            return None
        from ... import __version__

        said = f"{__version__}|{self._digest}|{candidate.view}|{type(candidate.kernel).__name__}|" + repr(
            sorted(
                (key, repr(value))
                for key, value in candidate.kernel.get_params().items()
                if key not in ("n_jobs", "progress")
            )
        )
        return self.folder / f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.npy"


def with_threads(kernel: Any, n_jobs: int | None) -> Any:
    """The kernel with this number of threads, and no progress bar of its own."""
    if not hasattr(kernel, "n_jobs"):
        return kernel
    return kernel.__class__(**{**kernel.get_params(), "n_jobs": n_jobs, "progress": False})
