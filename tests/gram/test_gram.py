"""Running tiles: threads, errors, interrupts, progress."""

from __future__ import annotations

import io
import sys
import threading

import numpy as np
import pytest

from rntk import RNTK
from rntk.runtime import count_threads, progress_bar, run_in_threads


def test_every_item_runs_once_and_progress_adds_up():
    seen, lock, told = [], threading.Lock(), []

    def work(item):
        with lock:
            seen.append(item)
        return float(item)

    run_in_threads(work, list(range(1, 101)), 3, told.append)
    assert sorted(seen) == list(range(1, 101))
    assert sum(told) == 5050


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_stops_what_has_not_begun(threads):
    done = []

    def work(item):
        if item == 5:
            raise ArithmeticError("tile 5")
        done.append(item)
        return 0.0

    with pytest.raises(ArithmeticError, match="tile 5"):
        run_in_threads(work, list(range(10_000)), threads, lambda amount: None)
    assert len(done) < 10_000


def test_an_interrupt_comes_through():
    def work(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_threads(work, [1, 2, 3], 2, lambda amount: None)


def test_thread_counts():
    cores = count_threads(None)
    assert cores >= 1
    assert count_threads(3) == 3
    assert count_threads(-1) == cores
    assert count_threads(-100) == 1
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(ValueError, match="n_jobs"):
            count_threads(wrong)


def test_progress_is_silent_off_a_terminal_and_visible_on_request(monkeypatch, capsys):
    X = np.random.default_rng(0).standard_normal((6, 5))
    RNTK()(X)
    assert capsys.readouterr() == ("", "")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("counting", 2.0, show=True) as advance:
        advance(1.0)
        advance(1.0)
    assert "counting" in stream.getvalue()


def test_progress_waits_two_seconds_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("quick", 1.0) as advance:
        advance(1.0)
    assert stream.getvalue() == ""


def test_unwanted_matrices_are_not_allocated():
    kernel = RNTK()
    engine, (batch,) = kernel.read(np.random.default_rng(0).standard_normal((7, 4)))
    values = engine.pairs(engine.prepare(kernel.plan(), batch))
    assert values.nngp is None
    assert values.ntk.shape == (7, 7)
