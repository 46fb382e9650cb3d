"""The NTK of perceptrons: this library and neural-tangents, values and times in one run.

    python benchmarks/neural_tangents.py [--quick] [--out benchmarks/records/neural_tangents.json]

neural-tangents 0.6.5 imports names that newer JAX has removed, so it lives in an environment of its own (`--env`, made
by the first run, with Python 3.11). Where that can't be made, this says why and ends. Two processes, one in each
environment, take turns on the same inputs, on all cores, after a first call that compiles; each reports its best time.
neural-tangents is jitted, its inputs are on the device, and its result stays there.

Values are compared relative to √(K_ii K_jj). Where they differ most, and at some random pairs, both are compared with
120-digit arithmetic (tests/oracles).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("neural-tangents==0.6.5", "jax==0.4.20", "jaxlib==0.4.20", "numpy<2", "scipy<1.13")
#: The Python those packages have wheels for, and that the values of tests/oracles were made with.
PYTHON = "3.11"
ACTIVATIONS = ("relu", "erf", "sin", "gelu")  # neural-tangents' Gelu is x Φ(x), not its approximation by tanh
SETTING = {"sigma_w": math.sqrt(2), "sigma_b": 0.1, "depth": 3}
CALLS = ("K(X)", "K(X, Y)")
SIDES = ("rntk", "neural-tangents")
TESTS = Path(__file__).resolve().parents[1] / "tests"


# ---- One side of the comparison, in a process of its own -------------------------------------------------------------


def rntk_side(activation: str, X: Any, Y: Any) -> dict[str, Callable[[], Any]]:
    from rntk import NTK

    kernel = NTK(activation, **SETTING)
    return {"K(X)": lambda: kernel(X), "K(X, Y)": lambda: kernel(X, Y)}


def neural_tangents_side(activation: str, X: Any, Y: Any) -> dict[str, Callable[[], Any]]:
    os.environ["JAX_ENABLE_X64"] = "1"  # read when jax is first imported
    import jax
    from neural_tangents import stax

    layers = []
    for _ in range(SETTING["depth"]):
        layers += [stax.Dense(1, W_std=SETTING["sigma_w"], b_std=SETTING["sigma_b"])]
        layers += [getattr(stax, activation.capitalize())()]
    *_, kernel = stax.serial(*layers, stax.Dense(1, W_std=1.0, b_std=None))
    compiled = jax.jit(lambda x, y=None: kernel(x, y, get="ntk"))
    x, y = jax.device_put(X), jax.device_put(Y)
    return {"K(X)": lambda: compiled(x).block_until_ready(), "K(X, Y)": lambda: compiled(x, y).block_until_ready()}


def serve(side: str, folder: Path) -> None:
    """Answer requests, a line of JSON each, until there are no more: an activation, a call, and what to do with it."""
    X, Y = (np.load(folder / f"{name}.npy") for name in "XY")
    make = rntk_side if side == "rntk" else neural_tangents_side
    functions: dict[str, dict[str, Callable[[], Any]]] = {}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print must not be read as an answer
    for line in sys.stdin:
        request = json.loads(line)
        activation = request["activation"]
        if activation not in functions:
            functions[activation] = make(activation, X, Y)
        function = functions[activation][request["call"]]
        best = math.inf
        for _ in range(request["times"]):
            begin = time.perf_counter()
            values = function()
            best = min(best, time.perf_counter() - begin)
        if "save" in request:
            np.save(request["save"], np.asarray(values))
        packages = ("rntk", "numba") if side == "rntk" else ("neural-tangents", "jax", "jaxlib")
        answer = {"seconds": best, "versions": {name: version(name) for name in (*packages, "numpy", "scipy")}}
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that serves one side."""

    def __init__(self, python: Path, side: str, folder: Path) -> None:
        # -P: the folder of this file, which is called neural_tangents, must not be searched for the library.
        command = [str(python), "-P", __file__, "--serve", side, str(folder)]
        # Libraries have much to say while they are imported; it is shown if the process ends before its time.
        self._said = folder / f"{side}.log"
        with self._said.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def ask(self, **request: Any) -> dict[str, Any]:
        with suppress(BrokenPipeError):
            print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise RuntimeError(f"{self._process.args} ended with status {status}:\n{self._said.read_text()}")
        return json.loads(line)

    def end(self) -> None:
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


@contextmanager
def workers(pythons: dict[str, Path], folder: Path) -> Iterator[dict[str, Worker]]:
    both = {side: Worker(python, side, folder) for side, python in pythons.items()}
    try:
        yield both
    finally:
        for worker in both.values():
            worker.end()


# ---- The environment of neural-tangents ------------------------------------------------------------------------------


class UnavailableError(Exception):
    """Why there is no environment."""


def environment(folder: Path) -> Path:
    """The interpreter in `folder`, made first where it isn't there."""
    python, stamp = folder / "bin" / "python", folder / "installed.json"
    if stamp.exists() and json.loads(stamp.read_text()) == list(PACKAGES):
        return python
    if folder.exists():
        raise UnavailableError(f"{folder} isn't the environment that this makes; delete it, or give another --env")
    try:
        run([find_python(), "-m", "venv", str(folder)])
        run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
        run([str(python), "-c", "import neural_tangents"])
        stamp.write_text(json.dumps(PACKAGES))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return python


def find_python() -> str:
    for candidate in (sys.executable, shutil.which(f"python{PYTHON}")):
        if candidate is not None:
            asked = [candidate, "-c", "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"]
            found = subprocess.run(asked, capture_output=True, text=True, check=False)
            if found.returncode == 0 and found.stdout.strip() == PYTHON:
                return candidate
    raise UnavailableError(f"there is no python{PYTHON} with venv on the path, and neural-tangents 0.6.5 needs it")


def run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise UnavailableError(f"{' '.join(command)} failed and said: {said[-1]}")


# ---- Values and times ------------------------------------------------------------------------------------------------


def compare(activation: str, both: dict[str, Worker], folder: Path, rounds: int, pairs: int) -> list[dict[str, Any]]:
    """One row for each call; calls and libraries take turns."""
    inputs = {name: np.load(folder / f"{name}.npy") for name in "XY"}
    best = {call: dict.fromkeys(SIDES, math.inf) for call in CALLS}
    values: dict[str, dict[str, Any]] = {call: {} for call in CALLS}
    for call in CALLS:
        for side in SIDES:  # compiles
            both[side].ask(activation=activation, call=call, times=1, save=str(folder / "K.npy"))
            values[call][side] = np.load(folder / "K.npy")
    for _ in range(rounds):
        for call in CALLS:
            for side in SIDES:
                times = 1 if 0.3 < best[call][side] < math.inf else 4
                seconds = both[side].ask(activation=activation, call=call, times=times)["seconds"]
                best[call][side] = min(best[call][side], seconds)
    n, channels = inputs["X"].shape
    rows = []
    for call in CALLS:
        others = inputs["X" if call == "K(X)" else "Y"]
        root = [scale(activation, rows_of) for rows_of in (inputs["X"], others)]
        difference = np.abs(values[call]["rntk"] - values[call]["neural-tangents"]) / np.outer(*root)
        worst = np.unravel_index(int(difference.argmax()), difference.shape)
        chosen = [tuple(map(int, worst)), *map(tuple, np.random.default_rng(2).integers(n, size=(pairs, 2)).tolist())]
        rows.append(
            {
                "question": f"NTK, {activation}, depth {SETTING['depth']}, N={n}, m={channels}, {call}",
                "activation": activation,
                "call": call,
                "seconds": best[call],
                "ratio": best[call]["neural-tangents"] / best[call]["rntk"],
                "difference": float(difference.max()),
                "errors": errors(activation, inputs["X"], others, values[call], root, chosen),
            }
        )
    return rows


def scale(activation: str, X: Any) -> Any:
    """√K_ii."""
    from rntk import NTK

    return np.sqrt(NTK(activation, **SETTING).diag(X))


def errors(
    activation: str, X: Any, Y: Any, values: dict[str, Any], root: list[Any], pairs: list[Any]
) -> dict[str, float]:
    """Largest error over some pairs, relative to √(K_ii K_jj), of both libraries."""
    from oracles import duals, high_precision

    dual = getattr(duals, f"{activation}_dual")
    found = dict.fromkeys(values, 0.0)
    for i, j in pairs:
        # A sequence of one step: σ_w goes unused, and σ_u is what it is for a perceptron.
        w, b, depth = SETTING["sigma_w"], SETTING["sigma_b"], SETTING["depth"]
        exact, _ = high_precision.rntk(dual, X[i : i + 1], Y[j : j + 1], w, w, b, depth=depth)
        for side, K in values.items():
            error = abs(float(duals.exact(K[i, j]) - exact)) / (root[0][i] * root[1][j])
            found[side] = max(found[side], error)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rntk" / "neural-tangents"
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--out", type=Path, help="write the record as JSON")
    parser.add_argument("--env", type=Path, default=cache, help="environment of neural-tangents (default: %(default)s)")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve[0], Path(arguments.serve[1]))
        return

    from rich.console import Console
    from rich.table import Table

    from gram import machine

    sys.path.append(str(TESTS))
    console = Console()
    try:
        pythons = {"rntk": Path(sys.executable), "neural-tangents": environment(arguments.env.absolute())}
    except UnavailableError as reason:
        console.print(f"skipped: {reason}", markup=False)
        return
    here = machine() | {"load_before": os.getloadavg()[0]}
    n, channels, rounds, pairs = (200, 20, 2, 3) if arguments.quick else (1000, 100, 7, 20)
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in "XY":
            np.save(Path(folder) / f"{name}.npy", rng.standard_normal((n, channels)))
        with workers(pythons, Path(folder)) as both:
            for activation in ACTIVATIONS:
                rows += compare(activation, both, Path(folder), rounds, pairs)
            request = {"activation": ACTIVATIONS[0], "call": CALLS[0], "times": 1}
            versions = {side: both[side].ask(**request)["versions"] for side in SIDES}
    here |= {"load_after": os.getloadavg()[0], "versions": versions}
    console.print(f"{here['cpu']}, {here['threads']} threads, Python {here['python']}, {versions}")
    table = Table(
        "φ", "call", "rntk", "neural-\ntangents", "ratio", "differ-\nence", "error:\nrntk", "neural-\ntangents"
    )
    table.title = f"NTK, depth {SETTING['depth']}, N={n}, m={channels}"
    for row in rows:
        times = [f"{row['seconds'][side] * 1e3:.1f} ms" for side in SIDES]
        wrong = [f"{row['errors'][side]:.1e}" for side in SIDES]
        ratio, difference = f"{row['ratio']:.2g}x", f"{row['difference']:.1e}"
        table.add_row(row["activation"], row["call"], *times, ratio, difference, *wrong)
    console.print(table)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        record = {"machine": here, "quick": arguments.quick, "setting": SETTING | {"dtype": "float64"}, "results": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
        console.print(f"record: {arguments.out}")


if __name__ == "__main__":
    main()
