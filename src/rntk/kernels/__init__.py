"""Kernels as users meet them: scikit-learn objects with hyperparameters, gradients and friendly errors.

In go a few standard deviations and whatever sequences the user has; out come Gram matrices. Each kernel turns its
parameters into a `Network` and its data into a `SequenceBatch`, then hands both to an engine.
"""

from .feedforward import NTK
from .network import KernelPair, NetworkKernel
from .recurrent import RNTK

__all__ = ["NTK", "RNTK", "KernelPair", "NetworkKernel"]
