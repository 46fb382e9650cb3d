"""Linear RNN paper, Theorem 4.1: how fast gradient descent can grow the tap of each lag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linear import ConvolutionDescent, LinearRNN, ScaledConv1D, scale_factors, train
from ...plot import COLOURS, axes_or_new
from ..data.made import teacher_task
from ..study import Claim, Finding, Plain, Results, Study, Unit
from .drawing import finished


def _bound(found: SimpleNamespace) -> NDArray[np.float64]:
    """(R, T): B₂ ρ_j η s at each step and lag."""
    return np.asarray(found.B_2 * found.learning_rate * np.outer(found.steps, found.rho))


class LinearTheorem41(Study):
    """Movement of taps ‖L_j^s - L_j^0‖ beside its bound B_2 ρ_j η s, on a task with a delay."""

    name = "linear-theorem-4.1"
    title = "How fast gradient descent can grow the tap of each lag"
    source = "Implicit Bias of Linear RNNs, Theorem 4.1"
    extras = ("finite",)
    minutes = (0.2, 0.4)
    quick = (Unit("training", {"width": 300, "random_state": 0}, weight=5.0),)
    full = (Unit("training", {"width": 1000, "random_state": 0}, weight=20.0),)
    claims = (
        Claim(
            "bound",
            "taps of the infinite network move by at most B₂ ρ_j η s in s steps (with B₂ = ‖A‖‖b‖, see errata)",
            "never above the bound, for the convolution",
            "bound holds as n → ∞",
        ),
    )

    def compute(
        self,
        data: Path | None,
        *,
        width: int,
        sequences: int = 50,
        T: int = 20,
        steps: int = 100,
        random_state: int = 0,
    ) -> Plain:
        """`convolution` and `rnn` (R, T), movement of their taps at 0.99 of the largest learning rate that is allowed.

        `B_1` and `B_2` are the theorem's constants for these data, `printed_constant` is ‖Aᵀb‖, printed for B_2.
        """
        rng = np.random.default_rng(random_state)
        nu_w = 0.3
        task = teacher_task(4, sequences, T, delay=5, nu_w=nu_w, random_state=rng)
        rnn = LinearRNN.random(width, nu_w=nu_w, seed=rng)
        start = rnn.impulse_response(T)
        twin = ScaledConv1D.from_taps(start, scale_factors(T, nu_w))
        descent = ConvolutionDescent.of(twin, task.X, task.y)
        B_1, B_2 = descent.bounds()
        rate, marks = 0.99 * B_1, list(range(steps + 1))
        run = train(rnn, task.X, task.y, rate, steps, record_at=marks, progress=False)
        convolution, network = (
            np.linalg.norm(taps - start, axis=(2, 3)) for taps in (descent.taps(marks, rate), run.taps)
        )
        constants = {"B_1": B_1, "B_2": B_2, "printed_constant": descent.gradient, "learning_rate": rate}
        moved = {"convolution": convolution, "rnn": network}
        return {"steps": marks, "rho": twin.rho, "width": width, **constants, **moved}

    def judge(self, results: Results) -> Iterator[Finding]:
        """Largest movement over bound of each lag.

        At most 1 for the convolution, and for the RNN as n → ∞. A finite RNN exceeds it at lags where ρ_j n is small:
        taps are coupled by O(1/√n), so the ones that learn carry along those that hardly can.
        """
        found = results["training"]
        bound = _bound(found)[1:]
        convolution, rnn = ((moved[1:] / bound).max(axis=0) for moved in (found.convolution, found.rnn))
        beyond = np.flatnonzero(rnn > 1)
        said = f"; the RNN of width {found.width} exceeds it from lag {beyond[0]} on" if len(beyond) else ""
        ours = f"the convolution's taps move by up to {convolution.max():.2f} of the bound{said}"
        yield Finding("bound", bool(convolution.max() <= 1), ours)

    def figures(self, results: Results) -> dict[str, Any]:
        """Movement by lag at the last step, with the envelope."""
        found = results["training"]
        ax = axes_or_new()
        lags = np.arange(len(found.rho))
        ax.semilogy(lags, _bound(found)[-1], "-", color=COLOURS[2], label="bound B₂ ρ_j η s")
        ax.semilogy(lags, found.convolution[-1], "o", color=COLOURS[0], label="scaled convolution")
        ax.semilogy(lags, found.rnn[-1], "x", color=COLOURS[1], label=f"RNN, n = {found.width}")
        figure = finished(ax, "lag j", "‖L_j - L_j at the start‖", f"after {found.steps[-1]} steps")
        return {"theorem-4.1": figure}
