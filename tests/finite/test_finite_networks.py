"""Finite networks (`rntk.finite`): their gradients, their empirical kernels, and the limit they approach.

Oracles: Jacobians by automatic differentiation, contracted by hand; the NumPy network of `oracles.finite_network` with
the same weights; the exact kernels, which networks approach like width^(-1/2).
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from helpers.tolerances import relative_error
from oracles import finite_network
from rntk import NTK, RNTK
from rntk.activations import NAMED, HermiteActivation, as_activation
from rntk.errors import SequenceError

jax = pytest.importorskip("jax", reason='rntk.finite needs JAX: pip install "rntk[finite]"')
finite = pytest.importorskip("rntk.finite")

from rntk.finite.activations import jax_function  # noqa: E402
from rntk.finite.inputs import read  # noqa: E402

#: Every option of a network, few at a time.
OPTIONS = {
    "relu": {},
    "erf, depth 2, biases, states": {
        "activation": "erf",
        "depth": 2,
        "sigma_w": [1.2, 0.7],
        "sigma_u": [0.8, 1.3],
        "sigma_b": [0.5, 0.1],
        "sigma_h": [0.3, 0.0],
    },
    "tanh, depth 3, mean": {"activation": "tanh", "depth": 3, "readout": "mean", "sigma_b": 0.2, "sigma_h": 0.4},
    "sequence, both ways": {"readout": "sequence", "bidirectional": True, "sigma_h": 0.5, "sigma_b": 0.3},
    "untied, both ways, mean": {"tied": False, "bidirectional": True, "readout": "mean", "sigma_b": 0.3},
    "untied, depth 2, sequence": {"tied": False, "depth": 2, "readout": "sequence", "sigma_b": 0.3, "sigma_h": 0.6},
    "standard, depth 2": {"parameterization": "standard", "depth": 2, "sigma_u": 0.7, "sigma_v": 1.3, "sigma_b": 0.4},
    "standard, untied, no recurrence": {"parameterization": "standard", "tied": False, "sigma_w": 0.0, "sigma_h": 0.5},
    "no input weights": {"sigma_u": 0.0, "sigma_b": 1.0, "sigma_h": 1.0, "depth": 2, "activation": "sin"},
}


def sequences(lengths, channels=2, seed=0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, channels)) for length in lengths]


def jacobians(net, parameters, *data) -> list[np.ndarray]:
    """(rows, d, P) for each of the data: every derivative by every raw weight. Initial states as X and Y draw them."""
    dtype = np.dtype(np.float64)
    with finite.precision(dtype):
        derivative = jax.jit(jax.jacrev(net.apply))
        found = []
        for side, X in enumerate(data):
            batch = net.read(X, "X")
            inputs = read(batch, net.network, net.width, net.directions, dtype, state_seed=0, side=side)
            leaves = jax.tree_util.tree_leaves(derivative(parameters, inputs))
            found.append(np.concatenate([np.asarray(leaf).reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=2))
    return found


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_empirical_ntk_is_the_product_of_jacobians(options):
    net = finite.network(RNTK(**options), width=6, outputs=2)
    X, Y = sequences((3, 1, 4)), sequences((4, 2, 2), seed=1)  # of one shape once padded: compiled once
    parameters = net.init(3, X, dtype="float64")
    left, right = jacobians(net, parameters, X, Y)
    cross = np.einsum("ikp,jlp->ijkl", left, right)
    assert relative_error(finite.empirical_ntk(net, parameters, X, Y), cross) < 1e-12
    auto = finite.empirical_ntk(net, parameters, X)
    assert relative_error(auto, np.einsum("ikp,jlp->ijkl", left, left)) < 1e-12
    np.testing.assert_array_equal(auto, auto.transpose(1, 0, 3, 2))


@pytest.mark.parametrize(("tied", "memory"), [(True, 1), (True, 2000), (False, 1)])
def test_blocks_and_tiles_may_cut_anywhere(tied, memory):
    """Small budgets cut data into sequences, these into outputs, and products into tiles across all of them."""
    net = finite.network(RNTK(sigma_b=0.3, readout="sequence", tied=tied), width=5)
    X = sequences((7, 3))
    parameters = net.init(0, X, dtype="float64")
    (J,) = jacobians(net, parameters, X)
    expected = J[:, 0] @ J[:, 0].T
    assert relative_error(finite.empirical_ntk(net, parameters, X, memory=memory), expected) < 1e-12
    assert relative_error(finite.empirical_ntk(net, parameters, X, X, memory=memory), expected) < 1e-12


def test_perceptrons_too():
    net = finite.network(NTK("gelu", depth=3, sigma_b=0.2), width=6, outputs=2)
    X = np.random.default_rng(0).standard_normal((4, 3))
    parameters = net.init(1, X, dtype="float64")
    assert parameters["forward"]["W"] == (None,) * 3
    (J,) = jacobians(net, parameters, X)
    expected = np.einsum("ikp,jlp->ijkl", J, J)
    assert relative_error(finite.empirical_ntk(net, parameters, X), expected) < 1e-12


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_outputs_are_those_of_the_numpy_network(options):
    kernel = RNTK(**options)
    net = finite.network(kernel, width=7, outputs=2)
    X = sequences((3, 1, 4))
    parameters = net.init(5, X, dtype="float64")
    batch = net.read(X, "X")
    dtype = np.dtype(np.float64)
    with finite.precision(dtype):
        readings = read(batch, net.network, net.width, net.directions, dtype, state_seed=8)
    got = np.asarray(net(parameters, X, state_seed=8))
    for component in range(2):
        expected = [
            sum(
                oracle_outputs(kernel, parameters, reading, batch[i], i, component, backwards=bool(way))
                for way, reading in enumerate(readings)
            )
            for i in range(len(batch))
        ]
        assert relative_error(got[:, component], np.concatenate(expected)) < 1e-12


def oracle_outputs(kernel, parameters, reading, x, i, component, *, backwards) -> np.ndarray:
    """f of one sequence in one direction: scales drawn up by the oracle, weights and states put in from outside."""
    own = parameters["backward" if backwards else "forward"]
    names = ("activation", "sigma_w", "sigma_u", "sigma_b", "sigma_h", "sigma_v", "depth", "tied", "readout")
    oracle = finite_network.Architecture(**{name: getattr(kernel, name) for name in names})
    width, steps = own["V"].shape[1], len(x)
    rng = np.random.default_rng(0)
    drawn = finite_network.draw_parameters(oracle, x.shape[1], steps, width, rng, kernel.parameterization)
    for index, layer in enumerate(drawn.layers):
        for group, name in (("w", "W"), ("u", "U"), ("b", "b")):
            if own[name][index] is not None:
                weights = np.asarray(own[name][index])
                setattr(layer, group, [weights] * steps if kernel.tied else list(weights[:steps]))
    drawn.v = np.asarray(own["V"])[component]
    initial = [np.zeros(width) if states is None else np.asarray(states)[i] for states in reading.states]
    trace = finite_network.forward(drawn, oracle.activation, x[::-1] if backwards else x, initial)
    f = finite_network.outputs(drawn, trace, oracle.readout)
    return f[::-1] if backwards else f


@pytest.mark.parametrize(
    "name", [*NAMED, "leaky_relu(0.2)", "sinusoid(1.5, 0.5)", "snake(0.5)", "tilted_sin(0.5)", "rectified_power(2)"]
)
def test_activations_have_a_twin(name):
    activation = as_activation(name)
    z = np.linspace(-4, 4, 50)  # no kink among them
    with finite.precision("float64"):
        twin = jax_function(activation)
        value, slope = jax.vmap(jax.value_and_grad(twin))(jax.numpy.asarray(z))
    assert relative_error(value, activation(z)) < 1e-14
    assert relative_error(slope, activation.derivative(z)) < 1e-14


@pytest.mark.parametrize(
    "options",
    [
        {"readout": "last", "depth": 2, "bidirectional": True},
        {"readout": "mean", "tied": False},
        {"readout": "sequence", "activation": "erf", "bidirectional": True},
    ],
    ids=["last", "mean", "sequence"],
)
def test_a_ragged_batch_is_its_sequences_one_by_one(options):
    X = sequences((1, 6))
    net = finite.network(RNTK(sigma_b=0.3, **options), width=20)
    parameters = net.init(0, X, dtype="float64")
    together = np.asarray(net(parameters, X))
    alone = np.concatenate([np.asarray(net(parameters, [x])) for x in X])
    assert relative_error(together, alone) < 1e-13
    both = finite.empirical_kernels(net, parameters, X)
    offsets = net.read(X, "X").offsets if options["readout"] == "sequence" else np.arange(len(X) + 1)
    block = np.s_[offsets[0] : offsets[1], offsets[1] : offsets[2]]
    pair = finite.empirical_kernels(net, parameters, [X[0]], [X[1]])
    assert relative_error(both.ntk[block], pair.ntk) < 1e-12
    assert relative_error(both.nngp[block], pair.nngp) < 1e-12


def test_nothing_leaks_from_the_padding():
    """A short sequence that ran on through the padding would overflow; neither value nor gradient may notice."""
    net = finite.network(RNTK("gelu", sigma_w=4.0), width=8)
    X = [np.full(2, 0.5), np.zeros(400)]
    parameters = net.init(0, X)
    gradient, alone = (jax.jit(jax.grad(lambda p, X=X: net(p, X)[0, 0]))(parameters) for X in (X, X[:1]))
    for leaf, expected in zip(*map(jax.tree_util.tree_leaves, (gradient, alone)), strict=True):
        assert relative_error(leaf, expected) < 1e-5


# -- the limit -----------------------------------------------------------------------------------------------------

CONVERGING = {
    "relu": RNTK(sigma_w=1.0, sigma_b=0.3),
    "relu, untied": RNTK(sigma_w=1.0, sigma_b=0.3, tied=False),
    "erf, depth 2": RNTK("erf", sigma_w=1.1, sigma_b=0.3, depth=2),
    "tanh, depth 3, mean": RNTK("tanh", sigma_w=0.9, sigma_b=0.3, depth=3, readout="mean"),
    "perceptron": NTK("erf", depth=2, sigma_b=0.2),
}


@pytest.mark.parametrize("kernel", CONVERGING.values(), ids=CONVERGING)
def test_errors_fall_like_the_root_of_the_width(kernel):
    """The default data have unequal lengths. With an error anywhere in the kernel or the network, the slope is zero."""
    comparison = finite.compare(kernel, widths=(32, 512), seeds=40)
    for slope in (comparison.ntk_slope, comparison.nngp_slope):
        assert slope.error < 0.05
        assert abs(slope.value + 0.5) < 0.1


def extrapolated(kernel, X, Y=None, widths=(64, 192), seeds=150):
    """Mean over networks with its O(1/n) part removed by averages at two widths, and its standard error."""
    narrow, wide = (finite.average(finite.network(kernel, width), X, Y, seeds=seeds) for width in widths)
    a, b = widths[0] / (widths[1] - widths[0]), widths[1] / (widths[1] - widths[0])
    return b * wide.mean - a * narrow.mean, np.hypot(b * wide.error, a * narrow.error)


def test_untied_is_tied_for_equal_lengths_only():
    options = {"sigma_w": 1.1, "sigma_b": 0.4}
    rng = np.random.default_rng(1)
    common = rng.standard_normal(4)
    X = [common + 0.3 * rng.standard_normal(4), common, common[1:]]  # the first two are of equal length
    tied, untied = RNTK(**options)(X), RNTK(**options, tied=False)(X)
    for kernel, exact, other in ((RNTK(**options), tied, untied), (RNTK(**options, tied=False), untied, tied)):
        mean, error = extrapolated(kernel, X)
        assert (error < 0.05 * exact.max()).all()
        assert (np.abs(mean - exact) < 4.5 * error).all()
        assert np.abs(mean - other)[0, 1] < 4.5 * error[0, 1]
        assert np.abs(mean - other)[0, 2] > 8 * error[0, 2]


def test_a_sequence_shares_its_initial_state_with_itself_only():
    kernel = RNTK(sigma_h=1.0, sigma_w=1.2)
    X = sequences((3, 3), channels=1)
    for Y in (None, X):
        mean, error = extrapolated(kernel, X, Y)
        assert (np.abs(mean - kernel(X, Y)) < 4.5 * error).all()
        # And the test can tell the two apart.
        other = kernel(X, X) if Y is None else kernel(X)
        assert (np.abs(np.diag(mean - other)) > 8 * np.diag(error)).all()


def test_averages_are_those_of_the_networks():
    net = finite.network(RNTK(sigma_h=0.5), width=12)
    X, Y = sequences((3, 2)), sequences((4,), seed=1)
    samples = [finite.empirical_ntk(net, net.init(s, Y), X, Y, state_seed=s).astype(np.float64) for s in (4, 7, 9)]
    average = finite.average(net, X, Y, seeds=[4, 7, 9])
    assert relative_error(average.mean, np.mean(samples, axis=0)) < 1e-6
    assert relative_error(average.error, np.std(samples, axis=0, ddof=1) / np.sqrt(3)) < 1e-5
    assert average.networks == 3
    nngp = [finite.empirical_nngp(net, net.init(s, Y), X, Y, state_seed=s) for s in range(2)]
    assert relative_error(finite.average(net, X, Y, kind="nngp", seeds=2).mean, np.mean(nngp, axis=0)) < 1e-6
    assert np.isnan(finite.average(net, X, seeds=1).error).all()


def test_comparison_record_picture_and_slope():
    kernel = RNTK("erf")
    X = sequences((3, 2))
    comparison = finite.compare(kernel, widths=[8, 32], seeds=[1, 2, 5], X=X)
    net = finite.network(kernel, 8)
    K = finite.empirical_ntk(net, net.init(5, X), X)
    error = np.linalg.norm(K - kernel(X)) / np.linalg.norm(kernel(X))
    assert comparison.ntk[0, 2] == pytest.approx(error, rel=1e-5)
    record = json.loads(json.dumps(comparison.to_dict()))
    assert record["ntk"]["errors"] == comparison.ntk.tolist()
    # Two widths: the slope is that between the mean logarithms.
    logs = np.log(comparison.nngp).mean(axis=1)
    assert comparison.nngp_slope.value == pytest.approx((logs[1] - logs[0]) / np.log(4))
    assert "slope" in repr(comparison)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = comparison.plot(figure.subplots())
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert len(ax.get_legend().get_texts()) == 3


def test_slope_error_is_that_of_textbook_regression():
    from scipy.stats import linregress

    from rntk.finite.comparison import fit_slope

    widths = (10, 40, 300)
    errors = np.exp(np.random.default_rng(0).standard_normal((3, 8)))
    expected = linregress(np.repeat(np.log(widths), 8), np.log(errors).ravel())
    assert fit_slope(widths, errors) == pytest.approx((expected.slope, expected.stderr))
    assert np.isnan(fit_slope((10,), errors[:1]).value)


# -- use -----------------------------------------------------------------------------------------------------------


def test_precision_is_the_parameters_and_leaves_jax_alone():
    X = sequences((3, 4))
    net = finite.network(RNTK(sigma_b=0.1), width=30)
    single, double = net.init(0, X), net.init(0, X, dtype="float64")
    for a, b in zip(*map(jax.tree_util.tree_leaves, (single, double)), strict=True):
        np.testing.assert_array_equal(a, np.asarray(b).astype(np.float32))
    for parameters, dtype in ((single, np.float32), (double, np.float64)):
        assert net(parameters, X).dtype == dtype
        assert finite.empirical_ntk(net, parameters, X).dtype == dtype
        assert finite.empirical_nngp(net, parameters, X).dtype == dtype
        assert jax.numpy.zeros(1).dtype == np.float32
    gap = relative_error(finite.empirical_ntk(net, single, X), finite.empirical_ntk(net, double, X))
    assert 0 < gap < 1e-5


def test_networks_trace_and_compile_once_per_architecture():
    X = sequences((3, 4))
    net, twin = finite.network(RNTK(), width=5), finite.network(RNTK(), width=5)
    assert net == twin
    assert hash(net) == hash(twin)
    parameters = net.init(0, X)
    compiled = jax.jit(net.apply)(parameters, net.inputs(parameters, X))
    closed = jax.jit(lambda p: net(p, X))(parameters)
    assert relative_error(compiled, net(parameters, X)) < 1e-6
    assert relative_error(closed, net(parameters, X)) < 1e-6


def test_seeds_and_widths_draw_different_numbers():
    X = sequences((9,), channels=8)
    first = finite.network(RNTK(sigma_h=1.0), width=8)
    W = [first.init(seed, X)["forward"]["W"][0] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(W[0], W[1])
    assert not np.isin(np.asarray(W[0]), np.asarray(W[2])).any()
    wider = finite.network(RNTK(), width=9).init(0, X)["forward"]["W"][0]
    assert not np.isin(np.asarray(W[0]), np.asarray(wider)).any()
    # Weights and initial states of the same seed have nothing in common either.
    states = first.inputs(first.init(0, X), X, state_seed=0)[0].states[0]
    assert not np.isin(np.asarray(states), np.asarray(W[0])).any()


@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.2)", "erf", "gelu"])
def test_networks_travel_between_processes(name):
    X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    net = finite.network(RNTK(activation=name), width=8)
    twin = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(twin(twin.init(0, X), X), net(net.init(0, X), X))


def test_your_own_activation():
    X = sequences((3,))
    both = finite.network(RNTK(lambda z: z / (1 + abs(z))), width=4)  # works on either kind of array
    assert np.isfinite(np.asarray(both(both.init(0, X), X))).all()
    kernel = RNTK(HermiteActivation("softplus", lambda z: np.logaddexp(0, z)))
    with pytest.raises(ValueError, match=r"softplus.*jax\.numpy.*activation=.*named activation"):
        finite.network(kernel, width=4)
    net = finite.network(kernel, width=4, activation=jax.nn.softplus)
    assert np.isfinite(np.asarray(net(net.init(0, X), X))).all()
    with pytest.raises(ValueError, match="not the activation softplus of the kernel: they differ by"):
        finite.network(kernel, width=4, activation=jax.nn.relu)
    with pytest.raises(ValueError, match="elementwise"):
        finite.network(kernel, width=4, activation=jax.numpy.sum)


def test_mistakes_are_explained():
    X = sequences((3, 5))
    with pytest.raises(ValueError, match="normalize=False"):
        finite.network(RNTK(normalize=True), width=4)
    with pytest.raises(TypeError, match="pass the parts"):
        finite.network(RNTK() + RNTK(), width=4)
    for width in (0, 2.5, True):
        with pytest.raises(ValueError, match="width must be a whole number of at least 1"):
            finite.network(RNTK(), width=width)
    net = finite.network(RNTK(), width=4)
    parameters = net.init(0, X)
    with pytest.raises(ValueError, match="Y has 3 channels, the parameters are for 2"):
        finite.empirical_ntk(net, parameters, X, sequences((2,), channels=3))
    with pytest.raises(ValueError, match="only untied networks"):
        net.init(0, X, steps=9)
    with pytest.raises(ValueError, match="dtype must be"):
        net.init(0, X, dtype="float16")
    with pytest.raises(SequenceError):
        net(parameters, [np.zeros((0, 2))])
    untied = finite.network(RNTK(tied=False), width=4)
    with pytest.raises(ValueError, match=r"sequence of 5 steps.*weights for 3"):
        untied(untied.init(0, X[:1]), X)
    assert untied(untied.init(0, X[:1], steps=5), X).shape == (2, 1)
    with pytest.raises(ValueError, match="X has 5 steps"):
        untied.init(0, X, steps=4)
    random = finite.network(RNTK(sigma_h=1.0), width=4)
    with pytest.raises(ValueError, match="pass state_seed"):
        random(random.init(0, X), X)
    with pytest.raises(ValueError, match="at least one network"):
        finite.average(net, X, seeds=0)
    with pytest.raises(ValueError, match="nothing to be relative to"):
        finite.compare(RNTK(), widths=(4,), seeds=1, X=np.zeros((2, 3)))


# -- from outside --------------------------------------------------------------------------------------------------


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env={**os.environ}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_jax_everything_else_works():
    out = run_python("""
        import sys

        class Block:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("jax", "jaxlib"):
                    raise ImportError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Block())
        import rntk
        print(rntk.RNTK()([[1.0, 2.0]]).shape)
        try:
            import rntk.finite
        except ImportError as error:
            print(error.name, error)
    """)
    assert out.splitlines()[0] == "(1, 1)"
    assert out.splitlines()[1].startswith("jax jax can't be imported")
    assert out.rstrip().endswith('pip install "rntk[finite]"')


def test_jax_loads_only_when_touched():
    out = run_python("""
        import sys
        import rntk
        rntk.RNTK()([[1.0, 2.0]])
        print("jax" in sys.modules)
        import rntk.finite
        print("jax" in sys.modules)
    """)
    assert out.split() == ["False", "True"]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak of a process from /proc")
def test_wide_networks_fit_in_memory():
    """Width 2000, 50 sequences: a Jacobian alone would take 800 MB, the process without any network 350."""
    out = run_python("""
        import numpy as np
        from rntk import RNTK, finite

        rng = np.random.default_rng(0)
        X = [rng.standard_normal(length) for length in rng.integers(10, 31, size=50)]
        net = finite.network(RNTK(sigma_b=0.1), width=2000)
        K = finite.empirical_ntk(net, net.init(0, X), X)
        assert K.shape == (50, 50) and np.isfinite(K).all()
        # Not the peak of getrusage, which a process inherits from the one that started it.
        print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    """)
    assert int(out) < 800_000
