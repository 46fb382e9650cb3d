"""The demonstration behind `rntk demo`: RNTK against RBF in the same support vector machine, and a picture.

In go data sets that ship with aeon; out come `DemoTrial`s (what was chosen, how accurate, how long) and a PNG file. The
comparison is kept fair on purpose: both kernels get the same classifier, the same folds of the training set, the same
number of settings to choose from, and one look at the test set. So scikit-learn's grid search chooses on both sides,
and not `RNTKClassifier`, which tries far more and has no such rival.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.svm import SVC

from ..kernels import RNTK
from ..plot import COLOURS, gram
from ..plot.curves import STYLES
from ..runtime import replacing
from ..sequences import SequenceBatch

Array = NDArray[Any]
#: A kernel between two batches; between a batch and itself without the second.
GramFunction = Callable[[SequenceBatch, SequenceBatch | None], Array]

#: What cross-validation chooses from: eight kernels on each side, each with seven penalties.
PENALTIES = tuple(10.0**k for k in range(-2, 5))
RNTK_GRID = tuple((readout, sigma_w) for readout in ("last", "mean") for sigma_w in (1.0, 1.2, 2**0.5, 1.5))
SERIES_PER_CLASS = 4  # in the picture
RBF_GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # times the gamma that scikit-learn calls "scale"


@dataclass(frozen=True)
class DemoData:
    """A classification problem as its authors split it; `class_names` in the order of the sorted labels."""

    name: str
    subject: str
    class_names: tuple[str, ...]
    train: SequenceBatch
    train_labels: Array
    test: SequenceBatch
    test_labels: Array


@dataclass(frozen=True)
class DemoTrial:
    """One kernel on one data set: what cross-validation chose, and what came of it on the test set."""

    kernel: str
    chosen: str
    accuracy: float
    seconds: float
    gram: Array
    function: GramFunction
    penalty: float


def load(name: str) -> DemoData:
    """`"GunPoint"` or `"ArrowHead"`, read from the files inside the aeon package: no network."""
    from aeon.datasets import load_arrow_head, load_gunpoint

    subject, class_names, loader = {
        "GunPoint": ("draw a gun, or point a finger", ("gun", "point"), load_gunpoint),
        "ArrowHead": ("outlines of arrowheads", ("Avonlea", "Clovis", "mix"), load_arrow_head),
    }[name]
    parts = [loader(split=split, return_type="numpy3d") for split in ("TRAIN", "TEST")]
    (X, y), (X_test, y_test) = parts
    return DemoData(name, subject, class_names, SequenceBatch.from_aeon(X), y, SequenceBatch.from_aeon(X_test), y_test)


def warm_up() -> float:
    """Compile everything the demonstration uses, or load it from the cache; the seconds that took."""
    begun = time.perf_counter()
    short = SequenceBatch(np.ones((4, 1)), np.array([0, 2, 4]))
    for readout in ("last", "mean"):
        RNTK(readout=readout, normalize=True)(short, short)
        RNTK(readout=readout, normalize=True)(short)
    return time.perf_counter() - begun


def try_rntk(data: DemoData) -> DemoTrial:
    """The RNTK, its readout and sigma_w chosen on the training set."""
    candidates: dict[str, GramFunction] = {
        f"readout {readout}, sigma_w {sigma_w:.3g}": RNTK(sigma_w=sigma_w, readout=readout, normalize=True)
        for readout, sigma_w in RNTK_GRID
    }
    return _choose("RNTK", candidates, data)


def try_rbf(data: DemoData) -> DemoTrial:
    """The Gaussian kernel on the series as vectors, its gamma chosen on the training set."""

    def rows(batch: SequenceBatch) -> Array:
        return batch.values.reshape(len(batch), -1)

    X = rows(data.train)
    scale = 1 / (X.shape[1] * X.var())

    def with_gamma(gamma: float) -> GramFunction:
        return lambda A, B: np.asarray(rbf_kernel(rows(A), rows(A if B is None else B), gamma=gamma))

    return _choose("RBF", {f"gamma {factor:g} x scale": with_gamma(factor * scale) for factor in RBF_GRID}, data)


def classify_cut_series(data: DemoData, trial: DemoTrial, seed: int = 0) -> tuple[float, float]:
    """Accuracy on test series that lost up to half of their steps: learned from whole series, and from cut ones.

    Nothing is chosen anew: kernel and penalty are those of `trial`. Each series loses another number of steps, at its
    start. The two numbers differ: a classifier that has only seen whole series is easily led astray by cut ones.
    """
    rng = np.random.default_rng(seed)

    def cut(batch: SequenceBatch) -> SequenceBatch:
        parts = [series[rng.integers(0, len(series) // 2 + 1) :] for series in batch]
        return SequenceBatch(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))

    def learn_from(train: SequenceBatch) -> float:
        model = SVC(kernel="precomputed", C=trial.penalty).fit(trial.function(train, None), data.train_labels)
        return float(model.score(trial.function(test, train), data.test_labels))

    cut_train, test = cut(data.train), cut(data.test)
    return learn_from(data.train), learn_from(cut_train)


def _choose(kernel: str, candidates: dict[str, GramFunction], data: DemoData) -> DemoTrial:
    """Cross-validate every candidate with every penalty, refit the best, and look at the test set once."""
    begun = time.perf_counter()
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
    searches, grams = {}, {}
    for name, function in candidates.items():
        grams[name] = function(data.train, None)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": PENALTIES}, cv=folds)
        searches[name] = search.fit(grams[name], data.train_labels)
    name = max(searches, key=lambda each: searches[each].best_score_)  # among equals the first, as in the search
    accuracy = float(searches[name].score(candidates[name](data.test, data.train), data.test_labels))
    penalty = searches[name].best_params_["C"]
    seconds = time.perf_counter() - begun
    return DemoTrial(kernel, f"{name}, C {penalty:g}", accuracy, seconds, grams[name], candidates[name], penalty)


# -- the picture: what the kernel sees, beside what a person sees ------------------------------------------------------


def draw(rows: list[tuple[DemoData, DemoTrial]], path: Path) -> None:
    """Save a PNG with one row per data set: Gram matrix of its training series by class, and some of the series."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.1 * len(rows)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the machine
    axes = figure.subplots(len(rows), 2, squeeze=False, width_ratios=(1, 1.35))
    for (data, trial), (left, right) in zip(rows, axes, strict=True):
        _draw_gram(left, data, trial)
        _draw_series(right, data)
    with replacing(path, "wb") as file:
        figure.savefig(file, format="png")


def _draw_gram(axis: Any, data: DemoData, trial: DemoTrial) -> None:
    gram(trial.gram, data.train_labels, axis, class_names=data.class_names, label="similarity (1 = same direction)")
    axis.set_title(f"{data.name}: RNTK between {len(trial.gram)} training series", fontsize=11)


def _draw_series(axis: Any, data: DemoData) -> None:
    for label, name, colour, style in zip(
        np.unique(data.train_labels), data.class_names, COLOURS, STYLES, strict=False
    ):
        members = np.flatnonzero(data.train_labels == label)[:SERIES_PER_CLASS]
        for rank, member in enumerate(members):
            axis.plot(
                data.train[int(member)][:, 0],
                color=colour,
                linestyle=style,
                linewidth=1.3,
                alpha=0.85,
                label=name if rank == 0 else None,
            )
    axis.set_title(f"{SERIES_PER_CLASS} series of each class: {data.subject}", fontsize=11)
    axis.set_xlabel("step")
    axis.set_ylabel("value")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
