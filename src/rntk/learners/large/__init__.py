"""Learning from many sequences: features and solvers that never hold the Gram matrix.

In go sequences, a kernel and a budget of memory; out come explicit features for any linear model (`NystromFeatures`),
or the exact ridge solution by conjugate gradients (`solve_conjugate`), which the ridge learners take with
`solver="cg"`. Features come from blocks of rows, products with the whole matrix from the tiles of `rntk.gram`.

Imports run one way: ``blocks`` (kernels on blocks) <- ``approximation`` (the Nyström formula) <- ``landmarks`` (which
sequences stand for the others) <- ``nystrom`` (the transformer), ``conjugate`` (the solver).
"""

from .conjugate import solve_conjugate
from .nystrom import NystromFeatures

__all__ = ["NystromFeatures", "solve_conjugate"]
