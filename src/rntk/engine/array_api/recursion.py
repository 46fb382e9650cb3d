"""Pairs: the recursion (21) to (23), one step of time after another, on whole arrays of pairs.

The shape of an array of pairs is what broadcasting a left and a right part gives: (a, b) for every sequence with every
other, (k,) for each sequence with itself, and one more axis for the steps of the right side where every step meets
every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ...activations import Activation
from ...architecture import Architecture
from .duals import Dual, dual_of
from .libraries import Library, compiled
from .sides import Layer, Side

EVERY = slice(None)
#: Where the sequences of the left and of the right side go in an array of pairs; in tables the steps of the right side
#: come last.
AXES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "pairs": ((EVERY, None), (None, EVERY)),
    "alone": ((EVERY,), (EVERY,)),
    "tables": ((EVERY, None, None), (None, EVERY, EVERY)),
    "tables alone": ((EVERY, None), (EVERY, EVERY)),
}


@dataclass(frozen=True)
class Network:
    """What is computed, by which formulas, on whose arrays."""

    architecture: Architecture
    dual: Dual
    library: Library
    precision: str

    @property
    def dtype(self) -> Any:
        """Of the pairs."""
        return self.library.dtype(self.precision)

    def stepper(self, mode: str) -> Callable[..., State]:
        """`advance` for these arrays: of step t_x of the left layers and t_y of the right ones."""
        standard = self.architecture.parameterization == "standard"
        jax = self.library.name == "jax"
        return _stepper(self.library.xp, self.architecture.activation, self.precision, standard, mode, jax)


class State(NamedTuple):
    """What a step hands to the next: w and Q of every layer (23). Arrays in it are never written to."""

    w: list[Any]
    q: list[Any]


@lru_cache(maxsize=256)
def _stepper(
    xp: Any, activation: Activation, precision: str, standard: bool, mode: str, jax: bool
) -> Callable[..., State]:
    dual = dual_of(activation, xp, precision)
    rows, columns = AXES[mode]

    def step(left: list[Layer], right: list[Layer], t_x: int, t_y: int, before: State, keep: Any) -> State:
        x = [layer.view(lambda part: part[(t_x, *rows)]) for layer in left]
        # In tables the right side comes with all its steps, in place.
        y = right if mode.startswith("tables") else [layer.view(lambda part: part[(t_y, *columns)]) for layer in right]
        return advance(xp, dual, standard, x, y, before, keep)

    return compiled(step) if jax else step


def advance(
    xp: Any, dual: Dual, standard: bool, left: list[Layer], right: list[Layer], before: State, keep: Any
) -> State:
    """One step of time through all layers; `keep` marks pairs of steps that share weights (16), None if all do."""
    after = State([], [])
    for layer, (x, y) in enumerate(zip(left, right, strict=True)):
        w, q = before.w[layer], before.q[layer]
        gain = x.recurrent * y.recurrent
        u = _square(x.recurrent - y.recurrent)
        for a, b in zip(x.inputs, y.inputs, strict=True):
            u += _square(a - b)
        if x.bias is not None:
            u += _square(x.bias - y.bias)
        tangent = gain * q
        gain *= w
        if layer > 0:
            u += _square(x.below - y.below)
            lift = x.below * y.below
            tangent += lift * after.q[-1]
            lift *= after.w[-1]
            gain += lift
        u *= 0.5
        u += gain
        u = xp.clip(u, 0.0, 2.0)  # theory's bounds; rounding may step out by an ulp
        if standard:
            tangent += _direct(x, y, w, after.w[-1] if layer > 0 else None)
        else:
            tangent += 1.0
            tangent -= u
        if keep is not None:
            u = xp.where(keep, u, xp.ones_like(u))
            tangent = xp.where(keep, tangent, xp.zeros_like(tangent))
        w, slope = dual.step(u, x.marks, y.marks)
        slope *= tangent
        after.w.append(w)
        after.q.append(slope)
    return after


def _square(x: Any) -> Any:
    x *= x
    return x


def _direct(x: Layer, y: Layer, w: Any, w_below: Any) -> Any:
    """What the parameters of a step add to Θ̂ directly, in the standard parameterisation (27)."""
    (state, source, bias), (state2, source2, bias2) = x.gradient, y.gradient
    total = state * state2 * (1 - w)
    if w_below is not None:
        total += source * source2 * (1 - w_below)
    else:
        for a, b in zip(source, source2, strict=True):
            total += a * b
    if bias is not None:
        total += bias * bias2
    return total


def outputs(network: Network, state: State) -> tuple[Any, Any]:
    """(nngp, ntk) of the outputs at a step, without the norms ψ ψ' (26)."""
    value = 1 - state.w[-1]
    sigma_v2 = network.architecture.sigma_v**2
    return sigma_v2 * value, network.architecture.readout_factor * value + sigma_v2 * state.q[-1]


def in_step(network: Network, left: Side, right: Side, *, same: bool = False, alone: bool = False) -> Iterator[State]:
    """The states along one diagonal: both sides advance together, aligned at the last steps of the blocks.

    `same` if both sides are the same sequences, `alone` if each meets itself only. Pairs that haven't begun yet hold
    finite numbers without meaning.
    """
    library, architecture = network.library, network.architecture
    xp, mode = library.xp, "alone" if alone else "pairs"
    step, (rows, columns) = network.stepper(mode), AXES[mode]
    start = _start(network, left, right, same, alone)
    nothing = xp.zeros_like(start)
    state = State([start] * architecture.depth, [nothing] * architecture.depth)
    steps = min(left.steps, right.steps)
    lags = [side.steps - steps for side in (left, right)]
    starts = {first - lag for side, lag in zip((left, right), lags, strict=True) for first in side.first} - {0}
    first_x, first_y, length_x, length_y = (
        xp.asarray(counts, device=library.device)[axes]
        for counts, axes in (
            (left.first, rows),
            (right.first, columns),
            (left.lengths, rows),
            (right.lengths, columns),
        )
    )
    keep = None
    if not architecture.tied and not alone and len({*left.lengths, *right.lengths}) > 1:
        keep = length_x == length_y
    for t in range(steps):
        t_x, t_y = t + lags[0], t + lags[1]
        if t in starts:
            # A pair begins where the shorter of its sequences does: no recurrent term, as at every first step.
            fresh = (first_x == t_x) | (first_y == t_y)
            state = State([xp.where(fresh, start, w) for w in state.w], [xp.where(fresh, nothing, q) for q in state.q])
        state = step(left.layers, right.layers, t_x, t_y, state, keep)
        yield state


def rows_of_tables(
    network: Network, left: Side, right: Side, *, same: bool = False, alone: bool = False
) -> Iterator[State]:
    """The states of one step of the left side with all steps of the right one, (a, b, T') or (k, T') each.

    Row t of the (t, t') table follows from row t - 1, shifted by one step (11). Sides are aligned at their first steps.
    """
    library, architecture = network.library, network.architecture
    xp, mode = library.xp, "tables alone" if alone else "tables"
    step, (_, columns) = network.stepper(mode), AXES[mode]
    all_steps = [layer.view(lambda part: xp.permute_dims(part, (1, 0))[columns]) for layer in right.layers]
    first = _start(network, left, right, same, alone)[..., None]
    # Left of the first column, and above the first row, nothing is recurrent: w = 1 and Q = 0.
    one, zero = xp.ones_like(first), xp.zeros_like(first)
    further = xp.ones((*first.shape[:-1], right.steps - 1), dtype=network.dtype, device=library.device)
    begin = xp.concat([first, further], axis=-1)
    state = State([begin] * architecture.depth, [xp.zeros_like(begin)] * architecture.depth)
    own = xp.arange(right.steps, device=library.device)
    for t in range(left.steps):
        keep = None if architecture.tied else own == t
        state = step(left.layers, all_steps, t, t, state, keep)
        yield state
        state = State(
            [xp.concat([one, w[..., :-1]], axis=-1) for w in state.w],
            [xp.concat([zero, q[..., :-1]], axis=-1) for q in state.q],
        )


def _start(network: Network, left: Side, right: Side, same: bool, alone: bool) -> Any:
    """w before the first step: 1, and 0 for a sequence with itself, whose initial states are one (11)."""
    xp, device = network.library.xp, network.library.device
    a, b = left.norm.shape[1], right.norm.shape[1]
    if alone:
        return xp.zeros((a,), dtype=network.dtype, device=device)
    ones = xp.ones((a, b), dtype=network.dtype, device=device)
    return ones - xp.eye(a, dtype=network.dtype, device=device) if same else ones
