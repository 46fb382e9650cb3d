"""RNTK paper, Figure 3: what the deviations do to the sensitivity over time, and what section 3.4 says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ...theory import Sensitivity, sensitivity
from ..study import Claim, Finding, Mutant, Plain, Proof, Results, Study, Unit

#: The paper's reference points, and values around them for each panel; its text doesn't give those of its legends.
REFERENCE: dict[str, dict[str, float]] = {
    "relu": {"sigma_w": 2**0.5, "sigma_u": 1.0, "sigma_b": 0.0, "sigma_h": 0.0},
    "erf": {"sigma_w": 1.0, "sigma_u": 0.01, "sigma_b": 0.05, "sigma_h": 0.0},
}
PANELS: dict[str, dict[str, tuple[float, ...]]] = {
    "relu": {
        "sigma_w": (1.3, 1.38, 2**0.5, 1.45, 1.55),
        "sigma_u": (0.1, 0.5, 1.0, 2.0),
        "sigma_b": (0.0, 0.1, 0.5, 1.0),
        "sigma_h": (0.0, 0.5, 1.0, 2.0),
    },
    "erf": {
        "sigma_w": (0.8, 0.95, 1.0, 1.05, 1.5),
        "sigma_u": (0.001, 0.01, 0.1, 1.0),
        "sigma_b": (0.0, 0.05, 0.2, 1.0),
        "sigma_h": (0.0, 0.05, 0.2, 1.0),
    },
}
SYMBOLS = {"sigma_w": "σ_w", "sigma_u": "σ_u", "sigma_b": "σ_b", "sigma_h": "σ_h"}
Curves = dict[str, dict[str, dict[float, Sensitivity]]]


def read_curves(results: Results) -> Curves:
    """By activation, deviation and its value."""
    return {
        activation: {
            name: {float(value): Sensitivity.from_dict(curve) for value, curve in panel.items()}
            for name, panel in panels.items()
        }
        for activation, panels in results["curves"].curves.items()
    }


def balance(panel: dict[float, Sensitivity]) -> dict[float, float]:
    """By value of a deviation: log₂ of mean normalised sensitivity over the first fifth of the steps and over the last.

    Zero is even, positive listens to the beginning, negative to the end.
    """
    found = {}
    for value, curve in panel.items():
        part = max(1, len(curve.normalised) // 5)
        found[value] = float(np.log2(curve.normalised[:part].mean() / curve.normalised[-part:].mean()))
    return found


def uncertainty(panel: dict[float, Sensitivity]) -> float:
    """The largest standard error of a balance, at most: as if errors of all steps were one."""
    errors = []
    for curve in panel.values():
        part = max(1, len(curve.normalised) // 5)
        ends = ((curve.error[:part], curve.mean[:part]), (curve.error[-part:], curve.mean[-part:]))
        errors.append(sum(error.sum() / mean.sum() for error, mean in ends) / np.log(2))
    return float(max(errors))


def _reversed(name: str, found: Plain) -> None:
    for panels in found["curves"].values():
        for panel in panels.values():
            for curve in panel.values():
                for part in ("mean", "error", "normalised"):
                    curve[part] = curve[part][::-1]


def _exchanged(name: str, found: Plain) -> None:
    curves = found["curves"]
    for panel in PANELS["relu"]:
        values = [list(curves[kind][panel]) for kind in ("relu", "erf")]
        one, two = (list(curves[kind][panel].values()) for kind in ("relu", "erf"))
        by_rank = [dict(zip(keys, other, strict=False)) for keys, other in zip(values, (two, one), strict=True)]
        # The reference point of one takes the place of the other's.
        for kind, other, found_curves in (("relu", "erf", by_rank[0]), ("erf", "relu", by_rank[1])):
            at, there = (repr(REFERENCE[each][panel]) for each in (kind, other))
            found_curves[at] = (one if other == "relu" else two)[values[other == "erf"].index(there)]
            curves[kind][panel] = found_curves


def _without_weights(name: str, found: Plain) -> None:
    for kind, panels in found["curves"].items():
        panel = panels["sigma_w"]
        panels["sigma_w"] = dict.fromkeys(panel, panel[repr(REFERENCE[kind]["sigma_w"])])


class RntkFigure3(Study):
    """Normalised sensitivity of both activations for Gaussian sequences, every deviation varied on its own."""

    name = "rntk-figure-3"
    title = "What an infinite RNN listens to: sensitivity over time"
    source = "The Recurrent Neural Tangent Kernel, Figure 3 and section 3.4"
    minutes = (0.3, 1)
    quick = (Unit("curves", {"pairs": 500, "T": 100, "random_state": 0}, weight=8.0),)
    full = (Unit("curves", {"pairs": 10_000, "T": 100, "random_state": 0}, weight=30.0),)
    claims = (
        Claim(
            "reference",
            "both activations behave alike around their reference points: neither end dominates",
            "balance within ±1 at both reference points",
            reason="erf at its printed reference point listens to the first fifth of the steps about ten times more "
            "than to the last: gradients by the inputs, computed exactly and checked against differences",
        ),
        Claim(
            "stable", "ReLU is the more stable across time", "its coefficient of variation over time is the smaller one"
        ),
        Claim(
            "relu",
            "ReLU: a small decrease of σ_w makes it over-sensitive to the last steps, an increase to the first",
            "balance lower by more than 1 for every smaller σ_w, higher by more than 1 for every larger one",
        ),
        Claim(
            "erf",
            "erf: any change of σ_w makes it over-sensitive to the last steps",
            "balance lower by more than 1 for every other σ_w",
            reason="raising σ_w from the printed reference point makes erf saturate, and the first steps keep their "
            "weight; the paper's text gives no values for its curves, ours lie around its reference point",
        ),
        Claim(
            "sigma_w",
            "σ_w has a major influence: it moves the balance of first and last steps more than thirtyfold",
            "balance spans more than 5 over the values of σ_w",
        ),
        Claim(
            "others",
            "the other deviations change the curve more for erf than for ReLU",
            "the largest span over σ_u, σ_b, σ_h is larger for erf",
        ),
        Claim(
            "sigma_h",
            "a non-zero σ_h reduces the importance of the first steps, for ReLU and for erf",
            "balance lower than at σ_h = 0 for every larger value",
        ),
        Claim(
            "sigma_h erf",
            "a non-zero σ_h reduces the importance of the first steps more strongly for erf",
            "the balance falls by more",
        ),
    )

    mutants = (
        Mutant("steps counted from the end", ("relu", "sigma_h"), result=_reversed),
        Mutant("ReLU and erf exchanged", ("stable", "others", "sigma_h erf"), result=_exchanged),
        Mutant("σ_w not used", ("sigma_w",), result=_without_weights),
    )

    def compute(self, data: Path | None, *, pairs: int, T: int, random_state: int = 0) -> Plain:
        """`curves` by activation, deviation and its value: `sensitivity` of pairs of Gaussian sequences of T steps."""
        X, Y = np.random.default_rng(random_state).standard_normal((2, pairs, T))
        curves: Plain = {}
        for activation, panels in PANELS.items():
            for name, values in panels.items():
                for value in values:
                    settings: Plain = {**REFERENCE[activation], name: value}
                    found = sensitivity(RNTK(activation, **settings), X, Y, progress=False)
                    curves.setdefault(activation, {}).setdefault(name, {})[repr(value)] = found.to_dict()
        return {"T": T, "pairs": pairs, "curves": curves}

    def judge(self, results: Results) -> Iterator[Finding]:
        """Section 3.4, sentence by sentence; mostly by the balance of first and last steps."""
        curves = read_curves(results)
        found = {kind: {name: balance(panel) for name, panel in panels.items()} for kind, panels in curves.items()}
        relu, erf = (found[kind]["sigma_w"] for kind in ("relu", "erf"))

        def said(balances: dict[float, float], symbol: str) -> str:
            return ", ".join(f"{symbol} = {value:.4g}: {each:+.2f}" for value, each in balances.items())

        pairs = max(
            curve.n_pairs for panels in curves.values() for panel in panels.values() for curve in panel.values()
        )

        def weight(tolerance: float, *names: str) -> Proof:
            error = max(uncertainty(curves[kind][name]) for kind in curves for name in names)
            return Proof(pairs, error, tolerance, "log₂ of first over last fifth")

        by_w, by_h, by_all = weight(1.0, "sigma_w"), weight(0.0, "sigma_h"), weight(0.0, *SYMBOLS)
        even = f"log₂ first over last fifth: ReLU {relu[2**0.5]:+.2f}, erf {erf[1.0]:+.2f}"
        yield Finding("reference", abs(relu[2**0.5]) < 1 and abs(erf[1.0]) < 1, even, by_w)
        flat = {kind: panels["sigma_w"][REFERENCE[kind]["sigma_w"]].flatness for kind, panels in curves.items()}
        words = f"variation over time at the reference points: ReLU {flat['relu']:.3f}, erf {flat['erf']:.3f}"
        yield Finding("stable", flat["relu"] < flat["erf"], words, by_w._replace(tolerance=0.0))
        moves = [(value - 2**0.5, each - relu[2**0.5]) for value, each in relu.items() if value != 2**0.5]
        yield Finding("relu", all(by < -1 if change < 0 else by > 1 for change, by in moves), said(relu, "σ_w"), by_w)
        falls = all(each < erf[1.0] - 1 for value, each in erf.items() if value != 1.0)
        yield Finding("erf", falls, said(erf, "σ_w"), by_w)
        spans = {
            kind: {name: max(each.values()) - min(each.values()) for name, each in panels.items()}
            for kind, panels in found.items()
        }
        texts = (
            f"{kind}: " + ", ".join(f"{SYMBOLS[name]} spans {span:.2f}" for name, span in each.items())
            for kind, each in spans.items()
        )
        yield Finding("sigma_w", all(each["sigma_w"] > 5 for each in spans.values()), "; ".join(texts), by_w)
        others = {kind: max(span for name, span in each.items() if name != "sigma_w") for kind, each in spans.items()}
        words = f"largest span of log₂ first over last fifth: ReLU {others['relu']:.2f}, erf {others['erf']:.2f}"
        yield Finding("others", others["erf"] > others["relu"], words, by_all)
        states = {kind: panels["sigma_h"] for kind, panels in found.items()}
        lower = all(each < state[0.0] for state in states.values() for value, each in state.items() if value > 0)
        yield Finding(
            "sigma_h", lower, "; ".join(f"{kind}: {said(state, 'σ_h')}" for kind, state in states.items()), by_h
        )
        drop = {kind: state[0.0] - min(state.values()) for kind, state in states.items()}
        words = f"log₂ first over last fifth falls by up to {drop['relu']:.2f} for ReLU, {drop['erf']:.2f} for erf"
        yield Finding("sigma_h erf", drop["erf"] > drop["relu"], words, by_h)

    def figures(self, results: Results) -> dict[str, Any]:
        """All panels, ReLU above erf."""
        curves = read_curves(results)
        figure = axes_or_new().figure
        figure.clear()
        figure.set_size_inches(16, 7)
        axes = figure.subplots(2, 4, sharex=True, sharey=True)
        for row, (activation, panels) in zip(axes, curves.items(), strict=True):
            for ax, (name, panel) in zip(row, panels.items(), strict=True):
                for k, (value, curve) in enumerate(panel.items()):
                    curve.plot(ax, label=f"{SYMBOLS[name]} = {value:.4g}", colour=COLOURS[k % len(COLOURS)])
                ax.set_title(f"{activation}, {SYMBOLS[name]}")
                ax.set(xlabel="step" if row is axes[1] else "", ylabel="s(t) / max s" if ax is row[0] else "")
                ax.set_ylim(0, 1)
        return {"figure-3": figure}
