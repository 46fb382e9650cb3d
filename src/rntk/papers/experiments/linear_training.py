"""Linear RNN paper, Figures 1, 2 and ICML 4: an RNN and its convolution, trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...linear import LinearModel, LinearRNN, ScaledConv1D, scale_factors, train
from ...plot import COLOURS, axes_or_new
from .record import Record

Array = NDArray[np.float64]


class Task(NamedTuple):
    """Sequences and targets, (N, T, n_x) and (N, T, n_y), for training and test."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def teacher_task(
    units: int = 4,
    sequences: int = 50,
    T: int = 10,
    n_x: int = 1,
    *,
    delay: int = 0,
    snr_db: float = 20.0,
    nu_w: float = 0.3,
    random_state: int | np.random.Generator = 0,
) -> Task:
    """White noise through a random linear RNN of a few units, its output delayed and noise added to it.

    Parameters
    ----------
    delay : steps by which the output is late; before, it is zero.
    snr_db : power of the output over that of the noise, in decibels.
    """
    rng = np.random.default_rng(random_state)
    teacher = LinearRNN.random(units, n_x, 1, nu_w=nu_w, seed=rng)
    X = rng.standard_normal((2 * sequences, T, n_x))
    clean = np.zeros((2 * sequences, T, 1))
    if delay < T:
        clean[:, delay:] = teacher(X)[:, : T - delay]
    noise = np.sqrt(np.mean(teacher(X) ** 2) * 10 ** (-snr_db / 10))
    y = clean + noise * rng.standard_normal(clean.shape)
    return Task(X[:sequences], y[:sequences], X[sequences:], y[sequences:])


@dataclass(frozen=True)
class LinearTrainingCurves(Record):
    """Mean squared errors of RNNs and of the convolutions that start where they do.

    Attributes
    ----------
    widths : (W,). steps : (R,). learning_rate, loss : of gradient descent.
    rnn, convolution : (W, R) on the training data. rnn_test, convolution_test : (W, R).
    """

    widths: tuple[int, ...]
    steps: tuple[int, ...]
    learning_rate: float
    loss: str
    rnn: Array
    convolution: Array
    rnn_test: Array
    convolution_test: Array

    @property
    def largest_gap(self) -> Array:
        """(W, 2) largest difference of the two curves, training and test, over the largest value of the curve."""
        pairs = ((self.rnn, self.convolution), (self.rnn_test, self.convolution_test))
        return np.stack([np.abs(a - b).max(axis=1) / b.max(axis=1) for a, b in pairs], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        curves = {name: getattr(self, name).tolist() for name in ("rnn", "convolution", "rnn_test", "convolution_test")}
        return {
            "widths": list(self.widths),
            "steps": list(self.steps),
            "learning_rate": self.learning_rate,
            "loss": self.loss,
            **curves,
            "largest_gap": self.largest_gap.tolist(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Errors against steps: RNNs solid, convolutions dashed; test curves for a single width. Returns the axes."""
        ax = axes_or_new(ax)
        for w, width in enumerate(self.widths):
            colour = COLOURS[w % len(COLOURS)]
            ax.plot(self.steps, self.rnn[w], color=colour, label=f"RNN, n = {width}, training")
            ax.plot(self.steps, self.convolution[w], "--", color=colour, label=f"its convolution (n = {width})")
        if len(self.widths) == 1:
            ax.plot(self.steps, self.rnn_test[0], color=COLOURS[1], label="RNN, test")
            ax.plot(self.steps, self.convolution_test[0], "--", color=COLOURS[1], label="its convolution, test")
        ax.set(xlabel="gradient steps", ylabel="mean squared error", yscale="log", title="linear RNN and convolution")
        ax.legend(frameon=False)
        return ax


def linear_training(
    widths: Sequence[int] = (1000,),
    *,
    teacher: int = 4,
    sequences: int = 50,
    T: int = 10,
    steps: int = 200,
    learning_rate: float = 1e-4,
    loss: str = "sum",
    nu_w: float = 0.3,
    random_state: int = 0,
    progress: bool | None = None,
) -> LinearTrainingCurves:
    """Figures 1 and 2 (defaults), and ICML Figure 4: `linear_training((10, 40, 200), teacher=20)`.

    Parameters
    ----------
    widths : of the students. teacher : units of the network that makes the data.
    loss : what the learning rate belongs to, "sum" or "mean" (`rntk.linear.train`). The paper says mean squared error
        and 1e-4; its Figure 2, where ten steps show a difference, fits the sum.

    Examples
    --------
    >>> from rntk.papers.experiments import linear_training
    >>> found = linear_training(widths=(20, 500), steps=40, sequences=10)
    >>> bool(found.largest_gap[1].max() < found.largest_gap[0].max())
    True
    """
    rng = np.random.default_rng(random_state)
    task = teacher_task(teacher, sequences, T, nu_w=nu_w, random_state=rng)
    rho = scale_factors(T, nu_w)
    marks = sorted({0, *range(min(steps, 10) + 1), *np.linspace(0, steps, 60).round().astype(int).tolist()})
    curves = np.empty((len(widths), 2, 2, len(marks)))
    for w, width in enumerate(widths):
        rnn = LinearRNN.random(width, nu_w=nu_w, seed=rng)
        twin = ScaledConv1D.from_taps(rnn.impulse_response(T), rho)
        models: tuple[LinearModel, ...] = (rnn, twin)
        for m, model in enumerate(models):
            run = train(
                model,
                task.X,
                task.y,
                learning_rate,
                steps,
                loss=loss,
                record_at=marks,
                X_test=task.X_test,
                y_test=task.y_test,
                progress=progress,
            )
            curves[w, m] = run.error, run.test_error
    rnn_curves, twin_curves = curves[:, 0], curves[:, 1]
    return LinearTrainingCurves(
        tuple(widths),
        tuple(marks),
        learning_rate,
        loss,
        rnn_curves[:, 0],
        twin_curves[:, 0],
        rnn_curves[:, 1],
        twin_curves[:, 1],
    )
