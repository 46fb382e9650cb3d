"""What the papers print, to compare with, and whether it agrees with itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from .ranks import Summary, summary

#: Columns of the RNTK paper's Tables 1 and 2, as the second names them.
PAPER_METHODS = ("RNTK", "NTK", "RBF", "POLY", "Gaussian RNN", "Identity RNN", "GRU")
#: Entries of Table 2 that are counts over the test part of another data set (docs/theory.md, section 10).
OF_ANOTHER_SET = {"MiddlePhalanxOutlineCorrect": ("RNTK", "NTK", "RBF", "POLY")}
#: Metrics of Table 1 that are shares, which the paper prints in percent.
SHARES = ("p90", "p95", "pma")
#: How far two printed digits may lie from the number they stand for, rounded or cut off.
TWO_DIGITS = 0.0101


@cache
def rntk_table_2() -> dict[str, dict[str, float]]:
    """Table 2 of the RNTK paper: accuracy in percent by data set (56 of the UCR archive) and classifier (7).

    Data sets have the archive's names where the paper spells them otherwise ("Faceall", "Arrowhead", "plane",
    "nsectEPGRegular").
    """
    text = files(__package__).joinpath("rntk_table_2.json").read_text("utf-8")
    return dict(json.loads(text)["accuracy"])


def rntk_table_1() -> dict[str, dict[str, float]]:
    """Table 1 of the RNTK paper: by metric (`papers.ranks.Summary`) and classifier; shares in percent."""
    rows = {
        "mean": (80.15, 77.74, 78.15, 77.69, 55.98, 63.08, 69.50),
        "deviation": (15.99, 16.61, 16.59, 16.40, 26.42, 19.02, 22.67),
        "p90": (92.86, 85.71, 87.60, 82.14, 28.57, 42.86, 60.71),
        "p95": (80.36, 66.07, 75.00, 67.86, 17.86, 21.43, 46.43),
        "pma": (97.23, 94.30, 94.86, 94.23, 67.06, 78.22, 84.31),
        "rank": (2.38, 3.00, 2.89, 3.46, 5.86, 5.21, 4.21),
    }
    return {metric: dict(zip(PAPER_METHODS, row, strict=True)) for metric, row in rows.items()}


class Impossible(NamedTuple):
    """An accuracy in percent that no count of right answers gives; `nearest` is the closest that one does."""

    data_set: str
    method: str
    printed: float
    nearest: float
    test: int


def in_percent(found: Summary) -> dict[str, list[float]]:
    """The metrics as Table 1 prints them: by name, one number per classifier, shares in percent."""
    return {name: [float(100 * x if name in SHARES else x) for x in values] for name, values in found._asdict().items()}


def table_1_from_table_2() -> dict[str, dict[str, dict[str, float]]]:
    """Table 1 of the RNTK paper computed from its Table 2, by metric and classifier: value, printed, and difference.

    Examples
    --------
    >>> from rntk.papers.printed import table_1_from_table_2
    >>> entry = table_1_from_table_2()["p90"]["RBF"]
    >>> entry["value"], entry["printed"]
    (87.5, 87.6)
    """
    values = in_percent(summary([[row[method] for method in PAPER_METHODS] for row in rntk_table_2().values()]))
    return {
        metric: {
            method: {"value": value, "printed": row[method], "difference": value - row[method]}
            for method, value in zip(PAPER_METHODS, values[metric], strict=True)
        }
        for metric, row in rntk_table_1().items()
    }


def audit_table_2(test_sizes: Mapping[str, int]) -> list[Impossible]:
    """Entries of the RNTK paper's Table 2 that are no whole number of right answers out of the test sequences.

    Parameters
    ----------
    test_sizes : dict
        Number of test sequences by data set; sets that Table 2 doesn't have are passed over.

    Examples
    --------
    >>> from rntk.papers.printed import audit_table_2
    >>> audit_table_2({"Coffee": 28, "Ham": 105})
    [Impossible(data_set='Ham', method='NTK', printed=71.63, nearest=71.43, test=105)]
    """
    found = []
    for name, row in rntk_table_2().items():
        if name not in test_sizes:
            continue
        test = int(test_sizes[name])
        for method, printed in row.items():
            nearest = 100 * np.rint(printed * test / 100) / test
            if abs(nearest - printed) > TWO_DIGITS:
                found.append(Impossible(name, method, printed, round(float(nearest), 2), test))
    return found
