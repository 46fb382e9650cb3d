"""Tiles of the fused engine: pack once, sweep anywhere.

Sequences are sorted by length, longest first, so that at every step the active rows and lanes are a prefix and no
vector lane idles on padding. Each side is packed into panels that stay in cache while a tile works on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations.compiled import compile_function, inlined
from ...network import Architecture, Direction
from ...sequences import SequenceBatch
from .. import scales
from ..tiles import Block, Scale, Tile
from .memory import LANES, aligned_zeros, padded, scratch
from .stack import Needs, Stack, build_stack, top_exponents
from .sweep import LAST, MEAN, SEQUENCE, compiled_sweep, work_size

GEOMETRY = {"last": LAST, "mean": MEAN, "sequence": SEQUENCE}
#: Bytes of one row of lanes, and of everything swept together: what is touched in a step stays in 48 KiB of L1.
PANEL_BYTES = 2048
CHUNK_BYTES = 32768
#: Pair-steps per tile: a few milliseconds, long against scheduling and short against imbalance.
TILE_STEPS = 4e6
#: Largest tile output in numbers: bounds the memory a tile takes whatever the readout.
TILE_NUMBERS = 4e6


@dataclass(frozen=True)
class Panel:
    """Consecutive sequences of a sorted batch, packed: (T, C, n) by sequence, or (1, C, n) by step.

    Attributes
    ----------
    begin, end : which sequences, in sorted order.
    first : first lane in use. Panels by step read one lane back, so theirs begin one vector late.
    starts : first lane of each sequence. Panels by step have a spare lane there, before the first step.
    lengths : of the sequences; of the lanes in panels by sequence, whose padding copies the last one.
    lane_steps : step of each lane, -1 in spare lanes; empty in panels by sequence.
    """

    array: NDArray[Any]
    begin: int
    end: int
    first: int
    lengths: NDArray[np.int64]
    starts: NDArray[np.int64]
    lane_steps: NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """One batch of a Gram computation: sorted, walked, stacked."""

    batch: SequenceBatch
    order: NDArray[np.int64]
    stack: Stack
    value_scale: Scale
    tangent_scale: Scale

    def packed(self) -> Side:
        """The same side once its rows lie in panels: without them."""
        return replace(self, stack=replace(self.stack, rows=np.empty((0, 0))))

    def with_plain_scales(self) -> Side:
        """The same side with numbers that need no exponent as plain floats: pairs of them only multiply."""
        return replace(
            self, value_scale=scales.folded(self.value_scale), tangent_scale=scales.folded(self.tangent_scale)
        )

    def without_exponents(self) -> Side:
        """The same side with mantissas only, for a caller that keeps the exponents itself."""
        value, tangent = (
            Scale(scale.mantissa, np.zeros_like(scale.exponent)) for scale in (self.value_scale, self.tangent_scale)
        )
        return replace(self, value_scale=value, tangent_scale=tangent)


def make_side(
    architecture: Architecture,
    batch: SequenceBatch,
    dtype: np.dtype[Any],
    directions: list[Direction],
    normalizer: Scale | None,
    needs: Needs = Needs(),  # noqa: B008
    threads: int = 1,
    empty: Callable[..., NDArray[Any]] = np.empty,
) -> Side:
    """Sort, walk and stack a batch. `normalizer` (per row of the Gram matrix) multiplies every kernel value."""
    order = np.argsort(-batch.lengths, kind="stable")
    batch = batch.take(order) if (np.diff(order) != 1).any() else batch
    stack = build_stack(architecture, batch, dtype, directions, needs, threads, empty)
    if architecture.readout == "mean":
        # The weights already hold ψ but for one exponent per sequence; the mean divides by the length.
        top = top_exponents(stack, batch)
        value = tangent = Scale(1.0 / batch.lengths, top)
    else:
        value = Scale(stack.mantissa, stack.exponent)
        tangent = Scale(stack.mantissa, stack.exponent + stack.tangent_exponent)
    if normalizer is not None:
        at = gram_index(order, architecture, batch)
        by = Scale(normalizer.mantissa[at], normalizer.exponent[at])
        value = Scale(value.mantissa * by.mantissa, value.exponent + by.exponent)
        tangent = Scale(tangent.mantissa * by.mantissa, tangent.exponent + by.exponent)
    return Side(batch, order, stack, value, tangent)


def gram_index(order: NDArray[np.int64], architecture: Architecture, batch: SequenceBatch) -> NDArray[np.int64]:
    """Where each sorted sequence (or each of its steps) stands in the Gram matrix."""
    if architecture.readout != "sequence":
        return order
    lengths = np.empty_like(batch.lengths)
    lengths[order] = batch.lengths
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in order])


class FusedProblem:
    """A Gram computation for the fused engine; see `rntk.engine.tiles.Problem`."""

    def __init__(
        self,
        architecture: Architecture,
        X: SequenceBatch,
        Y: SequenceBatch | None,
        directions: list[Direction],
        dtype: np.dtype[Any],
        normalizers: tuple[Scale | None, Scale | None] = (None, None),
        self_pairs_only: bool = False,
        tile_steps: float = TILE_STEPS,
        threads: int = 1,
        gradient_of: str = "ntk",
    ) -> None:
        self.architecture = architecture
        self.directions = directions
        self.n_directions = len(directions)
        # The readout's deviation only scales the result: no sweep needed for it.
        self._swept = [p for p, each in enumerate(directions) if any(map(any, each.layers()))]
        directions = [directions[p] for p in self._swept]
        self._slots = np.full(self.n_directions, -1, dtype=np.int64)
        self._slots[self._swept] = np.arange(len(self._swept))
        self.dtype = dtype
        # Only for homogeneous activations every term that could cancel is a sum of non-negative ones; others would
        # lose 1e-7 per step in single precision, which a long sequence near criticality makes 1e-3.
        self._working = dtype = dtype if architecture.activation.homogeneous else np.dtype(np.float64)
        # What the gradient is of, as weights of Q and V, and whether the latter moves with σ_v (theory.md (13)).
        variance, is_ntk = architecture.sigma_v**2, architecture.parameterization == "ntk"
        self._moving = (
            (variance, architecture.readout_factor, is_ntk) if gradient_of == "ntk" else (0.0, variance, True)
        )
        self.symmetric = Y is None
        self._by_step = architecture.readout != "last"
        self._lanes = architecture.activation.lanes(dtype)
        self._rescale = compiled_rescale(dtype)
        self._sweep = compiled_sweep(dtype)
        with scratch() as empty:
            sides = self._make_sides(X, Y, directions, normalizers, threads, empty)
            careful = sides[0].stack.needs.careful
            self._parameters = np.append(architecture.activation.parameters, careful).astype(dtype)
            self._left_panels, self._right_panels = self._pack(*sides, 1 if self_pairs_only else None)
        # A diagonal alone takes exponents out by itself.
        self.left, self.right = (
            side.packed() if self_pairs_only else side.packed().with_plain_scales() for side in sides
        )
        self._left_index = gram_index(self.left.order, architecture, self.left.batch)
        self._right_index = gram_index(self.right.order, architecture, self.right.batch)
        self.shape = (len(self._left_index), len(self._right_index))
        self.tiles = self._plan_self() if self_pairs_only else self._plan(tile_steps)

    def _make_sides(
        self,
        X: SequenceBatch,
        Y: SequenceBatch | None,
        directions: list[Direction],
        normalizers: tuple[Scale | None, Scale | None],
        threads: int,
        empty: Callable[..., NDArray[Any]],
    ) -> tuple[Side, Side]:
        def make(batch: SequenceBatch, which: int, needs: Needs = Needs()) -> Side:  # noqa: B008
            return make_side(
                self.architecture, batch, self._working, directions, normalizers[which], needs, threads, empty
            )

        left = make(X, 0)
        if Y is None:
            return left, left
        # One side may need more than the other, such as orders of an expansion: both get it.
        right = make(Y, 1, left.stack.needs)
        return (left if right.stack.needs == left.stack.needs else make(X, 0, right.stack.needs)), right

    def _pack(self, left: Side, right: Side, right_width: int | None) -> tuple[list[Panel], list[Panel]]:
        """Panels of both sides; a width of one puts every sequence into a panel of its own."""
        width = PANEL_BYTES // self._working.itemsize
        right_panels = pack_panels(right, right_width or width, by_step=self._by_step)
        if self._by_step:
            return pack_panels(left, 32, by_step=False, align_end=False), right_panels
        return right_panels if self.symmetric else pack_panels(left, width, by_step=False), right_panels

    def _plan(self, tile_steps: float) -> list[Tile]:
        """Rectangles of about `tile_steps` pair-steps; on and above the diagonal where that is all there is."""
        kept = 2 * (1 + len(self._swept))
        tiles = []
        for p, panel in enumerate(self._right_panels):
            lanes, right_steps = panel.array.shape[2], int(panel.lengths[0])
            for o, own in enumerate(self._left_panels):
                begin, last = own.begin, min(own.end, panel.end) if self.symmetric else own.end
                while begin < last:
                    steps = int(self.left.batch.lengths[begin])
                    per_row = lanes * (steps if self._by_step else min(steps, right_steps))
                    output = lanes * kept * (steps if self.architecture.readout == "sequence" else 1)
                    end = begin + max(1, int(min(tile_steps / per_row, TILE_NUMBERS / output, last - begin)))
                    share = 1 - max(0, begin - panel.begin) / (panel.end - panel.begin) if self.symmetric else 1
                    tiles.append(Tile((o, begin, end), p, float(per_row * (end - begin) * share)))
                    begin = end
        return tiles

    def _plan_self(self) -> list[Tile]:
        """Only the pairs of a sequence with itself, one tile each."""
        tiles = []
        for p, panel in enumerate(self._right_panels):
            o = next(o for o, own in enumerate(self._left_panels) if own.begin <= panel.begin < own.end)
            tiles.append(Tile((o, panel.begin, panel.end), p, float(panel.lengths[0]) ** 2))
        return tiles

    def compute(self, tile: Tile) -> Block:
        o, begin, end = tile.rows
        own, panel = self._left_panels[o], self._right_panels[tile.columns]
        rows = np.arange(begin, end)
        lanes = panel.array.shape[2]
        first = np.full(len(rows), panel.first, dtype=np.int64)
        same = np.full(len(rows), -1, dtype=np.int64)
        if self.symmetric:
            inside = rows >= panel.begin
            lane = panel.starts[np.where(inside, rows - panel.begin, 0)]
            same[inside] = lane[inside]
            first[inside] = np.maximum(lane[inside] // LANES * LANES, panel.first)
        readout = self.architecture.readout
        kept = int(self.left.batch.lengths[begin]) if readout == "sequence" else 1
        shape = (len(rows), 1 + len(self._swept), kept, lanes)
        value, tangent = aligned_zeros(shape, self._working), aligned_zeros(shape, self._working)
        layout = self.left.stack.layout
        # At least a few rows per call where they are short, even if gradients then spill into the second cache.
        least = 4 if lanes * self._working.itemsize <= 2 * PANEL_BYTES else 1
        kind = (layout, GEOMETRY[readout], self.architecture.tied)
        touched = work_size(*kind, 1, lanes) + (2 * lanes * (1 + len(self._swept)) if readout == "mean" else 0)
        chunk = max(least, int(CHUNK_BYTES // (touched * self._working.itemsize)))
        view = own.array[:, :, begin - own.begin : end - own.begin]
        if self._by_step:
            view = view[: int(self.left.batch.lengths[begin])]
        self._sweep(
            self._lanes.forward,
            self._lanes.partials,
            self._parameters,
            *kind,
            np.ascontiguousarray(view),
            panel.array,
            self.left.batch.lengths[begin:end].copy(),
            panel.lengths,
            panel.starts if self._by_step else np.empty(0, np.int64),
            panel.lane_steps,
            same,
            first,
            chunk,
            aligned_zeros((work_size(*kind, chunk, lanes),), self._working),
            value,
            tangent,
        )
        return self._finish(rows, panel, value, tangent)

    def _finish(self, rows: NDArray[np.int64], panel: Panel, value: NDArray[Any], tangent: NDArray[Any]) -> Block:
        """From unit numbers to kernels: gather lanes, put the scales back, add the readout's own term."""
        readout = self.architecture.readout
        left, right = self.left, self.right
        columns = np.arange(panel.begin, panel.end)
        norm_rates_left, norm_rates_right = left.stack.norm_rates, right.stack.norm_rates
        if readout == "last":
            V, Q = value[:, :, 0], tangent[:, :, 0]
            i, j = rows, columns
            rate_i, rate_j = norm_rates_left, norm_rates_right
        elif readout == "mean":
            V, Q = self._sum_lanes(panel, value, 0), self._sum_lanes(panel, tangent, 1)
            i, j = rows, columns
            rate_i = rate_j = np.zeros((len(self._swept), max(len(left.batch), len(right.batch))))
        else:
            lanes = np.flatnonzero(panel.lane_steps >= 0)
            picked = [
                np.concatenate(
                    [part[r, :, : left.batch.lengths[row]][..., lanes] for r, row in enumerate(rows)], axis=1
                )
                for part in (value, tangent)
            ]
            V, Q = (np.ascontiguousarray(part.transpose(1, 0, 2)) for part in picked)
            i = np.concatenate([np.arange(left.batch.offsets[row], left.batch.offsets[row + 1]) for row in rows])
            j = np.arange(right.batch.offsets[panel.begin], right.batch.offsets[panel.end])
            rate_i, rate_j = norm_rates_left, norm_rates_right
        architecture = self.architecture
        nngp, ntk = np.empty((len(i), len(j)), self._working), np.empty((len(i), len(j)), self._working)
        gradient = np.empty((self.n_directions, len(i), len(j)), self._working)
        rate_i, rate_j = np.ascontiguousarray(rate_i[:, i]), np.ascontiguousarray(rate_j[:, j])
        self._rescale(
            V,
            Q,
            *(part[i] for part in (*left.value_scale, *left.tangent_scale)),
            *(part[j] for part in (*right.value_scale, *right.tangent_scale)),
            rate_i,
            rate_j,
            self._slots,
            np.array([direction.sigma_v for direction in self.directions], dtype=np.float64),
            architecture.sigma_v**2,
            architecture.readout_factor,
            *self._moving,
            nngp,
            ntk,
            gradient,
        )
        # Where only the upper triangle is computed, row i is good from column i on.
        valid = np.maximum(i - j[0], 0) if self.symmetric else np.zeros_like(i)
        with np.errstate(over="ignore"):
            nngp, ntk, gradient = (part.astype(self.dtype, copy=False) for part in (nngp, ntk, gradient))
        return Block(self._left_index[i], self._right_index[j], nngp, ntk, gradient, valid)

    def _sum_lanes(self, panel: Panel, part: NDArray[Any], which: int) -> NDArray[Any]:
        """Weighted sum over the right side's steps; see `_sum_steps`."""
        layout = self.right.stack.layout
        out = np.empty((len(part), part.shape[1], panel.end - panel.begin), self._working)
        weights = panel.array[0, layout.weights + which]
        rates = panel.array[0, layout.weights + 2 : layout.weights + 1 + part.shape[1]]
        compiled_sum_steps(self._working)(part, weights, rates, panel.starts, panel.lengths, out)
        return out


@cache
def compiled_sum_steps(dtype: np.dtype[Any]) -> Any:
    """`_sum_steps` for `dtype`."""
    real, index = from_dtype(dtype), types.Array(types.int64, 1, "C")
    vector, table = types.Array(real, 1, "C"), types.Array(real, 2, "C")
    signature = types.void(types.Array(real, 4, "C"), vector, table, index, index, types.Array(real, 3, "C"))
    return compile_function(_sum_steps, signature)


def _sum_steps(part: Any, weights: Any, rates: Any, starts: Any, lengths: Any, out: Any) -> None:
    # In float64 and in the order of the steps: the same numbers whatever the tile.
    for r in range(part.shape[0]):
        for k in range(starts.size):
            begin, end = starts[k] + 1, starts[k] + 1 + lengths[k]
            for p in range(part.shape[1]):
                total = 0.0
                for s in range(begin, end):
                    term = np.float64(part[r, p, 0, s])
                    if p > 0:
                        term += np.float64(rates[p - 1, s]) * np.float64(part[r, 0, 0, s])
                    total += np.float64(weights[s]) * term
                out[r, p, k] = total


def _rescale(
    V: Any,
    Q: Any,
    value_i: Any,
    value_exponent_i: Any,
    tangent_i: Any,
    tangent_exponent_i: Any,
    value_j: Any,
    value_exponent_j: Any,
    tangent_j: Any,
    tangent_exponent_j: Any,
    rate_i: Any,
    rate_j: Any,
    slots: Any,
    sigma_v_moves: Any,
    variance: float,
    own: float,
    moving_variance: float,
    moving_own: float,
    own_moves: bool,
    nngp: Any,
    ntk: Any,
    gradient: Any,
) -> None:
    """Put the scales back and add the readout's own term: 𝒦 = σ_v² V, Θ = (own) V + σ_v² V' Θ[L] (theory.md (13))."""
    rows, columns = nngp.shape
    plain = not (value_exponent_j.any() or tangent_exponent_j.any())
    for a in range(rows):
        unit_v, unit_q, v, q = V[a, 0], Q[a, 0], nngp[a], ntk[a]
        value, tangent = value_i[a], tangent_i[a]
        e, f = value_exponent_i[a], tangent_exponent_i[a]
        if plain and e == 0 and f == 0:
            for b in range(columns):
                v[b] = unit_v[b] * (value * value_j[b])
                q[b] = unit_q[b] * (tangent * tangent_j[b])
        else:
            for b in range(columns):
                # Zero times a scale beyond the largest float is zero.
                v[b] = unit_v[b] * _ldexp(value * value_j[b], e + value_exponent_j[b]) if unit_v[b] != 0 else 0.0
                q[b] = unit_q[b] * _ldexp(tangent * tangent_j[b], f + tangent_exponent_j[b]) if unit_q[b] != 0 else 0.0
        for p in range(gradient.shape[0]):
            moved, k = gradient[p, a], slots[p]
            for b in range(columns):
                moved[b] = 2 * sigma_v_moves[p] * ((moving_own * v[b] if own_moves else 0.0) + moving_variance * q[b])
                if k >= 0:
                    rate = rate_i[k, a] + rate_j[k, b]
                    by_value = _ldexp(value * value_j[b], e + value_exponent_j[b])
                    by_tangent = _ldexp(tangent * tangent_j[b], f + tangent_exponent_j[b])
                    moved[b] += moving_own * (V[a, 1 + k, b] * by_value + rate * v[b])
                    moved[b] += moving_variance * (Q[a, 1 + k, b] * by_tangent + rate * q[b])
        for b in range(columns):
            q[b] = own * v[b] + variance * q[b]
            v[b] = variance * v[b]


@inlined
def _ldexp(x: float, exponent: int) -> float:
    """x 2^exponent for any exponent; most of the time there is nothing to do."""
    largest = 1 << 30
    return x if exponent == 0 else math.ldexp(x, max(min(exponent, largest), -largest))


@cache
def compiled_rescale(dtype: np.dtype[Any]) -> Any:
    """`_rescale` for `dtype`."""
    real = from_dtype(dtype)
    unit, out = types.Array(real, 3, "C"), types.Array(real, 2, "C")
    scale = (types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C"))
    rates = types.Array(types.float64, 2, "C")
    signature = types.void(
        unit,
        unit,
        *scale * 4,
        rates,
        rates,
        types.Array(types.int64, 1, "C"),
        types.Array(types.float64, 1, "C"),
        *(types.float64,) * 4,
        types.boolean,
        out,
        out,
        types.Array(real, 3, "C"),
    )
    return compile_function(_rescale, signature)


def pack_panels(side: Side, width: int, *, by_step: bool, align_end: bool = True) -> list[Panel]:
    """Cut a sorted side into panels of about `width` lanes (sequences, or steps) and transpose them into lanes."""
    lengths = side.batch.lengths
    size = lengths + 1 if by_step else np.ones_like(lengths)
    # As many panels as the width demands, all of about the same size: a narrow last one would waste its vectors.
    total = int(size.sum())
    width = -(-total // -(-total // width))
    panels, begin = [], 0
    while begin < len(lengths):
        end, lanes = begin, 0
        while end < len(lengths) and (end == begin or lanes + size[end] <= width):
            lanes += int(size[end])
            end += 1
        panels.append(_pack(side, begin, end, by_step=by_step, align_end=align_end))
        begin = end
    return panels


def _pack(side: Side, begin: int, end: int, *, by_step: bool, align_end: bool) -> Panel:
    """The panel of sequences `begin` to `end`."""
    own, offsets = np.ascontiguousarray(side.batch.lengths[begin:end]), side.batch.offsets[begin:end].copy()
    size = own + 1 if by_step else np.ones_like(own)
    first = LANES if by_step else 0
    starts = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64) + max(first - 1, 0)
    steps, lanes = (1 if by_step else int(own[0])), int(size.sum())
    width = padded(lanes + first)
    array = aligned_zeros((steps, len(side.stack.rows), width), side.stack.rows.dtype)
    lane_steps = np.full(width if by_step else 0, -1, dtype=np.int64)
    if by_step:
        for start, length, offset in zip(starts, own, offsets, strict=True):
            array[0, :, start + 1 : start + 1 + length] = side.stack.rows[:, offset : offset + length]
            lane_steps[start + 1 : start + 1 + length] = np.arange(length)
    else:
        compiled_transpose(array.dtype)(side.stack.rows, offsets, own, align_end, array)
        own = np.concatenate([own, np.full(width - lanes, own[-1])])
    return Panel(array, begin, end, first, own, starts, lane_steps)


@cache
def compiled_transpose(dtype: np.dtype[Any]) -> Any:
    """`_transpose` for `dtype`."""
    real, index = from_dtype(dtype), types.Array(types.int64, 1, "C")
    signature = types.void(types.Array(real, 2, "C"), index, index, types.boolean, types.Array(real, 3, "C"))
    return compile_function(_transpose, signature)


def _transpose(rows: Any, first: Any, lengths: Any, align_end: bool, out: Any) -> None:
    # Step by step, so that the lines read from each sequence stay in cache until they are used up.
    steps = out.shape[0]
    for t in range(steps):
        for c in range(out.shape[1]):
            for k in range(lengths.size):
                at = t - (steps - lengths[k]) if align_end else t
                if 0 <= at < lengths[k]:
                    out[t, c, k] = rows[c, first[k] + at]
