"""Kernels of infinite width against random networks of finite width, differentiated by hand.

`oracles.finite_network` draws networks and takes inner products of their gradients. Averages at two widths remove the
O(1/n) bias; what is left is chance, measured by the standard error. Seeds are fixed.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from oracles import finite_network
from oracles.finite_network import Architecture
from rntk import RNTK

WIDTHS = (128, 384)
RELU = Architecture("relu", math.sqrt(2), 1.0, 0.2, 0.0, 0.9)
ERF = Architecture("erf", 1.1, 0.9, 0.3, 0.5, 0.8)
TANH = Architecture("tanh", 1.2, 0.8, 0.2, 0.3, 1.1)
#: Architecture, lengths, parameterisation.
CASES = {
    "relu": (RELU, (4, 4), "ntk"),
    "relu, unequal lengths": (replace(RELU, sigma_h=0.6), (5, 2), "ntk"),
    "relu, depth 2, sigmas by layer": (
        replace(RELU, depth=2, sigma_w=(1.2, 0.7), sigma_u=(0.8, 1.3), sigma_b=(0.5, 0.1), sigma_h=(0.3, 0.6)),
        (3, 4),
        "ntk",
    ),
    "erf, depth 2": (replace(ERF, depth=2), (3, 3), "ntk"),
    "tanh": (TANH, (4, 3), "ntk"),
    "relu, mean": (replace(RELU, readout="mean", sigma_h=0.5), (3, 4), "ntk"),
    "tanh, sequence": (replace(TANH, readout="sequence"), (2, 3), "ntk"),
    "relu, untied, mean": (replace(RELU, tied=False, readout="mean"), (3, 2), "ntk"),
    "erf, bidirectional, sequence": (replace(ERF, bidirectional=True, readout="sequence"), (2, 3), "ntk"),
    "relu, standard, depth 2": (replace(RELU, depth=2), (3, 3), "standard"),
}


def kernel_of(architecture: Architecture, parameterization: str = "ntk", **options) -> RNTK:
    a = architecture
    names = ("activation", "sigma_w", "sigma_u", "sigma_b", "sigma_h", "sigma_v", "depth", "tied", "readout")
    settings = {name: getattr(a, name) for name in (*names, "bidirectional")}
    return RNTK(**settings, parameterization=parameterization, **options)


def limit(x, y, architecture: Architecture, parameterization: str = "ntk", same: bool = False, **options) -> np.ndarray:
    """(NTK, NNGP) stacked as `finite_network.monte_carlo` does."""
    kernel = kernel_of(architecture, parameterization, **options)
    nngp, ntk = kernel.both([x]) if same else kernel.both([x], [y])
    both = np.stack([ntk, nngp])
    return both if architecture.readout == "sequence" else both[:, 0, 0]


def related_sequences(lengths) -> tuple[np.ndarray, np.ndarray]:
    """Two sequences that resemble each other: keeps kernels away from zero, where nothing could be resolved."""
    rng = np.random.default_rng(1)
    common = rng.standard_normal((6, 2))
    return tuple(common[-length:] + 0.4 * rng.standard_normal((length, 2)) for length in lengths)


@pytest.mark.parametrize("name", CASES)
def test_finite_networks_approach_the_kernel(name):
    architecture, lengths, parameterization = CASES[name]
    x, y = related_sequences(lengths)
    mean, error = finite_network.extrapolate(
        x, y, architecture, WIDTHS, draws=240, seed=2, parameterization=parameterization
    )
    scale = np.abs(mean).max(axis=tuple(range(1, mean.ndim)), keepdims=True)
    assert np.all(error <= 0.03 * scale), "too few draws for the comparison to mean anything"
    for engine in ("fused", "reference"):
        expected = limit(x, y, architecture, parameterization, engine=engine)
        np.testing.assert_array_less(np.abs(mean - expected), 4.5 * error + 1e-12)


@pytest.mark.parametrize("depth", [1, 2])
def test_one_sequence_shares_its_initial_state(depth):
    architecture = replace(RELU, sigma_h=1.0, depth=depth)
    x = np.random.default_rng(3).standard_normal((3, 1))
    mean, error = finite_network.extrapolate(x, x, architecture, WIDTHS, draws=160, seed=4, same=True)
    assert np.all(error <= 0.03 * np.abs(mean))
    np.testing.assert_array_less(np.abs(mean - limit(x, x, architecture, same=True)), 4.5 * error)
    # Two sequences that merely look alike are another matter, and the test can tell.
    assert abs(mean - limit(x, x, architecture))[0] > 8 * error[0]


@pytest.mark.parametrize("architecture", [RELU, ERF], ids=["relu", "erf"])
def test_wide_networks_are_closer(architecture):
    """A single network is off by O(1/√n): a factor of four from width 64 to 1024."""
    x, y = related_sequences((4, 4))
    expected = limit(x, y, architecture)
    typical = []
    for width, draws in ((64, 60), (1024, 12)):
        rngs = np.random.default_rng([5, width]).spawn(draws)
        samples = np.array([finite_network.empirical_kernels(x, y, architecture, width, rng) for rng in rngs])
        typical.append(np.sqrt(np.mean((samples - expected) ** 2, axis=0)))
    ratio = typical[0] / typical[1]
    assert np.all(ratio > 2)
    assert np.all(ratio < 8)
