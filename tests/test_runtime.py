"""What everything that runs shares: how it reaches the disk, who holds a folder, and an `Execution` handed down."""

from __future__ import annotations

import builtins
import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rntk import runtime
from rntk.errors import BusyError
from rntk.runtime import Execution, announce, locked, progress_bar, replacing


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as stream:
        stream.write("first\n")
        assert not path.exists()
    assert path.read_bytes() == b"first\n"
    with pytest.raises(RuntimeError, match="half way"), replacing(path) as stream:
        stream.write("sec")
        raise RuntimeError("half way")
    assert path.read_bytes() == b"first\n"
    with replacing(path, "w+b") as stream:
        stream.write(b"\0second")
    assert path.read_bytes() == b"\0second"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as stream:
        stream.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_one_process_holds_a_lock_at_a_time(tmp_path):
    pytest.importorskip("fcntl", reason="locks are those of POSIX")
    path = tmp_path / ".lock"
    code = f"from rntk.runtime import locked\nwith locked({os.fspath(path)!r}): print('held')"

    def other_process():
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    with locked(path):
        with pytest.raises(BusyError, match="another run writes to") as caught, locked(path):
            pass
        assert caught.value.path == path
        refused = other_process()
        assert refused.returncode == 1
        assert "BusyError" in refused.stderr
    assert other_process().stdout == "held\n"


def test_an_execution_is_handed_down(capsys):
    run = Execution(n_jobs=3, progress=False)
    assert run.threads() == 3
    seen, told = [], []
    with run.bar("work", 4) as advance:
        run.each(lambda item: seen.append(item) or 1.0, [1, 2, 3, 4], lambda amount: (told.append(amount), advance(1)))
    assert sorted(seen) == [1, 2, 3, 4]
    assert sum(told) == 4
    assert capsys.readouterr().err == ""


# -- what is shown -----------------------------------------------------------------------------------------------------


def moves(monkeypatch):
    """What bars on the screen are told."""
    told = []
    monkeypatch.setattr(runtime._Screen, "move", lambda self, amount, note: told.append((self.title, amount, note)))
    return told


def test_a_bar_inside_another_moves_that(monkeypatch):
    told = moves(monkeypatch)
    with progress_bar("outer", 10.0, show=True) as outer:
        for _ in range(2):
            with outer.part(5.0, "part"), progress_bar("inner", 4.0, show=True) as inner:
                inner(1.0)
                with progress_bar("innermost", 1.0, show=True) as innermost:  # inside, but no part of it
                    innermost(1.0)
        with progress_bar("aside", 1.0, show=True) as aside:
            aside(1.0)
    assert {title for title, _, _ in told} == {"outer"}
    assert [amount for _, amount, _ in told] == [0.0, 1.25, 3.75] * 2
    assert {note for _, _, note in told} == {"part"}


def test_a_part_is_never_more_than_it_is(monkeypatch):
    told = moves(monkeypatch)
    with progress_bar("outer", 3.0, show=True) as outer, outer.part(3.0):
        for _ in range(2):
            with progress_bar("inner", 1.0) as inner:
                inner(1.0)
    assert sum(amount for _, amount, _ in told) == 3.0


def test_a_notebook_without_widgets_shows_text(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(builtins, "get_ipython", lambda: SimpleNamespace(kernel=None), raising=False)
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    with progress_bar("quick", 4.0) as bar:
        bar(1.0)
    assert stream.getvalue() == ""
    monkeypatch.setattr(runtime, "PATIENCE", 0.0)
    with progress_bar("work", 4.0) as bar:
        bar(1.0)
    assert stream.getvalue().startswith("\rwork: 25%, 0 s left")
    assert stream.getvalue().endswith("\n")
    with progress_bar("search", None) as bar:
        bar(0.0, "evaluation 1")
    assert "search, evaluation 1: 0 s" in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_an_announcement_is_made_once_on_a_terminal(monkeypatch, terminal):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(runtime, "_announced", set())
    announce("this"), announce("this"), announce("that", show=False)
    assert stream.getvalue() == "rntk: this\n" * terminal
    announce("that", show=True)
    assert stream.getvalue().endswith("rntk: that\n")


def test_permissions_stay_what_they_were(tmp_path):
    path, link = tmp_path / "secret", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    for way in (path, link):
        with replacing(way) as stream:
            stream.write("new")
        assert path.stat().st_mode & 0o777 == 0o600


def test_only_regular_files_are_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for way in (pipe, link, tmp_path, "/dev/null"):
        with pytest.raises(OSError, match="not a regular file"), replacing(way):
            pytest.fail("nothing is opened")
    assert pipe.is_fifo()


def test_a_full_disk_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource", reason="limits are those of POSIX")
    path = tmp_path / "old.csv"
    path.write_text("old")
    code = f"""
import resource
from pathlib import Path
from rntk.cli.predict import _write
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, {resource.RLIM_INFINITY}))
_write(Path({os.fspath(path)!r}), ["a"], iter([["x" * 100]] * 1000))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "can't be written" in done.stderr
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["old.csv"]
