"""Tiles of the fused engine: pack once, sweep anywhere.

Sequences are sorted by length, longest first, so that at every step the active rows and lanes are a prefix and no
vector lane idles on padding. Each side is packed into panels that stay in cache while a tile works on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...architecture import Architecture, Direction
from ...compiled import compile_function
from ...sequences import SequenceBatch
from ..tiles import Block, Scale, Tile
from .stack import Stack, build_stack, top_exponents
from .sweep import LAST, MEAN, SEQUENCE, sweep, sweep_signature

GEOMETRY = {"last": LAST, "mean": MEAN, "sequence": SEQUENCE}
#: Bytes of one state row of a panel, and of the state rows swept together: measured best on 48 KiB of L1.
PANEL_BYTES = 2048
CHUNK_BYTES = 8192
#: Pair-steps per tile: a few milliseconds, long against scheduling and short against imbalance.
TILE_STEPS = 1.5e6
#: Largest tile output in numbers: bounds the memory a tile takes whatever the readout.
TILE_NUMBERS = 4e6


@dataclass(frozen=True)
class Panel:
    """Consecutive sequences of a sorted batch, packed: (T, C, n) by sequence, or (1, C, n) by step.

    Attributes
    ----------
    begin, end : which sequences, in sorted order.
    starts : first lane of each sequence. Panels by step have a spare lane there, before the first step.
    lane_steps : step of each lane, -1 in spare lanes; empty in panels by sequence.
    """

    array: NDArray[Any]
    begin: int
    end: int
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


def make_side(
    architecture: Architecture,
    batch: SequenceBatch,
    dtype: np.dtype[Any],
    directions: list[Direction],
    normalizer: Scale | None,
    least_marks: int = 0,
) -> Side:
    """Sort, walk and stack a batch. `normalizer` (per row of the Gram matrix) multiplies every kernel value."""
    order = np.argsort(-batch.lengths, kind="stable")
    batch = batch.take(order) if (np.diff(order) != 1).any() else batch
    stack = build_stack(architecture, batch, dtype, directions, least_marks)
    if architecture.readout == "mean":
        # The weights already hold ψ but for one exponent per sequence; the mean divides by the length.
        top = top_exponents(stack, batch)
        value = tangent = Scale(1.0 / batch.lengths, top)
    else:
        at = batch.offsets[1:] - 1 if architecture.readout == "last" else np.arange(len(batch.values))
        value = Scale(stack.mantissa[at], stack.exponent[at])
        tangent = Scale(stack.mantissa[at], stack.exponent[at] + stack.tangent_exponent[at])
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
    ) -> None:
        self.architecture = architecture
        self.directions = directions
        self.dtype = dtype
        self.symmetric = Y is None
        self.left = self.right = make_side(architecture, X, dtype, directions, normalizers[0])
        if Y is not None:
            # An expansion may need more orders on one side: both take the larger number.
            marks = self.left.stack.layout.n_marks
            self.right = make_side(architecture, Y, dtype, directions, normalizers[1], marks)
            if self.right.stack.layout.n_marks > marks:
                marks = self.right.stack.layout.n_marks
                self.left = make_side(architecture, X, dtype, directions, normalizers[0], marks)
        self.n_directions = len(directions)
        self._left_index = gram_index(self.left.order, architecture, self.left.batch)
        self._right_index = gram_index(self.right.order, architecture, self.right.batch)
        self.shape = (len(self._left_index), len(self._right_index))
        self._by_step = architecture.readout != "last"
        self._parameters = architecture.activation.parameters.astype(dtype)
        self._lanes = architecture.activation.lanes(dtype)
        self._sweep = compile_function(sweep, sweep_signature(dtype, self.left.stack.layout))
        width = PANEL_BYTES // dtype.itemsize
        # A width of one puts every sequence into a panel of its own.
        right_width = 1 if self_pairs_only else width
        self._right_panels = pack_panels(self.right, right_width, by_step=self._by_step)
        if self._by_step:
            self._left_panels = pack_panels(self.left, 32, by_step=False, align_end=False)
        elif Y is None:
            self._left_panels = self._right_panels
        else:
            self._left_panels = pack_panels(self.left, width, by_step=False)
        self.tiles = self._plan_self() if self_pairs_only else self._plan(tile_steps)

    def _plan(self, tile_steps: float) -> list[Tile]:
        """Rectangles of about `tile_steps` pair-steps; on and above the diagonal where that is all there is."""
        kept = 2 * (1 + self.n_directions)
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
                    tiles.append(Tile((o, begin, end), p, float(per_row * (end - begin))))
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
        first = np.full(len(rows), int(self._by_step), dtype=np.int64)
        same = np.full(len(rows), -1, dtype=np.int64)
        if self.symmetric:
            inside = rows >= panel.begin
            lane = panel.starts[np.where(inside, rows - panel.begin, 0)]
            same[inside] = lane[inside]
            # Whole vectors only: a first lane on a boundary of eight keeps the loads aligned.
            first[inside] = lane[inside] + 1 if self._by_step else lane[inside] // 8 * 8
        readout = self.architecture.readout
        kept = int(self.left.batch.lengths[begin]) if readout == "sequence" else 1
        shape = (len(rows), 1 + self.n_directions, kept, lanes)
        value, tangent = np.zeros(shape, self.dtype), np.zeros(shape, self.dtype)
        chunk = max(1, int(CHUNK_BYTES // (lanes * self.dtype.itemsize)))
        view = own.array[:, :, begin - own.begin : end - own.begin]
        if self._by_step:
            view = view[: int(self.left.batch.lengths[begin])]
        self._sweep(
            self._lanes.forward,
            self._lanes.partials,
            self._parameters,
            self.left.stack.layout,
            GEOMETRY[readout],
            self.architecture.tied,
            view,
            panel.array,
            self.left.batch.lengths[begin:end].copy(),
            panel.lengths,
            panel.starts if self._by_step else np.empty(0, np.int64),
            panel.lane_steps,
            same,
            first,
            chunk,
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
            V, Q = value[:, :, 0].astype(np.float64), tangent[:, :, 0].astype(np.float64)
            i, j = rows, columns
            rate_i, rate_j = norm_rates_left[:, left.batch.offsets[1:] - 1], norm_rates_right[:, right.batch.offsets[1:] - 1]
        elif readout == "mean":
            V, Q = self._sum_lanes(panel, value, 0), self._sum_lanes(panel, tangent, 1)
            i, j = rows, columns
            rate_i = rate_j = np.zeros((self.n_directions, max(len(left.batch), len(right.batch))))
        else:
            lanes = np.flatnonzero(panel.lane_steps >= 0)
            picked = [
                np.concatenate([part[r, :, : left.batch.lengths[row]][..., lanes] for r, row in enumerate(rows)], axis=1)
                for part in (value, tangent)
            ]
            V, Q = (part.astype(np.float64).transpose(1, 0, 2) for part in picked)
            i = np.concatenate([np.arange(left.batch.offsets[row], left.batch.offsets[row + 1]) for row in rows])
            j = np.arange(right.batch.offsets[panel.begin], right.batch.offsets[panel.end])
            rate_i, rate_j = norm_rates_left, norm_rates_right
        for p in range(self.n_directions):
            rate = rate_i[p, i][:, None] + rate_j[p, j]
            V[:, 1 + p] += rate * V[:, 0]
            Q[:, 1 + p] += rate * Q[:, 0]
        V = put_scale(V, left.value_scale, i, right.value_scale, j)
        Q = put_scale(Q, left.tangent_scale, i, right.tangent_scale, j)
        architecture = self.architecture
        variance, own = architecture.sigma_v**2, architecture.readout_factor
        with np.errstate(over="ignore"):
            nngp = variance * V[:, 0]
            ntk = own * V[:, 0] + variance * Q[:, 0]
            gradient = np.empty((self.n_directions, *ntk.shape), self.dtype)
            for p, direction in enumerate(self.directions):
                moved = own * V[:, 1 + p] + variance * Q[:, 1 + p]
                if direction.sigma_v:
                    both = architecture.parameterization == "ntk"
                    moved = moved + 2 * direction.sigma_v * (ntk if both else variance * Q[:, 0])
                gradient[p] = moved
            nngp, ntk = nngp.astype(self.dtype), ntk.astype(self.dtype)
        # Where only the upper triangle is computed, row i is good from column i on.
        valid = np.maximum(i - j[0], 0) if self.symmetric else np.zeros_like(i)
        return Block(self._left_index[i], self._right_index[j], nngp, ntk, gradient, valid)

    def _sum_lanes(self, panel: Panel, part: NDArray[Any], which: int) -> NDArray[np.float64]:
        """Weighted sum over the right side's steps, in float64 and in the order of the steps."""
        layout = self.right.stack.layout
        weights = panel.array[0, layout.weights + which].astype(np.float64)
        rates = panel.array[0, layout.weights + 2 : layout.weights + 2 + self.n_directions].astype(np.float64)
        lanes = part[:, :, 0].astype(np.float64)
        for p in range(self.n_directions):
            lanes[:, 1 + p] += rates[p] * lanes[:, 0]
        out = np.empty((len(part), 1 + self.n_directions, panel.end - panel.begin))
        for k, (start, length) in enumerate(zip(panel.starts, panel.lengths, strict=True)):
            at = slice(start + 1, start + 1 + length)
            out[:, :, k] = (lanes[:, :, at] * weights[at]).sum(axis=-1)
        return out


def put_scale(
    unit: NDArray[np.float64], left: Scale, i: NDArray[np.int64], right: Scale, j: NDArray[np.int64]
) -> NDArray[np.float64]:
    """unit[a, :, b] times the scales of left i[a] and right j[b]; overflow becomes infinite, never NaN."""
    mantissa = left.mantissa[i][:, None, None] * right.mantissa[j]
    exponent = left.exponent[i][:, None, None] + right.exponent[j]
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(unit * mantissa, np.clip(exponent, -(1 << 30), 1 << 30).astype(np.intc)))


def pack_panels(
    side: Side, width: int, *, by_step: bool, align_end: bool = True
) -> list[Panel]:
    """Cut a sorted side into panels of about `width` lanes (sequences, or steps) and transpose them into lanes."""
    lengths, offsets = side.batch.lengths, side.batch.offsets
    size = lengths + 1 if by_step else np.ones_like(lengths)
    panels, begin = [], 0
    while begin < len(lengths):
        end, lanes = begin, 0
        while end < len(lengths) and (end == begin or lanes + size[end] <= width):
            lanes += int(size[end])
            end += 1
        starts = np.concatenate([[0], np.cumsum(size[begin:end])[:-1]]).astype(np.int64)
        own = np.ascontiguousarray(lengths[begin:end])
        steps = 1 if by_step else int(own[0])
        array = np.zeros((steps, len(side.stack.rows), lanes), side.stack.rows.dtype)
        lane_steps = np.empty(0, np.int64)
        if by_step:
            lane_steps = np.full(lanes, -1, dtype=np.int64)
            for start, length, offset in zip(starts, own, offsets[begin:end], strict=True):
                array[0, :, start + 1 : start + 1 + length] = side.stack.rows[:, offset : offset + length]
                lane_steps[start + 1 : start + 1 + length] = np.arange(length)
        else:
            real = from_dtype(array.dtype)
            index = types.Array(types.int64, 1, "C", readonly=True)
            signature = types.void(types.Array(real, 2, "C"), index, index, types.boolean, types.Array(real, 3, "C"))
            first = np.ascontiguousarray(offsets[begin:end])
            first.flags.writeable = own.flags.writeable = False
            compile_function(_transpose, signature)(side.stack.rows, first, own, align_end, array)
            own = own.copy()
        panels.append(Panel(array, begin, end, own, starts, lane_steps))
        begin = end
    return panels


def _transpose(rows: Any, first: Any, lengths: Any, align_end: bool, out: Any) -> None:
    # Step by step, so that the lines read from each sequence stay in cache until they are used up.
    steps = out.shape[0]
    for t in range(steps):
        for c in range(out.shape[1]):
            for k in range(out.shape[2]):
                at = t - (steps - lengths[k]) if align_end else t
                if 0 <= at < lengths[k]:
                    out[t, c, k] = rows[c, first[k] + at]
