"""The Recurrent Neural Tangent Kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..activations import Activation, as_activation
from ..errors import check_count
from ..network import Architecture, Parameterization, Readout, per_layer
from ..sequences import SequenceBatch, as_batch
from .network import NetworkKernel, hyperparameter

Sigma = float | Sequence[float]
Bounds = tuple[float, float] | str


class RNTK(NetworkKernel):
    r"""Exact kernel of an infinitely wide recurrent network (docs/theory.md, equations (1) to (16)).

    Sequences of unequal length need no padding: two of them are compared aligned at their last step.

    Parameters
    ----------
    activation : "relu", "erf", "identity", "abs", "sin", "leaky_relu(a)" in closed form; "tanh", "gelu", "sigmoid" or
        any function of NumPy arrays by an expansion whose error is estimated.
    sigma_w, sigma_u, sigma_b, sigma_h : standard deviations of the recurrent weights, input weights, biases and
        initial state; one number, or one per layer. ReLU neither forgets nor explodes at sigma_w = √2.
    sigma_v : standard deviation of the readout weights.
    depth : number of stacked layers.
    readout : "last" step; "mean" over all steps (exact average pooling); "sequence", an output at every step, for
        which the Gram matrix has one row per step of every sequence.
    bidirectional : add an independent network that reads backwards.
    tied : False gives every step its own weights (counted from the start of a sequence).
    parameterization : "ntk", or "standard" for raw weights trained without the factors in front of them.
    normalize : divide by √(Θ(x,x) Θ(x',x')). Scales are kept apart, so this is finite however long the sequence.
    dtype : "float64" or "float32". The ReLU family computes in this precision. Other activations lose too many digits
        in single precision on long sequences: they compute in double and round the result.
    engine : "auto", "fused", "reference" or "array". "auto" is fused for all the CPU can read; tensors on another
        device are computed there by "array", and the result stays there.
    n_jobs : threads; None is all cores.
    progress : None shows a bar on a terminal after two seconds; True always; False never.
    sigma_w_bounds, … : bounds for hyperparameter optimisation, or "fixed". A sigma of zero is always fixed.

    Notes
    -----
    `sigma_h` is a random initial state drawn afresh for every sequence. Like the noise of scikit-learn's `WhiteKernel`,
    what it adds to the covariance of a sequence with itself is on the diagonal of `kernel(X)` and not in
    `kernel(X, Y)`, not even where Y is X.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> RNTK()(X).round(4)
    array([[4.5  , 0.479],
           [0.479, 0.625]])
    """

    def __init__(
        self,
        activation: str | Activation | Callable[[Any], Any] = "relu",
        sigma_w: Sigma = 2**0.5,
        sigma_u: Sigma = 1.0,
        sigma_b: Sigma = 0.0,
        sigma_h: Sigma = 0.0,
        sigma_v: float = 1.0,
        depth: int = 1,
        readout: str = "last",
        bidirectional: bool = False,
        tied: bool = True,
        parameterization: str = "ntk",
        normalize: bool = False,
        dtype: Any = "float64",
        engine: str = "auto",
        n_jobs: int | None = None,
        progress: bool | None = None,
        sigma_w_bounds: Bounds = (0.1, 2.0),
        sigma_u_bounds: Bounds = (1e-3, 1e3),
        sigma_b_bounds: Bounds = (1e-3, 1e3),
        sigma_h_bounds: Bounds = (1e-3, 1e3),
        sigma_v_bounds: Bounds = (1e-3, 1e3),
    ) -> None:
        self.activation = activation
        self.sigma_w = sigma_w
        self.sigma_u = sigma_u
        self.sigma_b = sigma_b
        self.sigma_h = sigma_h
        self.sigma_v = sigma_v
        self.depth = depth
        self.readout = readout
        self.bidirectional = bidirectional
        self.tied = tied
        self.parameterization = parameterization
        self.normalize = normalize
        self.dtype = dtype
        self.engine = engine
        self.n_jobs = n_jobs
        self.progress = progress
        self.sigma_w_bounds = sigma_w_bounds
        self.sigma_u_bounds = sigma_u_bounds
        self.sigma_b_bounds = sigma_b_bounds
        self.sigma_h_bounds = sigma_h_bounds
        self.sigma_v_bounds = sigma_v_bounds

    hyperparameter_sigma_w = hyperparameter("sigma_w")
    hyperparameter_sigma_u = hyperparameter("sigma_u")
    hyperparameter_sigma_b = hyperparameter("sigma_b")
    hyperparameter_sigma_h = hyperparameter("sigma_h")
    hyperparameter_sigma_v = hyperparameter("sigma_v")

    def _architecture(self) -> Architecture:
        depth = check_count("depth", self.depth)
        if self.readout not in ("last", "mean", "sequence"):
            raise ValueError(f'readout must be "last", "mean" or "sequence", not {self.readout!r}')
        if self.parameterization not in ("ntk", "standard"):
            raise ValueError(f'parameterization must be "ntk" or "standard", not {self.parameterization!r}')
        sigma_u = per_layer("sigma_u", self.sigma_u, depth)
        if self.parameterization == "standard" and min(sigma_u) == 0:
            # Weights that start at zero are trained all the same here, but a network without variance has no limit.
            raise ValueError('sigma_u must be positive for parameterization="standard"')
        return Architecture(
            activation=as_activation(self.activation),
            sigma_w=per_layer("sigma_w", self.sigma_w, depth),
            sigma_u=sigma_u,
            sigma_b=per_layer("sigma_b", self.sigma_b, depth),
            sigma_h=per_layer("sigma_h", self.sigma_h, depth),
            sigma_v=per_layer("sigma_v", self.sigma_v, 1)[0],
            readout=cast(Readout, self.readout),
            tied=bool(self.tied),
            parameterization=cast(Parameterization, self.parameterization),
        )

    def _read(self, X: Any, name: str) -> SequenceBatch:
        return as_batch(X, name=name)

    @property
    def _reads_both_ways(self) -> bool:
        return bool(self.bidirectional)
