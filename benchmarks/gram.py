"""How fast is a Gram matrix? Ratios to the same recursion in NumPy, in JAX and in plain C, measured in one run.

    python benchmarks/gram.py [--quick] [--out benchmarks/records/gram.json]

These machines are noisy: rivals and library take turns, each reports its best of several runs, and what counts is the
ratio. Targets are those the project set itself; a missed one is printed as missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import limit
from rivals import jax_rivals, numpy_last, numpy_mean, numpy_mlp, numpy_variances
from rntk import NTK, RNTK


def take_turns(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Best time of each function, in seconds, over rounds in which every one runs."""
    best = dict.fromkeys(functions, np.inf)
    for function in functions.values():
        function()  # compile, allocate
    for _ in range(rounds):
        for name, function in functions.items():
            # Short ones run several times per round, so that each gets a comparable chance of a quiet moment.
            for _ in range(1 if best[name] > 0.3 else 4):
                begin = time.perf_counter()
                function()
                best[name] = min(best[name], time.perf_counter() - begin)
    return best


#: Targets against the faster of NumPy and JAX, by precision: with AVX2, and with AVX-512.
TARGETS = {"float64": (20, 26), "float32": (38, 45)}
#: Most of the time of plain C that the library may take.
OF_C = 0.9


def readouts(quick: bool) -> list[dict[str, Any]]:
    """`last` and `mean` in both precisions: against NumPy and JAX, and against plain C, with and without a bias."""
    rng, jax_last, jax_mean, plain_c = np.random.default_rng(0), *jax_rivals(), limit.build()
    wide = "avx512f" in machine()["flags"]
    rows = []
    for readout, sizes in (
        ("last", (150, 100, 2) if quick else (600, 300, 8)),
        ("mean", (20, 100, 2) if quick else (60, 300, 5)),
    ):
        n, steps, rounds = sizes
        x = rng.standard_normal((n, steps))
        work = n * (n + 1) / 2 * steps ** (2 if readout == "mean" else 1)
        for dtype, targets in TARGETS.items():
            z = x.astype(dtype)
            for bias in (0.0, 0.3):
                kernel = RNTK(readout=readout, dtype=dtype, sigma_b=bias)
                functions = {"rntk": partial(kernel, z)}
                if plain_c is not None:
                    functions["c"] = partial(plain_c, readout, z, 2.0, bias)
                if not bias:
                    root = np.sqrt(numpy_variances(z))
                    functions |= {
                        "numpy": partial(numpy_last if readout == "last" else numpy_mean, z),
                        "jax": partial(jax_last, z) if readout == "last" else partial(jax_mean, z, root),
                    }
                times = take_turns({name: lambda f=f: np.asarray(f()) for name, f in functions.items()}, rounds)
                name = f"{readout}, {dtype}{', bias' if bias else ''}, N={n}, T={steps}"
                if not bias:
                    slow = {each: times[each] for each in ("rntk", "numpy", "jax")}
                    rows.append(compare(name, slow, work, targets[wide]))
                if plain_c is not None:
                    both = {"rntk": times["rntk"], "c": times["c"]}
                    rows.append(bound(f"of plain C: {name}", both, times["rntk"] / times["c"], OF_C))
    return rows


def mlp(quick: bool) -> list[dict[str, Any]]:
    n, channels, rounds = (300, 50, 2) if quick else (1000, 100, 5)
    x = np.random.default_rng(0).standard_normal((n, channels))
    times = take_turns({"numpy": lambda: numpy_mlp(x, 3), "rntk": lambda: NTK(depth=3)(x)}, rounds)
    return [compare(f"MLP NTK, depth 3, N={n}, m={channels}", times, n * (n + 1) / 2 * 3, 4)]


def compare(name: str, times: dict[str, float], work: float, target: float) -> dict[str, Any]:
    rivals = {rival: seconds for rival, seconds in times.items() if rival != "rntk"}
    fastest = min(rivals, key=lambda rival: rivals[rival])
    ratio = rivals[fastest] / times["rntk"]
    return {
        "question": name,
        "seconds": times,
        "pair_steps_per_second": work / times["rntk"],
        "ns_per_pair_step": times["rntk"] / work * 1e9,
        "rival": fastest,
        "ratio": ratio,
        "target": f">= {target}x",
        "reached": bool(ratio >= target),
    }


def limits(quick: bool) -> list[dict[str, Any]]:
    """Ratios of the library to itself: ragged, gradient, growth in T and N."""
    n, steps, rounds = (150, 100, 2) if quick else (600, 300, 5)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, steps))
    lengths = rng.integers(steps // 3, steps + 1, n)
    ragged = [rng.standard_normal(length) for length in lengths]
    ordered = np.sort(lengths)
    ragged_work = float(sum(int(ordered[i]) * (n - i) for i in range(n)))
    equal_work = n * (n + 1) / 2 * steps
    rows = []
    for dtype in ("float64", "float32"):
        times = take_turns(
            {
                "equal": lambda dtype=dtype: RNTK(dtype=dtype)(x),
                "ragged": lambda dtype=dtype: RNTK(dtype=dtype)(ragged),
            },
            rounds,
        )
        cost = times["ragged"] / ragged_work / (times["equal"] / equal_work)
        rows.append(bound(f"ragged ({steps // 3}..{steps}) per pair-step, {dtype}", times, cost, 1.25))
    for title, kernel in (
        ("gradient, 3 hyperparameters (the default kernel)", RNTK()),
        ("gradient, 5 hyperparameters", RNTK(sigma_b=0.1, sigma_h=0.1)),
    ):
        times = take_turns(
            {"gram": lambda kernel=kernel: kernel(x), "gradient": lambda kernel=kernel: kernel(x, eval_gradient=True)},
            rounds,
        )
        rows.append(bound(title, times, times["gradient"] / times["gram"], 3.0 if "default" in title else None))
    times = take_turns({"depth 1": lambda: RNTK()(x), "depth 3": lambda: RNTK(depth=3)(x)}, rounds)
    rows.append(bound("depth 3 against depth 1", times, times["depth 3"] / times["depth 1"], 3.3))
    # Growth: the cost per pair-step of long sequences and of many, against a middling one.
    few = 20 if quick else 60
    long = {t: rng.standard_normal((few, t)) for t in ((100, 1000) if quick else (100, 1000, 10_000))}
    times = take_turns({f"T={t}": lambda z=z: RNTK()(z) for t, z in long.items()}, rounds)
    per_step = [times[f"T={t}"] / (few * (few + 1) / 2 * t) for t in long]
    rows.append(
        bound(f"cost per pair-step, T={max(long)} against T=1000, N={few}", times, per_step[-1] / per_step[1], 1.3)
    )
    many = {k: rng.standard_normal((k, 100)) for k in ((100, 200) if quick else (300, 600, 1200))}
    times = take_turns({f"N={k}": lambda z=z: RNTK()(z) for k, z in many.items()}, rounds)
    per_pair = [times[f"N={k}"] / (k * (k + 1) / 2) for k in many]
    rows.append(
        bound(f"cost per pair, N={max(many)} against N={min(many)}, T=100", times, per_pair[-1] / per_pair[0], 1.3)
    )
    return rows


def bound(name: str, times: dict[str, float], ratio: float, limit: float | None) -> dict[str, Any]:
    return {
        "question": name,
        "seconds": times,
        "ratio": ratio,
        "target": "reported" if limit is None else f"<= {limit}x",
        "reached": None if limit is None else bool(ratio <= limit),
    }


def machine() -> dict[str, Any]:
    packages = ("rntk", "numpy", "numba", "scipy", "scikit-learn", "jax")
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return {
        "cpu": model,
        "flags": [flag for flag in ("avx2", "avx512f") if flag in flags],
        "threads": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
        "date": time.strftime("%Y-%m-%d"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--out", type=Path, help="write the record as JSON")
    arguments = parser.parse_args()
    console = Console()
    here = machine()
    console.print(f"{here['cpu']}, {here['threads']} threads, Python {here['python']}, {here['versions']}")
    rows = []
    for part in (readouts, mlp, limits):
        rows += part(arguments.quick)
    table = Table("question", "pair-steps/s", "ratio", "target", "reached", "seconds")
    for row in rows:
        speed = f"{row['pair_steps_per_second']:.3g}" if "pair_steps_per_second" in row else ""
        times = ", ".join(f"{name} {seconds:.4f}" for name, seconds in row["seconds"].items())
        reached = {True: "yes", False: "[red]missed[/red]", None: ""}[row["reached"]]
        ratio = f"{row['ratio']:.2f}x" + (f" of {row['rival']}" if "rival" in row else "")
        table.add_row(row["question"], speed, ratio, row["target"], reached, times)
    console.print(table)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(
            json.dumps({"machine": here, "quick": arguments.quick, "results": rows}, indent=1) + "\n"
        )
        console.print(f"record: {arguments.out}")


if __name__ == "__main__":
    main()
