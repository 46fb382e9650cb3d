"""rntk inside aeon and sktime: their own checks, the same numbers as without them, and their absence."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from rntk import NTK, RNTK, RNTKClassifier, RNTKRegressor, SequenceError
from rntk.errors import MissingExtraError


@pytest.fixture(autouse=True)
def _one_thread():
    """Hundreds of small matrices: BLAS threads only get in each other's way."""
    with threadpool_limits(1):
        yield


def import_or_skip(name: str):
    """The module, or a skip that says what to install; warnings of a foreign import are not ours to fail on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = name.partition(".")[0]
        return pytest.importorskip(name, reason=f'{library} is not installed: pip install "rntk[{library}]"')


def series(seed: int, channels: int = 1, n: int = 16, lengths=(8, 14)) -> tuple[list[np.ndarray], np.ndarray]:
    """Noisy waves (channels, time), aeon's layout, of unequal length; their class is their frequency."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = [
        np.sin(0.4 * (1 + label) * np.arange(T) + np.arange(channels)[:, None])
        + 0.1 * rng.standard_normal((channels, T))
        for label, T in zip(y, rng.integers(*lengths, size=n), strict=True)
    ]
    return X, y


CHEAP = {"progress": False}

# aeon --------------------------------------------------------------------------------------------------------


@pytest.fixture
def aeon():
    import_or_skip("aeon")
    return importlib.import_module("rntk.adapters.aeon")


@pytest.mark.parametrize("name", ["RNTKAeonClassifier", "RNTKAeonRegressor"])
def test_aeon_checks(aeon, name):
    check_estimator = import_or_skip("aeon.testing.estimator_checking").check_estimator
    results = check_estimator(getattr(aeon, name))
    assert len(results) > 30
    assert {check: result for check, result in results.items() if result != "PASSED"} == {}


@pytest.mark.parametrize("name", ["RNTKAeonClassifier", "RNTKAeonRegressor"])
def test_aeon_check_of_threads(aeon, name):
    """Part of aeon's checks, but left out unless aeon's own configuration asks for it."""
    check = import_or_skip("aeon.testing.estimator_checking._yield_multithreading_checks")
    kind = name.removeprefix("RNTKAeon").replace("ier", "ication").replace("or", "ion")
    estimator = getattr(aeon, name)(**CHEAP)
    for data in ("EqualLengthUnivariate", "UnequalLengthMultivariate"):
        check.check_estimator_multithreading(estimator, f"{data}-{kind}-np-list")


@pytest.mark.parametrize(
    ("name", "search"), [("RNTKAeonClassifier", RNTKClassifier), ("RNTKAeonRegressor", RNTKRegressor)]
)
def test_aeon_takes_the_parameters_of_the_search(aeon, name, search):
    ours = inspect.signature(getattr(aeon, name)).parameters
    theirs = inspect.signature(search).parameters
    assert list(ours) == list(theirs)
    # aeon wants one thread unless told otherwise.
    assert {key: each.default for key, each in ours.items()} == {
        key: 1 if key == "n_jobs" else each.default for key, each in theirs.items()
    }
    given = {key: object() for key in ours}
    estimator = getattr(aeon, name)(**given)
    assert all(estimator.get_params()[key] is value for key, value in given.items())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("layout", ["list", "array"])
def test_aeon_classifier_is_the_search(aeon, layout, channels):
    X, y = series(0, channels, lengths=(8, 14) if layout == "list" else (10, 11))
    names = np.array(["slow", "fast"])[y]
    model = aeon.RNTKAeonClassifier(**CHEAP).fit(X if layout == "list" else np.stack(X), names)
    plain = RNTKClassifier(**CHEAP, n_jobs=1).fit([x.T for x in X], names)
    new, _ = series(1, channels, lengths=(5, 20))
    np.testing.assert_array_equal(model.predict(new), plain.predict([x.T for x in new]))
    assert model.model_.best_params_ == plain.best_params_
    assert np.mean(model.predict(X) == names) > 0.8


def test_aeon_probabilities_are_those_of_the_learner(aeon):
    rng = np.random.default_rng(2)
    X, labels = rng.standard_normal((18, 1, 9)), np.arange(18) % 3
    for classes in (2, 3):
        kept = labels < classes
        y = np.array(["c", "a", "b"])[labels[kept]]
        model = aeon.RNTKAeonClassifier(**CHEAP).fit(X[kept], y)
        chances = model.predict_proba(X)
        assert chances.shape == (18, classes)
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
        np.testing.assert_array_equal(chances, model.model_.predict_proba(X[:, 0]))


def test_aeon_regressor_is_the_search(aeon):
    X, _ = series(3, 2)
    y = np.array([x[0, -1] for x in X])
    model = aeon.RNTKAeonRegressor(**CHEAP, random_state=4).fit(X, y)
    plain = RNTKRegressor(**CHEAP, n_jobs=1, random_state=4).fit([x.T for x in X], y)
    np.testing.assert_array_equal(model.predict(X), plain.predict([x.T for x in X]))
    assert model.model_.get_params() == plain.get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_aeon_cache(aeon, tmp_path):
    X, y = series(5, lengths=(10, 11))
    model = aeon.RNTKAeonClassifier(**CHEAP, cache=tmp_path).fit(np.stack(X), y)
    assert len(list(tmp_path.rglob("output.pkl"))) == len(model.model_.cv_results_["params"])


def test_aeon_refuses_what_the_gate_refuses(aeon):
    X, y = series(6, 2)
    model = aeon.RNTKAeonClassifier(**CHEAP).fit(X, y)
    with pytest.raises(ValueError, match="channels"):
        model.predict([x[:1] for x in X])
    with pytest.raises(ValueError, match="missing values"):
        model.predict([np.where(x > 0, x, np.nan) for x in X])
    with pytest.raises(ValueError, match="n_landmarks must be"):
        aeon.RNTKAeonClassifier(n_landmarks=0).fit(X, y)


def test_aeon_example(aeon):
    assert doctest.testmod(aeon).failed == 0


# sktime ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sktime():
    import_or_skip("sktime.dists_kernels.base")
    return importlib.import_module("rntk.adapters.sktime")


@pytest.fixture
def panel():
    """A list of frames, time by channels, of unequal length."""
    pandas = pytest.importorskip("pandas")
    X, _ = series(7, 2, n=5)
    return [pandas.DataFrame(x.T, columns=["a", "b"]) for x in X]


def test_sktime_checks(sktime):
    check_estimator = import_or_skip("sktime.utils.estimator_checks").check_estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sktime's own test machinery
        results = check_estimator(sktime.RNTKPairwise, verbose=False)
    assert len(results) > 100
    assert {check: result for check, result in results.items() if result != "PASSED"} == {}


KERNELS = {
    "default": None,
    "recurrent": RNTK("erf", sigma_b=0.2, sigma_h=0.5, depth=2, readout="mean"),
    "scaled": 2.0 * RNTK(normalize=True),
    "function": lambda X, Y: np.array([[x.sum() * y.sum() for y in Y] for x in X]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_sktime_gram_matrix_is_the_one_of_the_kernel(sktime, panel, name):
    pandas = pytest.importorskip("pandas")
    kernel = KERNELS[name]
    arrays = [frame.to_numpy() for frame in panel]
    pairwise = sktime.RNTKPairwise(kernel)
    plain = kernel or RNTK()
    alone = plain(arrays, arrays) if name == "function" else plain(arrays)
    stacked = pandas.concat(panel, keys=range(len(panel)), names=["sequence", "time"])
    for X in (panel, stacked):  # in two of sktime's formats
        np.testing.assert_allclose(pairwise(X), alone, rtol=1e-12)
        np.testing.assert_allclose(pairwise.transform(X, X), alone, rtol=1e-12)
        np.testing.assert_allclose(pairwise.transform_diag(X), np.diag(alone), rtol=1e-12)
        np.testing.assert_allclose(pairwise(X, panel[:2]), plain(arrays, arrays[:2]), rtol=1e-12)


def test_sktime_arrays_have_channels_before_time(sktime):
    X = np.random.default_rng(8).standard_normal((4, 3, 7))
    np.testing.assert_allclose(sktime.RNTKPairwise()(X), RNTK()(X.transpose(0, 2, 1)), rtol=1e-12)
    vectors = NTK(depth=2)
    flat = X.transpose(0, 2, 1).reshape(4, -1)
    np.testing.assert_allclose(sktime.RNTKPairwise(vectors)(X, X[:2]), vectors(flat, flat[:2]), rtol=1e-12)


def test_sktime_composition_and_parameters(sktime, panel):
    arrays = [frame.to_numpy() for frame in panel]
    pairwise = sktime.RNTKPairwise(RNTK(sigma_b=0.3))
    np.testing.assert_allclose((pairwise + sktime.RNTKPairwise())(panel), RNTK(sigma_b=0.3)(arrays) + RNTK()(arrays))
    np.testing.assert_allclose(pairwise["a"](panel), RNTK(sigma_b=0.3)([x[:, :1] for x in arrays]))
    assert pairwise.clone().kernel == RNTK(sigma_b=0.3)
    assert clone(pairwise).get_params()["kernel"] == RNTK(sigma_b=0.3)
    assert pairwise.get_tag("pwtrafo_type") == "kernel"


def test_sktime_refusals(sktime, panel):
    with pytest.raises(SequenceError, match="sequence 0 has"):
        sktime.RNTKPairwise()([frame.where(frame > 0) for frame in panel])
    with pytest.raises(ValueError, match="kernel must be a kernel of rntk or scikit-learn, or a function"):
        sktime.RNTKPairwise("rbf")(panel)
    with pytest.raises(ValueError, match="compares vectors of one length"):
        sktime.RNTKPairwise(NTK())(panel)
    with pytest.raises(ValueError, match="has no single value per pair of sequences"):
        sktime.RNTKPairwise(RNTK(readout="sequence"))(panel)


def test_sktime_example(sktime):
    assert doctest.testmod(sktime).failed == 0


# Absence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "needed"), [("aeon", "aeon.classification"), ("sktime", "sktime.dists_kernels.base")]
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, library, needed):
    monkeypatch.setitem(sys.modules, library, None)  # which makes its import fail
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"rntk.adapters.{library}", raising=False)
    with pytest.raises(MissingExtraError, match=library) as caught:
        importlib.import_module(f"rntk.adapters.{library}")
    assert caught.value.extra == caught.value.name == library


def test_the_package_loads_neither_library():
    code = "import sys, rntk.adapters; print(*(name for name in ('aeon', 'sktime') if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
