"""Linear RNN paper, Figure 3: what a delay costs an RNN, its convolution, and a convolution without bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linear import LinearModel, LinearRNN, ScaledConv1D, scale_factors, train
from ...plot import COLOURS, axes_or_new
from ...runtime import progress_bar
from .linear_training import teacher_task
from .record import Record

Array = NDArray[np.float64]
MODELS = ("RNN", "scaled convolution", "unscaled convolution")


@dataclass(frozen=True)
class Delay(Record):
    """Test errors by delay.

    Attributes
    ----------
    delays : (D,). width, steps, learning_rate : of training.
    errors : (D, repetitions, 3) mean squared test error over the power of the teacher's output: RNN, scaled, unscaled
        convolution. A model that puts out zero has 1 - d/T for delay d, and the noise: the first d steps are silent.
    """

    delays: tuple[int, ...]
    width: int
    steps: int
    learning_rate: float
    errors: Array

    @property
    def mean(self) -> Array:
        """(D, 3) over repetitions."""
        return np.asarray(self.errors.mean(axis=1))

    @classmethod
    def joined(cls, parts: Sequence[Delay]) -> Delay:
        """One record of several that differ in their delays only."""
        parts = sorted(parts, key=lambda part: part.delays)
        delays = tuple(late for part in parts for late in part.delays)
        return replace(parts[0], delays=delays, errors=np.concatenate([part.errors for part in parts]))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "delays": list(self.delays),
            "width": self.width,
            "steps": self.steps,
            "learning_rate": self.learning_rate,
            "models": list(MODELS),
            "errors": self.errors.tolist(),
            "mean": self.mean.tolist(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Test error against delay; returns the axes."""
        ax = axes_or_new(ax)
        spread = self.errors.std(axis=1, ddof=1) if self.errors.shape[1] > 1 else np.zeros_like(self.mean)
        for k, (name, style) in enumerate(zip(MODELS, ("o-", "s--", "^:"), strict=True)):
            error = spread[:, k] / self.errors.shape[1] ** 0.5
            ax.errorbar(self.delays, self.mean[:, k], error, fmt=style, color=COLOURS[k], capsize=3, label=name)
        ax.set(
            xlabel="delay", ylabel="test error / power of the teacher", title="long delays are hard for a linear RNN"
        )
        ax.legend(frameon=False)
        return ax


def delay(
    delays: Sequence[int] = tuple(range(9)),
    *,
    width: int = 1000,
    teacher: int = 4,
    sequences: int = 10,
    T: int = 20,
    n_x: int = 15,
    steps: int = 100,
    learning_rate: float = 1e-4,
    repetitions: int = 3,
    nu_w: float = 0.3,
    random_state: int = 0,
    progress: bool | None = None,
) -> Delay:
    """Figure 3: the output of a small linear RNN comes `delay` steps late; three models are trained equally long.

    The scaled convolution starts from the random taps of the RNN, the unscaled one from zero. Loss: ½ Σ ‖y_t - f_t‖².
    The paper doesn't say how long it trains: with a hundred times more steps even the RNN learns the delay, as it must
    with enough of them (Theorem 4.1 bounds taps by the number of steps).

    Examples
    --------
    >>> from rntk.papers.experiments import delay
    >>> found = delay((0, 10), width=100, repetitions=1, T=15, n_x=3)
    >>> bool(found.mean[1, 0] > 2 * found.mean[0, 0])
    True
    """
    errors = np.empty((len(delays), repetitions, 3))
    rho = scale_factors(T, nu_w)
    with progress_bar("delays", errors.size, progress) as advance:
        for d, late in enumerate(delays):
            for r in range(repetitions):
                rng = np.random.default_rng([random_state, r])  # the same teachers and inputs for every delay
                task = teacher_task(teacher, sequences, T, n_x, delay=late, nu_w=nu_w, random_state=rng)
                power = np.mean(task.y_test[:, late:] ** 2)
                rnn = LinearRNN.random(width, n_x, 1, nu_w=nu_w, seed=rng)
                models: tuple[LinearModel, ...] = (
                    rnn,
                    ScaledConv1D.from_taps(rnn.impulse_response(T), rho),
                    ScaledConv1D(np.ones(T), np.zeros((T, 1, n_x))),
                )
                for k, model in enumerate(models):
                    run = train(
                        model,
                        task.X,
                        task.y,
                        learning_rate,
                        steps,
                        record_at=[steps],
                        X_test=task.X_test,
                        y_test=task.y_test,
                        progress=False,
                    )
                    assert run.test_error is not None
                    errors[d, r, k] = run.test_error[-1] / power
                    advance(1)
    return Delay(tuple(delays), width, steps, learning_rate, errors)
