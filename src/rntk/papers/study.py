"""What a study is: units of work, claims that are judged by their results, and figures drawn from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

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
    DIFFERS = "differs"
    NOT_RUN = "not run"


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
    """

    key: str
    sentence: str
    criterion: str
    paper: str = ""
    reason: str = ""
    unit: str = ""


class Finding(NamedTuple):
    """Whether the claim of a key holds for our results, what they are, and, if only they can tell, why they differ."""

    key: str
    holds: bool
    ours: str
    reason: str = ""


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
            row = {name: getattr(claim, name) for name in ("key", "sentence", "paper", "criterion")}
            if claim.key in found:
                _, holds, ours, reason = found[claim.key]
                verdict = Verdict.REPRODUCED if holds else Verdict.DIFFERS
                reason = "" if holds else reason or claim.reason
            else:
                ours, verdict = "", Verdict.NOT_RUN
                reason = results.why_missing(claim.unit) if claim.unit and claim.unit not in results else why
            rows.append({**row, "ours": ours, "verdict": verdict.value, "reason": reason})
        return rows
