"""How a store knows its matrix: kernels by their parameters, everything else by a key, and never by a guess."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Exponentiation, Matern, WhiteKernel

from rntk import NTK, RNTK
from rntk.activations import HermiteActivation, leaky_relu, relu
from rntk.gram import GramStoreError, cached, compute, identity
from rntk.gram.work import TileMaker
from rntk.kernels.description import describe
from rntk.sequences import as_batch

pytest.importorskip("zarr", reason='stores need zarr: pip install "rntk[disk]"')
X = np.random.default_rng(0).standard_normal((12, 6))


def cube(z):
    return np.tanh(z) + 0.1 * z


class Scaled:
    """A kernel whose number has a name with an underscore."""

    def __init__(self, c):
        self._c = c

    def __call__(self, A, B):
        return self._c * A @ B.T


class Modified(RBF):
    def __call__(self, X, Y=None, eval_gradient=False):
        return 2 * super().__call__(X, Y)


KNOWN = [
    RNTK(),
    RNTK("tanh", sigma_b=0.1, readout="mean"),
    RNTK(relu, normalize=True),
    RNTK(leaky_relu(0.2)),
    RNTK(sigma_w=np.float32(1.5), depth=2),
    NTK(depth=2),
    RBF(length_scale=np.arange(1.0, 7.0)),
    RNTK() * ConstantKernel(0.5) + WhiteKernel(1e-3),
    Exponentiation(Matern(nu=2.5), 2),
]
UNKNOWN = [
    RNTK(cube),
    RNTK(HermiteActivation("tanh", cube)),
    RNTK() + RNTK(cube),
    Modified(),
    Modified() + RBF(),
    Scaled(1.0),
    lambda A, B: A @ B.T,
    functools.partial(np.einsum, "it,jt->ij"),
]


@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
@pytest.mark.parametrize("kernel", KNOWN, ids=range(len(KNOWN)))
def test_kernels_of_parameters_are_known_by_them(tmp_path, kernel):
    described = describe(kernel)
    assert json.loads(json.dumps(described)) == described
    first = compute(kernel, X, out=tmp_path / "K.zarr", block=5).to_array()
    again = compute(kernel, X, out=tmp_path / "K.zarr")
    assert again.found == 6
    np.testing.assert_array_equal(again.to_array(), first)


@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
@pytest.mark.parametrize("kernel", UNKNOWN, ids=range(len(UNKNOWN)))
def test_everything_else_is_kept_but_never_taken_for_a_later_call(tmp_path, kernel):
    assert describe(kernel) is None
    K = compute(kernel, X, out=tmp_path / "K.zarr", block=5)
    assert K.complete
    with pytest.raises(GramStoreError, match=r"another Gram matrix: kernel is unknown.*needs a key=.*overwrite=True"):
        compute(kernel, X, out=tmp_path / "K.zarr")
    assert compute(kernel, X, out=tmp_path / "K.zarr", overwrite=True).found == 0
    for found in (0, 3):
        assert compute(kernel, X, out=tmp_path / "named.zarr", key="first", block=6).found == found
    with pytest.raises(GramStoreError, match="key is first there and second here"):
        compute(kernel, X, out=tmp_path / "named.zarr", key="second")


@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
def test_a_key_stands_for_code_alone(tmp_path):
    make = functools.partial(compute, X=X, out=tmp_path / "K.zarr", key="cube")
    make(RNTK(cube) + ConstantKernel(2.0))
    for kernel, word in ((RNTK(cube, sigma_w=1.1), "sigma_w"), (RNTK(cube, kind="nngp"), "kind")):
        with pytest.raises(GramStoreError, match=rf"{word} is .* there"):
            make(kernel + ConstantKernel(2.0))
    assert make(RNTK(cube) + ConstantKernel(2.0)).found == 1


def test_equal_kernels_share_a_store_however_they_are_written(tmp_path):
    written = [("relu", 1.0), (relu, np.float64(1)), ("leaky_relu(0)", 1), ("relu", [1.0]), ("relu", (1.0,))]
    for out, kernels in (("a", written[:3]), ("b", written[3:])):
        K = [compute(RNTK(a, sigma_b=b), X, out=tmp_path / f"{out}.zarr") for a, b in kernels]
        assert all(each.found == 1 for each in K[1:])


def test_two_objects_of_one_class_are_two(tmp_path):
    """By bytecode and public attributes, the second call returned the matrix of the first."""
    compute(Scaled(1.0), X, out=tmp_path / "K.zarr")
    with pytest.raises(GramStoreError, match="another Gram matrix"):
        compute(Scaled(2.0), X, out=tmp_path / "K.zarr")
    K = compute(Scaled(2.0), X, out=tmp_path / "K.zarr", overwrite=True)
    np.testing.assert_allclose(K.to_array(), 2 * X @ X.T, rtol=1e-13)
    for c in (1.0, 2.0):
        np.testing.assert_allclose(cached(tmp_path / "cache", Scaled(c), X), c * X @ X.T, rtol=1e-13)
    assert not (tmp_path / "cache").exists()  # nothing to know them by
    for c in (1.0, 2.0, 1.0):
        K = cached(tmp_path / "cache", Scaled(c), X, key=f"scaled by {c}")
        np.testing.assert_allclose(K, c * X @ X.T, rtol=1e-13)
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
def test_two_activations_of_one_name(tmp_path):
    first, second = (RNTK(HermiteActivation("mine", f)) for f in (np.tanh, cube))
    assert np.abs(first(X) - second(X)).max() > 0.01
    for kernel in (first, second, first):
        np.testing.assert_array_equal(cached(tmp_path, kernel, X), kernel(X))
    compute(first, X, out=tmp_path / "K.zarr")
    with pytest.raises(GramStoreError, match="another Gram matrix"):
        compute(second, X, out=tmp_path / "K.zarr")


def test_many_short_lived_functions_in_one_folder(tmp_path):
    """Known by their address, eleven of twelve got the matrix of another one."""
    for c in range(12):
        np.testing.assert_allclose(cached(tmp_path, lambda A, B, c=c: c * A @ B.T, X), c * X @ X.T, atol=1e-12)


def test_a_folder_of_matrices(tmp_path, monkeypatch):
    folder, Y = tmp_path / "a" / "b", X[:5] + 1
    calls = []
    real = TileMaker.compute
    monkeypatch.setattr(TileMaker, "compute", lambda self, tile: calls.append(tile) or real(self, tile))
    settings = [(RNTK(sigma_b=b, dtype=d), X if e == 0 else X + e, y)
                for b in (0.0, 0.1) for d in ("float32", "float64") for e in (0, 1e-9) for y in (None, Y)]  # fmt: skip
    first = [cached(folder, *each) for each in settings]
    count = len(calls)
    for (kernel, left, right), K in zip(settings, first, strict=True):
        assert K.dtype == kernel.dtype
        np.testing.assert_array_equal(K, cached(folder, kernel, as_batch(left), right))
    assert len(calls) == count and len(list(folder.iterdir())) == len(settings)
    for (kernel, left, right), K in zip(settings, first, strict=True):
        np.testing.assert_array_equal(K, kernel(left, right))
        np.testing.assert_array_equal(K, cached(None, kernel, left, right))
    # Whatever happens to a store, the right matrix comes, and the next call finds it.
    for harm in (
        lambda store: (store / "zarr.json").write_text("{}"),
        lambda store: shutil.rmtree(store / "c"),
        lambda store: shutil.rmtree(store),
    ):
        for store in folder.iterdir():
            harm(store)
        np.testing.assert_array_equal(cached(folder, *settings[0]), first[0])
        count = len(calls)
        np.testing.assert_array_equal(cached(folder, *settings[0]), first[0])
        assert len(calls) == count
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="can't be used as a folder"):
        cached(tmp_path / "file", RNTK(), X)


def test_stores_of_other_arithmetic_are_not_finished_by_this(tmp_path, monkeypatch):
    compute(RNTK(), X, out=tmp_path / "K.zarr", block=5)
    kept = cached(tmp_path / "cache", RNTK(), X)
    (tmp_path / "K.zarr" / "c" / "0" / "1").unlink()
    monkeypatch.setattr(identity, "REVISION", identity.REVISION + 1)
    with pytest.raises(GramStoreError, match=r"revision is \d+ there and \d+ here"):
        compute(RNTK(), X, out=tmp_path / "K.zarr")
    np.testing.assert_array_equal(cached(tmp_path / "cache", RNTK(), X), kept)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_identities_last_longer_than_a_process():
    script = (
        "import json, numpy as np\nfrom rntk import RNTK\nfrom rntk.gram.work import make_work\n"
        "print(json.dumps(make_work(RNTK('tanh') + RNTK(depth=2), np.ones((3, 4)), None, None).identity(None)))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_two_processes_at_once_share_one_folder(tmp_path):
    script = (
        "import sys, warnings, numpy as np\nfrom rntk import RNTK\nfrom rntk.gram import cached\n"
        "warnings.simplefilter('error')\nX = np.random.default_rng(0).standard_normal((40, 6))\n"
        "kernels = [RNTK(sigma_b=b, n_jobs=1) for b in (0.0, 0.1, 0.2, 0.3) for _ in range(3)]\n"
        "print('ready', flush=True), sys.stdin.readline()\n"
        "print(all(np.array_equal(cached(sys.argv[1], kernel, X), kernel(X)) for kernel in kernels))"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([sys.executable, "-c", script, tmp_path], **pipes) for _ in range(2)]
    assert [each.stdout.readline() for each in both] == ["ready\n"] * 2
    for each in both:
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.communicate()[0] for each in both] == ["True\n"] * 2
    assert len(list(tmp_path.iterdir())) == 4
