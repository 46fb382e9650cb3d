"""Implicit Bias of Linear RNNs: its theorems, figures and table. Figures are numbered as in the ICML version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...experiments import (
    Delay,
    LinearLimit,
    LinearTrainingCurves,
    Reaching,
    TapGrowth,
    delay,
    linear_limit,
    linear_training,
    reaching,
    tap_growth,
)
from ...experiments.reaching import PRINTED, SOURCE
from ..study import Claim, Finding, Mode, NotRunError, Plain, Results, Study, Unit

PAPER = "Implicit Bias of Linear RNNs"


class LinearLimitStudy(Study):
    name = "linear-theorem-3.3"
    title = "A wide linear RNN is a convolution with scaled taps"
    source = f"{PAPER}, Theorem 3.3"
    minutes = (0.1, 0.5)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        config: Plain = {
            Mode.QUICK: {"widths": [25, 50, 100, 200], "seeds": 30},
            Mode.FULL: {"widths": [25, 50, 100, 200, 400, 800], "seeds": 40},
        }[mode]
        return [Unit("networks", {**config, "random_state": 0}, weight={Mode.QUICK: 2.0, Mode.FULL: 15.0}[mode])]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return linear_limit(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def slope(results: Results) -> Finding:
            found = LinearLimit.from_dict(results["networks"]).slope
            return Finding(
                abs(found.value + 0.5) < 0.05 + 3 * found.error, f"slope {found.value:.3f} ± {found.error:.3f}"
            )

        def gaussian(results: Results) -> Finding:
            found = LinearLimit.from_dict(results["networks"])
            least, lags = found.tap_p_values[-1].min(), found.tap_p_values.shape[1]
            ours = f"n = {found.widths[-1]}: least p of {lags} Kolmogorov-Smirnov tests {least:.3f}"
            return Finding(bool(least * lags > 0.05), ours)

        return [
            Claim(
                "kernel",
                "the kernel of finite linear RNNs converges to 𝒯ᵀD(ρ)𝒯 ⊗ I",
                "limit n → ∞",
                "slope of the error within 0.05 and three standard errors of -1/2",
                slope,
            ),
            Claim(
                "taps",
                "taps of random wide RNNs are Gaussian with variance ν_C ν_F ν_W^j",
                "limit n → ∞",
                "no test rejects at 5 %, corrected for their number",
                gaussian,
            ),
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"theorem-3.3": LinearLimit.from_dict(results["networks"]).plot().figure}


class LinearTrainingStudy(Study):
    name = "linear-figures-1-2"
    aliases = ("linear-figure-1", "linear-figure-2")
    title = "A linear RNN and its convolution train alike"
    source = f"{PAPER}, Figures 1 and 2"
    extras = ("finite",)
    minutes = (0.5, 0.5)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        config = {"widths": [{Mode.QUICK: 500, Mode.FULL: 1000}[mode]], "teacher": 4, "random_state": 0}
        return [Unit("training", config, weight={Mode.QUICK: 8.0, Mode.FULL: 25.0}[mode])]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return linear_training(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def whole(results: Results) -> Finding:
            found = _curves(results)
            training, test = found.largest_gap[0]
            ours = f"n = {found.widths[0]}: largest gap {training:.1%} (training), {test:.1%} (test) of the curve"
            return Finding(bool(max(training, test) < 0.03), ours)

        def start(results: Results) -> Finding:
            found = _curves(results)
            first = [k for k, step in enumerate(found.steps) if step <= 10]
            pairs = ((found.rnn, found.convolution), (found.rnn_test, found.convolution_test))
            gap = max(float(np.abs(a - b)[0, first].max() / b[0, first].max()) for a, b in pairs)
            fall = float(found.rnn[0, 0] / found.rnn[0, first[-1]])
            return Finding(gap < 0.03, f"largest gap {gap:.1%}, while the error falls {fall:.3g}-fold")

        return [
            Claim(
                "figure 1",
                "training and test error of the RNN (n = 1000) and of the scaled convolution match",
                "curves coincide",
                "largest gap below 3 % of the curve's largest value",
                whole,
            ),
            Claim("figure 2", "they match over the first ten epochs", "curves coincide", "gap below 3 %", start),
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        found = _curves(results)
        ax = found.plot()
        near = found.plot()
        near.set(xlim=(0, 10), title="the first ten steps")
        return {"figure-1": ax.figure, "figure-2": near.figure}


def _curves(results: Results) -> LinearTrainingCurves:
    return LinearTrainingCurves.from_dict(results["training"])


class WidthsStudy(Study):
    name = "linear-figure-4"
    title = "How wide a linear RNN must be to train like its convolution"
    source = f"{PAPER}, Figure 4 (ICML version)"
    extras = ("finite",)
    minutes = (0.3, 0.5)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        config = {"widths": [10, 40, 200], "teacher": 20, "random_state": 0}
        return [Unit("training", config, weight=10)]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return linear_training(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def closer(results: Results) -> Finding:
            found = _curves(results)
            gap = found.largest_gap[:, 0]
            ours = ", ".join(f"n = {n}: {each:.1%}" for n, each in zip(found.widths, gap, strict=True))
            return Finding(bool((np.diff(gap) < 0).all()), f"largest gap {ours} of the curve")

        def matches(results: Results) -> Finding:
            found = _curves(results)
            gap = float(found.largest_gap[-1, 0])
            return Finding(gap < 0.05, f"n = {found.widths[-1]}: largest gap {gap:.1%} of the curve")

        return [
            Claim(
                "closer",
                "training curves of RNN and convolution come closer as n grows",
                "10, 40, 200",
                "the largest gap falls from each n to the next",
                closer,
            ),
            Claim(
                "matches", "for n = 200 they almost perfectly match", "almost perfect", "largest gap below 5 %", matches
            ),
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"figure-4": _curves(results).plot().figure}


class DelayStudy(Study):
    name = "linear-figure-3"
    title = "What a delay costs: the bias towards short memory"
    source = f"{PAPER}, Figure 3"
    extras = ("finite",)
    minutes = (0.7, 8)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        delays = {Mode.QUICK: (0, 2, 4, 6), Mode.FULL: tuple(range(9))}[mode]
        sizes = {
            Mode.QUICK: {"width": 300, "repetitions": 2},
            Mode.FULL: {"width": 1000, "repetitions": 3},
        }[mode]
        weight = {Mode.QUICK: 6.0, Mode.FULL: 50.0}[mode]
        return [Unit(f"delay-{late}", {"delays": [late], **sizes, "random_state": 0}, weight) for late in delays]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return delay(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def told(found: Delay, model: int) -> str:
            return ", ".join(
                f"{late}: {error:.2f}" for late, error in zip(found.delays, found.mean[:, model], strict=True)
            )

        def alike(results: Results) -> Finding:
            found = _delays(results)
            gap = float(np.abs(found.mean[:, 0] - found.mean[:, 1]).max())
            return Finding(gap < 0.1, f"mean test errors differ by at most {gap:.3f} of the teacher's power")

        def rises(results: Results) -> Finding:
            found = _delays(results)
            rnn = found.mean[:, 0]
            return Finding(bool(rnn.max() > 3 * rnn[0] and np.argmax(rnn) > 1), f"RNN by delay: {told(found, 0)}")

        def stays(results: Results) -> Finding:
            found = _delays(results)
            plain = found.mean[:, 2]
            return Finding(bool(plain.max() < 2 * plain.min()), f"unscaled convolution by delay: {told(found, 2)}")

        return [
            Claim(
                "alike",
                "RNN and scaled convolution have the same test error at every delay",
                "they match",
                "within a tenth of the teacher's power",
                alike,
            ),
            Claim(
                "rises",
                "their test error rises with the delay",
                "rises",
                "more than threefold, the largest not at delays 0 or 1",
                rises,
            ),
            Claim(
                "stays",
                "that of the unscaled convolution stays almost the same",
                "almost the same",
                "largest below twice the smallest",
                stays,
            ),
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"figure-3": _delays(results).plot().figure}


def _delays(results: Results) -> Delay:
    return Delay.joined([Delay.from_dict(each) for each in results.starting("delay-").values()])


class TapGrowthStudy(Study):
    name = "linear-theorem-4.1"
    title = "How fast gradient descent can grow the tap of each lag"
    source = f"{PAPER}, Theorem 4.1"
    extras = ("finite",)
    minutes = (0.2, 0.4)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        config = {"width": {Mode.QUICK: 300, Mode.FULL: 1000}[mode], "random_state": 0}
        return [Unit("training", config, weight={Mode.QUICK: 5.0, Mode.FULL: 20.0}[mode])]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return tap_growth(**config, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def bounded(results: Results) -> Finding:
            found = TapGrowth.from_dict(results["training"])
            convolution, rnn = found.share
            beyond = np.flatnonzero(rnn > 1)
            said = f"; the RNN of width {found.width} exceeds it from lag {beyond[0]} on" if len(beyond) else ""
            ours = f"the convolution's taps move by up to {convolution.max():.2f} of the bound{said}"
            return Finding(bool(convolution.max() <= 1), ours)

        sentence = "taps of the infinite network move by at most B₂ ρ_j η s in s steps (with B₂ = ‖A‖‖b‖, see errata)"
        return [Claim("bound", sentence, "bound holds as n → ∞", "never above the bound, for the convolution", bounded)]

    def figures(self, results: Results) -> dict[str, Any]:
        return {"theorem-4.1": TapGrowth.from_dict(results["training"]).plot().figure}


class ReachingStudy(Study):
    name = "linear-table-1"
    aliases = ("linear-figure-5",)
    title = "Hand velocity from spikes: a bias that helps with little data"
    source = f"{PAPER}, Table 1 and Figure 5 (Figure 4 of the arXiv version)"
    extras = ("finite",)
    needs = "the recording s1_data.mat"
    minutes = (1, 6)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        from ...data import find_recording

        recording = find_recording(data)
        if recording is None:
            raise NotRunError(f"there is no s1_data.mat in {data or 'any folder given by --data'}: {SOURCE}")
        sizes = {Mode.QUICK: {"epochs": 20, "width": 200}, Mode.FULL: {"epochs": 300, "width": 1000}}[mode]
        weights = {"limited": 0.2, "full": 1.0}
        total = {Mode.QUICK: 20.0, Mode.FULL: 230.0}[mode]
        return [
            Unit(
                part, {**sizes, "parts": [part], "random_state": 0, "recording": file_digest(recording)}, total * share
            )
            for part, share in weights.items()
        ]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        from ...data import find_recording

        recording = find_recording(data)
        if recording is None:
            raise FileNotFoundError(SOURCE)
        settings = {key: value for key, value in config.items() if key != "recording"}
        return reaching(recording, **settings, progress=False).to_dict()

    def claims(self) -> list[Claim]:
        def alike(part: str) -> Claim:
            def judge(results: Results) -> Finding:
                rest = 1 - Reaching.from_dict(results[part]).r2[0]  # R² itself starts far below zero
                gap = float(np.abs(rest[0] / rest[1] - 1).max())
                return Finding(gap < 0.1, f"1 - R² differs by at most {gap:.1%} at any epoch")

            sentence = f"{part} data: RNN and scaled convolution have the same R² during training"
            return Claim(f"{part}, alike", sentence, "identical", "1 - R² within 10 % at every recorded epoch", judge)

        def ahead(part: str, first: bool, sentence: str, reason: str) -> Claim:
            def judge(results: Results) -> Finding:
                table = Reaching.from_dict(results[part]).table[part]
                lead = table[1] - table[2]
                ours = f"scaled {_pair(table[1])}, unscaled {_pair(table[2])}"
                return Finding(bool((lead > 0).all() if first else (lead < 0).all()), ours)

            scaled, unscaled = PRINTED[part][1:]
            return Claim(
                f"{part}, order",
                sentence,
                f"scaled {_pair(scaled)}, unscaled {_pair(unscaled)}",
                "in x and in y",
                judge,
                reason,
            )

        def values(part: str) -> Claim:
            def judge(results: Results) -> Finding:
                table = Reaching.from_dict(results[part]).table[part]
                printed = np.array(PRINTED[part])
                return Finding(bool(np.abs(table - printed).max() < 0.03), "; ".join(map(_pair, table)))

            sentence = f"{part} data: final R² in x and y of RNN, scaled and unscaled convolution"
            reason = (
                "the public file is a companion of the paper's recording, and the paper doesn't say how long it trains"
            )
            return Claim(
                f"{part}, values", sentence, "; ".join(map(_pair, PRINTED[part])), "all six within 0.03", judge, reason
            )

        return [
            alike("limited"),
            ahead(
                "limited",
                True,
                "limited data: the bias helps, scaled and RNN are ahead of the unscaled convolution",
                "with few epochs the unscaled convolution is still ahead; the order turns after about 100",
            ),
            values("limited"),
            alike("full"),
            ahead(
                "full",
                False,
                "all data: the bias costs, the unscaled convolution is ahead",
                "it is ahead for some 50 epochs only and level after that: unfinished training of long lags, not a "
                "bias that remains",
            ),
            values("full"),
        ]

    def figures(self, results: Results) -> dict[str, Any]:
        parts = {name: Reaching.from_dict(each) for name, each in results.starting("").items()}
        return {f"figure-5-{name}": each.plot(part=name).figure for name, each in parts.items()}


def _pair(values: Any) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, so that a result is known to belong to it."""
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
