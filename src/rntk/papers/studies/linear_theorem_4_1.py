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


def _units(seeds: int, weight: float, *widths: int) -> tuple[Unit, ...]:
    return tuple(Unit(f"width-{n}", {"width": n, "seeds": seeds, "random_state": 0}, weight) for n in widths)


class LinearTheorem41(Study):
    """Movement of taps ‖L_j^s - L_j^0‖ beside its bound B_2 ρ_j η s, on a task with a delay."""

    name = "linear-theorem-4.1"
    title = "How fast gradient descent can grow the tap of each lag"
    source = "Implicit Bias of Linear RNNs, Theorem 4.1"
    extras = ("finite",)
    minutes = (0.2, 0.4)
    quick = _units(10, 2.0, 100, 400)
    full = _units(10, 30.0, 100, 200, 400, 1000, 2000, 4000)
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
        seeds: int,
        sequences: int = 20,
        T: int = 20,
        steps: int = 20,
        random_state: int = 0,
    ) -> Plain:
        """`convolution` and `rnn` (S, T), the largest movement of their taps over the bound at any step.

        Constants are the paper's, which don't know ν_W: B_1 = 1/(ρmax ‖A‖²) with ρmax of (22); B_2 = ‖A‖‖b‖ in place of
        its ‖Aᵀb‖ (see errata). All networks learn from one task, at 0.99 of B_1; `rate`, `B_2` (S,).
        """
        nu_w = 0.3
        task = teacher_task(4, sequences, T, delay=5, nu_w=nu_w, random_state=random_state)
        rho_max = T + 2.0  # ν_C (T ν_F + 1) + ν_F for ν_C = ν_F = 1
        marks = list(range(steps + 1))
        shares, constants = np.empty((2, seeds, T)), np.empty((2, seeds))
        for s in range(seeds):
            rnn = LinearRNN.random(width, nu_w=nu_w, seed=np.random.default_rng([random_state, s, width]))
            start = rnn.impulse_response(T)
            twin = ScaledConv1D.from_taps(start, scale_factors(T, nu_w))
            descent = ConvolutionDescent.of(twin, task.X, task.y)
            rate, B_2 = 0.99 / (rho_max * descent.norm**2), descent.bounds()[1]
            run = train(rnn, task.X, task.y, rate, steps, record_at=marks, progress=False)
            bound = B_2 * rate * np.outer(marks, twin.rho)
            for k, taps in enumerate((descent.taps(marks, rate), run.taps)):
                moved = np.linalg.norm(taps - start, axis=(2, 3))
                shares[k, s] = (moved[1:] / bound[1:]).max(axis=0)
            constants[:, s] = rate, B_2
        found = {"convolution": shares[0], "rnn": shares[1], "rate": constants[0], "B_2": constants[1]}
        return {"width": width, "steps": steps, "rho": scale_factors(T, nu_w), **found}

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
