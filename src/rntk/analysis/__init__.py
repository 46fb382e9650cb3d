"""What a kernel looks at: derivatives of kernel values by the inputs.

In go a kernel and a pair of sequences, out comes how the kernel value moves with every step of the first one. Built on
the same per-sequence quantities and compiled activations as the fused engine, run backwards.
"""

from .input_gradient import input_gradient

__all__ = ["input_gradient"]
