"""Activations: Gaussian expectations of φ and φ'.

In goes a name, an `Activation`, or any vectorised callable; out comes an object that knows V = E[φ(z₁)φ(z₂)] and
V' = E[φ'(z₁)φ'(z₂)] once per engine: as the textbook formula, for reading; as a compiled step on blocks of pairs, for
speed; as array expressions, for other devices. One file per family holds all of it, and registers the names.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from .base import FAMILIES, NAMED, Activation, Moments, find, known_names, name_of, register, register_family
from .erf import erf
from .gaussian import gaussian
from .gelu import gelu
from .hermite import HermiteActivation, sigmoid, tanh
from .homogeneous import Homogeneous, absolute, identity, leaky_relu, relu
from .powers import rectified_power
from .snake import snake, tilted_sin
from .trigonometric import cos, sin, sinusoid

for _module in iter_modules(__path__):  # a new file needs no line here
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "FAMILIES",
    "NAMED",
    "Activation",
    "HermiteActivation",
    "Homogeneous",
    "Moments",
    "absolute",
    "as_activation",
    "cos",
    "erf",
    "find",
    "gaussian",
    "gelu",
    "identity",
    "known_names",
    "leaky_relu",
    "name_of",
    "rectified_power",
    "register",
    "register_family",
    "relu",
    "sigmoid",
    "sin",
    "sinusoid",
    "snake",
    "tanh",
    "tilted_sin",
]


def as_activation(given: str | Activation | Callable[[Any], Any]) -> Activation:
    """The activation a user means: a name, "leaky_relu(0.1)", an `Activation`, or a vectorised callable."""
    if isinstance(given, Activation):
        return given
    if isinstance(given, str):
        found = find(given)
        if found is None:
            raise ValueError(
                f"unknown activation {given!r}; known are {', '.join(known_names())}, or pass any function of NumPy "
                "arrays"
            )
        return found
    if callable(given):
        return HermiteActivation(getattr(given, "__name__", "activation"), given)
    raise ValueError(f"an activation is a name, an Activation or a function, not {type(given).__name__}")
