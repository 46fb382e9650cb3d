"""Engines of the CPU: both directions of reading, normalisation and order, once for all of them.

Such an engine writes one direction of reading and knows nothing of the rest: `prepare_way`, `compare_ways` and
`own_kernels` is all it offers.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..network import READOUTS, Network
from ..sequences import SequenceBatch, check_channels_agree
from . import scale
from .contract import Engine, Plan, Reader, Values, refuse_overflow
from .scale import Scale

Index = NDArray[np.int64]

# Overflow is looked for in the result, where it can be named, not warned about on the way there.
quietly = np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")


class Way(Protocol):
    """A batch read in one direction, prepared; `needs` is what two of them must have alike to be compared."""

    @property
    def needs(self) -> Any: ...

    @property
    def nbytes(self) -> int: ...

    def scaled(self, by: Scale) -> Any:
        """The same with kernel values multiplied by a number per row of the Gram matrix."""


@dataclass(frozen=True)
class Side:
    """A batch prepared for a plan: read forwards and, if the network does, backwards."""

    plan: Plan
    batch: SequenceBatch
    ways: tuple[Way, ...]
    normalizer: Scale | None

    @property
    def needs(self) -> list[Any]:
        return [way.needs for way in self.ways]

    @property
    def nbytes(self) -> int:
        """Memory that it takes, about."""
        return sum(way.nbytes for way in self.ways)


class HostEngine(Engine):
    """An engine that reads batches in host memory, one direction at a time."""

    @abstractmethod
    def prepare_way(self, plan: Plan, batch: SequenceBatch, needs: Any) -> Way:
        """Everything about each sequence alone, with at least what `needs` says, None for nothing."""

    def way_needs(self, plan: Plan, batches: tuple[SequenceBatch, ...]) -> Any:
        """The needs of one direction of reading."""
        return None

    @abstractmethod
    def compare_ways(self, plan: Plan, a: Way, b: Way | None) -> Values:
        """Gram matrices of one direction of reading."""

    @abstractmethod
    def own_kernels(self, plan: Plan, batch: SequenceBatch) -> tuple[Scale, Scale]:
        """(nngp, ntk) of each sequence, or step, with itself in one direction of reading."""

    def read(self, reader: Reader, *named: tuple[str, Any]) -> list[Any]:
        return [reader(data, name) for name, data in named]

    @quietly
    def needs(self, plan: Plan, *batches: SequenceBatch) -> list[Any]:
        ways = zip(*(directions_of(plan.network, batch) for batch in batches), strict=True)
        return [self.way_needs(plan, each) for each in ways]

    @quietly
    def prepare(self, plan: Plan, batch: SequenceBatch, needs: Any = None) -> Side:
        self.check(plan)
        own = None
        if plan.network.normalize:
            own = (self.largest_steps if plan.rough else self.own_in_all_directions)(plan, batch)
        return self._side(plan, batch, own and scale.inverse_root(own), needs or [])

    def _side(self, plan: Plan, batch: SequenceBatch, normalizer: Scale | None, needs: list[Any]) -> Side:
        ways = []
        for k, each in enumerate(directions_of(plan.network, batch)):
            way = self.prepare_way(plan, each, needs[k] if needs else None)
            if normalizer is not None:
                at = _flip(plan.network, batch) if k else None
                way = way.scaled(normalizer if at is None else scale.take(normalizer, at))
            ways.append(way)
        return Side(plan, batch, tuple(ways), normalizer)

    @quietly
    def pairs(self, a: Side, b: Side | None = None) -> Values:
        if b is not None:
            check_channels_agree([a.batch, b.batch], ["X", "Y"])
            a, b = self._agreeing(a, b)
        plan, total = a.plan, None
        for k, way in enumerate(a.ways):
            values = self.compare_ways(plan, way, None if b is None else b.ways[k])
            if total is None:
                total = values
            else:
                rows, columns = (_flip(plan.network, side.batch) for side in (a, a if b is None else b))
                total = _sum(total, values, rows, columns)
        assert total is not None
        if plan.network.normalize and b is None:
            total = _with_ones(plan, total)
        for K in (total.nngp, total.ntk, *np.moveaxis(total.gradient, 2, 0)):
            if K is not None:
                refuse_overflow(plan, K, a.batch, None if b is None else b.batch)
        return total

    def _agreeing(self, a: Side, b: Side) -> tuple[Side, Side]:
        """Both sides with what either needs, such as terms of an expansion."""
        if a.needs == b.needs:
            return a, b
        a = self._side(a.plan, a.batch, a.normalizer, b.needs)
        return a, b if a.needs == b.needs else self._side(b.plan, b.batch, b.normalizer, a.needs)

    @quietly
    def diagonal(self, plan: Plan, batch: SequenceBatch) -> NDArray[Any]:
        self.check(plan)
        own = self.own_in_all_directions(plan, batch)
        if plan.network.normalize:
            return (own.mantissa > 0).astype(plan.dtype)
        values = scale.to_float(own).astype(plan.dtype)
        refuse_overflow(plan, values[None], batch, batch)
        return values

    def own_in_all_directions(self, plan: Plan, batch: SequenceBatch) -> Scale:
        """The kernel of the network's kind of each sequence with itself, over all directions."""
        kind = ("nngp", "ntk").index(plan.network.kind)
        forwards, *backwards = (self.own_kernels(plan, each)[kind] for each in directions_of(plan.network, batch))
        if not backwards:
            return forwards
        at = _flip(plan.network, batch)
        return scale.add(forwards, backwards[0] if at is None else scale.take(backwards[0], at))

    def largest_steps(self, plan: Plan, batch: SequenceBatch) -> Scale:
        """The largest kernel of a step of each sequence with itself, to a factor of two, O(T); no mean is larger."""
        steps = replace(plan, network=replace(plan.network, readout=READOUTS["sequence"]))
        return scale.largest(self.own_in_all_directions(steps, batch), batch.offsets[:-1])


def directions_of(network: Network, batch: SequenceBatch) -> list[SequenceBatch]:
    """The batch as it is read: forwards and, in a network that does both, backwards."""
    return [batch, batch.reversed()] if network.bidirectional else [batch]


def _flip(network: Network, batch: SequenceBatch) -> Index | None:
    """Where step t of a sequence read forwards stands in the Gram matrix of the batch read backwards."""
    if not network.readout.per_step:
        return None
    return np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)])


def _sum(a: Values, b: Values, rows: Index | None, columns: Index | None) -> Values:
    """a + b, with the rows and columns of b put in the order given."""
    parts = []
    for first, second in zip(a, b, strict=True):
        if second is not None and rows is not None and columns is not None:
            second = second[np.ix_(rows, columns)]
        parts.append(None if first is None else first + second)
    return Values(*parts)


def _with_ones(plan: Plan, values: Values) -> Values:
    """Exact ones on a normalised diagonal, and derivatives by the quotient rule."""
    K = getattr(values, plan.network.kind)
    gradient = values.gradient
    if gradient.size:
        # Of K_ij / √(d_i d_j); K and its derivatives are already divided, up to rounding, by √(d_i d_j).
        diagonal, moving = np.einsum("ii->i", K), np.einsum("iip->ip", gradient)
        rate = np.divide(moving, diagonal[:, None], out=np.zeros_like(moving), where=diagonal[:, None] > 0) / 2
        gradient = gradient - K[:, :, None] * (rate[:, None] + rate[None])
    diagonal = np.einsum("ii->i", K)
    diagonal[diagonal > 0] = 1.0
    return values._replace(gradient=gradient)
