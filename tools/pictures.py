"""Pictures for docs/accuracy.md, from the record of benchmarks/classify.py: python tools/pictures.py [FOLDER]

`reliability` needs a record with bins of probabilities, which only runs of the development half can be given.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from rntk.papers.ranks import critical_difference

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "records" / "classify.json"
PICTURES = ROOT / "docs" / "pictures"
HALVES = ("confirmation", "development")
NAMES = {
    "rntk": "RNTKClassifier",
    "HC2": "HIVE-COTE 2",
    "MR-Hydra": "MultiRocket-Hydra",
    "MiniROCKET": "MiniRocket",
}
LEARNERS = {"rntk": "RNTKClassifier", "minirocket": "MiniRocket, sigmoid by cross-validation"}


def ranks(record: dict[str, Any]) -> Figure:
    """Critical-difference diagrams of both halves."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    for half, ax in zip(HALVES, figure.subplots(2), strict=True):
        rows = [row for row in record[half]["sets"].values() if "published" in row]
        table = [[row["rntk"]["accuracy"], *(row["published"][name] for name in list(NAMES)[1:])] for row in rows]
        critical_difference(np.round(table, 2), list(NAMES.values()), ax)
        ax.set_title(f"{half} half: {ax.get_title()}")
    return figure


def reliability(record: dict[str, Any]) -> Figure:
    """How often labels are right, by the probability that they are given; every set of the development half alike."""
    figure = Figure(figsize=(4.4, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    rows = [row for row in record["development"]["sets"].values() if all("reliability" in row[who] for who in LEARNERS)]
    for who, name in LEARNERS.items():
        shares = [np.array(row[who]["reliability"]) / sum(row[who]["reliability"][0]) for row in rows]
        count, sure, right = np.mean(shares, axis=0)
        some = count > 0
        (line,) = ax.plot(sure[some] / count[some], right[some] / count[some], label=name)
        ax.scatter(*line.get_data(), 400 * count[some], color=line.get_color(), alpha=0.6)
    ax.set(xlabel="probability of the predicted label", ylabel="share of predicted labels that are right")
    ax.set(xlim=(0, 1.02), ylim=(0, 1.02), title=f"{len(rows)} sets of the development half")
    ax.legend(loc="upper left", frameon=False)
    return figure


def main(folder: Path) -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    with mpl.rc_context({"svg.hashsalt": "rntk"}):  # the same picture is the same file
        measured = any("reliability" in row["rntk"] for row in record["development"]["sets"].values())
        for draw in (ranks, reliability) if measured else (ranks,):
            draw(record).savefig(folder / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
