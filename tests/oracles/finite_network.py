"""Recurrent networks of finite width and their empirical kernels, in plain NumPy with gradients by hand.

The network of THEORY section 1. A draw of all weights gives one empirical tangent kernel <∇f(x), ∇f(y)>,
which scatters around the infinite-width kernel by O(1/√n) and is off by O(1/n) in the mean.

Gradients are never stored: the gradient of a weight is a sum over time of outer products δ[t] a[t]ᵀ, so the
inner product of two gradients is a sum over pairs of times of <δ[t], δ'[u]> <a[t], a'[u]>. That is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

Array = np.ndarray
Activation = tuple[Callable[[Array], Array], Callable[[Array], Array]]


def _gelu_derivative(g: Array) -> Array:
    return special.ndtr(g) + g * np.exp(-g * g / 2) / np.sqrt(2 * np.pi)


ACTIVATIONS: dict[str, Activation] = {
    "identity": (lambda g: g, np.ones_like),
    "relu": (lambda g: np.maximum(g, 0.0), lambda g: (g > 0).astype(g.dtype)),
    "leaky_relu": (lambda g: np.where(g > 0, g, 0.01 * g), lambda g: np.where(g > 0, 1.0, 0.01)),
    "erf": (special.erf, lambda g: 2 / np.sqrt(np.pi) * np.exp(-g * g)),
    "tanh": (np.tanh, lambda g: 1 - np.tanh(g) ** 2),
    "sigmoid": (special.expit, lambda g: special.expit(g) * special.expit(-g)),
    "sin": (np.sin, np.cos),
    "gelu": (lambda g: g * special.ndtr(g), _gelu_derivative),
}


@dataclass(frozen=True)
class Architecture:
    """What is drawn at random: activation (φ, φ') or its name, deviations (one, or one per layer), wiring.

    ``readout`` is "last", "mean" over time, or "sequence" (one output per step). Untied networks
    (``tied=False``) have fresh W, U and b at every step counted from the start of the sequence, and one
    shared readout. ``bidirectional`` adds a second, independent network that reads the sequence backwards;
    the sequence readout lists its outputs in the order of the input, so output t has seen steps t, t+1,
    ..., T.
    """

    activation: Activation | str
    sigma_w: float | Sequence[float] = 1.0
    sigma_u: float | Sequence[float] = 1.0
    sigma_b: float | Sequence[float] = 0.0
    sigma_h: float | Sequence[float] = 0.0
    sigma_v: float = 1.0
    depth: int = 1
    tied: bool = True
    readout: str = "last"
    bidirectional: bool = False


@dataclass
class Layer:
    """Raw weights of one layer, one entry per step (the same array every time if tied), and their scales."""

    w: list[Array]  # each (n, n)
    u: list[Array]  # each (n, fan_in)
    b: list[Array]  # each (n,)
    w_scale: float
    u_scale: float
    b_scale: float


@dataclass
class Parameters:
    """One draw of a network. What is trained is the raw arrays; a raw array enters f times its scale."""

    layers: list[Layer]
    v: Array  # (n,)
    v_scale: float


@dataclass
class Trace:
    """What the backward pass needs of one sequence, by layer."""

    incoming: list[Array] = field(default_factory=list)  # (T, fan_in): h[l-1, t]
    states: list[Array] = field(default_factory=list)  # (T + 1, n): h[l, t], t = 0..T
    slopes: list[Array] = field(default_factory=list)  # (T, n): φ'(g[l, t])


def empirical_kernels(
    x: object,
    y: object,
    architecture: Architecture,
    width: int,
    rng: np.random.Generator,
    same: bool = False,
    parameterization: str = "ntk",
) -> tuple[Array, Array]:
    """One draw: the empirical NTK <∇f(x), ∇f(y)> and the NNGP given all weights but the readout.

    The second is the conditional expectation of f(x) f(y) over the readout weights, σ_v² <h, h'>/n, which
    scatters far less than f(x) f(y). Both have shape () or, for the sequence readout, (T, T'). With
    ``same`` the two sequences are one and share the initial state; otherwise each draws its own.
    """
    x, y = _as_sequence(x), _as_sequence(y)
    if same and not np.array_equal(x, y):
        raise ValueError("same=True needs two equal sequences")
    ntk, nngp = _one_direction(x, y, architecture, width, rng, same, parameterization)
    if architecture.bidirectional:
        backward = _one_direction(x[::-1], y[::-1], architecture, width, rng, same, parameterization)
        ntk, nngp = ntk + backward[0][::-1, ::-1], nngp + backward[1][::-1, ::-1]
    if architecture.readout != "sequence":
        ntk, nngp = ntk[0, 0], nngp[0, 0]
    return np.asarray(ntk), np.asarray(nngp)


def monte_carlo(
    x: object,
    y: object,
    architecture: Architecture,
    width: int,
    draws: int,
    seed: int = 0,
    same: bool = False,
    parameterization: str = "ntk",
) -> tuple[Array, Array]:
    """Mean and standard error over ``draws`` networks; each of shape (2, ...): the NTK, then the NNGP."""
    total, squares = 0.0, 0.0
    reference = None
    for rng in np.random.default_rng([seed, width]).spawn(draws):
        sample = np.stack(empirical_kernels(x, y, architecture, width, rng, same, parameterization))
        reference = sample if reference is None else reference  # shifted sums do not cancel
        total, squares = total + (sample - reference), squares + (sample - reference) ** 2
    mean = total / draws
    variance = np.maximum(squares / draws - mean**2, 0.0) * draws / (draws - 1)
    return reference + mean, np.sqrt(variance / draws)


def extrapolate(
    x: object,
    y: object,
    architecture: Architecture,
    widths: tuple[int, int],
    draws: int,
    seed: int = 0,
    same: bool = False,
    parameterization: str = "ntk",
) -> tuple[Array, Array]:
    """Mean and standard error as `monte_carlo`, with the O(1/n) bias removed by averages at two widths.

    If E_n = E + a/n then E = (n2 E_n2 - n1 E_n1)/(n2 - n1), at the price of a larger error.
    """
    narrow, wide = sorted(widths)
    mean1, error1 = monte_carlo(x, y, architecture, narrow, draws, seed, same, parameterization)
    mean2, error2 = monte_carlo(x, y, architecture, wide, draws, seed, same, parameterization)
    a1, a2 = narrow / (wide - narrow), wide / (wide - narrow)
    return a2 * mean2 - a1 * mean1, np.hypot(a2 * error2, a1 * error1)


# One draw, step by step -------------------------------------------------------------------------------------


def draw_parameters(
    architecture: Architecture,
    m: int,
    steps: int,
    width: int,
    rng: np.random.Generator,
    parameterization: str,
) -> Parameters:
    """Raw weights and scales; the product of the two has the same distribution in both parameterisations.

    "ntk": raw weights N(0, 1), scales σ_w/√n, σ_u/√fan_in, σ_b, σ_v/√n. "standard": W ~ N(0, σ_w²) behind
    1/√n, U ~ N(0, σ_u²/m) behind 1 in the first layer and N(0, σ_u²) behind 1/√n above, b ~ N(0, σ_b²)
    behind 1 (a bias with σ_b = 0 does not exist), readout ~ N(0, σ_v²) behind 1/√n.
    """
    if parameterization not in ("ntk", "standard"):
        raise ValueError(f"parameterization must be 'ntk' or 'standard', got {parameterization!r}")
    standard = parameterization == "standard"
    root = np.sqrt(width)
    layers = []
    for index in range(architecture.depth):
        sw, su, sb = (
            _of_layer(sigma, index) for sigma in (architecture.sigma_w, architecture.sigma_u, architecture.sigma_b)
        )
        fan_in = m if index == 0 else width
        if standard:
            scales = 1 / root, 1.0 if index == 0 else 1 / root, float(sb > 0)
            deviations = sw, su / np.sqrt(m) if index == 0 else su, sb
        else:
            scales = sw / root, su / np.sqrt(fan_in), sb
            deviations = 1.0, 1.0, 1.0
        copies = 1 if architecture.tied else steps
        groups = []
        for deviation, shape in zip(deviations, ((width, width), (width, fan_in), (width,)), strict=True):
            fresh = [deviation * rng.standard_normal(shape) for _ in range(copies)]
            groups.append(fresh * steps if architecture.tied else fresh)
        layers.append(Layer(*groups, *scales))
    v = rng.standard_normal(width) * (architecture.sigma_v if standard else 1.0)
    return Parameters(layers, v, (1.0 if standard else architecture.sigma_v) / root)


def draw_initial_states(architecture: Architecture, width: int, rng: np.random.Generator) -> list[Array]:
    """h[l, 0] of one sequence for every layer."""
    return [_of_layer(architecture.sigma_h, i) * rng.standard_normal(width) for i in range(architecture.depth)]


def forward(parameters: Parameters, activation: Activation | str, x: Array, initial: list[Array]) -> Trace:
    """Run the network over x of shape (T, m)."""
    phi, dphi = _activation(activation)
    trace = Trace()
    incoming = x
    for layer, h0 in zip(parameters.layers, initial, strict=True):
        states, slopes = [h0], []
        for t, vector in enumerate(incoming):
            g = layer.w_scale * (layer.w[t] @ states[-1])
            g = g + layer.u_scale * (layer.u[t] @ vector) + layer.b_scale * layer.b[t]
            states.append(phi(g))
            slopes.append(dphi(g))
        trace.incoming.append(incoming)
        trace.states.append(np.array(states))
        trace.slopes.append(np.array(slopes))
        incoming = trace.states[-1][1:]
    return trace


def outputs(parameters: Parameters, trace: Trace, readout: str) -> Array:
    """f(x): shape (1,), or (T,) for the sequence readout."""
    states = trace.states[-1][1:]
    return parameters.v_scale * (_pooling(readout, len(states)) @ states @ parameters.v)


def backward(parameters: Parameters, trace: Trace, readout: str) -> list[Array]:
    """δ[r, t] = ∂f_r/∂g[l, t] for every output r; by layer, each of shape (R, T, n)."""
    pooling = _pooling(readout, len(trace.slopes[-1]))
    from_above = pooling[:, :, None] * (parameters.v_scale * parameters.v)
    deltas = []
    for layer, slopes in zip(reversed(parameters.layers), reversed(trace.slopes), strict=True):
        delta = np.empty_like(from_above)
        from_later = np.zeros_like(from_above[:, 0])
        for t in reversed(range(len(slopes))):
            delta[:, t] = slopes[t] * (from_above[:, t] + from_later)
            from_later = layer.w_scale * (delta[:, t] @ layer.w[t])
        deltas.append(delta)
        if len(deltas) < len(parameters.layers):
            from_above = np.stack([layer.u_scale * (delta[:, t] @ layer.u[t]) for t in range(len(slopes))], axis=1)
    return deltas[::-1]


def _one_direction(x, y, architecture, width, rng, same, parameterization) -> tuple[Array, Array]:
    """Kernels of shape (R, R') of one network that reads forwards."""
    steps = max(len(x), len(y))
    parameters = draw_parameters(architecture, x.shape[1], steps, width, rng, parameterization)
    trace_x = forward(parameters, architecture.activation, x, draw_initial_states(architecture, width, rng))
    deltas_x = backward(parameters, trace_x, architecture.readout)
    if same:
        trace_y, deltas_y = trace_x, deltas_x
    else:
        trace_y = forward(parameters, architecture.activation, y, draw_initial_states(architecture, width, rng))
        deltas_y = backward(parameters, trace_y, architecture.readout)

    pooled_x, pooled_y = (
        _pooling(architecture.readout, len(sequence)) @ trace.states[-1][1:]
        for sequence, trace in ((x, trace_x), (y, trace_y))
    )
    overlap = pooled_x @ pooled_y.T
    ntk = parameters.v_scale**2 * overlap
    for index, layer in enumerate(parameters.layers):
        inputs = (  # <a[t], a'[u]> over the three groups, each times its scale squared; shape (T, T')
            layer.w_scale**2 * (trace_x.states[index][:-1] @ trace_y.states[index][:-1].T)
            + layer.u_scale**2 * (trace_x.incoming[index] @ trace_y.incoming[index].T)
            + layer.b_scale**2
        )
        if not architecture.tied:
            inputs = inputs * np.eye(len(x), len(y))  # weights of different steps are different weights
        dx, dy = deltas_x[index], deltas_y[index]
        errors = (dx.reshape(-1, width) @ dy.reshape(-1, width).T).reshape(*dx.shape[:2], *dy.shape[:2])
        ntk = ntk + np.einsum("rtsu,tu->rs", errors, inputs)
    return ntk, architecture.sigma_v**2 / width * overlap


def _pooling(readout: str, length: int) -> Array:
    """The (R, T) matrix that makes the R outputs from the T steps."""
    if readout == "last":
        return np.eye(1, length, length - 1)
    if readout == "mean":
        return np.full((1, length), 1 / length)
    if readout == "sequence":
        return np.eye(length)
    raise ValueError(f"readout must be 'last', 'mean' or 'sequence', got {readout!r}")


def _activation(activation: Activation | str) -> Activation:
    return ACTIVATIONS[activation] if isinstance(activation, str) else activation


def _of_layer(sigma: float | Sequence[float], layer: int) -> float:
    return float(sigma if np.ndim(sigma) == 0 else sigma[layer])


def _as_sequence(sequence: object) -> Array:
    values = np.asarray(sequence, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values
