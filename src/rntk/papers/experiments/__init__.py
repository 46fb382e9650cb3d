"""The papers' experiments: settings in, a record out, which holds plain numbers (`to_dict`) and draws itself (`plot`).

One module per figure, table or theorem. Those that train finite networks need JAX: pip install "rntk[finite]".

=========================  =======================================================================
`kernel_by_angle`          RNTK Figure 2, left: one wide network beside the kernel, over an angle
`convergence`              RNTK Figure 2, right: tied and untied networks approach the kernel
`unequal_windows`          RNTK Figure 4: what comes after a window of random length
`classification`           RNTK Tables 1 and 2 (a module)
`lazy_training`            RNTK Theorem 2: how far weights and kernel move, by width
`ensemble_training`        RNTK Theorem 2: trained networks beside `rntk.theory.dynamics`
`sensitivity_figure`       RNTK Figure 3, and the claims of section 3.4 as checks
`linear_limit`             linear RNNs, Theorem 3.3: kernel and taps of finite networks
`linear_training`          linear RNNs, Figures 1 and 2, ICML 4: RNN and convolution side by side
`delay`                    linear RNNs, Figure 3: what a delay costs
`tap_growth`               linear RNNs, Theorem 4.1: how fast taps can grow
`reaching`                 linear RNNs, Table 1: hand velocity from spikes
`perceptron_convergence`   note on the NTK: finite perceptrons beside it
`errata`                   what the papers print differently, judged one by one
=========================  =======================================================================
"""

from __future__ import annotations

from .convergence import Convergence, convergence
from .delay import Delay, delay
from .ensemble_training import EnsembleTraining, ensemble_training
from .errata import Errata, errata
from .kernel_by_angle import KernelByAngle, kernel_by_angle
from .lazy_training import LazyTraining, lazy_training
from .linear_limit import LinearLimit, linear_limit
from .linear_training import LinearTrainingCurves, linear_training
from .perceptron import PerceptronConvergence, perceptron_convergence
from .reaching import Reaching, reaching
from .sensitivity_figure import SensitivityFigure, sensitivity_figure
from .tap_growth import TapGrowth, tap_growth
from .unequal_windows import UnequalWindows, unequal_windows

__all__ = [
    "Convergence",
    "Delay",
    "EnsembleTraining",
    "Errata",
    "KernelByAngle",
    "LazyTraining",
    "LinearLimit",
    "LinearTrainingCurves",
    "PerceptronConvergence",
    "Reaching",
    "SensitivityFigure",
    "TapGrowth",
    "UnequalWindows",
    "convergence",
    "delay",
    "ensemble_training",
    "errata",
    "kernel_by_angle",
    "lazy_training",
    "linear_limit",
    "linear_training",
    "perceptron_convergence",
    "reaching",
    "sensitivity_figure",
    "tap_growth",
    "unequal_windows",
]
