"""Linear RNN paper, Theorem 4.1: how fast gradient descent can grow the tap of each lag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linear import ConvolutionDescent, LinearRNN, ScaledConv1D, scale_factors, train
from ...plot import COLOURS, axes_or_new
from .linear_training import teacher_task
from .record import Record

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TapGrowth(Record):
    """Movement of taps ‖L_j^s - L_j^0‖ beside its bound B_2 ρ_j η s.

    Attributes
    ----------
    steps : (R,). rho : (T,). learning_rate : η. B_1, B_2 : constants of the theorem for these data.
    printed_constant : ‖Aᵀb‖, which the paper prints for B_2. width : of the RNN.
    convolution, rnn : (R, T) movement of the taps.
    """

    steps: tuple[int, ...]
    rho: Array
    learning_rate: float
    B_1: float
    B_2: float
    printed_constant: float
    width: int
    convolution: Array
    rnn: Array

    @property
    def bound(self) -> Array:
        """(R, T)."""
        return np.asarray(self.B_2 * self.learning_rate * np.outer(self.steps, self.rho))

    @property
    def share(self) -> Array:
        """(2, T) largest movement over bound of each lag, for convolution and RNN.

        At most 1 for the convolution, and for the RNN as n → ∞. A finite RNN exceeds it at lags where ρ_j n is small:
        taps are coupled by O(1/√n), so the ones that learn carry along those that hardly can.
        """
        return np.stack([(moved[1:] / self.bound[1:]).max(axis=0) for moved in (self.convolution, self.rnn)])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "steps": list(self.steps),
            "rho": self.rho.tolist(),
            "learning_rate": self.learning_rate,
            "B_1": self.B_1,
            "B_2": self.B_2,
            "printed_constant": self.printed_constant,
            "width": self.width,
            "convolution": self.convolution.tolist(),
            "rnn": self.rnn.tolist(),
            "share": self.share.tolist(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Movement by lag at the last step, with the envelope; returns the axes."""
        ax = axes_or_new(ax)
        lags = np.arange(len(self.rho))
        ax.semilogy(lags, self.bound[-1], "-", color=COLOURS[2], label="bound B₂ ρ_j η s")
        ax.semilogy(lags, self.convolution[-1], "o", color=COLOURS[0], label="scaled convolution")
        ax.semilogy(lags, self.rnn[-1], "x", color=COLOURS[1], label=f"RNN, n = {self.width}")
        ax.set(xlabel="lag j", ylabel="‖L_j - L_j at the start‖", title=f"after {self.steps[-1]} steps")
        ax.legend(frameon=False)
        return ax


def tap_growth(
    width: int = 1000,
    *,
    teacher: int = 4,
    sequences: int = 50,
    T: int = 20,
    delay: int = 5,
    steps: int = 100,
    nu_w: float = 0.3,
    random_state: int = 0,
    progress: bool | None = None,
) -> TapGrowth:
    """Theorem 4.1 on a task with a delay, at 0.99 of the largest learning rate it allows.

    Examples
    --------
    >>> from rntk.papers.experiments import tap_growth
    >>> found = tap_growth(width=100, sequences=5, T=8, steps=20)
    >>> bool(found.share[0].max() <= 1)
    True
    """
    rng = np.random.default_rng(random_state)
    task = teacher_task(teacher, sequences, T, delay=delay, nu_w=nu_w, random_state=rng)
    rnn = LinearRNN.random(width, nu_w=nu_w, seed=rng)
    start = rnn.impulse_response(T)
    twin = ScaledConv1D.from_taps(start, scale_factors(T, nu_w))
    descent = ConvolutionDescent.of(twin, task.X, task.y)
    B_1, B_2 = descent.bounds()
    rate, marks = 0.99 * B_1, list(range(steps + 1))
    run = train(rnn, task.X, task.y, rate, steps, record_at=marks, progress=progress)
    moved = [np.linalg.norm(taps - start, axis=(2, 3)) for taps in (descent.taps(marks, rate), run.taps)]
    return TapGrowth(tuple(marks), twin.rho, rate, B_1, B_2, descent.gradient, width, *moved)
