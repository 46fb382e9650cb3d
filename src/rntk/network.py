"""What is computed: one frozen description of an infinitely wide network, the same for every engine.

A network is a stack of cells, a readout, and what is asked of it: which kernel, read in which directions, normalised or
not. A new cell or readout is a new class here; engines look up what they know of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .errors import say_value

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Parameterization = Literal["ntk", "standard"]
Kind = Literal["ntk", "nngp"]

#: Squares of sigmas and products of a few of them must stay finite.
LARGEST_SIGMA = 1e50
#: Layers of a network: beyond anything of use, and far below what would fill the memory.
MOST_LAYERS = 10_000
#: The standard deviations that exist once per layer, in the order of gradient directions.
LAYER_SIGMAS = ("sigma_w", "sigma_u", "sigma_b", "sigma_h")


@dataclass(frozen=True)
class Cell:
    """One layer's step: h[t] = φ(what comes from its own last step, from below, and a bias).

    Subclasses say what flows into the pre-activation. Engines find what they compute by the type of the cell
    (`rntk.engine.reference.step`), and refuse those that they don't know.
    """

    activation: Activation
    sigma_w: float
    sigma_u: float
    sigma_b: float = 0.0
    sigma_h: float = 0.0


class Elman(Cell):
    """g[t] = σ_w W h[t-1]/√n + σ_u U x[t]/√m + σ_b b, h[t] = φ(g[t]) (theory.md, section 1)."""


@dataclass(frozen=True, eq=False)
class Readout:
    """From the states of a sequence to outputs. This one is the base of those that average over steps.

    Attributes
    ----------
    name : str
        What users call it.
    every_step : bool
        Whether all pairs of steps count, or only the last one of each sequence.
    per_step : bool
        Whether a Gram matrix has a row per step, or one per sequence.
    """

    name: ClassVar[str]
    every_step: ClassVar[bool] = True
    per_step: ClassVar[bool] = False

    @property
    def averages(self) -> bool:
        """Whether outputs of all steps become one."""
        return self.every_step and not self.per_step

    def weights(self, lengths: Index) -> Array | None:
        """(S,), what each step of sequences of these lengths counts for, over 1/T; None if that is one for all."""
        return None

    def step_weights(self, lengths: Index) -> Array | None:
        """`weights`, if there is one finite number per step."""
        found = self.weights(lengths)
        weights = None if found is None else np.asarray(found, dtype=np.float64)
        if weights is not None and (weights.shape != (lengths.sum(),) or not np.isfinite(weights).all()):
            raise ValueError(
                f"{type(self).__name__}.weights must give {lengths.sum()} finite numbers for sequences of lengths "
                f"{', '.join(map(str, lengths[:5]))}{', …' if len(lengths) > 5 else ''}, one per step, or None"
            )
        return weights

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))


class Last(Readout):
    """The state after the last step."""

    name = "last"
    every_step = False


class Mean(Readout):
    """The mean of the states of all steps."""

    name = "mean"


class Steps(Readout):
    """An output after every step."""

    name = "sequence"
    per_step = True


class Final(Readout):
    """The state after the last step, as one that is compared with all steps of other sequences."""

    name = "final"

    def weights(self, lengths: Index) -> Array:
        weights = np.zeros(lengths.sum())
        weights[np.cumsum(lengths) - 1] = lengths  # over 1/T
        return weights


READOUTS: dict[str, Readout] = {readout.name: readout for readout in (Last(), Mean(), Steps())}


def as_readout(readout: str | Readout) -> Readout:
    """The readout of this name, or the one given."""
    if isinstance(readout, Readout):
        if not hasattr(readout, "name"):
            raise ValueError(f'give the readout {type(readout).__name__} a name: `name = "..."` in its class')
        return readout
    if not isinstance(readout, str) or readout not in READOUTS:
        raise ValueError(f'readout must be "last", "mean" or "sequence", or a Readout, not {readout!r}')
    return READOUTS[readout]


@dataclass(frozen=True)
class Network:
    """An infinitely wide recurrent network (theory.md, section 1), and what is asked of it.

    Attributes
    ----------
    cells : tuple of Cell
        Bottom to top, all with the same activation.
    sigma_v : float
        Standard deviation of the output weights.
    readout : Readout
    tied : bool
        Whether all steps share their weights.
    parameterization : {"ntk", "standard"}
    bidirectional : bool
        Whether an independent network reads the sequences backwards and both are added.
    normalize : bool
        Whether kernels are divided by the roots of their diagonals.
    kind : {"ntk", "nngp"}
        The tangent kernel, or that of the untrained network's outputs.
    """

    cells: tuple[Cell, ...]
    sigma_v: float
    readout: Readout = READOUTS["last"]
    tied: bool = True
    parameterization: Parameterization = "ntk"
    bidirectional: bool = False
    normalize: bool = False
    kind: Kind = "ntk"

    @property
    def depth(self) -> int:
        return len(self.cells)

    @property
    def activation(self) -> Activation:
        return self.cells[0].activation

    @property
    def sigma_w(self) -> tuple[float, ...]:
        return tuple(cell.sigma_w for cell in self.cells)

    @property
    def sigma_u(self) -> tuple[float, ...]:
        return tuple(cell.sigma_u for cell in self.cells)

    @property
    def sigma_b(self) -> tuple[float, ...]:
        return tuple(cell.sigma_b for cell in self.cells)

    @property
    def sigma_h(self) -> tuple[float, ...]:
        return tuple(cell.sigma_h for cell in self.cells)

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

    def cost(self, left: Index, right: Index) -> float:
        """Steps of the recursion for all pairs of sequences of these lengths: work, in units of one layer's step."""
        if self.readout.every_step:
            return float(self.depth * left.sum() * right.sum())
        return float(self.depth * len(left) * len(right) * min(left.mean(), right.mean()))


def stack_of(cell: type[Cell], activation: Activation, **sigmas: tuple[float, ...]) -> tuple[Cell, ...]:
    """Cells bottom to top, from one tuple per standard deviation."""
    return tuple(
        cell(activation, **dict(zip(sigmas, each, strict=True))) for each in zip(*sigmas.values(), strict=True)
    )


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
        raise ValueError(f"{name} must lie between 0 and {LARGEST_SIGMA:g}, not {say_value(value)}")
    if numbers.size == 1:
        return (float(numbers[0]),) * depth
    return tuple(float(number) for number in numbers)
