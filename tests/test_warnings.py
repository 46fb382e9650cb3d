"""Which warnings are errors in tests: the rule in pyproject.toml.

Ours are, wherever they point to, and so are numerical ones, since whoever raises them got the numbers from us. What
other libraries say about each other is not: a new release of one of them must not stop our tests. In the code of tests
and of documentation pages deprecations are only shown, for the same reason; in ours they are errors.
"""

from __future__ import annotations

import pkgutil
import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaPerformanceWarning
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from rntk import errors

TESTS = Path(__file__).parent
DEPRECATIONS = [DeprecationWarning, PendingDeprecationWarning, FutureWarning]
OURS = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Warning)]


def run_in(module: str, code: str) -> None:
    """Run code as if it stood in a module, where its warnings are attributed to it."""
    exec(f"import warnings\nimport numpy as np\n{code}", {"__name__": module})


def compile_in(file: Path) -> None:
    """Have Numba warn of a function in a file: there is nothing parallel about it."""
    namespace: dict[str, Any] = {}
    exec(compile("def same(x): return x", str(file), "exec"), namespace)
    numba.njit(parallel=True)(namespace["same"])(1.0)


def warn_in(module: str, category: type[Warning]) -> None:
    warnings.warn_explicit("a warning", category, "file.py", 1, module=module)


@pytest.mark.parametrize("category", [*DEPRECATIONS, UserWarning, RuntimeWarning, ResourceWarning, SyntaxWarning])
@pytest.mark.parametrize("module", ["rntk", "rntk.gram.compute"])
def test_warnings_of_our_modules_are_errors(module, category):
    with pytest.raises(category):
        warn_in(module, category)


def test_warnings_of_compiled_code_are_errors(monkeypatch, tmp_path):
    """Numba knows the file, not the module."""
    for _ in range(2):
        with pytest.raises(NumbaPerformanceWarning):
            warnings.warn_explicit("slow", NumbaPerformanceWarning, errors.__file__, 1)
        with pytest.raises(NumbaPerformanceWarning):
            compile_in(Path(errors.__file__).with_name("none.py"))
        monkeypatch.chdir(tmp_path)


def test_warnings_of_the_compiled_code_of_others_are_not():
    others = Path(np.__file__).with_name("none.py")
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn_explicit("slow", NumbaPerformanceWarning, str(others), 1)
        compile_in(others)
    assert [each.category for each in caught] == [NumbaPerformanceWarning] * 2


@pytest.mark.parametrize("category", [*DEPRECATIONS, UserWarning, ResourceWarning])
@pytest.mark.parametrize("module", ["pandas.core.frame", "numpy.lib", "dask.array.core", "jax._src.api", "rntklike"])
def test_warnings_of_other_libraries_are_not(module, category):
    with warnings.catch_warnings(record=True):  # not shown either
        warn_in(module, category)


def test_fork_beside_threads_is_not_an_error():
    """JAX warns with a category that numbers have too."""
    with warnings.catch_warnings(record=True):
        warn_in("multiprocessing.popen_fork", RuntimeWarning)


@pytest.mark.parametrize("category", [*OURS, ConvergenceWarning])
@pytest.mark.parametrize("module", ["rntk.kernels", "test_warnings", "__main__", "sklearn.svm._base"])
def test_warnings_of_our_own_classes_are_errors_wherever_they_point(module, category):
    assert errors.HermiteAccuracyWarning in OURS
    with pytest.raises(category):
        warn_in(module, category)


@pytest.mark.parametrize(
    "code",
    [
        "np.zeros(1) / np.zeros(1)",
        "1 / np.zeros(1)",
        "np.log(np.zeros(1))",
        "np.sqrt(-np.ones(1))",
        "np.exp(np.full(1, 1e3))",
        "np.ones(1) * np.array([1e300]) * 1e300",
        "np.array([1e300]).astype(np.float32)",
        "np.array([np.nan]).astype(int)",
        "np.mean(np.empty(0))",  # from inside NumPy, as the next two
        "np.var(np.array([1e300, -1e300]))",
        "np.nanmax(np.array([np.nan]))",
    ],
)
def test_numbers_out_of_range_are_errors(code):
    with pytest.raises(RuntimeWarning):
        run_in("rntk.kernels.network", code)


@pytest.mark.parametrize("category", [RuntimeWarning, LinAlgWarning])
@pytest.mark.parametrize("module", ["numpy.linalg", "scipy.linalg._basic", "sklearn.utils.extmath"])
def test_numerical_warnings_inside_libraries_are_errors(module, category):
    with pytest.raises(category):
        warn_in(module, category)


def test_every_file_of_the_tests_is_covered():
    """A warning of ours may point at whoever called."""
    folders = [TESTS, *(path for path in TESTS.iterdir() if path.is_dir() and not (path / "__init__.py").exists())]
    names = [module.name for module in pkgutil.iter_modules(map(str, folders))]
    assert "oracles" in names
    for name in [*names, "oracles.battery", "tests.oracles.battery", "__main__"]:
        with pytest.raises(UserWarning):
            warn_in(name, UserWarning)
        with warnings.catch_warnings(record=True):
            for category in DEPRECATIONS:
                warn_in(name, category)
