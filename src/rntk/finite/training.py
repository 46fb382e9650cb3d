"""Full-batch gradient descent on the squared loss, watched on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..errors import check_count
from ..runtime import progress_bar
from .inputs import Reading, read
from .kernels import MEMORY, on_batches
from .network import Network
from .precision import dtype_of, precision
from .weights import Parameters

Array = NDArray[Any]

#: Training counts as diverging once the loss exceeds this many times that of the start, or of predicting zero.
DIVERGED = 1e6


class DivergenceError(ArithmeticError):
    """Gradient descent runs away.

    Attributes
    ----------
    step : the step at which it was noticed.
    """

    def __init__(self, message: str, step: int = -1) -> None:
        super().__init__(message, step)
        self.step = step

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, repr=False)
class Training:
    """A run of gradient descent at R recorded steps; from `train`.

    Attributes
    ----------
    steps : (R,) steps recorded; 0 is before training.
    loss : (R,) L = ½ Σ_i ‖f(x_i) - y_i‖².
    outputs : (R, n, d) on the training data.
    test_outputs : (R, n_test, d), or None.
    parameter_drift : (R,) ‖θ_s - θ_0‖/√n over all raw weights, n the width.
    kernel_drift : (R,) ‖Θ̂_s - Θ̂_0‖ in the Frobenius norm on the training data, or None.
    parameters : weights after the last step.
    """

    steps: NDArray[np.int64]
    loss: Array
    outputs: Array
    test_outputs: Array | None
    parameter_drift: Array
    kernel_drift: Array | None
    parameters: Parameters

    def __repr__(self) -> str:
        return (
            f"Training({self.steps[-1]} steps, {len(self.steps)} recorded, loss {self.loss[0]:.4g} → "
            f"{self.loss[-1]:.4g}, drift {self.parameter_drift[-1]:.4g})"
        )


def train(
    net: Network,
    parameters: Parameters,
    X: Any,
    y: Any,
    learning_rate: float,
    steps: int,
    *,
    record_at: Iterable[int] | None = None,
    X_test: Any = None,
    kernel_drift: bool = False,
    state_seed: int = 0,
    memory: int = MEMORY,
    progress: bool | None = None,
) -> Training:
    """Full-batch gradient descent, θ ← θ - η ∇L, on the loss L = ½ Σ_i ‖f(x_i) - y_i‖².

    The loss is a sum over the data, not a mean: a learning rate for the mean is divided by the number of sequences
    (outputs, for the sequence readout) here. In the limit of infinite width descent converges for η < 2/λmax of the
    kernel matrix on X.

    Parameters
    ----------
    net, parameters : a network and the weights to start from, which stay as they are.
    X, y : sequences and targets, (n,) or (n, d); one row per step for the sequence readout.
    learning_rate : η.
    steps : how many.
    record_at : steps to record at, between 0 and `steps`; unless given, 0, `steps` and some twenty between them,
        closer at the start.
    X_test : more sequences to record outputs on.
    kernel_drift : also record how far the empirical tangent kernel on X has moved. One `empirical_ntk` per record,
        which for data of S steps in all takes as long as some 1 + S/n steps of training.
    state_seed : seed of the initial states, if sigma_h > 0. They belong to the data: drawn once, not trained. Those of
        X and X_test are the ones of `empirical_ntk(net, parameters, X, X_test, state_seed=...)`.
    memory : as for `empirical_ntk`, for `kernel_drift`.
    progress : None shows a bar on a terminal after two seconds; True always; False never.

    Raises
    ------
    DivergenceError : the loss grew beyond a million times its size; the message names the step.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, finite
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> net = finite.network(RNTK(), width=256)
    >>> training = finite.train(net, net.init(0, X), X, [1.0, -1.0], learning_rate=0.3, steps=200)
    >>> bool(training.loss[-1] < 1e-3 * training.loss[0])
    True
    """
    rate, marks = check_schedule(learning_rate, steps, record_at)
    dtype = dtype_of(parameters)
    batch = net.batch(parameters, X, "X")
    test = None if X_test is None else net.batch(parameters, X_test, "X_test")
    arrange = partial(read, architecture=net.architecture, width=net.width, directions=net.directions, dtype=dtype)

    def tangent_kernel(at: Parameters) -> Array:
        return on_batches(net, at, batch, None, state_seed, memory, want_nngp=False).ntk.astype(np.float64)

    record = _Record()
    with precision(dtype), progress_bar("training", steps, progress) as advance:
        inputs = arrange(batch, state_seed=state_seed)
        test_inputs = None if test is None else arrange(test, state_seed=state_seed, side=1)
        start = _outputs(net, parameters, inputs)
        target = jnp.asarray(_targets(y, start.shape, dtype))
        limit = DIVERGED * max(float(_loss(start, target)), float(_loss(jnp.zeros_like(target), target)))
        first_kernel = tangent_kernel(parameters) if kernel_drift else None
        now, step = parameters, 0
        for mark in sorted({*marks, steps}):
            now, done, seen = _descend(net, now, inputs, target, rate, mark - step, limit)
            if int(done) < mark - step:
                raise _divergence(step + int(done), float(seen), limit, rate)
            f = _outputs(net, now, inputs)
            loss = float(_loss(f, target))
            if not loss <= limit:
                raise _divergence(mark, loss, limit, rate)
            advance(mark - step)
            step = mark
            if mark not in marks:
                continue
            record.loss.append(loss)
            record.outputs.append(np.asarray(f))
            record.drift.append(float(_distance(now, parameters)) / net.width**0.5)
            if test_inputs is not None:
                record.test.append(np.asarray(_outputs(net, now, test_inputs)))
            if first_kernel is not None:
                record.kernel.append(float(np.linalg.norm(tangent_kernel(now) - first_kernel)))
    return Training(
        steps=np.array(marks),
        loss=np.array(record.loss),
        outputs=np.stack(record.outputs),
        test_outputs=np.stack(record.test) if record.test else None,
        parameter_drift=np.array(record.drift),
        kernel_drift=np.array(record.kernel) if kernel_drift else None,
        parameters=now,
    )


@dataclass
class _Record:
    """What has been recorded so far, one entry per step."""

    loss: list[float] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)
    test: list[Array] = field(default_factory=list)
    drift: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)


def _loss(f: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.sum((f - target) ** 2) / 2


@partial(jax.jit, static_argnums=0)
def _outputs(net: Network, parameters: Parameters, inputs: tuple[Reading, ...]) -> jax.Array:
    return net.apply(parameters, inputs)


@partial(jax.jit, static_argnums=0)
def _descend(
    net: Network,
    parameters: Parameters,
    inputs: tuple[Reading, ...],
    target: jax.Array,
    rate: Any,
    steps: Any,
    limit: Any,
) -> Any:
    """Parameters after `steps` steps, the number of steps made (fewer if the loss went beyond `limit`), a loss."""
    slope = jax.value_and_grad(lambda p: _loss(net.apply(p, inputs), target))

    def going_on(state: Any) -> Any:
        _, done, loss = state
        return (done < steps) & (loss <= limit)  # false for NaN

    def step(state: Any) -> Any:
        now, done, _ = state
        loss, gradient = slope(now)
        moved = jax.tree_util.tree_map(lambda p, g: p - jnp.asarray(rate, p.dtype) * g, now, gradient)
        return moved, done + (loss <= limit).astype(done.dtype), loss

    return lax.while_loop(going_on, step, (parameters, jnp.zeros_like(steps), jnp.zeros((), target.dtype)))


@jax.jit
def _distance(a: Parameters, b: Parameters) -> jax.Array:
    squares = jax.tree_util.tree_map(lambda p, q: jnp.sum((p - q) ** 2), a, b)
    return jnp.sqrt(sum(jax.tree_util.tree_leaves(squares)))


def check_schedule(learning_rate: Any, steps: Any, record_at: Iterable[int] | None) -> tuple[float, list[int]]:
    """The rate, and the steps to record at: given, or 0, `steps` and some twenty between them, closer at the start."""
    rate = float(learning_rate)
    if not 0 < rate < float("inf"):
        raise ValueError(f"learning_rate must be a positive number, not {learning_rate!r}")
    steps = check_count("steps", steps, 0)
    if record_at is None:
        spread = np.geomspace(1, max(steps, 1), 20).round().astype(int)
        return rate, sorted({0, int(steps), *(int(mark) for mark in spread if mark <= steps)})
    marks = sorted({int(mark) for mark in record_at})
    if not marks or marks[0] < 0 or marks[-1] > steps:
        raise ValueError(f"record_at must name steps between 0 and steps={steps}, not {marks}")
    return rate, marks


def _targets(y: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """`y` in the shape of the outputs."""
    target = np.asarray(y, dtype=np.float64)
    if target.ndim == 1 and shape[1] == 1:
        target = target[:, None]
    if target.shape != shape:
        raise ValueError(f"y has shape {np.shape(y)}; the network's outputs on X have {shape}")
    if not np.isfinite(target).all():
        raise ValueError("y must be finite")
    return target.astype(dtype)


def _divergence(step: int, loss: float, limit: float, rate: float) -> DivergenceError:
    return DivergenceError(
        f"training diverges: after {step} steps the loss is {loss:.3g}, more than {limit:.3g}, a million times that of "
        f"the start. Take a smaller learning rate than {rate:.4g}; descent converges below 2/λmax of the kernel matrix "
        "on X (the loss is a sum over X, not a mean)",
        step=step,
    )
