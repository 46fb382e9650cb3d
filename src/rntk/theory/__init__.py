"""What the limit says beyond kernel values: what a kernel looks at, how the network trains, state evolution.

`input_gradient` (one pair), `sensitivity` (the size of the gradient over time, averaged over pairs) and `suggest`
(deviations that give it a wanted course) ask how the kernel value moves with every step of a sequence; `dynamics` is
the network while it is trained, `phase` whether it remembers or is chaotic, `evolution` what wide random recurrences
become.
"""

from .dynamics import Dynamics, LossCurves
from .evolution import StateEvolution, state_evolution
from .input_gradient import input_gradient
from .phase import Phase, edge_of_chaos, phase
from .sensitivity import Sensitivity, sensitivity
from .suggest import Suggestion, suggest

__all__ = [
    "Dynamics",
    "LossCurves",
    "Phase",
    "Sensitivity",
    "StateEvolution",
    "Suggestion",
    "edge_of_chaos",
    "input_gradient",
    "phase",
    "sensitivity",
    "state_evolution",
    "suggest",
]
