"""What the benchmarks of experiments share: a record that grows, pictures, and a line on each result."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accuracy_tables import keep

Experiments = dict[str, Callable[[], Any]]
Say = Callable[[str, dict[str, Any]], str]


def arguments_of(description: str | None, record: Path) -> argparse.ArgumentParser:
    """The options that all have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=record)
    parser.add_argument("--pictures", type=Path, help="folder to draw into")
    parser.add_argument("--only", nargs="+", help="names of experiments")
    return parser


def run_all(experiments: Experiments, say: Say, command: str, arguments: argparse.Namespace) -> None:
    """Run what the record doesn't hold yet, write it, and say what all of it shows."""
    unknown = sorted(set(arguments.only or ()) - set(experiments))
    if unknown:
        raise SystemExit(f"there is no experiment {unknown[0]!r}; there are: {', '.join(experiments)}")
    record: dict[str, Any] = {"command": command, "results": {}}
    if arguments.out.exists():
        record = json.loads(arguments.out.read_text())
    for name, run in experiments.items():
        if name in record["results"] or (arguments.only and name not in arguments.only):
            continue
        begin = time.perf_counter()
        found = run()
        record["results"][name] = {"seconds": time.perf_counter() - begin, **found.to_dict()}
        keep(record, arguments.out)
        if arguments.pictures:
            arguments.pictures.mkdir(parents=True, exist_ok=True)
            picture = arguments.pictures / f"{name.replace(', ', ' ').replace(' ', '_')}.png"
            found.plot().figure.savefig(picture, dpi=150)
    for name, result in record["results"].items():
        print(f"{name} ({result['seconds']:.0f} s): {say(name, result)}")
