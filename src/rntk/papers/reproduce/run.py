"""Run studies: what is done stays done, what fails is reported, and every study that ends leaves a record."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .figures import write_figures
from .store import StudyStore, locked, pack
from .study import Mode, NotRunError, Plain, Results, Study, Unit
from .workers import Outcome, Task, environment, run_tasks

Say = Callable[[str], None]


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
    data : folder of data sets. jobs : processes. say : is told what happens, line by line.
    progress : None shows a bar on a terminal, True always, False never.
    """
    folder = out / mode.value
    with locked(folder):
        works = {study.name: _Work.begin(study, folder / study.name, mode, data, say) for study in studies}
        records = {name: work.end() for name, work in works.items() if not work.pending}
        tasks = [Task(work.study, unit) for work in works.values() for unit in work.pending]
        here = environment()
        try:
            with _bar(tasks, progress) as advance:
                for outcome in run_tasks(tasks, data, jobs):
                    work = works[outcome.task.study.name]
                    work.take(outcome, here)
                    advance(outcome.task)
                    if not work.pending:
                        records[work.study.name] = work.end()
        except KeyboardInterrupt:
            for work in works.values():
                work.stop()
            raise
        return [records[name] for name in works]


@dataclass
class _Work:
    """One study on its way to a record."""

    study: Study
    store: StudyStore
    mode: Mode
    data: Path | None
    say: Say
    units: list[Unit] = field(default_factory=list)
    entries: dict[str, Plain] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    obstacle: str = ""

    @classmethod
    def begin(cls, study: Study, folder: Path, mode: Mode, data: Path | None, say: Say) -> _Work:
        """What there is to do, and what an earlier run has done."""
        work = cls(study, StudyStore(folder, study), mode, data, say)
        try:
            work.units = study.units(mode, data)
        except NotRunError as why:
            work.obstacle = str(why)
        work.entries = work.store.finished(work.units)
        for line in work.store.damage:
            say(line)
        obstacle = study.obstacle()
        if obstacle and work.pending:
            work.obstacle = obstacle
            work.units = [unit for unit in work.units if unit.name in work.entries]
        return work

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
            self.entries[unit.name] = self.store.keep(unit, outcome.result, {**outcome.run, **here})

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
        found = {name: entry["result"] for name, entry in done.items()}
        missing = {name: f"{name} failed: {failure}" for name, failure in self.failures.items()}
        results = Results(found, missing, self.obstacle)
        claims = [claim.verdict(results) for claim in self.study.claims()]
        figures = write_figures(self.study, results, self.store.folder)
        record: Plain = {
            "study": self.study.name,
            "title": self.study.title,
            "source": self.study.source,
            "mode": self.mode.value,
            "command": self._command(),
            "claims": claims,
            "figures": figures,
            "obstacle": self.obstacle,
            "failures": self.failures,
            **pack(done),
        }
        self.store.write_record(record)
        counts = Counter(claim["verdict"] for claim in claims)
        self.say(f"{self.study.name}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
        return record

    def _command(self) -> str:
        data = " --data DIR" if self.study.needs else ""
        return f"rntk reproduce {self.study.name} --{self.mode.value}{data}"


@contextmanager
def _bar(tasks: list[Task], show: bool | None) -> Iterator[Callable[[Task], None]]:
    """A function that is told each task done, and shows how far all are and how long the rest will take."""
    if not tasks or show is False or (show is None and not sys.stderr.isatty()):
        yield lambda task: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.fields[done]}/{task.fields[count]} {task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    total = sum(task.unit.weight for task in tasks)
    shown = bar.add_task("starting", total=total, done=0, count=len(tasks))

    def advance(task: Task) -> None:
        fields: dict[str, Any] = {"done": bar.tasks[shown].fields["done"] + 1}
        bar.update(shown, advance=task.unit.weight, description=f"{task.study.name}: {task.unit.name}", **fields)

    with bar:
        yield advance
