"""A Gram computation on a device: panels of sequences, blocks of pairs, and their assembly.

A block holds a few arrays of its pairs and nothing that grows with the square of the number of sequences times their
length. Blocks are put together by concatenation, because arrays of some libraries can't be written to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...sequences import check_channels_agree
from ..contract import Engine, NotOfferedError, Plan, Reader, Values, refuse_overflow
from ..sides import quietly
from .batch import ArrayBatch, read_arrays
from .libraries import Library, check_precision, is_elsewhere
from .recursion import EVERY, Formulas, State, in_step, outputs, rows_of_tables
from .sides import PanelSide, make_side, power

#: Working memory of a block. A device wants work for thousands of lanes at every call, a CPU wants to stay in cache.
DEVICE_BYTES, CACHE_BYTES = 1 << 28, 1 << 24
#: Arrays of pairs that live at once, beside three per layer.
LIVE_ARRAYS = 24


class BothKernels(NamedTuple):
    """Both kernels of the same rows and columns."""

    nngp: Any
    ntk: Any


@dataclass(frozen=True)
class DevicePanel:
    """A few sequences of similar length: the rows or columns of a block.

    Attributes
    ----------
    chosen : list of int
        Which sequences.
    sides : list of Side
        Read forwards and, in a network that reads both ways, backwards.
    order
        For each side, where the rows of the Gram matrix stand among its (sequence, step) pairs; None if all do, in
        order.
    exponent
        (rows,), the power of two taken out of a row.
    factors
        For each side, (rows,), what is left of its own power of two.
    """

    chosen: list[int]
    sides: list[PanelSide]
    order: list[Any]
    exponent: Any
    factors: list[Any]


class Blocks:
    """How pairs of sequences of one library on one device are computed for a plan.

    Parameters
    ----------
    plan : Plan
        The ReLU family computes in its precision, others in float64.
    library : Library
    memory : int
        Working memory of a block in bytes.
    """

    def __init__(self, plan: Plan, library: Library, memory: int) -> None:
        network, dtype = plan.network, plan.dtype.name
        homogeneous = network.activation.homogeneous
        precision = dtype if homogeneous else "float64"
        dual = network.activation.array_form(library.xp, precision)
        check_precision(library, dtype, homogeneous, network.activation.name)
        self.network, self.library = network, library
        self.recursion = Formulas(network, dual, library, precision)
        self.dtype = library.dtype(dtype)
        self._ways = (False, True)[: 1 + network.bidirectional]
        self._tables = network.readout.every_step
        itemsize = 4 if precision == "float32" else 8
        self._pairs = memory // (itemsize * (LIVE_ARRAYS + 3 * network.depth))

    def panels(self, batch: ArrayBatch) -> list[DevicePanel]:
        """The batch in panels, the longest sequences first, so that two make a block of at most `pairs` pairs."""
        return [self._panel(batch, chosen) for chosen in _cut(batch, self._pairs, self._tables)]

    def cost(self, rows: DevicePanel, columns: DevicePanel) -> float:
        """Steps of all pairs of a block."""
        steps = rows.sides[0].steps, columns.sides[0].steps
        pairs = len(rows.chosen) * len(columns.chosen)
        return float(pairs * (steps[0] * steps[1] if self._tables else min(steps)))

    def own(self, panel: DevicePanel) -> Any:
        """(rows,), the diagonal, with the power of two of each row taken out."""
        return getattr(self._self_kernels(panel), self.network.kind)

    # -- panels -----------------------------------------------------------------------------------------------

    def _panel(self, batch: ArrayBatch, chosen: list[int]) -> DevicePanel:
        xp, device = self.library.xp, self.library.device
        sides = [
            make_side(
                self.network,
                self.recursion.dual,
                batch,
                chosen,
                self.recursion.dtype,
                at_end=not self._tables,
                backwards=backwards,
            )
            for backwards in self._ways
        ]
        order: list[Any] = [None] * len(sides)
        if self.network.readout.per_step:
            steps, lengths = sides[0].steps, sides[0].lengths
            for way, backwards in enumerate(self._ways):
                if backwards or min(lengths) < steps:
                    # The backward recursion reads input position t at its step T - 1 - t.
                    places = [
                        k * steps + (length - 1 - t if backwards else t)
                        for k, length in enumerate(lengths)
                        for t in range(length)
                    ]
                    order[way] = xp.asarray(places, device=device)
        exponents = [self._row_exponents(side, at) for side, at in zip(sides, order, strict=True)]
        top = exponents[0]
        for exponent in exponents[1:]:
            top = xp.maximum(top, exponent)
        return DevicePanel(chosen, sides, order, top, [power(xp, exponent - top) for exponent in exponents])

    def _row_exponents(self, side: PanelSide, order: Any) -> Any:
        xp = self.library.xp
        if not self.network.readout.every_step:
            return side.exponent[-1, :]
        if self.network.readout.averages:
            return xp.max(side.exponent, axis=0)
        return self._by_row(side.exponent, order)

    def _by_row(self, steps: Any, order: Any) -> Any:
        """(T, k) as one number per row of the Gram matrix."""
        xp = self.library.xp
        flat = xp.reshape(xp.permute_dims(steps, (1, 0)), (-1,))
        return flat if order is None else xp.take(flat, order, axis=0)

    def _weights(self, side: PanelSide) -> Any:
        """(T, k), the norm of each step as a share of the mean (14), in units of the row's power of two."""
        xp = self.library.xp
        share = power(xp, side.exponent - xp.max(side.exponent, axis=0)[None, :])
        counts = np.zeros((side.steps, len(side.lengths)))
        for k, length in enumerate(side.lengths):
            weights = self.network.readout.step_weights(np.array([length]))
            counts[:length, k] = (1.0 if weights is None else weights) / length
        return side.norm * share * xp.asarray(counts, dtype=share.dtype, device=self.library.device)

    # -- blocks -----------------------------------------------------------------------------------------------

    def block(self, rows: DevicePanel, columns: DevicePanel, *, same: bool) -> BothKernels:
        """Both kernels of a block, with the powers of two of rows and columns taken out."""
        xp = self.library.xp
        total: list[Any] = []
        for way, (left, right) in enumerate(zip(rows.sides, columns.sides, strict=True)):
            # Every step of the shorter side at once: the arrays of a table are as long as that one.
            turned = self._tables and right.steps > left.steps
            pair = self._one_way(right, left, same=same) if turned else self._one_way(left, right, same=same)
            for index, block in enumerate(pair):
                if turned:
                    block = xp.matrix_transpose(block)
                for axis, order in enumerate((rows.order[way], columns.order[way])):
                    block = block if order is None else xp.take(block, order, axis=axis)
                block = block * rows.factors[way][:, None] * columns.factors[way][None, :]
                if way == 0:
                    total.append(block)
                else:
                    total[index] = total[index] + block
        return BothKernels(*total)

    def _one_way(self, left: PanelSide, right: PanelSide, *, same: bool) -> tuple[Any, ...]:
        xp, recursion = self.library.xp, self.recursion
        if not self.network.readout.every_step:
            state = _last(in_step(recursion, left, right, same=same))
            return tuple(part * left.norm[-1, :, None] * right.norm[-1, None, :] for part in outputs(recursion, state))
        tables = rows_of_tables(recursion, left, right, same=same)
        if self.network.readout.averages:
            return self._averaged(tables, left, right, (EVERY, None))
        norms = xp.permute_dims(right.norm, (1, 0))
        rows: tuple[list[Any], list[Any]] = ([], [])
        for t, state in enumerate(tables):
            for collected, part in zip(rows, outputs(recursion, state), strict=True):
                collected.append(part * left.norm[t, :, None, None] * norms)
        a, b = left.norm.shape[1], right.norm.shape[1]
        # (a, T, b, T') to one row per step of every sequence.
        return tuple(xp.reshape(xp.stack(each, axis=1), (a * left.steps, b * right.steps)) for each in rows)

    def _averaged(self, tables: Any, left: PanelSide, right: PanelSide, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """Sums over all steps of both sides, weighted by their norms; `rows` places the left side's sequences."""
        xp = self.library.xp
        weights, columns = self._weights(left), xp.permute_dims(self._weights(right), (1, 0))
        total: list[Any] = []
        for t, state in enumerate(tables):
            parts = [xp.sum(part * columns, axis=-1) * weights[(t, *rows)] for part in outputs(self.recursion, state)]
            total = parts if t == 0 else [a + b for a, b in zip(total, parts, strict=True)]
        return tuple(total)

    def _self_kernels(self, panel: DevicePanel) -> BothKernels:
        """(rows,), each row with itself, its power of two taken out."""
        xp, recursion, total = self.library.xp, self.recursion, [0.0, 0.0]
        for side, order, factor in zip(panel.sides, panel.order, panel.factors, strict=True):
            if self.network.readout.averages:
                tables = rows_of_tables(recursion, side, side, alone=True)
                parts = self._averaged(tables, side, side, (EVERY,))
            elif not self.network.readout.every_step:
                state = _last(in_step(recursion, side, side, alone=True))
                parts = tuple(part * side.norm[-1, :] ** 2 for part in outputs(recursion, state))
            else:
                steps = (outputs(recursion, state) for state in in_step(recursion, side, side, alone=True))
                parts = tuple(self._by_row(xp.stack(each) * side.norm**2, order) for each in zip(*steps, strict=True))
            total = [sum_ + part * factor**2 for sum_, part in zip(total, parts, strict=True)]
        return BothKernels(*total)

    def inverse_root(self, panel: DevicePanel) -> Any:
        """1/√d for the diagonal entries d, 0 where there is no variance; None if nothing is normalised."""
        if not self.network.normalize:
            return None
        xp, own = self.library.xp, self.own(panel)
        some = own > 0
        return xp.where(some, 1 / xp.sqrt(xp.where(some, own, xp.ones_like(own))), xp.zeros_like(own))

    def scaled(self, block: Any, rows: DevicePanel, columns: DevicePanel, root_x: Any, root_y: Any) -> Any:
        if self.network.normalize:
            return block * root_x[:, None] * root_y[None, :]
        return _raised(self.library.xp, block, rows.exponent[:, None] + columns.exponent[None, :])

    # -- assembly ---------------------------------------------------------------------------------------------

    def mirrored(self, block: Any) -> Any:
        """A block on the diagonal, symmetric to the last bit and, normalised, with ones on the diagonal."""
        xp = self.library.xp
        upper = xp.triu(block, k=1)
        own = xp.triu(block) - upper
        if self.network.normalize:
            own = xp.where(own > 0, xp.ones_like(own), own)
        return upper + own + xp.matrix_transpose(upper)

    def assembled(self, blocks: dict[tuple[int, int], Any], rows: ArraySide, columns: ArraySide) -> Any:
        """The whole matrix, in the order of the user's sequences."""
        xp = self.library.xp
        # Blocks leave the table as they are used: at no time are there two copies of the whole.
        strips = [
            xp.concat([blocks.pop((i, j)) for j in range(len(columns.panels))], axis=1) for i in range(len(rows.panels))
        ]
        K = self.in_order(xp.concat(strips, axis=0), rows.batch, rows.panels, axis=0)
        return self.in_order(K, columns.batch, columns.panels, axis=1)

    def in_order(self, K: Any, batch: ArrayBatch, panels: list[DevicePanel], axis: int) -> Any:
        """Rows or columns back in the order of the user's sequences."""
        sequences = [i for panel in panels for i in panel.chosen]
        if sequences == sorted(sequences):
            return K
        lengths = batch.lengths.tolist() if self.network.readout.per_step else [1] * len(batch)
        begins, at = {}, 0
        for i in sequences:
            begins[i] = at
            at += lengths[i]
        places = [begins[i] + t for i in range(len(batch)) for t in range(lengths[i])]
        return self.library.xp.take(K, self.library.xp.asarray(places, device=self.library.device), axis=axis)


@dataclass(frozen=True)
class ArraySide:
    """A batch on its device, prepared: its panels, and 1/√d of their rows where kernels are normalised."""

    plan: Plan
    work: Blocks
    batch: ArrayBatch
    panels: list[DevicePanel]
    roots: list[Any]
    needs: None = None

    @property
    def nbytes(self) -> int:
        """Memory that it takes on the device, about: a dozen numbers per step and layer."""
        return 100 * self.plan.network.depth * len(self.batch.shape.values)


class ArrayEngine(Engine):
    """Both directions of reading and normalisation are its own: a block adds them up where it lies."""

    name = "array"

    def read(self, reader: Reader, *named: tuple[str, Any]) -> list[Any]:
        return read_arrays(reader, *named)

    @quietly
    def prepare(self, plan: Plan, batch: ArrayBatch, needs: None = None) -> ArraySide:
        self.check(plan)
        work = Blocks(plan, batch.library, DEVICE_BYTES if is_elsewhere(batch.values) else CACHE_BYTES)
        panels = work.panels(batch)
        return ArraySide(plan, work, batch, panels, [work.inverse_root(panel) for panel in panels])

    @quietly
    def pairs(self, a: ArraySide, b: ArraySide | None = None) -> Values:
        plan, work, xp, symmetric, right = a.plan, a.work, a.work.library.xp, b is None, a if b is None else b
        check_channels_agree([a.batch.shape, right.batch.shape], ["X", "Y"])
        if a.plan.network.readout != right.plan.network.readout:
            raise NotOfferedError("the array engine reads both sides alike; bring the arrays to the CPU")
        found: dict[str, dict[tuple[int, int], Any]] = {kind: {} for kind in plan.kinds}
        blocks = [
            (i, j, work.cost(x, y))
            for i, x in enumerate(a.panels)
            for j, y in enumerate(right.panels)
            if not symmetric or i <= j
        ]
        with plan.run.bar(plan.title, sum(cost for _, _, cost in blocks)) as advance:
            for i, j, cost in blocks:
                rows, columns, same = a.panels[i], right.panels[j], symmetric and i == j
                pair = work.block(rows, columns, same=same)
                for kind, parts in found.items():
                    block = work.scaled(getattr(pair, kind), rows, columns, a.roots[i], right.roots[j])
                    block = xp.astype(block, work.dtype)
                    if same:
                        block = work.mirrored(block)
                    elif symmetric:
                        parts[j, i] = xp.matrix_transpose(block)
                    parts[i, j] = block
                advance(cost)
        matrices = {kind: work.assembled(parts, a, right) for kind, parts in found.items()}
        for K in matrices.values():
            refuse_overflow(plan, K, a.batch.shape, None if b is None else b.batch.shape, xp)
        return Values(matrices.get("nngp"), matrices.get("ntk"), np.empty((0, 0, 0)))

    @quietly
    def diagonal(self, plan: Plan, batch: ArrayBatch) -> Any:
        self.check(plan)
        work = Blocks(plan, batch.library, DEVICE_BYTES if is_elsewhere(batch.values) else CACHE_BYTES)
        xp, parts, panels = batch.library.xp, [], work.panels(batch)
        for panel in panels:
            own = work.own(panel)
            some = xp.where(own > 0, xp.ones_like(own), own)
            own = some if plan.network.normalize else _raised(xp, own, 2 * panel.exponent)
            parts.append(xp.astype(own, work.dtype))
        values = work.in_order(xp.concat(parts, axis=0), batch, panels, axis=0)
        refuse_overflow(plan, values[None, :], batch.shape, batch.shape, xp)
        return values


def _last(states: Iterator[State]) -> State:
    """The state after the last step; those before are let go."""
    for state in states:  # noqa: B007
        pass
    return state


def _raised(xp: Any, x: Any, exponent: Any) -> Any:
    """x 2^exponent in two halves, so that neither leaves the range unless the result does."""
    half = xp.floor(exponent / 2)
    return x * power(xp, half) * power(xp, exponent - half)


def _cut(batch: ArrayBatch, pairs: int, tables: bool) -> list[list[int]]:
    """Panels of sequences, the longest first, so that two panels make a block of at most `pairs` pairs (of steps)."""
    lengths = batch.lengths.tolist()
    order = list(range(len(batch)))
    if min(lengths) < max(lengths):
        order.sort(key=lambda i: -lengths[i])
    panels, at = [], 0
    while at < len(order):
        each = lengths[order[at]] if tables else 1
        size = max(1, math.isqrt(max(pairs // each, 1)))
        panels.append(order[at : at + size])
        at += size
    return panels
