"""`kind="nngp"`: the covariance of untrained networks as a kernel of its own, wherever a tangent kernel goes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.svm import SVC

from rntk import NTK, RNTK, input_gradient, sensitivity

ENGINES = ("fused", "reference", "array")


def data(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(length) for length in (4, 1, 6, 3)]


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_kind_is_what_both_calls_nngp(engine, readout):
    X, Y = data(), data(1)[:2]
    settings = {"sigma_h": 0.3, "sigma_b": 0.1, "readout": readout, "engine": engine}
    kernel = RNTK(kind="nngp", **settings)
    for other in (None, Y):
        np.testing.assert_allclose(kernel(X, other), RNTK(**settings).both(X, other).nngp, rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(kernel(X, other), RNTK(**settings).nngp(X, other))
        np.testing.assert_array_equal(kernel.both(X, other).ntk, RNTK(**settings).both(X, other).ntk)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-13)
    normalized = RNTK(kind="nngp", normalize=True, bidirectional=True, **settings)(X)
    plain = RNTK(kind="nngp", bidirectional=True, **settings)(X)
    root = np.sqrt(np.diag(plain))
    np.testing.assert_allclose(normalized, plain / root / root[:, None], rtol=1e-12)


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_gradients_of_the_kind_are_differences_of_it(activation, readout):
    kernel = RNTK(activation, sigma_w=0.9, sigma_b=0.2, kind="nngp", readout=readout)
    X, h = data(), 1e-5
    _, gradient = kernel(X, eval_gradient=True)
    for p, unit in enumerate(np.eye(len(kernel.theta))):
        up, down = (kernel.clone_with_theta(kernel.theta + step * unit)(X) for step in (h, -h))
        np.testing.assert_allclose(gradient[:, :, p], (up - down) / (2 * h), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_sensitivity_of_the_kind_is_the_size_of_its_gradient(readout):
    X, kernel, h = data(), RNTK("erf", kind="nngp", readout=readout), 1e-5
    moved = [kernel([X[0] + step * unit for unit in np.eye(4)], [X[2]])[:, 0] for step in (h, -h)]
    np.testing.assert_allclose(input_gradient(kernel, X[0], X[2]), (moved[0] - moved[1]) / (2 * h), rtol=1e-6)
    found = sensitivity(kernel, X[:1], X[2:3])
    np.testing.assert_allclose(found.pairs[0], np.abs(input_gradient(kernel, X[0], X[2])), rtol=1e-12)
    assert not np.allclose(found.pairs[0], np.abs(input_gradient(RNTK("erf", readout=readout), X[0], X[2])))


def test_vectors_have_the_kind_too():
    X = np.random.default_rng(2).standard_normal((5, 3))
    np.testing.assert_array_equal(NTK(kind="nngp", depth=2)(X), NTK(depth=2).nngp(X))


def test_scikit_learn_takes_the_kind():
    X = np.random.default_rng(3).standard_normal((20, 6))
    y = X.sum(axis=1)
    kernel = RNTK(kind="nngp", sigma_b=0.1)
    assert clone(kernel) == kernel != RNTK(sigma_b=0.1)
    np.testing.assert_array_equal(
        SVC(kernel=kernel).fit(X, y > 0).predict(X), SVC(kernel=kernel.nngp).fit(X, y > 0).predict(X)
    )
    assert GaussianProcessRegressor(kernel, alpha=0.1).fit(X, y).kernel_.kind == "nngp"
    with pytest.raises(ValueError, match='kind must be "ntk" or "nngp"'):
        RNTK(kind="neural")(X)


def test_each_side_is_normalised_once(monkeypatch):
    """A stored side keeps its diagonal: another comparison computes that of the new sequences only."""
    from rntk.engine.fused import FusedEngine

    seen = []
    own = FusedEngine.own_kernels

    def counted(self, plan, batch):
        seen.append(len(batch))
        return own(self, plan, batch)

    monkeypatch.setattr(FusedEngine, "own_kernels", counted)
    kernel = RNTK(normalize=True, readout="mean")
    engine, (batch,) = kernel.read(data())
    plan = kernel.plan()
    side = engine.prepare(plan, batch)
    engine.pairs(side)
    for k in range(3):
        engine.pairs(engine.prepare(plan, kernel.read_batch(data(4)[k : k + 1])), side)
    assert seen == [4, 1, 1, 1]


def test_training_by_the_kind_is_regression_with_it():
    """Only the readout is trained then: at the end of training the mean is kernel ridge regression with 𝒦."""
    from rntk.theory import Dynamics

    X, new = data(5), data(6)[:2]
    y, kernel = np.arange(4.0), RNTK("erf", sigma_b=0.3, kind="nngp")
    expected = kernel(new, X) @ np.linalg.solve(kernel(X) + 0.1 * np.eye(4), y)
    trained = Dynamics(kernel, X, y, ridge=0.1)
    np.testing.assert_allclose(trained.predict(new, time=np.inf), expected, rtol=1e-10)
    assert not np.allclose(Dynamics(RNTK("erf", sigma_b=0.3), X, y, ridge=0.1).predict(new, time=np.inf), expected)


def test_every_learner_takes_the_kind():
    from rntk import (
        RNTKSVC,
        NystromFeatures,
        RNTKClassifier,
        RNTKGaussianProcessRegressor,
        RNTKRegressor,
        RNTKRidge,
        RNTKRidgeClassifier,
    )

    X, kernel = np.random.default_rng(7).standard_normal((16, 5)), RNTK(kind="nngp", normalize=True, readout="mean")
    values, labels = X[:, -1], (X[:, -1] > 0).astype(int)
    K = kernel(X)
    ridge = RNTKRidge(kernel, alpha=0.1).fit(X, values)
    np.testing.assert_allclose(ridge.predict(X), K @ np.linalg.solve(K + 0.1 * np.eye(16), values), rtol=1e-9)
    machine = SVC(kernel="precomputed").fit(K, labels)
    np.testing.assert_allclose(
        RNTKSVC(kernel).fit(X, labels).decision_function(X), machine.decision_function(K), rtol=1e-6
    )
    assert RNTKRidgeClassifier(kernel).fit(X, labels).kernel_.kind == "nngp"
    features = NystromFeatures(kernel, n_landmarks=16, random_state=0).fit_transform(X)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-6)
    process = RNTKGaussianProcessRegressor(RNTK(kind="nngp"), noise=0.1, optimizer=None).fit(X, values)
    plain = RNTK(kind="nngp")
    inverse = np.linalg.inv(plain(X) + 0.1 * np.eye(16))
    mean, std = process.predict(X[:3], return_std=True)
    np.testing.assert_allclose(mean, plain(X[:3], X) @ inverse @ values, rtol=1e-8)
    spread = plain.diag(X[:3]) - np.einsum("ij,jk,ik->i", plain(X[:3], X), inverse, plain(X[:3], X))
    np.testing.assert_allclose(std**2, spread, rtol=1e-6)
    for learner, y in ((RNTKClassifier, labels), (RNTKRegressor, values)):
        tried = learner(start=kernel, progress=False).fit(X, y).cv_results_["params"]
        assert tried[0]["kind"] == "nngp"
