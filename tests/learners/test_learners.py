"""The learners: what they compute, what they keep, and how they sit among scikit-learn's tools."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from helpers.data import waves
from rntk import (
    NTK,
    RNTK,
    RNTKSVC,
    RNTKClassifier,
    RNTKGaussianProcessRegressor,
    RNTKRidge,
    RNTKRidgeClassifier,
    SequenceBatch,
    as_batch,
)
from rntk.kernels import pairwise
from rntk.learners import base
from rntk.preprocessing import UnitNorm, ZNormalize

KERNEL = RNTK(normalize=True, readout="mean")


# -- support vector machine --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifier_is_an_svm_on_the_gram_matrix(classes):
    X, y = waves(0, n=30, classes=classes)
    new, _ = waves(1, n=7, classes=classes)
    model = RNTKSVC(KERNEL, C=10).fit(X, y)
    svm = SVC(kernel="precomputed", C=10).fit(KERNEL(X), y)
    np.testing.assert_array_equal(model.predict(new), svm.predict(KERNEL(new, X)))
    np.testing.assert_allclose(model.decision_function(new), svm.decision_function(KERNEL(new, X)), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 4, 6])
def test_votes_are_those_of_libsvm(classes):
    """Labels at random, so that classes often have equally many votes."""
    X, _ = waves(0, n=60)
    new, _ = waves(1, n=60)
    y = np.random.default_rng(0).integers(classes, size=60)
    model = RNTKSVC(KERNEL, C=0.3).fit(X, y)
    svm = SVC(kernel="precomputed", C=0.3).fit(KERNEL(X), y)
    K = KERNEL(new, X)
    np.testing.assert_array_equal(model.predict(new), svm.predict(K))
    np.testing.assert_allclose(model.decision_function(new), svm.decision_function(K), atol=1e-12)
    np.testing.assert_array_equal(model.support_, svm.support_)


def test_only_support_vectors_are_kept_and_evaluated():
    X, y = waves(2, n=40)
    seen = []

    def kernel(A, B):
        seen.append((len(A), len(B)))
        return np.asarray(KERNEL(A, B))

    model = RNTKSVC(kernel, C=100).fit(X, y)
    assert len(model.support_) < 40
    assert len(model.sequences_) == len(model.support_)
    seen.clear()
    model.predict(X[:5])
    assert seen == [(5, len(model.support_))]


def test_class_weights_and_sample_weights_reach_libsvm():
    X, y = waves(3)
    K, weight = KERNEL(X), np.random.default_rng(0).uniform(0.1, 3, len(y))
    new = KERNEL(X[:4], X)
    heavy = RNTKSVC(KERNEL, class_weight={0: 1, 1: 9}, C=0.05).fit(X, y, weight)
    svm = SVC(kernel="precomputed", C=0.05, class_weight={0: 1, 1: 9}).fit(K, y, weight)
    np.testing.assert_allclose(heavy.decision_function(X[:4]), svm.decision_function(new), atol=1e-10)


def test_labels_may_be_words():
    X, y = waves(4)
    words = np.array(["slow", "fast"])[y]
    model = RNTKSVC(KERNEL, C=10).fit(X, words)
    assert list(model.classes_) == ["fast", "slow"]
    assert model.score(X, words) == 1.0


# -- ridge regression --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, 3])
def test_the_regressor_is_kernel_ridge(columns):
    X, _ = waves(5, channels=2)
    new, _ = waves(6, n=5, channels=2)
    rng = np.random.default_rng(0)
    y = rng.standard_normal(24 if columns is None else (24, columns))
    weight = rng.uniform(0.2, 2, 24)
    ours = RNTKRidge(KERNEL, alpha=0.3).fit(X, y, weight).predict(new)
    theirs = KernelRidge(alpha=0.3, kernel="precomputed").fit(KERNEL(X), y, weight).predict(KERNEL(new, X))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_without_ridge_it_interpolates_and_duplicates_are_averaged():
    X, _ = waves(7, n=10)
    y = np.random.default_rng(0).standard_normal(10)
    np.testing.assert_allclose(RNTKRidge(KERNEL, alpha=0.0).fit(X, y).predict(X), y, atol=1e-6)
    twice = RNTKRidge(KERNEL, alpha=0.0).fit(X + X, np.concatenate([y, y + 2]))
    np.testing.assert_allclose(twice.predict(X), y + 1, atol=1e-5)


def test_one_ridge_per_target():
    X, _ = waves(8)
    y = np.random.default_rng(0).standard_normal((24, 2))
    both = RNTKRidge(KERNEL, alpha=[0.1, 2.0]).fit(X, y).predict(X)
    for column, alpha in enumerate((0.1, 2.0)):
        alone = RNTKRidge(KERNEL, alpha=alpha).fit(X, y[:, column]).predict(X)
        np.testing.assert_allclose(both[:, column], alone, rtol=1e-10)


def test_sequences_of_no_weight_are_not_kept():
    X, _ = waves(9, n=12)
    y = np.random.default_rng(0).standard_normal(12)
    weight = np.where(np.arange(12) < 9, 1.0, 0.0)
    model = RNTKRidge(KERNEL, alpha=0.1).fit(X, y, weight)
    assert len(model.sequences_) == 9
    np.testing.assert_allclose(model.predict(X), RNTKRidge(KERNEL, alpha=0.1).fit(X[:9], y[:9]).predict(X))


# -- any kernel --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [None, NTK(depth=2), RBF(2.0), ConstantKernel(2.0) * RBF(2.0) + WhiteKernel(0.1), RNTK() + WhiteKernel(0.1)],
    ids=["default", "NTK", "RBF", "sum of scikit-learn's", "sum with RNTK"],
)
def test_kernels_of_both_libraries(kernel):
    X = np.random.default_rng(0).standard_normal((12, 5))
    y = X[:, 0] - X[:, 3]
    model = RNTKRidge(kernel, alpha=1e-3).fit(X, y)
    real = RNTK() if kernel is None else kernel
    wanted = real(X[:3], X) @ np.linalg.solve(real(X) + 1e-3 * np.eye(12), y)
    np.testing.assert_allclose(model.predict(X[:3]), wanted, rtol=1e-7)


def test_functions_get_what_they_can_read():
    shapes = []

    def kernel(A, B):
        shapes.append([np.shape(a) for a in A] if isinstance(A, list) else np.shape(A))
        return np.eye(len(A), len(B))

    batch = as_batch(np.zeros((3, 4)))
    base.gram(kernel, batch)
    base.gram(kernel, as_batch(np.zeros((3, 4, 2))))
    base.gram(kernel, as_batch([np.zeros(2), np.zeros(3)]))
    base.gram(kernel, as_batch([np.zeros((2, 2)), np.zeros((3, 2))]))
    assert shapes == [(3, 4), (3, 4, 2), [(2,), (3,)], [(2, 2), (3, 2)]]
    found = pairwise.of(kernel)
    np.testing.assert_array_equal(found.diagonal(found.prepare(batch)), np.ones(3))


@pytest.mark.parametrize(
    "kernel, message",
    [
        ("rbf", "kernel must be"),
        (lambda A, B: np.zeros((1, 1)), "shape"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite"),
        (RNTK(readout="sequence"), 'readout="sequence"'),
        (RBF(), "vectors of one length"),
        (NTK(), "vectors of one length"),
    ],
)
def test_kernels_that_do_not_fit_are_refused(kernel, message):
    X, y = waves(10)
    with pytest.raises(ValueError, match=message):
        RNTKRidge(kernel).fit(X, y)


def test_blocks_do_not_change_predictions(monkeypatch):
    X, y = waves(11, n=20)
    shapes = []

    def kernel(A, B):
        shapes.append((len(A), len(B)))
        return np.asarray(KERNEL(A, B))

    model = RNTKRidge(kernel).fit(X, y)
    whole = model.predict(X)
    monkeypatch.setattr(base, "BLOCK_BYTES", 3 * 8 * 20)
    shapes.clear()
    np.testing.assert_allclose(model.predict(X), whole, rtol=1e-12)
    assert shapes == [(3, 20)] * 6 + [(2, 20)]


class Counted(pairwise.Pairwise):
    """Any kernel, and how many sequences were prepared."""

    def __init__(self, kernel, prepared):
        super().__init__(kernel)
        self.inner, self.prepared = pairwise.of(kernel), prepared

    def prepare(self, batch):
        self.prepared.append(len(batch))
        return self.inner.prepare(batch)

    def pairs(self, a, b=None):
        return self.inner.pairs(a, b)

    def diagonal(self, a):
        return self.inner.diagonal(a)

    def nbytes(self, a):
        return self.inner.nbytes(a)


@pytest.mark.parametrize(
    "learner",
    [RNTKSVC(KERNEL), RNTKRidge(KERNEL), RNTKRidgeClassifier(KERNEL), RNTKGaussianProcessRegressor(KERNEL)],
    ids=lambda each: type(each).__name__,
)
def test_a_prediction_prepares_new_sequences_only(learner, monkeypatch):
    X, y = waves(11, n=20)
    prepared = []
    model = clone(learner).fit(X, y)
    expected = model.predict(X[:5])
    side = model._training()._side
    monkeypatch.setattr(model._training(), "pairwise", Counted(model.kernel_, prepared))
    np.testing.assert_array_equal(model.predict(X[:5]), expected)
    assert prepared == [5] and model._training()._side is side
    again = pickle.loads(pickle.dumps(model))  # without it, and makes it again
    assert "_prepared" not in again.__dict__
    np.testing.assert_array_equal(again.predict(X[:5]), expected)
    model.fit(X[:10], y[:10])
    assert model._training()._side is None


# -- scikit-learn's tools on ragged lists ------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
def test_cross_validation_grid_search_and_pipelines(channels):
    X, y = waves(12, n=30, channels=channels)
    scores = cross_val_score(RNTKSVC(KERNEL, C=10), X, y, cv=3)
    assert scores.shape == (3,) and scores.mean() > 0.8
    search = GridSearchCV(
        make_pipeline(ZNormalize(), RNTKSVC(KERNEL)),
        {"rntksvc__C": [1, 10], "rntksvc__kernel__sigma_w": [1.0, 1.4]},
        cv=StratifiedKFold(3),
    ).fit(X, y)
    assert set(search.best_params_) == {"rntksvc__C", "rntksvc__kernel__sigma_w"}
    assert search.score(X, y) > 0.8
    assert cross_val_score(make_pipeline(UnitNorm(), RNTKRidge(KERNEL, alpha=0.01)), X, y, cv=3).shape == (3,)


@pytest.mark.parametrize("learner", [RNTKSVC(KERNEL, C=3), RNTKRidge(KERNEL, alpha=0.2)])
def test_clone_pickle_and_joblib(learner, tmp_path):
    X, y = waves(13)
    fitted = clone(learner).fit(X, y)
    wanted = fitted.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), wanted)
    joblib.dump(fitted, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(X), wanted)
    assert not hasattr(clone(fitted), "kernel_")
    assert clone(fitted).get_params()["kernel"] == learner.kernel


def test_fitting_leaves_parameters_alone_and_batches_are_fine():
    X, y = waves(14)
    kernel = RNTK(normalize=True)
    model = RNTKSVC(kernel).fit(SequenceBatch.from_aeon([x.T for x in X]), y)
    assert model.kernel is kernel and model.kernel_ is not kernel
    np.testing.assert_array_equal(model.predict(X), RNTKSVC(kernel).fit(X, y).predict(X))


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [RNTKSVC(), RNTKRidge()])
def test_mistakes_are_named(learner):
    X, y = waves(15, n=6, channels=2)
    with pytest.raises(ValueError, match=r"6 sequences and 5|there are 6 sequences"):
        learner.fit(X, y[:5])
    with pytest.raises(ValueError, match=r"sequence 1 has .* NaN"):
        learner.fit([X[0], np.full_like(X[1], np.nan), *X[2:]], y)
    with pytest.raises(ValueError, match="sequence 2"):
        learner.fit([X[0], X[1], np.empty((0, 2)), *X[3:]], y)
    with pytest.raises(ValueError, match="y to be passed"):
        learner.fit(X, None)
    learner.fit(X, y)
    with pytest.raises(ValueError, match=r"3 channels.*expecting 2"):
        learner.predict([np.zeros((4, 3))])


@pytest.mark.parametrize("learner", [RNTKSVC(), RNTKRidge(), RNTKGaussianProcessRegressor(optimizer=None)])
def test_a_fit_that_fails_leaves_the_learner_as_it_was(learner):
    X, y = waves(15, n=6, channels=2)
    learner = clone(learner).fit(X, y)
    before = learner.predict(X)
    with pytest.raises(ValueError, match="6"):
        learner.fit([x[:, :1] for x in X], y[:5])
    np.testing.assert_array_equal(learner.predict(X), before)


def test_one_class_is_refused():
    X, y = waves(16)
    with pytest.raises(ValueError, match="only one class"):
        RNTKSVC().fit(X, np.zeros(len(y)))


@pytest.mark.parametrize("learner", [RNTKSVC(), RNTKClassifier()])
@pytest.mark.parametrize("nothing", [None, "", "  ", float("nan"), pd.NA])
def test_a_class_without_a_name_is_refused(learner, nothing):
    X, _ = waves(16, n=6)
    labels = np.array(["a", "b", "a", nothing, "b", nothing], dtype=object)
    with pytest.raises(ValueError, match=r"2 of 6 labels are missing .* at positions 3, 5;"):
        learner.fit(X, labels)


@pytest.mark.parametrize("learner", [RNTKSVC(), RNTKClassifier()])
def test_a_class_without_sequences_is_no_class(learner):
    """A category that no sequence has (pandas keeps it when rows are dropped) is neither learned nor predicted."""
    X, _ = waves(16, n=6)
    learner = clone(learner).fit(X, pd.Categorical(list("abaabb"), categories=["a", "b", "empty"]))
    assert list(learner.classes_) == ["a", "b"]
    assert set(learner.predict(X)) <= {"a", "b"}
    # A label that was never seen is never predicted, and counts as a miss.
    assert learner.score(X, ["never"] * 6) == 0.0


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, [[1.0]], "a", [1.0, "a"], 1j])
def test_a_ridge_must_not_be_negative(alpha):
    X, y = waves(17)
    with pytest.raises(ValueError, match="alpha"):
        RNTKRidge(alpha=alpha).fit(X, y)
