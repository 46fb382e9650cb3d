"""RNTK paper, Figure 2, left: a network of width 1000 beside its limit, for two sequences of unequal length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ..study import FIRST, Claim, Criterion, Finding, Mutant, Plain, Results, Study, Unit, mean_of, multiplied
from .drawing import finished


class RntkFigure2Left(Study):
    """Θ(x, x') for x = {1, -1, 1} and x' = {cos α, sin α}: the kernel, and the tangent kernels of some networks."""

    name = "rntk-figure-2-left"
    title = "A wide network beside its kernel, over an angle"
    source = "The Recurrent Neural Tangent Kernel, Figure 2, left"
    extras = ("finite",)
    minutes = (0.2, 0.2)
    quick = (Unit("networks", {"width": 300, "angles": 24, "seeds": 12}, weight=5),)
    full = (Unit("networks", {"width": 1000, "angles": 32, "seeds": 40}, weight=5),)
    claims = (
        Claim(
            "limit",
            "for two sequences of unequal length the tangent kernel of a network of width 1000 lies on the RNTK",
            "the mean of networks within four standard errors at every angle, single ones within a tenth of the "
            "largest value (root mean square)",
            "curves coincide",
            since="2026-11-18",
            before=True,
            history=(
                Criterion(
                    "no network off by a quarter of the largest value, nor their mean by a tenth",
                    FIRST,
                    "a kernel wrong by 9 % would have passed",
                ),
            ),
        ),
    )

    mutants = (
        Mutant(
            "kernel times 1.25",
            ("limit",),
            "rntk.kernels:RNTK.__call__",
            multiplied(1.25),
            settings={"width": 300, "angles": 8, "seeds": 16},
        ),
    )

    def compute(self, data: Path | None, *, width: int, angles: int, seeds: int) -> Plain:
        """`angles` (A,), `limit` (A,), and `networks` (S, A), one row per network."""
        from ... import finite

        kernel = RNTK()
        alpha = np.linspace(0.0, 2 * np.pi, angles)
        x = np.array([1.0, -1.0, 1.0])
        others = [np.array([np.cos(a), np.sin(a)]) for a in alpha]
        net = finite.network(kernel, width)
        networks = [
            finite.empirical_ntk(net, net.init(seed, [x], dtype="float64"), [x], others)[0] for seed in range(seeds)
        ]
        limit = kernel([x], others)[0]
        return {"kernel": repr(kernel), "width": width, "angles": alpha, "limit": limit, "networks": np.stack(networks)}

    def judge(self, results: Results) -> Iterator[Finding]:
        """Distances from the limit as shares of its largest value: of any network, and of their mean."""
        found = results["networks"]
        largest = np.abs(found.limit).max()
        off = (found.networks - found.limit) / largest
        error = off.std(axis=0, ddof=1) / len(off) ** 0.5
        mean, evidence = mean_of(off, "mean of networks, in units of the largest value", 4 * float(error.max()))
        one, worst = float(np.sqrt(np.mean(off**2))), float((np.abs(mean) / error).max())
        ours = (
            f"width {found.width}: the mean of {len(off)} networks is off by up to {np.abs(mean).max():.2%} of the "
            f"largest value, {worst:.1f} standard errors; single ones by {one:.1%} (root mean square)"
        )
        yield Finding("limit", worst < 4 and one < 0.1, ours, evidence)

    def figures(self, results: Results) -> dict[str, Any]:
        """The kernel as a line, one network as points."""
        found = results["networks"]
        ax = axes_or_new()
        ax.plot(found.angles, found.limit, color=COLOURS[0], label="kernel, n = ∞")
        label = f"one network, n = {found.width}"
        ax.plot(found.angles, found.networks[0], "o", markersize=3, color=COLOURS[1], label=label)
        return {"figure-2-left": finished(ax, "angle α", "Θ(x, x')", "x = {1, -1, 1}, x' = {cos α, sin α}")}
