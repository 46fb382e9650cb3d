"""Gradient descent on finite linear RNNs and on convolutions, step by step (JAX)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_choice, check_count
from ..sequences import SequenceBatch
from ..sequences.targets import read_values_by_step
from .filters import ScaledConv1D, convolve, normal_equations, read_inputs
from .rnn import LinearRNN

Array = NDArray[np.float64]
LinearModel = LinearRNN | ScaledConv1D


@dataclass(frozen=True, repr=False)
class LinearTraining:
    """A run of gradient descent at R recorded steps; from `train`.

    Attributes
    ----------
    steps : ndarray of shape (R,)
        Updates made; 0 is before training.
    error : ndarray of shape (R,)
        Mean squared error over all steps and outputs of the training data.
    test_error : ndarray of shape (R,) or None
        The same of the test data.
    taps : ndarray of shape (R, J, n_y, n_x)
        Impulse response of the model.
    model : LinearRNN or ScaledConv1D
        After the last step.
    """

    steps: NDArray[np.int64]
    error: Array
    test_error: Array | None
    taps: Array
    model: LinearModel

    def __repr__(self) -> str:
        return (
            f"LinearTraining({self.model!r}, {self.steps[-1]} steps, error {self.error[0]:.4g} → {self.error[-1]:.4g})"
        )


def train(
    model: LinearModel,
    X: Any,
    y: Any,
    learning_rate: float,
    steps: int,
    *,
    loss: str = "sum",
    batch_size: int | None = None,
    record_at: Iterable[int] | None = None,
    X_test: Any = None,
    y_test: Any = None,
    seed: int = 0,
    dtype: Any = "float64",
    progress: bool | None = None,
) -> LinearTraining:
    """Gradient descent on every weight of a linear model: W, F and C of an RNN, θ of a convolution.

    Parameters
    ----------
    model : LinearRNN or ScaledConv1D
        What to start from; it stays as it is. `ScaledConv1D.from_taps(rnn.impulse_response(T), scale_factors(T, ...))`
        starts where `rnn` does (58).
    X : sequences
        Inputs.
    y : sequences
        Targets with a value or vector per step.
    learning_rate : float
        η.
    steps : int
        Number of updates.
    loss : "sum" or "mean"
        "sum" is ½ Σ ‖y_t - f_t‖², the convention of `ConvolutionDescent` and `rntk.finite.train`; "mean" is the mean of
        squared errors over sequences, steps and outputs, as machine-learning frameworks have it. Descent on "mean" with
        rate η is descent on "sum" with 2η over their number.
    batch_size : int, optional
        Sequences per update, None for all. Batches are drawn without replacement, anew every epoch; runs with the same
        seed and data see the same batches whatever the model.
    record_at : iterable of int, optional
        Steps to record at; unless given, some twenty, closer at the start.
    X_test, y_test : sequences, optional
        More data to record the error on.
    seed : int
        Seed of the batches.
    dtype : "float64" or "float32"
        Precision of the weights and gradients.
    progress : bool or None
        None shows a bar on a terminal after two seconds; True always; False never.

    Returns
    -------
    LinearTraining

    Raises
    ------
    DivergenceError
        The error is no longer finite, or a million times that at the start.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import LinearRNN, train
    >>> X = np.random.default_rng(0).standard_normal((20, 10))
    >>> y = LinearRNN.random(4, seed=1)(X)
    >>> run = train(LinearRNN.random(100, seed=2), X, y, learning_rate=1e-3, steps=200)
    >>> bool(run.error[-1] < 0.1 * run.error[0])
    True
    """
    from ..finite.training import Schedule, descend  # says which extra to install where there is no JAX
    from .updates import Trainee, Weights

    batch = read_inputs(X, channels=model.n_x)
    target = read_values_by_step(y, batch, outputs=model.n_y)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together")
    test = None if X_test is None else read_inputs(X_test, "X_test", model.n_x)
    test_target = None if test is None else read_values_by_step(y_test, test, name="y_test", outputs=model.n_y)
    schedule = Schedule.of(learning_rate, steps, record_at)
    lags = len(model.rho) if isinstance(model, ScaledConv1D) else batch.max_length
    mean = check_choice("loss", loss, ("sum", "mean")) == "mean"

    trainee = Trainee(model, lags, dtype)
    if batch_size is None:
        rate = 2 * schedule.rate / target.size if mean else schedule.rate
        update = trainee.full_batch(*normal_equations(batch, target, lags), rate)
    else:
        size = min(check_count("batch_size", batch_size), len(batch))
        batches = draw_batches(len(batch), size, np.random.default_rng(seed))
        exists = np.arange(batch.max_length) < batch.lengths[:, None]

        def padded(values: NDArray[Any]) -> Array:
            """With zeros after the end of each sequence, which a causal filter never sees."""
            found = np.zeros((*exists.shape, values.shape[1]))
            found[exists] = values
            return found

        data = padded(batch.values), padded(target), exists
        update = trainee.mini_batch(*data, schedule.rate, batches, mean)
    test_errors, taps_by_step = [], []

    def advance(weights: Weights, count: int, limit: float) -> tuple[Weights, int]:
        return update(weights, count), count

    def look(weights: Weights) -> tuple[float, Array]:
        taps = trainee.taps(weights)
        return _error(taps, batch, target), taps

    def record(weights: Weights, taps: Array) -> None:
        taps_by_step.append(taps)
        if test is not None:
            test_errors.append(_error(taps, test, test_target))

    zero = float(np.mean(np.square(target)))
    weights, errors = descend(trainee.start, schedule, advance, look, record, zero, progress)
    return LinearTraining(
        steps=np.array(schedule.recorded),
        error=errors,
        test_error=None if test is None else np.array(test_errors),
        taps=np.stack(taps_by_step),
        model=trainee.finish(weights),
    )


def _error(taps: Array, batch: SequenceBatch, target: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.mean(np.square(convolve(taps, batch) - target)))


def draw_batches(count: int, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Which sequences each update sees, without end: epochs without replacement, their last batch filled up by -1."""
    while True:
        epoch = np.full(-(-count // size) * size, -1)
        epoch[:count] = rng.permutation(count)
        yield from epoch.reshape(-1, size)
