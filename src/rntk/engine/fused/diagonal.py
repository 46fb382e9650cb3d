"""Kernels of each sequence with itself: O(N T) for `last` and `sequence`, one table each for `mean`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...network import Architecture
from ...runtime import run_in_threads
from ...sequences import SequenceBatch
from .. import scales
from ..tiles import Scale, Tile
from .problem import FusedProblem
from .units import self_tangents, unit_parts
from .walk import walk

Array = NDArray[np.float64]


def self_kernels(
    architecture: Architecture, batch: SequenceBatch, dtype: np.dtype[Any], threads: int = 1
) -> tuple[Scale, Scale]:
    """(nngp, ntk) on the diagonal of the Gram matrix, one per sequence; per step for `sequence`."""
    if architecture.readout == "mean":
        return _mean(architecture, batch, threads)
    path = walk(architecture, batch, threads)
    theta, exponent = self_tangents(architecture, batch, path, unit_parts(architecture, batch, path, threads))
    at = batch.offsets[1:] - 1 if architecture.readout == "last" else np.arange(len(batch.values))
    square, slope = path.moments.square[-1, at], path.moments.slope[-1, at]
    shift = exponent[-1, at]
    variance = architecture.sigma_v**2
    scale = 2 * path.exponent[-1, at]
    # Θ = (readout's own) V + σ_v² V' Θ[L,T]; the second term has the exponent of Θ̂ on top.
    own = Scale(architecture.readout_factor * square, scale)
    tangent = Scale(variance * square * slope * theta[-1, at], scale + shift)
    return Scale(variance * square, scale), scales.add(own, tangent)


def _mean(architecture: Architecture, batch: SequenceBatch, threads: int) -> tuple[Scale, Scale]:
    """The whole (t, s) table of every sequence with itself, summed with the scale of its weights taken out."""
    problem = FusedProblem(architecture, batch, None, [], np.dtype(np.float64), self_pairs_only=True, threads=threads)
    nngp, ntk = np.empty(len(batch)), np.empty(len(batch))
    exponent = np.empty(len(batch), dtype=np.int64)
    exponent[problem.left.order] = 2 * problem.left.value_scale.exponent
    # The scales stay apart: the tables are summed as if they had none.
    problem.left = problem.right = problem.left.without_exponents()

    def finish(tile: Tile) -> float:
        block = problem.compute(tile)
        nngp[block.row_index], ntk[block.row_index] = block.nngp[:, 0], block.ntk[:, 0]
        return tile.cost

    run_in_threads(finish, problem.tiles, threads)
    return Scale(nngp, exponent), Scale(ntk, exponent)
