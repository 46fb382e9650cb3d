"""Model files: what was saved predicts the same to the last bit, and nothing else is ever loaded."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rntk import (
    NTK,
    RNTK,
    RNTKSVC,
    ConjugateGradients,
    NystromFeatures,
    RNTKClassifier,
    RNTKGaussianProcessRegressor,
    RNTKRegressor,
    RNTKRidge,
    RNTKRidgeClassifier,
    StepFeatures,
)
from rntk.activations import leaky_relu
from rntk.io import ModelFileError, load, register, save
from rntk.io.archive import to_bytes
from rntk.io.schema import ROWS
from rntk.linear import ConvRegressor, LinearRNNRegressor
from rntk.preprocessing import ChannelScaler, Clock, CumulativeSum, Differences, Downsample, UnitNorm, ZNormalize

N = 30
RANDOM = np.random.default_rng(0)
RAGGED = [RANDOM.standard_normal((steps, 2)) for steps in RANDOM.integers(3, 9, N)]
EQUAL = RANDOM.standard_normal((N, 6))
WORDS = np.array(["a", "bb", "ccc", "d", "e"])[np.arange(N) % 5]
BITS = np.arange(N) % 2
TARGETS = RANDOM.standard_normal(N)
#: Files of the format before this one.
OLD = Path(__file__).parents[1] / "frozen" / "files"

#: Every learner, with kernels, labels and targets of every kind: (learner, sequences, labels).
MODELS = {
    "SVM, two classes": (RNTKSVC(C=0.5), RAGGED, BITS),
    "SVM, five classes": (RNTKSVC(RNTK(leaky_relu(1 / 3), readout="mean"), C=10.0), RAGGED, WORDS),
    "SVM, weights": (RNTKSVC(NTK(depth=2), class_weight={0: 1.0, 1: 2.5}), EQUAL, BITS),
    "SVM, balanced": (RNTKSVC(RBF(2.0) + DotProduct(), class_weight="balanced"), EQUAL, WORDS.astype(object)),
    "ridge": (RNTKRidge(RNTK("tanh", sigma_w=[1.2, 0.9], depth=2), alpha=0.1), RAGGED, TARGETS),
    "ridge, targets": (RNTKRidge(alpha=[0.1, 1.0]), RAGGED, np.stack([TARGETS, TARGETS**2], axis=1)),
    "process": (
        RNTKGaussianProcessRegressor(RNTK() + WhiteKernel(), normalize_y=True, random_state=3),
        RAGGED,
        TARGETS,
    ),
    "process, nngp": (
        RNTKGaussianProcessRegressor(RNTK("erf", kind="nngp"), optimizer=None, noise=0.1),
        RAGGED,
        TARGETS,
    ),
    "process, vectors": (RNTKGaussianProcessRegressor(RBF(np.ones(6)) * ConstantKernel() ** 2), EQUAL, TARGETS),
    "fast classifier": (RNTKClassifier(n_jobs=1), RAGGED, WORDS),
    "fast classifier, two": (RNTKClassifier(start=NTK()), EQUAL, BITS.astype(bool)),
    "fast regressor": (RNTKRegressor(n_members=3), EQUAL, TARGETS),
    "fast regressor, targets": (RNTKRegressor(max_length=4), EQUAL, np.stack([TARGETS, TARGETS**2], axis=1)),
    "ridge classes": (
        RNTKRidgeClassifier(NTK(), class_weight="balanced", solver=ConjugateGradients(n_landmarks=5)),
        EQUAL,
        WORDS.astype(object),
    ),
    "linear": (LinearRNNRegressor(lags=3), RAGGED, RAGGED),
    "convolution": (ConvRegressor(), EQUAL, EQUAL),
    "pipeline": (make_pipeline(ChannelScaler(), ZNormalize(), Clock(2.0), RNTKRidgeClassifier()), RAGGED, BITS),
    "pipelines": (
        make_pipeline(
            make_pipeline(UnitNorm(), Differences()), "passthrough", CumulativeSum(), Downsample(4), RNTKClassifier()
        ),
        EQUAL,
        BITS,
    ),
    "features": (make_pipeline(NystromFeatures(n_landmarks=9, random_state=0), RidgeClassifier()), RAGGED, WORDS),
    "steps": (make_pipeline(StepFeatures(n_landmarks=9, random_state=0), RidgeClassifierCV()), RAGGED, WORDS),
    "steps, target": (make_pipeline(StepFeatures(history=None, dtype="float32"), RidgeCV()), RAGGED, TARGETS),
    "features, target": (make_pipeline(NystromFeatures(dtype="float32"), Ridge()), RAGGED, TARGETS),
}


@pytest.fixture(scope="module")
def fitted():
    """Each model, fitted on first use."""
    kept = {}

    def get(name):
        if name not in kept:
            learner, X, y = MODELS[name]
            kept[name] = clone(learner).fit(X, y)
        return kept[name], MODELS[name][1]

    return get


@pytest.fixture(scope="module")
def files(fitted, tmp_path_factory):
    """Each model's file, saved on first use."""
    folder = tmp_path_factory.mktemp("models")

    def get(name):
        path = folder / f"{name}.rntk"
        if not path.exists():
            save(fitted(name)[0], path)
        return path

    return get


for_every_model = pytest.mark.parametrize("name", MODELS)


def new_sequences(X):
    rng = np.random.default_rng(1)
    if X is EQUAL:
        return rng.standard_normal((7, 6))
    return [rng.standard_normal((steps, 2)) for steps in (4, 1, 9, 20, 3, 5, 8)]


def assert_identical(a, b):
    if isinstance(a, list):
        for one, other in zip(a, b, strict=True):
            assert_identical(one, other)
        return
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


# Round trips ------------------------------------------------------------------------------------------------


@for_every_model
def test_predictions_are_identical(name, fitted, files):
    model, X = fitted(name)
    copy = load(files(name))
    assert type(copy) is type(model)
    new = new_sequences(X)
    assert_identical(copy.predict(new), model.predict(new))
    if hasattr(model, "decision_function"):
        assert_identical(copy.decision_function(new), model.decision_function(new))
        assert_identical(copy.classes_, model.classes_)
    if isinstance(model, RNTKGaussianProcessRegressor):
        for options in ({"return_std": True}, {"return_cov": True}, {"return_std": True, "include_noise": True}):
            for a, b in zip(copy.predict(new, **options), model.predict(new, **options), strict=True):
                assert_identical(a, b)
        assert copy.log_marginal_likelihood() == model.log_marginal_likelihood()


@for_every_model
def test_everything_comes_back(name, fitted, files, tmp_path):
    """Same parameters, same attributes, and the copy saves to the same bytes."""
    model, _ = fitted(name)
    copy = load(files(name))
    assert vars(copy).keys() == model.__getstate__().keys() - {"_sklearn_version"}
    assert repr(copy) == repr(model)
    for a, b in zip(getattr(copy, "members_", []), getattr(model, "members_", []), strict=True):
        assert (a.view, a.kernel, a.ridge) == (b.view, b.kernel, b.ridge)
    if isinstance(model, RNTKGaussianProcessRegressor):
        # LAPACK takes another way, and rounds differently, through a matrix in another order.
        assert copy.L_.flags.f_contiguous == model.L_.flags.f_contiguous
    save(copy, tmp_path / "again.rntk")
    assert (tmp_path / "again.rntk").read_bytes() == files(name).read_bytes()


@for_every_model
def test_a_copy_can_be_fitted_again(name, fitted, files):
    if name == "fast classifier":
        pytest.skip("the slowest search; the others argue as well")
    model, X = fitted(name)
    copy = load(files(name)).fit(X, MODELS[name][2])
    assert_identical(copy.predict(X), model.predict(X))


def test_another_process_predicts_the_same(fitted, files):
    model, X = fitted("SVM, five classes")
    code = (
        "import sys, numpy as np; from rntk import load;"
        "rng = np.random.default_rng(1);"
        "X = [rng.standard_normal((steps, 2)) for steps in (4, 1, 9, 20, 3, 5, 8)];"
        "sys.stdout.write(load(sys.argv[1]).decision_function(X).tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(files("SVM, five classes"))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == model.decision_function(new_sequences(X)).tobytes().hex()


def test_zero_weights_are_remembered(tmp_path):
    """Support vectors are counted among all sequences."""
    weight = np.where(np.arange(N) < 4, 0.0, 1.0)
    model = RNTKSVC().fit(RAGGED, BITS, weight)
    save(model, tmp_path / "m.rntk")
    copy = load(tmp_path / "m.rntk")
    assert_identical(copy.support_, model.support_)
    assert copy.support_.min() >= 4
    assert_identical(copy.decision_function(RAGGED), model.decision_function(RAGGED))


def test_members_share_their_sequences(files):
    """Eight members look through a few views at the same sequences, which are in the file once."""
    with zipfile.ZipFile(files("fast classifier")) as archive:
        names = archive.namelist()
    model = load(files("fast classifier"))
    assert len(model.members_) > 1
    assert sum("sequences" in name and name.endswith("values.npy") for name in names) == 1


def test_the_file_is_a_plain_zip_without_dates(files):
    with zipfile.ZipFile(files("ridge")) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "model.json"
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        document = json.loads(archive.read("model.json"))
    assert (document["format"], document["format_version"]) == ("rntk model", 2)
    assert document["model"]["class"] == "RNTKRidge"
    with np.load(files("ridge"), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["model.dual_coef_"], load(files("ridge")).dual_coef_)


def test_the_cache_folder_stays_at_home(tmp_path):
    model = RNTKRidge(cache=tmp_path / "grams").fit(EQUAL, TARGETS)
    save(model, tmp_path / "m.rntk")
    assert b"grams" not in (tmp_path / "m.rntk").read_bytes()
    assert load(tmp_path / "m.rntk").cache is None


def test_pipelines_keep_no_folder(tmp_path):
    model = Pipeline([("model", RNTKRidge())], memory=str(tmp_path / "steps")).fit(EQUAL, TARGETS)
    save(model, tmp_path / "m.rntk")
    assert load(tmp_path / "m.rntk").memory is None


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 5], dtype=np.int8),
        np.array([0, 2**63], dtype=np.uint64),
        np.array([0.0, 2.0]),
        np.array([False, True]),
        np.array(["Ä", "日本"], dtype="<U7"),
        np.array(["x", "y"], dtype=object),
        np.array([1, 2], dtype=">i4"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels, tmp_path):
    model = RNTKRidgeClassifier(RBF()).fit(EQUAL, labels[BITS])
    save(model, tmp_path / "m.rntk")
    copy = load(tmp_path / "m.rntk")
    np.testing.assert_array_equal(copy.classes_, labels)
    assert copy.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert copy.predict(EQUAL).tolist() == model.predict(EQUAL).tolist()


# Classes from outside the package ---------------------------------------------------------------------------


class MeanRegressor(BaseEstimator):
    def __init__(self, kernel=None, shift=0.0):
        self.kernel = kernel
        self.shift = shift

    def fit(self, X, y):
        self.mean_ = np.mean(y, keepdims=True)
        return self

    def predict(self, X):
        return np.repeat(self.mean_ + self.shift, len(X))


@pytest.fixture
def own_rows(monkeypatch):
    monkeypatch.setattr("rntk.io.schema.ROWS", dict(ROWS))
    monkeypatch.setattr("rntk.io.models.ROWS", sys.modules["rntk.io.schema"].ROWS)


@pytest.mark.usefixtures("own_rows")
def test_a_class_from_outside_joins_by_one_row(tmp_path):
    for other in (RNTK(), 3, "text", None):
        with pytest.raises(ModelFileError, match="cannot be saved"):
            save(other, tmp_path / "m.rntk")
    model = make_pipeline(ZNormalize(), MeanRegressor(RNTK(), shift=np.float32(2.0))).fit(EQUAL, TARGETS)
    with pytest.raises(ModelFileError, match="MeanRegressor"):
        save(model, tmp_path / "m.rntk")
    register(MeanRegressor, {"mean_": (np.ndarray, "one")})
    save(model, tmp_path / "m.rntk")
    copy = load(tmp_path / "m.rntk")
    assert copy[1].kernel == RNTK()
    assert_identical(copy.predict(EQUAL), model.predict(EQUAL))
    with pytest.raises(NotFittedError, match="MeanRegressor is not fitted"):
        save(MeanRegressor(), tmp_path / "m.rntk")


@pytest.mark.usefixtures("own_rows")
def test_rows_say_everything_or_nothing_is_written(tmp_path):
    register(MeanRegressor, {})
    with pytest.raises(ModelFileError, match=r"says nothing of mean_"):
        save(MeanRegressor().fit(EQUAL, TARGETS), tmp_path / "m.rntk")
    another = type("RNTKRidge", (BaseEstimator,), {})
    with pytest.raises(ValueError, match="another class named RNTKRidge"):
        register(another, {})
    assert not list(tmp_path.iterdir())


# What save refuses ------------------------------------------------------------------------------------------


def dot(X, Y):
    return np.array([[float(np.sum(x) * np.sum(y)) for y in Y] for x in X])


def square(z):
    return z * z


class OwnKernel(RNTK):
    pass


class OwnLearner(RNTKRidge):
    pass


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (RNTKRidge(dot), ["kernel", "Python function", "dot", "pickle"]),
        (RNTKRidge(RNTK(square)), ["activation", "square", "Python function"]),
        (RNTKRidge(OwnKernel()), ["OwnKernel", "RNTK"]),
        (OwnLearner(), ["OwnLearner", "register"]),
        (make_pipeline(StandardScaler(), RNTKRidge(NTK())), ["steps", "StandardScaler", "register"]),
        (make_pipeline(OwnLearner()), ["OwnLearner"]),
        (RNTKGaussianProcessRegressor(random_state=np.random.RandomState(0)), ["random_state", "set_params"]),
    ],
    ids=["a function", "an activation", "a kernel", "a learner", "a scaler", "in a pipeline", "a generator"],
)
@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
def test_what_cannot_be_described_is_refused(learner, words, tmp_path):
    X = EQUAL[:6] if "Scaler" in repr(learner) else RAGGED[:6]
    model = learner.fit(X, TARGETS[:6])
    with pytest.raises(ModelFileError) as caught:
        save(model, tmp_path / "m.rntk")
    for word in words:
        assert word in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "learner",
    [
        RNTKSVC(),
        RNTKRidge(),
        RNTKGaussianProcessRegressor(),
        RNTKClassifier(),
        NystromFeatures(),
        StepFeatures(),
        LinearRNNRegressor(),
        make_pipeline(Clock(), ChannelScaler()),
    ],
)
def test_unfitted_learners_are_refused(learner, tmp_path):
    name = "ChannelScaler" if isinstance(learner, Pipeline) else type(learner).__name__
    with pytest.raises(NotFittedError, match=f"{name} is not fitted"):
        save(learner, tmp_path / "m.rntk")
    assert not list(tmp_path.iterdir())


def test_a_fit_that_failed_is_not_saved(tmp_path):
    model = RNTKSVC("no kernel")
    with pytest.raises(ValueError, match="kernel"):
        model.fit(RAGGED, BITS)
    with pytest.raises(NotFittedError):
        save(model, tmp_path / "m.rntk")


def test_what_load_would_refuse_is_not_written(tmp_path):
    model = RNTKRidge().fit(RAGGED, TARGETS)
    model.dual_coef_ = model.dual_coef_[1:]
    with pytest.raises(ModelFileError, match=r"cannot be saved.*dual_coef_"):
        save(model, tmp_path / "m.rntk")
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(fitted, tmp_path):
    model, _ = fitted("ridge")
    for path in (tmp_path, tmp_path / "no" / "m.rntk", tmp_path / ("x" * 300), ""):
        with pytest.raises(ModelFileError):
            save(model, path)
    with pytest.raises(ModelFileError):
        save(model, 3)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_saving_is_all_or_nothing(fitted, tmp_path, monkeypatch):
    model, _ = fitted("ridge")
    path = tmp_path / "m.rntk"
    path.write_text("the old one")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(ModelFileError, match="No space left"):
                save(model, path)
        assert path.read_text() == "the old one"
        assert [each.name for each in tmp_path.iterdir()] == ["m.rntk"]
    save(model, path)
    assert type(load(path)) is RNTKRidge
    assert [each.name for each in tmp_path.iterdir()] == ["m.rntk"]


def test_a_link_stays_a_link(fitted, tmp_path):
    model, _ = fitted("ridge")
    (tmp_path / "link").symlink_to(tmp_path / "real.rntk")
    save(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert type(load(tmp_path / "real.rntk")) is RNTKRidge


# What load refuses ------------------------------------------------------------------------------------------


def take_apart(path: Path) -> tuple[dict, dict[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("model.json"))
        return document, {name[:-4]: archive.read(name) for name in archive.namelist() if name != "model.json"}


def seal(content: bytes) -> bytes:
    return content[:-71] + b"sha256:" + hashlib.sha256(content[:-71]).hexdigest().encode()


def forge(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> Path:
    """A file with the right seal and any members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.comment = b" " * 71
        for name, content in members:
            archive.writestr(name, content)
    path.write_bytes(seal(stream.getvalue()))
    return path


def put_together(path: Path, document: dict, arrays: dict[str, bytes]) -> Path:
    """A file in which the seal is right, whatever else is not."""
    members = [("model.json", json.dumps(document).encode())]
    return forge(path, members + [(f"{name}.npy", content) for name, content in arrays.items()])


def assert_refused(path, *words: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path} cannot be loaded: ")
    assert len(message) < 500
    for word in words:
        assert word in message, message


def test_forging_itself_works(files, tmp_path):
    """Otherwise the refusals below would prove nothing."""
    path = put_together(tmp_path / "m.rntk", *take_apart(files("ridge")))
    assert type(load(path)) is RNTKRidge


def test_foreign_files(tmp_path):
    path = tmp_path / "m.rntk"
    assert_refused(path, "no such file")
    assert_refused(tmp_path / ("x" * 300), "File name too long")
    assert_refused(tmp_path, "folder")
    for content, word in {
        b"": "empty",
        b"PK": "not a model file",
        b"hello, this is a text": "not a model file",
        pickle.dumps(RNTK()): "not a model file",
    }.items():
        path.write_bytes(content)
        assert_refused(path, word)
    np.savez(tmp_path / "arrays.npz", a=np.arange(3))
    assert_refused(tmp_path / "arrays.npz", "zip archive, but not a model file")
    os.mkfifo(tmp_path / "pipe")
    assert_refused(tmp_path / "pipe", "not a regular file")


def test_a_file_cut_short(files, tmp_path):
    content = files("SVM, five classes").read_bytes()
    path = tmp_path / "m.rntk"
    for size in {*range(0, len(content), 97), len(content) - 1}:
        path.write_bytes(content[:size])
        assert_refused(path)
    path.write_bytes(content[:-50])
    assert_refused(path, "cut short")
    path.write_bytes(content + b"\0")
    assert_refused(path)


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_is_found(data, files, tmp_path):
    """Wherever it is: in numbers, in names, in the dates of the zip, in the seal."""
    content = bytearray(files("SVM, two classes").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    if bytes(content) == files("SVM, two classes").read_bytes():
        return
    path = tmp_path / "m.rntk"
    path.write_bytes(content)
    assert_refused(path)


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_under_a_forged_seal(data, files, tmp_path):
    """The zip itself is damaged and the seal says otherwise: a refusal, or a model that is as good as the first."""
    content = bytearray(files("SVM, two classes").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        # The directory at the end is where zipfile is led astray.
        start = data.draw(st.sampled_from([0, max(0, len(content) - 2000)]))
        content[data.draw(st.integers(start, len(content) - 72))] = data.draw(st.integers(0, 255))
    path = tmp_path / "m.rntk"
    path.write_bytes(seal(bytes(content)))
    try:
        model = load(path)
    except ModelFileError:
        return
    assert model.predict(RAGGED).shape == (N,)


def test_a_newer_format(files, tmp_path):
    document, arrays = take_apart(files("ridge"))
    path = put_together(tmp_path / "m.rntk", document | {"format_version": 3, "rntk_version": "9.9"}, arrays)
    assert_refused(path, "9.9", "format 3", "reads format 2", "newer")
    for version in (0, "2", None, [], 10**400):
        assert_refused(put_together(path, document | {"format_version": version}, arrays), "reads format 2")
    assert_refused(put_together(path, document | {"format": "other"}, arrays), "not a model file")


@pytest.mark.parametrize("path", sorted(OLD.glob("*.rntk")), ids=lambda path: path.stem)
def test_files_from_before_say_what_to_do(path):
    assert_refused(path, "format 1", "fit the model again and save it")


def test_zip_bombs(files, tmp_path):
    document, arrays = take_apart(files("ridge"))
    described = json.dumps(document).encode()
    path = tmp_path / "m.rntk"
    members = [("model.json", described), *((f"{name}.npy", content) for name, content in arrays.items())]
    assert_refused(forge(path, members, zipfile.ZIP_DEFLATED), "compressed")
    zeros = to_bytes(np.zeros(10_000_000))
    assert_refused(forge(path, [*members, ("zeros.npy", zeros)], zipfile.ZIP_DEFLATED), "compressed")
    assert path.stat().st_size < 200_000
    # Sizes that lie: in the directory at the end, where zipfile looks.
    forge(path, members)
    content = path.read_bytes()
    entry = content.rindex(b"PK\x01\x02")
    for size in (2**31 - 1, 2**32 - 2):
        fake = content[: entry + 20] + size.to_bytes(4, "little") * 2 + content[entry + 28 :]
        path.write_bytes(seal(fake))
        assert_refused(path, "announce")
    # A header that announces more numbers than there are.
    name = document["model"]["holds"]["dual_coef_"]["array"]
    for shape in (b"(999999999999999,)", b"(0, 99999)", b"(1, 1)"):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + b", }"
        header += b" " * (117 - len(header)) + b"\n"
        fake = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 80
        assert_refused(put_together(path, document, {**arrays, name: fake}), f"{name}.npy")


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil.npy", "..\\evil.npy", "evil.py"])
def test_names_that_lead_elsewhere_lead_nowhere(name, files, tmp_path):
    """Members are read from memory by name; nothing is ever unpacked."""
    document, arrays = take_apart(files("ridge"))
    members = [("model.json", json.dumps(document).encode()), (name, to_bytes(np.zeros(1)))]
    path = forge(tmp_path / "m.rntk", members + [(f"{each}.npy", content) for each, content in arrays.items()])
    assert type(load(path)) is RNTKRidge
    assert [each.name for each in tmp_path.iterdir()] == ["m.rntk"]


def test_members_that_are_missing_or_elsewhere(files, tmp_path):
    document, arrays = take_apart(files("ridge"))
    described = ("model.json", json.dumps(document).encode())
    members = [(f"{name}.npy", content) for name, content in arrays.items()]
    assert_refused(forge(tmp_path / "m.rntk", [described, *members[1:]]), "name of an array")
    assert_refused(forge(tmp_path / "m.rntk", [members[0], described, *members[1:]]), "does not come first")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"format": NaN}',
        b"\xff",
        b"[" * 100_000,
        b"9" * 5000,
        b'{"format": "rntk model", "format_version": 2}',
        b'{"format": "rntk model", "format_version": 2, "model": []}',
        b'{"format": "rntk model", "format_version": 2, "model": {"class": "RNTKRidge"}}',
        b'{"format": "rntk model", "format_version": 2, "model": {"class": ["RNTKRidge"], "holds": {}}}',
        b'{"format": "rntk model", "format_version": 2, "model": 3.0}',
    ],
    ids=lambda content: repr(content[-40:]),
)
def test_documents_that_are_none(content, tmp_path):
    assert_refused(forge(tmp_path / "m.rntk", [("model.json", content)]))


def change(document: dict, where: str, value) -> dict:
    """A copy with one entry of the model replaced: "class", or the way to something that it holds."""
    copy = json.loads(json.dumps(document))
    place = copy["model"] if where == "class" else copy["model"]["holds"]
    *way, last = where.split(".")
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, dict):
            place = place.get("holds", place.get("kernel", place))
    place[int(last) if isinstance(place, list) else last] = value
    return copy


@pytest.mark.parametrize(
    ("name", "where", "value", "word"),
    [
        ("ridge", "class", "os.system", "os.system"),
        ("ridge", "class", ["RNTKRidge"], "class"),
        ("ridge", "class", "RNTKSVC", "alpha"),
        ("ridge", "class", "RNTK", "class"),  # a kernel is no model
        ("ridge", "evil", 1, "evil"),
        ("ridge", "cache", "/home/somebody", "cache"),
        ("ridge", "predict", {"activation": "relu"}, "predict"),
        ("ridge", "__class__", {"activation": "relu"}, "__class__"),
        ("ridge", "alpha", {"float": "1e999"}, "no value"),
        ("ridge", "alpha", {"object": "os.system"}, "no value"),
        ("ridge", "kernel_", {"kernel": ["eval", {}]}, "eval"),
        ("ridge", "kernel_", {"kernel": ["RNTK", {"activation": "__import__('os')"}]}, "activation"),
        ("ridge", "kernel_", {"kernel": ["RNTK", {"depth": 10**9}]}, "at most 10000"),
        ("ridge", "kernel_", {"activation": "relu"}, "kernel_"),
        ("ridge", "kernel_", None, "kernel_"),
        ("ridge", "n_channels_in_", 1, "channels"),
        ("ridge", "n_channels_in_", 2.0, "n_channels_in_"),
        ("ridge", "n_iter_", "many", "n_iter_"),
        ("ridge", "dual_coef_", {"array": "nowhere"}, "dual_coef_"),
        ("ridge", "dual_coef_", {"array": ["float64", [1], [1.0]]}, "dual_coef_"),
        ("ridge", "dual_coef_", [1.0], "dual_coef_"),
        ("ridge", "sequences_", {"sequences": []}, "sequences_"),
        ("ridge", "sequences_", {"array": "model.dual_coef_"}, "sequences_"),
        ("ridge classes", "classes_", {"words": ["a", "b"]}, "dual_coef_"),
        ("ridge classes", "classes_", {"words": ["a", {}]}, "classes_"),
        ("SVM, two classes", "n_training_", 5, "training"),
        ("SVM, two classes", "intercept_", None, "intercept_"),
        ("process", "noise_", "loud", "noise_"),
        ("process", "kernel_", {"kernel": ["Sum", {}]}, "k1"),
        ("fast classifier", "members_", [None], "members_"),
        ("fast classifier", "members_.0.view.name", "evil", "view"),
        ("fast classifier", "members_.0.view.block", "large", "block"),
        ("fast classifier", "members_.0.view.more", 0, "more"),
        ("fast regressor", "best_params_", [], "best_params_"),
        ("pipeline", "steps", [["a", 3]], "steps"),
        ("pipeline", "memory", "/home/somebody", "memory"),
        ("fast classifier", "members_.0.kernel", {"class": "ZNormalize", "holds": {}}, "kernel"),
    ],
)
def test_descriptions_of_no_model(name, where, value, word, files, tmp_path):
    document, arrays = take_apart(files(name))
    assert_refused(put_together(tmp_path / "m.rntk", change(document, where, value), arrays), word)


def with_array(files, name: str, key: str, edit) -> tuple[dict, dict[str, bytes]]:
    document, arrays = take_apart(files(name))
    key = f"model.{key}"
    found = np.load(io.BytesIO(arrays[key]), allow_pickle=False)
    return document, {**arrays, key: to_bytes(edit(found))}


def set_first(value):
    def edit(array):
        array.flat[0] = value
        return array

    return edit


@pytest.mark.parametrize(
    ("name", "key", "edit", "word"),
    [
        ("ridge", "dual_coef_", set_first(np.nan), "finite"),
        ("ridge", "dual_coef_", lambda a: a[:-1], "sizes"),
        ("ridge", "sequences_.values", set_first(np.inf), "finite"),
        ("ridge", "sequences_.values", lambda a: a[:, :1], "sizes"),
        ("ridge", "sequences_.values", lambda a: a.astype("U"), "values"),
        ("ridge", "sequences_.offsets", set_first(-1), "offsets"),
        ("ridge", "sequences_.offsets", lambda a: a[::-1], "offsets"),
        ("ridge", "sequences_.offsets", lambda a: a[:0], "offsets"),
        # libsvm would follow these out of its memory.
        ("SVM, five classes", "n_support_", set_first(2**31 - 1), "n_support"),
        ("SVM, five classes", "n_support_", set_first(-5), "n_support"),
        ("SVM, five classes", "n_support_", lambda a: a[:-1], "sizes"),
        ("SVM, five classes", "dual_coef_", lambda a: a[:-1], "sizes"),
        ("SVM, five classes", "intercept_", lambda a: a[:-1], "sizes"),
        ("SVM, two classes", "classes_", lambda a: a[:1], "sizes"),
        ("process", "L_", lambda a: a[:-1], "sizes"),
        ("fast regressor", "members_.0.dual", lambda a: a[:, :0], "sizes"),
        ("ridge", "dual_coef_", set_first(np.inf), "finite"),
    ],
)
def test_arrays_of_no_model(name, key, edit, word, files, tmp_path):
    assert_refused(put_together(tmp_path / "m.rntk", *with_array(files, name, key, edit)), word)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_that_hold_objects_are_not_read(files, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    stream = io.BytesIO()
    np.save(stream, np.array([Trap()], dtype=object), allow_pickle=True)
    document, arrays = take_apart(files("ridge"))
    for content in (stream.getvalue(), pickle.dumps(Trap()), b"", b"\x93NUMPY\x01\x00", to_bytes(np.zeros(2)) + b"\0"):
        assert_refused(
            put_together(tmp_path / "m.rntk", document, {**arrays, "model.dual_coef_": content}), "dual_coef_.npy"
        )
    assert not (tmp_path / "sprung").exists()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["RNTK", "RBF", "model.dual_coef_", "model.sequences_.values", "SVC", "float32", "tanh"]),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["float", "tuple", "array", "scalar", "dict", "sequences", "kernel", "class", "holds"]),
            inside,
        )
    ),
    max_leaves=4,
)


def places(found, way=()):
    """Every entry of a document, as the keys that lead to it."""
    if way:
        yield way
    inside = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inside:
        yield from places(value, (*way, key))


@given(data=st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_document_does_worse_than_a_refusal(data, files, tmp_path):
    """Any entry replaced by anything: a refusal, or a model that predicts, or stumbles over its own contradictions."""
    name = data.draw(
        st.sampled_from(["SVM, two classes", "SVM, balanced", "process, vectors", "fast regressor", "pipeline"])
    )
    document, arrays = take_apart(files(name))
    for _ in range(data.draw(st.integers(1, 2))):
        everywhere = list(places(document["model"]))
        *way, last = data.draw(st.sampled_from(everywhere))
        place = document["model"]
        for step in way:
            place = place[step]
        if data.draw(st.booleans()) or isinstance(place, list):
            place[last] = data.draw(json_values)
        else:
            del place[last]
    path = put_together(tmp_path / "m.rntk", document, arrays)
    try:
        model = load(path)
    except ModelFileError:
        return
    assert type(model) in {row.cls for row in ROWS.values()}
    with contextlib.suppress(ValueError, TypeError, AttributeError, LookupError, ArithmeticError, Warning):
        model.predict(MODELS[name][1][:3])


def test_searches_whose_members_see_a_clock_come_back(tmp_path):
    """What such a member keeps has one channel more than the data."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((24, 20))
    y = np.arange(24) % 2
    X[np.arange(24), np.where(y == 1, 4, 15)] += 3.0  # only the time tells the classes apart
    model = RNTKClassifier(n_jobs=1).fit(X, y)
    assert any(member.view.clock > 0 for member in model.members_)
    save(model, tmp_path / "clock.rntk")
    assert_identical(load(tmp_path / "clock.rntk").decision_function(X), model.decision_function(X))
