"""Gradient descent on finite linear RNNs and on convolutions, step by step (JAX)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_count
from ..runtime import progress_bar
from ..sequences import SequenceBatch
from .convolution import ScaledConv1D
from .data import read_inputs, read_targets
from .filters import ages, convolve, normal_equations
from .rnn import LinearRNN

Array = NDArray[np.float64]
LinearModel = LinearRNN | ScaledConv1D


@dataclass(frozen=True, repr=False)
class LinearTraining:
    """A run of gradient descent at R recorded steps; from `train`.

    Attributes
    ----------
    steps : (R,) updates made; 0 is before training.
    error : (R,) mean squared error over all steps and outputs of the training data. test_error : the same, or None.
    taps : (R, J, n_y, n_x) impulse response of the model. model : after the last step.
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
    model : what to start from; it stays as it is. `ScaledConv1D.from_taps(rnn.impulse_response(T), scale_factors(T,
        ...))` starts where `rnn` does (58).
    X, y : sequences, and targets with a value or vector per step.
    learning_rate : η. steps : number of updates.
    loss : "sum" is ½ Σ ‖y_t - f_t‖², the convention of `ConvolutionDescent` and `rntk.finite.train`; "mean" is the mean
        of squared errors over sequences, steps and outputs, as machine-learning frameworks have it. Descent on "mean"
        with rate η is descent on "sum" with 2η over their number.
    batch_size : sequences per update, None for all. Batches are drawn without replacement, anew every epoch; runs with
        the same seed and data see the same batches whatever the model.
    record_at : steps to record at; unless given, some twenty, closer at the start.
    dtype : "float64" or "float32" for the weights and gradients.
    progress : None shows a bar on a terminal after two seconds; True always; False never.

    Raises
    ------
    rntk.finite.DivergenceError : the error is no longer finite, or a million times that at the start.

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
    from ..finite import DivergenceError  # says which extra to install where there is no JAX
    from ..finite.training import check_schedule
    from . import updates

    batch = read_inputs(X, channels=model.n_x)
    target = read_targets(y, batch)
    if target.shape[1] != model.n_y:
        raise ValueError(f"y has {target.shape[1]} outputs, the model {model.n_y}")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together")
    test = None if X_test is None else read_inputs(X_test, "X_test", model.n_x)
    test_target = None if test is None else read_targets(y_test, test, "y_test")
    rate, marks = check_schedule(learning_rate, steps, record_at)
    lags = len(model.rho) if isinstance(model, ScaledConv1D) else batch.max_length
    if loss not in ("sum", "mean"):
        raise ValueError(f'loss must be "sum" or "mean", not {loss!r}')

    parameters = updates.start(model, dtype)
    if batch_size is None:
        rate = rate if loss == "sum" else 2 * rate / target.size
        gram, moments = normal_equations(batch, target, lags)
        advance = updates.full_batch(model, gram, moments, lags, rate, dtype)
    else:
        size = min(check_count("batch_size", batch_size), len(batch))
        order = _Order(len(batch), size, np.random.default_rng(seed))
        padded = _padded(batch, target)
        advance = updates.mini_batch(model, *padded, lags, rate, order.take, loss == "mean", dtype)

    record: list[tuple[float, float, Array]] = []
    before = _error(updates.taps_of(model, parameters, lags, dtype), batch, target)
    limit, done = 1e6 * max(before, float(np.mean(np.square(target)))), 0
    with progress_bar("training", steps, progress) as shown:
        for mark in sorted({*marks, steps}):
            parameters = advance(parameters, mark - done)
            shown(mark - done)
            done = mark
            taps = updates.taps_of(model, parameters, lags, dtype)
            error = _error(taps, batch, target)
            if not error <= limit:
                raise DivergenceError(
                    f"training diverges: after {mark} steps the error is {error:.3g}. Take a smaller learning rate "
                    f"than {learning_rate:.4g}; descent on the sum of squares converges below 2/λmax of the kernel "
                    "matrix (ConvolutionDescent.critical_rate)",
                    step=mark,
                )
            if mark in marks:
                record.append((error, np.nan if test is None else _error(taps, test, test_target), taps))
    errors, test_errors, taps_by_step = zip(*record, strict=True)
    return LinearTraining(
        steps=np.array(marks),
        error=np.array(errors),
        test_error=None if test is None else np.array(test_errors),
        taps=np.stack(taps_by_step),
        model=updates.finish(model, parameters),
    )


def _error(taps: Array, batch: SequenceBatch, target: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.mean(np.square(convolve(taps, batch) - target)))


def _padded(batch: SequenceBatch, target: Array) -> tuple[Array, Array, Array]:
    """Values (N, T, n_x), targets (N, T, n_y) and which steps exist (N, T).

    Zeros follow the end of a sequence: a causal filter sees none of them before it.
    """
    shape = len(batch), batch.max_length
    row = np.repeat(np.arange(len(batch)), batch.lengths)
    values, targets = np.zeros((*shape, batch.n_channels)), np.zeros((*shape, target.shape[1]))
    exists = np.zeros(shape)
    at = row, ages(batch)
    values[at], targets[at], exists[at] = batch.values, target, 1.0
    return values, targets, exists


class _Order:
    """Which sequences each update sees: epochs without replacement. The last batch of an epoch may be short (-1)."""

    def __init__(self, count: int, size: int, rng: np.random.Generator) -> None:
        self.count, self.size, self.rng = count, size, rng
        self.left = np.empty((0, size), dtype=np.int64)

    def take(self, updates: int) -> NDArray[np.int64]:
        """The batches of the next `updates` updates, (updates, size)."""
        while len(self.left) < updates:
            epoch = np.full(-(-self.count // self.size) * self.size, -1)
            epoch[: self.count] = self.rng.permutation(self.count)
            self.left = np.concatenate([self.left, epoch.reshape(-1, self.size)])
        taken, self.left = self.left[:updates], self.left[updates:]
        return taken
