"""Searches: closed forms against brute force, the paper's grids, samples, caches, ties."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.svm import SVC

from helpers.data import waves
from rntk import RNTK, RNTKClassifierCV, RNTKRegressorCV, as_batch, load, save, suggest
from rntk.learners.search import folds as folds_module
from rntk.learners.search import store as store_module
from rntk.learners.search.base import sample
from rntk.learners.search.fast import Trial, Verdict, choose, in_order
from rntk.learners.search.folds import MAX_ITERATIONS, class_folds, svm_scores
from rntk.learners.search.grids import FAMILIES, PAPER_C, Candidate, fast_grid, paper_grid
from rntk.learners.search.polynomial import Polynomial
from rntk.learners.search.ridge import ridge_path
from rntk.learners.search.store import GramStore
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


# -- grids -------------------------------------------------------------------------------------------------------------


def test_the_paper_s_grids_have_their_sizes():
    assert {family: len(paper_grid(family)) for family in FAMILIES} == {
        "rntk": 15 * 12 * 5,
        "ntk": 10 * 6 * 9,
        "rbf": 18,
        "polynomial": 30,
    }
    assert all(candidate.view == View("unit norm") for family in FAMILIES for candidate in paper_grid(family))


def test_kernels_of_the_paper_s_comparison():
    X = np.random.default_rng(0).standard_normal((4, 3))
    alpha, rbf = next((c.settings["alpha"], c.kernel) for c in paper_grid("rbf") if c.settings["alpha"] == 0.7)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(rbf(X), np.exp(-alpha * square), rtol=1e-12)
    np.testing.assert_allclose(Polynomial(3, 0.5)(X, X[:2]), (0.5 + X @ X[:2].T) ** 3)
    np.testing.assert_allclose(Polynomial(3, 0.5).diag(X), np.diag(Polynomial(3, 0.5)(X)))
    cosine = Polynomial(1, 0.0, cosine=True)(np.vstack([X, np.zeros(3)]))
    np.testing.assert_allclose(np.diag(cosine), [1, 1, 1, 1, 0])


def test_long_sequences_are_averaged_down_for_the_mean_readout_only():
    grid = fast_grid("rntk", as_batch(np.random.default_rng(0).standard_normal((3, 450))), 200)
    blocks = {(c.settings["readout"], c.view.block) for c in grid}
    assert blocks == {("mean", 3), ("mean", 5), ("last", 1)}
    short = fast_grid("rntk", as_batch(np.random.default_rng(0).standard_normal((3, 50))), 200)
    assert {c.view.block for c in short} == {1}
    assert len({(c.view, repr(c.kernel)) for c in short}) == len(short)


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


# -- the fast search ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_classifies(family):
    X, y = waves(0, n=24, lengths=(12, 13))
    model = RNTKClassifierCV(family=family, n_members=3).fit(X, y)
    new, wanted = waves(1, n=12, lengths=(12, 13))
    assert model.score(new, wanted) >= 0.75
    assert len(model.members_) == 3
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


def test_the_vote_is_the_mean_of_ridge_models():
    X, y = waves(2, n=20, classes=3)
    model = RNTKClassifierCV(n_members=2).fit(X, y)
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
    model = RNTKClassifierCV(n_members=1).fit(X, y)
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
    model = RNTKClassifierCV(max_sequences=20, n_members=2, random_state=1).fit(X, y)
    assert all(len(member.sequences) == 60 for member in model.members_)
    again = RNTKClassifierCV(max_sequences=20, n_members=2, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    groups = np.repeat([0, 1, 2], [80, 15, 5])
    kept = sample(100, groups, 40, np.random.RandomState(0))
    np.testing.assert_array_equal(np.bincount(groups[kept]), [32, 6, 2])
    assert sample(40, groups, 40, np.random.RandomState(0)) is None
    assert len(sample(100, None, 40, np.random.RandomState(0))) == 40


def trial(missed, error: float) -> Trial:
    losses = np.asarray(missed, dtype=float)
    verdict = Verdict(1 - float(losses.mean()), error, losses)
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
    model = RNTKRegressorCV(n_members=3).fit(X, y)
    assert model.predict(X).shape == (40, 2)
    assert model.score(X, y) > 0.5
    assert 0 < model.loo_score_ < model.score(X, y)
    one = RNTKRegressorCV(n_members=3).fit(X, y[:, 1])
    assert one.predict(X).shape == (40,)


def test_clone_pickle_and_cross_validation():
    X, y = waves(7, n=18)
    model = RNTKClassifierCV(n_members=2).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert not hasattr(clone(model), "members_")
    assert cross_val_score(RNTKClassifierCV(n_members=2), X, y, cv=3).mean() > 0.6


def test_multivariate_sequences():
    X, y = waves(8, n=20, channels=3)
    model = RNTKClassifierCV(n_members=2).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"1 channel,.*expecting 3"):
        model.predict([np.zeros(9)])


# -- a kernel to start with --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [RNTKClassifierCV, RNTKRegressorCV])
def test_a_search_tries_the_kernel_it_is_given(search, tmp_path):
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
    targets = np.where(np.asarray(y)[:, None] == np.arange(2), 1.0, -1.0) if search is RNTKClassifierCV else None
    if targets is not None:
        trial = started.cv_results_["params"].index(added[3])
        path = ridge_path(K, targets, np.array([started.cv_results_["ridge"][trial]]) * np.trace(K) / len(K))
        score = np.mean(path.left_out[0].argmax(axis=1) == y)
        assert score == started.cv_results_["mean_test_score"][trial]
    save(started, tmp_path / "model.rntk")
    np.testing.assert_array_equal(load(tmp_path / "model.rntk").predict(X), started.predict(X))
    assert clone(started).start.sigma_b == 0.123


def test_a_suggestion_starts_a_search():
    X, y = waves(4)
    found = suggest(X)
    model = RNTKClassifierCV(start=found.kernel).fit(X, y)
    assert model.cv_results_["params"][0]["sigma_w"] == found.kernel.sigma_w


def test_what_a_search_cannot_start_with():
    X, y = waves(5)
    for start, search in (("relu", "fast"), (RNTK(), "paper")):
        with pytest.raises(ValueError, match="start="):
            RNTKClassifierCV(start=start, search=search).fit(X, y)


# -- the paper's protocol ----------------------------------------------------------------------------------------------


def test_paper_scores_are_those_of_scikit_learn(monkeypatch):
    X, y = waves(9, n=24, lengths=(9, 10))
    model = RNTKClassifierCV(search="paper", family="polynomial", random_state=0).fit(X, y)
    folds = class_folds(y, 10, np.random.RandomState(0))
    unit = np.stack([x[:, 0] / np.linalg.norm(x) for x in X])
    for k in (0, 37, 149):
        settings = model.cv_results_["params"][k]
        K = (settings["offset"] + unit @ unit.T) ** settings["degree"]
        wanted = cross_val_score(SVC(kernel="precomputed", C=settings["C"]), K, y, cv=folds).mean()
        assert model.cv_results_["mean_test_score"][k] == pytest.approx(wanted)
    assert len(model.cv_results_["params"]) == 150
    assert model.best_index_ == np.argmax(model.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(View("unit norm")(as_batch(X))))


def test_a_larger_cost_changes_nothing_once_no_weight_is_at_its_bound():
    """Scores that were carried over from a smaller C are those of fits at the larger one."""
    X, y = waves(12, n=24, lengths=(12, 13))
    batch = as_batch(X)
    folds = class_folds(y, 4, np.random.RandomState(0))
    candidates = paper_grid("rntk")[::90]
    scores = svm_scores(candidates, GramStore(batch, None, 1), y, folds, PAPER_C, False)
    fitted = 0
    for row, candidate in zip(scores, candidates, strict=True):
        K = candidate.kernel(candidate.view(batch))
        for found, cost in zip(row, PAPER_C, strict=True):
            models = [SVC(kernel="precomputed", C=cost).fit(K[np.ix_(a, a)], y[a]) for a, _ in folds]
            wanted = np.mean([m.score(K[np.ix_(b, a)], y[b]) for m, (a, b) in zip(models, folds, strict=True)])
            assert found == pytest.approx(wanted, abs=1e-11)
            fitted += all(np.abs(m.dual_coef_).max() < cost / 10 for m in models)
    assert fitted > 5  # some were carried over


def test_a_kernel_on_which_libsvm_never_stops_does_not_stop_the_search(monkeypatch):
    """scikit-learn sets no limit; long sequences at sigma_w = 1.47 without bias need one."""
    assert (
        RNTKClassifierCV(search="paper", family="rbf").fit(*waves(9, lengths=(9, 10))).best_estimator_.max_iter
        == MAX_ITERATIONS
    )
    monkeypatch.setattr(folds_module, "MAX_ITERATIONS", 2)  # nothing converges, as there
    X, y = waves(12)
    batch = as_batch(X)
    scores = svm_scores(
        paper_grid("rntk")[::300], GramStore(batch, None, 1), y, class_folds(y, 3, None), PAPER_C, False
    )
    assert np.isfinite(scores).all()  # and no warning for each of them


def test_paper_regression():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((20, 6))
    model = RNTKRegressorCV(search="paper", family="rbf").fit(X, X[:, 0])
    assert model.best_params_["ridge"] in (0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, *range(1, 9), 10, 100)
    assert set(model.best_params_) == {"alpha", "ridge"}
    assert model.predict(X).shape == (20,)
    singular = RNTKRegressorCV(search="paper", family="polynomial").fit(np.vstack([X, X]), np.tile(X[:, 0], 2))
    assert singular.predict(X).shape == (20,)


def test_small_classes_do_not_stop_the_folds():
    y = np.array([0] * 8 + [1] * 2 + [2])
    folds = class_folds(y, 10, np.random.RandomState(0))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(11))
    with pytest.raises(ValueError, match="single sequence"):
        class_folds(np.arange(4), 10, np.random.RandomState(0))


@pytest.mark.parametrize("most, again", [(500, 0), (10, 2)])
def test_every_kernel_is_computed_once(monkeypatch, most, again):
    """Without a cache too; those chosen on a sample once more, on all sequences."""
    X, y = waves(13, n=14)
    calls = []
    real = store_module.gram
    monkeypatch.setattr(store_module, "gram", lambda *given: calls.append(given) or real(*given))
    model = RNTKClassifierCV(n_members=2, max_sequences=most).fit(X, y)
    assert len(calls) == len(model.cv_results_["params"]) + again


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_an_interrupted_search_goes_on_where_it_stopped(tmp_path, monkeypatch):
    X, y = waves(11, n=14)
    calls = []
    real = store_module.gram

    def counted(kernel, batch, other=None):
        calls.append(kernel)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(kernel, batch, other)

    monkeypatch.setattr(store_module, "gram", counted)
    with pytest.raises(KeyboardInterrupt):
        RNTKClassifierCV(cache=tmp_path).fit(X, y)
    assert len(list(tmp_path.glob("*.npy"))) == 5
    calls.clear()
    calls += [None] * 10
    model = RNTKClassifierCV(cache=tmp_path).fit(X, y)
    total = len(model.cv_results_["params"])
    assert len(calls) - 10 == total - 5  # each kernel once, members included
    calls.clear()
    calls += [None] * 10
    again = RNTKClassifierCV(cache=tmp_path).fit(X, y)
    assert len(calls) == 10
    np.testing.assert_allclose(again.decision_function(X), RNTKClassifierCV().fit(X, y).decision_function(X), atol=1e-6)


def test_the_cache_knows_data_kernels_and_broken_files(tmp_path):
    batch, other = as_batch(np.eye(3)), as_batch(np.eye(3) + 1)
    a = Candidate(View("values"), RNTK(sigma_w=1.0), {})
    b = Candidate(View("values"), RNTK(sigma_w=1.1), {})
    c = Candidate(View("differences"), RNTK(sigma_w=1.0), {})
    paths = {GramStore(x, tmp_path, 1)._path(k) for x in (batch, other) for k in (a, b, c)}
    assert len(paths) == 6
    store = GramStore(batch, tmp_path, 1)
    K = store.gram(a)
    np.testing.assert_array_equal(K, store.gram(a))
    store._path(a).write_bytes(b"not an array")
    np.testing.assert_array_equal(K, store.gram(a))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cache"):
        GramStore(batch, tmp_path / "file", 1)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"search": "slow"}, "search"),
        ({"family": "gak"}, "family"),
        ({"n_members": 0}, "n_members"),
        ({"max_length": 1.5}, "max_length"),
        ({"max_sequences": True}, "max_sequences"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    X, y = waves(12, n=6)
    for learner in (RNTKClassifierCV, RNTKRegressorCV):
        with pytest.raises(ValueError, match=message):
            learner(**settings).fit(X, y)
