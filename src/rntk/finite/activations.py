"""Activations as JAX functions: the twin of each activation the kernels know."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..activations import Activation, known_names

Function = Callable[[Any], Any]

#: Where a twin is compared with the activation of the kernel, and how closely they must agree: JAX may compute in
#: single precision there.
GRID = np.linspace(-6.0, 6.0, 241)
AGREEMENT = 1e-4


@cache  # one function per activation, so that equal networks share what is compiled for them
def jax_function(activation: Activation) -> Function:
    """The function of JAX arrays that equals `activation`.

    Raises
    ------
    ValueError
        The activation is a function of NumPy arrays that JAX can't trace.
    """
    try:
        return check_twin(activation, activation.in_jax)
    except (TypeError, jax.errors.JAXTypeError):
        raise ValueError(
            f"the activation {activation.name} is a function of NumPy arrays, which JAX can't differentiate; write it "
            f"in jax.numpy and pass it along, network(kernel, width, activation=...), or take a named activation "
            f"({', '.join(known_names())})"
        ) from None


def check_twin(activation: Activation, function: Function) -> Function:
    """`function`, once it is known to be traceable and to equal `activation` on a grid."""
    shape = jax.eval_shape(function, jnp.zeros(GRID.shape, np.float32))
    if getattr(shape, "shape", None) != GRID.shape:
        raise ValueError(f"the JAX function for {activation.name} must work elementwise on arrays")
    expected = activation(GRID)
    gap = np.abs(np.asarray(function(jnp.asarray(GRID)), dtype=np.float64) - expected)
    worst = int(np.argmax(gap))
    if not gap[worst] <= AGREEMENT * (1 + np.abs(expected).max()):
        raise ValueError(
            f"the JAX function given is not the activation {activation.name} of the kernel: they differ by "
            f"{gap[worst]:.3g} at {GRID[worst]:.3g}"
        )
    return function
