"""The default learners: a fixed ensemble, each part a ridge model on one view.

Every part is judged by closed-form leave-one-out of its ridge regression, and what it says of left-out sequences gives
it its weight (`stacking`). Of more than `recipe.EXACT` sequences landmarks stand for the kernel, so that work grows
with the number of sequences and with their lengths, not with their squares.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pickle import PicklingError
from typing import Any, NamedTuple, cast

import numpy as np
from joblib import Memory
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ...engine import REVISION
from ...errors import check_count
from ...kernels.network import NetworkKernel
from ...kernels.pairwise import with_settings
from ...programs import ProgramKernel
from ...runtime import announce, progress_bar, text_table
from ...sequences import SequenceBatch
from ...sequences.targets import Array, read_labels, read_values, read_weights, weigh_classes
from ..base import KernelLearner, PreparedSequences, Term, gram
from ..landmarks import LandmarkFeatures
from .leave_one_out import Fit, fit_ridge
from .recipe import EXACT, Component, parts_for, started_with
from .stacking import mixed, stack_classes, stack_values
from .views import WINDOW, View

#: From (n, classes) sums and the weight that is still to come to which of n are decided.
Decided = Callable[[Array, float], NDArray[np.bool_]]
#: What a report shows of a part's results beside its settings, by what it is called there.
SHOWN = {"ridge": "ridge", "score": "mean_test_score", "weight": "weight"}
#: Sequences at most that landmarks, and what views take from the data, come from.
SAMPLE = 1000
#: Channels that take as long as the rest of a kernel's recursion.
CHANNELS = 16
#: Numbers in a block of sequences as a view shows them.
BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Member:
    """A ridge model on one view.

    Attributes
    ----------
    view : View
        What it sees of a sequence.
    kernel : object
        Its kernel.
    landmarks : StepFeatures, NystromFeatures or None
        Features that stand for the kernel; None if it is computed with all training sequences.
    ridge : float
        Its regularisation.
    weight : float
        Its part in the ensemble.
    coefficients : ndarray of shape (n, k) or (rank, k)
        What kernel values with the training sequences, or features, are multiplied by.
    """

    view: View
    kernel: Any
    landmarks: LandmarkFeatures | None
    ridge: float
    weight: float
    coefficients: Array

    def __repr__(self) -> str:
        return f"Member({self.view}, {self.kernel}, ridge={self.ridge:.4g}, weight={self.weight:.3f})"


class Members(list[Member]):
    """The members of a model, which print as a table."""

    def __repr__(self) -> str:
        rows = [[each.view, each.kernel, each.ridge, each.weight] for each in self]
        return text_table(["view", "kernel", "ridge", "weight"], rows, left=2)


class ResultTable(dict[str, Any]):
    """What was fitted and how it did, as scikit-learn's searches have it; prints as a table."""

    def __repr__(self) -> str:
        names = [name for name, column in self.items() if name != "params" and len(column) == len(self["params"])]
        rows = [[params["view"], *(self[name][k] for name in names)] for k, params in enumerate(self["params"])]
        return text_table(["view", *names], rows)


class Seen(NamedTuple):
    """A part that has seen the training sequences.

    Attributes
    ----------
    view : View
        Its view, fitted.
    landmarks : StepFeatures, NystromFeatures or None
        Its features, fitted; None if its kernel is exact.
    matrix : ndarray of shape (n, rank) or (n, n)
        Features of the training sequences, or their Gram matrix.
    """

    view: View
    landmarks: LandmarkFeatures | None
    matrix: Array


class FittedComponent(NamedTuple):
    """A part with its fitted view and landmarks, the ridge model on them, and the seconds it took."""

    part: Component
    view: View
    landmarks: LandmarkFeatures | None
    fit: Fit
    seconds: float


def left_out_of(fitted: list[FittedComponent]) -> Array:
    """(parts, n, k): what the models of every part say of the sequences that they have not seen."""
    return np.stack([each.fit.left_out for each in fitted])


class _Ensemble(KernelLearner):
    """The parts and how they are put together, behind the classifier and the regressor."""

    n_landmarks: int
    n_jobs: int | None
    random_state: Any
    cache: Any
    progress: bool | None
    start: Any

    @property
    def members_(self) -> Members:
        """The models that are put together."""
        return cast(Members, self._fitted("members_"))

    @members_.setter
    def members_(self, members: list[Member]) -> None:
        self.__dict__["members_"] = Members(members)

    @property
    def cv_results_(self) -> ResultTable:
        """What was fitted and how it did."""
        return cast(ResultTable, self._fitted("cv_results_"))

    @cv_results_.setter
    def cv_results_(self, results: dict[str, Any]) -> None:
        self.__dict__["cv_results_"] = ResultTable(results)

    def _fitted(self, name: str) -> Any:
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no {name}") from None

    def _fitted_kernels(self) -> list[Any]:
        return [member.kernel for member in self.members_]

    def _prepare(self) -> list[PreparedSequences | None]:
        """Training sequences as members see them, for those whose kernels are computed with all."""
        return [
            None if member.landmarks else PreparedSequences(member.kernel, member.view(self.sequences_))
            for member in self.members_
        ]

    def _check_parameters(self) -> None:
        if self.start is not None and not isinstance(self.start, NetworkKernel | ProgramKernel):
            raise ValueError(f"start={self.start!r} can't be used: it must be an RNTK, NTK or ProgramKernel")
        check_count("n_landmarks", self.n_landmarks)

    def _fit_parts(
        self, batch: SequenceBatch, targets: Array, weight: Array, groups: Array | None, counts: Array
    ) -> list[FittedComponent]:
        """Fit every part. `counts` says whose error counts."""
        random = check_random_state(self.random_state)
        some = batch.take(sample(len(batch), groups, SAMPLE, random))
        parts = [*started_with(self.start, some), *parts_for(some, len(batch))]
        self.notes_ = self._notes(batch, parts)
        for note in self.notes_:
            announce(note, self.progress)
        seeds = [int(seed) for seed in random.randint(2**31 - 1, size=len(parts))]
        weight = weight / weight.mean()
        fitted = []
        costs = [part.cost(len(batch), batch, self.n_landmarks) for part in parts]
        with progress_bar("Fit", sum(costs), self.progress) as bar:
            for k, (part, seed, cost) in enumerate(zip(parts, seeds, costs, strict=True)):
                begin = time.perf_counter()
                with bar.part(cost, f"{k + 1} of {len(parts)}"):
                    seen = self._see(part, batch, some, seed)
                    fit = fit_ridge(seen.matrix, seen.landmarks is None, targets, weight, counts)
                fitted.append(FittedComponent(part, seen.view, seen.landmarks, fit, time.perf_counter() - begin))
        return fitted

    def _see(self, part: Component, batch: SequenceBatch, some: SequenceBatch, seed: int) -> Seen:
        """The part's features of the training sequences, from the folder `cache` if they are there."""
        kernel = with_settings(part.kernel, n_jobs=None, progress=False)  # results don't depend on threads
        arguments = (part.view, kernel, part.history, batch, some, self.n_landmarks, seed, REVISION)
        if self.cache is None:
            return see(*arguments, n_jobs=self.n_jobs)
        folder = Path(self.cache)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "there is a file of that name" if folder.is_file() else error.strerror
            raise ValueError(f"cache={str(folder)!r} can't be used as a folder: {reason}") from None
        try:
            return cast(Seen, Memory(folder, verbose=0).cache(see, ignore=["n_jobs"])(*arguments, n_jobs=self.n_jobs))
        except (PicklingError, AttributeError):  # a function without a name can't be told from another
            return see(*arguments, n_jobs=self.n_jobs)

    def _finish(self, batch: SequenceBatch, fitted: list[FittedComponent], weights: Array, scores: Array) -> None:
        """Keep the parts with these `weights`; `scores` are what leave-one-out says of each."""
        members = [
            Member(
                each.view,
                with_settings(each.part.kernel, n_jobs=self.n_jobs, progress=False),
                each.landmarks,
                each.fit.ridge,
                float(weight),
                each.fit.coefficients,
            )
            for each, weight in zip(fitted, weights, strict=True)
            if weight
        ]
        self.members_ = sorted(members, key=lambda member: -member.weight)
        self._keep(batch)
        errors, ridges, seconds = np.array([(each.fit.error, each.fit.ridge, each.seconds) for each in fitted]).T
        order = np.lexsort((errors, -scores))
        rank = np.empty(len(fitted), dtype=np.int64)
        rank[order] = np.arange(1, len(fitted) + 1)
        self.cv_results_ = {
            "params": [{"view": str(each.view), **settings_of(each.part.kernel)} for each in fitted],
            "mean_test_score": scores,
            "loo_error": errors,
            "ridge": ridges,
            "weight": weights,
            "rank_test_score": rank,
            "seconds": seconds,
        }
        best = int(order[0])
        self.best_index_ = best
        self.best_params_ = {**self.cv_results_["params"][best], "ridge": float(ridges[best])}
        self.best_score_ = float(scores[best])

    def _notes(self, batch: SequenceBatch, parts: list[Component]) -> list[str]:
        """What a user should know about how work is saved."""
        notes, block = [], max(part.view.block for part in parts if part.view.name == "values")
        if block > 1:
            notes.append(
                f"sequences of up to {batch.max_length} steps are averaged down to {-(-batch.max_length // block)} "
                "where a kernel reads them as a whole; windows and spectra are of all steps"
            )
        if len(batch) > EXACT:
            notes.append(
                f"with more than {EXACT} sequences kernels are approximated, by {self.n_landmarks} landmarks each "
                f"(n_landmarks={self.n_landmarks})"
            )
        return notes

    def _add_up(self, X: Any, of: Callable[[Array], Array], enough: Decided | None = None) -> Array:
        """The members' predictions (n, k), passed through `of` and added up: most weight for its price comes first.

        `enough(sums, rest)` says which sequences need no more, where members of weight `rest` are still to come.
        """
        batch = self._read_new(X)
        sums = np.zeros((len(batch), self.members_[0].coefficients.shape[1]))
        rows, rest = np.arange(len(batch)), 1.0
        with progress_bar("Prediction", len(self.members_), self.progress) as bar:
            pairs = zip(self.members_, self._training(), strict=True)
            for member, prepared in sorted(pairs, key=lambda pair: -pair[0].weight / price(pair[0], batch)):
                with bar.part(1.0):
                    for part in blocks(rows, batch):
                        scores = scores_of(member, prepared, member.view(batch.take(part)))
                        sums[part] += member.weight * of(scores)
                rest -= member.weight
                if enough is not None:
                    rows = rows[~enough(sums[rows], rest)]
                if not len(rows):
                    break
        return sums

    def _terms(self, x: SequenceBatch) -> list[Term] | None:
        """What the ensemble says near the sequence `x`, to first order, as sums of kernel values."""
        if any(member.landmarks is not None for member in self.members_):
            return None
        prepared = cast(list[PreparedSequences], self._training())
        scores = [scores_of(*pair, pair[0].view(x))[0] for pair in zip(self.members_, prepared, strict=True)]
        return [
            Term(member.kernel, each.sequences, member.coefficients @ slopes, member.view)
            for member, each, slopes in zip(self.members_, prepared, self._slopes(scores), strict=True)
        ]

    @abstractmethod
    def _slopes(self, scores: list[Array]) -> list[Array]:
        """(k, columns) of each member: derivatives of what is said by the members' `scores` (k,)."""

    def report(self) -> dict[str, Any]:
        """What `summary` says, for programs."""
        check_is_fitted(self)
        lengths, results = self.sequences_.lengths, self.cv_results_
        order = np.argsort(-results["weight"], kind="stable")[: len(self.members_)]
        classes = getattr(self, "classes_", None)
        # Targets that are all equal leave nothing to predict, and R² compares with their mean.
        score = float(self.loo_score_) if any(member.coefficients.any() for member in self.members_) else None
        return {
            "task": "regress" if classes is None else "classify",
            "n_sequences": len(lengths),
            "n_channels": self.n_channels_in_,
            "min_length": int(lengths.min()),
            "max_length": int(lengths.max()),
            "classes": None if classes is None else classes.tolist(),
            "n_parts": len(results["params"]),
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
        """What was fitted and found, as `rntk fit` prints it."""
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
        score = f"Leave-one-out {name}: none, because all targets are equal"
        if value is not None:
            shown = f"{value:.4f}" if classes is None else f"{value:.1%}"
            reserve = "it was weighted on the same data, so this is a little too good"
            score = f"Leave-one-out {name} of the model: {shown} ({reserve})"
        return "\n".join(
            [
                f"{task}: {', '.join(facts)}",
                *(f"Note: {note}" for note in report["notes"]),
                f"{report['n_parts']} parts were fitted; those with a weight:",
                "",
                text_table(headings, [[each.get(name, "") for name in headings] for each in chosen], words),
                "",
                score,
            ]
        )


class RNTKClassifier(ClassifierMixin, _Ensemble):  # type: ignore[misc]
    """Classifier of sequences without settings: a fixed ensemble that weighs its parts itself.

    Each part is a kernel of a recurrent network that reads one view of the sequences, and a ridge model on it. Views
    are: z-normalised values, and their differences, each with a clock and without; scaled values, where sequences
    differ in level or size; windows of nine values with 1, 2, 4, … steps between them, each normalised by itself; and
    the spectrum around each position. Closed-form leave-one-out chooses each ridge and, by stacking, the weights of
    the parts, which are nearly equal where data is scarce. Stacking mixes predictive distributions, so `predict_proba`
    costs nothing more.

    Parameters
    ----------
    n_landmarks : int, default=512
        With more than 1000 sequences kernels are approximated by this many landmarks (`StepFeatures`), so that work
        grows with the number of sequences and with their lengths. More are closer to the kernel, and dearer.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, times those of sequences; "balanced" makes all classes count alike.
    n_jobs : int or None, default=None
        Threads; None is all cores.
    random_state : int, RandomState or None, default=0
        For the landmarks.
    cache : path or None, default=None
        Folder that keeps what was computed for each part, so that an interrupted fit goes on where it stopped.
        Whoever can write there can run code here: it holds pickles, as joblib makes them.
    progress : bool or None, default=None
        None shows a bar on a terminal after two seconds; True always; False never.
    start : RNTK, NTK, ProgramKernel or None, default=None
        A kernel to add, on values and on differences: `rntk.suggest(X).kernel`, say.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The labels.
    cv_results_ : dict
        What was fitted and how it did, as in scikit-learn's searches; it prints as a table.
    best_params_ : dict
        Settings of the best part by itself.
    best_score_ : float
        Its leave-one-out accuracy.
    best_index_ : int
        Its place in `cv_results_`.
    members_ : list of Member
        The parts: `view`, `kernel`, `landmarks`, `ridge`, `weight` and `coefficients` of each.
    sharpness_ : float
        What scores of members are multiplied by before they become probabilities.
    notes_ : list of str
        What was done to save time; on a terminal this is said before it is done.
    sequences_ : SequenceBatch
        The training sequences, without those of weight zero.
    loo_score_ : float
        Leave-one-out accuracy of the ensemble: weighted on the same data, so a little too good.

    Notes
    -----
    Nothing can be learned about a class from its only member when that is left out. Such sequences are in the models,
    and have no say in ridges and weights; where there are no others, parts have equal weights.

    Missing values are refused, by name and place. `make_pipeline(Interpolate(), RNTKClassifier())` fills them in, with
    `rntk.preprocessing.Interpolate`.

    Ties in `cv_results_`: higher accuracy, then smaller squared error of the left-out scores, then what is first.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in (20, 30, 25, 28)]
    >>> y = ["slow"] * 4 + ["fast"] * 4
    >>> model = RNTKClassifier().fit(X, y)
    >>> model.predict([np.sin(np.arange(40) * 0.6)])
    array(['fast'], dtype='<U4')
    >>> model.predict_proba([np.sin(np.arange(40) * 0.6)]).shape
    (1, 2)
    """

    def __init__(
        self,
        n_landmarks: int = 512,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKClassifier:
        """Fit on sequences `X` and labels `y`; weights count in the fits and in what is chosen by."""
        batch = self._read_training(X)
        y = read_labels(y, len(batch))
        self._check_parameters()
        used, weight = read_weights(sample_weight, len(batch))
        labels = read_labels(y[used], len(used))
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weight = weigh_classes(self.class_weight, labels, weight)
        weight = np.ones(len(used)) if weight is None else weight
        # One column per class, +1 for members and -1 for others.
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        counts = np.bincount(codes)[codes] > 1
        batch = batch.take(used)
        fitted = self._fit_parts(batch, targets, weight, codes, counts)
        left_out = left_out_of(fitted)
        stack = stack_classes(left_out, codes, weight / weight.mean() * counts)
        self.sharpness_ = stack.sharpness
        scores = np.average(left_out.argmax(axis=2) == codes, axis=1, weights=weight)
        self._finish(batch, fitted, stack.weights, scores)
        probabilities = mixed(list(left_out), stack)
        self.loo_score_ = float(np.average(probabilities.argmax(axis=1) == codes, weights=weight))
        return self

    def predict_proba(self, X: Any) -> Array:
        """(n, classes): probabilities of the labels in `classes_`."""
        return self._mix(X)

    def _mix(self, X: Any, enough: Decided | None = None) -> Array:
        """Probabilities, as far as `enough` asks for them."""
        return self._add_up(X, lambda scores: softmax(self.sharpness_ * scores, axis=1), enough)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes, (n,); else logarithms of probabilities, (n, classes)."""
        logs = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return np.asarray(logs[:, 1] - logs[:, 0]) if len(self.classes_) == 2 else logs

    def _slopes(self, scores: list[Array]) -> list[Array]:
        # ∂ log p_c / ∂ s_j = β w q_c (δ_cj - q_j) / p_c, with a member's own probabilities q.
        chances = [softmax(self.sharpness_ * each) for each in scores]
        total = sum(member.weight * q for member, q in zip(self.members_, chances, strict=True))
        found = [
            self.sharpness_ * member.weight * (np.diag(q) - np.outer(q, q)) / total
            for member, q in zip(self.members_, chances, strict=True)
        ]
        return [each[:, 1:] - each[:, :1] for each in found] if len(self.classes_) == 2 else found

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        best = self._mix(X, is_decided).argmax(axis=1)  # most need but a few members
        return np.asarray(self.classes_[best])


class RNTKRegressor(RegressorMixin, _Ensemble):  # type: ignore[misc]
    """Regression on sequences without settings: a fixed ensemble that weighs its parts itself.

    The parts are those of `RNTKClassifier`. What is predicted is the mean of a mixture, whose weights are stacked from
    the squared errors of left-out targets.

    Parameters
    ----------
    n_landmarks : int, default=512
        With more than 1000 sequences kernels are approximated by this many landmarks (`StepFeatures`), so that work
        grows with the number of sequences and with their lengths. More are closer to the kernel, and dearer.
    n_jobs : int or None, default=None
        Threads; None is all cores.
    random_state : int, RandomState or None, default=0
        For the landmarks.
    cache : path or None, default=None
        Folder that keeps what was computed for each part, so that an interrupted fit goes on where it stopped.
        Whoever can write there can run code here: it holds pickles, as joblib makes them.
    progress : bool or None, default=None
        None shows a bar on a terminal after two seconds; True always; False never.
    start : RNTK, NTK, ProgramKernel or None, default=None
        A kernel to add, on values and on differences: `rntk.suggest(X).kernel`, say.

    Attributes
    ----------
    cv_results_ : dict
        What was fitted and how it did; scores are minus squared errors of targets of unit deviation.
    best_params_ : dict
        Settings of the best part by itself.
    best_score_ : float
        Its score.
    best_index_ : int
        Its place in `cv_results_`.
    members_ : list of Member
        The parts: `view`, `kernel`, `landmarks`, `ridge`, `weight` and `coefficients` of each.
    notes_ : list of str
        What was done to save time; on a terminal this is said before it is done.
    sequences_ : SequenceBatch
        The training sequences, without those of weight zero.
    y_mean_ : ndarray of shape () or (targets,)
        Mean of the targets.
    y_scale_ : ndarray of shape () or (targets,)
        Their deviation, or one where that is zero.
    loo_score_ : float
        Leave-one-out R² of the ensemble: weighted on the same data, so a little too good.

    Notes
    -----
    Missing values are treated as by `RNTKClassifier`.

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

    def __init__(
        self,
        n_landmarks: int = 512,
        n_jobs: int | None = None,
        random_state: Any = 0,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRegressor:
        """Fit on sequences `X` and targets `y`, (n,) or (n, targets); weights count in fits and choice."""
        batch = self._read_training(X)
        y = read_values(y, len(batch))
        self._check_parameters()
        used, weight = read_weights(sample_weight, len(batch))
        if len(used) < 2:
            raise ValueError("leave-one-out needs at least 2 sequences, got n_samples = 1")
        y = y[used]
        weight = np.ones(len(used)) if weight is None else weight
        size = np.abs(y).max(axis=0)  # squares of any finite numbers are finite, and equal numbers have no spread
        size = np.where(size > 0, size, 1.0)
        y = y / size
        mean = np.average(y, axis=0, weights=weight)
        spread = np.sqrt(np.average(np.square(y - mean), axis=0, weights=weight))
        spread = np.where(spread > 0, spread, 1.0)
        targets = ((y - mean) / spread).reshape(len(y), -1)
        self.y_mean_, self.y_scale_ = np.asarray(mean * size), np.asarray(spread * size)
        batch = batch.take(used)
        fitted = self._fit_parts(batch, targets, weight, None, np.ones(len(y), dtype=bool))
        left_out = left_out_of(fitted)
        weights = stack_values(left_out, targets, weight / weight.mean())
        errors = np.square(left_out - targets).mean(axis=2)
        self._finish(batch, fitted, weights, -np.average(errors, axis=1, weights=weight))
        self.loo_score_ = float(r2_score(targets, np.tensordot(weights, left_out, 1), sample_weight=weight))
        return self

    def predict(self, X: Any) -> Array:
        """Values at the sequences in `X`, (n,) or (n, targets)."""
        values = self._add_up(X, lambda scores: scores)
        return np.asarray(values.reshape(len(values), *self.y_mean_.shape) * self.y_scale_ + self.y_mean_)

    def _slopes(self, scores: list[Array]) -> list[Array]:
        scale = np.diag(np.atleast_1d(self.y_scale_))
        return [member.weight * scale for member in self.members_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def see(
    view: View,
    kernel: Any,
    history: int,
    batch: SequenceBatch,
    some: SequenceBatch,
    n_landmarks: int,
    seed: int,
    revision: int,
    *,
    n_jobs: int | None,
) -> Seen:
    """The features of `batch` in a view; `some` of it are what the view and landmarks come from.

    `revision` is that of the engines' arithmetic: what a cache holds of another is not this.
    """
    kernel = with_settings(kernel, n_jobs=n_jobs)
    view = view.fit(some)
    landmarks = Component(view, kernel, history).landmarks(len(batch), n_landmarks, seed)
    if landmarks is None:
        return Seen(view, None, gram(kernel, view(batch)))
    landmarks.fit(view(some))
    parts = blocks(np.arange(len(batch)), batch)
    return Seen(view, landmarks, np.concatenate([landmarks.transform(view(batch.take(part))) for part in parts]))


def price(member: Member, batch: SequenceBatch) -> float:
    """About what predictions for `batch` cost, up to a factor that all members share: pairs of steps, by channels."""
    steps = batch.max_length / member.view.block
    return (steps if member.landmarks else steps**2) * (1 + member.view.channels(batch.n_channels) / CHANNELS)


def scores_of(member: Member, prepared: PreparedSequences | None, shown: SequenceBatch) -> Array:
    """(n, k): predictions for sequences as the member sees them."""
    if prepared is None:
        assert member.landmarks is not None
        return np.asarray(member.landmarks.transform(shown) @ member.coefficients)
    return prepared.in_blocks(shown, lambda _, K: K @ member.coefficients)


def blocks(which: NDArray[np.int64], batch: SequenceBatch) -> Iterator[NDArray[np.int64]]:
    """Consecutive parts of what is `which` of a batch, so that few sequences are seen in a view at once."""
    rows = max(1, BLOCK_NUMBERS // (WINDOW * batch.n_channels * -(-len(batch.values) // len(batch))))
    for start in range(0, len(which), rows):
        yield which[start : start + rows]


def is_decided(sums: Array, rest: float) -> NDArray[np.bool_]:
    """Where members of weight `rest` can't change which of the (n, classes) probabilities is the largest."""
    if sums.shape[1] == 1:
        return np.ones(len(sums), dtype=bool)
    second, first = np.partition(sums, -2, axis=1)[:, -2:].T
    return np.asarray(first - second > rest + 1e-9)


def settings_of(kernel: Any) -> dict[str, Any]:
    """What is said of a kernel in results: what differs from part to part."""
    known = kernel.get_params()
    return {name: known[name] for name in ("kind", "readout", "sigma_w", "sigma_b") if name in known}


def sample(n: int, groups: Array | None, most: int, random: np.random.RandomState) -> NDArray[np.int64]:
    """Which sequences landmarks come from, in order: all, or about `most` with every group in proportion."""
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
