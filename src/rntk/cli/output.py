"""What commands print: text for people, or one JSON object for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def make_console() -> Console:
    """A console that prints text as it is: labels and paths are not markup."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    # In a log or a pipe nothing is cut to the width of a terminal that is not there.
    return console if console.is_terminal else Console(markup=False, highlight=False, emoji=False, width=200)


def make_table(*headings: str, left: int = 1) -> Table:
    """A plain table; all columns but the first `left` are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i < left else "right")
    return table


def print_json(found: dict[str, Any]) -> None:
    """One object on standard output; arrays become lists. JSON has no NaN and no infinity, and there are none."""
    typer.echo(json.dumps(found, indent=2, allow_nan=False, default=lambda array: array.tolist()))


def counted(count: int, noun: str, plural: str = "") -> str:
    """1 class, 2 classes."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def short(value: Any) -> str:
    """A setting in a table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
