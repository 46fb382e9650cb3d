"""The note on perceptrons and the errata of the papers: claims that hold, verdicts that could come out otherwise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from helpers.records import check_record_and_picture
from helpers.tolerances import relative_error
from rntk import NTK, RNTK
from rntk.papers.experiments.errata import ERRATA, NEITHER, RIGHT, UNDECIDED, WRONG, Errata, Erratum, errata
from rntk.papers.experiments.errata.networks import Wiring
from rntk.papers.experiments.errata.recurrent import X, Y, paper_sum
from rntk.papers.experiments.perceptron import PerceptronConvergence, note_kernels, perceptron_convergence

# ---- Errata ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> Errata:
    return errata(draws=40)


def test_every_printed_formula_is_wrong_and_every_correction_right(found):
    assert {name: entry.verdict for name, entry in found.entries.items()} == dict.fromkeys(ERRATA, WRONG)
    assert all(check.holds for check in found.checks)


@pytest.mark.parametrize("name", ERRATA)
def test_a_right_formula_and_a_wrong_correction_would_be_noticed(found, name):
    entry = found.entries[name]
    swapped = replace(entry, printed_value=entry.correct_value, correct_value=entry.printed_value)
    assert swapped.verdict == RIGHT
    assert not swapped.check.holds


def test_verdicts_by_hand():
    texts = dict.fromkeys(("where", "printed", "correct", "example", "judge"), "")

    def verdict(printed: float, correct: float, bound: bool = False) -> str:
        numbers = {"printed_value": printed, "correct_value": correct, "judge_value": -2.0, "uncertainty": 0.5}
        return Erratum(**texts, **numbers, bound=bound).verdict

    assert verdict(-1.0, -2.25) == WRONG
    assert verdict(-2.25, -1.0) == RIGHT
    assert verdict(-2.5, -1.5) == UNDECIDED
    assert verdict(-2.6, -1.4) == NEITHER
    # Bounds hold if they aren't exceeded, however large they are.
    assert verdict(-2.6, 9.0, bound=True) == WRONG
    assert verdict(9.0, -2.6, bound=True) == RIGHT
    assert verdict(9.0, 8.0, bound=True) == UNDECIDED


def test_a_judge_who_sees_too_little_says_so():
    entry = errata(draws=3, only="backward_indices").entries["backward_indices"]
    assert entry.verdict == UNDECIDED


def test_numbers_by_hand(found):
    entries = found.entries

    def numbers(name: str) -> tuple[float, float]:
        return entries[name].printed_value, entries[name].correct_value

    share = 0.25 + math.asin(0.9 / math.sqrt(6)) / (2 * math.pi)  # both of a Gaussian pair positive
    assert numbers("relu_slope") == pytest.approx((2 * share, share))
    # {1, 0} and a copy, linear: ρ_1 = 3 passages, and σ_h² = 4 on top.
    assert numbers("initial_state") == pytest.approx((7.0, 3.0))
    # q = 5/2 + 0.04 in layer 1, q/2 + 0.04 in layer 2; as printed q = q/2 + 0.04 instead.
    assert numbers("upper_layer") == pytest.approx((0.04, (2.54 / 2 + 0.04) / 2))
    assert numbers("p90_of_rbf") == pytest.approx((87.6, 4900 / 56))
    assert numbers("rank_of_identity_rnn") == pytest.approx((5.21, 288 / 56))
    assert numbers("rank_of_gru") == pytest.approx((4.21, 233 / 56))
    assert numbers("accuracy_on_ham") == (71.63, 71.43)
    assert numbers("size_of_middle_phalanx") == (291, 154)
    assert numbers("variance_of_each_matrix") == pytest.approx((2 * 1.7 / 4 + 0.25, 2 * 1.7 / 2 + 0.25))
    assert numbers("tap_bound") == pytest.approx((math.sqrt(5), entries["tap_bound"].correct_value))
    assert entries["tap_bound"].judge_value > 1.04 * math.sqrt(5)


def test_the_papers_sum_is_the_kernel_once_its_indices_are_right():
    wiring = Wiring(sigma_w=1.1, sigma_u=0.9, sigma_b=0.3, sigma_v=0.7, depth=3)
    assert paper_sum(wiring, X, Y) == pytest.approx(RNTK(**wiring.parameters)([X], [Y])[0, 0], rel=1e-12)


def test_every_erratum_has_its_own_stream():
    names = ["relu_slope", "missing_variance"]
    together, alone = errata(draws=5, only=names), errata(draws=5, only=names[::-1][:1])
    assert together.entries[names[1]] == alone.entries[names[1]]
    other = errata(draws=5, random_state=1, only=names)
    assert all(other.entries[name].judge_value != together.entries[name].judge_value for name in names)
    assert ERRATA["erf_value"](np.random.default_rng(0)) == errata(only="erf_value").entries["erf_value"]


def test_errata_come_back_and_draw_themselves(found):
    assert Errata.from_dict(found.to_dict()) == found
    check_record_and_picture(found)


def test_errata_refuse():
    with pytest.raises(ValueError, match="no erratum is called 'tanh'; there are relu_slope"):
        errata(only=["erf_value", "tanh"])
    with pytest.raises(ValueError, match="at least 2"):
        errata(draws=1)


# ---- Perceptrons -----------------------------------------------------------------------------------------------------


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


KERNEL = NTK("erf", sigma_w=1.0, sigma_b=0.3)
SMALL = {"depths": (1,), "seeds": 12, "inputs": 4, "networks": 80}


def test_perceptrons_approach_the_kernel_of_the_note():
    pytest.importorskip("jax", reason='finite networks need JAX: pip install "rntk[finite]"')
    record = perceptron_convergence(KERNEL, widths=(16, 64, 256), **SMALL, steps=4)
    assert [check.claim for check in record.checks if not check.holds] == []
    assert len(record.checks) == 8
    (case,) = record.cases
    assert case.ntk.shape == case.nngp.shape == case.between.shape == (3, 12)
    assert (record.trained, case.drift.shape, record.law_width) == ((16, 256), (2, 10), 64)
    for name in ("ntk", "nngp", "between"):
        slope = record.slopes(name)["erf", 1]
        assert abs(slope.value + 0.5) < 4 * slope.error < 0.45
    assert record.slopes("drift")["erf", 1].value < -0.4
    again = PerceptronConvergence.from_dict(record.to_dict())
    assert again.to_dict() == record.to_dict() and again.checks == record.checks
    check_record_and_picture(record)
    record.plot(name="drift")


def test_networks_of_another_kernel_are_noticed(monkeypatch):
    """Networks with σ_w = 2 beside the kernel for σ_w = 1: wrong covariance, and an error that doesn't fall."""
    finite = pytest.importorskip("rntk.finite", reason='needs JAX: pip install "rntk[finite]"', exc_type=ImportError)
    real = finite.network
    monkeypatch.setattr(finite, "network", lambda kernel, *rest, **more: real(
        clone(kernel).set_params(sigma_w=2.0), *rest, **more))  # fmt: skip
    record = perceptron_convergence(KERNEL, widths=(16, 256), **SMALL, steps=0)
    failed = [check.claim for check in record.checks if not check.holds]
    assert len(record.checks) == 7
    for word in ("covariance", "averages over units", "tangent kernel of a network"):
        assert any(word in claim for claim in failed), (word, failed)
    assert not any("uncorrelated" in claim or "between" in claim for claim in failed)
    with pytest.raises(ValueError, match="no network was trained"):
        record.plot(name="drift")


def test_perceptrons_refuse():
    with pytest.raises(ValueError, match="networks must be more than inputs, 6"):
        perceptron_convergence(networks=6)
    with pytest.raises(ValueError, match="one number"):
        perceptron_convergence(NTK(sigma_b=(0.1, 0.2), depth=2))
