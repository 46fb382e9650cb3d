"""The oracles against hand calculations, against each other, and against the papers' formulas as printed.

A finite network is compared by its mean over draws: within four standard errors of the limit, with the
standard error itself small enough that the comparison means something.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from oracles import finite_network, high_precision
from oracles.duals import DUALS, LEAKY_SLOPE, dual, erf_dual, lattice_dual, relu_dual
from oracles.finite_network import Architecture
from oracles.make_dual_values import ENTIRE
from oracles.printed import paper_sum

STORED = Path(high_precision.__file__).parent
WIDTHS = (128, 384)


def sequence(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def sigmas(architecture: Architecture) -> tuple:
    a = architecture
    return a.sigma_w, a.sigma_u, a.sigma_b, a.sigma_h, a.sigma_v


def limit(x, y, architecture: Architecture, same: bool = False, parameterization: str = "ntk") -> np.ndarray:
    """(NTK, NNGP) of the architecture at infinite width, stacked as `finite_network.monte_carlo` does."""
    functions = {
        "last": high_precision.rntk,
        "mean": high_precision.mean_rntk,
        "sequence": high_precision.rntk_table,
    }
    options = {"depth": architecture.depth, "tied": architecture.tied, "parameterization": parameterization}
    phi = DUALS[architecture.activation]

    def one_direction(a, b):
        pair = functions[architecture.readout](phi, a, b, *sigmas(architecture), same=same, **options)
        return np.array([np.asarray(kernel, dtype=object).astype(float) for kernel in pair])

    result = one_direction(x, y)
    if architecture.bidirectional:
        backward = one_direction(x[::-1], y[::-1])
        result = result + (backward[:, ::-1, ::-1] if architecture.readout == "sequence" else backward)
    return result


def assert_estimates(mean, error, expected, precision: float = 0.05) -> None:
    """Within four standard errors, and the standard error small against the largest kernel entry."""
    scale = np.abs(mean).max(axis=tuple(range(1, np.ndim(mean))), keepdims=True)
    assert np.all(error <= precision * scale), "too few draws for the comparison to mean anything"
    np.testing.assert_array_less(np.abs(mean - expected), 4 * error + 1e-12)


# By hand ----------------------------------------------------------------------------------------------------


def test_relu_of_one_step_by_hand():
    theta, kernel = high_precision.relu_rntk([[1, 0]], [[0, 1]], 1, 1, 0)  # orthogonal: q = 1/2, Σ = 0
    assert theta == kernel  # 𝒦 = √(q q')/2π, and Θ adds Σ/4 = 0
    assert mpmath.almosteq(kernel, 1 / (4 * mpmath.pi), 1e-14)
    assert high_precision.relu_rntk([1], [1], 1, 1, 0) == (1, mpf("0.5"))
    assert high_precision.relu_rntk([1], [-1], 1, 1, 0) == (0, 0)  # no unit is on for both
    with mpmath.workdps(60):  # with a bias: q = 3/2, Σ = 1, c = 2/3
        theta, kernel = high_precision.relu_rntk([[1, 0]], [[0, 1]], 1, 1, 1, sigma_v=2)
        angle = mpmath.acos(mpf(2) / 3)
        value = mpf(3) / 2 * (mpmath.sqrt(5) / 3 + mpf(2) / 3 * (mpmath.pi - angle)) / (2 * mpmath.pi)
        derivative = (mpmath.pi - angle) / (2 * mpmath.pi)
        # The inner product of orthogonal vectors is 0, so Σ is the bias alone: c = 1/(3/2).
        assert abs(kernel - 4 * value) < mpf("1e-55")
        assert abs(theta - 4 * (value + derivative)) < mpf("1e-55")


def test_relu_of_two_steps_by_hand():
    root = mpmath.sqrt(mpf(2), prec=500)
    theta, kernel = high_precision.relu_rntk([1, 1], [1, 1], root, 1, 0)
    # q1 = 1, q2 = 2·(1/2) + 1 = 2, Θ1 = 1, Θ2 = 2 + 2·(1/2)·1 = 3; 𝒦 = 2/2, Θ = 1 + 3/2
    assert abs(kernel - 1) < mpf("1e-50")
    assert abs(theta - mpf("2.5")) < mpf("1e-50")


def test_relu_initial_state_counts_only_within_one_sequence():
    own, _ = high_precision.relu_rntk([1], [1], 1, 1, 0, sigma_h=2, same=True)  # q = 4 + 1 = Σ
    other, _ = high_precision.relu_rntk([1], [1], 1, 1, 0, sigma_h=2, same=False)  # q = 5, Σ = 1
    assert own == 5
    value, derivative = relu_dual(mpf(5), mpf(5), mpf(1))
    assert mpmath.almosteq(other, value + derivative, 1e-14)


def test_erf_of_one_step_by_hand():
    theta, kernel = high_precision.erf_rntk([1], [1], 1, 1, 0)
    assert float(kernel) == pytest.approx(2 / math.pi * math.asin(2 / 3), rel=1e-15)
    expected = 2 / math.pi * math.asin(2 / 3) + 4 / (math.pi * math.sqrt(5))
    assert float(theta) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("lengths", [(4, 4), (2, 5), (5, 2)])
def test_identity_closed_form(lengths):
    x, y = sequence(1, lengths[0], 3), sequence(2, lengths[1], 3)
    sw, su, sv = 0.75, 1.5, 0.5
    products = [float(x[-1 - j] @ y[-1 - j]) for j in range(min(lengths))]
    ntk, nngp = high_precision.identity_rntk(x, y, sw, su, 0, 0, sv)
    rho = [(j + 2) * sv**2 * su**2 * sw ** (2 * j) for j in range(len(products))]
    assert float(ntk) == pytest.approx(np.dot(rho, products) / 3, rel=1e-13)
    assert float(nngp) == pytest.approx(np.dot(np.array(rho) / range(2, len(rho) + 2), products) / 3, rel=1e-13)

    # The linear-RNN paper's (21): raw weights of variance ν are trained, inner products without 1/m.
    ntk, _ = high_precision.identity_rntk(x, y, sw, su, 0, 0, sv, parameterization="standard")
    w, f, c = sw**2, su**2 / 3, sv**2
    rho = [c * (j * f * w ** (j - 1) + w**j) + f * w**j for j in range(len(products))]
    assert float(ntk) == pytest.approx(np.dot(rho, products), rel=1e-13)


def test_table_ends_in_the_kernels_of_the_prefixes():
    x, y = sequence(3, 3, 2), sequence(4, 4, 2)
    thetas, kernels = high_precision.rntk_table(relu_dual, x, y, 1.3, 0.9, 0.2, 0.4, depth=2)
    assert thetas.shape == kernels.shape == (3, 4)
    for t in range(3):
        for s in range(4):
            pair = high_precision.relu_rntk(x[: t + 1], y[: s + 1], 1.3, 0.9, 0.2, 0.4, depth=2)
            assert (thetas[t, s], kernels[t, s]) == pair
    mean, _ = high_precision.mean_rntk(relu_dual, x, y, 1.3, 0.9, 0.2, 0.4, depth=2)
    assert float(mean) == pytest.approx(thetas.astype(float).mean(), rel=1e-14)


def test_fifty_digits_survive_near_duplicates(monkeypatch):
    x = sequence(5, 200)
    for y in (x, x + 1e-12 * sequence(6, 200), -x):
        values = high_precision.relu_rntk(x, y, 1.5, 1, 0.1)
        with monkeypatch.context() as patch:
            patch.setattr(high_precision, "WORKING_DIGITS", 250)
            better = high_precision.relu_rntk(x, y, 1.5, 1, 0.1)
        for a, b in zip(values, better, strict=True):
            assert abs(a - b) <= mpf("1e-50") * abs(b)


# Duals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sin", "gelu", "erf"])
@pytest.mark.parametrize("q1, q2, s", [(1.0, 1.0, 0.5), (4.0, 0.25, -0.9), (0.001, 2.0, 0.0), (1.0, 1.0, 1.0)])
def test_closed_forms_equal_lattice_sums(name, q1, q2, s):
    erf = (mpmath.erf, lambda z: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-z * z))
    lattice = lattice_dual(*(ENTIRE | {"erf": erf})[name], mpmath.inf, q1, q2, s)
    for a, b in zip(dual(name, q1, q2, s), lattice, strict=True):
        assert abs(a - b) < mpf("1e-28")


def test_sigmoid_through_tanh_equals_its_own_lattice_sum():
    def sigmoid(z):
        return 1 / (1 + mpmath.exp(-z))

    direct = lattice_dual(sigmoid, lambda z: sigmoid(z) * sigmoid(-z), mpmath.pi, 2.0, 3.0, -1.5)
    for a, b in zip(dual("sigmoid", 2.0, 3.0, -1.5), direct, strict=True):
        assert abs(a - b) < mpf("1e-25")


@pytest.mark.parametrize("name", ["tanh", "gelu", "sigmoid", "sin", "erf"])
def test_duals_equal_gauss_hermite_sums(name):
    """A third route, in float64: product Gauss-Hermite with 120 nodes, and the network's own φ and φ'."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    q1, q2, c = 0.6, 0.4, 0.5
    s = c * math.sqrt(q1 * q2)
    z1 = math.sqrt(q1) * nodes[:, None]
    z2 = math.sqrt(q2) * (c * nodes[:, None] + math.sqrt(1 - c * c) * nodes)
    for function, exact in zip(finite_network.ACTIVATIONS[name], dual(name, q1, q2, s), strict=True):
        estimate = weights @ (function(z1) * function(z2)) @ weights
        assert estimate == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "erf", "sin", "gelu"])
def test_derivative_is_the_slope_in_s(name):
    """Price's theorem, V' = ∂V/∂s."""
    with mpmath.workdps(60):
        h = mpf("1e-20")
        up, down = (DUALS[name](mpf(2), mpf(3), mpf(1) + sign * h)[0] for sign in (1, -1))
        assert abs((up - down) / (2 * h) - DUALS[name](mpf(2), mpf(3), mpf(1))[1]) < mpf("1e-30")


def test_stored_dual_values():
    content = json.loads((STORED / "dual_values.json").read_text())
    assert float(content["leaky_relu_slope"]) == LEAKY_SLOPE
    records = content["values"]
    assert len(records) == 225
    slow = {"tanh", "sigmoid"}  # lattice sums, seconds each at large variances: only a few here
    for record in records:
        name, q1, q2, s = record["activation"], *(float(record[key]) for key in ("q1", "q2", "s"))
        if name in slow and (max(q1, q2) > 1 or record["c"] not in ("-0.9", "0.5", "1.0")):
            continue
        with mpmath.workdps(40):
            stored = mpf(record["value"]), mpf(record["derivative"])
        for a, b in zip(stored, dual(name, q1, q2, s), strict=True):
            assert abs(a - b) <= mpf("1e-19") * abs(b)


def test_stable_relu_form_of_section_four():
    """κ₀ = 1 - √u B(u), 1 - κ₁ = u - u√u A(u), and the reflections to u > 1."""
    with mpmath.workdps(60):

        def kappas(u):
            if u > 1:
                k0, k1 = kappas(2 - u)
                return 1 - k0, k1 - (1 - (2 - u))
            g = mpmath.acos(1 - u) / mpmath.sqrt(u)
            a = (mpmath.sqrt(2 - u) - (1 - u) * g) / (mpmath.pi * u)
            return 1 - mpmath.sqrt(u) * g / mpmath.pi, 1 - (u - u * mpmath.sqrt(u) * a)

        for u in map(mpf, ("1e-10", "0.3", "1", "1.7", "1.9999")):
            value, derivative = relu_dual(mpf(2), mpf(8), 4 * (1 - u))
            k0, k1 = kappas(u)
            assert abs(value - 4 * k1 / 2) < mpf("1e-40")
            assert abs(derivative - k0 / 2) < mpf("1e-40")


# Finite networks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameterization", ["ntk", "standard"])
@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
@pytest.mark.parametrize("tied", [True, False])
def test_hand_gradients_equal_finite_differences(tied, readout, parameterization):
    architecture = Architecture(
        "erf", (1.2, 0.8), (0.9, 1.1), (0.3, 0.5), (0.7, 0.6), 1.3, depth=2, tied=tied, readout=readout
    )
    x, y, width = sequence(7, 3, 2), sequence(8, 4, 2), 3
    rng = np.random.default_rng(9)
    parameters = finite_network.draw_parameters(architecture, 2, 4, width, rng, parameterization)
    initial = [finite_network.draw_initial_states(architecture, width, rng) for _ in range(2)]
    layers = parameters.layers
    arrays = [array for layer in layers for group in (layer.w, layer.u, layer.b) for array in group]
    trained = list({id(array): array for array in [*arrays, parameters.v]}.values())  # tied steps share arrays

    def output(z, h0):
        trace = finite_network.forward(parameters, "erf", z, h0)
        return finite_network.outputs(parameters, trace, readout)

    def jacobian(z, h0):
        columns = []
        for array in trained:
            flat = array.reshape(-1)
            for i in range(flat.size):
                kept = flat[i]
                flat[i] = kept + 1e-5
                up = output(z, h0)
                flat[i] = kept - 1e-5
                columns.append((up - output(z, h0)) / 2e-5)
                flat[i] = kept
        return np.array(columns)

    expected = jacobian(x, initial[0]).T @ jacobian(y, initial[1])
    ntk, _ = finite_network.empirical_kernels(
        x, y, architecture, width, np.random.default_rng(9), parameterization=parameterization
    )
    np.testing.assert_allclose(ntk, expected if readout == "sequence" else expected[0, 0], rtol=1e-7, atol=1e-9)


RELU = Architecture("relu", math.sqrt(2), 1.0, 0.2, 0.0, 1.0)
ERF = Architecture("erf", 1.1, 0.9, 0.3, 0.5, 0.8)
CASES = {
    "relu": (RELU, 4, 4),
    "relu, unequal lengths": (RELU, 2, 5),
    "relu, first sequence longer": (replace(RELU, sigma_h=0.8), 4, 2),
    "relu, depth 2": (replace(RELU, depth=2), 3, 3),
    "relu, sigmas by layer": (
        replace(RELU, depth=2, sigma_w=(1.2, 0.7), sigma_u=(0.8, 1.3), sigma_b=(0.5, 0.1), sigma_h=(0.3, 0.9)),
        3,
        4,
    ),
    "erf": (ERF, 4, 4),
    "erf, depth 2, unequal lengths": (replace(ERF, depth=2), 2, 4),
    "gelu": (Architecture("gelu", 1.3, 1.0, 0.3), 3, 3),
    "sin": (Architecture("sin", 1.0, 1.0, 0.3), 3, 3),
    "leaky relu": (Architecture("leaky_relu", 1.3, 1.0, 0.3), 3, 3),
    "identity": (Architecture("identity", 0.8, 1.0, 0.0), 4, 4),
    "mean readout": (replace(RELU, readout="mean", sigma_h=0.5), 3, 4),
    "sequence readout": (replace(RELU, readout="sequence"), 3, 4),
    "bidirectional": (replace(RELU, bidirectional=True), 3, 3),
    "bidirectional, sequence readout": (replace(ERF, bidirectional=True, readout="sequence"), 2, 3),
    "untied": (replace(RELU, tied=False, sigma_h=0.5), 4, 4),
    "untied, unequal lengths": (replace(RELU, tied=False, depth=2), 2, 3),
    "untied, mean readout": (replace(RELU, tied=False, readout="mean"), 3, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_finite_networks_approach_the_limit(name):
    architecture, *lengths = CASES[name]
    # Sequences that resemble each other keep the kernel away from zero, where nothing could be resolved.
    common = sequence(10, 6, 2)
    x, y = (common[-length:] + 0.4 * sequence(11 + i, length, 2) for i, length in enumerate(lengths))
    mean, error = finite_network.extrapolate(x, y, architecture, WIDTHS, draws=100, seed=13)
    assert_estimates(mean, error, limit(x, y, architecture))


@pytest.mark.parametrize("readout", ["last", "sequence"])
@pytest.mark.parametrize("depth", [1, 2])
def test_one_sequence_shares_its_initial_state(depth, readout):
    architecture = replace(RELU, sigma_h=1.0, depth=depth, readout=readout)
    x = sequence(14, 3, 1)
    mean, error = finite_network.extrapolate(x, x, architecture, WIDTHS, draws=60, seed=15, same=True)
    expected = limit(x, x, architecture, same=True)
    assert_estimates(mean, error, expected)
    assert np.any(np.abs(mean - limit(x, x, architecture, same=False)) > 8 * error)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_standard_parameterization(activation, depth):
    architecture = Architecture(activation, 0.9, 1.4, 0.3, 0.0, 0.7, depth=depth)
    x = sequence(16, 3, 2)
    y = x + 0.4 * sequence(17, 3, 2)
    options = {"parameterization": "standard"}
    mean, error = finite_network.extrapolate(x, y, architecture, WIDTHS, draws=60, seed=18, **options)
    assert_estimates(mean, error, limit(x, y, architecture, **options))
    assert np.abs(mean[0] - limit(x, y, architecture)[0]) > 8 * error[0]


def test_untied_equals_tied_at_equal_lengths_only():
    x, y = sequence(19, 4, 2), sequence(20, 4, 2)
    tied, untied = (high_precision.relu_rntk(x, y, 1.4, 1, 0.2, 0.3, depth=2, tied=tied) for tied in (True, False))
    assert tied == untied
    tied, untied = (high_precision.relu_rntk(x, y[1:], 1.4, 1, 0.2, depth=2, tied=t) for t in (True, False))
    assert tied != untied
    assert untied[0] == untied[1] != 0  # the readout alone is shared: Θ = 𝒦 = σ_v² V(q, q', 0)


def test_scatter_falls_as_the_root_of_the_width_and_bias_as_the_width():
    x, y = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    architecture = Architecture("identity")
    # The NNGP given W is uᵀW²u/n². Its mean is exactly 1/n, from the diagonal of W alone; its limit is 0.
    for width in (16, 32):
        mean, error = finite_network.monte_carlo(x, y, architecture, width, draws=2000, seed=21)
        assert abs(mean[1] - 1 / width) < 4 * error[1] < 2 / width
    mean, error = finite_network.extrapolate(x, y, architecture, (16, 32), draws=2000, seed=21)
    assert abs(mean[1]) < 4 * error[1]

    errors = [finite_network.monte_carlo(x, x, RELU, width, draws=200, seed=22)[1] for width in (32, 512)]
    np.testing.assert_allclose(errors[0] / errors[1], 4, rtol=0.3)


# Another library --------------------------------------------------------------------------------------------


def test_neural_tangents_values():
    content = json.loads((STORED / "neural_tangents_values.json").read_text())
    functions = {"relu": high_precision.relu_rntk, "erf": high_precision.erf_rntk}
    assert len(content["cases"]) == 48
    for case in content["cases"]:
        inputs = np.array(content["inputs"][case["inputs"]])
        settings = 0.0, case["w_std"], case["b_std"], 0.0, case["sigma_v"]
        for i, j in np.ndindex(4, 4):
            pair = functions[case["activation"]](inputs[[i]], inputs[[j]], *settings, depth=case["depth"])
            for name, value in zip(("ntk", "nngp"), pair, strict=True):
                matrix = np.array(case[name])
                # Parallel inputs: neural-tangents loses half its digits, see make_neural_tangents_values.
                parallel = case["inputs"] == "1" and case["b_std"] == 0 and case["activation"] == "relu"
                tolerance = 1e-7 if parallel and name == "ntk" else 1e-14
                scale = math.sqrt(matrix[i, i] * matrix[j, j])
                assert abs(float(value) - matrix[i, j]) <= tolerance * scale, (case, i, j)


# Errata of the papers (THEORY section 8): the printed formula fails where the corrected one holds -----------


def assert_only_corrected(mean, error, corrected, printed) -> None:
    assert abs(mean - corrected) < 4 * error
    assert abs(mean - printed) > 8 * error


def test_erratum_relu_derivative():
    """RNTK B.5 prints V' = (π - arccos c)/π."""
    x = sequence(30, 3, 2)
    y = x + 0.5 * sequence(31, 3, 2)
    mean, error = finite_network.extrapolate(x, y, RELU, WIDTHS, draws=100, seed=32)

    def printed(q1, q2, s):
        value, derivative = relu_dual(q1, q2, s)
        return value, 2 * derivative

    wrong, _ = high_precision.rntk(printed, x, y, *sigmas(RELU))
    assert_only_corrected(mean[0], error[0], limit(x, y, RELU)[0], float(wrong))


def test_erratum_erf_value():
    """RNTK B.5 prints (1 + 2K₁)(1 + 2K₃) under the root of V."""
    x, y = np.array([0.5]), np.array([2.0])
    architecture = Architecture("erf", sigma_b=0.3)
    mean, error = finite_network.extrapolate(x, y, architecture, WIDTHS, draws=100, seed=33)

    def printed(q1, q2, s):
        value = 2 / mpmath.pi * mpmath.asin(2 * s / mpmath.sqrt((1 + 2 * q1) * (1 + 2 * s)))
        return value, erf_dual(q1, q2, s)[1]

    for index, wrong in enumerate(high_precision.rntk(printed, x, y, *sigmas(architecture))):
        assert_only_corrected(mean[index], error[index], limit(x, y, architecture)[index], float(wrong))


def test_erratum_first_step_of_upper_layers():
    """RNTK B.3 prints V[K^(l,2,2)], layer l fed by itself: q = σ_u² V(q, q, q) + σ_b², blind to the input."""
    x = np.array([[2.0, 1.0]])
    architecture = replace(RELU, depth=2)
    mean, error = finite_network.extrapolate(x, x, architecture, WIDTHS, draws=60, seed=34, same=True)
    q = architecture.sigma_b**2 / (1 - architecture.sigma_u**2 / 2)
    assert q == pytest.approx(architecture.sigma_u**2 * q / 2 + architecture.sigma_b**2)
    assert_only_corrected(mean[1], error[1], limit(x, x, architecture, same=True)[1], q / 2)


def test_erratum_indices_of_the_backward_kernel():
    """RNTK B.3 prints Π^(l+1,T+1) and Π^(l+1,t+1) for the error that layer l + 1 sends down."""
    x = sequence(35, 3, 2)
    y = x + 0.5 * sequence(36, 3, 2)
    architecture = replace(RELU, depth=2)
    sw, su, sb, _, sv = sigmas(architecture)
    arguments = x, y, sw, su, sb, sv, architecture.depth
    expected = limit(x, y, architecture)[0]
    assert paper_sum(*arguments, printed=False) == pytest.approx(expected, rel=1e-13)
    mean, error = finite_network.extrapolate(x, y, architecture, WIDTHS, draws=400, seed=37)
    assert_only_corrected(mean[0], error[0], expected, paper_sum(*arguments, printed=True))


def test_erratum_fan_in_of_the_single_layer():
    """RNTK (29) prints σ_w/√m and σ_u/√n: the kernel then depends on the width and diverges."""
    x, m, width = sequence(38, 2, 2), 2, 256
    architecture = replace(RELU, sigma_b=0.0)
    printed = replace(
        architecture,
        sigma_w=architecture.sigma_w * math.sqrt(width / m),
        sigma_u=architecture.sigma_u * math.sqrt(m / width),
    )
    expected = limit(x, x, architecture, same=True)
    mean, error = finite_network.monte_carlo(x, x, architecture, width, draws=60, seed=39, same=True)
    wrong, _ = finite_network.monte_carlo(x, x, printed, width, draws=60, seed=39, same=True)
    np.testing.assert_array_less(np.abs(mean - expected), 4 * error)
    assert np.all(np.abs(wrong - expected) > 8 * error)


def test_erratum_last_factor_of_the_mlp_kernel():
    """RNTK A.1 prints σ_w² V' in the last factor of the product, where the readout has σ_v²."""
    x, y = sequence(40, 1, 3), sequence(41, 1, 3)
    architecture = Architecture("relu", 1.0, 1.5, 0.3, 0.0, 0.6, depth=2)  # at length one σ_u is the MLP's σ_w
    expected = limit(x, y, architecture)
    printed = expected[1] + (expected[0] - expected[1]) * architecture.sigma_u**2 / architecture.sigma_v**2
    mean, error = finite_network.extrapolate(x, y, architecture, WIDTHS, draws=60, seed=42)
    assert_only_corrected(mean[0], error[0], expected[0], printed)


def test_erratum_backpropagated_error():
    """RNTK B.2 prints δ[t] = σ_w/√n Wᵀ(φ'(g[t]) ⊙ δ[t+1]); the chain rule gives φ'(g[t]) ⊙ σ_w/√n Wᵀ δ[t+1].

    The limit is the same, since the slopes are averaged over the units either way, but the gradient is not.
    """
    architecture, width = Architecture("erf", 1.2, 0.9, 0.3), 6
    x = sequence(43, 2, 1)
    rng = np.random.default_rng(44)
    parameters = finite_network.draw_parameters(architecture, 1, 2, width, rng, "ntk")
    initial = finite_network.draw_initial_states(architecture, width, rng)
    layer = parameters.layers[0]

    def output(first):
        moved = np.array([[first], x[1]], dtype=float)
        return finite_network.outputs(parameters, finite_network.forward(parameters, "erf", moved, initial), "last")

    exact = (output(x[0, 0] + 1e-5) - output(x[0, 0] - 1e-5)) / 2e-5  # ∂f/∂x_1 = σ_u/√m Uᵀ δ[1]
    slopes = finite_network.forward(parameters, "erf", x, initial).slopes[0]
    delta = slopes[1] * parameters.v_scale * parameters.v
    corrected = slopes[0] * (layer.w_scale * (layer.w[0].T @ delta))
    printed = layer.w_scale * (layer.w[0].T @ (slopes[0] * delta))
    assert layer.u_scale * layer.u[0].T @ corrected == pytest.approx(exact, rel=1e-7)
    assert layer.u_scale * layer.u[0].T @ printed != pytest.approx(exact, rel=1e-2)


def test_erratum_spectral_radius():
    """The linear-RNN paper prints λmax(W)/√n → ν_W; the circular law has radius √ν_W."""
    n, variance = 250, 0.25
    w = math.sqrt(variance) * np.random.default_rng(45).standard_normal((n, n))
    radius = np.abs(np.linalg.eigvals(w)).max() / math.sqrt(n)
    assert radius == pytest.approx(math.sqrt(variance), rel=0.1)
    assert radius > 1.5 * variance


def test_erratum_perturbed_linear_network():
    """The linear-RNN paper's (44) prints Δ_W h_t/√n and Δ_C h_t, for Δ_W h_{t-1}/√n and Δ_C h_t/√n."""
    n, root = 5, math.sqrt(5)
    rng = np.random.default_rng(46)
    x = rng.standard_normal(4)
    weights = [rng.standard_normal(shape) for shape in ((n, n), n, n)]
    moves = [rng.standard_normal(shape) for shape in ((n, n), n, n)]

    def output(step):
        w, f, c = (a + step * b for a, b in zip(weights, moves, strict=True))
        h = np.zeros(n)
        for value in x:
            h = w @ h / root + f * value
        return c @ h / root

    def first_order(printed):
        (w, f, c), (dw, df, dc) = weights, moves
        h = tilde = np.zeros(n)
        for value in x:
            before, h = h, w @ h / root + f * value
            tilde = w @ tilde / root + dw @ (h if printed else before) / root + df * value
        return c @ tilde / root + dc @ h / (1 if printed else root)

    exact = (output(1e-5) - output(-1e-5)) / 2e-5
    assert first_order(printed=False) == pytest.approx(exact, rel=1e-7)
    assert first_order(printed=True) != pytest.approx(exact, rel=1e-2)
