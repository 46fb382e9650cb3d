"""What a study is: units of work, claims to judge by their results, and figures drawn from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
    name : unique in its study; lower-case letters, digits, dots and dashes, since it names a file.
    config : plain values for JSON: all that the result depends on, seeds and digests of data included.
    weight : expected seconds, for the progress bar only.
    """

    name: str
    config: Plain
    weight: float = 1.0


class Results(Mapping[str, Plain]):
    """Results by unit. Asking for one that isn't there raises `NotRunError` with the reason."""

    def __init__(
        self, found: Mapping[str, Plain], missing: Mapping[str, str] | None = None, otherwise: str = ""
    ) -> None:
        self._found = dict(found)
        self._missing = dict(missing or {})
        self._otherwise = otherwise

    def __getitem__(self, name: str) -> Plain:
        if name in self._found:
            return self._found[name]
        raise NotRunError(self._missing.get(name) or self._otherwise or f"{name} has not run")

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def starting(self, prefix: str) -> dict[str, Plain]:
        """Results of all units whose names start so, by the rest of their names; `NotRunError` if there are none."""
        found = {name.removeprefix(prefix): each for name, each in self._found.items() if name.startswith(prefix)}
        if not found:
            reasons = [why for name, why in self._missing.items() if name.startswith(prefix)]
            raise NotRunError(
                next(iter(reasons), "") or self._otherwise or f"{prefix.rstrip('. -') or 'nothing'} has not run"
            )
        return found


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds for our results, what they are, and, if only they can tell, why they differ."""

    holds: bool
    ours: str
    reason: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence, figure or number of a paper, and how to judge it.

    Attributes
    ----------
    key : short name. sentence : what the paper says, in our words. paper : its number, if it prints one.
    criterion : when we say that it holds, in words.
    judge : from results to a finding; `NotRunError` where it lacks a result.
    reason : what was found to explain a difference, shown only where there is one.
    """

    key: str
    sentence: str
    paper: str
    criterion: str
    judge: Callable[[Results], Finding] = field(repr=False)
    reason: str = ""

    def verdict(self, results: Results) -> Plain:
        """The judgement as a row of the record."""
        row: Plain = {
            "key": self.key,
            "sentence": self.sentence,
            "paper": self.paper,
            "criterion": self.criterion,
        }
        try:
            finding = self.judge(results)
        except NotRunError as why:
            return {**row, "ours": "", "verdict": Verdict.NOT_RUN.value, "reason": str(why)}
        except Exception as error:  # results are there: losing them, and the other studies, would help nobody
            why_not = f"could not be judged: {type(error).__name__}: {error}"
            return {**row, "ours": "", "verdict": Verdict.NOT_RUN.value, "reason": why_not}
        verdict = Verdict.REPRODUCED if finding.holds else Verdict.DIFFERS
        return {
            **row,
            "ours": finding.ours,
            "verdict": verdict.value,
            "reason": "" if finding.holds else finding.reason or self.reason,
        }


class Study(ABC):
    """One figure, table or theorem of a paper: how to compute it in units, judge it and draw it.

    Attributes
    ----------
    name : on the command line; aliases : other names it answers to.
    title, source : what it is, and where in which paper.
    extras : of this package, without which it can't run.
    needs : data it needs, in words; empty if none.
    minutes : about how long it takes on two cores, quick and full.
    revision : raise it when the computation changes, so that old results aren't taken for new ones.
    """

    name: str
    title: str
    source: str
    minutes: tuple[float, float]
    aliases: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    needs: str = ""
    revision: int = 1

    @abstractmethod
    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        """The work of this mode with the data in this folder; `NotRunError` if there is none to do, and why."""

    @abstractmethod
    def compute(self, config: Plain, data: Path | None) -> Plain:
        """The result of a unit, as plain values for JSON; under "timing" what another run would measure anew."""

    @abstractmethod
    def claims(self) -> list[Claim]:
        """What the paper says."""

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
