"""The learners that choose their kernels: closed forms against brute force, views, samples, caches, ties, weights."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut, cross_val_score

from helpers.data import waves
from rntk import RNTK, RNTKClassifier, RNTKClassifierCV, RNTKRegressor, RNTKRegressorCV, as_batch, load, save, suggest
from rntk.activations import HermiteActivation
from rntk.learners.search import candidates, ensemble
from rntk.learners.search.candidates import Candidate, candidates_for
from rntk.learners.search.ensemble import Trial, choose, in_order, sample
from rntk.learners.search.leave_one_out import Judgement, ridge_path
from rntk.learners.search.views import VIEWS, View, scaled_view


def test_left_out_predictions_are_those_of_models_fitted_to_the_others():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((14, 20))
    K, targets = A @ A.T, rng.standard_normal((14, 3))
    ridges = np.array([1e-3, 0.5, 20.0])
    path = ridge_path(K, targets, ridges)
    for r, ridge in enumerate(ridges):
        np.testing.assert_allclose(path.dual[r], np.linalg.solve(K + ridge * np.eye(14), targets), rtol=1e-8)
        for i, (rest, _) in enumerate(LeaveOneOut().split(K)):
            dual = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(13), targets[rest])
            np.testing.assert_allclose(path.left_out[r, i], K[i, rest] @ dual, rtol=1e-7, atol=1e-9)


def test_left_out_predictions_of_weighted_sequences():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((14, 20))
    K, targets, weight = A @ A.T, rng.standard_normal((14, 3)), rng.uniform(0.2, 3.0, 14)
    path = ridge_path(K, targets, np.array([0.5]), weight)
    np.testing.assert_allclose(path.dual[0], np.linalg.solve(K + 0.5 * np.diag(1 / weight), targets), rtol=1e-8)
    for i, (rest, _) in enumerate(LeaveOneOut().split(K)):
        dual = np.linalg.solve(K[np.ix_(rest, rest)] + 0.5 * np.diag(1 / weight[rest]), targets[rest])
        np.testing.assert_allclose(path.left_out[0, i], K[i, rest] @ dual, rtol=1e-7, atol=1e-9)


def test_the_learners_have_another_name():
    assert RNTKClassifierCV is RNTKClassifier
    assert RNTKRegressorCV is RNTKRegressor


# -- candidates --------------------------------------------------------------------------------------------------------


def test_long_sequences_are_averaged_down_for_the_mean_readout_only():
    grid = candidates_for(as_batch(np.random.default_rng(0).standard_normal((3, 450))), 200)
    blocks = {(c.settings["readout"], c.view.block) for c in grid}
    assert blocks == {("mean", 3), ("mean", 5), ("last", 1)}
    short = candidates_for(as_batch(np.random.default_rng(0).standard_normal((3, 50))), 200)
    assert {c.view.block for c in short} == {1}
    assert len({(c.view, repr(c.kernel)) for c in short}) == len(short)


@pytest.mark.parametrize("source", [RNTKClassifier.__doc__, Path("docs/tutorials/classify-your-series.md")])
def test_the_number_of_kernels_is_what_the_pages_say(source):
    """Few for short sequences that are z-normalised, most for long ones that differ in size."""
    rng, counts = np.random.default_rng(0), []
    for length in (50, 150, 450):
        X = rng.standard_normal((5, length)) * [[1], [2], [3], [4], [5]]
        counts += [len(candidates_for(as_batch(each), 200)) for each in (X, View("values")(as_batch(X)))]
    text = source if isinstance(source, str) else (Path(__file__).parents[2] / source).read_text(encoding="utf-8")
    assert re.findall(r"tries (.*?) kernels", text) == [f"{min(counts)} to {max(counts)}"]


# -- views -------------------------------------------------------------------------------------------------------------


def test_views_by_hand():
    batch = as_batch([[0.0, 2.0, 4.0, 6.0], [1.0, 1.0, 3.0]])
    np.testing.assert_allclose(View("unit norm")(batch)[1][:, 0], np.array([1, 1, 3]) / np.sqrt(11))
    values = View("values", 2)(batch)
    np.testing.assert_allclose(values[0][:, 0], [-1, 1])  # means 1 and 5
    np.testing.assert_allclose(View("differences")(batch)[1][:, 0], [-1, 1])  # 0 and 2
    np.testing.assert_allclose(View("scaled", mean=(1.0,), deviation=(2.0,))(batch)[0][:, 0], [-0.5, 0.5, 1.5, 2.5])
    np.testing.assert_allclose(View("values", 2, clock=3.0)(batch)[0], [[-1, -3], [1, 3]])
    pair = as_batch(np.ones((2, 3, 4)))
    np.testing.assert_allclose(View("values", clock=3.0)(pair)[1][:, 4], [-6, 0, 6])  # √4 as far beside 4 channels
    with pytest.raises(ValueError, match="a view is one of"):
        View("sideways")
    assert set(VIEWS) == {"scaled", "unit norm", "values", "differences"}


def test_the_scaled_view_is_for_sequences_that_differ_in_level_or_size():
    rng = np.random.default_rng(0)
    raw = as_batch([rng.standard_normal(30) * size + level for size, level in ((1, 0), (2, 5), (0.5, -3))])
    view = scaled_view(raw, 1)
    assert view is not None
    shown = view(raw).values
    assert shown.mean() == pytest.approx(0, abs=1e-12) and shown.std() == pytest.approx(1)
    assert scaled_view(View("values")(raw), 1) is None


# -- the search --------------------------------------------------------------------------------------------------------


def test_it_classifies():
    X, y = waves(0, n=24, lengths=(12, 13))
    model = RNTKClassifier(n_members=3).fit(X, y)
    new, wanted = waves(1, n=12, lengths=(12, 13))
    assert model.score(new, wanted) >= 0.75
    assert len(model.members_) == 3
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


def test_the_vote_is_the_mean_of_ridge_models():
    X, y = waves(2, n=20, classes=3)
    model = RNTKClassifier(n_members=2).fit(X, y)
    new = as_batch(waves(3, n=4, classes=3)[0])
    targets, total = np.where(y[:, None] == np.arange(3), 1.0, -1.0), 0
    for member in model.members_:
        left, right = member.view(as_batch(X)), member.view(new)
        K = np.asarray(member.kernel(left), dtype=np.float64)
        total = total + member.kernel(right, left) @ np.linalg.solve(K + member.ridge * np.eye(20), targets)
    np.testing.assert_allclose(model.decision_function(new), total / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.predict(new), model.classes_[(total / 2).argmax(axis=1)])


def test_leave_one_out_score_of_the_search_is_that_of_brute_force():
    X, y = waves(4, n=12)
    model = RNTKClassifier(n_members=1).fit(X, y)
    member, hits = model.members_[0], 0
    batch = member.view(as_batch(X))
    K = np.asarray(member.kernel(batch), dtype=np.float64)
    targets = np.where(y[:, None] == np.arange(2), 1.0, -1.0)
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        dual = np.linalg.solve(K[np.ix_(rest, rest)] + member.ridge * np.eye(11), targets[rest])
        hits += (K[i, rest] @ dual).argmax() == y[i]
    assert model.loo_score_ == model.best_score_ == hits / 12


def test_many_sequences_are_searched_on_a_stratified_sample_and_fitted_whole():
    X, y = waves(5, n=60, classes=3)
    model = RNTKClassifier(max_sequences=20, n_members=2, random_state=1).fit(X, y)
    assert len(model.sequences_) == 60
    assert all(member.dual.shape == (60, 3) for member in model.members_)
    again = RNTKClassifier(max_sequences=20, n_members=2, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    groups = np.repeat([0, 1, 2], [80, 15, 5])
    kept = sample(100, groups, 40, np.random.RandomState(0))
    np.testing.assert_array_equal(np.bincount(groups[kept]), [32, 6, 2])
    np.testing.assert_array_equal(sample(40, groups[:40], 40, np.random.RandomState(0)), np.arange(40))
    assert len(sample(100, None, 40, np.random.RandomState(0))) == 40


def trial(missed, error: float) -> Trial:
    losses = np.asarray(missed, dtype=float)
    verdict = Judgement(1 - float(losses.mean()), error, losses)
    return Trial(Candidate(View("values"), None, {}), verdict, 1.0, 0.0, np.empty(0), np.empty(0))


def test_ties_go_to_the_smaller_error_and_then_to_the_first():
    two, one = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    trials = [trial(two, 1.0), trial(one, 2.0), trial(one, 1.0), trial(one, 1.0)]
    assert in_order(trials) == [2, 3, 1, 0]
    assert choose(trials, 3) == [2, 3, 1]


def test_what_is_clearly_worse_has_no_vote():
    """Of 100 sequences the best misses 5. Others miss more: the question is how surely."""
    best = np.zeros(100)
    best[:5] = 1

    def worse_by(lost: int, won: int) -> Trial:
        missed = best.copy()
        missed[5 : 5 + lost] = 1
        missed[:won] = 0
        return trial(missed, 1.0)

    # Excess (lost - won) / 100, with a variance of (lost + won) / 100 - excess².
    trials = [trial(best, 1.0), worse_by(3, 0), worse_by(6, 0), worse_by(8, 3), worse_by(12, 3)]
    for other, kept in zip(trials[1:], (True, False, True, False), strict=True):
        excess = other.verdict.losses - best
        assert kept == (excess.mean() <= 2 * excess.std() / 10)
    assert choose(trials, 5) == [0, 1, 3]
    assert choose([trials[4]] * 3, 2) == [0, 1]


def test_regression_and_its_targets():
    rng = np.random.default_rng(6)
    X = [rng.standard_normal(rng.integers(8, 14)).cumsum() for _ in range(40)]
    y = np.array([[x[-1] - x[0], 3 + x.std()] for x in X])
    model = RNTKRegressor(n_members=3).fit(X, y)
    assert model.predict(X).shape == (40, 2)
    assert model.score(X, y) > 0.5
    assert 0 < model.loo_score_ < model.score(X, y)
    one = RNTKRegressor(n_members=3).fit(X, y[:, 1])
    assert one.predict(X).shape == (40,)


def test_clone_pickle_and_cross_validation():
    X, y = waves(7, n=18)
    model = RNTKClassifier(n_members=2).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert not hasattr(clone(model), "members_")
    assert cross_val_score(RNTKClassifier(n_members=2), X, y, cv=3).mean() > 0.6


def test_multivariate_sequences():
    X, y = waves(8, n=20, channels=3)
    model = RNTKClassifier(n_members=2).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"1 channel,.*expecting 3"):
        model.predict([np.zeros(9)])


# -- a kernel to start with --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [RNTKClassifier, RNTKRegressor])
def test_a_search_tries_the_kernel_it_is_given(search):
    X, y = waves(3)
    start = RNTK(sigma_w=1.3, sigma_b=0.123)
    plain, started = search().fit(X, y), search(start=start).fit(X, y)
    added = [params for params in started.cv_results_["params"] if params.get("start")]
    assert [(each["view"], each["sigma_w"]) for each in added] == [
        (view, 1.3 * factor) for view in ("values", "differences") for factor in (1.0, 0.95, 1.05)
    ]
    assert started.cv_results_["params"][6:] == plain.cv_results_["params"]
    assert start.sigma_w == 1.3  # left alone
    # Their scores are those of the kernel itself on that view.
    batch = as_batch(X)
    K = start(View("differences")(batch))
    targets = np.where(np.asarray(y)[:, None] == np.arange(2), 1.0, -1.0) if search is RNTKClassifier else None
    if targets is not None:
        trial = started.cv_results_["params"].index(added[3])
        path = ridge_path(K, targets, np.array([started.cv_results_["ridge"][trial]]) * np.trace(K) / len(K))
        score = np.mean(path.left_out[0].argmax(axis=1) == y)
        assert score == started.cv_results_["mean_test_score"][trial]
    assert clone(started).start.sigma_b == 0.123


def test_a_suggestion_starts_a_search():
    X, y = waves(4)
    found = suggest(X)
    model = RNTKClassifier(start=found.kernel).fit(X, y)
    assert model.cv_results_["params"][0]["sigma_w"] == found.kernel.sigma_w


def test_what_a_search_cannot_start_with():
    X, y = waves(5)
    with pytest.raises(ValueError, match="start="):
        RNTKClassifier(start="relu").fit(X, y)


@pytest.mark.parametrize("most, again", [(500, 0), (10, 2)])
def test_every_kernel_is_computed_once(monkeypatch, most, again):
    """Without a cache too; those chosen on a sample once more, on all sequences."""
    X, y = waves(13, n=14)
    calls = []
    real = ensemble.gram
    monkeypatch.setattr(ensemble, "gram", lambda *given: calls.append(given) or real(*given))
    model = RNTKClassifier(n_members=2, max_sequences=most).fit(X, y)
    assert len(calls) == len(model.cv_results_["params"]) + again


# -- what is said and shown --------------------------------------------------------------------------------------------


def test_what_saves_time_is_said_and_kept(capsys, tmp_path):
    X, y = waves(5, n=40, lengths=(20, 26))
    model = RNTKClassifier(max_length=8, max_sequences=30, n_members=2, progress=True).fit(X, y)
    averaged, sampled = model.notes_
    assert re.search(r"up to 25 steps are averaged down to 7 and 4 .*max_length=8", averaged)
    assert "30 of 40 sequences (max_sequences=30)" in sampled
    shown = capsys.readouterr().err
    assert all(shown.count(f"rntk: {note}\n") == 1 and note in model.summary() for note in model.notes_)
    save(model, tmp_path / "model.rntk")
    assert load(tmp_path / "model.rntk").notes_ == model.notes_
    assert RNTKClassifier(n_members=2).fit(X, y).notes_ == []


def test_a_search_of_more_than_a_minute_says_so_before(monkeypatch):
    X, y = waves(5, n=20)
    monkeypatch.setattr(ensemble, "estimate_seconds", lambda work, prepare: 200.0)
    model = RNTKClassifier(n_members=2).fit(X, y)
    assert re.fullmatch(r"\d+ kernels take about 3 min and \S+ \wB of memory", model.notes_[-1])


def test_the_estimate_is_of_the_right_size(monkeypatch):
    """Measured on a few sequences, for all of them; nothing is measured if it is little anyway."""
    X, y = waves(6, n=120, lengths=(60, 61))
    batch = as_batch(X)
    work = [(candidates_for(batch, 200), batch)]
    kernels = []
    assert candidates.estimate_seconds(work, kernels.append) == 0.0
    assert not kernels
    monkeypatch.setattr(candidates, "SLOW_STEP", 1.0)
    RNTKClassifier().fit(X, y)  # compiled
    real = RNTKClassifier().fit(X, y).cv_results_["seconds"].sum()
    assert real / 30 < candidates.estimate_seconds(work, lambda kernel: kernel) < 30 * real


def test_members_print_as_a_table(tmp_path):
    X, y = waves(0, n=24)
    model = RNTKClassifier(n_members=3).fit(X, y)
    lines = repr(model.members_).splitlines()
    assert len(lines) == 2 + len(model.members_)
    assert lines[0].split() == ["view", "kernel", "ridge"]
    assert all(str(member.kernel) in line for member, line in zip(model.members_, lines[2:], strict=True))
    assert "array" not in repr(model.members_[0])
    save(model, tmp_path / "model.rntk")
    assert repr(load(tmp_path / "model.rntk").members_) == repr(model.members_)
    assert repr(pickle.loads(pickle.dumps(model)).members_) == repr(model.members_)
    with pytest.raises(AttributeError, match="not fitted"):
        RNTKClassifier().members_  # noqa: B018


def test_prediction_shows_one_bar_and_looks_once_at_each_view(monkeypatch, capsys):
    X, y = waves(0, n=24)
    model = RNTKClassifier(n_members=8, progress=True).fit(X, y)
    capsys.readouterr()
    seen = []
    real = View.__call__
    monkeypatch.setattr(View, "__call__", lambda self, batch: seen.append(self) or real(self, batch))
    model.predict(X)
    assert sorted(map(str, seen)) == sorted({str(member.view) for member in model.members_})
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "Prediction" in shown


@pytest.mark.parametrize("learner", [RNTKClassifier, RNTKRegressor])
def test_notebooks_show_learners(learner):
    X, y = waves(0, n=12)
    assert "RNTK(sigma_w=1.2)" in learner(start=RNTK(sigma_w=1.2)).fit(X, y)._repr_html_()


# -- the cache ---------------------------------------------------------------------------------------------------------


def entries(folder):
    """What is kept, and when it was last changed."""
    return {each: max(file.stat().st_mtime_ns for file in each.rglob("*")) for each in folder.iterdir()}


def test_an_interrupted_search_goes_on_where_it_stopped(tmp_path, monkeypatch):
    X, y = waves(11, n=14)
    calls = []
    real = ensemble.gram

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(ensemble, "gram", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RNTKClassifier(cache=tmp_path).fit(X, y)
    first = entries(tmp_path)
    assert len(first) == 5
    model = RNTKClassifier(cache=tmp_path).fit(X, y)
    whole = entries(tmp_path)
    assert len(whole) == len(model.cv_results_["params"])
    assert first.items() <= whole.items()
    again = RNTKClassifier(cache=tmp_path).fit(X, y)
    assert entries(tmp_path) == whole
    np.testing.assert_allclose(again.decision_function(X), RNTKClassifier().fit(X, y).decision_function(X), atol=1e-6)


def bump(z):
    return np.exp(-(z**2) / 2)


def wave(z):
    return np.sin(1.5 * z)


def test_two_activations_of_one_name_share_no_matrix(tmp_path):
    """The cache once knew a kernel by the text of its parameters, and an activation's text is its name."""
    X, y = waves(12, n=14)
    errors = []
    for function in (bump, wave):
        start = RNTK(HermiteActivation("mine", function), sigma_w=0.8, sigma_b=0.5)
        alone = RNTKClassifier(start=start).fit(X, y)
        cached = RNTKClassifier(start=start, cache=tmp_path).fit(X, y)
        np.testing.assert_allclose(cached.cv_results_["loo_error"], alone.cv_results_["loo_error"], rtol=1e-6)
        errors.append(alone.cv_results_["loo_error"][0])
    assert abs(errors[0] - errors[1]) > 1e-3


def test_a_cache_is_a_folder(tmp_path):
    X, y = waves(12, n=6)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="can't be used as a folder"):
        RNTKClassifier(cache=tmp_path / "file").fit(X, y)


# -- weights, and what is kept -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [RNTKClassifier(n_members=3), RNTKRegressor(n_members=3)])
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
    """Two sequences alike with different labels: the heavier one is believed, and its class counts in the score."""
    X, y = waves(15, n=20)
    X, y = [*X, X[0]], np.append(y, 1 - y[0])
    for heavy in (0, 20):
        weight = np.ones(21)
        weight[heavy] = 50.0
        model = RNTKClassifier(n_members=1).fit(X, y, weight)
        assert model.predict([X[0]]) == y[heavy]


def test_the_training_side_is_prepared_once_and_is_not_pickled():
    X, y = waves(16, n=12)
    model = RNTKClassifier(n_members=3).fit(X, y)
    expected = model.decision_function(X[:4])
    sides = [prepared._side for prepared in model._training()]
    model.decision_function(X[4:])
    assert all(a is prepared._side for a, prepared in zip(sides, model._training(), strict=True))
    again = pickle.loads(pickle.dumps(model))
    assert "_prepared" not in again.__dict__
    np.testing.assert_array_equal(again.decision_function(X[:4]), expected)
    model.fit(X[:10], y[:10])
    assert all(len(prepared) == 10 for prepared in model._training())


def test_the_documentation_names_every_view():
    """It once said two, values and differences."""
    tutorial = Path(__file__).parents[2] / "docs" / "tutorials" / "classify-your-series.md"
    for text in (RNTKClassifier.__doc__, tutorial.read_text(encoding="utf-8")):
        text = " ".join(text.split())
        assert "four views" in text
        for name in VIEWS:
            assert name in text, name


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"n_members": 0}, "n_members"),
        ({"max_length": 1.5}, "max_length"),
        ({"max_sequences": True}, "max_sequences"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    X, y = waves(12, n=6)
    for learner in (RNTKClassifier, RNTKRegressor):
        with pytest.raises(ValueError, match=message):
            learner(**settings).fit(X, y)
