"""Classifiers compared over many data sets: the RNTK paper's metrics (appendix A), and tests of their ranks.

In goes a table of accuracies, a row per data set and a column per classifier; out comes a number per classifier, or a
verdict on all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


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
    accuracy : (N, M), N data sets and M classifiers, on any scale.

    Examples
    --------
    >>> from rntk.metrics import summary
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
    accuracy : (N, M) with at least two data sets and three classifiers. level : of significance.
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
