"""RNTK paper, Tables 1 and 2 as they are printed: does one follow from the other?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..data import archive_facts
from ..printed import (
    PAPER_METHODS,
    TWO_DIGITS,
    audit_table_2,
    rntk_table_1,
    rntk_table_2,
    table_1_from_table_2,
)
from ..ranks import critical_difference
from ..study import EXACT, Claim, Finding, Mutant, Plain, Results, Study, Unit

#: Rows of Table 1, in words.
METRICS = {"mean": "means", "deviation": "deviations", "p90": "P90", "p95": "P95", "pma": "PMA", "rank": "ranks"}


def _next_column(function: Any) -> Any:
    return lambda accuracy: function(np.roll(accuracy, 1, axis=1))


class PrintedTables(Study):
    """Table 1 computed from Table 2, and entries of Table 2 that no count of right answers gives."""

    name = "rntk-printed-tables"
    title = "The printed tables: does one follow from the other?"
    source = "The Recurrent Neural Tangent Kernel, Tables 1 and 2 as printed"
    minutes = (0.1, 0.1)
    quick = full = (Unit("audit", {}, weight=1),)
    claims = (
        *(
            Claim(
                metric,
                f"Table 1, {words}, follows from Table 2",
                "to the digits printed",
                ", ".join(f"{value:.2f}" for value in rntk_table_1()[metric].values()),
                "misprints: the other entries of the row follow with tied methods sharing the smallest rank",
                misprint=True,
            )
            for metric, words in METRICS.items()
        ),
        Claim(
            "counts",
            "every accuracy of Table 2 is a whole number of right answers",
            "k/n_test to the digits printed, with the archive's sizes",
            "56 sets, 7 classifiers",
            "misprints; the kernel columns of MiddlePhalanxOutlineCorrect are multiples of 1/154, the size of the test "
            "part of MiddlePhalanxTW",
            misprint=True,
        ),
    )

    mutants = (
        Mutant(
            "columns off by one", ("mean", "deviation", "p95"), "rntk.papers.printed:summary", _next_column, settings={}
        ),
    )

    def compute(self, data: Path | None) -> Plain:
        """`table_1` by metric and method, `impossible` entries of Table 2, and how many `sets` were looked at."""
        sizes = {name: facts.test for name, facts in archive_facts().items()}
        return {
            "table_1": table_1_from_table_2(),
            "impossible": [entry._asdict() for entry in audit_table_2(sizes)],
            "sets": sum(name in sizes for name in rntk_table_2()),
        }

    def judge(self, results: Results) -> Iterator[Finding]:
        """Row by row, and over all entries."""
        found = results["audit"]
        for metric, row in found.table_1.items():
            wrong = {method: each for method, each in row.items() if abs(each["difference"]) > TWO_DIGITS}
            said = ", ".join(
                f"{method} {each['value']:.2f} (printed {each['printed']:.2f})" for method, each in wrong.items()
            )
            yield Finding(metric, not wrong, said or "all seven agree", EXACT)
        names = dict.fromkeys(each["data_set"] for each in found.impossible)
        said = f"{len(found.impossible)} entries of {len(names)} sets aren't: {', '.join(names)}"
        told = f"{found.sets} sets: {said}" if names else f"all of {found.sets} sets are"
        yield Finding("counts", not names, told, EXACT)

    def figures(self, results: Results) -> dict[str, Any]:
        """Ranks by the printed accuracies."""
        results["audit"]  # as every figure, only from results
        accuracy = np.array([[row[method] for method in PAPER_METHODS] for row in rntk_table_2().values()])
        return {"ranks-printed": critical_difference(accuracy, PAPER_METHODS).figure}
