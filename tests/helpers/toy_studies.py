"""Small studies for the tests of `rntk.papers`; run as a script, they are what gets killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from rntk.papers import Claim, Finding, Mode, NotRunError, Proof, Study, Unit, reproduce
from rntk.papers.study import EXACT


class Toy(Study):
    """Means of random numbers, one unit each; `do` makes a unit misbehave."""

    title = "Means of random numbers"
    source = "a paper, Figure 1"
    minutes = (0.1, 0.1)
    claims = (
        Claim("small", "means are small <&>", "below 3", "0"),
        Claim("large", "the second mean is large", "above 100", "101", reason="it never was", unit="seed-1"),
    )

    def __init__(self, name: str = "toy", units: int = 6, pause: float = 0.0, do: dict[int, str] | None = None) -> None:
        self.name, self.count, self.pause, self.do = name, units, pause, do or {}

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        if self.count == 0:
            raise NotRunError("there is no data; pass --data")
        size = {Mode.QUICK: 10, Mode.FULL: 1000}[mode]
        return [Unit(f"seed-{k}", {"random_state": k, "size": size, "do": self.do.get(k)}) for k in range(self.count)]

    def compute(self, data: Path | None, *, random_state: int, size: int, do: str | None) -> dict:
        time.sleep(self.pause)
        if do == "fail":
            raise ValueError("this unit fails")
        if do == "die":
            os._exit(9)
        rng = np.random.default_rng(random_state)
        calls = Path(os.environ["TOY_CALLS"]) if "TOY_CALLS" in os.environ else None
        if calls is not None:
            with open(calls, "a") as file:
                file.write(f"{self.name} {random_state}\n")
        return {"mean": rng.standard_normal(size).mean(), "nothing": float("nan")}

    def judge(self, results):
        largest = np.abs([each.mean for each in results.all()]).max()
        yield Finding("small", bool(largest < 3), f"largest mean {largest:.3f}", Proof(10, 0.1, 3.0, "mean"))
        if "seed-1" in results:
            yield Finding("large", results["seed-1"].mean > 100, f"{results['seed-1'].mean:.3f}", EXACT)

    def figures(self, results):
        from matplotlib import pyplot

        figure, ax = pyplot.subplots()
        ax.plot([each.mean for each in results.all()])
        return {"means": figure}


if __name__ == "__main__":
    out, jobs = Path(sys.argv[1]), int(sys.argv[2])
    reproduce([Toy("one", 30, pause=0.05), Toy("two", 20, pause=0.08)], Mode.QUICK, out, jobs=jobs)
