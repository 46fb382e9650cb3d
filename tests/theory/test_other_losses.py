"""Losses beside the squared one: their slopes, the infinite network under them, and finite ones that approach it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate
from scipy.special import logsumexp

from rntk import RNTK
from rntk.sequences.losses import LOSSES, read_loss
from rntk.theory.dynamics import Dynamics

X = [np.array([1.0, -0.5, 0.3]), np.array([0.4, 0.8]), np.array([-1.0, 0.2, 0.1, 0.7]), np.array([0.5])]
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
CLASSES = np.eye(3)[[0, 2, 1, 0]]


def by_hand(name, f, y):
    """ℓ in other words than the library's."""
    if name == "squared":
        return 0.5 * np.linalg.norm(f - y) ** 2
    if name == "huber":
        return sum(d * d / 2 if d <= 1 else d - 0.5 for d in np.abs(f - y).ravel())
    if f.shape[1] == 1:
        return sum(np.log(1 + np.exp(-a * b)) for a, b in zip(f[:, 0], y[:, 0], strict=True))
    return -np.sum(y * (f - logsumexp(f, axis=1, keepdims=True)))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("y", [SIGNS[:, None], CLASSES], ids=["one output", "three"])
def test_values_and_slopes(name, y):
    f = 1.7 * np.random.default_rng(0).standard_normal(y.shape)
    loss = read_loss(name, y)
    assert loss.value(np, f, y) == pytest.approx(by_hand(name, f, y), rel=1e-12)
    slope = loss.slope(np, f, y)
    for at in np.ndindex(f.shape):
        step = np.zeros(f.shape)
        step[at] = 1e-6
        assert slope[at] == pytest.approx((by_hand(name, f + step, y) - by_hand(name, f - step, y)) / 2e-6, abs=1e-8)
    far = loss.value(np, 1e4 * f, y)
    assert np.isfinite(far) and np.isfinite(loss.slope(np, 1e4 * f, y)).all()


@pytest.mark.parametrize("name", ["huber", "cross-entropy"])
@pytest.mark.parametrize("y", [SIGNS, CLASSES], ids=["one output", "three"])
def test_the_infinite_network_follows_a_linear_model_that_is_trained(name, y):
    """Features that are a root of the kernel: parameters, moved by hand, with weight decay towards their start."""
    kernel, ridge, rate = RNTK("erf", sigma_b=0.2), 0.3, 0.4
    new = [np.array([0.3, -0.9, 0.2])]
    features = np.linalg.cholesky(kernel(X + new))
    target = y.reshape(4, -1)
    start = np.random.default_rng(1).standard_normal((5, target.shape[1]))
    f0 = (features @ start).reshape(5, *y.shape[1:])

    def slope(theta):
        f, change = features[:4] @ theta, np.zeros((4, target.shape[1]))
        for at in np.ndindex(change.shape):
            step = np.zeros(change.shape)
            step[at] = 1e-5
            change[at] = (by_hand(name, f + step, target) - by_hand(name, f - step, target)) / 2e-5
        return features[:4].T @ change + ridge * (theta - start)

    training = Dynamics(kernel, X, y, ridge)
    theta, path = start, [start]
    for _ in range(7):
        theta = theta - rate * slope(theta)
        path.append(theta)
    expected = np.stack([(features @ path[step]).reshape(5, *y.shape[1:]) for step in (0, 7, 2)])
    options = {"learning_rate": rate, "loss": name}
    np.testing.assert_allclose(training.follow(f0[:4], steps=[0, 7, 2], **options), expected[:, :4], atol=1e-8)
    found = training.follow(f0[:4], new, f0[4:], steps=[0, 7, 2], **options)
    np.testing.assert_allclose(found, expected[:, 4:], atol=1e-8)

    def flow(_, flat):
        return -rate * slope(flat.reshape(start.shape)).ravel()

    solved = integrate.solve_ivp(flow, (0, 3), start.ravel(), "DOP853", t_eval=[0.5, 3.0], rtol=1e-9, atol=1e-10)
    expected = np.stack([(features @ each.reshape(start.shape)).reshape(5, *y.shape[1:]) for each in solved.y.T])
    np.testing.assert_allclose(training.follow(f0[:4], time=[0.5, 3.0], **options), expected[:, :4], atol=1e-6)
    assert training.follow(f0[:4], time=0.0, **options) == pytest.approx(f0[:4])


def test_the_squared_loss_by_the_solver_is_the_closed_form():
    from rntk.theory.dynamics.clock import read_clock
    from rntk.theory.dynamics.flow import coefficients

    kernel = RNTK()
    K, f0 = kernel(X), np.array([0.1, 0.2, -0.3, 0.4])
    for moments in ({"time": [0.2, 5.0], "steps": None}, {"time": None, "steps": [1, 9]}):
        clock = read_clock(moments["time"], moments["steps"], 0.1)
        a = coefficients(K, f0[:, None], SIGNS[:, None], LOSSES["squared"], 0.5, clock)
        expected = Dynamics(kernel, X, SIGNS, 0.5).follow(f0, **moments, learning_rate=0.1)
        np.testing.assert_allclose(f0 + (a[:, :, 0] @ K), expected, atol=1e-6)


@pytest.mark.parametrize(("name", "ridge"), [("cross-entropy", 0.0), ("huber", 0.4)])
def test_wide_networks_approach_it(name, ridge):
    finite = pytest.importorskip("rntk.finite", reason='networks need JAX: pip install "rntk[finite]"')
    kernel = RNTK("erf", sigma_b=0.2)
    training = Dynamics(kernel, X, SIGNS, ridge)
    rate, gaps = training.largest_learning_rate / 2, []
    for width in (32, 512):
        net, each = finite.network(kernel, width), []
        for seed in range(4):
            run = finite.train(net, net.init(seed, X), X, SIGNS, rate, 15, loss=name, ridge=ridge, record_at=(0, 5, 15))
            f = run.outputs[:, :, 0]
            expected = training.follow(f[0], steps=[0, 5, 15], learning_rate=rate, loss=name)
            each.append(np.linalg.norm(f - expected))
            assert run.loss[-1] == pytest.approx(by_hand(name, f[-1][:, None], SIGNS[:, None]), rel=1e-5)
        gaps.append(np.mean(each))
    assert gaps[1] < gaps[0] / 2


def test_mistakes_are_explained():
    training = Dynamics(None, X, 2 * SIGNS)
    with pytest.raises(ValueError, match="targets -1 and 1, not 2"):
        training.follow(SIGNS, time=1.0, loss="cross-entropy")
    with pytest.raises(ValueError, match="closed form for the squared loss only"):
        training.follow(SIGNS, time=np.inf, loss="huber")
    with pytest.raises(ValueError, match='loss must be "squared"'):
        training.follow(SIGNS, time=1.0, loss="absolute")
    with pytest.raises(ValueError, match="probabilities"):
        read_loss("cross-entropy", np.ones((2, 2)))
