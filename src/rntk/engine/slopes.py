"""Derivatives of many kernel values by their first argument: which lanes there are, and who computes them.

In go a plan, a batch and pairs of its sequences; out come Θ and ∂Θ/∂x of every pair. Per direction of reading the
batch is walked once. Then pairs are sorted by length and cut into tasks for threads; a task lays its pairs out in
lanes and hands them to the compiled `reverse_pass`. No number depends on how lanes are put into blocks, pairs into
tasks, or tasks onto threads: lanes don't interact, and the lanes of one pair are added up in their own order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..activations.compiled import FunctionPointer
from ..errors import HermiteAccuracyWarning, KernelOverflowError
from ..network import Network
from ..runtime import run_in_threads
from ..sequences import SequenceBatch
from .contract import InputSlopes, Plan
from .fused import FusedEngine
from .fused.close import close_rows
from .fused.memory import LINE, scratch
from .fused.reverse import (
    BEGIN,
    LANE_ROWS,
    OUT,
    SAME,
    SHARED,
    SKIP,
    SOURCE,
    STRIDE,
    X_LAST,
    X_STEPS,
    Y_LAST,
    Factors,
    Parts,
    Rows,
    compiled_reverse_pass,
    small_rows,
)
from .fused.sweep import PARTIALS
from .fused.units import accumulated, unit_parts
from .fused.walk import require_slopes, walk
from .scale import Scale, inverse_root
from .sides import directions_of

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Lanes come in whole vectors, and so many to a block: full vectors pay even where the block's steps outgrow the second
#: cache, because they are visited one after the other.
VECTOR, MOST_LANES = LINE // 8, 128
#: Bytes of working memory a block may take; narrower blocks keep very long sequences below it.
BLOCK_BYTES = 1 << 23
#: Lane-steps per task: a few milliseconds, long against scheduling and short against imbalance.
TASK_STEPS = 200_000
#: Numbers kept of all sequences that are prepared together.
GROUP_NUMBERS = 40_000_000
#: What stands for an input of zero where a network without bias and initial state has no variance yet.
NUDGE = 1e-100


def join(first: SequenceBatch, second: SequenceBatch | None = None) -> SequenceBatch:
    """Both batches as one, in float64: expansions of activations then have the same order on both sides."""
    first = first.astype(np.float64)
    if second is None:
        return first
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    return SequenceBatch(np.concatenate([first.values, second.values]), offsets)


class PairGradients:
    """∂Θ(x, y)/∂x of pairs out of one batch, for every setting of a kernel but the readout "sequence".

    Parameters
    ----------
    plan : Plan
        What Θ is, and how many threads there are.
    batch : SequenceBatch
        The sequences, float64.
    with_scale : bool
        False leaves a power of two out of each pair's numbers, another one for each pair, so that ReLU
        networks don't overflow; their course over time is the same.

    Notes
    -----
    At a step where x is zero and a network without bias has no variance yet, no unit vector exists. The derivative
    there is the mean of those at two points close by, on either side of zero: the derivative itself where there is
    one, and between the one-sided ones where φ has a kink.
    """

    def __init__(self, plan: Plan, batch: SequenceBatch, *, with_scale: bool = True) -> None:
        assert not plan.network.readout.per_step, "one number per pair"
        self.batch, self.threads, self.with_scale = batch, plan.run.threads(), with_scale
        self._ways = [_prepare(plan.network, each) for each in directions_of(plan.network, batch)]
        self._normalizer: Scale | None = None
        if plan.network.normalize:
            self._normalizer = inverse_root(FusedEngine().own_in_all_directions(plan, batch))

    def __call__(self, left: Index, right: Index) -> InputSlopes:
        """Of the pairs (left[p], right[p]), which always count as two different sequences."""
        offsets = _offsets(self.batch.lengths[left])
        value, gradient = np.empty(len(left)), np.empty((offsets[-1], self.batch.n_channels))

        def keep(_: int, places: Index, found: InputSlopes) -> None:
            value[places] = found.value
            if (np.diff(places) == 1).all():
                rows: Any = slice(offsets[places[0]], offsets[places[-1] + 1])
            else:
                lengths = np.diff(found.offsets)
                rows = np.repeat(offsets[places] - found.offsets[:-1], lengths) + np.arange(len(found.gradient))
            gradient[rows] = found.gradient

        self.each(left, right, keep)
        return InputSlopes(value, gradient, offsets)

    def each(
        self,
        left: Index,
        right: Index,
        consume: Callable[[int, Index, InputSlopes], None],
        advance: Callable[[float], None] = lambda amount: None,
    ) -> None:
        """Call consume(number, places, gradients) for every task, from its thread.

        `places` says which pairs. Tasks are the same whatever the number of threads. The gradients' memory is taken
        back when `consume` returns.
        """
        lengths = self.batch.lengths
        own, other = lengths[left], lengths[right]
        # Lanes of a block should be of about the same length; among those, lanes that share x should be neighbours.
        coarse = np.floor(4 * np.log2(np.minimum(own, other)))
        order = np.lexsort((right, left, -own, -coarse))
        cost = (own * (own + other - 1) if self._ways[0].factors.every_step else own)[order]
        number = (np.cumsum(cost) - cost) // TASK_STEPS
        edges = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(order)]])
        tasks = [(k, order[a:b]) for k, (a, b) in enumerate(pairwise(edges))]

        def work(task: tuple[int, Index]) -> float:
            number, places = task
            with scratch() as empty, np.errstate(over="ignore", under="ignore", invalid="ignore"):
                found = self._gradients(left[places], right[places], empty)
                consume(number, places, found)
            return float(len(found.gradient))

        run_in_threads(work, tasks, self.threads, advance)

    def _gradients(self, left: Index, right: Index, empty: Callable[..., NDArray[Any]]) -> InputSlopes:
        found = self._pass(left, right, False, empty)
        if self._normalizer is None:
            return found
        # K/√(K_xx K_yy): by the quotient rule, and because K_xx moves by twice its derivative in one argument.
        lefts, place = np.unique(left, return_inverse=True)
        own = self._pass(lefts, lefts, True, empty)
        lengths = np.diff(found.offsets)
        rows = np.repeat(own.offsets[place] - found.offsets[:-1], lengths) + np.arange(len(found.gradient))
        gradient = found.gradient - np.repeat(found.value, lengths)[:, None] * own.gradient[rows]
        return InputSlopes(found.value, gradient, found.offsets)

    def _pass(self, left: Index, right: Index, same: bool, empty: Callable[..., NDArray[Any]]) -> InputSlopes:
        """All directions of reading, added up."""
        offsets = _offsets(self.batch.lengths[left])
        value, gradient = np.zeros(len(left)), empty((int(offsets[-1]), self.batch.n_channels))
        gradient[:] = 0.0
        without = np.zeros(len(left), dtype=np.int64)  # exponents to leave out: the larger ones of all directions
        if not self.with_scale and self._normalizer is None:
            without = np.max([way.top[left] + way.top[right] for way in self._ways], axis=0)
        for backwards, way in enumerate(self._ways):
            pairs = _twice_where_nudged(way, left, right)
            lanes, owner = _lanes(way, pairs, same, offsets, bool(backwards))
            scale = self._scale(way, pairs, without[pairs.place])
            found = _run(way, lanes, scale[owner], gradient, empty)
            value += np.bincount(pairs.place[owner], found, len(left))
        return InputSlopes(value, gradient, offsets)

    def _scale(self, way: _Way, pairs: _Pairs, without: Index) -> Array:
        """What the unit numbers of each pair are multiplied by: the powers taken out of ψ ψ', and the normalisers."""
        exponent, scale = way.top[pairs.left] + way.top[pairs.right] - without, pairs.weight.copy()
        if self._normalizer is not None:
            for side in (pairs.left, pairs.right):
                scale *= self._normalizer.mantissa[way.origin[side]]
                exponent += self._normalizer.exponent[way.origin[side]]
        if way.factors.every_step:
            scale /= way.batch.lengths[pairs.left] * way.batch.lengths[pairs.right]
        return np.asarray(np.ldexp(scale, np.clip(exponent, -5000, 5000)))


@dataclass(frozen=True)
class PairGroup:
    """Pairs whose sequences are prepared together: `places` in the caller's list, `left` and `right` in `gradients`."""

    places: Index
    gradients: PairGradients
    left: Index
    right: Index


def in_groups(
    plan: Plan,
    batch: SequenceBatch,
    left: Index,
    right: Index,
    *,
    with_scale: bool = True,
    name: Callable[[int], tuple[int, str]] = lambda i: (i, ""),
) -> Iterator[PairGroup]:
    """The pairs in as few groups as memory allows: one, unless their sequences are very many.

    `name` is what the caller calls a sequence of the batch: its index, and the argument it belongs to.
    """
    network = plan.network
    numbers = network.depth * (12 + marks_per_step(network)) + batch.n_channels
    lengths = batch.lengths
    edges = np.array([0, len(left)])
    if lengths[np.union1d(left, right)].sum() * numbers > GROUP_NUMBERS:
        number = np.cumsum(lengths[left] + lengths[right]) * numbers // GROUP_NUMBERS
        edges = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(left)]])
    for a, b in pairwise(edges):
        used, index = np.unique(np.concatenate([left[a:b], right[a:b]]), return_inverse=True)
        try:
            gradients = PairGradients(plan, batch.take(used), with_scale=with_scale)
        except KernelOverflowError as error:  # it counts among the sequences in use
            raise error.known_as(*name(int(used[error.sequence]))) from None
        yield PairGroup(np.arange(a, b), gradients, index[: b - a], index[b - a :])


def marks_per_step(network: Network) -> int:
    """About how many numbers the activation keeps per step: as many as at unit variance."""
    one = np.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HermiteAccuracyWarning)
        activation = network.activation
        return len(activation.marks(one, activation.moments(one), slopes=True, tolerance=1e-13))


@dataclass(frozen=True)
class _Way:
    """A batch read in one direction, walked; sequences past the original ones are nudged copies of `origin`."""

    batch: SequenceBatch
    origin: Index
    twins: Index  # (N,), number of a sequence's first nudged copy, or -1
    top: Index  # power of two taken out of ψ at the steps that are read out, one per sequence
    factors: Factors
    rows: Rows
    parts: Parts
    partials: FunctionPointer
    parameters: Array


@dataclass(frozen=True)
class _Pairs:
    """Pairs of one task: `place` is where each stands in it, `weight` what it counts for there."""

    left: Index
    right: Index
    place: Index
    weight: Array


def _prepare(network: Network, batch: SequenceBatch) -> _Way:
    """Everything about each sequence alone."""
    path = walk(network, batch)
    batch, origin, twins = _nudged(network, batch, path.q[0])
    if len(batch) > len(twins):
        path = walk(network, batch)
    require_slopes(network, batch, path)
    units = unit_parts(network, batch, path, with_bias=True)
    marks = network.activation.marks(
        path.q,
        path.moments,
        slopes=True,
        tolerance=1e-13,
        accumulated=partial(accumulated, network, batch, path, units),
    )
    psi, exponent = np.sqrt(path.moments.square[-1]), path.exponent[-1]
    if not network.readout.every_step:
        read = batch.offsets[1:] - 1
        top, readout = exponent[read], np.zeros(len(psi))
        readout[read] = psi[read]
    else:
        least = np.iinfo(np.int32).min
        size = np.where(psi > 0, exponent + np.frexp(psi)[1], least)
        top = np.maximum.reduceat(size, batch.offsets[:-1])
        top = np.where(top == least, 0, top)
        readout = np.ldexp(psi, np.maximum(exponent - np.repeat(top, batch.lengths), -5000))
        weights = network.readout.step_weights(batch.lengths)
        readout = readout if weights is None else readout * weights
    plain = network.activation.homogeneous  # growth is one
    factors = np.empty((network.depth, 6))
    for layer in range(network.depth):
        su2 = network.sigma_u[layer] ** 2
        forward = su2 / batch.n_channels if layer == 0 else su2
        factors[layer, :3] = network.sigma_w[layer] ** 2, forward, network.sigma_b[layer] ** 2
        factors[layer, 3:] = network.gradient_factors(layer, batch.n_channels)
    return _Way(
        batch,
        origin,
        twins,
        top.astype(np.int64),
        Factors(
            factors,
            network.readout_factor if network.kind == "ntk" else network.sigma_v**2,
            network.sigma_v**2 if network.kind == "ntk" else 0.0,
            network.readout.averages,
            network.tied,
        ),
        _rows(network, batch.n_channels, len(marks)),
        Parts(
            units.recurrent,
            units.below,
            units.bias,
            np.ones((network.depth, 0)) if plain else np.ascontiguousarray(path.moments.growth),
            units.inputs,
            np.array(batch.values.T, order="C"),
            readout,
            np.ascontiguousarray(np.moveaxis(marks, 0, -1)),
            np.zeros((network.depth, 0, 0))
            if plain
            else np.ascontiguousarray(np.moveaxis(close_rows(network.activation, path.q), 0, -1)),
        ),
        network.activation.partials(np.dtype(np.float64)),
        np.append(network.activation.parameters, 1.0),
    )


def _nudged(network: Network, batch: SequenceBatch, q: Array) -> tuple[SequenceBatch, Index, Index]:
    """The batch, followed by two copies of every sequence with steps of no variance, moved off zero on either side."""
    origin, twins = np.arange(len(batch)), np.full(len(batch), -1, dtype=np.int64)
    blank = (q == 0) & (network.sigma_u[0] > 0)
    if not blank.any():
        return batch, origin, twins
    which = np.flatnonzero(np.logical_or.reduceat(blank, batch.offsets[:-1]))
    twins[which] = len(batch) + 2 * np.arange(len(which))
    values, lengths = [batch.values], [batch.lengths]
    for i in which:
        at = slice(batch.offsets[i], batch.offsets[i + 1])
        for sign in (1.0, -1.0):
            values.append(np.where(blank[at, None], sign * NUDGE, batch.values[at]))
            lengths.append(batch.lengths[i : i + 1])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return SequenceBatch(np.concatenate(values), offsets), np.concatenate([origin, np.repeat(which, 2)]), twins


def _rows(network: Network, channels: int, n_marks: int) -> Rows:
    first, bias, growth = (np.full(network.depth, -1, dtype=np.int64) for _ in range(3))
    n_partials, count = PARTIALS if n_marks else 3, 0
    for layer in range(network.depth):
        first[layer] = count
        count += n_partials + SOURCE + 2 * (channels if layer == 0 else 1)
        for row, wanted in (
            (bias, network.sigma_b[layer] > 0),
            (growth, not network.activation.homogeneous),
        ):
            if wanted:
                row[layer] = count
                count += 1
    return Rows(first, bias, growth, n_partials, count)


def _twice_where_nudged(way: _Way, left: Index, right: Index) -> _Pairs:
    """Replace nudged sequences by their two copies, half the weight each."""
    place, weight = np.arange(len(left)), np.ones(len(left))
    twin = way.twins[left]
    if (twin >= 0).any():
        times = np.where(twin >= 0, 2, 1)
        place = np.repeat(place, times)
        second = np.concatenate([[False], place[1:] == place[:-1]])
        left, right, weight = np.where(twin >= 0, twin, left)[place] + second, right[place], 1.0 / times[place]
    return _Pairs(left, right, place, weight)


def _lanes(way: _Way, pairs: _Pairs, same: bool, offsets: Index, backwards: bool) -> tuple[Index, Index]:
    """The table of lanes (see `reverse`), and which of the pairs each belongs to."""
    batch, left, right = way.batch, pairs.left, pairs.right
    own, other = batch.lengths[left], batch.lengths[right]
    owner = np.arange(len(left))
    ahead = other - own  # t' - t along the lane
    if way.factors.every_step:
        counts = own + other - 1
        owner = np.repeat(owner, counts)
        own, other = own[owner], other[owner]
        # From the last step of x and the first of y to the reverse.
        ahead = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts) - (own - 1)
    lanes = np.empty((LANE_ROWS, len(owner)), dtype=np.int64)
    lanes[X_LAST], lanes[X_STEPS] = batch.offsets[left + 1][owner] - 1, own
    lanes[Y_LAST] = batch.offsets[right][owner] + own - 1 + ahead
    lanes[BEGIN], lanes[SKIP] = own - np.maximum(-ahead, 0), np.maximum(own - other + ahead, 0)
    lanes[SAME], lanes[SHARED] = same & (ahead == 0), ahead == 0
    place = pairs.place[owner]
    lanes[OUT], lanes[STRIDE] = (offsets[place], 1) if backwards else (offsets[place + 1] - 1, -1)
    return lanes, owner


def _run(way: _Way, lanes: Index, scale: Array, gradient: Array, empty: Callable[..., NDArray[Any]]) -> Array:
    """The compiled pass over `lanes`: their outputs; derivatives are added to `gradient`."""
    count, common = lanes.shape[1], int(lanes[BEGIN].max())
    n_marks = way.parts.marks.shape[2]
    fits = BLOCK_BYTES // (8 * ((common + 1) * way.rows.n_rows + n_marks))
    width = min(max(fits // VECTOR * VECTOR, VECTOR), MOST_LANES, -(-count // VECTOR) * VECTOR)
    blocks = -(-count // width)
    at = np.minimum(np.arange(blocks * width), count - 1)  # the last lane again where the last block isn't full
    table = np.ascontiguousarray(lanes[:, at].reshape(LANE_ROWS, blocks, width).swapaxes(0, 1))
    value = np.zeros((blocks, width))
    compiled_reverse_pass()(
        way.partials,
        way.parameters,
        *way.factors,
        *way.rows,
        *way.parts,
        table,
        scale[at].reshape(blocks, width),
        _runs(table[:, X_LAST]),
        count,
        _aligned(empty, (common + 1, way.rows.n_rows, width)),
        _aligned(empty, (small_rows(len(way.rows.first), way.batch.n_channels), width)),
        np.empty((2, width), dtype=np.int64),
        _aligned(empty, (n_marks, width)),
        value,
        gradient,
    )
    return np.asarray(value.ravel()[:count])


def _runs(last: Index) -> Index:
    """Per lane, the end of the run of equal numbers it belongs to, row by row."""
    width = last.shape[1]
    ends = np.full(last.shape, width, dtype=np.int64)
    ends[:, :-1] = np.where(last[:, 1:] != last[:, :-1], np.arange(1, width), width)
    return np.ascontiguousarray(np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1])


def _aligned(empty: Callable[..., NDArray[Any]], shape: tuple[int, ...]) -> Array:
    """Memory of any content, on a cache line."""
    size = int(np.prod(shape))
    raw = empty((size + VECTOR,))
    start = -raw.ctypes.data % LINE // 8
    return np.asarray(raw[start : start + size].reshape(shape))


def _offsets(lengths: Index) -> Index:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
