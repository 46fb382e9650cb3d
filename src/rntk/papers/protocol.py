"""Appendix A of the RNTK paper: its grids of kernels, chosen by cross-validation on sequences of unit norm.

`PaperClassifier` is A.1, a support vector machine and 10 folds; `PaperRegressor` is A.2, kernel ridge regression and 5
folds. Both search the paper's kernel or one of the three that it compares with. For work of your own take
`rntk.RNTKClassifier`, which is faster and more accurate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..kernels import NTK, RNTK
from ..kernels.pairwise import read_sequences, with_settings
from ..learners.base import gram
from ..learners.ridge import RNTKRidge, solve_ridge
from ..learners.svm import RNTKSVC
from ..preprocessing import unit_norm
from ..runtime import count_threads, progress_bar, run_in_threads
from ..sequences import SequenceBatch
from ..sequences.targets import read_labels, read_values

Array = NDArray[Any]
Split = tuple[Array, Array]

C_VALUES = (0.01, 0.1, 1.0, 10.0, 100.0)
RIDGES = (0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1, 2, 3, 4, 5, 6, 7, 8, 10, 100)
#: Values of each kernel's parameters; a grid is their product.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "rntk": {
        "sigma_w": (1.34, 1.35, 1.36, 1.37, 1.38, 1.39, 1.40, 1.41, 2**0.5, 1.42, 1.43, 1.44, 1.45, 1.46, 1.47),
        "sigma_b": (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1, 2),
        "sigma_h": (0, 0.01, 0.1, 0.5, 1),
    },
    "ntk": {
        "depth": tuple(range(1, 11)),
        "sigma_w": (0.5, 1, 2**0.5, 2, 2.5, 3),
        "sigma_b": (0, 0.01, 0.1, 0.2, 0.5, 0.8, 1, 2, 5),
    },
    "rbf": {"alpha": (0.01, 0.05, 0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 1, 2, 3, 4, 5, 10, 20, 30, 40, 100)},
    "polynomial": {"degree": tuple(range(1, 6)), "offset": (0, 0.1, 0.2, 0.5, 1, 2)},
}
FAMILIES = tuple(GRIDS)
#: Steps after which libsvm gives up. Usual fits take thousands; on Gram matrices whose entries span twenty orders of
#: magnitude (σ_w well above √2, hundreds of steps) it would go on for ever, and scikit-learn sets no limit.
MAX_ITERATIONS = 300_000


class Polynomial(Kernel):  # type: ignore[misc]
    """(offset + <x, y>)^degree: scikit-learn has it as a function only."""

    def __init__(self, degree: int = 2, offset: float = 1.0) -> None:
        self.degree = degree
        self.offset = offset

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix; there is nothing to take a gradient by."""
        left = np.asarray(X, dtype=np.float64)
        K = (self.offset + left @ (left if Y is None else np.asarray(Y, dtype=np.float64)).T) ** self.degree
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Any:
        """Diagonal of the Gram matrix."""
        return (self.offset + np.square(np.asarray(X, dtype=np.float64)).sum(axis=1)) ** self.degree

    def is_stationary(self) -> bool:
        """False: it sees where a vector lies."""
        return False


class GridPoint(NamedTuple):
    """One kernel of a grid, and its settings in the paper's terms."""

    settings: dict[str, float]
    kernel: Any


def thinned(family: str, every: Mapping[str, int] | None = None) -> dict[str, tuple[float, ...]]:
    """The values of a grid, of each parameter every k-th as `every` says; all where it says nothing."""
    if family not in GRIDS:
        raise ValueError(f"family must be one of {', '.join(GRIDS)}, not {family!r}")
    return {name: values[:: (every or {}).get(name, 1)] for name, values in GRIDS[family].items()}


def paper_grid(family: str, every: Mapping[str, int] | None = None) -> list[GridPoint]:
    """The kernels of appendix A: 900 RNTKs, 540 NTKs, 18 RBFs, 30 polynomials, unless thinned."""
    values = thinned(family, every)
    kinds: dict[str, Callable[..., Any]] = {
        "rntk": RNTK,
        "ntk": NTK,
        "rbf": lambda alpha: RBF(length_scale=(2 * alpha) ** -0.5),
        "polynomial": Polynomial,
    }
    points = (dict(zip(values, point, strict=True)) for point in product(*values.values()))
    return [GridPoint(settings, kinds[family](**settings)) for settings in points]


def class_folds(y: Array, count: int, random_state: Any) -> list[Split]:
    """Stratified folds; fewer where the data has fewer sequences than folds."""
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise ValueError("every class has a single sequence; cross-validation needs at least two of some class")
    with warnings.catch_warnings():
        # Small classes are in the nature of small data; the paper's protocol goes on.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        splitter = StratifiedKFold(min(count, len(y), largest), shuffle=True, random_state=random_state)
        folds = list(splitter.split(np.zeros(len(y)), y))
    # A fold whose training part has lost all classes but one can't be learned from.
    return [(train, test) for train, test in folds if len(np.unique(y[train])) > 1]


def plain_folds(n: int, count: int, random_state: Any) -> list[Split]:
    """Folds of a regression."""
    return list(KFold(min(count, n), shuffle=True, random_state=random_state).split(np.zeros(n)))


def svm_scores(K: Array, y: Array, folds: list[Split]) -> Array:
    """(C,): mean accuracy over the folds, for every one of `C_VALUES`."""
    hits = np.zeros((len(folds), len(C_VALUES)))
    for f, (train, test) in enumerate(folds):
        inner, outer = np.ascontiguousarray(K[np.ix_(train, train)]), np.ascontiguousarray(K[np.ix_(test, train)])
        for c, cost in enumerate(C_VALUES):
            model = SVC(kernel="precomputed", C=cost, max_iter=MAX_ITERATIONS).fit(inner, y[train])
            hits[f, c:] = np.mean(model.predict(outer) == y[test])
            if np.abs(model.dual_coef_).max() < cost:
                break  # no weight at its bound: a larger C has the same solution
    # Rounded, so that equal hits in another order of folds stay a tie.
    return np.asarray(np.round(hits.mean(axis=0), 12))


def ridge_scores(K: Array, y: Array, folds: list[Split]) -> Array:
    """(ridges,): minus the mean squared error over the folds, for every one of `RIDGES`."""
    loss = np.zeros((len(folds), len(RIDGES)))
    for f, (train, test) in enumerate(folds):
        inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
        for r, ridge in enumerate(RIDGES):
            loss[f, r] = np.mean(np.square(y[test] - outer @ solve_ridge(inner, y[train], ridge)))
    return np.asarray(-loss.mean(axis=0))


class _PaperSearch(BaseEstimator):  # type: ignore[misc]
    """What both learners share: the search over a grid of kernels, each Gram matrix computed once."""

    def __init__(
        self,
        family: str = "rntk",
        every: Mapping[str, int] | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        progress: bool | None = None,
    ) -> None:
        self.family = family
        self.every = every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _search(
        self, batch: SequenceBatch, y: Array, folds: list[Split], score: Any, name: str, values: tuple[float, ...]
    ) -> tuple[Any, float]:
        """The best kernel and value of `name`, of equals the one listed first; keeps what was tried."""
        candidates = paper_grid(self.family, self.every)
        scores = np.empty((len(candidates), len(values)))

        def work(k: int) -> float:
            # Tens of thousands of small fits: what has been checked once is not checked again.
            with config_context(assume_finite=True, skip_parameter_validation=True):
                scores[k] = score(gram(with_settings(candidates[k].kernel, n_jobs=1, progress=False), batch), y, folds)
            return 1.0

        with progress_bar("Search", len(candidates), self.progress) as advance, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # such a kernel is judged by what was found
            run_in_threads(work, list(range(len(candidates))), count_threads(self.n_jobs), advance)
        flat = scores.ravel()
        best = int(np.argmax(flat))
        rank = 1 + np.argsort(np.argsort(-flat, kind="stable"))
        params = [{**each.settings, name: value} for each in candidates for value in values]
        self.cv_results_ = {"params": params, "mean_test_score": flat, "rank_test_score": rank}
        self.best_index_, self.best_params_, self.best_score_ = best, params[best], float(flat[best])
        kernel = candidates[best // len(values)].kernel
        return with_settings(kernel, n_jobs=self.n_jobs, progress=False), values[best % len(values)]

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`, or values."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(unit_norm(read_sequences(X))))


class PaperClassifier(ClassifierMixin, _PaperSearch):  # type: ignore[misc]
    """Classification as in appendix A.1 of the RNTK paper.

    Sequences of unit norm, 900 kernels × 5 values of C, 10-fold cross-validation of a support vector machine.

    Parameters
    ----------
    family : str
        "rntk", or "ntk", "rbf", "polynomial" for comparison; these need sequences of one length.
    every : mapping of str to int
        To try things out: of each parameter's values every k-th only.
    n_jobs : int
        Threads; None is all cores.
    random_state : int or RandomState
        For the folds.
    progress : bool
        None shows a bar on a terminal after two seconds; True always; False never.

    Attributes
    ----------
    best_estimator_ : RNTKSVC
        The support vector machine with the kernel and the C that were chosen.
    best_params_, best_score_, best_index_, cv_results_
        What was tried and how it did, as in scikit-learn's searches. Ties go to what is listed first.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.papers import PaperClassifier
    >>> X = np.sin(np.outer([0.3, 0.6] * 8, np.arange(20)) + np.arange(16)[:, None])
    >>> model = PaperClassifier("rbf").fit(X, ["slow", "fast"] * 8)
    >>> model.predict([np.sin(np.arange(20) * 0.6)])
    array(['fast'], dtype='<U4')
    """

    def fit(self, X: Any, y: Any) -> PaperClassifier:
        """Choose and fit on sequences `X` and labels `y`."""
        batch = unit_norm(read_sequences(X))
        y = read_labels(y, len(batch))
        folds = class_folds(y, 10, check_random_state(self.random_state))
        kernel, C = self._search(batch, y, folds, svm_scores, "C", C_VALUES)
        self.best_estimator_ = RNTKSVC(kernel, C=C, max_iter=MAX_ITERATIONS).fit(batch, y)
        self.classes_ = self.best_estimator_.classes_
        return self

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, else (n, classes): how far on the side of each class."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(unit_norm(read_sequences(X))))


class PaperRegressor(RegressorMixin, _PaperSearch):  # type: ignore[misc]
    """Regression as in appendix A.2 of the RNTK paper: its kernels and ridges, 5-fold cross-validation.

    Parameters and attributes are those of `PaperClassifier`; scores are minus squared errors.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.papers import PaperRegressor
    >>> X = np.random.default_rng(0).standard_normal((40, 12))
    >>> PaperRegressor("rbf").fit(X, X[:, -1]).best_params_
    {'alpha': 0.1, 'ridge': 0.01}
    """

    def fit(self, X: Any, y: Any) -> PaperRegressor:
        """Choose and fit on sequences `X` and targets `y`, (n,)."""
        batch = unit_norm(read_sequences(X))
        y = read_values(y, len(batch))
        folds = plain_folds(len(batch), 5, check_random_state(self.random_state))
        kernel, ridge = self._search(batch, y, folds, ridge_scores, "ridge", RIDGES)
        self.best_estimator_ = RNTKRidge(kernel, alpha=ridge).fit(batch, y)
        return self
