"""Pictures: what is drawn is what was given, on the axes given, with labels."""

from __future__ import annotations

import numpy as np
import pytest

from rntk import RNTK, plot
from rntk.linear import limit_kernel, memory_profile
from rntk.papers.ranks import critical_difference, not_told_apart, rank_test
from rntk.theory.dynamics import Dynamics

pyplot = pytest.importorskip("matplotlib.pyplot", reason='pictures need matplotlib: pip install "rntk[plot]"')


@pytest.fixture
def ax():
    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def check_labels(axes) -> None:
    assert axes.get_xlabel() and axes.get_ylabel() and axes.get_title()


def test_gram_is_ordered_by_class(ax):
    X = np.random.default_rng(0).standard_normal((6, 5))
    K, y = RNTK()(X), np.array(["b", "a", "b", "a", "c", "a"])
    assert plot.gram(K, y, ax) is ax
    order = [1, 3, 5, 0, 2, 4]
    np.testing.assert_array_equal(ax.images[0].get_array(), K[np.ix_(order, order)])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    assert ax.get_xticks().tolist() == [1.0, 3.5, 5.0]  # centres of three, two and one
    check_labels(ax)


def test_gram_without_labels(ax):
    K = np.eye(4)
    plot.gram(K, ax=ax)
    np.testing.assert_array_equal(ax.images[0].get_array(), K)


@pytest.mark.parametrize("wrong", [np.ones((2, 3)), np.ones(3), np.full((2, 2), np.nan), np.ones((0, 0))])
def test_gram_and_spectrum_refuse(ax, wrong):
    for draw in (plot.gram, plot.spectrum):
        with pytest.raises(ValueError, match="K must be"):
            draw(wrong, ax=ax)
    with pytest.raises(ValueError, match="one label for each of the 2 rows"):
        plot.gram(np.eye(2), [1, 2, 3], ax)


def test_effective_rank_by_hand():
    assert plot.effective_rank(np.eye(7)) == pytest.approx(7)
    assert plot.effective_rank(np.ones((5, 5))) == pytest.approx(1)
    assert plot.effective_rank(np.zeros((3, 3))) == 0
    half = np.diag([0.5, 0.25, 0.25])
    assert plot.effective_rank(half) == pytest.approx(2**1.5)  # entropy 1.5 bits


def test_spectrum_shows_shares(ax):
    plot.spectrum(np.diag([1.0, 3.0, 0.0]), ax, label="one")
    plot.spectrum(np.eye(3), ax, label="other", colour=plot.COLOURS[1])
    lines = [line.get_ydata() for line in ax.get_lines() if len(line.get_ydata()) == 3]
    np.testing.assert_allclose(lines[0], [0.75, 0.25, 1e-17])
    np.testing.assert_allclose(lines[1], [1 / 3] * 3)
    assert "effective rank 3.0" in ax.get_legend().get_texts()[1].get_text()
    check_labels(ax)


def test_training_curves(ax):
    X, y = np.random.default_rng(0).standard_normal((4, 5)), [1.0, -1.0, 1.0, -1.0]
    dynamics = Dynamics(RNTK(), X, y)
    steps = np.arange(0, 20, 5)
    losses = dynamics.loss(steps=steps, learning_rate=dynamics.largest_learning_rate / 2).expected
    plot.training({"infinite network": (steps, losses), "half of it": (steps, losses / 2)}, ax)
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), losses)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["infinite network", "half of it"]
    check_labels(ax)
    with pytest.raises(ValueError, match="must agree"):
        plot.training((steps, losses[:2]), ax)


def test_training_curves_of_finite_models(ax):
    pytest.importorskip("jax", reason='needs JAX: pip install "rntk[finite]"')
    from rntk import finite, linear

    X = np.random.default_rng(0).standard_normal((4, 5))
    net = finite.network(RNTK(), 8)
    run = finite.train(net, net.init(0, X), X, [1.0, -1.0, 1.0, -1.0], 0.01, 5)
    other = linear.train(linear.LinearRNN.random(5, seed=0), X, X, 0.001, 5)
    plot.training({"network": run, "linear": other}, ax)
    for line, losses in zip(ax.get_lines(), (run.loss, other.error), strict=True):
        np.testing.assert_allclose(line.get_ydata(), losses)


def test_kernels_by_angle(ax):
    plot.kernel_by_angle({"ReLU": RNTK(), "linear": RNTK("identity", sigma_w=1.0)}, ax, points=5)
    relu, linear = (line.get_ydata() for line in ax.get_lines())
    np.testing.assert_allclose(linear, np.cos(np.linspace(0, np.pi, 5)), atol=1e-12)
    angle = np.pi / 2  # one layer, by hand: (sin α + 2 (π - α) cos α)/π relative to 2
    np.testing.assert_allclose(relu[2], np.sin(angle) / np.pi / 2, rtol=1e-12)
    check_labels(ax)


def test_memory_profile(ax):
    profile = memory_profile(limit_kernel(nu_w=0.4), 6)
    assert plot.memory_profile(profile, ax) is ax
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), profile.rho)
    check_labels(ax)


# -- ranks -------------------------------------------------------------------------------------------------------------


def labelled(axes, label):
    return [line for line in axes.get_lines() if line.get_label() == label]


def test_groups_not_told_apart_by_hand():
    ranks = np.array([3.0, 1.0, 1.9, 2.9, 5.0])
    assert not_told_apart(ranks, 1.0) == [(1.0, 1.9), (2.9, 3.0)]  # 1.9 and 2.9 differ by just as much as needed
    assert not_told_apart(ranks, 2.05) == [(1.0, 3.0), (3.0, 5.0)]  # 2.9 to 3.0 lies inside
    assert not_told_apart(ranks, 1.5) == [(1.0, 1.9), (1.9, 3.0)]
    assert not_told_apart(ranks, np.inf) == [(1.0, 5.0)]
    assert not_told_apart(ranks, 0.05) == []
    assert not_told_apart(np.array([2.0, 2.0]), 0.5) == [(2.0, 2.0)]


def test_critical_difference_shows_ranks_and_groups(ax):
    """Fourteen sets, four classifiers: a critical difference of 1.25 (Demšar 2006), and ranks chosen by hand."""
    y = np.tile([[90.0, 70.0, 80.0, 60.0]], (14, 1))
    y[:7, [0, 2]] = y[:7, [2, 0]]  # the first and third share ranks 1 and 2
    assert critical_difference(y, ["A", "B", "C", "D"], ax) is ax
    assert [text.get_text() for text in ax.texts[:4]] == ["A  1.50", "C  1.50", "4.00  D", "3.00  B"]
    assert [line.get_xdata()[0] for line in labelled(ax, "_name")] == [1.5, 1.5, 4, 3]
    # 1.5 to 1.5 and 3 to 4 are joined, 1.5 to 3 is not; bars reach a little further than the ranks.
    ends = [line.get_xdata() for line in labelled(ax, "_group")]
    np.testing.assert_allclose(ends, [(1.5, 1.5), (3, 4)], atol=0.05)
    (width,) = labelled(ax, "_width")
    np.testing.assert_allclose(width.get_xdata(), (1, 2.25), atol=0.005)
    assert "critical difference 1.25" in ax.texts[4].get_text()
    assert ax.get_title() == f"14 data sets, Friedman's test p = {rank_test(y).p_value:.2g}"
    assert ax.get_xticks().tolist() == [1, 2, 3, 4] and ax.get_xlabel() == "mean rank, 1 is best"


def test_critical_difference_where_nothing_is_told_apart(ax):
    critical_difference(np.ones((5, 3)), "ABC", ax)
    assert ax.get_title() == "5 data sets, Friedman's test p = 1: not told apart"
    assert len(labelled(ax, "_group")) == 1 and not labelled(ax, "_width")


def test_friedman_s_test_is_asked_first(ax):
    """Ranks 1.42 and 3.42 lie further apart than the critical difference, 1.91, but p = 0.051: one bar joins all."""
    y = [[59, 53, 55, 54], [57, 53, 57, 55], [51, 54, 50, 53], [59, 50, 58, 54], [57, 51, 53, 51], [59, 51, 54, 58]]
    found = rank_test(y)
    assert found.p_value > 0.05 and np.ptp(found.rank) > found.critical_difference
    critical_difference(y, "ABCD", ax)
    (bar,) = labelled(ax, "_group")
    np.testing.assert_allclose(bar.get_xdata(), (found.rank.min(), found.rank.max()), atol=0.05)
    critical_difference(y, "ABCD", ax, level=0.06)
    assert len(labelled(ax, "_group")) == 3 and ax.get_title().endswith("p = 0.051")


@pytest.mark.parametrize("shape", [(6, 2), (1, 5)])
def test_ranks_alone_where_the_test_needs_more(ax, shape):
    critical_difference(np.random.default_rng(0).uniform(50, 100, shape), "ABCDE"[: shape[1]], ax)
    assert "the test needs two sets and three classifiers" in ax.get_title()
    assert len(labelled(ax, "_name")) == shape[1] and not labelled(ax, "_group")


def test_names_of_nine_classifiers_don_t_overlap(ax):
    y = np.random.default_rng(0).uniform(50, 100, (8, 9))
    names = [f"classifier {k}" for k in range(9)]
    critical_difference(y, names, ax)
    ax.figure.set_size_inches(7, 4)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts if "classifier " in text.get_text()]
    assert len(boxes) == 9 and len(not_told_apart(rank_test(y).rank, np.inf)) == 1
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert all(ax.figure.bbox.x0 <= box.x0 and box.x1 <= ax.figure.bbox.x1 for box in boxes)


def test_critical_difference_refuses(ax):
    wrong = [np.ones((3, 3)), np.ones((3, 1)), np.ones(2), np.ones((0, 2)), np.full((3, 2), np.nan)]
    for y, names in zip(wrong, ("AB", "A", "AB", "AB", "AB"), strict=True):
        with pytest.raises(ValueError, match="accuracy must be a table of data sets by two or more classifiers"):
            critical_difference(y, names, ax)


def test_new_axes_are_made_where_none_are_given():
    axes = plot.gram(np.eye(3))
    assert axes.figure is not None
    pyplot.close(axes.figure)
