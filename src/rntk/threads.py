"""Threads: how many, and how work is shared among them. Compiled code and NumPy release the GIL; the rest is short."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import numpy as np


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

    threads = min(threads, len(items))
    if threads <= 1:
        worker()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="rntk") as pool:
        futures = [pool.submit(worker) for _ in range(threads)]
        try:
            for future in futures:
                future.result()
        finally:
            stop.set()
