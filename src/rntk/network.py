"""What is computed: one frozen description of an infinitely wide network, the same for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .activations import Activation

Readout = Literal["last", "mean", "sequence"]
Parameterization = Literal["ntk", "standard"]

#: Squares of sigmas and products of a few of them must stay finite.
LARGEST_SIGMA = 1e50
#: The standard deviations that exist once per layer, in the order of gradient directions.
LAYER_SIGMAS = ("sigma_w", "sigma_u", "sigma_b", "sigma_h")


@dataclass(frozen=True)
class Architecture:
    """A stacked Elman network of infinite width (theory.md, section 1), read in one direction.

    Attributes
    ----------
    sigma_w, sigma_u, sigma_b, sigma_h : one standard deviation per layer.
    sigma_v : standard deviation of the readout.
    """

    activation: Activation
    sigma_w: tuple[float, ...]
    sigma_u: tuple[float, ...]
    sigma_b: tuple[float, ...]
    sigma_h: tuple[float, ...]
    sigma_v: float
    readout: Readout = "last"
    tied: bool = True
    parameterization: Parameterization = "ntk"

    @property
    def depth(self) -> int:
        return len(self.sigma_w)

    def gradient_factors(self, layer: int, n_channels: int) -> tuple[float, float, float]:
        """What (W, U, b) of `layer` add to Θ per unit of the inner product they multiply (theory.md, section 5)."""
        if self.parameterization == "ntk":
            u = self.sigma_u[layer] ** 2
            return self.sigma_w[layer] ** 2, u / n_channels if layer == 0 else u, self.sigma_b[layer] ** 2
        return 1.0, 1.0, float(self.sigma_b[layer] > 0)

    @property
    def readout_factor(self) -> float:
        """What the readout adds to Θ per unit of V."""
        return self.sigma_v**2 if self.parameterization == "ntk" else 1.0


@dataclass(frozen=True)
class Direction:
    """A direction in log-hyperparameter space: how fast each log sigma moves, per layer."""

    sigma_w: tuple[float, ...]
    sigma_u: tuple[float, ...]
    sigma_b: tuple[float, ...]
    sigma_h: tuple[float, ...]
    sigma_v: float

    def layers(self) -> tuple[tuple[float, ...], ...]:
        """The part that moves the layers, in the order of `LAYER_SIGMAS`."""
        return self.sigma_w, self.sigma_u, self.sigma_b, self.sigma_h

    @classmethod
    def along(cls, name: str, depth: int, layer: int | None = None) -> Direction:
        """Along log `name`, of one `layer` or of all at once."""
        still = (0.0,) * depth
        if name == "sigma_v":
            return cls(still, still, still, still, 1.0)
        moving = tuple(1.0 if layer is None or layer == i else 0.0 for i in range(depth))
        w, u, b, h = (moving if name == each else still for each in LAYER_SIGMAS)
        return cls(w, u, b, h, 0.0)


def per_layer(name: str, value: float | Sequence[float] | NDArray[np.floating], depth: int) -> tuple[float, ...]:
    """`value` as one non-negative finite number per layer."""
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or a list of numbers, not {value!r}") from None
    if numbers.ndim != 1 or numbers.size not in (1, depth):
        raise ValueError(f"{name} must be one number or one per layer ({depth}), not an array of shape {numbers.shape}")
    if not (numbers >= 0).all() or (numbers > LARGEST_SIGMA).any():
        raise ValueError(f"{name} must lie between 0 and {LARGEST_SIGMA:g}, not {value!r}")
    if numbers.size == 1:
        return (float(numbers[0]),) * depth
    return tuple(float(number) for number in numbers)
