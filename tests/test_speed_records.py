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
