"""The fast search: every candidate judged by closed-form leave-one-out, the best few averaged.

Each kernel is computed once. With more sequences than `max_sequences` the choice is made on a part of them, and only
what was chosen is computed on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.pairwise import gram, in_blocks
from ...runtime import progress_bar
from ...sequences import SequenceBatch
from .grids import Candidate, relative_ridges
from .ridge import RidgePath, ridge_path
from .store import GramStore, with_threads
from .views import View

Array = NDArray[Any]
#: A candidate is left out of the vote if it is worse than the best by more than this many standard errors.
CLEARLY_WORSE = 2.0


class Verdict(NamedTuple):
    """How good left-out predictions (n, k) are: `score` decides, larger is better; of equals the smaller `error`.

    `losses` (n,) are what each sequence has lost; their mean falls as `score` grows.
    """

    score: float
    error: float
    losses: Array

    @property
    def merit(self) -> tuple[float, float]:
        """To sort by."""
        return self.score, -self.error


Judge = Callable[[Array], Verdict]


@dataclass(frozen=True)
class Trial:
    """How one candidate did, by the judge's `verdict` at its best `ridge`, in `seconds`; and the model there."""

    candidate: Candidate
    verdict: Verdict
    ridge: float
    seconds: float
    dual: Array
    left_out: Array


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
    candidates: list[Candidate],
    store: GramStore,
    targets: Array,
    judge: Judge,
    progress: bool | None,
    title: str = "Search",
) -> list[Trial]:
    """Every candidate on the sequences of `store`, in order."""
    trials = []
    costs = [_cost(candidate, store.batch) for candidate in candidates]
    with progress_bar(title, sum(costs), progress) as advance:
        for candidate, cost in zip(candidates, costs, strict=True):
            begin = time.perf_counter()
            K = store.gram(candidate)
            verdict, best, path = _best_ridge(K, targets, judge, relative_ridges(candidate.kernel))
            # Copies: views would keep the solutions for all ridges alive.
            dual, left_out = path.dual[best].copy(), path.left_out[best].copy()
            seconds = time.perf_counter() - begin
            trials.append(Trial(candidate, verdict, float(path.ridges[best]), seconds, dual, left_out))
            advance(cost)
    return trials


def in_order(trials: list[Trial]) -> list[int]:
    """Trials from best to worst; of equals the one listed first."""
    return sorted(range(len(trials)), key=lambda k: trials[k].verdict.merit, reverse=True)


def choose(trials: list[Trial], count: int) -> list[int]:
    """The best `count` trials, without those that are clearly worse than the best."""
    order = in_order(trials)[:count]
    best = trials[order[0]].verdict.losses

    def is_level(losses: Array) -> bool:
        excess = losses - best
        return bool(excess.mean() <= CLEARLY_WORSE * excess.std() / np.sqrt(len(excess)))

    return [k for k in order if is_level(trials[k].verdict.losses)]


def as_members(trials: list[Trial], store: GramStore) -> list[Member]:
    """The models of `trials`, which saw all sequences of `store`, ready to predict."""
    views = {view: view(store.batch) for view in {trial.candidate.view for trial in trials}}
    return [
        Member(view, with_threads(trial.candidate.kernel, store.n_jobs), trial.ridge, trial.dual, views[view])
        for trial in trials
        for view in (trial.candidate.view,)
    ]


def _best_ridge(K: Array, targets: Array, judge: Judge, relative: Array) -> tuple[Verdict, int, RidgePath]:
    """The best verdict over ridges, and where; of equals the largest ridge, the smoothest model."""
    scale = float(np.trace(K)) / len(K)
    # A kernel that sees nothing (differences of two steps are one number, normalised to zero) predicts nothing.
    path = ridge_path(K, targets, relative * (scale if scale > 1e-300 else 1.0))
    verdicts = [judge(each) for each in path.left_out]
    best = max(range(len(verdicts)), key=lambda r: (verdicts[r].merit, r))
    return verdicts[best], best, path


def _cost(candidate: Candidate, batch: SequenceBatch) -> float:
    """Pair-steps, for the progress bar."""
    steps = float(batch.lengths.mean()) / candidate.view.block
    table = candidate.settings.get("readout") == "mean"
    return len(batch) ** 2 / 2 * (steps**2 if table else steps)
