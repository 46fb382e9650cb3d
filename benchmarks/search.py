"""How fast is the paper's search? 900 kernels, five values of C, ten folds, against the same written plainly.

    python benchmarks/search.py [--data FOLDER/ECG200] [--sample 2] [--out benchmarks/records/search.json]

The plain version computes each Gram matrix by the textbook recursion in NumPy (`rivals.py`, which has no biases and one
σ: the same work for every kernel of the grid) and cross-validates scikit-learn's `SVC` on it. A full run would take
hours, so it is timed on a sample of kernels and multiplied up; the record says so. Without `--data` both run on noise
of the size of ECG200 (100 sequences of 96 steps). Also timed: `RNTKClassifier` at 1000 × 300.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from gram import machine
from rivals import numpy_last
from rntk import RNTK, RNTKClassifier
from rntk.io import read
from rntk.papers.protocol import C_VALUES, PaperClassifier, paper_grid


def plain(X: np.ndarray, y: np.ndarray, count: int) -> float:
    """Seconds per kernel of the plain search, from `count` of them."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    begin = time.perf_counter()
    for _ in range(count):
        K = numpy_last(X)
        for cost in C_VALUES:
            cross_val_score(SVC(kernel="precomputed", C=cost), K, y, cv=folds)
    return (time.perf_counter() - begin) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sample", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--skip-fast", action="store_true")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 96)).cumsum(axis=1), np.arange(100) % 2
    X[y == 1] += np.sin(np.arange(96))
    if arguments.data:
        data = read(next(iter(arguments.data.glob("*_TRAIN.*"))))
        X, y = np.stack(list(data.X))[:, :, 0], data.y
    RNTK()(X)  # compile
    begin = time.perf_counter()
    model = PaperClassifier().fit(X, y)
    ours = time.perf_counter() - begin
    each = plain(X, y, arguments.sample)
    kernels = len(paper_grid("rntk"))
    record: dict[str, Any] = {
        "machine": machine(),
        "data": str(arguments.data.name) if arguments.data else "noise",
        "shape": X.shape,
        "rntk_seconds": ours,
        "plain_seconds_extrapolated": each * kernels,
        "plain_kernels_timed": arguments.sample,
        "ratio": each * kernels / ours,
        "target": ">= 20x",
        "best": model.best_params_,
    }
    if not arguments.skip_fast:
        X = rng.standard_normal((1000, 300)).cumsum(axis=1)
        y = np.arange(1000) % 4
        X += np.sin(np.arange(300) * (0.1 + 0.05 * y[:, None])) * 3
        begin = time.perf_counter()
        RNTKClassifier().fit(X, y)
        record["fast_1000x300_seconds"] = time.perf_counter() - begin
    Console().print_json(json.dumps(record))
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
