"""What a kernel looks at: derivatives of kernel values by the inputs.

In go a kernel and pairs of sequences, out comes how the kernel value moves with every step of the first one:
`pairs` (lanes, tasks, threads) <- `reverse` (the compiled recursion, run backwards) serve `input_gradient` (one pair),
`sensitivity` (the size of the gradient over time, averaged over pairs) and `suggest` (deviations that give it a wanted
course). Built on the same per-sequence quantities and compiled activations as the fused engine.
"""

from .input_gradient import input_gradient
from .sensitivity import Sensitivity, sensitivity
from .suggest import Suggestion, suggest

__all__ = ["Sensitivity", "Suggestion", "input_gradient", "sensitivity", "suggest"]
