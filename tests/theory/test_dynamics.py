"""Training in closed form against models that are really trained.

The main oracle is a linear model f(x) = φ(x)·θ whose features are a square root of the joint kernel matrix of all
points: its tangent kernel is the given one, exactly, and a loop (or an ODE solver) on its parameters shares no formula
with the library. Its θ_0 is drawn so that outputs at the start have the NNGP covariance.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize
from sklearn.gaussian_process.kernels import RBF

from rntk import NTK, RNTK, RNTKGaussianProcessRegressor, RNTKRidge, SequenceError
from rntk.theory.dynamics import Dynamics, process
from rntk.theory.dynamics.clock import Instants

N, NEW, OUTPUTS = 7, 4, 2

KERNELS = {
    "relu": RNTK(),
    "initial state": RNTK("erf", sigma_w=1.1, sigma_b=0.3, sigma_h=0.6, depth=2),
    "mean, both ways": RNTK(readout="mean", sigma_b=0.2, bidirectional=True),
    "every step": RNTK("erf", readout="sequence", sigma_b=0.2, sigma_h=0.4),
    "feed-forward": NTK(depth=2, sigma_b=0.1),
}


def sequences(kernel, count, seed):
    """Ragged with two channels; vectors for the feed-forward kernel."""
    rng = np.random.default_rng(seed)
    lengths = [4] * count if isinstance(kernel, NTK) else rng.integers(2, 6, size=count)
    return [rng.standard_normal((length, 2)) for length in lengths]


class Trained:
    """The linear model, trained by hand. Rows of `features` belong to the training values first, then to new ones."""

    def __init__(self, kernel, outputs=OUTPUTS, seed=0):
        rng = np.random.default_rng(seed)
        self.kernel, self.X, self.new = kernel, sequences(kernel, N, seed), sequences(kernel, NEW, seed + 1)
        everything = self.X + self.new
        if isinstance(kernel, NTK):
            everything = np.reshape(everything, (N + NEW, -1))
        self.nngp, self.ntk = kernel.both(everything)
        per_step = getattr(kernel, "readout", "") == "sequence"
        self.count = sum(map(len, self.X)) if per_step else N
        value, vector = np.linalg.eigh(self.ntk)
        assert value[0] > 1e-6 * value[-1]
        self.features = vector * np.sqrt(value)
        self.y = rng.standard_normal((self.count, outputs))
        self.y_new = rng.standard_normal((len(self.ntk) - self.count, outputs))
        self.start = self.draw(outputs, rng)

    def draw(self, columns, rng):
        """Parameters whose outputs are distributed as those of untrained networks."""
        value, vector = np.linalg.eigh(self.nngp)
        f = vector @ (np.sqrt(np.maximum(value, 0))[:, None] * rng.standard_normal((len(value), columns)))
        return np.linalg.solve(self.features, f)

    def slope(self, theta, start, y, ridge):
        """Gradient of ½ |f(X) - y|² + ½ λ |θ - θ_0|²."""
        phi = self.features[: self.count]
        return phi.T @ (phi @ theta - y) + ridge * (theta - start)

    def descend(self, start, y, steps, rate, ridge):
        theta = start.copy()
        for _ in range(steps):
            theta = theta - rate * self.slope(theta, start, y, ridge)
        return self.features @ theta

    def flow(self, start, y, times, rate, ridge):
        def velocity(_, theta):
            return -rate * self.slope(theta.reshape(start.shape), start, y, ridge).ravel()

        found = integrate.solve_ivp(
            velocity, (0, max(times)), start.ravel(), "DOP853", t_eval=times, rtol=1e-12, atol=1e-13
        )
        assert found.success
        return np.stack([self.features @ theta.reshape(start.shape) for theta in found.y.T])

    def split(self, f):
        return f[..., : self.count, :], f[..., self.count :, :]

    def dynamics(self, ridge=0.0, y=None):
        return Dynamics(self.kernel, self.X, self.y if y is None else y, ridge)


def close(got, expected, tolerance=1e-8):
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.fixture(scope="module", params=KERNELS, ids=str)
def model(request):
    return Trained(KERNELS[request.param])


# -- one network, trained ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_gradient_descent_follows_a_loop_on_parameters(model, ridge):
    training = model.dynamics(ridge)
    for rate in (training.critical_learning_rate, 0.3 * training.largest_learning_rate):
        f0, f0_new = model.split(model.features @ model.start)
        steps = [0, 1, 2, 3, 50, 351]
        expected = np.stack([model.descend(model.start, model.y, s, rate, ridge) for s in steps])
        at_train, at_new = model.split(expected)
        close(training.follow(f0, steps=steps, learning_rate=rate), at_train)
        close(training.follow(f0, model.new, f0_new, steps=steps, learning_rate=rate), at_new)
        # The mean over initialisations is the network that starts at zero: the model is linear.
        mean = np.stack([model.descend(0 * model.start, model.y, s, rate, ridge) for s in steps])
        close(training.predict(steps=steps, learning_rate=rate), model.split(mean)[0])
        close(training.predict(model.new, steps=steps, learning_rate=rate), model.split(mean)[1])


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_gradient_flow_follows_an_ode_on_parameters(model, ridge):
    training, rate = model.dynamics(ridge), 0.4
    times = np.array([0.0, 0.1, 1.0, 20.0]) * training.largest_learning_rate / rate
    f0, f0_new = model.split(model.features @ model.start)
    at_train, at_new = model.split(model.flow(model.start, model.y, times, rate, ridge))
    close(training.follow(f0, time=times, learning_rate=rate), at_train)
    close(training.follow(f0, model.new, f0_new, time=times, learning_rate=rate), at_new)
    mean = model.flow(0 * model.start, model.y, times, rate, ridge)
    close(training.predict(time=times, learning_rate=rate), model.split(mean)[0])
    close(training.predict(model.new, time=times, learning_rate=rate), model.split(mean)[1])


def test_small_steps_approach_the_flow():
    """Gradient descent is Euler's method: half the step, half the distance."""
    training = (model := Trained(RNTK())).dynamics()
    time = 2 / training.eigenvalues[-1]
    expected = training.predict(model.new, time=time)
    gaps = [
        np.abs(training.predict(model.new, steps=n, learning_rate=time / n) - expected).max() for n in (400, 800, 1600)
    ]
    assert gaps[-1] < 1e-3
    np.testing.assert_allclose(np.divide(gaps[:-1], gaps[1:]), 2, rtol=0.02)


# -- all initialisations ----------------------------------------------------------------------------------------------


def dense_covariance(model, ridge, transient):
    """Var of f_0 - A f_0(X) over all points, by inverse and matrix power instead of an eigenbasis."""
    n = model.count
    shifted = model.ntk[:n, :n] + ridge * np.eye(n)
    A = model.ntk[:, :n] @ np.linalg.inv(shifted) @ (np.eye(n) - transient(shifted))
    change = np.eye(len(model.ntk)) - np.pad(A, ((0, 0), (0, len(model.ntk) - n)))
    return change @ model.nngp @ change.T


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_covariance_equals_the_dense_formula(model, ridge):
    training, n = model.dynamics(ridge), model.count
    rate = training.critical_learning_rate
    cases = [({"steps": s}, lambda M, s=s: np.linalg.matrix_power(np.eye(n) - rate * M, s)) for s in (0, 1, 6, 200)]
    cases.append(({"time": np.inf}, np.zeros_like))
    for moment, transient in cases:
        expected = dense_covariance(model, ridge, transient)
        for X, part in ((None, slice(0, n)), (model.new, slice(n, None))):
            mean, cov = training.predict(X, **moment, learning_rate=rate, return_cov=True)
            again, std = training.predict(X, **moment, learning_rate=rate, return_std=True)
            close(cov, expected[part, part], 1e-9)
            np.testing.assert_array_equal(cov, cov.T)
            np.testing.assert_allclose(again, mean, atol=1e-12)
            close(std**2, np.diagonal(expected)[part], 1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_moments_and_losses_match_an_ensemble_that_is_trained(ridge):
    model, networks = Trained(KERNELS["initial state"], seed=3), 4000
    training, steps = model.dynamics(ridge), 5
    rate = 0.8 * training.largest_learning_rate
    y = np.tile(model.y[:, :1], networks)
    start = model.draw(networks, np.random.default_rng(4))
    f = model.descend(start, y, steps, rate, ridge)
    one = Dynamics(model.kernel, model.X, model.y[:, 0], ridge)
    for X, targets, part in ((None, None, f[:N]), (model.new, model.y_new[:, 0], f[N:])):
        mean, cov = one.predict(X, steps=steps, learning_rate=rate, return_cov=True)
        variance = np.diagonal(cov)
        assert np.abs((part.mean(axis=1) - mean) / np.sqrt(variance / networks)).max() < 4
        error = np.sqrt((np.outer(variance, variance) + cov**2) / networks)
        assert np.abs((np.cov(part) - cov) / error).max() < 4
        losses = np.sum((part - (model.y[:, :1] if X is None else targets[:, None])) ** 2, axis=0) / 2
        found = one.loss(X, targets, steps=steps, learning_rate=rate)
        assert abs(losses.mean() - found.expected) < 4 * losses.std() / np.sqrt(networks)
        # The spread is far outside that error, so the line above would notice if it were missing.
        assert found.spread > 8 * losses.std() / np.sqrt(networks)


def test_losses_are_those_of_the_predictions(model):
    training, times = model.dynamics(0.3), np.array([[0.0, 0.01], [1.0, np.inf]])
    for X, y in ((None, model.y), (model.new, model.y_new)):
        mean, std = training.predict(X, time=times, return_std=True)
        found = training.loss(X, None if X is None else y, time=times)
        assert found.of_mean.shape == found.spread.shape == found.expected.shape == (2, 2)
        np.testing.assert_allclose(found.of_mean, np.sum((mean - y) ** 2, axis=(2, 3)) / 2, rtol=1e-9)
        np.testing.assert_allclose(found.spread, OUTPUTS * np.sum(std**2, axis=2) / 2, rtol=1e-9)
        np.testing.assert_allclose(found.expected, found.of_mean + found.spread)


def test_late_training_losses_keep_their_digits():
    """By the time the loss is 1e-200 the predictions have long been equal to the targets; the curve goes on."""
    training = Dynamics(NTK(), [[3.0]], [2.0])
    rate = 0.5 / training.eigenvalues[0]
    found = training.loss(steps=[300, 301], learning_rate=rate)
    np.testing.assert_allclose(found.of_mean, [2 * 0.25**300, 2 * 0.25**301], rtol=1e-10)


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "every step"])
def test_the_end_of_training_is_kernel_regression(name, ridge):
    model = Trained(KERNELS[name])
    training = model.dynamics(ridge)
    expected = RNTKRidge(model.kernel, alpha=ridge).fit(model.X, model.y).predict(model.new)
    rate = training.critical_learning_rate
    for moment in ({"time": np.inf}, {"time": 1e300}, {"steps": np.inf}, {"steps": 10**15}):
        close(training.predict(model.new, **moment, learning_rate=rate), expected, 1e-9)
    if ridge == 0:
        close(training.predict(time=np.inf), model.y, 1e-10)
        assert np.all(training.predict(time=np.inf, return_std=True)[1] == 0)
        if not getattr(model.kernel, "sigma_h", 0):  # then the same sequences, given as new ones, are as well known
            assert np.all(training.predict(model.X, time=np.inf, return_std=True)[1] < 1e-6)


def test_before_training_it_is_the_prior(model):
    training = model.dynamics(0.7)
    prior = np.split(np.diagonal(model.nngp), [model.count])
    for moment in ({"time": 0.0}, {"steps": 0}):
        for X, variance in zip((None, model.new), prior, strict=True):
            mean, std = training.predict(
                X, **moment, learning_rate=0.1 * training.largest_learning_rate, return_std=True
            )
            assert np.all(mean == 0)
            np.testing.assert_allclose(std**2, variance, rtol=1e-12)
    # A step before which nothing happens may also be one that leaves no error at all (1 - ημ = 0).
    one = Dynamics(NTK(), [[1.0]], [1.0])
    np.testing.assert_allclose(
        one.predict(steps=[0, 1, 2], learning_rate=1 / one.eigenvalues[0]), [[0], [1], [1]], atol=1e-15
    )


def test_where_both_kernels_are_proportional_training_is_bayesian_inference():
    """A deep linear network has Θ = (L + 1) 𝒦, and trained to the end it is a posterior, deviation included."""
    rng = np.random.default_rng(5)
    X, new, y = rng.standard_normal((5, 9)), rng.standard_normal((3, 9)), rng.standard_normal(5)
    kernel = NTK("identity", depth=2)
    np.testing.assert_allclose(kernel(X), 3 * kernel.nngp(X))
    for ridge in (0.0, 0.6):
        # Noise-free in 𝒦 for ridge 0; with a ridge only the mean is a posterior's, with noise λ/3.
        expected = RNTKGaussianProcessRegressor(kernel.nngp, noise=max(ridge / 3, 1e-13), optimizer=None).fit(X, y)
        mean, std = Dynamics(kernel, X, y, ridge).predict(new, time=np.inf, return_std=True)
        wanted_mean, wanted_std = expected.predict(new, return_std=True)
        np.testing.assert_allclose(mean, wanted_mean, atol=1e-9)
        if ridge == 0:
            np.testing.assert_allclose(std, wanted_std, atol=1e-7)
        else:
            assert np.all(std < wanted_std)  # training to a minimum doesn't know of the noise


# -- learning rates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 5.0])
def test_the_critical_learning_rate_has_the_smallest_worst_factor(ridge):
    training = Trained(RNTK()).dynamics(ridge)
    mu = training.eigenvalues + ridge
    best = optimize.minimize_scalar(
        lambda rate: np.abs(1 - rate * mu).max(),
        bounds=(0, training.largest_learning_rate),
        method="bounded",
        options={"xatol": 1e-14},
    )
    np.testing.assert_allclose(training.critical_learning_rate, best.x, rtol=1e-6)
    np.testing.assert_allclose(training.largest_learning_rate, 2 / np.linalg.eigvalsh(mu * np.eye(N))[-1])


def test_unstable_gradient_descent_is_refused():
    training = Trained(RNTK()).dynamics()
    limit = training.largest_learning_rate
    with pytest.raises(ValueError, match=f"diverges with learning_rate=.*largest_learning_rate={limit:.6g}"):
        training.predict(steps=3, learning_rate=1.01 * limit)
    with pytest.raises(ValueError, match="diverges"):
        training.loss(steps=0, learning_rate=2 * limit)
    training.predict(time=3, learning_rate=100 * limit)  # gradient flow has no such limit
    # At the limit itself errors along one eigenvector only change sign.
    vector = np.linalg.eigh(training.kernel(training.X))[1][:, -1]
    one = Dynamics(training.kernel, training.X, vector)
    close(one.predict(steps=[10**6, 10**6 + 1], learning_rate=limit), [0 * vector, 2 * vector], 1e-9)
    with pytest.raises(ValueError, match="has no limit"):
        one.predict(steps=np.inf, learning_rate=limit)


# -- numbers at the edges ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [False, True])
def test_the_functions_of_one_eigenvalue_are_exact(steps):
    """Against 50 digits: small and large ηsμ, ημ on both sides of one and up to two, even and odd steps."""
    mu = np.array([1e-300, 1e-15, 1e-6, 0.3, 1.0, 1.0 + 1e-9, 1.7, 2 - 1e-9, 2.0])
    at = np.array([0, 1, 2, 3, 1000, 10**6 + 1, 10**15])
    clock = Instants(at.astype(float), at.shape, 1.0, steps)
    gain, decay = clock.gain(mu), clock.decay(mu)
    with mpmath.workdps(50):
        for i, s in enumerate(at.tolist()):
            for j, m in enumerate(map(mpmath.mpf, mu.tolist())):
                left = (1 - m) ** s if steps else mpmath.exp(-s * m)
                # The exponent's own rounding is all that a late decay may suffer.
                slack = 1e-13 + 4e-16 * float(abs(mpmath.log(abs(left)))) if left else 1e-13
                expected = float(left) if abs(left) > 1e-300 else 0.0
                np.testing.assert_allclose(decay[i, j], expected, rtol=slack, atol=1e-300)
                np.testing.assert_allclose(gain[i, j], s if m < 1e-200 else float((1 - left) / m), rtol=1e-13)
    if steps:  # ημ = 2 up to rounding, as largest_learning_rate has it, neither grows nor shrinks
        assert Instants(np.array([1e18]), (), 1.0, True).decay(np.nextafter([2.0], 3)) == 1
    ends = Instants(np.array([np.inf]), (), 1.0, steps)
    np.testing.assert_array_equal(ends.decay(mu[:-1]), 0)
    np.testing.assert_array_equal(ends.gain(mu[:-1])[0], 1 / mu[:-1])


def test_duplicates_learn_the_mean_of_their_targets():
    model = Trained(RNTK(), outputs=1)
    y = model.y[:, 0]
    training = Dynamics(model.kernel, model.X + model.X, np.concatenate([y + 1, y - 1]))
    single = Dynamics(model.kernel, model.X, y)
    # Each sequence counts twice: the same path, twice as fast.
    times = np.array([0.0, 1e-3, 1.0, 1e4, 1e12, np.inf])
    expected = single.predict(model.new, time=2 * times, return_cov=True)
    for got, wanted in zip(training.predict(model.new, time=times, return_cov=True), expected, strict=True):
        close(got, wanted, 1e-8)
    assert training.critical_learning_rate == pytest.approx(single.critical_learning_rate / 2, rel=1e-9)
    late = np.logspace(6, 9, 13) / training.eigenvalues[-1]  # where directions that are rounding fade out
    close(training.predict(time=late), np.tile(single.predict(time=2 * late), 2), 1e-12)
    for steps in (10**6, 10**9, 10**15, np.inf):
        got = training.predict(model.new, steps=steps, learning_rate=training.critical_learning_rate)
        close(got, expected[0][-1], 1e-8)
    assert np.all(training.predict(time=np.inf, return_std=True)[1] < 1e-6)
    assert 0 <= training.loss(time=np.inf).spread < 1e-12
    assert training.loss(time=np.inf).of_mean == pytest.approx(N)  # ½ (1² + 1²) for each pair


def test_smooth_kernels_keep_their_digits_though_most_eigenvalues_are_rounding():
    rng = np.random.default_rng(0)
    X, new, y = rng.standard_normal((60, 1)), 1.5 * rng.standard_normal((9, 1)), rng.standard_normal(60)
    kernel = RNTK("sin", sigma_b=0.5)
    training = Dynamics(kernel, X, y)
    K, cross, a = kernel(X), kernel(new, X), np.zeros(60)
    assert np.all(training.eigenvalues >= 0)
    assert np.sum(training.eigenvalues < 60 * 2.2e-16 * training.eigenvalues[-1]) > 30
    rate = 0.5 * training.largest_learning_rate
    for _ in range(1000):
        a += rate * (y - K @ a)
    close(training.predict(new, steps=1000, learning_rate=rate), cross @ a, 1e-11)
    assert np.isfinite(training.predict(new, time=[1e8, 1e16, 1e300, np.inf], return_cov=True)[1]).all()


def test_an_input_that_says_nothing():
    """A zero sequence has a zero kernel: nothing is learned, and nothing is infinite but the learning rates."""
    training = Dynamics(RNTK(), [[0.0, 0.0]], [1.0])
    assert training.critical_learning_rate == training.largest_learning_rate == np.inf
    np.testing.assert_array_equal(training.predict([[1.0]], time=[0.0, 1.0, 1e308, np.inf]), 0)
    np.testing.assert_array_equal(training.loss(steps=[0, 10**9, np.inf], learning_rate=5.0).of_mean, 0.5)


def test_one_sequence_by_hand():
    kernel = RNTK()
    training = Dynamics(kernel, [[1.0, 2.0]], 3.0 * np.ones(1), ridge=0.5)
    k, c = kernel([[1.0, 2.0]])[0, 0], kernel([[0.5]], [[1.0, 2.0]])[0, 0]
    mean = training.predict([[0.5]], time=0.2, learning_rate=0.7)
    np.testing.assert_allclose(mean, [c * (1 - np.exp(-0.14 * (k + 0.5))) / (k + 0.5) * 3])


def test_single_precision_kernels_know_their_rounding():
    """A linear kernel of rank three: nine of twelve eigenvalues are rounding, far above that of float64."""
    rng = np.random.default_rng(6)
    X, new, y = rng.standard_normal((12, 3)), rng.standard_normal((4, 3)), rng.standard_normal(12)
    rough, fine = (Dynamics(RNTK("identity", dtype=dtype), X, y) for dtype in ("float32", "float64"))
    assert rough.critical_learning_rate == pytest.approx(fine.critical_learning_rate, rel=1e-3)
    times = [0.1, 1e6, np.inf]
    close(rough.predict(new, time=times), fine.predict(new, time=times), 1e-3)


def test_blocks_and_shapes(model, monkeypatch):
    training = model.dynamics(0.1)
    times = np.array([[0.1, 0.2, np.inf]])
    mean, std = training.predict(model.new, time=times, return_std=True)
    assert mean.shape == (1, 3, *model.y_new.shape)
    assert std.shape == mean.shape[:-1]
    assert training.predict(time=0.1).shape == model.y.shape
    flat = model.dynamics(0.1, y=model.y[:, 0])
    assert flat.predict(model.new, time=times).shape == std.shape
    np.testing.assert_allclose(flat.predict(model.new, time=times), mean[..., 0], rtol=1e-12)
    np.testing.assert_allclose(training.predict(model.new, time=0.2), mean[0, 1], rtol=1e-12)
    monkeypatch.setattr(process, "BLOCK_BYTES", 1)
    for got, expected in zip(training.predict(model.new, time=times, return_std=True), (mean, std), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


# -- what callers get wrong -------------------------------------------------------------------------------------------


def test_bad_training_data():
    X = [[1.0, 2.0], [3.0]]
    for arguments, message in [
        ((RNTK(), X, [1.0]), r"y has shape \(1,\), but there are 2 sequences"),
        ((RNTK(), X, [[[1.0]], [[2.0]]]), r"it must be \(2,\) or \(2, d\)"),
        ((RNTK(), X, np.empty((2, 0))), r"y has shape \(2, 0\)"),
        ((RNTK(), X, [1.0, np.nan]), "y of sequence 1 is not a finite number"),
        ((RNTK(), X, None), "requires y to be passed"),
        ((RNTK(), X, ["a", "b"]), "y must be an array of numbers"),
        ((RNTK(readout="sequence"), X, [1.0, 2.0]), "3 steps.*one after another"),
        ((RNTK(), X, [1.0, 2.0], -1.0), "ridge must be a non-negative number, not -1.0"),
        ((RNTK(), X, [1.0, 2.0], np.nan), "ridge must be"),
        ((RBF(), X, [1.0, 2.0]), "kernel must be an RNTK or NTK"),
        ((NTK(), X, [1.0, 2.0]), "compares vectors of one length"),
    ]:
        with pytest.raises(ValueError, match=message):
            Dynamics(*arguments)
    with pytest.raises(SequenceError):
        Dynamics(RNTK(), [[1.0, np.nan]], [1.0])


def test_bad_moments_and_outputs():
    training = Dynamics(None, [[1.0, 2.0], [3.0]], [1.0, 2.0])
    for arguments, message in [
        ({}, "either time= .* or steps="),
        ({"time": 1.0, "steps": 1}, "not both"),
        ({"time": -1.0}, "time must be numbers from 0 on.*not -1"),
        ({"time": [1.0, np.nan]}, "not nan"),
        ({"time": "soon"}, "time must be a number"),
        ({"time": []}, "time is empty"),
        ({"steps": [2, -3]}, "steps must be whole numbers.*not -3"),
        ({"steps": 0.5}, "whole numbers.*not 0.5"),
        ({"time": 1.0, "learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"time": 1.0, "learning_rate": np.nan}, "learning_rate must be"),
        ({"time": 1.0, "learning_rate": [0.1]}, "learning_rate must be"),
        ({"time": 1.0, "return_std": True, "return_cov": True}, "not for both"),
    ]:
        with pytest.raises(ValueError, match=message):
            training.predict(**arguments)
    with pytest.raises(ValueError, match="go together"):
        training.loss([[1.0]], time=1.0)
    with pytest.raises(ValueError, match="go together"):
        training.follow([0.0, 0.0], [[1.0]], time=1.0)
    with pytest.raises(ValueError, match=r"initial has shape \(2, 1\), but the training targets have shape \(2,\)"):
        training.follow([[0.0], [0.0]], time=1.0)
    with pytest.raises(ValueError, match=r"initial_new has shape \(2,\), but there are 1 sequences"):
        training.follow([0.0, 0.0], [[1.0]], [0.0, 0.0], time=1.0)
    with pytest.raises(ValueError, match="channels"):
        training.predict([[[1.0, 2.0]]], time=1.0)


def test_normalised_kernels_have_a_mean_only():
    model = Trained(RNTK(), outputs=1)
    kernel, y = RNTK(normalize=True), model.y[:, 0]
    training = Dynamics(kernel, model.X, y)
    expected = RNTKRidge(kernel, alpha=0.0).fit(model.X, y).predict(model.new)
    np.testing.assert_allclose(training.predict(model.new, time=np.inf), expected, rtol=1e-9)
    for call in (partial(training.predict, return_std=True), partial(training.predict, return_cov=True), training.loss):
        with pytest.raises(ValueError, match="normalize=True leaves no covariance"):
            call(time=1.0)


def test_it_is_frozen():
    kernel, y = RNTK(), np.array([1.0, 2.0])
    training = Dynamics(kernel, [[1.0, 2.0], [3.0]], y)
    before = training.predict([[1.0]], time=1.0)
    y[:] = 7.0
    kernel.sigma_b = 3.0
    np.testing.assert_array_equal(training.predict([[1.0]], time=1.0), before)
    np.testing.assert_array_equal(training.y, [1.0, 2.0])
    with pytest.raises(FrozenInstanceError):
        training.ridge = 1.0
    with pytest.raises(ValueError, match="read-only"):
        training.y[0] = 1.0
    assert "2 sequences" in repr(training)
