"""The Neural Tangent Kernel of a multilayer perceptron: a recurrent network that reads one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..activations import Activation, as_activation
from ..errors import SequenceError, check_choice, check_count, check_flag
from ..network import MOST_LAYERS, Direction, Elman, Kind, Network, per_layer, stack_of
from ..sequences import SequenceBatch, as_batch
from .network import NetworkKernel, hyperparameter
from .recurrent import Bounds, Sigma


class NTK(NetworkKernel):
    r"""Exact tangent kernel of an infinitely wide multilayer perceptron on vectors (docs/theory.md, section 6).

    The same recursion as `RNTK` with one step: Σ¹ = σ_w²⟨x,x'⟩/m + σ_b², then layer upon layer.

    Parameters
    ----------
    activation : str or Activation or callable
        As for `RNTK`.
    sigma_w : float or sequence of float
        Standard deviation of the weights; one number, or one per layer.
    sigma_b : float or sequence of float
        Of the biases, likewise.
    sigma_v : float
        Standard deviation of the output weights.
    depth : int
        Number of hidden layers.
    normalize : bool
        As for `RNTK`, and so are the next five.
    kind : "ntk" or "nngp"
        Which of the two kernels.
    dtype : "float64" or "float32"
        Precision.
    engine : "auto", "fused", "reference" or "array"
        Who computes.
    n_jobs, progress : int or None, bool or None
        Threads, and whether to show a bar.
    sigma_w_bounds : (float, float) or "fixed"
        Bounds for hyperparameter optimisation. A sigma of zero is always fixed.
    sigma_b_bounds, sigma_v_bounds : (float, float) or "fixed"
        Of the others.

    Notes
    -----
    The output has no bias, as in the RNTK paper. Jacot, Gabriel and Hongler (2018) train one too; it adds a constant:
    `NTK(sigma_b=0.1) + ConstantKernel(0.1**2)`.

    Examples
    --------
    >>> from rntk import NTK
    >>> NTK(depth=2)([[1.0, 0.0], [0.0, 1.0]]).round(4)
    array([[1.5   , 0.3429],
           [0.3429, 1.5   ]])
    """

    compares_vectors = True

    def __init__(
        self,
        activation: str | Activation | Callable[[Any], Any] = "relu",
        sigma_w: Sigma = 2**0.5,
        sigma_b: Sigma = 0.0,
        sigma_v: float = 1.0,
        depth: int = 1,
        normalize: bool = False,
        kind: str = "ntk",
        dtype: Any = "float64",
        engine: str = "auto",
        n_jobs: int | None = None,
        progress: bool | None = None,
        sigma_w_bounds: Bounds = (1e-2, 1e2),
        sigma_b_bounds: Bounds = (1e-3, 1e3),
        sigma_v_bounds: Bounds = (1e-3, 1e3),
    ) -> None:
        self.activation = activation
        self.sigma_w = sigma_w
        self.sigma_b = sigma_b
        self.sigma_v = sigma_v
        self.depth = depth
        self.normalize = normalize
        self.kind = kind
        self.dtype = dtype
        self.engine = engine
        self.n_jobs = n_jobs
        self.progress = progress
        self.sigma_w_bounds = sigma_w_bounds
        self.sigma_b_bounds = sigma_b_bounds
        self.sigma_v_bounds = sigma_v_bounds

    hyperparameter_sigma_w = hyperparameter("sigma_w")
    hyperparameter_sigma_b = hyperparameter("sigma_b")
    hyperparameter_sigma_v = hyperparameter("sigma_v")

    def network(self) -> Network:
        depth = check_count("depth", self.depth, most=MOST_LAYERS)
        check_choice("kind", self.kind, ("ntk", "nngp"))
        cells = stack_of(
            Elman,
            as_activation(self.activation),
            sigma_w=(0.0,) * depth,
            sigma_u=per_layer("sigma_w", self.sigma_w, depth),
            sigma_b=per_layer("sigma_b", self.sigma_b, depth),
        )
        sigma_v = per_layer("sigma_v", self.sigma_v, 1)[0]
        return Network(cells, sigma_v, normalize=check_flag("normalize", self.normalize), kind=cast(Kind, self.kind))

    def _direction(self, name: str, depth: int, layer: int | None) -> Direction:
        # The weights between layers are what a recurrent network calls its input weights.
        return Direction.along("sigma_u" if name == "sigma_w" else name, depth, layer)

    def read_batch(self, X: Any, name: str = "X") -> SequenceBatch:
        batch = as_batch(X, name=name)
        if batch.n_channels != 1 or not batch.is_equal_length:
            shapes = "sequences of unequal length" if batch.n_channels == 1 else "sequences of vectors"
            raise SequenceError(
                f"{name} must be an (n, m) array of vectors for NTK, not {shapes}; reshape it, or take RNTK"
            )
        # n vectors of m entries: n sequences of one step with m channels.
        return SequenceBatch(batch.values.reshape(len(batch), -1), np.arange(len(batch) + 1))
