"""How work runs: on which threads, within how much memory, what it shows meanwhile; and how it reaches the disk."""

from __future__ import annotations

import builtins
import errno
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock
from typing import IO, Any

import numpy as np

from .errors import BusyError, check_flag

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
        if self.progress is not None:
            check_flag("progress", self.progress)

    def threads(self) -> int:
        """How many threads there are."""
        return count_threads(self.n_jobs)

    def bar(self, title: str, total: float) -> AbstractContextManager[Bar]:
        """The bar: a context that gives a `Bar`."""
        return progress_bar(title, total, self.progress)

    def each(
        self, work: Callable[[Any], float], items: list[Any], advance: Callable[[float], None] = lambda amount: None
    ) -> None:
        """work(item) for every item, on the threads; an error or an interrupt stops what has not begun."""
        run_in_threads(work, items, self.threads(), advance)


#: What a bar that is opened inside the work of another one moves instead: one bar is on the screen at a time.
_outer: ContextVar[Callable[[float], None] | None] = ContextVar("_outer", default=None)


class Bar:
    """What `progress_bar` gives: `bar(amount, note="")` takes the amount of work just done, and a word to show.

    Parameters
    ----------
    move : function or None
        What it is told; None is a bar that nobody sees.
    """

    def __init__(self, move: Callable[[float, str], None] | None = None) -> None:
        self._move = move

    def __call__(self, amount: float, note: str = "") -> None:
        if self._move is not None:
            self._move(amount, note)

    @contextmanager
    def part(self, amount: float, note: str = "") -> Iterator[None]:
        """Work that is `amount` of the whole: a bar that is opened inside moves this one."""
        if self._move is None:
            yield
            return
        left = amount

        def move(share: float) -> None:
            nonlocal left
            step = min(share * amount, left)
            left -= step
            self(step, note)

        move(0.0)
        token = _outer.set(move)
        try:
            yield
        finally:
            _outer.reset(token)
        self(left, note)


@contextmanager
def progress_bar(title: str, total: float | None, show: bool | None = None) -> Iterator[Bar]:
    """A `Bar` on standard error.

    Parameters
    ----------
    title : str
        What is done.
    total : float or None
        All of the work, or None if nobody knows.
    show : bool or None
        None shows a bar on a terminal or in a notebook once the work has taken two seconds; True always, at once; False
        never. Inside the work of another bar there is none.
    """
    if show is not None:
        check_flag("progress", show)
    outer, screen = _outer.get(), None
    if outer is not None:
        bar = Bar(lambda amount, note: outer(amount / total if total else 0.0))
    elif show is False or (show is None and not is_watched()):
        yield Bar()
        return
    else:
        screen = _Screen(title, total, 0.0 if show else PATIENCE)
        bar = Bar(screen.move)
    token = _outer.set(lambda share: None)
    try:
        yield bar
    finally:
        _outer.reset(token)
        if screen is not None:
            screen.close()


class _Screen:
    """A bar on the screen, once `patience` seconds have passed; a line of text in a notebook that can't draw."""

    def __init__(self, title: str, total: float | None, patience: float) -> None:
        self.title, self.total, self.done = title, total, 0.0
        self.begun = time.monotonic()
        self.due = self.begun + patience
        self.bar: Any = None
        self.line = ""

    def move(self, amount: float, note: str) -> None:
        self.done += amount
        now = time.monotonic()
        if now < self.due:
            return
        title = f"{self.title}, {note}" if note else self.title
        if in_notebook() and find_spec("ipywidgets") is None:  # Rich draws nothing there, and warns
            share = self.done / self.total if self.total else 0.0
            gone = now - self.begun
            left = f", {say_seconds(gone / share - gone)} left" if share > 0 else ""
            self.write(f"{title}: {share:.0%}{left}" if self.total else f"{title}: {say_seconds(gone)}")
            self.due = now + 0.5
        else:
            if self.bar is None:
                self.bar = self.draw()
            self.bar.update(0, completed=self.done, description=title)

    def draw(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        # On a terminal the bar goes when the work is done; in a log its last line stays.
        bar = Progress(*columns, console=Console(stderr=True), transient=sys.stderr.isatty())
        bar.add_task(self.title, total=self.total)
        bar.start()
        return bar

    def write(self, line: str) -> None:
        print(f"\r{line:<{len(self.line)}}", end="", file=sys.stderr, flush=True)
        self.line = line

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.line:
            self.write(f"{self.title}: {say_seconds(time.monotonic() - self.begun)}")
            print(file=sys.stderr)


def in_notebook() -> bool:
    """Whether Python runs behind a notebook."""
    return hasattr(getattr(builtins, "get_ipython", lambda: None)(), "kernel")


def is_watched() -> bool:
    """Whether somebody looks at standard error: a terminal, or a notebook."""
    return sys.stderr.isatty() or in_notebook()


_announced: set[str] = set()


def announce(text: str, show: bool | None = None) -> None:
    """Say on standard error, once in a process, what goes on; `show` as in `progress_bar`."""
    if text not in _announced and (is_watched() if show is None else show):
        _announced.add(text)
        print(f"rntk: {text}", file=sys.stderr)


def say_seconds(seconds: float) -> str:
    """A time as people say it.

    Examples
    --------
    >>> say_seconds(12.3), say_seconds(200), say_seconds(9000)
    ('12 s', '3 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def text_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """A table in plain text; all columns but the first `left` are numbers, and floats have four digits.

    Examples
    --------
    >>> print(text_table(["view", "ridge"], [["values", 0.1], ["differences", 2.0]]))
    view         ridge
    ------------------
    values         0.1
    differences      2
    """
    cells = [[f"{each:.4g}" if isinstance(each, float) else str(each) for each in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    lines = [
        "  ".join(f"{cell:{'<' if k < left else '>'}{widths[k]}}" for k, cell in enumerate(row)).rstrip()
        for row in (headings, *cells)
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


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


def parse_bytes(memory: Any) -> int:
    """Bytes meant by a number, or by a text such as "1GB", "500 MB" or "2 GiB".

    Examples
    --------
    >>> parse_bytes("1.5 GB"), parse_bytes("2GiB"), parse_bytes(4096)
    (1500000000, 2147483648, 4096)
    """
    count = 0.0
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*(?:([kmgt])(i?))?b?\s*", str(memory).lower())
    if match:
        count = float(match[1]) * (1024 if match[3] else 1000) ** (1 + "kmgt".index(match[2]) if match[2] else 0)
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
