"""How good is the default classifier, and what does it cost? Beside MiniRocket in the same run, and published columns.

    python benchmarks/classify.py FOLDER ANCHORS.csv --half development [--rival] [--sets NAME …] [--out RECORD.json]

FOLDER holds `ucr/` and `ucr_more/`, ANCHORS the published accuracies (percent), one row per set. Which sets belong to
which half stands in `records/split.json`: the development half is for tuning, the confirmation half was looked at
once. Both learners get one thread; costs are processor seconds of fit and predict, after a warm-up that compiles.
`--rival` runs aeon's `MiniRocketClassifier` for accuracy and cost. It has no probabilities of its own: for these, its
features and ridge classifier go into scikit-learn's `CalibratedClassifierCV` (sigmoid, 5-fold or as many as the
smallest class has members), whose time isn't counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gram import machine
from rntk import RNTKClassifier
from rntk.io import read

RECORDS = Path(__file__).parent / "records"
PUBLISHED = ("HC2", "MR-Hydra", "MiniROCKET")
#: Of probabilities, from 0 to 1.
BINS = 10


def load(folder: Path, name: str) -> list[np.ndarray]:
    """Training series and labels, test series and labels."""
    place = next(each for part in ("ucr", "ucr_more") if (each := folder / part / name).is_dir())
    found = []
    for part in ("TRAIN", "TEST"):
        data = read(place / f"{name}_{part}.tsv")
        found += [np.stack(list(data.X))[:, :, 0], np.asarray(data.y)]
    return found


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    return work(), time.process_time() - begin


def quality(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Accuracy in percent, log loss and Brier score (summed over classes), and what a reliability picture needs.

    That is, by `BINS` of the probability of the label predicted: how many series, the sum of these probabilities, and
    how many labels are right.
    """
    truth = (y[:, None] == classes).astype(float)
    own = np.clip((probabilities * truth).sum(axis=1), 1e-15, 1.0)
    sure, right = probabilities.max(axis=1), classes[probabilities.argmax(axis=1)] == y
    sums = [np.histogram(sure, BINS, (0, 1), weights=each)[0] for each in (np.ones(len(y)), sure, right.astype(float))]
    return {
        "accuracy": 100 * float(right.mean()),
        "reliability": np.round(sums, 6).tolist(),
        "log_loss": float(-np.log(own).mean()),
        "brier": float(np.square(probabilities - truth).sum(axis=1).mean()),
    }


def ours(X: np.ndarray, y: np.ndarray, new: np.ndarray, wanted: np.ndarray) -> dict[str, Any]:
    model, fit = timed(lambda: RNTKClassifier(n_jobs=1, progress=False).fit(X, y))
    labels, predict = timed(lambda: model.predict(new))
    probabilities, chances = timed(lambda: model.predict_proba(new))
    found = quality(probabilities, model.classes_, wanted)
    assert (labels == model.classes_[probabilities.argmax(axis=1)]).all()
    found |= {"fit": fit, "predict": predict, "predict_proba": chances}
    return found | {"members": len(model.members_), "loo": 100 * model.loo_score_}


def rival(X: np.ndarray, y: np.ndarray, new: np.ndarray, wanted: np.ndarray) -> dict[str, Any]:
    from aeon.classification.convolution_based import MiniRocketClassifier
    from aeon.transformations.collection.convolution_based import MiniRocket

    model, fit = timed(lambda: MiniRocketClassifier(n_jobs=1, random_state=0).fit(X[:, None], y))
    labels, predict = timed(lambda: model.predict(new[:, None]))
    found: dict[str, Any] = {"accuracy": 100 * float((labels == wanted).mean()), "fit": fit, "predict": predict}
    folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    if folds > 1:  # a class of one member leaves nothing to calibrate by
        ridge = make_pipeline(StandardScaler(with_mean=False), RidgeClassifierCV(alphas=np.logspace(-3, 3, 10)))
        transform = MiniRocket(n_jobs=1, random_state=0).fit(X[:, None])  # knows no labels
        calibrated = CalibratedClassifierCV(ridge, cv=folds).fit(np.asarray(transform.transform(X[:, None])), y)
        chances = calibrated.predict_proba(np.asarray(transform.transform(new[:, None])))
        of = quality(chances, calibrated.classes_, wanted)
        found |= {name: of[name] for name in ("log_loss", "brier", "reliability")}
    return found


def compare(rows: dict[str, dict[str, Any]], published: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Means, wins, ties and losses, and mean ranks, over the sets with published accuracies."""
    names = [name for name in rows if name in published]
    columns = {"rntk": np.array([rows[name]["rntk"]["accuracy"] for name in names])}
    columns |= {column: np.array([float(published[name][column]) for name in names]) for column in PUBLISHED}
    ranks = rankdata([-each.round(2) for each in columns.values()], axis=0).mean(axis=1)
    found: dict[str, Any] = {"sets": len(names)}
    for (column, values), rank in zip(columns.items(), ranks, strict=True):
        found[column] = {"mean": float(values.mean()), "mean_rank": float(rank)}
        if column != "rntk":
            better = np.sign((columns["rntk"] - values).round(2))
            found[column]["wins_ties_losses"] = [int((better == sign).sum()) for sign in (1, 0, -1)]
    for who in ("rntk", "minirocket"):
        runs = [row[who] for row in rows.values() if who in row]
        if runs:
            found[f"{who} seconds"] = sum(run["fit"] + run["predict"] for run in runs)
    both = [row for row in rows.values() if "log_loss" in row.get("minirocket", {})]
    if both:
        found["probabilities"] = {
            who: {measure: float(np.mean([row[who][measure] for row in both])) for measure in ("log_loss", "brier")}
            for who in ("rntk", "minirocket")
        } | {"sets": len(both)}
    return found


def keep(path: Path, half: str, record: dict[str, Any]) -> None:
    old = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**old, half: record}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("anchors", type=Path)
    parser.add_argument("--half", choices=("development", "confirmation"), default="development")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--rival", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    numba.set_num_threads(1)
    split = json.loads((RECORDS / "split.json").read_text())
    names = [name for name in split[arguments.half] if not arguments.sets or name in arguments.sets]
    names.sort(key=lambda name: split["training series"][name])
    with arguments.anchors.open() as stream:
        published = {row["dataset"]: row for row in csv.DictReader(stream)}
    rng = np.random.default_rng(0)
    noise, labels = rng.standard_normal((20, 30)), np.arange(20) % 2
    for run in (ours, rival) if arguments.rival else (ours,):
        run(noise, labels, noise, labels)  # compiles
    console, rows = Console(), {}
    for name in names:
        data = load(arguments.folder, name)
        rows[name] = {"rntk": ours(*data)} | ({"minirocket": rival(*data)} if arguments.rival else {})
        if name in published:
            rows[name]["published"] = {column: float(published[name][column]) for column in PUBLISHED}
        if arguments.out:
            keep(
                arguments.out, arguments.half, {"machine": machine(), "summary": compare(rows, published), "sets": rows}
            )
        said = " ".join(f"{key} {value:.3g}" for key, value in rows[name]["rntk"].items() if key != "reliability")
        console.print(f"{name}: {said}; published HC2 {published.get(name, {}).get('HC2', '-')}", highlight=False)
    summary = compare(rows, published)
    table = Table("", "mean accuracy", "mean rank", "rntk wins/ties/losses")
    for column in ("rntk", *PUBLISHED):
        each = summary[column]
        games = "/".join(map(str, each.get("wins_ties_losses", [])))
        table.add_row(column, f"{each['mean']:.2f}", f"{each['mean_rank']:.2f}", games)
    console.print(table)
    console.print_json(json.dumps({key: value for key, value in summary.items() if key not in ("rntk", *PUBLISHED)}))


if __name__ == "__main__":
    main()
