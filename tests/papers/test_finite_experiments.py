"""Figure 2 and Theorem 2 of the RNTK paper at small size. `make test-slow` runs them at the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from rntk import RNTK
from rntk.papers.experiments.convergence import CASES
from rntk.theory.dynamics import Dynamics

pytest.importorskip("jax", reason='finite networks need JAX: pip install "rntk[finite]"')

from helpers.records import check_record_and_picture
from rntk.papers.experiments import convergence, ensemble_training, kernel_by_angle, lazy_training
from rntk.papers.experiments.lazy_training import small_task


def test_figure_2_left():
    found = kernel_by_angle(width=400, angles=9, seeds=6)
    # By hand: at α = 0 and 2π the same input; the limit is the library's exact kernel.
    np.testing.assert_allclose(found.limit[0], found.limit[-1], rtol=1e-12)
    np.testing.assert_allclose(found.limit[0], RNTK()([[1.0, -1.0, 1.0]], [[1.0, 0.0]])[0, 0], rtol=1e-12)
    assert found.networks.shape == (6, 9)
    assert 0 < found.largest_gap < 0.25
    spread = found.networks.std(axis=0, ddof=1) / np.sqrt(6)
    assert (np.abs(found.networks.mean(axis=0) - found.limit) < 5 * spread + 0.02).all()
    check_record_and_picture(found)


def check_slopes(found) -> None:
    """-1/2 within four standard errors, which are small enough to tell it from 0 and from -1.

    Four, because logarithms of errors have a long tail to the left: some network always comes close by chance.
    """
    for comparison in (found.tied, found.untied):
        slope = comparison.ntk_slope
        assert slope.error < 0.11
        assert abs(slope.value + 0.5) < 4 * slope.error


@pytest.mark.parametrize("name", CASES)
def test_figure_2_right(name):
    found = convergence(RNTK(**CASES[name]), widths=(32, 128, 512), seeds=12, signals=4)
    check_slopes(found)
    if name == "relu":
        check_record_and_picture(found)


def test_unequal_lengths_have_two_limits():
    check_slopes(convergence(widths=(32, 128, 512), seeds=12, signals=4, lengths=(2, 6)))
    X = [np.ones(3), np.ones(5)]
    tied, untied = RNTK()(X), RNTK(tied=False)(X)
    np.testing.assert_allclose(np.diag(tied), np.diag(untied), rtol=1e-12)
    assert tied[0, 1] > 1.2 * untied[0, 1]


def test_wide_networks_hardly_move():
    found = lazy_training(widths=(64, 256, 1024), seeds=3, steps=20)
    assert found.parameter_slope.value == pytest.approx(-0.5, abs=0.1)
    assert found.kernel_slope.value == pytest.approx(-0.5, abs=0.25)
    assert (found.loss < 0.5).all()  # they have learned something meanwhile
    check_record_and_picture(found)


def test_an_ensemble_follows_the_closed_form():
    found = ensemble_training(width=384, networks=16, steps=40)
    assert found.outputs.shape == (16, len(found.steps), 9)
    assert (found.mean_gap < 3 * found.expected_mean_gap + 0.03).all()
    measured, predicted = found.spread.T
    # 16 networks know a deviation to 1/√(2·15) each; nine outputs help a little, finite width hurts a little.
    assert (np.abs(measured / predicted - 1) < 0.5).all()
    # The prediction moves, so following it means something.
    assert np.abs(found.mean[-1] - found.mean[0]).max() > 20 * found.mean_gap[-1] / 3
    check_record_and_picture(found)


def test_the_task_is_ragged_and_has_both_labels():
    X, y = small_task()
    assert len({len(x) for x in X}) > 2 and set(y) == {-1.0, 1.0}
    assert Dynamics(RNTK(), X, y).eigenvalues[0] > 0


@pytest.mark.slow
def test_figure_2_at_the_size_of_the_paper():
    left = kernel_by_angle()
    assert left.width == 1000 and left.gap_of_mean < 0.1
    right = convergence(seeds=10)
    for comparison in (right.tied, right.untied):
        assert comparison.ntk_slope.value == pytest.approx(-0.5, abs=0.1)


@pytest.mark.slow
def test_theorem_2_at_full_width():
    drift = lazy_training()
    # Narrow networks move a little more than their share, so slopes over all widths are steeper than -1/2.
    for slope in (drift.parameter_slope, drift.kernel_slope):
        assert slope.error < 0.12
        assert abs(slope.value + 0.5) < 0.06 + 3 * slope.error
    ensemble = ensemble_training()
    assert (ensemble.mean_gap < 3 * ensemble.expected_mean_gap + 0.01).all()
    assert (np.abs(ensemble.spread[:, 0] / ensemble.spread[:, 1] - 1) < 0.4).all()
