"""Classifiers compared over many data sets: the RNTK paper's metrics (appendix A), and tests of their ranks.

In goes a table of accuracies, a row per data set and a column per classifier; out comes a number per classifier, or a
verdict on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..plot.axes import COLOURS, axes_or_new

Array = NDArray[np.float64]
#: Depths below the scale, in units of one name: of the first bar, from one bar to the next, and of names without bars.
BAR, BETWEEN, SPACE = 0.45, 0.45, 0.9


class Summary(NamedTuple):
    """One number per classifier, (M,) each; in the order of the paper's Table 1.

    mean, deviation : of accuracies over data sets; the sample deviation, N - 1.
    p90, p95 : share of data sets with at least 90 % (95 %) of the best classifier's accuracy.
    pma : accuracy over the best classifier's, averaged.
    rank : mean rank, 1 is best; classifiers with equal accuracy share the smallest of their ranks.
    """

    mean: Array
    deviation: Array
    p90: Array
    p95: Array
    pma: Array
    rank: Array


class RankTest(NamedTuple):
    """Friedman's test that all classifiers are alike, and the difference in mean rank that would tell two apart.

    rank : (M,) mean ranks, equal accuracies sharing the mean of their ranks, as the test supposes.
    statistic, p_value : of Friedman's test. critical_difference : Nemenyi's, at the level asked for.
    """

    rank: Array
    statistic: float
    p_value: float
    critical_difference: float


def summary(accuracy: Any) -> Summary:
    """The metrics of the RNTK paper's Table 1.

    Parameters
    ----------
    accuracy
        (N, M), N data sets and M classifiers, on any scale.

    Examples
    --------
    >>> from rntk.papers.ranks import summary
    >>> summary([[90.0, 80.0], [70.0, 70.0]]).rank
    array([1. , 1.5])
    """
    y = _table(accuracy)
    share = y / y.max(axis=1, keepdims=True)
    return Summary(
        mean=y.mean(axis=0),
        deviation=y.std(axis=0, ddof=1) if len(y) > 1 else np.full(y.shape[1], np.nan),
        p90=np.mean(share >= 0.9, axis=0),
        p95=np.mean(share >= 0.95, axis=0),
        pma=share.mean(axis=0),
        rank=stats.rankdata(-y, method="min", axis=1).mean(axis=0),
    )


def rank_test(accuracy: Any, level: float = 0.05) -> RankTest:
    """Do classifiers differ, and by how much must mean ranks differ to say so of two of them (Demšar 2006)?

    Parameters
    ----------
    accuracy
        (N, M) with at least two data sets and three classifiers.
    level : float
        Of significance.
    """
    y = _table(accuracy)
    sets, methods = y.shape
    if sets < 2 or methods < 3:
        raise ValueError(f"the test needs two data sets and three classifiers; the table is {y.shape}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level!r}")
    # Where every set has all classifiers alike there is nothing to rank, and the statistic would be 0/0.
    alike = bool((y == y[:, :1]).all())
    statistic, p_value = (0.0, 1.0) if alike else stats.friedmanchisquare(*y.T)
    spread = stats.studentized_range.ppf(1 - level, methods, np.inf) / 2**0.5
    return RankTest(
        rank=stats.rankdata(-y, axis=1).mean(axis=0),
        statistic=float(statistic),
        p_value=float(p_value),
        critical_difference=float(spread * np.sqrt(methods * (methods + 1) / (6 * sets))),
    )


def _table(accuracy: Any) -> Array:
    y = np.asarray(accuracy, dtype=np.float64)
    if y.ndim != 2 or 0 in y.shape:
        raise ValueError(f"accuracies must be a table, data sets by classifiers; its shape is {y.shape}")
    if not np.isfinite(y).all() or (y < 0).any() or (y.max(axis=1) <= 0).any():
        raise ValueError("accuracies must be finite and not negative, and some classifier must be right on each set")
    return y


def critical_difference(accuracy: Any, names: Sequence[str], ax: Any = None, level: float = 0.05) -> Any:
    """Mean ranks of classifiers, the best on the left, with bars over those not told apart; returns the axes.

    The diagram of Demšar (2006): Friedman's test says whether the classifiers differ at all, Nemenyi's by how much two
    mean ranks must differ. A bar joins neighbours that differ by less; one bar joins all where Friedman's test finds
    nothing. Equal accuracies share the mean of their ranks.

    Parameters
    ----------
    accuracy
        (N, M), N data sets and M classifiers, on any scale.
    names : sequence of str
        Of the M classifiers, two or more.
    level : float
        Of significance.

    Notes
    -----
    The tests need three classifiers and two data sets; with fewer, ranks are drawn and the title says so.

    Examples
    --------
    >>> from rntk.papers.ranks import critical_difference
    >>> ax = critical_difference([[90, 80, 70], [95, 85, 90], [70, 60, 50]], ["A", "B", "C"])
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
        rank = stats.rankdata(-y, axis=1).mean(axis=0)
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
