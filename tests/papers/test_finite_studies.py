"""Figure 2 and Theorem 2 of the RNTK paper at small size. `make test-slow` runs them at the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from rntk import RNTK
from rntk.theory.dynamics import Dynamics

pytest.importorskip("jax", reason='finite networks need JAX: pip install "rntk[finite]"')

from helpers.records import check_pictures, verdicts
from rntk import papers
from rntk.finite import Comparison
from rntk.finite.comparison import fit_slope
from rntk.papers.data.made import small_task
from rntk.papers.studies.rntk_figure_2_right import CASES


def test_figure_2_left():
    run = papers.run("rntk-figure-2-left", width=400, angles=9, seeds=10)
    found = run.results["networks"]
    # By hand: at α = 0 and 2π the same input; the limit is the library's exact kernel.
    np.testing.assert_allclose(found.limit[0], found.limit[-1], rtol=1e-12)
    np.testing.assert_allclose(found.limit[0], RNTK()([[1.0, -1.0, 1.0]], [[1.0, 0.0]])[0, 0], rtol=1e-12)
    assert found.networks.shape == (10, 9)
    spread = found.networks.std(axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(found.networks.mean(axis=0) - found.limit) < 5 * spread + 0.02).all()
    assert verdicts(run) == {"limit": "reproduced"}
    check_pictures(run)


def check_slopes(found) -> None:
    """-1/2 within four standard errors, which are small enough to tell it from 0 and from -1.

    Four, because logarithms of errors have a long tail to the left: some network always comes close by chance.
    """
    for kind in ("tied", "untied"):
        slope = Comparison.from_dict(getattr(found, kind)).ntk_slope
        assert slope.error < 0.11
        assert abs(slope.value + 0.5) < 4 * slope.error


@pytest.mark.parametrize("name", CASES)
def test_figure_2_right(name):
    other = {"kernel": {}, "lengths": [2, 6]} if name == "unequal-lengths" else {}
    run = papers.run("rntk-figure-2-right", only=[name], widths=[32, 128, 512], seeds=12, signals=4, **other)
    check_slopes(run.results[name])
    assert set(verdicts(run)) == {f"{unit} {kind}" for unit in CASES for kind in ("tied", "untied")}
    if name == "relu":
        check_pictures(run)


def test_unequal_lengths_have_two_limits():
    X = [np.ones(3), np.ones(5)]
    tied, untied = RNTK()(X), RNTK(tied=False)(X)
    np.testing.assert_allclose(np.diag(tied), np.diag(untied), rtol=1e-12)
    assert tied[0, 1] > 1.2 * untied[0, 1]


@pytest.mark.parametrize("unit", ["relu-depth-1-squared", "erf-depth-1-cross-entropy"])
def test_wide_networks_hardly_move(unit):
    run = papers.run("rntk-theorem-2-drift", only=[unit], widths=[64, 512], seeds=4, steps=15)
    found = run.results[unit]
    assert fit_slope(found.widths, found.parameter_drift).value == pytest.approx(-0.5, abs=0.15)
    assert fit_slope(found.widths, found.kernel_drift).value < -0.2
    assert (found.loss < 0.8).all()  # they have learned something meanwhile
    assert verdicts(run)[f"{unit} parameter"] == "too few seeds"
    check_pictures(run, 2)


def test_an_ensemble_follows_the_closed_form():
    run = papers.run("rntk-theorem-2-ensemble", width=384, networks=8, steps=40)
    one, two = run.results.values()
    assert one.outputs.shape == (8, len(one.steps), 9) and not np.array_equal(one.outputs, two.outputs)
    outputs, expected = np.concatenate([one.outputs, two.outputs]), np.sqrt(np.mean(one.std**2, axis=1))
    gap = np.sqrt(np.mean((outputs.mean(axis=0) - one.mean) ** 2, axis=1))
    assert (gap < 3 * expected / 4 + 0.03).all()
    # 16 networks know a deviation to 1/√(2·15) each; nine outputs help a little, finite width hurts a little.
    assert (np.abs(np.sqrt(np.mean(outputs.var(axis=0, ddof=1), axis=1)) / expected - 1) < 0.5).all()
    # The prediction moves, so following it means something.
    assert np.abs(one.mean[-1] - one.mean[0]).max() > 20 * gap[-1] / 3
    check_pictures(run)


def test_the_task_is_ragged_and_has_both_labels():
    X, y = small_task()
    assert len({len(x) for x in X}) > 2 and set(y) == {-1.0, 1.0}
    assert Dynamics(RNTK(), X, y).eigenvalues[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rntk-figure-2-left", "rntk-theorem-2-ensemble"])
def test_at_the_size_of_the_paper(name):
    assert set(verdicts(papers.run(name, mode="full")).values()) == {"reproduced"}


@pytest.mark.slow
def test_figure_2_right_at_the_size_of_the_paper():
    found = papers.run("rntk-figure-2-right", mode="full", only=["relu"], seeds=10).results["relu"]
    for kind in ("tied", "untied"):
        assert Comparison.from_dict(getattr(found, kind)).ntk_slope.value == pytest.approx(-0.5, abs=0.1)
