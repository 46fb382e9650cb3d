"""The network itself: equations (1) to (3) of theory.md, for a padded batch in one direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..network import Network, Readout
from .inputs import Reading
from .weights import layer_scales, readout_scale


class ForwardPass(NamedTuple):
    """What a network computed on N sequences of up to T steps.

    Attributes
    ----------
    outputs : array of shape (N, d), or (S, d) for the sequence readout
        f.
    pooled : array of shape (N, n) or (S, n)
        What the readout weights multiply.
    initial : tuple of arrays of shape (N, n)
        h[l, 0] of each layer.
    states : tuple of arrays of shape (T, N, n)
        h[l, t] of each layer; after the end of a sequence, its last state.
    """

    outputs: jax.Array
    pooled: jax.Array
    initial: tuple[jax.Array, ...]
    states: tuple[jax.Array, ...]


def run(
    network: Network,
    activation: Callable[[Any], Any],
    weights: dict[str, Any],
    reading: Reading,
    disturbances: Sequence[jax.Array] | None = None,
) -> ForwardPass:
    """Read the sequences.

    `disturbances`, (T, N, n) for each layer, are added to the pre-activations: the derivative by them at zero is the
    backward signal δ = ∂f/∂g.
    """
    width = weights["V"].shape[1]
    steps, count, channels = reading.values.shape
    alive = (jnp.arange(steps)[:, None] < reading.lengths)[:, :, None]
    initial, states = [], []
    below = reading.values
    for layer in range(network.depth):
        scale = layer_scales(network, layer, width, channels)
        W, U, b = (_until(weights[group][layer], steps, network.tied) for group in ("W", "U", "b"))
        # Equation (1) without its first term, for all steps at once.
        drive = jnp.zeros((steps, count, width), below.dtype)
        if U is not None:
            drive += scale.u * _matmul(below, jnp.swapaxes(U, -1, -2))
        if b is not None:
            drive += scale.b * (b if network.tied else b[:, None])
        if disturbances is not None:
            drive += disturbances[layer]
        given = reading.states[layer]
        start = jnp.zeros((count, width), below.dtype) if given is None else given
        if W is None:
            below = activation(drive)
        else:
            below = _recur(activation, scale.w, W, network.tied, start, drive, alive)
        initial.append(start)
        states.append(below)
    pooled = _pool(network.readout, below, reading, alive)
    outputs = readout_scale(network, width) * _matmul(pooled, weights["V"].T)
    return ForwardPass(outputs, pooled, tuple(initial), tuple(states))


def _recur(
    activation: Callable[[Any], Any],
    scale: float,
    W: jax.Array,
    tied: bool,
    start: jax.Array,
    drive: jax.Array,
    alive: jax.Array,
) -> jax.Array:
    """h[t] = φ(scale W h[t-1] + drive[t]) while a sequence lasts; then its last state stays."""

    def step(h: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        drive_t, alive_t, *weights = now
        g = scale * _matmul(h, (W if tied else weights[0]).T) + drive_t
        h = jnp.where(alive_t, activation(g), h)
        return h, h

    along = (drive, alive) if tied else (drive, alive, W)
    _, states = lax.scan(step, start, along)
    return states


def _pool(readout: Readout, states: jax.Array, reading: Reading, alive: jax.Array) -> jax.Array:
    """What the readout sees of the last layer."""
    if not readout.every_step:
        return states[reading.lengths - 1, jnp.arange(states.shape[1])]
    if readout.averages:
        total = jnp.where(alive, states, 0).sum(axis=0)
        return total / reading.lengths[:, None].astype(states.dtype)
    return states.reshape(-1, states.shape[2])[reading.rows]


def _until(array: jax.Array | None, steps: int, tied: bool) -> jax.Array | None:
    """The weights of the first `steps` steps."""
    return array if tied or array is None else array[:steps]


def _matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    # Accelerators round the factors of a product by default.
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)
