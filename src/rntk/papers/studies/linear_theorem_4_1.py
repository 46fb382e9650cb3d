"""Linear RNN paper, Theorem 4.1: how fast gradient descent can grow the tap of each lag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...linear import ConvolutionDescent, LinearRNN, ScaledConv1D, scale_factors, train
from ...plot import COLOURS, axes_or_new
from ..data.made import teacher_task
from ..study import FIRST, Claim, Criterion, Finding, Mutant, Plain, Proof, Results, Study, Unit, mean_of
from .drawing import finished


def _units(seeds: int, weight: float, *widths: int) -> tuple[Unit, ...]:
    return tuple(Unit(f"width-{n}", {"width": n, "seeds": seeds, "random_state": 0}, weight) for n in widths)


def _without_data(bounds: Any) -> Any:
    """B₂ without the norm of the data."""
    return lambda descent: (bounds(descent)[0], descent.residual)


def _as_if_narrow(name: str, found: Plain) -> None:
    found["rnn"] = (10.0 + np.random.default_rng(int(found["width"])).random(np.shape(found["rnn"]))).tolist()


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
            "never above the bound, for the convolution and any of the starts",
            "bound holds as n → ∞",
            since="2026-11-18",
            before=True,
            history=(
                Criterion(
                    "never above the bound, for the convolution",
                    FIRST,
                    "one start, and constants that know ν_W, which the paper's don't",
                ),
            ),
        ),
        Claim(
            "rnn",
            "taps of RNNs keep to it as n → ∞",
            "at every lag where RNNs of the smallest width exceed it, the log of the excess falls with that of n, by "
            "more than three standard errors",
            "convergence in probability",
            since="2026-11-18",
            before=True,
        ),
    )

    mutants = (
        Mutant(
            "B₂ = ‖b‖",
            ("bound",),
            "rntk.linear:ConvolutionDescent.bounds",
            _without_data,
            settings={"seeds": 10, "T": 12, "steps": 10},
            only=("width-100",),
        ),
        Mutant("an excess that doesn't depend on the width", ("rnn",), result=_as_if_narrow),
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
        from ...finite.comparison import fit_slope

        parts = _by_width(results)
        wide = parts[-1]
        shares, weight = mean_of(np.concatenate([part.convolution for part in parts]), "movement over bound")
        largest = max(float(part.convolution.max()) for part in parts)
        excess = np.log([part.rnn for part in parts])  # (widths, seeds, lags)
        beyond = np.flatnonzero(excess[-1].mean(axis=0) > 0)
        said = f"; the RNN of width {wide.width} exceeds it from lag {beyond[0]} on" if len(beyond) else ""
        ours = f"the convolution's taps move by up to {largest:.2f} of the bound{said}"
        yield Finding("bound", largest <= 1, ours, weight._replace(tolerance=float(1 - shares.max())))
        if len(parts) < 2:
            return
        lags = np.flatnonzero(excess[0].mean(axis=0) > 0)
        slopes = [fit_slope([part.width for part in parts], np.exp(excess[:, :, lag])) for lag in lags]
        mean = np.exp(excess.mean(axis=1))
        course = ", ".join(
            f"lag {lag}: {' '.join(f'{value:.3g}' for value in mean[:, lag])}"
            for lag in lags[:: max(1, len(lags) // 4)]
        )
        widths = " ".join(str(part.width) for part in parts)
        steepness = (
            f", slopes {min(s.value for s in slopes):.2f} to {max(s.value for s in slopes):.2f}" if slopes else ""
        )
        error = max((slope.error for slope in slopes), default=0.0)
        holds = all(slope.value < -3 * slope.error for slope in slopes)
        limited = (
            f"in the limit; at n = {wide.width} it holds up to lag {beyond[0] - 1}, and lag {len(wide.rho) - 1} is "
            f"{mean[-1, -1]:.3g} times beyond it"
            if len(beyond)
            else ""
        )
        weight = Proof(excess.shape[1], error, 3 * error, "slope of the log of the excess")
        yield Finding("rnn", holds, f"excess at n = {widths}: {course}{steepness}", weight, condition=limited)

    def figures(self, results: Results) -> dict[str, Any]:
        """Movement over bound by lag, for the convolution and for RNNs of each width."""
        parts = _by_width(results)
        ax = axes_or_new()
        lags = np.arange(len(parts[0].rho))
        ax.semilogy(lags, parts[-1].convolution.max(axis=0), "k--", label="scaled convolution")
        for k, part in enumerate(parts):
            mean = np.exp(np.log(part.rnn).mean(axis=0))
            ax.semilogy(lags, mean, "o-", markersize=3, color=COLOURS[k % len(COLOURS)], label=f"RNN, n = {part.width}")
        ax.axhline(1, color="grey", linewidth=0.8)
        return {"theorem-4.1": finished(ax, "lag j", "largest movement over bound", f"{parts[0].steps} steps")}


def _by_width(results: Results) -> list[SimpleNamespace]:
    return sorted(results.all(), key=lambda part: int(part.width))
