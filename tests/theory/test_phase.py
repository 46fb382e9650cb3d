"""Phases: against the literature's curves, closed forms, and kernels of long sequences."""

from __future__ import annotations

import numpy as np
import pytest

from rntk import RNTK
from rntk.activations import erf
from rntk.programs import ProgramKernel
from rntk.theory import edge_of_chaos, phase


def test_edges_of_chaos():
    sigma_w, sigma_b = edge_of_chaos("tanh")
    # Schoenholz et al. 2017: σ_b² = 0.05 is critical at σ_w² = 1.76, and no bias at σ_w = 1.
    assert np.interp(0.05, sigma_b**2, sigma_w**2) == pytest.approx(1.76, abs=0.005)
    assert sigma_w[0] == pytest.approx(1.0, abs=1e-6)
    q = np.linspace(0.01, 5, 30)
    sigma_w, sigma_b = edge_of_chaos("erf", variances=q)
    assert np.allclose(sigma_w**2, np.pi / 4 * np.sqrt(1 + 4 * q), rtol=1e-12)
    assert np.allclose(sigma_b**2, q - sigma_w**2 * 2 / np.pi * np.arcsin(2 * q / (1 + 2 * q)), rtol=1e-9)
    sigma_w, sigma_b = edge_of_chaos("relu")  # He et al.: σ_w² = 2 without bias, whatever the variance
    assert np.allclose(sigma_w**2, 2.0)
    assert sigma_b.max() < 1e-6


@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        (RNTK("tanh", sigma_w=0.9), "ordered"),
        (RNTK("tanh", sigma_w=1.5, sigma_b=0.1), "chaotic"),
        (RNTK("relu", sigma_w=1.2, sigma_b=0.5), "ordered"),
        (RNTK("relu"), "critical"),
        (ProgramKernel("elman", activation="erf", sigma_w=2.0), "chaotic"),
    ],
    ids=repr,
)
def test_states(kernel, state):
    found = phase(kernel)
    assert found.state == state
    assert (found.correlation < 1) == (state == "chaotic")
    assert state in repr(found)


def test_limits_of_long_sequences():
    """Fixed points, scales and Θ for T → ∞ against the kernel of 200 steps."""
    kernel = RNTK("erf", sigma_w=0.8, sigma_b=0.3, sigma_u=0.7)
    found = phase(kernel, inputs=1.0, correlation=0.5)
    root = 2**0.5
    x = np.stack([np.full(200, root), np.zeros(200)], axis=1)
    y = np.stack([np.full(200, root / 2), np.full(200, root * 0.75**0.5)], axis=1)
    both = kernel.both([x, y])
    assert found.ntk == pytest.approx(both.ntk[0, 0], rel=1e-10)
    assert found.nngp == pytest.approx(both.nngp[0, 0], rel=1e-10)
    q, c = found.variance, found.correlation
    V, slope = erf.dual(q, q, q * c)
    assert both.nngp[0, 1] == pytest.approx(float(V), rel=1e-10)
    assert found.slope == pytest.approx(0.8**2 * float(slope), rel=1e-8)
    assert found.time_scale == pytest.approx(-1 / np.log(found.slope))


def test_pictures_and_refusals():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = phase(RNTK("tanh", sigma_w=1.5)).plot()
    assert "σ_w" in ax.get_xlabel()
    pyplot.close("all")
    with pytest.raises(ValueError, match="one layer of Elman cells"):
        phase(ProgramKernel("gru"))
