"""One pass along each sequence: the variance of every layer at every step, O(N T).

In goes a batch, out comes a `Walk`: everything about one sequence alone that the pair sweeps need. Variances of
positively homogeneous networks grow or shrink without bound, so they are carried as mantissa and exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ...activations import Activation, Moments
from ...activations.compiled import compile_function, inlined
from ...errors import KernelOverflowError
from ...network import LAYER_SIGMAS, Network
from ...sequences import SequenceBatch

Array = NDArray[np.float64]
#: Variances beyond this are refused where derivatives are asked for: those of V̂' by u grow with its power 3/2.
LARGEST_SLOPE_VARIANCE = 1e203
#: Squares of inputs outside this range are summed with a power of two taken out.
SMALL, LARGE = 1e-200, 1e200
#: Sequences that begin below 2^-500 are lifted by this power: coarse, so that close sequences are lifted alike.
LIFT = 400
#: Variances up to which an activation is linear to the last digit, and lifted ones stay lifted.
LINEAR = 1e-36
#: Variances below this have lost digits, and count as none.
VANISHING = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Walk:
    """Per-sequence quantities, each (L, S) over all S steps of the batch; q means q 4^exponent.

    Attributes
    ----------
    q : ndarray
        Variance of the pre-activation, its mantissa.
    exponent : ndarray
        Its exponent, in powers of four.
    moments : Moments
        What the activation makes of q.
    """

    q: Array
    exponent: NDArray[np.int64]
    moments: Moments


def walk(
    network: Network,
    batch: SequenceBatch,
    empty: Callable[..., Array] = np.empty,
    *,
    roughly: bool = False,
) -> Walk:
    """Carry the self-covariance of every sequence of `batch` through the network (theory.md (5)).

    `empty` says where the result lies. `roughly` interpolates the moments of expansions, which are expensive.
    """
    inputs = _squares(batch.values)
    squares = [np.square(getattr(network, name)) for name in LAYER_SIGMAS]
    shape = (network.depth, len(inputs.size))
    q, exponent = empty(shape), np.zeros(shape, dtype=np.int64)
    activation = network.activation
    if activation.homogeneous:
        square = empty(shape)
        unit = float(activation.square(np.ones(1))[0])
        step = compile_function(_walk_homogeneous, _SIGNATURE)
        step(*inputs, batch.offsets, *squares, unit, q, square, exponent)
        one = np.broadcast_to(1.0, shape)  # no memory; ψ² is proportional to q
        return Walk(q, exponent, Moments(square, one, one))
    quiet = activation.linear_at_zero and not any(network.sigma_b) and not any(network.sigma_h)
    if inputs.size.any() and quiet:
        exponent -= np.repeat(_lift(batch, inputs), batch.lengths)
    _walk_any(activation, inputs, batch, squares, q, exponent)
    moments = _rough_moments if roughly and activation.accuracy > 0 else type(activation).moments
    return Walk(q, exponent, Moments(*(part.reshape(shape) for part in moments(activation, q.ravel()))))


def _rough_moments(activation: Activation, q: Array) -> Moments:
    sample = quantiles(q, 65)
    return Moments(*(np.interp(q, sample, part) for part in activation.moments(sample)))


def quantiles(q: Array, count: int) -> Array:
    """So many of the numbers, the least and the largest among them, in order and without repetitions."""
    ordered = np.sort(q.ravel())
    return np.unique(ordered[np.linspace(0, ordered.size - 1, min(ordered.size, count)).astype(int)])


class _Squares(NamedTuple):
    """|x|²/m of every step, times 4^size: squares of large and of small numbers leave the range of floats."""

    mantissa: Array
    size: NDArray[np.int64]

    def at(self, steps: NDArray[np.int64], exponent: NDArray[np.int64]) -> Array:
        """Those of some steps, with powers of four taken out."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(self.mantissa[steps], 2 * (self.size[steps] - exponent)))


def _squares(x: NDArray[Any]) -> _Squares:
    x = x.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        mantissa = np.square(x[:, 0]) if x.shape[1] == 1 else np.einsum("tc,tc->t", x, x) / x.shape[1]
    size = np.zeros(len(x), dtype=np.int64)
    extreme = ~((mantissa > SMALL) & (mantissa < LARGE))
    if extreme.any():
        size[extreme] = np.frexp(np.abs(x[extreme]).max(axis=1))[1]
        mantissa[extreme] = np.square(np.ldexp(x[extreme], -size[extreme, None])).mean(axis=1)
    return _Squares(mantissa, size)


def _lift(batch: SequenceBatch, inputs: _Squares) -> NDArray[np.int64]:
    """Powers of two by which sequences are multiplied that begin with tiny numbers: as variances they would vanish.

    Nothing else flows into their network, and at such inputs an activation with φ(0) = 0 is linear to the last digit,
    so a scale can be taken out of it after all.
    """
    lift = np.zeros(len(batch), dtype=np.int64)
    some = np.flatnonzero(inputs.mantissa > 0)
    first = np.searchsorted(some, batch.offsets)  # of each sequence, among those
    alive = np.flatnonzero(first[:-1] < first[1:])
    lift[alive] = LIFT * np.clip((-100 - inputs.size[some[first[alive]]]) // LIFT, 0, 2)
    return lift


def require_slopes(network: Network, batch: SequenceBatch, path: Walk) -> None:
    """Refuse variances at which derivatives overflow on the way; those of homogeneous networks have no scale."""
    if not network.activation.homogeneous and path.q.max(initial=0.0) > LARGEST_SLOPE_VARIANCE:
        step = int(path.q.max(axis=0).argmax())
        bad = int(np.searchsorted(batch.offsets, step, side="right")) - 1
        raise KernelOverflowError(
            f"derivatives of the kernel of {{sequence}} overflow on the way: {network.activation.name} has them "
            f"up to variances of {LARGEST_SLOPE_VARIANCE:g}; scale the inputs down",
            sequence=bad,
        )


@inlined
def _shifted(x: float, exponent: int) -> float:
    """x 4^exponent; most of the time there is nothing to do."""
    return x if exponent == 0 else math.ldexp(x, max(2 * exponent, -3000))


_reals, _counts = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")
_table, _exponents = types.Array(types.float64, 2, "C"), types.Array(types.int64, 2, "C")
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_SIGNATURE = types.void(_reals, _counts, _offsets, *(_reals,) * 4, types.float64, _table, _table, _exponents)


def _walk_homogeneous(
    inputs: Any, size: Any, offsets: Any, sw2: Any, su2: Any, sb2: Any, sh2: Any, unit_square: float, q: Any,
    square: Any, exponent: Any,
) -> None:  # fmt: skip
    nothing = -(1 << 40)  # the exponent of a zero
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            below, below_exponent = inputs[t], size[t]
            for layer in range(q.shape[0]):
                state, state_exponent = sh2[layer], 0
                if t > offsets[i]:
                    state, state_exponent = square[layer, t - 1], exponent[layer, t - 1]
                recurrent, bottom, bias = sw2[layer] * state, su2[layer] * below, sb2[layer]
                # All three parts on the largest exponent; what underflows there is below rounding.
                e = max(
                    state_exponent if recurrent > 0 else nothing,
                    below_exponent if bottom > 0 else nothing,
                    0 if bias > 0 else nothing,
                )
                if e > nothing:
                    total = (
                        _shifted(recurrent, state_exponent - e)
                        + _shifted(bottom, below_exponent - e)
                        + _shifted(bias, -e)
                    )
                    if not 1e-60 < total < 1e60:
                        shift = math.frexp(total)[1] // 2
                        total = math.ldexp(total, -2 * shift)
                        e += shift
                    if e != 0:
                        exponent[layer, t] = e
                else:
                    total, e = 0.0, 0
                q[layer, t] = total
                square[layer, t] = below = unit_square * total
                below_exponent = e


def _walk_any(
    activation: Any,
    inputs: _Squares,
    batch: SequenceBatch,
    squares: list[Array],
    q: Array,
    exponent: NDArray[np.int64],
) -> None:
    sw2, su2, sb2, sh2 = squares
    depth = len(q)
    longest_first = np.argsort(-batch.lengths, kind="stable")
    starts, lengths = batch.offsets[:-1][longest_first], batch.lengths[longest_first]
    state = np.repeat(sh2[:, None], len(batch), axis=1)
    lifted = bool(exponent.any())
    for t in range(int(lengths[0])):
        active = int(np.count_nonzero(lengths > t))
        at = starts[:active] + t
        while True:
            below, after = inputs.at(at, exponent[0, at]), np.empty((depth, active))
            for layer in range(depth):
                bottom = su2[layer] * below if su2[layer] > 0 else np.zeros(active)
                total = sw2[layer] * state[layer, :active] + bottom + sb2[layer]
                if lifted:  # those that grow are lowered at once, so how much doesn't matter
                    total = np.where(exponent[layer, at] < 0, np.minimum(total, 2 * LINEAR), total)
                if not (total < activation.largest_variance).all():
                    bad = int(longest_first[np.flatnonzero(~(total < activation.largest_variance))[0]])
                    raise KernelOverflowError(
                        f"the variance of {{sequence}} overflows at step {t} (layer {layer + 1}): scale the inputs "
                        f"down, or lower sigma_w or sigma_u; {activation.name} is not homogeneous, so no scale can be "
                        "taken out",
                        sequence=bad,
                    )
                total[total < VANISHING] = 0.0
                q[layer, at] = total
                below = after[layer] = activation.square(total)
            if not (lifted and _lower(q[:, at], at, starts[:active] + lengths[:active], state, exponent)):
                break
        state[:, :active] = after


def _lower(now: Array, at: Any, ends: Any, state: Array, exponent: NDArray[np.int64]) -> bool:
    """Put down sequences whose lifted variances, `now`, leave the range where φ is linear; whether there were any."""
    grown = np.flatnonzero((exponent[0, at] < 0) & (now.max(axis=0) > LINEAR))
    for k in grown:
        state[:, k] = np.ldexp(state[:, k], -2 * LIFT)
        exponent[:, at[k] : ends[k]] += LIFT
    return grown.size > 0
