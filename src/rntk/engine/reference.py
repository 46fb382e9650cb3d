"""The reference engine: theory.md, section 3, equation by equation, in numbers that know their error.

For reading and for checks: one pair at a time, one step at a time, never tuned. It shares no arithmetic with the fused
engine: raw covariances instead of unit vectors, printed formulas instead of forms without cancellation. Its numbers are
balls (`rntk.activations.balls`), which carry a bound on their error, and a pair is computed with more and more bits
until the bound is small enough. Closed forms end up right to the last digit of a float64, however chaotic the network
or extreme its inputs; expansions within 1e-9 of the largest value, or with a warning that says how far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..activations import balls
from ..activations.balls import ball, dot
from ..network import LAYER_SIGMAS, Cell, Direction, Elman, Network, Readout
from ..sequences import SequenceBatch
from .contract import InputSlopes, NotOfferedError, Plan, Values
from .scale import Scale
from .sides import HostEngine

Index = NDArray[np.int64]
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
    def of(cls, network: Network, channels: int, direction: Direction | None, distance: Any) -> Weights:
        """Those of `network`, or of the network `distance` further along `direction` in log σ."""

        def square(sigma: float, move: float) -> Any:
            return ball(sigma) ** 2 * ((2 * move * distance).exp() if move else 1)

        depth = network.depth
        moves = direction or Direction.along("sigma_v", depth)  # by no distance
        w, u, b, h = (
            [square(*each) for each in zip(getattr(network, name), getattr(moves, name), strict=True)]
            for name in LAYER_SIGMAS
        )
        v = square(network.sigma_v, moves.sigma_v if direction else 0.0)
        if network.parameterization == "ntk":
            return cls(w, u, b, h, v, w, u, b, v)
        ones = [ball(1)] * depth
        has_bias = [ball(int(sigma > 0)) for sigma in network.sigma_b]
        return cls(w, u, b, h, v, ones, [ball(channels), *ones[1:]], has_bias, ball(1))


class Flow(NamedTuple):
    """What a layer hands on: V, and its tangent V' Θ."""

    value: Any
    tangent: Any


class Kernels(NamedTuple):
    """Both kernels of a pair of steps, or a number that belongs to each."""

    nngp: Any
    ntk: Any


@singledispatch
def step(cell: Cell, weights: Weights, layer: int, recurrent: Flow, below: Flow) -> tuple[Any, Any]:
    """(Σ, Θ) of a layer's pre-activation at a pair of steps, from what its last step and the layer below hand on.

    A cell joins this engine by registering its own: `step.register(MyCell)`.
    """
    raise NotImplementedError(type(cell))


@step.register
def _(cell: Elman, weights: Weights, layer: int, recurrent: Flow, below: Flow) -> tuple[Any, Any]:
    """(11), (12)."""
    sigma = weights.w[layer] * recurrent.value + weights.u[layer] * below.value + weights.b[layer]
    theta = (
        weights.gradient_w[layer] * recurrent.value
        + weights.gradient_u[layer] * below.value
        + weights.gradient_b[layer]
        + weights.w[layer] * recurrent.tangent
        + weights.u[layer] * below.tangent
    )
    return sigma, theta


def layers(
    network: Network,
    weights: Weights,
    inner: Any,
    before: list[Flow],
    expectations: Callable[[int, Any], tuple[Any, Any]],
) -> list[Flow]:
    """One pair of steps through all layers: `inner` is <x, x'>/m, `before` what came of the step before."""
    flows, below = [], Flow(inner, ball(0))
    for layer, (cell, recurrent) in enumerate(zip(network.cells, before, strict=True)):
        sigma, theta = step(cell, weights, layer, recurrent, below)
        V, V_dot = expectations(layer, sigma)
        below = Flow(V, V_dot * theta)
        flows.append(below)
    return flows


def outputs(weights: Weights, flows: list[Flow]) -> Kernels:
    """Both kernels from what the last layer hands on (13)."""
    value, tangent = flows[-1]
    return Kernels(weights.v * value, weights.gradient_v * value + weights.v * tangent)


class TextbookWalk(NamedTuple):
    """A sequence by itself, a list entry per step: its inputs, what φ prepares of the variance of each layer (5), what
    each layer hands on, and its kernels with itself."""

    x: list[list[Any]]
    sides: list[list[Any]]
    flows: list[list[Flow]]
    own: list[Kernels]

    @classmethod
    def along(cls, network: Network, weights: Weights, x: list[list[Any]]) -> TextbookWalk:
        phi, channels = network.activation, len(x[0])
        walk = cls(x, [], [], [])
        flows = [Flow(variance, ball(0)) for variance in weights.h]
        for x in walk.x:
            sides: list[Any] = []

            def with_itself(layer: int, q: Any, sides: list[Any] = sides) -> tuple[Any, Any]:
                sides.append(phi.textbook_side(q))
                return phi.textbook(sides[layer], sides[layer], q, same=True)

            flows = layers(network, weights, dot(x, x) / channels, flows, with_itself)
            walk.sides.append(sides)
            walk.flows.append(flows)
            walk.own.append(outputs(weights, flows))
        return walk


def in_balls(values: NDArray[Any]) -> list[list[Any]]:
    """A sequence, exactly."""
    return [[ball(float(value)) for value in step] for step in values]


class Entry(NamedTuple):
    """Kernels of a pair of steps, and what they may be at most, by the Cauchy-Schwarz inequality."""

    kernels: Kernels
    most: Kernels


def pair(
    network: Network, weights: Weights, x: TextbookWalk, y: TextbookWalk, *, same: bool
) -> dict[tuple[int, int], Entry]:
    """All pairs of steps (t, s) of two sequences that the readout needs; `same` if they are one sequence."""
    phi, depth, channels = network.activation, network.depth, len(x.x[0])
    nothing = [Flow(ball(0), ball(0))] * depth
    flows: dict[tuple[int, int], list[Flow]] = {}
    found = {}
    for t, s in steps_of(network, len(x.x), len(y.x)):
        sides = list(zip(x.sides[t], y.sides[s], strict=True))
        if same and t == s:
            flows[t, s] = x.flows[t]
        elif not network.tied and t != s:
            # Weights of different steps are independent (Theorem 3).
            flows[t, s] = [Flow(phi.textbook(*side, ball(0))[0], ball(0)) for side in sides]
        else:
            before = flows[t - 1, s - 1] if t and s else nothing
            inner = dot(x.x[t], y.x[s]) / channels

            def of_both(layer: int, sigma: Any, sides: list[tuple[Any, Any]] = sides) -> tuple[Any, Any]:
                return phi.textbook(*sides[layer], sigma)

            flows[t, s] = layers(network, weights, inner, before, of_both)
        most = Kernels(*((a * b).sqrt() for a, b in zip(x.own[t], y.own[s], strict=True)))
        found[t, s] = Entry(outputs(weights, flows[t, s]), most)
    return found


def steps_of(network: Network, steps_x: int, steps_y: int) -> Iterator[tuple[int, int]]:
    """The pairs of steps that a readout needs, earlier ones first."""
    if not network.readout.every_step:
        both = min(steps_x, steps_y)
        yield from ((steps_x - both + t, steps_y - both + t) for t in range(both))
    else:
        yield from ((t, s) for t in range(steps_x) for s in range(steps_y))


def read_out(
    network: Network, found: dict[tuple[int, int], Entry], lengths: tuple[int, int], other: Readout | None = None
) -> list[Entry]:
    """After the readout: one entry, or for `sequence` one for every pair of steps, row by row.

    The second sequence may be read out by an `other` one.
    """
    if network.readout.per_step:
        return list(found.values())
    if not network.readout.every_step:
        return [found[max(found)]]
    readouts = network.readout, other or network.readout
    weights = [each.step_weights(np.array([length])) for each, length in zip(readouts, lengths, strict=True)]
    x, y = ([1.0] * length if each is None else each.tolist() for each, length in zip(weights, lengths, strict=True))
    counts = [ball(x[t]) * ball(y[s]) for t, s in found]

    def mean(numbers: list[Kernels]) -> Kernels:
        return Kernels(*(dot(counts, parts) / len(found) for parts in zip(*numbers, strict=True)))

    kernels, most = zip(*found.values(), strict=True)
    return [Entry(mean(kernels), mean(most))]


@dataclass(frozen=True)
class ReferenceWay:
    """A batch, what each sequence is by itself, and what each row of the Gram matrix is multiplied by.

    Walks are kept: of expansions some 90 kB for each step and layer.
    """

    batch: SequenceBatch
    readout: Readout
    normalizer: Scale | None = None
    walks: dict[Any, TextbookWalk] = field(default_factory=dict)
    needs: None = None

    @property
    def nbytes(self) -> int:
        return 100_000 * len(self.batch.values)

    def scaled(self, by: Scale) -> ReferenceWay:
        return replace(self, normalizer=by)

    def walk(self, network: Network, i: int, direction: Direction | None, k: int) -> TextbookWalk:
        """Sequence i in the network k steps along `direction`."""
        key = (balls.bits(), i, k, direction)
        walk = self.walks.get(key)
        if walk is None:
            weights = Weights.of(network, self.batch.n_channels, direction, k * step_along(network))
            walk = self.walks[key] = TextbookWalk.along(network, weights, in_balls(self.batch[i]))
        return walk

    def forget_moved(self) -> None:
        """Let walks in other networks go, six for each derivative; whoever still needs one makes it anew."""
        for key in [key for key in list(self.walks) if key[-1] is not None]:
            self.walks.pop(key, None)

    def scales(self, places: slice) -> list[Any]:
        """What each of some rows, or columns, of the Gram matrix is multiplied by."""
        if self.normalizer is None:
            return [ball(1)] * (places.stop - places.start)
        mantissas, exponents = self.normalizer.mantissa[places], self.normalizer.exponent[places]
        return [ball(float(m)) * ball(2) ** int(e) for m, e in zip(mantissas, exponents, strict=True)]

    def places(self, network: Network, i: int) -> slice:
        """Rows of sequence i."""
        a, b = self.batch.offsets[i : i + 2] if network.readout.per_step else (i, i + 1)
        return slice(int(a), int(b))


def step_along(network: Network) -> Any:
    """How far away networks are whose differences give derivatives."""
    return ball(2) ** -(EXPANDED_STEP if network.activation.accuracy else balls.bits() // 4)


class ReferenceEngine(HostEngine):
    """One pair of sequences after the other."""

    name = "reference"
    has_sigma_slopes = True

    def check(self, plan: Plan) -> None:
        for cell in plan.network.cells:
            if step.dispatch(type(cell)) is step.dispatch(object):
                raise NotOfferedError(
                    f"nobody has said what {type(cell).__name__} computes: register its step in rntk.engine.reference"
                )

    def prepare_way(self, plan: Plan, batch: SequenceBatch, needs: None) -> ReferenceWay:
        return ReferenceWay(batch, plan.network.readout)

    def compare_ways(self, plan: Plan, a: ReferenceWay, b: ReferenceWay | None) -> Values:  # type: ignore[override]
        network, symmetric, right = plan.network, b is None, a if b is None else b
        rows, columns = (way.places(network, len(way.batch) - 1).stop for way in (a, right))
        table = np.empty((2 + len(plan.directions), rows, columns), plan.dtype)

        def fill(i: int) -> float:
            for j in range(i if symmetric else 0, len(right.batch)):
                down, across = a.places(network, i), right.places(network, j)
                values = self._pair(plan, a, right, i, j, same=symmetric and i == j)
                table[:, down, across] = values
                if symmetric:
                    table[:, across, down] = np.swapaxes(values, 1, 2)
            a.forget_moved()
            right.forget_moved()
            return float(a.batch.lengths[i])

        with plan.run.bar(plan.title, float(a.batch.lengths.sum())) as advance:
            plan.run.each(fill, list(range(len(a.batch))), advance)
        found = dict(zip(Kernels._fields, table, strict=False))
        nngp, ntk = (found[kind] if kind in plan.kinds else None for kind in Kernels._fields)
        return Values(nngp, ntk, np.moveaxis(table[2:], 0, 2))

    def _pair(self, plan: Plan, a: ReferenceWay, b: ReferenceWay, i: int, j: int, *, same: bool) -> NDArray[np.float64]:
        """(2 + P, rows, columns): both kernels, and the derivatives of one of them."""
        network = plan.network

        def kernels(direction: Direction | None, k: int) -> list[Entry]:
            weights = Weights.of(network, a.batch.n_channels, direction, k * step_along(network))
            x = a.walk(network, i, direction, k)
            y = x if same else b.walk(network, j, direction, k)  # equal numbers in two batches are two sequences
            lengths = (len(a.batch[i]), len(b.batch[j]))
            return read_out(network, pair(network, weights, x, y, same=same), lengths, b.readout)

        def compute() -> list[tuple[Any, Any]]:
            here = kernels(None, 0)
            found = [(each.kernels[kind], each.most[kind]) for kind in (0, 1) for each in here]
            kind = Kernels._fields.index(network.kind)
            for direction in plan.directions:
                moved = [[each.kernels[kind] for each in kernels(direction, k)] for k in AWAY]
                for each, values in zip(here, zip(*moved, strict=True), strict=True):
                    found.append((derivative(values, step_along(network)), each.most[kind]))
            return found

        values = network.activation.settled(compute)
        down, across = a.places(network, i), b.places(network, j)
        with balls.precision(balls.BITS[0]):
            scales = [x * y for x in a.scales(down) for y in b.scales(across)]
            scaled = [balls.to_float(value * scales[k % len(scales)]) for k, value in enumerate(values)]
        return np.array(scaled).reshape(-1, down.stop - down.start, across.stop - across.start)

    def input_slopes(self, plan: Plan, batch: SequenceBatch, left: Index, right: Index) -> InputSlopes:
        pairs = [self._input_slopes(plan, batch[i], batch[j]) for i, j in zip(left, right, strict=True)]
        value, gradient = zip(*pairs, strict=True)
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in gradient])])
        return InputSlopes(np.array(value), np.concatenate(gradient), offsets)

    def _input_slopes(self, plan: Plan, x: NDArray[Any], y: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        """The kernel of two different sequences, and its derivatives by differences; both directions, normalised."""
        network, kind = plan.network, Kernels._fields.index(plan.network.kind)
        size = float(np.abs(x).max()) or 1.0

        def compare(a: list[list[Any]], b: list[list[Any]], same: bool) -> Any:
            total = ball(0)
            for one, other in ((a, b), (a[::-1], b[::-1]))[: 1 + network.bidirectional]:
                weights = Weights.of(network, len(a[0]), None, 0)
                walks = [TextbookWalk.along(network, weights, each) for each in (one, other)]
                entries = pair(network, weights, walks[0], walks[0] if same else walks[1], same=same)
                total += read_out(network, entries, (len(a), len(b)))[0].kernels[kind]
            return total

        def compute() -> list[tuple[Any, Any]]:
            one, other, far = in_balls(x), in_balls(y), size * step_along(network)
            second = compare(other, other, True)

            def kernel(a: list[list[Any]]) -> Any:
                K = compare(a, other, False)
                return K / (compare(a, a, True) * second).sqrt() if network.normalize else K

            most = ball(1) if network.normalize else (compare(one, one, True) * second).sqrt()
            found = [(kernel(one), most)]
            for t, c in np.ndindex(x.shape):
                moved = []
                for k in AWAY:
                    a = [list(each) for each in one]
                    a[t][c] += k * far
                    moved.append(kernel(a))
                found.append((derivative(moved, far), most / size))
            return found

        value, *slopes = (balls.to_float(each) for each in network.activation.settled(compute))
        return value, np.array(slopes).reshape(x.shape)

    def own_kernels(self, plan: Plan, batch: SequenceBatch) -> tuple[Scale, Scale]:
        network = plan.network
        found: list[list[tuple[float, int]]] = [[], []]
        for x in batch:

            def compute(x: NDArray[Any] = x) -> list[tuple[Any, Any]]:
                weights = Weights.of(network, batch.n_channels, None, 0)
                walk = TextbookWalk.along(network, weights, in_balls(x))
                own = walk.own if network.readout.per_step else walk.own[-1:]
                if network.readout.averages:
                    entries = pair(network, weights, walk, walk, same=True)
                    own = [read_out(network, entries, (len(x), len(x)))[0].kernels]
                return [(each[kind], each[kind]) for kind in (0, 1) for each in own]

            parts = [balls.to_parts(value) for value in network.activation.settled(compute)]
            found[0] += parts[: len(parts) // 2]
            found[1] += parts[len(parts) // 2 :]
        return tuple(  # type: ignore[return-value]
            Scale(np.array([m for m, _ in each]), np.array([e for _, e in each], dtype=np.int64)) for each in found
        )


def derivative(values: Any, step: Any) -> Any:
    """From values at the distances `AWAY` times `step`, with what two orders don't agree on as its doubt."""
    sixth, fourth = (dot(order, values) / (60 * step) for order in (SIXTH_ORDER, FOURTH_ORDER))
    return sixth + ball(0, (sixth - fourth).abs_upper())
