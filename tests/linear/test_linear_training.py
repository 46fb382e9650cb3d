"""Finite linear RNNs trained beside their convolutions, and the paper's figures at small size."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

pytest.importorskip("jax", reason='training needs JAX: pip install "rntk[finite]"')

from rntk.papers.experiments import delay, linear_limit, linear_training, reaching, tap_growth
from rntk.papers.experiments.linear_training import teacher_task
from rntk.papers.experiments.reaching import load_recording

from helpers.records import check_record_and_picture
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
    from rntk.linear.training import _Order

    order = _Order(10, 4, np.random.default_rng(0))
    taken = np.concatenate([order.take(2), order.take(1), order.take(3)])
    for epoch in (taken[:3], taken[3:]):
        assert sorted(epoch.ravel().tolist()) == [-1, -1, *range(10)]
    assert (taken[:3] != taken[3:]).any()
    # Two steps by hand: batches of two sequences out of four, the same as training draws.
    X, y = ragged_task()
    conv = ScaledConv1D(scale_factors(9, 0.3), np.zeros((9, 2, 3)))
    theta = conv.theta
    for members in _Order(4, 2, np.random.default_rng(7)).take(2):
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


# ---- Theorem 3.3 -------------------------------------------------------------------------------------------


def test_theorem_3_3_small():
    found = linear_limit(widths=(20, 60, 180), seeds=25, T=6)
    slope = found.slope
    assert slope.error < 0.08
    assert abs(slope.value + 0.5) < 4 * slope.error
    # Wide networks: the law of every tap passes, with room for six tests. Narrow ones have heavy tails.
    assert found.tap_p_values[-1].min() > 0.001
    np.testing.assert_allclose(found.tap_variances[-1], 1, atol=0.5)
    check_record_and_picture(found)


def test_taps_of_tiny_networks_are_not_gaussian():
    """The test of the law can fail: a network of one unit multiplies Gaussian numbers."""
    found = linear_limit(widths=(1, 2), seeds=60, T=4, sequences=1)
    assert found.tap_p_values[0, 1:].max() < 1e-3
    assert found.tap_kurtosis[0].max() > 3


@pytest.mark.slow
def test_theorem_3_3_full():
    found = linear_limit(seeds=100)
    slope = found.slope
    assert abs(slope.value + 0.5) < 0.1 and abs(slope.value + 0.5) < 4 * slope.error
    assert found.tap_p_values[-1].min() > 1e-3


# ---- Figures -----------------------------------------------------------------------------------------------


def test_teacher_task():
    task = teacher_task(4, 400, 12, delay=3, snr_db=20, random_state=0)
    assert task.X.shape == (400, 12, 1) and task.y_test.shape == (400, 12, 1)
    silent, heard = np.mean(task.y[:, :3] ** 2), np.mean(task.y[:, 3:] ** 2)
    assert 0.005 < silent / heard < 0.02  # noise alone, 20 dB below the signal
    late = teacher_task(4, 3, 5, delay=9)
    assert late.y.std() > 0


def test_figures_1_and_2_small():
    found = linear_training(widths=(30, 1000), steps=60, sequences=20)
    assert found.largest_gap[1].max() < 0.05
    assert found.largest_gap[0].max() > found.largest_gap[1].max()
    assert (found.rnn[:, -1] < 0.5 * found.rnn[:, 0]).all()
    check_record_and_picture(found)
    check_record_and_picture(linear_training(widths=(30,), steps=5, sequences=5))


def test_icml_figure_4_small():
    found = linear_training((10, 40, 200), teacher=20, sequences=20, steps=150)
    gaps = found.largest_gap.max(axis=1)
    assert gaps[2] < gaps[0]


def test_figure_3_small():
    found = delay((0, 2, 5), width=200, repetitions=2, n_x=4, steps=60, learning_rate=5e-4)
    rnn, scaled, unscaled = found.mean.T
    assert rnn[2] > 3 * rnn[0] and scaled[2] > 3 * scaled[0]
    assert unscaled.max() < 2 * unscaled.min()
    check_record_and_picture(found)


def test_theorem_4_1_small():
    found = tap_growth(width=300, sequences=10, T=10, steps=40)
    convolution, rnn = found.share
    assert convolution.max() <= 1
    assert rnn[found.rho > 0.01].max() < 1.1
    # Where the bound is tiny a finite network exceeds it, the less the wider it is.
    narrow, wide = (
        np.mean(
            [
                np.log(tap_growth(width, sequences=10, T=12, steps=10, random_state=seed).share[1][6:])
                for seed in range(3)
            ]
        )
        for width in (20, 1000)
    )
    assert narrow > wide + 0.7
    assert found.bound.shape == found.rnn.shape == (41, 10)
    check_record_and_picture(found)


# ---- The recording -----------------------------------------------------------------------------------------


def small_recording(folder: Path) -> Path:
    """A file of the same form: three segments, velocities that depend on spikes up to three bins ago."""
    rng = np.random.default_rng(0)
    spikes = rng.poisson(1.0, (1200, 6))
    taps = rng.standard_normal((3, 2, 6))
    velocity = sum(np.roll(spikes, j, axis=0) @ taps[j].T for j in range(3)) + rng.standard_normal((1200, 2))
    position = np.cumsum(np.vstack([[0, 0], 0.05 * velocity[:-1]]), axis=0)
    position[400:] += 50
    position[900:] -= 80
    path = folder / "small.mat"
    savemat(path, {"spikes": spikes.astype(np.uint8), "vel": velocity, "pos": position})
    return path


def test_reaching_small(tmp_path):
    path = small_recording(tmp_path)
    recording = load_recording(path)
    assert recording.segments == ((0, 400), (400, 900), (900, 1200))
    found = reaching(path, epochs=20, width=60, length=6, learning_rate=1e-3, batch_size=16, limited_minutes=0.2)
    assert found.minutes == (0.2, 0.8)
    assert (found.table["full"] > 0.3).all()
    assert found.r2.shape == (2, 3, len(found.epochs), 2)
    check_record_and_picture(found)
    with pytest.raises(ValueError, match="parts"):
        reaching(path, parts=("most",))


def test_the_loader_says_how_to_get_the_data(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"github.com/KordingLab/spykesML"):
        load_recording(tmp_path / "nothing.mat")
    broken = tmp_path / "broken.mat"
    broken.write_bytes(b"not a matlab file at all" * 20)
    other = tmp_path / "other.mat"
    savemat(other, {"spikes": np.ones((5, 2))})
    short = tmp_path / "short.mat"
    savemat(short, {"spikes": np.ones((5, 2)), "vel": np.ones((4, 2)), "pos": np.ones((4, 2))})
    for path in (broken, other, short):
        with pytest.raises(ValueError, match=r"download it and pass its path"):
            load_recording(path)


@pytest.mark.slow
def test_reaching_on_the_recording():
    path = os.environ.get("RNTK_S1_DATA")
    if path is None:
        pytest.skip(
            "set RNTK_S1_DATA to the path of s1_data.mat; rntk.papers.experiments.reaching says where to get it"
        )
    found = reaching(path, parts=("limited",), epochs=100, width=200)
    rnn, scaled, _ = found.table["limited"]
    np.testing.assert_allclose(rnn, scaled, atol=0.05)
