"""A Gram computation on a device: panels of sequences, blocks of pairs, and their assembly.

A block holds a few arrays of its pairs and nothing that grows with the square of the number of sequences times their
length. Blocks are put together by concatenation, because arrays of some libraries can't be written to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...network import Architecture
from .batch import ArrayBatch
from .libraries import check_precision, is_elsewhere
from .recursion import EVERY, Network, State, in_step, outputs, rows_of_tables
from .sides import Side, make_side, power

#: Working memory of a block. A device wants work for thousands of lanes at every call, a CPU wants to stay in cache.
DEVICE_BYTES, CACHE_BYTES = 1 << 28, 1 << 24
#: Arrays of pairs that live at once, beside three per layer.
LIVE_ARRAYS = 24


class Pair(NamedTuple):
    """Both kernels of the same rows and columns."""

    nngp: Any
    ntk: Any


@dataclass(frozen=True)
class Panel:
    """A few sequences of similar length: the rows or columns of a block.

    Attributes
    ----------
    chosen : which sequences.
    sides : read forwards and, in a network that reads both ways, backwards.
    order : for each side, where the rows of the Gram matrix stand among its (sequence, step) pairs; None if all do, in
        order.
    exponent : (rows,), the power of two taken out of a row.
    factors : for each side, (rows,), what is left of its own power of two.
    """

    chosen: list[int]
    sides: list[Side]
    order: list[Any]
    exponent: Any
    factors: list[Any]


class ArrayProblem:
    """Gram matrices of one or two batches, as arrays of their library on their device.

    Parameters
    ----------
    architecture : the network.
    X, Y : batches of one device; without `Y` the matrices are symmetric, and their diagonal holds the same-sequence
        term of the initial state.
    dtype : "float32" or "float64", of the result. The ReLU family computes in this precision, others in float64.
    both_ways : add an independent network that reads backwards.
    normalize : "nngp" or "ntk", the kernel by the roots of whose diagonal all is divided; None for none.
    memory : working memory of a block in bytes; by default what suits the device.
    """

    def __init__(
        self,
        architecture: Architecture,
        X: ArrayBatch,
        Y: ArrayBatch | None = None,
        *,
        dtype: str = "float64",
        both_ways: bool = False,
        normalize: str | None = None,
        memory: int | None = None,
    ) -> None:
        if Y is not None and Y.shape.n_channels != X.shape.n_channels:
            raise ValueError(f"X has {X.shape.n_channels} channels and Y has {Y.shape.n_channels}; they must agree")
        library = X.library
        homogeneous = architecture.activation.homogeneous
        precision = dtype if homogeneous else "float64"
        dual = architecture.activation.array_form(library.xp, precision)
        check_precision(library, dtype, homogeneous, architecture.activation.name)
        self.architecture, self.library, self.normalize = architecture, library, normalize
        self.network = Network(architecture, dual, library, precision)
        self.dtype = library.dtype(dtype)
        self.X, self.Y, self.symmetric = X, X if Y is None else Y, Y is None
        self._ways = (False, True)[: 1 + both_ways]
        self._tables = architecture.readout != "last"
        if memory is None:
            memory = DEVICE_BYTES if is_elsewhere(X.values) else CACHE_BYTES
        itemsize = 4 if precision == "float32" else 8
        self._pairs = memory // (itemsize * (LIVE_ARRAYS + 3 * architecture.depth))
        self._rows, self._columns = _cut(X, self._pairs, self._tables), _cut(self.Y, self._pairs, self._tables)

    @property
    def cost(self) -> float:
        """Steps of all pairs, in the units that `grams` reports."""
        return sum(self._block_cost(i, j) for i, j in self._blocks())

    def _blocks(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(len(self._rows)) for j in range(i if self.symmetric else 0, len(self._columns))]

    def _block_cost(self, i: int, j: int) -> float:
        rows, columns = self._rows[i], self._columns[j]
        steps = [max(batch.lengths[k] for k in at) for batch, at in ((self.X, rows), (self.Y, columns))]
        return float(len(rows) * len(columns) * (steps[0] * steps[1] if self._tables else min(steps)))

    def grams(self, wanted: Sequence[str], advance: Callable[[float], None] = lambda amount: None) -> list[Any]:
        """The Gram matrices `wanted` ("nngp", "ntk"), in that order."""
        xp = self.library.xp
        rows = [self._panel(self.X, chosen) for chosen in self._rows]
        columns = rows if self.symmetric else [self._panel(self.Y, chosen) for chosen in self._columns]
        roots_x = [self._inverse_root(panel) for panel in rows]
        roots_y = roots_x if self.symmetric else [self._inverse_root(panel) for panel in columns]
        found: list[dict[tuple[int, int], Any]] = [{} for _ in wanted]
        for i, j in self._blocks():
            pair = self._block(rows[i], columns[j], same=self.symmetric and i == j)
            for kind, blocks in zip(wanted, found, strict=True):
                block = self._scaled(getattr(pair, kind), rows[i], columns[j], roots_x[i], roots_y[j])
                block = xp.astype(block, self.dtype)
                if self.symmetric and i == j:
                    block = self._mirrored(block)
                elif self.symmetric:
                    blocks[j, i] = xp.matrix_transpose(block)
                blocks[i, j] = block
            advance(self._block_cost(i, j))
        return [self._assembled(blocks, len(rows), len(columns)) for blocks in found]

    def diagonal(self, kind: str = "ntk") -> Any:
        """The diagonal of `kernel(X)`, without a Gram matrix."""
        xp = self.library.xp
        parts = []
        for panel in (self._panel(self.X, chosen) for chosen in self._rows):
            own = getattr(self._self_kernels(panel), kind)
            own = xp.where(own > 0, xp.ones_like(own), own) if self.normalize else _raised(xp, own, 2 * panel.exponent)
            parts.append(xp.astype(own, self.dtype))
        return self._in_order(xp.concat(parts, axis=0), self.X, self._rows, axis=0)

    # -- panels -----------------------------------------------------------------------------------------------

    def _panel(self, batch: ArrayBatch, chosen: list[int]) -> Panel:
        xp, device = self.library.xp, self.library.device
        sides = [
            make_side(
                self.architecture,
                self.network.dual,
                batch,
                chosen,
                self.network.dtype,
                at_end=not self._tables,
                backwards=backwards,
            )
            for backwards in self._ways
        ]
        order: list[Any] = [None] * len(sides)
        if self.architecture.readout == "sequence":
            steps, lengths = sides[0].steps, sides[0].lengths
            for way, backwards in enumerate(self._ways):
                if backwards or min(lengths) < steps:
                    # The backward network reads input position t at its step T - 1 - t.
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
        return Panel(chosen, sides, order, top, [power(xp, exponent - top) for exponent in exponents])

    def _row_exponents(self, side: Side, order: Any) -> Any:
        xp = self.library.xp
        if self.architecture.readout == "last":
            return side.exponent[-1, :]
        if self.architecture.readout == "mean":
            return xp.max(side.exponent, axis=0)
        return self._by_row(side.exponent, order)

    def _by_row(self, steps: Any, order: Any) -> Any:
        """(T, k) as one number per row of the Gram matrix."""
        xp = self.library.xp
        flat = xp.reshape(xp.permute_dims(steps, (1, 0)), (-1,))
        return flat if order is None else xp.take(flat, order, axis=0)

    def _weights(self, side: Side) -> Any:
        """(T, k), the norm of each step as a share of the mean (14), in units of the row's power of two."""
        xp = self.library.xp
        share = power(xp, side.exponent - xp.max(side.exponent, axis=0)[None, :])
        lengths = xp.asarray([float(length) for length in side.lengths], dtype=share.dtype, device=self.library.device)
        return side.norm * share / lengths[None, :]

    # -- blocks -----------------------------------------------------------------------------------------------

    def _block(self, rows: Panel, columns: Panel, *, same: bool) -> Pair:
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
        return Pair(*total)

    def _one_way(self, left: Side, right: Side, *, same: bool) -> tuple[Any, ...]:
        xp, network = self.library.xp, self.network
        if self.architecture.readout == "last":
            state = _last(in_step(network, left, right, same=same))
            return tuple(part * left.norm[-1, :, None] * right.norm[-1, None, :] for part in outputs(network, state))
        tables = rows_of_tables(network, left, right, same=same)
        if self.architecture.readout == "mean":
            return self._averaged(tables, left, right, (EVERY, None))
        norms = xp.permute_dims(right.norm, (1, 0))
        rows: tuple[list[Any], list[Any]] = ([], [])
        for t, state in enumerate(tables):
            for collected, part in zip(rows, outputs(network, state), strict=True):
                collected.append(part * left.norm[t, :, None, None] * norms)
        a, b = left.norm.shape[1], right.norm.shape[1]
        # (a, T, b, T') to one row per step of every sequence.
        return tuple(xp.reshape(xp.stack(each, axis=1), (a * left.steps, b * right.steps)) for each in rows)

    def _averaged(self, tables: Any, left: Side, right: Side, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """Sums over all steps of both sides, weighted by their norms; `rows` places the left side's sequences."""
        xp = self.library.xp
        weights, columns = self._weights(left), xp.permute_dims(self._weights(right), (1, 0))
        total: list[Any] = []
        for t, state in enumerate(tables):
            parts = [xp.sum(part * columns, axis=-1) * weights[(t, *rows)] for part in outputs(self.network, state)]
            total = parts if t == 0 else [a + b for a, b in zip(total, parts, strict=True)]
        return tuple(total)

    def _self_kernels(self, panel: Panel) -> Pair:
        """(rows,), each row with itself, its power of two taken out."""
        xp, network, total = self.library.xp, self.network, [0.0, 0.0]
        for side, order, factor in zip(panel.sides, panel.order, panel.factors, strict=True):
            if self.architecture.readout == "mean":
                tables = rows_of_tables(network, side, side, alone=True)
                parts = self._averaged(tables, side, side, (EVERY,))
            elif self.architecture.readout == "last":
                state = _last(in_step(network, side, side, alone=True))
                parts = tuple(part * side.norm[-1, :] ** 2 for part in outputs(network, state))
            else:
                steps = (outputs(network, state) for state in in_step(network, side, side, alone=True))
                parts = tuple(self._by_row(xp.stack(each) * side.norm**2, order) for each in zip(*steps, strict=True))
            total = [sum_ + part * factor**2 for sum_, part in zip(total, parts, strict=True)]
        return Pair(*total)

    def _inverse_root(self, panel: Panel) -> Any:
        """1/√d for the diagonal entries d, 0 where there is no variance; None if nothing is normalised."""
        if self.normalize is None:
            return None
        xp, own = self.library.xp, getattr(self._self_kernels(panel), self.normalize)
        some = own > 0
        return xp.where(some, 1 / xp.sqrt(xp.where(some, own, xp.ones_like(own))), xp.zeros_like(own))

    def _scaled(self, block: Any, rows: Panel, columns: Panel, root_x: Any, root_y: Any) -> Any:
        if self.normalize is not None:
            return block * root_x[:, None] * root_y[None, :]
        return _raised(self.library.xp, block, rows.exponent[:, None] + columns.exponent[None, :])

    # -- assembly ---------------------------------------------------------------------------------------------

    def _mirrored(self, block: Any) -> Any:
        """A block on the diagonal, symmetric to the last bit and, normalised, with ones on the diagonal."""
        xp = self.library.xp
        upper = xp.triu(block, k=1)
        own = xp.triu(block) - upper
        if self.normalize is not None:
            own = xp.where(own > 0, xp.ones_like(own), own)
        return upper + own + xp.matrix_transpose(upper)

    def _assembled(self, blocks: dict[tuple[int, int], Any], rows: int, columns: int) -> Any:
        xp = self.library.xp
        # Blocks leave the table as they are used: at no time are there two copies of the whole.
        strips = [xp.concat([blocks.pop((i, j)) for j in range(columns)], axis=1) for i in range(rows)]
        K = xp.concat(strips, axis=0)
        K = self._in_order(K, self.X, self._rows, axis=0)
        return self._in_order(K, self.Y, self._columns, axis=1)

    def _in_order(self, K: Any, batch: ArrayBatch, panels: list[list[int]], axis: int) -> Any:
        """Rows or columns back in the order of the user's sequences."""
        sequences = [i for panel in panels for i in panel]
        if sequences == sorted(sequences):
            return K
        lengths = batch.lengths if self.architecture.readout == "sequence" else [1] * len(batch)
        begins, at = {}, 0
        for i in sequences:
            begins[i] = at
            at += lengths[i]
        places = [begins[i] + t for i in range(len(batch)) for t in range(lengths[i])]
        return self.library.xp.take(K, self.library.xp.asarray(places, device=self.library.device), axis=axis)


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
    lengths = batch.lengths
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
