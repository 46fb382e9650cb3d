"""The trained networks: their equations, their padding, their training, and how they sit among scikit-learn's tools."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax", reason='needs JAX: pip install "rntk[finite]"')
pytest.importorskip("optax", reason='needs optax: pip install "rntk[finite]"')

import jax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from rntk.finite import DivergenceError
from rntk.papers.networks import GaussianRNNClassifier, GRUClassifier, IdentityRNNClassifier, paper_grid
from rntk.papers.networks.holdout import hold_out
from rntk.papers.networks.networks import GatedUnits, GaussianElman, IdentityElman, Layer, Parameters
from rntk.papers.networks.padding import Padded, pad, rounded
from rntk.papers.networks.rmsprop import advance, clip, cross_entropy, start
from rntk.papers.networks.training import Labelled, assess, evaluate
from rntk.papers.networks.training import _logits as LOGITS  # noqa: N812
from rntk.sequences import as_batch

CLASSIFIERS = [GaussianRNNClassifier, IdentityRNNClassifier, GRUClassifier]
CLIP = jax.jit(clip)
SLOPE = jax.jit(jax.value_and_grad(cross_entropy, argnums=1), static_argnums=0)
NETWORKS = [GaussianElman(), IdentityElman(deviation=0.3), GatedUnits()]


def waves(seed, n=40, channels=1, classes=2, lengths=(17, 25)):
    """Noisy sine waves of unequal length and any phase; the class is their frequency."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for k in range(n):
        steps = np.arange(rng.integers(*lengths))
        wave = np.sin((0.3 + 0.9 * (k % classes)) * steps[:, None] + rng.uniform(0, 6, channels))
        X.append(wave + 0.05 * rng.standard_normal(wave.shape))
        y.append(k % classes)
    return X, np.array(y)


def drawn(network, channels=2, width=5, depth=2, classes=3, seed=0):
    """Parameters in which nothing is zero or the identity, so that every one matters."""
    random = np.random.RandomState(seed)
    start = network.draw(channels, width, depth, classes, random)
    return jax.tree.map(lambda leaf: (leaf + 0.1 * random.standard_normal(leaf.shape)).astype(np.float32), start)


# -- forward: the equations, one step of one sequence at a time --------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gaussian_step(layer, x, h):
    n, m = len(layer.W), len(layer.U)
    return np.maximum(0, np.sqrt(2 / n) * (h @ layer.W) + np.sqrt(1 / m) * (x @ layer.U))


def identity_step(layer, x, h):
    return np.maximum(0, h @ layer.W + x @ layer.U + layer.b)


def gru_step(layer, x, h):
    n = len(layer.W)
    (W_r, W_z, W_c), (U_r, U_z, U_c) = (np.split(M, 3, axis=1) for M in (layer.W, layer.U))
    r = sigmoid(x @ U_r + layer.b[:n] + h @ W_r)
    z = sigmoid(x @ U_z + layer.b[n : 2 * n] + h @ W_z)
    c = np.tanh(x @ U_c + layer.b[2 * n :] + r * (h @ W_c + layer.a))
    return (1 - z) * c + z * h


def by_hand(network, parameters, x):
    """Logits of one sequence (T, m), in double precision."""
    step = {GaussianElman: gaussian_step, IdentityElman: identity_step, GatedUnits: gru_step}[type(network)]
    states = np.asarray(x, dtype=np.float64)
    for layer in parameters.layers:
        h, outputs = np.zeros(len(layer.W)), []
        for inputs in states:
            h = step(layer, inputs, h)
            outputs.append(h)
        states = np.array(outputs)
    if isinstance(network, GaussianElman):
        return np.sqrt(2 / len(parameters.V)) * (states[-1] @ parameters.V)
    return states[-1] @ parameters.V + parameters.bias


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
@pytest.mark.parametrize("depth", [1, 2])
def test_logits_are_those_of_the_equations(network, depth):
    parameters = drawn(network, depth=depth)
    X = [np.random.default_rng(k).standard_normal((length, 2)) for k, length in enumerate((1, 7, 20, 3, 11))]
    logits = evaluate(network, parameters, as_batch(X), batch_size=2, longest=20)
    wanted = np.array([by_hand(network, parameters, x) for x in X])
    np.testing.assert_allclose(logits, wanted, rtol=2e-5, atol=2e-6)


def test_initial_parameters():
    random = np.random.RandomState(0)
    gaussian = GaussianElman().draw(3, 200, 2, 4, random)
    assert [layer.U.shape for layer in gaussian.layers] == [(3, 200), (200, 200)]
    assert gaussian.V.shape == (200, 4) and gaussian.bias is None and gaussian.layers[0].b is None
    np.testing.assert_allclose([gaussian.layers[1].W.std(), gaussian.layers[1].U.std()], 1.0, atol=0.02)
    identity = IdentityElman().draw(3, 200, 2, 4, random)
    np.testing.assert_array_equal(identity.layers[1].W, np.eye(200))
    np.testing.assert_allclose([identity.layers[1].U.std(), identity.V.std()], 0.001, rtol=0.1)
    assert not identity.layers[0].b.any() and not identity.bias.any()
    gated = GatedUnits().draw(3, 200, 2, 4, random)
    for leaf in jax.tree.leaves(gated):
        assert leaf.dtype == np.float32 and np.abs(leaf).max() <= 200**-0.5
        assert leaf.size < 100 or np.abs(leaf).max() > 0.95 * 200**-0.5


# -- gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
def test_gradients_are_differences_of_the_equations(network):
    parameters = drawn(network)
    X = [np.random.default_rng(k).standard_normal((length, 2)) for k, length in enumerate((4, 9, 6))]
    labels = np.array([2, 0, 1])

    def loss(parameters):
        logits = np.array([by_hand(network, parameters, x) for x in X])
        return np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(3), labels])

    x = pad(as_batch(X), np.arange(3), 4, 9)
    gradient = SLOPE(network, parameters, x, np.append(labels, 0), np.array([1, 1, 1, 0]))[1]
    wide = jax.tree.map(lambda leaf: leaf.astype(np.float64), parameters)
    direction = jax.tree.map(lambda leaf: np.random.default_rng(leaf.size).standard_normal(leaf.shape), wide)
    # One direction per leaf: a wrong gradient of one kind of parameter can't hide behind the others.
    for chosen in range(len(jax.tree.leaves(wide))):
        leaves, tree = jax.tree.flatten(direction)
        one = jax.tree.unflatten(tree, [leaf * (k == chosen) for k, leaf in enumerate(leaves)])
        up, down = (jax.tree.map(lambda p, d, s=s: p + s * 1e-6 * d, wide, one) for s in (1, -1))
        slope = sum(np.sum(g * d) for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(one), strict=True))
        np.testing.assert_allclose(slope, (loss(up) - loss(down)) / 2e-6, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("network", [GaussianElman(), IdentityElman(), GatedUnits()], ids=lambda n: type(n).__name__)
def test_gradients_stay_finite_over_long_sequences(network):
    x = pad(as_batch(np.random.default_rng(0).standard_normal((4, 2000))), np.arange(4), 4, 2000)
    parameters = network.draw(1, 16, 1, 2, np.random.RandomState(0))
    labels, weights = np.array([0, 1, 0, 1]), np.ones(4)
    gradient = SLOPE(network, parameters, x, labels, weights)[1]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert any(np.any(leaf) for leaf in jax.tree.leaves(gradient))


# -- padding -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
def test_nothing_depends_on_the_padding(network):
    parameters, rng = drawn(network), np.random.default_rng(0)
    X = [rng.standard_normal((length, 2)) for length in (5, 8, 3)]
    exact = pad(as_batch(X), np.arange(3), 3, 8)
    # More steps in front, full of rubbish, and more rows.
    values = np.full((15, 5, 2), 1e3, dtype=np.float32)
    values[7:, :3] = np.where((np.arange(8)[:, None] >= 8 - exact.lengths)[:, :, None], exact.values, -1e3)
    padded = Padded(values, np.append(exact.lengths, [0, 0]).astype(np.int32))
    labels, ones = np.array([1, 2, 0]), np.ones(3, dtype=np.float32)
    outputs = [np.asarray(LOGITS(network, parameters, x)) for x in (padded, exact)]
    np.testing.assert_allclose(outputs[0][:3], outputs[1], rtol=1e-6)
    nothing = 0.0 if parameters.bias is None else parameters.bias  # the state before the first step is zero, exactly
    np.testing.assert_array_equal(outputs[0][3:], np.broadcast_to(nothing, (2, 3)))
    loss, gradient = SLOPE(network, parameters, exact, labels, ones)
    other, same = SLOPE(network, parameters, padded, np.append(labels, [0, 0]), np.append(ones, [0, 0]))
    np.testing.assert_allclose(other, loss, rtol=1e-6)
    for left, right in zip(jax.tree.leaves(same), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)


def test_a_sequence_has_the_same_output_in_any_company():
    X, y = waves(0)
    model = GRUClassifier(width=8, max_epochs=2, random_state=0).fit(X, y)
    together = model.decision_function(X)
    alone = np.concatenate([model.decision_function([x]) for x in X[:6]])
    np.testing.assert_allclose(together[:6], alone, rtol=1e-4, atol=1e-6)


def test_shapes_are_few_and_near():
    assert [rounded(length, 500) for length in (1, 8, 9, 100, 129, 449, 500, 513)] == [
        1,
        8,
        10,
        112,
        160,
        500,
        500,
        640,
    ]
    shapes = {rounded(length, 1000) for length in range(1, 1001)}
    assert len(shapes) < 40
    assert all(length <= rounded(length, 10) <= 1.25 * length + 1 for length in range(1, 3000))


def test_one_compilation_serves_all_learning_rates_and_batches():
    X, y = waves(1, n=37)
    GRUClassifier(width=8, max_epochs=2, batch_size=8, random_state=0).fit(X, y)
    before = advance._cache_size()
    GRUClassifier(width=8, max_epochs=3, batch_size=8, learning_rate=0.05, clip_norm=None, random_state=0).fit(X, y)
    assert advance._cache_size() == before


# -- training ----------------------------------------------------------------------------------------------------------


def test_rmsprop_by_hand():
    network, random = IdentityElman(deviation=0.3), np.random.RandomState(0)
    parameters = network.draw(1, 3, 1, 2, random)
    x = pad(as_batch(random.standard_normal((4, 6))), np.arange(4), 4, 6)
    labels, weights = np.array([0, 1, 1, 0]), np.ones(4)
    theta, state = parameters, start(parameters)
    expected = [np.asarray(leaf, dtype=np.float64) for leaf in jax.tree.leaves(parameters)]
    square = [np.zeros_like(leaf) for leaf in expected]
    for _ in range(3):
        gradient = [np.asarray(leaf) for leaf in jax.tree.leaves(SLOPE(network, theta, x, labels, weights)[1])]
        theta, state, _, taken = advance(network, theta, state, x, labels, weights, 0.01, 1e9)
        assert taken
        square = [0.9 * v + 0.1 * np.square(g, dtype=np.float64) for v, g in zip(square, gradient, strict=True)]
        expected = [p - 0.01 * g / (np.sqrt(v) + 1e-8) for p, g, v in zip(expected, gradient, square, strict=True)]
        for leaf, wanted in zip(jax.tree.leaves(theta), expected, strict=True):
            np.testing.assert_allclose(leaf, wanted, rtol=1e-4, atol=1e-6)


def test_clipping_keeps_the_direction_at_any_size():
    gradient = {"a": np.array([3.0, 0.0], np.float32), "b": np.array([[4.0]], np.float32)}
    np.testing.assert_allclose(CLIP(gradient, 1.0)["a"], [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(CLIP(gradient, 6.0)["b"], [[4.0]])
    np.testing.assert_allclose(CLIP(gradient, np.inf)["b"], [[4.0]])
    huge = jax.tree.map(lambda leaf: leaf * np.float32(1e30), gradient)  # whose square is infinite
    np.testing.assert_allclose(CLIP(huge, 1.0)["b"], [[0.8]], rtol=1e-6)
    assert not np.any(CLIP(jax.tree.map(np.zeros_like, gradient), 1.0)["a"])


def test_a_gradient_that_is_not_finite_is_left_out():
    network = IdentityElman()
    explosive = Parameters(
        (Layer(np.ones((1, 2), np.float32), 100 * np.eye(2, dtype=np.float32), np.zeros(2, np.float32)),),
        np.ones((2, 2), np.float32),
        np.zeros(2, np.float32),
    )
    x = pad(as_batch(np.ones((2, 50))), np.arange(2), 2, 50)
    after, _, _, taken = advance(network, explosive, start(explosive), x, np.array([0, 1]), np.ones(2), 0.1, 1.0)
    assert not taken
    for left, right in zip(jax.tree.leaves(after), jax.tree.leaves(explosive), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_an_easy_ragged_task_is_learned(classifier):
    X, y = waves(0, n=120)
    new, truth = waves(1, n=60)
    # At this rate an identity network of any size runs away within some steps; see `best_epoch_`.
    rate = {GaussianRNNClassifier: 0.01, IdentityRNNClassifier: 0.003, GRUClassifier: 0.01}[classifier]
    model = classifier(width=24, learning_rate=rate, random_state=0).fit(X, y)
    assert model.score(new, truth) > 0.9


def test_several_classes_channels_and_layers():
    X, y = waves(2, n=60, channels=2, classes=3)
    words = np.array(["slow", "middle", "fast"])[y]
    model = GRUClassifier(width=8, depth=2, learning_rate=0.01, random_state=0).fit(X, words)
    assert list(model.classes_) == ["fast", "middle", "slow"]
    new, truth = waves(3, n=30, channels=2, classes=3)
    assert model.score(new, np.array(["slow", "middle", "fast"])[truth]) > 0.9
    logits, probabilities = model.decision_function(new), model.predict_proba(new)
    assert logits.shape == probabilities.shape == (30, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(new))


def test_two_classes_have_one_decision_value():
    X, y = waves(4)
    model = GRUClassifier(width=8, max_epochs=3, random_state=0).fit(X, y)
    decision, probabilities = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(decision, np.log(probabilities[:, 1] / probabilities[:, 0]), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), (decision > 0).astype(int))


def test_stopping_restores_the_best_epoch():
    X, y = waves(5, n=60)
    model = GRUClassifier(width=8, learning_rate=0.03, patience=4, min_steps=0, random_state=1).fit(X, y)
    accuracy, loss = model.history_["validation_accuracy"], model.history_["validation_loss"]
    best = np.flatnonzero(accuracy == accuracy.max())
    assert model.best_epoch_ == best[np.argmin(loss[best])]
    assert model.n_iter_ == best[0] + 1 + 4 < 200  # four epochs after the first of the highest accuracy
    held = model.validation_
    watched = Labelled(model._prepare(as_batch([X[i] for i in held])), y[held])
    again = assess(model._network, model.parameters_, watched, 32, model.longest_)
    np.testing.assert_allclose(again, (accuracy.max(), loss[model.best_epoch_]), rtol=1e-5)
    assert model.score([X[i] for i in held], y[held]) == accuracy.max()


def test_patience_waits_for_the_first_steps():
    X, y = waves(6, n=40)
    model = GRUClassifier(width=8, learning_rate=1e-7, batch_size=8, patience=1, min_steps=20, random_state=0).fit(X, y)
    assert model.n_iter_ == 6  # four steps an epoch: the sixth is the first after twenty steps
    assert (
        GRUClassifier(width=8, learning_rate=1e-7, batch_size=8, patience=1, min_steps=0, random_state=0)
        .fit(X, y)
        .n_iter_
        == 2
    )


def test_without_validation_all_epochs_are_trained():
    X, y = waves(7)
    model = GRUClassifier(width=8, validation_fraction=None, max_epochs=7, patience=1, random_state=0).fit(X, y)
    assert (model.n_iter_, model.best_epoch_, len(model.validation_)) == (7, 6, 0)
    assert np.isnan(model.history_["validation_accuracy"]).all()


def test_what_is_held_out_is_stratified():
    labels = np.repeat([0, 1, 2, 3], [50, 20, 3, 1])
    for seed in range(20):
        rows, aside = hold_out(labels, 0.2, np.random.RandomState(seed))
        assert sorted([*rows, *aside]) == list(range(74))
        counts = np.bincount(labels[aside], minlength=4)
        assert list(counts[:2]) == [10, 4] and counts[2] in (0, 1) and counts[3] == 0
    assert len(hold_out(np.array([0, 0, 1]), 0.1, np.random.RandomState(0))[1]) == 1
    assert len(hold_out(np.array([0, 1, 2]), 0.5, np.random.RandomState(0))[1]) == 0
    assert set(labels[hold_out(labels, 0.99, np.random.RandomState(0))[0]]) == {0, 1, 2, 3}


def test_classes_of_one_sequence_are_trained():
    X, y = waves(8, n=21)
    y[-1] = 7
    assert list(IdentityRNNClassifier(width=8, max_epochs=1, random_state=0).fit(X, y).classes_) == [0, 1, 7]
    model = IdentityRNNClassifier(width=8, max_epochs=2, random_state=0).fit(X[:2], [0, 1])  # nothing to set aside
    assert len(model.validation_) == 0 and np.isfinite(model.history_["validation_accuracy"]).all()


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_seed_decides_everything(classifier):
    X, y = waves(9)
    one, two, three = (classifier(width=8, max_epochs=3, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    np.testing.assert_array_equal(one.history_["loss"], two.history_["loss"])
    assert not np.array_equal(one.decision_function(X), three.decision_function(X))


def test_double_precision_switched_on_elsewhere_changes_nothing():
    X, y = waves(10)
    wanted = GRUClassifier(width=8, max_epochs=3, random_state=0).fit(X, y)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        model = GRUClassifier(width=8, max_epochs=3, random_state=0).fit(X, y)
        assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(model.parameters_))
        np.testing.assert_allclose(model.decision_function(X), wanted.decision_function(X), rtol=1e-3, atol=1e-5)


def test_inputs_are_standardized_unless_told_otherwise():
    X, y = waves(11)
    model = GRUClassifier(width=8, max_epochs=2, random_state=0).fit(X, y)
    moved = [1e6 + 1e3 * x for x in X]
    same = clone(model).fit(moved, y)
    np.testing.assert_allclose(same.decision_function(moved), model.decision_function(X), rtol=1e-2, atol=1e-3)
    raw = clone(model).set_params(standardize=False).fit(X, y)
    assert raw.scaler_ is None
    assert not np.allclose(raw.decision_function(X), model.decision_function(X), rtol=1e-2)


# -- scikit-learn's tools ----------------------------------------------------------------------------------------------


def test_the_grid_of_the_paper():
    grid = paper_grid()
    assert grid == {"depth": [1, 2], "width": [50, 100, 200, 500], "learning_rate": [1e-2, 1e-3, 1e-4, 1e-5]}
    assert set(grid) <= set(GRUClassifier().get_params())
    grid["depth"].append(3)
    assert paper_grid()["depth"] == [1, 2]


def test_cross_validation_and_grid_search_on_ragged_lists():
    X, y = waves(12, n=60)
    model = GRUClassifier(width=8, learning_rate=0.01, random_state=0)
    scores = cross_val_score(model, X, y, cv=3)
    assert scores.shape == (3,) and scores.mean() > 0.8
    search = GridSearchCV(model.set_params(max_epochs=5), {"depth": [1], "learning_rate": [1e-2, 1e-4]}, cv=2).fit(X, y)
    assert search.predict(X).shape == (60,)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_clone_and_pickle(classifier):
    X, y = waves(13)
    model = classifier(width=8, max_epochs=2, random_state=0)
    assert model.fit(X, y) is model
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params() and not hasattr(fresh, "parameters_")
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_arrays_of_two_and_three_axes_are_the_same_data():
    X = np.random.default_rng(0).standard_normal((40, 24))
    y = (X[:, -1] > 0).astype(int)
    model = GRUClassifier(width=8, max_epochs=3, random_state=0)
    flat = clone(model).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(flat, clone(model).fit(X[:, :, None], y).decision_function(list(X)))


def test_a_bar_is_shown_when_asked_for(capsys):
    X, y = waves(14)
    GRUClassifier(width=8, max_epochs=2, random_state=0).fit(X, y)
    assert capsys.readouterr().err == ""
    GRUClassifier(width=8, max_epochs=2, random_state=0, progress=True).fit(X, y)
    assert "training" in capsys.readouterr().err


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_mistakes_are_named(classifier):
    X, y = waves(15)
    model = classifier(width=8, max_epochs=1, random_state=0)
    with pytest.raises(ValueError, match="40 sequences and 5 labels"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match=r"sequence 1 has .* NaN"):
        model.fit([X[0], np.full_like(X[1], np.nan), *X[2:]], y)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(40))
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"3 channels.*expecting 1"):
        model.predict([np.zeros((4, 3))])


@pytest.mark.parametrize(
    "name, value",
    [
        ("width", 0),
        ("depth", 1.5),
        ("max_epochs", 0),
        ("batch_size", -1),
        ("patience", 0),
        ("min_steps", -1),
        ("learning_rate", 0.0),
        ("learning_rate", np.nan),
        ("learning_rate", None),
        ("clip_norm", -1.0),
        ("validation_fraction", 1.0),
        ("validation_fraction", "half"),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    X, y = waves(16, n=8)
    with pytest.raises(ValueError, match=name):
        GRUClassifier(**{name: value}).fit(X, y)


def test_a_network_that_overflows_says_so():
    X, y = np.random.default_rng(0).standard_normal((12, 300)), np.arange(12) % 2
    with pytest.raises(DivergenceError, match="overflowed single precision"):
        IdentityRNNClassifier(width=8, learning_rate=1.0, random_state=0).fit(X, y)
    model = IdentityRNNClassifier(width=8, max_epochs=1, random_state=0).fit(X, y)
    (layer,) = model.parameters_.layers
    doubling = layer._replace(U=np.ones_like(layer.U), W=2 * layer.W)  # 2^128 is too much
    model.parameters_ = model.parameters_._replace(layers=(doubling,))
    with pytest.raises(DivergenceError, match=r"1 of 2 sequences, first on sequence 1 of 300 steps"):
        model.predict([np.ones(5), np.ones(300)])


def test_without_optax_the_extra_is_named():
    code = "import sys; sys.modules['optax'] = None\nimport rntk.papers.networks"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MissingExtraError: optax can't be imported" in done.stderr
    assert 'pip install "rntk[finite]"' in done.stderr
