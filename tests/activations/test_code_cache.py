"""Compiled code on disk: whatever happens to it, a call gets the right function, at worst compiled anew."""

from __future__ import annotations

import errno
import io
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from contextlib import contextmanager
from hashlib import sha256

import numpy as np
import pytest
from numba import types

from rntk import RNTK, runtime
from rntk.activations import code_cache
from rntk.activations.compiled import compile_function

DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "one bit of the digest": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "one bit of the code": lambda data: data[:-5000] + bytes([data[-5000] ^ 1]) + data[-4999:],
    "a class that is gone": lambda data: signed(pickle.dumps(code_cache.CodeCache).replace(b"CodeCache", b"Forgotten")),
    "something else": lambda data: signed(pickle.dumps(3)),
}


def signed(data):
    return sha256(data).digest() + data


def plus(amount):
    def add(x):
        return x + amount

    return add


def compiled(amount=1.0):
    """A function from the cache as a new process finds it, and whether it was there."""
    made = compile_function.__wrapped__(plus(amount), types.float64(types.float64))
    assert made(1.0) == 1.0 + amount
    return bool(made.stats.cache_hits)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "rntk-compiled" / "state"
    monkeypatch.setattr(code_cache, "code_folders", lambda: [folder])
    monkeypatch.setattr(code_cache, "_said", set())
    return folder


@contextmanager
def one_warning(match):
    with pytest.warns(RuntimeWarning, match=match) as caught:
        yield
    assert len(caught) == 1


def test_functions_are_found_again_and_told_apart(folder):
    assert [compiled(), compiled(), compiled(2.0), compiled(2.0)] == [False, True, False, True]
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_files_are_compiled_anew_and_mended(folder, kind):
    for amount in (1.0, 2.0):
        compiled(amount)
    for file in folder.iterdir():
        file.write_bytes(DAMAGE[kind](file.read_bytes()))
    with one_warning(str(folder)):
        assert not any([compiled(1.0), compiled(2.0)])
    assert all([compiled(1.0), compiled(2.0)])


def test_nowhere_to_write(folder):
    folder.parent.write_text("a file where the folder should be")
    with one_warning("NUMBA_CACHE_DIR"):
        assert not any([compiled(), compiled(), compiled(2.0)])


def test_a_full_disk(folder, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with one_warning("No space left"):
        assert not any([compiled(), compiled(2.0)])
    assert not list(folder.iterdir())
    monkeypatch.undo()


def test_code_of_a_folder_that_cannot_be_written_is_used(folder, tmp_path, monkeypatch):
    compiled()
    (tmp_path / "file").touch()
    monkeypatch.setattr(code_cache, "code_folders", lambda: [tmp_path / "file" / "below", folder])
    assert [compiled(), compiled(2.0), compiled(2.0)] == [True, False, True]


def test_another_state_of_the_sources_is_another_folder(tmp_path, monkeypatch):
    for room in ("activations", "engine"):
        shutil.copytree(code_cache.PACKAGE / room, tmp_path / room)
    monkeypatch.setattr(code_cache, "PACKAGE", tmp_path)
    here = code_cache.code_folders.__wrapped__()
    assert here == code_cache.code_folders.__wrapped__()
    file = tmp_path / "engine" / "fused" / "lanes.py"
    file.write_text(file.read_text().replace("2", "3", 1))
    assert not {*here} & {*code_cache.code_folders.__wrapped__()}


def test_old_folders_go(folder, monkeypatch):
    for age in range(20):
        old = folder.parent / f"old{age}"
        old.mkdir(parents=True)
        os.utime(old, (1000 - age, 1000 - age))
    compiled()
    assert {each.name for each in folder.parent.iterdir()} == {"state", *(f"old{age}" for age in range(7))}
    assert compiled()


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_is_announced_once_on_a_terminal(folder, monkeypatch, terminal):
    compiled(3.0)
    runtime._announced.clear()
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    compiled(3.0)
    assert not stream.getvalue()
    compiled(), compiled(2.0)
    assert stream.getvalue().count("compiling") == stream.getvalue().count("\n") == terminal


def test_a_function_without_a_file_is_compiled_and_not_kept(folder):
    names = {}
    exec("def twice(x):\n    return x + x\n", names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_function.__wrapped__(names["twice"], types.float64(types.float64))(2.0) == 4.0
    assert not folder.exists()


@pytest.mark.slow
def test_processes_that_start_together(tmp_path):
    code = """if True:
        import numpy as np
        from rntk import RNTK
        print(repr(RNTK()(np.arange(12.0).reshape(3, 4)).tolist()))
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code]
    several = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    found = [process.communicate()[0] for process in several]
    assert not any(process.returncode for process in several)
    assert found == [f"{RNTK()(np.arange(12.0).reshape(3, 4)).tolist()}\n"] * 4
    assert not list(tmp_path.rglob("*.partial"))
