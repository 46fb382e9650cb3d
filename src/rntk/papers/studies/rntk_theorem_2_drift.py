"""RNTK paper, Theorem 2: the wider the network, the less its weights and its kernel move during training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ...theory.dynamics import Dynamics
from ..data.made import small_task
from ..study import FIRST, Claim, Criterion, Finding, Mutant, Plain, Proof, Results, Study, Unit
from .drawing import finished

#: The networks: the theorem is stated for any depth and loss, its proof (44) leaves out ReLU.
CASES: dict[str, Plain] = {
    f"{activation}-depth-{depth}-{loss}": {"activation": activation, "depth": depth, "loss": loss}
    for loss, depths in (("squared", (1, 2, 3)), ("cross-entropy", (1,)))
    for activation in ("relu", "erf", "tanh")
    for depth in depths
}
KINDS = {"parameter": "weights move", "kernel": "the kernel moves"}


def _units(names: Iterable[str], weight: float, **sizes: Any) -> tuple[Unit, ...]:
    return tuple(Unit(name, {**CASES[name], **sizes, "random_state": 0}, weight) for name in names)


def _standing_still(name: str, found: Plain) -> None:
    """Weights that move as much at every width, kernels too (theirs is the faster rate of the two)."""
    for kind, power in (("parameter", 0.5), ("kernel", 1.0)):
        drift = np.array(found[f"{kind}_drift"]) * np.array(found["widths"])[:, None] ** power
        found[f"{kind}_drift"] = drift.tolist()


class RntkTheorem2Drift(Study):
    """Networks of each width trained on a small ragged data set, all with the same learning rate and steps."""

    name = "rntk-theorem-2-drift"
    title = "The wider the network, the less weights and kernel move in training"
    source = "The Recurrent Neural Tangent Kernel, Theorem 2"
    extras = ("finite",)
    minutes = (1, 12)
    quick = _units(
        ("relu-depth-1-squared", "erf-depth-1-cross-entropy"), 15.0, widths=[32, 64, 128], seeds=10, steps=20
    )
    full = _units(CASES, 45.0, widths=[64, 128, 256, 512], seeds=16, steps=40)
    claims = tuple(
        Claim(
            f"{unit} {kind}",
            f"{unit.replace('-', ' ')}: {words} in training by O(1/√width)",
            "slope at most -1/2, give or take 0.05 and three standard errors",
            "slope at most -1/2",
            unit=unit,
            since="2026-11-18",
            before=True,
            history=(
                Criterion(
                    "at most -0.44, give or take three standard errors",
                    FIRST,
                    "with four seeds a slope of -0.16 would have passed, and one network of ReLU stood for all",
                ),
            ),
        )
        for unit in CASES
        for kind, words in KINDS.items()
    )

    mutants = (
        Mutant(
            "drift of weights times √n, of kernels times n",
            tuple(f"{unit} {kind}" for unit in CASES for kind in KINDS),
            result=_standing_still,
        ),
    )

    def compute(
        self,
        data: Path | None,
        *,
        activation: str,
        depth: int,
        loss: str,
        widths: list[int],
        seeds: int,
        steps: int,
        random_state: int = 0,
    ) -> Plain:
        """By width and seed: how far weights and kernel were from the start at most, and final over initial loss.

        `parameter_drift` is ‖θ_s - θ_0‖/√n, `kernel_drift` ‖Θ̂_s - Θ̂_0‖ (Frobenius). The learning rate is half of the
        largest stable one of the infinite network under the squared loss. There targets are y + f_0(X), the outputs
        before training added, so that every network has the same way to go: what differs is the width. Cross-entropy
        takes the labels themselves.
        """
        from ... import finite

        kernel = RNTK(activation, depth=depth)
        X, y = small_task()
        rate = Dynamics(kernel, X, y).largest_learning_rate / 2
        marks = sorted({0, *np.unique(np.geomspace(1, steps, 5).astype(int)).tolist()})
        drifts = np.empty((3, len(widths), seeds))
        for i, width in enumerate(widths):
            net = finite.network(kernel, width)
            for seed in range(seeds):
                start = net.init(1000 * random_state + seed, X)
                target = y + np.asarray(net(start, X), dtype=np.float64)[:, 0] * (loss == "squared")
                options: Plain = {"loss": loss, "record_at": marks, "kernel_drift": True, "progress": False}
                run = finite.train(net, start, X, target, rate, steps, **options)
                assert run.kernel_drift is not None
                drifts[:, i, seed] = run.parameter_drift.max(), run.kernel_drift.max(), run.loss[-1] / run.loss[0]
        found = dict(zip(("parameter_drift", "kernel_drift", "loss"), drifts, strict=True))
        return {"kernel": repr(kernel), "widths": widths, "steps": steps, "learning_rate": rate, **found}

    def judge(self, results: Results) -> Iterator[Finding]:
        """The theorem bounds the drift: a steeper slope is within it."""
        from ...finite.comparison import fit_slope

        for unit, found in results.items():
            for kind in KINDS:
                drift = getattr(found, f"{kind}_drift")
                slope = fit_slope(found.widths, drift)
                tolerance = 0.05 + 3 * slope.error
                evidence = Proof(drift.shape[1], slope.error, tolerance, "slope")
                left = np.median(found.loss)
                ours = f"slope {slope.value:.3f} ± {slope.error:.3f}; the loss falls to {left:.2g} of itself"
                yield Finding(f"{unit} {kind}", slope.value < -0.5 + tolerance, ours, evidence)

    def figures(self, results: Results) -> dict[str, Any]:
        """Each drift against width."""
        from ...finite.comparison import fit_slope

        results.all()
        figures = {}
        for kind, words in KINDS.items():
            ax = axes_or_new()
            for k, (unit, found) in enumerate(results.items()):
                drift = getattr(found, f"{kind}_drift")
                slope = fit_slope(found.widths, drift)
                label = f"{unit.replace('-', ' ')}: {slope.value:.2f} ± {slope.error:.2f}"
                style = ("-o", "--s", ":^", "-.v")[k // len(COLOURS) % 4]
                ax.plot(
                    found.widths, drift.mean(axis=1), style, color=COLOURS[k % len(COLOURS)], markersize=4, label=label
                )
            figure = finished(ax, "width", f"how far {words}", "Theorem 2, slopes", xscale="log", yscale="log")
            ax.legend(frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
            figures[f"theorem-2-{kind}"] = figure
        return figures
