"""The command line as a user meets it: what it prints, how it ends, and what it says when something is wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import rntk
from rntk.cli import app


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def assert_one_line_refusal(result, *words: str) -> None:
    """Exit code 2, nothing on standard output, and one line that holds the words."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for word in words:
        assert word in result.stderr


def test_help_names_the_commands() -> None:
    for arguments in (["--help"], []):
        result = run(*arguments)
        assert result.exit_code == 0
        assert "demo" in result.stdout
        assert "info" in result.stdout


@pytest.mark.parametrize("command", ["demo", "info"])
def test_each_command_has_a_short_help(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    assert len(result.stdout.splitlines()) < 15


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"rntk {rntk.__version__}\n")


def test_info_tells_what_a_bug_report_needs() -> None:
    result = run("info")
    assert result.exit_code == 0, result.output
    for word in ("numpy", "scipy", "scikit-learn", "numba", "processor", "threads", "compiled code", "rntk[demo]"):
        assert word in result.stdout
    assert np.__version__ in result.stdout


def test_wrong_arguments_take_one_line(tmp_path) -> None:
    assert_one_line_refusal(run("dmeo"), "dmeo", "--help")
    assert_one_line_refusal(run("demo", "--colour"), "--colour")
    assert_one_line_refusal(run("demo", "--out"), "--out")


@pytest.mark.parametrize("package", ["aeon", "matplotlib"])
def test_a_missing_extra_is_named_in_one_line(package: str, tmp_path, monkeypatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    if package == "matplotlib":
        pytest.importorskip("aeon", reason="the demo asks for aeon first")
    assert_one_line_refusal(run("demo", "--out", str(tmp_path)), package, 'pip install "rntk[demo]"')
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_is_refused_before_the_work(tmp_path) -> None:
    pytest.importorskip("aeon", reason="the demo's data sets ship with aeon")
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    file = tmp_path / "taken"
    file.write_text("")
    assert_one_line_refusal(run("demo", "--out", str(file)), "taken", "not a folder")


@pytest.mark.slow
def test_demo_compares_forecasts_and_saves_a_picture(tmp_path) -> None:
    pytest.importorskip("aeon", reason="the demo's data sets ship with aeon")
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    folder = tmp_path / "made" / "for me"
    result = run("demo", "--out", str(folder))
    assert result.exit_code == 0, result.output
    for word in ("GunPoint, unequal lengths", "MiniRocket", "RBF", "what decided", "error bars", "rntk-demo.png"):
        assert word in result.stdout
    picture = (folder / "rntk-demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) > 10_000
