"""Errata of the RNTK paper's formulas, [R] in docs/theory.md."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ....activations import Activation, erf, identity, relu
from ....kernels import NTK
from .erratum import DRAWS, Numbers, erratum, mean_and_allowance
from .networks import WIDTHS, Wiring, judge

Array = NDArray[np.float64]

NETWORKS = "finite networks, extrapolated to infinite width,"


#: Two sequences of three steps that resemble each other, so that their kernel is far from zero.
X = np.array([[1.0, 0.5], [-0.5, 1.0], [1.0, -1.0]])
Y = np.array([[1.0, -0.5], [0.5, 1.0], [1.5, -0.5]])
NAMES = ("x = {(1, ½), (-½, 1), (1, -1)}", "x' = {(1, -½), (½, 1), (1½, -½)}")


def dual(activation: Activation, q1: float, q2: float, s: float) -> tuple[float, float]:
    """(V, V') of the library for one pair."""
    value, slope = activation.dual(*(np.array([each]) for each in (q1, q2, s)))
    return float(value[0]), float(slope[0])


@erratum(
    where="[R] B.5, ReLU",
    printed="V' = (π - arccos c)/π",
    correct="(π - arccos c)/2π",
    example="V' at variances 2 and 3, covariance 0.9",
    judge="counts of Gaussian pairs with both numbers positive",
)
def relu_slope(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """V' is the probability that both numbers of a pair are positive, which can be counted."""
    q1, q2, s = 2.0, 3.0, 0.9
    z = rng.multivariate_normal([0, 0], [[q1, s], [s, q2]], size=1000 * draws)
    share, allowed = mean_and_allowance((z > 0).all(axis=1))
    printed = (np.pi - np.arccos(s / (q1 * q2) ** 0.5)) / np.pi
    return printed, dual(relu, q1, q2, s)[1], share, allowed


@erratum(
    where="[R] B.5, erf",
    printed="(1 + 2K₁)(1 + 2K₃) under the root of V",
    correct="(1 + 2K₁)(1 + 2K₂)",
    example="V at variances 0.5 and 2, covariance 0.7",
    judge="Gauss-Hermite sums",
)
def erf_value(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """V by quadrature on a product grid; a coarser grid says how accurate it is."""
    q1, q2, s = 0.5, 2.0, 0.7
    c = s / (q1 * q2) ** 0.5

    def quadrature(order: int) -> float:
        nodes, weights = np.polynomial.hermite_e.hermegauss(order)
        one = q1**0.5 * nodes[:, None]
        two = q2**0.5 * (c * nodes[:, None] + (1 - c * c) ** 0.5 * nodes)
        return float(weights @ (erf(one) * erf(two)) @ weights / weights.sum() ** 2)

    fine, coarse = quadrature(120), quadrature(80)
    printed = 2 / np.pi * np.arcsin(2 * s / ((1 + 2 * q1) * (1 + 2 * s)) ** 0.5)
    return printed, dual(erf, q1, q2, s)[0], fine, abs(fine - coarse) + 1e-12


@erratum(
    where="[R] B.2, initial states",
    printed="⟨h⁰(x), h⁰(x')⟩/n → σ_h²",
    correct="σ_h² for a sequence with itself, otherwise 0, as in (13)",
    example="Θ of {1, 0} and a copy, linear network, σ_h = 2",
    judge=NETWORKS,
)
def initial_state(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """A linear network on {1, 0} and a copy of it: by hand Θ = 3, and σ_h² for any pair adds σ_v² σ_w⁴ σ_h² = 4."""
    x = np.array([[1.0], [0.0]])
    wiring = Wiring(identity, sigma_w=1.0, sigma_h=2.0)
    mean, allowed = judge(wiring, x, x, rng, 3 * draws)
    correct = wiring.kernel([x], [x])[0, 0]
    printed = correct + wiring.sigma_v**2 * wiring.sigma_w**4 * wiring.sigma_h**2
    return printed, correct, mean[0], allowed[0]


@erratum(
    where="[R] B.2 to B.4, backward pass",
    printed="δ[t] = σ_w/√n Wᵀ(φ'(g[t]) ⊙ δ[t+1])",
    correct="φ'(g[t]) ⊙ σ_w/√n Wᵀδ[t+1]",
    example="∂f/∂x₁ of one erf network of width 6, two steps",
    judge="central differences",
)
def back_propagation(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """∂f/∂x₁ of one small network: a fact of calculus, so that finite differences decide.

    In the limit both orders give the same kernel, since slopes are averaged over units either way.
    """
    n, sw, su = 6, 1.2, 0.9
    W, U, v = (rng.standard_normal(shape) for shape in ((n, n), n, n))
    x = rng.standard_normal(2)

    def states(first: float) -> tuple[Array, Array]:
        g1 = su * U * first
        return g1, sw / n**0.5 * W @ erf(g1) + su * U * x[1]

    def difference(step: float) -> float:
        up, down = (v @ erf(states(x[0] + sign * step)[1]) / n**0.5 for sign in (1, -1))
        return float((up - down) / (2 * step))

    g1, g2 = states(x[0])
    delta = v / n**0.5 * erf.derivative(g2)
    slope, transition = erf.derivative(g1), sw / n**0.5 * W.T
    exact, rough = difference(1e-4), difference(2e-4)
    printed, correct = su * U @ (transition @ (slope * delta)), su * U @ (slope * (transition @ delta))
    return printed, correct, exact, abs(exact - rough) + 1e-9 * abs(exact)


@erratum(
    where="[R] B.3, first step of layer ℓ",
    printed="V[K^(ℓ,2,2)], of the layer itself",
    correct="V[K^(ℓ-1,2,2)], of the layer below",
    example="𝒦(x, x) of one step {(2, 1)}, two ReLU layers, σ_b = 0.2",
    judge=NETWORKS,
)
def upper_layer(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """As printed, layer 2 at the first step reads itself: q = σ_u² V(q, q, q) + σ_b², whatever the input."""
    x = np.array([[2.0, 1.0]])
    wiring = Wiring(sigma_b=0.2, depth=2)
    mean, allowed = judge(wiring, x, x, rng, draws, same=True)
    blind = wiring.sigma_b**2 / (1 - wiring.sigma_u**2 / 2)  # ReLU: V(q, q, q) = q/2
    return wiring.sigma_v**2 * blind / 2, wiring.kernel.nngp([x])[0, 0], mean[1], allowed[1]


def paper_sum(wiring: Wiring, x: Array, y: Array, *, late: bool = False, second_twice: bool = False) -> float:
    """Θ = Σ_ℓ Σ_t Π[ℓ,t] Σ[ℓ,t] + 𝒦 of [R] (11) for ReLU, equal lengths and no initial state, Π as in B.3.

    `late` takes Π of the layer above one step later, as printed in B.3; `second_twice` takes Σ(x', x'), as in (37).
    """
    w, u, b, v = (getattr(wiring, f"sigma_{name}") ** 2 for name in "wubv")
    L, T = wiring.depth, len(x)
    sigma, values, slopes = np.zeros((3, L, T)), np.zeros((3, L, T)), np.zeros((L, T))
    for t in range(T):
        for k in range(L):
            for which, (one, two) in enumerate(((x, x), (y, y), (x, y))):
                past = values[which, k, t - 1] if t else 0.0
                below = values[which, k - 1, t] if k else one[t] @ two[t] / x.shape[1]
                sigma[which, k, t] = w * past + u * below + b
            values[:, k, t] = sigma[:, k, t] / 2  # V(q, q, q) for the two variances
            values[2, k, t], slopes[k, t] = dual(relu, *sigma[:, k, t])
    Pi = np.zeros((L + 1, T + 1))  # zero beyond the last layer and step
    for k in reversed(range(L)):
        for t in reversed(range(T)):
            readout = v if (k, t) == (L - 1, T - 1) else 0.0
            Pi[k, t] = slopes[k, t] * (readout + w * Pi[k, t + 1] + u * Pi[k + 1, t + late])
    return float(np.sum(Pi[:-1, :-1] * sigma[1 if second_twice else 2]) + v * values[2, -1, -1])


@erratum(
    where="[R] B.3, backward pass between layers",
    printed="Π^(ℓ+1,t+1): the layer above one step later",
    correct="Π^(ℓ+1,t): layers are connected without delay",
    example=f"Θ(x, x) of three ReLU layers, σ_w = 1, σ_u = 1.5, for {NAMES[0]}",
    judge=NETWORKS,
)
def backward_indices(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """The paper's sum over layers and steps, with Π of the layer above at step t + 1 and at step t."""
    wiring = Wiring(sigma_w=1.0, sigma_u=1.5, depth=3)
    mean, allowed = judge(wiring, X, X, rng, draws, same=True)
    return paper_sum(wiring, X, X, late=True), wiring.kernel([X])[0, 0], mean[0], allowed[0]


@erratum(
    where="[R] (37), and the sum of B.4",
    printed="Π(x, x') Σ(x', x')",
    correct="Π(x, x') Σ(x, x'), as in (11)",
    example=f"Θ of one ReLU layer for x and 2x', {', '.join(NAMES)}",
    judge=NETWORKS,
)
def second_sequence(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """The same sum for one layer, with Σ of the second sequence and itself."""
    wiring = Wiring(sigma_b=0.2)
    mean, allowed = judge(wiring, X, 2 * Y, rng, draws)
    return paper_sum(wiring, X, 2 * Y, second_twice=True), wiring.kernel([X], [2 * Y])[0, 0], mean[0], allowed[0]


def _fan_in(name: str, where: str, tied: bool) -> None:
    """The same slip in (29) and in B.4, where every step has weights of its own."""

    @erratum(
        where=where,
        printed="σ_w/√m with W, σ_u/√n with U",
        correct="σ_w/√n and σ_u/√m, as in (5)",
        example=f"𝒦(x, x) of one {'tied' if tied else 'untied'} layer of width {WIDTHS[1]} for {NAMES[0]}",
        judge=NETWORKS.replace("networks,", "networks drawn by (5) and (6),"),
        name=name,
    )
    def fan_in(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
        """𝒦(x, x) of networks drawn by (5) and (6), beside what (29) gives at one width, where V(q, q, q) = q/2."""
        m, n = X.shape[1], WIDTHS[1]
        wiring = Wiring(sigma_w=1.2, sigma_u=0.8, sigma_b=0.3, tied=tied)
        mean, allowed = judge(wiring, X, X, rng, draws, same=True)
        q = 0.0
        for step in X:
            q = wiring.sigma_w**2 * n / m * q / 2 + wiring.sigma_u**2 * step @ step / n + wiring.sigma_b**2
        return q / 2, wiring.kernel.nngp([X])[0, 0], mean[1], allowed[1]


_fan_in("fan_in", "[R] (29)", tied=True)
_fan_in("fan_in_untied", "[R] B.4, untied weights", tied=False)


@erratum(
    where="[R] A.1, kernel of the perceptron",
    printed="σ_w² V' in every factor",
    correct="σ_v² V' in the last factor",
    example="Θ of (1, 0, 1) and (1, 1, 0), two ReLU layers, σ_w = 1.5, σ_v = 0.6",
    judge=NETWORKS,
)
def perceptron_readout(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """k = Σ_ℓ Σ^(ℓ) Π_{ℓ' ≥ ℓ} Σ̇^(ℓ') + 𝒦 with Σ̇ = σ_w² V' in every factor: the last belongs to the readout."""
    x, y = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
    sw, sb, sv, L = 1.5, 0.3, 0.6, 2
    qx, qy, s = (sw**2 * float(one @ two) / 3 + sb**2 for one, two in ((x, x), (y, y), (x, y)))
    printed = 0.0
    for _ in range(L):
        value, slope = dual(relu, qx, qy, s)
        printed = (printed + s) * sw**2 * slope
        qx, qy, s = (sw**2 * each + sb**2 for each in (qx / 2, qy / 2, value))
    # A perceptron is a network that reads one step; its weights between layers are then called U.
    wiring = Wiring(sigma_w=0.0, sigma_u=sw, sigma_b=sb, sigma_v=sv, depth=L)
    mean, allowed = judge(wiring, x[None], y[None], rng, draws)
    correct = NTK(sigma_w=sw, sigma_b=sb, sigma_v=sv, depth=L)([x], [y])[0, 0]
    return printed + sv**2 * value, correct, mean[0], allowed[0]


@erratum(
    where="[R] B.1, Lemma 2",
    printed="‖a‖ ≤ √n + √t with probability 1 - exp(-ct²)",
    correct="√n + t",
    example="power of t in -log P(‖a‖ > √n + √t), n = 10, t = 100 to 200",
    judge="the χ distribution",
)
def lemma_2(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """Deviations of a norm have Gaussian tails, P(‖a‖ > √n + u) ≤ exp(-u²/2): with u = √t the exponent is t, not t²."""
    t = np.array([100.0, 200.0])
    exponent = -stats.chi(10).logsf(10**0.5 + np.sqrt(t))
    found = float(np.log(exponent[1] / exponent[0]) / np.log(t[1] / t[0]))
    return 2.0, 1.0, found, 0.3  # the power is one in the limit only
