"""The states of gated recurrent units from h_0 = 0, and their derivatives.

    r_t = σ(d^r_t + h_{t-1} W^r)                      reset
    z_t = σ(d^z_t + h_{t-1} W^z)                      keep
    c_t = tanh(d^c_t + r_t ∘ (h_{t-1} W^c + a))       candidate
    h_t = (1 - z_t) ∘ c_t + z_t ∘ h_{t-1}

This is the form of cuDNN, PyTorch and Keras: the reset gate acts after the product with W^c, where Cho et al. (2014)
have it before. One product with W = [W^r W^z W^c] per step then suffices.

With g_t the derivative by h_t, that by each drive, and by u_t = h_{t-1} W^c + a, is g_t times a factor. The factors are
kept from the way forward, so that the way back has nothing but products; as in `elman`, the gradient of W is taken out
of the loop. What belongs to one gate is an array of its own: slices of one wide array cost XLA more than the gates do.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from .elman import total_product

#: σ of this is exactly 1 in single precision, whatever is added to it.
_ALWAYS = 1e6

#: For reset, keep and candidate, in this order.
Drives = tuple[jax.Array, jax.Array, jax.Array]
Kept = tuple[jax.Array, ...]


def rest(drives: Drives, present: jax.Array) -> Drives:
    """Drives, (T, B, n) each, under which a zero state stays zero wherever `present` (T, B, 1) is false."""
    r, z, c = drives
    # z = 1 makes h = 0 c + 1 h.
    return jnp.where(present, r, 0.0), jnp.where(present, z, _ALWAYS), jnp.where(present, c, 0.0)


@jax.custom_vjp
def states(drives: Drives, W: jax.Array, a: jax.Array) -> jax.Array:
    """The states h_1 ... h_T, (T, B, n), for drives of that shape, recurrent weights W (n, 3n) and bias a (n,)."""
    return _forward(drives, W, a)[0]


def _forward(drives: Drives, W: jax.Array, a: jax.Array) -> tuple[jax.Array, Kept]:
    n = len(a)

    def step(before: jax.Array, d: Drives) -> tuple[jax.Array, Kept]:
        s = before @ W
        r = _sigmoid(d[0] + s[:, :n])
        z = _sigmoid(d[1] + s[:, n : 2 * n])
        u = s[:, 2 * n :] + a
        c = jnp.tanh(d[2] + r * u)
        h = (1 - z) * c + z * before
        by_c = (1 - z) * (1 - c * c)
        by_u = by_c * r
        return h, (h, z, by_u * u * (1 - r), (before - c) * z * (1 - z), by_u, by_c)

    h, *factors = lax.scan(step, jnp.zeros_like(drives[0][0]), drives)[1]
    return h, (h, *factors, W)


def _backward(kept: Kept, gradient: jax.Array) -> tuple[Drives, jax.Array, jax.Array]:
    h, z, by_r, by_z, by_u, by_c, W = kept
    W_r, W_z, W_c = jnp.split(W.T, 3)

    def step(later: jax.Array, now: Kept) -> tuple[jax.Array, Kept]:
        z, by_r, by_z, by_u, by_c, from_above = now
        g = later + from_above
        by_r, by_z, by_u = g * by_r, g * by_z, g * by_u
        return g * z + by_r @ W_r + by_z @ W_z + by_u @ W_c, (by_r, by_z, by_u, g * by_c)

    factors = z, by_r, by_z, by_u, by_c
    by_r, by_z, by_u, by_c = lax.scan(step, jnp.zeros_like(h[0]), (*factors, gradient), reverse=True)[1]
    by_W = jnp.concatenate([total_product(h[:-1], each[1:]) for each in (by_r, by_z, by_u)], axis=1)
    return (by_r, by_z, by_c), by_W, by_u.sum(axis=(0, 1))


def _sigmoid(x: jax.Array) -> jax.Array:
    return 0.5 + 0.5 * jnp.tanh(0.5 * x)  # a little faster than 1 / (1 + exp(-x)), and exactly 1 for large x


states.defvjp(_forward, _backward)
