"""Tiles of the fused engine: a Gram matrix cut into rectangles, swept on all threads, put together in memory.

No number depends on how the matrix is cut, or on which thread a tile runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations import relu
from ...activations.compiled import compile_function, inlined
from ...runtime import run_in_threads
from ..contract import Plan, Values
from ..scale import Scale, take, to_float
from .lanes import TOGETHER
from .memory import LANES, aligned_zeros
from .relu import compiled_relu, constants
from .side import PANEL_BYTES, FusedWay, Panel, swept_directions, working_precision
from .sweep import LAST, MEAN, PARTIALS, STEPS, compiled_sweep, slots

Index = NDArray[np.int64]
#: Bytes of everything swept together: what is touched in a step stays in 48 KiB of L1.
CHUNK_BYTES = 32768
#: Work per tile, in pair-steps of one ReLU layer: milliseconds, long against scheduling, short against imbalance.
TILE_STEPS = 4e6
#: Work up to which one thread is faster: more would wait for Python's lock.
ALONE = 5e6
#: Layers of ReLU, and channels, that take as long as one of another activation, or as one of ReLU.
LAYERS, CHANNELS = 4, 16
#: Largest tile output in numbers: it is written, scaled and put in its place within the second cache.
TILE_NUMBERS = 2.5e5


class Tile(NamedTuple):
    """Sequences begin to end of the left side, of its panel `left`, with those of panel `right` of the other."""

    left: int
    begin: int
    end: int
    right: int
    cost: float


@dataclass(frozen=True)
class Block:
    """What a tile yields: the kernels at `row_index` × `column_index` of the Gram matrices.

    Attributes
    ----------
    nngp, ntk : ndarray
        (rows, columns).
    gradient : ndarray
        (P, rows, columns), along each direction.
    valid : ndarray
        (rows,), first column that was computed in each row; what lies before belongs to the mirror image.
    """

    row_index: Index
    column_index: Index
    nngp: NDArray[Any]
    ntk: NDArray[Any]
    gradient: NDArray[Any]
    valid: Index


class Tiles:
    """The Gram matrices of two ways, or of one with itself."""

    def __init__(self, plan: Plan, left: FusedWay, right: FusedWay | None) -> None:
        self.plan, self.network = plan, plan.network
        self.symmetric = right is None
        self.left = left
        self.right = left if right is None else right
        self._lengths = left.batch.lengths
        self._swept = swept_directions(plan)
        self._slots = np.full(len(plan.directions), -1, dtype=np.int64)
        self._slots[self._swept] = np.arange(len(self._swept))
        self._working = working_precision(plan)
        readout = self.network.readout
        self._by_step = readout.every_step
        self._geometry = (STEPS if readout.per_step else MEAN) if readout.every_step else LAST
        # What the gradient is of, as weights of Q and V, and whether the latter moves with σ_v (theory.md (13)).
        variance, is_ntk = self.network.sigma_v**2, self.network.parameterization == "ntk"
        self._moving = (
            (variance, self.network.readout_factor, is_ntk) if self.network.kind == "ntk" else (0.0, variance, True)
        )
        self._rescale = compiled_rescale(self._working)
        network, directions = self.network, len(self._swept)
        self._is_relu = network.activation == relu and network.parameterization == "ntk" and network.tied
        self._is_relu = self._is_relu and not directions and not readout.per_step
        # Of one pair-step, in those of a layer of ReLU.
        self._work = (1 if self._is_relu else LAYERS) * network.depth + left.layout.channels[0] / CHANNELS

    def run(self) -> Values:
        """All tiles, on the threads of the plan."""
        plan, dtype = self.plan, self.plan.dtype
        shape = (len(self.left.index), len(self.right.index))
        found = {kind: np.empty(shape, dtype) for kind in plan.kinds}
        gradient = np.empty((len(plan.directions), *shape), dtype)
        place = compiled_place(dtype)

        def finish(tile: Tile) -> float:
            block = self.compute(tile)
            where = block.row_index, block.column_index, block.valid, self.symmetric
            for kind, out in found.items():
                place(getattr(block, kind), *where, out)
            for part, out in zip(block.gradient, gradient, strict=True):
                place(part, *where, out)
            return tile.cost

        # The largest first: what is left over at the end is small, and all threads finish together.
        tiles = sorted(self.plan_tiles(), key=lambda tile: -tile.cost)
        total = sum(tile.cost for tile in tiles)
        with plan.run.bar(plan.title, total) as advance:
            run_in_threads(finish, tiles, plan.run.threads() if total > ALONE else 1, advance)
        return Values(found.get("nngp"), found.get("ntk"), np.moveaxis(gradient, 0, 2))

    def plan_tiles(self) -> list[Tile]:
        """Rectangles of about `TILE_STEPS` pair-steps; on and above the diagonal where that is all there is."""
        kept = 2 * (1 + len(self._swept))
        tiles = []
        for p, panel in enumerate(self.right.right):
            lanes, right_steps = panel.array.shape[2], int(panel.lengths[0])
            for o, own in enumerate(self.left.left):
                begin, last = own.begin, min(own.end, panel.end) if self.symmetric else own.end
                while begin < last:
                    steps = int(self._lengths[begin])
                    per_row = self._work * lanes * (steps if self._by_step else min(steps, right_steps))
                    output = lanes * kept * (steps if self.network.readout.per_step else 1)
                    end = begin + max(1, int(min(TILE_STEPS / per_row, TILE_NUMBERS / output, last - begin)))
                    share = 1 - max(0, begin - panel.begin) / (panel.end - panel.begin) if self.symmetric else 1
                    tiles.append(Tile(o, begin, end, p, float(per_row * (end - begin) * share)))
                    begin = end
        return tiles

    def plan_own(self) -> list[Tile]:
        """Tiles that hold the pairs of every sequence with itself; others come with them."""
        tiles = []
        for p, panel in enumerate(self.right.right):
            for o, own in enumerate(self.left.left):
                begin, end = max(own.begin, panel.begin), min(own.end, panel.end)
                if begin < end:
                    tiles.append(Tile(o, begin, end, p, float(panel.lengths[0]) ** 2))
        return tiles

    def compute(self, tile: Tile) -> Block:
        begin, end = tile.begin, tile.end
        own, panel = self.left.left[tile.left], self.right.right[tile.right]
        rows = np.arange(begin, end)
        lanes = panel.array.shape[2]
        first = np.full(len(rows), panel.first, dtype=np.int64)
        same = np.full(len(rows), -1, dtype=np.int64)
        if self.symmetric:
            inside = rows >= panel.begin
            lane = panel.starts[np.where(inside, rows - panel.begin, 0)]
            same[inside] = lane[inside]
            first[inside] = np.maximum(lane[inside] // LANES * LANES, panel.first)
        readout = self.network.readout
        kept = int(self._lengths[begin]) if readout.per_step else 1
        shape = (len(rows), 1 + len(self._swept), kept, lanes)
        value, tangent = aligned_zeros(shape, self._working), aligned_zeros(shape, self._working)
        view = own.array[:, :, begin - own.begin : end - own.begin]
        if self._by_step:
            view = view[: int(self._lengths[begin])]
        starts = panel.starts if self._by_step else np.empty(0, np.int64)
        lengths = self._lengths[begin:end].copy()
        sweep = self._sweep_relu if self._is_relu else self._sweep_any
        sweep(panel, np.ascontiguousarray(view), lengths, starts, same, first, value, tangent)
        return self._finish(rows, panel, value, tangent)

    def _state(self, left: NDArray[Any], lanes: int) -> tuple[int, int]:
        """How many rows at a time, as many as stay in the first cache; and numbers per row and layer of their state."""
        kept = 2 * (1 + len(self._swept)) * self.network.depth + (2 if self._geometry == MEAN else 0)
        chunk = int(CHUNK_BYTES // (kept * lanes * self._working.itemsize))
        # At least a few where they are short, even if gradients then spill into the second cache.
        least = 4 if lanes * self._working.itemsize <= 2 * PANEL_BYTES else 1
        return min(max(least, chunk), left.shape[2]), slots(self._geometry, lanes, len(left))

    def _sweep_relu(
        self, panel: Panel, left: NDArray[Any], lengths: Index, starts: Index, same: Index, first: Index,
        value: NDArray[Any], tangent: NDArray[Any],
    ) -> None:  # fmt: skip
        layout, lanes, dtype = self.left.layout, panel.array.shape[2], self._working
        chunk, size = self._state(left, lanes)
        state = aligned_zeros((2, layout.depth, chunk, size), dtype)
        work = aligned_zeros((TOGETHER + 1, lanes), dtype)
        compiled_relu(dtype, self._geometry == MEAN, layout.depth > 1)(
            constants(dtype), layout.unit, layout.channels, layout.weights, left, panel.array, lengths, panel.lengths,
            starts, same, first, chunk, *state, work[1:], work[0], value, tangent,
        )  # fmt: skip

    def _sweep_any(
        self, panel: Panel, left: NDArray[Any], lengths: Index, starts: Index, same: Index, first: Index,
        value: NDArray[Any], tangent: NDArray[Any],
    ) -> None:  # fmt: skip
        network, layout, lanes, dtype = self.network, self.left.layout, panel.array.shape[2], self._working
        chunk, size = self._state(left, lanes)
        directions, careful = layout.n_directions, layout.raw >= 0
        simple = layout.depth == 1 and network.tied and layout.own[0] < 0
        state = aligned_zeros((2 + careful, layout.depth, chunk, size), dtype)
        rates = aligned_zeros((2 + careful, layout.depth, directions, chunk, size), dtype)
        step = network.activation.partials(dtype) if directions else network.activation.forward(dtype)
        compiled_sweep(dtype, self._geometry, directions > 0, careful, simple)(
            step, self.left.parameters, layout, network.tied, left, panel.array, lengths, panel.lengths, starts,
            panel.lane_steps, same, first, chunk, *state[:2], state[-1], *rates[:2], rates[-1],
            aligned_zeros((TOGETHER, lanes), dtype), *aligned_zeros((3, lanes), dtype), np.empty(lanes, bool),
            aligned_zeros((PARTIALS, lanes), dtype),
            *aligned_zeros((3, directions, lanes), dtype), value, tangent,
        )  # fmt: skip

    def _finish(self, rows: NDArray[np.int64], panel: Panel, value: NDArray[Any], tangent: NDArray[Any]) -> Block:
        """From unit numbers to kernels: gather lanes, put the scales back, add the readout's own term."""
        readout = self.network.readout
        left, right = self.left, self.right
        columns = np.arange(panel.begin, panel.end)
        norm_rates_left, norm_rates_right = left.norm_rates, right.norm_rates
        if not readout.every_step:
            V, Q = value[:, :, 0], tangent[:, :, 0]
            i, j = rows, columns
            rate_i, rate_j = norm_rates_left, norm_rates_right
        elif readout.averages:
            V, Q = self._sum_lanes(panel, value, 0), self._sum_lanes(panel, tangent, 1)
            i, j = rows, columns
            rate_i = rate_j = np.zeros((len(self._swept), max(len(left.batch), len(right.batch))))
        else:
            lanes = np.flatnonzero(panel.lane_steps >= 0)
            picked = [
                np.concatenate([part[r, :, : self._lengths[row]][..., lanes] for r, row in enumerate(rows)], axis=1)
                for part in (value, tangent)
            ]
            V, Q = (np.ascontiguousarray(part.transpose(1, 0, 2)) for part in picked)
            i = np.concatenate([np.arange(left.batch.offsets[row], left.batch.offsets[row + 1]) for row in rows])
            j = np.arange(right.batch.offsets[panel.begin], right.batch.offsets[panel.end])
            rate_i, rate_j = norm_rates_left, norm_rates_right
        shape, network = (len(i), len(j)), self.network
        nngp, ntk = np.empty(shape, self._working), np.empty(shape, self._working)
        gradient = np.empty((len(self.plan.directions), *shape), self.plan.dtype)
        value_scales = take(left.value_scale, i), take(right.value_scale, j)
        tangent_scales = take(left.tangent_scale, i), take(right.tangent_scale, j)
        scales = [each.mantissa for each in (*value_scales, *tangent_scales)]
        if len(gradient) or any(each.exponent.any() for each in (*value_scales, *tangent_scales)):
            V, Q = _scaled(V, *value_scales), _scaled(Q, *tangent_scales)
            self._differentiate(V, Q, rate_i[:, i, None] + rate_j[:, None, j], gradient)
            with np.errstate(over="ignore"):
                V, Q = V.astype(self._working), Q.astype(self._working)
            scales = [np.ones_like(each) for each in scales]
        self._rescale(V, Q, *scales, network.sigma_v**2, network.readout_factor, nngp, ntk)
        # Where only the upper triangle is computed, row i is good from column i on.
        valid = np.maximum(i - j[0], 0) if self.symmetric else np.zeros_like(i)
        with np.errstate(over="ignore"):
            nngp, ntk = (part.astype(self.plan.dtype, copy=False) for part in (nngp, ntk))
        return Block(self.left.index[i], self.right.index[j], nngp, ntk, gradient, valid)

    def _differentiate(self, V: NDArray[Any], Q: NDArray[Any], rates: NDArray[Any], gradient: NDArray[Any]) -> None:
        """From the derivatives along swept directions, behind the values in V and Q, to those of the kernel."""
        variance, own, own_moves = self._moving
        gradient[:] = 0
        with np.errstate(over="ignore"):
            for direction, k, out in zip(self.plan.directions, self._slots, gradient, strict=True):
                if k >= 0:
                    out[:] = own * (V[:, 1 + k] + rates[k] * V[:, 0]) + variance * (Q[:, 1 + k] + rates[k] * Q[:, 0])
                if direction.sigma_v:
                    out += 2 * direction.sigma_v * ((own * V[:, 0] if own_moves else 0.0) + variance * Q[:, 0])

    def _sum_lanes(self, panel: Panel, part: NDArray[Any], which: int) -> NDArray[Any]:
        """Weighted sum over the right side's steps; see `_sum_steps`."""
        layout = self.right.layout
        out = np.empty((len(part), part.shape[1], panel.end - panel.begin), self._working)
        weights = panel.array[0, layout.weights + which]
        moving = weights * panel.array[0, layout.weights + 2 : layout.weights + 1 + part.shape[1]]
        compiled_sum_steps(self._working)(part, weights, moving, panel.starts, panel.lengths, out)
        return out


@cache
def compiled_sum_steps(dtype: np.dtype[Any]) -> Any:
    """`_sum_steps` for `dtype`."""
    real, index = from_dtype(dtype), types.Array(types.int64, 1, "C")
    vector, table = types.Array(real, 1, "C"), types.Array(real, 2, "C")
    signature = types.void(types.Array(real, 4, "C"), vector, table, index, index, types.Array(real, 3, "C"))
    return compile_function(_sum_steps, signature)


@inlined
def _weighted(values: Any, weights: Any, begin: int, end: int) -> float:
    """Σ of weights × values from `begin` on, in float64, in four sums: each addition waits for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = begin + (end - begin) // 4 * 4
    for s in range(begin, whole, 4):
        a += np.float64(weights[s]) * np.float64(values[s])
        b += np.float64(weights[s + 1]) * np.float64(values[s + 1])
        c += np.float64(weights[s + 2]) * np.float64(values[s + 2])
        d += np.float64(weights[s + 3]) * np.float64(values[s + 3])
    for s in range(whole, end):
        a += np.float64(weights[s]) * np.float64(values[s])
    return (a + b) + (c + d)


def _sum_steps(part: Any, weights: Any, moving: Any, starts: Any, lengths: Any, out: Any) -> None:
    # Always in the same order: the same numbers whatever the tile.
    for r in range(part.shape[0]):
        for k in range(starts.size):
            begin, end = starts[k] + 1, starts[k] + 1 + lengths[k]
            for p in range(part.shape[1]):
                out[r, p, k] = _weighted(part[r, p, 0], weights, begin, end)
                if p > 0:
                    out[r, p, k] += _weighted(part[r, 0, 0], moving[p - 1], begin, end)


def _scaled(unit: NDArray[Any], left: Scale, right: Scale) -> NDArray[np.float64]:
    """Unit numbers (rows, 1 + P, lanes) times the scales of either side, of any size; zero times infinity is zero."""
    scale, exponent = np.multiply.outer(left.mantissa, right.mantissa), np.add.outer(left.exponent, right.exponent)
    unit = unit[..., : len(right.mantissa)]
    if not exponent.any():
        return np.asarray(unit * scale[:, None])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.where(unit != 0, unit * to_float(Scale(scale, exponent))[:, None], 0.0)


def _rescale(
    V: Any, Q: Any, value_i: Any, value_j: Any, tangent_i: Any, tangent_j: Any, variance: float, own: float,
    nngp: Any, ntk: Any,
) -> None:  # fmt: skip
    """Put the scales back and add the readout's own term: 𝒦 = σ_v² V, Θ = (own) V + σ_v² V' Θ[L] (theory.md (13))."""
    for a in range(nngp.shape[0]):
        v, q = nngp[a], ntk[a]
        for b in range(nngp.shape[1]):
            v[b] = V[a, 0, b] * (value_i[a] * value_j[b])
            q[b] = Q[a, 0, b] * (tangent_i[a] * tangent_j[b])
        for b in range(nngp.shape[1]):
            q[b] = own * v[b] + variance * q[b]
            v[b] = variance * v[b]


@cache
def compiled_rescale(dtype: np.dtype[Any]) -> Any:
    """`_rescale` for `dtype`."""
    real = from_dtype(dtype)
    unit, out, scale = types.Array(real, 3, "C"), types.Array(real, 2, "C"), types.Array(types.float64, 1, "C")
    return compile_function(_rescale, types.void(unit, unit, *(scale,) * 4, types.float64, types.float64, out, out))


@cache
def compiled_place(dtype: np.dtype[Any]) -> Any:
    """`_place` for `dtype`."""
    real, index = from_dtype(dtype), types.Array(types.int64, 1, "C")
    source, target = types.Array(real, 2, "A"), types.Array(real, 2, "C")
    return compile_function(_place, types.void(source, index, index, index, types.boolean, target))


def _place(block: Any, rows: Any, columns: Any, valid: Any, symmetric: bool, out: Any) -> None:
    for a in range(rows.size):
        for b in range(valid[a], columns.size):
            out[rows[a], columns[b]] = block[a, b]
            if symmetric:
                out[columns[b], rows[a]] = block[a, b]
