"""The papers: every figure, table and theorem a study, every study a record, all records one report.

A study (`studies`, one file each) holds its settings in units of work, what one unit computes, the claims of the paper,
how results judge them, and how they are drawn. `run` computes one here, for a notebook; `reproduce` computes many,
keeps what is finished, and leaves a record of each: settings, seeds, versions, machine, results, the paper's values and
a verdict for each claim. `write_report` reads records, nothing else.

Data path: ``study`` (what) -> ``workers`` (compute units) -> ``record`` (keep them) -> ``run`` (all of it) ->
``report`` (look at it). Beside it: ``protocol`` (appendix A of the RNTK paper as two learners), ``networks`` (its
trained baselines), ``data`` (its data sets), ``printed`` and ``ranks`` (its tables, and classifiers compared). The room
at the end of the path: it uses everything else, and nothing but the command `rntk reproduce` uses it.
"""

from __future__ import annotations

from .protocol import PaperClassifier, PaperRegressor
from .report import write_report
from .run import reproduce, run
from .studies import STUDIES
from .study import Claim, Criterion, Finding, Mode, NotRunError, Proof, Results, Study, Unit, Verdict

__all__ = [
    "STUDIES",
    "Claim",
    "Criterion",
    "Finding",
    "Mode",
    "NotRunError",
    "PaperClassifier",
    "PaperRegressor",
    "Proof",
    "Results",
    "Study",
    "Unit",
    "Verdict",
    "reproduce",
    "run",
    "write_report",
]
