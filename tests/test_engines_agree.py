"""The fused engine against the reference engine: two routes to the same numbers that share no arithmetic.

Settings are drawn from the whole product with a fixed seed. The battery (`test_battery`) has the hard pairs; here are
all readouts, both directions, tied and untied weights, both parameterisations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rntk import NTK, RNTK
from tolerances import TOLERANCE, entry_error, relative_error

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
CLOSED = ("relu", "leaky_relu(0.2)", "identity", "abs", "erf", "sin")


def softplus(z):
    return np.logaddexp(0.0, z)


EXPANDED = ("tanh", "gelu", "sigmoid")


@dataclass(frozen=True)
class Setting:
    """One draw: parameters of a kernel, and the shapes of its data."""

    parameters: dict[str, Any]
    lengths: tuple[int, ...]
    other_lengths: tuple[int, ...]
    channels: int
    seed: int
    scale: float = 1.0
    label: str = field(default="", compare=False)

    def data(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        rng = np.random.default_rng(self.seed)
        return tuple(  # type: ignore[return-value]
            [self.scale * rng.standard_normal((length, self.channels)) for length in lengths]
            for lengths in (self.lengths, self.other_lengths)
        )


def draw(rng: np.random.Generator, index: int, activations: tuple, *, largest: int, tiny: bool) -> Setting:
    """A random corner of everything the kernel offers."""

    def choose(*options):
        return options[rng.integers(len(options))]

    activation = activations[index % len(activations)]
    depth = int(rng.integers(1, 4))
    by_layer = depth > 1 and rng.random() < 0.4

    def sigma(low, high, zero: bool):
        if zero and rng.random() < 0.4:
            return 0.0
        size = depth if by_layer else 1
        values = [round(float(value), 3) for value in rng.uniform(low, high, size=size)]
        if zero and by_layer and rng.random() < 0.7:
            values[int(rng.integers(size))] = 0.0
        return values if by_layer else values[0]

    channels = int(rng.integers(1, 4))
    parameters = {
        "activation": activation,
        "sigma_w": sigma(0.5, 1.5, False),
        "sigma_u": sigma(0.5, 1.3, False),
        "sigma_b": sigma(0.1, 0.6, channels > 1),
        "sigma_h": sigma(0.1, 0.9, True),
        "sigma_v": round(float(rng.uniform(0.5, 1.5)), 3),
        "depth": depth,
        "readout": choose("last", "mean", "sequence"),
        "bidirectional": bool(rng.random() < 0.3),
        "tied": bool(rng.random() < 0.7),
        "parameterization": choose("ntk", "standard"),
        "normalize": bool(rng.random() < 0.2),
    }
    if tiny:
        lengths, other = (1, 3), (2,)
    else:
        lengths = (1, *(int(value) for value in rng.integers(2, largest, size=4)))
        lengths += (lengths[1],)  # at least two of the same length
        other = tuple(int(value) for value in rng.integers(1, largest, size=3))
    name = activation if isinstance(activation, str) else activation.__name__
    flags = [key for key in ("bidirectional", "normalize") if parameters[key]]
    flags += [] if parameters["tied"] else ["untied"]
    flags += ["by layer"] if by_layer else []
    label = " ".join(
        [f"{index:02d}", name, f"L{depth}", parameters["readout"], parameters["parameterization"], f"m{channels}"]
        + flags
        + [f"no {key}" for key in ("sigma_b", "sigma_h") if not np.any(parameters[key])]
    )
    # Expansions are exact to rounding at moderate variances only, and say so otherwise.
    return Setting(parameters, lengths, other, channels, 1000 + index, 0.5 if tiny else 1.0, label)


def settings(count: int, activations: tuple, seed: int, *, largest: int = 8, tiny: bool = False) -> list[Setting]:
    rng = np.random.default_rng(seed)
    return [draw(rng, index, activations, largest=largest, tiny=tiny) for index in range(count)]


def for_each(chosen: list[Setting]):
    return pytest.mark.parametrize("setting", chosen, ids=[setting.label for setting in chosen])


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
