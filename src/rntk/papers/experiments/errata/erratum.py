"""An erratum as numbers: the printed formula and the corrected one before a judge that uses neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....plot import COLOURS, axes_or_new
from ..record import Check, Record

#: Networks, matrices or tables drawn for one erratum, unless told otherwise.
DRAWS = 200
#: How many standard errors a judge who draws at random allows.
STANDARD_ERRORS = 4

WRONG = "printed formula is wrong"
RIGHT = "printed formula is right"
UNDECIDED = "undecided: the judge can't tell the two apart"
NEITHER = "neither agrees with the judge"


@dataclass(frozen=True)
class Erratum(Record):
    """One place of a paper, on one small example.

    Attributes
    ----------
    where : paper and place; [R], [L] as in docs/theory.md.
    printed, correct : the two formulas or numbers, in words.
    example : what was computed. judge : by what independent means it was judged.
    printed_value, correct_value, judge_value : what each of the three gives.
    uncertainty : how far the judge may be off: four standard errors, or the digits that were printed.
    bound : whether the formulas are upper bounds, which hold if the judge stays below, rather than values.
    """

    where: str
    printed: str
    correct: str
    example: str
    judge: str
    printed_value: float
    correct_value: float
    judge_value: float
    uncertainty: float
    bound: bool = False

    def agrees(self, value: float) -> bool:
        """Whether `value` can be true, as far as the judge can tell."""
        above = value - self.judge_value
        return above >= -self.uncertainty if self.bound else abs(above) <= self.uncertainty

    @property
    def verdict(self) -> str:
        """`WRONG` if the corrected formula agrees with the judge and the printed one doesn't; `RIGHT` if it is the
        other way round; `UNDECIDED` if both agree, `NEITHER` if none does.
        """
        printed, correct = self.agrees(self.printed_value), self.agrees(self.correct_value)
        return {(False, True): WRONG, (True, False): RIGHT, (True, True): UNDECIDED}.get((printed, correct), NEITHER)

    @property
    def check(self) -> Check:
        """The verdict as a claim with its evidence."""
        return Check(
            f"{self.where}: {self.correct}; printed: {self.printed}",
            self.verdict == WRONG,
            f"{self.example}: printed {self.printed_value:.6g}, corrected {self.correct_value:.6g}; {self.judge} "
            f"{'reach' if self.bound else 'say'} {self.judge_value:.6g} ± {self.uncertainty:.1g}",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for JSON."""
        return asdict(self) | {"verdict": self.verdict}


class Trial(Protocol):
    """What judges one erratum: a generator of random numbers, and how many networks, matrices or tables to draw."""

    def __call__(self, rng: np.random.Generator, draws: int = DRAWS) -> Erratum: ...


@dataclass(frozen=True)
class Errata:
    """Errata by their short names.

    Attributes
    ----------
    entries : `Erratum` by name. draws, random_state : what they were judged with.
    """

    entries: dict[str, Erratum]
    draws: int = DRAWS
    random_state: int = 0

    @property
    def checks(self) -> list[Check]:
        """One claim for each erratum: that the printed formula is wrong and the corrected one right."""
        return [entry.check for entry in self.entries.values()]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for JSON."""
        return {
            "entries": {name: entry.to_dict() for name, entry in self.entries.items()},
            "draws": self.draws,
            "random_state": self.random_state,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Errata:
        """The record whose `to_dict` gave `values`."""
        entries = {name: Erratum.from_dict(entry) for name, entry in values["entries"].items()}
        return cls(entries, values["draws"], values["random_state"])

    def plot(self, ax: Any = None) -> Any:
        """How far printed and corrected values lie from the judge, relative to it; returns the axes.

        The axis is linear up to a ten-thousandth and logarithmic beyond, so that a wrong digit and a wrong power of the
        width fit on it.
        """
        new = ax is None
        ax = axes_or_new(ax)
        rows = np.arange(len(self.entries))[::-1]
        if new:
            ax.figure.set_size_inches(11, 2 + 0.27 * len(rows))
        entries = list(self.entries.values())
        judged = np.array([entry.judge_value for entry in entries])
        allowed = np.array([entry.uncertainty for entry in entries]) / np.abs(judged)
        ax.errorbar(np.zeros(len(rows)), rows, xerr=allowed, fmt="none", ecolor="grey", elinewidth=6, alpha=0.4,
                    label="what the judge allows")  # fmt: skip
        for values, label, marker, colour in (
            ([entry.printed_value for entry in entries], "printed", "x", COLOURS[1]),
            ([entry.correct_value for entry in entries], "corrected", "o", COLOURS[0]),
        ):
            ax.plot(np.array(values) / judged - 1, rows, marker, color=colour, label=label)
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set_xscale("symlog", linthresh=1e-4)
        ax.margins(x=0.1)
        ax.set_yticks(rows, [entry.where + (" (upper bounds)" if entry.bound else "") for entry in entries])
        ax.set(xlabel="value / judge - 1", ylabel="place in the papers", title="errata before their judges")
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3)
        return ax


def mean_and_allowance(samples: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over draws (first axis), and the standard errors of it that a judge allows."""
    samples = np.asarray(samples, dtype=np.float64)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return samples.mean(axis=0), STANDARD_ERRORS * error


def extrapolate(
    sample: Callable[[int], Any], sizes: tuple[int, int], draws: int, power: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean of `sample(n)` at n = ∞ from means E_n = E + a/n^power at two sizes, and what the judge allows."""
    scale = np.array(sizes, dtype=np.float64) ** power
    weights = np.array([-1.0, 1.0]) * scale / (scale[1] - scale[0])
    (small, e_small), (large, e_large) = (mean_and_allowance([sample(n) for _ in range(draws)]) for n in sizes)
    return weights[0] * small + weights[1] * large, np.hypot(weights[0] * e_small, weights[1] * e_large)
