"""scikit-learn's common checks on every learner, and a sequence twin of each check that can't apply.

Every learner comes twice: with a recurrent kernel, which takes any length, and with a kernel of vectors, which must
agree in length, so that scikit-learn's checks of the number of features apply and are passed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from rntk import (
    NTK,
    RNTK,
    RNTKSVC,
    RNTKClassifier,
    RNTKGaussianProcessRegressor,
    RNTKRegressor,
    RNTKRidge,
    SequenceError,
)

QUIET = {"n_jobs": 1, "progress": False}
RECURRENT, VECTORS = RNTK(**QUIET), NTK(normalize=True, **QUIET)
# libsvm's default tolerance is wider than the one of the check that weights are repetitions.
TIGHT = {"tol": 1e-7}

ANY_LENGTH = [
    RNTKSVC(RECURRENT, **TIGHT),
    RNTKRidge(RECURRENT),
    RNTKGaussianProcessRegressor(RECURRENT, optimizer=None),
    RNTKClassifier(**QUIET),
    RNTKRegressor(**QUIET),
]
ONE_LENGTH = [
    RNTKSVC(VECTORS, **TIGHT),
    RNTKRidge(VECTORS),
    RNTKGaussianProcessRegressor(VECTORS, optimizer=None),
]

NOT_FOR_SEQUENCES = {
    "check_dtype_object": "wants float()'s TypeError for a dict among the numbers; rntk lists all that is wrong with "
    "the sequences in one SequenceError, a ValueError",
    "check_sample_weight_equivalence_on_sparse_data": "sequences are dense; scikit-learn 1.6 asks all the same",
}
NOT_FOR_ANY_LENGTH = {
    **NOT_FOR_SEQUENCES,
    "check_n_features_in_after_fitting": "wants another number of features refused; it is the length, which is free",
    "check_classifiers_train": "wants predict(X.T) refused: sequences of another length, which are welcome",
}
NOT_FOR_LEAVE_ONE_OUT = {
    "check_sample_weight_equivalence_on_dense_data": "wants a weight to be a number of copies; where one of two copies "
    "is left out the other predicts it, so that they make another choice than one of weight two",
}

for_any_length = pytest.mark.parametrize("learner", ANY_LENGTH, ids=lambda each: type(each).__name__)
for_one_length = pytest.mark.parametrize("learner", ONE_LENGTH, ids=lambda each: type(each).__name__)
for_every_learner = pytest.mark.parametrize("learner", ANY_LENGTH + ONE_LENGTH, ids=lambda each: type(each).__name__)
classifiers = [learner for learner in ANY_LENGTH if is_classifier(learner)]
for_classifiers = pytest.mark.parametrize("learner", classifiers, ids=lambda each: type(each).__name__)


@pytest.fixture(autouse=True)
def _one_thread():
    """Hundreds of small matrices: BLAS threads only get in each other's way."""
    with threadpool_limits(1):
        yield


def excluded(learner) -> dict[str, str]:
    if any(learner is each for each in ONE_LENGTH):
        return NOT_FOR_SEQUENCES
    reasons = NOT_FOR_ANY_LENGTH | (NOT_FOR_LEAVE_ONE_OUT if "n_landmarks" in learner.get_params() else {})
    return {
        name: reason for name, reason in reasons.items() if is_classifier(learner) or name != "check_classifiers_train"
    }


# Strict, by pyproject.toml: an exclusion that is no longer needed fails.
@parametrize_with_checks(ANY_LENGTH + ONE_LENGTH, expected_failed_checks=excluded)
def test_scikit_learn(estimator, check):
    check(estimator)


def waves(seed: int, classes: int = 2, each: int = 12, channels: int = 1, lengths=(10, 20)) -> tuple[list, np.ndarray]:
    """Noisy waves of unequal length; their class is their frequency."""
    rng = np.random.default_rng(seed)
    y = np.arange(classes * each) % classes
    steps = rng.integers(*lengths, size=len(y))
    X = [
        np.sin(0.3 * (2.0**label) * np.arange(T)[:, None] + np.arange(channels))
        + 0.1 * rng.standard_normal((T, channels))
        for label, T in zip(y, steps, strict=True)
    ]
    return X, y


def table(seed: int, n: int = 15, steps: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, steps)), np.arange(n) % 3


# The twin of check_n_features_in_after_fitting ---------------------------------------------------------------


@for_any_length
def test_other_lengths_are_welcome_and_other_channels_are_not(learner):
    X, y = table(0)
    model = clone(learner).fit(X, y)
    assert model.n_features_in_ == 4
    assert model.n_channels_in_ == 1
    rng = np.random.default_rng(1)
    ragged = [rng.standard_normal(T) for T in (1, 4, 9)]
    methods = ["predict", "decision_function"] if is_classifier(learner) else ["predict"]
    for method in methods:
        evaluate = getattr(model, method)
        values = evaluate(ragged)
        assert len(values) == 3
        for i, sequence in enumerate(ragged):  # alone, where its length is a number of features
            np.testing.assert_allclose(evaluate(sequence[None]), values[i : i + 1], rtol=1e-5, atol=1e-6)
        message = f"X has 2 channels, but {type(learner).__name__} is expecting 1 channel as input"
        with pytest.raises(ValueError, match=message):
            evaluate(rng.standard_normal((3, 4, 2)))
    with pytest.raises(ValueError, match="X has 2 channels"):
        model.score(rng.standard_normal((3, 4, 2)), [0, 1, 2])


@for_any_length
def test_unequal_lengths_have_no_number_of_features(learner):
    X, y = waves(2, channels=2)
    model = clone(learner).fit(X, y)
    assert not hasattr(model, "n_features_in_")
    assert model.n_channels_in_ == 2
    with pytest.raises(ValueError, match=r"X has 1 channel, but \w+ is expecting 2 channels"):
        model.predict([x[:, :1] for x in X])
    model.fit(*table(3))  # a second fit forgets the first
    assert model.n_features_in_ == 4
    assert model.n_channels_in_ == 1


@for_one_length
def test_kernels_of_vectors_refuse_other_lengths(learner):
    X, y = table(4)
    model = clone(learner).fit(X, y)
    for other in (X[:, :3], np.c_[X, X]):
        message = f"X has {other.shape[1]} features, but {type(learner).__name__} is expecting 4 features as input"
        with pytest.raises(ValueError, match=message):
            model.predict(other)
    with pytest.raises(ValueError, match="compares vectors of one length"):
        model.predict([np.ones(3), np.ones(4)])
    with pytest.raises(ValueError, match="compares vectors of one length"):
        clone(learner).fit([np.ones(3), np.arange(4.0), np.arange(3.0)], [0, 1, 0])


# The twin of check_dtype_object ------------------------------------------------------------------------------


@for_every_learner
def test_objects_are_read_as_numbers_or_named(learner):
    X, y = table(5)
    expected = clone(learner).fit(X, y).predict(X)
    np.testing.assert_array_equal(clone(learner).fit(X.astype(object), y).predict(X.astype(object)), expected)
    wrong = X.astype(object)
    wrong[3, 2] = {"foo": "bar"}
    message = r"sequence 3 has a value that is no real number \(an object of type dict\) at step 2"
    with pytest.raises(SequenceError, match=message) as caught:
        clone(learner).fit(wrong, y)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(SequenceError, match=message):
        clone(learner).fit(X, y).predict(wrong)


# The twin of check_classifiers_train -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("classes", [2, 3])
@for_classifiers
def test_classifiers_learn_sequences(learner, classes, dtype):
    X, y = waves(6, classes)
    X = [x.astype(dtype) for x in X]
    for x in X:
        x.setflags(write=False)
    names = np.array(["slow", "fast", "very fast"])[y]
    with pytest.raises(ValueError, match=f"{len(X)} sequences and {len(X) - 1} labels"):
        clone(learner).fit(X, names[:-1])
    model = clone(learner).fit(X, names)
    np.testing.assert_array_equal(model.classes_, np.unique(names))
    found = model.predict(X)
    assert found.shape == (len(X),)
    assert np.mean(found == names) > 0.83
    new, _ = waves(7, classes, lengths=(1, 30))
    assert np.isin(model.predict(new), model.classes_).all()
    scores = model.decision_function(X)
    if classes == 2:
        assert scores.shape == (len(X),)
        np.testing.assert_array_equal(model.classes_[(scores > 0).astype(int)], found)
    else:
        assert scores.shape == (len(X), classes)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], found)
    if dtype == "float64":  # plain lists hold doubles
        lists = clone(learner).fit([x.tolist() for x in X], names.tolist())
        np.testing.assert_array_equal(lists.predict(X), found)


# What the checks brought to light ----------------------------------------------------------------------------


def test_a_weight_of_zero_is_as_if_the_sequence_were_not_there():
    X, y = waves(8, 3)
    weight = np.random.default_rng(9).integers(0, 3, len(X)).astype(float)
    kept = np.flatnonzero(weight)
    assert 0 < len(kept) < len(X)
    kernel = RNTK(normalize=True, readout="mean", **QUIET)
    weighted = RNTKSVC(kernel, C=10, tol=1e-9).fit(X, y, weight)
    without = RNTKSVC(kernel, C=10, tol=1e-9).fit([X[i] for i in kept], y[kept], weight[kept])
    np.testing.assert_allclose(weighted.decision_function(X), without.decision_function(X), rtol=1e-12)
    np.testing.assert_array_equal(weighted.support_, kept[without.support_])
    for i, sequence in zip(weighted.support_, weighted.sequences_, strict=True):
        np.testing.assert_array_equal(sequence, X[i])
    with pytest.raises(ValueError, match="only one class"):
        RNTKSVC(kernel).fit(X, y, (y == 0).astype(float))


def test_the_support_vector_machine_is_the_one_of_scikit_learn():
    X, y = table(10)
    weight = np.linspace(0.5, 2, len(y))
    ours = RNTKSVC(RBF(1.5), C=3, class_weight="balanced").fit(X, y, weight)
    theirs = SVC(kernel="rbf", gamma=0.5 / 1.5**2, C=3, class_weight="balanced").fit(X, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-10)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_iter_, theirs.n_iter_)


@for_every_learner
def test_refusals_use_the_words_of_scikit_learn_and_of_rntk(learner):
    X, y = table(11)
    model = clone(learner).fit(X, y)
    for container in (sparse.csr_array, sparse.dok_array, sparse.coo_matrix):
        with pytest.raises(SequenceError, match=r"Sparse data was passed.*toarray"):
            model.predict(container(X))
    with pytest.raises(SequenceError, match=r"(?s)one sequence of 4 numbers.*Reshape your data"):
        model.predict(X[0])
    with pytest.raises(SequenceError, match=r"(?s)every sequence of X is empty.*0 feature\(s\) \(shape=\(15, 0\)\)"):
        clone(learner).fit(X[:, :0], y)
    with pytest.raises(SequenceError, match=r"(?s)two channels.*Complex data not supported"):
        clone(learner).fit(X + 1j, y)
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.ones(3), np.array([1.0, np.nan])]
    with pytest.raises(SequenceError, match="sequence 1 has 1 NaN") as caught:
        model.predict(ragged)
    assert "Reshape" not in str(caught.value)  # it is a collection already


@for_every_learner
def test_nothing_works_before_fit(learner):
    X, _ = table(12)
    methods = ["predict", "decision_function"] if is_classifier(learner) else ["predict"]
    for method in methods:
        with pytest.raises(NotFittedError):
            getattr(clone(learner), method)(X)


@pytest.mark.parametrize("learner", [RNTKClassifier, RNTKRegressor])
def test_kernels_that_see_nothing_are_judged_all_the_same(learner):
    X, y = table(14, steps=2)  # differences of two steps are one number, which normalises to zero
    model = learner(**QUIET).fit(X, y)
    for name in ("mean_test_score", "loo_error", "ridge"):
        assert np.isfinite(model.cv_results_[name]).all()
    assert np.isfinite(model.predict(X).astype(float)).all()
