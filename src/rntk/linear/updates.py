"""The updates of `train`, compiled by JAX.

A linear model meets the data only through its taps. So every update is: taps from the weights, gradient of the loss by
the taps from the data, and that gradient pulled back to the weights. The full batch enters as AᵀA and Aᵀy alone, and
no state of any sequence is ever computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..finite.precision import as_dtype, precision
from .convolution import ScaledConv1D
from .rnn import LinearRNN

Array = NDArray[np.float64]
Advance = Callable[[Any, int], Any]


def start(model: LinearRNN | ScaledConv1D, dtype: Any) -> Any:
    """The weights of `model` as JAX arrays."""
    weights = (model.W, model.F, model.C) if isinstance(model, LinearRNN) else (model.theta,)
    dtype = as_dtype(dtype)
    with precision(dtype):
        return tuple(jnp.asarray(np.asarray(each, dtype=dtype)) for each in weights)


def finish(model: LinearRNN | ScaledConv1D, parameters: Any) -> LinearRNN | ScaledConv1D:
    """A model with these weights."""
    weights = [np.asarray(each, dtype=np.float64) for each in parameters]
    return LinearRNN(*weights) if isinstance(model, LinearRNN) else ScaledConv1D(model.rho, weights[0])


def taps_of(model: LinearRNN | ScaledConv1D, parameters: Any, lags: int, dtype: Any) -> Array:
    """The impulse response of these weights."""
    with precision(as_dtype(dtype)):
        return np.asarray(_taps(parameters, _root(model, dtype), lags), dtype=np.float64)


def full_batch(
    model: LinearRNN | ScaledConv1D, gram: Array, moments: Array, lags: int, rate: float, dtype: Any
) -> Advance:
    """A function that makes so many updates on ½ Σ ‖y_t - f_t‖², known by AᵀA and Aᵀy."""
    dtype = as_dtype(dtype)
    with precision(dtype):
        data = jnp.asarray(gram.astype(dtype)), jnp.asarray(moments.astype(dtype))

    def advance(parameters: Any, updates: int) -> Any:
        with precision(dtype):
            return _full_batch(parameters, _root(model, dtype), *data, dtype.type(rate), updates, lags)

    return advance


def mini_batch(
    model: LinearRNN | ScaledConv1D,
    values: Array,
    targets: Array,
    exists: Array,
    lags: int,
    rate: float,
    take: Callable[[int], NDArray[np.int64]],
    mean: bool,
    dtype: Any,
    chunk: int = 256,
) -> Advance:
    """A function that makes so many updates, each on the sequences that `take` names."""
    dtype = as_dtype(dtype)
    with precision(dtype):
        data = tuple(jnp.asarray(each.astype(dtype)) for each in (values, targets, exists))

    def advance(parameters: Any, updates: int) -> Any:
        with precision(dtype):
            for first in range(0, updates, chunk):
                order = take(min(chunk, updates - first))
                # One shape for all chunks, which is compiled once; the rows beyond `len(order)` aren't visited.
                full = np.full((chunk, order.shape[1]), -1)
                full[: len(order)] = order
                schedule = jnp.asarray(full), len(order), dtype.type(rate)
                parameters = _mini_batch(parameters, _root(model, dtype), *data, *schedule, lags, mean)
        return parameters

    return advance


def _root(model: LinearRNN | ScaledConv1D, dtype: Any) -> Any:
    """√ρ of a convolution; None for an RNN."""
    if isinstance(model, LinearRNN):
        return None
    return jnp.asarray(np.sqrt(model.rho).astype(as_dtype(dtype)))[:, None, None]


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


@partial(jax.jit, static_argnums=(8, 9))
def _mini_batch(
    parameters: Any,
    root: Any,
    values: Any,
    targets: Any,
    exists: Any,
    order: Any,
    updates: Any,
    rate: Any,
    lags: int,
    mean: bool,
) -> Any:
    def loss(now: Any, members: Any) -> Any:
        present = (members >= 0).astype(values.dtype)[:, None] * exists[members]
        residual = (_filtered(values[members], _taps(now, root, lags)) - targets[members]) * present[..., None]
        total = jnp.sum(residual**2)
        return total / jnp.maximum(present.sum() * targets.shape[2], 1) if mean else total / 2

    def update(k: Any, now: Any) -> Any:
        slope = jax.grad(loss)(now, order[k])
        return jax.tree_util.tree_map(lambda p, g: p - rate * g, now, slope)

    return lax.fori_loop(0, updates, update, parameters)


def _filtered(x: Any, taps: Any) -> Any:
    """Σ_j L_j x_{t-j}, (B, T, n_y)."""
    reached = min(len(taps), x.shape[1])
    kernel = taps[:reached][::-1].transpose(0, 2, 1)  # (J, n_x, n_y), the oldest first
    return lax.conv_general_dilated(x, kernel, (1,), [(reached - 1, 0)], dimension_numbers=("NWC", "WIO", "NWC"))
