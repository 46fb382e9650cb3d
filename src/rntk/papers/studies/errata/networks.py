"""The judge of recurrent kernels: finite networks in plain NumPy, gradients by hand.

Weights are drawn as (5) and (6) of the RNTK paper say. A gradient by a weight is a sum over steps of outer products, so
inner products of gradients are sums of products of inner products: no gradient is formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....activations import Activation, relu
from ....kernels import RNTK
from .erratum import extrapolate

Array = NDArray[np.float64]

#: A mean over networks is off by O(1/n); those of two widths tell how much.
WIDTHS = (96, 288)


@dataclass(frozen=True)
class Wiring:
    """A stack of Elman layers with a readout at the last step; attributes are the parameters of `RNTK`."""

    activation: Activation = relu
    sigma_w: float = 2**0.5
    sigma_u: float = 1.0
    sigma_b: float = 0.0
    sigma_h: float = 0.0
    sigma_v: float = 1.0
    depth: int = 1
    tied: bool = True

    @property
    def kernel(self) -> RNTK:
        """Its limit."""
        return RNTK(**vars(self))


def judge(
    wiring: Wiring, x: Array, y: Array, rng: np.random.Generator, draws: int, *, same: bool = False
) -> tuple[Array, Array]:
    """(Θ, 𝒦) of x and y as means over `draws` networks of two widths, extrapolated to infinite width; and allowances.

    `same` says that x and y are one sequence, with one initial state.
    """
    return extrapolate(lambda width: empirical_kernels(wiring, x, y, width, rng, same=same), WIDTHS, draws)


def empirical_kernels(
    wiring: Wiring, x: Array, y: Array, width: int, rng: np.random.Generator, *, same: bool = False
) -> tuple[float, float]:
    """⟨∇f(x), ∇f(y)⟩ of one network, and the mean of f(x) f(y) over its readout weights alone."""
    a, n, m = wiring, width, x.shape[1]
    copies = 1 if a.tied else max(len(x), len(y))
    layers = []
    for layer in range(a.depth):
        fan_in = n if layer else m
        shapes = ((a.sigma_w / n**0.5, n, n), (a.sigma_u / fan_in**0.5, n, fan_in), (a.sigma_b, n))
        layers.append([scale * rng.standard_normal((copies, *shape)) for scale, *shape in shapes])
    v = a.sigma_v / n**0.5 * rng.standard_normal(n)
    states = a.sigma_h * rng.standard_normal((2, a.depth, n))
    one, two = (_trace(a, layers, v, z, states[0 if same else k]) for k, z in enumerate((x, y)))
    nngp = a.sigma_v**2 * float(one.last @ two.last) / n
    ntk = nngp
    for layer in range(a.depth):
        read = one.inputs[layer] @ two.inputs[layer].T / (n if layer else m)
        kept = one.pasts[layer] @ two.pasts[layer].T / n
        direct = a.sigma_w**2 * kept + a.sigma_u**2 * read + a.sigma_b**2
        back = one.deltas[layer] @ two.deltas[layer].T
        if not a.tied:  # different steps have different weights
            back = back * np.eye(*back.shape)
        ntk += float(np.sum(back * direct))
    return ntk, nngp


@dataclass(frozen=True)
class _Trace:
    """By layer: inputs (T, fan in), states before each step (T, n), ∂f/∂g (T, n); and the last state."""

    inputs: list[Array]
    pasts: list[Array]
    deltas: list[Array]
    last: Array


def _trace(wiring: Wiring, layers: list[list[Array]], v: Array, z: Array, starts: Array) -> _Trace:
    T, phi = len(z), wiring.activation
    step = (lambda t: 0) if wiring.tied else (lambda t: t)
    inputs, pasts, slopes = [], [], []
    deltas: list[Array] = []
    below = z
    for (W, U, b), start in zip(layers, starts, strict=True):
        g, h = np.empty((T, len(v))), np.empty((T + 1, len(v)))
        h[0] = start
        for t in range(T):
            g[t] = W[step(t)] @ h[t] + U[step(t)] @ below[t] + b[step(t)]
            h[t + 1] = phi(g[t])
        inputs.append(below)
        pasts.append(h[:-1])
        slopes.append(phi.derivative(g))
        below = h[1:]
    arriving = np.zeros((T, len(v)))
    arriving[-1] = v
    for (W, U, _), slope in zip(reversed(layers), reversed(slopes), strict=True):
        delta = np.zeros((T, len(v)))
        for t in reversed(range(T)):
            later = W[step(t + 1)].T @ delta[t + 1] if t + 1 < T else 0.0
            delta[t] = slope[t] * (arriving[t] + later)
        arriving = np.stack([U[step(t)].T @ delta[t] for t in range(T)])
        deltas.insert(0, delta)
    return _Trace(inputs, pasts, deltas, below[-1])
