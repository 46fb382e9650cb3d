"""Series of unequal length: the ragged kernel, the same kernel on zero-padded series, and tslearn's GAK-SVC.

    python benchmarks/unequal.py FOLDER [--methods default native padded svm "svm padded" gak] [--out RECORD.json]

FOLDER holds one folder per data set with `NAME_TRAIN.tsv` and `NAME_TEST.tsv`, as the UCR archive does; NaN at the end
of a line marks a length, NaN inside a line is a gap and is interpolated. Every set is fitted on its training part
alone; test labels are used once, for the score. Results are written one by one: started again, the run goes on where
it stopped. `--report` only prints what a record holds.

default     `RNTKClassifier()` on the series as they are, so that it may use their level and size
native      `RNTKClassifier()` on z-normalised series
padded      the same with zeros at the end, up to the longest training series; longer test series are cut there
svm         one RNTK on z-normalised series and an SVM, C by cross-validation
svm padded  the same on padded series
gak         tslearn's global alignment kernel as `TimeSeriesSVC(kernel="gak", gamma="auto", random_state=0)` has it, on
            z-normalised series, C as for svm; `pip install tslearn`

The last three compute each Gram matrix once, cost O(T²) per pair, and see sets with training series of more than
`LONG` steps averaged down to at most `SHORT`, in blocks of one size (`block` in the record) for all series of a set.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from accuracy_tables import accuracies, data_sets, keep, summary, told
from rntk import RNTK, RNTKClassifier
from rntk.io import LabelledSequences, read
from rntk.preprocessing import z_normalize
from rntk.preprocessing.steps import block_means
from rntk.sequences import SequenceBatch, as_batch

Array = NDArray[Any]
RECORD = Path(__file__).parent / "records" / "unequal.json"
METHODS = ("default", "native", "padded", "svm", "svm padded", "gak")
SEARCHES = METHODS[:3]
COSTS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
LONG, SHORT = 400, 200
THREADS = len(os.sched_getaffinity(0))


class KernelSVM:
    """Support vector machine on Gram matrices; of equally good C the smallest.

    What `RNTKSVC` and `TimeSeriesSVC` do with one C, without a new Gram matrix for every fold and C.
    """

    def __init__(self, gram: Callable[[SequenceBatch, SequenceBatch | None], Array]) -> None:
        self.gram = gram

    def fit(self, X: SequenceBatch, y: Array) -> KernelSVM:
        """Choose C by at most five stratified folds, then fit to all."""
        self.sequences, K = X, self.gram(X, None)
        scores = cross_validate(K, y)
        best = int(np.argmax(scores))
        self.best_params_, self.best_score_ = {"C": COSTS[best]}, float(scores[best])
        self.svc = SVC(kernel="precomputed", C=COSTS[best]).fit(K, y)
        return self

    def predict(self, X: SequenceBatch) -> Array:
        """Labels of the series in `X`."""
        return np.asarray(self.svc.predict(self.gram(X, self.sequences)))


def cross_validate(K: Array, y: Array) -> Array:
    """Accuracy for every C in `COSTS`, rounded so that equal hits in another order of folds stay a tie."""
    count = min(5, int(np.unique(y, return_counts=True)[1].min()))
    folds = StratifiedKFold(count, shuffle=True, random_state=0).split(K, y)
    hits = [
        [
            np.mean(
                SVC(kernel="precomputed", C=cost).fit(K[np.ix_(fit, fit)], y[fit]).predict(K[np.ix_(rest, fit)])
                == y[rest]
            )
            for cost in COSTS
        ]
        for fit, rest in folds
    ]
    return np.asarray(np.round(np.mean(hits, axis=0), 12))


def rntk_gram(X: SequenceBatch, Y: SequenceBatch | None) -> Array:
    kernel = RNTK(readout="mean", sigma_w=1.25, sigma_b=0.3, normalize=True, dtype="float32")
    return np.asarray(kernel(X) if Y is None else kernel(X, Y), dtype=np.float64)


def gak_gram(X: SequenceBatch, Y: SequenceBatch | None) -> Array:
    """`TimeSeriesSVC`'s: the bandwidth is its rule for gamma, on the training series."""
    metrics = import_module("tslearn.metrics")
    training = list(X if Y is None else Y)
    sigma = np.sqrt(metrics.gamma_soft_dtw(training, random_state=0) / 2)
    return np.asarray(metrics.cdist_gak(list(X), None if Y is None else training, sigma=sigma, n_jobs=THREADS))


def make(method: str) -> Any:
    if method in SEARCHES:
        return RNTKClassifier()
    return KernelSVM(gak_gram if method == "gak" else rntk_gram)


def prepare(method: str, X: SequenceBatch, block: int, longest: int) -> SequenceBatch:
    """The series as the method sees them; `longest` is the length of the longest training series."""
    if method == "default":
        return X
    X = z_normalize(block_means(X, block))
    return zero_pad(X, -(-longest // block)) if "padded" in method else X


def zero_pad(X: SequenceBatch, length: int) -> SequenceBatch:
    """The series with zeros at the end up to `length`; what is longer is cut."""
    values = np.zeros((len(X), length, X.n_channels))
    for row, series in zip(values, X, strict=True):
        row[: len(series)] = series[:length]
    return as_batch(values)


def run(method: str, train: LabelledSequences, test: LabelledSequences) -> dict[str, Any]:
    assert train.y is not None
    longest = train.X.max_length
    block = -(-longest // SHORT) if longest > LONG and method not in SEARCHES else 1
    model = make(method)
    begin, work = time.perf_counter(), time.process_time()
    model.fit(prepare(method, train.X, block, longest), train.y)
    fitted = time.perf_counter()
    predicted = model.predict(prepare(method, test.X, block, longest))
    done = time.perf_counter()
    return {
        "accuracy": 100 * float(np.mean(predicted == test.y)),
        "fit_seconds": fitted - begin,
        "predict_seconds": done - fitted,
        "core_seconds": time.process_time() - work,
        "block": None if isinstance(model, RNTKClassifier) else block,
        "best": model.best_params_,
        "training_score": model.best_score_,
    }


def describe(train: LabelledSequences, test: LabelledSequences) -> dict[str, Any]:
    assert train.y is not None
    lengths = np.concatenate([train.X.lengths, test.X.lengths])
    return {
        "train": len(train.X),
        "test": len(test.X),
        "classes": len(np.unique(train.y)),
        "lengths": [int(lengths.min()), int(lengths.max())],
        "longest_training_series": train.X.max_length,
    }


def warm_up(methods: list[str]) -> None:
    """Compile what the methods use, so that no set pays for it."""
    X = as_batch(np.random.default_rng(0).standard_normal((8, 20)))
    y = np.arange(8) % 2
    for method in methods:
        make(method).fit(X, y).predict(as_batch([X[0], X[1][:5]]))


def report(record: dict[str, Any], methods: list[str], console: Console) -> None:
    table = Table("data set", "train", "test", "lengths", *methods)
    for name, each in sorted(record["results"].items()):
        about = record["sets"][name]
        facts = (str(about["train"]), str(about["test"]), "-".join(map(str, about["lengths"])))
        table.add_row(name, *facts, *accuracies(each, methods))
    console.print(table)
    console.print(summary(record["results"], methods, "native") or "no set has run with all of these methods yet")


def machine(methods: list[str]) -> dict[str, Any]:
    packages = ["rntk", "numpy", "numba", "scikit-learn", *(["tslearn"] if "gak" in methods else [])]
    return {
        "threads": THREADS,
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
        "date": time.strftime("%Y-%m-%d"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--report", action="store_true", help="print the record and stop")
    arguments = parser.parse_args()
    console = Console()
    record: dict[str, Any] = {"command": "python benchmarks/unequal.py FOLDER", "sets": {}, "results": {}}
    if arguments.out.exists():
        record = json.loads(arguments.out.read_text())
    if not arguments.report:
        if "gak" in arguments.methods:
            try:
                import_module("tslearn")
            except ModuleNotFoundError:
                parser.error("the method gak needs tslearn: pip install tslearn, or leave gak out of --methods")
        record["machine"] = {**record.get("machine", {}), **machine(arguments.methods)}
        warm_up(arguments.methods)
        for folder in data_sets(arguments.folder, arguments.sets):
            done = record["results"].setdefault(folder.name, {})
            missing = [method for method in arguments.methods if method not in done]
            if not missing:
                continue
            train, test = (
                read(next(iter(sorted(folder.glob(f"*_{part}.*")))), missing="interpolate")
                for part in ("TRAIN", "TEST")
            )
            record["sets"][folder.name] = describe(train, test)
            for method in missing:
                line = done[method] = run(method, train, test)
                console.print(told(folder.name, method, line))
                keep(record, arguments.out)
    report(record, arguments.methods, console)


if __name__ == "__main__":
    main()
