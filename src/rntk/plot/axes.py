"""What every picture starts with."""

from __future__ import annotations

from typing import Any

#: Okabe and Ito's palette without its yellow, which is faint on white: blue, vermilion, green, purple, sky, orange.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def axes_or_new(ax: Any = None) -> Any:
    """`ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError(
            f'plots need matplotlib, which can\'t be imported ({missing}): pip install "rntk[plot]"', name="matplotlib"
        ) from missing
    return pyplot.subplots(layout="constrained")[1]
