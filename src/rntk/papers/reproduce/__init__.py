"""The papers as commands: every figure, table and theorem a study, every study a record, all records one report.

A `Study` says which units of work it is made of, how to compute one, what the paper claims and how to judge that from
the results, and how to draw them. `reproduce` runs the units of studies that no earlier run has finished and writes a
record for each study: settings, seeds, versions, machine, results, the paper's values and a verdict for each claim.
`write_report` reads records, nothing else, and makes one page of them.

Data path: ``study`` (what) -> ``workers`` (compute units) -> ``store`` (keep them) -> ``run`` (all of it) ->
``figures``, ``report`` (look at it). ``studies`` has one module per group of experiments. Needs the extra
``reproduce``: pip install "rntk[reproduce]".
"""

from __future__ import annotations

from .report import write_report
from .run import reproduce
from .studies import STUDIES
from .study import Claim, Finding, Mode, NotRunError, Results, Study, Unit, Verdict

__all__ = [
    "STUDIES",
    "Claim",
    "Finding",
    "Mode",
    "NotRunError",
    "Results",
    "Study",
    "Unit",
    "Verdict",
    "reproduce",
    "write_report",
]
