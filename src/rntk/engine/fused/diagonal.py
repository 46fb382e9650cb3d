"""Kernels of each sequence with itself: O(N T) for `last` and `sequence`, one table each for `mean`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...architecture import Architecture
from ...sequences import SequenceBatch
from .. import scales
from ..tiles import Scale
from .problem import FusedProblem
from .stack import build_stack, top_exponents
from .units import self_tangents, unit_parts
from .walk import walk

Array = NDArray[np.float64]


def self_kernels(architecture: Architecture, batch: SequenceBatch, dtype: np.dtype[Any]) -> tuple[Scale, Scale]:
    """(nngp, ntk) on the diagonal of the Gram matrix, one per sequence; per step for `sequence`."""
    if architecture.readout == "mean":
        return _mean(architecture, batch, dtype)
    path = walk(architecture, batch)
    theta, exponent = self_tangents(architecture, batch, path, unit_parts(architecture, batch, path))
    at = batch.offsets[1:] - 1 if architecture.readout == "last" else np.arange(len(batch.values))
    square, slope = path.moments.square[-1, at], path.moments.slope[-1, at]
    shift = exponent[-1, at]
    variance = architecture.sigma_v**2
    scale = 2 * path.exponent[-1, at]
    # Θ = (readout's own) V + σ_v² V' Θ[L,T]; the second term has the exponent of Θ̂ on top.
    own = Scale(architecture.readout_factor * square, scale)
    tangent = Scale(variance * square * slope * theta[-1, at], scale + shift)
    return Scale(variance * square, scale), scales.add(own, tangent)


def _mean(architecture: Architecture, batch: SequenceBatch, dtype: np.dtype[Any]) -> tuple[Scale, Scale]:
    """The whole (t, s) table of every sequence with itself, summed with the scale of its weights taken out."""
    top = top_exponents(build_stack(architecture, batch, dtype, []), batch)
    unscaled = Scale(np.ones(len(batch)), -top)
    problem = FusedProblem(
        architecture, batch, None, [], np.dtype(np.float64), (unscaled, unscaled), self_pairs_only=True
    )
    nngp, ntk = np.empty(len(batch)), np.empty(len(batch))
    for tile in problem.tiles:
        block = problem.compute(tile)
        nngp[block.row_index], ntk[block.row_index] = block.nngp[:, 0], block.ntk[:, 0]
    return Scale(nngp, 2 * top), Scale(ntk, 2 * top)
