"""Unit vectors: each sequence's pre-activations, taken apart into the parts that make them up, O(N T).

In goes a `Walk`, out come `Units`: γ (recurrent state), η (layer below), x̂ (input) and b̂ (bias), whose squares add
up to one at every step and layer (theory.md, section 7), and everything else about one sequence alone: how its
tangent kernel with itself grows, and how its parts move along each hyperparameter direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from ...activations.base import ratio
from ...activations.compiled import compile_function, inlined
from ...network import LAYER_SIGMAS, Direction, Network
from ...sequences import SequenceBatch
from .walk import Walk

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """Parts of the unit vectors over all S steps; zero where the variance is zero.

    Attributes
    ----------
    recurrent : ndarray
        (L, S), ψ[t-1]/√q: the norm of the recurrent state relative to the pre-activation; γ = σ_w × it.
    below : ndarray
        (L, S), ψ[l-1]/√q; η = σ_u × it. Zero in the first layer.
    inputs : ndarray
        (m, S), x/√q of the first layer; x̂ = σ_u/√m × it.
    bias : ndarray
        (L, S), 1/√q; b̂ = σ_b × it. Zero where it wasn't asked for.
    """

    recurrent: Array
    below: Array
    inputs: Array
    bias: Array


def unit_parts(
    network: Network,
    batch: SequenceBatch,
    walk: Walk,
    empty: Callable[..., Array] = np.empty,
    *,
    with_bias: bool = False,
) -> Units:
    """Divide what flows into each pre-activation by that pre-activation's own deviation.

    1/√q (`bias`) is filled in where a network has biases, or on request (`with_bias`).
    """
    with_bias = with_bias or any(sigma > 0 for sigma in network.sigma_b)
    # Without input weights the input takes no part, however large.
    x = batch.values if network.sigma_u[0] > 0 else np.zeros_like(batch.values)
    # Memory that is never touched costs nothing: `below` and `bias` often aren't.
    recurrent, below, bias = empty(walk.q.shape), np.zeros(walk.q.shape), np.zeros(walk.q.shape)
    inputs = empty(x.shape[::-1])
    sigmas = (np.asarray(getattr(network, name)) for name in LAYER_SIGMAS)
    shared = walk.q, walk.moments.square, walk.exponent
    _compiled_units(x.dtype)(batch.offsets, x, *sigmas, *shared, recurrent, below, inputs, bias, with_bias)
    return Units(recurrent, below, inputs, bias)


def self_tangents(network: Network, batch: SequenceBatch, walk: Walk, units: Units) -> tuple[Array, NDArray[np.int64]]:
    """Θ̂ = Θ/q of every step of a sequence with itself, (L, S), as mantissa and exponent of two."""
    channels = batch.n_channels
    own = np.empty_like(walk.q)
    for layer in range(network.depth):
        gw, gu, gb = network.gradient_factors(layer, channels)
        source = units.inputs if layer == 0 else units.below[layer : layer + 1]
        own[layer] = np.square(np.sqrt(gw) * units.recurrent[layer]) + np.square(np.sqrt(gb) * units.bias[layer])
        own[layer] += np.square(np.sqrt(gu) * source).sum(axis=0)
    sigma_w, sigma_u = np.asarray(network.sigma_w)[:, None], np.asarray(network.sigma_u)[:, None]
    carry, lift = np.square(sigma_w * units.recurrent), np.square(sigma_u * units.below)
    mantissa, exponent = np.zeros_like(own), np.zeros(own.shape, dtype=np.int64)
    compiled = compile_function(_self_tangents, _SELF_SIGNATURE)
    compiled(batch.offsets, own, carry, lift, np.array(walk.moments.slope), mantissa, exponent)
    return mantissa, exponent


def accumulated(network: Network, batch: SequenceBatch, walk: Walk, units: Units, error: Array) -> float:
    """What relative errors of the slopes V̂', (L, S), make of the tangent kernels of the sequences with themselves."""
    off = replace(walk, moments=walk.moments._replace(slope=walk.moments.slope * (1 + error)))
    (right, right_exponent), (wrong, wrong_exponent) = (
        self_tangents(network, batch, each, units) for each in (walk, off)
    )
    growth = ratio(np.ldexp(wrong, np.minimum(wrong_exponent - right_exponent, 1000)), right)
    return float((growth[-1] * (1 + error[-1])).max(initial=1.0) - 1)


def log_rates(network: Network, batch: SequenceBatch, walk: Walk, units: Units, directions: list[Direction]) -> Array:
    """d log q along each direction, (P, L, S)."""
    sigma_w, sigma_u, sigma_b = (
        np.asarray(each)[:, None] for each in (network.sigma_w, network.sigma_u, network.sigma_b)
    )
    gamma2, below2, bias2 = (
        np.square(sigma * part)
        for sigma, part in ((sigma_w, units.recurrent), (sigma_u, units.below), (sigma_b, units.bias))
    )
    below2[0] = np.square(sigma_u[0] / np.sqrt(batch.n_channels) * units.inputs).sum(axis=0)
    rates = np.zeros((len(directions), *walk.q.shape))
    compiled = compile_function(_log_rates, _RATES_SIGNATURE)
    growth = np.array(walk.moments.growth)
    for direction, out in zip(directions, rates, strict=True):
        moves = [np.asarray(getattr(direction, name)) for name in LAYER_SIGMAS]
        compiled(batch.offsets, gamma2, below2, bias2, growth, *moves, out)
    return rates


_offsets = types.Array(types.int64, 1, "C", readonly=True)
_table = types.Array(types.float64, 2, "C")
_vector = types.Array(types.float64, 1, "C")
_counts = types.Array(types.int64, 2, "C")
_SELF_SIGNATURE = types.void(_offsets, *(_table,) * 5, _counts)
_RATES_SIGNATURE = types.void(_offsets, *(_table,) * 4, *(_vector,) * 4, _table)


@cache
def _compiled_units(dtype: np.dtype[Any]) -> Any:
    """`_unit_parts` for inputs of `dtype`."""
    x = types.Array(from_dtype(dtype), 2, "C", readonly=True)
    signature = types.void(_offsets, x, *(_vector,) * 4, _table, _table, _counts, *(_table,) * 4, types.boolean)
    return compile_function(_unit_parts, signature)


@inlined
def _shifted(x: float, exponent: int) -> float:
    """x 2^exponent; ordinary variances have no exponents, and then there is nothing to do."""
    return x if exponent == 0 else math.ldexp(x, min(max(exponent, -3000), 3000))


@inlined
def _what_is_left(part: float, sigma: float, others: float) -> float:
    """A part that comes from below, or through a single channel, from what the others leave of the unit vector.

    Where those are tiny, that is the same for all sequences: their distance must not be rounding, where V̂' turns within
    a unit vector's last digits.
    """
    if sigma == 0 or part == 0 or others >= 0.5:
        return part
    return math.copysign(math.sqrt(1 - others) / sigma, part)


def _unit_parts(
    offsets: Any, x: Any, sigma_w: Any, sigma_u: Any, sigma_b: Any, sigma_h: Any, q: Any, square: Any, exponent: Any,
    recurrent: Any, below: Any, inputs: Any, bias: Any, with_bias: bool,
) -> None:  # fmt: skip
    for i in range(offsets.size - 1):
        for layer in range(q.shape[0]):
            before, before_exponent = sigma_h[layer], 0
            for t in range(offsets[i], offsets[i + 1]):
                e = exponent[layer, t]
                if q[layer, t] > 0:
                    over = 1 / math.sqrt(q[layer, t])
                    recurrent[layer, t] = _shifted(before * over, before_exponent - e)
                    others = (sigma_w[layer] * recurrent[layer, t]) ** 2
                    if with_bias:
                        bias[layer, t] = _shifted(over, -e)
                        others += (sigma_b[layer] * bias[layer, t]) ** 2 if sigma_b[layer] > 0 else 0.0
                    if layer > 0:
                        psi = math.sqrt(square[layer - 1, t])
                        part = _shifted(psi * over, exponent[layer - 1, t] - e)
                        below[layer, t] = _what_is_left(part, sigma_u[layer], others)
                    else:
                        for c in range(x.shape[1]):
                            inputs[c, t] = _shifted(np.float64(x[t, c]), -e) * over
                        if x.shape[1] == 1:
                            inputs[0, t] = _what_is_left(inputs[0, t], sigma_u[0], others)
                else:
                    recurrent[layer, t] = 0
                    if layer == 0:
                        inputs[:, t] = 0
                before, before_exponent = math.sqrt(square[layer, t]), e


def _self_tangents(offsets: Any, own: Any, carry: Any, lift: Any, slope: Any, mantissa: Any, exponent: Any) -> None:
    depth = own.shape[0]
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            for layer in range(depth):
                # Θ̂[l,t] = own + γ² V̂'(1) Θ̂[l,t-1] + η² V̂'(1) Θ̂[l-1,t], each with its own exponent.
                recurrent, recurrent_exponent, below, below_exponent = 0.0, 0, 0.0, 0
                if t > offsets[i]:
                    recurrent = carry[layer, t] * slope[layer, t - 1] * mantissa[layer, t - 1]
                    recurrent_exponent = exponent[layer, t - 1]
                if layer > 0:
                    below = lift[layer, t] * slope[layer - 1, t] * mantissa[layer - 1, t]
                    below_exponent = exponent[layer - 1, t]
                e = max(0, recurrent_exponent, below_exponent)
                total = (
                    math.ldexp(own[layer, t], max(-e, -2000))
                    + math.ldexp(recurrent, max(recurrent_exponent - e, -2000))
                    + math.ldexp(below, max(below_exponent - e, -2000))
                )
                shift = max(math.frexp(total)[1], -e) if total > 0 else -e
                mantissa[layer, t] = math.ldexp(total, -shift)
                exponent[layer, t] = e + shift


def _log_rates(
    offsets: Any,
    gamma2: Any,
    below2: Any,
    bias2: Any,
    growth: Any,
    w: Any,
    u: Any,
    b: Any,
    h: Any,
    out: Any,
) -> None:
    depth = out.shape[0]
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            for layer in range(depth):
                # q = σ_w² ψ²[t-1] + σ_u² ψ²[l-1] + σ_b²: the rates of its parts, weighted by their shares. These add up
                # to one but for rounding, and are divided by their sum: the unit vector of a single part doesn't move,
                # and where two of them are opposite the derivative of V̂' is infinite, so it must not move at all.
                if t > offsets[i]:
                    state = growth[layer, t - 1] * out[layer, t - 1]
                else:
                    state = 2 * h[layer]
                below = growth[layer - 1, t] * out[layer - 1, t] if layer > 0 else 0.0
                total = gamma2[layer, t] + below2[layer, t] + bias2[layer, t]
                if total > 0:
                    out[layer, t] = (
                        gamma2[layer, t] * (2 * w[layer] + state)
                        + below2[layer, t] * (2 * u[layer] + below)
                        + bias2[layer, t] * 2 * b[layer]
                    ) / total
