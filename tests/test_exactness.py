"""Numbers that were once wrong, each with what it should be, and what follows from all of them being right.

The battery (`test_battery`) asks every activation for the same; here are long sequences, whole Gram matrices and fits.
"""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel

from oracles import duals, high_precision
from rntk import NTK, RNTK, HermiteAccuracyWarning, input_gradient
from rntk.activations import NAMED
from rntk.errors import ActivationError

DUALS = {"erf": duals.erf_dual, "sin": duals.sin_dual, "gelu": duals.gelu_dual, "relu": duals.relu_dual}
CHAOTIC = {"erf": 2.0, "sin": 1.9, "gelu": 2.0}


def sixth_order(function, h: float) -> float:
    return sum(c * (function(i * h) - function(-i * h)) for i, c in ((1, 45), (2, -9), (3, 1))) / (60 * h)


def relative(got: float, true: mpmath.mpf) -> float:
    return abs(float((mpmath.mpf(float(got)) - true) / true))


# -- derivatives by hyperparameters on the diagonal --------------------------------------------------------------


@pytest.mark.parametrize(
    "activation, steps, sigma_w, sigma_u",
    [("erf", 400, math.sqrt(2), 0.3), ("erf", 200, 2.0, 1.0), ("sin", 200, 1.6, 1.0), ("tanh", 200, 2.0, 0.3)],
)
def test_the_diagonal_of_a_chaotic_network_has_derivatives(activation, steps, sigma_w, sigma_u):
    """Derivatives of w that are zero for equal sides must be zero: at 1e-16 they grew beyond everything else."""
    x = np.random.default_rng(0).normal(size=400)[:steps]
    kernel = RNTK(activation, sigma_w=sigma_w, sigma_u=sigma_u)
    gradient = kernel([x], eval_gradient=True)[1][0, 0]
    names = [each.name for each in kernel.hyperparameters if not each.fixed]
    for name, start in (("sigma_w", sigma_w), ("sigma_u", sigma_u)):

        def diagonal(distance, name=name, start=start):
            return kernel.clone_with_theta(kernel.theta).set_params(**{name: start * math.exp(distance)}).diag([x])[0]

        assert gradient[names.index(name)] == pytest.approx(sixth_order(diagonal, 1e-4), rel=1e-7)


@pytest.mark.parametrize("sigma_w", [0.5, 1.0, math.sqrt(2), 1.9])
@pytest.mark.parametrize("activation", ["erf", "tanh", "sin", "gelu"])
def test_evidence_has_the_gradient_that_differences_show(activation, sigma_w):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 400))
    kernel = RNTK(activation, sigma_w=sigma_w, sigma_u=0.3) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(X, np.sin(X.sum(axis=1)))
    _, gradient = process.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    h = 1e-5
    shown = [
        (process.log_marginal_likelihood(kernel.theta + e) - process.log_marginal_likelihood(kernel.theta - e))
        / (2 * h)
        for e in h * np.eye(len(kernel.theta))
    ]
    np.testing.assert_allclose(gradient, shown, rtol=0, atol=1e-5 * np.abs(shown).max())


def test_a_fit_that_starts_in_chaos_finds_the_optimum_of_differences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 400))
    y = np.sin(X.sum(axis=1))
    kernel = RNTK("erf", sigma_w=1.8, sigma_u=0.3) + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # deviations at their bounds
        found = GaussianProcessRegressor(kernel).fit(X, y).log_marginal_likelihood_value_
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    by_differences = minimize(
        lambda theta: -process.log_marginal_likelihood(theta), kernel.theta, method="L-BFGS-B", bounds=kernel.bounds
    )
    assert found >= -by_differences.fun - 1e-4


# -- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x, y", [(1e3, -1.5e3), (1e4, -1.5e4), (1e6, -1.5e6), (1e7, -1.5e7), (1e8, -1.5e8)])
def test_large_inputs_of_opposite_sign(x, y):
    """1 + r is a sum of non-negative terms, as 1 - r is."""
    true = high_precision.erf_rntk([x], [y], math.sqrt(2), 1, 0)[0]
    assert relative(RNTK("erf")([[x]], [[y]])[0, 0], true) < 1e-13
    assert relative(NTK("erf", sigma_w=1.0)([[x]], [[y]])[0, 0], true) < 1e-13


@pytest.mark.parametrize("distance", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-3])
@pytest.mark.parametrize("sign", [1, -1], ids=["near", "opposite"])
@pytest.mark.parametrize("activation", CHAOTIC)
def test_two_hundred_steps_of_chaos(activation, sign, distance):
    x, noise = np.random.default_rng(0).normal(size=(2, 200))
    y = sign * (x + distance * noise)
    sigma_w = CHAOTIC[activation]
    ntk, nngp = high_precision.rntk(DUALS[activation], x, y, sigma_w, 1, 0)
    got = RNTK(activation, sigma_w=sigma_w).both([x], [y])
    assert relative(got.ntk[0, 0], ntk) < 1e-11
    assert relative(got.nngp[0, 0], nngp) < 1e-11


def test_one_side_longer_than_the_other_by_a_thousand_steps_of_chaos():
    """Powers of two are taken out of the tangent kernel of either side, or of none."""
    rng = np.random.default_rng(0)
    short, long = [rng.normal(size=5)], [rng.normal(size=1200)]
    kernel = RNTK("erf", sigma_w=2.0, normalize=True)
    together = kernel(short + long)
    assert kernel(short, long)[0, 0] == pytest.approx(together[0, 1], rel=1e-12)
    assert kernel(long, short)[0, 0] == pytest.approx(together[0, 1], rel=1e-12)


@pytest.mark.parametrize("activation", ["erf", "sin", "gelu", "tanh", "relu"])
def test_inputs_whose_squares_no_float_can_hold(activation):
    """At 1e-160 every activation is linear, and the kernel, below 1e-300, has as many digits as such numbers have."""
    x = np.random.default_rng(0).normal(size=(2, 5))
    K, tiny = RNTK(activation)(1e-100 * x), RNTK(activation)(1e-160 * x)
    np.testing.assert_allclose(tiny, K * 1e-120, rtol=0, atol=2e-323)
    normalised = RNTK(activation, normalize=True)
    np.testing.assert_allclose(normalised(1e-160 * x), normalised(1e-100 * x), rtol=1e-12)


@pytest.mark.parametrize("steps", [2, 60])
@pytest.mark.parametrize("distance", [1e-15, 1e-12, 1e-9, 1e-7, 1e-5])
def test_gradients_by_inputs_of_near_duplicates(distance, steps):
    """ReLU has a cusp where two sequences are equal: next to it, what counts is the direction of their difference."""
    x, noise = np.random.default_rng(3).normal(size=(2, steps))
    y = x + distance * noise
    got = input_gradient(RNTK(), x, y)
    with mpmath.workdps(150):
        h = mpmath.mpf(10) ** -50
        for t in {0, steps // 2, steps - 1}:
            ends = []
            for way in (h, -h):
                moved = [mpmath.mpf(float(value)) for value in x]
                moved[t] += way
                ends.append(high_precision.rntk(DUALS["relu"], moved, y, math.sqrt(2), 1, 0)[0])
            assert relative(got[t], (ends[0] - ends[1]) / (2 * h)) < 1e-10


# -- functions that can't be activations --------------------------------------------------------------------------


@pytest.mark.parametrize("jumping", [np.sign, lambda z: (z > 0.3) * 1.0, np.floor], ids=["sign", "step", "floor"])
def test_a_jump_has_no_tangent_kernel(jumping):
    with pytest.raises(ActivationError, match=r"jumps at z = .*no tangent kernel"):
        RNTK(jumping)([[1.0, 2.0]])


def test_steep_and_bent_functions_are_not_jumps():
    for function in (lambda z: np.tanh(50 * z), np.abs, lambda z: np.maximum(z, 0.0)):
        with pytest.warns(HermiteAccuracyWarning):
            RNTK(function)([[1.0, 2.0]])


def test_an_activation_that_is_not_finite_is_named():
    with pytest.raises(ActivationError, match="is nan at z = "), np.errstate(invalid="ignore"):
        RNTK(lambda z: np.log(z))([[1.0, 2.0]])


# -- Gram matrices -------------------------------------------------------------------------------------------------

PHASES = {
    "relu": (1.0, math.sqrt(2), 2.0),
    "identity": (0.7, 1.0, 1.5),
    "abs": (0.7, 1.0, 1.5),
    "gelu": (1.0, math.sqrt(2), 2.0),
    "erf": (0.7, 1.0, 2.0),
    "sin": (0.7, 1.0, 1.9),
    "tanh": (0.7, 1.0, 2.0),
    "sigmoid": (1.0, 2.0, 4.0),
}


def test_every_named_activation_has_its_phases():
    assert set(PHASES) == set(NAMED)


@pytest.mark.parametrize("phase", [0, 1, 2], ids=["ordered", "critical", "chaotic"])
@pytest.mark.parametrize("activation", PHASES)
def test_gram_matrices_of_near_duplicates_and_negatives(activation, phase):
    rng = np.random.default_rng(1)
    steps = 30 if activation in ("tanh", "sigmoid") else 80
    X = [rng.normal(size=steps) for _ in range(200)]
    X += [X[i] + 10.0 ** -rng.uniform(3, 15) * rng.normal(size=steps) for i in range(20)]
    X += [-X[i] for i in range(20, 40)]
    kernel = RNTK(activation, sigma_w=PHASES[activation][phase], sigma_u=0.5)
    order = rng.permutation(len(X))
    for K, permuted in zip(kernel.both(X), kernel.both([X[i] for i in order]), strict=True):
        np.testing.assert_array_equal(K, K.T)
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]
        np.testing.assert_allclose(permuted, K[np.ix_(order, order)], rtol=0, atol=1e-13 * np.abs(K).max())
