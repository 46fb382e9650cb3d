"""RNTK paper, Figure 3: sensitivity over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...experiments import SensitivityFigure, sensitivity_figure
from ...experiments.sensitivity_figure import CLAIMS
from ..study import Claim, Mode, Plain, Results, Study, Unit
from .checks import claims_from_checks

#: Of log₂(mean sensitivity of the first fifth of the steps / of the last), the balance.
CRITERIA = {
    "reference": "balance within ±1 at both reference points",
    "stable": "its coefficient of variation over time is the smaller one",
    "relu": "balance lower by more than 1 for every smaller σ_w, higher by more than 1 for every larger one",
    "erf": "balance lower by more than 1 for every other σ_w",
    "sigma_w": "balance spans more than 5 over the values of σ_w",
    "others": "the largest span over σ_u, σ_b, σ_h is larger for erf",
    "sigma_h": "balance lower than at σ_h = 0 for every larger value",
    "sigma_h erf": "the balance falls by more",
}

REASONS = {
    "reference": "erf at its printed reference point listens to the first fifth of the steps about ten times more than "
    "to the last: gradients by the inputs, computed exactly and checked against differences",
    "erf": "raising σ_w from the printed reference point makes erf saturate, and the first steps keep their weight; "
    "the paper's text gives no values for its curves, ours lie around its reference point",
}


class SensitivityStudy(Study):
    name = "rntk-figure-3"
    title = "What an infinite RNN listens to: sensitivity over time"
    source = "The Recurrent Neural Tangent Kernel, Figure 3 and section 3.4"
    minutes = (0.3, 1)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        pairs = {Mode.QUICK: 500, Mode.FULL: 10_000}[mode]
        config = {"pairs": pairs, "T": 100, "random_state": 0}
        return [Unit("curves", config, weight={Mode.QUICK: 8.0, Mode.FULL: 30.0}[mode])]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return sensitivity_figure(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        return claims_from_checks(CLAIMS, lambda results: _figure(results).checks, CRITERIA, reasons=REASONS)

    def figures(self, results: Results) -> dict[str, Any]:
        return {"figure-3": _figure(results).plot_all()}


def _figure(results: Results) -> SensitivityFigure:
    return SensitivityFigure.from_dict(results["curves"])
