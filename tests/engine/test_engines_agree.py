"""The fused engine against the reference engine: two routes to the same numbers that share no arithmetic.

Settings are drawn from the whole product with a fixed seed. The battery (`test_battery`) has the hard pairs; here are
all readouts, both directions, tied and untied weights, both parameterisations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers.settings import CLOSED, Setting, for_each, settings
from helpers.tolerances import TOLERANCE, entry_error, relative_error
from rntk import NTK, RNTK

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


def softplus(z):
    return np.logaddexp(0.0, z)


EXPANDED = ("tanh", "gelu", "sigmoid")


def both_engines(setting: Setting, **changes) -> tuple[RNTK, RNTK]:
    return tuple(RNTK(**{**setting.parameters, **changes, "engine": name}) for name in ("fused", "reference"))


def assert_same(got, expected, tolerance: float, entrywise: float) -> None:
    assert relative_error(got, expected) <= tolerance
    assert entry_error(got, expected) <= entrywise


@for_each(settings(80, CLOSED, seed=1))
def test_closed_forms_agree(setting):
    X, Y = setting.data()
    fused, reference = both_engines(setting)
    for other in (None, Y):
        for got, expected in zip(fused.both(X, other), reference.both(X, other), strict=True):
            assert_same(got, expected, TOLERANCE[FLOAT64], 1e-11)
    assert relative_error(fused.diag(X), reference.diag(X)) <= TOLERANCE[FLOAT64]


@for_each(settings(9, EXPANDED, seed=2, tiny=True))
def test_expansions_agree(setting):
    X, Y = setting.data()
    fused, reference = both_engines(setting, depth=1 if setting.parameters["depth"] == 3 else 2, **small(setting))
    for other in (None, Y):
        for got, expected in zip(fused.both(X, other), reference.both(X, other), strict=True):
            assert_same(got, expected, TOLERANCE[FLOAT64], 1e-11)


def small(setting: Setting) -> dict[str, Any]:
    """One number per sigma, the first one, so that the depth may be lowered."""
    names = ("sigma_w", "sigma_u", "sigma_b", "sigma_h")
    return {name: float(np.ravel(setting.parameters[name])[0]) for name in names}


def test_a_callable_agrees():
    """The reference integrates in two dimensions with differences for φ': one pair is all it can afford."""
    rng = np.random.default_rng(8)
    X, Y = [rng.standard_normal((2, 1))], [rng.standard_normal((1, 1))]
    fused, reference = (RNTK(softplus, sigma_b=0.3, sigma_h=0.2, engine=name) for name in ("fused", "reference"))
    for got, expected in zip(fused.both(X, Y), reference.both(X, Y), strict=True):
        assert relative_error(got, expected) <= 1e-11


@for_each(settings(24, CLOSED, seed=3))
def test_float32_agrees(setting):
    X, Y = ([x.astype(np.float32) for x in side] for side in setting.data())
    fused, _ = both_engines(setting, dtype="float32")
    _, reference = both_engines(setting)
    for other in (None, Y):
        for got, expected in zip(fused.both(X, other), reference.both(X, other), strict=True):
            assert got.dtype == np.float32
            assert relative_error(got, expected) <= TOLERANCE[FLOAT32]


@for_each(settings(24, CLOSED, seed=4, largest=6))
def test_gradients_agree(setting):
    """Analytic derivatives by log sigma against sixth-order differences of the reference."""
    X, _ = setting.data()
    fused, reference = both_engines(setting)
    (K, gradient), (expected_K, expected) = (kernel(X, eval_gradient=True) for kernel in (fused, reference))
    assert relative_error(K, expected_K) <= TOLERANCE[FLOAT64]
    assert gradient.shape == (*K.shape, len(fused.theta))
    assert relative_error(gradient, expected) <= 1e-7
    np.testing.assert_array_equal(gradient, gradient.transpose(1, 0, 2))


@for_each(settings(3, EXPANDED, seed=5, tiny=True))
def test_gradients_of_expansions_agree(setting):
    X, _ = setting.data()
    changes = small(setting) | {"depth": 1, "readout": "last", "bidirectional": False, "sigma_b": 0.3}
    fused, reference = both_engines(setting, **changes)
    gradients = [kernel(X, eval_gradient=True)[1] for kernel in (fused, reference)]
    assert relative_error(*gradients) <= 1e-7


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_feed_forward_kernels_agree(activation, normalize):
    X, Y = (np.random.default_rng(seed).standard_normal((6, 3)) for seed in (6, 7))
    parameters = {"sigma_w": [1.2, 0.8], "sigma_b": 0.3, "sigma_v": 0.7, "depth": 2, "normalize": normalize}
    fused, reference = (NTK(activation, **parameters, engine=name) for name in ("fused", "reference"))
    for other in (None, Y):
        for got, expected in zip(fused.both(X, other), reference.both(X, other), strict=True):
            assert_same(got, expected, TOLERANCE[FLOAT64], 1e-11)
    gradients = [kernel(X, eval_gradient=True)[1] for kernel in (fused, reference)]
    assert relative_error(*gradients) <= 1e-7
    assert gradients[0].shape == (6, 6, 4)


def test_the_settings_cover_what_they_should():
    drawn = [setting.parameters for setting in settings(80, CLOSED, seed=1)]
    for name, values in {
        "readout": {"last", "mean", "sequence"},
        "depth": {1, 2, 3},
        "tied": {True, False},
        "bidirectional": {True, False},
        "normalize": {True, False},
        "parameterization": {"ntk", "standard"},
    }.items():
        assert {parameters[name] for parameters in drawn} == values
    assert {setting.channels for setting in settings(80, CLOSED, seed=1)} == {1, 2, 3}
    for name in ("sigma_b", "sigma_h"):
        assert {np.any(parameters[name]) for parameters in drawn} == {True, False}
        assert any(np.ndim(parameters[name]) and 0.0 in parameters[name] for parameters in drawn)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_gradients_where_steps_are_opposite(channels, depth, readout):
    """Without biases Θ is proportional to the inputs' variance: its derivative by log σ_u of the first layer is 2 Θ.

    One channel makes the first steps of two sequences equal or opposite, where V̂' has an infinite derivative.
    """
    rng = np.random.default_rng(8)
    X = [rng.standard_normal((length, channels)) for length in (3, 5, 5, 4, 6, 3, 5, 4)]
    X += [-X[1], -X[3]]
    kernel = RNTK(sigma_u=[0.39, 1.1][:depth], sigma_w=[1.2, 1.3][:depth], depth=depth, readout=readout)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
        K, gradient = kernel.__class__(**{**kernel.get_params(), "dtype": dtype})(X, eval_gradient=True)
        assert relative_error(gradient[:, :, 0], 2 * K) <= tolerance
