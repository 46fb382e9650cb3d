"""The reverse pass against central differences of the kernel itself, and against hand calculations."""

from __future__ import annotations

import numpy as np
import pytest

from rntk import NTK, RNTK, KernelOverflowError, SequenceError, input_gradient


def differences(kernel, x, y, h=1e-4):
    """Central differences of fourth order; every shifted copy of x in one Gram matrix."""
    shifts = (h, -h, 2 * h, -2 * h)
    moved = []
    for index in np.ndindex(x.shape):
        for shift in shifts:
            copy = x.copy()
            copy[index] += shift
            moved.append(copy)
    k = kernel(moved, [y])[:, 0].reshape(-1, 4)
    return ((8 * (k[:, 0] - k[:, 1]) - (k[:, 2] - k[:, 3])) / (12 * h)).reshape(x.shape)


CASES = [
    {},
    {"bidirectional": True},
    {"tied": False},
    {"parameterization": "standard"},
    {"normalize": True},
    {"sigma_b": 0.0},
    {"readout": "mean"},
    {"readout": "mean", "bidirectional": True, "normalize": True},
]


@pytest.mark.parametrize("activation", ["relu", "erf", "identity", "sin", "leaky_relu(0.3)", "tanh"])
@pytest.mark.parametrize("options", CASES, ids=lambda options: "-".join(map(str, options)) or "plain")
@pytest.mark.parametrize("depth", [1, 2])
def test_matches_central_differences(activation, options, depth):
    rng = np.random.default_rng(3)
    settings = {"sigma_w": 1.2, "sigma_u": 0.8, "sigma_b": 0.3, "sigma_h": 0.2, "depth": depth} | options
    kernel = RNTK(activation, **settings)
    for steps_x, steps_y in ((4, 4), (5, 3), (3, 5), (1, 1)):
        x, y = rng.standard_normal((steps_x, 2)), rng.standard_normal((steps_y, 2))
        expected = differences(kernel, x, y)
        error = np.abs(input_gradient(kernel, x, y) - expected).max()
        assert error <= 1e-6 * max(np.abs(expected).max(), 1e-3), (steps_x, steps_y)


def test_identity_by_hand():
    # Θ = Σ_j (j + 2) <x_{T-j}, y_{T-j}> for sigma_w = 1: the gradient is (j + 2) y_{T-j}.
    gradient = input_gradient(RNTK("identity", sigma_w=1.0), [1.0, -2.0, 0.5], [3.0, 4.0, 5.0])
    np.testing.assert_allclose(gradient, [4 * 3.0, 3 * 4.0, 2 * 5.0], rtol=1e-13)


def test_steps_before_a_shorter_partner_matter_only_through_the_variance():
    x, y = np.array([2.0, 1.0, -1.0]), np.array([0.5])
    linear = input_gradient(RNTK("identity", sigma_w=1.0), x, y)
    np.testing.assert_allclose(linear, [0.0, 0.0, 2 * 0.5], atol=1e-14)
    curved = input_gradient(RNTK(), x, y)
    assert np.abs(curved[:2]).min() > 1e-3


def test_feedforward_gradient_of_a_vector():
    rng = np.random.default_rng(0)
    kernel = NTK("erf", depth=2, sigma_b=0.1)
    x, y = rng.standard_normal(4), rng.standard_normal(4)
    h = 1e-5
    expected = [(kernel([x + h * e], [y]) - kernel([x - h * e], [y]))[0, 0] / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(input_gradient(kernel, x, y), expected, rtol=1e-7)


def test_equal_inputs_are_finite_and_cost_is_linear_in_length():
    x = np.random.default_rng(0).standard_normal(400)
    assert np.isfinite(input_gradient(RNTK(), x, x)).all()
    assert np.isfinite(input_gradient(RNTK(normalize=True), x, -x)).all()


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="readout"):
        input_gradient(RNTK(readout="sequence"), [1.0], [2.0])
    with pytest.raises(ValueError, match="channels"):
        input_gradient(RNTK(), np.ones((3, 2)), np.ones((3, 1)))
    with pytest.raises(SequenceError):
        input_gradient(RNTK(), [np.nan], [1.0])
    with pytest.raises(KernelOverflowError):
        input_gradient(RNTK(sigma_w=10.0), np.ones(2000), np.ones(2000))


@pytest.mark.parametrize("seed", range(40))
def test_the_reverse_pass_agrees_with_differences_in_the_reference_engine(seed):
    """Every readout, kind, direction, parameterisation and normalisation: two routes that share no arithmetic."""
    rng = np.random.default_rng(seed)
    activation = ("relu", "erf", "sin", "gelu", "identity", "abs", "leaky_relu(0.2)")[seed % 7]
    settings = {
        "readout": ("last", "mean")[rng.integers(2)],
        "kind": ("ntk", "nngp")[rng.integers(2)],
        "parameterization": ("ntk", "standard")[rng.integers(2)],
        **{name: bool(rng.integers(2)) for name in ("normalize", "bidirectional", "tied")},
        "depth": int(rng.integers(1, 3)),
        "sigma_b": 0.2,
        "sigma_h": (0.0, 0.4)[rng.integers(2)],
    }
    channels = int(rng.integers(1, 3))
    x, y = (rng.standard_normal((int(rng.integers(1, 5)), channels)) for _ in range(2))
    found = input_gradient(RNTK(activation, **settings), x, y)
    expected = input_gradient(RNTK(activation, engine="reference", **settings), x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max() + 1e-15)
