"""Kernels of infinitely wide recurrent networks in 120-digit arithmetic, at least 50 digits of them right.

The recursion of THEORY section 3 in the order it is printed there. The textbook ReLU form takes the arccos
of a correlation near 1 and loses half of all digits; 120 working digits leave 50 even for identical
sequences.

Sequences are array-likes of shape (T,) or (T, m), deviations σ are numbers, one for all layers or one per
layer. All are taken as the exact float64 they are; pass an mpf for a σ such as √2 that float64 cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

from .duals import WORKING_DIGITS, Dual, dual, erf_dual, exact, identity_dual, relu_dual

__all__ = ["dual", "erf_rntk", "identity_rntk", "mean_rntk", "relu_rntk", "rntk", "rntk_table"]


def rntk(
    phi: Dual,
    x: object,
    y: object,
    sigma_w: object,
    sigma_u: object,
    sigma_b: object,
    sigma_h: object = 0,
    sigma_v: object = 1,
    same: bool = False,
    *,
    depth: int = 1,
    parameterization: str = "ntk",
    tied: bool = True,
) -> tuple[mpf, mpf]:
    """The pair (RNTK, NNGP) of two sequences, read out at their last steps.

    ``phi`` is a function (q1, q2, s) -> (V, V'), see `duals`. ``same`` says that x and y are one and the same
    sequence and so share the initial state, which matters when ``sigma_h`` > 0.
    """
    with mpmath.workdps(WORKING_DIGITS):
        network = _Network.of(phi, sigma_w, sigma_u, sigma_b, sigma_h, sigma_v, depth, parameterization, tied)
        pair = _Pair.of(network, x, y, same)
        tau = len(pair.y) - len(pair.x)
        *_, last = _diagonal(network, pair, max(0, -tau), max(0, tau))  # ends at the last steps of both
        return last


def relu_rntk(x, y, sigma_w, sigma_u, sigma_b, sigma_h=0, sigma_v=1, same=False, **options) -> tuple[mpf, mpf]:
    """`rntk` with φ = ReLU. Options: depth, parameterization, tied."""
    return rntk(relu_dual, x, y, sigma_w, sigma_u, sigma_b, sigma_h, sigma_v, same, **options)


def erf_rntk(x, y, sigma_w, sigma_u, sigma_b, sigma_h=0, sigma_v=1, same=False, **options) -> tuple[mpf, mpf]:
    """`rntk` with φ = erf. Options: depth, parameterization, tied."""
    return rntk(erf_dual, x, y, sigma_w, sigma_u, sigma_b, sigma_h, sigma_v, same, **options)


def identity_rntk(x, y, sigma_w, sigma_u, sigma_b, sigma_h=0, sigma_v=1, same=False, **options) -> tuple[mpf, mpf]:
    """`rntk` with φ = identity. Options: depth, parameterization, tied."""
    return rntk(identity_dual, x, y, sigma_w, sigma_u, sigma_b, sigma_h, sigma_v, same, **options)


def rntk_table(
    phi: Dual,
    x: object,
    y: object,
    sigma_w: object,
    sigma_u: object,
    sigma_b: object,
    sigma_h: object = 0,
    sigma_v: object = 1,
    same: bool = False,
    *,
    depth: int = 1,
    parameterization: str = "ntk",
    tied: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Object arrays Θ[t, s] and 𝒦[t, s] of shape (T, T'): kernels of the outputs at every pair of steps."""
    with mpmath.workdps(WORKING_DIGITS):
        network = _Network.of(phi, sigma_w, sigma_u, sigma_b, sigma_h, sigma_v, depth, parameterization, tied)
        pair = _Pair.of(network, x, y, same)
        shape = len(pair.x), len(pair.y)
        thetas, kernels = np.empty(shape, dtype=object), np.empty(shape, dtype=object)
        starts = [(0, s) for s in range(shape[1])] + [(t, 0) for t in range(1, shape[0])]
        for t0, s0 in starts:
            for step, (theta, kernel) in enumerate(_diagonal(network, pair, t0, s0)):
                thetas[t0 + step, s0 + step], kernels[t0 + step, s0 + step] = theta, kernel
        return thetas, kernels


def mean_rntk(phi: Dual, x: object, y: object, *sigmas: object, **options: object) -> tuple[mpf, mpf]:
    """(RNTK, NNGP) of the output averaged over time: means of the tables. Arguments as for `rntk_table`."""
    with mpmath.workdps(WORKING_DIGITS):
        thetas, kernels = rntk_table(phi, x, y, *sigmas, **options)
        return mpmath.fsum(thetas.flat) / thetas.size, mpmath.fsum(kernels.flat) / kernels.size


# The recursion ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Network:
    """Activation, variances by layer, and the two choices that change the recursion (THEORY section 3)."""

    phi: Dual
    w: list[mpf]
    u: list[mpf]
    b: list[mpf]
    h: list[mpf]
    v: mpf
    standard: bool
    tied: bool

    @classmethod
    def of(cls, phi, sigma_w, sigma_u, sigma_b, sigma_h, sigma_v, depth, parameterization, tied) -> _Network:
        if parameterization not in ("ntk", "standard"):
            raise ValueError(f"parameterization must be 'ntk' or 'standard', got {parameterization!r}")
        variances = [_by_layer(sigma, depth) for sigma in (sigma_w, sigma_u, sigma_b, sigma_h)]
        return cls(phi, *variances, exact(sigma_v) ** 2, parameterization == "standard", tied)


@dataclass(frozen=True)
class _Pair:
    """Two sequences as lists of vectors, with their self-covariances q[layer][step]."""

    x: list[list[mpf]]
    y: list[list[mpf]]
    qx: list[list[mpf]]
    qy: list[list[mpf]]
    same: bool

    @classmethod
    def of(cls, network: _Network, x: object, y: object, same: bool) -> _Pair:
        vectors = [_vectors(x), _vectors(y)]
        if same and vectors[0] != vectors[1]:
            raise ValueError("same=True needs two equal sequences")
        return cls(*vectors, *(_self_covariances(network, sequence) for sequence in vectors), same)


def _by_layer(sigma: object, depth: int) -> list[mpf]:
    sigmas = list(sigma) if isinstance(sigma, (Sequence, np.ndarray)) else [sigma] * depth
    if len(sigmas) != depth:
        raise ValueError(f"expected one deviation for each of {depth} layers, got {len(sigmas)}")
    return [exact(value) ** 2 for value in sigmas]


def _vectors(sequence: object) -> list[list[mpf]]:
    values = np.asarray(sequence, dtype=object)
    if values.ndim == 1:
        values = values[:, None]
    return [[exact(value) for value in row] for row in values]


def _inner(a: list[mpf], b: list[mpf]) -> mpf:
    return mpmath.fdot(a, b) / len(a)


def _self_covariances(network: _Network, sequence: list[list[mpf]]) -> list[list[mpf]]:
    """q[l][t] = Σ[l,t] of the sequence with itself."""
    below = [_inner(vector, vector) for vector in sequence]
    result = []
    for w, u, b, h in zip(network.w, network.u, network.b, network.h, strict=True):
        recurrent, layer, activated = h, [], []
        for incoming in below:
            q = w * recurrent + u * incoming + b
            recurrent, _ = network.phi(q, q, q)
            layer.append(q)
            activated.append(recurrent)
        result.append(layer)
        below = activated
    return result


def _diagonal(network: _Network, pair: _Pair, t0: int, s0: int) -> Iterator[tuple[mpf, mpf]]:
    """(Θ, 𝒦) of the outputs at steps (t0, s0), (t0 + 1, s0 + 1), ... counted from 0; t0 or s0 must be 0."""
    layers = range(len(network.w))
    m = len(pair.x[0])
    apart = not network.tied and t0 != s0  # then no weight but the readout is shared
    recurrent = [h if pair.same and t0 == s0 else mpf(0) for h in network.h]  # R[l]
    recurrent_slope = [mpf(0) for _ in layers]  # V' beside R[l]; Θ[l,0] = 0 makes the first one irrelevant
    theta = [mpf(0) for _ in layers]
    for t, s in zip(range(t0, len(pair.x)), range(s0, len(pair.y)), strict=False):
        incoming, incoming_slope, below = _inner(pair.x[t], pair.y[s]), mpf(0), mpf(0)  # I[1], -, Θ[0]
        for layer in layers:
            w, u, b = network.w[layer], network.u[layer], network.b[layer]
            sigma = w * recurrent[layer] + u * incoming + b
            if network.standard:
                tangent = recurrent[layer] + incoming * (m if layer == 0 else 1) + (1 if b else 0)
            else:
                tangent = sigma
            tangent += w * recurrent_slope[layer] * theta[layer] + u * incoming_slope * below
            if apart:
                sigma, tangent = mpf(0), mpf(0)
            value, slope = network.phi(pair.qx[layer][t], pair.qy[layer][s], sigma)
            recurrent[layer], recurrent_slope[layer], theta[layer] = value, slope, tangent
            incoming, incoming_slope, below = value, slope, tangent
        kernel = network.v * value
        yield (value if network.standard else kernel) + network.v * slope * tangent, kernel
