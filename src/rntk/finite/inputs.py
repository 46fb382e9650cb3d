"""Ragged sequences laid out for `lax.scan`: padded at the end, with lengths, without the padding ever being seen.

Sequences start together at step 0, because the weights of untied networks are counted from the start. A state stops
moving when its sequence ends (`forward`), so what stands in the padding changes neither outputs nor gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..sequences import SequenceBatch

#: Tell apart the random numbers of weights and of initial states, whatever seeds they are given.
WEIGHTS, STATES = 0, 1


class Reading(NamedTuple):
    """N sequences as one network reads them, in one direction; a pytree, so it passes through `jax.jit`.

    Attributes
    ----------
    values : array of shape (T, N, m)
        Inputs, time first, zero after the end of a sequence.
    lengths : array of shape (N,)
        Integers.
    states : tuple of arrays of shape (N, n) or None
        Initial states of each layer, None where they are zero.
    rows : array of shape (S,)
        Where step t of sequence i stands in a flattened (T, N) table, in the order of the input; what the sequence
        readout returns.
    """

    values: jax.Array
    lengths: jax.Array
    states: tuple[jax.Array | None, ...]
    rows: jax.Array


def read(
    batch: SequenceBatch,
    network: Network,
    width: int,
    directions: int,
    dtype: np.dtype[Any],
    state_seed: int | None,
    side: int = 0,
    first: int = 0,
) -> tuple[Reading, ...]:
    """The batch in each direction.

    `state_seed` and `side` choose the initial states of all sequences, `first` is the position of the first one: a
    sequence has its own draw, whoever shares its batch.
    """
    readings = []
    for direction in range(directions):
        ordered = batch.reversed() if direction else batch
        states = draw_states(network, width, len(batch), (state_seed or 0, side, direction, first))
        readings.append(
            Reading(
                jnp.asarray(_pad(ordered).astype(dtype)),
                jnp.asarray(batch.lengths.astype(np.int32)),
                tuple(None if each is None else jnp.asarray(each.astype(dtype)) for each in states),
                jnp.asarray(_rows(batch, backwards=bool(direction))),
            )
        )
    return tuple(readings)


def draw_states(
    network: Network, width: int, count: int, source: tuple[int, int, int, int]
) -> list[NDArray[np.float64] | None]:
    """σ_h times standard normal numbers, (N, n) for each layer; None where σ_h is zero or nothing reads the state."""
    seed, side, direction, first = source
    drawn: list[NDArray[np.float64] | None] = []
    for layer, sigma in enumerate(network.sigma_h):
        if sigma == 0:
            drawn.append(None)
            continue
        numbers = [
            generator(seed, (STATES, width, side, direction, layer, first + i)).standard_normal(width)
            for i in range(count)
        ]
        drawn.append(sigma * np.array(numbers))
    return drawn


def generator(seed: int, branch: Sequence[int]) -> np.random.Generator:
    """Random numbers of one purpose.

    NumPy's and not JAX's, so that a seed gives the same numbers in either precision, on any device, with any version
    of JAX. Networks of different width share none. The branch goes into the spawn key: as part of the seed, zeros at
    its end would not count.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(branch)))


def _pad(batch: SequenceBatch) -> NDArray[Any]:
    padded = np.zeros((batch.max_length, len(batch), batch.n_channels), dtype=batch.dtype)
    for i, sequence in enumerate(batch):
        padded[: len(sequence), i] = sequence
    return padded


def _rows(batch: SequenceBatch, *, backwards: bool) -> NDArray[np.int32]:
    lengths = batch.lengths
    step = np.arange(len(batch.values)) - np.repeat(batch.offsets[:-1], lengths)
    if backwards:
        step = np.repeat(lengths, lengths) - 1 - step
    return (step * len(batch) + np.repeat(np.arange(len(batch)), lengths)).astype(np.int32)
