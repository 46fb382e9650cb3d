"""Sensitivity over time: the batched reverse pass against differences of the reference engine, curves against plain
loops, and suggestions against what the paper claims."""

from __future__ import annotations

import json
import sys
from itertools import cycle

import numpy as np
import pytest

from rntk import NTK, RNTK, KernelOverflowError, Sensitivity, input_gradient, sensitivity, suggest
from rntk.engine import slopes as passes
from rntk.engine.slopes import PairGradients, join
from rntk.errors import MissingExtraError
from rntk.sequences import as_batch
from rntk.theory.sensitivity import curves
from rntk.theory.suggest import GRID, Suggestion

SETTINGS = {"sigma_w": 1.2, "sigma_u": 0.8, "sigma_b": 0.3, "sigma_h": 0.2}
OPTIONS = [
    {},
    {"tied": False},
    {"bidirectional": True},
    {"normalize": True},
    {"parameterization": "standard"},
    {"sigma_b": 0.0, "sigma_h": 0.0},
    {"readout": "mean"},
    {"bidirectional": True, "normalize": True, "parameterization": "standard"},
]


def differences(kernel, x, y, h=1e-3):
    """Central differences of fourth order, every shifted copy of x in one Gram matrix."""
    moved = []
    for index in np.ndindex(x.shape):
        for shift in (1, -1, 2, -2):
            moved.append(x.copy())
            moved[-1][index] += shift * h
    k = kernel(moved, [y])[:, 0].reshape(-1, 4)
    return ((8 * (k[:, 0] - k[:, 1]) - (k[:, 2] - k[:, 3])) / (12 * h)).reshape(x.shape)


def ragged(rng, lengths, channels=2):
    return [rng.standard_normal((steps, channels)) for steps in lengths]


def split(found):
    return np.split(found.gradient, found.offsets[1:-1])


# -- the reverse pass --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("activation", ["relu", "erf", "identity", "leaky_relu(0.3)", "sin"])
def test_gradients_match_differences_of_the_reference_engine(activation, options):
    rng = np.random.default_rng(5)
    X = ragged(rng, (3, 4, 2, 3))
    left, right = np.array([0, 1, 2]), np.array([3, 2, 1])
    for depth in (1, 2, 3):
        settings = SETTINGS | {"depth": depth} | options
        found = PairGradients(RNTK(activation, **settings).plan(), as_batch(X))(left, right)
        reference = RNTK(activation, **settings, engine="reference")
        for i, j, value, gradient in zip(left, right, found.value, split(found), strict=True):
            assert value == pytest.approx(reference([X[i]], [X[j]])[0, 0], rel=1e-10, abs=1e-12)
            expected = differences(reference, X[i], X[j])
            assert np.abs(gradient - expected).max() <= 1e-6 * max(np.abs(expected).max(), 1e-3), (depth, i, j)


@pytest.mark.parametrize(("options", "depth"), list(zip(OPTIONS[:6], cycle((1, 2)), strict=False)))
def test_expansions_match_differences_of_the_fused_engine(options, depth):
    # The reference engine would take minutes; the fused one is checked against it.
    rng = np.random.default_rng(6)
    X = ragged(rng, (3, 4, 2))
    kernel = RNTK("tanh", **SETTINGS | {"depth": depth} | options)
    left, right = np.array([0, 1, 2]), np.array([1, 2, 0])
    for i, j, gradient in zip(left, right, split(PairGradients(kernel.plan(), as_batch(X))(left, right)), strict=True):
        expected = differences(kernel, X[i], X[j])
        assert np.abs(gradient - expected).max() <= 1e-6 * max(np.abs(expected).max(), 1e-3)


def test_expansion_matches_differences_of_the_reference_engine():
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, 1)), rng.standard_normal((2, 1))
    expected = differences(RNTK("tanh", **SETTINGS, engine="reference"), x, y)
    np.testing.assert_allclose(input_gradient(RNTK("tanh", **SETTINGS), x, y), expected, rtol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_batched_is_single(activation, readout):
    rng = np.random.default_rng(8)
    X = ragged(rng, rng.integers(1, 9, size=20), channels=1)
    kernel = RNTK(activation, **SETTINGS, readout=readout)
    left, right = rng.integers(0, 20, size=(2, 70))
    found = PairGradients(kernel.set_params(n_jobs=2).plan(), as_batch(X))(left, right)
    for p, gradient in enumerate(split(found)):
        alone = input_gradient(kernel, X[left[p]], X[right[p]])
        # An expansion of one pair may have another order than one of all of them.
        np.testing.assert_allclose(gradient, alone, rtol=1e-9 if activation == "tanh" else 1e-13, atol=1e-13)


@pytest.mark.parametrize("activation", ["relu", "erf", "sin"])
@pytest.mark.parametrize("options", [{}, {"readout": "mean"}, {"bidirectional": True, "normalize": True}])
def test_no_number_depends_on_threads_tasks_or_blocks(activation, options, monkeypatch):
    rng = np.random.default_rng(9)
    batch = as_batch(ragged(rng, rng.integers(1, 30, size=40)))
    left, right = rng.integers(0, 40, size=(2, 150))
    kernel = RNTK(activation, **SETTINGS, depth=2, **options)
    usual = PairGradients(kernel.plan(), batch)(left, right)
    for threads, task, lanes in ((3, 700, 128), (1, 10**9, 8), (2, 3000, 40), (2, 100, 16)):
        monkeypatch.setattr(passes, "TASK_STEPS", task)
        monkeypatch.setattr(passes, "MOST_LANES", lanes)
        monkeypatch.setattr(passes, "BLOCK_BYTES", task * 100)
        other = PairGradients(kernel.set_params(n_jobs=threads).plan(), batch)(left, right)
        np.testing.assert_array_equal(other.value, usual.value)
        np.testing.assert_array_equal(other.gradient, usual.gradient)


@pytest.mark.parametrize("parameterization", ["ntk", "standard"])
def test_identity_has_the_closed_form_of_a_linear_network(parameterization):
    # ∂Θ/∂x_{T-j} = ρ_j x'_{T-j}/m, theory.md (19); with raw weights of variance ν_W = σ_w², ν_F = σ_u²/m, ν_C = σ_v².
    rng = np.random.default_rng(10)
    steps, m, sw, su, sv = 12, 3, 0.9, 0.7, 1.3
    x, y = rng.standard_normal((2, steps, m))
    j = np.arange(steps)
    if parameterization == "ntk":
        rho = (j + 2) * sv**2 * su**2 * sw ** (2 * j) / m
    else:
        w, f, c = sw**2, su**2 / m, sv**2
        rho = c * (j * f * w ** (j - 1.0) + w**j) + f * w**j
    kernel = RNTK("identity", sigma_w=sw, sigma_u=su, sigma_v=sv, parameterization=parameterization)
    np.testing.assert_allclose(input_gradient(kernel, x, y), rho[::-1, None] * y, rtol=1e-12)
    curve = sensitivity(kernel, [x], [y])
    np.testing.assert_allclose(curve.mean, rho[::-1] * np.linalg.norm(y, axis=1), rtol=1e-12)


def test_identity_by_hand():
    # Θ = 4·1·3 + 3·(-2)·4 + 2·½·5 for σ_w = 1: s = (4·3, 3·4, 2·5).
    curve = sensitivity(RNTK("identity", sigma_w=1.0), [[1.0, -2.0, 0.5]], [[3.0, 4.0, 5.0]])
    np.testing.assert_allclose(curve.mean, [12.0, 12.0, 10.0], rtol=1e-13)
    np.testing.assert_allclose(curve.normalised, [1.0, 1.0, 10 / 12], rtol=1e-13)


@pytest.mark.parametrize("activation", ["relu", "erf", "identity", "sin", "gelu"])
@pytest.mark.parametrize("options", [{}, {"depth": 2}, {"readout": "mean"}, {"bidirectional": True}])
def test_leading_zeros_have_a_derivative(activation, options):
    # No unit vector exists before the first input; the derivative does (for ReLU, the mean of both sides).
    if activation == "gelu":
        options = options | {"sigma_w": 0.9, "sigma_u": 0.5}
    kernel = RNTK(activation, **options)
    x, y = np.array([0.0, 0.7, -0.4, 0.0]), np.array([1.3, -0.2, 0.8, 0.9])
    # Across a kink differences converge only like h.
    expected = differences(kernel, x, y, h=1e-6 if activation == "relu" else 1e-3)
    assert np.abs(expected[[0, -1]]).min() > 1e-4
    np.testing.assert_allclose(input_gradient(kernel, x, y), expected, rtol=1e-5)


def test_normalised_gradient_needs_no_scale():
    # ψ² is of order 50^2000 here: only the normalised kernel is a float.
    x, y = np.random.default_rng(0).standard_normal((2, 2000))
    gradient = input_gradient(RNTK(sigma_w=10.0, normalize=True), x, y)
    assert np.isfinite(gradient).all()
    short = input_gradient(RNTK(sigma_w=10.0, normalize=True), x[:4], y[:4])
    np.testing.assert_allclose(short, differences(RNTK(sigma_w=10.0, normalize=True), x[:4], y[:4]), rtol=1e-6)


# -- curves ------------------------------------------------------------------------------------------------------------


def by_hand(kernel, pairs):
    """The definition of every field, as a loop."""
    curves = [np.linalg.norm(input_gradient(kernel, x, y), axis=1) for x, y in pairs]
    longest = max(map(len, curves))
    mean, error, count, normalised = [], [], [], []
    for lag in range(longest - 1, -1, -1):
        here = [curve[len(curve) - 1 - lag] for curve in curves if len(curve) > lag]
        shape = [curve[len(curve) - 1 - lag] / max(curve) for curve in curves if len(curve) > lag and max(curve) > 0]
        count.append(len(here))
        mean.append(np.mean(here))
        error.append(np.std(here, ddof=1) / np.sqrt(len(here)) if len(here) > 1 else np.nan)
        normalised.append(np.mean(shape) if shape else 0.0)
    return mean, error, count, normalised


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_ragged_curves_are_what_a_plain_loop_gives(readout, monkeypatch):
    monkeypatch.setattr(passes, "TASK_STEPS", 40)  # many parts to merge
    rng = np.random.default_rng(1)
    X, Y = ragged(rng, rng.integers(1, 12, size=15)), ragged(rng, rng.integers(1, 12, size=15))
    X.append(np.zeros((3, 2)))
    Y.append(np.zeros((4, 2)))  # a silent pair
    X.append(rng.standard_normal((13, 2)))  # the only one of this length
    Y.append(rng.standard_normal((2, 2)))
    kernel = RNTK("relu", sigma_w=1.3, readout=readout)
    found = sensitivity(kernel, X, Y, n_jobs=2)
    mean, error, count, normalised = by_hand(kernel, list(zip(X, Y, strict=True)))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.error, error, rtol=1e-11)
    np.testing.assert_array_equal(found.count, count)
    np.testing.assert_allclose(found.normalised, normalised, rtol=1e-12)
    assert (found.n_pairs, found.n_silent) == (17, 1)
    np.testing.assert_array_equal(found.lags, np.arange(13)[::-1])
    weight = found.count / found.count.sum()
    level = weight @ found.normalised
    assert found.flatness == pytest.approx(np.sqrt(weight @ (found.normalised - level) ** 2) / level)
    assert found.pairs.shape == (17, 13)
    np.testing.assert_allclose(found.pairs[0, -len(X[0]) :], np.linalg.norm(input_gradient(kernel, X[0], Y[0]), axis=1))
    assert np.isnan(found.pairs[0, : -len(X[0])]).all()


def test_all_pairs_where_they_are_few_and_a_seeded_draw_where_they_are_many():
    X = np.random.default_rng(2).standard_normal((6, 5))
    kernel = RNTK("erf", **SETTINGS)
    everything = sensitivity(kernel, X)
    order = [(i, j) for i in range(6) for j in range(6) if i != j]
    for curve, (i, j) in zip(everything.pairs, order, strict=True):
        np.testing.assert_allclose(curve, np.abs(input_gradient(kernel, X[i], X[j])), rtol=1e-12)
    some, again, other = (sensitivity(kernel, X, pairs=11, seed=seed) for seed in (0, 0, 1))
    assert some.n_pairs == 11
    np.testing.assert_array_equal(some.pairs, again.pairs)
    assert not np.array_equal(some.pairs, other.pairs)
    # Different pairs, all of them among the thirty.
    rows = [tuple(curve) for curve in some.pairs]
    assert len(set(rows)) == 11
    assert set(rows) <= {tuple(curve) for curve in everything.pairs}
    # Rows of X and Y: all unless fewer are asked for.
    Y = np.random.default_rng(3).standard_normal((6, 5))
    assert sensitivity(kernel, X, Y).n_pairs == 6
    assert sensitivity(kernel, X, Y, pairs=4).n_pairs == 4


def test_curves_do_not_depend_on_threads():
    X = np.random.default_rng(4).standard_normal((60, 50))
    found = [sensitivity(RNTK(), X, pairs=1500, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    for other in found[1:]:
        for name in ("mean", "error", "normalised", "count"):
            np.testing.assert_array_equal(getattr(found[0], name), getattr(other, name))


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"bidirectional": True, "normalize": True}])
def test_shape_without_scale_is_shape_with_scale(options):
    batch = as_batch([[3.0, 1.0, 0.5, -1.0], [0.01, 2.0, 30.0, 1e90], [1.0, 1e-90, 2.0, 1.0], [0.0, 0.0, 1.0, 2.0]])
    left, right = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 0, 0])
    kernel = RNTK(sigma_w=2.5, **options)
    with_scale, without = (curves(kernel, batch, left, right, with_scale=each) for each in (True, False))
    np.testing.assert_allclose(without.normalised, with_scale.normalised, rtol=1e-13)
    long = as_batch(np.random.default_rng(0).standard_normal((2, 3000)))
    shape = curves(RNTK(sigma_w=10.0, **options), long, left[:1], right[:1], with_scale=False).normalised
    assert np.isfinite(shape).all()
    assert shape.max() == 1.0


def test_feedforward_kernel_has_a_curve_of_one_step():
    x, y = np.random.default_rng(0).standard_normal((2, 5, 4))
    kernel = NTK("erf", depth=2, sigma_b=0.1)
    curve = sensitivity(kernel, x, y)
    expected = np.mean([np.linalg.norm(input_gradient(kernel, a, b)) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(curve.mean, [expected], rtol=1e-12)


def test_memory_is_bounded_by_groups(monkeypatch):
    X = np.random.default_rng(5).standard_normal((30, 10))
    whole = sensitivity(RNTK("erf"), X)
    monkeypatch.setattr(passes, "GROUP_NUMBERS", 3_000)
    parts = sensitivity(RNTK("erf"), X)
    np.testing.assert_allclose(parts.pairs, whole.pairs, rtol=1e-13)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-13)
    np.testing.assert_allclose(parts.error, whole.error, rtol=1e-12)
    np.testing.assert_allclose(parts.normalised, whole.normalised, rtol=1e-13)


def test_edges_zero_curves_one_step_one_pair():
    silent = sensitivity(RNTK(), np.zeros((3, 4)))
    np.testing.assert_array_equal(silent.mean, np.zeros(4))
    np.testing.assert_array_equal(silent.normalised, np.zeros(4))
    assert silent.n_silent == 6
    assert np.isnan(silent.flatness)
    short = sensitivity(RNTK(), [[1.0], [2.0], [-1.0]])
    assert short.mean.shape == (1,)
    assert short.normalised[0] == 1.0
    assert short.flatness == 0.0
    single = sensitivity(RNTK(), [[1.0, 2.0]], [[2.0, 1.0]])
    assert np.isnan(single.error).all()
    assert json.loads(json.dumps(single.to_dict()))["error"] == [None, None]
    assert json.loads(json.dumps(silent.to_dict()))["flatness"] is None


def test_mistakes_are_named():
    X = np.ones((2, 3))
    with pytest.raises(ValueError, match='"sequence"'):
        sensitivity(RNTK(readout="sequence"), X)
    with pytest.raises(ValueError, match="two or more"):
        sensitivity(RNTK(), X[:1])
    with pytest.raises(ValueError, match="row i of X is paired"):
        sensitivity(RNTK(), X, np.ones((3, 3)))
    with pytest.raises(ValueError, match="channels"):
        sensitivity(RNTK(), np.ones((2, 3, 2)), np.ones((2, 3, 1)))
    with pytest.raises(ValueError, match="pairs must be a whole number of at least 1"):
        sensitivity(RNTK(), X, pairs=0)
    with pytest.raises(ValueError, match="RNTK, NTK or ProgramKernel"):
        sensitivity("relu", X)
    with pytest.raises(KernelOverflowError, match="normalize=True"):
        sensitivity(RNTK(sigma_w=10.0), np.ones((2, 2000)))
    large = [np.ones(3), np.ones(3), np.full(3, 1e160)]
    with pytest.raises(KernelOverflowError, match="sequence 2 ") as caught:
        sensitivity(RNTK("erf"), large)
    assert caught.value.sequence == 2
    with pytest.raises(KernelOverflowError, match="sequence 2 "):  # by its place among all, not among those in use
        curves(RNTK("erf"), as_batch(large), np.array([1]), np.array([2]))
    with pytest.raises(KernelOverflowError, match="sequence 2 of Y "):
        sensitivity(RNTK("erf"), np.ones((3, 3)), large)


def test_plot_and_record():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    found = sensitivity(RNTK(), rng.standard_normal((5, 8)))
    assert isinstance(found, Sensitivity)
    ax = found.plot()
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 9))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.normalised)
    assert found.plot(ax, normalised=False, label="mean") is ax
    uneven = sensitivity(RNTK(), ragged(rng, (3, 5, 4))).plot()
    assert uneven.lines[0].get_xdata()[0] == -4
    record = json.loads(json.dumps(found.to_dict()))
    assert record["kernel"] == "RNTK()"
    assert record["lags"][-1] == 0
    pyplot.close("all")


# -- suggestions -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(11).standard_normal((60, 60))


@pytest.fixture(scope="module")
def flattest(noise):
    return suggest(noise)


def test_relu_on_noise_is_flattest_where_the_paper_says(noise, flattest):
    kernel = flattest.kernel
    assert abs(kernel.sigma_w - 2**0.5) < 0.02
    assert (kernel.sigma_u, kernel.sigma_b, kernel.sigma_h) == (1.0, 0.0, 0.0)
    assert np.sqrt(flattest.objective) == pytest.approx(flattest.curve.flatness, rel=1e-9)
    for factor in (0.97, 1.03):
        neighbour = sensitivity(RNTK(sigma_w=factor * kernel.sigma_w), noise)
        assert neighbour.flatness > 1.3 * sensitivity(kernel, noise).flatness
    # And the neighbours lean where the paper says: below to the last steps, above to the first.
    below, above = (sensitivity(RNTK(sigma_w=sw), noise).normalised for sw in (1.3, 1.55))
    assert below[-20:].mean() > 5 * below[:20].mean()
    assert above[:20].mean() > 5 * above[-20:].mean()


@pytest.mark.parametrize(("emphasis", "sign"), [("late", 1), ("early", -1)])
def test_emphasis_leans_to_one_end(noise, flattest, emphasis, sign):
    found = suggest(noise, emphasis=emphasis)
    thirds = found.curve.normalised.reshape(3, -1).mean(axis=1)
    assert (sign * np.diff(thirds) > 0).all()
    assert sign * (found.kernel.sigma_w - flattest.kernel.sigma_w) < -0.01
    assert sign * np.diff(found.target).min() > 0 or sign * np.diff(found.target).max() > 0
    given = suggest(noise, emphasis=np.arange(1, 61)[::sign])
    assert given.kernel.get_params() == found.kernel.get_params()


def test_suggestion_is_repeatable_and_says_what_it_found(noise, flattest):
    again = suggest(noise, n_jobs=1)
    assert again.objective == flattest.objective
    assert again.kernel.get_params() == flattest.kernel.get_params()
    assert f"sigma_w = {flattest.kernel.sigma_w:.4g}" in flattest.explanation
    assert "sigma_b = 0" in flattest.explanation
    assert flattest.explanation.count(". ") <= 2
    flattest.kernel(noise[:3])  # ready to use


def test_suggestion_for_a_saturating_activation_and_ragged_data():
    rng = np.random.default_rng(12)
    X = [rng.standard_normal(steps) for steps in rng.integers(20, 30, size=20)]
    found = suggest(X, "erf", pairs=100)
    assert found.kernel.sigma_u not in GRID["sigma_u"]  # refined
    assert np.sqrt(found.objective) < 0.5 < sensitivity(RNTK("erf"), X).flatness
    assert found.curve.count[0] < found.curve.count[-1]


def test_given_deviations_stay_and_the_rest_is_searched(noise):
    found = suggest(noise[:10, :20], sigma_b=0.4, depth=2, pairs=30)
    assert found.kernel.sigma_b == 0.4
    assert found.kernel.depth == 2
    fixed = suggest(noise[:10, :20], sigma_w=1.0, sigma_b=0.1, sigma_h=0.0, pairs=30)
    assert (fixed.kernel.sigma_w, fixed.kernel.sigma_b, fixed.n_tried) == (1.0, 0.1, 1)
    one_step = suggest([[1.0], [2.0]])
    assert one_step.kernel.sigma_w == 2**0.5
    assert one_step.objective == 0.0


def test_suggestion_plots_curve_and_target(flattest):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = flattest.plot()
    curve, target = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(curve, flattest.curve.normalised)
    assert target.mean() == pytest.approx(curve.mean())
    pyplot.close("all")


def test_mistakes_of_suggest_are_named(noise):
    with pytest.raises(ValueError, match="emphasis"):
        suggest(noise, emphasis="middle")
    with pytest.raises(ValueError, match=r"\(60,\)"):
        suggest(noise, emphasis=np.ones(5))
    with pytest.raises(ValueError, match="non-negative"):
        suggest(noise, emphasis=-np.ones(60))
    with pytest.raises(ValueError, match="two or more"):
        suggest(noise[:1])
    with pytest.raises(ValueError, match="pairs must be a whole number of at least 1"):
        suggest(noise, pairs=0)
    with pytest.raises(ValueError, match="all zero"):
        suggest(np.zeros((4, 5)))
    with pytest.raises(ValueError, match='"sequence"'):
        suggest(noise, readout="sequence")


def test_join_keeps_both_batches_in_double_precision():
    both = join(as_batch(np.ones((2, 3), dtype=np.float32)), as_batch(np.zeros((1, 2))))
    assert both.dtype == np.float64
    np.testing.assert_array_equal(both.lengths, [3, 3, 2])


def test_suggest_passes_over_settings_that_an_expansion_cannot_resolve():
    X = 30 * np.random.default_rng(0).normal(size=(6, 10))
    found = suggest(X, "tanh")
    assert np.isfinite([getattr(found.kernel, name) for name in ("sigma_w", "sigma_u")]).all()


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_curves_and_suggestions_print_as_tables():
    X = np.random.default_rng(0).standard_normal((10, 20))
    found = suggest(X)
    assert "array" not in repr(found) and f"{found.kernel.sigma_w:g}" in repr(found)
    assert " ".join(repr(found).split()).endswith(found.explanation)
    curve = repr(found.curve)
    assert len(curve.splitlines()) == 7
    assert repr(found.kernel) in curve and f"{found.curve.flatness:.4g}" in curve


@pytest.mark.parametrize("method", [Sensitivity.plot, Suggestion.plot])
def test_pictures_name_the_extra_they_need(method, monkeypatch):
    assert "rntk[plot]" in method.__doc__
    X = np.random.default_rng(0).standard_normal((4, 5))
    found = suggest(X) if method is Suggestion.plot else sensitivity(RNTK(), X)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"rntk\[plot\]"):
        found.plot()
