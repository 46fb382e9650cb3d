"""One progress bar for everything that takes long: shown after two seconds, on a terminal, unless told otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds of work before a bar appears.
PATIENCE = 2.0


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Callable[..., None]]:
    """A function advance(amount, note="") that takes the amount of work just done, and a word to show beside the title.

    Parameters
    ----------
    show : None shows a bar on a terminal once the work has taken two seconds; True always, at once; False never.
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
