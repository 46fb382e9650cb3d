"""Appendix A of the RNTK paper: scores as scikit-learn has them, small classes, kernels that never converge."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from rntk import as_batch
from rntk.papers import PaperClassifier, PaperRegressor, protocol
from rntk.papers.protocol import (
    C_VALUES,
    MAX_ITERATIONS,
    RIDGES,
    Polynomial,
    class_folds,
    paper_grid,
    svm_scores,
    thinned,
)
from rntk.preprocessing import unit_norm


def waves(seed, n=24, T=12):
    rng = np.random.default_rng(seed)
    slow = np.arange(n) % 2
    X = np.sin(np.arange(T) * np.where(slow, 0.4, 0.8)[:, None] + rng.uniform(0, 6, (n, 1)))
    return X + 0.5 * rng.standard_normal((n, T)), np.where(slow, "slow", "fast")


def test_grids_of_the_paper():
    assert [len(paper_grid(family)) for family in protocol.FAMILIES] == [900, 540, 18, 30]
    assert paper_grid("rntk")[0].settings == {"sigma_w": 1.34, "sigma_b": 0, "sigma_h": 0}
    assert len(paper_grid("rntk", {"sigma_w": 4, "sigma_b": 3, "sigma_h": 2})) == 48
    assert 2**0.5 in thinned("rntk", {"sigma_w": 4})["sigma_w"]
    with pytest.raises(ValueError, match="family must be one of rntk, ntk, rbf, polynomial, not 'sine'"):
        PaperClassifier("sine").fit(*waves(0))


def test_scores_are_those_of_scikit_learn():
    X, y = waves(9)
    model = PaperClassifier("polynomial").fit(X, y)
    folds = class_folds(y, 10, np.random.RandomState(0))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for k in (0, 37, 149):
        settings = model.cv_results_["params"][k]
        K = (settings["offset"] + unit @ unit.T) ** settings["degree"]
        wanted = cross_val_score(SVC(kernel="precomputed", C=settings["C"]), K, y, cv=folds).mean()
        assert model.cv_results_["mean_test_score"][k] == pytest.approx(wanted)
    assert len(model.cv_results_["params"]) == 150
    assert model.best_index_ == np.argmax(model.cv_results_["mean_test_score"])
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1
    assert model.best_estimator_.max_iter == MAX_ITERATIONS
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(unit))
    assert model.decision_function(X).shape == (24,) and list(model.classes_) == ["fast", "slow"]
    assert model.score(X, y) > 0.8 and clone(model).family == "polynomial"


def test_a_larger_cost_changes_nothing_once_no_weight_is_at_its_bound():
    """Scores that were carried over from a smaller C are those of fits at the larger one."""
    X, y = waves(12)
    batch = unit_norm(as_batch(X))
    folds = class_folds(y, 4, np.random.RandomState(0))
    fitted = 0
    for candidate in paper_grid("rntk")[::90]:
        K = candidate.kernel(batch)
        for found, cost in zip(svm_scores(K, y, folds), C_VALUES, strict=True):
            models = [SVC(kernel="precomputed", C=cost).fit(K[np.ix_(a, a)], y[a]) for a, _ in folds]
            wanted = np.mean([m.score(K[np.ix_(b, a)], y[b]) for m, (a, b) in zip(models, folds, strict=True)])
            assert found == pytest.approx(wanted, abs=1e-11)
            fitted += all(np.abs(m.dual_coef_).max() < cost / 10 for m in models)
    assert fitted > 5  # some were carried over


def test_a_kernel_on_which_libsvm_never_stops_does_not_stop_the_search(monkeypatch):
    """scikit-learn sets no limit; long sequences at sigma_w = 1.47 without bias need one."""
    monkeypatch.setattr(protocol, "MAX_ITERATIONS", 2)  # nothing converges, as there
    X, y = waves(12)
    search = protocol._PaperSearch("rbf", {"alpha": 6})
    search._search(unit_norm(as_batch(X)), y, class_folds(y, 3, None), svm_scores, "C", C_VALUES)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()  # and no warning for each of them


def test_regression():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((20, 6))
    model = PaperRegressor("rbf").fit(X, X[:, 0])
    assert model.best_params_["ridge"] in RIDGES
    assert set(model.best_params_) == {"alpha", "ridge"}
    assert model.predict(X).shape == (20,)
    singular = PaperRegressor("polynomial").fit(np.vstack([X, X]), np.tile(X[:, 0], 2))
    assert singular.predict(X).shape == (20,)


def test_small_classes_do_not_stop_the_folds():
    y = np.array([0] * 8 + [1] * 2 + [2])
    folds = class_folds(y, 10, np.random.RandomState(0))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(11))
    with pytest.raises(ValueError, match="single sequence"):
        class_folds(np.arange(4), 10, np.random.RandomState(0))


def test_polynomial_by_hand():
    X = np.array([[1.0, 2.0], [0.0, 3.0]])
    kernel = Polynomial(degree=2, offset=1.0)
    np.testing.assert_allclose(kernel(X), [[36, 49], [49, 100]])
    np.testing.assert_allclose(kernel.diag(X), [36, 100])
    assert not kernel.is_stationary() and kernel(X, eval_gradient=True)[1].shape == (2, 2, 0)
