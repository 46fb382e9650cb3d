"""The fused engine: compiled sweeps over tiles of pairs, for speed.

walk (variances along each sequence) → units (unit vectors) → stack (rows in working precision) → problem (panels,
tiles) → sweep (the compiled recursion). Valid because in units every quantity of a pair is bounded and every sum
that could cancel has only non-negative terms; docs/theory.md, section 7, has the derivation.
"""

from .diagonal import self_kernels
from .problem import FusedProblem

__all__ = ["FusedProblem", "self_kernels"]
