"""Finite networks of programs: their means are the limits, of cells with gates and states of several numbers too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax")

from rntk import RNTK, finite
from rntk.programs import ProgramKernel, matrix, nonlinearity


def some(lengths=(4, 3)):
    rng = np.random.default_rng(3)
    return [rng.standard_normal((length, 2)) for length in lengths]


def two_numbers(x, h, c, *, sigma=1.5):
    """An LSTM whose candidate reads o h + c/2: both states, and the output gate, enter a matrix."""
    gate, phi = nonlinearity("sigmoid"), nonlinearity("tanh")
    i, f, o = (gate(matrix(f"W_{k}", sigma) @ h + matrix(f"U_{k}", 1.1) @ x) for k in "ifo")
    c = f * c + i * phi(matrix("W_g", sigma) @ (o * h + 0.5 * c) + matrix("U_g", 1.2) @ x)
    return o * phi(c), c


@pytest.mark.parametrize(
    "kernel",
    [
        ProgramKernel("leaky", activation="erf", readout="attention", depth=2),
        ProgramKernel("normalised", sigma_b=0.3, readout="mean"),
        ProgramKernel("state_space"),
        ProgramKernel("gru", sigma_w=1.4, tied=False, rates={"W_z": 0.5, "v": 0.3}),
        ProgramKernel("lstm", sigma_w=1.4, sigma_b=0.3),
        ProgramKernel(two_numbers, sigma_h=0.4),
    ],
    ids=repr,
)
def test_means_are_the_limit(kernel):
    X = some()
    limit = kernel.both(X)
    net = finite.network(kernel, 128)
    for kind in ("nngp", "ntk"):
        average = finite.average(net, X, kind=kind, seeds=40, progress=False)
        value, error = getattr(limit, kind), getattr(limit, f"{kind}_error")
        # Beside the standard errors there is a bias of one over the width.
        allowed = 4 * np.hypot(average.error, error) + 2 / 128 * np.sqrt(np.outer(np.diag(value), np.diag(value)))
        assert (np.abs(average.mean - value) < allowed).all()


def test_elman_is_the_network_of_the_rntk():
    """The same numbers in both: outputs and both empirical kernels, with two outputs."""
    X = some()
    ours = finite.network(ProgramKernel("elman", sigma_b=0.2), 32, outputs=2)
    theirs = finite.network(RNTK(sigma_b=0.2), 32, outputs=2)
    weights = ours.init(0, X, dtype="float64")
    same = {"W": (weights["W"],), "U": (weights["U"],), "b": (weights["b"],), "V": weights["v"]}
    assert np.allclose(ours(weights, X), theirs({"forward": same}, X), rtol=1e-12)
    mine, others = (finite.empirical_kernels(net, w, X) for net, w in ((ours, weights), (theirs, {"forward": same})))
    assert np.allclose(mine.nngp, others.nngp, rtol=1e-12)
    assert mine.ntk.shape == (2, 2, 2, 2)
    assert np.allclose(mine.ntk, others.ntk, rtol=1e-10, atol=1e-12)


def test_outputs_are_apart_in_the_limit():
    """Θ ⊗ I_d: between outputs nothing is left but what the width leaves."""
    X = some()
    kernel = ProgramKernel("gru", sigma_w=1.2)
    K = np.mean(
        [finite.empirical_ntk(net, net.init(s, X), X) for net in [finite.network(kernel, 256, 2)] for s in range(8)], 0
    )
    scale = np.abs(kernel(X)).max()
    assert np.abs(K[:, :, 0, 1]).max() < 0.1 * scale
    assert np.abs(K[:, :, 0, 0] - kernel(X)).max() < 0.15 * scale


def test_where_corollary_1_fails():
    """A readout with a mean: the rules, which take Wᵀ for independent of W, are off, and not because of the width.

    With a mean of two the naive rule has 1 + 2² times the tangents. But φ'(W h) is correlated with W, and Wᵀ times it
    has a part along h.
    """
    X = some((3, 3))
    net = finite.network(ProgramKernel("elman", rates={"v": 0.0}), 256)
    biased = replace(net, program=replace(net.program, readout_mean=2.0))
    fresh, off = (finite.average(each, X, seeds=16, progress=False) for each in (net, biased))
    naive = ProgramKernel("elman", rates={"v": 0.0})(X)
    assert (np.abs(fresh.mean - naive) < 4 * fresh.error + 0.02 * naive.max()).all()
    assert (np.abs(np.diag(off.mean - 5 * naive)) > 5 * np.diag(off.error)).all()


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["gru", "lstm", "leaky"])
def test_errors_fall_with_the_root_of_the_width(cell):
    kernel = ProgramKernel(cell, sigma_w=1.3, points=2**13 if cell != "leaky" else 1024, sampler="sobol")
    found = finite.compare(kernel, widths=(32, 64, 128, 256), seeds=40, X=some(), progress=False)
    assert abs(found.ntk_slope.value + 0.5) < 0.1
    assert abs(found.nngp_slope.value + 0.5) < 0.1
