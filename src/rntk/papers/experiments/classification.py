"""RNTK paper, Tables 1 and 2: nine classifiers on sets of the UCR archive, and what the paper says of seven of them.

`classify` fills one cell of Table 2. `ClassificationTable` holds as many as there are, beside what the paper prints,
and makes Table 1 of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from ...learners import RNTKSVC, RNTKClassifierCV
from ...learners.search.folds import MAX_ITERATIONS, class_folds, svm_scores
from ...learners.search.grids import PAPER_C, Candidate, paper_grid
from ...learners.search.store import GramStore, with_threads
from ...runtime import count_threads, progress_bar
from ..ranks import RankTest, Summary, critical_difference, rank_test, summary
from .printed import OF_ANOTHER_SET, PAPER_METHODS, TWO_DIGITS, in_percent, rntk_table_2
from .record import Check

Array = NDArray[np.float64]
Predict = Callable[[Any], Any]

#: The columns of the paper's Table 2, then ours.
METHODS = (*PAPER_METHODS, "RNTK fast", "MiniRocket")
KERNELS = {"RNTK": "rntk", "NTK": "ntk", "RBF": "rbf", "POLY": "polynomial"}
NETWORKS = {
    "Gaussian RNN": "GaussianRNNClassifier",
    "Identity RNN": "IdentityRNNClassifier",
    "GRU": "GRUClassifier",
}
#: Of the large grids of kernels, effort "quick" takes every k-th value of each parameter. √2 is among those of σ_w.
EVERY = {"rntk": {"sigma_w": 4, "sigma_b": 3, "sigma_h": 2}, "ntk": {"depth": 3, "sigma_w": 2, "sigma_b": 4}}
#: Two means count as the same, in points of accuracy.
NEAR = 2.0
#: What Table 1 compares, in words; of ranks the smaller is the better.
METRICS = {"mean": "mean accuracy", "p90": "P90", "p95": "P95", "pma": "PMA", "rank": "Friedman rank"}


class NetworkSearch(NamedTuple):
    """How networks are chosen: values `kept` of the paper's grid, folds of cross-validation, epochs at most."""

    kept: dict[str, list[Any]]
    folds: int = 5
    epochs: int = 200


EFFORTS = {
    "paper": NetworkSearch({}),
    "reduced": NetworkSearch({"depth": [1], "width": [50], "learning_rate": [1e-2, 1e-3, 1e-4]}),
    "quick": NetworkSearch({"depth": [1], "width": [50], "learning_rate": [1e-2, 1e-3]}, folds=3, epochs=50),
}


class Fitted(NamedTuple):
    """What predicts, the settings that were chosen, and in words what was left out of the paper's search."""

    predict: Predict
    best: dict[str, Any]
    reduced: str | None = None


# -- one cell of Table 2 -----------------------------------------------------------------------------------------------


def classify(
    method: str, data: Any, *, effort: str = "paper", n_jobs: int | None = None, progress: bool | None = False
) -> dict[str, Any]:
    """One cell of Table 2: `method` chosen and fitted on the training part of `data`, scored once on its test part.

    Parameters
    ----------
    method : one of `METHODS`. Kernels are searched as in appendix A.1, SVM and 10 folds; networks by 5 folds, with the
        defaults of `rntk.papers.networks`. "RNTK fast" is `RNTKClassifierCV()`, "MiniRocket" is aeon's.
    data : has `name`, `train`, `train_labels`, `test` and `test_labels`; sequences are `SequenceBatch`.
    effort : "paper" searches the paper's grids. "reduced" does so for kernels, but trains 16 networks for a cell where
        the paper trains 161. "quick" keeps little of everything that is slow: seconds for small sets, to try things
        out; its networks are hardly trained.
    n_jobs : threads of kernels and of MiniRocket; None is all cores. progress : as everywhere.

    Returns
    -------
    dict of plain values: accuracy (percent), right and test (counts), train, length, classes, fit_seconds (search
    included), predict_seconds, core_seconds (of all cores together), best (the settings chosen), and reduced, which is
    None or says what was left out. The same call gives the same accuracy.

    Raises
    ------
    DivergenceError
        If the network that was chosen overflows when trained on everything.
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    begin, work = time.perf_counter(), time.process_time()
    found = _fit(method, data, effort, n_jobs, progress)
    fitted = time.perf_counter()
    right = int(np.sum(np.asarray(found.predict(data.test)) == np.asarray(data.test_labels)))
    done = time.perf_counter()
    return {
        "accuracy": 100 * right / len(data.test),
        "right": right,
        "test": len(data.test),
        "train": len(data.train),
        "length": int(data.train.max_length),
        "classes": len(np.unique(data.train_labels)),
        "fit_seconds": fitted - begin,
        "predict_seconds": done - fitted,
        "core_seconds": time.process_time() - work,
        "best": {name: value.item() if isinstance(value, np.generic) else value for name, value in found.best.items()},
        "reduced": found.reduced,
    }


def _fit(method: str, data: Any, effort: str, n_jobs: int | None, progress: bool | None) -> Fitted:
    labels = np.asarray(data.train_labels)
    if method in NETWORKS:
        return _fit_network(NETWORKS[method], data.train, labels, EFFORTS[effort], progress)
    if method == "MiniRocket":
        return _fit_minirocket(data.train, labels, n_jobs)
    family = KERNELS.get(method)
    if family in EVERY and effort == "quick":
        return _fit_some_kernels(paper_grid(family), EVERY[family], data.train, labels, n_jobs, progress)
    protocol: dict[str, Any] = {} if family is None else {"search": "paper", "family": family}
    model = RNTKClassifierCV(**protocol, n_jobs=n_jobs, progress=progress).fit(data.train, labels)
    return Fitted(model.predict, model.best_params_)


def _fit_some_kernels(
    whole: list[Candidate], every: dict[str, int], train: Any, labels: Any, n_jobs: int | None, progress: bool | None
) -> Fitted:
    """`RNTKClassifierCV(search="paper")` with every k-th value of each parameter."""
    values = {name: list(dict.fromkeys(each.settings[name] for each in whole)) for name in whole[0].settings}
    kept = {name: each[:: every.get(name, 1)] for name, each in values.items()}
    candidates = [each for each in whole if all(value in kept[name] for name, value in each.settings.items())]
    folds = class_folds(labels, 10, check_random_state(0))
    scores = svm_scores(candidates, GramStore(train, None, n_jobs), labels, folds, PAPER_C, progress)
    k, c = divmod(int(np.argmax(scores)), len(PAPER_C))
    best = candidates[k]
    model = RNTKSVC(with_threads(best.kernel, n_jobs), C=PAPER_C[c], max_iter=MAX_ITERATIONS)
    model.fit(best.view(train), labels)
    chosen = {**best.settings, "C": PAPER_C[c]}
    return Fitted(lambda X: model.predict(best.view(X)), chosen, _left_out(values, kept, "kernels") or None)


def _fit_network(kind: str, train: Any, labels: Any, search: NetworkSearch, progress: bool | None) -> Fitted:
    from ...finite import DivergenceError
    from .. import networks as baselines

    whole = baselines.paper_grid()
    grid = {**whole, **search.kept}
    settings = list(ParameterGrid(grid))
    folds = class_folds(labels, search.folds, check_random_state(0))

    def fitted(chosen: dict[str, Any], rows: Any) -> Any:
        model = getattr(baselines, kind)(**chosen, max_epochs=search.epochs, random_state=0, progress=False)
        return model.fit(train.take(rows), labels[rows])

    def score(chosen: dict[str, Any], rows: Any, others: Any) -> float:
        try:
            return float(np.mean(fitted(chosen, rows).predict(train.take(others)) == labels[others]))
        except DivergenceError:
            return 0.0  # a network that runs away names no class

    scores = np.zeros((len(settings), len(folds)))
    with progress_bar(kind, scores.size, progress) as advance:
        for s, chosen in enumerate(settings):
            for f, (rows, others) in enumerate(folds):
                scores[s, f] = score(chosen, rows, others)
                advance(1)
    # Rounded, so that equal hits in another order of folds stay a tie, which goes to the setting listed first.
    best = settings[int(np.argmax(np.round(scores.mean(axis=1), 12)))]
    model = fitted(best, np.arange(len(labels)))
    return Fitted(model.predict, best, _cut_short(whole, grid, search))


def _fit_minirocket(train: Any, labels: Any, n_jobs: int | None) -> Fitted:
    try:
        from aeon.classification.convolution_based import MiniRocketClassifier
    except ImportError as missing:
        raise ImportError(
            f"MiniRocket is aeon's, which can't be imported ({missing}): pip install \"rntk[aeon]\"", name="aeon"
        ) from missing

    def turned(batch: Any) -> Array:
        return np.stack(list(batch)).transpose(0, 2, 1)  # aeon's layout: cases, channels, steps

    model = MiniRocketClassifier(random_state=0, n_jobs=count_threads(n_jobs)).fit(turned(train), labels)
    return Fitted(lambda X: model.predict(turned(X)), {})


def _left_out(whole: Mapping[str, Sequence[Any]], kept: Mapping[str, Sequence[Any]], what: str) -> str:
    """How much smaller one grid is than another, in words; nothing where it isn't."""
    total, some = (prod(map(len, grid.values())) for grid in (whole, kept))
    if some == total:
        return ""
    parts = ", ".join(f"{name} {len(kept[name])} of {len(whole[name])}" for name in whole)
    return f"{some} of the paper's {total} {what} ({parts}), fewer by a factor of {total / some:.3g}"


def _cut_short(
    whole: Mapping[str, Sequence[Any]], grid: Mapping[str, Sequence[Any]], search: NetworkSearch
) -> str | None:
    full = EFFORTS["paper"]
    said = [_left_out(whole, grid, "settings")]
    said += [
        f"{mine} of {theirs} {what}"
        for mine, theirs, what in ((search.folds, full.folds, "folds"), (search.epochs, full.epochs, "epochs"))
        if mine < theirs
    ]
    if not any(said):
        return None
    few, many = (
        len(ParameterGrid(each)) * plan.folds + 1 for each, plan in ((dict(grid), search), (dict(whole), full))
    )
    return "; ".join([*filter(None, said), f"{few} trainings instead of {many}"])


# -- the table ---------------------------------------------------------------------------------------------------------


class Printed(NamedTuple):
    """The paper's rows of Table 2 for some sets, and its Table 1 for these sets alone."""

    rows: dict[str, dict[str, float]]
    metrics: Summary


@dataclass(frozen=True)
class ClassificationTable:
    """Tables 1 and 2 of the RNTK paper from cells of `classify`, of which some may be missing.

    Where `methods` can be given, they are the columns to compare, and only data sets that have all of them count. The
    default is every column of the table, or in `printed` every one that the paper has.

    Attributes
    ----------
    cells : by data set and method, what `classify` returned; "accuracy" at least.

    Examples
    --------
    >>> from rntk.papers.experiments.classification import ClassificationTable
    >>> table = ClassificationTable({"GunPoint": {"RNTK": {"accuracy": 96.0}, "NTK": {"accuracy": 95.0}}})
    >>> table.metrics().rank
    array([1., 2.])
    >>> table.differences()["RNTK"]
    {'GunPoint': -2.0}
    """

    cells: Mapping[str, Mapping[str, Mapping[str, Any]]]

    def __post_init__(self) -> None:
        wrong = [
            f"{name}, {method}"
            for name, row in self.cells.items()
            for method, cell in row.items()
            if not isfinite(cell.get("accuracy", np.nan)) or not 0 <= cell["accuracy"] <= 100
        ]
        if wrong:
            raise ValueError(f"every cell needs an accuracy between 0 and 100; without one: {'; '.join(wrong)}")

    @property
    def methods(self) -> tuple[str, ...]:
        """The columns: those of `METHODS` that some data set has, then others."""
        there = dict.fromkeys(method for row in self.cells.values() for method in row)
        return (*(method for method in METHODS if method in there), *(each for each in there if each not in METHODS))

    @property
    def paper_methods(self) -> tuple[str, ...]:
        """Those of the columns that the paper has."""
        return tuple(method for method in self.methods if method in PAPER_METHODS)

    def table(self, methods: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
        """Accuracies by data set and method; the paper's sets in its order, then others."""
        columns = self.methods if methods is None else tuple(methods)
        complete = [name for name, row in self.cells.items() if all(method in row for method in columns)]
        order = {name: k for k, name in enumerate(rntk_table_2())}
        complete.sort(key=lambda name: (order.get(name, len(order)), name))
        return {name: {method: self.cells[name][method]["accuracy"] for method in columns} for name in complete}

    def metrics(self, methods: Sequence[str] | None = None) -> Summary:
        """The metrics of Table 1, `rntk.papers.ranks.summary`."""
        return summary(self._accuracies(methods))

    def ranks(self, methods: Sequence[str] | None = None, level: float = 0.05) -> RankTest:
        """Friedman's and Nemenyi's tests, `rntk.papers.ranks.rank_test`."""
        return rank_test(self._accuracies(methods), level)

    def printed(self, methods: Sequence[str] | None = None) -> Printed:
        """What the paper prints for the sets and methods of `table`, and its Table 1 over them."""
        columns = self.paper_methods if methods is None else tuple(methods)
        unknown = [method for method in columns if method not in PAPER_METHODS]
        if unknown:
            raise ValueError(f"the paper has no {', '.join(unknown)}; its methods are {', '.join(PAPER_METHODS)}")
        theirs = rntk_table_2()
        rows = {
            name: {method: theirs[name][method] for method in columns} for name in self.table(columns) if name in theirs
        }
        return Printed(rows, summary(_as_array(rows, columns, self._missing(columns))))

    def differences(self) -> dict[str, dict[str, float]]:
        """By method and data set: our accuracy minus the printed one, wherever there are both."""
        theirs = rntk_table_2()
        return {
            method: {
                name: row[method]["accuracy"] - theirs[name][method]
                for name, row in self.cells.items()
                if name in theirs and method in row
            }
            for method in self.paper_methods
        }

    @property
    def checks(self) -> list[Check]:
        """What the paper says of its tables, our columns beside the printed ones, and the fast search beside both."""
        theirs = rntk_table_2()
        known = ClassificationTable({name: row for name, row in self.cells.items() if name in theirs})
        return [*_claims(known), *_columns(known), *_fast(self)]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON; "metrics" and "ranks" are None where no data set, or too few, have every method."""
        table = self.table()
        enough = len(table) > 1 and len(self.methods) > 2
        return {
            "cells": {name: {method: dict(cell) for method, cell in row.items()} for name, row in self.cells.items()},
            "methods": list(self.methods),
            "complete": list(table),
            "metrics": _plain(in_percent(self.metrics())) if table else None,
            "ranks": _plain(self.ranks()._asdict()) if enough else None,
            "differences": self.differences(),
            "checks": [{"claim": each.claim, "holds": each.holds, "evidence": each.evidence} for each in self.checks],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ClassificationTable:
        """The table whose `to_dict` is `record`; everything but its cells is computed anew."""
        return cls(record["cells"])

    def plot(self, ax: Any = None, methods: Sequence[str] | None = None, level: float = 0.05) -> Any:
        """Critical-difference diagram; returns the axes."""
        columns = self.methods if methods is None else tuple(methods)
        return critical_difference(self._accuracies(columns), columns, ax, level)

    def _accuracies(self, methods: Sequence[str] | None) -> Array:
        columns = self.methods if methods is None else tuple(methods)
        return _as_array(self.table(columns), columns, self._missing(columns))

    def _missing(self, methods: Sequence[str]) -> str:
        counts = ", ".join(f"{method} {sum(method in row for row in self.cells.values())}" for method in methods)
        return f"no data set has all of these methods; of {len(self.cells)} sets have {counts or 'nothing'}"


def _as_array(rows: Mapping[str, Mapping[str, float]], methods: Sequence[str], missing: str) -> Array:
    if not rows or not methods:
        raise ValueError(missing)
    return np.array([[row[method] for method in methods] for row in rows.values()])


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists and numbers; None for what isn't a number, which JSON doesn't know."""

    def plain(value: Any) -> Any:
        if np.ndim(value):
            return [plain(each) for each in value]
        return float(value) if isfinite(value) else None

    return {name: plain(value) for name, value in values.items()}


# -- what is claimed of it ---------------------------------------------------------------------------------------------


def _claims(table: ClassificationTable) -> list[Check]:
    """Table 1: the RNTK "outperforms classical kernels, the NTK, and trained RNNs across all metrics"."""
    methods = table.paper_methods
    kernels = tuple(method for method in methods if method in KERNELS)
    same = table.table(kernels).keys() == table.table(methods).keys()
    # Networks are slow: where kernels have run on more sets, they are compared among themselves as well.
    return _claims_among(table, methods) + ([] if same else _claims_among(table, kernels))


def _claims_among(table: ClassificationTable, methods: tuple[str, ...]) -> list[Check]:
    sets = len(table.table(methods))
    if "RNTK" not in methods or len(methods) < 2 or not sets:
        return []
    who = "all seven classifiers" if methods == PAPER_METHODS else ", ".join(methods)
    ours, theirs = (
        {name: dict(zip(methods, values, strict=True)) for name, values in in_percent(found).items()}
        for found in (table.metrics(methods), table.printed(methods).metrics)
    )
    found = []
    for name, words in METRICS.items():
        sign = -1 if name == "rank" else 1
        (mine, lead), (said, _) = (_rntk_and_next(each[name], sign) for each in (ours, theirs))
        found.append(
            Check(
                f"the RNTK has the best {words} of {who}",
                sign * lead > 0,
                f"{_sets(sets)}: {mine}; printed for these: {said}",
            )
        )
    if len(methods) > 2 and sets > 1:
        tests = [table.ranks(methods), rank_test(_as_array(table.printed(methods).rows, methods, ""))]
        apart = [_told_apart(test, methods) for test in tests]
        found.append(
            Check(
                f"the RNTK's rank is told apart from every other of {who} (Nemenyi at 5 %; the paper doesn't ask)",
                len(apart[0]) == len(methods) - 1,
                f"{_sets(sets)}, critical difference {tests[0].critical_difference:.2f}: told apart from "
                f"{', '.join(apart[0]) or 'none'}; by the printed accuracies from {', '.join(apart[1]) or 'none'}",
            )
        )
    return found


def _rntk_and_next(values: dict[str, float], sign: int) -> tuple[str, float]:
    """The RNTK and the best of the others in words, and by how much it lies above that one."""
    other = max((method for method in values if method != "RNTK"), key=lambda method: sign * values[method])
    return f"RNTK {values['RNTK']:.2f}, {other} {values[other]:.2f}", values["RNTK"] - values[other]


def _told_apart(test: RankTest, methods: tuple[str, ...]) -> list[str]:
    """The methods whose rank is worse than the RNTK's by the critical difference, if Friedman's test allows to ask."""
    worse = test.rank - test.rank[methods.index("RNTK")]
    significant = test.p_value < 0.05
    return [each for each, by in zip(methods, worse, strict=True) if significant and by >= test.critical_difference]


def _columns(table: ClassificationTable) -> list[Check]:
    """Our mean accuracy of every column beside the printed one, over the sets that have both.

    Entries that the paper took from another set are told, and left out of the verdict.
    """
    theirs = rntk_table_2()
    found = []
    for method, everything in table.differences().items():
        differences = {name: by for name, by in everything.items() if method not in OF_ANOTHER_SET.get(name, ())}
        if not differences:
            continue
        printed = float(np.mean([theirs[name][method] for name in differences]))
        mean = float(np.mean(list(differences.values())))
        furthest = max(differences, key=lambda name: abs(differences[name]))
        reduced = sum(bool(table.cells[name][method].get("reduced")) for name in differences)
        said = (
            f"{_sets(len(differences))}: {printed + mean:.2f}, printed {printed:.2f}, difference {mean:+.2f}; "
            f"furthest {furthest} {differences[furthest]:+.2f}"
        )
        left_out = [f"{name} {by:+.2f}" for name, by in everything.items() if name not in differences]
        if left_out:
            said += f"; without {', '.join(left_out)}, where what is printed belongs to another set"
        if reduced:
            said += f"; searched less than the paper on {reduced}"
        claim = f"our mean accuracy of {method} is within {NEAR:g} points of the printed one"
        found.append(Check(claim, abs(mean) <= NEAR, said))
    return found


def _fast(table: ClassificationTable) -> list[Check]:
    """The fast search beside the paper's numbers and beside MiniRocket."""
    theirs = rntk_table_2()
    fast = {name: row["RNTK fast"]["accuracy"] for name, row in table.cells.items() if "RNTK fast" in row}
    rocket = {name: row["MiniRocket"]["accuracy"] for name, row in table.cells.items() if "MiniRocket" in row}
    rivals = {"the printed RNTK": {name: theirs[name]["RNTK"] for name in fast if name in theirs}, "MiniRocket": rocket}
    found = []
    for who, accuracy in rivals.items():
        pairs = np.array([(fast[name], accuracy[name]) for name in fast if name in accuracy])
        if not len(pairs):
            continue
        mine, other = pairs.mean(axis=0)
        # What is printed has two digits: less than one of them is a tie.
        sign = np.where(np.abs(pairs[:, 0] - pairs[:, 1]) <= TWO_DIGITS, 0, np.sign(pairs[:, 0] - pairs[:, 1]))
        wins, ties, losses = (int(np.sum(sign == each)) for each in (1, 0, -1))
        found.append(
            Check(
                f"the fast search is more accurate on average than {who}",
                bool(mine > other),
                f"{_sets(len(pairs))}: {mine:.2f} and {other:.2f}; {wins} wins, {ties} ties, {losses} losses",
            )
        )
    return found


def _sets(count: int) -> str:
    return f"{count} set{'' if count == 1 else 's'}"
