"""Linear RNNs and the convolutions they are: *Implicit Bias of Linear RNNs* as code (docs/theory.md, section 9).

A linear RNN computes a causal convolution. Infinitely wide and trained by gradient descent, it is one whose taps are
L_j = √ρ_j θ_j, and the scale factors ρ_j fall with the lag j: that is its bias towards short memory.

The path: `filters` (convolution of ragged batches, its adjoint, normal equations, the model `ScaledConv1D`) · `kernel`
(scale factors ρ, the kernel) · `rnn` (the other model, and one from the other) · `regressors` (trained to the end) ·
`descent` (every step of the way, in closed form) · `training` (finite networks, with the `updates` that JAX compiles) ·
`memory`.
"""

from __future__ import annotations

from .descent import ConvolutionDescent
from .filters import ScaledConv1D
from .kernel import limit_kernel, scale_factors
from .memory import MemoryProfile, memory_profile
from .regressors import ConvRegressor, LinearRNNRegressor
from .rnn import LinearRNN, from_taps
from .training import LinearModel, LinearTraining, train

__all__ = [
    "ConvRegressor",
    "ConvolutionDescent",
    "LinearModel",
    "LinearRNN",
    "LinearRNNRegressor",
    "LinearTraining",
    "MemoryProfile",
    "ScaledConv1D",
    "from_taps",
    "limit_kernel",
    "memory_profile",
    "scale_factors",
    "train",
]
