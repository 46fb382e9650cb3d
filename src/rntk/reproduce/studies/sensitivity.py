"""RNTK paper, Figure 3: sensitivity over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...experiments import SensitivityFigure, sensitivity_figure
from ...experiments.sensitivity_figure import CLAIMS
from ..study import Claim, Finding, Mode, Plain, Results, Study, Unit

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
        def claim(key: str, sentence: str) -> Claim:
            def check(results: Results) -> Finding:
                checks = SensitivityFigure.from_dict(results["curves"]).checks
                found = next(each for each in checks if each.claim == sentence)
                return Finding(found.holds, found.evidence)

            return Claim(key, sentence, "", "see rntk.experiments.sensitivity_figure", check, REASONS.get(key, ""))

        return [claim(key, sentence) for key, sentence in CLAIMS.items()]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"figure-3": SensitivityFigure.from_dict(results["curves"]).plot_all()}
