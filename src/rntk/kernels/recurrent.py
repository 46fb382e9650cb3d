"""The Recurrent Neural Tangent Kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..activations import Activation, as_activation
from ..errors import check_choice, check_count, check_flag
from ..network import (
    LAYER_SIGMAS,
    MOST_LAYERS,
    Elman,
    Kind,
    Network,
    Parameterization,
    Readout,
    as_readout,
    per_layer,
    stack_of,
)
from ..sequences import SequenceBatch, as_batch
from .network import NetworkKernel, hyperparameter

Sigma = float | Sequence[float]
Bounds = tuple[float, float] | str


class RNTK(NetworkKernel):
    r"""Exact kernel of an infinitely wide recurrent network (docs/theory.md, equations (1) to (16)).

    Sequences of unequal length need no padding: two of them are compared aligned at their last step.

    Parameters
    ----------
    activation : str, Activation or callable
        "relu", "erf", "identity", "abs", "sin", "cos", "gelu", "gaussian", "leaky_relu(a)", "snake(a)",
        "sinusoid(a, b)", "tilted_sin(a)", "rectified_power(p)" in closed form; "tanh", "sigmoid" or any function of
        NumPy arrays by an expansion whose error is estimated.
    sigma_w : float or sequence of float
        Standard deviation of the recurrent weights; one number, or one per layer, as the next three. ReLU neither
        forgets nor explodes at √2.
    sigma_u : float or sequence of float
        Of the input weights.
    sigma_b : float or sequence of float
        Of the biases.
    sigma_h : float or sequence of float
        Of the initial state.
    sigma_v : float
        Of the readout weights.
    depth : int
        Number of stacked layers.
    readout : {"last", "mean", "sequence"} or Readout
        "last" step; "mean" over all steps (exact average pooling); "sequence", an output at every step, for which the
        Gram matrix has one row per step of every sequence.
    bidirectional : bool
        Add an independent network that reads backwards.
    tied : bool
        False gives every step its own weights (counted from the start of a sequence).
    parameterization : {"ntk", "standard"}
        "standard" is for raw weights trained without the factors in front of them.
    normalize : bool
        Divide by √(Θ(x,x) Θ(x',x')). Scales are kept apart, so this is finite however long the sequence.
    kind : {"ntk", "nngp"}
        The tangent kernel Θ of training by gradient descent, or the kernel 𝒦 of the untrained network's outputs.
    dtype : {"float64", "float32"}
        The ReLU family computes in this precision. Other activations lose too many digits in single precision on long
        sequences: they compute in double and round the result.
    engine : {"auto", "fused", "reference", "array"}
        "auto" is fused for all the CPU can read; tensors on another device are computed there by "array", and the
        result stays there.
    n_jobs : int or None
        Threads; None is all cores.
    progress : bool or None
        None shows a bar on a terminal after two seconds; True always; False never.
    sigma_w_bounds : (float, float) or "fixed"
        Bounds for hyperparameter optimisation. A sigma of zero is always fixed.
    sigma_u_bounds, sigma_b_bounds, sigma_h_bounds, sigma_v_bounds : (float, float) or "fixed"
        Of the others.

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
        readout: str | Readout = "last",
        bidirectional: bool = False,
        tied: bool = True,
        parameterization: str = "ntk",
        normalize: bool = False,
        kind: str = "ntk",
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
        self.kind = kind
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

    def network(self) -> Network:
        depth = check_count("depth", self.depth, most=MOST_LAYERS)
        sigmas = {name: per_layer(name, getattr(self, name), depth) for name in LAYER_SIGMAS}
        check_choice("parameterization", self.parameterization, ("ntk", "standard"))
        check_choice("kind", self.kind, ("ntk", "nngp"))
        if self.parameterization == "standard" and min(sigmas["sigma_u"]) == 0:
            # Weights that start at zero are trained all the same here, but a network without variance has no limit.
            raise ValueError('sigma_u must be positive for parameterization="standard"')
        return Network(
            stack_of(Elman, as_activation(self.activation), **sigmas),
            per_layer("sigma_v", self.sigma_v, 1)[0],
            as_readout(self.readout),
            check_flag("tied", self.tied),
            cast(Parameterization, self.parameterization),
            check_flag("bidirectional", self.bidirectional),
            check_flag("normalize", self.normalize),
            cast(Kind, self.kind),
        )

    def read_batch(self, X: Any, name: str = "X") -> SequenceBatch:
        return as_batch(X, name=name)
