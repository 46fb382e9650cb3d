"""RNTK paper, Figure 4: what comes after a window of random length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...data import find_prices
from ...experiments.unequal_windows import CLAIMS, METHODS, PANELS, UnequalWindows, WindowPoint, panel_of, window_point
from ..study import Claim, Mode, NotRunError, Plain, Results, Study, Unit
from .checks import claims_from_checks
from .linear import file_digest

SAID = {"t_var": "length variation", "noise": "noise", "n_train": "number of training windows"}
#: What the checks of `rntk.papers.experiments.unequal_windows` ask.
CRITERION = "mean SNR over repetitions, at every point (see rntk.papers.experiments.unequal_windows)"
REASONS = {
    "a": {
        "ahead": "where lengths hardly vary the kernels are level",
        "rntk": "PTS doesn't depend on T_var, and the RNTK loses with it; the paper doesn't say whether targets are "
        "noisy, how windows are scaled or where zeros go, and none of the choices tried gives this",
        "polynomial": "it is above PTS everywhere if zeros are put before a window instead of after it; then it is "
        "above the RNTK too, at every point of all four panels",
    },
    "b": {},
    "c": {"nearest": "with windows of one length the polynomial kernel is nearer"},
    "d": {"keeps": "the RNTK is ahead at every N_train, and gains the most from more windows"},
}
#: Repetitions in one unit, and how many units, by mode.
BLOCKS = {Mode.QUICK: (20, 1), Mode.FULL: (250, 4)}


class WindowsStudy(Study):
    """One panel of Figure 4; a unit is a block of repetitions of one point."""

    extras = ()
    minutes = (0.3, 8)

    def __init__(self, panel: str) -> None:
        source, varied, _ = PANELS[panel]
        self.panel = panel
        self.name = f"rntk-figure-4{panel}"
        self.title = f"Windows of random length: {source}, over the {SAID[varied]}"
        self.source = f"The Recurrent Neural Tangent Kernel, Figure 4 ({panel}) and section 4"
        self.needs = "daily prices of GOOGL, a CSV file named GOOG*.csv" if source == "stock" else ""

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        source, varied, values = PANELS[self.panel]
        prices = find_prices(data) if source == "stock" else None
        if source == "stock" and prices is None:
            raise NotRunError(
                f"there is no GOOG*.csv in {data or 'any folder given by --data'}; daily prices of 2014 to 2018 with "
                "the columns Date, Open, High, Low, Close, Adj Close, Volume are what it should hold"
            )
        repetitions, blocks = BLOCKS[mode]
        settings: Plain = {"source": source, "random_state": 0, "repetitions": repetitions}
        if prices is not None:
            settings["prices_file"] = file_digest(prices)
        # Block after block, so that a run that is stopped has every point.
        return [
            Unit(
                f"{varied.replace('_', '-')}-{value:g}.{first}",
                {**settings, varied: value, "first_repetition": first},
                weight=repetitions * 0.15,
            )
            for first in range(0, blocks * repetitions, repetitions)
            for value in values
        ]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        settings = {key: value for key, value in config.items() if key != "prices_file"}
        stock = find_prices(data) if config["source"] == "stock" else None
        found = window_point(**settings, stock=stock, progress=False).to_dict()
        timing = found.pop("seconds")
        return {**found, "timing": timing}

    def claims(self) -> list[Claim]:
        return claims_from_checks(
            CLAIMS[self.panel], lambda results: self._record(results).checks, CRITERION, reasons=REASONS[self.panel]
        )

    def figures(self, results: Results) -> dict[str, Any]:
        return {f"figure-4{self.panel}": self._record(results).plot().figure}

    def _record(self, results: Results) -> UnequalWindows:
        points = results.starting("").values()
        return panel_of(
            self.panel, [WindowPoint.from_dict({**point, "seconds": dict.fromkeys(METHODS, 0.0)}) for point in points]
        )
