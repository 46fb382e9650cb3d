"""Any recurrent network: a cell is written once, as a small function of vectors, and everything follows from it.

In goes a function, `cell(x, h)`; `trace` makes it a program, the plain list of instructions of the appendix on Netsor
programs of the RNTK paper. `rules` interprets a program where every expectation is known, `sampled` draws samples where
gates multiply; `ProgramKernel` is the kernel for the learners, `rntk.finite` makes the networks of finite width from
the same program.
"""

from .cells import CELLS
from .kernel import Estimate, ProgramKernel
from .language import Function, Vector, Weight, matrix, nonlinearity, normalise, vector
from .program import LinComp, MatMul, Nonlin, Normalise, Program, states, trace
from .readout import Attention
from .sampled import SampleSet

__all__ = [
    "CELLS",
    "Attention",
    "Estimate",
    "Function",
    "LinComp",
    "MatMul",
    "Nonlin",
    "Normalise",
    "Program",
    "ProgramKernel",
    "SampleSet",
    "Vector",
    "Weight",
    "matrix",
    "nonlinearity",
    "normalise",
    "states",
    "trace",
    "vector",
]
