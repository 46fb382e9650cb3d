"""RNTK paper, Figure 4: the value after a window of random length, by kernels that pad it and by one that needn't.

`rntk_figure_4_search` has what makes a thousand repetitions affordable.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.pairwise import with_settings
from ...learners.ridge import solve_ridge
from ...plot import COLOURS, axes_or_new
from ...preprocessing import unit_norm
from ...runtime import count_threads, run_in_threads
from ...sequences import SequenceBatch
from ..data import find_prices, load_prices
from ..data.segments import last_values, sinusoid, windows, zero_padded
from ..protocol import FAMILIES, RIDGES, plain_folds
from ..study import FIRST, Claim, Criterion, Finding, Mode, Mutant, NotRunError, Plain, Proof, Results, Study, Unit
from .drawing import finished
from .rntk_figure_4_search import (
    LEAST_RIDGE,
    candidates,
    compiled_feedforward,
    compiled_recurrent,
    cross_validate,
)

Array = NDArray[np.float64]

#: Four kernels in the order of `FAMILIES`, and the last value of a window as the prediction of the next.
METHODS = ("RNTK", "NTK", "RBF", "polynomial", "PTS")
#: Source of each panel, what it varies and where. The values are ours: the paper's text doesn't give its axes.
PANELS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "a": ("sinusoid", "t_var", (0, 2, 5, 10, 20, 40)),
    "b": ("sinusoid", "noise", (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)),
    "c": ("stock", "t_var", (0, 2, 5, 10, 20, 40)),
    "d": ("stock", "n_train", (10, 15, 20, 30, 40, 60)),
}
CRITERION = "mean SNR over repetitions, at every point; for which points it holds is told"
HISTORY = (
    Criterion(
        "mean SNR over repetitions, at every point",
        FIRST,
        "one point against it hid those for it",
    ),
)


def _claim(key: str, sentence: str, reason: str = "") -> Claim:
    return Claim(key, sentence, CRITERION, reason=reason, since="2026-11-18", history=HISTORY)


#: What section 4 says of each panel, in our words.
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "a": (
        _claim(
            "ahead",
            "sinusoid: the RNTK is ahead of all other kernels where lengths vary",
            "where lengths hardly vary the kernels are level",
        ),
        _claim("grows", "sinusoid: the more lengths vary, the more the RNTK is ahead"),
        _claim(
            "rntk",
            "sinusoid: the RNTK is above PTS for all T_var",
            "PTS doesn't depend on T_var, and the RNTK loses with it; the paper doesn't say whether targets are noisy, "
            "how windows are scaled or where zeros go, and none of the choices tried gives this",
        ),
        _claim(
            "polynomial",
            "sinusoid: the polynomial kernel is above PTS for all T_var",
            "it is above PTS everywhere if zeros are put before a window instead of after it; then it is above the "
            "RNTK too, at every point of all four panels",
        ),
        _claim("fall", "sinusoid: NTK and RBF are below PTS for larger T_var"),
    ),
    "b": (
        _claim("low", "sinusoid: the RNTK is ahead of all other kernels where noise is low"),
        _claim("high", "sinusoid: the RNTK is no longer ahead where noise is high"),
        _claim("cost", "sinusoid: noise costs the RNTK more than the other kernels"),
    ),
    "c": (
        _claim("ahead", "stock: the RNTK is ahead of all other kernels where lengths vary"),
        _claim("grows", "stock: the more lengths vary, the more the RNTK is ahead"),
        _claim("pts", "stock: PTS is above all kernels for all T_var"),
        _claim(
            "nearest",
            "stock: of the kernels the RNTK comes nearest to PTS for all T_var",
            "with windows of one length the polynomial kernel is nearer",
        ),
    ),
    "d": (
        _claim("nearest", "stock: of the kernels the RNTK comes nearest to PTS for all N_train"),
        _claim("pts", "stock: PTS is above all kernels for all N_train"),
        _claim(
            "keeps",
            "stock: the RNTK keeps its performance where N_train is small, unlike the other kernels",
            "the RNTK is ahead at every N_train, and gains the most from more windows",
        ),
        _claim("gains", "stock: the RNTK gains with N_train"),
    ),
}
LABELS = {"t_var": "T_var", "noise": "σ_n", "n_train": "N_train"}
WORDS = {"t_var": "length variation", "noise": "noise", "n_train": "number of training windows"}
#: Days of the stock in use, and how many of them training windows come from.
DAYS, TRAINING_DAYS = 975, 700
#: What settings may be.
CHOICES = {
    "source": ("sinusoid", "stock"),
    "targets": ("clean", "observed", "clean test"),
    "normalize": ("none", "unit"),
    "padding": ("end", "start"),
}
#: Repetitions in one unit, and how many units, by mode.
BLOCKS = {Mode.QUICK: (20, 1), Mode.FULL: (250, 4)}


@dataclass(frozen=True)
class WindowSettings:
    """One point of Figure 4, and what the paper leaves open about it.

    Attributes
    ----------
    source : str
        "sinusoid", 1000 samples of one period, or "stock", 975 daily prices.
    t_var, t_fixed : int
        Lengths are uniform between t_fixed and t_fixed + t_var.
    noise : float
        Deviation of the sinusoid's noise.
    n_train, n_test : int
        Windows to learn from, and to predict.
    targets : str
        What follows a window of the sinusoid. "clean" is the sine, so that noise is in the inputs only, which is where
        the figure's caption has it; "observed" has its noise; "clean test" learns from "observed" targets and is judged
        by clean ones.
    normalize : str
        "none" takes windows as they are. "unit" divides each by its norm, as the paper does for classification, and
        keeps the targets, which no longer follow from windows then.
    padding : str
        Where kernels on vectors get their zeros, at the "end" of a window or its "start".
    random_state : int
        Of everything. A repetition depends on it and on its own number only.
    """

    source: str = "sinusoid"
    t_var: int = 10
    noise: float = 0.05
    n_train: int = 20
    n_test: int = 5000
    t_fixed: int = 10
    targets: str = "clean"
    normalize: str = "none"
    padding: str = "end"
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {getattr(self, name)!r}")


def _exchanged(name: str, block: Plain) -> None:
    block["snr"] = np.array(block["snr"])[:, [1, 0, 2, 3, 4]].tolist()


def _shifted(method: str, decibels: float) -> Callable[[str, Plain], None]:
    def change(name: str, block: Plain) -> None:
        block["snr"] = (np.array(block["snr"]) + decibels * (np.array(METHODS) == method)).tolist()

    return change


def _turned(name: str, block: Plain) -> None:
    block["settings"]["n_train"] = 1000 - block["settings"]["n_train"]


SWAPPED, HIGH, LOW = "RNTK and NTK exchanged", "PTS 30 dB too good", "PTS 30 dB too bad"
MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "a": (
        Mutant(SWAPPED, ("ahead", "grows"), result=_exchanged),
        Mutant(HIGH, ("rntk", "polynomial"), result=_shifted("PTS", 30)),
        Mutant(LOW, ("fall",), result=_shifted("PTS", -30)),
    ),
    "b": (
        Mutant(SWAPPED, ("low", "cost"), result=_exchanged),
        Mutant("RNTK 10 dB too good", ("high",), result=_shifted("RNTK", 10)),
    ),
    "c": (
        Mutant(SWAPPED, ("ahead", "grows"), result=_exchanged),
        Mutant("RNTK 30 dB too bad", ("nearest",), result=_shifted("RNTK", -30)),
        Mutant(LOW, ("pts",), result=_shifted("PTS", -30)),
    ),
    "d": (
        Mutant(SWAPPED, ("nearest",), result=_exchanged),
        Mutant(LOW, ("pts",), result=_shifted("PTS", -30)),
        Mutant("points in the reverse order", ("gains",), result=_turned),
    ),
}


class RntkFigure4(Study):
    """One panel of Figure 4: what comes after a window, by kernel ridge regression with cross-validated kernels.

    A unit is a block of repetitions of one point. Each repetition draws training windows, chooses kernel and ridge of
    each family by 5-fold cross-validation over the grids of appendix A (`rntk.papers.protocol`), fits all training
    windows, and predicts what follows each test window. The RNTK gets windows as they are, other kernels get them
    padded with zeros to t_fixed + t_var.

    What this finds: where lengths vary by more than a few steps the RNTK is ahead of the other kernels, the more so the
    more they vary; noise of inputs costs it most, and with enough of it the others are ahead; on the stock PTS is above
    all kernels, and the RNTK nearest to it. Other than in the paper, the RNTK stays above PTS on the sinusoid up to
    T_var = 10 only and the polynomial kernel up to 5, and with few training windows the RNTK loses more than the others
    do, though it stays ahead. The order hangs on where zeros go: with padding="start" all windows end at the same
    place, as they do for the RNTK, and the polynomial kernel is ahead of it throughout.

    Parameters
    ----------
    panel : str
        "a" and "b" are the sinusoid over T_var and over its noise, "c" and "d" the stock over T_var and over the number
        of training windows.
    """

    minutes = (0.3, 8)

    def __init__(self, panel: str) -> None:
        self.kind, self.varied, self.values = PANELS[panel]
        self.panel = panel
        self.name = f"rntk-figure-4{panel}"
        self.title = f"Windows of random length: {self.kind}, over the {WORDS[self.varied]}"
        self.source = f"The Recurrent Neural Tangent Kernel, Figure 4 ({panel}) and section 4"
        self.needs = "daily prices of GOOGL, a CSV file named GOOG*.csv" if self.kind == "stock" else ""
        self.claims, self.mutants = CLAIMS[panel], MUTANTS[panel]

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        """Block after block, so that a run that is stopped has every point."""
        repetitions, blocks = BLOCKS[mode]
        settings: Plain = {"source": self.kind, "random_state": 0, "repetitions": repetitions}
        if self.kind == "stock":
            prices = find_prices(data)
            if prices is None:
                raise NotRunError(
                    f"there is no GOOG*.csv in {data or 'any folder given by --data'}; daily prices of 2014 to 2018 "
                    "with the columns Date, Open, High, Low, Close, Adj Close, Volume are what it should hold"
                )
            settings["prices_file"] = hashlib.sha256(prices.read_bytes()).hexdigest()
        return [
            Unit(
                f"{self.varied.replace('_', '-')}-{value:g}.{first}",
                {**settings, self.varied: value, "first_repetition": first},
                weight=repetitions * 0.15,
            )
            for first in range(0, blocks * repetitions, repetitions)
            for value in self.values
        ]

    def compute(
        self, data: Path | None, *, repetitions: int, first_repetition: int = 0, prices_file: str = "", **settings: Any
    ) -> Plain:
        """`snr` (repetitions, 5) in dB, 10 log₁₀(Σ y² / Σ (y - ŷ)²) over the test windows, for each of `METHODS`; and
        what was `chosen`: by kernel, hyperparameter and its value, how many repetitions chose it.

        `settings` are those of `WindowSettings`. No ridge is below 1e-11 trace(K): what rounding leaves of a singular
        Gram matrix is not to be inverted. A window drawn twice makes one, and a column of zeros does.
        """
        setup = WindowSettings(**settings)
        prices = load_prices(find_prices(data) or data or "").close if setup.source == "stock" else None
        daily = None if prices is None else days_in_use(prices)
        for prepare in (compiled_recurrent, compiled_feedforward):
            prepare()  # before threads would each compile their own
        found: list[Any] = [None] * repetitions

        def work(r: int) -> float:
            found[r] = repetition(setup, first_repetition + r, daily)
            return 1.0

        run_in_threads(work, list(range(repetitions)), count_threads(None))
        snr, chosen = zip(*found, strict=True)
        return {
            "settings": asdict(setup),
            "first_repetition": first_repetition,
            "methods": METHODS,
            "snr": np.array(snr),
            "chosen": {method: _counted([each[method] for each in chosen]) for method in METHODS[: len(FAMILIES)]},
        }

    def _points(self, results: Results) -> tuple[Array, list[Array]]:
        """What is varied, (P,), ascending; and for each value the SNR of all its repetitions, (repetitions, 5)."""
        blocks: dict[float, list[Any]] = {}
        for block in results.all():
            blocks.setdefault(float(block.settings[self.varied]), []).append(block)
        values = sorted(blocks)
        for each in blocks.values():
            each.sort(key=lambda block: int(block.first_repetition))
        return np.array(values), [np.concatenate([block.snr for block in blocks[value]]) for value in values]

    def judge(self, results: Results) -> Iterator[Finding]:
        """What section 4 says of this panel; sentences about its course need two points."""
        values, snr = self._points(results)
        mean = np.array([each.mean(axis=0) for each in snr])
        kernels, pts = mean[:, : len(FAMILIES)], mean[:, -1]
        lead, above = kernels[:, 0] - kernels[:, 1:].max(axis=1), kernels - pts[:, None]
        fall = kernels[0] - kernels[-1]
        symbol = LABELS[self.varied]

        def course(words: str, numbers: Array) -> str:
            pairs = zip(values, numbers, strict=True)
            return f"{words}: " + ", ".join(f"{symbol} = {value:g}: {number:+.2f}" for value, number in pairs)

        def each(words: str, numbers: Array) -> str:
            pairs = zip(METHODS, numbers, strict=False)
            ends = f"from {symbol} = {values[0]:g} to {values[-1]:g}"
            return f"{words} {ends}: " + ", ".join(f"{name} {number:+.2f}" for name, number in pairs)

        # Of differences between methods on the same windows, whichever two vary most.
        pairs = [each[:, :, None] - each[:, None, :] for each in snr]
        error = max(
            float((pair.std(axis=0, ddof=1) / len(pair) ** 0.5).max()) if len(pair) > 1 else np.inf for pair in pairs
        )
        weight = Proof(min(map(len, snr)), error if np.isfinite(error) else None, 0.0, "difference of two methods, dB")
        ahead = course("dB ahead of the best other kernel", lead)
        below = course("NTK, dB above PTS", above[:, 1]) + "; " + course("RBF", above[:, 2])

        def at_points(key: str, above: Array, said: str, among: Any = slice(None)) -> Finding:
            """A claim on points, each for itself: for which it holds, and for which not."""
            holds, where = above[among] > 0, values[among]
            yes, no = (", ".join(f"{value:g}" for value in where[each]) for each in (holds, ~holds))
            only = f"for {symbol} = {yes}, not for {no}" if yes and no else ""
            return Finding(key, bool(holds.any()), said, weight, condition=only)

        yield at_points("ahead", lead, ahead, values > 0)
        yield at_points("nearest", lead, ahead)
        yield Finding("low", bool(lead[0] > 0), ahead, weight)
        yield Finding("high", bool(lead[-1] <= 0), ahead, weight)
        best = above.max(axis=1)
        yield at_points("pts", -best, course("best kernel, dB above PTS", best))
        yield at_points("rntk", above[:, 0], course("RNTK, dB above PTS", above[:, 0]))
        yield at_points("polynomial", above[:, 3], course("polynomial, dB above PTS", above[:, 3]))
        yield Finding("fall", bool((above[-1, 1:3] < 0).all()), below, weight)
        if len(values) > 1:
            gains = course("SNR of the RNTK in dB", kernels[:, 0])
            yield Finding("grows", bool((np.diff(lead) > 0).all()), ahead, weight)
            yield Finding("gains", bool((np.diff(kernels[:, 0]) > 0).all()), gains, weight)
            yield Finding("cost", bool(fall[0] > fall[1:].max()), each("dB lost", fall), weight)
            yield Finding("keeps", bool(-fall[0] < (-fall[1:]).min()), each("dB gained", -fall), weight)

    def figures(self, results: Results) -> dict[str, Any]:
        """Mean SNR of each method with its standard error."""
        values, snr = self._points(results)
        ax = axes_or_new()
        mean = np.array([each.mean(axis=0) for each in snr])
        error = np.array([each.std(axis=0, ddof=1) / len(each) ** 0.5 for each in snr if len(each) > 1])
        for k, (name, style) in enumerate(zip(METHODS, ("o-", "s--", "^-.", "v:", "x--"), strict=True)):
            bars = error[:, k] if len(error) == len(mean) else None
            colour = COLOURS[k] if k < len(FAMILIES) else "black"
            ax.errorbar(values, mean[:, k], bars, fmt=style, color=colour, capsize=3, label=name)
        scale = "log" if self.varied == "noise" and (values > 0).all() else "linear"
        figure = finished(ax, LABELS[self.varied], "SNR of predictions (dB)", self.kind, xscale=scale)
        return {f"figure-4{self.panel}": figure}


def _counted(chosen: list[dict[str, float]]) -> dict[str, dict[str, int]]:
    return {
        name: {f"{value:.4g}": count for value, count in sorted(Counter(each[name] for each in chosen).items())}
        for name in chosen[0]
    }


def days_in_use(prices: Array) -> Array:
    """The first days, in units of mean and deviation of the training days."""
    if len(prices) < DAYS:
        raise ValueError(f"{DAYS} days are needed, out of {len(prices)} prices")
    seen = prices[:TRAINING_DAYS]
    return np.asarray((prices[:DAYS] - seen.mean()) / seen.std())


class Windows(NamedTuple):
    """Windows as kernels on sequences and on vectors see them; what follows, and the last value before."""

    batch: SequenceBatch
    padded: Array
    targets: Array
    last: Array


def draw(setup: WindowSettings, repetition: int, daily: Array | None) -> tuple[Windows, Windows, int]:
    """Training and test windows of a repetition, and the seed of its folds; `daily` are the days in use of a stock."""
    rng = np.random.default_rng([setup.random_state, 1, repetition])
    if daily is None:
        noisy = np.random.default_rng([setup.random_state, 0])  # one for all repetitions: "from this fixed data"
        series, clean = sinusoid(noise=setup.noise, random_state=noisy), sinusoid(noise=0.0)
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
        drawn.append(Windows(seen, zero_padded(seen, longest, setup.padding), targets, last_values(batch)))
    return drawn[0], drawn[1], int(rng.integers(2**31))


def repetition(setup: WindowSettings, number: int, daily: Array | None) -> tuple[Array, dict[str, Any]]:
    """SNR of each method, and what each kernel chose."""
    train, test, seed = draw(setup, number, daily)
    folds = plain_folds(setup.n_train, 5, seed)
    y = train.targets
    power = np.square(test.targets).sum()
    snr, chosen = np.empty(len(METHODS)), {}
    for k, method in enumerate(METHODS):
        predicted = test.last
        if k < len(FAMILIES):
            family = FAMILIES[k]
            losses = cross_validate(family, train.batch, train.padded, y, folds)
            assert np.isfinite(losses).all()
            best, at = np.unravel_index(int(np.argmin(losses)), losses.shape)  # the first of equals
            (settings, kernel), ridge = candidates(family)[best], RIDGES[at]
            chosen[method] = {**settings, "ridge": ridge}
            kernel = with_settings(kernel, n_jobs=1, progress=False)
            known, new = (train.batch, test.batch) if family == "rntk" else (train.padded, test.padded)
            K = kernel(known)
            dual = solve_ridge(K, y, max(ridge, LEAST_RIDGE * float(np.trace(K))))
            predicted = kernel(new, known) @ dual
        with np.errstate(divide="ignore"):
            snr[k] = 10 * np.log10(power / np.square(test.targets - predicted).sum())
    return snr, chosen
