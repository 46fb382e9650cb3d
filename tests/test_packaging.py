"""What is declared is what is tested: versions, targets of make, and the newcomer's steps."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def tool(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lowest, newcomer = tool("lowest"), tool("newcomer")


def test_every_dependency_has_one_lowest_version():
    """Two would leave the lower one untested: the installer takes the higher."""
    pinned = lowest.constraints(["all", "torch-test"])
    assert Counter(line.partition("==")[0] for line in pinned).most_common(1)[0][1] == 1, pinned
    assert all(re.fullmatch(r"[\w.-]+==\d[\w.]*", line) for line in pinned), pinned


def test_constraints_are_those_of_the_library_and_of_the_extras_asked_for():
    assert {line.partition("==")[0] for line in lowest.constraints(["distributed"])} == {
        *("numpy", "scipy", "scikit-learn", "numba", "joblib", "rich", "typer"),
        *("zarr", "dask"),
    }


def test_the_lowest_python_is_the_one_tested():
    version = lowest.PROJECT["requires-python"].removeprefix(">=")
    assert f"LOWEST_PYTHON ?= python{version}\n" in MAKEFILE
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(lowest.PROJECT["classifiers"]))
    assert classifiers[0] == version
    assert tuple(classifiers) == newcomer.PYTHONS


def test_help_names_every_target():
    targets = set(re.search(r"\.PHONY: (.*)", MAKEFILE)[1].split())
    named = set(re.findall(r'@echo "make (\S+)', MAKEFILE))
    assert targets - named == {"help", "browser", "clean"}
    assert named <= targets


def test_a_newcomer_takes_25_steps():
    assert len(newcomer.STEPS) == 25
    assert len({title for _, title, _ in newcomer.STEPS}) == 25


def test_a_newcomer_stops_at_the_first_failure(capsys, monkeypatch):
    steps = [("alone", "good", lambda: None), ("alone", "bad", lambda: 1 / 0), ("alone", "later", lambda: None)]
    monkeypatch.setattr(newcomer, "STEPS", steps)
    with pytest.raises(SystemExit, match="stopped at step 2 of 3: bad"):
        newcomer.run([1, 2, 3])
    said = capsys.readouterr()
    assert [line[:9] for line in said.out.splitlines()] == [" 1/3 good", " 2/3 bad:"]
    assert "ZeroDivisionError" in said.err
