"""What can be moved: the settings of a kernel, the Python line that makes it, and the scale of each slider."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..kernels import RNTK

#: Closed forms first; the last three are expanded step by step and cost a hundred times more.
ACTIVATIONS = ("relu", "erf", "identity", "abs", "sin", "tanh", "gelu", "sigmoid")
READOUTS = ("last", "mean")
MOST_DEPTH = 5
#: Settings keep this many digits, so that the line on the page makes the very kernel of the picture.
DIGITS = 5


@dataclass(frozen=True)
class Settings:
    """A kernel, as the page has it; one sigma for all layers."""

    activation: str = "relu"
    sigma_w: float = 1.4142
    sigma_u: float = 1.0
    sigma_b: float = 0.0
    sigma_h: float = 0.0
    depth: int = 1
    readout: str = "last"
    normalize: bool = False

    def change(self, **changes: Any) -> Settings:
        """These settings with others in their place; sigmas are rounded to `DIGITS` digits."""
        for name in SCALES:
            if name in changes:
                changes[name] = float(f"{changes[name]:.{DIGITS}g}")
        return replace(self, **changes)

    def kernel(self, n_jobs: int | None = None) -> RNTK:
        """The kernel, in double precision."""
        return RNTK(**self._arguments(), n_jobs=n_jobs, progress=False)

    def python(self) -> str:
        """The line that makes this kernel.

        Examples
        --------
        >>> Settings(sigma_w=1.41).python()
        'RNTK(activation="relu", sigma_w=1.41, sigma_u=1.0, sigma_b=0.0, sigma_h=0.0, depth=1, readout="last")'
        """
        written = {
            name: f'"{value}"' if isinstance(value, str) else repr(value) for name, value in self._arguments().items()
        }
        return f"RNTK({', '.join(f'{name}={value}' for name, value in written.items())})"

    def _arguments(self) -> dict[str, Any]:
        named = ("activation", *SCALES, "depth", "readout")
        # Off by default, so the line names it only where it is on.
        return {name: getattr(self, name) for name in named} | ({"normalize": True} if self.normalize else {})

    @classmethod
    def of(cls, kernel: Any) -> Settings:
        """The settings of a kernel, as far as the page can show them."""
        named = kernel.get_params()
        sigmas = {name: _first(named[name]) for name in SCALES}
        others = {name: named[name] for name in ("activation", "depth", "readout", "normalize")}
        return cls().change(**sigmas, **others)


def _first(sigma: Any) -> float:
    return float(sigma) if isinstance(sigma, int | float) else float(sigma[0])


@dataclass(frozen=True)
class InputScale:
    """Where a slider stands for a value: evenly, or by powers of ten with zero at the very left.

    Attributes
    ----------
    symbol, meaning : str
        What the slider is called.
    low, high : float
        Ends of the slider, as positions: values, or their decimal logarithms.
    step : float
        Of positions.
    logarithmic : bool
        Whether positions are logarithms.
    zero : bool
        Whether the leftmost position of a logarithmic slider means zero.
    """

    symbol: str
    meaning: str
    low: float
    high: float
    step: float
    logarithmic: bool = True
    zero: bool = False

    def value(self, position: float) -> float:
        """What a position stands for."""
        if not self.logarithmic:
            return position
        return 0.0 if self.zero and position <= self.low else 10.0**position

    def position(self, value: float) -> float:
        """Where a value stands; values beyond the ends stand at the ends."""
        if self.logarithmic:
            value = math.log10(value) if value > 0 else self.low
        return min(max(value, self.low), self.high)


#: ReLU is balanced at √2 and moves much with the third digit of sigma_w: a fine step.
SCALES = {
    "sigma_w": InputScale("σ_w", "recurrent weights", 0.0, 3.0, 0.001, logarithmic=False),
    "sigma_u": InputScale("σ_u", "input weights", -3.0, 3.0, 0.01),
    "sigma_b": InputScale("σ_b", "biases", -3.0, 2.0, 0.01, zero=True),
    "sigma_h": InputScale("σ_h", "initial state", -3.0, 2.0, 0.01, zero=True),
}
