"""The infinitely wide network while it is trained: Theorem 2 of the RNTK paper as numbers.

In go a kernel of the library, training sequences with targets, and a time of gradient flow or a number of steps of
gradient descent. Out come predictions at that moment: mean and covariance over random initialisations, the path of one
given network, loss curves, and the learning rates at which gradient descent is stable.

One convention holds throughout. The loss is a sum, L(θ) = ½ Σ_i |f(x_i) - y_i|², not averaged over the training set;
`ridge` λ adds ½ λ |θ - θ_0|², weight decay towards the initial parameters θ_0; gradient flow is dθ/ds = -η ∇L and
gradient descent θ ← θ - η ∇L. For a loss that is averaged over N values, pass η/N and λN instead of η and λ.

Imports run one way: `clock` (when we look) <- `spectrum` (the training kernel, one eigendecomposition, and functions of
it) <- `process` (mean and covariance, with kernels between sequences) <- `training` (`Dynamics`, for the caller).
Losses without a closed form are integrated in `flow`.
"""

from .training import Dynamics, LossCurves

__all__ = ["Dynamics", "LossCurves"]
