"""The fast search: every candidate judged by closed-form leave-one-out, the best few averaged.

Each kernel is computed once. With more sequences than `max_sequences` the choice is made on a part of them, and only
what was chosen is computed on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...gram.progress import progress_bar
from ...sequences import SequenceBatch
from ..base import gram, in_blocks
from .grids import Candidate, relative_ridges
from .ridge import RidgePath, ridge_path
from .store import GramStore, with_threads
from .views import View

Array = NDArray[Any]
#: (left-out predictions (n, k)) -> how good they are; larger is better, compared entry by entry.
Judge = Callable[[Array], tuple[float, float]]


@dataclass(frozen=True)
class Trial:
    """How one candidate did: `merit` as the judge gives it, at its best `ridge`, in `seconds`."""

    candidate: Candidate
    merit: tuple[float, float]
    ridge: float
    seconds: float


@dataclass(frozen=True)
class Member:
    """A fitted kernel ridge model on one view."""

    view: View
    kernel: Any
    ridge: float
    dual: Array
    sequences: SequenceBatch

    def predict(self, batch: SequenceBatch) -> Array:
        """(n, k) values at the sequences of `batch`."""
        new = self.view(batch)
        return in_blocks(new, len(self.sequences), lambda part: gram(self.kernel, part, self.sequences) @ self.dual)


def try_all(
    candidates: list[Candidate], store: GramStore, targets: Array, judge: Judge, progress: bool | None
) -> list[Trial]:
    """Every candidate on the sequences of `store`, in order."""
    trials = []
    costs = [_cost(candidate, store.batch) for candidate in candidates]
    with progress_bar("Search", sum(costs), progress) as advance:
        for candidate, cost in zip(candidates, costs, strict=True):
            begin = time.perf_counter()
            best, path = _best_ridge(store.gram(candidate), targets, judge)
            merit = judge(path.left_out[best])
            trials.append(Trial(candidate, merit, float(path.ridges[best]), time.perf_counter() - begin))
            advance(cost)
    return trials


def choose(trials: list[Trial], count: int) -> list[int]:
    """The best `count` trials: by merit; of equals the one listed first."""
    return sorted(range(len(trials)), key=lambda k: tuple(-value for value in trials[k].merit))[:count]


def fit_members(
    candidates: list[Candidate], store: GramStore, targets: Array, judge: Judge, progress: bool | None
) -> tuple[list[Member], Array]:
    """The chosen candidates fitted to all sequences, and the mean of their left-out predictions."""
    members, left_out = [], np.zeros(targets.shape)
    costs = [_cost(candidate, store.batch) for candidate in candidates]
    with progress_bar("Fit", sum(costs), progress) as advance:
        for candidate, cost in zip(candidates, costs, strict=True):
            best, path = _best_ridge(store.gram(candidate), targets, judge)
            left_out += path.left_out[best] / len(candidates)
            kernel = with_threads(candidate.kernel, store.n_jobs)
            ridge = float(path.ridges[best])
            members.append(Member(candidate.view, kernel, ridge, path.dual[best], store.view(candidate)))
            advance(cost)
    return members, left_out


def _best_ridge(K: Array, targets: Array, judge: Judge) -> tuple[int, RidgePath]:
    """Which ridge judges best; of equals the largest, the smoothest model."""
    scale = float(np.trace(K)) / len(K)
    # A kernel that sees nothing (differences of two steps are one number, normalised to zero) predicts nothing.
    path = ridge_path(K, targets, relative_ridges() * (scale if scale > 1e-300 else 1.0))
    merits = [judge(each) for each in path.left_out]
    return max(range(len(merits)), key=lambda r: (merits[r], r)), path


def _cost(candidate: Candidate, batch: SequenceBatch) -> float:
    """Pair-steps, for the progress bar."""
    steps = float(batch.lengths.mean()) / candidate.view.block
    table = candidate.settings.get("readout") == "mean"
    return len(batch) ** 2 / 2 * (steps**2 if table else steps)
