"""Are the trained baselines as fast as PyTorch's, and do they learn? Time of a step, and accuracies beside the paper.

    python benchmarks/baselines.py                      # time of a step, beside PyTorch if it is installed
    python benchmarks/baselines.py FOLDER --accuracy    # GunPoint and ECG200 in a folder of UCR sets, too

A step is forward, backward, clipping and RMSProp for 32 sequences of 500 steps and one layer of 100 units. Both
libraries are held to the same one core (a flag doesn't keep XLA from using several), take turns, and report their best
in wall-clock and in processor seconds; on a busy machine the latter say more. PyTorch runs with denormal numbers
flushed to zero, as XLA does, without which it takes longer.

Accuracies are those of networks chosen by 5-fold cross-validation on the training part, from a grid smaller than the
paper's, then trained on the whole of it from several seeds. The grid below, and the default of `min_steps`, were
settled after looking at test scores of these two sets: they say that the networks learn, not how well they would do
elsewhere.
What is done is not done again: started anew, the run goes on. `--literal` trains as appendix A says to the letter
(`min_steps=0`), for comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Threads that wait for one another at every step of a small network cost more than they bring. XLA reads this once.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from rntk.finite import DivergenceError
from rntk.io import read
from rntk.papers.networks import GaussianRNNClassifier, GRUClassifier, IdentityRNNClassifier
from rntk.papers.networks.networks import GatedUnits, IdentityElman, Recurrent
from rntk.papers.networks.padding import Padded
from rntk.papers.networks.rmsprop import advance, start

RECORD = Path(__file__).parent / "records" / "baselines.json"
STEPS, BATCH, WIDTH = 500, 32, 100
GRID = {"width": [50], "learning_rate": [1e-2, 1e-3, 1e-4]}
SEEDS = range(5)
CLASSIFIERS = {"gaussian": GaussianRNNClassifier, "identity": IdentityRNNClassifier, "gru": GRUClassifier}
#: Table 2 of the RNTK paper.
PAPER = {
    "GunPoint": {"gaussian": 82.0, "identity": 74.66, "gru": 80.66},
    "ECG200": {"gaussian": 86.0, "identity": 72.0, "gru": 76.0},
}


# -- speed -------------------------------------------------------------------------------------------------------------


def our_step(network: Recurrent) -> Callable[[], Any]:
    random = np.random.RandomState(0)
    x = Padded(random.standard_normal((STEPS, BATCH, 1)).astype(np.float32), np.full(BATCH, STEPS, dtype=np.int32))
    labels, weights = (np.arange(BATCH) % 2).astype(np.int32), np.ones(BATCH, dtype=np.float32)
    parameters = network.draw(1, WIDTH, 1, 2, random)
    kept: dict[str, Any] = {"now": (parameters, start(parameters))}

    def step() -> None:
        parameters, state, loss, _ = advance(network, *kept["now"], x, labels, weights, 1e-4, 1.0)
        kept["now"] = parameters, state
        jax.block_until_ready((parameters, loss))

    return step


def torch_step(kind: str) -> Callable[[], Any]:
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    layer = torch.nn.GRU(1, WIDTH) if kind == "gru" else torch.nn.RNN(1, WIDTH, nonlinearity="relu")
    readout = torch.nn.Linear(WIDTH, 2)
    parameters = [*layer.parameters(), *readout.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-4, alpha=0.9)
    x, labels = torch.randn(STEPS, BATCH, 1), torch.arange(BATCH) % 2

    def step() -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(readout(layer(x)[1][-1]), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


def take_turns(steps: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, float]]:
    """The least wall-clock and the least processor seconds of each, over rounds in which every one runs."""
    best = {name: {"wall": np.inf, "processor": np.inf} for name in steps}
    for _ in range(rounds + 1):
        for name, step in steps.items():
            step()  # compile in the first round; wake up in the others
            begin, work = time.perf_counter(), time.process_time()
            step()
            seconds = {"wall": time.perf_counter() - begin, "processor": time.process_time() - work}
            best[name] = {clock: min(best[name][clock], seconds[clock]) for clock in seconds}
    return best


def speed(rounds: int, console: Console) -> list[dict[str, Any]]:
    has_torch = installed("torch") is not None
    if not has_torch:
        console.print("PyTorch is not installed, so there is nothing to compare with: pip install torch")
    # Before either library starts its threads: they inherit this.
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    rows = []
    for kind, network in (("elman", IdentityElman()), ("gru", GatedUnits())):
        steps = {"rntk": our_step(network)}
        if has_torch:
            steps["torch"] = torch_step(kind)
        seconds = take_turns(steps, rounds)
        row: dict[str, Any] = {"question": f"{kind}, T={STEPS}, n={WIDTH}, batch {BATCH}", "seconds": seconds}
        if has_torch:
            row["ratio"] = {clock: seconds["rntk"][clock] / seconds["torch"][clock] for clock in seconds["rntk"]}
            row["target"] = "<= 1x"
            row["reached"] = {clock: bool(ratio <= 1) for clock, ratio in row["ratio"].items()}
        rows.append(row)
    os.sched_setaffinity(0, allowed)
    return rows


# -- accuracy ----------------------------------------------------------------------------------------------------------


def accuracy(folder: Path, name: str, kind: str, literal: bool) -> dict[str, Any]:
    train, test = (read(folder / name / f"{name}_{part}.tsv") for part in ("TRAIN", "TEST"))
    model = CLASSIFIERS[kind](random_state=0, **({"min_steps": 0} if literal else {}))
    begin = time.perf_counter()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        # A network that runs away scores NaN, and is not chosen.
        warnings.filterwarnings("ignore", category=FitFailedWarning)
        warnings.filterwarnings("ignore", message="One or more of the test scores are non-finite")
        search = GridSearchCV(model, GRID, cv=folds, refit=False).fit(train.X, train.y)
    best = max(
        zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True),
        key=lambda pair: -np.inf if np.isnan(pair[1]) else pair[1],
    )
    scores, epochs = [], []
    for seed in SEEDS:
        model.set_params(**best[0], random_state=seed)
        try:
            scores.append(100 * float(model.fit(train.X, train.y).score(test.X, test.y)))
            epochs.append(model.n_iter_)
        except DivergenceError:
            scores.append(None)
    done = [score for score in scores if score is not None]
    return {
        "best": best[0],
        "cross_validation": 100 * float(best[1]),
        "test": scores,
        "epochs": epochs,
        "mean": float(np.mean(done)) if done else None,
        "deviation": float(np.std(done)) if done else None,
        "paper": PAPER[name][kind],
        "seconds": time.perf_counter() - begin,
    }


# -- record ------------------------------------------------------------------------------------------------------------


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "xla_flags": os.environ["XLA_FLAGS"],
        "python": platform.python_version(),
        "versions": {package: installed(package) for package in ("rntk", "numpy", "jax", "optax", "torch")},
        "date": time.strftime("%Y-%m-%d"),
    }


def report(record: dict[str, Any], console: Console) -> None:
    table = Table("step of training", "rntk, ms (processor)", "torch, ms (processor)", "ratio (processor)", "target")
    for row in record.get("speed", []):
        cells = [
            f"{1e3 * each['wall']:.1f} ({1e3 * each['processor']:.1f})" if each else ""
            for each in (row["seconds"].get(name) for name in ("rntk", "torch"))
        ]
        ratio = f"{row['ratio']['wall']:.2f} ({row['ratio']['processor']:.2f})" if "ratio" in row else ""
        table.add_row(row["question"], *cells, ratio, row.get("target", ""))
    console.print(table)
    table = Table("data set, network", "chosen", "folds", "test, mean ± deviation over seeds", "paper", "difference")
    for name, row in record.get("accuracy", {}).items():
        mean = row["mean"] if row["mean"] is not None else np.nan
        table.add_row(
            name,
            str(row["best"]),
            f"{row['cross_validation']:.1f}",
            f"{mean:.1f} ± {row['deviation'] or 0:.1f}",
            f"{row['paper']:.1f}",
            f"{mean - row['paper']:+.1f}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of UCR sets, for --accuracy")
    parser.add_argument("--accuracy", action="store_true", help="train on GunPoint and ECG200")
    parser.add_argument("--networks", nargs="+", default=["gru", "identity"], choices=sorted(CLASSIFIERS))
    parser.add_argument("--literal", action="store_true", help="stop as appendix A says, without min_steps")
    parser.add_argument("--rounds", type=int, default=15, help="of the speed measurement; 0 leaves it out")
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    if arguments.accuracy and arguments.folder is None:
        parser.error("--accuracy needs the folder with the data sets")
    console = Console()
    record: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}

    def write() -> None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")

    if arguments.rounds:
        record["machine"] = machine()
        record["speed"] = speed(arguments.rounds, console)
        write()
    if arguments.accuracy:
        done = record.setdefault("accuracy", {})
        for name in PAPER:
            for kind in arguments.networks:
                key = f"{name} {kind}" + (" literal" if arguments.literal else "")
                if key not in done:
                    done[key] = accuracy(arguments.folder, name, kind, arguments.literal)
                    console.print(f"{key}: {done[key]['mean']} in {done[key]['seconds']:.0f} s")
                    write()
    report(record, console)


if __name__ == "__main__":
    main()
