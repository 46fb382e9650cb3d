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
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.pipeline import make_pipeline

from rntk import (
    NTK,
    RNTK,
    RNTKSVC,
    RNTKClassifier,
    RNTKGaussianProcessRegressor,
    RNTKRegressor,
    RNTKRidge,
)
from rntk.activations import HermiteActivation, leaky_relu, tanh
from rntk.io.models import ModelFileError, load, save
from rntk.io.models.arrays import Shelf, digest_of, to_bytes
from rntk.io.models.errors import DefectError
from rntk.io.models.fields import Fields
from rntk.io.models.kernels import describe_kernel, restore_kernel
from rntk.io.models.labels import describe_labels, restore_labels
from rntk.io.models.plain import decode, encode
from rntk.learners.search.polynomial import Polynomial

N = 30
RANDOM = np.random.default_rng(0)
RAGGED = [RANDOM.standard_normal((steps, 2)) for steps in RANDOM.integers(3, 9, N)]
EQUAL = RANDOM.standard_normal((N, 6))
WORDS = np.array(["a", "bb", "ccc", "d", "e"])[np.arange(N) % 5]
BITS = np.arange(N) % 2
TARGETS = RANDOM.standard_normal(N)

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
    "process, vectors": (RNTKGaussianProcessRegressor(RBF(np.ones(6)) * ConstantKernel() ** 2), EQUAL, TARGETS),
    "fast classifier": (RNTKClassifier(n_jobs=1), RAGGED, WORDS),
    "fast classifier, two": (RNTKClassifier(n_jobs=1, start=NTK()), EQUAL, BITS.astype(bool)),
    "fast regressor": (RNTKRegressor(n_members=3), EQUAL, TARGETS),
    "fast regressor, targets": (RNTKRegressor(max_length=4), EQUAL, np.stack([TARGETS, TARGETS**2], axis=1)),
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
        "import sys, numpy as np; from rntk.io.models import load;"
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


def test_the_file_is_a_plain_zip_without_dates(files):
    with zipfile.ZipFile(files("ridge")) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "model.json"
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        document = json.loads(archive.read("model.json"))
        for name, digest in document["arrays"].items():
            content = archive.read(f"{name}.npy")
            assert hashlib.sha256(content).hexdigest() == digest
            np.load(io.BytesIO(content), allow_pickle=False)
    assert (document["format"], document["format_version"]) == ("rntk model", 1)
    assert document["learner"]["class"] == "RNTKRidge"


def test_the_cache_folder_stays_at_home(tmp_path):
    model = RNTKRegressor(cache=tmp_path / "grams").fit(EQUAL, TARGETS)
    save(model, tmp_path / "m.rntk")
    assert b"grams" not in (tmp_path / "m.rntk").read_bytes()
    assert load(tmp_path / "m.rntk").cache is None


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 5], dtype=np.int8),
        np.array([0.5, 2.0]),
        np.array([False, True]),
        np.array(["Ä", "日本"], dtype="<U7"),
        np.array(["", "x"], dtype=object),
        np.array([1, 2], dtype=">i4"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels):
    shelf = Shelf()
    described = json.loads(json.dumps(describe_labels(labels, shelf)))
    restored = restore_labels(Fields.of(described, "classes", shelf.arrays))
    np.testing.assert_array_equal(restored, labels)
    assert restored.dtype == labels.dtype.newbyteorder("=")


KERNELS = [
    RNTK(),
    RNTK("leaky_relu(0.1)", sigma_w=[1.0, 2.0], sigma_b=np.array([0.1, 0.2]), depth=2, sigma_w_bounds="fixed"),
    RNTK(leaky_relu(0.1 + 1e-16), normalize=True, bidirectional=True, tied=False, dtype="float32", n_jobs=2),
    RNTK(tanh, parameterization="standard", engine="reference", progress=False, sigma_u=np.float64(0.3)),
    NTK("erf", sigma_w=1.3, depth=np.int64(3)),
    Polynomial(degree=3, offset=0.1, cosine=True),
    RBF(1 / 3, "fixed"),
    RBF(np.array([1.0, 2.0, 3.0]), np.array([(0.1, 1.0)] * 3)),
    Matern(0.7, nu=np.inf),
    RationalQuadratic(alpha=2.0),
    ConstantKernel(0.1) * RNTK() + WhiteKernel(1e-5) + DotProduct(2.0, (1e-3, np.inf)) ** 2,
    (RBF() + NTK()) ** 1.5,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_come_back_equal(kernel):
    copy = restore_kernel(Fields.of(json.loads(json.dumps(describe_kernel(kernel))), "kernel", {}))
    assert type(copy) is type(kernel)
    assert describe_kernel(copy) == describe_kernel(kernel)
    for name, value in kernel.get_params().items():
        other = copy.get_params()[name]
        if isinstance(value, int | float | str | tuple | np.ndarray):
            assert type(other) is type(value), name
            np.testing.assert_array_equal(other, value)
    np.testing.assert_array_equal(copy.theta, kernel.theta)


def test_an_activation_keeps_every_digit():
    kernel = RNTK(leaky_relu(0.1234567890123456))
    copy = restore_kernel(Fields.of(describe_kernel(kernel), "kernel", {}))
    assert copy.activation == kernel.activation  # its name has six digits
    copies = pickle.loads(pickle.dumps(RNTK(tanh)))  # a tanh, but not the object `tanh`
    assert describe_kernel(copies)["parameters"]["activation"] == {"activation": "tanh"}


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.floats(width=32, allow_nan=False).map(np.float32)
    | st.integers(0, 255).map(np.uint8)
    | st.lists(st.floats(allow_nan=False)).map(np.array),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.lists(inside, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers(-9, 9), inside, max_size=3)
    ),
    max_leaves=5,
)


@given(plain_values)
@settings(max_examples=200, deadline=None)
def test_parameter_values_survive_json(value):
    try:
        copy = decode(json.loads(json.dumps(encode(value, "it"), allow_nan=False)), "it")
    except DefectError as error:
        assert "nested" in str(error)
        return
    assert repr(copy) == repr(value)


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
        (RNTKRidge(dot), ["Python function", "dot", "pickle"]),
        (RNTKRidge(RNTK(square)), ["activation", "square", "Python function"]),
        (RNTKRidge(RNTK(HermiteActivation("tanh", square))), ["activation", "Python function"]),
        (RNTKRidge(RNTK(HermiteActivation("tanh", np.tanh))), ["activation", "Python function"]),  # no derivative
        (RNTKRidge(RNTK(np.tanh)), ["activation", "Python function"]),
        (RNTKRidge(OwnKernel()), ["OwnKernel", "RNTK"]),
        (RNTKRidge(RNTK() + ExpSineSquared()), ["ExpSineSquared"]),
        (OwnLearner(), ["OwnLearner", "RNTKRidge"]),
        (make_pipeline(RNTKRidge()), ["Pipeline"]),
        (RNTKGaussianProcessRegressor(random_state=np.random.RandomState(0)), ["random_state", "set_params"]),
    ],
    ids=lambda value: None if isinstance(value, list) else repr(value)[:40],
)
@pytest.mark.filterwarnings("ignore::rntk.HermiteAccuracyWarning")
def test_what_cannot_be_described_is_refused(learner, words, tmp_path):
    X = EQUAL[:6] if "ExpSine" in repr(learner) else RAGGED[:6]
    model = learner.fit(X, TARGETS[:6])
    with pytest.raises(ModelFileError) as caught:
        save(model, tmp_path / "m.rntk")
    for word in words:
        assert word in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "learner", [RNTKSVC(), RNTKRidge(), RNTKGaussianProcessRegressor(), RNTKClassifier(), RNTKRegressor()]
)
def test_unfitted_learners_are_refused(learner, tmp_path):
    with pytest.raises(NotFittedError, match=f"{type(learner).__name__} is not fitted"):
        save(learner, tmp_path / "m.rntk")
    with pytest.raises(ValueError, match="one class"):
        clone(RNTKSVC()).fit(RAGGED, np.zeros(N))
    assert not list(tmp_path.iterdir())


def test_a_fit_that_failed_is_not_saved(tmp_path):
    model = RNTKSVC("no kernel")
    with pytest.raises(ValueError, match="kernel"):
        model.fit(RAGGED, BITS)
    with pytest.raises(NotFittedError):
        save(model, tmp_path / "m.rntk")


def test_what_load_would_refuse_is_not_written(tmp_path):
    model = RNTKGaussianProcessRegressor(optimizer=None).fit(RAGGED, TARGETS)
    model.noise_ = -1.0
    with pytest.raises(ModelFileError, match=r"cannot be saved.*noise_"):
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
        return document, {name: archive.read(f"{name}.npy") for name in document["arrays"]}


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
    """A file in which seal and digests are right, whatever else is not."""
    document = {**document, "arrays": {name: digest_of(content) for name, content in arrays.items()}}
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
    path = put_together(tmp_path / "m.rntk", document | {"format_version": 2, "rntk_version": "9.9"}, arrays)
    assert_refused(path, "9.9", "format 2", "up to 1", "newer")
    for version in (0, -1, "1", 1.0, True, None):
        assert_refused(put_together(path, document | {"format_version": version}, arrays), "format version")
    assert_refused(put_together(path, document | {"format": "other"}, arrays), "not a model file")


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
    name = document["learner"]["fitted"]["dual_coef_"]
    for shape in (b"(999999999999999,)", b"(0, 99999)", b"(1, 1)"):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + b", }"
        header += b" " * (117 - len(header)) + b"\n"
        fake = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 80
        assert_refused(put_together(path, document, {**arrays, name: fake}), "dual.npy")


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil.npy", "a/b.npy", "..\\evil.npy", "EVIL.npy", "evil.py"])
def test_names_that_lead_elsewhere(name, files, tmp_path):
    document, arrays = take_apart(files("ridge"))
    members = [("model.json", json.dumps(document).encode())]
    members += [(f"{each}.npy", content) for each, content in arrays.items()]
    assert_refused(forge(tmp_path / "m.rntk", [*members, (name, b"")]), "member")
    if name.endswith(".npy"):
        arrays = {**arrays, name[:-4]: to_bytes(np.zeros(1))}
        assert_refused(put_together(tmp_path / "m.rntk", document, arrays), "member")
    assert [each.name for each in tmp_path.iterdir()] == ["m.rntk"]


def test_members_that_are_not_listed(files, tmp_path):
    document, arrays = take_apart(files("ridge"))
    described = ("model.json", json.dumps(document).encode())
    members = [(f"{name}.npy", content) for name, content in arrays.items()]
    path = tmp_path / "m.rntk"
    assert_refused(forge(path, [described, *members[1:]]), "members")
    assert_refused(forge(path, [described, *members, ("more.npy", to_bytes(np.zeros(1)))]), "members")
    with pytest.warns(UserWarning, match="Duplicate name"):
        forge(path, [described, *members, members[0]])
    assert_refused(path, "members")
    assert_refused(forge(path, [members[0], described, *members[1:]]), "does not come first")
    swapped = [described, (members[0][0], to_bytes(np.zeros(3))), *members[1:]]
    assert_refused(forge(path, swapped), "SHA-256")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"format": NaN}',
        b'{"format": "rntk model", "format": "rntk model"}',
        b"\xff",
        b"[" * 100_000,
        b"9" * 5000,
        b'{"format": "rntk model", "format_version": 1}',
        b'{"format": "rntk model", "format_version": 1, "arrays": {}}',
        b'{"format": "rntk model", "format_version": 1, "arrays": {}, "learner": []}',
    ],
    ids=lambda content: repr(content[:20]),
)
def test_documents_that_are_none(content, tmp_path):
    assert_refused(forge(tmp_path / "m.rntk", [("model.json", content)]))


def change(document: dict, where: str, value) -> dict:
    """A copy with one entry replaced."""
    copy = json.loads(json.dumps(document))
    place = copy["learner"]
    *way, last = where.split(".")
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    place[int(last) if isinstance(place, list) else last] = value
    return copy


@pytest.mark.parametrize(
    ("name", "where", "value", "word"),
    [
        ("ridge", "class", "os.system", "os.system"),
        ("ridge", "class", "Pipeline", "one of"),
        ("ridge", "class", ["RNTKRidge"], "class"),
        ("ridge", "class", "RNTKSVC", "alpha"),
        ("ridge", "parameters.evil", 1, "evil"),
        ("ridge", "parameters.alpha", {"float": "1e999"}, "no value"),
        ("ridge", "parameters.alpha", {"object": "os.system"}, "no value"),
        ("ridge", "fitted.kernel_.kernel", "eval", "eval"),
        ("ridge", "fitted.kernel_.parameters.activation", "__import__('os')", "activation"),
        ("ridge", "fitted.kernel_.parameters.activation", {"activation": "os.system"}, "activation"),
        ("ridge", "fitted.kernel_.parameters.sigma_w", -1, "sigma_w"),
        ("ridge", "fitted.kernel_.parameters.sigma_w", [1.0, 2.0, 3.0], "sigma_w"),
        ("ridge", "fitted.kernel_.parameters.sigma_w", {"float": "nan"}, "sigma_w"),
        ("ridge", "fitted.kernel_.parameters.depth", 10**9, "depth"),
        ("ridge", "fitted.kernel_.parameters.dtype", "object", "dtype"),
        ("ridge", "fitted.kernel_.parameters.engine", "fast", "engine"),
        ("ridge", "fitted.kernel_.parameters.n_jobs", 0, "n_jobs"),
        ("ridge", "fitted.kernel_.parameters.readout", "sequence", "readout"),
        ("ridge", "fitted.kernel_.parameters.sigma_w_bounds", "wide", "can't be used"),
        ("ridge", "fitted.n_channels_in_", 1, "shape"),
        ("ridge", "fitted.n_channels_in_", True, "n_channels_in_"),
        ("ridge", "fitted.dual_coef_", "nowhere", "dual_coef_"),
        ("ridge", "fitted.several_targets", True, "shape"),
        ("SVM, five classes", "fitted.classes_.words", ["b", "a", "c", "d", "e"], "ascending"),
        ("SVM, five classes", "fitted.classes_.words", ["a", "b", "c", "d"], "shape"),
        ("SVM, five classes", "fitted.classes_.words", ["a", "b", "c", "d", "\ud800"], "text"),
        ("SVM, five classes", "fitted.classes_.width", 10**9, "width"),
        ("SVM, balanced", "fitted.n_features_in_", None, "n_features_in_"),
        ("process", "fitted.noise_", -1.0, "noise_"),
        ("process", "fitted.noise_", 10**400, "noise_"),
        ("process", "fitted.kernel_.parts", [], "parts"),
        ("process, vectors", "fitted.kernel_.parts.0.parameters.length_scale", [1.0] * 5, "length scales"),
        ("process, vectors", "fitted.kernel_.parts.0.parameters.length_scale", 0.0, "length_scale"),
        ("process, vectors", "fitted.kernel_.parts.1.exponent", "2", "exponent"),
        ("process, vectors", "fitted.kernel_.parts.1.exponent", [None, []], "exponent"),
        ("fast classifier", "fitted.members_", [], "members_"),
        ("fast classifier", "fitted.members_.0.view.name", "evil", "view"),
        ("fast classifier", "fitted.members_.0.view.block", 0, "block"),
        ("fast classifier", "fitted.members_.0.view.clock", -1.0, "clock"),
        ("fast classifier", "fitted.members_.0.view.more", 0, "no view"),
        ("fast classifier", "fitted.members_.0.ridge", -1.0, "ridge"),
        ("fast classifier", "fitted.best_index_", 10**6, "best_index_"),
        ("fast regressor", "fitted.best_params_", [], "best_params_"),
    ],
)
def test_descriptions_of_no_model(name, where, value, word, files, tmp_path):
    document, arrays = take_apart(files(name))
    assert_refused(put_together(tmp_path / "m.rntk", change(document, where, value), arrays), word)


def test_a_kernel_nested_without_end(files, tmp_path):
    document, arrays = take_apart(files("ridge"))
    kernel = document["learner"]["fitted"]["kernel_"]
    for _ in range(150):
        kernel = {"kernel": "Exponentiation", "parts": [kernel], "exponent": 1}
    path = put_together(tmp_path / "m.rntk", change(document, "fitted.kernel_", kernel), arrays)
    assert_refused(path, "deep")


def with_array(files, name: str, key: str, edit) -> tuple[dict, dict[str, bytes]]:
    document, arrays = take_apart(files(name))
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
        ("ridge", "dual", set_first(np.nan), "not finite"),
        ("ridge", "dual", lambda a: a[:-1], "shape"),
        ("ridge", "dual", lambda a: a[:, None], "shape"),
        ("ridge", "dual", lambda a: a.astype(np.float32), "float32"),
        ("ridge", "sequences-values", set_first(np.inf), "finite"),
        ("ridge", "sequences-values", lambda a: a[:, :1], "shape"),
        ("ridge", "sequences-offsets", set_first(-1), "offsets"),
        ("ridge", "sequences-offsets", lambda a: a[::-1], "offsets"),
        ("ridge", "sequences-offsets", lambda a: a[:0], "offsets"),
        ("SVM, five classes", "n-support", set_first(2**31 - 1), "n_support"),
        ("SVM, five classes", "n-support", set_first(-5), "n_support"),
        ("SVM, five classes", "n-support", lambda a: a[:-1], "shape"),
        ("SVM, five classes", "dual", lambda a: a[:-1], "shape"),
        ("SVM, five classes", "intercept", lambda a: a[:-1], "shape"),
        ("SVM, two classes", "classes", lambda a: a[::-1], "ascending"),
        ("SVM, two classes", "classes", lambda a: a[:1], "classes"),
        ("process", "cholesky", set_first(0.0), "Cholesky"),
        ("process", "cholesky", lambda a: a[:-1], "shape"),
        ("fast regressor", "member-0-dual", lambda a: a[:, :0], "shape"),
        ("fast regressor", "scale", set_first(np.inf), "not finite"),
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
        assert_refused(put_together(tmp_path / "m.rntk", document, {**arrays, "dual": content}), "dual.npy")
    assert not (tmp_path / "sprung").exists()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["RNTK", "RBF", "dual", "sequences-values", "float32", "reference", "tanh", "mean"]),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["float", "tuple", "array", "scalar", "dtype", "pairs", "settings", "kernel", "x"]), inside
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
    """Any entry replaced by anything: a refusal, or a model that predicts or says why it can't."""
    name = data.draw(st.sampled_from(["SVM, two classes", "SVM, balanced", "process, vectors", "fast regressor"]))
    document, arrays = take_apart(files(name))
    for _ in range(data.draw(st.integers(1, 2))):
        everywhere = list(places(document["learner"]))
        *way, last = data.draw(st.sampled_from(everywhere))
        place = document["learner"]
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
    with contextlib.suppress(ValueError, ArithmeticError, Warning):
        assert len(model.predict(MODELS[name][1][:3])) == 3


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
