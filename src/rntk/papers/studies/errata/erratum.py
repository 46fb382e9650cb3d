"""An erratum as numbers: the printed formula and the corrected one before a judge that uses neither."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Networks, matrices or tables drawn for one erratum, unless told otherwise.
DRAWS = 200
#: How many standard errors a judge who draws at random allows.
STANDARD_ERRORS = 4

WRONG = "printed formula is wrong"
RIGHT = "printed formula is right"
UNDECIDED = "undecided: the judge can't tell the two apart"
NEITHER = "neither agrees with the judge"

#: What the printed formula gives, what the corrected one gives, what the judge finds, and how far it may be off.
Numbers = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Erratum:
    """One place of a paper, on one small example.

    Attributes
    ----------
    where : str
        Paper and place; [R], [L] as in docs/theory.md.
    printed, correct : str
        The two formulas or numbers, in words.
    example, judge : str
        What was computed, and by what independent means it was judged.
    printed_value, correct_value, judge_value : float
        What each of the three gives.
    uncertainty : float
        How far the judge may be off: four standard errors, or the digits that were printed.
    bound : bool
        Whether the formulas are upper bounds, which hold if the judge stays below, rather than values.
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

    @property
    def drawn(self) -> bool:
        """Whether the judge draws at random: networks, matrices, tables."""
        return any(word in self.judge for word in ("networks", "random", "tables", "Gaussian pairs"))

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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for JSON."""
        return asdict(self) | {"verdict": self.verdict}


#: Every erratum by a short name, in the order of their modules; each runs on its own, `ERRATA[name](rng, draws)`, with
#: so many networks, matrices or tables to draw.
ERRATA: dict[str, Callable[[np.random.Generator, int], Erratum]] = {}


def erratum(name: str = "", **texts: Any) -> Callable[[Callable[[np.random.Generator, int], Numbers]], None]:
    """Make a function of random numbers and draws that returns `Numbers` an erratum of its name, with these texts."""

    def register(find: Callable[[np.random.Generator, int], Numbers]) -> None:
        def judged(rng: np.random.Generator, draws: int = DRAWS) -> Erratum:
            names = ("printed_value", "correct_value", "judge_value", "uncertainty")
            numbers: dict[str, Any] = dict(zip(names, map(float, find(rng, draws)), strict=True))
            return Erratum(**texts, **numbers)

        ERRATA[name or find.__name__] = judged

    return register


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
