"""The house keeps its shape: few rooms, imports one way, and a front door that loads next to nothing."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def tool(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


house = tool("house")


def test_rooms_are_few_and_have_their_level():
    assert set(house.rooms()) == set(house.LEVELS)
    assert len(house.rooms()) <= 20


def test_imports_run_one_way():
    assert house.upward_imports() == []


def test_only_the_command_that_reproduces_them_knows_the_papers():
    knowing = [path for room in house.rooms() if room != "papers" for path in house.files_of(room)]
    knowing = [path.relative_to(house.SOURCE).as_posix() for path in knowing if "papers" in house.imports_of(path)]
    assert knowing == ["cli/reproduce.py"]


@pytest.mark.parametrize("text", ["import rntk", "from rntk import RNTK"])
def test_the_front_door_loads_no_extras(text):
    code = f"{text}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}), *sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & {"dask", "distributed", "jax", "bokeh", "matplotlib", "zarr", "aeon", "sktime", "rntk.papers"}


def test_no_test_file_imports_another():
    for path in (ROOT / "tests").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not line.strip().startswith(("from test_", "import test_")), (path.name, line)


def test_contributing_shows_the_house_as_it_is():
    assert house.picture() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "python tools/house.py --picture"


def test_a_name_means_one_thing():
    """No two classes of the library share a name: who meets it in a traceback knows which one it is."""
    homes = defaultdict(list)
    for file in sorted(house.SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(file.relative_to(house.SOURCE).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_no_room_reaches_into_another():
    """Names with an underscore are used where they are defined: in their room."""
    defined, used = defaultdict(set), defaultdict(set)
    for room in house.rooms():
        for file in house.files_of(room):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    defined[node.name].add(room)
                elif isinstance(node, ast.Attribute):
                    (used if isinstance(node.ctx, ast.Load) else defined)[node.attr].add(room)
                elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    defined[node.id].add(room)
                elif isinstance(node, ast.ImportFrom) and node.level:
                    for alias in node.names:
                        used[alias.name].add(room)
    private = {name for name in used if name.startswith("_") and not name.startswith("__") and defined[name]}
    assert {name: used[name] - defined[name] for name in private if used[name] - defined[name]} == {}
