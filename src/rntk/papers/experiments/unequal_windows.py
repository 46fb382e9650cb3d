"""RNTK paper, Figure 4: the value after a window of random length, by kernels that pad it and by one that needn't.

`window_point` computes one point of a panel, `unequal_windows` a panel, `panel_of` a panel from points computed apart.
`window_search` has what makes a thousand repetitions affordable.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.ridge import solve_ridge
from ...learners.search.folds import plain_folds
from ...learners.search.grids import FAMILIES, PAPER_RIDGES
from ...learners.search.store import with_threads
from ...plot import COLOURS, axes_or_new
from ...preprocessing import unit_norm
from ...runtime import count_threads, progress_bar, run_in_threads
from ...sequences import SequenceBatch
from ..data import load_prices
from ..data.segments import last_values, sinusoid, windows, zero_padded
from .record import Check
from .window_search import (
    LEAST_RIDGE,
    candidates,
    compiled_feedforward,
    compiled_fold,
    compiled_recurrent,
    cross_validate,
)

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Four kernels in the order of `FAMILIES`, and the last value of a window as the prediction of the next.
METHODS = ("RNTK", "NTK", "RBF", "polynomial", "PTS")
#: Source of each panel, what it varies and where. The values are ours: the paper's text doesn't give its axes.
PANELS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "a": ("sinusoid", "t_var", (0, 2, 5, 10, 20, 40)),
    "b": ("sinusoid", "noise", (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)),
    "c": ("stock", "t_var", (0, 2, 5, 10, 20, 40)),
    "d": ("stock", "n_train", (10, 15, 20, 30, 40, 60)),
}
#: What section 4 says of each panel, in our words.
CLAIMS: dict[str, dict[str, str]] = {
    "a": {
        "ahead": "sinusoid: the RNTK is ahead of all other kernels where lengths vary",
        "grows": "sinusoid: the more lengths vary, the more the RNTK is ahead",
        "rntk": "sinusoid: the RNTK is above PTS for all T_var",
        "polynomial": "sinusoid: the polynomial kernel is above PTS for all T_var",
        "fall": "sinusoid: NTK and RBF are below PTS for larger T_var",
    },
    "b": {
        "low": "sinusoid: the RNTK is ahead of all other kernels where noise is low",
        "high": "sinusoid: the RNTK is no longer ahead where noise is high",
        "cost": "sinusoid: noise costs the RNTK more than the other kernels",
    },
    "c": {
        "ahead": "stock: the RNTK is ahead of all other kernels where lengths vary",
        "grows": "stock: the more lengths vary, the more the RNTK is ahead",
        "pts": "stock: PTS is above all kernels for all T_var",
        "nearest": "stock: of the kernels the RNTK comes nearest to PTS for all T_var",
    },
    "d": {
        "nearest": "stock: of the kernels the RNTK comes nearest to PTS for all N_train",
        "pts": "stock: PTS is above all kernels for all N_train",
        "keeps": "stock: the RNTK keeps its performance where N_train is small, unlike the other kernels",
        "gains": "stock: the RNTK gains with N_train",
    },
}
LABELS = {"t_var": "T_var", "noise": "σ_n", "n_train": "N_train"}
#: Days of the stock in use, and how many of them training windows come from.
DAYS, TRAINING_DAYS = 975, 700


@dataclass(frozen=True)
class WindowSettings:
    """One point of Figure 4, and what the paper leaves open about it.

    Attributes
    ----------
    source : "sinusoid", 1000 samples of one period, or "stock", 975 daily prices.
    t_fixed, t_var : lengths are uniform between t_fixed and t_fixed + t_var.
    noise : deviation of the sinusoid's noise. n_train, n_test : windows to learn from, and to predict.
    fixed_series : one noisy sinusoid for all repetitions ("from this fixed data"), or a new one for each.
    targets : what follows a window of the sinusoid. "clean" is the sine, so that noise is in the inputs only, which is
        where the figure's caption has it; "observed" has its noise; "clean test" learns from "observed" targets and is
        judged by clean ones.
    normalize : "none" takes windows as they are. "unit" divides each by its norm, as the paper does for
        classification, and keeps the targets, which no longer follow from windows then. "relative" divides targets by
        the norm of their window too, and multiplies predictions back.
    padding : where kernels on vectors get their zeros, at the "end" of a window or its "start".
    prices : "standardised" by mean and deviation of the training days, "scaled" by their largest price, or "raw".
    first_day : of the days in use, counted from the first of the file.
    random_state : of everything. A repetition depends on it and on its own number only.
    """

    source: str = "sinusoid"
    t_var: int = 10
    noise: float = 0.05
    n_train: int = 20
    n_test: int = 5000
    t_fixed: int = 10
    fixed_series: bool = True
    targets: str = "clean"
    normalize: str = "none"
    padding: str = "end"
    prices: str = "standardised"
    first_day: int = 0
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, known in (
            ("source", ("sinusoid", "stock")),
            ("targets", ("clean", "observed", "clean test")),
            ("normalize", ("none", "unit", "relative")),
            ("padding", ("end", "start")),
            ("prices", ("standardised", "scaled", "raw")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {getattr(self, name)!r}")
        for name, least in (("n_train", 2), ("n_test", 1), ("t_fixed", 1), ("t_var", 0), ("noise", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)!r}")


@dataclass(frozen=True)
class WindowPoint:
    """One point of Figure 4, or some of its repetitions.

    Attributes
    ----------
    first_repetition : number of the first one here.
    snr : (repetitions, 5) in dB, 10 log₁₀(Σ y² / Σ (y - ŷ)²) over the test windows, for each of `METHODS`.
    chosen : by kernel, hyperparameter and its value: how many repetitions chose it.
    seconds : by method, of processor time.
    """

    settings: WindowSettings
    first_repetition: int
    snr: Array
    chosen: dict[str, dict[str, dict[str, int]]]
    seconds: dict[str, float] = field(compare=False)

    @property
    def mean(self) -> Array:
        """(5,), over repetitions."""
        return np.asarray(self.snr.mean(axis=0))

    @property
    def error(self) -> Array | None:
        """(5,), standard error of the mean; None for a single repetition."""
        count = len(self.snr)
        return np.asarray(self.snr.std(axis=0, ddof=1) / count**0.5) if count > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "settings": asdict(self.settings),
            "first_repetition": self.first_repetition,
            "methods": list(METHODS),
            "snr": self.snr.tolist(),
            "chosen": self.chosen,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> WindowPoint:
        """The point that `to_dict` wrote."""
        settings, snr = WindowSettings(**record["settings"]), np.array(record["snr"]).reshape(-1, len(METHODS))
        return cls(settings, record["first_repetition"], snr, record["chosen"], record["seconds"])


@dataclass(frozen=True)
class UnequalWindows:
    """One panel of Figure 4, "a" to "d": its points, by what it varies, ascending."""

    panel: str
    points: tuple[WindowPoint, ...]

    @property
    def varied(self) -> str:
        """Name of the setting that differs from point to point."""
        return PANELS[self.panel][1]

    @property
    def values(self) -> Array:
        """(P,), what it is at each point."""
        return np.array([float(getattr(point.settings, self.varied)) for point in self.points])

    @property
    def mean(self) -> Array:
        """(P, 5) mean SNR of `METHODS`, in dB."""
        return np.array([point.mean for point in self.points])

    @property
    def checks(self) -> list[Check]:
        """What section 4 says of this panel, sentence by sentence."""
        return _checks(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "panel": self.panel,
            "varied": self.varied,
            "values": self.values.tolist(),
            "methods": list(METHODS),
            "mean": self.mean.tolist(),
            "error": [None if point.error is None else point.error.tolist() for point in self.points],
            "checks": [asdict(check) for check in self.checks],
            "points": [point.to_dict() for point in self.points],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> UnequalWindows:
        """The panel that `to_dict` wrote."""
        return cls(record["panel"], tuple(map(WindowPoint.from_dict, record["points"])))

    def plot(self, ax: Any = None) -> Any:
        """Mean SNR of each method with its standard error; returns the axes."""
        ax = axes_or_new(ax)
        errors = [point.error for point in self.points]
        for k, (name, style) in enumerate(zip(METHODS, ("o-", "s--", "^-.", "v:", "x--"), strict=True)):
            bars = None if any(error is None for error in errors) else np.array(errors)[:, k]
            colour = COLOURS[k] if k < len(FAMILIES) else "black"
            ax.errorbar(self.values, self.mean[:, k], bars, fmt=style, color=colour, capsize=3, label=name)
        ax.set(xlabel=LABELS[self.varied], ylabel="SNR of predictions (dB)", title=PANELS[self.panel][0])
        if self.varied == "noise" and (self.values > 0).all():
            ax.set_xscale("log")
        ax.legend(frameon=False)
        return ax


def unequal_windows(
    panel: str = "a",
    values: Sequence[float] | None = None,
    repetitions: int = 1000,
    *,
    stock: str | Path | Array | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> UnequalWindows:
    """Figure 4, one panel: what comes after a window, by kernel ridge regression with cross-validated kernels.

    Parameters
    ----------
    panel : "a" and "b" are the sinusoid over T_var and over its noise, "c" and "d" the stock over T_var and over the
        number of training windows.
    values : of what varies; those of `PANELS` unless given.
    stock : daily prices, or the path of a file that `load_prices` reads (closing prices), for "c" and "d".
    settings : of `WindowSettings`.

    Notes
    -----
    What this finds: where lengths vary by more than a few steps the RNTK is ahead of the other kernels, the more so the
    more they vary; noise of inputs costs it most, and with enough of it the others are ahead; on the stock PTS is above
    all kernels, and the RNTK nearest to it. Other than in the paper, the RNTK stays above PTS on the sinusoid up to
    T_var = 10 only and the polynomial kernel up to 5, and with few training windows the RNTK loses more than the others
    do, though it stays ahead. The order hangs on where zeros go: with padding="start" all windows end at the same
    place, as they do for the RNTK, and the polynomial kernel is ahead of it throughout.

    Examples
    --------
    >>> from rntk.papers.experiments.unequal_windows import unequal_windows
    >>> found = unequal_windows("a", (20, 40), repetitions=3, n_test=200)
    >>> bool((found.mean[:, 0] > found.mean[:, 1:4].max(axis=1)).all())
    True
    """
    source, varied, usual = _panel(panel)
    points = []
    for value in usual if values is None else values:
        one = {**settings, "source": source, varied: float(value) if varied == "noise" else int(value)}
        points.append(window_point(repetitions=repetitions, stock=stock, n_jobs=n_jobs, progress=progress, **one))
    return panel_of(panel, points)


def panel_of(panel: str, points: Iterable[WindowPoint]) -> UnequalWindows:
    """A panel of points, in any order; those that differ in their repetitions only become one."""
    source, varied, _ = _panel(panel)
    blocks: dict[WindowSettings, list[WindowPoint]] = {}
    for point in points:
        blocks.setdefault(point.settings, []).append(point)
    others = {tuple((k, v) for k, v in asdict(each).items() if k != varied) for each in blocks}
    if len(others) != 1 or any(each.source != source for each in blocks):
        raise ValueError(f'points of panel "{panel}" are of source {source!r} and differ in {varied} only')
    joined = [_join(block) for block in blocks.values()]
    return UnequalWindows(panel, tuple(sorted(joined, key=lambda point: float(getattr(point.settings, varied)))))


def _panel(panel: str) -> tuple[str, str, tuple[float, ...]]:
    if panel not in PANELS:
        raise ValueError(f"panel must be one of {', '.join(map(repr, PANELS))}, not {panel!r}")
    return PANELS[panel]


def _join(blocks: list[WindowPoint]) -> WindowPoint:
    """Repetitions of one point, computed apart."""
    blocks = sorted(blocks, key=lambda block: block.first_repetition)
    for one, other in pairwise(blocks):
        if one.first_repetition + len(one.snr) > other.first_repetition:
            raise ValueError(f"repetition {other.first_repetition} is there twice")
    chosen: dict[str, dict[str, Counter[str]]] = {}
    for block in blocks:
        for method, by_name in block.chosen.items():
            for name, counts in by_name.items():
                chosen.setdefault(method, {}).setdefault(name, Counter()).update(counts)
    return WindowPoint(
        blocks[0].settings,
        blocks[0].first_repetition,
        np.concatenate([block.snr for block in blocks]),
        {
            method: {name: dict(sorted(counts.items(), key=lambda each: float(each[0]))) for name, counts in of.items()}
            for method, of in chosen.items()
        },
        {method: sum(block.seconds[method] for block in blocks) for method in METHODS},
    )


def window_point(
    source: str = "sinusoid",
    *,
    repetitions: int = 1000,
    first_repetition: int = 0,
    stock: str | Path | Array | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> WindowPoint:
    """One point of Figure 4: `repetitions` times new windows, five methods, and the SNR of what they predict.

    Each repetition draws training windows, chooses kernel and ridge of each family by 5-fold cross-validation over the
    grids of appendix A (`rntk.learners.search.grids`), fits all training windows, and predicts what follows each
    test window. The RNTK gets windows as they are, other kernels get them padded with zeros to t_fixed + t_var.

    Parameters
    ----------
    repetitions, first_repetition : which ones. Blocks of them computed apart are joined by `panel_of`.
    stock : daily prices, or the path of a file that `load_prices` reads (closing prices); for source "stock".
    settings : of `WindowSettings`, which says what the paper leaves open.

    Notes
    -----
    No ridge is below 1e-11 trace(K): what rounding leaves of a singular Gram matrix is not to be inverted. A window
    drawn twice makes one, and a column of zeros does.
    """
    setup = WindowSettings(source=source, **settings)
    if repetitions < 1 or first_repetition < 0:
        raise ValueError(
            f"repetitions must be positive and first_repetition not negative, not {repetitions}, {first_repetition}"
        )
    daily = _daily(stock, setup) if setup.source == "stock" else None
    for prepare in (compiled_recurrent, compiled_feedforward, compiled_fold):
        prepare()  # before threads would each compile their own
    results: list[_Result] = [None] * repetitions  # type: ignore[list-item]

    def work(r: int) -> float:
        results[r] = _repetition(setup, first_repetition + r, daily)
        return 1.0

    with progress_bar(f"{setup.source} windows", repetitions, progress) as advance:
        run_in_threads(work, list(range(repetitions)), count_threads(n_jobs), advance)
    kernels = METHODS[: len(FAMILIES)]
    chosen = {method: _counted([result.chosen[k] for result in results]) for k, method in enumerate(kernels)}
    seconds = {method: float(sum(result.seconds[k] for result in results)) for k, method in enumerate(METHODS)}
    return WindowPoint(setup, first_repetition, np.array([result.snr for result in results]), chosen, seconds)


def _daily(stock: Any, setup: WindowSettings) -> Array:
    """The days in use, with their prices as the settings want them."""
    if stock is None:
        raise ValueError('source "stock" needs prices: pass stock=, an array or the path of a file')
    series = load_prices(stock).close if isinstance(stock, (str, Path)) else np.asarray(stock, dtype=np.float64)
    found = series[setup.first_day : setup.first_day + DAYS]
    if setup.first_day < 0 or found.shape != (DAYS,):
        raise ValueError(f"{DAYS} days from day {setup.first_day} on are needed, out of {series.shape} prices")
    seen = found[:TRAINING_DAYS]
    if setup.prices == "standardised":
        return np.asarray((found - seen.mean()) / seen.std())
    return np.asarray(found / seen.max()) if setup.prices == "scaled" else found


@dataclass(frozen=True)
class _Result:
    """One repetition: SNR of each method, what each family chose, seconds."""

    snr: Array
    chosen: list[dict[str, float]]
    seconds: Array


def _counted(chosen: list[dict[str, float]]) -> dict[str, dict[str, int]]:
    return {
        name: {f"{value:.4g}": count for value, count in sorted(Counter(each[name] for each in chosen).items())}
        for name in chosen[0]
    }


@dataclass(frozen=True)
class _Windows:
    """Windows as kernels on sequences and on vectors see them; what follows, its unit, and the last value before."""

    batch: SequenceBatch
    padded: Array
    targets: Array
    unit: Array
    last: Array


def _draw(setup: WindowSettings, repetition: int, daily: Array | None) -> tuple[_Windows, _Windows, int]:
    """Training and test windows of a repetition, and the seed of its folds."""
    rng = np.random.default_rng([setup.random_state, 1, repetition])
    if daily is None:
        seed = [setup.random_state, 0] if setup.fixed_series else [setup.random_state, 0, 1 + repetition]
        series, clean = sinusoid(noise=setup.noise, random_state=np.random.default_rng(seed)), sinusoid(noise=0.0)
        known = series if setup.targets != "clean" else clean
        wanted = series if setup.targets == "observed" else clean
        parts = ((setup.n_train, 0, None, known), (setup.n_test, 0, None, wanted))
    else:
        series = daily
        parts = ((setup.n_train, 0, TRAINING_DAYS, None), (setup.n_test, TRAINING_DAYS, DAYS, None))  # type: ignore[assignment]
    longest = setup.t_fixed + setup.t_var
    drawn = []
    for count, first, last, following in parts:
        batch, targets = windows(series, count, setup.t_fixed, longest, rng, first, last, following=following)
        seen = batch if setup.normalize == "none" else unit_norm(batch)
        unit = np.ones(count)
        if setup.normalize == "relative":
            norm = np.sqrt(np.add.reduceat(np.square(batch.values[:, 0]), batch.offsets[:-1]))
            unit = np.where(norm > 0, norm, 1.0)
        drawn.append(_Windows(seen, zero_padded(seen, longest, setup.padding), targets, unit, last_values(batch)))
    return drawn[0], drawn[1], int(rng.integers(2**31))


def _repetition(setup: WindowSettings, repetition: int, daily: Array | None) -> _Result:
    train, test, seed = _draw(setup, repetition, daily)
    folds = plain_folds(setup.n_train, 5, seed)
    y = train.targets / train.unit
    power = np.square(test.targets).sum()
    snr, seconds, chosen = np.empty(len(METHODS)), np.empty(len(METHODS)), []
    for k, method in enumerate(METHODS):
        begun = time.thread_time()
        if method == "PTS":
            predicted = test.last
        else:
            family = FAMILIES[k]
            losses = cross_validate(family, train.batch, train.padded, y, folds)
            assert np.isfinite(losses).all()
            best, at = np.unravel_index(int(np.argmin(losses)), losses.shape)  # the first of equals
            candidate, ridge = candidates(family)[best], PAPER_RIDGES[at]
            chosen.append({**candidate.settings, "ridge": ridge})
            kernel = with_threads(candidate.kernel, 1)
            known, new = (train.batch, test.batch) if family == "rntk" else (train.padded, test.padded)
            K = kernel(known)
            dual = solve_ridge(K, y, max(ridge, LEAST_RIDGE * float(np.trace(K))))
            predicted = kernel(new, known) @ dual * test.unit
        with np.errstate(divide="ignore"):
            snr[k] = 10 * np.log10(power / np.square(test.targets - predicted).sum())
        seconds[k] = time.thread_time() - begun
    return _Result(snr, chosen, seconds)


# -- what the paper says -----------------------------------------------------------------------------------------------


def _checks(panel: UnequalWindows) -> list[Check]:
    """The sentences about this panel; those about its course need two points."""
    kernels, pts, values = panel.mean[:, : len(FAMILIES)], panel.mean[:, -1], panel.values
    lead, above = kernels[:, 0] - kernels[:, 1:].max(axis=1), kernels - pts[:, None]
    fall = kernels[0] - kernels[-1]
    symbol = LABELS[panel.varied]

    def course(words: str, numbers: Array) -> str:
        pairs = zip(values, numbers, strict=True)
        return f"{words}: " + ", ".join(f"{symbol} = {value:g}: {number:+.2f}" for value, number in pairs)

    def each(words: str, numbers: Array) -> str:
        return f"{words}: " + ", ".join(f"{name} {number:+.2f}" for name, number in zip(METHODS, numbers, strict=False))

    ahead = course("dB ahead of the best other kernel", lead)
    ends = f"from {symbol} = {values[0]:g} to {values[-1]:g}"
    found: dict[str, tuple[bool, str]] = {
        "ahead": (bool((lead[values > 0] > 0).all()), ahead),
        "nearest": (bool((lead > 0).all()), ahead),
        "low": (bool(lead[0] > 0), ahead),
        "high": (bool(lead[-1] <= 0), ahead),
        "pts": (bool((above < 0).all()), course("best kernel, dB above PTS", above.max(axis=1))),
        "rntk": (bool((above[:, 0] > 0).all()), course("RNTK, dB above PTS", above[:, 0])),
        "polynomial": (bool((above[:, 3] > 0).all()), course("polynomial, dB above PTS", above[:, 3])),
        "fall": (
            bool((above[-1, 1:3] < 0).all()),
            course("NTK, dB above PTS", above[:, 1]) + "; " + course("RBF", above[:, 2]),
        ),
    }
    if len(panel.points) > 1:
        found |= {
            "grows": (bool((np.diff(lead) > 0).all()), ahead),
            "gains": (bool((np.diff(kernels[:, 0]) > 0).all()), course("SNR of the RNTK in dB", kernels[:, 0])),
            "cost": (bool(fall[0] > fall[1:].max()), each(f"dB lost {ends}", fall)),
            "keeps": (bool(-fall[0] < (-fall[1:]).min()), each(f"dB gained {ends}", -fall)),
        }
    return [Check(claim, *found[key]) for key, claim in CLAIMS[panel.panel].items() if key in found]
