"""How members are put together: stacking of predictive distributions.

Every member says how likely it holds what it has not seen. Weights are such that the mixture makes the left-out truth
most likely, after some sequences that all members predict alike: those keep weights equal where data is scarce.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from ...sequences.targets import Array

#: Weight, in sequences, of what all members are supposed to have predicted alike.
PRIOR = 5.0
#: How much scores are multiplied by before they become probabilities.
SHARPNESS = np.logspace(-1, 1.6, 40)
#: Where no sequence can be left out.
NO_EVIDENCE = 5.0
#: Members with less than this part of the largest weight are left out: prediction costs as much for each.
LEAST = 0.15
ROUNDS = 100


class Stacked(NamedTuple):
    """Weights of members, and what makes probabilities of their scores.

    Attributes
    ----------
    weights : ndarray of shape (members,)
        They sum to one.
    sharpness : float
        β: probabilities are softmax(β scores).
    """

    weights: Array
    sharpness: float


def stack_classes(left_out: Array, codes: Array, weight: Array) -> Stacked:
    """The stack of classifiers by their left-out scores.

    Parameters
    ----------
    left_out : ndarray of shape (members, n, classes)
        Scores of each sequence by the model of each member that has not seen it.
    codes : ndarray of shape (n,)
        Classes, from 0.
    weight : ndarray of shape (n,)
        Of sequences; zero for those whose evidence doesn't count.

    Returns
    -------
    Stacked
        Equal weights where nothing counts.
    """
    members = len(left_out)
    used = np.flatnonzero(weight)
    if not len(used):
        return Stacked(np.full(members, 1 / members), NO_EVIDENCE)
    rows, weight, truth = left_out[:, used], weight[used], codes[used]
    mean = rows.mean(axis=0, dtype=np.float64)
    at = np.arange(len(used))
    likelihood = [weight @ log_softmax(beta * mean, axis=1)[at, truth] for beta in SHARPNESS]
    sharpness = float(SHARPNESS[int(np.argmax(likelihood))])
    chances = np.array([softmax(sharpness * each.astype(np.float64), axis=1)[at, truth] for each in rows])
    return Stacked(mixture_weights(chances, weight), sharpness)


def stack_values(left_out: Array, targets: Array, weight: Array) -> Array:
    """Weights (members,) of regressors by their left-out predictions (members, n, k): Gaussians of one deviation."""
    errors = np.square(left_out - targets).mean(axis=2)
    variance = float(np.average(np.square(left_out.mean(axis=0) - targets).mean(axis=1), weights=weight))
    if not variance > 0:
        return np.full(len(left_out), 1 / len(left_out))
    excess = errors - errors.min(axis=0)  # a factor of all members' likelihoods of a sequence changes nothing
    return mixture_weights(np.exp(-excess / (2 * variance)), weight)


def mixture_weights(chances: Array, weight: Array) -> Array:
    """Weights of the mixture that makes (members, n) `chances` of the truth largest, by expectation maximisation."""
    members = len(chances)
    found = np.full(members, 1 / members)
    for _ in range(ROUNDS):
        share = found[:, None] * chances
        share /= np.maximum(share.sum(axis=0), 1e-300)
        found = (share @ weight + PRIOR / members) / (weight.sum() + PRIOR)
    found[found < LEAST * found.max()] = 0.0
    return np.asarray(found / found.sum())


def mixed(scores: Iterable[Array], stack: Stacked) -> Array:
    """(n, classes): the mixture's probabilities from the scores of members, one for every weight."""
    return np.asarray(
        sum(
            weight * softmax(stack.sharpness * each.astype(np.float64), axis=1)
            for weight, each in zip(stack.weights, scores, strict=True)
        )
    )
