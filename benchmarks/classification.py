"""How well does `RNTKClassifierCV` classify? Test accuracy on the sets of a folder, beside its rivals.

    python benchmarks/classification.py FOLDER [--methods rntk minirocket rbf polynomial ntk paper] [--out RECORD.json]

FOLDER holds one folder per data set with `NAME_TRAIN.tsv` and `NAME_TEST.tsv`, as the UCR archive does. Every set is
fitted on its training part alone; test labels are used once, for the score. Results are written set by set: started
again, the run goes on where it stopped. `--report` only prints what a record holds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from accuracy_tables import accuracies, data_sets, keep, summary, told
from rntk import RNTKClassifierCV
from rntk.experiments.printed import rntk_table_2
from rntk.files import read

RECORD = Path(__file__).parent / "records" / "classification.json"


def make(method: str) -> Any:
    if method == "minirocket":
        from aeon.classification.convolution_based import MiniRocketClassifier

        return MiniRocketClassifier(random_state=0, n_jobs=len(os.sched_getaffinity(0)))
    if method.startswith("paper"):
        return RNTKClassifierCV(search="paper", family=method.removeprefix("paper").strip() or "rntk")
    return RNTKClassifierCV(family=method)


def run(method: str, folder: Path) -> dict[str, Any]:
    train, test = (next(iter(sorted(folder.glob(f"*_{part}.*")))) for part in ("TRAIN", "TEST"))
    train, test = read(train), read(test)
    X, X_test = train.X, test.X
    if method == "minirocket":  # aeon's layout: cases, channels, steps
        X, X_test = (np.stack(list(each)).transpose(0, 2, 1) for each in (X, X_test))
    model = make(method)
    begin, work = time.perf_counter(), time.process_time()
    model.fit(X, train.y)
    fitted = time.perf_counter()
    predicted = model.predict(X_test)
    done = time.perf_counter()
    return {
        "accuracy": 100 * float(np.mean(predicted == test.y)),
        "fit_seconds": fitted - begin,
        "predict_seconds": done - fitted,
        "core_seconds": time.process_time() - work,
        "train": len(train.X),
        "test": len(test.X),
        "length": int(train.X.max_length),
        "best": getattr(model, "best_params_", None),
        "loo": getattr(model, "loo_score_", None),
    }


def report(record: dict[str, Any], methods: list[str], console: Console) -> None:
    results = record["results"]
    printed = rntk_table_2()
    table = Table("data set", *methods, "RNTK as printed")
    for name, each in sorted(results.items()):
        known = f"{printed[name]['RNTK']:.2f}" if name in printed else ""
        table.add_row(name, *accuracies(each, methods), known)
    console.print(table)
    for method in methods:
        shared = [name for name in results if name in printed and method in results[name]]
        both = [(results[name][method]["accuracy"], printed[name]["RNTK"]) for name in shared]
        mine, theirs = np.mean(both, axis=0) if both else (np.nan, np.nan)
        console.print(f"{method}: {mine:.2f} on {len(both)} sets for which the paper prints {theirs:.2f}")
    console.print(summary(results, methods, "rntk") or "no set has run with all of these methods yet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", nargs="+", default=["rntk", "minirocket"])
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--report", action="store_true", help="print the record and stop")
    arguments = parser.parse_args()
    console = Console()
    record: dict[str, Any] = {"command": "python benchmarks/classification.py FOLDER", "results": {}}
    if arguments.out.exists():
        record = json.loads(arguments.out.read_text())
    if not arguments.report:
        record["versions"] = {name: version(name) for name in ("rntk", "numpy", "scikit-learn", "aeon")}
        for folder in data_sets(arguments.folder, arguments.sets):
            done = record["results"].setdefault(folder.name, {})
            for method in arguments.methods:
                if method not in done:
                    done[method] = run(method, folder)
                    console.print(told(folder.name, method, done[method]))
                    keep(record, arguments.out)
    report(record, arguments.methods, console)


if __name__ == "__main__":
    main()
