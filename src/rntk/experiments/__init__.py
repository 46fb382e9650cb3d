"""The papers' experiments: settings in, a record out, which holds plain numbers (`to_dict`) and draws itself (`plot`).

One module per figure, table or theorem. Those about finite networks need JAX: pip install "rntk[finite]".

=====================  ===========================================================================
`kernel_by_angle`      RNTK Figure 2, left: one wide network beside the kernel, over an angle
`convergence`          RNTK Figure 2, right: tied and untied networks approach the kernel
`lazy_training`        RNTK Theorem 2: how far weights and kernel move, by width
`ensemble_training`    RNTK Theorem 2: trained networks beside `rntk.dynamics`
=====================  ===========================================================================
"""

from __future__ import annotations

from .convergence import Convergence, convergence
from .ensemble_training import EnsembleTraining, ensemble_training
from .kernel_by_angle import KernelByAngle, kernel_by_angle
from .lazy_training import LazyTraining, lazy_training

__all__ = [
    "Convergence",
    "EnsembleTraining",
    "KernelByAngle",
    "LazyTraining",
    "convergence",
    "ensemble_training",
    "kernel_by_angle",
    "lazy_training",
]
