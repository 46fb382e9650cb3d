"""Where the papers print something else than docs/theory.md, section 10: the library computes the corrected formula.

`test_oracles` shows, against finite networks, that the printed formulas are wrong and the corrected ones right. Here
the library itself is asked, for every formula it implements, which of the two it uses; then come the errata as a study,
whose verdicts could come out otherwise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from helpers.records import check_pictures, verdicts
from oracles import finite_network, high_precision
from oracles.duals import erf_dual, relu_dual
from oracles.finite_network import Architecture
from oracles.printed import paper_sum
from rntk import NTK, RNTK, papers
from rntk.activations import erf, relu
from rntk.papers.studies.errata import ERRATA, NEITHER, NOTES, RIGHT, UNDECIDED, WRONG, Erratum, entries, recurrent
from rntk.papers.studies.errata.networks import Wiring


def sequences(seed: int, *lengths: int, channels: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((max(lengths), channels))
    return [common[-length:] + 0.5 * rng.standard_normal((length, channels)) for length in lengths]


def test_relu_slope_is_the_slope_of_its_value():
    """[R] B.5 prints twice the V' that its V has; at c = 1 V' is the probability of z > 0."""
    one, h = np.array([1.0]), 1e-5
    for s in (-0.6, 0.2, 0.9):
        up, down = (relu.dual(2 * one, 3 * one, np.array([s + step]))[0][0] for step in (h, -h))
        assert relu.dual(2 * one, 3 * one, np.array([s]))[1][0] == pytest.approx((up - down) / (2 * h), rel=1e-8)
    assert relu.dual(one, one, one)[1][0] == 0.5
    x, y = sequences(1, 3, 3)

    def printed(q1, q2, s):
        value, slope = relu_dual(q1, q2, s)
        return value, 2 * slope

    got = RNTK(sigma_b=0.2)([x], [y])[0, 0]
    assert got == pytest.approx(float(high_precision.relu_rntk(x, y, math.sqrt(2), 1, 0.2)[0]), rel=1e-12)
    assert got != pytest.approx(float(high_precision.rntk(printed, x, y, math.sqrt(2), 1, 0.2)[0]), rel=0.1)


def test_erf_value_is_symmetric_in_the_variances():
    """[R] B.5 prints the covariance where the second variance belongs."""
    q1, q2, s = (np.array([value]) for value in (0.5, 2.0, 0.7))
    assert erf.dual(q1, q2, s)[0][0] == erf.dual(q2, q1, s)[0][0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    weights = weights / weights.sum()
    c = 0.7 / math.sqrt(1.0)
    first = math.sqrt(0.5) * nodes[:, None]
    second = math.sqrt(2.0) * (c * nodes[:, None] + math.sqrt(1 - c * c) * nodes)
    estimate = weights @ (erf(first) * erf(second)) @ weights
    assert erf.dual(q1, q2, s)[0][0] == pytest.approx(estimate, rel=1e-6)

    def printed(a, b, covariance):
        root = mpmath.sqrt((1 + 2 * a) * (1 + 2 * covariance))
        return 2 / mpmath.pi * mpmath.asin(2 * covariance / root), erf_dual(a, b, covariance)[1]

    x, y = [[0.5]], [[2.0]]
    got = RNTK("erf", sigma_b=0.3).nngp([x], [y])[0, 0]
    assert got != pytest.approx(float(high_precision.rntk(printed, x, y, 1, 1, 0.3)[1]), rel=0.05)


def test_first_step_of_an_upper_layer_reads_the_layer_below():
    """[R] B.3 feeds layer l by itself: blind to the input. By hand: q₁ = x², q₂ = σ_u² q₁/2 + σ_b², 𝒦 = q₂/2."""
    kernel = RNTK(sigma_u=1.3, sigma_b=0.4, depth=2)
    for x in (1.0, 3.0):
        q1 = 1.3**2 * x**2 + 0.4**2
        q2 = 1.3**2 * q1 / 2 + 0.4**2
        assert kernel.nngp([[x]])[0, 0] == pytest.approx(q2 / 2, rel=1e-14)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_layers_are_connected_without_delay(depth):
    """[R] B.3, backward covariances: the paper's sum with corrected indices is the recursion of section 3."""
    x, y = sequences(2, 4, 4)
    sw, su, sb, sv = 1.3, 0.9, 0.2, 0.8
    got = RNTK(sigma_w=sw, sigma_u=su, sigma_b=sb, sigma_v=sv, depth=depth)([x], [y])[0, 0]
    assert got == pytest.approx(paper_sum(x, y, sw, su, sb, sv, depth, printed=False), rel=1e-12)
    if depth > 1:
        assert got != pytest.approx(paper_sum(x, y, sw, su, sb, sv, depth, printed=True), rel=0.01)


@pytest.mark.parametrize("tied", [True, False])
def test_each_weight_is_divided_by_its_own_fan_in(tied):
    """[R] (29) and B.4 exchange √m and √n: the variance of the state would grow with the width."""
    (x,) = sequences(3, 3, channels=5)
    architecture = Architecture("relu", 1.2, 0.8, 0.3, tied=tied)
    expected = RNTK(sigma_w=1.2, sigma_u=0.8, sigma_b=0.3, tied=tied).nngp([x])[0, 0]
    for width in (64, 256):
        mean, error = finite_network.monte_carlo(x, x, architecture, width, draws=100, seed=4, same=True)
        assert error[1] < 0.05 * expected
        # The bias at finite width is O(1/n) of the value; exchanged roots would be off by factors of n/m.
        assert abs(mean[1] - expected) < 4 * error[1] + 3 / width * expected


def test_last_factor_of_the_perceptron_is_the_readouts():
    """[R] A.1 prints σ_w² V' for every factor; the sum written out has σ_v² V' in the last one."""
    x, y = (z[0] for z in sequences(5, 1, 1, channels=3))
    sw, sb, sv, depth = 1.5, 0.3, 0.6, 3
    qx, qy, s = (sw**2 * float(a @ b) / 3 + sb**2 for a, b in ((x, x), (y, y), (x, y)))
    sigmas, slopes = [], []
    for _ in range(depth):
        value, slope = (float(part) for part in relu_dual(*map(mpmath.mpf, (qx, qy, s))))
        sigmas.append(s)
        slopes.append(slope)
        qx, qy, s = (sw**2 * v + sb**2 for v in (qx / 2, qy / 2, value))

    def total(last: float) -> float:
        factors = [sw**2] * (depth - 1) + [last]
        terms = (
            sigma * math.prod(factor * slope for factor, slope in zip(factors[layer:], slopes[layer:], strict=True))
            for layer, sigma in enumerate(sigmas)
        )
        return sv**2 * value + sum(terms)

    got = NTK(sigma_w=sw, sigma_b=sb, sigma_v=sv, depth=depth)([x], [y])[0, 0]
    assert got == pytest.approx(total(sv**2), rel=1e-12)
    assert got != pytest.approx(total(sw**2), rel=0.1)


def test_initial_states_of_two_sequences_are_independent():
    """[R] B.2 prints σ_h² for any pair; as in its (13), it belongs to a sequence with itself."""
    x = np.array([[1.0], [0.0]])
    kernel = RNTK("identity", sigma_w=1.0, sigma_h=2.0)
    np.testing.assert_allclose(kernel.nngp([x, x]), [[5.0, 1.0], [1.0, 5.0]], rtol=1e-14)


def test_linear_networks_are_stable_up_to_a_variance_of_one():
    """[L] section 2 prints λmax/√n → ν_W. By √ν_W a signal's variance shrinks by ν_W per step, as the kernel's does."""
    variance = 0.25
    n = 300
    w = math.sqrt(variance) * np.random.default_rng(6).standard_normal((n, n))
    radius = np.abs(np.linalg.eigvals(w)).max() / math.sqrt(n)
    kernel = RNTK("identity", sigma_w=math.sqrt(variance))
    short, long = (kernel.nngp([np.eye(1, steps)[0]])[0, 0] for steps in (10, 11))
    assert long / short == pytest.approx(variance, rel=1e-12)
    assert radius**2 == pytest.approx(variance, rel=0.2)


# ---- The errata as a study -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    return papers.run("errata", draws=40)


@pytest.fixture(scope="module")
def found(run) -> dict[str, Erratum]:
    return entries(run.results)


def test_every_printed_formula_is_wrong_and_every_correction_right(run, found):
    assert {name: entry.verdict for name, entry in found.items()} == dict.fromkeys(ERRATA, WRONG)
    assert verdicts(run) == {name: "note" if name in NOTES else "differs" for name in ERRATA}
    told = [row for row in run.verdicts if row["verdict"] == "differs"]
    assert all(f"correct: {found[row['key']].correct}" in row["reason"] for row in told)


@pytest.mark.parametrize("name", ERRATA)
def test_a_right_formula_and_a_wrong_correction_would_be_noticed(found, name):
    entry = found[name]
    swapped = replace(entry, printed_value=entry.correct_value, correct_value=entry.printed_value)
    assert swapped.verdict == RIGHT


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
    run = papers.run("errata", draws=3, only=["backward-indices"])
    assert entries(run.results)["backward_indices"].verdict == UNDECIDED
    assert verdicts(run)["backward_indices"] == "too few seeds"


def test_numbers_by_hand(found):
    def numbers(name: str) -> tuple[float, float]:
        return found[name].printed_value, found[name].correct_value

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
    assert numbers("tap_bound") == pytest.approx((math.sqrt(5), found["tap_bound"].correct_value))
    assert found["tap_bound"].judge_value > 1.04 * math.sqrt(5)


def test_the_papers_sum_is_the_kernel_once_its_indices_are_right():
    wiring = Wiring(sigma_w=1.1, sigma_u=0.9, sigma_b=0.3, sigma_v=0.7, depth=3)
    X, Y = recurrent.X, recurrent.Y
    assert recurrent.paper_sum(wiring, X, Y) == pytest.approx(wiring.kernel([X], [Y])[0, 0], rel=1e-12)


def test_every_erratum_has_its_own_stream():
    names = ["relu-slope", "missing-variance"]
    together, alone = (papers.run("errata", only=each, draws=5) for each in (names, names[1:]))
    assert entries(together.results)["missing_variance"] == entries(alone.results)["missing_variance"]
    other = entries(papers.run("errata", only=names, draws=5, random_state=1).results)
    assert all(other[name].judge_value != entry.judge_value for name, entry in entries(together.results).items())
    assert ERRATA["erf_value"](np.random.default_rng(0), 2).judge == "Gauss-Hermite sums"


def test_errata_are_drawn(run):
    check_pictures(run)
