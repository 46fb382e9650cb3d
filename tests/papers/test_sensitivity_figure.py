"""Figure 3 of the RNTK paper and the claims of its section 3.4, at small size."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rntk import RNTK
from rntk.papers.experiments import sensitivity_figure
from rntk.papers.experiments.sensitivity_figure import PANELS, REFERENCE


@pytest.fixture(scope="module")
def figure():
    return sensitivity_figure(pairs=150)


def test_curves_are_central_differences_of_the_reference_engine():
    """One pair at the reference point of erf, where the paper and these curves disagree."""
    found = sensitivity_figure(pairs=1, T=12).curves["erf"]["sigma_w"][1.0]
    X, Y = np.random.default_rng(0).standard_normal((2, 1, 12))
    kernel, step = RNTK("erf", engine="reference", **REFERENCE["erf"]), 1e-4
    slopes = [
        abs(float(kernel(X + step * unit, Y)[0, 0] - kernel(X - step * unit, Y)[0, 0])) / (2 * step)
        for unit in np.eye(12)
    ]
    np.testing.assert_allclose(found.normalised, np.array(slopes) / max(slopes), atol=1e-6)


def test_what_section_3_4_says(figure):
    holds = {check.claim: check.holds for check in figure.checks}
    assert len(holds) == 8
    true = {claim for claim, held in holds.items() if held}
    assert true == {
        "ReLU is the more stable across time",
        "ReLU: a small decrease of σ_w makes it over-sensitive to the last steps, an increase to the first",
        "σ_w has a major influence: it moves the balance of first and last steps more than thirtyfold",
        "the other deviations change the curve more for erf than for ReLU",
        "a non-zero σ_h reduces the importance of the first steps, for ReLU and for erf",
        "a non-zero σ_h reduces the importance of the first steps more strongly for erf",
    }
    # What is refuted: at its reference point erf listens to the first steps, and to the first even more above it.
    balance = figure.balance("erf", "sigma_w")
    assert balance[1.0] > 2 and balance[1.05] > balance[1.0] and balance[0.8] < -5


def test_every_panel_is_there(figure):
    for activation, panels in PANELS.items():
        for name, values in panels.items():
            assert REFERENCE[activation][name] in values
            assert tuple(figure.curves[activation][name]) == values
    record = figure.to_dict()
    assert json.loads(json.dumps(record)) == record


def test_pictures(figure):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason='pictures need matplotlib: pip install "rntk[plot]"')
    ax = figure.plot()
    assert len(ax.get_lines()) == 5 and ax.get_legend() is not None
    whole = figure.plot_all()
    assert len(whole.axes) == 8
    pyplot.close("all")


@pytest.mark.slow
def test_figure_3_full():
    found = sensitivity_figure()
    assert found.pairs == 10_000 and found.T == 100
    assert sum(check.holds for check in found.checks) == 6
