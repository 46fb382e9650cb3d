"""One study for every figure, table and theorem of the papers, in the order of the report."""

from __future__ import annotations

from ...experiments.unequal_windows import PANELS
from ..study import Study
from .errata import ErrataStudy
from .linear import DelayStudy, LinearLimitStudy, LinearTrainingStudy, ReachingStudy, TapGrowthStudy, WidthsStudy
from .perceptron import PerceptronStudy
from .sensitivity import SensitivityStudy
from .tables import KernelTables, NetworkTables, PrintedTables
from .wide import ConvergenceStudy, EnsembleTrainingStudy, KernelByAngleStudy, LazyTrainingStudy
from .windows import WindowsStudy

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        KernelByAngleStudy(),
        ConvergenceStudy(),
        SensitivityStudy(),
        *(WindowsStudy(panel) for panel in PANELS),
        KernelTables(),
        NetworkTables(),
        PrintedTables(),
        LazyTrainingStudy(),
        EnsembleTrainingStudy(),
        LinearTrainingStudy(),
        DelayStudy(),
        WidthsStudy(),
        ReachingStudy(),
        LinearLimitStudy(),
        TapGrowthStudy(),
        PerceptronStudy(),
        ErrataStudy(),
    )
}

__all__ = ["STUDIES"]
