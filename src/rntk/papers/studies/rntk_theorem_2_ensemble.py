"""RNTK paper, Theorem 2: an ensemble of wide networks, trained, beside the infinite network in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ...theory.dynamics import Dynamics
from ..data.made import small_task
from ..study import FIRST, Claim, Criterion, Finding, Mutant, Plain, Proof, Results, Study, Unit, times
from .drawing import finished


def _units(parts: int, weight: float, **sizes: int) -> tuple[Unit, ...]:
    """The ensemble in parts of some networks each."""
    each = sizes["networks"]
    return tuple(
        Unit(f"networks-{first + 1}-to-{first + each}", {**sizes, "first": first, "random_state": 0}, weight)
        for first in range(0, parts * each, each)
    )


def _ensemble(results: Results) -> SimpleNamespace:
    """All parts as one."""
    parts = results.all()
    return SimpleNamespace(**{**vars(parts[0]), "outputs": np.concatenate([part.outputs for part in parts])})


def _shuffled(name: str, found: Plain) -> None:
    found["outputs"] = np.array(found["outputs"])[:, :, ::-1].tolist()


class RntkTheorem2Ensemble(Study):
    """Outputs along training on a small ragged data set, on sequences trained on and on new ones."""

    name = "rntk-theorem-2-ensemble"
    title = "Trained networks beside the infinite network in closed form"
    source = "The Recurrent Neural Tangent Kernel, Theorem 2"
    extras = ("finite",)
    minutes = (0.5, 12)
    quick = _units(2, 12.0, width=256, networks=8, steps=40)
    full = _units(10, 50.0, width=512, networks=16, steps=100)
    claims = (
        Claim(
            "mean",
            "the mean output of trained networks follows the kernel's closed form",
            "at every recorded step off by less than twice what chance makes of it",
            "equal as n → ∞",
        ),
        Claim(
            "spread",
            "their deviation over initialisations follows the closed form",
            "at every recorded step within 5 % and three standard errors",
            "equal as n → ∞",
            since="2026-11-18",
            before=True,
            history=(
                Criterion(
                    "at every recorded step within 20 % or three standard errors, those of a single sequence",
                    FIRST,
                    "with 20 networks anything within 47 % passed",
                ),
            ),
        ),
    )

    mutants = (
        Mutant("outputs of other sequences", ("mean",), result=_shuffled),
        Mutant("outputs times 1.5", ("spread",), result=times(1.5, "outputs")),
    )

    def compute(
        self, data: Path | None, *, width: int, networks: int, steps: int, first: int = 0, random_state: int = 0
    ) -> Plain:
        """`outputs` (M, R, n) of networks at R recorded steps; `mean` and `std` (R, n) of the infinite network.

        Of the n sequences the first `training` were trained on, three others follow. `first` is the number of the
        first network; parts with other numbers make one ensemble.
        """
        from ... import finite

        kernel = RNTK()
        X, y = small_task(random_state)
        X_new, _ = small_task(random_state + 1, sequences=3)
        limit = Dynamics(kernel, X, y)
        rate = limit.largest_learning_rate / 2
        marks = sorted({0, *np.unique(np.geomspace(1, steps, 12).astype(int)).tolist()})
        net = finite.network(kernel, width)
        outputs = []
        for seed in range(first, first + networks):
            start = net.init(1000 * random_state + seed, X)
            run = finite.train(net, start, X, y, rate, steps, record_at=marks, X_test=X_new, progress=False)
            outputs.append(np.concatenate([run.outputs, run.test_outputs], axis=1)[:, :, 0].astype(np.float64))
        parts = [limit.predict(each, steps=marks, learning_rate=rate, return_std=True) for each in (None, X_new)]
        mean, std = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
        settings = {"kernel": repr(kernel), "width": width, "learning_rate": rate, "steps": marks, "training": len(X)}
        return {**settings, "outputs": np.stack(outputs), "mean": mean, "std": std}

    def judge(self, results: Results) -> Iterator[Finding]:
        """Mean and spread over networks, root mean squares over sequences, at every recorded step."""
        found = _ensemble(results)
        count = len(found.outputs)
        predicted = np.sqrt(np.mean(found.std**2, axis=1))
        gap = np.sqrt(np.mean((found.outputs.mean(axis=0) - found.mean) ** 2, axis=1))
        ratio = gap / np.sqrt(np.mean(found.std**2, axis=1) / count)
        chance = f"what chance makes of {count} networks"
        ours = f"width {found.width}: off by {ratio.min():.2f} to {ratio.max():.2f} times {chance}"
        chances = Proof(count, count**-0.5, 2 * count**-0.5, "mean, in deviations of the infinite network")
        yield Finding("mean", bool(ratio.max() < 2), ours, chances)
        # Each network's part in the variance, (M, R), in units of the predicted one.
        parts = np.mean((found.outputs - found.outputs.mean(axis=0)) ** 2, axis=2) * count / (count - 1) / predicted**2
        ratio = np.sqrt(parts.mean(axis=0))
        error = parts.std(axis=0, ddof=1) / count**0.5 / (2 * ratio)
        ours = f"width {found.width}: {ratio.min():.2f} to {ratio.max():.2f} of the predicted one"
        weight = Proof(count, float(error.max()), 0.05 + 3 * float(error.max()), "ratio of deviations")
        yield Finding("spread", bool((np.abs(ratio - 1) < 0.05 + 3 * error).all()), ours, weight)

    def figures(self, results: Results) -> dict[str, Any]:
        """Mean and two standard deviations: bands for the infinite network, bars for the ensemble."""
        found = _ensemble(results)
        ax = axes_or_new()
        at = found.steps + 1
        mean, spread = found.outputs.mean(axis=0), found.outputs.std(axis=0, ddof=1)
        for k, colour, name in zip((0, found.training), COLOURS, ("trained on", "new"), strict=False):
            low, high = found.mean[:, k] - 2 * found.std[:, k], found.mean[:, k] + 2 * found.std[:, k]
            ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(at, found.mean[:, k], color=colour, label=f"{name}: infinite network")
            label = f"{name}: {len(found.outputs)} networks, n = {found.width}"
            ax.errorbar(at, mean[:, k], 2 * spread[:, k], fmt="o", markersize=3, capsize=3, color=colour, label=label)
        figure = finished(ax, "steps of gradient descent + 1", "output", found.kernel, xscale="log")
        return {"theorem-2-ensemble": figure}
