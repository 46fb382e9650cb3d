"""Learning from many sequences: features from landmarks, and ridge regression without the Gram matrix."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy import linalg
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from helpers.tolerances import relative_error
from rntk import (
    NTK,
    RNTK,
    ConjugateGradients,
    NystromFeatures,
    RNTKRidge,
    RNTKRidgeClassifier,
    SequenceError,
    as_batch,
)
from rntk.learners.base import PreparedSequences
from rntk.learners.conjugate import preconditioner
from rntk.learners.landmarks import BYTES_PER_VALUE, SELECTIONS, spread_out
from rntk.runtime import parse_bytes

KERNEL = RNTK(normalize=True, n_jobs=1, progress=False)


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


def waves(seed, n=60, classes=2, lengths=(8, 15)):
    """Noisy sine waves of unequal length; the class is their frequency."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = [np.sin((0.4 + 0.5 * k) * np.arange(rng.integers(*lengths)) + rng.uniform(0, 6)) for k in y]
    return [x + 0.1 * rng.standard_normal(x.shape) for x in X], y


def linear(A, B):
    return np.asarray(A) @ np.asarray(B).T


class Recorder:
    """A kernel that notes the shape of every block it is asked for."""

    def __init__(self, function=linear):
        self.function, self.shapes = function, []

    def __call__(self, A, B):
        self.shapes.append((len(A), len(B)))
        return self.function(A, B)


def error_of(found, K):
    """Reconstruction error in nuclear norm, which for Nyström is the trace of what is missing."""
    return float(np.trace(K) - np.square(found).sum()) / float(np.trace(K))


# -- features ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("kernel", [KERNEL, RNTK("erf", sigma_b=0.3, n_jobs=1), lambda A, B: KERNEL(A, B)])
def test_products_of_features_are_the_nystrom_formula(selection, kernel):
    X, _ = waves(0)
    new, _ = waves(1, n=9)
    model = NystromFeatures(kernel, n_landmarks=20, selection=selection, random_state=3).fit(X)
    Z = [X[i] for i in model.landmark_indices_]
    assert all(np.array_equal(a[:, 0], b) for a, b in zip(model.sequences_, Z, strict=True))
    assert len(set(model.landmark_indices_.tolist())) == 20 == model.rank_
    left, right = model.transform(new), model.transform(X)
    expected = np.asarray(kernel(new, Z)) @ np.linalg.solve(np.asarray(kernel(Z, Z)), np.asarray(kernel(Z, X)))
    assert relative_error(left @ right.T, expected) < 1e-11
    np.testing.assert_allclose(left, np.asarray(kernel(new, Z)) @ model.components_.T, atol=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(kernel(Z, Z))[::-1], rtol=1e-10)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_with_every_sequence_a_landmark_products_are_the_kernel(selection):
    X, _ = waves(2, n=25)
    model = NystromFeatures(KERNEL, n_landmarks=1000, selection=selection).fit(X)
    np.testing.assert_array_equal(model.landmark_indices_, np.arange(25))
    found = model.transform(X)
    assert relative_error(found @ found.T, KERNEL(X)) < 1e-12


@pytest.mark.parametrize(
    "kernel", [RNTK(sigma_h=0.7, n_jobs=1), RNTK(n_jobs=1) + WhiteKernel(0.5)], ids=["sigma_h", "WhiteKernel"]
)
def test_noise_on_the_diagonal_is_no_feature(kernel):
    X, _ = waves(3, n=20)
    found = NystromFeatures(kernel).fit_transform(X)
    assert relative_error(found @ found.T, kernel(X, X)) < 1e-11
    assert relative_error(found @ found.T, kernel(X)) > 1e-2


def test_chosen_landmarks_are_no_worse_than_uniform_ones():
    """A hundred sequences of one kind, and nine other kinds of three each: uniform landmarks miss most of them."""
    kernel, errors = RBF(1.0), {selection: [] for selection in SELECTIONS}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        centres = 6 * rng.standard_normal((10, 4))
        X = np.repeat(centres, [100] + [3] * 9, axis=0) + 0.2 * rng.standard_normal((127, 4))
        K = kernel(X)
        for selection, kept in errors.items():
            model = NystromFeatures(kernel, n_landmarks=20, selection=selection, random_state=seed)
            kept.append(error_of(model.fit_transform(X), K))
    uniform, spread, hard = (np.mean(errors[selection]) for selection in SELECTIONS)
    assert uniform > 0.05
    assert spread < 0.5 * uniform
    assert hard < 0.8 * uniform


def test_seeding_draws_by_distance():
    """Draws in rounds, some turned down, against the probabilities of drawing one by one."""
    place = np.array([0.0, 0.2, 5.0, 5.1, 11.0, 11.2])  # pairs, of which a round could take both
    X = as_batch(place[:, None])
    count, n = 4, len(place)
    distance = np.square(place[:, None] - place)
    expected = dict.fromkeys(itertools.combinations(range(n), count), 0.0)
    for order in itertools.permutations(range(n), count):
        chance = 1 / n
        for k in range(1, count):
            nearest = distance[:, order[:k]].min(axis=1)
            chance *= nearest[order[k]] / nearest.sum()
        expected[tuple(sorted(order))] += chance
    random, draws, counts = np.random.RandomState(0), 800, dict.fromkeys(expected, 0)
    for _ in range(draws):
        counts[tuple(sorted(spread_out(linear, X, count, random, 10**6).tolist()))] += 1
    wanted = draws * np.array(list(expected.values()))
    surprise = np.square(np.array(list(counts.values())) - wanted) / wanted
    assert surprise.sum() < 14 + 4 * np.sqrt(28)  # chi squared with 14 degrees of freedom


def test_duplicates_are_never_drawn_twice_by_seeding():
    X, _ = waves(4, n=6)
    model = NystromFeatures(KERNEL, n_landmarks=12, selection="kmeans++", random_state=0).fit(X * 5)
    assert sorted(model.landmark_indices_ % 6) == list(range(6))
    for selection in ("uniform", "leverage"):
        found = NystromFeatures(KERNEL, n_landmarks=29, selection=selection, random_state=0).fit(X * 5)
        assert found.rank_ == 6  # what repeats is dropped by its eigenvalue
        features = found.transform(X)
        assert relative_error(features @ features.T, KERNEL(X)) < 1e-10


@pytest.mark.parametrize("selection", SELECTIONS)
def test_sequences_of_zeros(selection):
    X, _ = waves(5, n=20)
    X = [np.zeros(5)] * 10 + X
    model = NystromFeatures(KERNEL, n_landmarks=15, selection=selection, random_state=0).fit(X)
    found = model.transform(X)
    assert np.isfinite(found).all() and not found[:10].any() and found[10:].any(axis=1).all()
    with pytest.raises(ValueError, match="zero between all landmarks"):
        NystromFeatures(KERNEL, n_landmarks=4, selection=selection).fit([np.zeros(3)] * 8)


def test_rank_is_what_the_tolerance_says():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) * [1.0, 0.5, 0.1, 1e-3, 1e-4]
    whole = NystromFeatures(linear, n_landmarks=30, random_state=0).fit(X)
    assert whole.rank_ == 5 and whole.rank_tolerance_ == 100 * np.finfo(float).eps
    assert relative_error(whole.transform(X) @ whole.transform(X).T, X @ X.T) < 1e-9
    for tolerance in (0.0 + 1e-7, 1e-4, 0.5):
        model = clone(whole).set_params(rank_tolerance=tolerance).fit(X)
        Z = X[model.landmark_indices_]
        value = np.linalg.eigvalsh(Z @ Z.T)
        assert model.rank_ == (value > tolerance * value[-1]).sum() == model.transform(X).shape[1]
        approximation = X @ Z.T @ np.linalg.pinv(Z @ Z.T, rcond=tolerance, hermitian=True) @ Z @ X.T
        assert relative_error(model.transform(X) @ model.transform(X).T, approximation) < 1e-9


def test_precision_is_the_kernels_or_the_one_asked_for():
    X, _ = waves(6)
    single = RNTK(normalize=True, dtype="float32", n_jobs=1)
    exact = NystromFeatures(KERNEL, n_landmarks=30, random_state=0).fit_transform(X)
    for kernel, dtype, expected in (
        (single, None, "float32"),
        (single + single, None, "float32"),
        (lambda A, B: single(A, B), None, "float32"),
        (single, "float64", "float64"),
        (KERNEL, np.float32, "float32"),
        (KERNEL, None, "float64"),
    ):
        model = NystromFeatures(kernel, n_landmarks=30, dtype=dtype, random_state=0)
        found = model.fit_transform(X)
        assert found.dtype == expected
        assert model.components_.dtype == (np.float32 if expected == "float32" and kernel is not KERNEL else np.float64)
        factor = 2 if kernel.__class__.__name__ == "Sum" else 1
        assert relative_error(found @ found.T, factor * exact @ exact.T) < 1e-4
        assert model.rank_tolerance_ == 100 * np.finfo(np.float64 if kernel is KERNEL else np.float32).eps


def test_the_budget_bounds_blocks_and_changes_nothing():
    X, kernel = np.random.default_rng(0).standard_normal((300, 12)), Recorder()
    model = NystromFeatures(kernel, n_landmarks=10, random_state=0, memory="1GB").fit(X)
    kernel.shapes.clear()
    expected = model.transform(X)
    assert kernel.shapes == [(300, 10)]
    for memory in (4000, "12 kB", 24 * 10 * 20):
        kernel.shapes.clear()
        found = model.set_params(memory=memory).transform(X)
        rows = parse_bytes(memory) // (BYTES_PER_VALUE * 10)
        assert [shape[0] for shape in kernel.shapes] == [rows] * (300 // rows) + [300 % rows] * (300 % rows > 0)
        np.testing.assert_allclose(found, expected, atol=1e-13)
    for selection in ("kmeans++", "leverage"):
        kernel.shapes.clear()
        NystromFeatures(kernel, n_landmarks=10, selection=selection, memory="10kB").fit(X)
        assert max(a * b for a, b in kernel.shapes) * BYTES_PER_VALUE <= 10_000


def test_only_some_sequences_are_candidates():
    X, kernel = np.random.default_rng(0).standard_normal((500, 3)), Recorder()
    for selection in ("kmeans++", "leverage"):
        NystromFeatures(kernel, n_landmarks=3, selection=selection, random_state=0).fit(X)
    assert max(max(shape) for shape in kernel.shapes) == 30


def test_features_among_the_tools_of_scikit_learn():
    X, y = waves(7, n=80)
    new, labels = waves(8, n=30)
    for linear_model in (RidgeClassifier(alpha=0.01), LogisticRegression(C=100.0)):
        model = make_pipeline(NystromFeatures(KERNEL, n_landmarks=40, random_state=0), linear_model)
        assert model.fit(X, y).score(new, labels) > 0.9
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))
    grid = {"nystromfeatures__kernel__sigma_w": [1.0, 1.4], "nystromfeatures__n_landmarks": [5, 40]}
    search = GridSearchCV(make_pipeline(NystromFeatures(KERNEL, random_state=0), RidgeClassifier(0.01)), grid, cv=3)
    assert search.fit(X, y).best_params_["nystromfeatures__n_landmarks"] == 40
    features = NystromFeatures(KERNEL, n_landmarks=4, random_state=0).fit(X)
    assert features.get_feature_names_out().tolist() == [f"nystromfeatures{i}" for i in range(features.rank_)]
    frame = clone(features).set_output(transform="pandas").fit_transform(X)
    np.testing.assert_array_equal(frame.to_numpy(), features.transform(X))
    assert features.kernel_ is not KERNEL and features.kernel_.get_params() == KERNEL.get_params()


def test_threads_and_bars_are_the_kernel_s_and_bars_are_one(capsys):
    X, _ = waves(9, n=20)
    kernel = RNTK(progress=True, n_jobs=2) + RNTK(progress=True)
    model = NystromFeatures(kernel, n_landmarks=5, random_state=0).fit(X)
    assert capsys.readouterr().err == ""
    assert model.kernel_.k1.n_jobs == 2 and model.kernel_.k1.progress  # what was given stays what it was
    model.transform(X)
    shown = capsys.readouterr().err
    assert "features" in shown and "RNTK" not in shown
    NystromFeatures(RNTK(progress=False), n_landmarks=5).fit_transform(X)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_landmarks": 0}, "n_landmarks must be a whole number of at least 1, not 0"),
        ({"n_landmarks": 2.5}, "n_landmarks"),
        ({"n_landmarks": True}, "n_landmarks"),
        ({"selection": "best"}, r'selection must be "uniform", "kmeans\+\+" or "leverage"'),
        ({"rank_tolerance": -1e-3}, "rank_tolerance must be a number from 0 to below 1"),
        ({"rank_tolerance": np.nan}, "rank_tolerance"),
        ({"rank_tolerance": "small"}, "rank_tolerance"),
        ({"memory": "much"}, "memory must be a number of bytes"),
        ({"memory": "3iB"}, "memory"),
        ({"memory": -1}, "memory"),
        ({"memory": np.nan}, "memory"),
        ({"memory": None}, "memory"),
        ({"memory": 1000, "n_landmarks": 30}, "n_landmarks=30 need about 28.8 kB.*memory is 1 kB"),
        ({"memory": 28_900, "n_landmarks": 30}, "30 landmarks need at least 29.5 kB"),
        ({"dtype": "float16"}, "dtype must be float32 or float64, not 'float16'"),
        ({"dtype": "nonsense"}, "dtype"),
        ({"kernel": "rbf"}, "kernel must be"),
        ({"kernel": RBF()}, "compares vectors of one length"),
        ({"kernel": RNTK(readout="sequence", n_jobs=1)}, 'readout="sequence"'),
        ({"kernel": lambda A, B: -KERNEL(A, B)}, "not positive semi-definite: eigenvalues .* from -"),
    ],
)
def test_features_refuse(options, words):
    X, _ = waves(10, n=40)
    with pytest.raises(ValueError, match=words):
        NystromFeatures(**{"kernel": KERNEL, "n_landmarks": 10} | options).fit(X)


def test_features_refuse_data_like_the_learners_do():
    X, _ = waves(11, n=10)
    with pytest.raises(NotFittedError):
        NystromFeatures().transform(X)
    model = NystromFeatures(KERNEL, n_landmarks=5).fit(X)
    with pytest.raises(SequenceError, match="2 channels"):
        model.transform([np.ones((4, 2))])
    with pytest.raises(ValueError, match="expecting 3 features"):
        NystromFeatures(RBF()).fit(np.eye(3)).transform(np.ones((2, 4)))


# -- conjugate gradients -----------------------------------------------------------------------------------------------


def ill_conditioned(seed=0, n=220):
    """Inputs, a smooth target and a rough one; with RBF(3) the condition number is 1e17 without a ridge."""
    X = np.random.default_rng(seed).standard_normal((n, 3))
    noise = np.random.default_rng(seed + 1).standard_normal(n)
    return X, np.stack([np.sin(X[:, 0]) * X[:, 1] + 0.01 * noise, noise], axis=1)


@pytest.mark.parametrize("n_landmarks", [0, 60])
@pytest.mark.parametrize("alpha", [1e-5, [1e-4, 1.0]])
def test_conjugate_gradients_find_the_direct_solution(n_landmarks, alpha):
    X, y = ill_conditioned()
    direct = RNTKRidge(RBF(3.0), alpha=alpha).fit(X, y)
    model = RNTKRidge(RBF(3.0), alpha, ConjugateGradients(1e-9, 5000, n_landmarks), random_state=0).fit(X, y)
    assert np.linalg.cond(RBF(3.0)(X) + 1e-5 * np.eye(len(X))) > 1e7
    for column in (0, 1):
        assert relative_error(model.dual_coef_[:, column], direct.dual_coef_[:, column]) < 1e-6
    assert relative_error(model.predict(X[:9]), direct.predict(X[:9])) < 1e-6
    assert 0 < model.residual_ <= 1e-9 and direct.n_iter_ == 1 and not hasattr(direct, "residual_")
    left = y - RBF(3.0)(X) @ model.dual_coef_ - np.asarray(alpha) * model.dual_coef_
    assert model.residual_ == pytest.approx((np.linalg.norm(left, axis=0) / np.linalg.norm(y, axis=0)).max(), rel=0.3)


def test_the_preconditioner_saves_iterations():
    X, y = ill_conditioned()
    used = [
        RNTKRidge(RBF(3.0), 1e-5, ConjugateGradients(1e-8, 5000, n_landmarks), random_state=0).fit(X, y).n_iter_
        for n_landmarks in (0, 20, 80, 220)
    ]
    assert used[0] > 2 * used[1] > 4 * used[2] > 0
    assert used[3] <= 2  # every sequence a landmark: the preconditioner is the inverse


def test_the_preconditioner_is_its_formula():
    X, _ = ill_conditioned(n=50)
    weight, alpha = np.linspace(0, 2, 50), np.array([1e-3, 2.0])
    apply = preconditioner(PreparedSequences(RBF(1.0), as_batch(X[:8])), as_batch(X), alpha, weight, 10**7)
    K = RBF(1.0)(X[:, :], X[:8]) * weight[:, None]
    approximation = K @ np.linalg.solve(RBF(1.0)(X[:8]), K.T)
    value, U = np.linalg.eigh(approximation)
    value, U = value[-8:], U[:, -8:]
    for column, ridge in enumerate(alpha):
        expected = np.eye(50) - U @ np.diag(1 - (value[0] + ridge) / (value + ridge)) @ U.T
        found = np.stack([apply(np.stack([e, e], axis=1))[:, column] for e in np.eye(50)], axis=1)
        assert relative_error(found, expected) < 1e-10
        # Along U it is a multiple of the inverse of what it approximates.
        inverse = np.linalg.inv(approximation + ridge * np.eye(50))
        assert relative_error(found @ U, (value[0] + ridge) * inverse @ U) < 1e-10


@pytest.mark.parametrize("kernel", [KERNEL, RNTK(sigma_h=0.5, n_jobs=1), RNTK(dtype="float32", n_jobs=1)])
def test_conjugate_gradients_on_ragged_sequences_with_weights(kernel):
    X, y = waves(12, n=90)
    X[3] = X[4] = np.zeros(6)
    X[6] = X[5]
    weight = np.random.default_rng(0).uniform(0, 2, 90)
    weight[:7] = 0
    options = {"kernel": kernel, "alpha": 0.05}
    direct = RNTKRidge(**options).fit(X, y, weight)
    model = RNTKRidge(**options, solver=ConjugateGradients(tol=1e-10, n_landmarks=30), random_state=0).fit(X, y, weight)
    assert relative_error(model.dual_coef_, direct.dual_coef_) < 1e-6
    assert len(model.sequences_) == 83
    assert relative_error(model.predict(X), direct.predict(X)) < 1e-6


def test_tiles_fit_the_budget_and_are_kept_if_they_all_do():
    X, y = ill_conditioned(n=200)
    expected, passes = RNTKRidge(RBF(3.0), 0.1).fit(X, y).dual_coef_, []
    vectors = 12 * 8 * 400
    for memory in (10**7, vectors + 170_000):
        kernel = Recorder(RBF(3.0))
        model = RNTKRidge(kernel, 0.1, ConjugateGradients(n_landmarks=0, memory=memory)).fit(X, y)
        assert relative_error(model.dual_coef_, expected) < 1e-6
        assert max(a * b for a, b in kernel.shapes) * BYTES_PER_VALUE + vectors <= memory
        passes.append((len(kernel.shapes), model.n_iter_))
    assert passes[0][0] == 1
    per_pass = passes[1][0] / (passes[1][1] + 1)  # and the true residual at the end
    assert per_pass in (6, 10, 15)  # three to five blocks, on and above the diagonal


def test_a_folder_of_matrices_serves_every_iteration_every_fit_and_both_solvers(tmp_path):
    X, y = waves(20, n=70)
    expected = RNTKRidge(KERNEL, 0.1).fit(X, y).dual_coef_
    options = {"random_state": 0, "cache": tmp_path / "grams"}
    model = RNTKRidge(KERNEL, 0.1, ConjugateGradients(n_landmarks=10), **options).fit(X, y)
    assert relative_error(model.dual_coef_, expected) < 1e-6

    def files():
        return {each: each.stat().st_mtime_ns for each in (tmp_path / "grams").rglob("*") if each.is_file()}

    before = files()
    assert before
    again = RNTKRidgeClassifier(KERNEL, 0.3, solver=ConjugateGradients(n_landmarks=10), **options).fit(X, y > 0)
    assert again.score(X, y > 0) > 0.9
    np.testing.assert_allclose(RNTKRidge(KERNEL, 0.1, **options).fit(X, y).dual_coef_, expected, rtol=1e-9)
    assert files() == before
    fewer = clone(model).fit(X[1:], y[1:])  # another matrix beside it
    assert relative_error(fewer.dual_coef_, RNTKRidge(KERNEL, 0.1).fit(X[1:], y[1:]).dual_coef_) < 1e-6
    assert set(before) < set(files())


def test_features_of_large_kernels_in_single_precision():
    X = np.random.default_rng(0).standard_normal((40, 60))
    for scale in (1.0, 1e-60):
        kernel = RNTK(sigma_w=4.5 if scale == 1 else 1.0, n_jobs=1)
        single, double = (
            NystromFeatures(kernel, n_landmarks=10, dtype=dtype, random_state=0).fit_transform(scale * X)
            for dtype in ("float32", "float64")
        )
        assert np.abs(kernel(scale * X)).max() > 1e40 or scale < 1
        assert relative_error(single, double) < 1e-6 or scale < 1
        assert np.isfinite(single).all()
    with pytest.raises(ValueError, match="features are too large for float32"):
        NystromFeatures(RNTK(sigma_w=9.0), n_landmarks=5, dtype="float32", random_state=0).fit_transform(X)


@pytest.mark.parametrize("scale", [1e155, 1e-165, 1.0])
def test_targets_of_any_magnitude(scale):
    X, y = ill_conditioned(n=60)
    model = RNTKRidge(RBF(), 1.0, ConjugateGradients(n_landmarks=10), random_state=0).fit(X, scale * y)
    assert relative_error(model.dual_coef_ / scale, RNTKRidge(RBF(), 1.0).fit(X, y).dual_coef_) < 1e-6
    assert 0 < model.residual_ < 1e-8


def test_single_precision_inside_a_product():
    s, a = np.linspace(0, 1, 20), np.random.default_rng(0).random((120, 2))
    X = a[:, :1] * np.sin(3 * s) + a[:, 1:] * np.cos(2 * s) + 1
    kernel = RNTK("erf", sigma_u=0.5, sigma_w=0.5, dtype="float32") * ConstantKernel(2.0)
    model = RNTKRidge(kernel, 0.01, ConjugateGradients(), random_state=0).fit(X, a[:, 0])
    assert relative_error(model.predict(X), RNTKRidge(kernel, 0.01).fit(X, a[:, 0]).predict(X)) < 1e-3
    assert NystromFeatures(kernel, n_landmarks=50).fit(X).rank_tolerance_ > 1e-6


def test_noise_makes_no_duplicates_different():
    X = np.repeat(np.random.default_rng(0).standard_normal((5, 6)), 8, axis=0)
    for kernel in (RNTK() + WhiteKernel(1.0), RNTK(sigma_h=1.0), RNTK()):
        assert len(NystromFeatures(kernel, n_landmarks=20, selection="kmeans++").fit(X).landmark_indices_) == 5


def test_the_pilot_counts_into_the_budget():
    X, kernel = np.random.default_rng(0).standard_normal((300, 12)), Recorder()
    NystromFeatures(kernel, n_landmarks=10, selection="leverage", memory="6kB").fit(X)
    blocks = [a * b for a, b in kernel.shapes if b == 10 and a != 10]
    assert max(blocks) * BYTES_PER_VALUE <= 6000 - 32 * 10**2


def test_the_bar_counts_iterations(capsys):
    X, y = waves(21, n=40)
    RNTKRidge(RNTK(normalize=True, progress=True), 0.1, ConjugateGradients(n_landmarks=5), random_state=0).fit(X, y)
    shown = capsys.readouterr().err
    assert "conjugate gradients" in shown and "100%" in shown
    RNTKRidge(RNTK(normalize=True, progress=False), 0.1, ConjugateGradients(n_landmarks=5), random_state=0).fit(X, y)
    RNTKRidge(RBF(), 0.1, ConjugateGradients(n_landmarks=5), random_state=0).fit(np.ones((9, 4)), np.ones(9))
    assert capsys.readouterr().err == ""


def test_targets_of_any_size_advance_together():
    X, y = ill_conditioned()
    y = np.column_stack([1e6 * y[:, 0], 1e-6 * y[:, 1], np.zeros(len(X))])
    batch, alpha = as_batch(X), np.full(3, 1e-3)
    solver = ConjugateGradients(max_iter=2000, n_landmarks=40)
    together = solver.solve(RBF(3.0), batch, y, alpha, random_state=0)
    assert not together.dual[:, 2].any()
    alone = [solver.solve(RBF(3.0), batch, y[:, [c]], alpha[:1], random_state=0) for c in (0, 1)]
    assert together.n_iter <= 1.5 * max(each.n_iter for each in alone)
    expected = linalg.solve(RBF(3.0)(X) + 1e-3 * np.eye(len(X)), y, assume_a="pos")
    for column in (0, 1):
        assert relative_error(together.dual[:, column], expected[:, column]) < 1e-6


def test_what_has_not_converged_says_so():
    X, y = ill_conditioned()
    with pytest.warns(
        ConvergenceWarning, match=r"after 3 iterations \(max_iter=3\).* residual of \d.*tol=1.0e-08"
    ) as all_:
        model = RNTKRidge(RBF(3.0), 1e-5, ConjugateGradients(max_iter=3, n_landmarks=0)).fit(X, y)
    assert all_[0].filename == __file__
    assert model.n_iter_ == 3 and model.residual_ > 1e-3 and np.isfinite(model.dual_coef_).all()
    # Beyond rounding no number of iterations helps: it stops, and says how far it came.
    with pytest.warns(ConvergenceWarning, match="residual of"):
        model = RNTKRidge(RBF(3.0), 1e-5, ConjugateGradients(1e-18, 10_000, 100), random_state=0).fit(X, y)
    assert model.n_iter_ < 1000 and model.residual_ < 1e-9


def test_zero_targets_and_zero_kernels():
    X, y = ill_conditioned(n=30)
    assert not RNTKRidge(RBF(), 1.0, ConjugateGradients()).fit(X, np.zeros(30)).predict(X).any()
    model = RNTKRidge(linear, 0.5, ConjugateGradients()).fit(np.zeros((30, 4)), y)
    np.testing.assert_allclose(model.dual_coef_, 2 * y, rtol=1e-7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "auto"}, r'solver must be "direct" or ConjugateGradients\(...\), not \'auto\''),
        ({"solver": None}, "solver"),
        ({"solver": "cg"}, "ConjugateGradients"),
        ({"alpha": 0.0}, 'ConjugateGradients need alpha above zero, not 0; solver="direct" interpolates'),
        ({"alpha": -1.0}, "alpha"),
        ({"memory": "1 kB"}, "n_landmarks=20 need about 12.8 kB.*memory is 1 kB"),
        ({"memory": "20 kB"}, "30 sequences with 2 targets and n_landmarks=20 need more than 23.4 kB"),
        ({"kernel": lambda A, B: -RBF()(A, B)}, "not positive semi-definite"),
    ],
)
def test_conjugate_gradients_refuse(options, words):
    X, y = ill_conditioned(n=30)
    solver = ConjugateGradients(n_landmarks=20, memory=options.pop("memory", "1GB"))
    learner = RNTKRidge(**{"kernel": RBF(), "solver": solver} | options)
    with pytest.raises(ValueError, match=words):
        learner.fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_landmarks": -1}, "n_landmarks must be a whole number of at least 0, not -1"),
        ({"n_landmarks": None}, "n_landmarks"),
        ({"tol": 0.0}, "tol must be a number between 0 and 1, not 0.0"),
        ({"tol": np.nan}, "tol"),
        ({"tol": "small"}, "tol"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, not 0"),
        ({"max_iter": 1e3}, "max_iter"),
        ({"memory": "much"}, "memory must be a number of bytes"),
    ],
)
def test_conjugate_gradients_that_are_none(options, words):
    with pytest.raises(ValueError, match=words):
        ConjugateGradients(**options)


def test_the_solver_is_a_parameter_like_others():
    learner = RNTKRidge(RBF(), solver=ConjugateGradients(n_landmarks=7))
    assert clone(learner).solver == learner.solver != ConjugateGradients()
    assert "n_landmarks=7" in repr(learner)


def test_weights_must_not_be_negative():
    X, y = ill_conditioned(n=30)
    with pytest.raises(ValueError, match="must not be negative; the smallest is -1"):
        RNTKRidge(RBF()).fit(X, y, np.linspace(-1, 1, 30))


# -- ridge classifier --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["direct", ConjugateGradients(n_landmarks=20)], ids=["direct", "conjugate"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_ridge_classifier_is_ridge_regression_on_signs(solver, classes):
    X, y = waves(13, n=60, classes=classes)
    new, labels = waves(14, n=30, classes=classes)
    words = np.array(["a", "b", "c"])
    model = RNTKRidgeClassifier(KERNEL, 0.1, solver=solver, random_state=0).fit(X, words[y])
    signs = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)
    expected = KernelRidge(alpha=0.1, kernel="precomputed").fit(KERNEL(X), signs).predict(KERNEL(new, X))
    values = model.decision_function(new)
    assert values.shape == ((30,) if classes == 2 else (30, 3))
    assert relative_error(values, expected[:, 1] if classes == 2 else expected) < 1e-6
    np.testing.assert_array_equal(model.predict(new), words[expected.argmax(axis=1)])
    np.testing.assert_array_equal(model.classes_, words[:classes])
    assert model.score(new, words[labels]) > 0.9


def test_class_weights_are_weights_of_sequences():
    X, y = waves(15, n=40)
    keep = np.concatenate([np.flatnonzero(y == 0)[:4], np.flatnonzero(y == 1)])
    X, y = [X[i] for i in keep], y[keep]
    weight = np.where(y == 0, 24 / 8, 24 / 40)
    extra = np.linspace(0.5, 1.5, 24)
    for given, expected in ((None, weight), (extra, weight * extra)):
        model = RNTKRidgeClassifier(KERNEL, 0.3, class_weight="balanced").fit(X, y, given)
        other = RNTKRidgeClassifier(KERNEL, 0.3).fit(X, y, expected)
        np.testing.assert_allclose(model.dual_coef_, other.dual_coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="one class"):
        RNTKRidgeClassifier(KERNEL).fit(X[:3], [1, 1, 1])


# -- scikit-learn's checks ---------------------------------------------------------------------------------------------

VECTORS = NTK(normalize=True, n_jobs=1, progress=False)
CHECKED = [
    NystromFeatures(VECTORS, n_landmarks=10, selection="kmeans++"),
    RNTKRidgeClassifier(VECTORS, solver=ConjugateGradients()),
    RNTKRidge(VECTORS, solver=ConjugateGradients()),
]
REFUSAL = "wants float()'s TypeError for a dict among the numbers; rntk lists all that is wrong in one SequenceError"


@parametrize_with_checks(CHECKED, expected_failed_checks=lambda learner: {"check_dtype_object": REFUSAL})
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
