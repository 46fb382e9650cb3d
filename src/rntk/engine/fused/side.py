"""Sides of the fused engine: a batch sorted, walked, stacked, and packed into lanes.

Sequences are sorted by length, longest first, so that at every step the active rows and lanes are a prefix and no
vector lane idles on padding. They are packed into panels that stay in cache while a tile works on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations.compiled import compile_function
from ...network import Network
from ...sequences import SequenceBatch
from ..contract import Plan
from ..scale import Scale, folded, take, times
from .memory import LANES, aligned_zeros, padded, scratch
from .stack import Needs, RowLayout, Stack, build_stack, top_exponents

Index = NDArray[np.int64]
#: Bytes of one row of lanes: what is touched in a step stays in 48 KiB of L1.
PANEL_BYTES = 4096


@dataclass(frozen=True)
class Panel:
    """Consecutive sequences of a sorted batch, packed: (T, C, n) by sequence, or (1, C, n) by step.

    Attributes
    ----------
    begin, end : int
        Which sequences, in sorted order.
    first : int
        First lane in use. Panels by step read one lane back, so theirs begin one vector late.
    starts : ndarray
        First lane of each sequence. Panels by step have a spare lane there, before the first step.
    lengths : ndarray
        Of the sequences; of the lanes in panels by sequence, whose padding copies the last one.
    lane_steps : ndarray
        Step of each lane, -1 in spare lanes; empty in panels by sequence.
    """

    array: NDArray[Any]
    begin: int
    end: int
    first: int
    lengths: Index
    starts: Index
    lane_steps: Index


@dataclass(frozen=True)
class FusedWay:
    """A batch read in one direction, ready to be swept.

    Attributes
    ----------
    batch : SequenceBatch
        Sorted, longest first.
    order : ndarray
        Where each of its sequences stood.
    index : ndarray
        Where each of its rows stands in the Gram matrix.
    value_scale, tangent_scale : Scale
        What the unit numbers V̂ and Q of each row are multiplied by.
    left, right : list of Panel
        Panels for the rows of a tile, and for its lanes.
    """

    batch: SequenceBatch
    order: Index
    index: Index
    layout: RowLayout
    needs: Needs
    norm_rates: NDArray[np.float64]
    value_scale: Scale
    tangent_scale: Scale
    parameters: NDArray[Any]
    left: list[Panel]
    right: list[Panel]

    @property
    def nbytes(self) -> int:
        panels = self.left if self.left is self.right else [*self.left, *self.right]
        return sum(panel.array.nbytes for panel in panels)

    def scaled(self, by: Scale) -> FusedWay:
        by = take(by, self.index)
        return replace(self, value_scale=times(self.value_scale, by), tangent_scale=times(self.tangent_scale, by))

    def with_plain_scales(self) -> FusedWay:
        """The same with numbers that need no exponent as plain floats: pairs of them only multiply."""
        return replace(self, value_scale=folded(self.value_scale), tangent_scale=folded(self.tangent_scale))

    def without_exponents(self) -> FusedWay:
        """The same with mantissas only, for a caller that keeps the exponents itself."""
        value, tangent = (
            Scale(scale.mantissa, np.zeros_like(scale.exponent)) for scale in (self.value_scale, self.tangent_scale)
        )
        return replace(self, value_scale=value, tangent_scale=tangent)


def working_precision(plan: Plan) -> np.dtype[Any]:
    """Only for homogeneous activations every term that could cancel is a sum of non-negative ones; others would lose
    1e-7 per step in single precision, which a long sequence near criticality makes 1e-3."""
    return plan.dtype if plan.network.activation.homogeneous else np.dtype(np.float64)


def swept_directions(plan: Plan) -> list[int]:
    """Numbers of the directions that need a sweep: the readout's deviation only scales the result."""
    return [p for p, each in enumerate(plan.directions) if any(map(any, each.layers()))]


def make_way(plan: Plan, batch: SequenceBatch, needs: Needs | None = None) -> FusedWay:
    """Sort, walk, stack and pack a batch."""
    network, dtype = plan.network, working_precision(plan)
    directions = [plan.directions[p] for p in swept_directions(plan)]
    order = np.argsort(-batch.lengths, kind="stable")
    batch = batch.take(order) if (np.diff(order) != 1).any() else batch
    with scratch() as empty:
        stack = build_stack(network, batch, dtype, directions, needs or Needs(), empty)
        width = PANEL_BYTES // dtype.itemsize
        by_step = network.readout.every_step
        right = pack_panels(stack, batch, width, by_step=by_step)
        left = pack_panels(stack, batch, 128, by_step=False, align_end=False) if by_step else right
    if network.readout.averages:
        # The weights already hold ψ but for one exponent per sequence; the mean divides by the length.
        top = top_exponents(stack, batch)
        value = tangent = Scale(1.0 / batch.lengths, top)
    else:
        value = Scale(stack.mantissa, stack.exponent)
        tangent = Scale(stack.mantissa, stack.exponent + stack.tangent_exponent)
    parameters = np.append(network.activation.parameters, stack.needs.careful).astype(dtype)
    index = gram_index(order, network, batch)
    return FusedWay(
        batch, order, index, stack.layout, stack.needs, stack.norm_rates, value, tangent, parameters, left, right
    )


def gram_index(order: Index, network: Network, batch: SequenceBatch) -> Index:
    """Where each sorted sequence (or each of its steps) stands in the Gram matrix."""
    if not network.readout.per_step:
        return order
    lengths = np.empty_like(batch.lengths)
    lengths[order] = batch.lengths
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in order])


def pack_panels(
    stack: Stack, batch: SequenceBatch, width: int, *, by_step: bool, align_end: bool = True
) -> list[Panel]:
    """Cut a sorted batch into panels of about `width` lanes (sequences, or steps) and transpose them into lanes."""
    lengths = batch.lengths
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
        panels.append(_pack(stack.rows, batch, begin, end, by_step=by_step, align_end=align_end))
        begin = end
    return panels


def _pack(rows: NDArray[Any], batch: SequenceBatch, begin: int, end: int, *, by_step: bool, align_end: bool) -> Panel:
    """The panel of sequences `begin` to `end`."""
    own, offsets = np.ascontiguousarray(batch.lengths[begin:end]), batch.offsets[begin:end].copy()
    size = own + 1 if by_step else np.ones_like(own)
    first = LANES if by_step else 0
    starts = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64) + max(first - 1, 0)
    steps, lanes = (1 if by_step else int(own[0])), int(size.sum())
    width = padded(lanes + first)
    array = aligned_zeros((steps, len(rows), width), rows.dtype)
    lane_steps = np.full(width if by_step else 0, -1, dtype=np.int64)
    if by_step:
        for start, length, offset in zip(starts, own, offsets, strict=True):
            array[0, :, start + 1 : start + 1 + length] = rows[:, offset : offset + length]
            lane_steps[start + 1 : start + 1 + length] = np.arange(length)
    else:
        compiled_transpose(array.dtype)(rows, offsets, own, align_end, array)
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
