"""The stack: every number of a batch that a sweep reads, as rows over steps.

A row holds one number per step. Rows are cast to the working precision here, once; nothing before this point is
in single precision, nothing after it recomputes. `RowLayout` says which rows are what.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...activations.signatures import FARTHEST, FARTHEST32
from ...errors import HermiteAccuracyWarning
from ...network import Direction, Network
from ...sequences import SequenceBatch
from .close import CALM, close_rows
from .units import Units, accumulated, log_rates, self_tangents, unit_parts
from .walk import Walk, quantiles, require_slopes, walk

Array = NDArray[np.float64]

#: Rows per direction and layer: d log of q, of γ, of the inputs (x̂ or η), of b̂.
RATES = 4


class RowLayout(NamedTuple):
    """Where the rows of each kind begin. One entry per layer in the arrays.

    unit : row of γ; the distance channels (x̂ or η, then b̂) follow.
    channels : how many distance channels.
    has_bias : whether the last of them is b̂.
    own : row of the first gradient row, or -1 where Θ̂'s own term is 1 - u.
    own_channels : how many input and bias rows follow γ̃, ω (and η̃, o above the first layer).
    marks, n_marks : the activation's rows.
    rates : row of d log q of direction 0, layer 0.
    weights : row of the two readout weights (of V̂ and of Q), followed by their log rates; or -1.
    close : rows of `close_rows`, raw : row of the first of `n_inputs` inputs as they came, whose share of the unit
        vector is `input_scale` over the deviation; -1 where close lanes need no care.
    odd : 1 if the activation is.
    farthest : signed distance of exact opposites.
    """

    depth: int
    n_directions: int
    unit: NDArray[np.int64]
    channels: NDArray[np.int64]
    has_bias: NDArray[np.int64]
    own: NDArray[np.int64]
    own_channels: NDArray[np.int64]
    own_shift: NDArray[np.float64]
    marks: NDArray[np.int64]
    n_marks: int
    rates: int
    weights: int
    close: NDArray[np.int64]
    raw: int
    n_inputs: int
    input_scale: float
    odd: int
    farthest: float


class Needs(NamedTuple):
    """What the rows of one side have beyond the least there is; two sides that meet have the same.

    marks : rows of the activation. scaled : powers of two are taken out of Θ̂. careful : close lanes are taken care of.
    """

    marks: int = 0
    scaled: bool = False
    careful: bool = False

    def union(self, other: Needs) -> Needs:
        """What either needs."""
        return Needs(max(self.marks, other.marks), self.scaled or other.scaled, self.careful or other.careful)


@dataclass(frozen=True)
class Stack:
    """All rows of a batch, (C, S), and what turns unit numbers back into kernels.

    Attributes
    ----------
    mantissa, exponent : ndarray
        The norm ψ of the last layer's activation, mantissa 2^exponent, at every step that is read out: the last one of
        each sequence, or all.
    tangent_exponent : ndarray
        Likewise, further powers of two taken out of Θ where it grows.
    norm_rates : ndarray
        (P, …), likewise, d log ψ along each direction.
    """

    rows: NDArray[Any]
    layout: RowLayout
    needs: Needs
    mantissa: Array
    exponent: NDArray[np.int64]
    tangent_exponent: NDArray[np.int64]
    norm_rates: Array


class _Rows:
    """Blocks of rows, each with the factor it is multiplied by when it is written, in the working precision."""

    def __init__(self) -> None:
        self.blocks: list[tuple[Array, float]] = []
        self.count = 0

    def append(self, block: Array, factor: float = 1.0) -> int:
        """Add a block (rows, S) and return the number of its first row."""
        start = self.count
        self.blocks.append((block, factor))
        self.count += len(block)
        return start

    def write(self, out: NDArray[Any]) -> NDArray[Any]:
        start = 0
        for block, factor in self.blocks:
            np.multiply(block, factor, out=out[start : start + len(block)], casting="same_kind")
            start += len(block)
        return out


def build_stack(
    network: Network,
    batch: SequenceBatch,
    dtype: np.dtype[Any],
    directions: list[Direction],
    needs: Needs = Needs(),  # noqa: B008
    empty: Callable[..., NDArray[Any]] = np.empty,
) -> Stack:
    """Everything about each sequence alone, in O(N T); `empty` says where it lies."""
    path = walk(network, batch, empty)
    if directions:
        require_slopes(network, batch, path)
    units = unit_parts(network, batch, path, empty)
    depth, steps = path.q.shape
    growth = _tangent_growth(network, batch, path, units)
    own_needs = Needs(0, _is_large(growth, dtype), _is_wild(network, batch, path, growth))
    needs = needs.union(own_needs)
    if directions and not network.activation.homogeneous:
        needs = needs._replace(careful=True)  # derivatives of w by the variances are small where w is, in any network
    plain = network.parameterization == "ntk" and not needs.scaled
    scale = growth // 2 if needs.scaled else np.zeros(path.q.shape, dtype=np.int64)

    rows = _Rows()
    unit, channels, has_bias, own, own_channels, marks = (np.zeros(depth, dtype=np.int64) for _ in range(6))
    for layer in range(depth):
        unit[layer], channels[layer] = _unit_rows(rows, network, batch.n_channels, units, layer)
        has_bias[layer] = network.sigma_b[layer] > 0
        own[layer] = -1
        if not plain:
            own[layer], own_channels[layer] = _own_rows(rows, network, batch, units, scale, layer)
    every = network.activation.marks(
        path.q,
        path.moments,
        slopes=len(directions) > 0,
        tolerance=1e-13,
        least=needs.marks,
        accumulated=partial(accumulated, network, batch, path, units),
    )
    close, raw = np.full(depth, -1, dtype=np.int64), -1
    if needs.careful:
        raw = rows.append(np.ldexp(batch.values.T.astype(np.float64), -path.exponent[0]))
    for layer in range(depth):
        marks[layer] = rows.append(every[:, layer])
        if needs.careful:
            close[layer] = rows.append(close_rows(network.activation, path.q[layer]))
    rates, norm_rates = _rate_rows(rows, network, batch, path, units, directions)

    read = batch.offsets[1:] - 1 if not network.readout.every_step else slice(None)
    psi = np.sqrt(path.moments.square[-1, read])
    exponent, tangent_exponent, norm_rates = path.exponent[-1, read], scale[-1, read], norm_rates[:, read]
    weights = -1
    if network.readout.averages:
        counts = network.readout.step_weights(batch.lengths)
        psi = psi if counts is None else psi * counts
        top = _top_exponent(batch, psi, exponent, tangent_exponent)
        weights = rows.append(np.ldexp(psi, exponent - top)[None])
        rows.append(np.ldexp(psi, exponent + tangent_exponent - top)[None])
        rows.append(norm_rates)
    layout = RowLayout(
        depth=depth,
        n_directions=len(directions),
        unit=unit,
        channels=channels,
        has_bias=has_bias,
        own=own,
        own_channels=own_channels,
        own_shift=_own_shift(network, directions),
        marks=marks,
        n_marks=len(every),
        rates=rates,
        weights=weights,
        close=close,
        raw=raw,
        n_inputs=batch.n_channels,
        input_scale=network.sigma_u[0] / np.sqrt(batch.n_channels),
        odd=int(network.activation.odd),
        farthest=FARTHEST32 if dtype == np.float32 else FARTHEST,
    )
    needs = needs._replace(marks=len(every))
    table = rows.write(empty((rows.count, steps), dtype))
    return Stack(table, layout, needs, psi, exponent, tangent_exponent, norm_rates)


def needs_of(network: Network, batch: SequenceBatch, dtype: np.dtype[Any], directions: list[Direction]) -> Needs:
    """What the rows of these sequences will need, without computing them."""
    activation = network.activation
    if activation.homogeneous and network.parameterization == "ntk":
        return Needs()
    path = walk(network, batch, roughly=True)
    growth = _tangent_growth(network, batch, path, unit_parts(network, batch, path))
    sample = quantiles(path.q, 33)  # as many as an expansion looks at to choose its order
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HermiteAccuracyWarning)
        marks = activation.marks(
            sample,
            activation.moments(sample),
            slopes=len(directions) > 0,
            tolerance=1e-13,
            accumulated=lambda errors: 0.0,
        )
    return Needs(len(marks), _is_large(growth, dtype), _is_wild(network, batch, path, growth))


def _is_large(growth: NDArray[np.int64], dtype: np.dtype[Any]) -> bool:
    return bool(growth.max() > (60 if dtype == np.float32 else 400))


def _tangent_growth(network: Network, batch: SequenceBatch, path: Walk, units: Units) -> NDArray[np.int64]:
    """Exponent of Θ̂ of every step with itself, (L, S), which bounds all others (Cauchy-Schwarz)."""
    if network.activation.homogeneous and network.parameterization == "ntk":
        return np.zeros(path.q.shape, dtype=np.int64)  # it grows like the number of steps and layers
    return self_tangents(network, batch, path, units)[1]


def _is_wild(network: Network, batch: SequenceBatch, path: Walk, growth: NDArray[np.int64]) -> bool:
    """Whether distances may grow so much that rounding would show: V̂'(1) Θ̂ grows as they do."""
    if network.activation.homogeneous:
        return False
    most = (growth + np.log2(np.maximum(path.moments.slope, 1.0))).max()
    return bool(most > CALM + np.log2(batch.max_length + network.depth))


def _unit_rows(rows: _Rows, network: Network, n_channels: int, units: Units, layer: int) -> tuple[int, int]:
    """γ, then the distance channels: x̂ (or η above the first layer) and b̂. First row, number of channels."""
    start = rows.append(units.recurrent[layer : layer + 1], network.sigma_w[layer])
    if layer == 0:
        rows.append(units.inputs, network.sigma_u[0] / np.sqrt(n_channels))
    else:
        rows.append(units.below[layer : layer + 1], network.sigma_u[layer])
    if network.sigma_b[layer] > 0:
        rows.append(units.bias[layer : layer + 1], network.sigma_b[layer])
    return start, rows.count - start - 1


def _own_rows(
    rows: _Rows,
    network: Network,
    batch: SequenceBatch,
    units: Units,
    scale: NDArray[np.int64],
    layer: int,
) -> tuple[int, int]:
    """Rows from which Θ̂'s own term is summed where it is not 1 - u (theory.md (17)). First row, channels."""
    gw, gu, gb = network.gradient_factors(layer, batch.n_channels)
    here = scale[layer]
    before = np.zeros_like(here)
    before[1:] = here[:-1]
    before[batch.offsets[:-1]] = here[batch.offsets[:-1]]

    def append(part: Array, power: NDArray[np.int64], factor: float) -> int:
        return rows.append(np.atleast_2d(np.ldexp(part, power)), factor)

    recurrent = units.recurrent[layer]
    start = append(recurrent, before - here, network.sigma_w[layer])
    append(recurrent, -here, np.sqrt(gw))
    if layer > 0:
        append(units.below[layer], scale[layer - 1] - here, network.sigma_u[layer])
        inputs = append(units.below[layer], -here, np.sqrt(gu)) + 1
    else:
        inputs = append(units.inputs, -here, np.sqrt(gu))
    if gb > 0:
        append(units.bias[layer], -here, np.sqrt(gb))
    return start, rows.count - inputs


def _own_shift(network: Network, directions: list[Direction]) -> Array:
    """(P, L, 3): by how much the log rates of gradient rows (W, U, b) differ from those of the unit parts."""
    shift = np.zeros((len(directions), network.depth, 3))
    if network.parameterization == "standard":
        for p, direction in enumerate(directions):
            shift[p] = -np.stack([direction.sigma_w, direction.sigma_u, direction.sigma_b], axis=1)
    return shift


def _rate_rows(
    rows: _Rows,
    network: Network,
    batch: SequenceBatch,
    path: Walk,
    units: Units,
    directions: list[Direction],
) -> tuple[int, Array]:
    """Log rates of q, γ, inputs and bias per direction and layer. First row, and log rates of the readout norm."""
    steps = path.q.shape[1]
    start = rows.count
    if not directions:
        return start, np.zeros((0, steps))
    tau = log_rates(network, batch, path, units, directions)
    growth = path.moments.growth
    for p, direction in enumerate(directions):
        for layer in range(network.depth):
            state = np.empty(steps)
            state[1:] = growth[layer, :-1] * tau[p, layer, :-1]
            state[batch.offsets[:-1]] = 2 * direction.sigma_h[layer]
            source = growth[layer - 1] * tau[p, layer - 1] if layer > 0 else np.zeros(steps)
            own = tau[p, layer]
            rows.append(
                np.stack(
                    [
                        own,
                        direction.sigma_w[layer] + (state - own) / 2,
                        direction.sigma_u[layer] + (source - own) / 2,
                        direction.sigma_b[layer] - own / 2,
                    ]
                )
            )
    return start, growth[-1] * tau[:, -1] / 2


def _top_exponent(
    batch: SequenceBatch, psi: Array, exponent: NDArray[np.int64], tangent_exponent: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Per step, the largest exponent of its sequence: readout weights relative to it neither over- nor underflow."""
    size = exponent + np.frexp(psi)[1] + np.maximum(tangent_exponent, 0)
    each = np.where(psi != 0, size, np.iinfo(np.int32).min)
    top = np.maximum.reduceat(each, batch.offsets[:-1])
    top = np.where(top == np.iinfo(np.int32).min, 0, top)
    return np.repeat(top, batch.lengths)


def top_exponents(stack: Stack, batch: SequenceBatch) -> NDArray[np.int64]:
    """Per sequence, the exponent taken out of its readout weights."""
    top = _top_exponent(batch, stack.mantissa, stack.exponent, stack.tangent_exponent)
    return top[batch.offsets[:-1]]
