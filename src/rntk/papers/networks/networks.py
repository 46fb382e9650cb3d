"""The three networks: what their parameters are at the start, and the logits they give.

All are stacks of recurrent layers, with a linear readout of the last layer's last state. Matrices act from the right,
on rows that are sequences: U (inputs, units), W (units, units), V (units, classes).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import elman, gru
from .padding import Padded

#: A float32 array: NumPy's where parameters are drawn and kept, JAX's in between.
Array = Any


class Layer(NamedTuple):
    """Input weights U, recurrent weights W, and biases or None: b before the activation, a (GRU) inside the reset."""

    U: Array
    W: Array
    b: Array | None = None
    a: Array | None = None


class Parameters(NamedTuple):
    """All that is trained: layers from the input upwards, readout weights V (n, classes), readout bias or None."""

    layers: tuple[Layer, ...]
    V: Array
    bias: Array | None = None


@dataclass(frozen=True)
class Recurrent(ABC):
    """Base of the networks. Frozen and without data: `jax.jit` takes it as static, and compiles once for each."""

    @abstractmethod
    def draw_layer(self, inputs: int, width: int, random: np.random.RandomState) -> Layer:
        """The parameters of one layer at the start."""

    @abstractmethod
    def draw_readout(self, width: int, classes: int, random: np.random.RandomState) -> tuple[Any, Any]:
        """Readout weights and bias at the start."""

    @abstractmethod
    def run(self, layer: Layer, inputs: jax.Array, present: jax.Array) -> jax.Array:
        """The states (T, B, n) of a layer that reads `inputs` (T, B, .) where `present` (T, B, 1) is true."""

    def draw(self, channels: int, width: int, depth: int, classes: int, random: np.random.RandomState) -> Parameters:
        """Parameters at the start, in single precision."""
        layers = tuple(self.draw_layer(width if level else channels, width, random) for level in range(depth))
        drawn = Parameters(layers, *self.draw_readout(width, classes, random))
        return Parameters(*jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float32), drawn))

    def read(self, parameters: Parameters, h: jax.Array) -> jax.Array:
        """Logits (B, classes) of last states h (B, n)."""
        logits = h @ jnp.asarray(parameters.V)
        return logits if parameters.bias is None else logits + parameters.bias

    def logits(self, parameters: Parameters, x: Padded) -> jax.Array:
        """Logits (B, classes)."""
        steps = x.values.shape[0]
        present = (jnp.arange(steps)[:, None] >= steps - x.lengths)[:, :, None]
        h = jnp.asarray(x.values)
        for layer in parameters.layers:
            h = self.run(layer, h, present)
        return self.read(parameters, h[-1])


@dataclass(frozen=True)
class GaussianElman(Recurrent):
    """Equations (1) to (3) of docs/theory.md with ReLU and σ_w = σ_v = √2, σ_u = 1, σ_b = σ_h = 0.

    Standard normal numbers are trained, and the deviations stand in front of them. Without σ_b there are no biases.
    """

    def draw_layer(self, inputs: int, width: int, random: np.random.RandomState) -> Layer:
        return Layer(random.standard_normal((inputs, width)), random.standard_normal((width, width)))

    def draw_readout(self, width: int, classes: int, random: np.random.RandomState) -> tuple[Any, Any]:
        return random.standard_normal((width, classes)), None

    def run(self, layer: Layer, inputs: jax.Array, present: jax.Array) -> jax.Array:
        U, W = jnp.asarray(layer.U), jnp.asarray(layer.W)
        drive = inputs @ (U * (1.0 / U.shape[0]) ** 0.5)  # σ_u / √n_{l-1}
        return elman.states(elman.rest(drive, present), W * (2.0 / W.shape[0]) ** 0.5)  # σ_w / √n

    def read(self, parameters: Parameters, h: jax.Array) -> jax.Array:
        logits: jax.Array = super().read(parameters, h) * (2.0 / h.shape[1]) ** 0.5  # σ_v / √n
        return logits


@dataclass(frozen=True)
class IdentityElman(Recurrent):
    """ReLU network of Le, Jaitly and Hinton (2015): W = I, other weights of deviation 0.001, biases zero."""

    deviation: float = 0.001

    def draw_layer(self, inputs: int, width: int, random: np.random.RandomState) -> Layer:
        return Layer(self.deviation * random.standard_normal((inputs, width)), np.eye(width), np.zeros(width))

    def draw_readout(self, width: int, classes: int, random: np.random.RandomState) -> tuple[Any, Any]:
        return self.deviation * random.standard_normal((width, classes)), np.zeros(classes)

    def run(self, layer: Layer, inputs: jax.Array, present: jax.Array) -> jax.Array:
        return elman.states(elman.rest(inputs @ layer.U + layer.b, present), jnp.asarray(layer.W))


@dataclass(frozen=True)
class GatedUnits(Recurrent):
    """GRU with everything drawn uniformly between -1/√n and 1/√n, readout included."""

    def draw_layer(self, inputs: int, width: int, random: np.random.RandomState) -> Layer:
        bound = width**-0.5
        shapes = (inputs, 3 * width), (width, 3 * width), (3 * width,), (width,)
        return Layer(*(random.uniform(-bound, bound, shape) for shape in shapes))

    def draw_readout(self, width: int, classes: int, random: np.random.RandomState) -> tuple[Any, Any]:
        bound = width**-0.5
        return random.uniform(-bound, bound, (width, classes)), random.uniform(-bound, bound, classes)

    def run(self, layer: Layer, inputs: jax.Array, present: jax.Array) -> jax.Array:
        U, b = jnp.split(jnp.asarray(layer.U), 3, axis=1), jnp.split(jnp.asarray(layer.b), 3)
        drives = inputs @ U[0] + b[0], inputs @ U[1] + b[1], inputs @ U[2] + b[2]
        return gru.states(gru.rest(drives, present), jnp.asarray(layer.W), jnp.asarray(layer.a))
