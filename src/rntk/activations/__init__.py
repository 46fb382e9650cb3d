"""Activations: Gaussian expectations of φ and φ'.

In goes a name, an `Activation`, or any vectorised callable; out comes an object that knows V = E[φ(z₁)φ(z₂)] and
V' = E[φ'(z₁)φ'(z₂)] twice: as the textbook formula, for reading, and as a compiled step on blocks of pairs, for
speed. The array engine has forms of its own (`rntk.engine.array.duals`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .base import Activation, Lanes, Moments
from .error_function import erf
from .gaussian_linear import gelu
from .hermite import HermiteActivation, sigmoid, tanh
from .homogeneous import Homogeneous, absolute, identity, leaky_relu, relu
from .sine import sin

#: Activations that can be asked for by name.
NAMED: dict[str, Activation] = {
    activation.name: activation for activation in (relu, erf, identity, absolute, sin, tanh, gelu, sigmoid)
}

__all__ = [
    "NAMED",
    "Activation",
    "HermiteActivation",
    "Homogeneous",
    "Lanes",
    "Moments",
    "absolute",
    "as_activation",
    "erf",
    "gelu",
    "identity",
    "leaky_relu",
    "relu",
    "sigmoid",
    "sin",
    "tanh",
]


def as_activation(given: str | Activation | Callable[[Any], Any]) -> Activation:
    """The activation a user means: a name, "leaky_relu(0.1)", an `Activation`, or a vectorised callable."""
    if isinstance(given, Activation):
        return given
    if isinstance(given, str):
        if given in NAMED:
            return NAMED[given]
        leaky = re.fullmatch(r"leaky_relu(?:\(\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*\))?", given)
        if leaky:
            return leaky_relu(float(leaky[1])) if leaky[1] else leaky_relu()
        raise ValueError(
            f"unknown activation {given!r}; known are {', '.join(NAMED)}, leaky_relu(a), or pass any function of "
            "NumPy arrays"
        )
    if callable(given):
        return HermiteActivation(getattr(given, "__name__", "activation"), given)
    raise ValueError(f"an activation is a name, an Activation or a function, not {type(given).__name__}")
