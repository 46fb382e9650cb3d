"""Figure 2 and Theorem 2 of the RNTK paper at full size: records, pictures, and what they say.

    python benchmarks/finite_networks.py [--out RECORD.json] [--pictures FOLDER] [--only NAME ...]

Needs JAX and, for pictures, matplotlib. Results are written one by one: started again, the run goes on where it
stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiment_runs import arguments_of, run_all
from rntk import RNTK
from rntk.experiments import convergence, ensemble_training, kernel_by_angle, lazy_training
from rntk.experiments.convergence import CASES

RECORD = Path(__file__).parent / "records" / "finite_networks.json"


def experiments() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {"figure 2 left": kernel_by_angle}
    for name, options in CASES.items():
        found[f"figure 2 right, {name}"] = lambda options=options: convergence(RNTK(**options))
    found["figure 2 right, unequal lengths"] = lambda: convergence(lengths=(3, 8))
    found["theorem 2, drift"] = lazy_training
    found["theorem 2, ensemble"] = ensemble_training
    return found


def say(name: str, record: dict[str, Any]) -> str:
    """The figures that matter, in one line."""
    if name == "figure 2 left":
        return f"one network off by at most {record['largest_gap']:.3f}, their mean by {record['gap_of_mean']:.3f}"
    if name.startswith("figure 2 right"):
        slopes = [(kind, record[kind]["ntk"]) for kind in ("tied", "untied")]
        return ", ".join(f"{kind} slope {ntk['slope']:.3f} ± {ntk['slope_error']:.3f}" for kind, ntk in slopes)
    if name == "theorem 2, drift":
        slopes = [(kind, record[f"{kind}_slope"]) for kind in ("parameter", "kernel")]
        return ", ".join(f"{kind} slope {slope['value']:.3f} ± {slope['error']:.3f}" for kind, slope in slopes)
    gap, chance = (np.array(record[each]) for each in ("mean_gap", "expected_mean_gap"))
    spread = np.array(record["spread"])
    ratio = spread[:, 0] / spread[:, 1]
    return (
        f"mean off by {(gap / chance).min():.2f} to {(gap / chance).max():.2f} times what chance makes of "
        f"{record['networks']} networks; deviations {ratio.min():.2f} to {ratio.max():.2f} times the predicted ones"
    )


if __name__ == "__main__":
    run_all(experiments(), say, "python benchmarks/finite_networks.py", arguments_of(__doc__, RECORD).parse_args())
