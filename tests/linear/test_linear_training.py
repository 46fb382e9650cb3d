"""Finite linear RNNs trained beside their convolutions."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

pytest.importorskip("jax", reason='training needs JAX: pip install "rntk[finite]"')


from helpers.tolerances import relative_error
from rntk.finite import DivergenceError
from rntk.linear import ConvolutionDescent, LinearRNN, ScaledConv1D, scale_factors, train


def ragged_task(seed: int = 0):
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((n, 3)) for n in (5, 9, 1, 7)]
    return X, [rng.standard_normal((len(x), 2)) for x in X]


# ---- Training ----------------------------------------------------------------------------------------------


def test_a_trained_convolution_follows_the_closed_form():
    X, y = ragged_task()
    model = ScaledConv1D.from_taps(np.random.default_rng(1).standard_normal((9, 2, 3)), scale_factors(9, 0.5))
    descent = ConvolutionDescent.of(model, X, y)
    rate = 0.5 * descent.critical_rate
    run = train(model, X, y, rate, 60, record_at=range(61))
    assert relative_error(run.taps, descent.taps(range(61), rate)) < 1e-12
    np.testing.assert_allclose(run.error, descent.loss(range(61), rate) * 2 / (22 * 2), rtol=1e-10)
    assert relative_error(run.model.taps, run.taps[-1]) < 1e-14


@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_an_rnn_takes_the_steps_of_its_own_gradient(shape):
    """Against gradients by hand through the states, unit by unit."""
    n_x, n_y = shape
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, n_x)) for n in (4, 2)]
    y = [rng.standard_normal((len(x), n_y)) for x in X]
    start = LinearRNN.random(5, n_x, n_y, nu_w=0.5, seed=1)
    W, F, C, root, rate = start.W, start.F, start.C, 5**0.5, 0.05
    for _ in range(3):
        dW, dF, dC = np.zeros_like(W), np.zeros_like(F), np.zeros_like(C)
        for x, target in zip(X, y, strict=True):
            states = [np.zeros(5)]
            for value in x:
                states.append(W @ states[-1] / root + F @ value)
            back = np.zeros(5)
            for t in range(len(x) - 1, -1, -1):
                gap = C @ states[t + 1] / root - target[t]
                dC += np.outer(gap, states[t + 1]) / root
                back = C.T @ gap / root + W.T @ back / root
                dF += np.outer(back, x[t])
                dW += np.outer(back, states[t]) / root
        W, F, C = W - rate * dW, F - rate * dF, C - rate * dC
    found = train(start, X, y, rate, 3).model
    for got, expected in ((found.W, W), (found.F, F), (found.C, C)):
        assert relative_error(got, expected) < 1e-12


def test_the_mean_loss_is_the_sum_with_another_rate():
    X, y = ragged_task()
    rnn = LinearRNN.random(8, 3, 2, seed=0)
    mean = train(rnn, X, y, 0.3, 20, loss="mean")
    total = train(rnn, X, y, 0.3 * 2 / 44, 20)
    assert relative_error(mean.taps, total.taps) < 1e-12


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_one_batch_of_everything_is_the_full_batch(loss):
    X, y = ragged_task()
    rnn = LinearRNN.random(8, 3, 2, seed=0)
    full, batched = (train(rnn, X, y, 0.01, 20, loss=loss, batch_size=size) for size in (None, 4))
    assert relative_error(batched.taps, full.taps) < 1e-11
    assert relative_error(train(rnn, X, y, 0.01, 20, loss=loss, batch_size=99).taps, full.taps) < 1e-11


def test_mini_batches_are_the_same_for_every_model_and_cover_an_epoch():
    from rntk.linear.training import draw_batches

    taken = np.array(list(islice(draw_batches(10, 4, np.random.default_rng(0)), 6)))
    for epoch in (taken[:3], taken[3:]):
        assert sorted(epoch.ravel().tolist()) == [-1, -1, *range(10)]
    assert (taken[:3] != taken[3:]).any()
    # Two steps by hand: batches of two sequences out of four, the same as training draws.
    X, y = ragged_task()
    conv = ScaledConv1D(scale_factors(9, 0.3), np.zeros((9, 2, 3)))
    theta = conv.theta
    for members in islice(draw_batches(4, 2, np.random.default_rng(7)), 2):
        here = ScaledConv1D(conv.rho, theta)
        theta = theta - 0.02 * here.gradient([X[i] for i in members], [y[i] for i in members])
    found = train(conv, X, y, 0.02, 2, batch_size=2, seed=7).model
    assert relative_error(found.theta, theta) < 1e-12


def test_single_precision_and_records():
    X, y = ragged_task()
    rnn = LinearRNN.random(8, 3, 2, seed=0)
    double, single = (train(rnn, X, y, 0.01, 50, dtype=dtype, record_at=[0, 50]) for dtype in ("float64", "float32"))
    assert 0 < relative_error(single.taps, double.taps) < 1e-4
    assert double.steps.tolist() == [0, 50] and double.test_error is None
    assert relative_error(double.taps[0], rnn.impulse_response(9)) < 1e-14
    tested = train(rnn, X, y, 0.01, 50, record_at=[50], X_test=X, y_test=y)
    np.testing.assert_allclose(tested.test_error, tested.error)
    assert train(rnn, X, y, 0.01, 0).steps.tolist() == [0]


def test_training_refuses():
    X, y = ragged_task()
    rnn = LinearRNN.random(8, 3, 2, seed=0)
    with pytest.raises(DivergenceError, match="smaller learning rate"):
        train(rnn, X, y, 10.0, 50)
    for options, word in (
        ({"loss": "median"}, "loss"),
        ({"batch_size": 0}, "batch_size"),
        ({"record_at": [60]}, "record_at"),
        ({"X_test": X}, "go together"),
        ({"dtype": "float16"}, "dtype"),
    ):
        with pytest.raises(ValueError, match=word):
            train(rnn, X, y, 0.01, 50, **options)
    with pytest.raises(ValueError, match="learning_rate"):
        train(rnn, X, y, -1.0, 50)
    with pytest.raises(ValueError, match="1 outputs, the model 2"):
        train(rnn, X, [each[:, :1] for each in y], 0.1, 5)
