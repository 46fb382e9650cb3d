"""Classifiers by their mean rank over data sets, and which of them a test tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..metrics import rank_test
from .axes import COLOURS, axes_or_new

Array = NDArray[np.float64]

#: Depths below the scale, in units of one name: of the first bar, from one bar to the next, and of names without bars.
BAR, BETWEEN, SPACE = 0.45, 0.45, 0.9


def critical_difference(accuracy: Any, names: Sequence[str], ax: Any = None, level: float = 0.05) -> Any:
    """Mean ranks of classifiers, the best on the left, with bars over those not told apart; returns the axes.

    The diagram of Demšar (2006): Friedman's test says whether the classifiers differ at all, Nemenyi's by how much two
    mean ranks must differ. A bar joins neighbours that differ by less; one bar joins all where Friedman's test finds
    nothing. Equal accuracies share the mean of their ranks.

    Parameters
    ----------
    accuracy : (N, M), N data sets and M classifiers, on any scale. names : of the M classifiers, two or more.
    level : of significance.

    Notes
    -----
    The tests need three classifiers and two data sets; with fewer, ranks are drawn and the title says so.

    Examples
    --------
    >>> from rntk import plot
    >>> ax = plot.critical_difference([[90, 80, 70], [95, 85, 90], [70, 60, 50]], ["A", "B", "C"])
    >>> ax.get_title()
    "3 data sets, Friedman's test p = 0.097: not told apart"
    """
    y = np.asarray(accuracy, dtype=np.float64)
    if y.ndim != 2 or y.shape[1] < 2 or not len(y) or y.shape[1] != len(names) or not np.isfinite(y).all():
        raise ValueError(
            "accuracy must be a table of data sets by two or more classifiers, finite and with a name for each; "
            f"its shape is {y.shape} and there are {len(names)} names"
        )
    sets, methods = y.shape
    counted = f"{sets} data set{'s' if sets > 1 else ''}"
    width, groups = None, []
    if sets < 2 or methods < 3:
        rank = rankdata(-y, axis=1).mean(axis=0)
        title = f"{counted}, ranks only: the test needs two sets and three classifiers"
    else:
        test = rank_test(y, level)
        rank, differ = test.rank, test.p_value < level
        groups = not_told_apart(rank, test.critical_difference if differ else np.inf)
        width = test.critical_difference if differ else None
        title = f"{counted}, Friedman's test p = {test.p_value:.2g}" + ("" if differ else ": not told apart")
    new = ax is None
    ax = axes_or_new(ax)
    lowest = _draw_names(ax, rank, names, SPACE + BETWEEN * len(groups))
    for k, (first, last) in enumerate(groups):
        height = -(BAR + BETWEEN * k)
        # A little longer than the ranks they join, so that their ends are seen.
        ends = first - 0.012 * (methods - 1), last + 0.012 * (methods - 1)
        ax.plot(ends, (height, height), color=COLOURS[0], linewidth=4, solid_capstyle="butt", label="_group")
    top = 1.2 if width is None else _draw_width(ax, width, methods)
    _draw_scale(ax, methods, lowest - 0.6, top)
    ax.set_title(title)
    if new:
        ax.figure.set_size_inches(7.2, 1.3 + 0.3 * (top - lowest + 0.6))
    return ax


def not_told_apart(rank: Array, difference: float) -> list[tuple[float, float]]:
    """Stretches of mean ranks shorter than `difference`, from their best to their worst, that no other contains."""
    ordered = np.sort(rank)
    found: list[tuple[int, int]] = []
    for first in range(len(ordered)):
        last = int(np.searchsorted(ordered - ordered[first], difference, side="left")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return [(float(ordered[first]), float(ordered[last])) for first, last in found]


def _draw_names(ax: Any, rank: Array, names: Sequence[str], start: float) -> float:
    """Names below the scale, the better half on the left, with lines to their ranks; returns the lowest height."""
    methods = len(rank)
    order = np.argsort(rank, kind="stable")
    half = (methods + 1) // 2
    reach = 0.05 * (methods - 1)
    # The outermost rank has the highest name on either side: no line crosses another.
    for side, members in (("left", order[:half]), ("right", order[half:][::-1])):
        edge = 1 - reach if side == "left" else methods + reach
        for k, j in enumerate(members):
            height = -(start + k)
            ax.plot((rank[j], rank[j], edge), (0, height, height), color="0.35", linewidth=1, label="_name")
            ax.text(
                edge + (-reach if side == "left" else reach) / 3,
                height,
                f"{names[j]}  {rank[j]:.2f}" if side == "left" else f"{rank[j]:.2f}  {names[j]}",
                ha="right" if side == "left" else "left",
                va="center",
            )
    return -(start + half - 1)


def _draw_width(ax: Any, width: float, methods: int) -> float:
    """The critical difference as a length above the scale, where it fits; returns the height that is needed."""
    said = f"critical difference {width:.2f}"
    if width > methods - 1:
        ax.text(1, 1.8, f"{said}, longer than the scale", ha="left", va="center", fontsize="small")
    else:
        ax.plot((1, 1 + width), (1.8, 1.8), color=COLOURS[0], linewidth=4, solid_capstyle="butt", label="_width")
        ax.text(1 + width + 0.03 * (methods - 1), 1.8, said, ha="left", va="center", fontsize="small")
    return 2.4


def _draw_scale(ax: Any, methods: int, low: float, high: float) -> None:
    """A scale from 1 to the number of classifiers at height zero, and room for names on both sides."""
    ax.set_xlim(1 - 0.4 * (methods - 1), methods + 0.4 * (methods - 1))
    ax.set_ylim(low, high)
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set(position=("data", 0.0), bounds=(1, methods))
    ax.xaxis.set_ticks_position("top")
    ax.set_xticks(range(1, methods + 1))
    ax.set_yticks([])
    ax.set_xlabel("mean rank, 1 is best")
