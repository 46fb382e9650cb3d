"""Kernel ridge regression with every kernel of the paper's grids at once, for few and short sequences.

What makes a thousand repetitions of Figure 4 affordable: the kernels of a grid run side by side, as lanes of compiled
loops, and one eigendecomposition of each Gram matrix serves all ridges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ...activations import relu
from ...activations.compiled import compile_function, inlined, wide_vectors
from ...activations.signatures import FARTHEST, forward_signature
from ...sequences import SequenceBatch
from ..protocol import RIDGES, GridPoint, Split, paper_grid

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Kernels that run side by side: enough to make loops over them long, few enough for their matrices to stay in cache.
LANES = 64
#: The least ridge, as a share of the trace: well above rounding, and well below what a ridge of the grid would be.
LEAST_RIDGE = 1e-11
HALF_ROOT = 0.5**0.5


@cache
def candidates(family: str) -> list[GridPoint]:
    return paper_grid(family)


def cross_validate(family: str, batch: SequenceBatch, X: Array, y: Array, folds: list[Split]) -> Array:
    """(kernels, ridges): mean squared error of kernel ridge regression on each fold, averaged over folds.

    Parameters
    ----------
    batch, X
        The same windows, as they are (for "rntk") and padded (for the others).
    y : ndarray
        (n,).
    """
    losses = np.empty((len(candidates(family)), len(RIDGES)))
    for kernels, K in grams(family, batch, X):
        losses[kernels] = ridge_losses(K, y, folds, RIDGES)[: len(kernels)]
    return losses


def grams(family: str, batch: SequenceBatch, X: Array) -> Iterator[tuple[Index, Array]]:
    """Gram matrices of the paper's grid, block by block: which kernels, and (n, n, lanes) with one of them per lane.

    Lanes fill whole vectors; those past the last kernel repeat it.
    """
    points = np.array([tuple(each.settings.values()) for each in candidates(family)], dtype=np.float64).T
    count = points.shape[1]
    if family == "rntk":
        for first in range(0, count, LANES):
            kernels = np.arange(first, min(first + LANES, count))
            yield kernels, recurrent_grams(batch, *points[:, _filled(kernels)])
    elif family == "ntk":
        depths = int(points[0].max())
        kernels = np.arange(count // depths)  # the grid goes depth by depth, with the same deviations in each
        sigma_w, sigma_b = points[1:, _filled(kernels)]
        for depth, K in enumerate(feedforward_grams(X, sigma_w, sigma_b, depths)):
            yield kernels + depth * len(kernels), K
    else:
        kernels = np.arange(count)
        values = points[:, _filled(kernels)]
        if family == "rbf":
            yield kernels, np.exp(-np.square(X[:, None] - X[None]).sum(axis=2)[:, :, None] * values[0])
        else:
            yield kernels, ((X @ X.T)[:, :, None] + values[1]) ** values[0]


def _filled(kernels: Index) -> Index:
    return np.concatenate([kernels, np.repeat(kernels[-1:], -len(kernels) % 8)])


def recurrent_grams(batch: SequenceBatch, sigma_w: Array, sigma_b: Array, sigma_h: Array) -> Array:
    """(n, n, lanes): `RNTK(sigma_w=…, sigma_b=…, sigma_h=…)(batch)` of one channel for every lane."""
    order = np.argsort(-batch.lengths, kind="stable")
    turned = batch.take(order)
    n, lanes = len(batch), len(sigma_w)
    gamma, over = np.empty((2, len(batch.values), lanes))
    psi, w, Q = np.empty((3, n, lanes))
    out = np.empty((n, n, lanes))
    compiled_recurrent()(
        *_activation(lanes),
        np.array(turned.values[:, 0], dtype=np.float64),
        turned.offsets.copy(),
        order,
        *(np.array(sigma, dtype=np.float64) for sigma in (sigma_w, sigma_b, sigma_h)),
        *(gamma, over, psi, w, Q, out),
    )
    return out


def feedforward_grams(X: Array, sigma_w: Array, sigma_b: Array, depths: int) -> Array:
    """(depths, n, n, lanes): `NTK(depth=…, sigma_w=…, sigma_b=…)(X)` for every depth from 1 on and every lane."""
    n, lanes = len(X), len(sigma_w)
    square = np.square(X[:, None] - X[None]).mean(axis=2)
    gamma, over, psi = np.empty((3, depths, n, lanes))
    w, Q = np.empty((2, n, lanes))
    out = np.empty((depths, n, n, lanes))
    compiled_feedforward()(
        *_activation(lanes),
        square,
        np.square(X).mean(axis=1),
        *(np.array(sigma, dtype=np.float64) for sigma in (sigma_w, sigma_b)),
        *(gamma, over, psi, w, Q, out),
    )
    return out


def ridge_losses(K: Array, y: Array, folds: list[Split], ridges: Sequence[float]) -> Array:
    """(lanes, ridges): mean squared error of each fold, averaged over folds, for Gram matrices (n, n, lanes).

    One eigendecomposition of each Gram matrix serves all ridges.
    """
    K, loss = np.ascontiguousarray(np.moveaxis(K, 2, 0)), np.zeros((K.shape[2], len(ridges)))
    for train, test in folds:
        inner, outer = K[:, train[:, None], train], K[:, test[:, None], train]
        values, vectors = np.linalg.eigh(inner)
        ridge = np.maximum(ridges, LEAST_RIDGE * np.trace(inner, axis1=1, axis2=2)[:, None])
        dual = (y[train] @ vectors)[:, None] / (values[:, None] + ridge[:, :, None])
        errors = dual @ (outer @ vectors).transpose(0, 2, 1) - y[test]
        loss += np.square(errors).mean(axis=2) / len(folds)
    return loss


_double = np.dtype(np.float64)
_vector, _table, _cube, _cubes = (types.Array(types.float64, k, "C") for k in (1, 2, 3, 4))
_index = types.Array(types.int64, 1, "C")


def _activation(lanes: int) -> tuple[Any, Array, Array]:
    """How lanes pass through ReLU, which keeps no marks; and room for u, Θ̂ and what ReLU doesn't read."""
    return relu.forward(_double), relu.parameters, np.empty((3, lanes))


@cache
def compiled_recurrent() -> Any:
    forward = types.FunctionType(forward_signature(_double))
    one = (forward, _vector, _table, _vector, _index, _index, *(_vector,) * 3)
    return compile_function(_recurrent, types.void(*one, *(_table,) * 5, _cube))


@cache
def compiled_feedforward() -> Any:
    forward = types.FunctionType(forward_signature(_double))
    one = (forward, _vector, _table, _table, *(_vector,) * 3)
    return compile_function(_feedforward, types.void(*one, *(_cube,) * 3, _table, _table, _cubes))


def _recurrent(
    forward: Any, parameters: Any, spare: Any, x: Any, offsets: Any, order: Any, sigma_w: Any, sigma_b: Any,
    sigma_h: Any, gamma: Any, over: Any, psi: Any, w: Any, Q: Any, out: Any,
) -> None:  # fmt: skip
    """theory.md, (20) to (23) and (26), for σ_u = 1 and one channel; windows come longest first.

    gamma, over : (S, lanes), γ and 1/√q. psi : (n, lanes), ψ of the step before, in the end of the last one.
    """
    wide_vectors()
    n, lanes = offsets.size - 1, sigma_w.size
    distance, theta, none = spare[0], spare[1], spare[2]
    for i in range(n):
        p = psi[i]
        for k in range(lanes):
            p[k] = sigma_h[k]
        for t in range(offsets[i], offsets[i + 1]):
            _walk(x[t] * x[t], sigma_w, sigma_b, p, gamma[t], over[t], p)
    for i in range(n):
        # All windows before are at least as long: aligned at the last step, window i is compared from its first on.
        _begin(w, Q, i)
        for a in range(offsets[i], offsets[i + 1]):
            back = offsets[i + 1] - a
            ga, ra, xa = gamma[a], over[a], x[a]
            for j in range(i + 1):
                b = offsets[j + 1] - back
                gb, rb, xb, wj, qj = gamma[b], over[b], x[b], w[j], Q[j]
                for k in range(lanes):
                    dg = ga[k] - gb[k]
                    dx = xa * ra[k] - xb * rb[k]
                    db = sigma_b[k] * (ra[k] - rb[k])
                    g = ga[k] * gb[k]
                    u = g * wj[k] + 0.5 * (dg * dg + dx * dx + db * db)
                    distance[k] = u if u <= 1.0 else min(u - 2.0, FARTHEST)
                    theta[k] = (1 - u) + g * qj[k]
                forward(parameters, none, spare[:0], none, distance, theta, wj, qj, np.uint64(0), np.uint64(lanes))
        for j in range(i + 1):
            _read_out(psi[i], psi[j], w[j], Q[j], out[order[i], order[j]], out[order[j], order[i]])


def _feedforward(
    forward: Any, parameters: Any, spare: Any, distance: Any, square: Any, sigma_w: Any, sigma_b: Any,
    gamma: Any, over: Any, psi: Any, w: Any, Q: Any, out: Any,
) -> None:  # fmt: skip
    """The same for vectors: what a layer gets from the one below is what a step gets from the one before.

    distance : (n, n), |x - x'|²/m. square : (n,), |x|²/m. gamma, over, psi : (depths, n, lanes).
    """
    wide_vectors()
    depths, n, lanes = gamma.shape
    near, theta, none = spare[0], spare[1], spare[2]
    for i in range(n):
        for layer in range(depths):
            if layer == 0:
                p = psi[0, i]
                for k in range(lanes):
                    p[k] = math.sqrt(square[i])
            _walk(0.0, sigma_w, sigma_b, psi[max(layer - 1, 0), i], gamma[layer, i], over[layer, i], psi[layer, i])
    for i in range(n):
        _begin(w, Q, i)
        for layer in range(depths):
            gi, ri = gamma[layer, i], over[layer, i]
            for j in range(i + 1):
                gj, rj, wj, qj = gamma[layer, j], over[layer, j], w[j], Q[j]
                if layer == 0:
                    # |r x - r' x'|² by distances: with σ_w it is what (21) has for an input of m channels.
                    size, other, apart = square[i], square[j], distance[i, j]
                    for k in range(lanes):
                        dr = ri[k] - rj[k]
                        dx = ri[k] * rj[k] * apart + dr * (ri[k] * size - rj[k] * other)
                        u = 0.5 * (sigma_w[k] * sigma_w[k] * dx + sigma_b[k] * sigma_b[k] * dr * dr)
                        near[k] = u if u <= 1.0 else min(u - 2.0, FARTHEST)
                        theta[k] = 1 - u
                else:
                    for k in range(lanes):
                        dg = gi[k] - gj[k]
                        db = sigma_b[k] * (ri[k] - rj[k])
                        g = gi[k] * gj[k]
                        u = g * wj[k] + 0.5 * (dg * dg + db * db)
                        near[k] = u if u <= 1.0 else min(u - 2.0, FARTHEST)
                        theta[k] = (1 - u) + g * qj[k]
                forward(parameters, none, spare[:0], none, near, theta, wj, qj, np.uint64(0), np.uint64(lanes))
            for j in range(i + 1):
                _read_out(psi[layer, i], psi[layer, j], w[j], Q[j], out[layer, i, j], out[layer, j, i])


@inlined
def _walk(square: Any, sigma_w: Any, sigma_b: Any, before: Any, gamma: Any, over: Any, after: Any) -> None:
    """γ, 1/√q and ψ of one step (or layer) from ψ of the one before; zero where there is no variance."""
    wide_vectors()
    lanes = sigma_w.size
    for k in range(lanes):
        state = sigma_w[k] * before[k]
        gamma[k] = state
        over[k] = math.sqrt(state * state + square + sigma_b[k] * sigma_b[k])
    for k in range(lanes):
        after[k] = HALF_ROOT * over[k]
    for k in range(lanes):
        inverse = 1 / over[k]
        over[k] = inverse if over[k] > 0 else 0.0
    for k in range(lanes):
        gamma[k] *= over[k]


@inlined
def _begin(w: Any, Q: Any, i: int) -> None:
    """Nothing before, and for the pair of i with itself the same state before."""
    wide_vectors()
    lanes = w.shape[1]
    for j in range(i + 1):
        wj, qj, start = w[j], Q[j], 1.0 if j < i else 0.0
        for k in range(lanes):
            wj[k] = start
        for k in range(lanes):
            qj[k] = 0.0


@inlined
def _read_out(left: Any, right: Any, w: Any, Q: Any, out: Any, mirrored: Any) -> None:
    wide_vectors()
    lanes = w.size
    for k in range(lanes):
        out[k] = left[k] * right[k] * ((1 - w[k]) + Q[k])
    for k in range(lanes):
        mirrored[k] = out[k]
