"""Cells of the literature, each a program of a dozen lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .language import Vector, matrix, nonlinearity, normalise, vector
from .program import states

#: A deviation, or one for each gate: {"z": 1.0, "r": 1.2}.
Sigma = float | Mapping[str, float]


def of(sigma: Sigma, gate: str) -> float:
    """The deviation of a gate."""
    if not isinstance(sigma, Mapping):
        return sigma
    if gate not in sigma:
        raise ValueError(f"deviations by gate must name {gate!r} too; they name {', '.join(sigma) or 'none'}")
    return sigma[gate]


def bias(gate: str, sigma_b: Sigma) -> Vector | float:
    """b of a gate, or 0."""
    return vector(f"b_{gate}", of(sigma_b, gate)) if of(sigma_b, gate) else 0.0


def affine(gate: str, h: Vector, x: Vector, sigma_w: Sigma, sigma_u: Sigma, sigma_b: Sigma) -> Vector:
    """W h + U x + b of a gate."""
    g = matrix(f"W_{gate}", of(sigma_w, gate)) @ h + matrix(f"U_{gate}", of(sigma_u, gate)) @ x
    return g + bias(gate, sigma_b)


def affine_of_all(h: Vector, x: Vector, sigma_w: float, sigma_u: float, sigma_b: float) -> Vector:
    """W h + U x + b of a cell without gates."""
    g = matrix("W", sigma_w) @ h + matrix("U", sigma_u) @ x
    return g + vector("b", sigma_b) if sigma_b else g


def elman(
    x: Vector,
    h: Vector,
    *,
    activation: Any = "relu",
    sigma_w: float = 2**0.5,
    sigma_u: float = 1.0,
    sigma_b: float = 0.0,
) -> Vector:
    """h ← φ(W h + U x + b)."""
    return nonlinearity(activation)(affine_of_all(h, x, sigma_w, sigma_u, sigma_b))


def leaky(
    x: Vector,
    h: Vector,
    *,
    leak: float = 0.5,
    activation: Any = "relu",
    sigma_w: float = 2**0.5,
    sigma_u: float = 1.0,
    sigma_b: float = 0.0,
) -> Vector:
    """h ← (1 - a) h + a φ(W h + U x + b): units that average over 1/a steps."""
    return (1 - leak) * h + leak * nonlinearity(activation)(affine_of_all(h, x, sigma_w, sigma_u, sigma_b))


def residual(
    x: Vector,
    h: Vector,
    *,
    step: float = 0.1,
    activation: Any = "tanh",
    sigma_w: float = 1.0,
    sigma_u: float = 1.0,
    sigma_b: float = 0.0,
) -> Vector:
    """h ← h + ε φ(W h + U x + b)."""
    return h + step * nonlinearity(activation)(affine_of_all(h, x, sigma_w, sigma_u, sigma_b))


def normalised(
    x: Vector, h: Vector, *, activation: Any = "relu", sigma_w: float = 1.0, sigma_u: float = 1.0, sigma_b: float = 0.0
) -> Vector:
    """h ← φ(N(W h + U x + b)), N the layer normalisation over units."""
    return nonlinearity(activation)(normalise(affine_of_all(h, x, sigma_w, sigma_u, sigma_b)))


def multiplicative(
    x: Vector,
    h: Vector,
    *,
    gate: Any = "sigmoid",
    activation: Any = "tanh",
    sigma_w: float = 1.0,
    sigma_u: float = 1.0,
    sigma_b: float = 0.0,
    sigma_z: float = 1.0,
) -> Vector:
    """h ← σ(U_z x) φ(W h + U x + b): the inputs open and close all that a step hands on."""
    z = nonlinearity(gate)(matrix("U_z", sigma_z) @ x)
    return z * nonlinearity(activation)(affine_of_all(h, x, sigma_w, sigma_u, sigma_b))


@states(lambda poles, **_: len(poles))
def state_space(
    x: Vector,
    *s: Vector,
    poles: tuple[float, ...] = (0.5, 0.9, 0.99),
    activation: Any = "gelu",
    sigma_c: float = 1.0,
    sigma_u: float = 1.0,
    sigma_d: float = 1.0,
) -> tuple[Vector, ...]:
    """s_k ← λ_k s_k + U_k x, h = φ(Σ C_k s_k/√K + D x): linear memories with fixed poles, then a function."""
    s = tuple(pole * each + matrix(f"U_{k}_", sigma_u) @ x for k, (pole, each) in enumerate(zip(poles, s, strict=True)))
    g = sum((matrix(f"C_{k}_", sigma_c / len(s) ** 0.5) @ each for k, each in enumerate(s)), matrix("D", sigma_d) @ x)
    return nonlinearity(activation)(g), *s


@states(lambda dilation, **_: dilation)
def dilated(
    x: Vector,
    *h: Vector,
    dilation: int = 2,
    activation: Any = "relu",
    sigma_w: float = 2**0.5,
    sigma_u: float = 1.0,
    sigma_b: float = 0.0,
) -> tuple[Vector, ...]:
    """h[t] ← φ(W h[t-d] + U x + b)."""
    return nonlinearity(activation)(affine_of_all(h[-1], x, sigma_w, sigma_u, sigma_b)), *h[:-1]


def gru(
    x: Vector,
    h: Vector,
    *,
    reset: str = "after",
    gate: Any = "sigmoid",
    activation: Any = "tanh",
    sigma_w: Sigma = 1.0,
    sigma_u: Sigma = 1.0,
    sigma_b: Sigma = 0.0,
) -> Vector:
    """h ← (1 - z) c + z h; the gate r meets the product W h ("after") or h itself ("before")."""
    sigma, phi = nonlinearity(gate), nonlinearity(activation)
    z, r = (sigma(affine(k, h, x, sigma_w, sigma_u, sigma_b)) for k in "zr")
    W, u = matrix("W_c", of(sigma_w, "c")), matrix("U_c", of(sigma_u, "c")) @ x + bias("c", sigma_b)
    c = phi(u + r * (W @ h + bias("h", sigma_b))) if reset == "after" else phi(u + W @ (r * h))
    return (1 - z) * c + z * h


def lstm(
    x: Vector,
    h: Vector,
    c: Vector,
    *,
    gate: Any = "sigmoid",
    activation: Any = "tanh",
    sigma_w: Sigma = 1.0,
    sigma_u: Sigma = 1.0,
    sigma_b: Sigma = 0.0,
) -> tuple[Vector, Vector]:
    """c ← f c + i φ(g), h ← o φ(c)."""
    sigma, phi = nonlinearity(gate), nonlinearity(activation)
    i, f, g, o = (affine(k, h, x, sigma_w, sigma_u, sigma_b) for k in "ifgo")
    c = sigma(f) * c + sigma(i) * phi(g)
    return sigma(o) * phi(c), c


def minimal(
    x: Vector,
    h: Vector,
    *,
    gate: Any = "sigmoid",
    activation: Any = "tanh",
    sigma_w: Sigma = 1.0,
    sigma_u: Sigma = 1.0,
    sigma_b: Sigma = 0.0,
) -> Vector:
    """The minimal gated unit: one gate z, c = φ(W (z h) + U x + b), h ← (1 - z) c + z h."""
    z = nonlinearity(gate)(affine("z", h, x, sigma_w, sigma_u, sigma_b))
    c = nonlinearity(activation)(affine("c", z * h, x, sigma_w, sigma_u, sigma_b))
    return (1 - z) * c + z * h


#: Cells that can be asked for by name.
CELLS = {
    cell.__name__: cell
    for cell in (elman, leaky, residual, normalised, multiplicative, state_space, dilated, gru, lstm, minimal)
}
