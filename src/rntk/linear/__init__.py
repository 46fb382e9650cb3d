"""Linear RNNs and the convolutions they are: *Implicit Bias of Linear RNNs* as code (docs/theory.md, section 9).

A linear RNN computes a causal convolution. Infinitely wide and trained by gradient descent, it is one whose taps are
L_j = √ρ_j θ_j, and the scale factors ρ_j fall with the lag j: that is its bias towards short memory.

The path: `scales` (ρ) · `rnn`, `convolution` (the two models) · `realization` (one from the other) · `filters`
(convolution of ragged batches, its adjoint, normal equations) · `toeplitz` (the kernel) · `regressors` (trained to the
end) · `descent` (every step of the way, in closed form) · `training` (finite networks, with JAX) · `memory`.
"""

from __future__ import annotations

from .convolution import ScaledConv1D
from .descent import ConvolutionDescent
from .memory import MemoryProfile, memory_profile
from .realization import from_taps, to_taps
from .regressors import ConvRegressor, LinearRNNRegressor
from .rnn import LinearRNN
from .scales import scale_factors
from .toeplitz import block_toeplitz, kernel_product, limit_kernel, sequence_kernel
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
    "block_toeplitz",
    "from_taps",
    "kernel_product",
    "limit_kernel",
    "memory_profile",
    "scale_factors",
    "sequence_kernel",
    "to_taps",
    "train",
]
