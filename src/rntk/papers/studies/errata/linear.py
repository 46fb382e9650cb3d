"""Errata of the paper on linear RNNs, [L] in docs/theory.md."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....linear import ConvolutionDescent, LinearRNN, ScaledConv1D, scale_factors
from ....theory.evolution import state_evolution
from ....theory.evolution.recursion import RowFunction
from .erratum import DRAWS, Numbers, erratum, extrapolate, mean_and_allowance

Array = NDArray[np.float64]


@erratum(
    where="[L] section 2, stability",
    printed="λmax(W)/√n → ν_W",
    correct="√ν_W",
    example="spectral radius for ν_W = 0.25",
    judge="eigenvalues of random matrices of two sizes, extrapolated,",
)
def spectral_radius(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """The largest eigenvalue falls to its limit about like 1/√n, so two sizes tell where it goes."""
    nu = 0.25

    def radius(n: int) -> float:
        return float(np.abs(np.linalg.eigvals(rng.normal(0, (nu / n) ** 0.5, (n, n)))).max())

    found, allowed = extrapolate(radius, (60, 240), max(2, draws // 5), power=0.5)
    return nu, nu**0.5, found, allowed + 0.01  # logarithms of n beside the root


def _tangent(rng: np.random.Generator, moved: str) -> Numbers:
    """∂y_t for a change of W or C alone: as printed in (44), corrected, by central differences, and their accuracy."""
    n, x = 5, rng.standard_normal(4)
    W, F, C = rng.standard_normal((n, n)), rng.standard_normal((n, 1)), rng.standard_normal((1, n))
    dW = rng.standard_normal((n, n)) * (moved == "W")
    dC = rng.standard_normal((1, n)) * (moved == "C")

    def output(step: float) -> float:
        return float(LinearRNN(W + step * dW, F, C + step * dC)([x])[0][-1, 0])

    def derivative(printed: bool) -> float:
        h = tilde = np.zeros(n)
        for value in x:
            before, h = h, W @ h / n**0.5 + F[:, 0] * value
            tilde = W @ tilde / n**0.5 + dW @ (h if printed else before) / n**0.5
        return float((C @ tilde / n**0.5 + dC @ h / (1.0 if printed else n**0.5))[0])

    fine, coarse = ((output(step) - output(-step)) / (2 * step) for step in (1e-4, 2e-4))
    return derivative(True), derivative(False), fine, abs(fine - coarse) + 1e-9 * abs(fine)


@erratum(
    where="[L] (44), transition",
    printed="Δ_W h_t/√n",
    correct="Δ_W h_{t-1}/√n",
    example="change of y₄ of a network of width 5 along Δ_W",
    judge="central differences",
)
def tangent_transition(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """Equation (44) for a change of W."""
    return _tangent(rng, "W")


@erratum(
    where="[L] (44), output",
    printed="Δ_C h_t",
    correct="Δ_C h_t/√n",
    example="change of y₄ of a network of width 5 along Δ_C",
    judge="central differences",
)
def tangent_output(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """Equation (44) for a change of C."""
    return _tangent(rng, "C")


@erratum(
    where="[L] (60), growth of taps",
    printed="B₂ = ‖Aᵀb‖",
    correct="B₂ = ‖A‖ ‖b‖",
    example="‖L_j^s - L_j^0‖/(ρ_j η s) for x = {2, 0, -3}, y = {-2, 0, -1}, ν_W = 0.05",
    judge="30 steps of plain gradient descent, at the largest over steps and lags,",
    bound=True,
)
def tap_bound(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """(60) infers ‖I - ηAᵀAD‖ ≤ 1, which needs a symmetric matrix. Plain steps on three inputs move a tap further."""
    x, y, rho = np.array([2.0, 0.0, -3.0]), np.array([-2.0, 0.0, -1.0]), scale_factors(3, 0.05)
    descent = ConvolutionDescent.of(ScaledConv1D(rho, np.zeros((3, 1, 1))), [x], [y])
    largest_rate, constant = descent.bounds()
    A = np.array([[x[t - j] if t >= j else 0.0 for j in range(3)] for t in range(3)])
    rate, taps, largest = 0.999 * largest_rate, np.zeros(3), 0.0
    for step in range(1, 31):
        taps = taps + rate * rho * (A.T @ (y - A @ taps))
        largest = max(largest, float(np.max(np.abs(taps) / (rho * rate * step))))
    return np.linalg.norm(A.T @ y), constant, largest, 1e-9 * largest


#: G₁(q) = q and G₂(q) = [0, q₁] of [L] (45), for one channel.
TANGENT: tuple[RowFunction, ...] = (lambda q: q, lambda q: np.stack([np.zeros(len(q)), q[:, 0]], axis=1))


@erratum(
    where="[L] (70f)",
    printed="ν_W P_tℓ for every ℓ",
    correct="ν_ℓ P_tℓ, the variance of that matrix",
    example="variance of the second column after two steps of (45), ν_F = 1.7, ν_W = 0.5",
    judge="random matrices of two sizes, extrapolated,",
)
def variance_of_each_matrix(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """τ₂₂ of [L] (46): 2 ν_F ν_W + ν_W² by (48); with ν_W for the second matrix, of variance 1, 2 ν_F ν_W² + ν_W²."""
    nu_f, nu_w = 1.7, 0.5

    def second(n: int) -> float:
        W, change = rng.normal(0, (nu_w / n) ** 0.5, (n, n)), rng.normal(0, n**-0.5, (n, n))
        q, tilde = rng.normal(0, nu_f**0.5, n), rng.standard_normal(n)
        for _ in range(2):
            q, tilde = W @ q, W @ tilde + change @ q
        return float(np.mean(tilde**2))

    found, allowed = extrapolate(second, (100, 300), draws)
    limit = state_evolution(TANGENT, [nu_w, 1.0], np.diag([nu_f, 1.0]), 3)
    return 2 * nu_f * nu_w**2 + nu_w**2, limit.at(2, 2)[1, 1], found, allowed


@erratum(
    where="[L] (74), (98), (100)",
    printed="𝒩(0, P)",
    correct="𝒩(0, ν_ℓ P)",
    example="variance after one step of G = tanh from q₀ ~ 𝒩(0, 1), ν = 0.5",
    judge="random matrices of size 200",
)
def missing_variance(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """One step q₁ = A tanh(q₀)/√n: its variance is ν E[tanh²], not E[tanh²]."""
    nu, n = 0.5, 200
    steps = (rng.normal(0, (nu / n) ** 0.5, (n, n)) @ np.tanh(rng.standard_normal(n)) for _ in range(draws))
    mean, allowed = mean_and_allowance([np.mean(q**2) for q in steps])
    correct = float(state_evolution([np.tanh], [nu], 1.0, 2).at(1, 1)[0, 0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    return weights @ np.tanh(nodes) ** 2 / weights.sum(), correct, mean, allowed


@erratum(
    where="[L] (84)",
    printed="ℋℋᵀ has full rank if G_ℓ isn't constant",
    correct="not where G_ℓ has zero columns, as (45b): a pseudo-inverse",
    example="rank of the Gram matrix of z₀, z₁ for G₂ of (45b), four columns",
    judge="random matrices of size 100",
)
def inverse_of_the_past(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """(84) inverts the Gram matrix of z₀ … z_{t-1}; G₂ of (45b) isn't constant, but half of its columns are zero."""
    n, steps, nu_f, nu_w = 100, 2, 1.7, 0.5
    W, q = rng.normal(0, (nu_w / n) ** 0.5, (n, n)), rng.normal(0, nu_f**0.5, n)
    z = np.stack([np.zeros(n), q, np.zeros(n), W @ q], axis=1)  # z_t2 = [0, q_t1]
    limit = state_evolution(TANGENT, [nu_w, 1.0], np.diag([nu_f, 1.0]), steps)
    correct, found = (np.linalg.matrix_rank(each) for each in (limit.covariance[:, 0, :, 0], z.T @ z / n))
    return 2 * steps, correct, found, 0.0


@erratum(
    where="[L] (61), (62)",
    printed="‖u^ℓ‖ ≤ η^ℓ B₂",
    correct="η ℓ B₂",
    example="‖u^ℓ‖ after ℓ = 30 steps for x = {2, 0, -3}, y = {-2, 0, -1}, ν_W = 0.05",
    judge="plain gradient descent",
    bound=True,
)
def steps_of_the_bound(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """A sum of ℓ steps, each at most ηB₂; a power of the rate falls to nothing where η < 1."""
    x, y, rho = np.array([2.0, 0.0, -3.0]), np.array([-2.0, 0.0, -1.0]), scale_factors(3, 0.05)
    A = np.array([[x[t - j] if t >= j else 0.0 for j in range(3)] for t in range(3)])
    largest_rate, constant = ConvolutionDescent.of(ScaledConv1D(rho, np.zeros((3, 1, 1))), [x], [y]).bounds()
    rate, u = 0.5 * largest_rate, np.zeros(3)
    for _ in range(30):
        u = u + rate * A.T @ (y - A @ (rho * u))
    return rate**30 * constant, rate * 30 * constant, np.linalg.norm(u), 1e-9
