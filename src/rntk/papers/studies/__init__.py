"""One study for every figure, table and theorem of the papers, in the order of the report."""

from __future__ import annotations

from ..study import Study
from .errata import ErrataStudy
from .linear_figure_3 import LinearFigure3
from .linear_figures_1_2 import LinearFigure4, LinearFigures1And2
from .linear_table_1 import LinearTable1
from .linear_theorem_3_3 import LinearTheorem33
from .linear_theorem_4_1 import LinearTheorem41
from .perceptron import Perceptron
from .rntk_figure_2_left import RntkFigure2Left
from .rntk_figure_2_right import RntkFigure2Right
from .rntk_figure_3 import RntkFigure3
from .rntk_figure_4 import PANELS, RntkFigure4
from .rntk_printed_tables import PrintedTables
from .rntk_tables import KernelTables, NetworkTables
from .rntk_theorem_2_drift import RntkTheorem2Drift
from .rntk_theorem_2_ensemble import RntkTheorem2Ensemble

__all__ = ["STUDIES"]

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        RntkFigure2Left(),
        RntkFigure2Right(),
        RntkFigure3(),
        *(RntkFigure4(panel) for panel in PANELS),
        KernelTables(),
        NetworkTables(),
        PrintedTables(),
        RntkTheorem2Drift(),
        RntkTheorem2Ensemble(),
        LinearFigures1And2(),
        LinearFigure3(),
        LinearFigure4(),
        LinearTable1(),
        LinearTheorem33(),
        LinearTheorem41(),
        Perceptron(),
        ErrataStudy(),
    )
}
