"""Linear RNNs, convolutions, their kernel, their learners, and gradient descent in closed form."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from helpers.tolerances import relative_error
from rntk import RNTK, load, save
from rntk.errors import KernelOverflowError, SequenceError
from rntk.linear import (
    ConvolutionDescent,
    ConvRegressor,
    LinearRNN,
    LinearRNNRegressor,
    ScaledConv1D,
    from_taps,
    limit_kernel,
    memory_profile,
    scale_factors,
)

VARIANCES = {"nu_w": 0.45, "nu_f": 0.7, "nu_c": 1.3}


def ragged(seed: int = 0, channels: int = 3, lengths: tuple[int, ...] = (5, 9, 1, 12)) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, channels)) for n in lengths]


def block_toeplitz(x, lags=None):
    """𝒯(x) of equation (18), (J n_x, T): column t holds x_t, x_{t-1}, … below one another."""
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    shifted = [np.pad(x, ((lag, 0), (0, 0)))[: len(x)] for lag in range(lags or len(x))]
    return np.concatenate(shifted, axis=1).T


def sequence_kernel(X, Y=None, *, nu_w=0.3, nu_f=1.0, nu_c=1.0):
    """Theorem 3.2 as a product of matrices, 𝒯(x)ᵀ D(ρ) 𝒯(x') for every pair of sequences."""
    Y = X if Y is None else Y
    longest = max(map(len, [*X, *Y]))
    D = np.repeat(scale_factors(longest, nu_w, nu_f, nu_c), np.size(X[0]) // len(X[0]))
    return np.block([[block_toeplitz(x, longest).T * D @ block_toeplitz(y, longest) for y in Y] for x in X])


def plain_convolution(taps, x):
    """By the definition, one product at a time."""
    out = np.zeros((len(x), taps.shape[1]))
    for t in range(len(x)):
        for j in range(min(t + 1, len(taps))):
            out[t] += taps[j] @ x[t - j]
    return out


# ---- Scale factors -----------------------------------------------------------------------------------------


def test_scale_factors_follow_from_exact_counting():
    """(21) in rational arithmetic: ways through C, through F and through each of j copies of W."""
    w, f, c = Fraction(1, 2), Fraction(3, 4), Fraction(5, 4)
    expected = [f * w**j + c * w**j + sum(c * f * w ** (j - 1) for _ in range(j)) for j in range(12)]
    np.testing.assert_allclose(scale_factors(12, 0.5, 0.75, 1.25), [float(each) for each in expected], rtol=1e-15)


def test_scale_factors_at_the_edges():
    np.testing.assert_array_equal(scale_factors(4, 0.0), [2, 1, 0, 0])  # without W, a lag of one only through its slope
    np.testing.assert_array_equal(scale_factors(3, 1.0), [2, 3, 4])
    with pytest.raises(KernelOverflowError, match="nu_w < 1"):
        scale_factors(5000, 2.0)
    for wrong in ({"nu_w": -0.1}, {"nu_w": 0.3, "nu_f": 0.0}, {"nu_w": 0.3, "nu_c": np.nan}, {"nu_w": "much"}):
        with pytest.raises(ValueError, match="variance"):
            scale_factors(3, **wrong)
    with pytest.raises(ValueError, match="T must be"):
        scale_factors(0, 0.3)


@pytest.mark.parametrize("nu_w", [0.05, 0.3, 0.9])
def test_the_bound_of_equation_22(nu_w):
    T = 30
    rho = scale_factors(T, nu_w, 0.8, 1.2)
    largest = 1.2 * (T * 0.8 + 1) + 0.8
    assert (rho[2:] <= largest * nu_w ** np.arange(1, T - 1)).all()


# ---- Models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lags", [1, 4, 12, 40])
def test_a_convolution_is_its_definition(lags):
    X = ragged()
    taps = np.random.default_rng(1).standard_normal((lags, 2, 3))
    found = ScaledConv1D.from_taps(taps, np.linspace(0.5, 2, lags))(X)
    assert len(found) == len(X)
    for got, x in zip(found, X, strict=True):
        assert relative_error(got, plain_convolution(taps, x)) < 1e-13


def test_an_rnn_is_its_recursion():
    rnn = LinearRNN.random(6, 3, 2, seed=0, **VARIANCES)
    X = ragged()
    for got, x in zip(rnn(X), X, strict=True):
        state, root = np.zeros(6), 6**0.5
        for t, value in enumerate(x):
            state = rnn.W @ state / root + rnn.F @ value
            np.testing.assert_allclose(got[t], rnn.C @ state / root, rtol=1e-12, atol=1e-12)


def test_proposition_2_1_a_rnn_to_taps():
    for n_x, n_y in ((3, 2), (2, 3), (1, 1)):
        rnn = LinearRNN.random(20, n_x, n_y, seed=0, **VARIANCES)
        X = ragged(channels=n_x)
        outputs = ScaledConv1D.from_taps(rnn.impulse_response(12))(X)
        assert max(relative_error(a, b) for a, b in zip(outputs, rnn(X), strict=True)) < 1e-13
        power = rnn.C @ np.linalg.matrix_power(rnn.W, 3) @ rnn.F / 20**2
        np.testing.assert_allclose(rnn.impulse_response(12)[3], power, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("structure", ["delay", "modes"])
@pytest.mark.parametrize("shape", [(64, 1, 1), (64, 2, 3), (64, 3, 2), (63, 1, 2), (2, 1, 1), (1, 2, 2)])
def test_proposition_2_1_b_taps_to_rnn(structure, shape):
    taps = np.random.default_rng(0).standard_normal(shape)
    rnn = from_taps(taps, structure)
    T, n_y, n_x = shape
    assert rnn.n <= T * n_x * n_y
    assert np.abs(rnn.impulse_response(T) - taps).max() < 1e-10  # the issue's bound; rounding is 1e-14
    assert np.linalg.norm(rnn.W / rnn.n**0.5, 2) < 1 + 1e-12  # well conditioned: never larger than a rotation
    X = ragged(channels=n_x, lengths=(T, max(T // 2, 1)))
    want = [plain_convolution(taps, x) for x in X]
    assert max(relative_error(a, b) for a, b in zip(rnn(X), want, strict=True)) < 1e-10


def test_a_delay_line_forgets_and_rotations_repeat():
    taps = np.random.default_rng(0).standard_normal((8, 1, 1))
    line, modes = from_taps(taps), from_taps(taps, "modes")
    assert line.spectral_radius == 0
    assert np.abs(line.impulse_response(20)[8:]).max() == 0
    np.testing.assert_allclose(modes.impulse_response(16)[8:], taps, atol=1e-12)
    eigenvalues = np.linalg.eigvals(modes.W / 8**0.5)
    np.testing.assert_allclose(np.sort_complex(eigenvalues**8), np.ones(8), atol=1e-12)
    assert len(np.unique(eigenvalues.round(6))) == 8  # distinct poles, as in the proof


def test_spectral_radius_tends_to_the_root_of_nu_w():
    """An erratum: the paper prints ν_W."""
    found = [LinearRNN.random(800, nu_w=0.3, seed=seed).spectral_radius for seed in range(2)]
    assert abs(np.mean(found) - 0.3**0.5) < 0.04


def test_gradients_of_a_convolution_are_central_differences():
    X, rng = ragged(lengths=(4, 7, 2)), np.random.default_rng(3)
    y = [rng.standard_normal((len(x), 2)) for x in X]
    rho, theta = scale_factors(5, 0.4), rng.standard_normal((5, 2, 3))
    exact = ScaledConv1D(rho, theta).gradient(X, y)
    for at in ((0, 0, 0), (2, 1, 2), (4, 0, 1)):
        step = np.zeros_like(theta)
        step[at] = 1e-4
        change = ScaledConv1D(rho, theta + step).loss(X, y) - ScaledConv1D(rho, theta - step).loss(X, y)
        np.testing.assert_allclose(exact[at], change / 2e-4, rtol=1e-8)


def test_models_refuse_what_makes_no_sense():
    rnn = LinearRNN.random(5, 2, 1, seed=0)
    with pytest.raises(SequenceError, match="3 channels, the model is for 2"):
        rnn(ragged())
    with pytest.raises(ValueError, match="W must be"):
        LinearRNN(np.eye(3), np.ones((2, 1)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="F must be finite"):
        LinearRNN(np.eye(2), np.full((2, 1), np.inf), np.ones((1, 2)))
    with pytest.raises(ValueError, match="rho must be"):
        ScaledConv1D(np.ones(3), np.ones((2, 1, 1)))
    with pytest.raises(ValueError, match="lag 1 has a tap but scale factor zero"):
        ScaledConv1D.from_taps(np.ones((2, 1, 1)), [1.0, 0.0])
    with pytest.raises(ValueError, match="structure"):
        from_taps(np.ones((2, 1, 1)), "poles")
    with pytest.raises(ValueError, match="taps must be"):
        from_taps(np.ones((2, 1)))


# ---- The kernel --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["fused", "reference"])
def test_the_kernel_is_the_matrix_product_of_theorem_3_2(engine):
    X, Y = ragged(), ragged(1, lengths=(3, 12))
    kernel = limit_kernel(3, engine=engine, **VARIANCES)
    assert isinstance(kernel, RNTK)
    assert relative_error(kernel(X), sequence_kernel(X, **VARIANCES)) < 1e-13
    assert relative_error(kernel(X, Y), sequence_kernel(X, Y, **VARIANCES)) < 1e-13


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    channels=st.integers(1, 3),
    nu_w=st.floats(0, 1.2),
    seed=st.integers(0, 1000),
)
def test_kernels_are_symmetric_positive_and_agree(lengths, channels, nu_w, seed):
    X = ragged(seed, channels, tuple(lengths))
    K = limit_kernel(channels, nu_w=nu_w)(X)
    assert np.abs(K - K.T).max() <= 1e-12 * np.abs(K).max()
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    assert relative_error(K, sequence_kernel(X, nu_w=nu_w)) < 1e-12


def test_equation_44_with_its_index_and_factor():
    """An erratum: the paper prints Δ_W h_t where h_{t-1} belongs, and Δ_C h_t without 1/√n."""
    rng = np.random.default_rng(0)
    x, n = rng.standard_normal((6, 3)), 5
    rnn, way = (LinearRNN.random(n, 3, 2, seed=seed, nu_w=0.8) for seed in (1, 2))
    step = 1e-5
    ends = [LinearRNN(*(a + sign * step * b for a, b in zip(weights(rnn), weights(way), strict=True)))([x])[0]
            for sign in (1, -1)]  # fmt: skip
    slope = (ends[0] - ends[1]) / (2 * step)

    def derivative(delayed: bool, factor: float) -> np.ndarray:
        state, tangent, out = np.zeros(n), np.zeros(n), []
        for value in x:
            new = rnn.W @ state / n**0.5 + rnn.F @ value
            tangent = (rnn.W @ tangent + way.W @ (state if delayed else new)) / n**0.5 + way.F @ value
            state = new
            out.append(rnn.C @ tangent / n**0.5 + factor * way.C @ state)
        return np.array(out)

    assert relative_error(derivative(True, n**-0.5), slope) < 1e-8
    assert relative_error(derivative(False, n**-0.5), slope) > 0.1
    assert relative_error(derivative(True, 1.0), slope) > 0.1


def weights(rnn: LinearRNN) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return rnn.W, rnn.F, rnn.C


# ---- Empirical kernels -------------------------------------------------------------------------------------


def test_empirical_kernel_is_that_of_automatic_differentiation():
    jax = pytest.importorskip("jax", reason='needs JAX: pip install "rntk[finite]"')
    from rntk.finite import precision

    X, Y = ragged(lengths=(4, 2)), ragged(1, lengths=(5,))
    rnn = LinearRNN.random(7, 3, 2, seed=1, **VARIANCES)

    def run(weights, x):
        W, F, C = weights
        state, out = jax.numpy.zeros(7), []
        for value in x:
            state = W @ state / 7**0.5 + F @ value
            out.append(C @ state / 7**0.5)
        return jax.numpy.stack(out).ravel()

    with precision("float64"):
        rows = [
            [
                np.concatenate([np.asarray(part).reshape(2 * len(x), -1) for part in parts], axis=1)
                for x in batch
                for parts in [jax.jacrev(run)((rnn.W, rnn.F, rnn.C), x)]
            ]
            for batch in (X, Y)
        ]
    a, b = (np.concatenate(each) for each in rows)
    assert relative_error(rnn.ntk(X, Y), a @ b.T) < 1e-13
    assert relative_error(rnn.ntk(X), a @ a.T) < 1e-13


def test_empirical_kernel_is_that_of_the_network_of_the_limit_kernel():
    finite = pytest.importorskip("rntk.finite", reason='needs JAX: pip install "rntk[finite]"', exc_type=ImportError)
    X = ragged()
    net = finite.network(limit_kernel(3, **VARIANCES), width=30)
    weights = net.init(0, X, dtype="float64")["forward"]
    rnn = LinearRNN(*(np.asarray(each) for each in (weights["W"][0], weights["U"][0], weights["V"])))
    assert relative_error(rnn.ntk(X), finite.empirical_ntk(net, {"forward": weights}, X)) < 1e-12
    assert relative_error(np.concatenate(rnn(X)), net({"forward": weights}, X)) < 1e-12


# ---- Learners ----------------------------------------------------------------------------------------------


def task(seed: int = 0, channels: int = 2, lengths: tuple[int, ...] = (20, 31, 17, 25, 9, 28)):
    X = ragged(seed, channels, lengths)
    rng = np.random.default_rng(seed + 1)
    y = LinearRNN.random(4, channels, 2, seed=seed)(X)
    return X, [each + 0.1 * rng.standard_normal(each.shape) for each in y]


@pytest.mark.parametrize("alpha", [0.01, 3.0])
def test_the_regressor_is_kernel_ridge_with_the_closed_form(alpha):
    X, y = task()
    model = LinearRNNRegressor(nu_w=0.4, alpha=alpha).fit(X, y)
    K = sequence_kernel(X, nu_w=0.4)
    new = ragged(9, 2, (13, 40))
    targets = np.concatenate(y)
    expected = sequence_kernel(new, X, nu_w=0.4) @ np.linalg.solve(K + alpha * np.eye(len(K)), targets)
    assert relative_error(np.concatenate(model.predict(new)), expected) < 1e-10


def test_without_ridge_data_decide_where_they_can():
    X, y = task()
    models = LinearRNNRegressor(nu_w=0.01, alpha=0.0, lags=8), ConvRegressor(alpha=0.0, lags=8)
    assert models[0].fit(X, y).rho_[-1] < 1e-10
    assert relative_error(models[0].taps_, models[1].fit(X, y).taps_) < 1e-10
    # Fewer equations than unknowns: of all interpolating θ the smallest, so ρ decides.
    few = [X[0][:4]]
    targets = [y[0][:4]]
    A = np.vstack([block_toeplitz(x).T for x in few])
    root = np.sqrt(np.repeat(scale_factors(4, 0.3), 2))
    smallest = np.linalg.pinv(A * root) @ np.concatenate(targets) * root[:, None]
    got = LinearRNNRegressor(alpha=0.0).fit(few, targets).taps_
    assert relative_error(got.transpose(0, 2, 1).reshape(8, 2), smallest) < 1e-8


def test_the_unscaled_regressor_is_ridge_on_lagged_inputs():
    X, y = task()
    rows = [np.concatenate([x[max(t - 5, 0) : t + 1][::-1].ravel(), np.zeros(2 * max(5 - t, 0))]) for x in X
            for t in range(len(x))]  # fmt: skip
    ridge = Ridge(alpha=0.7, fit_intercept=False).fit(rows, np.concatenate(y))
    model = ConvRegressor(alpha=0.7, lags=6).fit(X, y)
    assert relative_error(model.taps_.transpose(1, 0, 2).reshape(2, -1), ridge.coef_) < 1e-10
    assert model.rho_.tolist() == [1.0] * 6


def test_the_bias_towards_short_memory_helps_where_memory_is_short():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40))
    y = LinearRNN.random(4, nu_w=0.3, seed=1)(X)[..., 0] + 0.3 * rng.standard_normal((60, 40))
    scores = [model.fit(X[:4], y[:4]).score(X[4:], y[4:]) for model in (LinearRNNRegressor(), ConvRegressor())]
    assert scores[0] > scores[1]
    late = np.zeros_like(y)
    late[:, 20:] = y[:, :-20]
    scores = [model.fit(X[:4], late[:4]).score(X[4:], late[4:]) for model in (LinearRNNRegressor(), ConvRegressor())]
    assert scores[0] < scores[1]


def test_layouts_come_back_as_they_went_in():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 8, 2))
    assert LinearRNNRegressor().fit(X, X[..., 0]).predict(X).shape == (5, 8)
    assert LinearRNNRegressor().fit(X, X[..., :1]).predict(X).shape == (5, 8, 1)
    lists = [x[: 3 + i] for i, x in enumerate(X)]
    flat = LinearRNNRegressor().fit(lists, [x[:, 0] for x in lists]).predict(lists)
    assert [each.shape for each in flat] == [(3,), (4,), (5,), (6,), (7,)]
    full = LinearRNNRegressor().fit(lists, lists).predict(X)
    assert full.shape == (5, 8, 2)


def test_regressors_are_scikit_learn_estimators():
    X, y = task()
    model = LinearRNNRegressor(nu_w=0.2, lags=4)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(LinearRNNRegressor(lags=6), {"alpha": [0.01, 100.0], "nu_w": [0.1, 0.5]}, cv=KFold(3))
    assert search.fit(X, y).best_params_["alpha"] == 0.01
    assert search.best_estimator_.score(X, y) > 0.9
    weights = [1.0, 0, 0, 0, 0, 0]
    fitted = model.fit(X, y)
    assert fitted.score(X, y, sample_weight=weights) == pytest.approx(fitted.score(X[:1], y[:1]))


@pytest.mark.parametrize("model", [LinearRNNRegressor(nu_w=0.2, lags=4), ConvRegressor(alpha=0.1)])
def test_regressors_survive_files_and_pickle(model, tmp_path):
    X, y = task()
    for targets in (y, [each[:, 0] for each in y]):
        fitted = clone(model).fit(X, targets)
        save(fitted, tmp_path / "model.rntk")
        for copy in (load(tmp_path / "model.rntk"), pickle.loads(pickle.dumps(fitted))):
            assert type(copy) is type(fitted) and copy.get_params() == fitted.get_params()
            for a, b in zip(copy.predict(X), fitted.predict(X), strict=True):
                np.testing.assert_array_equal(a, b)


def test_regressors_refuse():
    X, y = task()
    model = LinearRNNRegressor()
    with pytest.raises(SequenceError, match=r"sequence 1 has\s+31 steps, its target 30"):
        model.fit(X, [y[0], y[1][:-1], *y[2:]])
    with pytest.raises(SequenceError, match="6 sequences and 5 targets"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match="y is None"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="alpha"):
        LinearRNNRegressor(alpha=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="lags"):
        LinearRNNRegressor(lags=0).fit(X, y)
    with pytest.raises(SequenceError, match="expecting 2 channels"):
        model.fit(X, y).predict(ragged())
    assert not hasattr(LinearRNNRegressor(), "taps_")


# ---- Memory ------------------------------------------------------------------------------------------------


def test_memory_profiles():
    rnn = LinearRNN.random(3000, 2, 3, seed=0, nu_w=0.4, nu_f=0.5, nu_c=2.0)
    profile = memory_profile(rnn, 6)
    assert relative_error(profile.rho, scale_factors(6, 0.4, 0.5, 2.0)) < 0.05  # estimated from the weights
    assert relative_error(profile.initial, np.sqrt(6 * 2.0 * 0.5 * 0.4 ** np.arange(6))) < 0.05
    np.testing.assert_allclose(profile.taps, np.linalg.norm(rnn.impulse_response(6), axis=(1, 2)))
    X, y = task()
    fitted = LinearRNNRegressor(nu_w=0.4, lags=6).fit(X, y)
    np.testing.assert_array_equal(memory_profile(fitted).rho, scale_factors(6, 0.4))
    np.testing.assert_allclose(memory_profile(fitted, 3).taps, np.linalg.norm(fitted.taps_[:3], axis=(1, 2)))
    kernel = memory_profile(limit_kernel(nu_w=0.4, nu_c=2.0), 6)
    np.testing.assert_allclose(kernel.rho, scale_factors(6, 0.4, 1.0, 2.0))
    for wrong, error in ((limit_kernel(), ValueError), (RNTK(), ValueError), ("model", TypeError)):
        with pytest.raises(error):
            memory_profile(wrong, None if wrong != "model" and wrong.readout == "sequence" else 5)


def test_effective_length_counts_lags():
    from rntk.linear import MemoryProfile

    profile = MemoryProfile(np.array([0.5, 0.3, 0.15, 0.05]))
    assert [profile.effective_length(share) for share in (0.5, 0.51, 0.8, 0.95, 0.99, 1.0)] == [1, 2, 2, 3, 4, 4]
    assert profile.mean_lag == pytest.approx(0.3 + 0.3 + 0.15)
    longer = memory_profile(limit_kernel(nu_w=0.9), 200)
    assert longer.effective_length() > memory_profile(limit_kernel(nu_w=0.3), 200).effective_length()
    with pytest.raises(ValueError, match="share"):
        profile.effective_length(0.0)
    ax = pytest.importorskip("matplotlib.pyplot", reason="needs matplotlib").subplots()[1]
    assert profile.plot(ax) is ax and "lag" in ax.get_xlabel()


# ---- Gradient descent in closed form -----------------------------------------------------------------------


def descent_task(seed: int, nu_w: float = 0.3):
    X, y = task(seed, 2, (6, 9, 4))
    start = np.random.default_rng(seed).standard_normal((7, 2, 2))
    model = ScaledConv1D.from_taps(start, scale_factors(7, nu_w))
    return model, X, y, ConvolutionDescent.of(model, X, y)


def test_the_path_is_that_of_gradient_steps():
    model, X, y, descent = descent_task(0)
    rate = 0.9 * descent.critical_rate
    theta = model.theta
    for step in range(30):
        here = ScaledConv1D(model.rho, theta)
        np.testing.assert_allclose(descent.taps([step], rate)[0], here.taps, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(descent.loss([step], rate)[0], here.loss(X, y), rtol=1e-9)
        theta = theta - rate * here.gradient(X, y)
    np.testing.assert_allclose(descent.at(30, rate).theta, theta, rtol=1e-8, atol=1e-10)


def test_the_end_of_the_path_is_least_squares():
    _, X, y, descent = descent_task(1, nu_w=0.8)
    far = descent.taps([10**9], 0.5 * descent.critical_rate)[0]
    exact = ConvRegressor(alpha=0.0, lags=7).fit(X, y).taps_
    assert relative_error(far, exact) < 1e-6
    assert 0 < descent.loss([10**9], 0.5 * descent.critical_rate)[0] < descent.loss([0], 1e-3)[0]


def test_above_the_critical_rate_descent_diverges():
    _, _, _, descent = descent_task(2)
    assert descent.loss([2000], 0.999 * descent.critical_rate) < descent.loss([0], 1.0)
    assert descent.loss([2000], 1.01 * descent.critical_rate) > 1e6 * descent.loss([0], 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_theorem_4_1_bound_25(seed):
    """Every lag, every step, on random problems whose ρ fall slowly or fast."""
    rng = np.random.default_rng(seed)
    model, _, _, descent = descent_task(seed, nu_w=rng.uniform(0.01, 1.0))
    B_1, B_2 = descent.bounds()
    rate = rng.uniform(0.1, 0.999) * B_1
    steps = np.unique(np.geomspace(1, 10**5, 60).astype(int))
    moved = np.linalg.norm(descent.taps(steps, rate) - model.taps, axis=(2, 3))
    bound = B_2 * rate * np.outer(steps, model.rho)
    assert (moved <= bound * (1 + 1e-12)).all()
    assert (moved / bound).max() > 0.02  # it isn't empty either


def test_the_constant_printed_in_the_paper_is_too_small():
    """(60) has B_2 = ‖Aᵀb‖, from ‖I - ηAᵀAD‖ ≤ 1, which no symmetry backs. Here a tap moves further by 4 %."""
    X, y, rho = [[2.0, 0.0, -3.0]], [[-2.0, 0.0, -1.0]], scale_factors(3, 0.05)
    descent = ConvolutionDescent.of(ScaledConv1D(rho, np.zeros((3, 1, 1))), X, y)
    B_1, B_2 = descent.bounds()
    A = block_toeplitz(X[0]).T
    assert descent.norm == pytest.approx(np.linalg.norm(A, 2))
    assert descent.gradient == pytest.approx(np.linalg.norm(A.T @ y[0]))
    rate, steps = 0.999 * B_1, 11
    assert np.linalg.norm(np.eye(3) - rate * A.T @ A * rho, 2) > 1
    theta = np.zeros(3)  # by plain steps, not by the closed form under test
    for _ in range(steps):
        theta = theta + rate * np.sqrt(rho) * (A.T @ (y[0] - A @ (np.sqrt(rho) * theta)))
    share = np.abs(np.sqrt(rho) * theta) / (rho * rate * steps)
    assert share.max() > 1.04 * descent.gradient
    assert share.max() < B_2


def test_descent_at_the_edges():
    nothing = ConvolutionDescent.of(ScaledConv1D(np.ones(2), np.ones((2, 1, 1))), [[0.0, 0.0]], [[1.0, 2.0]])
    assert nothing.critical_rate == np.inf and nothing.bounds()[0] == np.inf
    np.testing.assert_array_equal(nothing.taps([5], 1.0)[0], np.ones((2, 1, 1)))
    np.testing.assert_allclose(nothing.loss([0, 5], 1.0), 2.5)
    for steps, rate, word in (([1.5], 1.0, "steps"), ([-1], 1.0, "steps"), ([1], 0.0, "learning_rate")):
        with pytest.raises(ValueError, match=word):
            nothing.taps(steps, rate)
    with pytest.raises(ValueError, match="2 outputs"):
        ConvolutionDescent.of(ScaledConv1D(np.ones(2), np.ones((2, 1, 1))), [[0.0, 0.0]], [np.ones((2, 2))])
