"""What is drawn at random, and the factors that stand in front of it (theory.md, sections 1 and 5).

The factor of a group of weights is the root of its gradient factor in the kernel, over the width where a sum runs over
units: `Network.gradient_factors` is the one place that knows the parameterisation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..network import Network
from .inputs import WEIGHTS, generator

#: A pytree of JAX arrays: {"forward": {"W": (W_1, …), "U": (U_1, …), "b": (b_1, …), "V": V}, "backward": …}.
Parameters = dict[str, dict[str, Any]]

#: Names of the two directions, in the order of `inputs.read`.
DIRECTIONS = ("forward", "backward")


class Scales(NamedTuple):
    """The numbers in front of W h, U h and b of one layer."""

    w: float
    u: float
    b: float


def layer_scales(network: Network, layer: int, width: int, channels: int) -> Scales:
    """σ_w/√n, σ_u/√(fan in), σ_b for "ntk"; 1/√n, 1 (1/√n above the first layer), 1 or 0 for "standard"."""
    w, u, b = network.gradient_factors(layer, channels)
    return Scales((w / width) ** 0.5, (u if layer == 0 else u / width) ** 0.5, b**0.5)


def readout_scale(network: Network, width: int) -> float:
    """σ_v/√n for "ntk", 1/√n for "standard"."""
    return float((network.readout_factor / width) ** 0.5)


def draw(
    network: Network,
    width: int,
    outputs: int,
    directions: int,
    channels: int,
    steps: int,
    seed: int,
    dtype: np.dtype[Any],
) -> Parameters:
    """Raw weights: N(0, 1) for "ntk", with their own deviations for "standard".

    Groups that nothing can move are None: biases with σ_b = 0 and, for "ntk", weights with σ = 0. Untied networks have
    one more axis in front, the step.
    """
    standard = network.parameterization == "standard"
    copies = () if network.tied else (steps,)
    parameters: Parameters = {}
    for direction, name in enumerate(DIRECTIONS[:directions]):
        rng = generator(seed, (WEIGHTS, width, direction))

        def normal(deviation: float, *shape: int, rng: np.random.Generator = rng) -> Any:
            # In single precision there are other normal numbers than in double: draw once, then round.
            return jnp.asarray((deviation * rng.standard_normal(shape)).astype(dtype))

        groups: dict[str, list[Any]] = {"W": [], "U": [], "b": []}
        for layer in range(network.depth):
            fan_in = channels if layer == 0 else width
            scales = layer_scales(network, layer, width, channels)
            u = network.sigma_u[layer] / (fan_in**0.5 if layer == 0 else 1.0)
            deviations = (network.sigma_w[layer], u, network.sigma_b[layer]) if standard else (1.0, 1.0, 1.0)
            shapes = ((width, width), (width, fan_in), (width,))
            for group, scale, deviation, shape in zip(groups, scales, deviations, shapes, strict=True):
                groups[group].append(normal(deviation, *copies, *shape) if scale > 0 else None)
        parameters[name] = {group: tuple(arrays) for group, arrays in groups.items()}
        parameters[name]["V"] = normal(network.sigma_v if standard else 1.0, outputs, width)
    return parameters
