"""What a first call costs: CPU seconds in fresh processes with nothing compiled, beyond imports.

python benchmarks/cold.py --out benchmarks/records/cold.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gram import machine

#: Everything before is not counted, everything behind is.
SCRIPT = """
import time
start = time.process_time()
from rntk import RNTK
imports = time.process_time() - start
import numpy as np
from rntk import RNTKClassifier
X = np.random.default_rng(0).standard_normal((20, 30))
y = np.arange(20) % 2
{before}
times = [imports]
for _ in range({calls}):
    start = time.process_time()
    {call}
    times.append(time.process_time() - start)
print(*times)
"""
FIRST = "RNTK()(X)"
#: Question, what was called before, the call, the most seconds it may take.
CALLS = [
    ("first RNTK()(X)", "", FIRST, 2.0),
    ("then readout mean", FIRST, 'RNTK(readout="mean")(X)', 2.5),
    ("then float32", FIRST, 'RNTK(dtype="float32")(X)', 2.5),
    ("then gradients", FIRST, "RNTK()(X, eval_gradient=True)", 2.5),
    ("then readout mean, gradients", FIRST, 'RNTK(readout="mean")(X, eval_gradient=True)', 2.5),
    ("first RNTKClassifier().fit(X, y), less a second one", "", "RNTKClassifier().fit(X, y)", 4.0),
    *((f"first {name}", "", f'RNTK(activation="{name}")(X)', 3.0) for name in ("erf", "gelu", "tanh")),
]


def measure(before: str, call: str, calls: int) -> list[float]:
    """CPU seconds of the imports and of each call, in a process of its own."""
    script = SCRIPT.format(before=before, call=call, calls=calls)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        found = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True)
    return [float(each) for each in found.stdout.split()]


def bound(question: str, seconds: float, limit: float) -> dict[str, Any]:
    return {"question": question, "seconds": seconds, "limit": limit, "reached": seconds <= limit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each once, instead of the best of three")
    parser.add_argument("--out", type=Path, help="write the record as JSON")
    arguments = parser.parse_args()
    console, here = Console(), machine()
    console.print(f"{here['cpu']}, {here['threads']} threads, Python {here['python']}, {here['versions']}")
    rows, imports = [], []
    for question, before, call, limit in CALLS:
        found = []
        for _ in range(1 if arguments.quick else 3):
            own, first, *again = measure(before, call, 2 if "less" in question else 1)
            imports.append(own)
            found.append(first - sum(again))
        rows.append(bound(question, min(found), limit))
    rows.insert(0, bound("from rntk import RNTK", min(imports), 1.2))
    table = Table("question", "CPU seconds", "limit", "reached")
    for row in rows:
        reached = "yes" if row["reached"] else "[red]missed[/red]"
        table.add_row(row["question"], f"{row['seconds']:.2f}", f"{row['limit']:.1f}", reached)
    console.print(table)
    if arguments.out:
        record = {"machine": here, "quick": arguments.quick, "results": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
        console.print(f"record: {arguments.out}")


if __name__ == "__main__":
    main()
