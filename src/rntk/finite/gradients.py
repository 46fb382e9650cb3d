"""Everything a gradient is made of, without the gradient: what each weight multiplies, and backward signals.

The gradient of an output by W is a sum over steps of outer products δ[t] h[t-1]ᵀ, and likewise for U and b. A `Trace`
holds the factors of these products for some outputs of some sequences, n numbers per step instead of n².
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..sequences import SequenceBatch
from .forward import Run, run
from .inputs import Reading, read
from .network import Network
from .precision import dtype_of, precision
from .weights import DIRECTIONS, Parameters

Array = NDArray[Any]


class Trace(NamedTuple):
    """One direction of a network on a block: P outputs of sequences with S steps in all, R = Σ steps behind an output.

    Attributes
    ----------
    pooled : (P/d, n) what the readout weights multiply.
    previous, below : for each layer, (S, n) what W multiplies and (S, fan in) what U multiplies.
    signals : for each layer, (R, n): δ = ∂f/∂g; the steps of output 0, then those of output 1, and so on.
    step : (R,) the row of `previous` and `below` a signal belongs to.
    time : (R,) its step within the sequence, as the network reads it.
    output : (R,) its output, ascending.
    """

    pooled: Array
    previous: tuple[Array, ...]
    below: tuple[Array, ...]
    signals: tuple[Array, ...]
    step: NDArray[np.int64]
    time: NDArray[np.int64]
    output: NDArray[np.int64]


class Block(NamedTuple):
    """Outputs of a batch whose traces are held in memory together: sequences first..last-1.

    For the sequence readout, the outputs at positions start..stop-1 of each of them.
    """

    first: int
    last: int
    start: int
    stop: int


def trace(
    net: Network,
    parameters: Parameters,
    batch: SequenceBatch,
    block: Block,
    *,
    state_seed: int,
    side: int,
    signals: bool = True,
) -> tuple[Trace, ...]:
    """The traces of a block, one for each direction; without `signals`, only what the readout sees."""
    part = batch.take(np.arange(block.first, block.last))
    dtype = dtype_of(parameters)
    traces = []
    with precision(dtype):
        readings = read(
            part, net.architecture, net.width, net.directions, dtype, state_seed, side=side, first=block.first
        )
        for direction, reading in enumerate(readings):
            own = parameters[DIRECTIONS[direction]]
            layout = _Layout.of(net, part, block, backwards=bool(direction))
            if not signals:
                pooled = _pooled(net, own, reading)
                nothing: tuple[Array, ...] = ()
                traces.append(Trace(np.asarray(pooled)[layout.kept], nothing, nothing, nothing, *layout.labels))
                continue
            pooled, previous, below, deltas = _factors(net, own, reading, layout.positions, layout.wanted)
            traces.append(
                Trace(
                    np.asarray(pooled)[layout.kept],
                    tuple(_rows(each, layout.steps) for each in previous),
                    tuple(_rows(each, layout.steps) for each in below),
                    tuple(_rows(each, layout.gather) for each in deltas),
                    *layout.labels,
                )
            )
    return tuple(traces)


class _Layout(NamedTuple):
    """Where the rows of a trace stand in the padded tables of a run; T and N are those of the block.

    Attributes
    ----------
    positions : (O,) which of the outputs of its sequence each output of the run is.
    wanted : (C, 2) positions and components to send signals back from.
    steps : (S,) rows of a flattened (T, N) table.
    gather : (R,) rows of a flattened (C, T, N) table.
    kept : which outputs of the run belong to the block.
    labels : step, time, output of a `Trace`.
    """

    positions: Array
    wanted: Array
    steps: Array
    gather: Array
    kept: slice
    labels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

    @classmethod
    def of(cls, net: Network, part: SequenceBatch, block: Block, *, backwards: bool) -> _Layout:
        lengths, count, d = part.lengths, len(part), net.outputs
        sequence = np.repeat(np.arange(count), lengths)
        time = np.arange(len(sequence)) - part.offsets[sequence]
        if net.architecture.readout.per_step:
            # An output at one step: in a block of whole sequences each has its own number of them.
            positions, kept = time, slice(block.start, block.stop) if count == 1 else slice(None)
            owner, position = sequence[kept], time[kept]
            last = lengths[owner] - 1 - position if backwards else position
        else:
            positions, kept = np.zeros(count, dtype=np.int64), slice(None)
            owner, position, last = np.arange(count), np.zeros(count, dtype=np.int64), lengths - 1
        span = np.arange(block.start, block.stop)
        wanted = np.stack([np.repeat(span, d), np.tile(np.arange(d), len(span))], axis=1)
        # Outputs in the order (sequence, position, component), each with the steps 0..last that lead to it.
        owner, position, last = (np.repeat(each, d) for each in (owner, position, last))
        component = np.tile(np.arange(d), len(owner) // d)
        output = np.repeat(np.arange(len(owner)), last + 1)
        when = np.arange(len(output)) - np.repeat(np.cumsum(last + 1) - (last + 1), last + 1)
        signal = ((position - block.start) * d + component)[output]
        gather = (signal * part.max_length + when) * count + owner[output]
        return cls(
            positions,
            wanted,
            time * count + sequence,
            gather,
            kept,
            (part.offsets[owner[output]] + when, when, output),
        )


@partial(jax.jit, static_argnums=0)
def _pooled(net: Network, weights: dict[str, Any], reading: Reading) -> jax.Array:
    return run(net.architecture, net.activation, weights, reading).pooled


@partial(jax.jit, static_argnums=0)
def _factors(
    net: Network,
    weights: dict[str, Any],
    reading: Reading,
    positions: jax.Array,
    wanted: jax.Array,
) -> tuple[jax.Array, tuple[jax.Array, ...], tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """`pooled` and, still padded, `previous`, `below` (T, N, ·) and `signals` (C, T, N, n) of a trace."""
    length, count, _ = reading.values.shape
    shape = (length, count, net.width)
    still = tuple(jnp.zeros(shape, reading.values.dtype) for _ in range(net.architecture.depth))

    def outputs(disturbances: tuple[jax.Array, ...]) -> tuple[jax.Array, Run]:
        result = run(net.architecture, net.activation, weights, reading, disturbances)
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


def _rows(table: jax.Array, chosen: Array) -> Array:
    """Rows of a table flattened but for its last axis; what stood in the padding stays behind."""
    return np.asarray(table).reshape(-1, table.shape[-1])[chosen]
