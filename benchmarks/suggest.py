"""Is a flat sensitivity a good choice? An SVM at the point `rntk.suggest` finds, the default's, and the grid's best.

    python benchmarks/suggest.py FOLDER [--sets NAME ...] [--out RECORD.json] [--report]

The protocol is the RNTK paper's but for the kernel: sequences of unit norm, C by 10 folds from its five values. The
kernel is `RNTK()`, or the one suggested from the training sequences without their labels; the best of the paper's 900
is read from the record of `rntk reproduce rntk-tables --full`. Started again, the run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import wilcoxon

from accuracy_tables import data_sets, keep
from rntk import RNTK, RNTKSVC, suggest
from rntk.io import read
from rntk.papers.protocol import C_VALUES, MAX_ITERATIONS, class_folds, svm_scores
from rntk.preprocessing import unit_norm

RECORD = Path(__file__).parent / "records" / "suggest.json"
GRID = Path(__file__).parents[1] / "results" / "full" / "rntk-tables" / "record.json"
METHODS = ("default", "suggested", "suggested, late", "grid")


def accuracy(kernel: RNTK, train: Any, test: Any) -> dict[str, Any]:
    folds = class_folds(train.y, 10, np.random.RandomState(0))
    X = unit_norm(train.X)
    scores = svm_scores(kernel(X), train.y, folds)
    cost = C_VALUES[int(np.argmax(scores))]
    model = RNTKSVC(kernel, C=cost, max_iter=MAX_ITERATIONS).fit(X, train.y)
    right = np.mean(model.predict(unit_norm(test.X)) == test.y)
    return {"accuracy": 100 * float(right), "kernel": repr(kernel), "C": cost, "cross_validation": 100 * scores.max()}


def run(folder: Path) -> dict[str, Any]:
    train, test = (read(next(iter(sorted(folder.glob(f"*_{part}.*"))))) for part in ("TRAIN", "TEST"))
    found: dict[str, Any] = {"default": accuracy(RNTK(), train, test)}
    for name, emphasis in (("suggested", None), ("suggested, late", "late")):
        begin = time.perf_counter()
        suggestion = suggest(unit_norm(train.X), emphasis=emphasis)
        seconds = time.perf_counter() - begin
        found[name] = {**accuracy(suggestion.kernel, train, test), "suggest_seconds": seconds}
        found[name]["flatness"] = suggestion.curve.flatness
    return found


def report(results: dict[str, Any], console: Console) -> None:
    cells = [unit for unit in json.loads(GRID.read_text())["units"].values() if unit["config"]["method"] == "RNTK"]
    grid = {unit["config"]["set"]: unit["result"] for unit in cells}
    table = Table("data set", *METHODS, "σ_w, σ_b, σ_h suggested")
    rows = []
    for name, each in sorted(results.items()):
        best = grid.get(name, {}).get("accuracy", np.nan)
        row = [*(each[method]["accuracy"] for method in METHODS[:-1]), best]
        rows.append(row)
        table.add_row(name, *(f"{value:.2f}" for value in row), each["suggested"]["kernel"])
    console.print(table)
    score = np.array([row for row in rows if np.isfinite(row).all()])
    console.print(
        f"mean over {len(score)} sets: "
        + ", ".join(f"{m} {s:.2f}" for m, s in zip(METHODS, score.mean(axis=0), strict=True))
    )
    for method in METHODS[1:]:
        gap = score[:, METHODS.index(method)] - score[:, 0]
        counts = "/".join(str(int(np.sum(np.sign(gap) == sign))) for sign in (1, 0, -1))
        p = wilcoxon(gap).pvalue if np.any(gap) else 1.0
        console.print(f"{method} against default: {gap.mean():+.2f}, wins/ties/losses {counts}, Wilcoxon p = {p:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--report", action="store_true", help="print the record and stop")
    arguments = parser.parse_args()
    record: dict[str, Any] = {"command": "python benchmarks/suggest.py FOLDER", "results": {}}
    if arguments.out.exists():
        record = json.loads(arguments.out.read_text())
    if not arguments.report:
        for folder in data_sets(arguments.folder, arguments.sets):
            if folder.name not in record["results"]:
                record["results"][folder.name] = run(folder)
                keep(record, arguments.out)
    report(record["results"], Console())


if __name__ == "__main__":
    main()
