"""Pictures: matplotlib axes in and out, labels in words, colours that colour-blind readers tell apart.

In go results and matrices, out come the axes they are drawn on: `gram` and `spectrum` for Gram matrices, `sensitivity`,
`training`, `memory_profile` and `kernel_by_angle` for curves, several of which share their axes. Records of experiments
draw themselves. Needs matplotlib, which is loaded only when something is drawn: pip install "rntk[plot]".
"""

from __future__ import annotations

from .axes import COLOURS, axes_or_new
from .curves import kernel_by_angle, memory_profile, sensitivity, training
from .gram import effective_rank, gram, spectrum

__all__ = [
    "COLOURS",
    "axes_or_new",
    "effective_rank",
    "gram",
    "kernel_by_angle",
    "memory_profile",
    "sensitivity",
    "spectrum",
    "training",
]
