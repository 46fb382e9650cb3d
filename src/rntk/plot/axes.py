"""What every picture starts with."""

from __future__ import annotations

from typing import Any

from ..errors import need_extra

#: Okabe and Ito's palette without its yellow, which is faint on white: blue, vermilion, green, purple, sky, orange.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def axes_or_new(ax: Any = None) -> Any:
    """`ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    return need_extra("plot", "matplotlib.pyplot").subplots(layout="constrained")[1]
