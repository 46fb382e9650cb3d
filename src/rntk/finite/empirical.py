"""Empirical kernels of one network: exact, in blocks that fit in memory, and without ever forming a gradient.

The gradient of an output by W is a sum over steps of outer products δ[t] h[t-1]ᵀ, where δ = ∂f/∂g is the backward
signal, and likewise for U and b. So inner products of gradients follow from those of their factors,

    ⟨Σ_t δ_t a_tᵀ, Σ_s δ'_s a'_sᵀ⟩ = Σ_{t,s} ⟨δ_t, δ'_s⟩ ⟨a_t, a'_s⟩,

two matrix products over steps per layer, with n numbers per step instead of n². (Jacobians contracted in blocks take 25
times as long for 50 sequences of 20 steps at width 1000, and more for untied weights.) This holds for any cell whose
weights enter by a pre-activation: what a cell must offer are its pre-activations to disturb and what weights multiply.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..kernels.network import KernelPair
from ..network import Network
from ..sequences import SequenceBatch
from .forward import ForwardPass, run
from .inputs import Reading, read
from .network import FiniteNetwork
from .precision import dtype_of, precision
from .program import ProgramNetwork, program_kernels
from .weights import DIRECTIONS, Parameters, layer_scales, readout_scale

Array = NDArray[Any]
Index = NDArray[np.int64]

#: Bytes of backward signals held at a time, unless told otherwise.
MEMORY = 2**27


def empirical_ntk(
    net: FiniteNetwork, parameters: Parameters, X: Any, Y: Any = None, *, state_seed: int = 0, memory: int = MEMORY
) -> Array:
    """Inner products of parameter gradients, ⟨∇f(x), ∇f(y)⟩, of one network: its tangent kernel.

    What `kernel(X, Y)` is the limit of for infinite width. Exact to rounding, whatever the blocks: no Jacobian is
    formed.

    Parameters
    ----------
    net : FiniteNetwork
        The network.
    parameters : dict
        Its weights, drawn or trained.
    X : sequences
        As for the kernel.
    Y : sequences, optional
        As for the kernel.
    state_seed : int
        Seed of the initial states, if sigma_h > 0. X and Y draw their own, so that the same-sequence term is on the
        diagonal of `empirical_ntk(net, parameters, X)` and not in `empirical_ntk(net, parameters, X, X)`, as for the
        kernel.
    memory : int
        Bytes that backward signals of one block of sequences may take. The peak is some six times that, plus the
        weights and the result.

    Returns
    -------
    ndarray of shape (n, n') or (n, n', d, d)
        In the precision of the parameters, one row per step for the sequence readout. With d > 1 outputs (n, n', d, d):
        in the limit the kernel times the identity.

    Notes
    -----
    With S steps in all, (S d)² n multiplications for tied weights ("sequence": Σ T² instead of S), beside the
    S n² d of the passes back. `memory` trades against a repetition of the latter.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, finite
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> net = finite.network(RNTK(), width=64)
    >>> finite.empirical_ntk(net, net.init(0, X), X).shape
    (2, 2)
    """
    return on_batches(net, parameters, *_read(net, parameters, X, Y), state_seed, memory).ntk


def empirical_nngp(
    net: FiniteNetwork, parameters: Parameters, X: Any, Y: Any = None, *, state_seed: int = 0, memory: int = MEMORY
) -> Array:
    """Covariance of the outputs over draws of the readout alone, σ_v²/n Σ_i h_i(x) h_i(y): what `kernel.nngp` limits.

    Parameters as for `empirical_ntk`. The result is (n, n') for any number of outputs, which are independent; the
    readout weights in `parameters` don't matter.
    """
    return on_batches(net, parameters, *_read(net, parameters, X, Y), state_seed, memory).nngp


def empirical_kernels(
    net: FiniteNetwork, parameters: Parameters, X: Any, Y: Any = None, *, state_seed: int = 0, memory: int = MEMORY
) -> KernelPair:
    """Both from one pass, as a named tuple (nngp, ntk); the finite counterpart of `kernel.both`."""
    return on_batches(net, parameters, *_read(net, parameters, X, Y), state_seed, memory)


def _read(net: FiniteNetwork, parameters: Parameters, X: Any, Y: Any) -> tuple[SequenceBatch, SequenceBatch | None]:
    return net.batch(parameters, X, "X"), None if Y is None else net.batch(parameters, Y, "Y")


def on_batches(
    net: FiniteNetwork,
    parameters: Parameters,
    left: SequenceBatch,
    other: SequenceBatch | None,
    state_seed: int,
    memory: int,
) -> KernelPair:
    """Kernels between batches that fit the parameters; `other` is None for those of `left` with itself."""
    if isinstance(net, ProgramNetwork):
        return program_kernels(net, parameters, left, other, state_seed)
    symmetric = other is None
    right = left if other is None else other
    dtype, d = dtype_of(parameters), net.outputs
    sizes = [len(each.values) if net.every_step else len(each) for each in (left, right)]
    nngp = np.zeros(sizes, dtype=dtype)
    ntk = np.zeros([size * d for size in sizes], dtype=dtype)
    tile = max(16, int((memory / dtype.itemsize / 4) ** 0.5))
    blocks = [_blocks(net, each, dtype.itemsize, memory) for each in (left, right)]

    def traces_of(side: int, block: tuple[int, int]) -> tuple[Trace, ...]:
        # Sequences of X and of Y have different draws of the initial state, even where Y is X.
        return _traces(net, parameters, (left, right)[side], block, state_seed, 0 if symmetric else side)

    kept = traces_of(1, blocks[1][0]) if not symmetric and len(blocks[1]) == 1 else None
    for i, one in enumerate(blocks[0]):
        ours = traces_of(0, one)
        for two in blocks[1][i if symmetric else 0 :]:
            theirs = kept or (ours if symmetric and two == one else traces_of(1, two))
            for a, b in zip(ours, theirs, strict=True):
                pooled = a.pooled @ b.pooled.T
                mirror = symmetric and two != one
                # The covariance of f and f' over draws of the readout, whatever the parameterisation.
                _add(nngp, net.network.sigma_v**2 / net.width * pooled, a.rows, b.rows, mirror)
                # By V: an output shares its readout weights only with the same component.
                overlap = np.kron(readout_scale(net.network, net.width) ** 2 * pooled, np.eye(d, dtype=dtype))
                overlap += _weights_overlap(net.network, a, b, tile)
                rows, columns = (slice(each.start * d, each.stop * d) for each in (a.rows, b.rows))
                _add(ntk, overlap, rows, columns, mirror)
    if symmetric:
        nngp, ntk = (nngp + nngp.T) / 2, (ntk + ntk.T) / 2  # equal up to rounding already
    if d > 1:
        ntk = ntk.reshape(sizes[0], d, sizes[1], d).transpose(0, 2, 1, 3)
    return KernelPair(nngp, ntk)


def _add(total: Array, part: Array, rows: slice, columns: slice, mirror: bool) -> None:
    total[rows, columns] += part
    if mirror:
        total[columns, rows] += part.T


# -- blocks ------------------------------------------------------------------------------------------------------------


def _blocks(net: FiniteNetwork, batch: SequenceBatch, itemsize: int, memory: int) -> list[tuple[int, int]]:
    """As many whole sequences at a time as fit, from the first to before the last."""
    positions = batch.max_length if net.every_step else 1
    cost = positions * batch.max_length * net.outputs * net.width * net.network.depth * itemsize
    count = max(1, memory // cost)
    return [(first, min(first + count, len(batch))) for first in range(0, len(batch), count)]


# -- factors of gradients ----------------------------------------------------------------------------------------------


class Trace(NamedTuple):
    """One direction of a network on a block: P outputs of sequences with S steps in all, R = Σ steps behind an output.

    Attributes
    ----------
    rows : slice
        The outputs among those of the batch, components of one output counted once.
    pooled : ndarray of shape (P/d, n)
        What the readout weights multiply.
    previous, below : tuples of ndarrays of shape (S, n) and (S, fan in)
        For each layer what W and what U multiplies, at every step of every sequence.
    signals : tuple of ndarrays of shape (R, n)
        For each layer δ = ∂f/∂g: the steps of output 0, then those of output 1, and so on.
    step : ndarray of shape (R,)
        The row of `previous` and `below` a signal belongs to.
    time : ndarray of shape (R,)
        Its step within the sequence, as the network reads it.
    output : ndarray of shape (R,)
        Its output, ascending.
    """

    rows: slice
    pooled: Array
    previous: tuple[Array, ...]
    below: tuple[Array, ...]
    signals: tuple[Array, ...]
    step: Index
    time: Index
    output: Index


def _traces(
    net: FiniteNetwork, parameters: Parameters, batch: SequenceBatch, block: tuple[int, int], state_seed: int, side: int
) -> tuple[Trace, ...]:
    """The traces of a block, one for each direction."""
    first = block[0]
    part = batch.take(np.arange(*block))
    count, d, dtype = len(part), net.outputs, dtype_of(parameters)
    sequence = np.repeat(np.arange(count), part.lengths)
    steps = np.arange(len(sequence)) - part.offsets[sequence], sequence
    # Which output of its sequence each row of the run is.
    position, owner = steps if net.every_step else (np.zeros(count, dtype=np.int64), np.arange(count))
    start = int(batch.offsets[first]) if net.every_step else first
    rows = slice(start, start + len(owner))
    owner, which = np.repeat(owner, d), np.repeat(position, d)
    component = np.tile(np.arange(d), len(position))
    wanted = np.indices((part.max_length if net.every_step else 1, d)).reshape(2, -1).T
    traces = []
    with precision(dtype):
        readings = read(part, net.network, net.width, net.directions, dtype, state_seed, side=side, first=first)
        for direction, reading in enumerate(readings):
            weights = parameters[DIRECTIONS[direction]]
            pooled, previous, below, deltas = _factors(net, weights, reading, position, wanted)
            last = part.lengths[owner] - 1  # the last step that leads to an output
            if net.every_step:
                last = last - which if direction else which
            output, time = np.nonzero(np.arange(part.max_length) <= last[:, None])
            signal = (which * d + component)[output], time, owner[output]
            traces.append(
                Trace(
                    rows,
                    np.asarray(pooled),
                    tuple(np.asarray(each)[steps] for each in previous),
                    tuple(np.asarray(each)[steps] for each in below),
                    tuple(np.asarray(each)[signal] for each in deltas),
                    part.offsets[owner[output]] + time,
                    time,
                    output,
                )
            )
    return tuple(traces)


@partial(jax.jit, static_argnums=0)
def _factors(
    net: FiniteNetwork, weights: dict[str, Any], reading: Reading, positions: jax.Array, wanted: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, ...], tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """`pooled` and, still padded, `previous`, `below` (T, N, ·) and `signals` (C, T, N, n) of a trace.

    `wanted` are C pairs of a position and a component to send signals back from.
    """
    length, count, _ = reading.values.shape
    shape = (length, count, net.width)
    still = tuple(jnp.zeros(shape, reading.values.dtype) for _ in range(net.network.depth))

    def outputs(disturbances: tuple[jax.Array, ...]) -> tuple[jax.Array, ForwardPass]:
        result = run(net.network, net.activation, weights, reading, disturbances)
        return result.outputs, result

    f, pull_back, result = jax.vjp(outputs, still, has_aux=True)

    def signal(which: jax.Array) -> Any:
        # Sequences don't touch one another: one pass back serves the same output of all of them.
        chosen = (positions == which[0])[:, None] & (jnp.arange(net.outputs) == which[1])
        return pull_back(chosen.astype(f.dtype))[0]

    deltas = lax.map(signal, wanted)
    previous = tuple(
        jnp.concatenate([start[None], states[:-1]]) for start, states in zip(result.initial, result.states, strict=True)
    )
    return result.pooled, previous, (reading.values, *result.states[:-1]), deltas


# -- inner products of gradients ---------------------------------------------------------------------------------------


def _weights_overlap(network: Network, left: Trace, right: Trace, tile: int) -> Array:
    """The part of ⟨∇f, ∇f'⟩ by W, U and b of all layers, (P, P'); at most `tile` rows of signals meet at a time.

    NumPy does it: the tiles have all kinds of shapes, and compiling each would take longer than computing it.
    """
    width, channels = left.pooled.shape[1], left.below[0].shape[1]
    total = np.zeros((left.output[-1] + 1, right.output[-1] + 1), dtype=left.pooled.dtype)
    for rows, columns in _tiles(network.tied, left, right, tile):
        (steps, here), (steps2, there) = _steps_of(left, rows), _steps_of(right, columns)
        products: Any = 0.0
        for layer in range(network.depth):
            w, u, b = layer_scales(network, layer, width, channels)
            # Σ over W, U, b of ⟨a, a'⟩, each times the square of the factor in front.
            inputs = w**2 * (left.previous[layer][steps] @ right.previous[layer][steps2].T)
            inputs += u**2 * (left.below[layer][steps] @ right.below[layer][steps2].T)
            inputs += b**2
            signals = left.signals[layer][rows] @ right.signals[layer][columns].T
            signals *= inputs[here][:, there]
            products = products + signals
        outputs, starts = np.unique(left.output[rows], return_index=True)
        outputs2, starts2 = np.unique(right.output[columns], return_index=True)
        sums = np.add.reduceat(np.add.reduceat(products, starts, axis=0), starts2, axis=1)
        total[np.ix_(outputs, outputs2)] += sums
    return total


def _tiles(tied: bool, left: Trace, right: Trace, tile: int) -> Iterator[tuple[Any, Any]]:
    """Rows of two traces that share weights: any two steps if tied, else equal steps."""
    if tied:
        for i in range(0, len(left.time), tile):
            for j in range(0, len(right.time), tile):
                yield slice(i, i + tile), slice(j, j + tile)
        return
    for time in range(min(left.time.max(), right.time.max()) + 1):
        rows, columns = np.flatnonzero(left.time == time), np.flatnonzero(right.time == time)
        for i in range(0, len(rows), tile):
            for j in range(0, len(columns), tile):
                yield rows[i : i + tile], columns[j : j + tile]


def _steps_of(trace: Trace, rows: Any) -> tuple[Any, Index]:
    """Steps that rows of signals belong to, and the place of each row among them; a slice, so a view, if it's short."""
    step = trace.step[rows]
    low, high = int(step.min()), int(step.max()) + 1
    return (slice(low, high), step - low) if high - low <= len(step) else (step, np.arange(len(step)))
