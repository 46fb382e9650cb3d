"""The recipes of CONTRIBUTING, followed from outside the package: each needs one class, registered or passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import ClassifierMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.model_selection import cross_val_score

from helpers.data import waves
from rntk import RNTK, activations, input_gradient, io
from rntk import engine as engine_room
from rntk.engine import NotOfferedError, choose_engine, reference
from rntk.engine.fused import FusedEngine
from rntk.io import reader
from rntk.io.schema import ROWS
from rntk.learners.base import KernelLearner, as_kernel, gram
from rntk.network import Elman, Readout
from rntk.sequences import SequenceBatch

# -- a readout: one class -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fading(Readout):
    """A mean that counts every step `rate` times as much as the next one."""

    name: ClassVar[str] = "fading"
    rate: float = 0.8

    def weights(self, lengths):
        return np.concatenate([length * self.normed(length) for length in lengths])

    def normed(self, length):
        fading = self.rate ** np.arange(length)[::-1]
        return fading / fading.sum()


def fading_from_steps(kernel: RNTK, X, Y) -> np.ndarray:
    """The same from kernels between all steps."""
    readout = kernel.readout
    every = RNTK(**{**kernel.get_params(), "readout": "sequence", "normalize": False})(X, Y)
    sides = [[readout.normed(len(x)) for x in side] for side in (X, Y)]
    rows, columns = (
        np.split(np.arange(sum(map(len, side))), np.cumsum([len(x) for x in side])[:-1]) for side in (X, Y)
    )
    return np.array(
        [
            [w @ every[np.ix_(r, c)] @ v for c, v in zip(columns, sides[1], strict=True)]
            for r, w in zip(rows, sides[0], strict=True)
        ]
    )


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("activation", ["relu", "erf"])
@pytest.mark.parametrize("engine", ["fused", "reference", "array"])
def test_a_readout_is_one_class(engine, activation, kind):
    rng = np.random.default_rng(0)
    X, Y = ([rng.standard_normal((length, 2)) for length in lengths] for lengths in ((4, 1, 6), (5, 3)))
    kernel = RNTK(activation, readout=Fading(0.7), engine=engine, kind=kind, sigma_b=0.1)
    expected = fading_from_steps(kernel, X, Y)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    root = np.sqrt(kernel.diag(X))
    np.testing.assert_allclose(
        RNTK(**{**kernel.get_params(), "normalize": True})(X), kernel(X) / root / root[:, None], rtol=1e-12
    )
    if engine != "array":
        gradient = kernel(X, eval_gradient=True)[1]
        reference = RNTK(**{**kernel.get_params(), "engine": "reference"})
        np.testing.assert_allclose(gradient, reference(X, eval_gradient=True)[1], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            input_gradient(kernel, X[0], Y[0]), input_gradient(reference, X[0], Y[0]), rtol=1e-10, atol=1e-12
        )


# -- a cell: one class, and its step in the reference engine -----------------------------------------------------------


class Doubled(Elman):
    """Two independent sets of recurrent weights, each with half the variance: the same network in other words."""


class Skipping(Elman):
    """What comes from below arrives twice, through two matrices."""


@reference.step.register
def _(cell: Doubled, weights, layer, recurrent, below):
    half = weights.w[layer] / 2
    sigma = half * recurrent.value + half * recurrent.value + weights.u[layer] * below.value + weights.b[layer]
    theta = sigma + half * recurrent.tangent + half * recurrent.tangent + weights.u[layer] * below.tangent
    return sigma, theta


@reference.step.register
def _(cell: Skipping, weights, layer, recurrent, below):
    sigma = weights.w[layer] * recurrent.value + 2 * weights.u[layer] * below.value + weights.b[layer]
    return sigma, sigma + weights.w[layer] * recurrent.tangent + 2 * weights.u[layer] * below.tangent


def kernel_with(cell: type[Elman], **settings) -> RNTK:
    class Kernel(RNTK):
        def network(self):
            network = super().network()
            return replace(network, cells=tuple(cell(**vars(each)) for each in network.cells))

    return Kernel(**settings)


@pytest.mark.parametrize("cell, same", [(Doubled, {}), (Skipping, {"sigma_u": 2**0.5})])
def test_a_cell_is_one_class_and_its_step(cell, same):
    rng = np.random.default_rng(1)
    X = [rng.standard_normal(length) for length in (3, 5)]
    kernel = kernel_with(cell, sigma_b=0.2, depth=2, normalize=True)
    assert choose_engine("auto", kernel.network())[0].name == "reference"
    plain = RNTK(**{"sigma_b": 0.2, "depth": 2, "normalize": True, **same})
    np.testing.assert_allclose(kernel(X), plain(X), rtol=1e-12)
    np.testing.assert_allclose(input_gradient(kernel, *X), input_gradient(plain, *X), rtol=1e-11)


def test_engines_refuse_cells_that_they_do_not_know():
    with pytest.raises(NotOfferedError, match='fused engine has no Doubled cells; take engine="reference"'):
        kernel_with(Doubled, engine="fused")([[1.0, 2.0]])

    class Unheard(Elman):
        pass

    assert reference.step.dispatch(Unheard) is reference.step.dispatch(Elman)  # a kind of Elman cell, unless it says


# -- an activation: one class, registered -----------------------------------------------------------------------------


def test_an_activation_is_one_class_that_registers_itself(monkeypatch):
    monkeypatch.setattr("rntk.activations.base.NAMED", dict(activations.NAMED))
    activations.register(activations.HermiteActivation("arctan", np.arctan, lambda z: 1 / (1 + z**2)))
    X = np.random.default_rng(2).standard_normal((3, 4))
    kernel = RNTK("arctan", sigma_w=0.7, sigma_u=0.5)
    np.testing.assert_allclose(kernel(X), RNTK(np.arctan, sigma_w=0.7, sigma_u=0.5)(X), rtol=1e-7)
    assert activations.as_activation("arctan").name == "arctan"


# -- a learner: one class, and a row of the schema of files -----------------------------------------------------------


class NearestMean(ClassifierMixin, KernelLearner):
    """The class whose mean is nearest in the kernel's feature space."""

    def __init__(self, kernel=None):
        self.kernel = kernel

    def fit(self, X, y):
        batch = self._read_training(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.kernel_ = as_kernel(self.kernel)
        self.weights_ = np.eye(len(self.classes_))[codes] / np.bincount(codes)
        self.sizes_ = np.einsum("ik,ij,jk->k", self.weights_, gram(self.kernel_, batch), self.weights_)
        self._keep(batch)
        return self

    def predict(self, X):
        near = self._training().in_blocks(self._read_new(X), lambda _, K: self.sizes_ - 2 * K @ self.weights_)
        return self.classes_[near.argmin(axis=1)]


def test_a_learner_is_one_class_and_one_row(tmp_path, monkeypatch):
    monkeypatch.setitem(ROWS, NearestMean.__name__, None)  # gone after the test
    del ROWS[NearestMean.__name__]
    sequences = {"n_channels_in_": (int, "channels"), "n_features_in_?": int, "kernel_": Kernel}
    sequences["sequences_"] = (SequenceBatch, "n", "channels")
    io.register(
        NearestMean,
        {
            "classes_": (np.ndarray, "classes"),
            "weights_": (np.ndarray, "n", "classes"),
            "sizes_": (np.ndarray, "classes"),
        }
        | sequences,
    )
    X, y = waves(3, n=30)
    model = NearestMean(RNTK(normalize=True, readout="mean")).fit(X, y)
    assert model.score(X, y) > 0.9
    io.save(model, tmp_path / "model.rntk")
    np.testing.assert_array_equal(io.load(tmp_path / "model.rntk").predict(X), model.predict(X))
    assert cross_val_score(model, np.array([x[:8] for x in X]), y).mean() > 0.7


# -- a file format: one function, and a row of the table of formats ---------------------------------------------------


def parse_lines(file, text: str) -> None:
    """label: value value …"""
    file.begin_labels(True)
    for number, line in enumerate(text.splitlines(), 1):
        label, _, values = line.partition(":")
        file.add_label(number, label.strip())
        file.add_sequence(number, [values.split()], lambda step, _: f"value {step + 1}")


def test_a_file_format_is_one_function_and_one_row(tmp_path, monkeypatch):
    monkeypatch.setitem(reader.FORMATS, "lines", reader.Format(parse_lines, (".lines",)))
    (tmp_path / "a.lines").write_text("up: 1 2 3\ndown: 3 2\n")
    found = io.read(tmp_path / "a.lines")
    assert found.y.tolist() == ["up", "down"] and found.X.lengths.tolist() == [3, 2]
    (tmp_path / "b.lines").write_text("up: 1 two\n")
    with pytest.raises(io.DataFileError, match=r"line 1.*value 2"):
        io.read(tmp_path / "b.lines")


# -- an engine: one class, and its name --------------------------------------------------------------------------------


class Halved(FusedEngine):
    """Whatever the fused engine says, by half: enough to see that it is asked."""

    name = "halved"

    def compare_ways(self, plan, a, b):
        values = super().compare_ways(plan, a, b)
        return values._replace(ntk=values.ntk / 2)


def test_an_engine_is_one_class_and_its_name(monkeypatch):
    monkeypatch.setattr("rntk.engine.ENGINES", (*engine_room.ENGINES, "halved"))
    known = engine_room.load_engine
    monkeypatch.setattr("rntk.engine.load_engine", lambda name: Halved() if name == "halved" else known(name))
    X = np.random.default_rng(4).standard_normal((4, 5))
    np.testing.assert_array_equal(RNTK(engine="halved")(X), RNTK()(X) / 2)
    np.testing.assert_allclose(
        RNTK(engine="halved", bidirectional=True)(X), RNTK(bidirectional=True)(X) / 2, rtol=1e-15
    )
