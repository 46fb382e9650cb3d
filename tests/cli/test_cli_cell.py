"""`rntk cell`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from helpers.refusals import assert_one_line_refusal
from rntk.cli import app


def run(*arguments: str):
    return CliRunner().invoke(app, ["cell", *arguments])


def test_a_cell_is_printed(tmp_path):
    graph = tmp_path / "leaky.dot"
    result = run("leaky", "--set", "leak=0.25", "--steps", "4", "--backward", "--dot", str(graph))
    assert result.exit_code == 0, result.output
    for words in ("h[t] = 0.75 h[t-1] + 0.25 k4[t]", "Σ(g1[t], g1'[s])", "exact", "δg3[2] = relu'(g3[2])"):
        assert words in result.stdout, result.stdout
    assert graph.read_text(encoding="utf-8").startswith('digraph "leaky"')
    found = json.loads(run("elman", "--json", "--depth", "2").stdout)
    assert found["exact"] is True
    assert len(found["ntk"]) == 3


def test_refusals():
    assert_one_line_refusal(run("elmann"), "no cell 'elmann'", "elman")
    assert_one_line_refusal(run("elman", "--set", "sigma=1"), "no parameter 'sigma'")
    assert_one_line_refusal(run("elman", "--set", "sigma_w"), "KEY=VALUE")
    assert_one_line_refusal(run("elman", "--steps", "0"), "--steps")
