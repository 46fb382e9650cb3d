"""Kernels as scikit-learn objects: the `Kernel` protocol, Gaussian processes, SVMs, searches, pickles, imports."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from io import BytesIO

import joblib
import numpy as np
import pytest
from numpy import array  # noqa: F401  (repr of per-layer sigmas evaluates with it)
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import DBSCAN
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from rntk import NTK, RNTK, RNTKRidge, SequenceBatch, SequenceError, as_batch, gram
from rntk.activations import leaky_relu
from rntk.kernels import pairwise

KERNELS = {
    "RNTK": RNTK(),
    "RNTK, sigmas": RNTK(sigma_w=1.2, sigma_b=0.1, sigma_h=0.3, sigma_v=0.5),
    "RNTK, by layer": RNTK(sigma_w=[1.2, 0.9], sigma_b=[0.1, 0.2], depth=2),
    "RNTK, options": RNTK("erf", readout="mean", bidirectional=True, tied=False, parameterization="standard", n_jobs=1),
    "RNTK, fixed": RNTK(sigma_w_bounds="fixed", sigma_u_bounds=(0.5, 2.0), sigma_b=0.2),
    "RNTK, activation": RNTK(leaky_relu(0.2), normalize=True),
    "NTK": NTK("erf", sigma_w=1.3, sigma_b=0.1, depth=2),
}
for_every_kernel = pytest.mark.parametrize("name", KERNELS)


def equal_lengths(seed: int, n: int = 24, steps: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, steps))


def ragged(seed: int, n: int = 40) -> tuple[list[np.ndarray], np.ndarray]:
    """Sequences of 3 to 9 steps whose class is the sign of their sum."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((length, 1)) for length in rng.integers(3, 10, size=n)]
    y = np.arange(n) % 2
    X = [x + (0.6 if label else -0.6) for x, label in zip(X, y, strict=True)]
    return X, y


# The protocol -----------------------------------------------------------------------------------------------


@for_every_kernel
def test_clone_and_parameters(name):
    kernel = KERNELS[name]
    copy = clone(kernel)
    assert copy is not kernel
    assert copy == kernel
    assert copy.get_params().keys() == kernel.get_params().keys()
    X = equal_lengths(1, 4)
    np.testing.assert_array_equal(copy(X), kernel(X))
    copy.set_params(sigma_v=0.25)
    assert copy.sigma_v == 0.25
    assert kernel.sigma_v != 0.25
    with pytest.raises(ValueError, match="no_such"):
        copy.set_params(no_such=1)


def test_constructors_only_store():
    wrong = {"sigma_w": -1, "depth": "deep", "readout": 3, "activation": object()}
    assert all(RNTK(**wrong).get_params()[key] is value for key, value in wrong.items())


@for_every_kernel
def test_theta_round_trip(name):
    kernel = clone(KERNELS[name])
    theta = kernel.theta
    assert theta.shape == (kernel.n_dims,)
    assert kernel.bounds.shape == (kernel.n_dims, 2)
    assert np.all(kernel.bounds[:, 0] <= theta)
    assert np.all(theta <= kernel.bounds[:, 1])
    moved = kernel.clone_with_theta(theta + 0.1)
    np.testing.assert_allclose(moved.theta, theta + 0.1, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(kernel.theta, theta)
    kernel.theta = theta
    np.testing.assert_allclose(kernel.theta, theta, rtol=1e-14, atol=1e-15)
    X = equal_lengths(2, 4)
    np.testing.assert_allclose(moved.clone_with_theta(theta)(X), kernel(X), rtol=1e-12)
    K, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (*K.shape, kernel.n_dims)


def free(kernel) -> dict[str, int]:
    return {each.name: each.n_elements for each in kernel.hyperparameters if not each.fixed}


def test_a_sigma_of_zero_is_fixed():
    assert set(free(RNTK())) == {"sigma_w", "sigma_u", "sigma_v"}
    assert set(free(RNTK(sigma_b=0.1, sigma_h=0.1))) == {"sigma_w", "sigma_u", "sigma_v", "sigma_b", "sigma_h"}
    assert set(free(RNTK(sigma_w_bounds="fixed"))) == {"sigma_u", "sigma_v"}
    assert free(RNTK(sigma_b=[0.1, 0.2], depth=2))["sigma_b"] == 2
    assert "sigma_b" not in free(RNTK(sigma_b=[0.1, 0.0], depth=2))  # all or nothing
    assert set(free(NTK())) == {"sigma_w", "sigma_v"}


def test_theta_is_log_sigma_in_the_order_of_the_gradient():
    kernel = RNTK(sigma_w=[1.1, 0.9], sigma_b=0.2, depth=2)
    X = equal_lengths(3, 5)
    _, gradient = kernel(X, eval_gradient=True)
    h = 1e-5
    for p in range(kernel.n_dims):
        step = np.zeros(kernel.n_dims)
        step[p] = h
        up, down = (kernel.clone_with_theta(kernel.theta + way * step)(X) for way in (1, -1))
        np.testing.assert_allclose(gradient[:, :, p], (up - down) / (2 * h), rtol=1e-7, atol=1e-9)
    names = [each.name for each in kernel.hyperparameters]
    assert names == sorted(names)  # scikit-learn's own order


@pytest.mark.parametrize("name", ["RNTK", "RNTK, sigmas", "RNTK, by layer", "RNTK, options", "NTK"])
def test_repr_evaluates_to_the_kernel(name):
    kernel = KERNELS[name]
    assert eval(repr(kernel)) == kernel


def test_repr_is_short():
    assert repr(RNTK()) == "RNTK()"
    assert repr(RNTK("erf", depth=3)) == "RNTK(activation='erf', depth=3)"
    assert "leaky_relu(0.2)" in repr(RNTK(leaky_relu(0.2)))


class Scaled(RNTK):
    """A kernel of a user's, who computes its values himself."""

    def __init__(self, scale, sigma_b=0.0):
        super().__init__(sigma_b=sigma_b)
        self.scale = scale

    def __call__(self, X, Y=None, eval_gradient=False):
        return self.scale * super().__call__(X, Y)

    def diag(self, X):
        return self.scale * super().diag(X)


def test_what_a_subclass_computes_counts_everywhere():
    X, kernel = equal_lengths(4, 8), Scaled(3.0)
    K = 3 * RNTK()(X)
    for found in (
        pairwise.of(kernel).gram(as_batch(X)),
        gram.compute(kernel, X),
        pairwise.of(kernel + kernel).gram(as_batch(X)) / 2,
    ):
        np.testing.assert_allclose(found, K, rtol=1e-14)
    side = pairwise.of(kernel).prepare(as_batch(X))
    np.testing.assert_allclose(pairwise.of(kernel).diagonal(side), np.diag(K), rtol=1e-14)
    assert repr(kernel) == "Scaled(scale=3.)"


def test_a_kernel_has_real_values():
    with pytest.raises(ValueError, match="must give real numbers, and these are complex128"):
        RNTKRidge(lambda A, B: A @ B.T + 0j).fit(equal_lengths(4, 8), np.arange(8.0))


def test_composition_with_other_kernels():
    X = equal_lengths(4, 8)
    base = RNTK(sigma_b=0.1)
    K = base(X)
    np.testing.assert_allclose((base + WhiteKernel(0.3))(X), K + 0.3 * np.eye(8), rtol=1e-14)
    np.testing.assert_allclose((base * ConstantKernel(2.5))(X), 2.5 * K, rtol=1e-14)
    np.testing.assert_allclose((2.5 * base)(X), 2.5 * K, rtol=1e-14)
    np.testing.assert_allclose((base**2)(X), K**2, rtol=1e-14)
    np.testing.assert_allclose((base + RNTK("erf"))(X), K + RNTK("erf")(X), rtol=1e-14)
    composed = ConstantKernel(2.0) * base**2 + WhiteKernel(0.1)
    value, gradient = composed(X, eval_gradient=True)
    assert gradient.shape == (8, 8, composed.n_dims)
    np.testing.assert_allclose(composed.diag(X), np.diag(value), rtol=1e-12)
    assert not composed.is_stationary()
    assert composed.requires_vector_input is False


def test_composition_on_ragged_sequences():
    X, _ = ragged(5, 6)
    kernel = ConstantKernel(2.0) * RNTK() + WhiteKernel(0.1)
    np.testing.assert_allclose(kernel(X), 2 * RNTK()(X) + 0.1 * np.eye(6), rtol=1e-14)


# Gaussian processes -----------------------------------------------------------------------------------------


def target(X: np.ndarray) -> np.ndarray:
    return np.sin(X.sum(axis=1)) + 0.1 * np.random.default_rng(6).standard_normal(len(X))


def test_gaussian_process_improves_its_evidence():
    X = equal_lengths(7)
    y = target(X)
    model = GaussianProcessRegressor(RNTK(sigma_b=0.1) + WhiteKernel(0.5), random_state=0)
    with warnings.catch_warnings():
        # scikit-learn reports optima that lie on a bound; where they lie is not the question here.
        warnings.simplefilter("ignore")
        model.fit(X, y)
    start = model.log_marginal_likelihood(model.kernel.theta)
    assert model.log_marginal_likelihood_value_ > start + 1
    mean, deviation = model.predict(X[:5], return_std=True)
    assert np.isfinite(mean).all()
    assert (deviation > 0).all()


@pytest.mark.parametrize("kernel", [RNTK(sigma_b=0.1), RNTK("erf", sigma_w=1.1, sigma_b=0.2, depth=2, normalize=True)])
def test_gradient_of_the_evidence(kernel):
    X = equal_lengths(8, 12)
    model = GaussianProcessRegressor(kernel + WhiteKernel(0.3), optimizer=None).fit(X, target(X))
    theta = model.kernel_.theta
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    h = 1e-4
    for p in range(theta.size):
        step = np.zeros(theta.size)
        step[p] = h
        values = [model.log_marginal_likelihood(theta + k * step) for k in (2, 1, -1, -2)]
        expected = (-values[0] + 8 * values[1] - 8 * values[2] + values[3]) / (12 * h)
        assert gradient[p] == pytest.approx(expected, rel=1e-5, abs=1e-7)


# Support vector machines and searches -----------------------------------------------------------------------


def test_kernel_as_the_function_of_an_svm():
    X = equal_lengths(10, 40)
    y = (X.sum(axis=1) > 0).astype(int)
    model = SVC(kernel=RNTK(sigma_b=0.1)).fit(X, y)
    assert model.score(X, y) > 0.9


class SequenceSVC(ClassifierMixin, BaseEstimator):
    """An SVM on ragged lists: scikit-learn's own wants arrays, so the Gram matrix goes in."""

    def __init__(self, kernel=None, C=1.0):
        self.kernel = kernel
        self.C = C

    def fit(self, X, y):
        self.X_ = X
        self.classes_ = np.unique(y)
        self.model_ = SVC(kernel="precomputed", C=self.C).fit(self.kernel(X), y)
        return self

    def predict(self, X):
        return self.model_.predict(self.kernel(X, self.X_))


def test_cross_validation_and_search_on_ragged_sequences():
    X, y = ragged(11)
    scores = cross_val_score(SequenceSVC(RNTK(sigma_b=0.1, normalize=True)), X, y, cv=4)
    assert scores.mean() > 0.8
    grid = {"kernel__sigma_w": [0.5, 1.4], "kernel__activation": ["relu", "erf"], "C": [1.0, 10.0]}
    search = GridSearchCV(SequenceSVC(RNTK(normalize=True)), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_params_["kernel__sigma_w"] in (0.5, 1.4)


# Pickles ----------------------------------------------------------------------------------------------------


@for_every_kernel
def test_kernels_survive_pickle_and_joblib(name):
    kernel = KERNELS[name]
    X = equal_lengths(12, 4)
    expected = kernel(X)
    buffer = BytesIO()
    joblib.dump(kernel, buffer)
    buffer.seek(0)
    for copy in (pickle.loads(pickle.dumps(kernel)), joblib.load(buffer)):
        assert copy == kernel
        np.testing.assert_array_equal(copy(X), expected)


def test_kernels_work_in_other_processes():
    X, _ = ragged(13, 5)
    kernels = [RNTK(), RNTK("erf", sigma_b=0.1)]
    results = joblib.Parallel(n_jobs=2)(joblib.delayed(kernel)(X) for kernel in kernels)
    for kernel, K in zip(kernels, results, strict=True):
        np.testing.assert_array_equal(K, kernel(X))


def test_sequence_batches_survive_pickle():
    X, _ = ragged(14, 5)
    batch = as_batch(X)
    copy = pickle.loads(pickle.dumps(batch))
    assert isinstance(copy, SequenceBatch)
    np.testing.assert_array_equal(copy.values, batch.values)
    np.testing.assert_array_equal(copy.offsets, batch.offsets)
    np.testing.assert_array_equal(RNTK()(copy), RNTK()(batch))


# Imports and doctests ---------------------------------------------------------------------------------------


def test_import_is_fast_and_light():
    code = (
        "import sys, time; start = time.perf_counter(); import rntk; spent = time.perf_counter() - start;"
        "heavy = [name for name in ('sklearn', 'numba', 'jax', 'scipy', 'pandas') if name in sys.modules];"
        "print(spent, *heavy)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    assert all(run[1:] == [] for run in runs)
    assert min(float(run[0]) for run in runs) < 1.0


def test_everything_promised_is_there():
    import rntk

    for name in rntk.__all__:
        assert getattr(rntk, name) is not None
    assert set(rntk.__all__) <= set(dir(rntk))
    with pytest.raises(AttributeError, match="no_such"):
        _ = rntk.no_such


def test_svc_takes_a_ragged_list_as_it_is():
    rng = np.random.default_rng(8)
    labels = np.arange(24) % 2
    X = [rng.standard_normal(rng.integers(5, 15)) + 1.5 * label for label in labels]
    model = SVC(kernel=RNTK(sigma_b=0.1), C=10.0).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_allclose(
        model.decision_function(X[:3]),
        SVC(kernel="precomputed", C=10.0)
        .fit(RNTK(sigma_b=0.1)(X, X), labels)
        .decision_function(RNTK(sigma_b=0.1)(X[:3], X)),
    )
    assert cross_val_score(SVC(kernel=RNTK(sigma_b=0.1), C=10.0), X, labels, cv=3).mean() > 0.8


# -- neighbours --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RNTK(), RNTK(normalize=True, readout="mean"), NTK(depth=2, sigma_b=0.3)])
def test_neighbours_by_the_distance_of_a_kernel(kernel):
    X = np.random.default_rng(0).standard_normal((24, 5))
    y = (X[:, -1] > 0).astype(int)
    K = kernel(X)
    wanted = np.sqrt(np.diag(K)[:, None] + np.diag(K) - 2 * K)
    np.testing.assert_allclose(kernel.distance(X), wanted, atol=1e-7)
    np.testing.assert_allclose(kernel.distance(X[:4], X), wanted[:4], atol=1e-6)
    assert kernel.distance(X[0], X[1]) == pytest.approx(wanted[0, 1])
    model = clone(KNeighborsClassifier(3, metric=kernel.distance)).fit(X[:16], y[:16])
    nearest = np.argsort(wanted[16:, :16], axis=1)[:, :3]
    np.testing.assert_array_equal(model.kneighbors(X[16:])[1], nearest)
    whole = KNeighborsClassifier(3, metric="precomputed").fit(kernel.distance(X[:16]), y[:16])
    np.testing.assert_array_equal(whole.predict(kernel.distance(X[16:], X[:16])), model.predict(X[16:]))


@pytest.mark.parametrize("algorithm", ["auto", "brute"])
def test_a_kernel_as_a_metric_is_its_distance(algorithm):
    X, kernel = np.random.default_rng(0).standard_normal((12, 5)), RNTK(sigma_b=0.1)
    y = np.arange(12) % 2
    model = KNeighborsClassifier(3, metric=kernel, algorithm=algorithm).fit(X, y)
    wanted = KNeighborsClassifier(3, metric=kernel.distance, algorithm=algorithm).fit(X, y)
    for found, expected in zip(model.kneighbors(X), wanted.kneighbors(X), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_array_equal(
        DBSCAN(2.0, metric=kernel).fit_predict(X), DBSCAN(2.0, metric=kernel.distance).fit_predict(X)
    )


def test_a_kernel_of_two_sequences_is_no_distance_elsewhere():
    X = np.random.default_rng(0).standard_normal((8, 5))
    with pytest.raises(SequenceError, match=r"kernel\.distance"):
        RNTK()(X[0], X[1])
    with pytest.raises(SequenceError, match=r"kernel\.distance"):  # its distance is not the sum of theirs
        KNeighborsClassifier(1, metric=RNTK() + RNTK(depth=2)).fit(X, np.arange(8) % 2).predict(X)
    with pytest.raises(ValueError, match="no single value"):
        RNTK(readout="sequence").distance(X)


def test_notebooks_show_a_table_of_parameters():
    shown = RNTK("erf", sigma_b=0.25)._repr_html_()
    assert "<tr><td>sigma_b</td><td><b>0.25</b></td></tr>" in shown
    assert "<tr><td>depth</td><td>1</td></tr>" in shown
    assert "&lt;function" in RNTK(lambda x: x)._repr_html_()
    assert "sigma_b=0.25" in RNTKRidge(RNTK(sigma_b=0.25))._repr_html_()


@pytest.mark.parametrize("progress", ["False", "no", 0, 1])
def test_progress_is_true_or_false(progress):
    with pytest.raises(ValueError, match="progress must be True or False"):
        RNTK(progress=progress)([[1.0]])


def test_equal_kernels_have_one_hash():
    assert RNTK(sigma_w=[1.0, 2.0], depth=2) == RNTK(sigma_w=[1.0, 2.0], depth=2)
    assert len({RNTK(), RNTK(), NTK()}) == 2
