"""The demonstration behind `rntk demo`: what the library is for, on real data, beside what else one would take.

In go data sets that ship with aeon; out come accuracies of `RNTKClassifier`, MiniRocket and a support vector machine
with RBF (`compare`), the hours that tell winter from summer (`weigh_hours`), a forecast with error bars (`forecast`),
and one picture of them all (`draw`). Nothing is chosen by looking at test series: `RNTKClassifier` and MiniRocket are
taken as they are, RBF gets its two settings by cross-validation, and each looks at the test series once.
"""

from __future__ import annotations

import importlib
import time
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..kernels import RNTK
from ..learners import RNTKClassifier, RNTKGaussianProcessRegressor, explain
from ..plot import COLOURS
from ..runtime import replacing
from ..sequences import SequenceBatch

Array = NDArray[Any]

OURS, MINIROCKET, RBF = "RNTKClassifier", "MiniRocket", "RBF"
FORECASTER = RNTK(sigma_b=0.1)

#: Name in aeon to loader, subject and names of classes, in the order of the sorted labels.
BUNDLED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ItalyPowerDemand": ("load_italy_power_demand", "electricity by the hour, winter or summer", ("winter", "summer")),
    "GunPoint": ("load_gunpoint", "a hand draws a gun, or points a finger", ("gun", "point")),
    "ArrowHead": ("load_arrow_head", "outlines of arrowheads", ("Avonlea", "Clovis", "mix")),
}


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
    """One classifier on one data set: its accuracy on the test series, and seconds of fitting and predicting."""

    method: str
    accuracy: float
    seconds: float


@dataclass(frozen=True)
class HourWeights:
    """Shares of the steps in the size of the decision's derivative, averaged over `days` test series."""

    by_step: Array
    days: int


@dataclass(frozen=True)
class Forecast:
    """The airline's passengers, and what a Gaussian process said of each month of the last years a month before.

    `low` and `high` are two deviations away from the mean. Errors are roots of mean squares relative to the passengers:
    of the process, of linear regression on the same months, and of taking the same month of the year before.
    """

    years: Array
    passengers: Array
    first: int
    mean: Array
    low: Array
    high: Array
    error: float
    error_linear: float
    error_last_year: float

    @property
    def inside(self) -> int:
        """How many of the months lie between `low` and `high`."""
        actual = self.passengers[self.first :]
        return int(np.sum((actual >= self.low) & (actual <= self.high)))


def load(name: str) -> DemoData:
    """`"ItalyPowerDemand"`, `"GunPoint"` or `"ArrowHead"`, from the files inside the aeon package: no network."""
    loader, subject, class_names = BUNDLED[name]
    read = getattr(importlib.import_module("aeon.datasets"), loader)
    (X, y), (X_test, y_test) = (read(split=split, return_type="numpy3d") for split in ("TRAIN", "TEST"))
    return DemoData(name, subject, class_names, SequenceBatch.from_aeon(X), y, SequenceBatch.from_aeon(X_test), y_test)


def cut(data: DemoData, seed: int = 0) -> DemoData:
    """The same series as a recorder leaves them that starts late and stops early: up to a quarter off at either end."""
    rng = np.random.default_rng(seed)

    def shorten(batch: SequenceBatch) -> SequenceBatch:
        parts = []
        for series in batch:
            start, stop = rng.integers(0, len(series) // 4 + 1, size=2)
            parts.append(series[start : len(series) - stop])
        return SequenceBatch(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))

    return replace(data, name=f"{data.name}, unequal lengths", train=shorten(data.train), test=shorten(data.test))


def pad(data: DemoData) -> list[Array]:
    """Training and test series of one channel as rows, zeros at their ends, for those who need one length."""
    steps = max(data.train.max_length, data.test.max_length)
    return [
        np.array([np.pad(series[:, 0], (0, steps - len(series))) for series in batch])
        for batch in (data.train, data.test)
    ]


def warm_up(beside: Executor) -> float:
    """Compile everything the demonstration uses, or load it from the cache; the seconds that took.

    `beside` is one other process: MiniRocket compiles there meanwhile, and `compare` uses it again.
    """
    begun = time.perf_counter()
    rng = np.random.default_rng(0)
    batch, labels = SequenceBatch.from_aeon(rng.normal(size=(8, 1, 24))), np.arange(8) % 2
    data = DemoData("", "", (), batch, labels, batch, labels)
    rival = beside.submit(try_minirocket, data)
    try_rntk(data)
    weigh_hours(data)
    RNTKGaussianProcessRegressor(FORECASTER).fit(batch, rng.normal(size=8))
    rival.result()
    return time.perf_counter() - begun


def compare(data: DemoData, beside: Executor) -> list[DemoTrial]:
    """All three classifiers, one after the other."""
    return [try_rntk(data), beside.submit(try_minirocket, data).result(), try_rbf(data)]


def try_rntk(data: DemoData) -> DemoTrial:
    """`RNTKClassifier` as it is, on the series as they are."""
    return _attempt(OURS, RNTKClassifier(), data, data.train, data.test)


def try_minirocket(data: DemoData) -> DemoTrial:
    """aeon's MiniRocket as it is, zeros at the ends of shorter series."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    return _attempt(MINIROCKET, MiniRocketClassifier(random_state=0), data, *(rows[:, None] for rows in pad(data)))


def try_rbf(data: DemoData) -> DemoTrial:
    """A support vector machine with RBF, its two settings by cross-validation, on series padded likewise."""
    X, X_test = pad(data)
    scale = 1 / (X.shape[1] * X.var())
    settings = {"C": [1.0, 10.0, 100.0, 1000.0], "gamma": [factor * scale for factor in (0.01, 0.1, 1.0, 10.0)]}
    return _attempt(RBF, GridSearchCV(SVC(), settings, cv=4), data, X, X_test)


def _attempt(method: str, model: ClassifierMixin, data: DemoData, X: Any, X_test: Any) -> DemoTrial:
    begun = time.perf_counter()
    accuracy = float(model.fit(X, data.train_labels).score(X_test, data.test_labels))
    return DemoTrial(method, accuracy, time.perf_counter() - begun)


def weigh_hours(data: DemoData, days: int = 40) -> HourWeights:
    """How far each step moves the decision of `RNTKClassifier` between two classes, averaged over test series."""
    model = RNTKClassifier().fit(data.train, data.train_labels)
    looked_at = data.test[:days]
    by_step = np.mean([np.abs(explain(model, day, n_neighbours=0).gradient[:, 0]) for day in looked_at], axis=0)
    return HourWeights(by_step / by_step.sum(), len(looked_at))


def forecast(months: int = 24, years: int = 4) -> Forecast:
    """Airline passengers a month ahead in the last `years`, by a Gaussian process of the years before.

    A sequence is the logarithms of `months` months less the last of them, the target how far the next is above it.
    """
    from aeon.datasets import load_airline

    passengers = np.asarray(load_airline(), dtype=float).ravel()
    logs = np.log(passengers)
    windows = np.lib.stride_tricks.sliding_window_view(logs, months + 1)
    windows = windows - windows[:, [-2]]
    first = len(logs) - 12 * years
    X, y = windows[:, :-1], windows[:, -1]
    (X, X_new), (y, _) = ((part[: first - months], part[first - months :]) for part in (X, y))
    model = RNTKGaussianProcessRegressor(FORECASTER, noise=0.1, normalize_y=True).fit(X, y)
    mean, deviation = model.predict(X_new, return_std=True, include_noise=True)
    linear = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 4, 33))).fit(X, y).predict(X_new)
    before = logs[first - 1 : -1]

    def error(predicted: Array) -> float:
        return float(np.sqrt(np.mean((predicted / passengers[first:] - 1) ** 2)))

    return Forecast(
        years=1949 + np.arange(len(logs)) / 12,
        passengers=passengers,
        first=first,
        mean=np.exp(before + mean),
        low=np.exp(before + mean - 2 * deviation),
        high=np.exp(before + mean + 2 * deviation),
        error=error(np.exp(before + mean)),
        error_linear=error(np.exp(before + linear)),
        error_last_year=error(passengers[first - 12 : -12]),
    )


# -- the picture -------------------------------------------------------------------------------------------------------


def draw(
    data: DemoData,
    weights: HourWeights,
    trials: dict[str, list[DemoTrial]],
    airline: Forecast,
    path: Path,
    dpi: int = 150,
) -> None:
    """Save a PNG: series coloured by what decided, accuracies by data set, and a forecast with its error bars."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(11, 7.2), dpi=dpi, layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15))
    FigureCanvasAgg(figure)  # no window, whatever the machine
    grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1))
    _draw_hours(figure.add_subplot(grid[0, 0]), data, weights)
    _draw_accuracies(figure.add_subplot(grid[0, 1]), trials)
    _draw_forecast(figure.add_subplot(grid[1, :]), airline)
    for axis in figure.axes[:1] + figure.axes[-2:]:
        axis.spines[["top", "right"]].set_visible(False)
    with replacing(path, "wb") as file:
        figure.savefig(file, format="png")


def _draw_hours(axis: Any, data: DemoData, weights: HourWeights) -> None:
    """Days of both classes thin, their means thick, coloured by how much each hour decided."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("decided", ["#DDDDDD", "#F0B48A", "#D55E00", "#6E1E00"])
    hours = np.arange(len(weights.by_step))
    fine = np.linspace(0, hours[-1], 24 * len(hours))
    for label, name, colour in zip(np.unique(data.train_labels), data.class_names, COLOURS[::2], strict=False):
        days = np.array([series[:, 0] for series in data.train[data.train_labels == label]])
        axis.plot(hours, days.T, color=colour, linewidth=0.6, alpha=0.22, zorder=1)
        mean = np.interp(fine, hours, days.mean(axis=0))
        points = np.stack([fine, mean], axis=1)
        pieces = np.stack([points[:-1], points[1:]], axis=1)
        axis.plot(fine, mean, color=colour, linewidth=8.5, zorder=2, solid_capstyle="round")
        line = LineCollection(list(pieces), cmap=scale, linewidth=5, zorder=3, capstyle="round")
        line.set_array(np.interp(fine[:-1], hours, 100 * weights.by_step))
        line.set_clim(0, 100 * weights.by_step.max())
        axis.add_collection(line)
        axis.plot([], [], color=colour, linewidth=4, label=name)
    axis.set(xlabel="hour of the day", ylabel="electricity demand (scaled)", xticks=range(0, len(hours), 3))
    axis.set_title("Which hours tell winter from summer?", loc="left", fontweight="bold")
    axis.legend(frameon=False, loc="upper left")
    axis.figure.colorbar(line, ax=axis, label="weight in the decision (%)", pad=0.02).outline.set_visible(False)


def _draw_accuracies(axis: Any, trials: dict[str, list[DemoTrial]]) -> None:
    looks = {OURS: (COLOURS[1], "o"), MINIROCKET: (COLOURS[0], "s"), RBF: ("#888888", "D")}
    for row, tried in enumerate(trials.values()):
        found = [100 * trial.accuracy for trial in tried]
        axis.plot([min(found), max(found)], [row, row], color="#DDDDDD", linewidth=3, zorder=1, solid_capstyle="round")
        for trial, value in reversed(list(zip(tried, found, strict=True))):
            colour, marker = looks[trial.method]
            label = trial.method if row == 0 else None
            axis.plot(value, row, marker, color=colour, markersize=9, label=label, zorder=2, markeredgecolor="white")
    axis.set_yticks(range(len(trials)), [name.replace(", ", "\n") for name in trials])
    axis.set(xlabel="test series classified correctly (%)", xlim=(None, 101.5), ylim=(len(trials) - 0.5, -0.5))
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#EEEEEE")
    axis.set_axisbelow(True)
    axis.set_title("Accuracy on new series", loc="left", fontweight="bold")
    axis.legend(frameon=False, loc=(0.02, 0.6), reverse=True)


def _draw_forecast(axis: Any, airline: Forecast) -> None:
    new = airline.years[airline.first :]
    axis.plot(airline.years, airline.passengers, "o", color="black", markersize=3, label="passengers")
    axis.fill_between(
        new, airline.low, airline.high, color=COLOURS[4], alpha=0.45, linewidth=0, label="mean ± two deviations"
    )
    axis.plot(new, airline.mean, color=COLOURS[0], linewidth=1.6, label="Gaussian process, a month ahead")
    axis.axvline(new[0] - 1 / 24, color="#999999", linewidth=1, linestyle=":")
    axis.annotate(
        "learned from these", (new[0] - 0.15, 0.94), xycoords=("data", "axes fraction"), ha="right", color="#666666"
    )
    axis.annotate("predicted", (new[0] + 0.1, 0.94), xycoords=("data", "axes fraction"), color="#666666")
    axis.set(xlabel="year", ylabel="airline passengers (thousands)", xlim=(airline.years[0] - 0.1, 1961.05))
    inside = f"{airline.inside} of {len(airline.mean)} months within two deviations"
    axis.set_title(f"A forecast with error bars: {inside}", loc="left", fontweight="bold")
    axis.legend(frameon=False, loc="upper left")
