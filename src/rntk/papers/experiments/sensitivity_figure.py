"""RNTK paper, Figure 3: what the deviations do to the sensitivity over time, and what section 3.4 says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import RNTK
from ...plot import COLOURS, axes_or_new
from ...runtime import progress_bar
from ...theory import Sensitivity, sensitivity
from .record import Check

Array = NDArray[np.float64]

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

#: What section 3.4 says of the figure, in our words.
CLAIMS = {
    "reference": "both activations behave alike around their reference points: neither end dominates",
    "stable": "ReLU is the more stable across time",
    "relu": "ReLU: a small decrease of σ_w makes it over-sensitive to the last steps, an increase to the first",
    "erf": "erf: any change of σ_w makes it over-sensitive to the last steps",
    "sigma_w": "σ_w has a major influence: it moves the balance of first and last steps more than thirtyfold",
    "others": "the other deviations change the curve more for erf than for ReLU",
    "sigma_h": "a non-zero σ_h reduces the importance of the first steps, for ReLU and for erf",
    "sigma_h erf": "a non-zero σ_h reduces the importance of the first steps more strongly for erf",
}


@dataclass(frozen=True)
class SensitivityFigure:
    """Normalised sensitivity curves of both activations, one panel for each deviation.

    Attributes
    ----------
    T, pairs : length of the Gaussian sequences, and how many pairs were averaged.
    curves : by activation, deviation and its value: `Sensitivity`.
    """

    T: int
    pairs: int
    curves: dict[str, dict[str, dict[float, Sensitivity]]]

    def balance(self, activation: str, name: str) -> dict[float, float]:
        """By value of a deviation: log₂ of mean normalised sensitivity over the first fifth and over the last.

        Zero is even, positive listens to the beginning, negative to the end.
        """
        part = max(1, self.T // 5)
        panel = self.curves[activation][name]
        return {
            value: float(np.log2(curve.normalised[:part].mean() / curve.normalised[-part:].mean()))
            for value, curve in panel.items()
        }

    @property
    def checks(self) -> list[Check]:
        """What section 3.4 claims, sentence by sentence."""
        return _checks(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "T": self.T,
            "pairs": self.pairs,
            "curves": {
                activation: {
                    name: {repr(value): curve.to_dict() for value, curve in panel.items()}
                    for name, panel in panels.items()
                }
                for activation, panels in self.curves.items()
            },
            "checks": [{"claim": c.claim, "holds": c.holds, "evidence": c.evidence} for c in self.checks],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SensitivityFigure:
        """The figure whose `to_dict` gave `values`."""
        curves = {
            activation: {
                name: {float(value): Sensitivity.from_dict(curve) for value, curve in panel.items()}
                for name, panel in panels.items()
            }
            for activation, panels in values["curves"].items()
        }
        return cls(values["T"], values["pairs"], curves)

    def plot(self, ax: Any = None, activation: str = "relu", name: str = "sigma_w") -> Any:
        """One panel; returns the axes. `plot_all` draws the whole figure."""
        ax = axes_or_new(ax)
        for k, (value, curve) in enumerate(self.curves[activation][name].items()):
            curve.plot(ax, label=f"{SYMBOLS[name]} = {value:.4g}", colour=COLOURS[k % len(COLOURS)])
        ax.set_title(f"{activation}, {SYMBOLS[name]}")
        return ax

    def plot_all(self) -> Any:
        """All panels, ReLU above erf; returns the figure."""
        first = axes_or_new()
        figure = first.figure
        first.remove()
        figure.set_size_inches(16, 7)
        axes = figure.subplots(2, 4, sharex=True, sharey=True)
        for row, (activation, panels) in zip(axes, self.curves.items(), strict=True):
            for ax, name in zip(row, panels, strict=True):
                self.plot(ax, activation, name)
                ax.set(xlabel="step" if row is axes[1] else "", ylabel="s(t) / max s" if ax is row[0] else "")
                ax.set_ylim(0, 1)
        return figure


def sensitivity_figure(
    pairs: int = 10_000, T: int = 100, *, random_state: int = 0, progress: bool | None = None
) -> SensitivityFigure:
    """Figure 3: Gaussian sequences of length T, `pairs` pairs, both activations, every deviation varied on its own.

    Examples
    --------
    >>> from rntk.papers.experiments import sensitivity_figure
    >>> found = sensitivity_figure(pairs=50, T=30)
    >>> balance = found.balance("relu", "sigma_w")
    >>> balance[1.3] < balance[2**0.5] < balance[1.55]
    True
    """
    rng = np.random.default_rng(random_state)
    X, Y = rng.standard_normal((2, pairs, T))
    total = sum(len(values) for panels in PANELS.values() for values in panels.values())
    curves: dict[str, dict[str, dict[float, Sensitivity]]] = {}
    with progress_bar("sensitivity", total, progress) as advance:
        for activation, panels in PANELS.items():
            curves[activation] = {}
            for name, values in panels.items():
                curves[activation][name] = {}
                for value in values:
                    settings: dict[str, Any] = {**REFERENCE[activation], name: value}
                    kernel = RNTK(activation, **settings)
                    curves[activation][name][value] = sensitivity(kernel, X, Y, progress=False)
                    advance(1)
    return SensitivityFigure(T, pairs, curves)


def _checks(figure: SensitivityFigure) -> list[Check]:
    def said(balance: dict[float, float], symbol: str) -> str:
        return ", ".join(f"{symbol} = {value:.4g}: {found:+.2f}" for value, found in balance.items())

    def flat(activation: str) -> float:
        reference = REFERENCE[activation]["sigma_w"]
        return figure.curves[activation]["sigma_w"][reference].flatness

    found: list[Check] = []
    relu, erf = (figure.balance(activation, "sigma_w") for activation in ("relu", "erf"))
    low, high = [v for v in relu if v < 1.4], [v for v in relu if v > 1.42]
    found.append(
        Check(
            CLAIMS["reference"],
            abs(relu[2**0.5]) < 1 and abs(erf[1.0]) < 1,
            f"log₂ first over last fifth: ReLU {relu[2**0.5]:+.2f}, erf {erf[1.0]:+.2f}",
        )
    )
    found.append(
        Check(
            CLAIMS["stable"],
            flat("relu") < flat("erf"),
            f"variation over time at the reference points: ReLU {flat('relu'):.3f}, erf {flat('erf'):.3f}",
        )
    )
    found.append(
        Check(
            CLAIMS["relu"],
            all(relu[v] < relu[2**0.5] - 1 for v in low) and all(relu[v] > relu[2**0.5] + 1 for v in high),
            said(relu, "σ_w"),
        )
    )
    found.append(
        Check(
            CLAIMS["erf"],
            all(value < erf[1.0] - 1 for v, value in erf.items() if v != 1.0),
            said(erf, "σ_w"),
        )
    )
    spans = {}
    for activation in ("relu", "erf"):
        values = [figure.balance(activation, name) for name in PANELS[activation]]
        spans[activation] = [max(each.values()) - min(each.values()) for each in values]
    others = {activation: max(span[1:]) for activation, span in spans.items()}
    found.append(
        Check(
            CLAIMS["sigma_w"],
            all(span[0] > 5 for span in spans.values()),
            "; ".join(
                f"{activation}: "
                + ", ".join(f"{SYMBOLS[n]} spans {s:.2f}" for n, s in zip(PANELS[activation], span, strict=True))
                for activation, span in spans.items()
            ),
        )
    )
    found.append(
        Check(
            CLAIMS["others"],
            others["erf"] > others["relu"],
            f"largest span of log₂ first over last fifth: ReLU {others['relu']:.2f}, erf {others['erf']:.2f}",
        )
    )
    states = {activation: figure.balance(activation, "sigma_h") for activation in ("relu", "erf")}
    falls = {activation: list(each.values()) for activation, each in states.items()}
    found.append(
        Check(
            CLAIMS["sigma_h"],
            all(value < falls[activation][0] for activation in falls for value in falls[activation][1:]),
            "; ".join(f"{activation}: {said(each, 'σ_h')}" for activation, each in states.items()),
        )
    )
    drop = {activation: values[0] - min(values) for activation, values in falls.items()}
    found.append(
        Check(
            CLAIMS["sigma_h erf"],
            drop["erf"] > drop["relu"],
            f"log₂ first over last fifth falls by up to {drop['relu']:.2f} for ReLU, {drop['erf']:.2f} for erf",
        )
    )
    return found
