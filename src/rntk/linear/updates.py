"""The updates of `train`, compiled by JAX.

A linear model meets the data only through its taps. So every update is: taps from the weights, gradient of the loss by
the taps from the data, and that gradient pulled back to the weights. The full batch enters as AᵀA and Aᵀy alone, and
no state of any sequence is ever computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..errors import check_dtype
from ..finite.precision import precision
from .filters import ScaledConv1D
from .rnn import LinearRNN

Array = NDArray[np.float64]
Weights = tuple[jax.Array, ...]
#: Weights so many updates later.
Advance = Callable[[Weights, int], Weights]


class Trainee:
    """A linear model as JAX sees it: weights, and the taps they make.

    Parameters
    ----------
    model : LinearRNN or ScaledConv1D
        What to start from.
    lags : int
        How many taps.
    dtype : "float32" or "float64"
        Precision of weights and gradients.

    Attributes
    ----------
    start : tuple of arrays
        The weights of the model: W, F and C, or θ.
    """

    def __init__(self, model: LinearRNN | ScaledConv1D, lags: int, dtype: Any) -> None:
        self.model, self.lags, self.dtype = model, lags, check_dtype(dtype)
        self._root: jax.Array | None = None  # √ρ of a convolution
        if isinstance(model, LinearRNN):
            self.start = self._send(model.W, model.F, model.C)
        else:
            self.start = self._send(model.theta)
            self._root = self._send(np.sqrt(model.rho)[:, None, None])[0]

    def _send(self, *arrays: Any) -> Weights:
        with precision(self.dtype):
            return tuple(jnp.asarray(np.asarray(each, dtype=self.dtype)) for each in arrays)

    def finish(self, weights: Weights) -> LinearRNN | ScaledConv1D:
        """A model with these weights."""
        found = [np.asarray(each, dtype=np.float64) for each in weights]
        return LinearRNN(*found) if isinstance(self.model, LinearRNN) else ScaledConv1D(self.model.rho, found[0])

    def taps(self, weights: Weights) -> Array:
        """The impulse response of these weights."""
        with precision(self.dtype):
            return np.asarray(_taps(weights, self._root, self.lags), dtype=np.float64)

    def full_batch(self, gram: Array, moments: Array, rate: float) -> Advance:
        """Updates on ½ Σ ‖y_t - f_t‖², known by AᵀA and Aᵀy."""
        data = self._send(gram, moments)

        def advance(weights: Weights, updates: int) -> Weights:
            with precision(self.dtype):
                found: Weights = _full_batch(weights, self._root, *data, self.dtype.type(rate), updates, self.lags)
                return found

        return advance

    def mini_batch(
        self,
        values: Array,
        targets: Array,
        exists: NDArray[np.bool_],
        rate: float,
        batches: Iterator[NDArray[np.int64]],
        mean: bool,
    ) -> Advance:
        """Updates on the sequences that `batches` names, one batch each; `exists` tells steps from padding."""
        data = self._send(values, targets, exists)

        def advance(weights: Weights, updates: int) -> Weights:
            with precision(self.dtype):
                for members in islice(batches, updates):
                    weights = _mini_batch(weights, self._root, *data, members, self.dtype.type(rate), self.lags, mean)
            return weights

        return advance


@partial(jax.jit, static_argnums=2)
def _taps(parameters: Any, root: Any, lags: int) -> jax.Array:
    if root is not None:
        return jnp.asarray(root * parameters[0])
    W, F, C = parameters
    scale = W.shape[0] ** -0.5
    narrow_end = C.shape[0] <= F.shape[1]  # carry the narrower end through the powers of W

    def step(end: Any, _: Any) -> Any:
        return (scale * (end @ W), end @ F) if narrow_end else (scale * (W @ end), C @ end)

    taps: jax.Array = lax.scan(step, scale * (C if narrow_end else F), None, length=lags)[1]
    return taps


@partial(jax.jit, static_argnums=6)
def _full_batch(parameters: Any, root: Any, gram: Any, moments: Any, rate: Any, updates: Any, lags: int) -> Any:
    def update(_: Any, now: Any) -> Any:
        taps, pull = jax.vjp(lambda p: _taps(p, root, lags), now)
        J, n_y, n_x = taps.shape
        flat = taps.transpose(0, 2, 1).reshape(J * n_x, n_y)
        slope = (gram @ flat - moments).reshape(J, n_x, n_y).transpose(0, 2, 1)
        return jax.tree_util.tree_map(lambda p, g: p - rate * g, now, pull(slope)[0])

    return lax.fori_loop(0, updates, update, parameters)


@partial(jax.jit, static_argnums=(7, 8))
def _mini_batch(
    parameters: Any,
    root: Any,
    values: Any,
    targets: Any,
    exists: Any,
    members: Any,
    rate: Any,
    lags: int,
    mean: bool,
) -> Any:
    def loss(now: Any) -> Any:
        present = (members >= 0).astype(values.dtype)[:, None] * exists[members]
        residual = (_filtered(values[members], _taps(now, root, lags)) - targets[members]) * present[..., None]
        total = jnp.sum(residual**2)
        return total / jnp.maximum(present.sum() * targets.shape[2], 1) if mean else total / 2

    return jax.tree_util.tree_map(lambda p, g: p - rate * g, parameters, jax.grad(loss)(parameters))


def _filtered(x: Any, taps: Any) -> Any:
    """Σ_j L_j x_{t-j}, (B, T, n_y)."""
    reached = min(len(taps), x.shape[1])
    kernel = taps[:reached][::-1].transpose(0, 2, 1)  # (J, n_x, n_y), the oldest first
    return lax.conv_general_dilated(x, kernel, (1,), [(reached - 1, 0)], dimension_numbers=("NWC", "WIO", "NWC"))
