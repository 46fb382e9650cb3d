"""The reference engine: theory.md, section 3, equation by equation, in numbers that know their error.

For reading and for checks: one pair at a time, one step at a time, never tuned. It shares no arithmetic with the fused
engine: raw covariances instead of unit vectors, printed formulas instead of forms without cancellation. Its numbers are
balls (`rntk.activations.balls`), which carry a bound on their error, and a pair is computed with more and more bits
until the bound is small enough. Closed forms end up right to the last digit of a float64, however chaotic the network
or extreme its inputs; expansions within 1e-9 of the largest value, or with a warning that says how far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..activations import balls
from ..activations.balls import ball, dot
from ..network import LAYER_SIGMAS, Architecture, Direction
from ..sequences import SequenceBatch
from .tiles import Block, Scale, Tile

#: Differences along log σ: networks so many steps away, and their weights over 60 steps, for a derivative of sixth
#: order and for one of fourth: what they don't agree on is its doubt. A step is 2^-(bits/4); expansions have an error
#: of their own, which is divided by a step, so theirs is longer.
AWAY, SIXTH_ORDER, FOURTH_ORDER = (-3, -2, -1, 1, 2, 3), (-1, 9, -45, 45, -9, 1), (0, 5, -40, 40, -5, 0)
EXPANDED_STEP = 12


class Weights(NamedTuple):
    """Variances of the weights, one per layer and one for the readout, and what each group adds to Θ per unit of the
    inner product that it multiplies (17)."""

    w: list[Any]
    u: list[Any]
    b: list[Any]
    h: list[Any]
    v: Any
    gradient_w: list[Any]
    gradient_u: list[Any]
    gradient_b: list[Any]
    gradient_v: Any

    @classmethod
    def of(cls, architecture: Architecture, channels: int, direction: Direction | None, distance: Any) -> Weights:
        """Those of `architecture`, or of the network `distance` further along `direction` in log σ."""

        def square(sigma: float, move: float) -> Any:
            return ball(sigma) ** 2 * ((2 * move * distance).exp() if move else 1)

        depth = architecture.depth
        moves = direction or Direction.along("sigma_v", depth)  # by no distance
        w, u, b, h = (
            [square(*each) for each in zip(getattr(architecture, name), getattr(moves, name), strict=True)]
            for name in LAYER_SIGMAS
        )
        v = square(architecture.sigma_v, moves.sigma_v if direction else 0.0)
        if architecture.parameterization == "ntk":
            return cls(w, u, b, h, v, w, u, b, v)
        ones = [ball(1)] * depth
        has_bias = [ball(int(sigma > 0)) for sigma in architecture.sigma_b]
        return cls(w, u, b, h, v, ones, [ball(channels), *ones[1:]], has_bias, ball(1))


class Flow(NamedTuple):
    """What a layer hands on: V, and its tangent V' Θ."""

    value: Any
    tangent: Any


class Kernels(NamedTuple):
    """Both kernels of a pair of steps, or a number that belongs to each."""

    nngp: Any
    ntk: Any


def layers(
    weights: Weights, inner: Any, before: list[Flow], expectations: Callable[[int, Any], tuple[Any, Any]]
) -> list[Flow]:
    """One pair of steps through all layers (11), (12): `inner` is <x, x'>/m, `before` what came of the step before."""
    flows, below = [], Flow(inner, ball(0))
    for layer, recurrent in enumerate(before):
        sigma = weights.w[layer] * recurrent.value + weights.u[layer] * below.value + weights.b[layer]
        theta = (
            weights.gradient_w[layer] * recurrent.value
            + weights.gradient_u[layer] * below.value
            + weights.gradient_b[layer]
            + weights.w[layer] * recurrent.tangent
            + weights.u[layer] * below.tangent
        )
        V, V_dot = expectations(layer, sigma)
        below = Flow(V, V_dot * theta)
        flows.append(below)
    return flows


def outputs(weights: Weights, flows: list[Flow]) -> Kernels:
    """Both kernels from what the last layer hands on (13)."""
    value, tangent = flows[-1]
    return Kernels(weights.v * value, weights.gradient_v * value + weights.v * tangent)


class Walk(NamedTuple):
    """A sequence by itself, a list entry per step: its inputs, what φ prepares of the variance of each layer (5), what
    each layer hands on, and its kernels with itself."""

    x: list[list[Any]]
    sides: list[list[Any]]
    flows: list[list[Flow]]
    own: list[Kernels]

    @classmethod
    def along(cls, architecture: Architecture, weights: Weights, values: NDArray[Any]) -> Walk:
        phi, channels = architecture.activation, values.shape[1]
        walk = cls([[ball(float(value)) for value in step] for step in values], [], [], [])
        flows = [Flow(variance, ball(0)) for variance in weights.h]
        for x in walk.x:
            sides: list[Any] = []

            def with_itself(layer: int, q: Any, sides: list[Any] = sides) -> tuple[Any, Any]:
                sides.append(phi.textbook_side(q))
                return phi.textbook(sides[layer], sides[layer], q, same=True)

            flows = layers(weights, dot(x, x) / channels, flows, with_itself)
            walk.sides.append(sides)
            walk.flows.append(flows)
            walk.own.append(outputs(weights, flows))
        return walk


class Entry(NamedTuple):
    """Kernels of a pair of steps, and what they may be at most, by the Cauchy-Schwarz inequality."""

    kernels: Kernels
    most: Kernels


def pair(architecture: Architecture, weights: Weights, x: Walk, y: Walk, *, same: bool) -> dict[tuple[int, int], Entry]:
    """All pairs of steps (t, s) of two sequences that the readout needs; `same` if they are one sequence."""
    phi, depth, channels = architecture.activation, architecture.depth, len(x.x[0])
    nothing = [Flow(ball(0), ball(0))] * depth
    flows: dict[tuple[int, int], list[Flow]] = {}
    found = {}
    for t, s in steps_of(architecture, len(x.x), len(y.x)):
        sides = list(zip(x.sides[t], y.sides[s], strict=True))
        if same and t == s:
            flows[t, s] = x.flows[t]
        elif not architecture.tied and t != s:
            # Weights of different steps are independent (Theorem 3).
            flows[t, s] = [Flow(phi.textbook(*side, ball(0))[0], ball(0)) for side in sides]
        else:
            before = flows[t - 1, s - 1] if t and s else nothing
            inner = dot(x.x[t], y.x[s]) / channels

            def of_both(layer: int, sigma: Any, sides: list[tuple[Any, Any]] = sides) -> tuple[Any, Any]:
                return phi.textbook(*sides[layer], sigma)

            flows[t, s] = layers(weights, inner, before, of_both)
        most = Kernels(*((a * b).sqrt() for a, b in zip(x.own[t], y.own[s], strict=True)))
        found[t, s] = Entry(outputs(weights, flows[t, s]), most)
    return found


def steps_of(architecture: Architecture, steps_x: int, steps_y: int) -> Iterator[tuple[int, int]]:
    """The pairs of steps that a readout needs, earlier ones first."""
    if architecture.readout == "last":
        both = min(steps_x, steps_y)
        yield from ((steps_x - both + t, steps_y - both + t) for t in range(both))
    else:
        yield from ((t, s) for t in range(steps_x) for s in range(steps_y))


def read_out(architecture: Architecture, found: dict[tuple[int, int], Entry]) -> list[Entry]:
    """After the readout: one entry, or for `sequence` one for every pair of steps, row by row."""
    if architecture.readout == "sequence":
        return list(found.values())
    if architecture.readout == "last":
        return [found[max(found)]]

    def mean(numbers: list[Kernels]) -> Kernels:
        return Kernels(*(sum(parts, ball(0)) / len(found) for parts in zip(*numbers, strict=True)))

    kernels, most = zip(*found.values(), strict=True)
    return [Entry(mean(kernels), mean(most))]


class ReferenceProblem:
    """A Gram computation by the reference engine, one row of sequences per tile; see `rntk.engine.tiles`.

    Sequences by themselves are kept: of expansions some 90 kB for each step and layer, and six times as much for each
    derivative while a row is computed.
    """

    def __init__(
        self,
        architecture: Architecture,
        X: SequenceBatch,
        Y: SequenceBatch | None,
        directions: list[Direction],
        dtype: np.dtype[Any],
        normalizers: tuple[Scale | None, Scale | None] = (None, None),
        threads: int = 1,
        gradient_of: str = "ntk",
    ) -> None:
        self.gradient_of = gradient_of
        self.architecture, self.directions, self.dtype = architecture, directions, dtype
        self.X, self.Y = X, X if Y is None else Y
        self.symmetric = Y is None
        self.n_directions = len(directions)
        self._normalizers = (normalizers[0], normalizers[0] if Y is None else normalizers[1])
        self._row_offsets, self._column_offsets = (
            batch.offsets if architecture.readout == "sequence" else np.arange(len(batch) + 1)
            for batch in (self.X, self.Y)
        )
        self.shape = (int(self._row_offsets[-1]), int(self._column_offsets[-1]))
        steps = int(self.Y.lengths.sum())
        self._walks: dict[Any, Walk] = {}
        self.tiles = [Tile((0, i, i + 1), 0, float(length * steps)) for i, length in enumerate(X.lengths)]

    def compute(self, tile: Tile) -> Block:
        i = tile.rows[1]
        first = i if self.symmetric else 0
        pairs = [self._pair(i, j) for j in range(first, len(self.Y))]
        # Whoever still needs those of another row makes them anew: threads replace this dictionary, none empties it.
        self._walks = {key: walk for key, walk in list(self._walks.items()) if key[-1] is None}
        row_index = np.arange(self._row_offsets[i], self._row_offsets[i + 1])
        column_index = np.arange(self._column_offsets[first], self._column_offsets[-1])
        nngp, ntk, *gradient = np.concatenate(pairs, axis=2).astype(self.dtype)
        valid = np.maximum(row_index - column_index[0], 0) if self.symmetric else np.zeros_like(row_index)
        whole = np.array(gradient, dtype=self.dtype).reshape(self.n_directions, *nngp.shape)
        return Block(row_index, column_index, nngp, ntk, whole, valid)

    def _pair(self, i: int, j: int) -> NDArray[np.float64]:
        """(2 + P, rows, columns): both kernels, and the derivatives of one of them."""
        rows, columns = (
            slice(int(offsets[k]), int(offsets[k + 1]))
            for offsets, k in ((self._row_offsets, i), (self._column_offsets, j))
        )
        shape = (-1, rows.stop - rows.start, columns.stop - columns.start)

        def compute() -> list[tuple[Any, Any]]:
            here = self._kernels(i, j, None, 0)
            found = [(each.kernels[kind], each.most[kind]) for kind in (0, 1) for each in here]
            kind = Kernels._fields.index(self.gradient_of)
            for direction in self.directions:
                moved = [[each.kernels[kind] for each in self._kernels(i, j, direction, k)] for k in AWAY]
                for each, values in zip(here, zip(*moved, strict=True), strict=True):
                    sixth, fourth = (dot(order, values) / (60 * self._step()) for order in (SIXTH_ORDER, FOURTH_ORDER))
                    found.append((sixth + ball(0, (sixth - fourth).abs_upper()), each.most[kind]))
            return found

        values = self.architecture.activation.settled(compute)
        with balls.precision(balls.BITS[0]):
            scales = [a * b for a in self._scales(0, rows) for b in self._scales(1, columns)]
            scaled = [balls.to_float(value * scales[k % len(scales)]) for k, value in enumerate(values)]
        return np.array(scaled).reshape(shape)

    def _kernels(self, i: int, j: int, direction: Direction | None, k: int) -> list[Entry]:
        """Sequence i with sequence j, in the network k steps along `direction`."""
        weights = Weights.of(self.architecture, self.X.n_channels, direction, k * self._step())
        walks = []
        for batch, at in ((self.X, i), (self.Y, j)):
            key = (balls.bits(), batch is self.X, at, k, direction)
            walk = self._walks.get(key)
            if walk is None:
                walk = self._walks[key] = Walk.along(self.architecture, weights, batch[at])
            walks.append(walk)
        same = self.symmetric and i == j  # equal numbers in two batches are two sequences
        return read_out(self.architecture, pair(self.architecture, weights, *walks, same=same))

    def _step(self) -> Any:
        return ball(2) ** -(EXPANDED_STEP if self.architecture.activation.accuracy else balls.bits() // 4)

    def _scales(self, side: int, places: slice) -> list[Any]:
        """What each of some rows, or columns, of the Gram matrix is multiplied by."""
        scale = self._normalizers[side]
        if scale is None:
            return [ball(1)] * (places.stop - places.start)
        return [
            ball(float(mantissa)) * ball(2) ** int(exponent)
            for mantissa, exponent in zip(scale.mantissa[places], scale.exponent[places], strict=True)
        ]


def self_kernels(
    architecture: Architecture, batch: SequenceBatch, dtype: np.dtype[Any], threads: int = 1
) -> tuple[Scale, Scale]:
    """(nngp, ntk) on the diagonal of the Gram matrix."""
    found: list[list[tuple[float, int]]] = [[], []]
    for x in batch:

        def compute(x: NDArray[Any] = x) -> list[tuple[Any, Any]]:
            weights = Weights.of(architecture, batch.n_channels, None, 0)
            walk = Walk.along(architecture, weights, x)
            own = walk.own if architecture.readout == "sequence" else walk.own[-1:]
            if architecture.readout == "mean":
                own = [read_out(architecture, pair(architecture, weights, walk, walk, same=True))[0].kernels]
            return [(each[kind], each[kind]) for kind in (0, 1) for each in own]

        parts = [balls.to_parts(value) for value in architecture.activation.settled(compute)]
        found[0] += parts[: len(parts) // 2]
        found[1] += parts[len(parts) // 2 :]
    return tuple(  # type: ignore[return-value]
        Scale(np.array([m for m, _ in each]), np.array([e for _, e in each], dtype=np.int64)) for each in found
    )
