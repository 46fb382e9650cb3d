"""RNTK paper, Figure 2, right: tied and untied networks approach the kernel like 1/√width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ..study import Claim, Finding, Mutant, Plain, Proof, Results, Study, Unit
from .drawing import finished

#: The paper's network, and others that its theorem covers, by the name of their unit; with lengths of the signals.
CASES: dict[str, Plain] = {
    "relu": {"kernel": {}, "lengths": 5},
    "relu-depth-2": {"kernel": {"depth": 2, "sigma_b": 0.1}, "lengths": 5},
    "relu-depth-3": {"kernel": {"depth": 3, "sigma_b": 0.1}, "lengths": 5},
    "erf": {"kernel": {"activation": "erf", "sigma_w": 1.2, "sigma_b": 0.2}, "lengths": 5},
    "unequal-lengths": {"kernel": {"sigma_b": 0.1}, "lengths": [3, 8]},
}
KINDS = ("tied", "untied")


def _units(weight: float, **sizes: Any) -> tuple[Unit, ...]:
    return tuple(Unit(name, {**case, **sizes, "random_state": 0}, weight) for name, case in CASES.items())


def _times_root_width(name: str, found: Plain) -> None:
    for kind in KINDS:
        widths = np.array(found[kind]["widths"])[:, None]
        found[kind]["ntk"]["errors"] = (np.array(found[kind]["ntk"]["errors"]) * widths**0.5).tolist()


class RntkFigure2Right(Study):
    """Errors ‖Θ̂ - Θ‖/‖Θ‖ by width, for networks that share their weights over time and for such that don't."""

    name = "rntk-figure-2-right"
    title = "Networks approach the kernel like 1/√width, tied and untied"
    source = "The Recurrent Neural Tangent Kernel, Figure 2, right; Theorems 1 and 3"
    extras = ("finite",)
    minutes = (0.7, 4)
    quick = _units(8.0, widths=[10, 30, 100, 300], seeds=8, signals=10)
    full = _units(40.0, widths=[10, 20, 50, 100, 200, 500, 1000], seeds=20, signals=50)
    claims = tuple(
        Claim(
            f"{unit} {kind}",
            f"{unit.replace('-', ' ')}: the error of {kind} networks falls like the inverse root of the width",
            "within 0.08 and three standard errors",
            "slope -1/2",
            unit=unit,
        )
        for unit in CASES
        for kind in KINDS
    )

    mutants = (
        Mutant(
            "errors times √n",
            tuple(f"{unit} {kind}" for unit in CASES for kind in KINDS),
            result=_times_root_width,
        ),
    )

    def compute(
        self,
        data: Path | None,
        *,
        kernel: Plain,
        widths: list[int],
        seeds: int,
        signals: int,
        lengths: int | list[int],
        random_state: int = 0,
    ) -> Plain:
        """`finite.compare` for Gaussian signals, tied and untied.

        `lengths` is a number, or a pair of them to draw between. Each kind of network is compared with its own limit,
        since tied and untied networks have the same one only for equal lengths (Theorem 3).
        """
        from ...finite import compare

        rng = np.random.default_rng(random_state)
        shortest, longest = (lengths, lengths) if isinstance(lengths, int) else lengths
        X = [rng.standard_normal(rng.integers(shortest, longest + 1)) for _ in range(signals)]
        return {
            kind: compare(RNTK(**kernel, tied=kind == "tied"), widths, seeds, X, progress=False).to_dict()
            for kind in KINDS
        }

    def judge(self, results: Results) -> Iterator[Finding]:
        """Slopes of log error against log width."""
        from ...finite import Comparison

        for unit, found in results.items():
            for kind in KINDS:
                comparison = Comparison.from_dict(getattr(found, kind))
                slope, tolerance = comparison.ntk_slope, 0.08 + 3 * comparison.ntk_slope.error
                evidence = Proof(len(comparison.seeds), slope.error, tolerance, "slope")
                holds = abs(slope.value + 0.5) < tolerance
                yield Finding(f"{unit} {kind}", holds, f"slope {slope.value:.3f} ± {slope.error:.3f}", evidence)

    def figures(self, results: Results) -> dict[str, Any]:
        """Mean log error against width, both kinds of network."""
        from ...finite import Comparison

        figures = {}
        results.all()
        for unit, found in results.items():
            ax = axes_or_new()
            for kind, colour, marker in zip(KINDS, COLOURS, "os", strict=False):
                comparison = Comparison.from_dict(getattr(found, kind))
                log, slope = np.log(comparison.ntk), comparison.ntk_slope
                label = f"{kind}, slope {slope.value:.2f} ± {slope.error:.2f}"
                error = log.std(axis=1, ddof=1) / np.sqrt(log.shape[1]) if log.shape[1] > 1 else None
                mean = log.mean(axis=1)
                ax.errorbar(comparison.widths, mean, error, color=colour, marker=marker, capsize=3, label=label)
            figure = finished(ax, "width", "log relative error", found.tied["kernel"], xscale="log")
            figures[f"figure-2-right-{unit}"] = figure
        return figures
