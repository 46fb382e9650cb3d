"""Random corners of everything that the kernel offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

CLOSED = ("relu", "leaky_relu(0.2)", "identity", "abs", "erf", "sin")


@dataclass(frozen=True)
class Setting:
    """One draw: parameters of a kernel, and the shapes of its data."""

    parameters: dict[str, Any]
    lengths: tuple[int, ...]
    other_lengths: tuple[int, ...]
    channels: int
    seed: int
    scale: float = 1.0
    label: str = field(default="", compare=False)

    def data(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        rng = np.random.default_rng(self.seed)
        return tuple(  # type: ignore[return-value]
            [self.scale * rng.standard_normal((length, self.channels)) for length in lengths]
            for lengths in (self.lengths, self.other_lengths)
        )


def draw(rng: np.random.Generator, index: int, activations: tuple, *, largest: int, tiny: bool) -> Setting:
    """A random corner of everything the kernel offers."""

    def choose(*options):
        return options[rng.integers(len(options))]

    activation = activations[index % len(activations)]
    depth = int(rng.integers(1, 4))
    by_layer = depth > 1 and rng.random() < 0.4

    def sigma(low, high, zero: bool):
        if zero and rng.random() < 0.4:
            return 0.0
        size = depth if by_layer else 1
        values = [round(float(value), 3) for value in rng.uniform(low, high, size=size)]
        if zero and by_layer and rng.random() < 0.7:
            values[int(rng.integers(size))] = 0.0
        return values if by_layer else values[0]

    channels = int(rng.integers(1, 4))
    parameters = {
        "activation": activation,
        "sigma_w": sigma(0.5, 1.5, False),
        "sigma_u": sigma(0.5, 1.3, False),
        "sigma_b": sigma(0.1, 0.6, channels > 1),
        "sigma_h": sigma(0.1, 0.9, True),
        "sigma_v": round(float(rng.uniform(0.5, 1.5)), 3),
        "depth": depth,
        "readout": choose("last", "mean", "sequence"),
        "bidirectional": bool(rng.random() < 0.3),
        "tied": bool(rng.random() < 0.7),
        "parameterization": choose("ntk", "standard"),
        "normalize": bool(rng.random() < 0.2),
    }
    if tiny:
        lengths, other = (1, 3), (2,)
    else:
        lengths = (1, *(int(value) for value in rng.integers(2, largest, size=4)))
        lengths += (lengths[1],)  # at least two of the same length
        other = tuple(int(value) for value in rng.integers(1, largest, size=3))
    name = activation if isinstance(activation, str) else activation.__name__
    flags = [key for key in ("bidirectional", "normalize") if parameters[key]]
    flags += [] if parameters["tied"] else ["untied"]
    flags += ["by layer"] if by_layer else []
    label = " ".join(
        [f"{index:02d}", name, f"L{depth}", parameters["readout"], parameters["parameterization"], f"m{channels}"]
        + flags
        + [f"no {key}" for key in ("sigma_b", "sigma_h") if not np.any(parameters[key])]
    )
    # Expansions are exact to rounding at moderate variances only, and say so otherwise.
    return Setting(parameters, lengths, other, channels, 1000 + index, 0.5 if tiny else 1.0, label)


def settings(count: int, activations: tuple, seed: int, *, largest: int = 8, tiny: bool = False) -> list[Setting]:
    rng = np.random.default_rng(seed)
    return [draw(rng, index, activations, largest=largest, tiny=tiny) for index in range(count)]


def for_each(chosen: list[Setting]):
    return pytest.mark.parametrize("setting", chosen, ids=[setting.label for setting in chosen])
