"""How a store knows its matrix: by data and kernel, and of kernels that are functions, by what they do and read."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from rntk import RNTK
from rntk.activations import HermiteActivation
from rntk.gram import GramStoreError, compute
from rntk.gram.identity import describe


def test_functions_are_known_by_their_code(tmp_path):
    X, path = np.ones((4, 2)), tmp_path / "K.gram"

    def make(power, sign=1):
        return lambda A, B=None: sign * (A @ (A if B is None else B).T) ** power

    compute(make(2), X, out=path)
    compute(make(2), X, out=path)
    for other in (make(3), make(2, -1), lambda A, B=None: A @ (A if B is None else B).T + 1):
        with pytest.raises(GramStoreError, match="kernel"):
            compute(other, X, out=path)

    class Opaque:
        def __init__(self):
            self.lock = threading.Lock()  # something without a pickle

        def __call__(self, A, B=None):
            return A @ (A if B is None else B).T

    opaque = Opaque()
    with pytest.raises(ValueError, match="must recognise its kernel"):
        compute(opaque, X, out=tmp_path / "other.gram")
    assert compute(opaque, X).complete


SLOPE = 1.0


def helper(A, B):
    return A @ B.T


def reads_globals(A, B):
    return SLOPE * helper(A, B)


class Callable:
    def __call__(self, A, B):
        return helper(A, B)


def test_functions_are_known_by_what_they_read(tmp_path, monkeypatch):
    X = np.ones((5, 2))
    activation = HermiteActivation("mine", lambda z: np.tanh(SLOPE * z))
    for name, kernel in {"a": reads_globals, "b": RNTK(activation), "c": lambda A, B: [reads_globals][0](A, B)}.items():
        compute(kernel, X, out=tmp_path / f"{name}.gram")
        assert compute(kernel, X, out=tmp_path / f"{name}.gram").found == 1
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "SLOPE", 3.0)
            with pytest.raises(GramStoreError, match="another Gram matrix"):
                compute(kernel, X, out=tmp_path / f"{name}.gram")
    compute(reads_globals, X, out=tmp_path / "d.gram")
    compute(Callable(), X, out=tmp_path / "e.gram")
    monkeypatch.setitem(globals(), "helper", lambda A, B: 2 * A @ B.T)
    for name, kernel in {"d": reads_globals, "e": Callable()}.items():
        with pytest.raises(GramStoreError, match="another Gram matrix"):
            compute(kernel, X, out=tmp_path / f"{name}.gram")


EDITED = {
    "vectorize": "def f(z): return z * %s if z > 0 else 0.0\nk = RNTK(np.vectorize(f, otypes=[float]))",
    "cached": "@functools.lru_cache\ndef h(n): return n * %s\ndef k(A, B): return A @ B.T * h(2)",
    "class": "class C:\n  def w(self): return %s\ndef k(A, B): return A @ B.T * C().w()",
    "object": "class C:\n  def w(self): return %s\nc = C()\ndef k(A, B): return A @ B.T * c.w()",
    "inherited": "class B0:\n  def __call__(self, A, B): return A @ B.T * %s\nclass C(B0): pass\nk = C()",
    "method": "class C:\n  def w(self): return %s\n  def __call__(self, A, B): return A @ B.T * self.w()\nk = C()",
    "state": "class C: pass\nc = C(); c.w = %s; c.tags = {'a', 'b'}\ndef k(A, B): return A @ B.T * c.w",
    "kernel": "class K(RBF):\n  def __call__(self, X, Y=None): return %s * super().__call__(X, Y)\nk = K()",
    "constant": "def k(A, B, by=%s): return A @ B.T * by",
}
UNCHANGED = {
    "attribute": "T = %s\ndef k(A, B): return A @ B.T",
    "counter": "n = %s\ndef k(A, B):\n  global n\n  n = n + 1\n  return A @ B.T",
    "not a number": "w = float('nan')\ndef k(A, B, fill=np.nan): return (w, A @ B.T)[1]\nother = %s",
    "odd things": "import threading\na = [np.array([1j]), 2j, b'x', np.datetime64('2020-01-01'), threading.Lock()]\n"
    "a.append(a)\nfrom numpy import floating\ndef k(A, B): return (a, floating, A @ B.T)[2]\nother = %s",
}


@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
@pytest.mark.parametrize("name", [*EDITED, *UNCHANGED])
def test_modules_that_were_edited_between_two_runs(tmp_path, monkeypatch, name):
    X, found = np.random.default_rng(0).standard_normal((6, 5)), []
    for value in (2.0, 2.0, 3.0):
        module = types.ModuleType("usermod")
        monkeypatch.setitem(sys.modules, "usermod", module)
        vars(module).update(np=np, RNTK=RNTK, RBF=RBF, functools=functools)
        exec((EDITED | UNCHANGED)[name] % value, vars(module))
        try:
            found.append(compute(module.k, X, out=tmp_path / "K.gram", block=3).found)
        except GramStoreError as error:
            assert "another Gram matrix" in str(error)
            found.append(None)
    assert found == [0, 3, None if name in EDITED else 3]


def test_descriptions_stay_small():
    module = types.ModuleType("usermod")
    calls = "".join(f"def f{i}(x): return f{i - 1}(x) + f{i - 2}(x)\n" for i in range(2, 60))
    exec(f"def f0(x): return x\ndef f1(x): return f59(x)\n{calls}long = [0.5] * 10**5\n"
         "def k(A, B): return f59(A), long", vars(module))  # fmt: skip
    assert len(json.dumps(describe(module.k))) < 50_000


def test_descriptions_last_longer_than_a_process(tmp_path):
    """Sets come in another order, compiled functions at another address."""
    script = (
        "import json, numba\n"
        "from rntk.gram.identity import describe\n"
        "names = {'a', 'b', 'c', 'd'}\n"
        "def kernel(A, B): return A @ B.T if 'x' in {'u', 'v', 'w'} or names else kernel(A, B)\n"
        "inner = (lambda seen: lambda A, B: (seen, A @ B.T))(frozenset(names))\n"
        "print(json.dumps(describe([kernel, inner, numba.njit(kernel)])))\n"
    )
    path = tmp_path / "script.py"
    path.write_text(script)
    found = {
        subprocess.run(
            [sys.executable, path],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1 and len(found.pop()) > 100
