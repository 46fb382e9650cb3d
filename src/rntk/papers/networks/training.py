"""Epochs of mini-batches, stopped when sequences set aside are no longer classified better."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ...errors import DivergenceError
from ...runtime import progress_bar
from ...sequences import SequenceBatch
from .networks import Parameters, Recurrent
from .padding import Padded, pad
from .rmsprop import advance, start


class Labelled(NamedTuple):
    """Sequences, and the number of each one's class."""

    sequences: SequenceBatch
    labels: NDArray[np.intp]


@dataclass(frozen=True)
class Trained:
    """Parameters of the best epoch, which one that was (from 0), and what happened in each."""

    parameters: Parameters
    best_epoch: int
    history: dict[str, NDArray[Any]]


def train(
    network: Recurrent,
    parameters: Parameters,
    training: Labelled,
    watched: Labelled | None,
    plan: Any,
    random: np.random.RandomState,
) -> Trained:
    """Train until `watched` has not been classified better for `plan.patience` epochs; with None, to the end.

    `plan` is the classifier, whose parameters say how to train. Epochs that end before `plan.min_steps` steps of
    training don't count as lost. The best epoch is the one of highest accuracy on `watched`, of the lowest loss there
    if several have it; only the accuracy decides when to stop. Without `watched` the best epoch is the last.

    Raises
    ------
    DivergenceError
        If the network overflows on the watched sequences, or without them on the training ones, after every epoch.
    """
    state = start(parameters)
    longest = training.sequences.max_length
    steps = -(-len(training.labels) // plan.batch_size)  # per epoch
    history: dict[str, list[float]] = {"loss": [], "validation_accuracy": [], "validation_loss": [], "skipped": []}
    best: tuple[float, float] = (-np.inf, -np.inf)
    best_epoch, kept, waited = -1, parameters, 0
    with progress_bar("training", plan.max_epochs, plan.progress) as done:
        for epoch in range(plan.max_epochs):
            parameters, state, loss, skipped = _epoch(network, parameters, state, training, plan, random, longest)
            accuracy, watched_loss = (np.nan, np.nan)
            if watched is None:
                score = (float(epoch), 0.0) if np.isfinite(loss) else (-np.inf, 0.0)
            else:
                accuracy, watched_loss = assess(network, parameters, watched, plan.batch_size, longest)
                score = (accuracy, -watched_loss) if np.isfinite(watched_loss) else (-np.inf, 0.0)
            for name, value in zip(history, (loss, accuracy, watched_loss, skipped), strict=True):
                history[name].append(value)
            done(1)
            counts = (epoch + 1) * steps > plan.min_steps and watched is not None
            waited = waited + 1 if counts and score[0] <= best[0] else 0
            if score > best and score[0] > -np.inf:
                best, best_epoch, kept = score, epoch, parameters
            if waited >= plan.patience or skipped == steps:  # a network that no batch moved stays where it is
                break
    if best_epoch < 0:
        raise DivergenceError(
            f"the network's states overflowed single precision in each of {len(history['loss'])} epochs, on sequences "
            f"of up to {longest} steps: lower learning_rate (now {plan.learning_rate:g}), standardize the inputs, or "
            "take GRUClassifier, whose states are bounded"
        )
    arrays = {name: np.array(values) for name, values in history.items()}
    return Trained(jax.tree.map(np.array, kept), best_epoch, arrays)


def _epoch(
    network: Recurrent,
    parameters: Parameters,
    state: Any,
    training: Labelled,
    plan: Any,
    random: np.random.RandomState,
    longest: int,
) -> tuple[Parameters, Any, float, int]:
    """Parameters and state after every sequence was used once, the mean loss on the way, and the steps left out."""
    order = random.permutation(len(training.labels))
    size = min(plan.batch_size, len(order))
    rate, clip_norm = float(plan.learning_rate), np.inf if plan.clip_norm is None else float(plan.clip_norm)
    losses, taken, weight = [], [], []
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        x = pad(training.sequences, rows, size, longest)
        labels, weights = np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.float32)
        labels[: len(rows)], weights[: len(rows)] = training.labels[rows], 1.0
        parameters, state, loss, finite = advance(network, parameters, state, x, labels, weights, rate, clip_norm)
        losses.append(loss)
        taken.append(finite)
        weight.append(len(rows))
    # Read at the end: until then the computation runs ahead of Python.
    return parameters, state, float(np.average(losses, weights=weight)), len(taken) - int(np.sum(taken))


def assess(
    network: Recurrent, parameters: Parameters, watched: Labelled, batch_size: int, longest: int
) -> tuple[float, float]:
    """Accuracy and mean cross-entropy."""
    logits = evaluate(network, parameters, watched.sequences, batch_size, longest).astype(np.float64)
    if not np.isfinite(logits).all():
        return 0.0, np.inf
    chosen = logits[np.arange(len(logits)), watched.labels]
    losses = logsumexp(logits, axis=1) - chosen
    return float(np.mean(logits.argmax(axis=1) == watched.labels)), float(losses.mean())


def evaluate(
    network: Recurrent, parameters: Parameters, sequences: SequenceBatch, batch_size: int, longest: int
) -> NDArray[np.float32]:
    """Logits (n, classes). Sequences of like length go together, to be padded little."""
    order = np.argsort(sequences.lengths, kind="stable")
    parts = []
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        parts.append(_logits(network, parameters, pad(sequences, rows, batch_size, longest))[: len(rows)])
    logits = np.empty((len(order), parts[0].shape[1]), dtype=np.float32)
    logits[order] = np.concatenate(parts)
    return logits


@partial(jax.jit, static_argnames="network")
def _logits(network: Recurrent, parameters: Parameters, x: Padded) -> jax.Array:
    return network.logits(parameters, x)
