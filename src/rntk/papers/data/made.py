"""Data made at random for the papers' experiments: a small ragged set, and what a linear teacher puts out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...linear import LinearRNN

Array = NDArray[np.float64]


def small_task(random_state: int = 0, sequences: int = 6) -> tuple[list[Array], Array]:
    """A small ragged data set: Gaussian signals of 3 to 8 steps, and ±1 by the sign of their mean."""
    rng = np.random.default_rng(random_state)
    X = [rng.standard_normal(rng.integers(3, 9)) for _ in range(sequences)]
    return X, np.array([1.0 if x.mean() > 0 else -1.0 for x in X])


class MadeTask(NamedTuple):
    """Sequences and targets, (N, T, n_x) and (N, T, n_y), for training and test."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def teacher_task(
    units: int = 4,
    sequences: int = 50,
    T: int = 10,
    n_x: int = 1,
    *,
    delay: int = 0,
    snr_db: float = 20.0,
    nu_w: float = 0.3,
    random_state: int | np.random.Generator = 0,
) -> MadeTask:
    """White noise through a random linear RNN of a few units, its output delayed and noise added to it.

    Parameters
    ----------
    units : int
        Of the teacher, whose recurrent weights have variance `nu_w`.
    sequences : int
        For training, and as many for the test, of `T` steps and `n_x` channels.
    delay : int
        Steps by which the output is late; before, it is zero.
    snr_db : float
        Power of the output over that of the noise, in decibels.
    random_state : int or Generator
        Seed.
    """
    rng = np.random.default_rng(random_state)
    teacher = LinearRNN.random(units, n_x, 1, nu_w=nu_w, seed=rng)
    X = rng.standard_normal((2 * sequences, T, n_x))
    clean = np.zeros((2 * sequences, T, 1))
    if delay < T:
        clean[:, delay:] = teacher(X)[:, : T - delay]
    noise = np.sqrt(np.mean(teacher(X) ** 2) * 10 ** (-snr_db / 10))
    y = clean + noise * rng.standard_normal(clean.shape)
    return MadeTask(X[:sequences], y[:sequences], X[sequences:], y[sequences:])
