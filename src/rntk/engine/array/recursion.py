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
from ...activations.arrays import ArrayForm, opposite
from ...network import Network
from .libraries import Library, compiled
from .sides import LayerParts, PanelSide

#: Distances (u and ℓ²/8 together) below which two sides are compared by what is carried, as in the fused engine.
CLOSE = 1e-8
#: Relative differences of variances beyond which they aren't close.
LARGEST_CHANGE = 0.01

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
class Formulas:
    """What is computed, by which formulas, on whose arrays."""

    network: Network
    dual: ArrayForm
    library: Library
    precision: str

    @property
    def dtype(self) -> Any:
        """Of the pairs."""
        return self.library.dtype(self.precision)

    def stepper(self, mode: str) -> Callable[..., State]:
        """`advance` for these arrays: of step t_x of the left layers and t_y of the right ones."""
        standard = self.network.parameterization == "standard"
        jax = self.library.name == "jax"
        return _stepper(self.library.xp, self.network.activation, self.precision, standard, mode, jax)


class State(NamedTuple):
    """What a step hands to the next, for every layer. Arrays in it are never written to.

    Attributes
    ----------
    w, q
        w, signed as distances are, and Q (23).
    change
        log ψ'²/ψ² of close pairs, NaN where it isn't known better than from either side (31a).
    """

    w: list[Any]
    q: list[Any]
    change: list[Any]


@lru_cache(maxsize=256)
def _stepper(
    xp: Any, activation: Activation, precision: str, standard: bool, mode: str, jax: bool
) -> Callable[..., State]:
    dual = activation.array_form(xp, precision)
    rows, columns = AXES[mode]

    def step(left: list[LayerParts], right: list[LayerParts], t_x: int, t_y: int, before: State, keep: Any) -> State:
        x = [layer.view(lambda part: part[(t_x, *rows)]) for layer in left]
        # In tables the right side comes with all its steps, in place.
        y = right if mode.startswith("tables") else [layer.view(lambda part: part[(t_y, *columns)]) for layer in right]
        return advance(xp, dual, standard, x, y, before, keep)

    return compiled(step) if jax else step


def advance(
    xp: Any, dual: ArrayForm, standard: bool, left: list[LayerParts], right: list[LayerParts], before: State, keep: Any
) -> State:
    """One step of time through all layers; `keep` marks pairs of steps that share weights (16), None if all do."""
    after = State([], [], [])
    for layer, (x, y) in enumerate(zip(left, right, strict=True)):
        flows = [Incoming(x.recurrent, y.recurrent, before.w[layer], before.q[layer], before.change[layer])]
        if layer > 0:
            flows.append(Incoming(x.below, y.below, after.w[-1], after.q[-1], after.change[-1]))
        near, far = _ends(xp, dual, x, y, flows)
        d = xp.where(near <= far, near, opposite(xp, far))
        gap, change = None, None
        if not dual.homogeneous:
            gap = x.root * y.over - y.root * x.over
            d, gap, change = settle(xp, dual, x, y, flows, d, gap)
        tangent = _direct(xp, dual, x, y, flows) if standard else _correlation(xp, d)
        for flow in flows:
            tangent = tangent + flow.gain * flow.q
        if keep is not None:
            d = xp.where(keep, d, xp.ones_like(d))
            tangent = xp.where(keep, tangent, xp.zeros_like(tangent))
        w, slope = dual.step(d, gap, x.marks, y.marks)
        after.w.append(w)
        after.q.append(slope * tangent)
        after.change.append(before.change[layer] if change is None else change)
    return after


class Incoming(NamedTuple):
    """What reaches a layer through weights: from the step before, or from the layer below.

    Attributes
    ----------
    x, y
        Its share of the unit vector on either side, γ or η.
    w, q, change
        As in `State`.
    """

    x: Any
    y: Any
    w: Any
    q: Any
    change: Any

    @property
    def gain(self) -> Any:
        return self.x * self.y


def _ends(xp: Any, dual: ArrayForm, x: LayerParts, y: LayerParts, flows: list[Incoming]) -> tuple[Any, Any]:
    """u and 2 - u, each as a sum of non-negative terms (21), (21a); at most one where the other is larger."""
    near, far = 0.0, 0.0
    for flow in flows:
        apart = 0.5 * (flow.x - flow.y) ** 2
        from_equal, from_opposite = _distances(xp, dual, flow.w)
        near, far = near + apart + flow.gain * from_equal, far + apart + flow.gain * from_opposite
    parts = list(zip(x.inputs, y.inputs, strict=True)) + ([(x.bias, y.bias)] if x.bias is not None else [])
    for a, b in parts:
        near, far = near + 0.5 * (a - b) ** 2, far + 0.5 * (a + b) ** 2
    return xp.clip(near, 0.0, 2.0), xp.clip(far, 0.0, 1.0)  # theory's bounds; rounding may step out by an ulp


def _distances(xp: Any, dual: ArrayForm, w: Any) -> tuple[Any, Any]:
    """A signed distance as one from being equal, and as one from being opposite."""
    if not dual.odd:
        return w, 2 - w
    return xp.where(w >= 0, w, 2 + w), xp.where(w >= 0, 2 - w, -w)


def _correlation(xp: Any, d: Any) -> Any:
    """c from a signed distance."""
    return _sign(xp, d) - d


def _sign(xp: Any, d: Any) -> Any:
    """1 where two sides are closer to being equal, -1 where closer to being opposite."""
    return xp.where(d >= 0, xp.ones_like(d), -xp.ones_like(d))


def settle(
    xp: Any, dual: ArrayForm, x: LayerParts, y: LayerParts, flows: list[Incoming], d: Any, gap: Any
) -> tuple[Any, Any, Any]:
    """d and the gap of variances put right where two sides are close, and log ψ'²/ψ² after the activation (31a), (31b).

    Rounding of the unit vectors, and of the variances, would outgrow small differences in a chaotic recursion; what is
    carried has all their digits.
    """
    far = d < 0
    sign, zero = _sign(xp, d), xp.zeros_like(d)
    scale = x.input_scale
    changes = [_known(xp, flow, x.over, y.over) for flow in flows]
    growth = zero
    for flow, change in zip(flows, changes, strict=True):
        growth = growth + flow.x**2 * xp.expm1(change)
    for a, b in zip(x.raw, y.raw, strict=True):
        growth = growth + (scale * (b - a)) * (scale * (b + a))
    small = xp.abs(growth) < LARGEST_CHANGE  # not where it is NaN
    growth = xp.where(small, growth, zero)
    ell = xp.log1p(growth)
    shrink = xp.expm1(-0.5 * ell)
    bias, bias2 = (zero, zero) if x.bias is None else (x.bias, y.bias)
    squares = xp.where(far, bias + bias2, bias * shrink) ** 2
    rest = bias**2 * shrink * (2 + shrink)  # what other parts have more of the second unit vector than of the first
    u = 0.5 * squares
    for flow, change in zip(flows, changes, strict=True):
        turn = xp.expm1(0.5 * (change - ell))
        rest = rest + flow.x**2 * turn * (2 + turn)
        from_equal, from_opposite = _distances(xp, dual, flow.w)
        u = u + 0.5 * (flow.x * turn) ** 2 + flow.gain * xp.where(far, from_opposite, from_equal)
    for a, b in zip(x.raw, y.raw, strict=True):
        unit = scale * a
        apart = scale * ((a - sign * b) - sign * b * shrink)
        if len(x.raw) == 1:
            # A single large channel follows from all that is small.
            left = unit * unit - rest
            size = xp.abs(unit) + xp.sqrt(xp.where(left > 0, left, zero))
            apart = xp.where(unit * unit > 0.5, rest / xp.where(size > 0, size, zero + 1), apart)
        u = u + 0.5 * apart * apart
    # False where u is NaN. A step without variance is close to nothing.
    close = small & (u + 0.125 * ell * ell < CLOSE) & (x.root > 0) & (y.root > 0)
    (g, dg), (g2, dg2) = x.growth, y.growth
    after = 0.5 * ell * (g + g2) - ell * ell / 12 * (dg2 - dg)
    return (
        xp.where(close, xp.where(far, opposite(xp, u), u), d),
        xp.where(close, -2 * xp.sinh(0.5 * ell), gap),
        xp.where(close, after, xp.full_like(after, xp.nan)),
    )


def _known(xp: Any, flow: Incoming, over: Any, over2: Any) -> Any:
    """log ψ'²/ψ² of what arrived through weights: as carried, or from its shares; NaN where only one side has any."""
    top, bottom = flow.y * over, flow.x * over2
    both = (top > 0) & (bottom > 0)
    one = xp.ones_like(top)
    fresh = 2 * xp.log(xp.where(both, top, one) / xp.where(both, bottom, one))
    fresh = xp.where(both | ((top == 0) & (bottom == 0)), fresh, xp.full_like(fresh, xp.nan))
    return xp.where(xp.isnan(flow.change), fresh, flow.change)


def _direct(xp: Any, dual: ArrayForm, x: LayerParts, y: LayerParts, flows: list[Incoming]) -> Any:
    """What the parameters of a step add to Θ̂ directly, in the standard parameterisation (27)."""
    (state, source, bias), (state2, source2, bias2) = x.gradient, y.gradient
    total = state * state2 * (1 - _distances(xp, dual, flows[0].w)[0])
    if len(flows) > 1:
        total = total + source * source2 * (1 - _distances(xp, dual, flows[1].w)[0])
    else:
        for a, b in zip(source, source2, strict=True):
            total = total + a * b
    if bias is not None:
        total = total + bias * bias2
    return total


def outputs(recursion: Formulas, state: State) -> tuple[Any, Any]:
    """(nngp, ntk) of the outputs at a step, without the norms ψ ψ' (26)."""
    value = _correlation(recursion.library.xp, state.w[-1]) if recursion.dual.odd else 1 - state.w[-1]
    sigma_v2 = recursion.network.sigma_v**2
    return sigma_v2 * value, recursion.network.readout_factor * value + sigma_v2 * state.q[-1]


def in_step(
    recursion: Formulas, left: PanelSide, right: PanelSide, *, same: bool = False, alone: bool = False
) -> Iterator[State]:
    """The states along one diagonal: both sides advance together, aligned at the last steps of the blocks.

    `same` if both sides are the same sequences, `alone` if each meets itself only. Pairs that haven't begun yet hold
    finite numbers without meaning.
    """
    library, network = recursion.library, recursion.network
    xp, mode = library.xp, "alone" if alone else "pairs"
    step, (rows, columns) = recursion.stepper(mode), AXES[mode]
    start = _start(recursion, left, right, same, alone)
    nothing = xp.zeros_like(start)
    unknown = xp.full_like(start, xp.nan)
    state = State([start] * network.depth, [nothing] * network.depth, [unknown] * network.depth)
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
    if not network.tied and not alone and len({*left.lengths, *right.lengths}) > 1:
        keep = length_x == length_y
    for t in range(steps):
        t_x, t_y = t + lags[0], t + lags[1]
        if t in starts:
            # A pair begins where the shorter of its sequences does: no recurrent term, as at every first step.
            fresh = (first_x == t_x) | (first_y == t_y)
            state = State(
                *(
                    [xp.where(fresh, value, each) for each in part]
                    for value, part in zip((start, nothing, unknown), state, strict=True)
                )
            )
        state = step(left.layers, right.layers, t_x, t_y, state, keep)
        yield state


def rows_of_tables(
    recursion: Formulas, left: PanelSide, right: PanelSide, *, same: bool = False, alone: bool = False
) -> Iterator[State]:
    """The states of one step of the left side with all steps of the right one, (a, b, T') or (k, T') each.

    Row t of the (t, t') table follows from row t - 1, shifted by one step (11). Sides are aligned at their first steps.
    """
    library, network = recursion.library, recursion.network
    xp, mode = library.xp, "tables alone" if alone else "tables"
    step, (_, columns) = recursion.stepper(mode), AXES[mode]
    all_steps = [layer.view(lambda part: xp.permute_dims(part, (1, 0))[columns]) for layer in right.layers]
    first = _start(recursion, left, right, same, alone)[..., None]
    # Left of the first column, and above the first row, nothing is recurrent: w = 1, Q = 0, and nothing to compare.
    borders = xp.ones_like(first), xp.zeros_like(first), xp.full_like(first, xp.nan)
    further = xp.ones((*first.shape[:-1], right.steps - 1), dtype=recursion.dtype, device=library.device)
    begin = xp.concat([first, further], axis=-1)
    state = State(*([part] * network.depth for part in (begin, xp.zeros_like(begin), xp.full_like(begin, xp.nan))))
    own = xp.arange(right.steps, device=library.device)
    for t in range(left.steps):
        keep = None if network.tied else own == t
        state = step(left.layers, all_steps, t, t, state, keep)
        yield state
        state = State(
            *(
                [xp.concat([border, each[..., :-1]], axis=-1) for each in part]
                for border, part in zip(borders, state, strict=True)
            )
        )


def _start(recursion: Formulas, left: PanelSide, right: PanelSide, same: bool, alone: bool) -> Any:
    """w before the first step: 1, and 0 for a sequence with itself, whose initial states are one (11)."""
    xp, device = recursion.library.xp, recursion.library.device
    a, b = left.norm.shape[1], right.norm.shape[1]
    if alone:
        return xp.zeros((a,), dtype=recursion.dtype, device=device)
    ones = xp.ones((a, b), dtype=recursion.dtype, device=device)
    return ones - xp.eye(a, dtype=recursion.dtype, device=device) if same else ones
