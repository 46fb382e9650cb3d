"""The note on perceptrons: its recursion by hand, its claims on finite networks, and what refutes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

from helpers.records import check_pictures, verdicts
from helpers.tolerances import relative_error
from rntk import NTK, papers
from rntk.papers.studies.perceptron import note_kernels


def test_the_recursion_of_the_note_by_hand():
    """x = (1, 0), x' = (0, 1): Σ¹ = ½ or 0, then E[relu relu'] = q/2 or q/2π, slopes ½ or ¼."""
    sigma, theta = note_kernels(NTK(sigma_w=1.0), [[1.0, 0.0], [0.0, 1.0]])
    other = 1 / (4 * math.pi)
    np.testing.assert_allclose(sigma, [[0.25, other], [other, 0.25]], rtol=1e-12)
    np.testing.assert_allclose(theta, [[0.5, other], [other, 0.5]], rtol=1e-12)
    # With β = 1 on the same input: Σ¹ = 3/2, Σ² = 3/4 + 1, Θ² = 3/2 · 1/2 + 7/4; the output has a bias too.
    sigma, theta = note_kernels(NTK(sigma_w=1.0, sigma_b=1.0), [[1.0, 0.0]])
    assert (sigma[0, 0], theta[0, 0]) == pytest.approx((1.75, 2.5))


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_the_kernel_of_the_library_is_the_notes_without_the_last_bias(activation):
    x = np.random.default_rng(0).standard_normal((5, 3))
    kernel = NTK(activation, sigma_w=(1.0, 1.3), sigma_b=0.4, sigma_v=0.8, depth=2)
    sigma, theta = note_kernels(kernel, x)
    assert relative_error(kernel.nngp(x) + 0.16, sigma) < 1e-7
    assert relative_error(kernel(x) + 0.16, theta) < 1e-7


KERNEL = {"activation": "erf", "sigma_w": 1.0, "sigma_b": 0.3}
SMALL = {"kernels": [KERNEL], "depths": [1], "seeds": 12, "inputs": 4, "networks": 80}


def test_perceptrons_approach_the_kernel_of_the_note():
    pytest.importorskip("jax", reason='finite networks need JAX: pip install "rntk[finite]"')
    from rntk.finite.comparison import fit_slope

    run = papers.run("perceptron", widths=[16, 64, 256], **SMALL, steps=4)
    assert len(verdicts(run)) == 8 and set(verdicts(run).values()) == {"reproduced"}
    found = run.results["networks"]
    (case,) = found.cases
    assert case["ntk"].shape == case["nngp"].shape == case["between"].shape == (3, 12)
    assert (found.trained.tolist(), case["drift"].shape, found.law_width) == ([16, 256], (2, 10), 64)
    for name in ("ntk", "nngp", "between"):
        slope = fit_slope(found.widths, case[name])
        assert abs(slope.value + 0.5) < 4 * slope.error < 0.45
    assert fit_slope(found.trained, case["drift"]).value < -0.4
    check_pictures(run, 2)


def test_networks_of_another_kernel_are_noticed(monkeypatch):
    """Networks with σ_w = 2 beside the kernel for σ_w = 1: wrong covariance, and an error that doesn't fall."""
    finite = pytest.importorskip("rntk.finite", reason='needs JAX: pip install "rntk[finite]"', exc_type=ImportError)
    real = finite.network
    monkeypatch.setattr(finite, "network", lambda kernel, *rest, **more: real(
        clone(kernel).set_params(sigma_w=2.0), *rest, **more))  # fmt: skip
    run = papers.run("perceptron", widths=[16, 256], **SMALL, steps=0)
    found = verdicts(run)
    assert found["drift"] == "not run"  # nothing was trained
    failed = {key for key, verdict in found.items() if verdict == "differs"}
    assert {"covariance", "averages", "kernel"} <= failed and not failed & {"uncorrelated", "between"}
    check_pictures(run, 1)
