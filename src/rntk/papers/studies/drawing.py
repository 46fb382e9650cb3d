"""What every figure of a study has."""

from __future__ import annotations

from typing import Any


def finished(ax: Any, xlabel: str, ylabel: str, title: str, **settings: Any) -> Any:
    """The figure of these axes, with their labels and a legend; `settings` are those of `Axes.set`."""
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title, **settings)
    ax.legend(frameon=False)
    return ax.figure
