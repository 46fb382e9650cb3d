"""Pictures: what is drawn is what was given, on the axes given, with labels."""

from __future__ import annotations

import numpy as np
import pytest

from rntk import RNTK, plot
from rntk.dynamics import Dynamics
from rntk.linear import limit_kernel, memory_profile

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


def test_new_axes_are_made_where_none_are_given():
    axes = plot.gram(np.eye(3))
    assert axes.figure is not None
    pyplot.close(axes.figure)
