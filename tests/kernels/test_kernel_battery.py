"""What must hold for every kernel, whatever the network: the shared battery, and the special cases of the theory.

Closed forms by hand and identities between kernels; nothing here relies on another implementation. Equation
numbers are those of docs/theory.md.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from helpers.tolerances import TOLERANCE, relative_error
from rntk import NTK, RNTK, KernelOverflowError
from rntk.activations import as_activation
from rntk.engine import Plan
from rntk.engine.fused import FusedEngine, tiles
from rntk.network import Readout
from rntk.runtime import Execution
from rntk.sequences import as_batch

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
LENGTHS = (5, 1, 7, 3, 5, 2, 7, 4)


def ragged(seed: int, lengths=LENGTHS, channels: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, channels)) for length in lengths]


def vectors(seed: int, n: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 3))


KERNELS = {
    "relu": RNTK(),
    "relu, everything on": RNTK(sigma_b=0.3, sigma_h=0.5, sigma_v=0.8, depth=2),
    "relu, mean": RNTK(sigma_b=0.1, sigma_h=0.7, readout="mean"),
    "relu, sequence": RNTK(sigma_b=0.1, sigma_h=0.7, readout="sequence"),
    "relu, bidirectional": RNTK(sigma_b=0.2, sigma_h=0.4, bidirectional=True),
    "relu, bidirectional sequence": RNTK(sigma_h=0.4, bidirectional=True, readout="sequence", depth=2),
    "relu, untied mean": RNTK(sigma_b=0.2, sigma_h=0.3, tied=False, readout="mean"),
    "relu, standard, per layer": RNTK(
        sigma_w=[1.2, 0.9, 1.4],
        sigma_u=[0.8, 1.1, 1.0],
        sigma_b=[0.2, 0.0, 0.4],
        sigma_h=[0.0, 0.5, 0.3],
        depth=3,
        parameterization="standard",
    ),
    "leaky relu": RNTK("leaky_relu(0.2)", sigma_w=1.2, sigma_b=0.1),
    "erf": RNTK("erf", sigma_w=1.2, sigma_b=0.1, sigma_h=0.3, depth=2),
    "sin, sequence": RNTK("sin", sigma_w=1.1, sigma_b=0.1, sigma_h=0.2, readout="sequence"),
    # Small variances: an expansion warns where it can no longer reach the precision asked for.
    "tanh": RNTK("tanh", sigma_w=1.1, sigma_u=0.5, sigma_b=0.1, sigma_h=0.4),
    "gelu, mean, untied": RNTK("gelu", sigma_b=0.3, readout="mean", tied=False),
    "relu, normalized": RNTK(sigma_b=0.1, sigma_h=0.4, normalize=True),
    "erf, normalized mean": RNTK("erf", sigma_b=0.2, readout="mean", normalize=True, bidirectional=True),
    "NTK": NTK(sigma_b=0.1, depth=3),
    "NTK, erf": NTK("erf", sigma_w=1.3, sigma_b=0.2, depth=2),
}
for_every_kernel = pytest.mark.parametrize("name", KERNELS)


def data(kernel, seed: int = 1):
    return vectors(seed) if isinstance(kernel, NTK) else ragged(seed)


def row_order(kernel, X, order) -> np.ndarray:
    """Where the rows of kernel(X) go when the sequences are put in `order`."""
    if getattr(kernel, "readout", "last") != "sequence":
        return np.asarray(order)
    starts = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    return np.concatenate([np.arange(starts[i], starts[i + 1]) for i in order])


def same_sequence(kernel, X) -> np.ndarray:
    """Which entries of kernel(X) belong to a sequence and itself."""
    if getattr(kernel, "readout", "last") != "sequence":
        return np.eye(len(X), dtype=bool)
    owner = np.repeat(np.arange(len(X)), [len(x) for x in X])
    return owner[:, None] == owner


# The battery ------------------------------------------------------------------------------------------------


@for_every_kernel
def test_symmetric_to_the_last_bit(name):
    kernel = KERNELS[name]
    for K in kernel.both(data(kernel)):
        assert_array_equal(K, K.T)


@for_every_kernel
def test_positive_semi_definite(name):
    kernel = KERNELS[name]
    for K in kernel.both(data(kernel)):
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[-1] > 0
        assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


def mixed_sequences() -> list[np.ndarray]:
    """200 sequences of 1 to 60 steps: random ones, exact and near duplicates, zeros, tails of others."""
    rng = np.random.default_rng(7)
    X = [rng.standard_normal((length, 1)) for length in rng.integers(1, 61, size=120)]
    X += [X[i].copy() for i in range(30)]
    X += [X[i] + 1e-9 * rng.standard_normal(X[i].shape) for i in range(20)]
    X += [X[i][-(1 + len(X[i]) // 2) :] for i in range(20)]
    X += [np.zeros((length, 1)) for length in (1, 1, 7, 60, 60)]
    X += [np.vstack([np.zeros((3, 1)), X[i]]) for i in range(5)]
    return X


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_positive_semi_definite_for_many_mixed_sequences(readout):
    X = mixed_sequences()
    assert len(X) == 200
    for K in RNTK(readout=readout).both(X):
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


@for_every_kernel
def test_diag_is_the_diagonal(name):
    kernel = KERNELS[name]
    X = data(kernel)
    assert relative_error(kernel.diag(X), np.diag(kernel(X))) <= 1e-13


@for_every_kernel
def test_cross_equals_auto_where_the_initial_state_plays_no_part(name):
    kernel = KERNELS[name]
    X = data(kernel)
    apart = ~same_sequence(kernel, X)
    for auto, cross in zip(kernel.both(X), kernel.both(X, X), strict=True):
        assert np.abs(auto - cross)[apart].max() <= 1e-14 * np.abs(auto).max()


@for_every_kernel
def test_initial_state_is_shared_on_the_diagonal_only(name):
    """WhiteKernel's rule: sigma_h adds to kernel(X) where a sequence meets itself, never to kernel(X, Y)."""
    kernel = KERNELS[name]
    X = data(kernel)
    own = same_sequence(kernel, X)
    auto, cross = kernel(X), kernel(X, X)
    if np.any(getattr(kernel, "sigma_h", 0.0)):
        difference = np.abs(auto - cross)
        assert difference[own].max() > 1e-3 * np.abs(auto).max()
    else:
        assert relative_error(cross, auto) <= 1e-13  # on the diagonal too


def test_equal_rows_draw_their_own_initial_states():
    x = ragged(2, (4,))[0]
    K = RNTK(sigma_h=0.7)([x, x])
    assert K[0, 0] == K[1, 1] > 1.01 * K[0, 1]
    assert RNTK(sigma_h=0.7)([x], [x])[0, 0] == K[0, 1]


@for_every_kernel
def test_permuting_sequences_permutes_the_matrix(name):
    kernel = KERNELS[name]
    X = data(kernel)
    order = np.random.default_rng(3).permutation(len(X))
    rows = row_order(kernel, X, order)
    shuffled = [X[i] for i in order]
    for K, permuted in zip(kernel.both(X), kernel.both(shuffled), strict=True):
        assert relative_error(permuted, K[np.ix_(rows, rows)]) <= 1e-14
    Y = data(kernel, seed=4)[:5]
    assert relative_error(kernel(shuffled, Y), kernel(X, Y)[rows]) <= 1e-14
    assert relative_error(kernel(Y, shuffled), kernel(Y, X)[:, rows]) <= 1e-14


@for_every_kernel
def test_swapping_the_arguments_transposes(name):
    kernel = KERNELS[name]
    X, Y = data(kernel), data(kernel, seed=5)[:5]
    for K, swapped in zip(kernel.both(X, Y), kernel.both(Y, X), strict=True):
        assert relative_error(swapped, K.T) <= 1e-14


@for_every_kernel
def test_both_is_the_two_kernels(name):
    kernel = KERNELS[name]
    X, Y = data(kernel), data(kernel, seed=6)[:3]
    for other in (None, Y):
        pair = kernel.both(X, other)
        assert_array_equal(pair.ntk, kernel(X, other))
        assert_array_equal(pair.nngp, kernel.nngp(X, other))


@for_every_kernel
def test_float32_agrees_and_stays_float32(name):
    kernel = KERNELS[name]
    X, Y = ([x.astype(np.float32) for x in data(kernel, seed)] for seed in (1, 8))
    if isinstance(kernel, NTK):
        X, Y = np.array(X), np.array(Y)
    single = kernel.__class__(**{**kernel.get_params(), "dtype": "float32"})
    pairs = [(single(X), kernel(X)), (single(X, Y), kernel(X, Y)), (single.nngp(X), kernel.nngp(X))]
    pairs.append((single.diag(X), kernel.diag(X)))
    for got, expected in pairs:
        assert got.dtype == np.float32
        assert relative_error(got, expected) <= TOLERANCE[FLOAT32]


def test_outputs_are_float64_by_default_even_for_float32_data():
    X = [x.astype(np.float32) for x in ragged(9)]
    kernel = RNTK(sigma_b=0.1)
    K, gradient = kernel(X, eval_gradient=True)
    assert K.dtype == gradient.dtype == kernel.diag(X).dtype == kernel.nngp(X).dtype == np.float64
    single, rates = RNTK(sigma_b=0.1, dtype=np.float32)(X, eval_gradient=True)
    assert single.dtype == rates.dtype == np.float32
    assert relative_error(rates, gradient) <= TOLERANCE[FLOAT32]


# The same bits on any threads and tiles ---------------------------------------------------------------------


SPLITS = {
    "last": (RNTK(sigma_b=0.1, sigma_h=0.3), 90),
    "last, erf, depth 2": (RNTK("erf", sigma_b=0.1, depth=2), 60),
    "last, tanh": (RNTK("tanh", sigma_w=1.1, sigma_u=0.3, sigma_b=0.1), 40),
    "mean": (RNTK(sigma_b=0.1, sigma_h=0.3, readout="mean"), 40),
    "mean, bidirectional": (RNTK("erf", sigma_b=0.1, readout="mean", bidirectional=True), 24),
    "sequence": (RNTK(sigma_b=0.1, sigma_h=0.3, readout="sequence"), 24),
    "last, normalized": (RNTK(sigma_b=0.1, normalize=True), 40),
}


def long_and_short(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(10)
    return [rng.standard_normal((length, 2)) for length in rng.integers(1, 50, size=n)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SPLITS)
def test_threads_do_not_change_a_bit(name, dtype):
    kernel, n = SPLITS[name]
    X = long_and_short(n)
    results = []
    for n_jobs in (1, 2, 3):
        given = kernel.__class__(**{**kernel.get_params(), "dtype": dtype, "n_jobs": n_jobs})
        results.append((given(X), *given.both(X[: n // 2], X[n // 2 :]), *given(X[:12], eval_gradient=True)))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT32], ids=str)
@pytest.mark.parametrize("name", SPLITS)
def test_tiles_do_not_change_a_bit(name, dtype, monkeypatch):
    kernel, n = SPLITS[name]
    engine = FusedEngine()
    X = as_batch(long_and_short(n))
    left, right = as_batch(long_and_short(n)[: n // 2]), as_batch(long_and_short(n)[n // 2 :])
    directions = kernel.plan_gradient().directions
    for batch, other, along in ((X, None, ()), (left, right, ()), (left, None, directions)):
        results = []
        counts = []
        for tile_steps in (1.0, 300.0, 1e4, 4e6):
            monkeypatch.setattr(tiles, "TILE_STEPS", tile_steps)
            plan = Plan(kernel.network(), dtype, ("nngp", "ntk"), along, Execution(n_jobs=2))
            sides = [None if each is None else engine.prepare(plan, each) for each in (batch, other)]
            ways = [None if side is None else side.ways[0] for side in sides]
            counts.append(len(tiles.Tiles(plan, *ways).plan_tiles()))
            results.append(engine.pairs(*sides))
        assert counts[0] > counts[-1]  # otherwise nothing was compared
        for grams in results[1:]:
            for part in ("nngp", "ntk", "gradient"):
                assert_array_equal(getattr(grams, part), getattr(results[0], part))


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
def test_an_entry_does_not_depend_on_its_neighbours(readout):
    """A pair alone gives the same number, up to rounding, as the pair among others."""
    kernel = RNTK(sigma_b=0.1, sigma_h=0.3, readout=readout)
    X = ragged(11)
    K = kernel(X)
    for i, j in ((0, 2), (1, 1), (6, 3)):
        alone = kernel([X[i]]) if i == j else kernel([X[i]], [X[j]])
        rows, columns = row_order(kernel, X, [i]), row_order(kernel, X, [j])
        assert relative_error(alone, K[np.ix_(rows, columns)]) <= 1e-14


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_rows_compared_together_are_as_alone(activation, readout):
    """With many channels a few rows at a time: the same bits wherever a row stands among them."""
    kernel = RNTK(activation, sigma_b=0.2, readout=readout)
    X = np.random.default_rng(0).standard_normal((11, 10, 9))
    K = kernel(X, X)
    for i in range(len(X)):
        assert_array_equal(kernel(X[i : i + 1], X)[0], K[i])


# Special cases of the theory --------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "erf", "leaky_relu(0.2)", "sin", "tanh"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_length_one_is_the_feed_forward_kernel(activation, depth):
    """(18): at length one the recurrent weights see nothing, and sigma_u plays the weights' part."""
    X, Y = vectors(12), vectors(13, 5)
    # tanh stays below the variances at which its expansion warns.
    weights = 0.7 if activation == "tanh" else 1.2
    recurrent = RNTK(activation, sigma_w=1.7, sigma_u=weights, sigma_b=0.3, sigma_v=0.6, depth=depth)
    feed_forward = NTK(activation, sigma_w=weights, sigma_b=0.3, sigma_v=0.6, depth=depth)
    for other in (None, Y):
        steps = None if other is None else other[:, None]
        for a, b in zip(recurrent.both(X[:, None], steps), feed_forward.both(X, other), strict=True):
            assert relative_error(a, b) <= TOLERANCE[FLOAT64]


def test_feed_forward_relu_by_hand():
    """Orthogonal inputs, one hidden layer: Σ = σ_b², Θ = σ_v²(V + V' Σ), with q = σ_w²/2 + σ_b²."""
    K = NTK(sigma_w=1.0, sigma_b=1.0, sigma_v=2.0).both([[1.0, 0.0], [0.0, 1.0]])
    c = 2 / 3
    angle = np.arccos(c)
    value = 1.5 / (2 * np.pi) * (np.sqrt(1 - c * c) + c * (np.pi - angle))
    slope = (np.pi - angle) / (2 * np.pi)
    assert K.nngp[0, 1] == pytest.approx(4 * value, rel=1e-14)
    assert K.ntk[0, 1] == pytest.approx(4 * (value + slope), rel=1e-14)
    assert K.ntk[0, 0] == pytest.approx(4 * (0.75 + 0.75), rel=1e-14)


def linear_table(x, y, rho, scale: float) -> np.ndarray:
    """Σ_j ρ_j <x_{t-j}, y_{s-j}> scale for all t, s: (19) written out."""
    products = x @ y.T * scale
    table = np.zeros(products.shape)
    for t, s in np.ndindex(table.shape):
        table[t, s] = sum(rho(j) * products[t - j, s - j] for j in range(min(t, s) + 1))
    return table


@pytest.mark.parametrize("parameterization", ["ntk", "standard"])
def test_identity_is_a_weighted_sum_over_lags(parameterization):
    """(19) for every pair of steps."""
    sw, su, sv, m = 0.9, 1.3, 0.7, 3
    X = ragged(15, (5, 3, 1, 6), channels=m)
    w, f, c = sw**2, su**2 / m, sv**2

    def rho(j):
        if parameterization == "ntk":
            return (j + 2) * sv**2 * su**2 * sw ** (2 * j)
        return c * (j * f * w ** (j - 1) + w**j) + f * w**j

    scale = 1 / m if parameterization == "ntk" else 1.0
    kernel = RNTK(
        "identity",
        sigma_w=sw,
        sigma_u=su,
        sigma_v=sv,
        readout="sequence",
        parameterization=parameterization,
    )
    expected = np.block([[linear_table(x, y, rho, scale) for y in X] for x in X])
    assert relative_error(kernel(X), expected) <= TOLERANCE[FLOAT64]
    nngp = np.block([[linear_table(x, y, lambda j: sv**2 * su**2 * w**j, 1 / m) for y in X] for x in X])
    assert relative_error(kernel.nngp(X), nngp) <= TOLERANCE[FLOAT64]


@pytest.mark.parametrize("settings", [{}, {"tied": False}, {"bidirectional": True}, {"depth": 2}], ids=str)
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_mean_is_the_mean_of_the_table(activation, settings):
    """(14)."""
    X, Y = ragged(16), ragged(17)[:4]
    common = {"activation": activation, "sigma_b": 0.2, "sigma_h": 0.5, **settings}
    mean, table = RNTK(readout="mean", **common), RNTK(readout="sequence", **common)

    def blocks(K, left, right):
        rows, columns = (np.cumsum([0] + [len(x) for x in side]) for side in (left, right))
        return np.array([[K[a:b, c:d].mean() for c, d in pairwise(columns)] for a, b in pairwise(rows)])

    for got, tables in zip(mean.both(X), table.both(X), strict=True):
        assert relative_error(got, blocks(tables, X, X)) <= TOLERANCE[FLOAT64]
    assert relative_error(mean(X, Y), blocks(table(X, Y), X, Y)) <= TOLERANCE[FLOAT64]


def test_sequence_table_ends_in_the_last_readout():
    X = ragged(18)
    ends = np.cumsum([len(x) for x in X]) - 1
    for a, b in zip(RNTK(sigma_h=0.3).both(X), RNTK(sigma_h=0.3, readout="sequence").both(X), strict=True):
        assert relative_error(b[np.ix_(ends, ends)], a) <= 1e-14


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
def test_bidirectional_is_the_sum_of_both_readings(readout):
    """(15): the backward network's table is flipped to the order of the input."""
    X, Y = ragged(19), ragged(20)[:5]
    settings = {"sigma_b": 0.2, "sigma_h": 0.4, "readout": readout}
    one, both = RNTK(**settings), RNTK(**settings, bidirectional=True)

    def backward(K, left, right):
        if readout != "sequence":
            return K
        flips = []
        for side in (left, right):
            ends = np.cumsum([0] + [len(x) for x in side])
            flips.append(np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(ends)]))
        return K[np.ix_(*flips)]

    for other in (None, Y):
        right = X if other is None else other
        flipped = [x[::-1] for x in X], None if other is None else [y[::-1] for y in other]
        parts = zip(one.both(X, other), one.both(*flipped), both.both(X, other), strict=True)
        for forwards, backwards, total in parts:
            assert relative_error(total, forwards + backward(backwards, X, right)) <= 1e-14
    forwards, backwards = one.diag(X), one.diag([x[::-1] for x in X])
    if readout == "sequence":
        ends = np.cumsum([0] + [len(x) for x in X])
        backwards = np.concatenate([backwards[a:b][::-1] for a, b in pairwise(ends)])
    assert relative_error(both.diag(X), forwards + backwards) <= 1e-14


@pytest.mark.parametrize("activation", ["relu", "erf", "gelu"])
@pytest.mark.parametrize("parameterization", ["ntk", "standard"])
def test_untied_weights_share_only_the_readout_across_lengths(activation, parameterization):
    """(16): equal lengths as if tied; unequal lengths G_v V(q, q', 0), all that one readout leaves."""
    X = ragged(21, (4, 4, 2, 6, 2))
    settings = {
        "activation": activation,
        "sigma_b": 0.3,
        "sigma_v": 0.7,
        "depth": 2,
        "parameterization": parameterization,
    }
    tied, untied = RNTK(**settings).both(X), RNTK(**settings, tied=False).both(X)
    lengths = np.array([len(x) for x in X])
    equal = lengths[:, None] == lengths
    phi = as_activation(activation)
    # ψ² = 𝒦(x, x)/σ_v², which determines q: by bisection on the monotone ψ²(q).
    squares = np.diag(tied.nngp) / 0.7**2
    low, high = np.zeros(len(X)), np.full(len(X), 100.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = phi.square(middle) > squares
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    q = (low + high) / 2
    value = np.array([[float(phi.dual(a, b, np.array([0.0]))[0][0]) for b in q] for a in q])
    factors = {"nngp": 0.7**2, "ntk": 0.7**2 if parameterization == "ntk" else 1.0}
    for name, factor in factors.items():
        got, other = getattr(untied, name), getattr(tied, name)
        assert relative_error(got[equal], other[equal]) <= TOLERANCE[FLOAT64]
        largest = np.abs(got).max()
        assert np.abs(got - factor * value)[~equal].max() <= 1e-11 * largest
        assert np.abs(got - other)[~equal].max() > 1e-3 * largest


# Zero variance, huge variance -------------------------------------------------------------------------------


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
@pytest.mark.parametrize("activation", ["relu", "erf", "sin", "identity", "abs", "tanh", "gelu"])
def test_steps_without_variance_count_for_nothing(activation, readout):
    """Without a bias, leading zeros leave no trace in a last-step kernel, and nothing is ever NaN."""
    x, y = ragged(22, (4, 3))
    X = [x, np.vstack([np.zeros((2, 2)), x]), np.zeros((3, 2)), np.zeros((1, 2)), y]
    kernel = RNTK(activation, sigma_w=1.2, readout=readout, depth=2)
    for K in (*kernel.both(X), *kernel.both(X, X), kernel.diag(X)):
        assert np.isfinite(K).all()
    K, gradient = kernel(X, eval_gradient=True)
    assert np.isfinite(gradient).all()
    if readout != "sequence":
        assert_array_equal(K[2:4], 0.0)
        assert_array_equal(gradient[2:4], 0.0)
    if readout == "last":
        assert K[0, 1] == pytest.approx(K[0, 0], rel=1e-14)
        assert K[1, 4] == pytest.approx(K[0, 4], rel=1e-14)


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
def test_sigmoid_passes_its_constant_through_steps_without_variance(readout):
    """φ(0) = 1/2 survives zero variance: at length one 𝒦 = σ_v² φ(0)² and Θ = 𝒦."""
    X = [np.zeros((1, 2)), np.zeros((2, 2)), *ragged(23, (3,))]
    kernel = RNTK("sigmoid", readout=readout)
    for K in (*kernel.both(X), *kernel.both(X, X)):
        assert np.isfinite(K).all()
    nngp, ntk = kernel.both(X)
    assert nngp[0, 0] == pytest.approx(0.25, rel=1e-13)
    assert ntk[0, 0] == pytest.approx(0.25, rel=1e-13)


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
def test_normalized_kernel_of_zero_sequences_is_zero(readout):
    X = [np.zeros((3, 1)), *ragged(24, (4, 2), channels=1)]
    kernel = RNTK(normalize=True, readout=readout)
    K = kernel(X)
    zeros = 3 if readout == "sequence" else 1
    assert_array_equal(K[:zeros], 0.0)
    assert_array_equal(np.diag(K)[zeros:], 1.0)
    assert_array_equal(kernel.diag(X), np.diag(K))
    assert np.isfinite(kernel(X, X)).all()


@pytest.mark.parametrize("kernel", [RNTK, NTK])
def test_normalized_kernel_is_the_quotient(kernel):
    X = ragged(25) if kernel is RNTK else vectors(25)
    Y = ragged(26)[:4] if kernel is RNTK else vectors(26, 4)
    plain, normal = kernel(sigma_b=0.2), kernel(sigma_b=0.2, normalize=True)
    root, other = np.sqrt(plain.diag(X)), np.sqrt(plain.diag(Y))
    assert relative_error(normal(X), plain(X) / np.outer(root, root)) <= 1e-13
    assert relative_error(normal(X, Y), plain(X, Y) / np.outer(root, other)) <= 1e-13
    assert_array_equal(np.diag(normal(X)), 1.0)
    assert_array_equal(np.diag(normal.nngp(X)), 1.0)


def long_pair(T: int) -> list[np.ndarray]:
    rng = np.random.default_rng(27)
    x = rng.standard_normal((T, 1))
    return [x, x + 1e-3 * rng.standard_normal((T, 1)), rng.standard_normal((T - 7, 1))]


@pytest.mark.parametrize("T", [20_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["T=20000", "T=100000"])
@pytest.mark.parametrize("activation, dtype", [("relu", "float64"), ("relu", "float32"), ("erf", "float64")])
def test_normalized_kernel_of_exploding_networks_is_finite(activation, dtype, T):
    """With sigma_w = 2 the kernel itself is beyond the largest float: ψ² ~ 2^T for ReLU."""
    X = long_pair(T)
    kernel = RNTK(activation, sigma_w=2.0, normalize=True, dtype=dtype)
    K = kernel(X)
    assert_array_equal(np.diag(K), 1.0)
    assert np.isfinite(K).all()
    assert np.abs(K).max() <= 1 + 1e-6
    assert_array_equal(kernel.diag(X), 1.0)
    assert np.isfinite(kernel(X[:2], X)).all()


@pytest.mark.parametrize("readout", ["mean", "sequence"])
def test_normalized_tables_of_exploding_networks_are_finite(readout):
    X = [x[:1500] for x in long_pair(1600)]
    if readout == "sequence":
        X = [np.concatenate([x, x])[:2200:1] for x in X[:1]]
    K = RNTK(sigma_w=2.0, normalize=True, readout=readout)(X)
    assert np.isfinite(K).all()
    assert_array_equal(np.diag(K), 1.0)
    assert np.abs(K).max() <= 1 + 1e-9


@pytest.mark.parametrize("activation, T", [("relu", 3000), ("erf", 4000)])
def test_overflow_names_the_sequence_and_a_way_out(activation, T):
    X = [*ragged(28, (3, 5), channels=1), np.random.default_rng(29).standard_normal((T, 1))]
    kernel = RNTK(activation, sigma_w=2.0)
    for compute in (lambda: kernel(X), lambda: kernel.diag(X), lambda: kernel(X, X)):
        with pytest.raises(
            KernelOverflowError, match=rf"sequence 2(?: of [XY])? \(length {T}\).*normalize=True"
        ) as caught:
            compute()
        assert caught.value.sequence == 2
    with pytest.raises(KernelOverflowError, match="sequence 2"):
        RNTK(activation, sigma_w=2.0, readout="mean")(X)


def test_overflow_in_float32_suggests_float64():
    X = [np.ones((2, 1)), np.full((2, 1), 1e25)]
    with pytest.raises(KernelOverflowError, match="float64"):
        RNTK(dtype="float32")(X)
    assert np.isfinite(RNTK()(X)).all()


# Mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"readout": "first"}, "readout"),
        ({"readout": None}, "readout"),
        ({"parameterization": "mup"}, "parameterization"),
        ({"depth": 0}, "depth"),
        ({"depth": 1.5}, "depth"),
        ({"depth": True}, "depth"),
        ({"sigma_w": -1.0}, "sigma_w"),
        ({"sigma_u": float("nan")}, "sigma_u"),
        ({"sigma_b": float("inf")}, "sigma_b"),
        ({"sigma_h": "much"}, "sigma_h"),
        ({"sigma_v": -0.5}, "sigma_v"),
        ({"sigma_v": [1.0, 2.0]}, "sigma_v"),
        ({"sigma_w": [1.0, 2.0], "depth": 3}, "sigma_w"),
        ({"sigma_b": [[0.1]]}, "sigma_b"),
        ({"activation": "rleu"}, "activation"),
        ({"activation": 3}, "activation"),
        ({"engine": "gpu"}, "engine"),
        ({"dtype": "float16"}, "dtype"),
        ({"dtype": "complex"}, "dtype"),
        ({"dtype": "no such type"}, "dtype"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"n_jobs": True}, "n_jobs"),
        *(({name: "no"}, f"{name} must be True or False") for name in ("normalize", "tied", "bidirectional")),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("method", ["__call__", "nngp", "diag", "gradient"])
def test_each_wrong_parameter_is_named(settings, message, method):
    kernel = RNTK(**settings)  # constructors only store
    X = ragged(30, (3, 2))
    with pytest.raises(ValueError, match=message):
        if method == "gradient":
            kernel(X, eval_gradient=True)
        else:
            getattr(kernel, method)(X)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"depth": 0}, "depth"),
        ({"sigma_w": -1.0}, "sigma_w"),
        ({"sigma_b": [0.1] * 3}, "sigma_b"),
        ({"normalize": "no"}, "normalize"),
    ],
)
def test_each_wrong_parameter_of_the_feed_forward_kernel_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        NTK(**settings)(vectors(31))


def test_channels_must_agree():
    with pytest.raises(ValueError, match=r"X has 2 channels and Y has 3"):
        RNTK()(ragged(32, (3, 2)), ragged(33, (3, 2), channels=3))
    with pytest.raises(ValueError, match=r"(?s)3.*4|4.*3"):
        NTK()(np.ones((2, 3)), np.ones((2, 4)))


def test_gradient_needs_one_set_of_sequences():
    X = ragged(34, (3, 2))
    with pytest.raises(ValueError, match="without Y"):
        RNTK()(X, X, eval_gradient=True)


def test_feed_forward_kernel_reads_vectors_only():
    with pytest.raises(ValueError, match="RNTK"):
        NTK()([np.ones(3), np.ones(2)])
    with pytest.raises(ValueError, match="RNTK"):
        NTK()(np.ones((2, 3, 4)))


class Early(Readout):
    """The first steps count, or whatever `found` says."""

    name = "early"

    def __init__(self, found):
        self.found = found

    def weights(self, lengths):
        return self.found


@pytest.mark.parametrize("engine", ["fused", "reference"])
def test_weights_of_a_readout_are_checked(engine):
    for found in (np.ones(4), np.ones((5, 1)), [1.0, 1.0, np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match=r"Early.weights must give .* finite numbers"):
            RNTK(readout=Early(found), engine=engine)(ragged(35, (3, 2)))
    nameless = type("Nameless", (Readout,), {})()
    with pytest.raises(ValueError, match="give the readout Nameless a name"):
        RNTK(readout=nameless, engine=engine)(ragged(35, (3, 2)))


def test_readouts_are_told_apart_by_what_they_hold():
    assert Early(1) == Early(1) != Early(2)
    assert hash(Early(1)) == hash(Early(1))
    assert RNTK(readout=Early(1)) != RNTK(readout=Early(2))
