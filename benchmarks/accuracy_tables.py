"""What the benchmarks of accuracy share: data sets in a folder, records that grow, and the summary of rivals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from scipy.stats import rankdata


def data_sets(folder: Path, wanted: list[str] | None) -> list[Path]:
    """The folders of data sets, small files first: something to look at soon."""
    found = [each for each in folder.iterdir() if each.is_dir() and (not wanted or each.name in wanted)]
    return sorted(found, key=lambda each: sum(path.stat().st_size for path in each.iterdir()))


def keep(record: dict[str, Any], path: Path) -> None:
    """Write what is known so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def told(name: str, method: str, line: dict[str, Any]) -> str:
    """One result in one line."""
    return (
        f"{name} {method}: {line['accuracy']:.2f} "
        f"(fit {line['fit_seconds']:.1f} s, predict {line['predict_seconds']:.1f} s)"
    )


def accuracies(each: dict[str, Any], methods: list[str]) -> list[str]:
    """A row of a table; empty where a method hasn't run."""
    return [f"{each[method]['accuracy']:.2f}" if method in each else "" for method in methods]


def summary(results: dict[str, Any], methods: list[str], first: str) -> Table | None:
    """Means, ranks, times and what `first` wins, over the sets that every method has run on; None if there are none."""
    full = [each for each in results.values() if all(method in each for method in methods)]
    if not full:
        return None
    score = np.array([[each[method]["accuracy"] for method in methods] for each in full])
    table = Table(f"over {len(full)} sets", *methods)
    table.add_row("mean accuracy", *(f"{x:.2f}" for x in score.mean(axis=0)))
    table.add_row("mean rank", *(f"{x:.2f}" for x in rankdata(-score, axis=1).mean(axis=0)))
    if first in methods:
        ahead = np.sign(score[:, [methods.index(first)]] - score)
        counts = ["/".join(str(np.sum(column == sign)) for sign in (1, 0, -1)) for column in ahead.T]
        shown = ["" if method == first else count for method, count in zip(methods, counts, strict=True)]
        table.add_row(f"{first} wins/ties/losses", *shown)
    for kind in ("fit_seconds", "predict_seconds", "core_seconds"):
        totals = [sum(each[method].get(kind, np.nan) for each in full) for method in methods]
        table.add_row(f"total {kind}", *(f"{seconds:.0f}" for seconds in totals))
    return table
