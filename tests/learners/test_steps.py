"""Landmarks among steps: products of features against the kernel they stand for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import rntk
from helpers.tolerances import relative_error
from rntk import NTK, RNTK, NystromFeatures, SequenceError, StepFeatures, as_batch
from rntk.learners import landmarks
from rntk.learners.landmarks import SELECTIONS
from rntk.learners.steps import draw_steps
from rntk.network import READOUTS, Readout

OPTIONS = {"sigma_b": 0.3, "readout": "mean", "n_jobs": 1, "progress": False}
KERNEL = RNTK(sigma_w=1.0, normalize=True, **OPTIONS)


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


class Late(Readout):
    """A mean over the later steps, the last one twice."""

    name = "late"

    def weights(self, lengths):
        parts = [np.where(np.arange(T) >= T // 2, 1.5, 0.0) * (1 + (np.arange(T) == T - 1)) for T in lengths]
        return np.concatenate(parts)


def ragged(seed=0, n=8, channels=2, lengths=(4, 11)):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((T, channels)) for T in rng.integers(*lengths, n)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize(
    "options",
    [{}, {"normalize": True}, {"activation": "erf", "depth": 2}, {"readout": Late()}, {"sigma_h": 0.7}],
    ids=["relu", "normalised", "deep erf", "weighted", "initial state"],
)
def test_with_all_prefixes_as_pieces_products_are_the_kernel(options, kind, dtype):
    X, kernel = ragged(), RNTK(**{**OPTIONS, **options, "kind": kind, "dtype": dtype})
    model = StepFeatures(kernel, n_landmarks=1000, history=None, rank_tolerance=0.0 if dtype == "float32" else None)
    found = model.fit_transform(X)
    counted = sum(len(x) - len(x) // 2 for x in X) if "readout" in options else sum(map(len, X))
    assert len(model.sequences_) == counted
    assert found.dtype == dtype
    # kernel(X, X), not kernel(X): what a sequence shares with itself alone is no feature.
    assert relative_error(found @ found.T, kernel(X, X)) < (1e-12 if dtype == "float64" else 1e-5)
    assert model.kernel_error(X) < (1e-11 if dtype == "float64" else 1e-4)


def test_a_feature_is_the_mean_of_whitened_kernels_of_steps():
    X, new = ragged(1), ragged(2, n=3)
    model = StepFeatures(KERNEL, n_landmarks=7, history=3, random_state=0).fit(X)
    last = RNTK(sigma_w=1.0, sigma_b=0.3, n_jobs=1)
    Z = [X[i][max(0, t - 2) : t + 1] for i, t in zip(model.landmark_indices_, model.landmark_steps_, strict=True)]
    assert all(np.array_equal(a, b) for a, b in zip(model.sequences_, Z, strict=True))
    means = np.stack([np.mean([last([x[: t + 1]], Z)[0] for t in range(len(x))], axis=0) for x in new])
    expected = means @ np.linalg.solve(last(Z, Z), means.T)
    size = np.sqrt(np.diagonal(expected))
    found = model.transform(new)
    assert relative_error(found @ found.T, expected / np.outer(size, size)) < 1e-10


def test_error_falls_with_pieces_and_with_their_steps():
    X = ragged(3, n=20, lengths=(15, 26))

    def error(**options):
        return np.mean([StepFeatures(KERNEL, random_state=seed, **options).fit(X).kernel_error(X) for seed in range(2)])

    by_number = [error(n_landmarks=m, history=8) for m in (8, 32, 128)]
    by_history = [error(n_landmarks=256, history=r) for r in (1, 2, 4, 8)]
    assert (np.diff(by_number) < 0).all() and by_number[-1] < 0.5 * by_number[0]
    assert (np.diff(by_history) < 0).all() and by_history[-1] < 0.5 * by_history[0]


def test_sizes_beyond_floats_are_no_matter_where_the_kernel_is_normalised():
    X = [1e3 * x for x in ragged(4, n=6, lengths=(300, 301))]
    kernel = RNTK(sigma_w=2.0, readout="mean", normalize=True, dtype="float32", n_jobs=1)  # variances up to 2^300
    found = StepFeatures(kernel, n_landmarks=400, history=None, rank_tolerance=0.0, random_state=0).fit_transform(X)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    small = StepFeatures(kernel, n_landmarks=400, history=None, rank_tolerance=0.0, random_state=0)
    np.testing.assert_allclose(small.fit_transform([1e-6 * x for x in X]), found, atol=1e-3)
    with pytest.raises(rntk.KernelOverflowError, match="normalize=True"):
        StepFeatures(kernel.set_params(normalize=False), n_landmarks=9).fit_transform(X)


def test_steps_come_evenly_from_sequences_and_by_what_they_count():
    batch = as_batch(ragged(5, n=6, lengths=(3, 9)))
    lengths, random = batch.lengths, np.random.RandomState(0)
    for count in (1, 4, 6, 13, 10**6):
        sequence, step = draw_steps(batch, READOUTS["mean"], count, random)
        assert len(sequence) == min(count, lengths.sum()) == len(set(zip(sequence, step, strict=True)))
        assert (step < lengths[sequence]).all() and (step >= 0).all()
        taken = np.bincount(sequence, minlength=6)
        assert (taken >= np.minimum(lengths, taken.max() - 1)).all()
    sequence, step = draw_steps(batch, Late(), 10**6, random)
    assert (step >= lengths[sequence] // 2).all()
    lasts = sum(int((draw_steps(batch, Late(), 6, random)[1] == lengths - 1).sum()) for _ in range(200))
    expected = 200 * (2 / (1 + lengths - lengths // 2)).sum()
    assert abs(lasts - expected) < 4 * np.sqrt(expected)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_seeds_choose_pieces_and_cuts_change_nothing(selection, monkeypatch):
    X = ragged(6, n=12)
    model = StepFeatures(KERNEL, n_landmarks=15, history=4, selection=selection, random_state=3)
    found, again = model.fit_transform(X), clone(model).fit_transform(X)
    np.testing.assert_array_equal(found, again)
    assert len(model.sequences_) == 15 == len(set(zip(model.landmark_indices_, model.landmark_steps_, strict=True)))
    other = clone(model).set_params(random_state=4).fit(X)
    assert not np.array_equal(other.landmark_steps_, model.landmark_steps_)
    monkeypatch.setattr(landmarks, "BLOCK_STEPS", 5)  # fewer than most sequences have
    np.testing.assert_allclose(model.set_params(memory="12kB").transform(X), found, atol=1e-13)


def test_features_are_saved_and_pickled(tmp_path):
    X, y = ragged(7, n=20), np.arange(20) % 3
    for linear, target in ((RidgeClassifierCV(), y), (RidgeCV(), 0.5 * y)):
        model = make_pipeline(StepFeatures(KERNEL, n_landmarks=20, random_state=0), linear).fit(X, target)
        rntk.save(model, tmp_path / "model.rntk")
        for back in (rntk.load(tmp_path / "model.rntk"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(back.predict(X), model.predict(X))
        assert model[0].get_feature_names_out()[0] == "stepfeatures0"


def test_bars_and_precision(capsys):
    X = ragged(8)
    kernel = clone(KERNEL).set_params(progress=True, dtype="float32")
    found = StepFeatures(kernel, n_landmarks=9, random_state=0, dtype="float64").fit_transform(X)
    assert found.dtype == np.float64
    shown = capsys.readouterr().err
    assert "features" in shown and "RNTK" not in shown


def test_a_sequence_without_variance_has_no_direction():
    kernel = RNTK(readout="mean", normalize=True, n_jobs=1)
    X = [np.zeros(5), *(x[:, 0] for x in ragged(9))]
    found = StepFeatures(kernel, n_landmarks=30, random_state=0).fit_transform(X)
    assert not found[0].any() and np.allclose(np.linalg.norm(found[1:], axis=1), 1)
    with pytest.raises(ValueError, match="zero between all landmarks"):
        StepFeatures(kernel).fit([np.zeros(3), np.zeros(4)])
    assert StepFeatures().fit([[1.0]]).transform([[2.0], [2.0, 3.0]]).shape == (2, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": RNTK()}, 'averages over steps: take readout="mean"'),
        ({"kernel": NTK()}, "StepFeatures takes an RNTK"),
        ({"kernel": RBF()}, "NystromFeatures takes any kernel"),
        ({"kernel": KERNEL + KERNEL}, "StepFeatures takes an RNTK"),
        ({"kernel": lambda A, B: KERNEL(A, B)}, "StepFeatures takes an RNTK"),
        ({"kernel": RNTK(tied=False, readout="mean")}, "share no weights.*tied=True"),
        ({"kernel": RNTK(readout="sequence")}, "no single value per pair"),
        ({"history": 0}, "history must be a whole number of at least 1, not 0"),
        ({"history": 2.5}, "history"),
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"selection": "best"}, "selection"),
        ({"rank_tolerance": 1.0}, "rank_tolerance"),
        ({"memory": 1000, "n_landmarks": 30}, "30 need about 28.8 kB"),
        ({"dtype": "float16"}, "dtype"),
    ],
)
def test_what_is_wrong_is_said(options, words):
    with pytest.raises(ValueError, match=words):
        StepFeatures(**{"kernel": KERNEL, **options}).fit(ragged())


def test_hostile_data():
    model = StepFeatures(KERNEL, n_landmarks=5)
    with pytest.raises(NotFittedError):
        model.transform(ragged())
    for X in ([], [[np.nan, 1.0]], [["a"]], [np.ones((2, 2)), np.ones((2, 3))]):
        with pytest.raises(SequenceError):
            model.fit(X)
    model.fit(ragged())
    with pytest.raises(SequenceError, match="channels"):
        model.transform(ragged(channels=3))
    with pytest.raises(ValueError, match="n_sequences"):
        model.kernel_error(ragged(), n_sequences=1)


def test_whole_sequences_as_landmarks_have_an_error_too():
    X = ragged(10, n=20)
    few, all_ = (NystromFeatures(KERNEL, n_landmarks=m, random_state=0).fit(X) for m in (5, 20))
    assert all_.kernel_error(X) < 1e-10 < 0.01 < few.kernel_error(X) < 1.5
    assert few.kernel_error(X, n_sequences=6) == few.kernel_error(X, n_sequences=6)


ANY_LENGTH = "wants another number of steps refused, which is welcome"
EXCLUDED = {
    "check_n_features_in_after_fitting": ANY_LENGTH,
    "check_transformer_general": ANY_LENGTH,
    "check_dtype_object": "wants float()'s TypeError for a dict among the numbers; rntk lists all that is wrong",
}


@parametrize_with_checks([StepFeatures(KERNEL, n_landmarks=10)], expected_failed_checks=lambda _: EXCLUDED)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
