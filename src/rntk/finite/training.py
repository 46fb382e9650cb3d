"""Gradient descent, watched on its way: the loop, and full batches on finite networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..errors import DivergenceError, check_count, check_positive
from ..runtime import progress_bar
from ..sequences.losses import LOSSES, read_loss
from ..sequences.targets import read_values
from .empirical import MEMORY, on_batches
from .inputs import Reading, read
from .network import FiniteNetwork
from .precision import dtype_of, precision
from .weights import Parameters

Array = NDArray[Any]
State = TypeVar("State")
View = TypeVar("View")

#: Training counts as diverging once the loss exceeds this many times that of the start, or of predicting zero.
DIVERGED = 1e6


@dataclass(frozen=True, repr=False)
class Training:
    """A run of gradient descent at R recorded steps; from `train`.

    Attributes
    ----------
    steps : ndarray of shape (R,)
        Steps recorded; 0 is before training.
    loss : ndarray of shape (R,)
        ℓ(f(X), y), a sum, without the term of the ridge.
    outputs : ndarray of shape (R, n, d)
        On the training data.
    test_outputs : ndarray of shape (R, n_test, d) or None
        On the test data.
    parameter_drift : ndarray of shape (R,)
        ‖θ_s - θ_0‖/√n over all raw weights, n the width.
    kernel_drift : ndarray of shape (R,) or None
        ‖Θ̂_s - Θ̂_0‖ in the Frobenius norm on the training data.
    parameters : dict
        Weights after the last step.
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
    net: FiniteNetwork,
    parameters: Parameters,
    X: Any,
    y: Any,
    learning_rate: float,
    steps: int,
    *,
    loss: str = "squared",
    ridge: float = 0.0,
    record_at: Iterable[int] | None = None,
    X_test: Any = None,
    kernel_drift: bool = False,
    state_seed: int = 0,
    memory: int = MEMORY,
    progress: bool | None = None,
) -> Training:
    """Full-batch gradient descent, θ ← θ - η ∇L, on the loss L = ½ Σ_i ‖f(x_i) - y_i‖², or another one.

    The loss is a sum over the data, not a mean: a learning rate for the mean is divided by the number of sequences
    (outputs, for the sequence readout) here. In the limit of infinite width descent converges for η < 2/λmax of the
    kernel matrix on X.

    Parameters
    ----------
    net : FiniteNetwork
        The network.
    parameters : dict
        The weights to start from, which stay as they are.
    X : sequences
        As for the kernel.
    y : array-like of shape (n,) or (n, d)
        Targets; one row per step for the sequence readout.
    learning_rate : float
        η.
    steps : int
        How many.
    loss : "squared", "huber" or "cross-entropy"
        ℓ: "huber" is linear beyond a distance of one; "cross-entropy" is logistic for one output, with targets ±1, and
        softmax for several, with rows of y that are probabilities.
    ridge : float
        λ ≥ 0 of the term ½ λ ‖θ - θ_0‖², as in `rntk.theory.Dynamics`; the RNTK paper writes λ² for it.
    record_at : iterable of int, optional
        Steps to record at, between 0 and `steps`; unless given, 0, `steps` and some twenty between them, closer at the
        start.
    X_test : sequences, optional
        More sequences to record outputs on.
    kernel_drift : bool
        Whether to record how far the empirical tangent kernel on X has moved. One `empirical_ntk` per record, which for
        data of S steps in all takes as long as some 1 + S/n steps of training.
    state_seed : int
        Seed of the initial states, if sigma_h > 0. They belong to the data: drawn once, not trained. Those of X and
        X_test are the ones of `empirical_ntk(net, parameters, X, X_test, state_seed=...)`.
    memory : int
        As for `empirical_ntk`, for `kernel_drift`.
    progress : bool or None
        None shows a bar on a terminal after two seconds; True always; False never.

    Returns
    -------
    Training

    Raises
    ------
    DivergenceError
        The loss grew beyond a million times its size; the error names the step.

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
    schedule = Schedule.of(learning_rate, steps, record_at)
    dtype = dtype_of(parameters)
    batch = net.batch(parameters, X, "X")
    test = None if X_test is None else net.batch(parameters, X_test, "X_test")
    unit, count = ("step", len(batch.values)) if net.every_step else ("sequence", len(batch))
    values = read_values(y, count, unit=unit, outputs=net.outputs).astype(dtype)
    chosen, weight = read_loss(loss, values.astype(np.float64)), check_positive("ridge", ridge, or_zero=True)
    arrange = partial(read, network=net.network, width=net.width, directions=net.directions, dtype=dtype)

    def tangent_kernel(at: Parameters) -> Array:
        return on_batches(net, at, batch, None, state_seed, memory).ntk.astype(np.float64)

    with precision(dtype):
        inputs = arrange(batch, state_seed=state_seed)
        test_inputs = None if test is None else arrange(test, state_seed=state_seed, side=1)
        target = jnp.asarray(values)
        start, first_kernel = parameters, tangent_kernel(parameters) if kernel_drift else None
        outputs, test_outputs, drift, kernel_moved = [], [], [], []

        def look(now: Parameters) -> tuple[float, jax.Array]:
            f = _outputs(net, now, inputs)
            return float(chosen.value(jnp, f, target)), f

        def advance(now: Parameters, count: int, limit: float) -> tuple[Parameters, int]:
            moved, made = _descend(net, loss, now, start, inputs, target, schedule.rate, weight, count, limit)
            return moved, int(made)

        def record(now: Parameters, f: jax.Array) -> None:
            outputs.append(np.asarray(f))
            drift.append(float(_distance(now, start)) / net.width**0.5)
            if test_inputs is not None:
                test_outputs.append(np.asarray(_outputs(net, now, test_inputs)))
            if first_kernel is not None:
                kernel_moved.append(float(np.linalg.norm(tangent_kernel(now) - first_kernel)))

        zero = float(chosen.value(jnp, jnp.zeros_like(target), target))
        parameters, losses = descend(parameters, schedule, advance, look, record, zero, progress)
    return Training(
        steps=np.array(schedule.recorded),
        loss=losses,
        outputs=np.stack(outputs),
        test_outputs=np.stack(test_outputs) if test_outputs else None,
        parameter_drift=np.array(drift),
        kernel_drift=np.array(kernel_moved) if kernel_drift else None,
        parameters=parameters,
    )


@partial(jax.jit, static_argnums=0)
def _outputs(net: FiniteNetwork, parameters: Parameters, inputs: tuple[Reading, ...]) -> jax.Array:
    return net.apply(parameters, inputs)


@partial(jax.jit, static_argnums=(0, 1))
def _descend(
    net: FiniteNetwork,
    loss: str,
    parameters: Parameters,
    start: Parameters,
    inputs: tuple[Reading, ...],
    target: jax.Array,
    rate: Any,
    ridge: Any,
    steps: Any,
    limit: Any,
) -> Any:
    """Parameters after `steps` steps, and the number of steps made: fewer if the loss went beyond `limit`."""
    slope = jax.value_and_grad(lambda p: LOSSES[loss].value(jnp, net.apply(p, inputs), target))

    def going_on(state: Any) -> Any:
        _, done, fine = state
        return (done < steps) & fine

    def step(state: Any) -> Any:
        now, done, _ = state
        value, gradient = slope(now)
        fine = value <= limit  # false for NaN

        def update(p: Any, g: Any, origin: Any) -> Any:
            pull = jnp.asarray(ridge, p.dtype) * (p - origin)
            return jnp.where(fine, p - jnp.asarray(rate, p.dtype) * (g + pull), p)

        moved = jax.tree_util.tree_map(update, now, gradient, start)
        return moved, done + fine.astype(done.dtype), fine

    return lax.while_loop(going_on, step, (parameters, jnp.zeros_like(steps), jnp.bool_(True)))[:2]


@jax.jit
def _distance(a: Parameters, b: Parameters) -> jax.Array:
    squares = jax.tree_util.tree_map(lambda p, q: jnp.sum((p - q) ** 2), a, b)
    return jnp.sqrt(sum(jax.tree_util.tree_leaves(squares)))


# -- the loop, for whatever is trained ---------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """How long to descend, and when to look.

    Attributes
    ----------
    rate : float
        The learning rate.
    steps : int
        How many.
    recorded : list of int
        Steps to record at, ascending.
    """

    rate: float
    steps: int
    recorded: list[int]

    @classmethod
    def of(cls, learning_rate: Any, steps: Any, record_at: Iterable[int] | None) -> Schedule:
        """Checked; unless given, the recorded ones are 0, `steps` and some twenty between them, closer at the start."""
        rate, steps = check_positive("learning_rate", learning_rate), check_count("steps", steps, 0)
        if record_at is None:
            spread = np.geomspace(1, max(steps, 1), 20).round().astype(int)
            return cls(rate, steps, sorted({0, steps, *(int(step) for step in spread if step <= steps)}))
        recorded = sorted({int(step) for step in record_at})
        if not recorded or recorded[0] < 0 or recorded[-1] > steps:
            raise ValueError(f"record_at must name steps between 0 and steps={steps}, not {recorded}")
        return cls(rate, steps, recorded)


def descend(
    state: State,
    schedule: Schedule,
    advance: Callable[[State, int, float], tuple[State, int]],
    look: Callable[[State], tuple[float, View]],
    record: Callable[[State, View], None],
    zero: float,
    progress: bool | None,
) -> tuple[State, Array]:
    """Descend from one recorded step to the next, and stop where the loss runs away.

    Parameters
    ----------
    state : Any
        What is trained.
    schedule : Schedule
        When to look.
    advance : callable
        (state, steps, limit) to the state so many steps later and the number of steps made, which may be fewer once the
        loss is beyond the limit.
    look : callable
        A state to its loss and whatever `record` needs of it.
    record : callable
        Called with state and view at every recorded step.
    zero : float
        Loss of predicting zero: a start that happens to be good is no reason to call a worse loss a divergence.
    progress : bool or None
        Whether to show a bar.

    Returns
    -------
    state : Any
        After the last step.
    losses : ndarray of shape (R,)
        At the recorded steps.
    """
    losses, done = [], 0
    limit = DIVERGED * max(look(state)[0], zero)
    with progress_bar("training", schedule.steps, progress) as shown:
        for stop in sorted({*schedule.recorded, schedule.steps}):
            before = done
            state, made = advance(state, stop - done, limit)
            done += made
            loss, view = look(state)
            if done < stop or not loss <= limit:
                raise DivergenceError(
                    f"training diverges: after {done} steps the loss is {loss:.3g}, more than {limit:.3g}, a million "
                    f"times that of the start. Take a smaller learning rate than {schedule.rate:.4g}; descent on a sum "
                    "of squares over X, not a mean, converges below 2/λmax of the kernel matrix",
                    step=done,
                )
            shown(stop - before)
            if stop in schedule.recorded:
                losses.append(loss)
                record(state, view)
    return state, np.array(losses)
