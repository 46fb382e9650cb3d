"""Run studies: what is done stays done, what fails is reported, and every study that ends leaves a record."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runtime import locked, progress_bar
from .record import StudyFolder, pack, plain
from .report import write_figures
from .studies import STUDIES
from .study import Mode, NotRunError, Plain, Results, Study, Unit
from .workers import Job, Outcome, environment, run_tasks

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """A study that ran here: its results by unit, and verdicts on its claims."""

    study: Study
    results: Results

    @property
    def verdicts(self) -> list[Plain]:
        """The claims of the paper, each with what was found and a verdict."""
        return self.study.verdicts(self.results)

    def figures(self) -> dict[str, Any]:
        """matplotlib figures by name."""
        return self.study.figures(self.results)

    def __repr__(self) -> str:
        lines = [f"{row['verdict']}: {row['sentence']} ({row['ours']})" for row in self.verdicts]
        return "\n".join([f"{self.study.name}, {len(self.results)} units", *lines])


def run(
    name: str,
    *,
    mode: Mode | str = Mode.QUICK,
    only: Iterable[str] | None = None,
    data: Path | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Run:
    """Compute a study here, with settings of your own, and judge it; nothing is written.

    Parameters
    ----------
    name : str
        A study's, as `rntk reproduce --list` shows them.
    mode : Mode or str
        Whose settings serve where you give none, "quick" or "full".
    only : iterable of str
        Names of units to compute; all unless given.
    data : Path
        Folder of data sets; the environment variable ``RNTK_DATA`` names it otherwise.
    progress : bool
        None shows a bar on a terminal, True always, False never.
    **settings
        Taken in place of what a unit's config has, and of the defaults of the study's `compute`. Units that then have
        the same config are computed once.

    Raises
    ------
    ValueError
        There is no such study, or no such unit.
    NotRunError
        It can't run: data or a package is missing.

    Examples
    --------
    >>> from rntk import papers
    >>> found = papers.run("linear-theorem-3.3", widths=[20, 80, 320], seeds=6, T=4)
    >>> found.results["networks"].errors.shape
    (3, 6)
    """
    study = find_study(name, STUDIES)
    units = study.units(Mode(mode), data)
    if only is not None:
        unknown = set(only := list(only)) - {unit.name for unit in units}
        if unknown:
            raise ValueError(f"{name} has no unit {', '.join(sorted(unknown))}; {', '.join(u.name for u in units)}")
        units = [unit for unit in units if unit.name in only]
    if study.obstacle():
        raise NotRunError(study.obstacle())
    configs: list[Plain] = []
    found = {}
    with progress_bar(study.name, sum(unit.weight for unit in units), progress) as advance:
        for unit in units:
            config = {**unit.config, **settings}
            if config not in configs:
                configs.append(config)
                found[unit.name] = plain(study.compute(data, **config))
            advance(unit.weight, unit.name)
    return Run(study, Results(found))


def find_study(name: str, studies: Mapping[str, Study]) -> Study:
    """The one of `studies` with this name or alias; a ValueError that says what may have been meant."""
    known = {alias: study for study in studies.values() for alias in (study.name, *study.aliases)}
    if name not in known:
        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {', '.join(near)}?" if near else "rntk reproduce --list shows what there is"
        raise ValueError(f"there is no experiment {name!r}; {hint}")
    return known[name]


def reproduce(
    studies: Iterable[Study],
    mode: Mode,
    out: Path,
    data: Path | None = None,
    jobs: int = 1,
    say: Say = lambda line: None,
    progress: bool | None = None,
) -> list[Plain]:
    """Run studies and write their records into out/mode; returns the records.

    Units that an earlier run finished are taken from its records. Interrupted by Ctrl-C, it leaves records of what is
    finished and says in them what isn't; killed, it leaves the units; either way the next run goes on.

    Parameters
    ----------
    studies : iterable of Study
        What to run.
    mode : Mode
        How much of it.
    out : Path
        Folder for records and figures.
    data : Path
        Folder of data sets.
    jobs : int
        Processes.
    say : callable
        Is told what happens, line by line.
    progress : bool
        None shows a bar on a terminal, True always, False never.
    """
    folder = out / mode.value
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        works = {study.name: _Work(study, folder / study.name, mode, data, say) for study in studies}
        records = {name: work.end() for name, work in works.items() if not work.pending}
        tasks = [Job(work.study, unit) for work in works.values() for unit in work.pending]
        here, done = environment(), 0
        try:
            with progress_bar("reproduce", sum(task.unit.weight for task in tasks), progress) as advance:
                for outcome in run_tasks(tasks, data, jobs):
                    task, work, done = outcome.task, works[outcome.task.study.name], done + 1
                    work.take(outcome, here)
                    advance(task.unit.weight, f"{done}/{len(tasks)} {task.study.name}: {task.unit.name}")
                    if not work.pending:
                        records[work.study.name] = work.end()
        except KeyboardInterrupt:
            for work in works.values():
                work.stop()
            raise
        return [records[name] for name in works]


class _Work:
    """One study on its way to a record: what there is to do, and what an earlier run has done."""

    def __init__(self, study: Study, folder: Path, mode: Mode, data: Path | None, say: Say) -> None:
        self.study, self.mode, self.say = study, mode, say
        self.folder = StudyFolder(folder, study)
        self.failures: dict[str, str] = {}
        self.units: list[Unit] = []
        self.obstacle = ""
        try:
            self.units = study.units(mode, data)
        except NotRunError as why:
            self.obstacle = str(why)
        self.entries = self.folder.finished(self.units)
        for line in self.folder.damage:
            say(line)
        if self.pending and study.obstacle():
            self.obstacle = study.obstacle()
            self.units = [unit for unit in self.units if unit.name in self.entries]

    @property
    def pending(self) -> list[Unit]:
        """Units neither done nor failed."""
        return [unit for unit in self.units if unit.name not in self.entries and unit.name not in self.failures]

    def take(self, outcome: Outcome, here: Plain) -> None:
        """Keep what became of a unit; `here` is where it ran."""
        unit = outcome.task.unit
        if outcome.result is None:
            self.failures[unit.name] = outcome.failure
            self.say(f"{self.study.name}, {unit.name} failed: {outcome.failure}")
        else:
            self.entries[unit.name] = self.folder.keep(unit, outcome.result, {**outcome.run, **here})

    def stop(self) -> None:
        """Make a record of what there is, if anything is missing from it; a later run goes on from there."""
        if self.pending and self.entries:
            self.obstacle = (
                f"interrupted after {len(self.entries)} of {len(self.units)} units; the same command goes on"
            )
            self.end()

    def end(self) -> Plain:
        """Judge the claims, draw the figures, write the record."""
        # In the order of units, whichever finished first.
        done = {unit.name: self.entries[unit.name] for unit in self.units if unit.name in self.entries}
        missing = {name: f"{name} failed: {failure}" for name, failure in self.failures.items()}
        results = Results({name: entry["result"] for name, entry in done.items()}, missing, self.obstacle)
        claims = plain(self.study.verdicts(results))
        data = " --data DIR" if self.study.needs else ""
        record: Plain = {
            "study": self.study.name,
            "title": self.study.title,
            "source": self.study.source,
            "mode": self.mode.value,
            "command": f"rntk reproduce {self.study.name} --{self.mode.value}{data}",
            "claims": claims,
            "figures": write_figures(self.study, results, self.folder.path),
            "obstacle": self.obstacle,
            "failures": self.failures,
            **pack(done),
        }
        self.folder.write_record(record)
        counts = Counter(claim["verdict"] for claim in claims)
        self.say(f"{self.study.name}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
        return record
