"""The default learners: closed forms against brute force, views by hand, weights, small cases, caches, files."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.metrics import log_loss, recall_score
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline

from helpers.data import waves
from rntk import (
    RNTK,
    RNTKClassifier,
    RNTKClassifierCV,
    RNTKRegressor,
    RNTKRegressorCV,
    as_batch,
    explain,
    load,
    save,
    suggest,
)
from rntk.activations import HermiteActivation
from rntk.errors import SequenceError
from rntk.learners.ensemble import learners, recipe, stacking
from rntk.learners.ensemble.learners import sample
from rntk.learners.ensemble.leave_one_out import feature_path, fit_ridge, ridge_path
from rntk.learners.ensemble.recipe import affordable, parts_for, spans
from rntk.learners.ensemble.stacking import mixture_weights, stack_classes, stack_values
from rntk.learners.ensemble.views import VIEWS, View, differs_in_level_or_size
from rntk.preprocessing import Interpolate

BOTH = pytest.mark.parametrize("learner", [RNTKClassifier, RNTKRegressor])


# -- leave-one-out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_predictions_are_those_of_models_fitted_to_the_others(weighted):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((14, 20))
    K, targets = A @ A.T, rng.standard_normal((14, 3))
    weight = rng.uniform(0.2, 3.0, 14) if weighted else np.ones(14)
    ridges = np.array([1e-3, 0.5, 20.0])
    path = ridge_path(K, targets, ridges, weight if weighted else None)
    for r, ridge in enumerate(ridges):
        noise = ridge / weight
        np.testing.assert_allclose(path.dual[r], np.linalg.solve(K + np.diag(noise), targets), rtol=1e-8)
        for i, (rest, _) in enumerate(LeaveOneOut().split(K)):
            dual = np.linalg.solve(K[np.ix_(rest, rest)] + np.diag(noise[rest]), targets[rest])
            np.testing.assert_allclose(path.left_out[r, i], K[i, rest] @ dual, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(30, 7), (7, 30)])
def test_features_give_what_their_products_give(shape, weighted):
    rng = np.random.default_rng(1)
    features, targets = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    weight = rng.uniform(0.2, 3.0, shape[0]) if weighted else None
    ridges = np.array([1e-4, 1.0])
    ours, wanted = (
        path(matrix, targets, ridges, weight)
        for path, matrix in ((feature_path, features), (ridge_path, features @ features.T))
    )
    np.testing.assert_allclose(ours.left_out, wanted.left_out, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(features.T @ ours.dual, features.T @ wanted.dual, rtol=1e-6, atol=1e-8)


def test_a_sequence_that_does_not_count_has_no_say_in_the_ridge():
    rng = np.random.default_rng(2)
    features, targets = rng.standard_normal((20, 5)), rng.standard_normal((20, 1))
    counts = np.ones(20, dtype=bool)
    counts[3] = False
    found = fit_ridge(features, False, targets, np.ones(20), counts)
    path = ridge_path(features @ features.T, targets, np.array([found.ridge]))
    np.testing.assert_allclose(found.left_out, path.left_out[0], rtol=1e-5)
    assert found.error == pytest.approx(np.square(path.left_out[0] - targets)[counts].mean())


# -- stacking ----------------------------------------------------------------------------------------------------------


def test_weights_are_the_maximum_a_posteriori(monkeypatch):
    rng = np.random.default_rng(3)
    chances, weight = rng.uniform(0.05, 1, (3, 40)), rng.uniform(0.5, 2, 40)
    monkeypatch.setattr(stacking, "ROUNDS", 3000)

    def loss(free):
        share = softmax(free)
        return -(weight @ np.log(share @ chances) + stacking.PRIOR / 3 * np.log(share).sum())

    wanted = softmax(minimize(loss, np.zeros(3), tol=1e-12).x)
    assert wanted.min() > stacking.LEAST * wanted.max()
    np.testing.assert_allclose(mixture_weights(chances, weight), wanted, atol=1e-4)


def test_weights_are_equal_without_evidence_and_follow_it():
    left_out = np.zeros((4, 6, 2))
    codes = np.array([0, 1, 0, 1, 0, 1])
    assert stack_classes(left_out, codes, np.zeros(6)).weights.tolist() == [0.25] * 4
    np.testing.assert_allclose(stack_classes(left_out, codes, np.ones(6)).weights, 0.25)
    many = np.tile(codes, 100)
    left_out = np.zeros((4, 600, 2))
    left_out[2, np.arange(600), many] = 1.0
    assert stack_classes(left_out, many, np.ones(600)).weights[2] == 1.0
    targets = np.random.default_rng(0).standard_normal((600, 1))
    guesses = np.stack([targets * share for share in (0.0, 0.2, 0.9)])
    assert stack_values(guesses, targets, np.ones(600)).argmax() == 2
    np.testing.assert_allclose(stack_values(np.zeros((2, 3, 1)), np.zeros((3, 1)), np.ones(3)), 0.5)


def test_the_learners_have_another_name():
    assert RNTKClassifierCV is RNTKClassifier
    assert RNTKRegressorCV is RNTKRegressor


# -- views and recipe --------------------------------------------------------------------------------------------------


def test_views_by_hand():
    batch = as_batch([[0.0, 2.0, 4.0, 6.0], [1.0, 1.0, 3.0]])
    values = View("values", 2)(batch)
    np.testing.assert_allclose(values[0][:, 0], [-1, 1])  # means 1 and 5
    np.testing.assert_allclose(View("differences")(batch)[1][:, 0], [-1, 1])  # 0 and 2
    np.testing.assert_allclose(View("scaled", mean=(1.0,), deviation=(2.0,))(batch)[0][:, 0], [-0.5, 0.5, 1.5, 2.5])
    np.testing.assert_allclose(View("values", 2, clock=3.0)(batch)[0], [[-1, -3], [1, 3]])
    pair = as_batch(np.ones((2, 3, 4)))
    np.testing.assert_allclose(View("values", clock=3.0)(pair)[1][:, 4], [-6, 0, 6])  # √4 as far beside 4 channels
    with pytest.raises(ValueError, match="a view is one of"):
        View("sideways")


@pytest.mark.parametrize("channels", [1, 2])
def test_windows_by_hand(channels):
    rng = np.random.default_rng(4)
    batch = as_batch([rng.standard_normal((length, channels)) for length in (7, 40)])
    view = View("windows", block=3, span=2).fit(batch)
    shown = view(batch)
    assert view.floor > 0
    assert shown.lengths.tolist() == [3, 14]
    for i, x in enumerate(batch):
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        for p, centre in enumerate(range(0, len(z), 3)):
            window = z[np.clip(centre + 2 * np.arange(-4, 5), 0, len(z) - 1)]
            wanted = (window - window.mean(axis=0)) / (window.std(axis=0) + view.floor)
            np.testing.assert_allclose(shown[i][p], wanted.ravel(), rtol=1e-4, atol=1e-5)


def test_spectra_by_hand():
    rng = np.random.default_rng(5)
    batch = as_batch([rng.standard_normal(length) for length in (3, 40)])
    view = View("spectrum", block=4, span=8).fit(batch)
    shown = view(batch)
    assert shown.lengths.tolist() == [1, 9]
    assert shown.n_channels == 5
    z = (batch[1][:, 0] - batch[1].mean()) / batch[1].std()
    bell = np.sin(np.pi * np.arange(1, 9) / 9) ** 2
    wanted = np.log(np.abs(np.fft.rfft(z[4:12] * bell)) + view.floor)
    np.testing.assert_allclose(shown[1][1], (wanted - view.mean) / view.deviation)
    np.testing.assert_allclose(shown.values.std(axis=0), 1)


def test_the_scaled_view_is_for_sequences_that_differ_in_level_or_size():
    rng = np.random.default_rng(0)
    raw = as_batch([rng.standard_normal(30) * size + level for size, level in ((1, 0), (2, 5), (0.5, -3))])
    assert differs_in_level_or_size(raw)
    shown = View("scaled").fit(raw)(raw).values
    assert shown.mean() == pytest.approx(0, abs=1e-12) and shown.std() == pytest.approx(1)
    assert not differs_in_level_or_size(View("values")(raw))


def test_windows_reach_as_far_as_sequences_are_long():
    assert spans(1) == spans(9) == [1]
    assert spans(40) == [1, 2, 4]
    assert all(8 * span < 0.9 * 720 for span in spans(720)) and spans(720)[-1] == 64


def test_more_sequences_see_fewer_steps():
    batch = as_batch(np.random.default_rng(0).standard_normal((3, 450)))
    few, many, most = (parts_for(batch, n) for n in (50, 1000, 10**6))
    assert [part.view.name for part in few] == [part.view.name for part in many]
    assert all(a.view.block <= b.view.block for a, b in zip(few, many, strict=True))
    for part in many:
        assert 1000 * (450 / part.view.block) ** 2 < 1.1 * recipe.WORK
    assert all(a.view.block <= b.view.block for a, b in zip(most, few, strict=True))  # landmarks: no squares
    assert affordable(100, 1e6, 10**6) == 100


def test_pages_name_every_view():
    tutorial = Path(__file__).parents[2] / "docs" / "tutorials" / "classify-your-series.md"
    for text in (RNTKClassifier.__doc__, tutorial.read_text(encoding="utf-8")):
        for name in VIEWS:
            assert name.rstrip("s") in " ".join(text.split()), name


# -- the ensemble ------------------------------------------------------------------------------------------------------


def test_it_classifies():
    X, y = waves(0, n=24, lengths=(12, 13))
    model = RNTKClassifier().fit(X, y)
    new, wanted = waves(1, n=12, lengths=(12, 13))
    assert model.score(new, wanted) >= 0.75
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    assert model.cv_results_["weight"].sum() == pytest.approx(1)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_a_mixture_of_ridge_models(classes):
    X, y = waves(2, n=21, classes=classes)
    model = RNTKClassifier().fit(X, y)
    new = as_batch(waves(3, n=4, classes=classes)[0])
    targets, total = np.where(y[:, None] == np.arange(classes), 1.0, -1.0), 0
    for member in model.members_:
        left, right = member.view(as_batch(X)), member.view(new)
        K = np.asarray(member.kernel(left), dtype=np.float64)
        scores = member.kernel(right, left) @ np.linalg.solve(K + member.ridge * np.eye(21), targets)
        total = total + member.weight * softmax(model.sharpness_ * scores, axis=1)
    chances = model.predict_proba(new)
    np.testing.assert_allclose(chances, total, atol=5e-3)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(new), model.classes_[chances.argmax(axis=1)])
    logs = np.log(chances)
    wanted = logs[:, 1] - logs[:, 0] if classes == 2 else logs
    np.testing.assert_allclose(model.decision_function(new), wanted)


def test_labels_need_no_more_members_than_decide():
    X, y = waves(2, n=30, classes=3, lengths=(12, 13))
    model = RNTKClassifier().fit(X, y)
    new, _ = waves(3, n=60, classes=3, lengths=(12, 13))
    chances = model.predict_proba(new)
    np.testing.assert_array_equal(model.predict(new), model.classes_[chances.argmax(axis=1)])
    sums = model._mix(new, learners.is_decided)
    assert (sums.sum(axis=1) < 0.99).any()
    np.testing.assert_array_equal(sums.argmax(axis=1), chances.argmax(axis=1))


def test_leave_one_out_scores_are_those_of_brute_force():
    X, y = waves(4, n=12)
    model = RNTKClassifier().fit(X, y)
    targets = np.where(y[:, None] == np.arange(2), 1.0, -1.0)
    results, batch = model.cv_results_, as_batch(X)
    member = model.members_[0]
    at = [str(member.view) == params["view"] for params in results["params"]].index(True)
    K, hits = np.asarray(member.kernel(member.view(batch)), dtype=np.float64), 0
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        dual = np.linalg.solve(K[np.ix_(rest, rest)] + member.ridge * np.eye(11), targets[rest])
        hits += (K[i, rest] @ dual).argmax() == y[i]
    assert results["mean_test_score"][at] == pytest.approx(hits / 12)


def test_many_sequences_meet_landmarks(monkeypatch):
    X, y = waves(5, n=60, classes=3)
    exact = RNTKClassifier().fit(X, y)
    monkeypatch.setattr(recipe, "EXACT", 20)
    monkeypatch.setattr(learners, "EXACT", 20)
    model = RNTKClassifier(n_landmarks=50, start=RNTK(normalize=True)).fit(X, y)
    assert len(model.sequences_) == 60
    assert all(member.landmarks is not None for member in model.members_)
    assert "50 landmarks" in model.notes_[-1]
    again = RNTKClassifier(n_landmarks=50, start=RNTK(normalize=True)).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    new, wanted = waves(6, n=60, classes=3)
    assert model.score(new, wanted) > exact.score(new, wanted) - 0.1
    values = RNTKRegressor(n_landmarks=50).fit(X, y.astype(float))
    assert values.score(new, wanted.astype(float)) > 0.5


def test_views_and_landmarks_come_from_a_stratified_sample():
    groups = np.repeat([0, 1, 2], [80, 15, 5])
    kept = sample(100, groups, 40, np.random.RandomState(0))
    np.testing.assert_array_equal(np.bincount(groups[kept]), [32, 6, 2])
    np.testing.assert_array_equal(sample(40, groups[:40], 40, np.random.RandomState(0)), np.arange(40))
    assert len(sample(100, None, 40, np.random.RandomState(0))) == 40


def test_blocks_of_sequences_change_nothing(monkeypatch):
    X, y = waves(7, n=20)
    model = RNTKClassifier().fit(X, y)
    wanted = model.predict_proba(X)
    monkeypatch.setattr(learners, "BLOCK_NUMBERS", 400)
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-6)


def test_regression_and_its_targets():
    rng = np.random.default_rng(6)
    X = [rng.standard_normal(rng.integers(8, 14)).cumsum() for _ in range(40)]
    y = np.array([[x[-1] - x[0], 3 + x.std()] for x in X])
    model = RNTKRegressor().fit(X, y)
    assert model.predict(X).shape == (40, 2)
    assert model.score(X, y) > 0.5
    assert 0 < model.loo_score_ < model.score(X, y)
    one = RNTKRegressor().fit(X, y[:, 1])
    assert one.predict(X).shape == (40,)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e160, 1e300])
def test_targets_may_be_of_any_size(size):
    X, y = np.random.default_rng(5).standard_normal((10, 8)), np.arange(10.0)
    found = RNTKRegressor().fit(X, y * size).predict(X)
    np.testing.assert_allclose(found / size, RNTKRegressor().fit(X, y).predict(X), rtol=1e-3)
    model = RNTKRegressor().fit(X, np.full(10, 0.1 * size))
    assert (model.predict(X) == 0.1 * size).all()
    assert "none, because all targets are equal" in model.summary()


def test_clone_pickle_and_cross_validation():
    X, y = waves(7, n=18)
    model = RNTKClassifier().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert not hasattr(clone(model), "members_")
    for scoring in ("accuracy", "roc_auc", "neg_log_loss"):
        score = cross_val_score(RNTKClassifier(), X, y, cv=3, scoring=scoring)
        assert score.mean() > {"neg_log_loss": np.log(0.5)}.get(scoring, 0.6)


def test_multivariate_sequences():
    X, y = waves(8, n=20, channels=3)
    model = RNTKClassifier().fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"1 channel,.*expecting 3"):
        model.predict([np.zeros(9)])


# -- small and strange training sets -----------------------------------------------------------------------------------


def of_sizes(*sizes: int, length: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Noisy waves, each class of a frequency of its own."""
    rng, y = np.random.default_rng(9), np.repeat(np.arange(len(sizes)), sizes)
    phase = rng.uniform(0, 6, len(y))
    X = np.sin(phase[:, None] + np.arange(length) * 0.15 * (1 + y[:, None])) + 0.1 * rng.standard_normal(
        (len(y), length)
    )
    return X, y


@pytest.mark.parametrize("sizes", [(1, 1), (1, 1, 1, 1), (2, 2), (2, 2, 2), (1, 8), (1, 8, 8), (3, 300)])
def test_few_of_a_class(sizes):
    X, y = of_sizes(*sizes)
    new, wanted = of_sizes(*[10] * len(sizes))
    model = RNTKClassifier().fit(X, y)
    chances = model.predict_proba(new)
    assert np.isfinite(chances).all() and chances.min() >= 0
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert model.score(new, wanted) > 1 / len(sizes)
    assert log_loss(wanted, chances) < 2 * np.log(len(sizes))
    if max(sizes) == 1:  # leave-one-out says nothing
        np.testing.assert_allclose(model.cv_results_["weight"], 1 / len(model.members_))


def test_fifty_classes_of_two():
    rng = np.random.default_rng(10)
    shapes = rng.standard_normal((50, 40)).cumsum(axis=1)
    X, y = np.repeat(shapes, 2, axis=0) + 0.1 * rng.standard_normal((100, 40)), np.repeat(np.arange(50), 2)
    new = shapes + 0.1 * rng.standard_normal((50, 40))
    model = RNTKClassifier().fit(X, y)
    assert model.score(new, np.arange(50)) > 0.95
    assert log_loss(np.arange(50), model.predict_proba(new)) < 0.7


@BOTH
def test_constant_and_equal_sequences(learner):
    X, y = np.ones((6, 9)), np.array([0, 1, 0, 1, 0, 1])
    X[3:] = 5.0
    model = learner().fit(X, y)
    assert np.isfinite(model.predict(X).astype(float)).all()
    model = learner().fit(np.ones((6, 9)), y)
    found = model.predict_proba(X) if learner is RNTKClassifier else model.predict(X)
    assert np.abs(found - 0.5).max() < 0.35


def test_duplicates_with_different_labels_are_doubtful():
    X, y = of_sizes(10, 10)
    X, y = np.concatenate([X, X[:1]]), np.append(y, 1)
    chances = RNTKClassifier().fit(X, y).predict_proba(X)
    assert np.abs(chances[0] - 0.5).max() < np.abs(chances[1:10] - 0.5).max()


@BOTH
def test_missing_values_are_refused_by_the_name_of_what_fills_them_in(learner):
    X, y = of_sizes(6, 6)
    X[3, 4] = np.nan
    with pytest.raises(
        SequenceError, match=r"sequence 3 has 1 NaN at step 4[^$]*make_pipeline\(Interpolate\(\), learner"
    ):
        learner().fit(X, y)
    model = make_pipeline(Interpolate(), learner()).fit(X, y)
    assert model.score(X, y) > 0.5


def test_balanced_classes():
    rng = np.random.default_rng(11)
    y = np.repeat([0, 1], [60, 6])
    X = np.sin(np.arange(20) * (0.3 + 0.12 * y[:, None])) + rng.standard_normal((66, 20))
    new_y = np.repeat([0, 1], 40)
    new = np.sin(np.arange(20) * (0.3 + 0.12 * new_y[:, None])) + rng.standard_normal((80, 20))
    plain, balanced = RNTKClassifier().fit(X, y), RNTKClassifier(class_weight="balanced").fit(X, y)
    found, missed = (recall_score(new_y, each.predict(new)) for each in (balanced, plain))  # of the rare class
    assert found > 0.6 > missed
    weight = np.where(y == 0, 66 / 120, 66 / 12)
    np.testing.assert_allclose(
        balanced.predict_proba(new), RNTKClassifier().fit(X, y, weight).predict_proba(new), rtol=1e-6
    )


# -- a kernel to add ---------------------------------------------------------------------------------------------------


@BOTH
def test_a_kernel_is_added(learner):
    X, y = waves(3)
    start = RNTK(sigma_w=1.3, sigma_b=0.123)
    plain, started = learner().fit(X, y), learner(start=start).fit(X, y)
    added = started.cv_results_["params"][:2]
    assert [(each["view"], each["sigma_w"], each["sigma_b"]) for each in added] == [
        (view, 1.3, 0.123) for view in ("values", "differences")
    ]
    assert started.cv_results_["params"][2:] == plain.cv_results_["params"]
    if learner is RNTKClassifier:  # its scores are those of the kernel itself on that view
        K = start(View("differences")(as_batch(X)))
        targets = np.where(np.asarray(y)[:, None] == np.arange(2), 1.0, -1.0)
        path = ridge_path(K, targets, started.cv_results_["ridge"][1:2])
        assert np.mean(path.left_out[0].argmax(axis=1) == y) == started.cv_results_["mean_test_score"][1]
    assert clone(started).start.sigma_b == 0.123


def test_a_suggestion_is_added():
    X, y = waves(4)
    found = suggest(X)
    model = RNTKClassifier(start=found.kernel).fit(X, y)
    assert model.cv_results_["params"][0]["sigma_w"] == found.kernel.sigma_w


def test_what_is_no_kernel():
    X, y = waves(5)
    with pytest.raises(ValueError, match="start="):
        RNTKClassifier(start="relu").fit(X, y)


@pytest.mark.parametrize("classes", [2, 3, None])
def test_what_decided_is_explained_by_gradients(classes):
    X, y = waves(17, n=21, classes=classes or 3, lengths=(16, 17))
    model = RNTKRegressor().fit(X, y + 0.5) if classes is None else RNTKClassifier().fit(X, y)
    assert explain(model, X[3]).neighbours[0] == 3
    x = waves(18, n=3, lengths=(16, 17))[0][0]
    found = explain(model, x)
    assert found.method == "gradients"
    say = model.predict if classes is None else model.decision_function
    at, rest = (
        (None, None) if classes is None else (list(model.classes_).index(v) for v in (found.target, found.against))
    )

    def score(x):
        said = np.asarray(say([x]))[0]
        return said if classes is None else (2 * at - 1) * said if classes == 2 else said[at] - said[rest]

    towards = 0.001 * found.gradient[:, 0] / np.linalg.norm(found.gradient)
    wanted = (score(np.ravel(x) + towards) - score(np.ravel(x) - towards)) / 2
    np.testing.assert_allclose(wanted, found.gradient[:, 0] @ towards, rtol=0.05)


# -- what is said and shown --------------------------------------------------------------------------------------------


def test_what_saves_time_is_said_and_kept(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 250)), np.arange(8) % 2
    model = RNTKClassifier(progress=True).fit(X, y)
    assert re.search(r"up to 250 steps are averaged down to 84", model.notes_[0])
    shown = capsys.readouterr().err
    assert all(shown.count(f"rntk: {note}\n") == 1 and note in model.summary() for note in model.notes_)
    save(model, tmp_path / "model.rntk")
    assert load(tmp_path / "model.rntk").notes_ == model.notes_
    assert RNTKClassifier().fit(X[:, :50], y).notes_ == []


def test_members_and_results_print_as_tables(tmp_path):
    X, y = waves(0, n=24)
    model = RNTKClassifier().fit(X, y)
    lines = repr(model.members_).splitlines()
    assert len(lines) == 2 + len(model.members_)
    assert lines[0].split() == ["view", "kernel", "ridge", "weight"]
    assert all(str(member.kernel) in line for member, line in zip(model.members_, lines[2:], strict=True))
    assert "array" not in repr(model.members_[0])
    lines = repr(model.cv_results_).splitlines()
    assert lines[0].split()[:3] == ["view", "mean_test_score", "loo_error"]
    assert len(lines) == 2 + len(model.cv_results_["params"])
    save(model, tmp_path / "model.rntk")
    for again in (load(tmp_path / "model.rntk"), pickle.loads(pickle.dumps(model))):
        assert repr(again.members_) == repr(model.members_)
        assert repr(again.cv_results_) == repr(model.cv_results_)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(AttributeError, match="not fitted"):
        RNTKClassifier().members_  # noqa: B018


def test_landmarks_come_back_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "EXACT", 10)
    X, y = waves(1, n=24)
    model = RNTKClassifier(n_landmarks=30).fit(X, y)
    save(model, tmp_path / "model.rntk")
    np.testing.assert_array_equal(load(tmp_path / "model.rntk").predict_proba(X), model.predict_proba(X))


def test_prediction_shows_one_bar(capsys):
    X, y = waves(0, n=24)
    model = RNTKClassifier(progress=True).fit(X, y)
    capsys.readouterr()
    model.predict(X)
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "Prediction" in shown


@BOTH
def test_notebooks_show_learners(learner):
    X, y = waves(0, n=12)
    assert "RNTK(sigma_w=1.2)" in learner(start=RNTK(sigma_w=1.2)).fit(X, y)._repr_html_()


# -- the cache ---------------------------------------------------------------------------------------------------------


def count_seen(monkeypatch, *, interrupt_at: int | None = None) -> list:
    """Calls of what a part computes, kept or not."""
    calls: list = []
    real = View.fit

    def counted(self, batch):
        calls.append(self)
        if len(calls) == interrupt_at:
            raise KeyboardInterrupt
        return real(self, batch)

    monkeypatch.setattr(View, "fit", counted)
    return calls


def test_an_interrupted_fit_goes_on_where_it_stopped(tmp_path, monkeypatch):
    X, y = waves(11, n=14)
    calls = count_seen(monkeypatch, interrupt_at=4)
    with pytest.raises(KeyboardInterrupt):
        RNTKClassifier(cache=tmp_path).fit(X, y)
    del calls[:]
    calls += [None] * 100  # interrupts no more
    model = RNTKClassifier(cache=tmp_path, n_jobs=1).fit(X, y)
    assert len(calls) - 100 == len(model.cv_results_["params"]) - 3
    del calls[100:]
    RNTKRegressor(cache=tmp_path).fit(X, y.astype(float))  # the same kernels
    assert len(calls) == 100
    np.testing.assert_array_equal(model.predict_proba(X), RNTKClassifier().fit(X, y).predict_proba(X))


def bump(z):
    return np.exp(-(z**2) / 2)


def wave(z):
    return np.sin(1.5 * z)


def test_two_activations_of_one_name_share_nothing(tmp_path):
    X, y = waves(12, n=14)
    errors = []
    for function in (bump, wave, lambda z: np.cos(z), lambda z: np.cos(3 * z)):
        start = RNTK(HermiteActivation("mine", function), sigma_w=0.8, sigma_b=0.5)
        alone = RNTKClassifier(start=start).fit(X, y)
        cached = RNTKClassifier(start=start, cache=tmp_path).fit(X, y)
        np.testing.assert_allclose(cached.cv_results_["loo_error"], alone.cv_results_["loo_error"], rtol=1e-6)
        errors.append(alone.cv_results_["loo_error"][0])
    assert len({round(error, 4) for error in errors}) == 4


def test_a_cache_is_a_folder(tmp_path):
    X, y = waves(12, n=6)
    (tmp_path / "file").write_text("")
    for place, words in (("file", "there is a file of that name"), ("file/below", "Not a directory")):
        with pytest.raises(ValueError, match=f"can't be used as a folder: {words}"):
            RNTKClassifier(cache=tmp_path / place).fit(X, y)


# -- weights, and what is kept -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [RNTKClassifier(), RNTKRegressor()])
def test_a_weight_of_zero_is_as_if_the_sequence_were_not_there(learner):
    X, y = waves(14, n=20)
    y = y + 0.5 if isinstance(learner, RNTKRegressor) else y
    weight = np.where(np.arange(20) < 15, 2.0, 0.0)
    weighted, without = clone(learner).fit(X, y, weight), clone(learner).fit(X[:15], y[:15])
    assert len(weighted.sequences_) == 15
    assert weighted.best_params_ == pytest.approx(without.best_params_)
    np.testing.assert_allclose(weighted.predict(X), without.predict(X), rtol=1e-9)
    np.testing.assert_allclose(weighted.cv_results_["loo_error"], without.cv_results_["loo_error"], rtol=1e-9)


def test_weights_decide_what_is_right():
    """Two sequences alike with different labels: the heavier one is believed."""
    X, y = waves(15, n=20)
    X, y = [*X, X[0]], np.append(y, 1 - y[0])
    for heavy in (0, 20):
        weight = np.ones(21)
        weight[heavy] = 50.0
        assert RNTKClassifier().fit(X, y, weight).predict([X[0]]) == y[heavy]


def test_the_training_side_is_prepared_once_and_is_not_pickled():
    X, y = waves(16, n=12)
    model = RNTKClassifier().fit(X, y)
    expected = model.decision_function(X[:4])
    sides = [prepared._side for prepared in model._training()]
    model.decision_function(X[4:])
    assert all(a is prepared._side for a, prepared in zip(sides, model._training(), strict=True))
    again = pickle.loads(pickle.dumps(model))
    assert "_prepared" not in again.__dict__
    np.testing.assert_array_equal(again.decision_function(X[:4]), expected)
    model.fit(X[:10], y[:10])
    assert all(len(prepared) == 10 for prepared in model._training())


@pytest.mark.parametrize("given", [0, 1.5, True])
@BOTH
def test_wrong_parameters_are_named(learner, given):
    X, y = waves(12, n=6)
    with pytest.raises(ValueError, match="n_landmarks"):
        learner(n_landmarks=given).fit(X, y)
