"""Kernels as plain values: they come back equal, different ones never look alike, and nothing else is built."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from rntk import NTK, RNTK
from rntk.activations import HermiteActivation, leaky_relu, tanh
from rntk.kernels.description import KERNELS, PlainForm, describe, register
from rntk.network import READOUTS, Mean, Readout

KERNELS_OF_ALL_KINDS = [
    RNTK(),
    RNTK("leaky_relu(0.1)", sigma_w=[1.0, 2.0], sigma_b=np.array([0.1, 0.2]), depth=2, sigma_w_bounds="fixed"),
    RNTK(leaky_relu(0.1 + 1e-16), normalize=True, bidirectional=True, tied=False, dtype="float32", n_jobs=2),
    RNTK(tanh, parameterization="standard", engine="reference", progress=False, sigma_u=np.float64(0.3)),
    RNTK(readout="sequence"),
    RNTK(readout=Mean(), kind="nngp"),
    NTK("erf", sigma_w=1.3, depth=np.int64(3)),
    RBF(1 / 3, "fixed"),
    RBF(np.array([1.0, 2.0, 3.0]), np.array([(0.1, 1.0)] * 3)),
    Matern(0.7, nu=np.inf),
    RationalQuadratic(alpha=2.0),
    ExpSineSquared(2.0, 3.0),
    ConstantKernel(0.1) * RNTK() + WhiteKernel(1e-5) + DotProduct(2.0, (1e-3, np.inf)) ** 2,
    ConstantKernel(0.1) * (RNTK() + WhiteKernel(1e-5)),
    (RBF() + NTK()) ** 1.5,
    (RBF() + NTK()) ** 2,
]


def plain(kernel):
    return PlainForm().encode(kernel, "kernel")


def build(found):
    return PlainForm().decode(found, "kernel")


@pytest.mark.parametrize("kernel", KERNELS_OF_ALL_KINDS, ids=repr)
def test_kernels_come_back_equal(kernel):
    copy = build(json.loads(json.dumps(plain(kernel), allow_nan=False)))
    assert type(copy) is type(kernel)
    assert plain(copy) == plain(kernel)
    for name, value in kernel.get_params().items():
        other = copy.get_params()[name]
        if isinstance(value, int | float | str | tuple | np.ndarray):
            assert type(other) is type(value), name
            np.testing.assert_array_equal(other, value)
    np.testing.assert_array_equal(copy.theta, kernel.theta)


def test_different_kernels_have_different_descriptions():
    texts = [json.dumps(describe(kernel)) for kernel in KERNELS_OF_ALL_KINDS]
    assert "null" not in texts
    assert len(set(texts)) == len(texts)


def test_what_changes_no_number_may_be_left_out():
    one, two = RNTK(n_jobs=1, progress=True, sigma_w_bounds="fixed") + RBF(), RNTK() + RBF(1.0, "fixed")
    assert plain(one) != plain(two)
    assert describe(one) == describe(two)
    assert describe(one) != describe(RNTK(sigma_v=2.0) + RBF())
    assert build(describe(one)) == RNTK() + RBF()


def test_an_activation_keeps_every_digit():
    kernel = RNTK(leaky_relu(0.1234567890123456))
    assert build(plain(kernel)).activation == kernel.activation
    assert describe(kernel) != describe(RNTK(leaky_relu(0.1234567890123457)))
    copy = pickle.loads(pickle.dumps(RNTK(tanh)))  # a tanh, but not the object `tanh`
    assert describe(copy) == describe(RNTK(tanh))


def square(z):
    return z * z


def dot(X, Y):
    return X @ Y.T


class OwnKernel(RNTK):
    pass


class Tail(Readout):
    name = "mean"


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (dot, ["Python function", "dot", "pickle"]),
        (RNTK(square), ["kernel.activation", "Python function", "square", "snake(a)", "sinusoid(a, b)"]),
        (RNTK(HermiteActivation("tanh", np.tanh)), ["activation", "Python function"]),  # other derivatives than tanh
        (RNTK(np.tanh), ["activation", "Python function"]),
        (RNTK(readout=Tail()), ["kernel.readout", "Tail"]),
        (RBF() + OwnKernel(), ["OwnKernel", "RNTK"]),
        (CompoundKernel([RBF()]), ["CompoundKernel"]),
    ],
)
@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
def test_code_is_not_described(kernel, words):
    assert describe(kernel) is None
    with pytest.raises(ValueError) as caught:
        plain(kernel)
    for word in words:
        assert word in str(caught.value)


def test_code_from_elsewhere_may_be_kept_but_is_not_recognised(monkeypatch):
    """A name from outside the package may mean another function in the next process."""
    monkeypatch.setitem(KERNELS, "OwnKernel", OwnKernel)
    kernel = OwnKernel(sigma_w=1.2) + RBF()
    assert describe(kernel) is None
    assert build(plain(kernel)) == kernel
    from rntk.activations import NAMED

    activation = HermiteActivation("square", square)
    monkeypatch.setitem(NAMED, "square", activation)
    for asked in ("square", activation):
        assert describe(RNTK(asked)) is None
        assert build(plain(RNTK(asked))).activation == asked
    monkeypatch.setitem(READOUTS, "tail", Tail())
    assert describe(RNTK(readout="tail")) is None


def test_names_of_kernels_are_taken_once(monkeypatch):
    monkeypatch.setattr("rntk.kernels.description.KERNELS", dict(KERNELS))
    assert register(RNTK) is RNTK
    another = type("RNTK", (RBF,), {})
    with pytest.raises(ValueError, match="another kernel named RNTK"):
        register(another)


def changed(kernel, /, **parameters):
    found = plain(kernel)
    found["kernel"][1].update(parameters)
    return found


@pytest.mark.parametrize(
    ("description", "word"),
    [
        ({"kernel": "RNTK"}, "no value"),
        ({"kernel": ["eval", {}]}, "eval"),
        ({"kernel": ["RNTK", {"evil": 1}]}, "evil"),
        ({"kernel": ["Sum", {}]}, "k1"),
        (changed(RNTK(), activation="__import__('os')"), "activation"),
        (changed(RNTK(), activation={"activation": "os.system"}), "activation"),
        (changed(RNTK(), activation={"object": "os.system"}), "activation"),
        (changed(RNTK(), sigma_w=-1), "sigma_w"),
        (changed(RNTK(), sigma_w=[1.0, 2.0, 3.0]), "sigma_w"),
        (changed(RNTK(), sigma_w={"float": "nan"}), "sigma_w"),
        (changed(RNTK(), sigma_w={"float": "1e999"}), "sigma_w"),
        (changed(RNTK(), sigma_w={"scalar": ["V8", 10**12]}), "sigma_w"),
        (changed(RNTK(), sigma_w={"array": ["object", [1], ["x"]]}), "sigma_w"),
        (changed(RNTK(), sigma_w={"array": ["float64", [7], [1.0]]}), "reshape"),
        (changed(RNTK(), depth=10**9), "at most 10000"),
        (changed(RNTK(), dtype="object"), "dtype"),
        (changed(RNTK(), engine="fast"), "engine"),
        (changed(RNTK(), n_jobs=0), "n_jobs"),
        (changed(RBF(), length_scale=0.0), "not finite"),
        (changed(RBF(), length_scale="x"), "evaluated"),
        (changed(Matern(), nu=None), "evaluated"),
        (changed(RBF() + RBF(), k2=3), "made of kernels"),
        (changed(RBF() ** 2, exponent="2"), "number"),
        (changed(RBF() ** 2, kernel={"dict": [[[], 1]]}), "can't be used"),
    ],
    ids=lambda value: str(value)[-60:],
)
def test_descriptions_of_no_kernel(description, word):
    with pytest.raises(ValueError, match=word):
        build(description)


def test_a_kernel_nested_without_end():
    found = plain(RBF())
    for _ in range(2000):
        found = {"kernel": ["Exponentiation", {"kernel": found, "exponent": 1}]}
    with pytest.raises(ValueError, match="recursion"):
        build(found)
    kernel = RBF()
    for _ in range(2000):
        kernel = kernel + RBF()
    assert describe(kernel) is None


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.floats(width=32, allow_nan=False).map(np.float32)
    | st.integers(0, 255).map(np.uint8)
    | st.lists(st.floats(allow_nan=False)).map(np.array),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.lists(inside, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers(-9, 9), inside, max_size=3)
    ),
    max_leaves=5,
)


@given(plain_values)
@settings(max_examples=200, deadline=None)
def test_parameter_values_survive_json(value):
    copy = PlainForm().decode(json.loads(json.dumps(PlainForm().encode(value, "it"), allow_nan=False)), "it")
    assert repr(copy) == repr(value)
