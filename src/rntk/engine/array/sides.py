"""One pass along each sequence: variances (5) and unit vectors (20), for a panel of sequences at once.

In goes a padded block of sequences, out comes a `PanelSide`: everything about them that pairs need. Padding is
harmless by construction: what is computed there is finite and doesn't build up, a sequence's first step forgets what
came before it, and steps after its end have norm zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ...activations import Activation
from ...activations.arrays import ArrayForm
from ...errors import KernelOverflowError
from ...network import Network
from .batch import ArrayBatch
from .libraries import Library, compiled

#: Variances beyond the square of this are refused where no scale can be taken out; and odd activations, where the
#: smallest distance that tells opposite from equal would begin to count.
LARGEST_DEVIATION, LARGEST_ODD = 6e153, 1e145
#: The exponent of a zero.
NOTHING = -(2.0**20)


class LayerParts(NamedTuple):
    """Parts of the unit vectors of one layer, (T, k) each; zero where the variance is zero.

    Attributes
    ----------
    recurrent, below, bias
        γ, η, b̂ of (20). No η in the first layer, no b̂ without biases.
    inputs
        x̂, one array per channel; none above the first layer.
    marks
        What the activation wants to know of the variance.
    root, over
        √q and its inverse.
    raw
        The inputs, one array per channel, of which `input_scale` times a number is its share of the unit vector.
    growth
        d log ψ²/d log q, and its own derivative.
    gradient
        γ, (x̂ or η), b̂ with the roots of the gradient factors in place of the deviations, for (27).

    From `root` to `growth`, only what close pairs of activations that aren't homogeneous need.
    """

    recurrent: Any
    below: Any
    bias: Any
    inputs: tuple[Any, ...]
    marks: tuple[Any, ...]
    root: Any
    over: Any
    raw: tuple[Any, ...]
    input_scale: Any
    growth: tuple[Any, ...]
    gradient: tuple[Any, ...]

    def view(self, look: Callable[[Any], Any]) -> LayerParts:
        """The same layer with `look` applied to every array."""

        def each(part: Any) -> Any:
            return None if part is None else tuple(map(each, part)) if isinstance(part, tuple) else look(part)

        return LayerParts(*map(each, self))


@dataclass(frozen=True)
class PanelSide:
    """k sequences of at most T steps, prepared for pairing.

    Attributes
    ----------
    layers : list of Layer
        Bottom to top.
    norm
        (T, k), mantissas of ψ in the last layer; zero after the end of a sequence.
    exponent
        (T, k), their exponents of two, as whole floats; NOTHING where the norm is zero.
    lengths : list of int
        Of each sequence.
    first : list of int
        Step at which each sequence begins.
    """

    layers: list[LayerParts]
    norm: Any
    exponent: Any
    lengths: list[int]
    first: list[int]

    @property
    def steps(self) -> int:
        return int(self.norm.shape[0])


def power(xp: Any, exponent: Any) -> Any:
    """2^exponent, cut off where it would leave the range of the dtype: too large by far, or as good as zero."""
    top = round(math.log2(float(xp.finfo(exponent.dtype).max))) - 1.0  # 127 or 1023
    return xp.pow(xp.full_like(exponent, 2.0), xp.clip(exponent, 1 - top, top))


def split(xp: Any, x: Any) -> tuple[Any, Any]:
    """(mantissa, exponent): x = mantissa 2^exponent with 1 <= mantissa < 2, up to rounding; 0 stays 0."""
    exponent = xp.floor(xp.log2(xp.where(x > 0, x, xp.ones_like(x))))
    return x * power(xp, -exponent), exponent


def make_side(
    network: Network,
    dual: ArrayForm,
    batch: ArrayBatch,
    chosen: list[int],
    work: Any,
    *,
    at_end: bool,
    backwards: bool,
) -> PanelSide:
    """The side of the sequences `chosen`, aligned at their last steps (`at_end`) or at their first ones.

    The pass itself runs in float64 where there is one: it costs little beside the pairs. `work` is the dtype of the
    parts.
    """
    library = batch.library
    xp, fine = library.xp, library.dtype("float64" if library.double else "float32")
    x = batch.padded(chosen, fine, at_end=at_end, backwards=backwards)
    steps = int(x.shape[0])
    lengths = [int(batch.lengths[i]) for i in chosen]
    first = [steps - length if at_end else 0 for length in lengths]
    walked = _walk(network, library, x, first)
    inside = _inside(library, lengths, first, steps)
    if inside is not None:
        # Without a recurrent part nothing builds up in the padding.
        walked = [
            passed._replace(recurrent=xp.where(inside, passed.recurrent, xp.zeros_like(passed.recurrent)))
            for passed in walked
        ]
    if not dual.homogeneous:
        _check_range(xp, walked, inside, chosen, batch.name, network)
    layers = [
        _layer(xp, network, dual, layer, x, passed).view(lambda part: xp.astype(part, work))
        for layer, passed in enumerate(walked)
    ]
    norm, further = split(xp, dual.norm(walked[-1].root))
    exponent = walked[-1].exponent + further
    if inside is not None:
        norm = xp.where(inside, norm, xp.zeros_like(norm))
    exponent = xp.where(norm > 0, exponent, xp.full_like(exponent, NOTHING))
    return PanelSide(layers, xp.astype(norm, work), xp.astype(exponent, work), lengths, first)


def _inside(library: Library, lengths: list[int], first: list[int], steps: int) -> Any:
    """(T, k), whether a step belongs to its sequence; None if all do."""
    if min(lengths) == steps:
        return None
    xp = library.xp
    t = xp.arange(steps, device=library.device)[:, None]
    start, stop = (
        xp.asarray(each, dtype=t.dtype, device=library.device)
        for each in (first, [a + b for a, b in zip(first, lengths, strict=True)])
    )
    return (t >= start[None, :]) & (t < stop[None, :])


class Passed(NamedTuple):
    """What the pass leaves of one layer: (k,) at one step, (T, k) after all.

    Attributes
    ----------
    root, exponent
        √q = root 2^exponent; the exponent is zero unless φ is homogeneous.
    recurrent
        ψ of the step before, divided by √q.
    below
        ψ of the layer below, or |x|/√m, divided by √q.
    over
        1/√q.
    """

    root: Any
    exponent: Any
    recurrent: Any
    below: Any
    over: Any


def _walk(network: Network, library: Library, x: Any, first: list[int]) -> list[Passed]:
    """The deviations of every layer at every step of `x` (T, m, k)."""
    xp = library.xp
    steps, channels, count = x.shape
    # |x|/√m by way of the largest channel, whose square may be out of range.
    largest = xp.max(xp.abs(x), axis=1)
    scaled = x / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None, :]
    size = largest * xp.sqrt(xp.sum(scaled * scaled, axis=1) / channels)
    sigmas = [network.sigma_w, network.sigma_u, network.sigma_b, network.sigma_h]
    begins = xp.asarray(first, device=library.device)
    step = _stepper(xp, network.activation, "float64" if library.double else "float32", library.name == "jax")
    zero = xp.zeros((count,), dtype=x.dtype, device=library.device)
    state = [(zero, zero)] * network.depth
    collected: list[list[Passed]] = []
    for t in range(steps):
        state, passed = step(sigmas, size, begins, t, state)
        collected.append(passed)
    return [Passed(*(_stack(xp, part) for part in zip(*layer, strict=True))) for layer in zip(*collected, strict=True)]


def _stack(xp: Any, parts: Sequence[Any]) -> Any:
    """All of `parts` (k,) as (T, k), in two rounds: JAX takes seconds to compile one that joins a thousand."""
    return xp.concat([xp.stack(parts[i : i + 32]) for i in range(0, len(parts), 32)], axis=0)


@lru_cache(maxsize=64)
def _stepper(xp: Any, activation: Activation, precision: str, jax: bool) -> Callable[..., Any]:
    """One step of the pass through all layers, as a function of arrays alone."""
    dual = activation.array_form(xp, precision)

    def step(sigmas: Any, size: Any, begins: Any, t: int, before: Any) -> Any:
        below = size[t, :]
        zero = xp.zeros_like(below)
        below, below_exponent = split(xp, below) if dual.homogeneous else (below, zero)
        after, passed = [], []
        for sigma_w, sigma_u, sigma_b, sigma_h, (state, state_exponent) in zip(*sigmas, before, strict=True):
            # The first step of a sequence finds the initial state, whatever the padding left behind.
            state = xp.where(begins == t, zero + sigma_h, state)
            state_exponent = xp.where(begins == t, zero, state_exponent)
            terms = [
                (sigma_w * state, state_exponent),
                (sigma_u * below, below_exponent),
                (sigma_b + zero, zero),
            ]
            # All three on the largest exponent; what underflows there is below rounding.
            exponent = zero + NOTHING
            for term, its in terms:
                exponent = xp.where(term > 0, xp.maximum(exponent, its), exponent)
            exponent = xp.where(exponent == NOTHING, zero, exponent)
            parts = [term * power(xp, its - exponent) for term, its in terms]
            # The largest is taken out: squares of the others may be out of range only where they don't count.
            top = parts[0]
            for part in parts[1:]:
                top = xp.maximum(top, part)
            top = xp.where(top > 0, top, xp.ones_like(top))
            root = top * xp.sqrt(sum((part / top) ** 2 for part in parts))
            if dual.homogeneous:
                root, further = split(xp, root)
                exponent = exponent + further
            some = root > 0
            over = xp.where(some, 1 / xp.where(some, root, xp.ones_like(root)), zero)
            passed.append(
                Passed(
                    root,
                    exponent,
                    state * power(xp, state_exponent - exponent) * over,
                    below * power(xp, below_exponent - exponent) * over,
                    power(xp, -exponent) * over,
                )
            )
            below, below_exponent = dual.norm(root), exponent
            after.append((below, below_exponent))
        return after, passed

    return compiled(step) if jax else step


def _layer(xp: Any, network: Network, dual: ArrayForm, layer: int, x: Any, passed: Passed) -> LayerParts:
    """The unit vectors of one layer."""
    channels = int(x.shape[1])
    sigma_w, sigma_u, sigma_b = (getattr(network, name)[layer] for name in ("sigma_w", "sigma_u", "sigma_b"))

    def remaining(part: Any) -> Any:
        # What comes from below, or through a single channel, is what the others leave: without rounding of its own.
        others = (sigma_w * passed.recurrent) ** 2 + (sigma_b * passed.over) ** 2
        left = xp.sqrt(xp.clip(1 - others, 0.0, 1.0))
        return xp.where((others < 0.5) & (part != 0), xp.where(part > 0, left, -left), part)

    def inputs(factor: float) -> tuple[Any, ...]:
        # The factor first: without input weights the input takes no part, however large.
        return tuple(factor * x[:, c, :] * passed.over for c in range(channels)) if layer == 0 else ()

    unit_inputs = inputs(sigma_u / math.sqrt(channels))
    if len(unit_inputs) == 1:
        unit_inputs = (remaining(unit_inputs[0]),)

    gradient: tuple[Any, ...] = ()
    if network.parameterization == "standard":
        gw, gu, gb = (math.sqrt(factor) for factor in network.gradient_factors(layer, channels))
        gradient = (
            gw * passed.recurrent,
            inputs(gu) if layer == 0 else gu * passed.below,
            gb * passed.over if gb > 0 else None,
        )
    return LayerParts(
        recurrent=sigma_w * passed.recurrent,
        below=None if layer == 0 else remaining(sigma_u * passed.below),
        bias=sigma_b * passed.over if sigma_b > 0 else None,
        inputs=unit_inputs,
        marks=dual.marks(passed.root),
        root=None if dual.homogeneous else passed.root,
        over=None if dual.homogeneous else passed.over,
        raw=tuple(x[:, c, :] for c in range(channels)) if layer == 0 and not dual.homogeneous else (),
        input_scale=None if dual.homogeneous else (sigma_u / math.sqrt(channels)) * passed.over,
        growth=() if dual.homogeneous else dual.growth(passed.root),
        gradient=gradient,
    )


def _check_range(xp: Any, walked: list[Passed], inside: Any, chosen: list[int], name: str, network: Network) -> None:
    largest = LARGEST_ODD if network.activation.odd else LARGEST_DEVIATION
    for layer, passed in enumerate(walked):
        fits = passed.root < largest
        if inside is not None:
            fits = fits | ~inside
        if not bool(xp.all(fits)):
            columns = xp.all(fits, axis=0)
            bad = next(i for position, i in enumerate(chosen) if not bool(columns[position]))
            raise KernelOverflowError(
                f"the variance of {{sequence}} overflows (layer {layer + 1}): deviations beyond "
                f"{largest:g} are too large for the array engine. Scale the inputs down, or lower sigma_w or sigma_u; "
                f"{network.activation.name} is not homogeneous, so no scale can be taken out",
                sequence=bad,
                side=name,
            )
