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
