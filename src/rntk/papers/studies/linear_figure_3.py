"""Linear RNN paper, Figure 3: what a delay costs an RNN, its convolution, and a convolution without bias."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linear import LinearModel, LinearRNN, ScaledConv1D, scale_factors, train
from ...plot import COLOURS, axes_or_new
from ..data.made import teacher_task
from ..study import FIRST, Claim, Criterion, Finding, Mutant, Plain, Results, Study, Unit, mean_of
from .drawing import finished

MODELS = ("RNN", "scaled convolution", "unscaled from zero", "unscaled from taps")


def _units(delays: Iterable[int], weight: float, **sizes: int) -> tuple[Unit, ...]:
    return tuple(Unit(f"delay-{late}", {"delays": [late], **sizes, "random_state": 0}, weight) for late in delays)


def _by_delay(results: Results) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Delays (D,), ascending, and errors (D, repetitions, 4)."""
    parts = sorted(results.all(), key=lambda part: int(part.delays[0]))
    return np.concatenate([part.delays for part in parts]), np.concatenate([part.errors for part in parts])


def _exchanged(name: str, found: Plain) -> None:
    found["errors"] = np.roll(found["errors"], 2, axis=-1).tolist()


def _wrong_scale(name: str, found: Plain) -> None:
    errors = np.array(found["errors"])
    errors[..., 1] = errors[..., 2]
    found["errors"] = errors.tolist()


class LinearFigure3(Study):
    """The output of a small linear RNN comes some steps late; three models are trained equally long."""

    name = "linear-figure-3"
    title = "What a delay costs: the bias towards short memory"
    source = "Implicit Bias of Linear RNNs, Figure 3"
    extras = ("finite",)
    minutes = (0.7, 8)
    quick = _units((0, 2, 4, 6), 6.0, width=100, repetitions=10)
    full = _units((*range(9), 10, 12, 14), 20.0, width=400, repetitions=10)
    claims = (
        Claim(
            "alike",
            "RNN and scaled convolution have the same test error at every delay",
            "within a tenth of the teacher's power",
            "they match",
        ),
        Claim(
            "rises",
            "the test error of RNN and scaled convolution rises with the delay",
            "more than threefold, the largest not at delays 0 or 1; falls by more than two standard errors are told",
            "rises",
            since="2026-11-18",
            history=(
                Criterion(
                    "more than threefold, the largest not at delays 0 or 1",
                    FIRST,
                    "it looked at delays up to 8 only, and was silent on the fall beyond",
                ),
            ),
        ),
        Claim(
            "stays",
            "that of the unscaled convolution stays almost the same",
            "largest below twice the smallest, for a start from zero and for one from the RNN's taps",
            "almost the same",
            since="2026-11-18",
            before=True,
            history=(Criterion("largest below twice the smallest", FIRST, "it looked at a start from zero only"),),
        ),
    )

    mutants = (
        Mutant("scaled and unscaled models exchanged", ("rises", "stays"), result=_exchanged),
        Mutant("all ρ equal", ("alike",), result=_wrong_scale),
    )

    def compute(
        self, data: Path | None, *, delays: list[int], width: int, repetitions: int, n_x: int = 15, random_state: int
    ) -> Plain:
        """`errors` (D, repetitions, 4): mean squared test error of `MODELS` over the power of the teacher's output.

        A model that puts out zero has 1 - d/T for delay d, and the noise: the first d steps are silent. The scaled
        convolution starts from the random taps of the RNN, the unscaled one from zero or from there too. Loss:
        ½ Σ ‖y_t - f_t‖². The paper doesn't say how long it trains: with a hundred times more steps even the RNN learns
        the delay, as it must with enough of them (Theorem 4.1 bounds taps by the number of steps).
        """
        T, steps, learning_rate, nu_w = 20, 100, 1e-4, 0.3
        errors = np.empty((len(delays), repetitions, len(MODELS)))
        for d, late in enumerate(delays):
            for r in range(repetitions):
                rng = np.random.default_rng([random_state, r])  # the same teachers and inputs for every delay
                task = teacher_task(4, 10, T, n_x, delay=late, nu_w=nu_w, random_state=rng)
                power = np.mean(task.y_test[:, late:] ** 2)
                rnn = LinearRNN.random(width, n_x, 1, nu_w=nu_w, seed=rng)
                models: tuple[LinearModel, ...] = (
                    rnn,
                    ScaledConv1D.from_taps(rnn.impulse_response(T), scale_factors(T, nu_w)),
                    ScaledConv1D(np.ones(T), np.zeros((T, 1, n_x))),
                    ScaledConv1D.from_taps(rnn.impulse_response(T)),
                )
                test: Plain = {"X_test": task.X_test, "y_test": task.y_test}
                for k, model in enumerate(models):
                    run = train(model, task.X, task.y, learning_rate, steps, record_at=[steps], **test, progress=False)
                    assert run.test_error is not None
                    errors[d, r, k] = run.test_error[-1] / power
        settings = {"delays": delays, "width": width, "steps": steps, "learning_rate": learning_rate}
        return {**settings, "models": MODELS, "errors": errors}

    def judge(self, results: Results) -> Iterator[Finding]:
        """Mean errors by delay, beside each other and beside themselves."""
        delays, errors = _by_delay(results)
        mean = errors.mean(axis=1).T
        said = [", ".join(f"{late}: {error:.2f}" for late, error in zip(delays, row, strict=True)) for row in mean]
        gaps, weight = mean_of((errors[:, :, 0] - errors[:, :, 1]).T, "difference of errors, over power", 0.1)
        gap = float(np.abs(gaps).max())
        ours = f"mean test errors differ by at most {gap:.3f} of the teacher's power"
        yield Finding("alike", gap < 0.1, ours, weight)
        rnn, top = mean[0], int(np.argmax(mean[0]))
        _, weight = mean_of(errors[:, :, 0].T, "error over power", float(max(rnn.max() - 3 * rnn[0], 0)))
        falls, _ = mean_of(errors[-1, :, 0] - errors[top, :, 0], "")
        sure = float(falls) < -2 * float(np.std(errors[-1, :, 0] - errors[top, :, 0], ddof=1)) / errors.shape[1] ** 0.5
        until = f"up to delay {delays[top]}; beyond, the error falls again, to {rnn[-1]:.2f}" if sure else ""
        rises = bool(rnn.max() > 3 * rnn[0] and top > 1)
        yield Finding("rises", rises, f"RNN by delay: {said[0]}", weight, condition=until)
        spans = {name: float(row.max() / row.min()) for name, row in zip(MODELS[2:], mean[2:], strict=True)}
        kept = [name for name, span in spans.items() if span < 2]
        told = "; ".join(f"{name} by delay: {row}" for name, row in zip(MODELS[2:], said[2:], strict=True))
        _, weight = mean_of(np.log(errors[:, :, 2:]).swapaxes(0, 1), "log of the error", float(np.log(2)))
        lost = [name for name in spans if name not in kept]
        only = f"for the convolution {', '.join(kept)}, not for that {', '.join(lost)}" if lost else ""
        yield Finding("stays", bool(kept), told, weight, condition=only)

    def figures(self, results: Results) -> dict[str, Any]:
        """Test error against delay."""
        delays, errors = _by_delay(results)
        ax = axes_or_new()
        mean, count = errors.mean(axis=1), errors.shape[1]
        spread = errors.std(axis=1, ddof=1) if count > 1 else np.zeros_like(mean)
        for k, (name, style) in enumerate(zip(MODELS, ("o-", "s--", "^:", "v-."), strict=True)):
            error = spread[:, k] / count**0.5
            ax.errorbar(delays, mean[:, k], error, fmt=style, color=COLOURS[k], capsize=3, label=name)
        title = "long delays are hard for a linear RNN"
        return {"figure-3": finished(ax, "delay", "test error / power of the teacher", title)}
