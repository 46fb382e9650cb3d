"""The states of a ReLU network, h_t = max(0, d_t + h_{t-1} W) from h_0 = 0, and their derivatives.

JAX would differentiate the scan by itself, but would then add to the gradient of W at every step of the way back. It
is a sum over steps of products of stored things, so one large matrix product after the loop gives it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def rest(drive: jax.Array, present: jax.Array) -> jax.Array:
    """Drives d (T, B, n) under which a zero state stays zero wherever `present` (T, B, 1) is false."""
    return jnp.where(present, drive, 0.0)  # max(0, 0 + 0 W) = 0


@jax.custom_vjp
def states(drive: jax.Array, W: jax.Array) -> jax.Array:
    """The states h_1 ... h_T, (T, B, n), for drives d of that shape and recurrent weights W (n, n)."""

    def step(h: jax.Array, d: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jnp.maximum(d + h @ W, 0)
        return h, h

    return lax.scan(step, jnp.zeros_like(drive[0]), drive)[1]


def _forward(drive: jax.Array, W: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    h = states(drive, W)
    return h, (h, W)


def _backward(kept: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    h, W = kept

    def step(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        h, from_above = now
        delta = jnp.where(h > 0, later + from_above, 0)  # derivative by d_t; that of max(0, .) at zero is zero
        return delta @ W.T, delta

    deltas = lax.scan(step, jnp.zeros_like(h[0]), (h, gradient), reverse=True)[1]
    return deltas, total_product(h[:-1], deltas[1:])


def total_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Σ_tb left[t, b, i] right[t, b, j]. As a product of two matrices, which XLA does faster than the `einsum`."""
    return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])


states.defvjp(_forward, _backward)
