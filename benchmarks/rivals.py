"""What a careful user would write without this library: the textbook recursion, vectorised, twice.

ReLU, one layer, no bias. Both compute whole N × N matrices, as array code does. JAX runs the same formulas jitted
under `lax.scan`, on all cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SIGMA_W2, SIGMA_U2 = 2.0, 1.0


def relu_dual(xp: Any, n: Any, s: Any) -> tuple[Any, Any]:
    """V and V' by arccos; n = √(q q')."""
    c = xp.clip(s / n, -1.0, 1.0)
    theta = xp.arccos(c)
    v = n / (2 * np.pi) * (xp.sqrt(1 - c * c) + c * (np.pi - theta))
    return v, (np.pi - theta) / (2 * np.pi)


def numpy_last(x: np.ndarray) -> np.ndarray:
    steps = x.shape[1]
    v, v_dot, theta = (np.zeros((len(x), len(x)), x.dtype) for _ in range(3))
    for t in range(steps):
        s = SIGMA_W2 * v + SIGMA_U2 * np.multiply.outer(x[:, t], x[:, t])
        theta = s + SIGMA_W2 * v_dot * theta
        q = np.sqrt(np.diagonal(s))
        v, v_dot = relu_dual(np, np.multiply.outer(q, q), s)
    return v + v_dot * theta


def numpy_variances(x: np.ndarray) -> np.ndarray:
    q = np.empty_like(x)
    q[:, 0] = SIGMA_U2 * x[:, 0] ** 2
    for t in range(1, x.shape[1]):
        q[:, t] = SIGMA_W2 / 2 * q[:, t - 1] + SIGMA_U2 * x[:, t] ** 2
    return q


def numpy_mean(x: np.ndarray) -> np.ndarray:
    """Average pooling: the whole (t, s) table of every pair, one row of all tables at a time."""
    n, steps = x.shape
    root = np.sqrt(numpy_variances(x))
    v, v_dot, theta = (np.zeros((n, n, steps + 1), x.dtype) for _ in range(3))
    total = np.zeros((n, n), x.dtype)
    for t in range(steps):
        s = SIGMA_W2 * v[:, :, :-1] + SIGMA_U2 * x[:, t, None, None] * x
        theta[:, :, 1:] = s + SIGMA_W2 * v_dot[:, :, :-1] * theta[:, :, :-1]
        v[:, :, 1:], v_dot[:, :, 1:] = relu_dual(np, root[:, t, None, None] * root, s)
        total += (v[:, :, 1:] + v_dot[:, :, 1:] * theta[:, :, 1:]).sum(axis=2)
    return total / steps**2


def jax_rivals() -> tuple[Any, Any]:
    """(last, mean), jitted."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def last(x: Any) -> Any:
        def step(carry: Any, x_t: Any) -> Any:
            v, v_dot, theta = carry
            s = SIGMA_W2 * v + SIGMA_U2 * jnp.outer(x_t, x_t)
            theta = s + SIGMA_W2 * v_dot * theta
            q = jnp.sqrt(jnp.diagonal(s))
            v, v_dot = relu_dual(jnp, jnp.outer(q, q), s)
            return (v, v_dot, theta), None

        zero = jnp.zeros((len(x), len(x)), x.dtype)
        (v, v_dot, theta), _ = jax.lax.scan(step, (zero, zero, zero), x.T)
        return v + v_dot * theta

    @jax.jit
    def mean(x: Any, root: Any) -> Any:
        n, steps = x.shape

        def step(carry: Any, now: Any) -> Any:
            v, v_dot, theta, total = carry
            x_t, root_t = now
            s = SIGMA_W2 * v + SIGMA_U2 * x_t[:, None, None] * x
            theta = s + SIGMA_W2 * v_dot * theta
            v, v_dot = relu_dual(jnp, root_t[:, None, None] * root, s)
            total = total + (v + v_dot * theta).sum(axis=2)
            shifted = [jnp.pad(each[:, :, :-1], ((0, 0), (0, 0), (1, 0))) for each in (v, v_dot, theta)]
            return (*shifted, total), None

        zero = jnp.zeros((n, n, steps), x.dtype)
        carry = (zero, zero, zero, jnp.zeros((n, n), x.dtype))
        (_, _, _, total), _ = jax.lax.scan(step, carry, (x.T, root.T))
        return total / steps**2

    return last, mean


def numpy_mlp(x: np.ndarray, depth: int) -> np.ndarray:
    """Tangent kernel of a ReLU perceptron, σ_w = √2."""
    s = SIGMA_W2 * (x @ x.T) / x.shape[1]
    theta = s
    for layer in range(depth):
        q = np.sqrt(np.diagonal(s))
        v, v_dot = relu_dual(np, np.multiply.outer(q, q), s)
        if layer < depth - 1:
            s = SIGMA_W2 * v
            theta = s + SIGMA_W2 * v_dot * theta
    return v + v_dot * theta
