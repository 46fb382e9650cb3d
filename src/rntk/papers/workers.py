"""Units of work in this process or in several, each on cores of its own; what fails says so and stops nothing else."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from .study import Plain, Study, Unit

#: Packages whose versions a record names, where they are installed.
PACKAGES = ("rntk", "numpy", "scipy", "scikit-learn", "numba", "jax", "optax", "aeon", "matplotlib")


class Job(NamedTuple):
    study: Study
    unit: Unit


class Outcome(NamedTuple):
    """What became of a task: a result, or the failure in words; and when and where it ran."""

    task: Job
    result: Plain | None
    failure: str
    run: Plain


def environment() -> Plain:
    """This machine and its software, for records."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"machine": {"cpu": _cpu(), "cores": cores, "system": platform.platform()}, "versions": versions}


def run_tasks(tasks: list[Job], data: Path | None, jobs: int) -> Iterator[Outcome]:
    """Outcomes as they come. With one job all runs here, one after another; with more, in processes."""
    if jobs <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield _outcome(task, *compute(task, data))
        return
    yield from _run_in_processes(tasks, data, jobs)


def compute(task: Job, data: Path | None) -> tuple[Plain | None, str, float]:
    """Result, failure in words, and seconds of one task."""
    begun = time.perf_counter()
    result, failure = None, ""
    try:
        result = task.study.compute(data, **task.unit.config)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        failure = f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
    return result, failure, time.perf_counter() - begun


def _run_in_processes(tasks: list[Job], data: Path | None, jobs: int) -> Iterator[Outcome]:
    # The longest first: the end isn't spent waiting for one of them alone.
    waiting = deque(sorted(tasks, key=lambda task: -task.unit.weight))
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    shares = [cores[k::jobs] or cores for k in range(min(jobs, len(tasks)))]
    workers: dict[Connection, _Worker] = {}
    try:
        for share in shares:
            worker = _Worker(share)
            workers[worker.pipe] = worker
        while waiting or any(worker.task for worker in workers.values()):
            for worker in workers.values():
                if worker.task is None and waiting:
                    worker.begin(waiting.popleft(), data)
            for pipe in wait([pipe for pipe, worker in workers.items() if worker.task]):
                worker = workers[pipe]  # type: ignore[index]
                task, worker.task = worker.task, None
                assert task is not None
                try:
                    found = worker.pipe.recv()
                except (EOFError, ConnectionError):
                    found = None, "its process died; too little memory is the usual reason", 0.0
                    del workers[worker.pipe]
                    worker.end()
                    worker = _Worker(worker.cores)
                    workers[worker.pipe] = worker
                yield _outcome(task, *found)
    finally:
        for worker in workers.values():  # an interrupt doesn't wait for units that take minutes
            worker.end()


class _Worker:
    """A process that computes one task after another."""

    def __init__(self, cores: list[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self.cores = cores
        self.task: Job | None = None
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, cores), daemon=True)
        self._process.start()
        theirs.close()  # the other end is the process's alone: when it dies, this end knows

    def begin(self, task: Job, data: Path | None) -> None:
        self.task = task
        with suppress(ConnectionError):  # a process that is gone shows when its answer is read
            self.pipe.send((task, data))

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection, cores: list[int]) -> None:
    """Compute what comes, on these cores, which every library then respects; end when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this process
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
        threadpool_limits(len(cores))  # NumPy's threads are there already
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            task, data = pipe.recv()
            pipe.send(compute(task, data))


def _outcome(task: Job, result: Plain | None, failure: str, seconds: float) -> Outcome:
    run: Plain = {"seconds": round(seconds, 3), "finished": datetime.now(UTC).isoformat(timespec="seconds")}
    return Outcome(task, result, failure, run)


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(names, platform.processor())
    except OSError:
        return platform.processor()
