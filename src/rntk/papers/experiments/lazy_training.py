"""RNTK paper, Theorem 2: the wider the network, the less its weights and its kernel move during training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ...runtime import progress_bar
from ...theory.dynamics import Dynamics
from .record import Record

if TYPE_CHECKING:
    from ...finite.comparison import Slope

Array = NDArray[np.float64]


def small_task(random_state: int = 0, sequences: int = 6, lengths: tuple[int, int] = (3, 8)) -> tuple[list[Array], Any]:
    """A small ragged data set: Gaussian signals, and ±1 by the sign of their mean."""
    rng = np.random.default_rng(random_state)
    X = [rng.standard_normal(rng.integers(lengths[0], lengths[1] + 1)) for _ in range(sequences)]
    return X, np.array([1.0 if x.mean() > 0 else -1.0 for x in X])


@dataclass(frozen=True)
class LazyTraining(Record):
    """Drift at the end of training, for each width and network.

    Attributes
    ----------
    kernel : repr. widths : (W,). steps, learning_rate : of gradient descent on ½ Σ_i (f(x_i) - y_i)².
    parameter_drift : (W, S) largest ‖θ_s - θ_0‖/√n on the way.
    kernel_drift : (W, S) largest ‖Θ̂_s - Θ̂_0‖ (Frobenius) on the way. loss : (W, S) final over initial loss.
    """

    kernel: str
    widths: tuple[int, ...]
    steps: int
    learning_rate: float
    parameter_drift: Array
    kernel_drift: Array
    loss: Array

    @property
    def parameter_slope(self) -> Slope:
        """Slope of log drift of the weights against log width; Theorem 2 bounds it by -1/2."""
        return _fit(self.widths, self.parameter_drift)

    @property
    def kernel_slope(self) -> Slope:
        """Slope of log drift of the kernel against log width; Theorem 2 bounds it by -1/2."""
        return _fit(self.widths, self.kernel_drift)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "kernel": self.kernel,
            "widths": list(self.widths),
            "steps": self.steps,
            "learning_rate": self.learning_rate,
            "parameter_drift": self.parameter_drift.tolist(),
            "kernel_drift": self.kernel_drift.tolist(),
            "loss": self.loss.tolist(),
            "parameter_slope": self.parameter_slope._asdict(),
            "kernel_slope": self.kernel_slope._asdict(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Both drifts against width; returns the axes."""
        ax = axes_or_new(ax)
        for drift, slope, name, colour, marker in (
            (self.parameter_drift, self.parameter_slope, "weights, ‖θ - θ₀‖/√n", COLOURS[0], "o"),
            (self.kernel_drift, self.kernel_slope, "kernel, ‖Θ̂ - Θ̂₀‖", COLOURS[1], "s"),
        ):
            label = f"{name}: slope {slope.value:.2f} ± {slope.error:.2f}"
            ax.errorbar(self.widths, drift.mean(axis=1), drift.std(axis=1), color=colour, marker=marker, label=label)
        ax.set(xscale="log", yscale="log", xlabel="width", ylabel="drift during training", title=self.kernel)
        ax.legend(frameon=False)
        return ax


def lazy_training(
    kernel: RNTK | None = None,
    widths: Sequence[int] = (64, 128, 256, 512, 1024, 2048),
    seeds: int = 4,
    steps: int = 100,
    X: Any = None,
    y: Any = None,
    *,
    progress: bool | None = None,
) -> LazyTraining:
    """Train networks of each width on a small ragged data set, all with the same learning rate and steps.

    The learning rate is half of the largest stable one of the infinite network. Targets are y + f_0(X), the outputs
    before training added, so that every network has the same way to go: what differs is the width.

    Examples
    --------
    >>> from rntk.papers.experiments import lazy_training
    >>> found = lazy_training(widths=(64, 256, 1024), seeds=2, steps=20)
    >>> abs(found.parameter_slope.value + 0.5) < 0.1
    True
    """
    from ... import finite

    kernel = RNTK() if kernel is None else kernel
    if X is None:
        X, y = small_task()
    rate = Dynamics(kernel, X, y).largest_learning_rate / 2
    marks = sorted({0, *np.unique(np.geomspace(1, steps, 8).astype(int)).tolist()})
    drifts = np.empty((3, len(widths), seeds))
    with progress_bar("training", sum(width**2 for width in widths) * seeds, progress) as advance:
        for i, width in enumerate(widths):
            net = finite.network(kernel, width)
            for seed in range(seeds):
                parameters = net.init(seed, X)
                target = y + np.asarray(net(parameters, X), dtype=np.float64)[:, 0]
                run = finite.train(
                    net, parameters, X, target, rate, steps, record_at=marks, kernel_drift=True, progress=False
                )
                assert run.kernel_drift is not None
                drifts[:, i, seed] = run.parameter_drift.max(), run.kernel_drift.max(), run.loss[-1] / run.loss[0]
                advance(width**2)
    return LazyTraining(repr(kernel), tuple(map(int, widths)), steps, rate, *drifts)


def _fit(widths: Sequence[int], drift: Array) -> Slope:
    from ...finite.comparison import fit_slope

    return fit_slope(widths, drift)
