"""The array engine: the same kernels in functions of the array API standard, wherever the arrays lie.

There is no graphics processor here. What a run on one would show is shown as far as it can be by array-api-strict: its
arrays know nothing but the standard, and those on its devices can't be read as NumPy arrays, so that a result proves
that nothing left the device.
"""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest

import rntk.gram
from helpers.long_pairs import CASES, exact, pairs
from helpers.settings import CLOSED, for_each, settings
from helpers.tolerances import TOLERANCE, entry_error, relative_error
from rntk import NTK, RNTK, RNTKRidge
from rntk.engine import choose_engine
from rntk.engine.array import blocks, read_arrays, to_host
from rntk.errors import KernelOverflowError, MissingExtraError, SequenceError
from rntk.sequences import as_batch

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


# -- libraries --------------------------------------------------------------------------------------------------


class Torch:
    """PyTorch on the CPU."""

    def __init__(self, dtype="float64"):
        self.torch, self.dtype = pytest.importorskip("torch", reason="PyTorch is not installed"), dtype

    def make(self, x):
        return self.torch.as_tensor(np.array(x, dtype=self.dtype))

    def read(self, x):
        assert isinstance(x, self.torch.Tensor)
        assert x.device.type == "cpu"
        assert str(x.dtype) == f"torch.{self.dtype}"
        return x.numpy()


class Jax:
    """JAX on the CPU, as it is by default: in float32."""

    dtype = "float32"

    def __init__(self):
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")

    def make(self, x):
        return self.jax.numpy.asarray(np.array(x, dtype=self.dtype))

    def read(self, x):
        assert isinstance(x, self.jax.Array)
        assert x.dtype == self.dtype
        return np.asarray(x)


class Strict:
    """array-api-strict on one of its devices."""

    def __init__(self, device="device1", dtype="float64"):
        self.xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        self.device, self.dtype = self.xp.Device(device), dtype

    def make(self, x):
        return self.xp.asarray(np.array(x, dtype=self.dtype), device=self.device)

    def read(self, x):
        assert type(x).__module__.startswith("array_api_strict")
        assert x.device == self.device
        assert x.dtype == getattr(self.xp, self.dtype)
        return np.asarray(x.to_device(self.xp.Device("CPU_DEVICE")))


LIBRARIES = {
    "torch": Torch,
    "torch float32": lambda: Torch("float32"),
    "jax": Jax,
    "strict": Strict,
    "strict without float64": lambda: Strict("no_float64", "float32"),
}

#: Every readout, both parameterisations, shared and fresh weights, one and both directions.
OPTIONS = {
    "last": {"sigma_b": 0.3, "sigma_h": 0.4},
    "mean": {"readout": "mean", "sigma_b": 0.2, "depth": 2, "parameterization": "standard", "tied": False},
    "sequence": {"readout": "sequence", "bidirectional": True, "normalize": True},
}


def data(seed: int = 0) -> dict[str, list[np.ndarray] | np.ndarray]:
    rng = np.random.default_rng(seed)
    ragged = [rng.standard_normal((length, 2)) for length in (3, 7, 1, 7)]
    return {"equal": rng.standard_normal((4, 5, 2)), "ragged": ragged}


def make(library, X):
    return [library.make(x) for x in X] if isinstance(X, list) else library.make(X)


# JAX compiles some seventy small programs for every shape it meets: one test of it is enough most of the time.
SLOW = {("jax", "mean"), ("jax", "sequence")}


@pytest.mark.parametrize(
    "name, option",
    [
        pytest.param(name, option, marks=[pytest.mark.slow] if (name, option) in SLOW else [])
        for name in LIBRARIES
        for option in OPTIONS
    ],
)
def test_results_stay_with_their_library_and_device(name, option):
    library = LIBRARIES[name]()
    tolerance = TOLERANCE[np.dtype(library.dtype)]
    kernel = RNTK(**OPTIONS[option], dtype=library.dtype, engine="array")
    expected = RNTK(**OPTIONS[option], engine="fused")
    for X in data().values() if name != "jax" else [data()["ragged"]]:
        X = [x.astype(library.dtype) for x in X] if isinstance(X, list) else X.astype(library.dtype)
        arrays = make(library, X)
        for got, wanted in zip(kernel.both(arrays), expected.both(X), strict=True):
            assert relative_error(library.read(got), wanted) <= tolerance
        if (name, option) != ("jax", "last"):
            assert relative_error(library.read(kernel.diag(arrays)), expected.diag(X)) <= tolerance
            assert relative_error(library.read(kernel(arrays, arrays)), expected(X, X)) <= tolerance


@pytest.mark.parametrize("activation", ["erf", "sin", "gelu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_activations_compute_in_double_and_round(activation, dtype):
    library, X = Strict(dtype=dtype), data()["equal"]
    kernel = RNTK(activation, sigma_b=0.1, dtype=dtype)
    got = library.read(kernel(library.make(X)))
    expected = RNTK(activation, sigma_b=0.1)(X.astype(dtype))
    assert relative_error(got, expected) <= {"float64": 1e-13, "float32": 1e-7}[dtype]


@pytest.mark.slow
def test_jax_in_double_precision():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    X = data()["equal"]
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        got = RNTK(sigma_b=0.1, engine="array")(jax.numpy.asarray(X))
        assert got.dtype == np.float64
    assert relative_error(np.asarray(got), RNTK(sigma_b=0.1)(X)) <= TOLERANCE[FLOAT64]


def test_vectors_for_the_perceptron_kernel():
    library, X = Strict(), data()["equal"][:, :, 0]
    kernel = NTK("erf", sigma_b=0.2, depth=3)
    for arrays in (library.make(X), [library.make(x) for x in X]):
        assert relative_error(library.read(kernel(arrays)), kernel(X)) <= TOLERANCE[FLOAT64]
    with pytest.raises(SequenceError, match="array of vectors for NTK"):
        kernel(library.make(data()["equal"]))


def test_arrays_are_not_written_to():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    X = torch.as_tensor(data()["equal"])
    before = X.clone()
    RNTK(depth=2, sigma_b=0.1, bidirectional=True, engine="array").both(X)
    assert torch.equal(X, before)


# -- which engine -----------------------------------------------------------------------------------------------


def test_what_lies_on_a_device_is_computed_there():
    library, X = Strict(), data()["equal"]
    arrays = library.make(X)
    with pytest.raises(RuntimeError, match="Can't convert"):
        np.asarray(arrays)
    engine, reason = choose_engine("auto", None, arrays)
    assert engine.name == "array"
    assert "device1" in reason
    assert choose_engine("auto", None, X, [arrays[0, ...]])[0].name == "array"
    assert relative_error(library.read(RNTK()(arrays)), RNTK()(X)) <= TOLERANCE[FLOAT64]


def test_the_cpu_keeps_the_fused_engine():
    on_cpu = [data()["equal"], data()["ragged"], as_batch(data()["ragged"]), [[1.0, 2.0]]]
    on_cpu += [Strict("CPU_DEVICE").make(data()["equal"])]
    for library in [Torch, Jax]:
        try:
            on_cpu += [library().make(data()["equal"]), [library().make([1.0, 2.0])]]
        except pytest.skip.Exception:
            continue
    for X in on_cpu:
        assert choose_engine("auto", None, X)[0].name == "fused"
        assert type(RNTK()(X)) is np.ndarray


def test_places_by_the_names_of_several_libraries():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    # The one other device of PyTorch that exists everywhere; it has shapes and no values.
    assert choose_engine("auto", None, torch.ones(2, 3, device="meta"))[0].name == "array"
    engine, reason = choose_engine("fused", None, torch.ones(2, 3, device="meta"))
    assert (engine.name, reason) == ("fused", "asked for by name")
    with pytest.raises(ValueError, match="auto, fused, reference, array"):
        choose_engine("gpu")


def test_numpy_and_estimators():
    X = data()["ragged"]
    y = np.arange(len(X))
    assert type(RNTK(engine="array")(X)) is np.ndarray
    predictions = [RNTKRidge(kernel=RNTK(engine=engine)).fit(X, y).predict(X) for engine in ("array", "fused")]
    assert relative_error(*predictions) <= 1e-9


def test_nothing_is_imported_for_data_on_the_cpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    monkeypatch.setitem(sys.modules, "sklearn.externals.array_api_compat", None)
    RNTK()(data()["ragged"])
    with pytest.raises(MissingExtraError, match=r"rntk\[gpu\]"):
        RNTK(engine="array")(data()["ragged"])


# -- digits -----------------------------------------------------------------------------------------------------


@for_each(settings(30, CLOSED, seed=8, largest=6))
def test_agrees_with_the_reference_engine(setting):
    X, Y = setting.data()
    array, reference = (RNTK(**setting.parameters, engine=name) for name in ("array", "reference"))
    for other in (None, Y):
        for got, expected in zip(array.both(X, other), reference.both(X, other), strict=True):
            assert relative_error(got, expected) <= TOLERANCE[FLOAT64]
            assert entry_error(got, expected) <= 1e-11
    assert relative_error(array.diag(X), reference.diag(X)) <= TOLERANCE[FLOAT64]


@for_each(settings(12, CLOSED[:4], seed=9, largest=6))
def test_single_precision_agrees_with_the_reference_engine(setting):
    X, Y = ([x.astype(np.float32) for x in side] for side in setting.data())
    array = RNTK(**setting.parameters, dtype="float32", engine="array")
    reference = RNTK(**setting.parameters, engine="reference")
    for got, expected in zip(array.both(X, Y), reference.both(X, Y), strict=True):
        assert got.dtype == np.float32
        assert relative_error(got, expected) <= TOLERANCE[FLOAT32]


#: Against 120 digits. Without float64 on the device the variances round in float32 as well.
BOUNDS = {"float64": 2e-13, "float32": 1e-5, "float32 alone": 5e-5}


@pytest.mark.parametrize(
    "activation, sigmas, precision",
    [(*CASES[0], "float64"), (*CASES[0], "float32"), (*CASES[0], "float32 alone"), (*CASES[2], "float64")],
    ids=["relu float64", "relu float32", "relu float32 alone", "erf float64"],
)
def test_near_duplicates_keep_their_digits(activation, sigmas, precision):
    """Almost equal, opposite and unrelated sequences: the hard cases of theory.md, section 7."""
    dtype = precision.partition(" ")[0]
    names = ["1e-09 apart", "0.001 apart", "opposite", "random"]
    x, others = pairs(dtype)["random"][0][:200], [pairs(dtype)[name][1][:200] for name in names]
    others[-1] = others[-1][:140]
    sigma_w, sigma_u, sigma_b = sigmas
    kernel = RNTK(activation, sigma_w=sigma_w, sigma_u=sigma_u, sigma_b=sigma_b, dtype=dtype)
    batches = read_arrays(kernel.read_batch, ("X", [x]), ("Y", others))
    library = replace(batches[0].library, double=precision != "float32 alone")
    batches = [replace(batch, library=library) for batch in batches]
    engine = blocks.ArrayEngine()
    nngp, ntk, _ = engine.pairs(*(engine.prepare(kernel.plan("nngp", "ntk"), batch) for batch in batches))
    got = ntk, nngp
    wanted = np.array([exact(activation, x, y, sigmas) for y in others]).T
    errors = [np.abs(K[0] / expected - 1).max() for K, expected in zip(got, wanted, strict=True)]
    print(f"relative error of NTK and NNGP: {errors[0]:.1e} {errors[1]:.1e}")
    assert max(errors) <= BOUNDS[precision]


# -- scales -----------------------------------------------------------------------------------------------------

SCALES = {
    "growing": ({"sigma_w": 1e6}, 1.0),
    "fading": ({"sigma_w": 1e-6, "depth": 2}, 1.0),
    "huge inputs": ({"sigma_b": 0.1}, 1e150),
    "tiny inputs": ({"sigma_w": 0.5}, 1e-150),
    "no inputs": ({"sigma_u": 0.0, "sigma_b": 0.2, "sigma_h": 0.3}, 1e300),
    "a trained weight without variance": ({"sigma_w": 0.0, "parameterization": "standard", "sigma_h": 0.3}, 1.0),
}


@pytest.mark.parametrize("readout", ["last", "mean", "sequence"])
@pytest.mark.parametrize("name", SCALES)
def test_scales_are_kept_apart(name, readout):
    """A normalised kernel is finite however long the sequence, and however long the padding of a short one."""
    parameters, scale = SCALES[name]
    rng = np.random.default_rng(5)
    X = [scale * rng.standard_normal(length) for length in (70, 2, 30)]  # a million to the 70th has no float64
    X[0][5:20] = 0.0
    array, fused = (
        RNTK(**parameters, readout=readout, bidirectional=readout != "sequence", normalize=True, engine=name)
        for name in ("array", "fused")
    )
    got, expected = array(X), fused(X)
    # Steps of one channel point in opposite directions, where half of all digits go whatever the engine (section 7).
    assert relative_error(got, expected) <= (1e-11 if readout != "sequence" else 1e-7)
    np.testing.assert_array_equal(np.diag(got), np.diag(expected))
    np.testing.assert_array_equal(array.diag(X), fused.diag(X))


@pytest.mark.parametrize("activation", ["erf", "sin", "gelu"])
def test_equal_sequences_stay_equal_in_a_chaotic_network(activation):
    x = np.random.default_rng(6).standard_normal(80)
    array, fused = (RNTK(activation, sigma_w=3.0, engine=name) for name in ("array", "fused"))
    assert relative_error(array.nngp([x, x]), fused.nngp([x, x])) <= TOLERANCE[FLOAT64]


def test_nothing_builds_up_in_the_padding():
    """Large inputs keep a network calm that would be chaotic without them, as it is where a short sequence is over."""
    X = [100 * np.sign(np.random.default_rng(7).standard_normal(450)), np.array([1e-3, 1e-3])]
    array, fused = (RNTK("erf", sigma_w=10.0, readout="mean", engine=name) for name in ("array", "fused"))
    assert relative_error(array(X), fused(X)) <= 1e-10  # opposite inputs: see above


@pytest.mark.parametrize("library", ["numpy", "strict"])
def test_overflow_names_the_sequence(library):
    X = [np.ones(3), np.ones(30), np.ones(5)]
    if library == "strict":
        X = [Strict().make(x) for x in X]
    with pytest.raises(KernelOverflowError, match=r"sequence 1 \(length 30\) overflows float64"):
        RNTK(sigma_w=1e6, engine="array")(X)
    with pytest.raises(KernelOverflowError, match=r"sequence 1 \(length 30\) overflows float64"):
        RNTK(sigma_w=1e6, engine="array").diag(X)
    with pytest.raises(KernelOverflowError, match=r"sequence 2 of Y overflows .* erf is not homogeneous"):
        RNTK("erf", engine="array")(X, [*X[:2], 1e200 * X[2]])


# -- blocks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", OPTIONS)
def test_blocks_change_nothing(option, monkeypatch):
    rng = np.random.default_rng(2)
    X = [rng.standard_normal((length, 2)) for length in (4, 9, 1, 6, 9, 2, 5)]
    Y = [rng.standard_normal((length, 2)) for length in (12, 3, 8)]
    kernel, engine = RNTK(**OPTIONS[option]), blocks.ArrayEngine()
    plan = kernel.plan("nngp", "ntk")
    for other in (None, Y):
        batches = read_arrays(kernel.read_batch, ("X", X), *([] if other is None else [("Y", other)]))
        results, diagonals = [], []
        for memory, panels in ((1, 7), (1 << 24, 1)):
            monkeypatch.setattr(blocks, "CACHE_BYTES", memory)
            sides = [engine.prepare(plan, batch) for batch in batches]
            assert len(sides[0].panels) == panels
            results.append(engine.pairs(*sides))
            diagonals.append(engine.diagonal(plan, batches[0]))
        for a, b in zip(results[0][:2], results[1][:2], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)
            if other is None:
                np.testing.assert_array_equal(a, a.T)
        np.testing.assert_allclose(*diagonals, rtol=1e-14)


def test_memory_does_not_grow_with_the_length():
    """A thousand sequences of thirty steps: 8 MB of kernel, 240 MB of pairs of steps."""
    X = np.random.default_rng(3).standard_normal((1000, 30))
    kernel = RNTK(engine="array")
    kernel(X[:2])
    tracemalloc.start()
    K = kernel(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 2.5 * K.nbytes + 1.5 * 2**24 + 8 * X.nbytes


# -- refusals ---------------------------------------------------------------------------------------------------


def refusals() -> dict[str, tuple]:
    """What is wrong: (kernel parameters, X, Y, type of error, words of the message), built when it is needed."""
    equal = data()["equal"]

    def torch():
        return pytest.importorskip("torch", reason="PyTorch is not installed")

    def strict(x=equal, device="device1"):
        return Strict(device).make(x)

    return {
        "two libraries": lambda: (
            {},
            strict(),
            equal,
            SequenceError,
            "X is of array_api_strict .*, Y is of numpy on cpu",
        ),
        "two devices": lambda: ({}, strict(), strict(device="device2"), SequenceError, "one library on one device"),
        "two devices in a list": lambda: (
            {},
            [strict(equal[0]), strict(equal[1], "device2")],
            None,
            SequenceError,
            "sequence 1 of X is of array_api_strict on .*device2",
        ),
        "a list with a NumPy array": lambda: (
            {},
            [strict(equal[0]), equal[1]],
            None,
            SequenceError,
            "sequence 1 is a ndarray",
        ),
        "integers": lambda: ({}, torch().ones(3, 4, dtype=torch().int64), None, SequenceError, "X holds torch.int64"),
        "gradients": lambda: (
            {},
            [torch().ones(3), torch().ones(4, requires_grad=True)],
            None,
            SequenceError,
            r"sequence 1 records gradients.*\n.*\n.*X.detach\(\)",
        ),
        "not finite": lambda: (
            {},
            [strict([1.0, 2.0]), strict([1.0, np.nan, np.inf])],
            None,
            SequenceError,
            "sequence 1 holds NaN or an infinite value at step 1, the first of 2 such steps",
        ),
        "one sequence": lambda: ({}, strict(equal[0, :, 0]), None, SequenceError, "X is one sequence of 5 numbers"),
        "an empty sequence": lambda: ({}, [strict([1.0]), strict([])], None, SequenceError, "sequence 1 is empty"),
        "channels": lambda: ({}, strict(), strict(equal[:, :, :1]), ValueError, "X has 2 channels and Y has 1"),
        "no closed form": lambda: ({"activation": "tanh"}, strict(), None, ValueError, 'tanh has no.*engine="fused"'),
        "no float64": lambda: (
            {},
            Strict("no_float64", "float32").make(equal),
            None,
            ValueError,
            'has no float64: take dtype="float32"',
        ),
        "float64 needed": lambda: (
            {"activation": "erf", "dtype": "float32"},
            Strict("no_float64", "float32").make(equal),
            None,
            ValueError,
            "erf is computed in float64",
        ),
        "JAX without float64": lambda: ({}, Jax().make(equal), None, ValueError, "jax_enable_x64"),
    }


@pytest.mark.parametrize("problem", refusals())
def test_refusals_teach(problem):
    parameters, X, Y, error, words = refusals()[problem]()
    with warnings.catch_warnings(), pytest.raises(error, match=words):
        RNTK(**parameters, engine="array")(X, Y)


def test_gradients_by_hyperparameters_are_refused():
    kernel = RNTK(engine="array")
    for call in (kernel, kernel.nngp):
        with pytest.raises(ValueError, match=r'no derivatives by hyperparameters.*engine="fused"'):
            call(data()["equal"], eval_gradient=True)


# -- beyond memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ragged", [False, True])
def test_tiles_of_a_device_go_to_disk(tmp_path, ragged):
    """Computed on the device, kept on the host: bit for bit what the kernel says there of every pair of blocks."""
    rng = np.random.default_rng(5)
    X = [rng.standard_normal((4 + (i % 3 if ragged else 0), 2)) for i in range(11)]
    library, kernel = Strict(), RNTK(sigma_b=0.2, sigma_h=0.4, normalize=True)
    X = X if ragged else np.array(X)
    arrays = make(library, X)
    for out in (None, tmp_path / "K.zarr"):
        K = rntk.gram.compute(kernel, arrays, out=out, block=4)
        assert relative_error(K.to_array(), kernel(X)) < 1e-12
        np.testing.assert_array_equal(K.tile(0, 2), library.read(kernel(make(library, X[:4]), make(library, X[8:]))))
        np.testing.assert_array_equal(K.tile(1, 1), library.read(kernel(make(library, X[4:8]))))
    assert rntk.gram.compute(kernel, arrays, out=tmp_path / "K.zarr").found == 6
    K = rntk.gram.stream(kernel.of_kind("nngp"), arrays, make(library, X[:3]))
    assert (K.shape, K.symmetric) == ((11, 3), False)
    assert relative_error(K @ np.ones(3), kernel.nngp(X, X[:3]) @ np.ones(3)) < 1e-12
    with pytest.raises(rntk.gram.GramStoreError, match="X is"):
        rntk.gram.compute(kernel, make(library, X[1:]), out=tmp_path / "K.zarr")
    with pytest.raises(TypeError, match="for kernels of networks"):
        rntk.gram.compute(lambda A, B: A @ B.T, arrays)
    with pytest.raises(SequenceError, match="one library on one device"):
        rntk.gram.compute(kernel, arrays, X)


def test_workers_get_no_device_arrays():
    pytest.importorskip("dask", reason='clusters need dask: pip install "rntk[distributed]"')
    with pytest.raises(TypeError, match="bring them to the CPU"):
        rntk.gram.as_dask(RNTK(), Strict().make(np.ones((3, 4))))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_results_of_every_library_come_to_the_host(name):
    library = LIBRARIES[name]()
    found = to_host(library.make([[1.0, 2.0]]))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, [[1.0, 2.0]])
