"""The demonstration behind `rntk demo`: the default learner against a tuned RBF machine, and a picture.

In go data sets that ship with aeon; out come `DemoTrial`s (how accurate, how long) and a PNG file. `RNTKClassifier`
chooses by itself; for RBF, scikit-learn's grid search chooses gamma and C by cross-validation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from ..kernels import RNTK
from ..learners import RNTKClassifier
from ..plot import COLOURS, gram
from ..plot.curves import STYLES
from ..runtime import replacing
from ..sequences import SequenceBatch

Array = NDArray[Any]
SERIES_PER_CLASS = 4  # in the picture
#: What cross-validation chooses from.
RBF_GRID = {"C": 10.0 ** np.arange(-2, 5), "gamma": 10.0 ** np.arange(-4, 2)}


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
    """One classifier on one data set: what it chose on the training set, and what came of it on the test set."""

    kernel: str
    chosen: str
    accuracy: float
    seconds: float


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
    waves = np.sin(np.arange(12)[:, None] * np.linspace(0.1, 1, 20))
    RNTKClassifier().fit(waves, np.arange(12) % 2).predict(waves)
    return time.perf_counter() - begun


def try_rntk(data: DemoData) -> DemoTrial:
    """`RNTKClassifier` as it comes."""
    begun = time.perf_counter()
    model = RNTKClassifier().fit(data.train, data.train_labels)
    accuracy = float(model.score(data.test, data.test_labels))
    chosen = f"the best {len(model.members_)} of {model.report()['n_candidates']} kernels"
    return DemoTrial("RNTK", chosen, accuracy, time.perf_counter() - begun)


def try_rbf(data: DemoData) -> DemoTrial:
    """A support vector machine with the Gaussian kernel on the series as vectors."""
    begun = time.perf_counter()
    X, X_test = (batch.values.reshape(len(batch), -1) for batch in (data.train, data.test))
    search = GridSearchCV(SVC(), RBF_GRID, cv=5).fit(X, data.train_labels)
    accuracy = float(search.score(X_test, data.test_labels))
    chosen = ", ".join(f"{name} {value:g}" for name, value in search.best_params_.items())
    return DemoTrial("RBF", chosen, accuracy, time.perf_counter() - begun)


def classify_cut_series(data: DemoData, seed: int = 0) -> tuple[float, float]:
    """Accuracy on test series that lost up to half of their steps: learned from whole series, and from cut ones."""
    rng = np.random.default_rng(seed)

    def cut(batch: SequenceBatch) -> SequenceBatch:
        parts = [series[rng.integers(0, len(series) // 2 + 1) :] for series in batch]
        return SequenceBatch(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))

    def learn_from(train: SequenceBatch) -> float:
        return float(RNTKClassifier().fit(train, data.train_labels).score(test, data.test_labels))

    cut_train, test = cut(data.train), cut(data.test)
    return learn_from(data.train), learn_from(cut_train)


# -- the picture: what the kernel sees, beside what a person sees ------------------------------------------------------


def draw(sets: list[DemoData], path: Path) -> None:
    """Save a PNG with one row per data set: Gram matrix of its training series by class, and some of the series."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.1 * len(sets)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the machine
    axes = figure.subplots(len(sets), 2, squeeze=False, width_ratios=(1, 1.35))
    for data, (left, right) in zip(sets, axes, strict=True):
        _draw_gram(left, data)
        _draw_series(right, data)
    with replacing(path, "wb") as file:
        figure.savefig(file, format="png")


def _draw_gram(axis: Any, data: DemoData) -> None:
    K = RNTK(readout="mean", normalize=True)(data.train)
    gram(K, data.train_labels, axis, class_names=data.class_names, label="similarity (1 = same direction)")
    axis.set_title(f"{data.name}: RNTK between {len(K)} training series", fontsize=11)


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
