"""The fused engine: unit vectors of every step, swept by compiled code; fast, and exact where textbook forms cancel.

walk (variances of each sequence) → units (unit vectors) → stack (all numbers of a batch as rows) → side (sorted, packed
into lanes) → tiles (pairs, by the compiled `sweep`); `reverse` is the recursion run backwards, for input slopes.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ...sequences import SequenceBatch
from .. import scale
from ..contract import InputSlopes, Plan, Values
from ..scale import Scale
from ..sides import HostEngine
from .side import FusedWay, make_way, swept_directions, working_precision
from .stack import Needs, needs_of
from .tiles import Tile, Tiles
from .units import self_tangents, unit_parts
from .walk import walk

Index = NDArray[np.int64]


class FusedEngine(HostEngine):
    """For all that runs on a CPU."""

    name = "fused"
    has_sigma_slopes = True

    def prepare_way(self, plan: Plan, batch: SequenceBatch, needs: Needs | None) -> FusedWay:
        return make_way(plan, batch, needs)

    def way_needs(self, plan: Plan, batches: tuple[SequenceBatch, ...]) -> Needs:
        how = working_precision(plan), [plan.directions[p] for p in swept_directions(plan)]
        return reduce(Needs.union, (needs_of(plan.network, batch, *how) for batch in batches))

    def compare_ways(self, plan: Plan, a: FusedWay, b: FusedWay | None) -> Values:  # type: ignore[override]
        return Tiles(plan, a.with_plain_scales(), None if b is None else b.with_plain_scales()).run()

    def own_kernels(self, plan: Plan, batch: SequenceBatch) -> tuple[Scale, Scale]:
        """O(N T) for readouts that need no table of all pairs of steps, one table per sequence for `mean`."""
        network = plan.network
        if network.readout.averages:
            return self._own_means(plan, batch)
        path = walk(network, batch)
        theta, exponent = self_tangents(network, batch, path, unit_parts(network, batch, path))
        at = np.arange(len(batch.values)) if network.readout.per_step else batch.offsets[1:] - 1
        square, slope = path.moments.square[-1, at], path.moments.slope[-1, at]
        variance, power = network.sigma_v**2, 2 * path.exponent[-1, at]
        # Θ = (readout's own) V + σ_v² V' Θ[L,T]; the second term has the exponent of Θ̂ on top.
        own = Scale(network.readout_factor * square, power)
        tangent = Scale(variance * square * slope * theta[-1, at], power + exponent[-1, at])
        return Scale(variance * square, power), scale.add(own, tangent)

    def input_slopes(self, plan: Plan, batch: SequenceBatch, left: Index, right: Index) -> InputSlopes:
        """In one reverse pass per pair."""
        from ..slopes import PairGradients

        return PairGradients(plan, batch)(left, right)

    def _own_means(self, plan: Plan, batch: SequenceBatch) -> tuple[Scale, Scale]:
        """The whole (t, s) table of every sequence with itself, summed with the scale of its weights taken out."""
        plan = Plan(plan.network, np.dtype(np.float64), ("nngp", "ntk"), run=plan.run)
        way = make_way(plan, batch)
        nngp, ntk = np.empty(len(batch)), np.empty(len(batch))
        exponent = np.empty(len(batch), dtype=np.int64)
        exponent[way.order] = 2 * way.value_scale.exponent
        # The scales stay apart: the tables are summed as if they had none.
        tiles = Tiles(plan, way.without_exponents(), None)

        def finish(tile: Tile) -> float:
            block = tiles.compute(tile)
            at = np.arange(tile.begin, tile.end) - way.right[tile.right].begin
            for out, values in ((nngp, block.nngp), (ntk, block.ntk)):
                out[block.row_index] = values[np.arange(len(at)), at]
            return tile.cost

        plan.run.each(finish, tiles.plan_own())
        return Scale(nngp, exponent), Scale(ntk, exponent)
