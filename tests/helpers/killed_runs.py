"""Runs that are killed, for `test_gram_store.py`: a process without threads forks one run after another.

    python killed_runs.py STORE KILLS

Prints one JSON object: tiles that were complete before each run, tiles that each run computed, digest of the result.
The last run is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import rntk.gram

SEQUENCES, BLOCK = 60, 5


def sequences() -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((SEQUENCES, 3))
    X[:, 0] = np.arange(SEQUENCES)  # by which a kernel knows where it is
    return X


def slow_kernel(A, B=None):
    B = A if B is None else B
    time.sleep(0.004)
    with open(os.environ["RNTK_TEST_LOG"], "a") as log:
        log.write(f"{int(A[0, 0]) // BLOCK} {int(B[0, 0]) // BLOCK}\n")
    return np.tanh(A[:, 1:] @ B[:, 1:].T)


def run(store: Path) -> None:
    rntk.gram.compute(slow_kernel, sequences(), out=store, block=BLOCK, key="slow")


def complete_tiles(store: Path) -> list[list[int]]:
    """Chunks that are there, without opening the store: zarr's threads would not survive a fork."""
    return [[int(file.parent.name), int(file.name)] for file in store.glob("c/*/*") if file.suffix != ".partial"]


def kill_one(store: Path, log: Path, chance: random.Random) -> None:
    """Start a run and kill it somewhere around its next few tiles."""
    child = os.fork()
    if child == 0:
        try:
            run(store)
        finally:
            os._exit(0)
    wanted, until = chance.randrange(6), time.monotonic() + 20
    while len(log.read_text().splitlines()) < wanted and time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:  # it ended by itself; if by an error, the last run has it too
            return
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.008))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> None:
    store, kills, log = Path(sys.argv[1]), int(sys.argv[2]), Path(os.environ["RNTK_TEST_LOG"])
    loaded = [name for name in ("zarr", "dask", "distributed") if name in sys.modules]
    import zarr  # noqa: F401  once, not in every run

    chance = random.Random(0)
    before, computed = [], []
    for k in range(kills + 1):
        log.write_text("")
        before.append(complete_tiles(store))
        if k < kills:
            kill_one(store, log, chance)
        else:
            run(store)
        computed.append([list(map(int, line.split())) for line in log.read_text().splitlines()])
    K = rntk.gram.open(store)
    K.verify()
    digest = hashlib.sha256(K.to_array().tobytes()).hexdigest()
    print(json.dumps({"loaded": loaded, "before": before, "computed": computed, "digest": digest}))


if __name__ == "__main__":
    main()
