"""The paper's protocol: cross-validation over a grid of kernels, each Gram matrix computed once and cut into folds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC

from ...runtime import count_threads, progress_bar, run_in_threads
from ..ridge import solve_ridge
from .candidates import Candidate
from .store import GramStore

Array = NDArray[Any]
Split = tuple[Array, Array]

#: Steps after which libsvm gives up. Usual fits take thousands; on Gram matrices whose entries span twenty orders of
#: magnitude (σ_w well above √2, hundreds of steps) it would go on for ever, and scikit-learn sets no limit.
MAX_ITERATIONS = 300_000


def class_folds(y: Array, count: int, random_state: Any) -> list[Split]:
    """Stratified folds; fewer where the data has fewer sequences than folds."""
    count = min(count, len(y))
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise ValueError("every class has a single sequence; cross-validation needs at least two of some class")
    with warnings.catch_warnings():
        # Small classes are in the nature of small data; the paper's protocol goes on.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        splitter = StratifiedKFold(min(count, largest), shuffle=True, random_state=random_state)
        folds = list(splitter.split(np.zeros(len(y)), y))
    # A fold whose training part has lost all classes but one can't be learned from.
    return [(train, test) for train, test in folds if len(np.unique(y[train])) > 1]


def plain_folds(n: int, count: int, random_state: Any) -> list[Split]:
    """Folds of a regression."""
    return list(KFold(min(count, n), shuffle=True, random_state=random_state).split(np.zeros(n)))


def svm_scores(
    candidates: list[Candidate],
    store: GramStore,
    y: Array,
    folds: list[Split],
    costs: tuple[float, ...],
    progress: bool | None,
) -> Array:
    """(candidates, C): mean accuracy over the folds; `costs` ascend."""

    def score(K: Array) -> Array:
        hits = np.zeros((len(folds), len(costs)))
        for f, (train, test) in enumerate(folds):
            inner, outer = np.ascontiguousarray(K[np.ix_(train, train)]), np.ascontiguousarray(K[np.ix_(test, train)])
            for c, cost in enumerate(costs):
                model = SVC(kernel="precomputed", C=cost, max_iter=MAX_ITERATIONS).fit(inner, y[train])
                hits[f, c:] = np.mean(model.predict(outer) == y[test])
                if np.abs(model.dual_coef_).max() < cost:
                    break  # no weight at its bound: a larger C has the same solution
        # Rounded, so that equal hits in another order of folds stay a tie.
        return np.asarray(np.round(hits.mean(axis=0), 12))

    return _over_kernels(candidates, store, score, len(costs), progress)


def ridge_scores(
    candidates: list[Candidate],
    store: GramStore,
    y: Array,
    folds: list[Split],
    ridges: tuple[float, ...],
    progress: bool | None,
) -> Array:
    """(candidates, ridges): minus the mean squared error over the folds."""

    def score(K: Array) -> Array:
        loss = np.zeros((len(folds), len(ridges)))
        for f, (train, test) in enumerate(folds):
            inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
            for r, ridge in enumerate(ridges):
                error = y[test] - outer @ solve_ridge(inner, y[train], ridge)
                loss[f, r] = np.mean(np.square(error))
        return np.asarray(-loss.mean(axis=0))

    return _over_kernels(candidates, store, score, len(ridges), progress)


def _over_kernels(
    candidates: list[Candidate], store: GramStore, score: Any, columns: int, progress: bool | None
) -> Array:
    """`score` of every Gram matrix, kernels shared among threads."""
    scores = np.empty((len(candidates), columns))
    threads = count_threads(store.n_jobs)
    inner = GramStore(store.batch, store.folder, 1)
    inner.view(candidates[0])  # the one view of a paper's grid, made before threads share it

    def work(k: int) -> float:
        # Tens of thousands of small fits: what has been checked once is not checked again.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            scores[k] = score(inner.gram(candidates[k]))
        return 1.0

    with progress_bar("Search", len(candidates), progress) as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # such a kernel is judged by what was found
        run_in_threads(work, list(range(len(candidates))), threads, advance)
    return scores
