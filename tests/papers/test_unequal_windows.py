"""Windows of unequal length, Figure 4 of the RNTK paper: the fast path against the plain one, records, claims."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.records import check_pictures
from helpers.tolerances import relative_error
from rntk import NTK, RNTK, as_batch, papers
from rntk.learners.ridge import solve_ridge
from rntk.papers import STUDIES, PaperRegressor, Results, protocol
from rntk.papers.data.segments import last_values, sinusoid, windows, zero_padded
from rntk.papers.protocol import FAMILIES, RIDGES, paper_grid, plain_folds
from rntk.papers.studies import rntk_figure_4 as module
from rntk.papers.studies import rntk_figure_4_search as window_search
from rntk.papers.studies.rntk_figure_4 import CLAIMS, PANELS, WindowSettings, days_in_use, draw
from rntk.papers.studies.rntk_figure_4_search import cross_validate, feedforward_grams, recurrent_grams, ridge_losses

# -- windows -----------------------------------------------------------------------------------------------------------


def test_windows_are_pieces_of_the_series_and_the_next_value_follows():
    series = np.arange(50.0)
    batch, targets = windows(series, 400, 3, 5, np.random.default_rng(0), first=10, last=30)
    for window, target in zip(batch, targets, strict=True):
        assert (np.diff(window[:, 0]) == 1).all() and target == window[-1, 0] + 1
    assert set(batch.lengths) == {3, 4, 5}
    # The ends of the range are reached, and not passed: window and next value lie in series[10:30].
    assert batch.values.min() == 10 and targets.max() == 29
    again, shifted = windows(series, 400, 3, 5, np.random.default_rng(0), 10, 30, following=series + 100)
    assert (again.values == batch.values).all() and (shifted == targets + 100).all()


def test_the_longest_window_that_fits():
    batch, targets = windows(np.arange(4.0), 3, 3, 3, np.random.default_rng(0))
    assert (batch.values.reshape(3, 3) == [0, 1, 2]).all() and (targets == 3).all()


@pytest.mark.parametrize("wrong", [(5, 4, 4, 4), (5, 0, 1, 4), (5, 3, 2, 9), (0, 1, 2, 9)])
def test_windows_that_cannot_be_cut(wrong):
    count, shortest, longest, samples = wrong
    with pytest.raises(ValueError, match="can't cut"):
        windows(np.arange(float(samples)), count, shortest, longest, np.random.default_rng(0))


def test_sinusoid_and_padding_by_hand():
    np.testing.assert_allclose(sinusoid(4, noise=0), [0, 1, 0, -1], atol=1e-15)
    noise = sinusoid(100_000, noise=0.3) - sinusoid(100_000, noise=0)
    assert noise.std() == pytest.approx(0.3, rel=0.02) and abs(noise.mean()) < 0.005
    batch = as_batch([[1.0, 2.0, 3.0], [4.0]])
    assert zero_padded(batch, 4).tolist() == [[1, 2, 3, 0], [4, 0, 0, 0]]
    assert zero_padded(batch, 4, "start").tolist() == [[0, 1, 2, 3], [0, 0, 0, 4]]
    assert last_values(batch).tolist() == [3, 4]
    with pytest.raises(ValueError, match="can't pad"):
        zero_padded(batch, 2)


# -- many kernels at once ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    """Eleven windows of unequal length, so that folds are unequal too, with one that begins with zeros."""
    batch, y = windows(sinusoid(), 10, 4, 9, np.random.default_rng(3))
    batch = as_batch([*batch, np.array([[0.0], [0.0], [0.3], [-0.2]])])
    return batch, zero_padded(batch, 9), np.append(y, 0.1)


def test_recurrent_grams_are_those_of_the_reference_engine(drawn):
    batch, _, _ = drawn
    lanes = [(1.34, 0.0, 0.0), (1.47, 2.0, 1.0), (1.41, 0.0, 0.5), (1.4, 0.3, 0.0)] * 2
    K = recurrent_grams(batch, *np.array(lanes).T)
    for k, (w, b, h) in enumerate(lanes):
        plain = RNTK(sigma_w=w, sigma_b=b, sigma_h=h, engine="reference")(batch)
        assert relative_error(K[:, :, k], plain) < 1e-13


def test_feedforward_grams_of_all_depths(drawn):
    _, X, _ = drawn
    lanes = [(0.5, 0.0), (3.0, 5.0), (2**0.5, 0.0), (2.0, 0.1)] * 2
    K = feedforward_grams(X, *np.array(lanes).T, depths=10)
    for depth in (1, 2, 10):
        for k, (w, b) in enumerate(lanes):
            assert relative_error(K[depth - 1, :, :, k], NTK(depth=depth, sigma_w=w, sigma_b=b)(X)) < 1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_are_those_of_one_fit_after_another(drawn, family):
    batch, X, y = drawn
    folds = plain_folds(len(y), 5, 7)
    assert len({len(test) for _, test in folds}) == 2
    losses = cross_validate(family, batch, X, y, folds)
    grid = paper_grid(family)
    assert losses.shape == (len(grid), len(RIDGES))
    for k in {*range(0, len(grid), max(1, len(grid) // 12)), len(grid) - 1}:
        K = grid[k].kernel(batch if family == "rntk" else X)
        for r, ridge in enumerate(RIDGES):
            each = []
            for train, test in folds:
                inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
                # RNTK matrices are regular without a ridge; others get the least one.
                least = 0 if family == "rntk" else 1e-11 * np.trace(inner)
                each.append(np.mean(np.square(y[test] - outer @ solve_ridge(inner, y[train], max(ridge, least)))))
            assert losses[k, r] == pytest.approx(np.mean(each), rel=1e-7 if ridge or family == "rntk" else 1e-3)


def test_a_window_drawn_twice_is_no_obstacle():
    """The Gram matrix is singular; without a ridge that means the solution of smallest norm."""
    batch, y = windows(sinusoid(), 9, 4, 9, np.random.default_rng(3))
    batch, y = batch.take(np.array([*range(9), 0])), np.append(y, y[0])
    K = RNTK(sigma_w=1.4)(batch)
    folds = [(np.array([0, 1, 2, 3, 4, 9]), np.array([5, 6, 7, 8]))]
    ((train, test),) = folds
    found = ridge_losses(np.repeat(K[:, :, None], 8, axis=2), y, folds, (0.0,))
    wanted = np.mean(np.square(y[test] - K[np.ix_(test, train)] @ np.linalg.pinv(K[np.ix_(train, train)]) @ y[train]))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_windows_far_apart_have_nothing_in_common():
    """Off-diagonals of an RBF matrix that underflow, or whose squares do: it predicts zero."""
    y = np.random.default_rng(0).standard_normal(10)
    K = np.repeat(np.eye(10)[:, :, None], 8, axis=2)
    K[:, :, 1:] += 10.0 ** np.array([-320, -300, -200, -160, -150, -140, -100]) * (1 - np.eye(10))[:, :, None]
    folds = plain_folds(10, 5, 0)
    np.testing.assert_allclose(ridge_losses(K, y, folds, RIDGES), np.square(y).mean(), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_repetition_is_the_paper_s_search(family, monkeypatch):
    """Draws, folds, choice, fit, prediction and SNR, against `PaperRegressor`, which sees windows of unit norm."""
    grid = paper_grid(family)
    if family == "rntk":
        grid = grid[::61]
    if family == "ntk":
        grid = [each for each in grid if each.settings["sigma_w"] in (1, 2) and each.settings["sigma_b"] in (0, 0.5)]
    for part in (module, window_search):
        monkeypatch.setattr(part, "candidates", lambda name: grid)
    monkeypatch.setattr(protocol, "paper_grid", lambda name, every: grid)
    monkeypatch.setattr(module, "FAMILIES", (family,))
    monkeypatch.setattr(module, "METHODS", ("kernel", "PTS"))
    setup = WindowSettings(n_train=12, n_test=40, t_var=6, noise=0.1, normalize="unit", targets="observed")
    snr, chosen = module.repetition(setup, 4, None)
    train, test, seed = draw(setup, 4, None)
    model = PaperRegressor(family, random_state=seed, n_jobs=1)
    known, new = (train.batch, test.batch) if family == "rntk" else (train.padded, test.padded)
    error = np.square(test.targets - model.fit(known, train.targets).predict(new)).sum()
    assert snr[0] == pytest.approx(10 * np.log10(np.square(test.targets).sum() / error), abs=1e-6)
    assert snr[1] == pytest.approx(
        10 * np.log10(np.square(test.targets).sum() / np.square(test.targets - test.last).sum())
    )
    assert chosen["kernel"] == model.best_params_


# -- repetitions -------------------------------------------------------------------------------------------------------


def test_what_the_settings_mean():
    series = sinusoid(noise=0.05, random_state=np.random.default_rng([0, 0]))
    train, test, seed = draw(WindowSettings(n_train=5, n_test=7), 3, None)
    for part in (train, test):
        for window, row, target, last in zip(part.batch, part.padded, part.targets, part.last, strict=True):
            start = int(np.flatnonzero(series == window[0, 0])[0])
            end = start + len(window)
            assert (series[start:end] == window[:, 0]).all() and last == window[-1, 0]
            assert target == sinusoid(noise=0)[end]  # noise is in the inputs only
            assert (row[: len(window)] == window[:, 0]).all() and (row[len(window) :] == 0).all()
    same = {"n_train": 5, "n_test": 7}
    train_observed, test_observed, again = draw(WindowSettings(targets="observed", **same), 3, None)
    train_mixed, test_mixed, _ = draw(WindowSettings(targets="clean test", **same), 3, None)
    assert again == seed and (train_observed.targets != train.targets).all()
    assert (train_mixed.targets == train_observed.targets).all() and (test_mixed.targets == test.targets).all()
    assert (test_observed.targets != test.targets).all()
    scaled, _, _ = draw(WindowSettings(normalize="unit", **same), 3, None)
    norms = np.array([np.linalg.norm(window) for window in train.batch])
    np.testing.assert_allclose(scaled.batch.values, train.batch.values / np.repeat(norms, train.batch.lengths)[:, None])


def test_stock_windows_come_from_their_own_days():
    series = 100 + np.arange(1000.0)
    daily = days_in_use(series)
    np.testing.assert_allclose(daily, (series[:975] - 449.5) / np.arange(700.0).std())
    train, test, _ = draw(WindowSettings("stock", n_train=60, n_test=300), 0, daily)
    assert train.batch.values.min() >= daily[0] and train.targets.max() < daily[700]
    assert test.batch.values.min() >= daily[700] and test.targets.max() <= daily[974]
    with pytest.raises(ValueError, match="975 days are needed, out of 974"):
        days_in_use(series[:974])


SMALL = {"n_test": 50, "n_train": 8, "t_fixed": 4}


def test_blocks_of_repetitions_are_one_point():
    study = STUDIES["rntk-figure-4a"]
    blocks = {
        name: study.compute(None, source="sinusoid", t_var=3, repetitions=count, first_repetition=first, **SMALL)
        for name, count, first in (("later", 2, 1), ("first", 1, 0), ("all", 3, 0))
    }
    values, (joined,) = study._points(Results({name: blocks[name] for name in ("later", "first")}))
    assert values == [3] and (joined == blocks["all"]["snr"]).all() and len({tuple(row) for row in joined}) == 3
    for by_name in blocks["all"]["chosen"].values():
        assert all(sum(counts.values()) == 3 for counts in by_name.values())


def test_points_in_any_order_make_a_panel():
    run = papers.run("rntk-figure-4a", only=["t-var-5.0", "t-var-0.0"], repetitions=2, **SMALL)
    assert [each.settings["t_var"] for each in run.results.values()] == [0, 5]
    check_pictures(run)
    check_pictures(papers.run("rntk-figure-4b", only=["noise-0.01.0"], repetitions=1, **SMALL))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"source": "sine"}, "source must be one of 'sinusoid', 'stock', not 'sine'"),
        ({"padding": "middle"}, "padding must be one of"),
    ],
)
def test_refusals(wrong, words):
    with pytest.raises(ValueError, match=words):
        WindowSettings(**wrong)


# -- what the paper says -----------------------------------------------------------------------------------------------


def judged(panel: str, values: tuple[float, ...], means: list[list[float]]) -> dict[str, bool]:
    study = STUDIES[f"rntk-figure-4{panel}"]
    varied = PANELS[panel][1]
    found = {
        str(k): {"settings": {varied: value}, "first_repetition": 0, "snr": [row] * 10}
        for k, (value, row) in enumerate(zip(values, means, strict=True))
    }
    rows = study.verdicts(Results(found))
    return {
        row["key"]: row["verdict"] in ("reproduced", "under conditions") for row in rows if row["verdict"] != "not run"
    }


def keys(panel: str) -> list[str]:
    return [claim.key for claim in CLAIMS[panel]]


def test_checks_say_what_the_means_say():
    # RNTK, NTK, RBF, polynomial, PTS
    as_printed = [[26, 24, 23, 25, 20], [25, 18, 16, 22, 20]]
    assert judged("a", (5, 40), as_printed) == dict.fromkeys(keys("a"), True)
    assert judged("a", (5, 40), [[24, 25, 26, 19, 25], [22, 23, 24, 21, 22]]) == dict.fromkeys(keys("a"), False)
    # Where all lengths are equal nothing is claimed of the order.
    assert judged("a", (0, 5), [[24, 25, 22, 23, 20], as_printed[0]])["ahead"]
    assert judged("b", (0.1, 1.0), [[9, 8, 7, 6, 5], [1, 2, 1, 0, 0]]) == dict.fromkeys(keys("b"), True)
    assert judged("b", (0.1, 1.0), [[7, 8, 7, 6, 5], [3, 2, 1, 0, 0]]) == dict.fromkeys(keys("b"), False)
    assert judged("c", (0, 9), [[30, 29, 9, 9, 40], [28, 26, 9, 9, 40]]) == dict.fromkeys(keys("c"), True)
    assert judged("c", (2, 9), [[30, 29, 9, 41, 40], [28, 26, 9, 41, 40]]) == dict.fromkeys(keys("c"), False)
    assert judged("d", (5, 50), [[30, 20, 10, 15, 40], [31, 25, 15, 20, 40]]) == dict.fromkeys(keys("d"), True)
    assert judged("d", (5, 50), [[31, 29, 32, 31, 30], [31, 29, 32, 30, 30]]) == dict.fromkeys(keys("d"), False)
    single = judged("d", (5,), [[30, 20, 10, 15, 40]])
    assert single == {"nearest": True, "pts": True}


def test_figure_4_in_small():
    """Where lengths vary the RNTK is ahead, more so the more they vary; the noise of inputs costs it most."""
    run = papers.run("rntk-figure-4a", only=["t-var-5.0", "t-var-40.0"], repetitions=10, n_test=300)
    found = {row["key"]: row["verdict"] for row in run.verdicts}
    assert [found[key] for key in ("ahead", "grows", "fall")] == ["reproduced"] * 3
