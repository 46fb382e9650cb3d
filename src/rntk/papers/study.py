"""What a study is: units of work, claims that are judged by their results, and figures drawn from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Plain = dict[str, Any]

#: The package that tells whether an extra is installed.
PACKAGES = {"finite": "jax", "aeon": "aeon"}


class Mode(StrEnum):
    """How much work: `quick` for a look on a laptop, `full` for the sizes of the papers."""

    QUICK = "quick"
    FULL = "full"


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    CONDITIONS = "under conditions"
    DIFFERS = "differs"
    TOO_FEW = "too few seeds"
    NOT_RUN = "not run"
    NOTE = "note"


#: Where randomness enters, no verdict rests on fewer draws.
FEWEST_SEEDS = 10
#: What is off by more standard errors than this beyond a tolerance is caught with 95 %.
OF_95_PERCENT = 1.645
#: The day on which criteria were first written down, after results had been seen.
FIRST = "2026-11-16"


class NotRunError(Exception):
    """A result that a claim or a figure asks for isn't there; the message says why."""


@dataclass(frozen=True)
class Unit:
    """A piece of work that is done whole or not at all.

    Attributes
    ----------
    name : str
        Unique in its study; lower-case letters, digits, dots and dashes, since it names a file.
    config : dict
        Plain values for JSON: all that the result depends on, seeds and digests of data included.
    weight : float
        Expected seconds, for the progress bar only.
    """

    name: str
    config: Plain
    weight: float = 1.0


class Criterion(NamedTuple):
    """When a claim counted as reproduced, before that was changed.

    Attributes
    ----------
    words : str
        The criterion.
    since : str
        The day it was set, as in 2026-11-16.
    reason : str
        What was wrong with it.
    """

    words: str
    since: str
    reason: str


@dataclass(frozen=True)
class Claim:
    """A sentence, figure or number of a paper. `Study.judge` says under the same key whether it holds.

    Attributes
    ----------
    key : str
        Short name, unique in its study.
    sentence : str
        What the paper says, in our words.
    criterion : str
        When we say that it holds, in words.
    paper : str
        Its number, if it prints one.
    reason : str
        What was found to explain a difference, shown only where there is one.
    unit : str
        The unit that it is judged by, where a study has one for each of several claims: if a claim isn't judged, it is
        said what became of this unit.
    since : str
        The day on which the criterion was set, as in 2026-11-16.
    before : bool
        Whether that was before the draws it judges; unless told, results had been seen.
    history : tuple of Criterion
        The criteria it had before, the first one first.
    one_run : bool
        Whether the paper's own figure is one run, so that few seeds are as good as what they are compared with.
    misprint : bool
        Whether it is about what is printed, and a difference is an erratum.
    note : bool
        Whether it is no claim that the paper makes: what is found is told, without a verdict.
    """

    key: str
    sentence: str
    criterion: str
    paper: str = ""
    reason: str = ""
    unit: str = ""
    since: str = FIRST
    before: bool = False
    history: tuple[Criterion, ...] = ()
    one_run: bool = False
    misprint: bool = False
    note: bool = False


class Proof(NamedTuple):
    """What a verdict rests on.

    Attributes
    ----------
    seeds : int
        Independent draws: networks, data sets drawn, repetitions. Zero where nothing is random.
    error : float or None
        Standard error of what is judged.
    tolerance : float
        How far it may be from what is claimed, before it counts as different.
    of : str
        What is judged, with its unit.
    """

    seeds: int = 0
    error: float | None = None
    tolerance: float = 0.0
    of: str = ""

    @property
    def power(self) -> float | None:
        """The deviation that would be caught with 95 %: that much beyond the tolerance is no chance."""
        return None if self.error is None else float(self.tolerance + OF_95_PERCENT * self.error)


def mean_of(samples: Any, of: str, tolerance: float = 0.0) -> tuple[NDArray[np.float64], Proof]:
    """Means over draws, the first axis, and the evidence that the least certain of them is."""
    samples = np.asarray(samples, dtype=np.float64)
    error = (
        samples.std(axis=0, ddof=1) / len(samples) ** 0.5 if len(samples) > 1 else np.full(samples.shape[1:], np.nan)
    )
    worst = float(np.max(error, initial=0.0))
    return samples.mean(axis=0), Proof(len(samples), worst if np.isfinite(worst) else None, tolerance, of)


@dataclass(frozen=True)
class Mutant:
    """Something broken on purpose, with which claims must fail.

    Attributes
    ----------
    broken : str
        What is broken, in words.
    claims : tuple of str
        Their keys.
    target, by : str, callable
        A function, as in "rntk.kernels:RNTK.both", that is replaced by what `by` makes of it while units are computed.
    settings : dict or None
        Small sizes for the units of the quick mode; None takes the results of the full record.
    only : tuple of str
        The units, all unless given.
    result : callable
        (name of a unit, its plain result): changes the result in its place.
    misprint : bool
        Whether the claims are about what is printed and differ, so that they must be reproduced with it.
    """

    broken: str
    claims: tuple[str, ...]
    target: str = ""
    by: Callable[[Any], Any] | None = None
    settings: Plain | None = None
    only: tuple[str, ...] = ()
    result: Callable[[str, Plain], None] | None = None
    misprint: bool = False


def times(factor: float, *paths: str) -> Callable[[str, Plain], None]:
    """A change of results: the numbers of these names (of all units) times a factor."""

    def change(name: str, result: Plain) -> None:
        for path in paths:
            result[path] = (np.asarray(result[path], dtype=np.float64) * factor).tolist()

    return change


def multiplied(factor: float) -> Callable[[Any], Any]:
    """For `Mutant.by`: a function whose result, or each part of it, is multiplied by a factor."""

    def by(function: Any) -> Any:
        def broken(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            if isinstance(found, tuple):
                return type(found)(*(factor * part for part in found))
            return factor * found

        return broken

    return by


#: Proof where nothing is random.
EXACT = Proof()


class Finding(NamedTuple):
    """Whether the claim of a key holds for our results.

    Attributes
    ----------
    key : str
        That of the claim.
    holds : bool or None
        None if there is something to tell but too little for a verdict; `reason` says why.
    ours : str
        What was found.
    evidence : Proof
        What that rests on.
    reason : str
        Why it differs, if only results can tell.
    condition : str
        For what it holds, and for what not, where that is not all that the claim speaks of.
    """

    key: str
    holds: bool | None
    ours: str
    evidence: Proof
    reason: str = ""
    condition: str = ""


class Results(dict[str, SimpleNamespace]):
    """Results by unit, as attributes, lists of numbers being arrays.

    Asking for a unit that isn't there raises `NotRunError` with the reason.

    Parameters
    ----------
    found : mapping
        What units computed, in plain values, by name.
    missing : mapping
        Why units aren't there, by name.
    otherwise : str
        Why all others aren't.

    Examples
    --------
    >>> from rntk.papers import Results
    >>> results = Results({"seed-1": {"errors": [0.5, 0.25]}})
    >>> float(results["seed-1"].errors.mean())
    0.375
    """

    def __init__(
        self, found: Mapping[str, Plain], missing: Mapping[str, str] | None = None, otherwise: str = ""
    ) -> None:
        super().__init__({name: SimpleNamespace(**_with_arrays(result)) for name, result in found.items()})
        self._missing = dict(missing or {})
        self._otherwise = otherwise

    def __missing__(self, name: str) -> SimpleNamespace:
        raise NotRunError(self.why_missing(name))

    def why_missing(self, name: str) -> str:
        """Why there is no such unit."""
        return self._missing.get(name) or self._otherwise or f"{name} has not run"

    def all(self) -> list[SimpleNamespace]:
        """The results of all units that have run; `NotRunError` if there are none."""
        if not self:
            raise NotRunError(next(iter(self._missing.values()), "") or self._otherwise or "nothing has run")
        return list(self.values())


def _with_arrays(value: Any) -> Any:
    """Plain values with arrays where lists are tables of numbers."""
    if isinstance(value, dict):
        return {key: _with_arrays(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError:  # rows of unequal length
        array = np.array(None)
    return array if array.dtype.kind in "bif" else [_with_arrays(each) for each in value]


class Study(ABC):
    """One figure, table or theorem of a paper: how to compute it in units, judge it and draw it.

    Attributes
    ----------
    name : str
        On the command line; `aliases` are other names it answers to.
    title, source : str
        What it is, and where in which paper.
    minutes : tuple of float
        About how long it takes on two cores, quick and full.
    claims : sequence of Claim
        What the paper says.
    quick, full : sequence of Unit
        The work of each mode, where it doesn't depend on data; else `units` is written anew.
    extras : tuple of str
        Extras of this package without which it can't run.
    needs : str
        Data it needs, in words; empty if none.
    mutants : sequence of Mutant
        What its claims must not survive.
    revision : int
        Raise it when the computation changes, so that old results aren't taken for new ones.
    """

    name: str
    title: str
    source: str
    minutes: tuple[float, float]
    claims: Sequence[Claim]
    quick: Sequence[Unit] = ()
    full: Sequence[Unit] = ()
    aliases: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    needs: str = ""
    mutants: Sequence[Mutant] = ()
    revision: int = 1

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        """The work of this mode with the data in this folder; `NotRunError` if there is none to do, and why."""
        return list(self.quick if mode is Mode.QUICK else self.full)

    @abstractmethod
    def compute(self, data: Path | None, *args: Any, **config: Any) -> Plain:
        """The result of a unit from its config: arrays and plain values."""

    @abstractmethod
    def judge(self, results: Results) -> Iterator[Finding]:
        """Findings on claims, by their keys, as far as results go; `NotRunError` where they lack one."""

    @abstractmethod
    def figures(self, results: Results) -> dict[str, Any]:
        """matplotlib figures by name, drawn from results; `NotRunError` where they lack one."""

    def tables(self, results: Results) -> dict[str, list[list[str]]]:
        """Tables for the report, by heading: rows of cells, the first row names the columns."""
        return {}

    def obstacle(self) -> str:
        """Why this study can't run here, empty if it can."""
        for extra in self.extras:
            if find_spec(PACKAGES[extra]) is None:
                return f'{PACKAGES[extra]} is not installed; pip install "rntk[{extra}]"'
        return ""

    def verdicts(self, results: Results) -> list[Plain]:
        """The claims with what became of them, as rows of a record."""
        found: dict[str, Finding] = {}
        why = "too little has run to say"
        try:
            for finding in self.judge(results):
                found[finding.key] = finding
        except NotRunError as missing:
            why = str(missing)
        except Exception as error:  # results are there: losing them, and the other studies, would help nobody
            why = f"could not be judged: {type(error).__name__}: {error}"
        rows = []
        for claim in self.claims:
            row: Plain = {name: getattr(claim, name) for name in SAID}
            row["history"] = [each._asdict() for each in claim.history]
            why_not = results.why_missing(claim.unit) if claim.unit and claim.unit not in results else why
            finding = found.get(claim.key) or Finding(claim.key, None, "", EXACT, why_not)
            verdict, reason = _verdict(claim, finding)
            proof = finding.evidence
            weight = {"seeds": proof.seeds, "error": proof.error, "power": proof.power, "of": proof.of}
            told = {"ours": finding.ours, "condition": finding.condition, **weight}
            rows.append({**row, **told, "verdict": verdict.value, "reason": reason})
        return rows


#: What rows of a record take from a claim as it is.
SAID = ("key", "sentence", "paper", "criterion", "since", "before", "one_run", "misprint")


def _verdict(claim: Claim, finding: Finding) -> tuple[Verdict, str]:
    """The verdict on a claim, and why it isn't that it holds."""
    seeds = finding.evidence.seeds
    if finding.holds is None:
        return Verdict.NOT_RUN, finding.reason
    if claim.note:
        return Verdict.NOTE, ""
    if 0 < seeds < FEWEST_SEEDS and not claim.one_run:
        return Verdict.TOO_FEW, f"{seeds} of at least {FEWEST_SEEDS} draws"
    if not finding.holds:
        return Verdict.DIFFERS, finding.reason or claim.reason
    return (Verdict.CONDITIONS if finding.condition else Verdict.REPRODUCED), ""
