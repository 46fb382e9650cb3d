"""A benchmark in parts, each in a process of its own: memory is not given back, so peaks would mix."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gram import machine

Sizes = dict[str, int]
Part = Callable[..., dict[str, Any]]


def run_parts(
    about: str | None,
    parts: Mapping[str, Part],
    quick: Sizes,
    full: Sizes,
    aims: Mapping[str, float],
    find: Callable[[dict[str, Any]], dict[str, float]],
) -> None:
    """The command line of such a benchmark; `find` takes what `aims` are upper limits of from the results."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--out", type=Path, help="write the record as JSON")
    parser.add_argument("--part", choices=parts, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(parts[arguments.part](**arguments.sizes)))
        return
    console, sizes = Console(), quick if arguments.quick else full
    before = os.getloadavg()[0]
    results = {part: _in_a_process(part, sizes) for part in parts}
    here = machine() | {"load_before": before, "load_after": os.getloadavg()[0]}
    found = find(results)
    reached = {name: bool(found[name] <= aim) for name, aim in aims.items()}
    table = Table("what", "found", "aim", "reached")
    for name, aim in aims.items():
        table.add_row(name, f"{found[name]:.3g}", f"<= {aim:g}", "yes" if reached[name] else "[red]missed[/red]")
    console.print(here)
    console.print(results)
    console.print(table)
    if arguments.out:
        facts = {"machine": here, "quick": arguments.quick, "sizes": sizes, "aims": dict(aims)}
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(
            json.dumps(facts | {"found": found, "reached": reached, "results": results}, indent=1) + "\n"
        )
        console.print(f"record: {arguments.out}")


def _in_a_process(part: str, sizes: Sizes) -> dict[str, Any]:
    command = [sys.executable, sys.argv[0], "--part", part, "--sizes", json.dumps(sizes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))
