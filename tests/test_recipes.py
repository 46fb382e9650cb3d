"""The recipes of CONTRIBUTING, followed from outside the package: each needs one class, registered or passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from rntk import RNTK, input_gradient
from rntk.engine import NotOfferedError, choose_engine, reference
from rntk.network import Elman, Readout

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
