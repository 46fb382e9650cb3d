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
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel

from oracles import battery, duals, high_precision
from rntk import NTK, RNTK, HermiteAccuracyWarning, input_gradient
from rntk.activations import NAMED, HermiteActivation, as_activation, balls
from rntk.errors import ActivationError

DUALS = {"erf": duals.erf_dual, "sin": duals.sin_dual, "gelu": duals.gelu_dual, "relu": duals.relu_dual}
ENGINES = ("fused", "reference", "array")
RECENT = [name for name in battery.RECENT if name not in battery.POWERS]
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
@pytest.mark.parametrize("engine", ENGINES)
def test_large_inputs_of_opposite_sign(x, y, engine):
    """1 + r is a sum of non-negative terms, as 1 - r is."""
    true = high_precision.erf_rntk([x], [y], math.sqrt(2), 1, 0)[0]
    assert relative(RNTK("erf", engine=engine)([[x]], [[y]])[0, 0], true) < 1e-13
    assert relative(NTK("erf", sigma_w=1.0, engine=engine)([[x]], [[y]])[0, 0], true) < 1e-13


@pytest.mark.parametrize("distance", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-3])
@pytest.mark.parametrize("sign", [1, -1], ids=["near", "opposite"])
@pytest.mark.parametrize("activation", CHAOTIC)
@pytest.mark.parametrize("engine", ENGINES)
def test_two_hundred_steps_of_chaos(activation, sign, distance, engine):
    x, noise = np.random.default_rng(0).normal(size=(2, 200))
    y = sign * (x + distance * noise)
    sigma_w = CHAOTIC[activation]
    ntk, nngp = high_precision.rntk(DUALS[activation], x, y, sigma_w, 1, 0)
    got = RNTK(activation, sigma_w=sigma_w, engine=engine).both([x], [y])
    assert relative(got.ntk[0, 0], ntk) < 1e-11
    assert relative(got.nngp[0, 0], nngp) < 1e-11


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale, steps", [(1.0, 300), (5.0, 1), (30.0, 1), (100.0, 3)])
def test_gelu_at_any_scale(scale, steps, engine):
    """As an expansion it was off by 7 % at 300 steps, and by 4 % at inputs of 100 in the reference engine."""
    x, y = scale * np.random.default_rng(0).normal(size=(2, steps))
    K = RNTK("gelu", engine=engine)([x, y])
    for i, j in ((0, 0), (0, 1), (1, 1)):
        ntk, _ = high_precision.rntk(duals.gelu_dual, (x, y)[i], (x, y)[j], math.sqrt(2), 1, 0)
        assert relative(K[i, j], ntk) < 1e-12


@pytest.mark.parametrize("engine", ["fused", "array"])
def test_gelu_of_parallel_sides_of_very_different_size(engine):
    """1 - V̂(1) at huge variances: rounding of R - R' would be seen through a square root in the next layer."""
    X = [[[0.5 * 10.0**k, 1.2 * 10.0**k]] for k in (0, 3, 9, 20, 60, 100, 140)]
    options = {"depth": 3, "sigma_b": 0.3, "sigma_h": 0.5, "normalize": True}
    expected = RNTK("gelu", engine="reference", **options)(X)
    np.testing.assert_allclose(RNTK("gelu", engine=engine, **options)(X), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("activation, scale", [("relu", 1e-100), ("sin", 1e-8), ("sin", 1e-6), ("erf", 1e7)])
def test_the_reference_engine_at_small_and_large_scales(activation, scale):
    """Where products of variances underflowed, or their difference was rounding."""
    X = scale * np.random.default_rng(0).normal(size=(4, 6))
    K = RNTK(activation, engine="reference")(X)
    for i, j in np.ndindex(4, 4):
        ntk, _ = high_precision.rntk(DUALS[activation], X[i], X[j], math.sqrt(2), 1, 0)
        assert relative(K[i, j], ntk) < 1e-15


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("engine", ["fused", "array"])
@pytest.mark.parametrize("activation", ["erf", "sin", "gelu", "relu"])
def test_steps_without_variance_are_close_to_nothing(activation, engine, readout):
    """Zeros at the beginning: a state that only one side has is no small change of the other's."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 2))
    silent, late = x.copy(), x.copy()
    silent[:4] = 0
    late[4:] = 0
    X = [x, silent, late, np.zeros((8, 2)), (1 + 1e-10) * x, np.concatenate([np.zeros((2, 2)), x]), 1e-7 * x, -silent]
    options = {"sigma_w": 2.5, "sigma_u": 0.8, "depth": 2, "readout": readout}
    for bias in (0.0, [0.1, 0.0], [0.0, 0.1]):
        expected = RNTK(activation, sigma_b=bias, engine="reference", **options)(X)
        most = np.maximum(np.sqrt(np.outer(np.diag(expected), np.diag(expected))), 1e-290)
        got = RNTK(activation, sigma_b=bias, engine=engine, **options)
        assert (np.abs(got(X) - expected) / most).max() < 1e-12
        assert (np.abs(got(X[:3], X[3:]) - expected[:3, 3:]) / most[:3, 3:]).max() < 1e-12


def test_one_side_longer_than_the_other_by_a_thousand_steps_of_chaos():
    """Powers of two are taken out of the tangent kernel of either side, or of none."""
    rng = np.random.default_rng(0)
    short, long = [rng.normal(size=5)], [rng.normal(size=1200)]
    kernel = RNTK("erf", sigma_w=2.0, normalize=True)
    together = kernel(short + long)
    assert kernel(short, long)[0, 0] == pytest.approx(together[0, 1], rel=1e-12)
    assert kernel(long, short)[0, 0] == pytest.approx(together[0, 1], rel=1e-12)


@pytest.mark.parametrize(
    "activation, engine",
    [(activation, engine) for activation in ("erf", "sin", "gelu", "relu") for engine in ENGINES] + [("tanh", "fused")],
)
def test_inputs_whose_squares_no_float_can_hold(activation, engine):
    """At 1e-160 every activation is linear, and the kernel, below 1e-300, has as many digits as such numbers have."""
    x = np.random.default_rng(0).normal(size=(2, 5))
    kernel = RNTK(activation, engine=engine)
    K, tiny = kernel(1e-100 * x), kernel(1e-160 * x)
    np.testing.assert_allclose(tiny, K * 1e-120, rtol=0, atol=2e-323)
    normalised = RNTK(activation, normalize=True, engine=engine)
    np.testing.assert_allclose(normalised(1e-160 * x), normalised(1e-100 * x), rtol=1e-12)


@pytest.mark.parametrize(
    "activation, engine",
    [(activation, engine) for activation in ("erf", "sin", "gelu", "relu") for engine in ENGINES]
    + [("tanh", "fused"), ("sigmoid", "fused")],
)
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_tiny_inputs_beside_ordinary_ones(activation, engine, readout):
    """Before, between and after others, at 1e-160 they are as good as zero: nothing overflows, or is lost with them."""
    kernel = RNTK(activation, engine=engine, readout=readout)
    X = [[1e-160, 1.0], [1.0, 1e-160, 0.5], [1e-165, -1e-162, 0.7, 1e-161], [1.0, -2.0]]
    plain = [[value if abs(value) > 1e-100 else 0.0 for value in x] for x in X]
    # Zeros and tiny numbers differ where a direction is all that counts: compare what has a size of its own.
    np.testing.assert_allclose(kernel.diag(X), kernel.diag(plain), rtol=1e-12)
    # Entries that are tiny beside their diagonal have an absolute error of its rounding (theory.md, section 7).
    np.testing.assert_allclose(kernel(X), RNTK(activation, engine="fused", readout=readout)(X), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-3, 1e-8, 1e-20, 1e-60, 1e-140, 1e8, 1e20, 1e60])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity", "abs", "erf", "sin", "gelu", *RECENT])
def test_derivatives_of_a_pair_of_very_different_sizes(activation, scale):
    """Derivatives by the larger variance must not cancel against those by the smaller: sin once left 1e-16 / √q'."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=6), scale * rng.normal(size=5)
    for sigma_w in (0.5, 1.8):
        K, gradient = RNTK(activation, sigma_w=sigma_w)([x, y], eval_gradient=True)
        R, expected = RNTK(activation, sigma_w=sigma_w, engine="reference")([x, y], eval_gradient=True)
        root = np.sqrt(R.diagonal())
        np.testing.assert_array_less(np.abs(K - R) / root / root[:, None], 1e-13)
        size = np.maximum(np.abs(expected) / root[:, None] / root[:, None, None], 1)
        np.testing.assert_array_less(np.abs(gradient - expected) / root[:, None] / root[:, None, None] / size, 1e-12)
        if activation == "gaussian" and scale > 1e10:
            continue  # the correlation of the two sides is below the rounding of one
        reference = RNTK(activation, sigma_w=sigma_w, engine="reference")
        by_input = reference_input_gradient(reference, x, y)
        np.testing.assert_allclose(
            input_gradient(RNTK(activation, sigma_w=sigma_w), x, y),
            by_input,
            rtol=1e-8,
            atol=1e-9 * np.abs(by_input).max(),
        )


def reference_input_gradient(kernel: RNTK, x: np.ndarray, y: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """∂K(x, y)/∂x by differences of the sixth order; an entry of the reference engine has all its digits."""
    weights = np.array([-1, 9, -45, 45, -9, 1]) / 60 / h
    steps = h * np.array([-3, -2, -1, 1, 2, 3])
    moved = [x + step * unit for unit in np.eye(len(x)) for step in steps]
    return kernel(moved, [y]).reshape(len(x), 6) @ weights


@pytest.mark.parametrize("engine", ENGINES)
def test_tiny_sequences_beside_ordinary_ones_have_a_direction(engine):
    K = RNTK(normalize=True, engine=engine)([[1e-165, 2e-165], [1.0, 2.0], [1e160, 2e160]])
    np.testing.assert_allclose(K, 1.0, rtol=1e-12)


def test_huge_multiples_of_each_other_in_several_channels():
    """Unit vectors have sixteen digits, so parallel sequences are known to 1e-31 of their variance (theory.md)."""
    x = np.random.default_rng(0).normal(size=(5, 3))
    for scale in (1e8, 1e10, 1e12, 1e14):
        X = [scale * x, 3.3 * (scale * x)]
        K, exact = (RNTK("erf", engine=engine)(X) for engine in ("fused", "reference"))
        np.testing.assert_allclose(K, exact, rtol=max(1e-13, 1e-31 * np.square(X[1]).mean()))


@pytest.mark.parametrize("x, y", [(1e-19, -1e-19), (1e-17, 2e-17), (1e-25, 3e-26), (1e-19, 1.0)])
def test_gradients_by_inputs_far_below_a_bias(x, y):
    """Where the cusp of ReLU lies between two sequences that differ by less than any digit of their variances."""

    sigma_b = mpmath.mpf(0.5)

    def kernel(x):
        q, q2, s = x * x + sigma_b**2, mpmath.mpf(y) ** 2 + sigma_b**2, x * mpmath.mpf(y) + sigma_b**2
        angle = mpmath.acos(s / mpmath.sqrt(q * q2))
        V = (mpmath.sqrt(q * q2) * mpmath.sin(angle) + s * (mpmath.pi - angle)) / (2 * mpmath.pi)
        return V + (mpmath.pi - angle) / (2 * mpmath.pi) * s

    with mpmath.workdps(150):
        true = mpmath.diff(kernel, mpmath.mpf(x), h=mpmath.mpf(10) ** -60)
    assert input_gradient(RNTK(sigma_b=0.5), [x], [y])[0] == pytest.approx(float(true), rel=1e-12)


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


@pytest.mark.parametrize("activation", [*NAMED, *RECENT, *battery.POWERS])
@pytest.mark.parametrize("readout, depth", [("last", 1), ("mean", 2)])
def test_gradients_by_inputs_where_a_bias_outweighs_them(activation, readout, depth):
    """Inputs of opposite sign in pairs that are positively correlated, and the other way round."""
    calm = {"sigma_w": 0.3, "sigma_u": 0.5} if activation in battery.POWERS else {}  # else differences show nothing
    kernel = RNTK(activation, sigma_b=0.95, readout=readout, depth=depth, **calm)
    for x, y in (([1.0], [-0.9]), ([1.0, 0.8], [-0.9, -0.7]), ([-1.1, 0.6, 1.0], [0.4, -0.5, -0.9])):
        for t, got in enumerate(input_gradient(kernel, x, y)):

            def moved(distance, x=x, y=y, t=t):
                return kernel([[*x[:t], x[t] + distance, *x[t + 1 :]]], [y])[0, 0]

            assert got == pytest.approx(sixth_order(moved, 1e-3), rel=1e-7, abs=1e-9)


PARAMETERS = [
    *("snake(3)", "snake(0.01)", "snake(50)", "tilted_sin(0.05)", "tilted_sin(2)", "sinusoid(1, 1e-9)"),
    *("sinusoid(1, 0.01)", "sinusoid(0.2, 2.5)", "sinusoid(-3, 1)", "sinusoid(0.01, 0)", "rectified_power(5)"),
]


@pytest.mark.parametrize("name", PARAMETERS)
def test_families_are_exact_for_all_parameters(name):
    """Against the reference engine: multiples, near-duplicates, opposites and nothing at all, small and large."""
    rng = np.random.default_rng(0)
    for size, sigma_w, sigma_u, sigma_b in ((1.0, 0.6, 0.5, 0.0), (1e-4, 1.5, 0.5, 0.0), (3.0, 1.2, 0.7, 0.2)):
        if name == "rectified_power(5)":
            size, sigma_w, sigma_u, sigma_b = 0.3, 0.1 * sigma_w, 0.3, 0.1
        x, other = size * rng.standard_normal((2, 7))
        X = [x, 1.001 * x, x + 1e-6 * size * other, -x, other[:5] - x[:5], 2 * x, 0.1 * x, np.zeros(4)]
        for options in ({}, {"depth": 2, "readout": "mean"}):
            kernel = RNTK(name, sigma_w=sigma_w, sigma_u=sigma_u, sigma_b=sigma_b, **options)
            K, gradient = kernel(X, eval_gradient=True)
            exact, expected = clone(kernel).set_params(engine="reference")(X, eval_gradient=True)
            root = np.sqrt(exact.diagonal())
            scale = np.maximum(root[:, None] * root, 1e-300)
            assert (np.abs(K - exact) / scale).max() < 1e-12
            assert (np.abs(gradient - expected) / np.maximum(np.abs(expected), scale[..., None])).max() < 1e-10


# -- the reference engine knows its error ---------------------------------------------------------------------------


@pytest.mark.parametrize("phi", ["relu", "abs", "identity", "erf", "sin", "gelu", *battery.RECENT])
def test_balls_hold_the_truth(phi):
    """What few bits say of V and V' must hold what many bits say."""
    phi = as_activation(phi)
    rng = np.random.default_rng(0)
    for _ in range(300):
        q1, q2, c = 10 ** rng.uniform(-4, 4), 10 ** rng.uniform(-4, 4), 1 - 10 ** rng.uniform(-12, 0.3)
        found = []
        for bits in (64, 512):
            with balls.precision(bits):
                left, right = balls.ball(q1), balls.ball(q2)
                found.append(phi.textbook(left, right, (left * right).sqrt() * c))
        with balls.precision(512):
            assert all(few.overlaps(many) for few, many in zip(*found, strict=True))


def test_balls_of_a_function_with_a_kink_hold_the_truth():
    """|z - m| has coefficients in closed form; its kink lies within a panel of the quadrature."""
    m, c = 0.7, 0.5
    shifted = HermiteActivation("shifted", lambda z: np.abs(z - m), lambda z: np.sign(z - m))
    density, below = math.exp(-m * m / 2) / math.sqrt(2 * math.pi), 0.5 * math.erfc(-m / math.sqrt(2))
    he = [1.0, m]
    for k in range(1, 4000):
        he.append((m * he[k] - math.sqrt(k) * he[k - 1]) / math.sqrt(k + 1))
    # E[φ' he_k] = 2 p(m) he_{k-1}(m)/√k, and a_{k+1} = E[φ' he_k]/√(k+1).
    slopes = [1 - 2 * below, *(2 * density * he[k - 1] / math.sqrt(k) for k in range(1, 4000))]
    values = [2 * density + m * (2 * below - 1), *(slopes[k - 1] / math.sqrt(k) for k in range(1, 4000))]
    truth = [sum(a * a * c**k for k, a in enumerate(part)) for part in (values, slopes)]
    with balls.precision(128):
        side = shifted.textbook_side(balls.ball(1))
        found = shifted.textbook(side, side, balls.ball(c))
    for got, true in zip(found, truth, strict=True):
        assert abs(balls.to_float(got) - true) <= balls.to_float(got.rad()) + 1e-14
        assert balls.to_float(got.rad()) < 0.1
    with pytest.warns(HermiteAccuracyWarning, match="is known to"):
        RNTK(shifted, engine="reference")([[1.0, 2.0]], [[0.5, -1.0]])


def test_derivatives_of_the_reference_engine_at_a_thousand_steps():
    """An impulse through a linear network: K = 2 T-th power of σ_w, whose logarithm moves by 2 (T - 1)."""
    x = np.zeros(1000)
    x[0] = 1.0
    kernel = RNTK("identity", sigma_w=1.3, sigma_u=0.7, sigma_v_bounds="fixed", engine="reference", normalize=False)
    K, gradient = kernel([x], eval_gradient=True)
    names = [each.name for each in kernel.hyperparameters if not each.fixed]
    assert gradient[0, 0, names.index("sigma_w")] == pytest.approx(2 * 999 * K[0, 0], rel=4e-16)
    assert gradient[0, 0, names.index("sigma_u")] == pytest.approx(2 * K[0, 0], rel=4e-16)


def test_expectations_that_are_not_known_are_not_given():
    with pytest.raises(ActivationError, match="don't tell"):
        NAMED["tanh"].dual(1e6, 1e6, 999999.0)


def test_radii_of_variances_reach_functions_of_floats():
    """A variance known to 1e-3 leaves φ² as open for a function of floats as for one of balls."""
    plain = HermiteActivation("plain", np.tanh, symmetry="odd")
    with balls.precision(128):
        radii = [
            balls.to_float(phi.textbook_side(balls.ball(1, 1e-3)).values.square.rad()) for phi in (plain, NAMED["tanh"])
        ]
    assert radii[0] == pytest.approx(radii[1], rel=0.3)


# -- functions that can't be activations --------------------------------------------------------------------------


@pytest.mark.parametrize("jumping", [np.sign, lambda z: (z > 0.3) * 1.0, np.floor], ids=["sign", "step", "floor"])
def test_a_jump_has_no_tangent_kernel(jumping):
    with pytest.raises(ActivationError, match=r"jumps at z = .*no tangent kernel"):
        RNTK(jumping)([[1.0, 2.0]])


@pytest.mark.parametrize("root", [lambda z: np.sqrt(np.abs(z)), lambda z: np.cbrt(z - 0.7)], ids=["root", "cube root"])
def test_a_derivative_that_is_not_square_integrable_has_no_tangent_kernel(root):
    with pytest.raises(ActivationError, match=r"is as steep as a square root at z = .*no tangent kernel"):
        RNTK(root)([[1.0, 2.0]])


def test_steep_and_bent_functions_are_not_jumps():
    for function in (lambda z: np.tanh(5 * z), np.abs, lambda z: np.maximum(z, 0.0)):
        with pytest.warns(HermiteAccuracyWarning):
            RNTK(function)([[1.0, 2.0]])
    RNTK(lambda z: 1e6 + np.tanh(z))  # rounding of large values is no jump either
    HermiteActivation("steep", lambda z: np.tanh(50 * z))
    HermiteActivation("power", lambda z: np.abs(z) ** 0.6)  # its derivative is square-integrable, if barely


def test_expansions_that_resolve_nothing_are_refused():
    for function in (lambda z: np.tanh(50 * z), "tanh"):
        with pytest.raises(ActivationError, match=r"is off by up to .* no result\. Scale the inputs down"):
            RNTK(function)([[100.0, 200.0]])


@pytest.mark.parametrize("sigma_w", [2.0, 3.0, 5.0, 10.0])
def test_expansions_admit_what_adds_up_along_a_sequence(sigma_w):
    """tanh against quadrature: each step multiplies Θ by a slope, so errors of slopes add up."""
    x = np.random.default_rng(0).standard_normal(100)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-16, 0), np.arange(1.0, 13.0)])
    nodes, weights = np.polynomial.legendre.leggauss(30)
    z = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    weight = np.outer(np.diff(edges), weights).ravel() * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    V = tangent = 0.0
    for value in x:
        q = sigma_w**2 * V + 0.09 * value**2
        V, V_dot = (weight @ f for f in (np.tanh(math.sqrt(q) * z) ** 2, np.cosh(math.sqrt(q) * z) ** -4.0))
        tangent = V_dot * (q + sigma_w**2 * tangent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HermiteAccuracyWarning)
        try:
            K = RNTK("tanh", sigma_w=sigma_w, sigma_u=0.3)([x])[0, 0]
        except ActivationError:
            assert sigma_w == 10
            return
    error = abs(K / (V + tangent) - 1)
    admitted = max([each.message.error for each in caught], default=1e-9)
    assert error <= admitted <= 0.01
    assert sigma_w > 2 or admitted == 1e-9


@pytest.mark.parametrize(
    "odd", [np.tanh, lambda z: 2 / (1 + np.exp(-2 * z)) - 1, np.arctan], ids=["tanh", "logistic", "arctan"]
)
def test_odd_functions_are_found(odd):
    """x and -x in chaos: an even part of 1e-17 would grow until they are strangers."""
    x = np.random.default_rng(0).standard_normal(40)
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", HermiteAccuracyWarning)
        K = RNTK(odd, sigma_w=3.0, sigma_u=0.5)([x, -x])
    np.testing.assert_allclose(K, K[0, 0] * np.array([[1, -1], [-1, 1]]), rtol=1e-12)


@pytest.mark.parametrize(
    "function, symmetry",
    [
        (np.tanh, "odd"),
        (np.cos, "even"),
        (lambda z: np.tanh(z) + 1e-12, None),
        (lambda z: np.tanh(z) + np.maximum(z - 50, 0), None),
        (lambda z: np.logaddexp(0, z), None),
        (np.exp, None),
        (np.zeros_like, None),
    ],
    ids=["tanh", "cos", "moved", "bent", "softplus", "exp", "zero"],
)
def test_symmetries_are_found_where_they_are(function, symmetry):
    assert HermiteActivation("f", function).symmetry == symmetry


def test_functions_may_write_into_what_they_are_given():
    X = np.random.default_rng(0).normal(size=(2, 10))
    K, gradient = RNTK(lambda z: np.tanh(z, out=z))(X, eval_gradient=True)
    expected, expected_gradient = RNTK(np.tanh)(X, eval_gradient=True)
    np.testing.assert_array_equal(K, expected)
    np.testing.assert_array_equal(gradient, expected_gradient)


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
    "cos": (0.7, 1.4, 1.9),
    "gaussian": (1.0, 2.0, 3.0),
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
