"""How work runs: on which threads, within how much memory, behind which progress bar; and how it reaches the disk."""

from __future__ import annotations

import errno
import math
import numbers
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import IO, Any

import numpy as np

from .errors import BusyError

#: Seconds of work before a bar appears.
PATIENCE = 2.0


@dataclass(frozen=True)
class Execution:
    """How work runs; handed down from what users call to what computes.

    Parameters
    ----------
    n_jobs : int or None
        Threads, as in `count_threads`.
    progress : bool or None
        Whether to show a bar, as in `progress_bar`.
    """

    n_jobs: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        self.threads()  # refuses what is no number of threads

    def threads(self) -> int:
        """How many threads there are."""
        return count_threads(self.n_jobs)

    def bar(self, title: str, total: float) -> AbstractContextManager[Callable[..., None]]:
        """The bar: a context that gives advance(amount, note="")."""
        return progress_bar(title, total, self.progress)

    def each(
        self, work: Callable[[Any], float], items: list[Any], advance: Callable[[float], None] = lambda amount: None
    ) -> None:
        """work(item) for every item, on the threads; an error or an interrupt stops what has not begun."""
        run_in_threads(work, items, self.threads(), advance)


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Callable[..., None]]:
    """A function advance(amount, note="") that takes the amount of work just done, and a word to show beside the title.

    Parameters
    ----------
    title : str
        What is done.
    total : float
        All of the work.
    show : bool or None
        None shows a bar on a terminal once the work has taken two seconds; True always, at once; False never.
    """
    terminal = sys.stderr.isatty()
    if show is False or (show is None and not terminal):
        yield lambda amount, note="": None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=terminal,  # on a terminal the bar goes when the work is done; in a log its last line stays
    )
    task = bar.add_task(title, total=total)
    begun, started = time.monotonic(), False

    def advance(amount: float, note: str = "") -> None:
        nonlocal started
        bar.update(task, advance=amount, description=f"{title}, {note}" if note else title)
        if not started and (show or time.monotonic() - begun > PATIENCE):
            bar.start()
            started = True

    try:
        yield advance
    finally:
        if started:
            bar.stop()


def count_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None is every core this process may use, negative counts back from all, as in joblib."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a non-zero integer or None, not {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


def run_in_threads(
    work: Callable[[Any], float],
    items: list[Any],
    threads: int,
    advance: Callable[[float], None] = lambda amount: None,
) -> None:
    """work(item) for every item; `advance` is told each result. An error or an interrupt stops what has not begun.

    Workers take items themselves: with a future per item, the bookkeeping of the waiting thread would cost more
    than small tiles do.
    """
    waiting, lock, stop = iter(items), Lock(), Event()

    def worker() -> None:
        while not stop.is_set():
            with lock:
                item = next(waiting, None)
            if item is None:
                return
            try:
                done = work(item)
            except BaseException:
                stop.set()
                raise
            with lock:
                advance(done)

    # The calling thread is one of them: waking another costs as much as a small tile.
    threads = min(threads, len(items))
    if threads <= 1:
        worker()
        return
    with ThreadPoolExecutor(threads - 1, thread_name_prefix="rntk") as pool:
        futures = [pool.submit(worker) for _ in range(threads - 1)]
        try:
            worker()
            for future in futures:
                future.result()
        finally:
            stop.set()


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_bytes(memory: Any) -> int:
    """Bytes meant by a number, or by a text such as "1GB", "500 MB" or "2 GiB".

    Examples
    --------
    >>> parse_bytes("1.5 GB"), parse_bytes("2GiB"), parse_bytes(4096)
    (1500000000, 2147483648, 4096)
    """
    count = math.nan
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if match and (match[2] or not match[3]):
            unit = 1024 ** "kmgt".index(match[2]) * 1024 if match[3] else _UNITS[match[2]]
            count = float(match[1]) * unit
    elif isinstance(memory, numbers.Real) and not isinstance(memory, (bool, np.bool_)):
        count = float(memory)
    if not 1 <= count < 2**63:
        raise ValueError(f'memory must be a number of bytes or a text such as "1GB", not {memory!r}')
    return int(count)


@contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A new file that takes the place of `path` once it is complete: readers see the old file or the new, never half.

    If the writer fails, what was at `path` stays, and nothing else is left. A link stays a link, and the permissions
    of a file that was there stay what they were.

    Parameters
    ----------
    path : str or Path
        Where the file is to be; its folder exists.
    mode : str
        "w" for text in UTF-8 with line ends as written, "wb" or "w+b" for bytes.

    Raises
    ------
    OSError
        There is something at `path` that is no regular file: a folder, a pipe, a device. Or it can't be written.
    """
    target = Path(os.path.realpath(path))
    there = target.stat().st_mode if target.exists() else None
    if there is not None and not stat.S_ISREG(there):
        raise OSError(errno.EEXIST, "it is not a regular file, and only those are replaced", str(target))
    partial = target.with_name(f".{uuid.uuid4().hex}.partial")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with partial.open(mode.replace("w", "x"), **text) as stream:
            if there is not None:
                os.chmod(partial, stat.S_IMODE(there))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the file `path`, made if need be, against other processes; the lock goes with this one, however it ends.

    Systems and file systems without locks hold nothing.

    Raises
    ------
    BusyError
        Another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(path, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(path) from None
        except OSError:  # a file system without locks
            pass
        yield
