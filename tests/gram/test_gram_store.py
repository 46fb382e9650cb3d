"""Gram matrices of any size: three places to keep them, going on after every kind of end, and refusals."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator, cg
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from typer.testing import CliRunner

import rntk.gram
from helpers import killed_runs
from helpers.refusals import assert_one_line_refusal
from helpers.tolerances import TOLERANCE, relative_error
from rntk import NTK, RNTK, KernelOverflowError, SequenceError, as_batch
from rntk.cli import app
from rntk.gram import DamagedTileError, GramStoreError, StoreFullError, compute
from rntk.gram.folder import INDEX, StoreFolder, read_document
from rntk.gram.layout import Layout, make_layout, working_bytes
from rntk.gram.stores import MappedStore
from rntk.runtime import parse_bytes

try:
    import zarr
except ImportError:
    zarr = None

needs_zarr = pytest.mark.skipif(zarr is None, reason='.zarr stores need zarr: pip install "rntk[distributed]"')
TARGETS = [None, "K.gram", pytest.param("K.zarr", marks=needs_zarr)]
ON_DISK = TARGETS[1:]


def ragged(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(3, 9), 2)) for _ in range(count)]


class Counting:
    """A linear kernel of vectors that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, A, B=None):
        self.calls += 1
        return A @ (A if B is None else B).T

    def get_params(self, deep=True):
        return {}


def place(tmp_path: Path, target: str | None) -> Path | None:
    return None if target is None else tmp_path / target


# -- the same matrix everywhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_target_holds_the_matrix_of_the_kernel(tmp_path, target, dtype):
    X, kernel = ragged(23), RNTK(sigma_h=0.5, sigma_b=0.2)
    K = compute(kernel, X, out=place(tmp_path, target), dtype=dtype, block=7)
    whole = RNTK(sigma_h=0.5, sigma_b=0.2, dtype=dtype)(X)
    assert (K.shape, K.dtype, K.complete, K.symmetric) == ((23, 23), np.dtype(dtype), True, True)
    assert relative_error(K.to_array(), whole) < TOLERANCE[np.dtype(dtype)]
    # Bit for bit what the kernel says of each pair of blocks, wherever it is kept.
    blocks = [X[a : a + 7] for a in range(0, 23, 7)]
    cast = RNTK(sigma_h=0.5, sigma_b=0.2, dtype=dtype)
    for i, j in K.tiles:
        assert i <= j
        np.testing.assert_array_equal(K.tile(i, j), cast(blocks[i]) if i == j else cast(blocks[i], blocks[j]))
        np.testing.assert_array_equal(K.tile(j, i), K.tile(i, j).T)
    assert len(K.tiles) == 10
    assert kernel.dtype == "float64"  # the caller's kernel stays as it is


@pytest.mark.parametrize("target", TARGETS)
def test_two_batches(tmp_path, target):
    X, Y = ragged(11), ragged(17, seed=1)
    K = compute(RNTK(), X, Y, out=place(tmp_path, target), block=6)
    assert (K.shape, K.symmetric, len(K.tiles)) == ((11, 17), False, 6)
    assert relative_error(K.to_array(), RNTK()(X, Y)) < 1e-12
    v = np.random.default_rng(2).standard_normal((17, 3))
    assert relative_error(K @ v, RNTK()(X, Y) @ v) < 1e-12


def test_normalised_diagonals_and_the_other_kernel():
    X = ragged(10)
    K = compute(RNTK(normalize=True), X, block=4)
    assert (np.diag(K.to_array()) == 1).all()
    K = compute(RNTK(), X, kind="nngp", block=4)
    assert relative_error(K.to_array(), RNTK().nngp(X)) < 1e-12


def test_kernels_of_others_get_sequences_in_their_form():
    X = np.random.default_rng(0).standard_normal((12, 5))
    kernel = RBF(2.0) + WhiteKernel(0.1)
    K = compute(kernel, X, block=5)
    assert relative_error(K.to_array(), kernel(X)) < 1e-12
    # A sum of kernels with a dtype inside.
    K = compute(RNTK() + RNTK(sigma_w=1.0), X, block=5, dtype="float32", n_jobs=1)
    assert K.dtype == np.float32
    assert relative_error(K.to_array(), RNTK()(X) + RNTK(sigma_w=1.0)(X)) < 2e-5
    # Vectors, however they were given; functions get arrays where lengths are equal, else lists.
    assert relative_error(compute(kernel, list(X), block=5).to_array(), kernel(X)) < 1e-12
    seen = []

    def count_pairs(A, B):
        seen.append((type(A), type(B)))
        return np.ones((len(A), len(B)))

    compute(count_pairs, [*X[:5], np.ones(4), np.ones(3)], block=5)
    assert seen == [(np.ndarray, np.ndarray), (list, list), (np.ndarray, list)]
    with pytest.raises(ValueError, match="RBF compares vectors of one length"):
        compute(RBF(), ragged(3))
    # Several channels in a row are a vector, and no sequence.
    X = np.random.default_rng(0).standard_normal((6, 4, 3))
    with pytest.raises(ValueError, match="mixes kernels of sequences and of vectors"):
        compute(RNTK() + RBF(), X)
    kernel = NTK() * RBF() + ConstantKernel(0.5)
    assert relative_error(compute(kernel, X).to_array(), kernel(X.reshape(6, -1))) < 1e-12
    assert relative_error(compute(RNTK() + ConstantKernel(0.5), X).to_array(), RNTK()(X) + 0.5) < 1e-12


def test_functions_may_return_the_same_memory_again(tmp_path):
    X, buffer = np.random.default_rng(0).standard_normal((12, 3)), np.empty((4, 4))

    def kernel(A, B):
        return np.matmul(A, B.T, out=buffer[: len(A), : len(B)])

    for K in (compute(kernel, X, block=4), compute(kernel, X, block=4, out=tmp_path / "K.gram")):
        np.testing.assert_allclose(K.to_array(), X @ X.T, rtol=1e-13)
    np.testing.assert_allclose(rntk.gram.stream(kernel, X, block=4).to_array(), X @ X.T, rtol=1e-13)


@pytest.mark.parametrize("memory", ["1MB", "45kB"])
def test_streamed_tiles_are_computed_when_they_are_used(memory):
    X, kernel = np.random.default_rng(0).standard_normal((60, 4)), Counting()
    K = rntk.gram.stream(kernel, X, block=20, memory=memory)
    kept = memory == "1MB"
    assert repr(K) == f"GramMatrix(60 x 60, float64, computed when read{', then kept' if kept else ''})"
    assert kernel.calls == 0 and K.complete and K.path is None
    v = np.random.default_rng(1).standard_normal((60, 2))
    for use in (1, 2):
        assert relative_error(K @ v, X @ X.T @ v) < 1e-14
        assert kernel.calls == (6 if kept else 6 * use)
    np.testing.assert_array_equal(K.to_array(), compute(kernel, X, block=20).to_array())
    K.verify()


def test_a_stream_is_a_linear_operator():
    X = ragged(40)
    K = rntk.gram.stream(RNTK(sigma_b=0.3), X, block=15)
    found, _ = cg(aslinearoperator(K) + 0.5 * aslinearoperator(np.eye(40)), np.ones(40), rtol=1e-12)
    expected = np.linalg.solve(RNTK(sigma_b=0.3)(X) + 0.5 * np.eye(40), np.ones(40))
    assert relative_error(found, expected) < 1e-9
    K = rntk.gram.stream(RNTK(), X, ragged(7, seed=1), kind="nngp", dtype="float32")
    assert (K.shape, K.symmetric, K.dtype) == ((40, 7), False, np.float32)
    assert relative_error(K.to_array(), RNTK().nngp(X, ragged(7, seed=1))) < 1e-5


# -- use without the whole in memory ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    X = np.random.default_rng(0).standard_normal((29, 4))
    path = tmp_path_factory.mktemp("matrix") / "K.gram"
    compute(Counting(), X, out=path, block=8)
    return path, X @ X.T


PARTS = [
    slice(None),
    slice(3, 21),
    slice(None, None, -3),
    slice(-5, None),
    slice(9, 9),
    [7, 0, 7, 28, -1],
    np.arange(29) % 4 == 1,
    np.array([], dtype=int),
]


@pytest.mark.parametrize("rows", PARTS, ids=range(len(PARTS)))
def test_any_part_can_be_read(stored, rows):
    path, K = stored
    matrix = rntk.gram.open(path)
    assert not (K - K.T).any()
    for columns in PARTS:
        np.testing.assert_allclose(matrix.read(rows, columns), K[rows][:, columns], rtol=0, atol=1e-13)
    np.testing.assert_allclose(matrix.read(columns=rows), K[:, rows], rtol=0, atol=1e-13)


def test_products_stream_over_tiles(stored):
    path, K = stored
    matrix, rng = rntk.gram.open(path), np.random.default_rng(1)
    for shape in ((29,), (29, 5)):
        v = rng.standard_normal(shape)
        np.testing.assert_allclose(matrix @ v, K @ v, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(matrix.matvec(v), matrix @ v)
    assert (matrix @ np.arange(29)).dtype == np.float64
    for wrong in (np.ones(28), np.ones((29, 2, 2)), 1.0, ["a"] * 29):
        with pytest.raises(ValueError, match="v must be"):
            matrix @ wrong


def test_what_is_read_is_read_only_and_travels(stored):
    path, K = stored
    matrix = pickle.loads(pickle.dumps(rntk.gram.open(path)))
    np.testing.assert_allclose(matrix.to_array(), K, rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="read-only"):
        matrix.tile(0, 0)[0, 0] = 1
    memory = compute(Counting(), np.ones((3, 2)))
    with pytest.raises(ValueError, match="read-only"):
        memory.tile(0, 0)[0, 0] = 1
    assert "29 x 29" in repr(matrix) and "in memory" in repr(memory)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda K: K.tile(4, 0), IndexError),
        (lambda K: K.tile(-1, 0), IndexError),
        (lambda K: K.read([29]), IndexError),
        (lambda K: K.read([-30]), IndexError),
        (lambda K: K.read(3), TypeError),
        (lambda K: K.read([0.5]), TypeError),
        (lambda K: K.read(np.ones(3, dtype=bool)), TypeError),
    ],
)
def test_parts_that_are_not_there(stored, call, error):
    with pytest.raises(error):
        call(rntk.gram.open(stored[0]))


@pytest.mark.parametrize(("shape", "block", "symmetric"), [((7, 7), 3, True), ((9, 9), 3, True), ((7, 5), 2, False)])
def test_tiles_lie_side_by_side_and_cover_everything(shape, block, symmetric):
    layout = Layout(shape, block, symmetric)
    tiles = sorted(layout)
    assert [layout.slot(tile) for tile in tiles] == list(range(len(layout)))
    starts = np.cumsum([0, *(layout.numbers(tile) for tile in tiles)])
    assert [layout.start(tile) for tile in tiles] == starts[:-1].tolist()
    assert layout.numbers() == starts[-1]
    covered = np.zeros(shape, dtype=int)
    for i, j in tiles:
        covered[layout.rows(i), layout.columns(j)] += 1
    assert covered[np.triu_indices(*shape[:1], m=shape[1])].min() == covered.max() == 1


# -- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")
@pytest.mark.parametrize("target", ON_DISK)
def test_twenty_kills_leave_a_store_that_goes_on(tmp_path, target):
    log, store = tmp_path / "log", tmp_path / target
    done = subprocess.run(
        [sys.executable, killed_runs.__file__, str(store), "20"],
        env={**os.environ, "RNTK_TEST_LOG": str(log)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["loaded"] == []  # `import rntk.gram` is light
    # The undisturbed run, in this process.
    os.environ["RNTK_TEST_LOG"] = str(log)
    try:
        whole = compute(killed_runs.slow_kernel, killed_runs.sequences(), block=killed_runs.BLOCK)
    finally:
        del os.environ["RNTK_TEST_LOG"]
    assert report["digest"] == hashlib.sha256(whole.to_array().tobytes()).hexdigest()
    layout = Layout((killed_runs.SEQUENCES,) * 2, killed_runs.BLOCK, True)
    complete = [set(slots) for slots in report["before"]]
    computed = [{layout.slot(tile) for tile in tiles} for tiles in report["computed"]]
    for done, now in zip(complete, computed, strict=True):
        assert not done & now  # nothing is computed twice
    for earlier, later, now in zip(complete, complete[1:], computed, strict=False):
        assert earlier <= later <= earlier | now  # nothing is lost again, and what is complete was computed
    assert computed[-1] == set(range(len(layout))) - complete[-1]
    assert len({len(done) for done in complete}) > 5  # kills fell on many moments
    assert 0 < len(complete[-1]) < len(layout)


@pytest.mark.parametrize("target", ON_DISK)
def test_a_full_disk_is_one_clear_error_and_the_same_call_goes_on(tmp_path, monkeypatch, target):
    X, path, kernel = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / target, Counting()
    writes, pwrite = [], os.pwrite

    def full(descriptor, content, offset):
        # Index entries have 8 bytes; the fifth one does not fit any more.
        writes.append(len(content))
        if writes.count(8) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(descriptor, content[: max(1, len(content) // 2)], offset)  # halves: writes may be short

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StoreFullError, match=r"no room for .* tiles are complete.*same call goes on") as caught:
            compute(kernel, X, out=path, block=4)
    assert caught.value.errno == errno.ENOSPC
    matrix = rntk.gram.open(path)
    assert not matrix.complete
    done = [tile for tile in matrix.tiles if matrix._store.is_done(tile)]
    assert f"{len(done)} of 15 tiles" in str(caught.value)
    missing = next(tile for tile in matrix.tiles if tile not in done)
    with pytest.raises(GramStoreError, match="isn't computed yet"):
        matrix.tile(*missing)
    kernel.calls = 0
    np.testing.assert_allclose(compute(kernel, X, out=path, block=4).to_array(), X @ X.T, atol=1e-13)
    assert kernel.calls == 15 - len(done)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_no_room_is_noticed_before_the_work(tmp_path, monkeypatch):
    kernel = Counting()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: namedtuple("usage", "total used free")(1e9, 1e9, 100))
    with pytest.raises(StoreFullError, match="0 of 1 tiles are complete, the others need 128 bytes, and 100 bytes"):
        compute(kernel, np.ones((4, 3)), out=tmp_path / "K.gram")
    assert kernel.calls == 1  # on one sequence, to see that it works


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a small disk")
@pytest.mark.parametrize("target", ON_DISK)
def test_a_disk_that_is_really_full(tmp_path, monkeypatch, target):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], capture_output=True).returncode:
        pytest.skip("tmpfs can't be mounted here")
    try:
        usage = shutil.disk_usage
        # Room at first sight, as under a quota.
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(path)._replace(free=10**9))
        X = np.random.default_rng(0).standard_normal((600, 3))
        with pytest.raises(StoreFullError, match="1 GB are free"):
            compute(Counting(), X, out=small / target, block=100)
        matrix = rntk.gram.open(small / target)
        matrix.verify()
        assert 5 < sum(map(matrix._store.is_done, matrix.tiles)) < 21
        assert subprocess.run(["mount", "-o", "remount,size=8m", small], capture_output=True).returncode == 0
        np.testing.assert_allclose(compute(Counting(), X, out=small / target).to_array(), X @ X.T, atol=1e-12)
    finally:
        subprocess.run(["umount", small], check=True)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("target", ON_DISK)
@pytest.mark.parametrize("where", ["numbers", "index"])
def test_a_flipped_bit_is_found_and_mended(tmp_path, target, where):
    X, path, kernel = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / target, Counting()
    K = compute(kernel, X, out=path, block=8).to_array()
    slot = Layout((20, 20), 8, True).slot((0, 2))
    if where == "index":
        flip(path / INDEX, 8 * slot + 1)
    elif target == "K.gram":
        flip(path / "tiles.bin", 8 * (Layout((20, 20), 8, True).start((0, 2)) + 5))
    else:
        flip(path / "c" / "0" / "2", 100)
    matrix = rntk.gram.open(path)
    matrix.tile(0, 1)
    with pytest.raises(DamagedTileError, match=r"tile \(0, 2\) of .*checksum") as caught:
        matrix.tile(2, 0)
    assert caught.value.tiles == ((0, 2),)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    for use in (matrix.verify, matrix.to_array, lambda: matrix @ np.ones(20)):
        with pytest.raises(DamagedTileError):
            use()
    kernel.calls = 0
    with pytest.warns(RuntimeWarning, match=r"tile \(0, 2\) of .* computed anew"):
        mended = compute(kernel, X, out=path)
    assert kernel.calls == 1
    np.testing.assert_array_equal(mended.to_array(), K)
    mended.verify()


def test_other_damage(tmp_path):
    X, path = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.gram"
    K = compute(Counting(), X, out=path, block=8).to_array()
    # Cut short: to be opened by `compute` only, which computes what is gone.
    with (path / "tiles.bin").open("r+b") as stream:
        stream.truncate(1500)
    with pytest.raises(GramStoreError, match="has 1500 bytes, not the 2176"):
        rntk.gram.open(path)
    with pytest.warns(RuntimeWarning, match="tile"):
        np.testing.assert_array_equal(compute(Counting(), X, out=path).to_array(), K)
    (path / "tiles.bin").unlink()
    with pytest.raises(GramStoreError, match="has 0 bytes"):
        rntk.gram.open(path)
    document = (path / "matrix.json").read_text()
    for damaged in (document.replace('"block": 8', '"block": 9'), document[:50], "[]"):
        (path / "matrix.json").write_text(damaged)
        with pytest.raises(GramStoreError, match=r"matrix\.json"):
            rntk.gram.open(path)
        with pytest.raises(GramStoreError, match=r"matrix\.json"):
            compute(Counting(), X, out=path)
    np.testing.assert_array_equal(compute(Counting(), X, out=path, block=8, overwrite=True).to_array(), K)


@pytest.mark.parametrize("target", ON_DISK)
def test_every_byte_counts(tmp_path, target):
    """Also those of zarr's chunks that belong to no tile, because the matrix ends before them."""
    X, path = np.random.default_rng(0).standard_normal((7, 3)), tmp_path / target
    compute(Counting(), X, out=path, block=4)
    files = [path / "tiles.bin"] if target == "K.gram" else [path / "c" / "0" / "1", path / "c" / "1" / "1"]
    for file in [*files, path / INDEX]:
        for position in range(file.stat().st_size):
            flip(file, position)
            with pytest.raises(DamagedTileError):
                rntk.gram.open(path).verify()
            flip(file, position)
    rntk.gram.open(path).verify()


@needs_zarr
def test_other_damage_of_zarr(tmp_path):
    X, path = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.zarr"
    K = compute(Counting(), X, out=path, block=8).to_array()
    (path / "c" / "0" / "2").write_bytes(b"")  # at the edge, where a chunk is larger than what it holds
    (path / "c" / "1" / "1").unlink()
    with pytest.raises(DamagedTileError, match=r"tiles \(1, 1\), \(0, 2\) of") as caught:
        rntk.gram.open(path).verify()
    assert set(caught.value.tiles) == {(0, 2), (1, 1)}
    with pytest.warns(RuntimeWarning, match="computed anew"):
        np.testing.assert_array_equal(compute(Counting(), X, out=path).to_array(), K)
    whole = (path / "zarr.json").read_text()
    (path / "zarr.json").unlink()
    for content in (None, "", "null", "{}", whole.replace("20", "21")):
        if content is not None:
            (path / "zarr.json").write_text(content)
        with pytest.raises(GramStoreError, match=r"zarr\.json is damaged or missing"):
            rntk.gram.open(path)
        kernel = Counting()
        np.testing.assert_array_equal(compute(kernel, X, out=path).to_array(), K)
        assert kernel.calls == 0


@pytest.mark.parametrize("target", ON_DISK)
def test_a_complete_store_needs_no_writer(tmp_path, target):
    X, path = np.random.default_rng(0).standard_normal((30, 3)), tmp_path / target
    K = compute(Counting(), X, out=path, block=8).to_array()
    folder = StoreFolder(path, read_document(path), writable=True)  # somebody has the lock
    try:
        assert compute(Counting(), X, out=path, memory="2kB").found == 10  # less than tiles take: none is computed
    finally:
        folder.close()
    flip(path / INDEX, 9)
    with pytest.raises(GramStoreError, match=r"begun with block=8, and that doesn't fit any more.*overwrite=True"):
        compute(Counting(), X, out=path, memory="2kB")
    again = compute(Counting(), X, out=path, memory="4kB", overwrite=True)
    assert again.block < 8
    np.testing.assert_allclose(again.to_array(), K, rtol=1e-13)


def test_matrices_notice_that_their_store_is_another_one(tmp_path, monkeypatch):
    X, path = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.gram"
    monkeypatch.chdir(tmp_path)
    K = compute(RNTK(), X, out="K.gram", block=8)
    values = K.to_array()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    compute(RNTK(sigma_b=3.0), X, out="K.gram", block=8)
    np.testing.assert_array_equal(K.to_array(), values)  # still the one of the folder it was made in
    copy = pickle.loads(pickle.dumps(K))
    compute(RNTK(sigma_b=1.0), X, out=path, block=8, overwrite=True)
    for each in (K, copy):
        with pytest.raises(GramStoreError, match="was replaced by another matrix"):
            each.to_array()
    K = rntk.gram.open(path)
    shutil.rmtree(path)
    with pytest.raises(GramStoreError, match="is gone"):
        K.to_array()


def test_a_machine_that_cannot_read_is_no_damage(tmp_path, monkeypatch):
    path = tmp_path / "K.gram"
    K = compute(Counting(), np.ones((6, 2)), out=path, block=3)

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(np, "memmap", refuse)
    with pytest.raises(GramStoreError, match=r"can't be read: .*Too many open files"):
        K.to_array()


def test_a_second_interrupt_waits_for_the_writer(tmp_path, monkeypatch):
    """Otherwise its files are closed under it, and the next ones opened get their numbers, and its bytes."""
    X, path = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.gram"
    joins, write = [], MappedStore._put

    def slowly(self, tile, values):
        time.sleep(0.2)
        write(self, tile, values)

    def interrupted(thread, timeout=None):
        joins.append(thread)
        if len(joins) < 3:
            raise KeyboardInterrupt
        join(thread, timeout)

    class Stopping(Counting):
        def __call__(self, A, B=None):
            if self.calls == 3:
                raise KeyboardInterrupt
            return super().__call__(A, B)

    join = threading.Thread.join
    monkeypatch.setattr(MappedStore, "_put", slowly)
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compute(Stopping(), X, out=path, block=8)
    monkeypatch.undo()
    assert len(joins) == 3 and not joins[0].is_alive()
    assert rntk.gram.open(path)._store.count_done() == 2  # all that was computed


# -- which matrix it is ----------------------------------------------------------------------------------------------


def test_a_store_of_something_else_is_refused(tmp_path):
    X, path = ragged(9), tmp_path / "K.gram"
    compute(RNTK(), X, out=path, block=4)
    changed = ragged(9)
    changed[3][0, 0] += 1e-9
    for arguments, options, difference in [
        ((RNTK(sigma_w=1.0), X), {}, "kernel.sigma_w is 1.414"),
        ((RNTK(activation="erf"), X), {}, "kernel.activation is relu there and erf here"),
        ((RNTK() + RNTK(), X), {}, "kernel.class"),
        ((RNTK(), changed), {}, "X is"),
        ((RNTK(), X, X), {}, "Y is null there"),
        ((RNTK(), X), {"kind": "nngp"}, "kind is ntk there and nngp here"),
        ((RNTK(), X), {"dtype": "float32"}, "dtype is float64 there and float32 here"),
        ((RNTK(), X), {"block": 5}, "block is 4 there and 5 here"),
    ]:
        with pytest.raises(GramStoreError, match="holds another Gram matrix") as caught:
            compute(*arguments, out=path, **options)
        assert difference in str(caught.value), caught.value
    # What changes no number is no difference; neither is the form in which sequences come.
    before = (path / "matrix.json").read_bytes()
    same = RNTK(n_jobs=1, progress=False, sigma_w_bounds="fixed")
    compute(same, as_batch(X), out=path, memory="50MB", n_jobs=2, overwrite=True)
    assert (path / "matrix.json").read_bytes() == before
    K = compute(RNTK(sigma_w=1.0), X, out=path, overwrite=True)
    assert relative_error(K.to_array(), RNTK(sigma_w=1.0)(X)) < 1e-12


def test_what_is_no_remains_of_a_run_is_left_alone(tmp_path):
    X = np.ones((4, 3))
    for name, file in (("a.zarr", "zarr.json"), ("b.zarr", "c/thesis.tex"), ("c.gram", "tiles.bin")):
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).write_text("mine")
        if name.endswith("zarr") and zarr is None:
            continue
        for overwrite in (False, True):
            with pytest.raises(GramStoreError, match="other things in it"):
                compute(RNTK(), X, out=tmp_path / name, overwrite=overwrite)
        assert (tmp_path / name / file).read_text() == "mine"


@pytest.mark.parametrize(
    "call",
    [
        {"kernel": RNTK("rleu")},
        {"kernel": RNTK(depth=0)},
        {"memory": "1kB"},
        {"kernel": RBF(), "X": [np.ones(3), np.ones(4)]},
        {"kernel": lambda A, B: A.nonsense},
        {"kernel": lambda A, B: A},
        {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
        {"kernel": lambda A, B: 1j * A @ B.T},
    ],
)
def test_a_call_that_cannot_work_touches_nothing(tmp_path, call):
    X, path = np.random.default_rng(0).standard_normal((20, 5)), tmp_path / "K.gram"
    for overwrite in (False, True):
        with pytest.raises((ValueError, AttributeError)):
            compute(**{"kernel": RNTK(), "X": X, "out": path, "overwrite": overwrite} | call)
        assert not path.exists()
    K = compute(RNTK(sigma_b=0.5), X, out=path).to_array()
    with pytest.raises((ValueError, AttributeError)):
        compute(**{"kernel": RNTK(), "X": X, "out": path, "overwrite": True} | call)
    np.testing.assert_array_equal(rntk.gram.open(path).to_array(), K)


def test_links_lead_to_stores(tmp_path):
    X = np.random.default_rng(0).standard_normal((8, 3))
    compute(RNTK(), X, out=tmp_path / "real.gram")
    (tmp_path / "link.gram").symlink_to(tmp_path / "real.gram")
    (tmp_path / "dangling.gram").symlink_to(tmp_path / "new.gram")
    for name in ("link.gram", "dangling.gram"):
        K = compute(RNTK(sigma_b=1.0), X, out=tmp_path / name, overwrite=True)
        np.testing.assert_allclose(K.to_array(), RNTK(sigma_b=1.0)(X), rtol=1e-12)
        assert (tmp_path / name).is_symlink()
    (tmp_path / "other.gram").symlink_to(tmp_path / "store1")
    (tmp_path / "itself.gram").symlink_to(tmp_path / "itself.gram")
    (tmp_path / "there.gram").symlink_to(tmp_path / "back.gram")
    (tmp_path / "back.gram").symlink_to(tmp_path / "there.gram")
    for name in ("other.gram", "itself.gram", "there.gram"):
        with pytest.raises(GramStoreError, match="is a link"):
            compute(RNTK(), X, out=tmp_path / name)


def test_only_stores_are_replaced(tmp_path):
    (tmp_path / "mine.gram").mkdir()
    (tmp_path / "mine.gram" / "thesis.tex").write_text("years of work")
    (tmp_path / "file.gram").write_text("more work")
    X = np.ones((3, 2))
    for name, reason in [("mine.gram", "other things in it"), ("file.gram", "is a file"), ("no/K.gram", "no folder")]:
        for overwrite in (False, True):
            with pytest.raises(GramStoreError, match=reason):
                compute(Counting(), X, out=tmp_path / name, overwrite=overwrite)
    assert (tmp_path / "mine.gram" / "thesis.tex").read_text() == "years of work"
    for name in ("mine.gram", "file.gram", "none.gram"):
        with pytest.raises(GramStoreError, match="is no stored Gram matrix"):
            rntk.gram.open(tmp_path / name)


def test_one_run_at_a_time(tmp_path):
    pytest.importorskip("fcntl", reason="locks are POSIX's")
    X, path = np.ones((6, 2)), tmp_path / "K.gram"

    def kernel(A, B):
        if len(A) == len(X):  # not when it is tried out
            with pytest.raises(GramStoreError, match="another run writes"):
                compute(Counting(), X, out=path, overwrite=True)
        return A @ B.T

    compute(kernel, X, out=path)
    assert compute(Counting(), X, out=path, overwrite=True).complete  # the lock is gone with the run


# -- memory ----------------------------------------------------------------------------------------------------------


def test_blocks_follow_the_memory():
    batch = as_batch(np.zeros((20_000, 100), dtype="float32"))
    for kernel, memory, itemsize in [
        (RNTK(), 10**9, 4),
        (RNTK(), 10**8, 8),
        (RNTK(depth=3), 10**7, 8),
        (RNTK(activation="tanh"), 10**9, 8),
    ]:
        layout = make_layout(kernel, batch, None, None, memory, itemsize)
        assert working_bytes(kernel, (batch,), layout.block, itemsize) <= memory
    assert make_layout(RNTK(), batch, None, None, 10**9, 4).block == 2000
    assert make_layout(RNTK(readout="mean"), batch, None, None, 10**9, 4).block < 400
    assert make_layout(RNTK(), as_batch(np.zeros((30, 5))), None, None, 10**9, 8).block == 30
    # For workers there are tiles enough, as long as they don't get tiny.
    assert len(make_layout(RNTK(), batch, None, None, 10**9, 4, tiles=200)) >= 200
    assert make_layout(RNTK(), as_batch(np.zeros((1000, 5))), None, None, 10**9, 8, tiles=10**6).block == 256


def test_what_does_not_fit_is_refused():
    X = np.zeros((300, 3))
    with pytest.raises(ValueError, match=r"takes 361 kB, and memory is 300 kB; pass out=\"name.gram\""):
        compute(Counting(), X, memory="300kB", block=20)
    with pytest.raises(ValueError, match=r"block=300 sequences need about .*, and memory leaves 639 kB"):
        compute(Counting(), X, memory=1e6, block=300)
    assert compute(Counting(), X, memory="370kB").block < 16
    with pytest.raises(
        ValueError, match=r"a single pair of sequences needs about .*, and memory leaves 1 MB; give more"
    ):
        rntk.gram.stream(Counting(), np.zeros((3, 50_000)), memory="1MB")
    assert compute(Counting(), X[:5], block=5000, memory="100kB").block == 5


def test_blocks_beyond_the_matrix_are_the_matrix(tmp_path):
    X = np.ones((5, 3))
    for block in (5000, 5, None, 7):
        assert compute(Counting(), X, out=tmp_path / "K.gram", block=block).block == 5
    with pytest.raises(ValueError, match="tiles; take a larger one"):
        make_layout(Counting(), as_batch(np.zeros((20_000, 1))), None, 10, 10**9, 8)


def test_sizes_in_words():
    assert parse_bytes("1GB") == 10**9
    assert parse_bytes(" 1.5 gib ") == 3 * 2**29
    assert parse_bytes("700") == parse_bytes(700.0) == parse_bytes("700 B") == 700
    for wrong in ("lots", "", "GB", "-1GB", "1ib", 0, -3, float("nan"), float("inf"), True, None, [1], "1e400"):
        with pytest.raises(ValueError, match="memory must be"):
            parse_bytes(wrong)


# -- what else can go wrong ------------------------------------------------------------------------------------------


def test_an_overflow_names_the_sequence_of_the_whole():
    X = [np.ones(5) for _ in range(20)]
    X[13] = np.ones(5) * 1e20
    with pytest.raises(KernelOverflowError, match=r"kernel of sequence 13 \(length 5\)") as caught:
        compute(RNTK(dtype="float32"), X, block=4)
    assert caught.value.sequence == 13
    Y = [np.ones(5) for _ in range(6)]
    for arguments, name in (((X, Y), "X"), ((Y, X), "Y")):
        X[13] = np.ones(5) * 1e39
        with pytest.raises(KernelOverflowError, match=rf"kernel of sequence 13 of {name} ") as caught:
            compute(RNTK(dtype="float32"), *arguments, block=4)
        assert caught.value.sequence == 13


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.zeros((2, 2)), r"must be a real array of shape \(5, 5\), and is one of shape \(2, 2\)"),
        (np.full((5, 5), "a"), "must be a real array"),
        (np.full((5, 5), np.nan), "sequences 0 and 0 is nan"),
        (np.full((5, 5), 1e39), "is inf in float32"),
    ],
)
def test_results_that_are_no_kernel(tmp_path, kernel, message):
    def sound_at_first(A, B):
        return kernel if len(A) == 5 else np.ones((len(A), len(B)))

    with pytest.raises(ValueError, match=message):
        compute(sound_at_first, np.ones((5, 2)), out=tmp_path / "K.gram", dtype="float32")
    assert not rntk.gram.open(tmp_path / "K.gram").complete


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "rbf"}, TypeError, "kernel must be"),
        ({"kernel": RNTK(readout="sequence")}, ValueError, 'readout="sequence" has one row per step'),
        ({"kernel": RNTK() * RNTK(readout="sequence")}, ValueError, 'readout="sequence"'),
        ({"kernel": RNTK(dtype="int8")}, ValueError, "dtype must be"),
        ({"kernel": Counting(), "kind": "nngp"}, ValueError, "no nngp kernel"),
        ({"kind": "NTK"}, ValueError, "kind must be"),
        ({"dtype": "float16"}, ValueError, "dtype must be"),
        ({"dtype": "numbers"}, ValueError, "dtype must be"),
        ({"block": 0}, ValueError, "block must be"),
        ({"block": 2.5}, ValueError, "block must be"),
        ({"block": True}, ValueError, "block must be"),
        ({"memory": "much"}, ValueError, "memory must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"kernel": Counting(), "n_jobs": 2}, ValueError, "n_jobs=2 has no effect"),
        ({"compress": "gzip"}, ValueError, "compress must be"),
        ({"compress": True}, ValueError, "only .zarr"),
        ({"out": "K.npy"}, ValueError, "ends in .gram or .zarr"),
        ({"out": 3}, TypeError, "out must be"),
        ({"kernel": RNTK}, TypeError, r"such as RNTK\(\), not the class"),
        ({"X": [[1.0], []]}, SequenceError, "empty"),
        ({"Y": np.ones((2, 3, 4))}, ValueError, "channels"),
        ({"client": 3}, TypeError, "client must be"),
    ],
)
def test_hostile_arguments(options, error, message):
    if "client" in options:
        pytest.importorskip("distributed", reason='clusters need dask: pip install "rntk[distributed]"')
    with pytest.raises(error, match=message):
        compute(**({"kernel": RNTK(), "X": np.ones((4, 3))} | options))


def test_progress_is_silent_unless_asked_for(tmp_path, capsys):
    X = np.ones((6, 3))
    compute(RNTK(), X, block=2)
    assert capsys.readouterr() == ("", "")
    compute(RNTK(), X, out=tmp_path / "K.gram", block=2, progress=True)
    shown = capsys.readouterr()
    assert "Gram matrix" in shown.err and "100%" in shown.err and shown.out == ""
    compute(RNTK(), X, out=tmp_path / "K.gram", block=2, progress=True)  # all there: they are only checked
    assert "checksums" in capsys.readouterr().err


@needs_zarr
def test_zarr_is_readable_by_others_and_may_be_compressed(tmp_path):
    X = np.ones((40, 3))
    for compress, least, most in ((None, 1, 400), (True, 1, 400), (False, 1600, 1700)):  # all the same number
        path = tmp_path / f"{compress}.zarr"
        compute(Counting(), X, out=path, block=20, compress=compress, dtype="float32")
        array = zarr.open_array(path, mode="r")
        assert (array.shape, array.chunks, array.dtype) == ((40, 40), (20, 20), np.float32)
        assert (array[:20] == 3).all() and np.isnan(array[20:, :20]).all()
        assert least <= (path / "c" / "0" / "1").stat().st_size < most
        assert rntk.gram.open(path).read(slice(20, None), slice(20)).min() == 3


@needs_zarr
def test_kernel_values_do_get_smaller(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 30)).cumsum(axis=1)
    for dtype, most in (("float32", 0.87), ("float64", 0.92)):
        path = tmp_path / f"{dtype}.zarr"
        compute(RNTK(normalize=True, dtype=dtype), X, out=path, block=200)
        assert (path / "c" / "0" / "0").stat().st_size < most * 200**2 * np.dtype(dtype).itemsize


def test_without_zarr_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install \"rntk\[distributed\]\""):
        compute(Counting(), np.ones((3, 2)), out=tmp_path / "K.zarr")
    assert not list(tmp_path.iterdir())


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 6)).round(3)
    path = tmp_path / "toy.tsv"
    path.write_text("\n".join("\t".join(map(str, [k % 2, *row])) for k, row in enumerate(X)) + "\n")
    return path, X


def run(*arguments):
    return CliRunner().invoke(app, ["gram", *map(str, arguments)])


def test_the_command_computes_goes_on_and_refuses(tmp_path, data):
    path, X = data
    out = tmp_path / "K.gram"
    options = ("--sigma-w", 1.2, "--depth", 2, "--activation", "erf", "--dtype", "float32", "--block", 5)
    result = run(path, "--out", out, *options)
    assert result.exit_code == 0, result.output
    assert "12 x 12, float32, 6 tiles" in result.stdout
    assert "earlier" not in result.stdout
    assert "From an earlier run: 6 tiles" in run(path, "--out", out, *options).stdout
    K = rntk.gram.open(out).to_array()
    assert relative_error(K, RNTK("erf", sigma_w=1.2, depth=2)(X)) < 2e-5
    again = run(path, "--out", out, *options, "--json", "--normalize")
    assert_one_line_refusal(again, "kernel.normalize is false there and true here", "--force")
    again = run(path, "--out", out, *options, "--json", "--normalize", "--force")
    assert json.loads(again.stdout)["tiles"] == 6
    assert (rntk.gram.open(out).read().diagonal() == 1).all()


def test_the_command_says_no_in_one_line(tmp_path, data, monkeypatch):
    path, _ = data
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.npy"), ".gram", ".zarr")
    assert_one_line_refusal(run(tmp_path / "nowhere.tsv", "--out", tmp_path / "K.gram"), "no such file")
    assert_one_line_refusal(run(path, "--out", tmp_path / "no" / "K.gram"), "no folder")
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.gram", "--sigma-w", -1), "sigma_w")
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.gram", "--memory", "much"), "memory must be")
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.gram", "--readout", "sequence"), "readout")
    monkeypatch.setitem(sys.modules, "zarr", None)
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.zarr"), 'pip install "rntk[distributed]"')
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused = run(path, "--out", tmp_path / "K.gram", "--scheduler", "tcp://127.0.0.1:1")
    assert_one_line_refusal(refused, 'pip install "rntk[distributed]"')
