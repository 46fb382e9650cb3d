"""RNTK paper, Figure 2 and Theorem 2: finite networks beside the kernel, before and after training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ....kernels import RNTK
from ...experiments import (
    Convergence,
    EnsembleTraining,
    KernelByAngle,
    LazyTraining,
    convergence,
    ensemble_training,
    kernel_by_angle,
    lazy_training,
)
from ...experiments.convergence import CASES
from ..study import Claim, Finding, Mode, Plain, Results, Study, Unit

PAPER = "The Recurrent Neural Tangent Kernel"


class KernelByAngleStudy(Study):
    name = "rntk-figure-2-left"
    title = "A wide network beside its kernel, over an angle"
    source = f"{PAPER}, Figure 2, left"
    extras = ("finite",)
    minutes = (0.2, 0.2)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        sizes = {Mode.QUICK: (500, 24, 3), Mode.FULL: (1000, 64, 10)}[mode]
        return [Unit("networks", dict(zip(("width", "angles", "seeds"), sizes, strict=True)), weight=5)]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return kernel_by_angle(**config).to_dict()

    def claims(self) -> list[Claim]:
        def near(results: Results) -> Finding:
            found = KernelByAngle.from_dict(results["networks"])
            share = f"{found.largest_gap:.1%} of the largest value for one of {len(found.networks)} networks"
            ours = f"width {found.width}: off by up to {share}, {found.gap_of_mean:.1%} for their mean"
            return Finding(found.largest_gap < 0.25 and found.gap_of_mean < 0.1, ours)

        sentence = "for two sequences of unequal length the tangent kernel of a network of width 1000 lies on the RNTK"
        return [
            Claim(
                "limit",
                sentence,
                "curves coincide",
                "no network off by a quarter of the largest value, nor their mean by a tenth",
                near,
            )
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"figure-2-left": KernelByAngle.from_dict(results["networks"]).plot().figure}


#: Kernels of Figure 2, right, by the name of their unit, with lengths of signals; the paper shows the first.
CONVERGENCE_CASES: dict[str, Plain] = {
    **{name.replace(", ", "-").replace(" ", "-"): {"kernel": options, "lengths": 5} for name, options in CASES.items()},
    "unequal-lengths": {"kernel": {"sigma_b": 0.1}, "lengths": [3, 8]},
}


class ConvergenceStudy(Study):
    name = "rntk-figure-2-right"
    title = "Networks approach the kernel like 1/√width, tied and untied"
    source = f"{PAPER}, Figure 2, right; Theorems 1 and 3"
    extras = ("finite",)
    minutes = (0.7, 4)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        sizes: Plain = {
            Mode.QUICK: {"widths": [10, 30, 100, 300], "seeds": 8, "signals": 10},
            Mode.FULL: {"widths": [10, 20, 50, 100, 200, 500, 1000], "seeds": 20, "signals": 50},
        }[mode]
        weight = {Mode.QUICK: 8.0, Mode.FULL: 40.0}[mode]
        return [Unit(name, {**case, **sizes, "random_state": 0}, weight) for name, case in CONVERGENCE_CASES.items()]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        lengths = config["lengths"]
        settings = {**config, "kernel": RNTK(**config["kernel"]), "progress": False}
        settings["lengths"] = lengths if isinstance(lengths, int) else tuple(lengths)
        return convergence(**settings).to_dict()

    def claims(self) -> list[Claim]:
        def claim(unit: str, kind: str) -> Claim:
            def slope(results: Results) -> Finding:
                found = getattr(Convergence.from_dict(results[unit]), kind).ntk_slope
                return Finding(
                    abs(found.value + 0.5) < 0.08 + 3 * found.error, f"slope {found.value:.3f} ± {found.error:.3f}"
                )

            said = unit.replace("-", " ")
            sentence = f"{said}: the error of {kind} networks falls like the inverse root of the width"
            return Claim(f"{unit} {kind}", sentence, "slope -1/2", "within 0.08 and three standard errors", slope)

        return [claim(unit, kind) for unit in CONVERGENCE_CASES for kind in ("tied", "untied")]

    def figures(self, results: Results) -> dict[str, Any]:
        found = {name: Convergence.from_dict(each) for name, each in results.starting("").items()}
        return {f"figure-2-right-{name}": each.plot().figure for name, each in found.items()}


class LazyTrainingStudy(Study):
    name = "rntk-theorem-2-drift"
    title = "The wider the network, the less weights and kernel move in training"
    source = f"{PAPER}, Theorem 2"
    extras = ("finite",)
    minutes = (0.5, 2)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        config: Plain = {
            Mode.QUICK: {"widths": [64, 128, 256, 512], "seeds": 3, "steps": 40},
            Mode.FULL: {"widths": [64, 128, 256, 512, 1024, 2048], "seeds": 4, "steps": 100},
        }[mode]
        return [Unit("training", config, weight={Mode.QUICK: 15.0, Mode.FULL: 60.0}[mode])]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return lazy_training(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def claim(kind: str, said: str) -> Claim:
            def bounded(results: Results) -> Finding:
                slope = getattr(LazyTraining.from_dict(results["training"]), f"{kind}_slope")
                # The theorem bounds the drift: steeper is within it.
                return Finding(slope.value < -0.44 + 3 * slope.error, f"slope {slope.value:.3f} ± {slope.error:.3f}")

            return Claim(
                kind,
                f"{said} move in training by O(1/√width)",
                "slope at most -1/2",
                "at most -0.44, give or take three standard errors",
                bounded,
            )

        return [claim("parameter", "weights"), claim("kernel", "kernels")]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"theorem-2-drift": LazyTraining.from_dict(results["training"]).plot().figure}


class EnsembleTrainingStudy(Study):
    name = "rntk-theorem-2-ensemble"
    title = "Trained networks beside the infinite network in closed form"
    source = f"{PAPER}, Theorem 2"
    extras = ("finite",)
    minutes = (0.5, 12)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        parts, sizes, weight = {
            Mode.QUICK: (2, {"width": 512, "networks": 4, "steps": 40}, 12.0),
            Mode.FULL: (10, {"width": 2048, "networks": 2, "steps": 200}, 70.0),
        }[mode]
        each = int(sizes["networks"])
        return [
            Unit(
                f"networks-{k * each + 1}-to-{(k + 1) * each}", {**sizes, "first": k * each, "random_state": 0}, weight
            )
            for k in range(parts)
        ]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return ensemble_training(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def mean(results: Results) -> Finding:
            found = _ensemble(results)
            ratio = found.mean_gap / found.expected_mean_gap
            chance = f"what chance makes of {len(found.outputs)} networks"
            ours = f"width {found.width}: off by {ratio.min():.2f} to {ratio.max():.2f} times {chance}"
            return Finding(bool(ratio.max() < 2), ours)

        def spread(results: Results) -> Finding:
            found = _ensemble(results)
            measured, predicted = found.spread.T
            ratio = measured / predicted
            # Of M networks, the deviation is known to 1/√(2M) per sequence.
            room = 3 / np.sqrt(2 * len(found.outputs))
            ours = f"width {found.width}: {ratio.min():.2f} to {ratio.max():.2f} of the predicted one"
            return Finding(bool((np.abs(ratio - 1) < max(room, 0.2)).all()), ours)

        return [
            Claim(
                "mean",
                "the mean output of trained networks follows the kernel's closed form",
                "equal as n → ∞",
                "at every recorded step off by less than twice what chance makes of it",
                mean,
            ),
            Claim(
                "spread",
                "their deviation over initialisations follows the closed form",
                "equal as n → ∞",
                "at every recorded step within 20 % or three standard errors",
                spread,
            ),
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"theorem-2-ensemble": _ensemble(results).plot().figure}


def _ensemble(results: Results) -> EnsembleTraining:
    parts = results.starting("networks-")
    return EnsembleTraining.joined([EnsembleTraining.from_dict(part) for part in parts.values()])
