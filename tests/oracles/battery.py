"""Pairs of sequences that try a kernel where it is hard, and the stored values of their kernels.

A case is a network and a pair (x, y): near-duplicates from 1e-15 apart, opposite sequences, zeros, unequal lengths,
inputs from 1e-150 to 1e150, each in an ordered, a critical and a chaotic (or growing) network. Networks are Elman
layers read out at the last step, NTK parameterisation, sigma_v = 1, sigma_h = 0, the same deviations in all layers.

`cases` lists them, `sequences` gives the float64 arrays of one of them, and `load` the values that
``make_battery_values`` computed from exactly these numbers.

>>> record = load()["relu/critical/depth 1/channels 1/apart 1e-09"]
>>> x, y = sequences(record.case)
>>> record.values["ntk_xy"], record.logs["ntk_xy"], record.texts["ntk_xy"]  # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("battery_values.json")
LEAKY_SLOPE = 0.1
KINKED = ("relu", "leaky_relu", "abs")  # input gradients have jumps where unit vectors are parallel
LATTICE = ("tanh", "sigmoid")  # no closed form: values come from lattice sums
ROOT_TWO = math.sqrt(2)

# (sigma_w, sigma_u, sigma_b) by name
_RECTIFIERS = {"ordered": (1.0, 1.0, 0.3), "critical": (ROOT_TWO, 1.0, 0.0), "growing": (2.0, 1.0, 0.0)}
_ISOMETRIES = {"ordered": (0.7, 1.0, 0.3), "critical": (1.0, 1.0, 0.0), "growing": (1.5, 1.0, 0.0)}
SETTINGS: dict[str, dict[str, tuple[float, float, float]]] = {
    "relu": _RECTIFIERS,
    "leaky_relu": _RECTIFIERS,
    "gelu": _RECTIFIERS,
    "identity": _ISOMETRIES,
    "abs": _ISOMETRIES,
    "erf": {
        "ordered": (0.7, 0.5, 0.3),
        "critical": (1.0, 0.5, 0.0),
        "chaotic": (2.0, 1.0, 0.0),
        "chaotic bias": (2.0, 0.3, 0.05),
    },
    "sin": {
        "ordered": (0.7, 0.5, 0.3),
        "critical": (1.0, 0.5, 0.0),
        "chaotic": (1.9, 1.0, 0.0),
        "chaotic bias": (1.9, 0.3, 0.05),
    },
    "tanh": {
        "ordered": (0.7, 0.5, 0.3),
        "critical": (1.0, 0.5, 0.0),
        "chaotic": (2.0, 0.5, 0.0),
        "chaotic bias": (2.0, 0.3, 0.05),
    },
    "sigmoid": {"ordered": (2.0, 0.5, 0.3), "middle": (4.0, 0.5, 0.0), "steep": (8.0, 1.0, 0.0)},
    "cos": {"ordered": (0.7, 0.5, 0.3), "chaotic": (1.9, 1.0, 0.0), "chaotic bias": (1.9, 0.3, 0.05)},
    "sinusoid(1.5, 0.5)": {"ordered": (0.5, 0.5, 0.3), "chaotic": (1.3, 0.7, 0.0), "chaotic bias": (1.3, 0.2, 0.05)},
    "gaussian": {"ordered": (1.0, 0.5, 0.3), "chaotic": (3.0, 1.0, 0.0), "chaotic bias": (3.0, 0.3, 0.05)},
    "snake(0.5)": {"ordered": (0.6, 0.5, 0.3), "growing": (1.2, 1.0, 0.0)},
    "tilted_sin(0.5)": {"ordered": (0.5, 0.5, 0.3), "chaotic": (1.5, 1.0, 0.0)},
    "rectified_power(2)": {"ordered": (0.5, 0.25, 0.1), "growing": (0.8, 0.7, 0.0)},
    "rectified_power(3)": {"ordered": (0.4, 0.3, 0.1), "growing": (0.6, 0.5, 0.0)},
}
ACTIVATIONS = tuple(SETTINGS)
POWERS = ("rectified_power(2)", "rectified_power(3)")  # variances of long sequences leave any range
RECENT = ("cos", "sinusoid(1.5, 0.5)", "gaussian", "snake(0.5)", "tilted_sin(0.5)", *POWERS)  # fewer scales
ORDERED, BIASED = "ordered", "chaotic bias"
DEPTHS = (1, 3)

DISTANCES = (1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1e-1)
PAIRS = (
    "equal",
    "opposite",
    *(f"apart {distance:.0e}" for distance in DISTANCES),
    "opposite apart 1e-09",
    "random",
    "zero",
    "scaled",
    "double",
    "unequal",
    "huge",
)
SCALES = (1e-150, 1e-100, 1e-8, 1e3, 1e8, 1e100, 1e150)
RECENT_SCALES = (1e-8, 1e3, 1e8)
LATTICE_SCALES = (1e-150, 1e-100, 1e-8, 10.0, 30.0, 1e3, 1e8)
SCALED_PAIRS = ("random", "apart 1e-09", "opposite")
TOO_SLOW = (1e3, 1e8)  # for lattice sums over sequences of which one can be much the larger at a step
CHANNEL_PAIRS = ("equal", "opposite", "apart 1e-09", "random")

HYPERPARAMETERS = ("sigma_w", "sigma_u", "sigma_b")
STEPS = ("first", "middle", "last")
QUANTITIES = (
    *(f"{kernel}_{pair}" for pair in ("xy", "xx", "yy") for kernel in ("ntk", "nngp")),
    *(f"d_log_{sigma}_{pair}" for pair in ("xy", "xx") for sigma in HYPERPARAMETERS),
    *(f"d_x_{step}" for step in STEPS),
)


@dataclass(frozen=True)
class Case:
    """A network and the name of a pair of sequences. ``scale`` multiplies both sequences."""

    activation: str
    setting: str
    depth: int
    channels: int
    pair: str
    scale: float = 1.0

    @property
    def name(self) -> str:
        scale = "" if self.scale == 1 else f" times {self.scale:.0e}"
        return f"{self.activation}/{self.setting}/depth {self.depth}/channels {self.channels}/{self.pair}{scale}"

    @property
    def sigmas(self) -> tuple[float, float, float]:
        """sigma_w, sigma_u, sigma_b."""
        return SETTINGS[self.activation][self.setting]

    @property
    def length(self) -> int:
        if self.activation in POWERS:
            return {1: 7, 3: 3}[self.depth]
        if self.activation in LATTICE:
            return {1: 40, 3: 16}[self.depth]
        return {1: 100, 3: 40}[self.depth]

    @property
    def steps(self) -> tuple[int, int, int]:
        """The steps of x by which derivatives are stored: first, middle, last (channel 0)."""
        return 0, self.length // 2, self.length - 1


def cases() -> list[Case]:
    """All cases, by activation."""
    result = []
    for activation, settings in SETTINGS.items():
        scales = LATTICE_SCALES if activation in LATTICE else RECENT_SCALES if activation in RECENT else SCALES
        for setting in settings:
            result += [Case(activation, setting, depth, 1, pair) for depth in DEPTHS for pair in PAIRS]
            if setting not in (ORDERED, BIASED):
                result += [
                    Case(activation, setting, 1, 1, pair, scale)
                    for scale in scales
                    for pair in SCALED_PAIRS
                    if not (activation in LATTICE and scale in TOO_SLOW and pair == "random")
                ]
            if setting not in (ORDERED, BIASED) or (setting == BIASED and activation not in RECENT):
                result += [Case(activation, setting, 1, 3, pair) for pair in CHANNEL_PAIRS]
    return result


def sequences(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """x and y of shape (T, m) and (T', m): exactly the numbers that the stored values belong to."""
    shape = (case.length, case.channels)
    seed = zlib.crc32(f"{case.activation}/{case.setting}/{case.depth}/{case.channels}".encode())
    x, noise, other = np.random.default_rng(seed).standard_normal((3, *shape))
    if case.pair == "huge":
        x[0] = 1e4
        y = x + 1e-6 * noise
        y[0] = x[0]
    elif case.pair.startswith("opposite apart"):
        y = -(x + _distance(case.pair) * noise)
    elif case.pair.startswith("apart"):
        y = x + _distance(case.pair) * noise
    else:
        y = {
            "equal": x.copy(),
            "opposite": -x,
            "random": other,
            "zero": np.zeros(shape),
            "scaled": 1.000001 * x,
            "double": 2 * x,
            "unequal": other[: 3 * case.length // 4],
        }[case.pair]
    return case.scale * x, case.scale * y


def digest(case: Case) -> str:
    """Eight hexadecimal digits that change when the numbers of a case change."""
    content = [np.array(case.sigmas), np.array([LEAKY_SLOPE]), *sequences(case)]
    return f"{zlib.crc32(b''.join(part.astype('<f8').tobytes() for part in content)):08x}"


def _distance(pair: str) -> float:
    return float(pair.split()[-1])


@dataclass(frozen=True)
class Record:
    """The stored values of one case, by the names in `QUANTITIES`.

    ``values`` are floats: inf or 0 where the number lies outside their range. ``signs`` and ``logs`` hold the sign and
    the natural logarithm of the absolute value of the same number, which stay finite there. ``texts`` are the decimals
    as stored. A quantity that does not exist is None in all of them: a derivative by a sigma_b of zero, or by an input
    at a point where the kernel is not differentiable. ``digest`` is what `digest` of the case was at the time.
    """

    case: Case
    digest: str
    texts: dict[str, str | None]
    values: dict[str, float | None]
    signs: dict[str, int | None]
    logs: dict[str, float | None]


def load(activations: Iterable[str] | None = None, path: Path = SOURCE) -> dict[str, Record]:
    """Stored records by the names of their cases, of some activations or of all, in the order of `cases`."""
    wanted = set(ACTIVATIONS if activations is None else activations)
    stored = json.loads(Path(path).read_text(encoding="utf-8"))["cases"]
    return {
        case.name: _record(case, stored[case.name])
        for case in cases()
        if case.activation in wanted and case.name in stored
    }


def _record(case: Case, entry: dict[str, str | int | None]) -> Record:
    texts = {name: entry.get(name) for name in QUANTITIES}
    parsed = {name: (None, None, None) if text is None else _parse(text) for name, text in texts.items()}
    values, signs, logs = ({name: triple[i] for name, triple in parsed.items()} for i in range(3))
    return Record(case, str(entry["digest"]), texts, values, signs, logs)


def _parse(text: str) -> tuple[float, int, float]:
    """Value, sign and logarithm of the absolute value of a decimal whose exponent may be of any size."""
    mantissa, _, exponent = text.partition("e")
    number, power = float(mantissa), float(exponent or 0)
    if number == 0:
        return 0.0, 0, -math.inf
    logarithm = math.log(abs(number)) + power * math.log(10)
    return float(text), int(math.copysign(1, number)), logarithm
