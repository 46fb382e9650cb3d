"""README's figures on speed are those of the committed records."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_neural_tangents():
    record = json.loads((ROOT / "benchmarks" / "records" / "neural_tangents.json").read_text())
    text = re.search(r"neural-tangents 0\.6\.5.*?\(`python", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    assert not record["quick"]
    assert record["machine"]["versions"]["neural-tangents"]["neural-tangents"] == "0.6.5"
    for activation in ("relu", "erf", "sin", "gelu"):
        ratios = {row["call"]: row["ratio"] for row in record["results"] if row["activation"] == activation}
        stated = re.search(rf"{activation}\s+([\d.]+) and ([\d.]+)", text, re.IGNORECASE).groups()
        assert [float(ratio) for ratio in stated] == [round(ratios[call], 1) for call in ("K(X)", "K(X, Y)")]
    for row in record["results"]:
        assert row["errors"]["rntk"] < 1e-14


def test_gram():
    """Every row of the table: times, ratios and aims."""
    record = json.loads((ROOT / "benchmarks" / "records" / "gram.json").read_text())
    rows = {row["question"]: row for row in record["results"]}
    table = re.findall(r"^\| ((?:last|mean), .*?) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert not record["quick"]
    assert len(table) == 8
    for task, cells in table:
        *_, ratio, aim, of_c = (cell.strip() for cell in cells.split("|"))
        assert float(of_c) == round(rows[f"of plain C: {task}"]["ratio"], 2)
        if ratio:
            assert float(ratio[:-1]) == round(rows[task]["ratio"], 1)
            assert f">= {aim[:-1]}x" == rows[task]["target"]


def test_steps():
    """What README and docs/scaling.md say of features from steps."""
    record = json.loads((ROOT / "benchmarks" / "records" / "steps.json").read_text())
    assert not record["quick"] and all(record["reached"].values())
    few, many, exact = (record["results"][part] for part in ("ten_thousand", "hundred_thousand", "exact"))
    row = re.search(r"takes (\d+) s of processor time and ([\d.]+) GB", (ROOT / "README.md").read_text()).groups()
    text = (ROOT / "docs" / "scaling.md").read_text().partition("512 pieces")[2]
    stated = re.search(r"takes (\d+) s .* to 100 000 (\d+) s and ([\d.]+) GB, .* one ([\d.]+) ms", text).groups()
    assert stated[1:3] == row == (f"{many['processor_seconds']:.0f}", f"{many['gigabytes']:.1f}")
    assert stated[0] == f"{few['processor_seconds']:.0f}" and stated[3] == f"{record['found']['milliseconds']:.1f}"
    assert record["sizes"]["landmarks"] == 512 and record["sizes"]["history"] == 16
    assert all(0.02 < part["kernel_error"] < 0.035 for part in (few, many))
    assert abs(exact["accuracy"] - exact["accuracy_of_features"]) < 0.0045
