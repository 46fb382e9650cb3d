"""RNTK paper, Figure 2, right: tied and untied networks approach the kernel like 1/√width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new

if TYPE_CHECKING:
    from ...finite import Comparison

#: The paper's network, and others that its theorem covers.
CASES: dict[str, dict[str, Any]] = {
    "relu": {},
    "relu, depth 2": {"depth": 2, "sigma_b": 0.1},
    "relu, depth 3": {"depth": 3, "sigma_b": 0.1},
    "erf": {"activation": "erf", "sigma_w": 1.2, "sigma_b": 0.2},
}


@dataclass(frozen=True)
class Convergence:
    """Errors ‖Θ̂ - Θ‖/‖Θ‖ by width, for networks that share their weights over time and for such that don't."""

    tied: Comparison
    untied: Comparison

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"tied": self.tied.to_dict(), "untied": self.untied.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Convergence:
        """The record whose `to_dict` gave `values`."""
        from ...finite import Comparison

        return cls(*(Comparison.from_dict(values[name]) for name in ("tied", "untied")))

    def plot(self, ax: Any = None) -> Any:
        """Mean log error against width, both kinds of network; returns the axes."""
        ax = axes_or_new(ax)
        for comparison, name, colour, marker in (
            (self.tied, "tied", COLOURS[0], "o"),
            (self.untied, "untied", COLOURS[1], "s"),
        ):
            log = np.log(comparison.ntk)
            slope = comparison.ntk_slope
            label = f"{name}, slope {slope.value:.2f} ± {slope.error:.2f}"
            error = log.std(axis=1, ddof=1) / np.sqrt(log.shape[1]) if log.shape[1] > 1 else None
            ax.errorbar(comparison.widths, log.mean(axis=1), error, color=colour, marker=marker, capsize=3, label=label)
        ax.set(xscale="log", xlabel="width", ylabel="log relative error", title=self.tied.kernel)
        ax.legend(frameon=False)
        return ax


def convergence(
    kernel: RNTK | None = None,
    widths: Sequence[int] = (10, 20, 50, 100, 200, 500, 1000),
    seeds: int = 20,
    signals: int = 50,
    lengths: int | tuple[int, int] = 5,
    *,
    random_state: int = 0,
    progress: bool | None = None,
) -> Convergence:
    """Figure 2, right: `signals` Gaussian signals of length 5, networks of each width, tied and untied.

    Parameters
    ----------
    kernel : `RNTK()` unless given.
    widths, seeds : which networks, and how many of each width.
    lengths : of the signals; a pair draws lengths between its two numbers. Each kind of network is then compared with
        its own limit, since tied and untied networks have the same one only for equal lengths (Theorem 3).

    Examples
    --------
    >>> from rntk.papers.experiments import convergence
    >>> found = convergence(widths=(20, 80, 320), seeds=4, signals=5)
    >>> abs(found.tied.ntk_slope.value + 0.5) < 0.25
    True
    """
    from ...finite import compare

    kernel = RNTK() if kernel is None else kernel
    rng = np.random.default_rng(random_state)
    shortest, longest = (lengths, lengths) if isinstance(lengths, int) else lengths
    X = [rng.standard_normal(rng.integers(shortest, longest + 1)) for _ in range(signals)]
    found = [
        compare(clone(kernel).set_params(tied=tied), widths, seeds, X, progress=progress) for tied in (True, False)
    ]
    return Convergence(*found)
