"""Inner products of gradients from their factors: ⟨Σ_t δ_t a_tᵀ, Σ_s δ'_s a'_sᵀ⟩ = Σ_{t,s} ⟨δ_t,δ'_s⟩⟨a_t,a'_s⟩.

Exact, and no gradient is ever formed: two matrix products over steps per layer, tile by tile. NumPy does it: the tiles
have all kinds of shapes, and compiling each would take longer than computing it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Architecture
from .gradients import Trace
from .weights import layer_scales, readout_scale

Array = NDArray[Any]


def tangent_overlap(architecture: Architecture, left: Trace, right: Trace, outputs: int, tile: int) -> Array:
    """⟨∇f, ∇f'⟩ for all outputs of two traces, (P, P'); at most `tile` rows of signals meet at a time."""
    width, channels = left.pooled.shape[1], left.below[0].shape[1]
    total = np.zeros([len(each.pooled) * outputs for each in (left, right)], dtype=left.pooled.dtype)
    # The gradient by V: an output shares its readout weights only with the same component.
    pooled = readout_scale(architecture, width) ** 2 * (left.pooled @ right.pooled.T)
    for component in range(outputs):
        total[component::outputs, component::outputs] = pooled
    tiles = _tied_tiles if architecture.tied else _untied_tiles
    for layer in range(architecture.depth):
        w, u, b = layer_scales(architecture, layer, width, channels)

        def inputs(steps: Any, steps2: Any, layer: int = layer, w: float = w, u: float = u, b: float = b) -> Array:
            """Σ over W, U, b of ⟨a, a'⟩, each times the square of the factor in front."""
            products = w**2 * (left.previous[layer][steps] @ right.previous[layer][steps2].T)
            products += u**2 * (left.below[layer][steps] @ right.below[layer][steps2].T)
            products += b**2
            return np.asarray(products)

        tiles(total, left, right, left.signals[layer], right.signals[layer], inputs, tile)
    return total


def output_overlap(architecture: Architecture, left: Trace, right: Trace) -> Array:
    """σ_v²/n Σ_i h_i h'_i: the covariance of f and f' over draws of the readout, whatever the parameterisation."""
    width = left.pooled.shape[1]
    return np.asarray(architecture.sigma_v**2 / width * (left.pooled @ right.pooled.T))


def _tied_tiles(total: Array, left: Trace, right: Trace, delta: Array, delta2: Array, inputs: Any, tile: int) -> None:
    """Every step of one sequence meets every step of the other: they share their weights."""
    for rows in _slices(len(delta), tile):
        step, starts, here = _segments(left, rows)
        for columns in _slices(len(delta2), tile):
            step2, starts2, there = _segments(right, columns)
            low, low2 = step.min(), step2.min()
            a = inputs(slice(low, step.max() + 1), slice(low2, step2.max() + 1))
            products = delta[rows] @ delta2[columns].T
            products *= a[step - low][:, step2 - low2]
            total[here, there] += np.add.reduceat(np.add.reduceat(products, starts, axis=0), starts2, axis=1)


def _untied_tiles(total: Array, left: Trace, right: Trace, delta: Array, delta2: Array, inputs: Any, tile: int) -> None:
    """Steps share weights only with the same step, and an output has one row per step."""
    for time in range(min(left.time.max(), right.time.max()) + 1):
        at, at2 = np.flatnonzero(left.time == time), np.flatnonzero(right.time == time)
        for rows in _slices(len(at), tile):
            for columns in _slices(len(at2), tile):
                i, j = at[rows], at2[columns]
                products = delta[i] @ delta2[j].T
                products *= inputs(left.step[i], right.step[j])
                total[np.ix_(left.output[i], right.output[j])] += products


def _slices(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _segments(trace: Trace, rows: slice) -> tuple[NDArray[np.int64], NDArray[np.int64], slice]:
    """Steps of the rows, where a new output begins among them, and which outputs they belong to."""
    output = trace.output[rows]
    starts = np.flatnonzero(np.diff(output, prepend=-1))
    return trace.step[rows], starts, slice(int(output[0]), int(output[-1]) + 1)
