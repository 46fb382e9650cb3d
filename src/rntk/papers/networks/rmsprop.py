"""One step of training: cross-entropy, its gradient, and RMSProp."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped, unused-ignore]

from .networks import Parameters, Recurrent
from .padding import Padded

#: How much of the mean square of the gradients is kept at every step (Tieleman and Hinton), and what keeps a zero one
#: from being divided by, added to its root.
DECAY, EPSILON = 0.9, 1e-8


def cross_entropy(network: Recurrent, parameters: Parameters, x: Padded, labels: Any, weights: Any) -> jax.Array:
    """Mean over the sequences of -log softmax(logits)[label], those of weight zero left out."""
    losses = optax.softmax_cross_entropy_with_integer_labels(network.logits(parameters, x), labels)
    return jnp.sum(jnp.where(weights > 0, losses, 0.0) * weights) / jnp.sum(weights)


def clip(gradient: Any, norm: float | jax.Array) -> Any:
    """The gradient, shortened to `norm` if it is longer.

    Divided by its largest entry first: squares of entries above 1e19 overflow single precision.
    """
    leaves = jax.tree.leaves(gradient)
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in leaves]))
    scale = jnp.where(largest > 0, largest, 1.0)
    length = jnp.sqrt(sum(jnp.sum(jnp.square(leaf / scale)) for leaf in leaves))  # of the gradient over `scale`
    return jax.tree.map(lambda leaf: jnp.where(length > norm / scale, leaf / scale * (norm / length), leaf), gradient)


def start(parameters: Parameters) -> Any:
    """RMSProp's state before the first step."""
    return _rmsprop(0.0).init(parameters)


@partial(jax.jit, static_argnames="network")
def advance(
    network: Recurrent,
    parameters: Parameters,
    state: Any,
    x: Padded,
    labels: Any,
    weights: Any,
    learning_rate: float,
    clip_norm: float,
) -> tuple[Parameters, Any, jax.Array, jax.Array]:
    """Parameters and state after one step, the loss before it, and whether the step was taken.

    A gradient that is not finite is left out altogether, or it would stay in the mean square for ever.
    """
    loss, gradient = jax.value_and_grad(cross_entropy, argnums=1)(network, parameters, x, labels, weights)
    finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((loss, gradient))]).all()
    change, moved = _rmsprop(learning_rate).update(clip(gradient, clip_norm), state, parameters)
    after = optax.apply_updates(parameters, change), moved
    parameters, state = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, (parameters, state))
    return parameters, state, loss, finite


def _rmsprop(learning_rate: Any) -> Any:
    """θ ← θ - η g / (√v + ε) with v ← 0.9 v + 0.1 g², from v = 0."""
    return optax.rmsprop(learning_rate, decay=DECAY, eps=EPSILON, eps_in_sqrt=False)
