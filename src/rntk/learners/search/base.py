"""What the two searches share: parameters, reading, and the record of what was tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ...errors import check_count
from ...kernels.network import NetworkKernel
from ...sequences import SequenceBatch
from ..base import KernelLearner
from .fast import Member, Trial, as_members, choose, in_order, try_all
from .grids import Candidate, check_family, fast_grid, started_with
from .store import GramStore

Array = NDArray[Any]
SEARCHES = ("fast", "paper")


class KernelSearch(KernelLearner):
    """Base of `RNTKClassifierCV` and `RNTKRegressorCV`."""

    def __init__(
        self,
        search: str = "fast",
        family: str = "rntk",
        n_members: int = 8,
        max_length: int = 200,
        max_sequences: int = 500,
        n_jobs: int | None = None,
        random_state: Any = 0,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.search = search
        self.family = family
        self.n_members = n_members
        self.max_length = max_length
        self.max_sequences = max_sequences
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start

    def _read_training(self, X: Any) -> SequenceBatch:
        # What the other kind of search left behind would be taken for a result of this one.
        for name in ("best_estimator_", "members_", "loo_score_"):
            self.__dict__.pop(name, None)
        return super()._read_training(X)

    def _fitted_kernels(self) -> list[Any]:
        if hasattr(self, "best_estimator_"):
            return [self.best_estimator_.kernel_]
        return [member.kernel for member in self.members_]

    def _check_parameters(self) -> None:
        if self.search not in SEARCHES:
            raise ValueError(f"search must be one of {', '.join(SEARCHES)}, not {self.search!r}")
        check_family(self.family)
        if self.start is not None and (self.search == "paper" or not isinstance(self.start, NetworkKernel)):
            reason = "the paper's grid is what it is" if self.search == "paper" else "it must be an RNTK or NTK"
            raise ValueError(f"start={self.start!r} can't be used: {reason}")
        for name in ("n_members", "max_length", "max_sequences"):
            check_count(name, getattr(self, name))

    def _fit_fast(self, batch: SequenceBatch, targets: Array, groups: Array | None, judge: Any) -> Array:
        """Search, choose, fit; returns the mean of the members' left-out predictions on what they were fitted to."""
        candidates = started_with(self.start, batch, self.max_length) + fast_grid(self.family, batch, self.max_length)
        part = sample(len(batch), groups, self.max_sequences, check_random_state(self.random_state))
        store = GramStore(batch if part is None else batch.take(part), self.cache, self.n_jobs)
        seen = targets if part is None else targets[part]
        trials = try_all(candidates, store, seen, judge(part), self.progress)
        chosen = choose(trials, self.n_members)
        fitted = [trials[k] for k in chosen]
        if part is not None:
            store = GramStore(batch, self.cache, self.n_jobs)
            fitted = try_all([candidates[k] for k in chosen], store, targets, judge(None), self.progress, "Fit")
        self.members_ = as_members(fitted, store)
        self._record(trials, chosen)
        return np.asarray(np.mean([trial.left_out for trial in fitted], axis=0))

    def _record(self, trials: list[Trial], chosen: list[int]) -> None:
        verdicts = [trial.verdict for trial in trials]
        self.cv_results_ = {
            "params": [trial.candidate.settings for trial in trials],
            "mean_test_score": np.array([verdict.score for verdict in verdicts]),
            "loo_error": np.array([verdict.error for verdict in verdicts]),
            "ridge": np.array([trial.ridge for trial in trials]),
            "rank_test_score": ranks(in_order(trials)),
            "seconds": np.array([trial.seconds for trial in trials]),
        }
        self.best_index_ = chosen[0]
        self.best_params_ = {**trials[chosen[0]].candidate.settings, "ridge": trials[chosen[0]].ridge}
        self.best_score_ = verdicts[chosen[0]].score

    def _record_grid(self, candidates: list[Candidate], scores: Array, name: str, values: tuple[float, ...]) -> Any:
        """Results of a paper's grid; returns the best candidate and value. Of equals the one listed first."""
        flat = scores.ravel()
        best = int(np.argmax(flat))
        rank = ranks(np.argsort(-flat, kind="stable"))
        params = [{**candidate.settings, name: value} for candidate in candidates for value in values]
        self.cv_results_ = {"params": params, "mean_test_score": flat, "rank_test_score": rank}
        self.best_index_ = best
        self.best_params_ = params[best]
        self.best_score_ = float(flat[best])
        return candidates[best // len(values)], values[best % len(values)]

    def _member_scores(self, batch: SequenceBatch) -> Array:
        """(n, k): mean of the members' predictions."""
        members: list[Member] = self.members_
        total: Array = sum(member.predict(batch) for member in members)  # type: ignore[assignment]
        return np.asarray(total / len(members))


def sample(n: int, groups: Array | None, most: int, random: np.random.RandomState) -> Array | None:
    """Which sequences to search on, in order: all (None), or about `most` with every group in proportion."""
    if n <= most:
        return None
    if groups is None:
        return np.sort(random.permutation(n)[:most])
    kept = []
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        count = min(len(inside), max(2, round(most * len(inside) / n)))
        kept.append(random.permutation(inside)[:count])
    return np.sort(np.concatenate(kept))


def ranks(order: Any) -> Array:
    """Rank of each entry, from 1, where `order` lists entries best first."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return rank
