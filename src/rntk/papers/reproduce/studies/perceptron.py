"""The note deriving the tangent kernel of perceptrons, beside finite ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...experiments import PerceptronConvergence, perceptron_convergence
from ...experiments.perceptron import CLAIMS, LEAST_P_VALUE
from ..study import Claim, Mode, Plain, Results, Study, Unit
from .checks import claims_from_checks

RATE = "slope within four standard errors of -1/2, for every activation and depth"
LAW = f"no test has p below {LEAST_P_VALUE:g}"


class PerceptronStudy(Study):
    name = "perceptron"
    aliases = ("mlp-ntk",)
    title = "Finite perceptrons approach their tangent kernel"
    source = "Neural Tangent Kernel Derivation (a note)"
    extras = ("finite",)
    minutes = (0.4, 1)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        sizes: Plain = {
            Mode.QUICK: {"depths": [1, 2], "widths": [32, 64, 128, 256], "seeds": 15, "networks": 200, "steps": 15},
            Mode.FULL: {"depths": [1, 2, 3], "widths": [32, 64, 128, 256, 512], "seeds": 30, "networks": 300},
        }[mode]
        return [Unit("networks", {**sizes, "random_state": 0}, weight={Mode.QUICK: 15.0, Mode.FULL: 45.0}[mode])]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return perceptron_convergence(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        criterion = {
            "gaussian": LAW,
            "covariance": LAW,
            "uncorrelated": LAW,
            "averages": RATE,
            "recursion": "relative distance below 1e-6",
            "kernel": RATE,
            "between": RATE,
            "drift": "slope at most -1/2, give or take four standard errors",
        }
        return claims_from_checks(CLAIMS, lambda results: _record(results).checks, criterion)

    def figures(self, results: Results) -> dict[str, Any]:
        record = _record(results)
        return {f"perceptron-{name}": record.plot(name=name).figure for name in ("ntk", "drift")}


def _record(results: Results) -> PerceptronConvergence:
    return PerceptronConvergence.from_dict(results["networks"])
