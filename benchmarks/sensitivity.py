"""What does a reverse pass cost, and what does Figure 3 of the RNTK paper show at full size?

    python benchmarks/sensitivity.py [--rounds 7] [--out RECORD.json] [--pictures FOLDER]

Costs are ratios to the kernel itself on as many pairs, in one run: 100 by 100 sequences for `kernel(X, Y)`, all ordered
pairs of 101 sequences for the gradients, and for `sensitivity` with its averages. Rounds alternate; medians of
processor time on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from accuracy_tables import keep
from rntk import RNTK, papers, sensitivity
from rntk.engine.slopes import in_groups, join
from rntk.errors import HermiteAccuracyWarning
from rntk.runtime import Execution
from rntk.theory.sensitivity import draw_pairs

RECORD = Path(__file__).parent / "records" / "sensitivity.json"
KERNELS: dict[str, dict[str, Any]] = {
    "relu": {},
    "relu, depth 3": {"depth": 3, "sigma_b": 0.1},
    "erf": {"activation": "erf", "sigma_w": 1.0, "sigma_b": 0.05},
    "sin": {"activation": "sin", "sigma_w": 1.0},
    "tanh": {"activation": "tanh", "sigma_w": 1.0},
}


def cost(kernel: RNTK, X: Any, Y: Any, rounds: int) -> dict[str, float]:
    """Processor seconds of the kernel, of its gradients by every step, and of the finished curves; and ratios."""

    def gradients() -> None:
        plan = replace(kernel.plan(), run=Execution(n_jobs=1))
        batch = join(kernel.read_batch(X))
        left, right = draw_pairs(len(X), 10_100, np.random.default_rng(0))
        for group in in_groups(plan, batch, left, right):
            group.gradients.each(group.left, group.right, lambda *found: None, lambda amount: None)

    jobs: dict[str, Callable[[], Any]] = {
        "kernel": lambda: kernel(X[:100], Y),
        "gradients": gradients,
        "sensitivity": lambda: sensitivity(kernel, X, pairs=10_100),
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds + 1):
        for name, job in jobs.items():
            begin = time.process_time()
            job()
            times[name].append(time.process_time() - begin)
    found = {name: float(np.median(taken[1:])) for name, taken in times.items()}  # the first one compiles
    pairs = 1.01  # 10 100 against 10 000
    return {**found, "ratio": found["gradients"] / pairs / found["kernel"]}


def costs(rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found = {}
    for name, options in KERNELS.items():
        for T in (100, 1000) if name == "relu" else (100,):
            X, Y = rng.standard_normal((101, T)), rng.standard_normal((100, T))
            found[f"{name}, T = {T}"] = cost(RNTK(**options, n_jobs=1, progress=False), X, Y, rounds)
    X, Y = rng.standard_normal((2, 10_000, 100))
    for name in ("relu", "erf"):
        kernel = RNTK(**KERNELS[name], progress=False)
        begin = time.perf_counter()
        sensitivity(kernel, X, Y)
        found[f"{name}, 10 000 independent pairs, T = 100"] = {"seconds": time.perf_counter() - begin}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    console = Console()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HermiteAccuracyWarning)  # it is speed that counts here
        measured = costs(arguments.rounds)
    table = Table("kernel", "kernel, ms", "gradients, ms", "whole sensitivity, ms", "gradients over kernel")
    for name, each in measured.items():
        if "ratio" in each:
            cells = (*(1000 * each[job] for job in ("kernel", "gradients", "sensitivity")), each["ratio"])
            table.add_row(name, *(f"{value:.1f}" for value in cells))
        else:
            table.add_row(name, "", "", f"{1000 * each['seconds']:.0f} (wall)", "")
    console.print(table)
    found = papers.run("rntk-figure-3", mode="full")
    for row in found.verdicts:
        held = row["verdict"] == "reproduced"
        console.print(f"[{'green' if held else 'red'}]{'holds' if held else 'refuted'}[/]: {row['sentence']}")
        console.print(f"  {row['ours']}")
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
        found.figures()["figure-3"].savefig(arguments.pictures / "figure_3.png", dpi=150)
    curves = found.results["curves"]
    shown = {"T": curves.T, "pairs": curves.pairs, "claims": found.verdicts}
    keep({"command": "python benchmarks/sensitivity.py", "costs": measured, "figure 3": shown}, arguments.out)


if __name__ == "__main__":
    main()
