"""Learners that choose everything themselves: kernels, views of the sequences, and how much regularisation.

Every candidate is judged by closed-form leave-one-out of ridge regression, and the best few are averaged. Each Gram
matrix is computed once. With more sequences than `max_sequences` the choice is made on a part of them, and only what
was chosen is computed on all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ...errors import check_count, say_bytes
from ...kernels.network import NetworkKernel
from ...kernels.pairwise import with_settings
from ...programs import ProgramKernel
from ...runtime import announce, progress_bar, say_seconds, text_table
from ...sequences import SequenceBatch
from ...sequences.targets import Array, read_labels, read_values, read_weights
from ..base import KernelLearner, PreparedSequences, gram
from .candidates import Candidate, candidates_for, estimate_seconds, relative_ridges, started_with
from .leave_one_out import Judgement, best_ridge, judge_classes, judge_values
from .views import View

#: What a report shows of a candidate's results beside its settings, by what it is called there.
SHOWN = {"ridge": "ridge", "score": "mean_test_score"}
#: Matrices of the size of a Gram matrix that exist at once: itself twice, eigenvectors, their squares, work.
MATRICES = 5
#: A candidate is left out of the vote if it is worse than the best by more than this many standard errors.
CLEARLY_WORSE = 2.0


@dataclass(frozen=True)
class Trial:
    """How one candidate did, by the judge's `verdict` at its best `ridge`, in `seconds`; and the model there."""

    candidate: Candidate
    verdict: Judgement
    ridge: float
    seconds: float
    dual: Array
    left_out: Array


@dataclass(frozen=True)
class Member:
    """A fitted kernel ridge model on one view of the training sequences.

    Attributes
    ----------
    view : View
        What it sees of a sequence.
    kernel : object
        Its kernel.
    ridge : float
        Its regularisation.
    dual : ndarray of shape (n, k)
        Its coefficients of the training sequences.
    """

    view: View
    kernel: Any
    ridge: float
    dual: Array

    def __repr__(self) -> str:
        return f"Member({self.view}, {self.kernel}, ridge={self.ridge:.4g}, {len(self.dual)} sequences)"


class Members(list[Member]):
    """The members of a model, which print as a table."""

    def __repr__(self) -> str:
        rows = [[each.view, each.kernel, each.ridge] for each in self]
        return text_table(["view", "kernel", "ridge"], rows, left=2)


class _Ensemble(KernelLearner):
    """The search and the vote, behind the classifier and the regressor."""

    def __init__(
        self,
        n_members: int = 8,
        max_length: int = 200,
        max_sequences: int = 500,
        n_jobs: int | None = None,
        random_state: Any = None,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.n_members = n_members
        self.max_length = max_length
        self.max_sequences = max_sequences
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start

    @property
    def members_(self) -> Members:
        """The models that vote or are averaged."""
        try:
            return cast(Members, vars(self)["members_"])
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no members_") from None

    @members_.setter
    def members_(self, members: list[Member]) -> None:
        self.__dict__["members_"] = Members(members)

    def _fitted_kernels(self) -> list[Any]:
        return [member.kernel for member in self.members_]

    def _check_parameters(self) -> None:
        if self.start is not None and not isinstance(self.start, NetworkKernel | ProgramKernel):
            raise ValueError(f"start={self.start!r} can't be used: it must be an RNTK, NTK or ProgramKernel")
        for name in ("n_members", "max_length", "max_sequences"):
            check_count(name, getattr(self, name))

    def _fit_members(
        self, batch: SequenceBatch, targets: Array, weight: Array, groups: Array | None, judge: Any
    ) -> Array:
        """Search, choose, fit; returns the mean of the members' left-out predictions on what they were fitted to."""
        candidates = [
            *started_with(self.start, batch, self.max_length),
            *candidates_for(batch, self.max_length),
        ]
        part = sample(len(batch), groups, self.max_sequences, check_random_state(self.random_state))
        self.notes_ = self._notes(candidates, batch, len(part), targets.shape[1])
        for note in self.notes_:
            announce(note, self.progress)
        trials = self._try_all(candidates, batch.take(part), targets[part], weight[part], judge, "Search")
        chosen = choose(trials, self.n_members)
        fitted = [trials[k] for k in chosen]
        if len(part) < len(batch):
            fitted = self._try_all([candidates[k] for k in chosen], batch, targets, weight, judge, "Fit")
        self.members_ = [
            Member(trial.candidate.view, self._with_threads(trial.candidate.kernel), trial.ridge, trial.dual)
            for trial in fitted
        ]
        self._keep(batch)
        self._record(trials, chosen[0])
        return np.asarray(np.mean([trial.left_out for trial in fitted], axis=0))

    def _notes(self, candidates: list[Candidate], batch: SequenceBatch, n_part: int, k: int) -> list[str]:
        """What a user should know about the work before it is done."""
        notes, blocks = [], sorted({candidate.view.block for candidate in candidates} - {1})
        if blocks:
            steps = " and ".join(str(-(-batch.max_length // block)) for block in blocks)
            notes.append(
                f"sequences of up to {batch.max_length} steps are averaged down to {steps} for kernels that average "
                f"over steps (max_length={self.max_length})"
            )
        if n_part < len(batch):
            notes.append(
                f"kernels are chosen on {n_part} of {len(batch)} sequences (max_sequences={self.max_sequences})"
            )
        # Those that are chosen are computed on all sequences; as a rule they are of the dearer half.
        dearest = sorted(candidates, key=lambda candidate: candidate.cost(batch))[-self.n_members :]
        again = dearest if n_part < len(batch) else []
        work = [(candidates, batch.take(np.arange(n_part))), (again, batch)]
        seconds = estimate_seconds(work, self._with_threads)
        if seconds > 60:
            n = len(batch) if again else n_part
            needed = say_bytes(8.0 * n * (MATRICES * n + 2 * len(relative_ridges(candidates[-1].kernel)) * k))
            notes.append(f"{len(candidates)} kernels take about {say_seconds(seconds)} and {needed} of memory")
        return notes

    def _with_threads(self, kernel: Any) -> Any:
        return with_settings(kernel, n_jobs=self.n_jobs, progress=False)

    def _try_all(
        self, candidates: list[Candidate], batch: SequenceBatch, targets: Array, weight: Array, judge: Any, title: str
    ) -> list[Trial]:
        """Every candidate on the sequences of `batch`, in order."""
        trials: list[Trial] = []
        weight = weight / weight.mean()
        costs = [candidate.cost(batch) for candidate in candidates]
        with progress_bar(title, sum(costs), self.progress) as bar:
            for k, (candidate, cost) in enumerate(zip(candidates, costs, strict=True)):
                begin = time.perf_counter()
                if not k or candidate.view != candidates[k - 1].view:
                    shown = candidate.view(batch)
                with bar.part(cost, f"{k + 1} of {len(candidates)}"):
                    K = gram(self._with_threads(candidate.kernel), shown, self.cache)
                    verdict, best, path = best_ridge(K, targets, weight, judge, relative_ridges(candidate.kernel))
                # Copies: views would keep the solutions for all ridges alive.
                dual, left_out = path.dual[best].copy(), path.left_out[best].copy()
                seconds = time.perf_counter() - begin
                trials.append(Trial(candidate, verdict, float(path.ridges[best]), seconds, dual, left_out))
        return trials

    def _record(self, trials: list[Trial], best: int) -> None:
        verdicts = [trial.verdict for trial in trials]
        rank = np.empty(len(trials), dtype=np.int64)
        rank[in_order(trials)] = np.arange(1, len(trials) + 1)
        self.cv_results_ = {
            "params": [trial.candidate.params for trial in trials],
            "mean_test_score": np.array([verdict.score for verdict in verdicts]),
            "loo_error": np.array([verdict.error for verdict in verdicts]),
            "ridge": np.array([trial.ridge for trial in trials]),
            "rank_test_score": rank,
            "seconds": np.array([trial.seconds for trial in trials]),
        }
        self.best_index_ = best
        self.best_params_ = {**trials[best].candidate.params, "ridge": trials[best].ridge}
        self.best_score_ = verdicts[best].score

    def _prepare(self) -> list[PreparedSequences]:
        shown = {view: view(self.sequences_) for view in {member.view for member in self.members_}}
        return [PreparedSequences(member.kernel, shown[member.view]) for member in self.members_]

    def _mean_values(self, X: Any) -> Array:
        """(n, k): mean of the members' predictions."""
        batch = self._read_new(X)
        shown: dict[View, SequenceBatch] = {}
        total: Any = 0.0
        with progress_bar("Prediction", len(self.members_), self.progress) as bar:
            for member, prepared in zip(self.members_, self._training(), strict=True):
                if member.view not in shown:
                    shown[member.view] = member.view(batch)
                with bar.part(1.0):
                    total = total + prepared.in_blocks(shown[member.view], lambda _, K, dual=member.dual: K @ dual)
        return np.asarray(total / len(self.members_))

    def report(self) -> dict[str, Any]:
        """What `summary` says, for programs."""
        check_is_fitted(self)
        lengths, results = self.sequences_.lengths, cast(dict[str, Any], self.cv_results_)
        order = results["rank_test_score"].argsort()[: len(self.members_)]
        classes = getattr(self, "classes_", None)
        # Targets that are all equal leave nothing to predict, and R² compares with their mean.
        score = float(self.loo_score_) if any(member.dual.any() for member in self.members_) else None
        return {
            "task": "regress" if classes is None else "classify",
            "n_sequences": len(lengths),
            "n_channels": self.n_channels_in_,
            "min_length": int(lengths.min()),
            "max_length": int(lengths.max()),
            "classes": None if classes is None else classes.tolist(),
            "n_candidates": len(results["params"]),
            "chosen": [
                {**results["params"][k], **{name: float(results[key][k]) for name, key in SHOWN.items()}} for k in order
            ],
            "score": {
                "measure": "r2" if classes is None else "accuracy",
                "by": "leave-one-out",
                "of": "the model",
                "value": score,
            },
            "notes": list(getattr(self, "notes_", [])),
        }

    def summary(self) -> str:
        """What was tried, chosen and found, as `rntk fit` prints it."""
        report = self.report()
        lengths = " to ".join(map(str, sorted({report["min_length"], report["max_length"]})))
        classes = report["classes"]
        task = "Regression" if classes is None else "Classification"
        channels = "1 channel" if report["n_channels"] == 1 else f"{report['n_channels']} channels"
        facts = [f"{report['n_sequences']} sequences", channels, f"{lengths} steps"]
        if classes is not None:
            facts.insert(1, f"{len(classes)} classes")
        chosen = report["chosen"]
        headings = list(dict.fromkeys(name for each in chosen for name in each))
        headings.sort(key=lambda name: not isinstance(chosen[0].get(name), str))  # words first; the sort is stable
        words = sum(isinstance(chosen[0].get(name), str) for name in headings)
        value, name = report["score"]["value"], "R²" if classes is None else "accuracy"
        best = "the best" if len(chosen) == 1 else f"the {len(chosen)} best, which are averaged"
        score = f"Leave-one-out {name}: none, because all targets are equal"
        if value is not None:
            shown = f"{value:.4f}" if classes is None else f"{value:.1%}"
            reserve = "it was chosen on the same data, so this is a little too good"
            score = f"Leave-one-out {name} of the model: {shown} ({reserve})"
        return "\n".join(
            [
                f"{task}: {', '.join(facts)}",
                *(f"Note: {note}" for note in report["notes"]),
                f"Tried {report['n_candidates']} kernels; {best}:",
                "",
                text_table(headings, [[each.get(name, "") for name in headings] for each in chosen], words),
                "",
                score,
            ]
        )


class RNTKClassifier(ClassifierMixin, _Ensemble):  # type: ignore[misc]
    """Classifier of sequences that chooses its kernels and regularisation by itself.

    It tries 37 to 53 kernels on four views of the sequences: z-normalised values, their differences, sequences of unit
    norm, and values scaled by what they are on all sequences together where those differ in level or size. For kernels
    that average over steps long sequences are seen at two resolutions, and with and without a clock. Judged is by
    closed-form leave-one-out of kernel ridge regression, and the `n_members` best vote.

    Parameters
    ----------
    n_members : int, default=8
        How many models vote; fewer where the others are clearly worse than the best.
    max_length : int, default=200
        Longer sequences are averaged down to this many steps where a kernel costs O(T²).
    max_sequences : int, default=500
        With more, kernels are chosen on a stratified sample of this size.
    n_jobs : int or None, default=None
        Threads; None is all cores.
    random_state : int, RandomState or None, default=None
        For that sample.
    cache : path or None, default=None
        Folder that keeps Gram matrices, so that an interrupted search goes on where it stopped.
    progress : bool or None, default=None
        None shows a bar on a terminal after two seconds; True always; False never.
    start : RNTK, NTK or None, default=None
        A kernel to try first, with its σ_w as it is and 5 % to either side: `rntk.suggest(X).kernel`, say.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The labels.
    cv_results_ : dict
        What was tried and how it did, as in scikit-learn's searches.
    best_params_ : dict
        Settings of the best candidate.
    best_score_ : float
        Its leave-one-out accuracy.
    best_index_ : int
        Its place in `cv_results_`.
    members_ : list of Member
        The models that vote: `view`, `kernel`, `ridge` and `dual` of each.
    notes_ : list of str
        What was done to save time, and about how long it takes if that is more than a minute: on a terminal this is
        said before it is done.
    sequences_ : SequenceBatch
        The training sequences, without those of weight zero.
    loo_score_ : float
        Leave-one-out accuracy of the vote: chosen on the same data, so a little too good.

    Notes
    -----
    Ties: higher accuracy, then smaller squared error of the left-out scores, then the larger ridge, then whatever is
    listed first.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in (20, 30, 25, 28)]
    >>> y = ["slow"] * 4 + ["fast"] * 4
    >>> RNTKClassifier().fit(X, y).predict([np.sin(np.arange(40) * 0.6)])
    array(['fast'], dtype='<U4')
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKClassifier:
        """Choose and fit on sequences `X` and labels `y`; weights count in the fits and in what is chosen by."""
        batch = self._read_training(X)
        y = read_labels(y, len(batch))
        self._check_parameters()
        used, weight = read_weights(sample_weight, len(batch))
        self.classes_, codes = np.unique(read_labels(y[used], len(used)), return_inverse=True)
        weight = np.ones(len(used)) if weight is None else weight
        # One column per class, +1 for members and -1 for others.
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        left_out = self._fit_members(batch.take(used), targets, weight, codes, judge_classes)
        self.loo_score_ = float(np.average(left_out.argmax(axis=1) == codes, weights=weight))
        return self

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, else (n, classes): scores, the largest of which decides."""
        scores = self._mean_values(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        scores = self._mean_values(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])


class RNTKRegressor(RegressorMixin, _Ensemble):  # type: ignore[misc]
    """Regression on sequences that chooses its kernels and ridge by itself.

    It tries what `RNTKClassifier` tries, judges by the squared error of left-out targets, and averages the `n_members`
    best.

    Parameters
    ----------
    n_members : int, default=8
        How many models are averaged; fewer where the others are clearly worse than the best.
    max_length : int, default=200
        Longer sequences are averaged down to this many steps where a kernel costs O(T²).
    max_sequences : int, default=500
        With more, kernels are chosen on a sample of this size.
    n_jobs : int or None, default=None
        Threads; None is all cores.
    random_state : int, RandomState or None, default=None
        For that sample.
    cache : path or None, default=None
        Folder that keeps Gram matrices, so that an interrupted search goes on where it stopped.
    progress : bool or None, default=None
        None shows a bar on a terminal after two seconds; True always; False never.
    start : RNTK, NTK or None, default=None
        A kernel to try first, with its σ_w as it is and 5 % to either side: `rntk.suggest(X).kernel`, say.

    Attributes
    ----------
    cv_results_ : dict
        What was tried and how it did; scores are minus squared errors of targets of unit deviation.
    best_params_ : dict
        Settings of the best candidate.
    best_score_ : float
        Its score.
    best_index_ : int
        Its place in `cv_results_`.
    members_ : list of Member
        The models that are averaged: `view`, `kernel`, `ridge` and `dual` of each.
    notes_ : list of str
        What was done to save time, and about how long it takes if that is more than a minute: on a terminal this is
        said before it is done.
    sequences_ : SequenceBatch
        The training sequences, without those of weight zero.
    y_mean_ : ndarray of shape () or (targets,)
        Mean of the targets.
    y_scale_ : ndarray of shape () or (targets,)
        Their deviation, or one where that is zero.
    loo_score_ : float
        Leave-one-out R² of the average: chosen on the same data, so a little too good.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 12))
    >>> y = X[:, -1]
    >>> RNTKRegressor().fit(X, y).score(X, y) > 0.5
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRegressor:
        """Choose and fit on sequences `X` and targets `y`, (n,) or (n, targets); weights count in fits and choice."""
        batch = self._read_training(X)
        y = read_values(y, len(batch))
        self._check_parameters()
        used, weight = read_weights(sample_weight, len(batch))
        if len(used) < 2:
            raise ValueError("a search needs at least 2 sequences, got n_samples = 1")
        y = y[used]
        weight = np.ones(len(used)) if weight is None else weight
        self.y_mean_ = np.asarray(np.average(y, axis=0, weights=weight))
        spread = np.sqrt(np.average(np.square(y - self.y_mean_), axis=0, weights=weight))
        self.y_scale_ = np.where(spread > 0, spread, 1.0)
        targets = ((y - self.y_mean_) / self.y_scale_).reshape(len(y), -1)
        left_out = self._fit_members(batch.take(used), targets, weight, None, judge_values)
        self.loo_score_ = float(r2_score(targets, left_out, sample_weight=weight))
        return self

    def predict(self, X: Any) -> Array:
        """Values at the sequences in `X`, (n,) or (n, targets)."""
        values = self._mean_values(X)
        return np.asarray(values.reshape(len(values), *self.y_mean_.shape) * self.y_scale_ + self.y_mean_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


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


def sample(n: int, groups: Array | None, most: int, random: np.random.RandomState) -> NDArray[np.int64]:
    """Which sequences to search on, in order: all, or about `most` with every group in proportion."""
    if n <= most:
        return np.arange(n)
    if groups is None:
        return np.sort(random.permutation(n)[:most])
    kept = []
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        count = min(len(inside), max(2, round(most * len(inside) / n)))
        kept.append(random.permutation(inside)[:count])
    return np.sort(np.concatenate(kept))
