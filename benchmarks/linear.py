"""The experiments of *Implicit Bias of Linear RNNs* at full size: records, pictures, and what they say.

    python benchmarks/linear.py [--recording S1_DATA.mat] [--out RECORD.json] [--pictures FOLDER] [--only NAME ...]

Needs JAX and, for pictures, matplotlib. Results are written one by one: started again, the run goes on where it
stopped. Table 1 needs the recording; `rntk.experiments.reaching` says where to get it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiment_runs import arguments_of, run_all
from rntk.experiments import delay, linear_limit, linear_training, reaching, tap_growth

RECORD = Path(__file__).parent / "records" / "linear.json"


def experiments(recording: Path | None) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        "theorem 3.3": linear_limit,
        "figures 1 and 2": linear_training,
        "ICML figure 4": lambda: linear_training((10, 40, 200), teacher=20),
        "figure 3": delay,
        "theorem 4.1": tap_growth,
    }
    if recording is not None:
        found["table 1"] = lambda: reaching(recording)
    return found


def say(name: str, record: dict[str, Any]) -> str:
    """The figures that matter, in a line or two."""
    if name == "theorem 3.3":
        slope, worst = record["slope"], min(record["tap_p_values"][-1])
        laws = f"least p-value of {len(record['tap_p_values'][-1])} laws of taps {worst:.3f}"
        return f"slope {slope['value']:.3f} ± {slope['error']:.3f}; {laws}"
    if name in ("figures 1 and 2", "ICML figure 4"):
        gaps = [f"n = {n}: {max(gap):.3f}" for n, gap in zip(record["widths"], record["largest_gap"], strict=True)]
        return f"largest gap over the largest value of the curve, {', '.join(gaps)}"
    if name == "figure 3":
        rnn, scaled, unscaled = np.array(record["mean"]).T
        return (
            f"delays {record['delays']}: RNN {rnn.round(2).tolist()}, scaled {scaled.round(2).tolist()}, "
            f"unscaled {unscaled.round(2).tolist()}"
        )
    if name == "theorem 4.1":
        convolution, rnn = record["share"]
        beyond = [j for j, share in enumerate(rnn) if share > 1]
        return f"largest movement over bound: convolution {max(convolution):.3f}; the RNN exceeds it at lags {beyond}"
    lines = []
    for part, rows in record["table"].items():
        cells = [
            f"{model} {x:.4f} {y:.4f} (printed {a:.4f} {b:.4f})"
            for model, (x, y), (a, b) in zip(record["models"], rows, record["printed"][part], strict=True)
        ]
        lines.append(f"{part}: " + "; ".join(cells))
    return "\n  ".join(lines)


def main() -> None:
    parser = arguments_of(__doc__, RECORD)
    parser.add_argument("--recording", type=Path, help="path of s1_data.mat, for Table 1")
    arguments = parser.parse_args()
    run_all(experiments(arguments.recording), say, "python benchmarks/linear.py --recording S1_DATA.mat", arguments)


if __name__ == "__main__":
    main()
