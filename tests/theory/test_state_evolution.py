"""State evolution against closed forms, high precision, recursions of finite width, and the library's own kernels.

The oracles share nothing with `rntk.theory.evolution`: equations of the paper on linear networks ([L]) solved by hand,
mpmath, lattice sums, `rntk.RNTK`, and random matrices.
"""

from __future__ import annotations

import math
import re

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from helpers.tolerances import TOLERANCE, entry_error, relative_error
from oracles.duals import relu_dual
from rntk import RNTK
from rntk.theory.evolution import StateEvolution, state_evolution

EXACT = TOLERANCE[np.dtype(np.float64)]
METHODS = ("quadrature", "monte carlo")


def identity(q):
    return q


def relu(q):
    return np.maximum(q, 0.0)


def affine(slope, shift):
    return lambda q: slope * q + shift


def tangent(columns):
    """[L] (45): q = [q1, q2] with n_x columns each, G1(q) = q and G2(q) = [0, q1]."""
    return [identity, lambda q: np.concatenate([np.zeros_like(q[:, :columns]), q[:, :columns]], axis=1)]


def tangent_limit(columns, T, nu_f, nu_w):
    """[L] (46) and (49): τ_{t1} = ν_W^t ν_F and τ_{t2} = t ν_F ν_W^{t-1} + ν_W^t, independent from step to step."""
    expected = np.zeros((T, 2 * columns, T, 2 * columns))
    for t in range(T):
        tau = nu_w**t * nu_f, t * nu_f * nu_w ** (t - 1) + nu_w**t
        expected[t, :, t, :] = np.diag(np.repeat(tau, columns))
    return expected


def pulls(found: StateEvolution, expected):
    """Distances to `expected` in units of the error, with zero where nothing was computed."""
    given = found.error == 0
    assert np.array_equal(found.covariance[given], expected[given])
    return np.where(given, 0.0, (found.covariance - expected) / np.where(given, 1.0, found.error))


def simulate(G, nu, cov0, T, n, inputs=None, seed=0):
    """(T, n, d) states of q_{t+1} = Σ_i A_i G_i(q_t, u_t)/√n at width n; every row takes one of the input paths."""
    rng, cov0 = np.random.default_rng(seed), np.atleast_2d(cov0)
    q = [rng.multivariate_normal(np.zeros(len(cov0)), cov0, size=n)]
    matrices = rng.standard_normal((len(G), n, n)) * np.sqrt(np.asarray(nu) / n)[:, None, None]
    paths = None if inputs is None else np.reshape(inputs, (-1, *np.shape(inputs)[-2:]))
    for t in range(T - 1):
        given = (q[t],) if paths is None else (q[t], paths[np.arange(n) % len(paths), t])
        q.append(sum(A @ g(*given) for A, g in zip(matrices, G, strict=True)))
    return np.stack(q)


def scatter(q):
    """(T, d, T, d) q_sᵀ q_t/n of a recursion of finite width."""
    return np.einsum("sna,tnb->satb", q, q, optimize=True) / q.shape[1]


# Linear recursions, in closed form ------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3])
def test_impulse_response_of_a_linear_network(columns):
    """[L] Theorem 3.3(a): cov(Q_t) = ν_F ν_W^t I, and zero between different steps."""
    nu_f, nu_w, T = 1.7, 0.6, 5
    found = state_evolution([identity], [nu_w], nu_f * np.eye(columns), T)
    expected = np.einsum("ts,ab->tasb", np.diag(nu_f * nu_w ** np.arange(T)), np.eye(columns))
    assert found.method == "quadrature"
    assert relative_error(found.covariance, expected) < EXACT
    assert found.error.max() < EXACT
    assert (np.abs(found.covariance - expected) <= found.error + 1e-30).all()


@pytest.mark.parametrize("columns", [1, 2])
def test_tangent_of_a_linear_network_by_quadrature(columns):
    """[L] (46) to (49). With two channels a state has rank four, and a pair of independent states is two such grids."""
    cov0 = np.diag(np.repeat([1.7, 1.0], columns))
    found = state_evolution(tangent(columns), [0.6, 1.0], cov0, 4)
    assert found.method == "quadrature"
    assert relative_error(found.covariance, tangent_limit(columns, 4, 1.7, 0.6)) < EXACT


def test_small_orders_reach_high_ranks():
    """Three channels: rank six by default goes to Monte Carlo, but polynomials need few nodes."""
    cov0 = np.diag(np.repeat([1.7, 1.0], 3))
    found = state_evolution(tangent(3), [0.6, 1.0], cov0, 4, order=4)
    assert found.method == "quadrature"
    assert relative_error(found.covariance, tangent_limit(3, 4, 1.7, 0.6)) < EXACT
    assert found.error.max() < 10 * EXACT


def test_tangent_of_a_linear_network_by_monte_carlo():
    """[L] (46) to (49) with three channels, within errors that are small and honest."""
    cov0, expected = np.diag(np.repeat([1.7, 1.0], 3)), tangent_limit(3, 4, 1.7, 0.6)
    runs = []
    for seed in range(24):
        found = state_evolution(tangent(3), [0.6, 1.0], cov0, 4, samples=800, replicates=20, seed=seed)
        assert found.method == "monte carlo"
        assert "rank 6" in found.reason
        assert found.error.max() < 0.05  # of variances between 0.4 and 2.5
        runs.append(pulls(found, expected))
    pull = np.stack(runs)
    assert np.abs(pull).max() < 7  # Student's distribution with 19 degrees: its deviation is 1.06
    assert np.abs(pull.mean(axis=0)).max() < 5 / math.sqrt(len(runs))
    for t in (1, 2, 3):
        # An error that left out what a step inherits from the steps before would give about √t here.
        assert 0.85 < np.einsum("rtata->rta", pull)[:, t].std() < 1.3


def lemma(slopes, shifts, nu, cov0, T, nu_of_rest):
    """(T, T) covariances by (70a) to (70h) of [L] for G_ℓ(q) = a_ℓ q + c_ℓ: predictors F, rest P, and D μ."""
    C = np.zeros((T, T))
    C[0, 0] = cov0
    R = np.zeros((len(nu), T - 1, T - 1))  # cov of the centred R̃_ℓ
    for t in range(T - 1):
        for k, slope in enumerate(slopes):
            Z = slope**2 * C[: t + 1, : t + 1]  # cov of the centred Z̃_ℓ
            F = np.linalg.lstsq(Z[:t, :t], Z[:t, t], rcond=None)[0] if t else np.zeros(0)
            P = Z[t, t] - Z[:t, t] @ F
            R[k, :t, t] = R[k, t, :t] = R[k, :t, :t] @ F
            R[k, t, t] = F @ R[k, :t, :t] @ F + nu_of_rest[k] * P
        means = np.sum(np.multiply(nu, np.square(shifts)))
        C[1 : t + 2, 1 : t + 2] = R[:, : t + 1, : t + 1].sum(axis=0) + means
    return C


def test_lemma_with_predictors_and_rests():
    """[L] (70) says the same as the covariances once ν_W in (70f) is ν_ℓ; as printed it doesn't."""
    slopes, shifts, nu = (0.9, -0.6), (0.4, 0.7), (1.1, 0.5)
    functions = [affine(*pair) for pair in zip(slopes, shifts, strict=True)]
    found = state_evolution(functions, nu, 1.3, 6).covariance[:, 0, :, 0]
    assert relative_error(found, lemma(slopes, shifts, nu, 1.3, 6, nu)) < EXACT
    assert relative_error(found, lemma(slopes, shifts, nu, 1.3, 6, (1.1, 1.1))) > 0.05


def test_variance_of_each_matrix_counts():
    """Random matrices decide: τ_{22} = 2 ν_F ν_W + ν_W², where ν_W in (70f) for every ℓ gives 2 ν_F ν_W² + ν_W²."""
    nu_f, nu_w = 1.7, 0.5
    runs = [simulate(tangent(1), [nu_w, 1.0], np.diag([nu_f, 1.0]), 3, 400, seed=seed) for seed in range(16)]
    tau = [np.mean(q[2, :, 1] ** 2) for q in runs]
    error = np.std(tau, ddof=1) / math.sqrt(len(tau))
    correct, printed = (2 * nu_f * factor + nu_w**2 for factor in (nu_w, nu_w**2))
    assert abs(np.mean(tau) - correct) < 4 * error
    assert abs(np.mean(tau) - printed) > 8 * error


# Nonlinear recursions -------------------------------------------------------------------------------------------------


def gaussian_mean(function, variance):
    """E[f(z)], z ~ N(0, variance), by mpmath."""
    with mpmath.workdps(25):
        deviation = mpmath.sqrt(variance)
        density = lambda z: function(deviation * z) * mpmath.npdf(z)  # noqa: E731
        return float(mpmath.quad(density, [-12, -4, -1, 0, 1, 4, 12]))


def test_tanh_steps_in_high_precision():
    """Two steps by mpmath and the third, with correlated states, by a lattice sum; inputs are the same for all rows."""
    nu, cov0, u = 0.8, 1.3, (0.4, -0.9, 0.7)
    found = state_evolution([lambda q, u: np.tanh(q + u)], [nu], cov0, 4, inputs=np.array([*u, 9.0])[:, None])
    first = nu * gaussian_mean(lambda z: mpmath.tanh(z + u[0]) ** 2, cov0)
    second = nu * gaussian_mean(lambda z: mpmath.tanh(z + u[1]) ** 2, first)
    means = [gaussian_mean(lambda z, at=at: mpmath.tanh(z + u[at]), v) for at, v in ((0, cov0), (1, first))]
    cross = nu * means[0] * means[1]  # Q_0 and Q_1 are independent
    z = np.arange(-9, 9, 0.05)
    weight = np.exp(-z * z / 2) * 0.05 / math.sqrt(2 * math.pi)
    left = np.tanh(math.sqrt(first) * z + u[1])[:, None]
    slope = cross / math.sqrt(first)
    right = np.tanh(slope * z[:, None] + math.sqrt(second - slope**2) * z + u[2])
    third = nu * float(weight @ (left * right) @ weight)
    assert found.at(0, 0) == cov0
    for (s, t), value in {(1, 1): first, (2, 2): second, (1, 2): cross, (2, 1): cross, (2, 3): third}.items():
        assert found.at(s, t)[0, 0] == pytest.approx(value, rel=1e-9), (s, t)
    assert not found.covariance[0, :, 1:].any()
    assert not found.error[0].any()
    assert not found.error[:, :, 0].any()
    assert found.error[1:, :, 1:].all()
    assert found.error.max() < 1e-7


def test_relu_step_by_hand():
    """E[relu(z)²] = σ²/2 and E[relu(z)] = σ/√(2π): cov(Q_1) = ν σ²/2, cov(Q_1, Q_2) = ν σ_0 σ_1/(2π)."""
    found = state_evolution([relu], [3.0], 2.0, 3)
    assert found.at(1, 1)[0, 0] == pytest.approx(3.0, rel=1e-12)
    exact = 3.0 * math.sqrt(2.0 * 3.0) / (2 * math.pi)
    assert abs(found.at(1, 2)[0, 0] - exact) < found.error[1, 0, 2, 0] < 2e-3


@pytest.mark.parametrize(("order", "accuracy"), [(24, 0.1), (64, 0.05), (128, 0.01)])
def test_quadrature_error_holds_for_kinks(order, accuracy):
    """ReLU and a bias, the recursion in closed form: no true error is larger than its estimate."""
    rng, ratios = np.random.default_rng(5), []
    for _ in range(15):
        nu, bias, cov0, T = rng.uniform(0.5, 2.5), rng.uniform(0, 1), rng.uniform(0.2, 2), 5
        exact = np.zeros((T, T))
        exact[0, 0] = cov0
        for t in range(T - 1):
            for s in range(t + 1):
                V = relu_dual(*(mpmath.mpf(exact[k]) for k in ((s, s), (t, t), (s, t))))[0]
                exact[s + 1, t + 1] = exact[t + 1, s + 1] = nu * V + bias
        found = state_evolution([relu, np.ones_like], [nu, bias], cov0, T, order=order)
        assert found.error.max() < accuracy * exact.max()
        upper = np.triu_indices(T - 1)
        ratios.append(
            (np.abs(found.covariance[:, 0, :, 0] - exact) / (found.error[:, 0, :, 0] + 1e-300))[1:, 1:][upper]
        )
    assert np.concatenate(ratios).max() < 1


def path_case():
    """Two columns, two matrices, five input paths."""
    rng = np.random.default_rng(3)
    functions = [lambda q, u: np.tanh(q + u), lambda q, u: 0.7 * np.cos(q[:, ::-1]) * u[:, :1]]
    return functions, (1.4, 0.6), np.array([[1.0, 0.4], [0.4, 0.5]]), rng.standard_normal((5, 4, 2))


def shared_case():
    """ReLU with inputs that all rows share."""
    return [lambda q, u: relu(q + u)], (1.6,), 0.8, np.array([[0.5], [-0.3], [0.8], [0.0]])


@pytest.mark.parametrize("case", [path_case, shared_case])
def test_finite_width_comes_closer(case):
    """Covariances of a recursion of width n differ from the limit by O(1/√n)."""
    functions, nu, cov0, inputs = case()
    limit = state_evolution(functions, nu, cov0, 4, inputs=inputs, order=12 if np.ndim(cov0) else None)
    assert limit.method == "quadrature"
    widths, gaps = (50, 200, 800), []
    for width in widths:
        runs = [scatter(simulate(functions, nu, cov0, 4, width, inputs=inputs, seed=seed)) for seed in range(12)]
        gaps.append(np.stack(runs) - limit.covariance)
    size = [math.sqrt(np.mean(gap**2)) for gap in gaps]
    assert -0.65 < np.polyfit(np.log(widths), np.log(size), 1)[0] < -0.35
    assert size[-1] < 0.1 * limit.covariance.max()
    error = gaps[-1].std(axis=0, ddof=1) / math.sqrt(12)
    # A mean over 12 runs, Student's distribution with 11 degrees; 1/n is the bias of one run.
    assert (np.abs(gaps[-1].mean(axis=0)) < 5.5 * error + limit.error + 2 / 800).all()


@pytest.mark.parametrize("case", [path_case, shared_case])
def test_both_methods_agree(case):
    functions, nu, cov0, inputs = case()
    order = 12 if np.ndim(cov0) else None
    smooth, drawn = (
        state_evolution(functions, nu, cov0, 4, inputs=inputs, method=method, order=order, samples=4000, seed=4)
        for method in METHODS
    )
    assert (smooth.method, drawn.method) == METHODS
    assert drawn.reason.endswith("as asked")
    computed = drawn.error > 0
    assert computed.any(axis=(1, 3))[1:, 1:].all()
    error = np.hypot(drawn.error, smooth.error)[computed]
    assert (np.abs(smooth.covariance - drawn.covariance)[computed] < 4.5 * error).all()
    assert drawn.error.max() < 0.02


def test_paths_in_parts_change_nothing(monkeypatch):
    functions, nu, cov0, inputs = path_case()
    whole = state_evolution(functions, nu, cov0, 4, inputs=inputs, order=6)
    monkeypatch.setattr("rntk.theory.evolution.quadrature.ROWS", 2 * 6**2)  # two paths at a time, or one
    parts = state_evolution(functions, nu, cov0, 4, inputs=inputs, order=6)
    assert relative_error(parts.covariance, whole.covariance) < EXACT


def test_many_paths_go_to_monte_carlo():
    """More paths than samples, in ascending order, constant in time: their square adds to the variance of Q."""
    u = np.sort(np.random.default_rng(0).standard_normal(20_000)).reshape(-1, 1, 1).repeat(5, axis=1)
    found = state_evolution([lambda q, u: q + u], [0.5], 1.0, 5, inputs=u)
    assert found.method == "monte carlo"
    assert "20000 input paths" in found.reason
    second = float(np.mean(u[:, 0] ** 2))
    expected = np.zeros((5, 5))
    expected[0, 0] = 1.0
    for t in range(4):
        expected[1 : t + 2, t + 1] = 0.5 * (expected[: t + 1, t] + second)
        expected[t + 1, 1 : t + 2] = expected[1 : t + 2, t + 1]
    assert np.abs(pulls(found, expected[:, None, :, None])).max() < 5
    assert found.error.max() < 0.01


# The kernels of this library ------------------------------------------------------------------------------------------

SIGMAS = {"sigma_w": 1.3, "sigma_u": 0.9, "sigma_b": 0.4, "sigma_v": 0.8}


@pytest.mark.parametrize(("activation", "phi", "accuracy"), [("erf", special.erf, 1e-12), ("relu", relu, 5e-4)])
def test_recurrent_network_with_inputs_through_weights(activation, phi, accuracy):
    """G(q, u) = u_k adds U_k x_{t,k} with the same U_k at all steps, and G = 1 the bias: q_t is the pre-activation.

    cov(g_s, g_t) = σ_w² 𝒦[s-1, t-1]/σ_v² + σ_u² <x_s, x_t>/m + σ_b², with 𝒦 the NNGP kernel of outputs at all steps.
    """
    x = np.random.default_rng(1).standard_normal((4, 2))
    nngp = RNTK(activation, **SIGMAS, readout="sequence").nngp([x])
    w, u, b, v = (value**2 for value in SIGMAS.values())
    expected = u * x @ x.T / 2 + b
    expected[1:, 1:] += w / v * nngp[:-1, :-1]
    functions = [
        lambda q, u: phi(q),
        lambda q, u: u[:, :1],
        lambda q, u: u[:, 1:],
        lambda q, u: np.ones_like(q),
    ]
    found = state_evolution(functions, [w, u / 2, u / 2, b], 0.0, 5, inputs=np.pad(x, ((0, 1), (0, 0))))
    gap = np.abs(found.covariance[1:, 0, 1:, 0] - expected)
    assert found.method == "quadrature"
    assert gap.max() < accuracy
    assert (gap <= found.error[1:, 0, 1:, 0]).all()


@pytest.mark.parametrize(("activation", "phi"), [("erf", special.erf), ("relu", relu)])
def test_recurrent_network_with_a_law_of_inputs(activation, phi):
    """U_t = σ_u U x_t + σ_b b with U, b ~ N(0, 1) for each row, shared by all steps: q_t is the recurrent part.

    cov(Q_{s+1}, Q_{t+1}) = σ_w² E[φ(g_s) φ(g_t)] = σ_w² 𝒦[s, t]/σ_v², and cov(Q_0) = σ_w² σ_h². The law of (U, b) is
    an equally weighted sample of 256; eight of them give the error.
    """
    x, sigma_h = np.random.default_rng(2).standard_normal(4), 0.5
    nngp = RNTK(activation, **SIGMAS, sigma_h=sigma_h, readout="sequence").nngp([x])
    w, v = SIGMAS["sigma_w"] ** 2, SIGMAS["sigma_v"] ** 2
    runs, quadrature = [], []
    for seed in range(8):
        sobol = stats.qmc.Sobol(2, seed=np.random.default_rng(seed)).random(256)
        U, b = special.ndtri(sobol).T[:, :, None]
        paths = np.pad(SIGMAS["sigma_u"] * U * x + SIGMAS["sigma_b"] * b, ((0, 0), (0, 1)))[:, :, None]
        found = state_evolution([lambda q, u: phi(q + u)], [w], w * sigma_h**2, 5, inputs=paths, order=16)
        assert found.method == "quadrature"
        runs.append(found.covariance[1:, 0, 1:, 0] * v / w)
        quadrature.append(found.error[1:, 0, 1:, 0] * v / w)
    error = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    gap = np.abs(np.mean(runs, axis=0) - nngp)
    assert (gap < 5 * error + np.mean(quadrature, axis=0)).all()
    assert (5 * error + np.mean(quadrature, axis=0)).max() < 0.03 * nngp.max()


# Covariances without full rank ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_equal_columns_are_one_column(method):
    options = {"method": method, "samples": 300, "replicates": 3}
    G, nu = [np.tanh, np.ones_like], [1.2, 0.3]
    one, two = (state_evolution(G, nu, cov0, 5, **options) for cov0 in (0.7, np.full((2, 2), 0.7)))
    for a in range(2):
        for b in range(2):
            assert relative_error(two.covariance[:, a, :, b], one.covariance[:, 0, :, 0]) < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_states_that_are_one_and_the_same(method):
    """A constant G: Q_{t+1} = 2 A 1/√n at every step, from rest."""
    found = state_evolution([affine(0.0, 2.0)], [0.5], np.zeros((2, 2)), 4, method=method, samples=50, replicates=3)
    expected = np.zeros((4, 2, 4, 2))
    expected[1:, :, 1:, :] = 2.0
    assert relative_error(found.covariance, expected) < EXACT
    # And with a zero matrix nothing happens at all.
    still = state_evolution([np.tanh], [0.0], 0.0, 3, method=method, samples=50, replicates=3)
    assert not still.covariance.any()
    assert not still.error.any()


@pytest.mark.parametrize("method", METHODS)
def test_small_columns_keep_their_digits(method):
    """A column of deviation 1e-10 beside one of 1 isn't a null direction."""
    small, close = 1e-10, 1e-11 if method == "quadrature" else 0.1
    found = state_evolution(
        [lambda q: np.tanh(q) * [small, 1.0]], [1.0], np.eye(2), 3, method=method, samples=400, replicates=8
    )
    square = gaussian_mean(lambda z: mpmath.tanh(z) ** 2, 1.0)
    assert found.covariance[1, 0, 1, 0] == pytest.approx(small**2 * square, rel=close, abs=0)
    assert found.covariance[2, 0, 2, 0] == pytest.approx(small**4 * square, rel=close, abs=0)  # tanh is linear there
    assert found.covariance[1, 1, 1, 1] == pytest.approx(square, rel=close, abs=0)


# The result -----------------------------------------------------------------------------------------------------------


def test_result_speaks_for_itself():
    found = state_evolution(tangent(1), [0.5, 1.0], np.diag([2.0, 1.0]), 3)
    assert found.at(1, 1) == pytest.approx(np.diag([1.0, 2.5]), abs=1e-12)
    assert np.array_equal(found.at(-1, 1), found.covariance[2, :, 1, :])
    assert repr(found).startswith("<StateEvolution of Q_0 to Q_2, 2 columns, by quadrature (rank at most 2, 128 nodes")
    assert "variance 1.5, 1.75, 1.375" in repr(found)
    with pytest.raises(IndexError, match="3 states, Q_0 to Q_2; Q_3"):
        found.at(0, 3)
    with pytest.raises(AttributeError):
        found.method = "guess"
    alone = state_evolution([identity], [1.0], 2.0, 1)
    assert alone.covariance.shape == (1, 1, 1, 1)
    assert alone.at(0, 0) == 2.0
    assert "StateEvolution of Q_0, 1 column," in repr(alone)


def test_seeds_reproduce():
    functions, nu, cov0, inputs = path_case()
    options = {"inputs": inputs, "method": "monte carlo", "samples": 100, "replicates": 3}
    first, again, other = (state_evolution(functions, nu, cov0, 4, **options, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.covariance, again.covariance)
    assert np.array_equal(first.error, again.error)
    assert not np.isclose(first.covariance[1:, :, 1:], other.covariance[1:, :, 1:], rtol=1e-6).any()


# Mistakes -------------------------------------------------------------------------------------------------------------

MISTAKES = {
    "not psd": ({"cov0": [[1.0, 2.0], [2.0, 1.0]]}, "cov0 must be positive semi-definite, but has the eigenvalue -1"),
    "not symmetric": ({"cov0": [[1.0, 0.5], [0.0, 1.0]]}, "cov0 must be symmetric, but cov0[0, 1] is 0.5 and not 0"),
    "not square": (
        {"cov0": np.ones((2, 3))},
        "cov0 must be square, (d_q, d_q), or a scalar for d_q = 1, but has shape",
    ),
    "nan": ({"cov0": np.nan}, "cov0 must be finite"),
    "negative nu": ({"nu": [-0.5]}, "nu holds variances and can't be negative, but is [-0.5]"),
    "two nu": ({"nu": [0.5, 0.5]}, "nu must hold one variance for each of the 1 functions, but has shape (2,)"),
    "words": ({"nu": ["half"]}, "nu must be an array of numbers, (1,), not ['half']"),
    "no steps": ({"T": 0}, "T, the number of states Q_0 to Q_{T-1}, must be a whole number of at least 1, not 0"),
    "half a step": ({"T": 2.5}, "not 2.5"),
    "one function": ({"G": np.tanh}, "G must be a list of functions, one for each matrix A_i, not <ufunc 'tanh'>; try"),
    "no function": ({"G": []}, "G must be a list of at least one function, one for each matrix A_i, not []"),
    "shape of G": (
        {"G": [lambda q: q.sum(axis=1)]},
        "G[0] must return real numbers of shape (",
    ),
    "complex G": ({"G": [lambda q: 1j * q]}, "a row for each row of q, but returned complex128 of shape"),
    "G fails": ({"G": [lambda q, u: q]}, "G[0] failed at step 0, called as G[0](q) with q of shape ("),
    "G writes": ({"G": [lambda q: np.maximum(q, 0, out=q)]}, "read-only"),
    "inputs in one row": (
        {"inputs": [1.0, 2.0, 3.0]},
        "(T, d_u) or (M, T, d_u) with T = 3, but have (3,); try inputs[:",
    ),
    "inputs of 2 steps": ({"inputs": np.ones((2, 1))}, "(T, d_u) or (M, T, d_u) with T = 3, but have (2, 1)"),
    "no input paths": ({"inputs": np.ones((0, 3, 1))}, "but have (0, 3, 1)"),
    "input missing": ({"inputs": [[1.0], [np.nan], [0.0]]}, "inputs must be finite, but inputs[1, 0] is nan"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("method", METHODS)
def test_mistakes_are_explained(name, method):
    change, message = MISTAKES[name]
    arguments = {"G": [np.tanh], "nu": [0.5], "cov0": 1.0, "T": 3, "inputs": None, **change}
    with pytest.raises(ValueError, match=re.escape(message)):
        state_evolution(**arguments, method=method, samples=10, replicates=2)


@pytest.mark.parametrize("method", METHODS)
def test_values_that_are_not_finite_name_the_step(method):
    """The third state is the first for which the root doesn't exist: u_2 is far below zero."""
    arguments = {
        "G": [np.log, lambda q, u: np.sqrt(q + u)],  # ν = 0: the logarithm is never asked
        "nu": [0.0, 1e-6],
        "cov0": 1e-6,
        "T": 4,
        "inputs": [[50.0], [50.0], [-50.0], [50.0]],
    }
    with pytest.raises(ValueError, match=r"G\[1\] is not finite for \d+ of \d+ rows at step 2, the first with q = \["):
        state_evolution(**arguments, method=method, samples=10, replicates=2)


@pytest.mark.parametrize("method", METHODS)
def test_explosion_is_explained(method):
    with pytest.raises(ValueError, match=r"cov\(Q_3, Q_3\) is too large for float64: the recursion explodes"):
        state_evolution([lambda q: 1e60 * q], [1.0], 1.0, 5, method=method, samples=10, replicates=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, 'method must be "auto", "quadrature" or "monte carlo", not \'guess\''),
        ({"order": 1}, "order, the nodes along each direction, must be a whole number of at least 2, not 1"),
        ({"samples": 1}, "samples, the sample paths of one replicate, must be a whole number of at least 2, not 1"),
        ({"replicates": 1}, "replicates, the independent runs behind the standard error, must be a whole number of at"),
        ({"seed": -1}, "seed, which draws, must be a whole number of at least 0, not -1"),
        ({"method": "quadrature"}, "cov(Q_0) has rank 5, and a grid is sensible up to rank 4; take method"),
        ({"method": "quadrature", "order": 20}, "cov(Q_0) has rank 5, and 20^5 nodes are more than"),
    ],
)
def test_options_are_explained(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        state_evolution([np.tanh], [0.5], np.eye(5), 2, **options)


def test_entries_agree_one_by_one():
    """Orders of magnitude between steps: every covariance is right relative to itself."""
    found = state_evolution([identity, np.ones_like], [1e-4, 1e-9], 1.0, 5)
    expected = np.zeros((5, 5))
    expected[0, 0] = 1.0
    for t in range(4):
        for s in range(t + 1):
            expected[s + 1, t + 1] = expected[t + 1, s + 1] = 1e-4 * expected[s, t] + 1e-9
    assert entry_error(found.covariance[:, 0, :, 0], expected, floor=0.0) < 1e-11
