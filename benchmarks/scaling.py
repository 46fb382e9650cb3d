"""Does a matrix beyond memory cost more than one in memory? Disk, memory, compression, two processes of Dask; a model.

    python benchmarks/scaling.py [--quick] [--folder /tmp] [--out benchmarks/records/scaling.json]

The rival is `kernel(X)` in memory, at a size that fits, in pair-steps per second; it runs before, between and after the
stores, because these machines are noisy, and its average counts. Workers of Dask and threads take turns, and the best
of several runs counts. Seconds of the processor are reported beside seconds of the clock: other jobs disturb them less.

The model is what docs/scaling.md projects with: nanoseconds of one core per pair and step for several networks, memory
against the budget, bytes on the wire and on the disk against the bytes of the matrix.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

import rntk.gram
from gram import machine
from rntk import RNTK


def resident() -> int:
    """Bytes of memory this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result, seconds of clock and processor, and how far memory rose above where it was."""
    base, highest, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            highest[0] = max(highest[0], resident() - base)

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    try:
        result = function()
    finally:
        seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
        done.set()
        watcher.join()
    return result, {"seconds": seconds, "cpu_seconds": cpu, "memory_bytes": highest[0]}


def peak(n: int, steps: int, memory: int, out: Path, compress: bool = True) -> dict[str, float]:
    """Memory of a run onto disk, in a process of its own: what earlier runs took and kept doesn't hide it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_peak, n, steps, memory, out, compress).result()


def _peak(n: int, steps: int, memory: int, out: Path, compress: bool) -> dict[str, float]:
    X = np.random.default_rng(0).standard_normal((n, steps)).astype("float32")
    kernel = RNTK(dtype="float32", progress=False)
    rntk.gram.compute(kernel, X[:100], out=out.with_stem("warm-" + out.stem), block=50)
    return measure(lambda: rntk.gram.compute(kernel, X, out=out, memory=memory, compress=compress))[1]


def pair_steps(n: int, steps: int) -> float:
    return n * (n + 1) / 2 * steps


def disk(quick: bool, folder: Path) -> list[dict[str, Any]]:
    """N = 20 000 onto disk, compressed and plain, against `kernel(X)` at N = 6000."""
    n, small, steps = (3000, 1500, 50) if quick else (20_000, 6000, 100)
    X = np.random.default_rng(0).standard_normal((n, steps)).astype("float32")
    kernel = RNTK(dtype="float32", progress=False)
    rntk.gram.compute(kernel, X[:100], out=folder / "warm.zarr", block=50)  # compile, import
    rivals, rows = [measure(lambda: kernel(X[:small]))[1]], []
    for name in ("plain", "compressed"):
        out, compress = folder / f"{name}.zarr", name == "compressed"
        K, found = measure(
            lambda out=out, compress=compress: rntk.gram.compute(kernel, X, out=out, memory="1GB", compress=compress)
        )
        product, use = measure(lambda K=K: K @ np.ones(n, dtype="float32"))
        assert np.isfinite(product).all()
        check, _ = measure(lambda K=K: K.verify())
        assert check is None
        rivals.append(measure(lambda: kernel(X[:small]))[1])
        taken = peak(n, steps, 10**9, folder / f"peak-{name}.zarr", compress)
        rows.append({"store": name, "block": K.block, "found": found, "matvec": use, "peak": taken})
    rates = {
        clock: float(np.mean([pair_steps(small, steps) / rival[clock] for rival in rivals]))
        for clock in ("seconds", "cpu_seconds")
    }
    results = []
    for row in rows:
        ratios = {clock: rates[clock] / (pair_steps(n, steps) / row["found"][clock]) for clock in rates}
        results.append(
            {
                "question": f"{row['store']}: time per pair-step against kernel(X) at N={small}; N={n}, T={steps}",
                "block": row["block"],
                **row["found"],
                "pair_steps_per_second": pair_steps(n, steps) / row["found"]["seconds"],
                "rival_pair_steps_per_second": rates["seconds"],
                "rival_seconds": [rival["seconds"] for rival in rivals],
                "ratio": ratios["seconds"],
                "cpu_ratio": ratios["cpu_seconds"],
                "target": "<= 1.15x",
                "reached": bool(ratios["seconds"] <= 1.15),
            }
        )
        results.append(
            {
                "question": f"{row['store']}: memory above that of a process that has compiled everything, N={n}",
                "ratio": row["peak"]["memory_bytes"] / 1e9,
                "unit": "GB",
                "target": "< 1 GB",
                "reached": bool(row["peak"]["memory_bytes"] < 1e9),
            }
        )
        results.append(
            {
                "question": f"{row['store']}: K @ v, N={n}, checksums of all tiles included",
                "ratio": row["matvec"]["seconds"],
                "unit": "s",
                **row["matvec"],
                "target": "reported",
                "reached": None,
            }
        )
    return results


def compression(quick: bool, folder: Path) -> list[dict[str, Any]]:
    """What compressing kernel values gains, and what it costs."""
    n = 500 if quick else 4000
    noise = np.random.default_rng(0).standard_normal((n, 100))
    results = []
    for name, X in (("noise", noise), ("random walks", noise.cumsum(axis=1))):
        for dtype in ("float32", "float64"):
            kernel = RNTK(dtype=dtype, normalize=True, progress=False)
            size, seconds = [], []
            for compress in (False, True):
                out = folder / f"{name}-{dtype}-{compress}.zarr"
                K, found = measure(
                    lambda kernel=kernel, X=X, out=out, compress=compress: rntk.gram.compute(
                        kernel, X, out=out, compress=compress
                    )
                )
                size.append(sum(each.stat().st_size for each in (out / "c").rglob("*") if each.is_file()))
                seconds.append((found["cpu_seconds"], measure(lambda K=K: K @ np.ones(n))[1]["cpu_seconds"]))
            results.append(
                {
                    "question": f"compressed tiles: size of the kernel of {name}, {dtype}, N={n}, against plain ones",
                    "bytes": size,
                    "cpu_seconds_to_compute_and_multiply": seconds,
                    "ratio": size[1] / size[0],
                    "target": "reported",
                    "reached": None,
                }
            )
    return results


#: glibc's settings for workers that keep memory they will need again; see the notes of `rntk.gram.compute`.
KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}


def dask(quick: bool, folder: Path) -> list[dict[str, Any]]:
    """Two worker processes with one thread each, against two threads of this process."""
    from dask import config

    results = []
    for settings, environment in (("as Dask starts them", {}), ("that keep memory", KEEPING)):
        with config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in environment.items()}):
            for steps in (100, 300):
                results.append(two_workers(quick, settings, steps, folder))
    return results


def two_workers(quick: bool, settings: str, steps: int, folder: Path) -> dict[str, Any]:
    import psutil
    from distributed import Client, LocalCluster

    n, rounds = (2000, 1) if quick else (10_000 if steps == 100 else 6000, 6)
    X = np.random.default_rng(0).standard_normal((n, steps)).astype("float32")
    kernel = RNTK(dtype="float32", progress=False, n_jobs=2)
    times: dict[str, list[float]] = {"threads": [], "workers": []}
    cpu: dict[str, list[float]] = {"threads": [], "workers": []}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster) as client,
    ):
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        for name in times:  # compile, import
            rntk.gram.compute(kernel, X[:200], block=20, client=client if name == "workers" else None)
        same = []
        for _ in range(rounds):
            for name, taken in times.items():
                where = client if name == "workers" else None
                before = sum(sum(worker.cpu_times()[:2]) for worker in workers)
                out = folder / "shared.zarr"
                shutil.rmtree(out, ignore_errors=True)  # or it would be found there
                K, found = measure(lambda where=where, out=out: rntk.gram.compute(kernel, X, out=out, client=where))
                after = sum(sum(worker.cpu_times()[:2]) for worker in workers)
                taken.append(found["seconds"])
                cpu[name].append(found["cpu_seconds"] + (after - before if where else 0.0))
                same.append(K.read(slice(0, n, 37), slice(0, n, 41)))
    assert all((each == same[0]).all() for each in same)
    ratio = min(times["threads"]) / min(times["workers"])
    return {
        "question": f"2 Dask workers {settings}: speed onto disk against 2 threads, N={n}, T={steps}",
        "block": K.block,
        "seconds": times,
        "cpu_seconds": cpu,
        "mean_ratio": float(np.mean(times["threads"]) / np.mean(times["workers"])),
        "cpu_ratio": float(np.mean(cpu["threads"]) / np.mean(cpu["workers"])),
        "ratio": ratio,
        "target": ">= 0.85x",
        "reached": bool(ratio >= 0.85),
    }


#: Networks whose cost is measured: options of `RNTK`, sequences, steps.
NETWORKS: dict[str, tuple[dict[str, Any], int, int]] = {
    "ReLU, last, float32": ({"dtype": "float32"}, 4000, 100),
    "ReLU, last, float64": ({}, 3000, 100),
    "ReLU, last, float32, T=1000": ({"dtype": "float32"}, 1500, 1000),
    "ReLU, 3 layers, float32": ({"dtype": "float32", "depth": 3}, 2500, 100),
    "ReLU, mean, float32 (per pair of steps)": ({"dtype": "float32", "readout": "mean"}, 600, 100),
    "erf, last, float64": ({"activation": "erf", "sigma_w": 1.0}, 1500, 100),
    "tanh, last, float64": ({"activation": "tanh", "sigma_w": 1.0, "sigma_u": 0.3}, 600, 100),
}


def model(quick: bool, folder: Path) -> list[dict[str, Any]]:
    """Time of a pair and step, memory of a budget, traffic of a matrix."""
    rows: list[dict[str, Any]] = []
    for name, (options, n, steps) in NETWORKS.items():
        pair, single = _cost(options, n // 4 if quick else n, steps)
        for what, value in (("pair and step", pair), ("step of a sequence, once", single)):
            question = f"one core, per {what}: {name}"
            rows.append({"question": question, "ratio": value, "unit": "ns", "target": "reported", "reached": None})
    n = 2000 if quick else 10_000
    X = np.random.default_rng(0).standard_normal((n, 100)).astype("float32")
    kernel = RNTK(dtype="float32", progress=False)
    for memory in (30_000_000, 100_000_000, 300_000_000, 1_000_000_000):
        found = peak(n, 100, memory, folder / f"{memory}.zarr")
        rows.append(
            {
                "question": f"memory taken, of a budget of {memory / 1e6:.0f} MB, N={n}, T=100, float32",
                **found,
                "ratio": found["memory_bytes"] / memory,
                "unit": "of it",
                "target": "<= 1",
                "reached": bool(found["memory_bytes"] <= memory),
            }
        )
    before = written()
    K = rntk.gram.compute(kernel, X, out=folder / "written.zarr", compress=False)
    values = sum(K.tile(i, j).nbytes for i, j in K.tiles)
    rows.append(
        {
            "question": f"written to disk, N={n}, for every byte of the tiles",
            "ratio": (written() - before) / values,
            "unit": "bytes",
            "target": "reported",
            "reached": None,
        }
    )
    rows += [_traffic(kernel, X, None), _traffic(kernel, X, folder / "traffic.zarr")]
    return rows


def _cost(options: dict[str, Any], n: int, steps: int) -> tuple[float, float]:
    """Nanoseconds per pair and step, and per step of a sequence: one equation at n, one at half of it."""
    X = np.random.default_rng(0).standard_normal((n, steps))
    kernel = RNTK(**options, n_jobs=1, progress=False)
    kernel(X[:20])  # compile
    sizes = (n, n // 2)
    best = [min(measure(lambda size=size: kernel(X[:size]))[1]["cpu_seconds"] for _ in range(3)) for size in sizes]
    together = steps**2 if options.get("readout") == "mean" else steps
    (pair, single), _ = nnls(np.array([[pair_steps(size, together), size * steps] for size in sizes]), np.array(best))
    return 1e9 * float(pair), 1e9 * float(single)


def written() -> int:
    """Bytes that this process has handed to the system for writing."""
    import psutil

    return int(psutil.Process().io_counters().write_chars)


def _traffic(kernel: RNTK, X: np.ndarray, out: Path | None) -> dict[str, Any]:
    """Bytes over the loopback interface while two workers compute, against those of the data and the tiles."""
    import psutil
    from distributed import Client, LocalCluster

    def sent() -> int:
        return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster) as client,
    ):
        rntk.gram.compute(kernel, X[:200], block=20, client=client)
        before = sent()
        K = rntk.gram.compute(kernel, X, out=out, memory="4GB", client=client)
        found = sent() - before
    expected = 2 * X.nbytes + sum(K.tile(i, j).nbytes for i, j in K.tiles)
    where = "in memory" if out is None else "in a store that the workers write to"
    return {
        "question": f"{where}: sent to and from two Dask workers, for every byte of the sequences (twice) and tiles",
        "bytes": found,
        "ratio": found / expected,
        "unit": "bytes",
        "target": "reported",
        "reached": None,
    }


PARTS = {"disk": disk, "compression": compression, "dask": dask, "model": model}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; all unless given")
    parser.add_argument("--folder", type=Path, help="where stores go; 3 GB, deleted afterwards")
    parser.add_argument("--out", type=Path, help="write the record as JSON")
    arguments = parser.parse_args()
    console = Console()
    here = machine()
    here["versions"] |= {package: version(package) for package in ("zarr", "dask", "distributed")}
    here["load_before"] = os.getloadavg()
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="rntk-scaling-", dir=arguments.folder))
    try:
        for part in arguments.part or PARTS:
            rows += PARTS[part](arguments.quick, folder)
    finally:
        shutil.rmtree(folder)
    here["load_after"] = os.getloadavg()
    table = Table("question", "found", "target", "reached")
    for row in rows:
        reached = {True: "yes", False: "[red]missed[/red]", None: ""}[row["reached"]]
        unit = row.get("unit", "x")
        more = f" ({row['cpu_ratio']:.2f}x of processor time)" if "cpu_ratio" in row else ""
        table.add_row(row["question"], f"{row['ratio']:.3g} {unit}{more}", row["target"], reached)
    console.print(table)
    console.print(f"load of the machine: {here['load_before'][0]:.1f} before, {here['load_after'][0]:.1f} after")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        record = {"machine": here, "quick": arguments.quick, "results": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
        console.print(f"record: {arguments.out}")


if __name__ == "__main__":
    main()
