"""Gaussian processes on sequences: evidence, posterior, coverage."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from scipy import stats
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from rntk import NTK, RNTK, KernelOverflowError, RNTKGaussianProcessRegressor, load, save


def ragged(seed, n=12, channels=1, shortest=3, longest=9):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(shortest, longest), channels)) for _ in range(n)]


def draw(kernel, X, noise, seed):
    K = kernel(X)
    value, vector = np.linalg.eigh(K)
    rng = np.random.default_rng(seed)
    f = vector @ (np.sqrt(np.maximum(value, 0)) * rng.standard_normal(len(K)))
    return f + np.sqrt(noise) * rng.standard_normal(len(K))


def test_equal_lengths_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((15, 6)), rng.standard_normal((4, 6))
    y = X.sum(axis=1)
    kernel = RNTK(sigma_b=0.3)
    ours = RNTKGaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(X, y)
    theirs = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X, y)
    np.testing.assert_allclose(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-10)
    for a, b in zip(ours.predict(new, return_std=True), theirs.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    np.testing.assert_allclose(
        ours.predict(new, return_cov=True)[1], theirs.predict(new, return_cov=True)[1], rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize(
    "kernel",
    [
        RNTK(sigma_b=0.3, sigma_h=0.4),
        RNTK(activation="erf", depth=2, sigma_w=[1.1, 0.9], sigma_b=0.2, bidirectional=True),
        RNTK(readout="mean", sigma_b=0.2, normalize=True),
        RNTK(activation="tanh", sigma_w=1.0, parameterization="standard"),
    ],
    ids=["relu", "erf, deep", "mean, normalised", "tanh, standard"],
)
def test_evidence_gradients_match_differences(kernel, kind):
    X = ragged(1, channels=2)
    y = np.array([x.sum() for x in X])
    model = RNTKGaussianProcessRegressor(clone(kernel).set_params(kind=kind), noise=0.3, optimizer=None).fit(X, y)
    theta = model._theta()
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-10)
    step = 1e-5
    for p in range(len(theta)):
        move = np.eye(len(theta))[p] * step
        slope = (model.log_marginal_likelihood(theta + move) - model.log_marginal_likelihood(theta - move)) / (2 * step)
        assert gradient[p] == pytest.approx(slope, rel=2e-5, abs=1e-5)


@pytest.mark.parametrize("engine", ["fused", "reference"])
def test_the_nngp_has_a_gradient_of_its_own(engine):
    X = ragged(2, n=4)
    kernel = RNTK(sigma_b=0.2, engine=engine)
    K, gradient = kernel.nngp(X, eval_gradient=True)
    np.testing.assert_allclose(K, kernel.nngp(X), rtol=1e-12)
    for p in range(len(kernel.theta)):
        move = np.eye(len(kernel.theta))[p] * 1e-5
        ahead, behind = (kernel.clone_with_theta(kernel.theta + way * move).nngp(X) for way in (1, -1))
        np.testing.assert_allclose(gradient[:, :, p], (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match="without Y"):
        kernel.nngp(X, X, eval_gradient=True)


def test_the_optimum_is_better_and_flat():
    X = ragged(3, n=25)
    y = draw(RNTK(sigma_w=1.1, sigma_u=0.7), X, 0.05, 0)
    start = RNTKGaussianProcessRegressor(RNTK(), noise=1.0, optimizer=None).fit(X, y)
    found = RNTKGaussianProcessRegressor(RNTK(), noise=1.0, n_restarts_optimizer=1, random_state=0).fit(X, y)
    assert found.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 1
    theta, bounds = found._theta(), found._bounds()
    _, gradient = found.log_marginal_likelihood(theta, eval_gradient=True)
    inside = (theta > bounds[:, 0] + 1e-6) & (theta < bounds[:, 1] - 1e-6)
    assert np.abs(gradient[inside]).max() < 0.05
    assert found.kernel.theta is not found.kernel_.theta and found.noise == 1.0


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
def test_intervals_cover_what_they_say(kind):
    """Data drawn from the model: 95 % intervals hold 90 to 99 % of 600 new observations."""
    kernel = RNTK(sigma_w=1.2, sigma_b=0.3, kind=kind)
    hits = []
    for seed in range(12):
        X = ragged(100 + seed, n=80)
        y = draw(kernel, X, 0.1, seed)
        model = RNTKGaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(X[:30], y[:30])
        mean, std = model.predict(X[30:], return_std=True, include_noise=True)
        hits.append(np.abs(y[30:] - mean) < stats.norm.ppf(0.975) * std)
    assert 0.90 < np.mean(hits) < 0.99


def test_samples_have_the_posterior_s_moments():
    X, new = ragged(4), ragged(5, n=3)
    y = np.array([x.sum() for x in X])
    model = RNTKGaussianProcessRegressor(RNTK(), noise=0.2, optimizer=None).fit(X, y)
    mean, covariance = model.predict(new, return_cov=True)
    sample = model.sample_y(new, n_samples=20_000, random_state=1)
    assert sample.shape == (3, 20_000)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(sample.mean(axis=1), mean, atol=5 * scale.max() / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(sample), covariance, atol=0.05 * scale.max() ** 2)
    np.testing.assert_array_equal(model.sample_y(new, 2, random_state=3), model.sample_y(new, 2, random_state=3))


def test_normalised_targets_shift_and_scale():
    X = ragged(6)
    y = np.array([x.mean() for x in X])
    kernel = RNTK(readout="mean")
    plain = RNTKGaussianProcessRegressor(kernel, noise=0.1, optimizer=None, normalize_y=True).fit(X, y)
    moved = RNTKGaussianProcessRegressor(kernel, noise=0.1, optimizer=None, normalize_y=True).fit(X, 100 + 7 * y)
    a, b = plain.predict(X, return_std=True), moved.predict(X, return_std=True)
    np.testing.assert_allclose(b[0], 100 + 7 * a[0], rtol=1e-9)
    np.testing.assert_allclose(b[1], 7 * a[1], rtol=1e-9)


@pytest.mark.parametrize(
    "kernel", [ConstantKernel() * RBF(2.0), NTK(sigma_b=0.1), RNTK() + WhiteKernel(0.1), lambda A, B: A @ B.T]
)
def test_other_kernels(kernel):
    X = np.random.default_rng(0).standard_normal((20, 4))
    model = RNTKGaussianProcessRegressor(kernel, noise=0.1).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.9


def test_pickle_keeps_the_posterior():
    X = ragged(7)
    model = RNTKGaussianProcessRegressor(RNTK(), noise=0.1, optimizer=None).fit(X, [x.sum() for x in X])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X, return_std=True), again.predict(X, return_std=True))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"noise": -1.0}, "noise"),
        ({"noise": "much"}, "noise"),
        ({"optimizer": "adam"}, "optimizer"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    X = np.random.default_rng(0).standard_normal((5, 3))
    with pytest.raises(ValueError, match=message):
        RNTKGaussianProcessRegressor(**settings).fit(X, X[:, 0])


def test_duplicates_without_noise_are_explained():
    X = np.ones((4, 3))
    with pytest.raises(LinAlgError, match="smallest eigenvalue"):
        RNTKGaussianProcessRegressor(noise=0.0, optimizer=None).fit(X, np.arange(4.0))


@pytest.mark.parametrize("normalize_y", [False, True])
def test_several_targets_are_several_processes_of_one_kernel(normalize_y, tmp_path):
    rng = np.random.default_rng(9)
    X, new = rng.standard_normal((15, 6)), rng.standard_normal((4, 6))
    Y = np.stack([X.sum(axis=1), 3 * X[:, 0] + 1, X[:, 1] - X[:, 2]], axis=1)
    settings = {"noise": 0.1, "optimizer": None, "normalize_y": normalize_y}
    model = RNTKGaussianProcessRegressor(RNTK(sigma_b=0.3), **settings).fit(X, Y)
    each = [RNTKGaussianProcessRegressor(RNTK(sigma_b=0.3), **settings).fit(X, y) for y in Y.T]
    assert model.log_marginal_likelihood() == pytest.approx(sum(one.log_marginal_likelihood() for one in each))
    gradients = [one.log_marginal_likelihood(one._theta(), eval_gradient=True)[1] for one in each]
    np.testing.assert_allclose(
        model.log_marginal_likelihood(model._theta(), eval_gradient=True)[1], np.sum(gradients, axis=0), rtol=1e-9
    )
    for flags in ({"return_std": True}, {"return_cov": True}):
        found = model.predict(new, **flags, include_noise=True)
        wanted = zip(*(one.predict(new, **flags, include_noise=True) for one in each), strict=True)
        for part, parts in zip(found, wanted, strict=True):
            np.testing.assert_allclose(part, np.stack(parts, axis=-1), rtol=1e-9, atol=1e-12)
    theirs = GaussianProcessRegressor(RNTK(sigma_b=0.3), alpha=0.1, optimizer=None, normalize_y=normalize_y).fit(X, Y)
    np.testing.assert_allclose(model.predict(new), theirs.predict(new), rtol=1e-8)
    sample = model.sample_y(new, n_samples=4000, random_state=1)
    mean, std = model.predict(new, return_std=True)
    assert sample.shape == (4, 3, 4000)
    assert (np.abs(sample.mean(axis=2) - mean) < 5 * std / np.sqrt(4000)).all()
    np.testing.assert_allclose(sample.std(axis=2), std, rtol=0.1)
    save(model, tmp_path / "model.rntk")
    np.testing.assert_array_equal(load(tmp_path / "model.rntk").predict(new), model.predict(new))


def test_a_fit_shows_one_bar(capsys):
    X = ragged(8)
    RNTKGaussianProcessRegressor(RNTK(progress=True)).fit(X, np.arange(12.0))
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "Gaussian process" in shown


def test_one_kind_of_spread():
    X = ragged(8)
    model = RNTKGaussianProcessRegressor(optimizer=None).fit(X, np.arange(12.0))
    with pytest.raises(ValueError, match="not for both"):
        model.predict(X, return_std=True, return_cov=True)


# -- trial points ------------------------------------------------------------------------------------------------------


def test_an_overflow_at_a_trial_point_turns_the_line_search_back():
    """Targets that ask for a large σ_w, on sequences long enough that a step too far is beyond float64."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal(400) for _ in range(8)]
    kernel = RNTK(sigma_w=1.5, sigma_w_bounds=(1e-2, 1e3), sigma_u_bounds="fixed", sigma_v_bounds="fixed")
    with pytest.raises(KernelOverflowError):
        clone(kernel).set_params(sigma_w=5.0)(X)
    y = 1e30 * rng.standard_normal(8)
    model = RNTKGaussianProcessRegressor(kernel, noise=1.0, noise_bounds="fixed").fit(X, y)
    assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood(np.log([1.5])) + 100
    assert 1.5 < model.kernel_.sigma_w < 5
    with pytest.raises(KernelOverflowError):  # what the start itself cannot do is no matter of the search
        RNTKGaussianProcessRegressor(clone(kernel).set_params(sigma_w=6.0), noise=1.0).fit(X, y)


class Mistaken(RBF):
    """A kernel whose author made a mistake in the gradient."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            raise ValueError("operands could not be broadcast together")
        return super().__call__(X, Y)


def test_mistakes_of_a_kernel_are_not_taken_for_bad_points():
    X = np.random.default_rng(0).standard_normal((6, 3))
    with pytest.raises(ValueError, match="broadcast"):
        RNTKGaussianProcessRegressor(Mistaken()).fit(X, X[:, 0])


# -- weights -----------------------------------------------------------------------------------------------------------


def test_a_weight_is_a_number_of_observations():
    X, new = ragged(9), ragged(10, n=4)
    y = np.array([x.sum() for x in X])
    weight = np.arange(12) % 4
    repeated = np.repeat(np.arange(12), weight)
    options = {"kernel": RNTK(), "noise": 0.3, "optimizer": None, "normalize_y": True}
    weighted = RNTKGaussianProcessRegressor(**options).fit(X, y, weight)
    assert len(weighted.sequences_) == 9
    whole = RNTKGaussianProcessRegressor(**options).fit([X[i] for i in repeated], y[repeated])
    for a, b in zip(weighted.predict(new, return_std=True), whole.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    theta = weighted._theta()
    _, gradient = weighted.log_marginal_likelihood(theta, eval_gradient=True)
    move = np.append(np.zeros(len(theta) - 1), 1e-5)
    slope = weighted.log_marginal_likelihood(theta + move) - weighted.log_marginal_likelihood(theta - move)
    assert gradient[-1] == pytest.approx(slope / 2e-5, rel=1e-5)


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
def test_deviations_come_from_a_diagonal(kind, monkeypatch):
    """For the NNGP they once took a Gram matrix of one sequence after another."""
    X, new = ragged(11), ragged(12, n=5)
    kernel = RNTK(kind=kind, sigma_h=0.3, sigma_b=0.2)
    model = RNTKGaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(X, [x.sum() for x in X])
    covariance = model.predict(new, return_cov=True)[1]
    shapes, real = [], model._training().pairwise.pairs
    monkeypatch.setattr(model._training().pairwise, "pairs", lambda *sides: shapes.append(real(*sides)) or shapes[-1])
    _, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(std**2, np.diagonal(covariance), rtol=1e-9)
    assert [K.shape for K in shapes] == [(5, 12)]
