"""The reference engine: theory.md, section 3, equation by equation, in NumPy and float64.

For reading and for tests. One pair at a time, one row of the (t, s) table at a time, never tuned. It shares no
arithmetic with the fused engine: raw covariances instead of unit vectors, textbook duals instead of polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..architecture import LAYER_SIGMAS, Architecture, Direction
from ..sequences import SequenceBatch
from .tiles import Block, Scale, Tile

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tables:
    """Kernels between every step t of one sequence and every step s of another, each (T, T')."""

    nngp: Array
    ntk: Array


def variances(architecture: Architecture, x: Array) -> Array:
    """q[l, t], the variance of the pre-activation of layer l at step t; x is (T, m)."""
    depth, (steps, channels) = architecture.depth, x.shape
    phi = architecture.activation
    q = np.zeros((depth, steps))
    for t in range(steps):
        for layer in range(depth):
            recurrent = _self_dual(phi, q[layer, t - 1]) if t > 0 else architecture.sigma_h[layer] ** 2
            below = x[t] @ x[t] / channels if layer == 0 else _self_dual(phi, q[layer - 1, t])
            q[layer, t] = (
                architecture.sigma_w[layer] ** 2 * recurrent
                + architecture.sigma_u[layer] ** 2 * below
                + architecture.sigma_b[layer] ** 2
            )
    return q


def _self_dual(phi: object, q: float) -> float:
    one = np.array([q])
    return float(phi.dual(one, one, one)[0][0])  # type: ignore[attr-defined]


def pair_tables(architecture: Architecture, x: Array, y: Array, *, same: bool) -> Tables:
    """Both kernels for all steps of `x` (T, m) and `y` (T', m); `same` if they are one and the same sequence."""
    depth, channels = architecture.depth, x.shape[1]
    steps_x, steps_y = len(x), len(y)
    phi = architecture.activation
    qx, qy = variances(architecture, x), variances(architecture, y)

    sigma = np.zeros((depth, steps_x, steps_y))  # Σ[l, t, s]
    theta = np.zeros((depth, steps_x, steps_y))  # Θ[l, t, s]
    v = np.zeros((depth, steps_x, steps_y))  # V of Σ[l, t, s]
    v_dot = np.zeros((depth, steps_x, steps_y))  # V' of Σ[l, t, s]
    for t in range(steps_x):
        for layer in range(depth):
            sw2, su2 = architecture.sigma_w[layer] ** 2, architecture.sigma_u[layer] ** 2
            gw, gu, gb = architecture.gradient_factors(layer, channels)
            # R[l, t, s] = V at (t-1, s-1); its tangent V' Θ likewise. Missing at the borders of the table.
            recurrent, recurrent_tangent = np.zeros(steps_y), np.zeros(steps_y)
            if t > 0:
                recurrent[1:] = v[layer, t - 1, :-1]
                recurrent_tangent[1:] = v_dot[layer, t - 1, :-1] * theta[layer, t - 1, :-1]
            elif same:
                recurrent[0] = architecture.sigma_h[layer] ** 2
            # `inner` is what U multiplies: <x_t, y_s> at the bottom, V and its tangent V' Θ of the layer below.
            if layer == 0:
                inner, below_tangent, forward = y @ x[t], np.zeros(steps_y), su2 / channels
            else:
                inner, below_tangent, forward = (
                    v[layer - 1, t],
                    v_dot[layer - 1, t] * theta[layer - 1, t],
                    su2,
                )
            sigma[layer, t] = sw2 * recurrent + forward * inner + architecture.sigma_b[layer] ** 2
            theta[layer, t] = gw * recurrent + gu * inner + gb + sw2 * recurrent_tangent + su2 * below_tangent
            if same:
                # A step with itself: Σ is the variance by definition, not up to rounding (arccos would notice).
                sigma[layer, t, t] = qx[layer, t]
            if not architecture.tied:
                # Weights of different steps are independent (Theorem 3).
                other = np.arange(steps_y) != t
                sigma[layer, t, other] = theta[layer, t, other] = 0.0
            v[layer, t], v_dot[layer, t] = phi.dual(qx[layer, t], qy[layer], sigma[layer, t])

    nngp = architecture.sigma_v**2 * v[-1]
    ntk = architecture.readout_factor * v[-1] + architecture.sigma_v**2 * v_dot[-1] * theta[-1]
    return Tables(nngp, ntk)


def read_out(architecture: Architecture, tables: Tables) -> Tables:
    """The tables after the readout: one number each, or the tables themselves for `sequence`."""
    if architecture.readout == "last":
        return Tables(tables.nngp[-1:, -1:], tables.ntk[-1:, -1:])
    if architecture.readout == "mean":
        return Tables(tables.nngp.mean(keepdims=True), tables.ntk.mean(keepdims=True))
    return tables


def moved(architecture: Architecture, direction: Direction, distance: float) -> Architecture:
    """The network `distance` further along `direction` in log-hyperparameter space."""
    changes: dict[str, Any] = {"sigma_v": architecture.sigma_v * np.exp(distance * direction.sigma_v)}
    for name in LAYER_SIGMAS:
        pairs = zip(getattr(architecture, name), getattr(direction, name), strict=True)
        changes[name] = tuple(sigma * np.exp(distance * move) for sigma, move in pairs)
    return replace(architecture, **changes)


class ReferenceProblem:
    """A Gram computation by the reference engine, one row of sequences per tile; see `rntk.engine.tiles`."""

    def __init__(
        self,
        architecture: Architecture,
        X: SequenceBatch,
        Y: SequenceBatch | None,
        directions: list[Direction],
        dtype: np.dtype[Any],
        normalizers: tuple[Scale | None, Scale | None] = (None, None),
        threads: int = 1,
        gradient_of: str = "ntk",
    ) -> None:
        self.gradient_of = gradient_of
        self.architecture, self.directions, self.dtype = architecture, directions, dtype
        self.X, self.Y = X, X if Y is None else Y
        self.symmetric = Y is None
        self.n_directions = len(directions)
        self._normalizers = (normalizers[0], normalizers[0] if Y is None else normalizers[1])
        self._row_offsets, self._column_offsets = (
            batch.offsets if architecture.readout == "sequence" else np.arange(len(batch) + 1)
            for batch in (self.X, self.Y)
        )
        self.shape = (int(self._row_offsets[-1]), int(self._column_offsets[-1]))
        steps = int(self.Y.lengths.sum())
        self.tiles = [Tile((0, i, i + 1), 0, float(length * steps)) for i, length in enumerate(X.lengths)]

    def compute(self, tile: Tile) -> Block:
        i = tile.rows[1]
        first = i if self.symmetric else 0
        pairs = [self._pair(i, j) for j in range(first, len(self.Y))]
        row_index = np.arange(self._row_offsets[i], self._row_offsets[i + 1])
        column_index = np.arange(self._column_offsets[first], self._column_offsets[-1])
        nngp, ntk = (np.concatenate([pair[k] for pair in pairs], axis=1) for k in (0, 1))
        gradient = np.concatenate([pair[2] for pair in pairs], axis=2)
        scale = np.ones((len(row_index), len(column_index)))
        left, right = self._normalizers
        if left is not None and right is not None:
            scale = np.outer(np.ldexp(*left)[row_index], np.ldexp(*right)[column_index])
        valid = np.maximum(row_index - column_index[0], 0) if self.symmetric else np.zeros_like(row_index)
        with np.errstate(over="ignore"):
            nngp, ntk, gradient = ((part * scale).astype(self.dtype) for part in (nngp, ntk, gradient))
        return Block(row_index, column_index, nngp, ntk, gradient, valid)

    def _pair(self, i: int, j: int) -> tuple[Array, Array, Array]:
        x, y = (batch[k].astype(np.float64) for batch, k in ((self.X, i), (self.Y, j)))
        same = self.symmetric and i == j

        def kernels(architecture: Architecture) -> Tables:
            return read_out(architecture, pair_tables(architecture, x, y, same=same))

        here = kernels(self.architecture)
        # Central differences of sixth order: an oracle for the fused engine's analytic gradients.
        h, weights = 3e-3, {1: 45, 2: -9, 3: 1}
        gradient = np.zeros((self.n_directions, *here.ntk.shape))
        for p, direction in enumerate(self.directions):
            for k, weight in weights.items():
                ahead, behind = (kernels(moved(self.architecture, direction, way * k * h)) for way in (1, -1))
                change = getattr(ahead, self.gradient_of) - getattr(behind, self.gradient_of)
                gradient[p] += weight * change / (60 * h)
        return here.nngp, here.ntk, gradient


def self_kernels(
    architecture: Architecture, batch: SequenceBatch, dtype: np.dtype[Any], threads: int = 1
) -> tuple[Scale, Scale]:
    """(nngp, ntk) on the diagonal of the Gram matrix."""
    tables = [
        read_out(architecture, pair_tables(architecture, x, x, same=True))
        for x in (x.astype(np.float64) for x in batch)
    ]
    diagonals = [np.concatenate([np.diag(getattr(each, kind)) for each in tables]) for kind in ("nngp", "ntk")]
    return tuple(Scale(each, np.zeros(len(each), dtype=np.int64)) for each in diagonals)  # type: ignore[return-value]
