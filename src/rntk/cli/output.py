"""What commands print: text for people, or one JSON object for programs."""

from __future__ import annotations

import json
import math
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
    """One object on standard output. JSON has no NaN and no infinity: they become null."""
    typer.echo(json.dumps(_plain(found), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def counted(count: int, noun: str, plural: str = "") -> str:
    """1 class, 2 classes."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def short(value: Any) -> str:
    """A setting in a table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
