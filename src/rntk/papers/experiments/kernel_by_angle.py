"""RNTK paper, Figure 2, left: a network of width 1000 beside its limit, for two sequences of unequal length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from .record import Record

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelByAngle(Record):
    """Θ(x, x') for x = {1, -1, 1} and x' = {cos α, sin α}.

    Attributes
    ----------
    kernel : repr of the kernel. width : of the networks.
    angles : (A,) α. limit : (A,) the kernel. networks : (S, A) empirical tangent kernels, one row per network.
    """

    kernel: str
    width: int
    angles: Array
    limit: Array
    networks: Array

    @property
    def largest_gap(self) -> float:
        """Largest distance of a network from the limit, as a share of the largest value of the limit."""
        return float(np.abs(self.networks - self.limit).max() / np.abs(self.limit).max())

    @property
    def gap_of_mean(self) -> float:
        """The same for the mean over networks."""
        return float(np.abs(self.networks.mean(axis=0) - self.limit).max() / np.abs(self.limit).max())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "kernel": self.kernel,
            "width": self.width,
            "angles": self.angles.tolist(),
            "limit": self.limit.tolist(),
            "networks": self.networks.tolist(),
            "largest_gap": self.largest_gap,
            "gap_of_mean": self.gap_of_mean,
        }

    def plot(self, ax: Any = None) -> Any:
        """The kernel as a line, networks as points; returns the axes."""
        ax = axes_or_new(ax)
        ax.plot(self.angles, self.limit, color=COLOURS[0], label="kernel, n = ∞")
        for row in self.networks[:1]:
            ax.plot(self.angles, row, "o", markersize=3, color=COLOURS[1], label=f"one network, n = {self.width}")
        ax.set(xlabel="angle α", ylabel="Θ(x, x')", title="x = {1, -1, 1}, x' = {cos α, sin α}")
        ax.legend(frameon=False)
        return ax


def kernel_by_angle(
    kernel: RNTK | None = None,
    width: int = 1000,
    angles: int = 64,
    seeds: int = 5,
    *,
    dtype: Any = "float64",
) -> KernelByAngle:
    """Figure 2, left.

    Parameters
    ----------
    kernel : `RNTK()` unless given: ReLU, σ_w = √2, σ_u = 1.
    width : units of each network. angles : how many, from 0 to 2π. seeds : how many networks.

    Examples
    --------
    >>> from rntk.papers.experiments import kernel_by_angle
    >>> kernel_by_angle(width=500, angles=8, seeds=3).largest_gap < 0.2
    True
    """
    from ... import finite

    kernel = RNTK() if kernel is None else kernel
    alpha = np.linspace(0.0, 2 * np.pi, angles)
    x = np.array([1.0, -1.0, 1.0])
    others = [np.array([np.cos(a), np.sin(a)]) for a in alpha]
    net = finite.network(kernel, width)
    networks = [
        finite.empirical_ntk(net, net.init(seed, [x], dtype=dtype), [x], others)[0].astype(np.float64)
        for seed in range(seeds)
    ]
    limit = np.asarray(kernel([x], others)[0], dtype=np.float64)
    return KernelByAngle(repr(kernel), width, alpha, limit, np.stack(networks))
