"""Small studies for the tests of `rntk.papers.reproduce`; run as a script, they are what gets killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from rntk.papers.reproduce import Claim, Finding, Mode, NotRunError, Study, Unit, reproduce


class Toy(Study):
    """Means of random numbers, one unit each; `config["do"]` makes a unit misbehave."""

    title = "Means of random numbers"
    source = "a paper, Figure 1"
    minutes = (0.1, 0.1)

    def __init__(self, name: str = "toy", units: int = 6, pause: float = 0.0, do: dict[int, str] | None = None) -> None:
        self.name, self.count, self.pause, self.do = name, units, pause, do or {}

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        if self.count == 0:
            raise NotRunError("there is no data; pass --data")
        size = {Mode.QUICK: 10, Mode.FULL: 1000}[mode]
        return [Unit(f"seed-{k}", {"random_state": k, "size": size, "do": self.do.get(k)}) for k in range(self.count)]

    def compute(self, config: dict, data: Path | None) -> dict:
        time.sleep(self.pause)
        if config["do"] == "fail":
            raise ValueError("this unit fails")
        if config["do"] == "die":
            os._exit(9)
        rng = np.random.default_rng(config["random_state"])
        calls = Path(os.environ["TOY_CALLS"]) if "TOY_CALLS" in os.environ else None
        if calls is not None:
            with open(calls, "a") as file:
                file.write(f"{self.name} {config['random_state']}\n")
        return {
            "mean": rng.standard_normal(config["size"]).mean(),
            "nothing": float("nan"),
            "timing": {"clock": time.time()},
        }

    def claims(self) -> list[Claim]:
        def small(results):
            means = [each["mean"] for each in results.starting("seed-").values()]
            return Finding(bool(np.abs(means).max() < 3), f"largest mean {np.abs(means).max():.3f}")

        def second(results):
            return Finding(results["seed-1"]["mean"] > 100, f"{results['seed-1']['mean']:.3f}")

        return [
            Claim("small", "means are small <&>", "0", "below 3", small),
            Claim("large", "the second mean is large", "101", "above 100", second, reason="it never was"),
        ]

    def figures(self, results):
        from matplotlib import pyplot

        figure, ax = pyplot.subplots()
        ax.plot([each["mean"] for each in results.starting("seed-").values()])
        return {"means": figure}


if __name__ == "__main__":
    out, jobs = Path(sys.argv[1]), int(sys.argv[2])
    reproduce([Toy("one", 30, pause=0.05), Toy("two", 20, pause=0.08)], Mode.QUICK, out, jobs=jobs)
