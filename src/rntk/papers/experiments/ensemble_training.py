"""RNTK paper, Theorem 2: an ensemble of wide networks, trained, beside the infinite network in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ...runtime import progress_bar
from ...theory.dynamics import Dynamics
from .lazy_training import small_task
from .record import Record

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EnsembleTraining(Record):
    """Outputs along training at R recorded steps, on n sequences: training sequences first, then new ones.

    Attributes
    ----------
    kernel : repr. width : of the networks. learning_rate : η of gradient descent on ½ Σ_i (f(x_i) - y_i)².
    steps : (R,). outputs : (M, R, n) of every network. mean, std : (R, n) of the infinite network.
    training : how many of the n sequences were trained on.
    """

    kernel: str
    width: int
    learning_rate: float
    steps: NDArray[np.int64]
    outputs: Array
    mean: Array
    std: Array
    training: int

    @property
    def mean_gap(self) -> Array:
        """(R,) root mean square over sequences of (ensemble's mean - predicted mean)."""
        return np.asarray(np.sqrt(np.mean((self.outputs.mean(axis=0) - self.mean) ** 2, axis=1)))

    @property
    def expected_mean_gap(self) -> Array:
        """(R,) what chance alone makes of `mean_gap` with this many networks: predicted std / √M."""
        return np.asarray(np.sqrt(np.mean(self.std**2, axis=1) / len(self.outputs)))

    @property
    def spread(self) -> Array:
        """(R, 2) standard deviation over networks, root mean square over sequences: measured and predicted."""
        measured = np.sqrt(np.mean(self.outputs.var(axis=0, ddof=1), axis=1))
        return np.stack([measured, np.sqrt(np.mean(self.std**2, axis=1))], axis=1)

    @classmethod
    def joined(cls, parts: Sequence[EnsembleTraining]) -> EnsembleTraining:
        """One ensemble of several that differ in their networks only."""
        return replace(parts[0], outputs=np.concatenate([part.outputs for part in parts]))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "kernel": self.kernel,
            "width": self.width,
            "networks": len(self.outputs),
            "learning_rate": self.learning_rate,
            "steps": self.steps.tolist(),
            "training": self.training,
            "outputs": self.outputs.tolist(),
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "ensemble_mean": self.outputs.mean(axis=0).tolist(),
            "ensemble_std": self.outputs.std(axis=0, ddof=1).tolist(),
            "mean_gap": self.mean_gap.tolist(),
            "expected_mean_gap": self.expected_mean_gap.tolist(),
            "spread": self.spread.tolist(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Mean and two standard deviations: bands for the infinite network, bars for the ensemble."""
        ax = axes_or_new(ax)
        at = self.steps + 1
        found, spread = self.outputs.mean(axis=0), self.outputs.std(axis=0, ddof=1)
        shown = [0, self.training] if self.training < self.mean.shape[1] else [0]
        for k, colour in zip(shown, COLOURS, strict=False):
            name = "trained on" if k < self.training else "new"
            low, high = self.mean[:, k] - 2 * self.std[:, k], self.mean[:, k] + 2 * self.std[:, k]
            ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(at, self.mean[:, k], color=colour, label=f"{name}: infinite network")
            label = f"{name}: {len(self.outputs)} networks, n = {self.width}"
            ax.errorbar(at, found[:, k], 2 * spread[:, k], fmt="o", markersize=3, capsize=3, color=colour, label=label)
        ax.set(xscale="log", xlabel="steps of gradient descent + 1", ylabel="output", title=self.kernel)
        ax.legend(frameon=False)
        return ax


def ensemble_training(
    kernel: RNTK | None = None,
    width: int = 2048,
    networks: int = 20,
    steps: int = 200,
    *,
    first: int = 0,
    new: int = 3,
    random_state: int = 0,
    progress: bool | None = None,
) -> EnsembleTraining:
    """Train `networks` networks on a small ragged data set and compare mean and spread with `rntk.theory.dynamics`.

    Parameters
    ----------
    first : number of the first network; parts with other numbers make one ensemble (`EnsembleTraining.joined`).
    new : sequences beside those trained on.

    Examples
    --------
    >>> from rntk.papers.experiments import ensemble_training
    >>> found = ensemble_training(width=256, networks=6, steps=20)
    >>> bool((found.mean_gap < 4 * found.expected_mean_gap + 0.05).all())
    True
    """
    from ... import finite

    kernel = RNTK() if kernel is None else kernel
    X, y = small_task(random_state)
    X_new, _ = small_task(random_state + 1, sequences=new)
    limit = Dynamics(kernel, X, y)
    rate = limit.largest_learning_rate / 2
    marks = sorted({0, *np.unique(np.geomspace(1, steps, 12).astype(int)).tolist()})
    net = finite.network(kernel, width)
    outputs = []
    with progress_bar("training", networks, progress) as advance:
        for seed in range(first, first + networks):
            parameters = net.init(1000 * random_state + seed, X)
            run = finite.train(net, parameters, X, y, rate, steps, record_at=marks, X_test=X_new, progress=False)
            outputs.append(np.concatenate([run.outputs, run.test_outputs], axis=1)[:, :, 0].astype(np.float64))
            advance(1)
    parts = [limit.predict(each, steps=marks, learning_rate=rate, return_std=True) for each in (None, X_new)]
    mean, std = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
    return EnsembleTraining(repr(kernel), width, rate, np.array(marks), np.stack(outputs), mean, std, training=len(X))
