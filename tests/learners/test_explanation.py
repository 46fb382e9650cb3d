"""Which steps decided: derivatives against differences of what models say, and neighbours by the kernel's distance."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from helpers.tolerances import relative_error
from rntk import (
    NTK,
    RNTK,
    RNTKSVC,
    RNTKClassifier,
    RNTKGaussianProcessRegressor,
    RNTKRidge,
    RNTKRidgeClassifier,
    SequenceError,
    StepFeatures,
    explain,
)
from rntk.preprocessing import Clock, Differences, ZNormalize

LAST = RNTK(sigma_w=1.0, sigma_b=0.3, n_jobs=1, progress=False)
MEAN = RNTK("erf", sigma_b=0.3, readout="mean", normalize=True, n_jobs=1, progress=False)


def data(classes=2, channels=1, n=14, lengths=(5, 9)):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((rng.integers(*lengths), channels)) for _ in range(n)]
    return X, np.array(["a", "b", "c"])[np.arange(n) % classes]


def slope(say, x, step=1e-5):
    """Central differences of say([x])."""
    x = np.asarray(x, dtype=float)
    found = np.empty(x.shape)
    for at in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[at] = step
        found[at] = (say([x + moved]) - say([x - moved])) / (2 * step)
    return found


@pytest.mark.parametrize("kernel", [LAST, MEAN, LAST.of_kind("nngp")], ids=["last", "mean", "nngp"])
@pytest.mark.parametrize(
    ("learner", "classes"),
    [(RNTKRidgeClassifier, 2), (RNTKRidgeClassifier, 3), (RNTKSVC, 2)],
    ids=["ridge", "classes", "svc"],
)
def test_derivatives_are_those_of_the_decision(learner, classes, kernel):
    X, y = data(classes, channels=2)
    model, x = learner(kernel).fit(X, y), X[3] + 0.1
    found = explain(model, x)
    say, places = model.decision_function, list(model.classes_)
    if classes == 2:
        sign = 1.0 if say([x])[0] > 0 else -1.0
        score = lambda X: sign * say(X)[0]  # noqa: E731
        assert (found.target, found.against) == (model.classes_[int(sign > 0)], model.classes_[int(sign < 0)])
    else:
        order = np.argsort(say([x])[0])
        assert (found.target, found.against) == tuple(model.classes_[order[[-1, -2]]])
        score = lambda X: say(X)[0, order[-1]] - say(X)[0, order[-2]]  # noqa: E731
    assert found.method == "gradients" and found.target == model.predict([x])[0]
    assert found.score == pytest.approx(score([x]))
    assert relative_error(found.gradient, slope(score, x)) < 1e-6
    assert found.weight.shape == (len(x),) and found.weight.max() == 1
    other = explain(model, x, target=places[0] if found.target != places[0] else places[1])
    assert other.against == found.target and other.score < 0


def test_of_regressors_a_target_is_explained():
    X, _ = data()
    y = np.array([[x.sum(), x[0, 0]] for x in X])
    for model in (RNTKRidge(LAST, 0.1), RNTKGaussianProcessRegressor(LAST, 0.1, optimizer=None, normalize_y=True)):
        model.fit(X, y)
        found = explain(model, X[0], target=1)
        assert (found.target, found.against, found.method) == (1, None, "gradients")
        assert relative_error(found.gradient, slope(lambda Z: model.predict(Z)[0, 1], X[0])) < 1e-6  # noqa: B023
        assert found.score == pytest.approx(model.predict(X[:1])[0, 1])


def test_through_transformers_derivatives_are_by_what_came():
    X, y = data(channels=2)
    model = make_pipeline(ZNormalize(), Differences(), Clock(), RNTKRidgeClassifier(MEAN)).fit(X, y)
    found = explain(model, X[1], target="b")
    assert found.method == "gradients"
    assert relative_error(found.gradient, slope(lambda Z: model.decision_function(Z)[0], X[1])) < 1e-5
    # Normalised sequences don't change with level or size.
    assert np.abs(found.gradient.sum(axis=0)).max() < 1e-6 * np.abs(found.gradient).max()


@pytest.mark.parametrize(
    ("model", "classes"),
    [
        (make_pipeline(StepFeatures(MEAN, 12, 4, random_state=0), RidgeClassifierCV()), 2),
        (make_pipeline(StepFeatures(MEAN, 12, 4, random_state=0), LogisticRegression()), 3),
        (RNTKRidgeClassifier(LAST * LAST), 2),
        (RNTKSVC(LAST), 3),
    ],
    ids=["features", "three classes", "product", "svc"],
)
def test_of_anything_else_they_are_differences_and_said_to_be(model, classes):
    X, y = data(classes, channels=2)
    model.fit(X, y)
    target, against = model.classes_[:2]
    found = explain(model, X[2], target=target)
    assert found.method == "differences"
    values = model.decision_function([X[2]])[0]
    if classes == 3:
        against = model.classes_[1 + int(np.argmax(values[1:]))]
        k = list(model.classes_).index(against)
        expected = slope(lambda Z: model.decision_function(Z)[0, 0] - model.decision_function(Z)[0, k], X[2])
    else:
        expected = slope(lambda Z: -model.decision_function(Z)[0], X[2])
    assert found.against == against
    assert relative_error(found.gradient, expected) < 1e-5


def test_differences_of_single_precision_take_larger_steps():
    X, y = data(lengths=(6, 7))
    exact, rough = (
        explain(
            make_pipeline(
                StepFeatures(RNTK(sigma_b=0.3, readout="mean", dtype=dtype, n_jobs=1), 12, 4, random_state=0),
                RidgeClassifierCV([0.1]),
            ).fit(X, y),
            X[0],
            target="a",
        )
        for dtype in ("float64", "float32")
    )
    assert relative_error(rough.gradient, exact.gradient) < 1e-2


def test_neighbours_are_by_the_distance_of_the_kernel():
    X, y = data(n=20)
    model = RNTKRidgeClassifier(MEAN).fit(X, y)
    found = explain(model, X[4], n_neighbours=5)
    distance = MEAN.distance(X[4:5], X)[0]
    assert found.neighbours[0] == 4 and found.neighbours.tolist() == np.argsort(distance)[:5].tolist()
    np.testing.assert_allclose(found.distances, np.sort(distance)[:5], atol=1e-7)
    assert len(explain(model, X[4], n_neighbours=0).neighbours) == 0
    features = make_pipeline(StepFeatures(MEAN, 5, random_state=0), RidgeClassifierCV()).fit(X, y)
    assert len(explain(features, X[4]).neighbours) == 0


def test_vectors_have_steps_too():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 9)), np.arange(20) % 2
    for kernel, method in ((NTK(), "gradients"), (RBF(2.0), "differences")):
        model = RNTKRidgeClassifier(kernel, 0.1).fit(X, y)
        found = explain(model, X[0], target=1)
        assert found.method == method and len(found.neighbours) == 3
        assert relative_error(found.gradient[:, 0], slope(lambda Z: model.decision_function(Z)[0], X[0])) < 1e-6  # noqa: B023


def test_the_picture_shows_the_series():
    pytest.importorskip("matplotlib").use("Agg")
    X, y = data(channels=2)
    ax = explain(RNTKRidgeClassifier(LAST).fit(X, y), X[0]).plot()
    assert len(ax.lines) == len(ax.collections) == 2
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), X[0][:, 1])
    assert "rather than" in ax.get_title()


def test_what_cannot_be_explained():
    X, y = data()
    model = RNTKRidgeClassifier(LAST).fit(X, y)
    with pytest.raises(ValueError, match="target='c' is none of the classes 'a', 'b'"):
        explain(model, X[0], target="c")
    with pytest.raises(SequenceError, match="3 dimensions"):
        explain(model, np.ones((2, 3, 1)))
    with pytest.raises(ValueError, match="n_neighbours"):
        explain(model, X[0], n_neighbours=-1)
    with pytest.raises(ValueError, match="target"):
        explain(RNTKRidge(LAST).fit(X, np.arange(len(X))), X[0], target=1)
    with pytest.raises(ValueError, match="channels"):
        explain(model, np.ones((4, 3)))


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_sequences_may_be_of_any_size(size):
    X = np.random.default_rng(0).standard_normal((12, 10))
    X[::2] += np.linspace(0.0, 2.0, 10)
    X = ZNormalize().fit_transform(X)  # no view shows size then
    model = RNTKClassifier().fit(X[:10], np.arange(10) % 2)
    found, wanted = explain(model, X[10] * size), explain(model, X[10])
    assert np.isfinite(found.gradient).all()
    np.testing.assert_allclose(found.weight, wanted.weight, atol=0.02)


def test_explanations_print_as_one_line_and_what_is_no_model_is_named():
    X, y = data()
    model = RNTKRidgeClassifier(LAST).fit(X, y)
    shown = repr(explain(model, X[0]))
    assert "\n" not in shown and shown.startswith("Explanation('a' rather than 'b', ") and "gradients" in shown
    assert repr(explain(RNTKRidge(LAST).fit(X, np.arange(14.0)), X[0])).startswith("Explanation(target 0, ")
    for given in (LAST, 5, None):
        with pytest.raises(ValueError, match="explains fitted classifiers and regressors"):
            explain(given, X[0])
