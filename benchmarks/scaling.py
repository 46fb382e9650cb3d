"""Does a matrix beyond memory cost more than one in memory? Disk, memory, compression, and two processes of Dask.

    python benchmarks/scaling.py [--quick] [--folder /tmp] [--out benchmarks/records/scaling.json]

The rival is `kernel(X)` in memory, at a size that fits, in pair-steps per second; it runs before, between and after the
stores, because these machines are noisy, and its average counts. Workers of Dask and threads take turns, and the best
of several runs counts. Seconds of the processor are reported beside seconds of the clock: other jobs disturb them less.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

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


def pair_steps(n: int, steps: int) -> float:
    return n * (n + 1) / 2 * steps


def disk(quick: bool, folder: Path) -> list[dict[str, Any]]:
    """N = 20 000 into both stores, against `kernel(X)` at N = 6000."""
    n, small, steps = (3000, 1500, 50) if quick else (20_000, 6000, 100)
    X = np.random.default_rng(0).standard_normal((n, steps)).astype("float32")
    kernel = RNTK(dtype="float32", progress=False)
    for name in ("warm.gram", "warm.zarr"):  # compile, import
        rntk.gram.compute(kernel, X[:100], out=folder / name, block=50)
    rivals, rows = [measure(lambda: kernel(X[:small]))[1]], []
    for name in ("K.gram", "K.zarr"):
        K, found = measure(lambda name=name: rntk.gram.compute(kernel, X, out=folder / name, memory="1GB"))
        product, use = measure(lambda K=K: K @ np.ones(n, dtype="float32"))
        assert np.isfinite(product).all()
        check, _ = measure(lambda K=K: K.verify())
        assert check is None
        rivals.append(measure(lambda: kernel(X[:small]))[1])
        rows.append({"store": name, "block": K.block, "found": found, "matvec": use})
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
                "question": f"{row['store']}: memory above what was there before, N={n}",
                "ratio": row["found"]["memory_bytes"] / 1e9,
                "unit": "GB",
                "target": "< 1 GB",
                "reached": bool(row["found"]["memory_bytes"] < 1e9),
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
    """What compressing kernel values gains, and what it costs; and the cost of checksums."""
    n = 500 if quick else 4000
    X = np.random.default_rng(0).standard_normal((n, 100)).cumsum(axis=1)
    results = []
    for dtype in ("float32", "float64"):
        kernel = RNTK(dtype=dtype, normalize=True, progress=False)
        size = {}
        for compress in (None, "zstd"):
            out = folder / f"{dtype}-{compress}.zarr"
            _, found = measure(
                lambda kernel=kernel, out=out, compress=compress: rntk.gram.compute(
                    kernel, X, out=out, compress=compress
                )
            )
            size[str(compress)] = sum(each.stat().st_size for each in (out / "c").rglob("*") if each.is_file())
            size[f"{compress}_cpu_seconds"] = found["cpu_seconds"]
        results.append(
            {
                "question": f"zstd: size of random walks' kernel, {dtype}, N={n}, against uncompressed",
                **size,
                "ratio": size["zstd"] / size["None"],
                "target": "reported",
                "reached": None,
            }
        )
    tile = np.random.default_rng(0).standard_normal((2000, 2000)).astype("float32")
    best = min(measure(lambda: zlib.crc32(tile.data))[1]["seconds"] for _ in range(5))
    results.append(
        {
            "question": "CRC-32 of a tile",
            "ratio": tile.nbytes / best / 1e9,
            "unit": "GB/s",
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
                results.append(two_workers(quick, settings, steps))
    return results


def two_workers(quick: bool, settings: str, steps: int) -> dict[str, Any]:
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
                K, found = measure(lambda where=where: rntk.gram.compute(kernel, X, memory="4GB", client=where))
                after = sum(sum(worker.cpu_times()[:2]) for worker in workers)
                taken.append(found["seconds"])
                cpu[name].append(found["cpu_seconds"] + (after - before if where else 0.0))
                same.append(K.read(slice(0, n, 37), slice(0, n, 41)))
    assert all((each == same[0]).all() for each in same)
    ratio = min(times["threads"]) / min(times["workers"])
    return {
        "question": f"2 Dask workers {settings}: speed against 2 threads, N={n}, T={steps}",
        "block": K.block,
        "seconds": times,
        "cpu_seconds": cpu,
        "mean_ratio": float(np.mean(times["threads"]) / np.mean(times["workers"])),
        "cpu_ratio": float(np.mean(cpu["threads"]) / np.mean(cpu["workers"])),
        "ratio": ratio,
        "target": ">= 0.85x",
        "reached": bool(ratio >= 0.85),
    }


PARTS = {"disk": disk, "compression": compression, "dask": dask}


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
