"""Gradient descent of finite networks (`rntk.finite.train`), against loops and gradients written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.tolerances import relative_error
from rntk import NTK, RNTK

jax = pytest.importorskip("jax", reason='rntk.finite needs JAX: pip install "rntk[finite]"')
finite = pytest.importorskip("rntk.finite")

X = [np.array([1.0, -0.5, 0.3]), np.array([0.4, 0.8])]
Y = np.array([1.0, -1.0])


def test_steps_are_those_of_a_loop_by_hand():
    """An erf network of one layer, its forward and backward pass written out in NumPy."""
    from scipy.special import erf

    sigma_w, sigma_u, sigma_b, sigma_v, n, rate = 1.2, 0.8, 0.3, 0.9, 5, 0.2
    kernel = RNTK("erf", sigma_w=sigma_w, sigma_u=sigma_u, sigma_b=sigma_b, sigma_v=sigma_v)
    net = finite.network(kernel, n)
    start = net.init(0, X, dtype="float64")
    training = finite.train(net, start, X, Y, rate, 3, record_at=(0, 1, 3), X_test=[X[0][:1]])

    W, U, b, V = (np.array(start["forward"][name][0]) for name in ("W", "U", "b", "V"))
    U = U[:, 0]
    first = [W.copy(), U.copy(), b.copy(), V.copy()]
    losses, outputs = [], []
    for _ in range(4):
        total = [np.zeros_like(each) for each in (W, U, b, V)]
        f = []
        for x, y in zip(X, Y, strict=True):
            h, g = [np.zeros(n)], []
            for value in x:
                g.append(sigma_w / n**0.5 * W @ h[-1] + sigma_u * U * value + sigma_b * b)
                h.append(erf(g[-1]))
            f.append(sigma_v / n**0.5 * V @ h[-1])
            signal = (f[-1] - y) * sigma_v / n**0.5 * V
            total[3] += (f[-1] - y) * sigma_v / n**0.5 * h[-1]
            for t in reversed(range(len(x))):
                delta = signal * 2 / np.pi**0.5 * np.exp(-(g[t] ** 2))
                total[0] += sigma_w / n**0.5 * np.outer(delta, h[t])
                total[1] += sigma_u * delta * x[t]
                total[2] += sigma_b * delta
                signal = sigma_w / n**0.5 * W.T @ delta
        outputs.append(f)
        losses.append(sum((a - y) ** 2 for a, y in zip(f, Y, strict=True)) / 2)
        last = [W, U, b, V]
        W, U, b, V = (each - rate * slope for each, slope in zip(last, total, strict=True))

    assert training.steps.tolist() == [0, 1, 3]
    assert relative_error(training.loss, [losses[0], losses[1], losses[3]]) < 1e-12
    assert relative_error(training.outputs[:, :, 0], [outputs[0], outputs[1], outputs[3]]) < 1e-12
    assert relative_error(training.parameters["forward"]["W"][0], last[0]) < 1e-12
    moved = sum(np.sum((now - then) ** 2) for now, then in zip(last, first, strict=True)) ** 0.5
    assert training.parameter_drift[0] == 0
    assert training.parameter_drift[-1] == pytest.approx(moved / n**0.5, rel=1e-12)
    test = np.asarray(net(training.parameters, [X[0][:1]]))
    assert relative_error(training.test_outputs[-1], test) < 1e-12
    assert jax.numpy.zeros(1).dtype == np.float32


@pytest.mark.parametrize(
    "kernel",
    [
        RNTK("tanh", depth=2, readout="sequence", bidirectional=True, sigma_h=0.5),
        RNTK("erf", tied=False, readout="mean", parameterization="standard", sigma_b=0.2),
        NTK("gelu", depth=2),
    ],
    ids=["sequence, both ways", "untied mean", "perceptron"],
)
def test_small_steps_follow_the_empirical_kernel(kernel):
    """f moves by -η Θ̂ (f - y) to first order, with the sum of losses and not their mean; d outputs too."""
    data = np.random.default_rng(0).standard_normal((3, 4)) if isinstance(kernel, NTK) else X
    net = finite.network(kernel, 8, outputs=2)
    start = net.init(0, data, dtype="float64")
    K = finite.empirical_ntk(net, start, data, state_seed=6)
    y = np.random.default_rng(1).standard_normal((len(K), 2))
    rate = 1e-6
    training = finite.train(net, start, data, y, rate, 1, state_seed=6, kernel_drift=True)
    f0, f1 = training.outputs
    expected = -np.einsum("ijkl,jl->ik", K, f0 - y)
    assert relative_error((f1 - f0) / rate, expected) < 1e-4
    moved = finite.empirical_ntk(net, training.parameters, data, state_seed=6)
    assert training.kernel_drift[0] == 0
    assert training.kernel_drift[1] == pytest.approx(np.linalg.norm(moved - K), rel=1e-6)


def test_a_wide_network_learns_as_its_limit_says():
    """f_s = y + (I - ηΘ)^s (f_0 - y), with Θ the exact kernel; narrow networks are further off."""
    kernel = RNTK(sigma_b=0.2, sigma_w=1.2)
    K = kernel(X)
    rate = 1 / np.linalg.eigvalsh(K)[-1]
    gaps = {}
    for width in (32, 1024):
        net = finite.network(kernel, width)
        runs = [finite.train(net, net.init(seed, X), X, Y, rate, 10, record_at=(0, 3, 10)) for seed in range(5)]
        each = []
        for run in runs:
            for step, f in zip(run.steps, run.outputs[:, :, 0], strict=True):
                expected = Y + np.linalg.matrix_power(np.eye(2) - rate * K, step) @ (run.outputs[0, :, 0] - Y)
                each.append(np.linalg.norm(f - expected) / np.linalg.norm(run.outputs[0, :, 0] - Y))
        gaps[width] = np.mean(each)
    assert gaps[1024] < 0.05
    assert gaps[1024] < gaps[32] / 2


def test_records_are_where_asked():
    net = finite.network(RNTK("erf"), 4)
    start = net.init(0, X)
    run = finite.train(net, start, X, Y, 0.01, 50, record_at=[7, 7, 20])
    assert run.steps.tolist() == [7, 20]
    assert run.test_outputs is None
    assert run.kernel_drift is None
    default = finite.train(net, start, X, Y, 0.01, 50)
    assert default.steps[0] == 0
    assert default.steps[-1] == 50
    assert 10 < len(default.steps) < 25
    assert (np.diff(default.loss) < 0).all()
    # The run goes on to the last step, whatever is recorded.
    for a, b in zip(*map(jax.tree_util.tree_leaves, (run.parameters, default.parameters)), strict=True):
        assert relative_error(a, b) < 1e-5
    assert "50 steps" in repr(default)


def test_divergence_names_its_step():
    net = finite.network(RNTK("identity", sigma_w=0.5), 16)
    start = net.init(0, X, dtype="float64")
    steps = []
    for record_at in (None, [500]):  # noticed at a record, or on the way to one
        with pytest.raises(finite.DivergenceError, match="smaller learning rate than 60") as caught:
            finite.train(net, start, X, Y, 60.0, 500, record_at=record_at)
        steps.append(caught.value.step)
        assert f"after {steps[-1]} steps" in str(caught.value)
    step = steps[0]
    assert steps == [step, step]
    # The loss is still moderate just before the step that is named.
    before = finite.train(net, start, X, Y, 60.0, step - 1, record_at=[0, step - 1])
    assert before.loss[-1] <= 1e6 * max(before.loss[0], np.sum(Y**2) / 2)
    assert step > 1


def test_mistakes_are_explained():
    net = finite.network(RNTK(), 4, outputs=2)
    start = net.init(0, X)
    with pytest.raises(ValueError, match=r"y has shape \(2,\).*the outputs have \(2, 2\)"):
        finite.train(net, start, X, Y, 0.1, 1)
    with pytest.raises(ValueError, match="finite"):
        finite.train(net, start, X, np.full((2, 2), np.nan), 0.1, 1)
    for rate in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="learning_rate must be"):
            finite.train(net, start, X, np.zeros((2, 2)), rate, 1)
    with pytest.raises(ValueError, match="steps must be"):
        finite.train(net, start, X, np.zeros((2, 2)), 0.1, 1.5)
    with pytest.raises(ValueError, match="between 0 and steps=3"):
        finite.train(net, start, X, np.zeros((2, 2)), 0.1, 3, record_at=[4])
