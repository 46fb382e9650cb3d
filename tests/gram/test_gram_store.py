"""Gram matrices of any size: in memory, on disk or computed when read; going on after every kind of end; refusals."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
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
from rntk.gram.layout import Layout
from rntk.gram.store import ZarrStore
from rntk.gram.work import TileMaker, make_work
from rntk.kernels import pairwise
from rntk.runtime import parse_bytes

zarr = pytest.importorskip("zarr", reason='stores need zarr: pip install "rntk[disk]"')
TARGETS = [None, "K.zarr"]
FILES = Path(__file__).parents[1] / "frozen" / "files"


def ragged(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(3, 9), 2)) for _ in range(count)]


class Counting:
    """A linear kernel of vectors that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, A, B):
        self.calls += 1
        return A @ B.T


def store_linear(X, path: Path, kernel=None, **options):
    """A store of the linear kernel, known by its key."""
    return compute(kernel or Counting(), X, out=path, key="linear", **options)


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
    K = compute(RNTK(kind="nngp"), X, block=4)
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
        compute(RNTK() + RBF(), [x[:, 0] for x in ragged(3)])
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

    for K in (compute(kernel, X, block=4), compute(kernel, X, block=4, out=tmp_path / "K.zarr")):
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
    K = rntk.gram.stream(RNTK(kind="nngp"), X, ragged(7, seed=1), dtype="float32")
    assert (K.shape, K.symmetric, K.dtype) == ((40, 7), False, np.float32)
    assert relative_error(K.to_array(), RNTK().nngp(X, ragged(7, seed=1))) < 1e-5


# -- use without the whole in memory ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    X = np.random.default_rng(0).standard_normal((29, 4))
    path = tmp_path_factory.mktemp("matrix") / "K.zarr"
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
        (lambda K: K.read(3), IndexError),
        (lambda K: K.read([0.5]), IndexError),
        (lambda K: K.read(np.ones(3, dtype=bool)), IndexError),
    ],
)
def test_parts_that_are_not_there(stored, call, error):
    with pytest.raises(error):
        call(rntk.gram.open(stored[0]))


@pytest.mark.parametrize(("shape", "block", "symmetric"), [((7, 7), 3, True), ((9, 9), 3, True), ((7, 5), 2, False)])
@pytest.mark.parametrize("height", [1, 2, 5])
def test_tiles_lie_side_by_side_and_cover_everything(shape, block, symmetric, height):
    layout = Layout(shape, block, symmetric)
    tiles = list(layout.in_strips(height))
    assert len(tiles) == len(set(tiles)) == len(layout)
    covered = np.zeros(shape, dtype=int)
    for i, j in tiles:
        covered[layout.rows(i), layout.columns(j)] += 1
    assert covered[np.triu_indices(*shape[:1], m=shape[1])].min() == covered.max() == 1
    assert layout.numbers() == covered.sum()


# -- sides are prepared once -----------------------------------------------------------------------------------------


@pytest.fixture
def prepared(monkeypatch):
    """Numbers of sequences in the sides that are prepared."""
    seen, of = [], pairwise.of

    def watched(kernel):
        found = of(kernel)
        prepare = found.prepare
        found.prepare = lambda batch: seen.append(len(batch)) or prepare(batch)
        return found

    monkeypatch.setattr(pairwise, "of", watched)
    return seen


@pytest.mark.parametrize("columns", [None, 30])
def test_every_block_is_prepared_once_however_many_tiles_it_meets(prepared, columns):
    X, Y = np.ones((40, 5)), None if columns is None else np.ones((columns, 5))
    work = make_work(RNTK(), X, Y, None)
    layout = work.layout(5, 10**9)
    prepared.clear()
    tiles = TileMaker(work, layout, 10**9)
    for tile in tiles.in_order():
        tiles.compute(tile)
    assert prepared == [5] * (8 if columns is None else 14)


def test_with_little_memory_strips_meet_a_side_while_it_is_kept(prepared):
    work = make_work(RNTK(), np.ones((40, 50)), None, None)
    layout = work.layout(4, 10**9)
    for kept, most in ((2, 10 + 9 + 45), (6, 10 + 10 + 6 + 2), (20, 10)):  # of ten blocks, fifty-five tiles
        side = work.pairwise.nbytes(work.pairwise.prepare(work.part(0, slice(0, 4))))
        tiles = TileMaker(work, layout, work.tile_bytes(4) + kept * side)
        prepared.clear()
        order = tiles.in_order()
        for tile in order:
            tiles.compute(tile)
        assert len(order) == 55 and order[:10] == [(i, i) for i in range(10)]
        assert len(prepared) <= most, (kept, len(prepared))
        assert len(tiles._sides) <= max(kept, 2)


# -- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")
def test_twenty_kills_leave_a_store_that_goes_on(tmp_path):
    log, store = tmp_path / "log", tmp_path / "K.zarr"
    done = subprocess.run(
        [sys.executable, killed_runs.__file__, str(store), "20"],
        env={**os.environ, "RNTK_TEST_LOG": str(log)},
        capture_output=True,
        text=True,
        timeout=240,
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
    complete = [{tuple(tile) for tile in tiles} for tiles in report["before"]]
    computed = [{tuple(tile) for tile in tiles} for tiles in report["computed"]]
    for done, now in zip(complete, computed, strict=True):
        assert not done & now  # nothing is computed twice
    for earlier, later, now in zip(complete, complete[1:], computed, strict=False):
        assert earlier <= later <= earlier | now  # nothing is lost again, and what is complete was computed
    assert computed[-1] == set(layout) - complete[-1]
    assert len({len(done) for done in complete}) > 5  # kills fell on many moments
    assert 0 < len(complete[-1]) < len(layout)


RACE = """
import sys, numpy as np, rntk.gram
from rntk import RNTK
X = np.random.default_rng(0).standard_normal((60, 30))
for k in range(5):
    K = rntk.gram.compute(RNTK(sigma_b=0.1 * k), X, out=f"{sys.argv[1]}/{k}.zarr", block=int(sys.argv[2]))
    print(K.to_array().tobytes().hex()[:2000])
    print(rntk.gram.cached(sys.argv[1] + "/cache", RNTK(sigma_b=0.1 * k), X).to_array().tobytes().hex()[:2000])
"""


def test_two_processes_at_once_finish_one_store(tmp_path):
    both = [
        subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path), "7"], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1] and len(said[0].splitlines()) == 10
    for k in range(5):
        rntk.gram.open(tmp_path / f"{k}.zarr").verify()
    assert not list(tmp_path.glob("*.partial")) and len(list((tmp_path / "cache").iterdir())) == 5


def test_a_run_whose_store_is_replaced_does_not_write_into_the_other_matrix(tmp_path):
    X, path = np.random.default_rng(0).standard_normal((12, 3)), tmp_path / "K.zarr"

    def replaced(A, B):
        if A[0, 0] == X[4, 0] and len(A) == 4:
            store_linear(X, path, block=4, overwrite=True)
        return 0 * A @ B.T

    with pytest.raises(GramStoreError, match="was replaced by another matrix"):
        compute(replaced, X, out=path, block=4)
    K = rntk.gram.open(path)
    assert K.complete
    np.testing.assert_allclose(K.to_array(), X @ X.T, atol=1e-14)


def test_a_tile_that_comes_late_is_taken_away_again(tmp_path, monkeypatch):
    """The other process deletes the store between the look at it and the write."""
    X, path = np.random.default_rng(0).standard_normal((8, 3)), tmp_path / "K.zarr"
    store_linear(X, path, block=4)
    store, here = ZarrStore(path), [True, False, False]
    (path / "c" / "0" / "1").unlink()
    monkeypatch.setattr(ZarrStore, "is_here", lambda self: here.pop(0))
    with pytest.raises(GramStoreError, match="was replaced"):
        store.write((0, 1), np.zeros((4, 4)))
    assert not (path / "c" / "0" / "1").exists()


def test_a_full_disk_is_one_clear_error_and_the_same_call_goes_on(tmp_path, monkeypatch):
    X, path, kernel = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.zarr", Counting()
    written, write = [], zarr.Array.__setitem__

    def full(self, where, values):
        written.append(where)
        if len(written) == 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, where, values)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.Array, "__setitem__", full)
        with pytest.raises(StoreFullError, match=r"5 of 15 tiles are complete.*same call goes on") as caught:
            store_linear(X, path, kernel, block=4)
    assert caught.value.errno == errno.ENOSPC
    matrix = rntk.gram.open(path)
    assert not matrix.complete and "5 of 15 tiles" in repr(matrix)
    missing, damaged = matrix._store.find()
    assert len(missing) == 10 and not damaged
    with pytest.raises(GramStoreError, match="isn't computed yet"):
        matrix.tile(*missing[0])
    kernel.calls = 0
    np.testing.assert_allclose(store_linear(X, path, kernel, block=4).to_array(), X @ X.T, atol=1e-13)
    assert kernel.calls == 10
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_no_room_is_noticed_before_the_work(tmp_path, monkeypatch):
    kernel = Counting()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: namedtuple("usage", "total used free")(1e9, 1e9, 50))
    with pytest.raises(StoreFullError, match="0 of 1 tiles are complete, the others need 128 bytes, and 50 bytes"):
        compute(kernel, np.ones((4, 3)), out=tmp_path / "K.zarr")
    assert kernel.calls == 1  # on one sequence, to see that it works


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_disk_that_is_really_full(tmp_path, monkeypatch):
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
            store_linear(X, small / "K.zarr", block=100)
        matrix = rntk.gram.open(small / "K.zarr")
        matrix.verify()
        assert 5 < matrix.found < 21
        assert subprocess.run(["mount", "-o", "remount,size=8m", small], capture_output=True).returncode == 0
        np.testing.assert_allclose(store_linear(X, small / "K.zarr").to_array(), X @ X.T, atol=1e-12)
    finally:
        subprocess.run(["umount", small], check=True)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("compress", [False, True])
def test_a_flipped_bit_is_found_and_mended(tmp_path, compress):
    X, path, kernel = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.zarr", Counting()
    K = store_linear(X, path, kernel, block=8, compress=compress).to_array()
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
        mended = store_linear(X, path, kernel)
    assert kernel.calls == 1 and mended.found == 5
    np.testing.assert_array_equal(mended.to_array(), K)
    mended.verify()


def test_every_byte_counts(tmp_path):
    """Also those of chunks that belong to no tile, because the matrix ends before them."""
    X, path = np.random.default_rng(0).standard_normal((7, 3)), tmp_path / "K.zarr"
    store_linear(X, path, block=4)
    for file in (path / "c" / "0" / "1", path / "c" / "1" / "1"):
        for position in range(file.stat().st_size):
            flip(file, position)
            with pytest.raises(DamagedTileError):
                rntk.gram.open(path).verify()
            flip(file, position)
    rntk.gram.open(path).verify()


def test_other_damage(tmp_path):
    X, path = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.zarr"
    K = store_linear(X, path, block=8).to_array()
    (path / "c" / "0" / "2").write_bytes(b"")
    chunk = (path / "c" / "0" / "1").read_bytes()
    (path / "c" / "0" / "1").write_bytes(chunk[: len(chunk) // 2])
    (path / "c" / "1" / "1").unlink()
    (path / "c" / "1" / "2").with_suffix(".1234.partial").write_bytes(b"what a killed run left")
    with pytest.raises(DamagedTileError) as caught:
        rntk.gram.open(path).verify()
    assert set(caught.value.tiles) == {(0, 1), (0, 2)}
    with pytest.warns(RuntimeWarning, match="computed anew") as warned:
        mended = store_linear(X, path)
    assert len(warned) == 1 and mended.found == 3
    np.testing.assert_array_equal(mended.to_array(), K)
    whole = (path / "zarr.json").read_text()
    for content in ("", "null", "{}", whole.replace("20", "21", 1), whole.replace('"block": 8', '"block": 9')):
        (path / "zarr.json").write_text(content)
        for call in (lambda: rntk.gram.open(path), lambda: store_linear(X, path, overwrite=True)):
            with pytest.raises(GramStoreError, match=r"zarr\.json is damaged"):
                call()
    (path / "zarr.json").write_text(whole)
    assert store_linear(X, path).found == 6


def test_a_complete_store_is_only_read(tmp_path):
    X, path = np.random.default_rng(0).standard_normal((30, 3)), tmp_path / "K.zarr"
    K = store_linear(X, path, block=8).to_array()
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    kernel = Counting()
    again = store_linear(X, path, kernel, memory="2kB")  # less than tiles take: none is computed
    assert again.found == 10 and kernel.calls == 0
    np.testing.assert_array_equal(again.to_array(), K)
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before
    (path / "c" / "0" / "0").unlink()
    with pytest.raises(ValueError, match=r"tiles of block=8 sequences need about .* or more memory"):
        store_linear(X, path, memory="2kB")


def test_matrices_notice_that_their_store_is_another_one(tmp_path, monkeypatch):
    X, path = np.random.default_rng(0).standard_normal((20, 3)), tmp_path / "K.zarr"
    monkeypatch.chdir(tmp_path)
    K = compute(RNTK(), X, out="K.zarr", block=8)
    values = K.to_array()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    compute(RNTK(sigma_b=3.0), X, out="K.zarr", block=8)
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
    K = store_linear(np.ones((6, 2)), tmp_path / "K.zarr", block=3)

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(zarr.Array, "__getitem__", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        K.to_array()


# -- which matrix it is ----------------------------------------------------------------------------------------------


def test_a_store_of_something_else_is_refused(tmp_path):
    X, path = ragged(9), tmp_path / "K.zarr"
    compute(RNTK(), X, out=path, block=4)
    changed = ragged(9)
    changed[3][0, 0] += 1e-9
    for arguments, options, difference in [
        ((RNTK(sigma_w=1.0), X), {}, "kernel.sigma_w is 1.414"),
        ((RNTK(activation="erf"), X), {}, "kernel.activation is relu there and erf here"),
        ((RNTK() + RNTK(), X), {}, "kernel is RNTK there and Sum here"),
        ((RNTK(), changed), {}, "X is"),
        ((RNTK(), X, X), {}, "Y is null there"),
        ((RNTK(kind="nngp"), X), {}, "kernel.kind is ntk there and nngp here"),
        ((RNTK(), X), {"dtype": "float32"}, "dtype is float64 there and float32 here"),
        ((RNTK(), X), {"block": 5}, "block is 4 there and 5 here"),
        ((RNTK(), X), {"key": "mine"}, "key is nothing there and mine here"),
    ]:
        with pytest.raises(GramStoreError, match="holds another Gram matrix") as caught:
            compute(*arguments, out=path, **options)
        assert difference in str(caught.value), caught.value
    # What changes no number is no difference; neither is the form in which sequences come.
    before = (path / "zarr.json").read_bytes()
    same = RNTK(n_jobs=1, progress=False, sigma_w_bounds="fixed")
    compute(same, as_batch(X), out=path, memory="50MB", n_jobs=2, overwrite=True)
    assert (path / "zarr.json").read_bytes() == before
    K = compute(RNTK(sigma_w=1.0), X, out=path, overwrite=True)
    assert relative_error(K.to_array(), RNTK(sigma_w=1.0)(X)) < 1e-12


@pytest.mark.parametrize("name", ["K-0.1.0.gram", "K-0.1.0.zarr"])
def test_stores_of_the_first_version_are_refused_in_one_sentence(tmp_path, name):
    shutil.copytree(FILES / name, tmp_path / name)
    with pytest.raises(GramStoreError, match=r"was stored by rntk 0\.1\.0, which this version doesn't read: compute"):
        rntk.gram.open(tmp_path / name)
    refusal = "stored by rntk 0" if name.endswith(".zarr") else "a name that ends in .zarr"
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=refusal):
            compute(RNTK(), np.ones((3, 2)), out=tmp_path / name, overwrite=overwrite)
    assert sorted(each.name for each in (tmp_path / name).iterdir()) == sorted(
        each.name for each in (FILES / name).iterdir()
    )


@pytest.mark.parametrize(
    "call",
    [
        {"kernel": RNTK("rleu")},
        {"kernel": RNTK(depth=0)},
        {"memory": "100"},
        {"kernel": RBF(), "X": [np.ones(3), np.ones(4)]},
        {"kernel": lambda A, B: A.nonsense},
        {"kernel": lambda A, B: A},
        {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
        {"kernel": lambda A, B: 1j * A @ B.T},
    ],
)
def test_a_call_that_cannot_work_touches_nothing(tmp_path, call):
    X, path = np.random.default_rng(0).standard_normal((20, 5)), tmp_path / "K.zarr"
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
    compute(RNTK(), X, out=tmp_path / "real.zarr")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "real.zarr")
    (tmp_path / "dangling.zarr").symlink_to(tmp_path / "new.zarr")
    for name in ("link.zarr", "dangling.zarr"):
        K = compute(RNTK(sigma_b=1.0), X, out=tmp_path / name, overwrite=True)
        np.testing.assert_allclose(K.to_array(), RNTK(sigma_b=1.0)(X), rtol=1e-12)
        assert (tmp_path / name).is_symlink()


def test_only_stores_are_replaced(tmp_path):
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "thesis.tex").write_text("years of work")
    (tmp_path / "file.zarr").write_text("more work")
    zarr.create_array(tmp_path / "other.zarr", shape=(3, 3), dtype="float64")
    X = np.ones((3, 2))
    for name, reason in [
        ("mine.zarr", r"no stored Gram matrix .*No such file.*zarr\.json"),
        ("file.zarr", "is a file, and a store is a folder"),
        ("no/K.zarr", "no folder"),
        ("other.zarr", "no stored Gram matrix"),
    ]:
        for overwrite in (False, True):
            with pytest.raises(GramStoreError, match=reason):
                compute(Counting(), X, out=tmp_path / name, overwrite=overwrite)
    assert (tmp_path / "mine.zarr" / "thesis.tex").read_text() == "years of work"
    for name in ("mine.zarr", "file.zarr", "none.zarr", "other.zarr"):
        with pytest.raises(GramStoreError, match="is no stored Gram matrix"):
            rntk.gram.open(tmp_path / name)
    (tmp_path / "empty.zarr").mkdir()
    assert compute(Counting(), X, out=tmp_path / "empty.zarr").complete


# -- memory ----------------------------------------------------------------------------------------------------------


def test_blocks_follow_the_memory():
    batch = as_batch(np.zeros((20_000, 100), dtype="float32"))
    for kernel, memory in [
        (RNTK(dtype="float32"), 10**9),
        (RNTK(), 10**8),
        (RNTK(depth=3), 10**7),
        (RNTK(activation="tanh"), 10**9),
    ]:
        work = make_work(kernel, batch, None, None)
        assert work.working_bytes(work.layout(None, memory).block) <= memory
    work = make_work(RNTK(dtype="float32"), batch, None, None)
    assert work.layout(None, 10**9).block == 2000
    # For workers there are tiles enough, as long as they don't get tiny.
    assert len(work.layout(None, 10**9, tiles=200)) >= 200
    assert 200 <= make_work(RNTK(), np.zeros((1000, 5)), None, None).layout(None, 10**9, 10**6).block <= 256
    assert make_work(RNTK(), np.zeros((30, 5)), None, None).layout(None, 10**9).block == 30


def test_costly_pairs_and_large_sides_make_small_tiles(monkeypatch):
    """`Pairwise` may say what pairs cost, and how much memory a side takes."""
    of, batch = pairwise.of, as_batch(np.zeros((2000, 100)))

    def block(**facts):
        def saying(kernel):
            found = of(kernel)
            found.cost = lambda left, right: float(np.minimum(left.mean(), right.mean()) * len(left) * len(right))
            found.nbytes = lambda side: 0
            vars(found).update(facts)
            return found

        monkeypatch.setattr(pairwise, "of", saying)
        return make_work(RNTK(), batch, None, None).layout(None, 10**9).block

    assert block() == 2000
    assert block(cost=lambda left, right: float(left.sum() * right.sum())) < 400
    assert block(nbytes=lambda side: 4 * 100 * 9000) < 600  # of the four sequences that are tried


def test_what_does_not_fit_is_refused():
    X = np.zeros((300, 3))
    with pytest.raises(ValueError, match=r"takes 361 kB, and memory is 300 kB; pass out=\"name.zarr\""):
        compute(Counting(), X, memory="300kB", block=20)
    with pytest.raises(ValueError, match=r"block=300 sequences need about .*, and memory leaves 639 kB"):
        compute(Counting(), X, memory=1e6, block=300)
    assert compute(Counting(), X, memory="370kB").block < 16
    with pytest.raises(ValueError, match=r"block=1 sequences need about .*, and memory leaves 1 MB; .* more memory"):
        rntk.gram.stream(Counting(), np.zeros((3, 50_000)), memory="1MB")
    assert compute(Counting(), X[:5], block=5000, memory="100kB").block == 5


def test_blocks_beyond_the_matrix_are_the_matrix(tmp_path):
    X = np.ones((5, 3))
    for block in (5000, 5, None, 7):
        assert store_linear(X, tmp_path / "K.zarr", block=block).block == 5


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
        (np.zeros((2, 2)), r"returned a matrix of shape \(2, 2\) where \(5, 5\) was expected"),
        (np.full((5, 5), 1j), "must give real numbers"),
        (np.full((5, 5), np.nan), "not finite numbers"),
        (np.full((5, 5), 1e39), "up to 1e.39, beyond float32"),
    ],
)
def test_results_that_are_no_kernel(tmp_path, kernel, message):
    def sound_at_first(A, B):
        return kernel if len(A) == 5 else np.ones((len(A), len(B)))

    with pytest.raises(ValueError, match=message):
        compute(sound_at_first, np.ones((5, 2)), out=tmp_path / "K.zarr", dtype="float32")
    assert not rntk.gram.open(tmp_path / "K.zarr").complete


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "rbf"}, TypeError, "kernel must be"),
        ({"kernel": RNTK(readout="sequence")}, ValueError, 'readout="sequence" has one row per step'),
        ({"kernel": RNTK() * RNTK(readout="sequence")}, ValueError, 'readout="sequence"'),
        ({"kernel": RNTK(dtype="int8")}, ValueError, "dtype must be"),
        ({"dtype": "float16"}, ValueError, "dtype must be"),
        ({"dtype": "numbers"}, ValueError, "dtype must be"),
        ({"block": 0}, ValueError, "block must be"),
        ({"block": 2.5}, ValueError, "block must be"),
        ({"block": True}, ValueError, "block must be"),
        ({"memory": "much"}, ValueError, "memory must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"kernel": Counting(), "n_jobs": 2}, ValueError, "n_jobs=2 has no effect"),
        ({"out": "K.npy"}, ValueError, "ends in .zarr"),
        ({"out": "K.gram"}, ValueError, "ends in .zarr"),
        ({"key": 3}, TypeError, "key must be"),
        ({"out": 3}, TypeError, "out must be"),
        ({"out": "a\0b.zarr"}, ValueError, "no usable path"),
        ({"out": f"{'x' * 5000}.zarr"}, ValueError, "no usable path: File name too long"),
        ({"kernel": RNTK}, TypeError, r"such as RNTK\(\), not the class"),
        ({"X": [[1.0], []]}, SequenceError, "empty"),
        ({"Y": np.ones((2, 3, 4))}, ValueError, "channels"),
        ({"kernel": NTK(), "Y": np.ones((2, 5))}, ValueError, "X has 3 channels and Y has 5"),
        ({"client": 3}, TypeError, "client must be"),
    ],
)
def test_hostile_arguments(options, error, message):
    if "client" in options:
        pytest.importorskip("distributed", reason='clusters need dask: pip install "rntk[distributed]"')
    with pytest.raises(error, match=message):
        compute(**({"kernel": RNTK(), "X": np.ones((4, 3))} | options))


@pytest.mark.parametrize("wrong", [5, "", "a\0b", "x" * 5000])
def test_what_is_no_path_is_refused(wrong):
    for use in (lambda: rntk.gram.open(wrong), lambda: rntk.gram.cached(wrong, RNTK(), np.ones((4, 3)))):
        with pytest.raises((TypeError, ValueError), match=r"must be a path, not int|no usable path"):
            use()


def test_progress_is_silent_unless_asked_for(tmp_path, capsys):
    X = np.ones((6, 3))
    compute(RNTK(), X, block=2)
    assert capsys.readouterr() == ("", "")
    compute(RNTK(), X, out=tmp_path / "K.zarr", block=2, progress=True)
    shown = capsys.readouterr()
    assert "Gram matrix" in shown.err and "100%" in shown.err and shown.out == ""
    compute(RNTK(), X, out=tmp_path / "K.zarr", block=2, progress=True)  # all there: they are only checked
    assert "checksums" in capsys.readouterr().err


def test_zarr_is_readable_by_others_and_may_be_compressed(tmp_path):
    X = np.ones((40, 3))
    for compress, least, most in ((True, 1, 400), (False, 1600, 1700)):  # all the same number
        path = tmp_path / f"{compress}.zarr"
        compute(Counting(), X, out=path, block=20, compress=compress, dtype="float32")
        array = zarr.open_array(path, mode="r")
        assert (array.shape, array.chunks, array.dtype) == ((40, 40), (20, 20), np.float32)
        assert (array[:20] == 3).all() and np.isnan(array[20:, :20]).all()
        assert least <= (path / "c" / "0" / "1").stat().st_size < most
        assert rntk.gram.open(path).read(slice(20, None), slice(20)).min() == 3


def test_kernel_values_do_get_smaller(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 30)).cumsum(axis=1)
    for dtype, most in (("float32", 0.87), ("float64", 0.92)):
        path = tmp_path / f"{dtype}.zarr"
        compute(RNTK(normalize=True, dtype=dtype), X, out=path, block=200)
        assert (path / "c" / "0" / "0").stat().st_size < most * 200**2 * np.dtype(dtype).itemsize


def test_without_zarr_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install \"rntk\[disk\]\""):
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
    out = tmp_path / "K.zarr"
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
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.npy"), "must end in .zarr")
    assert_one_line_refusal(run(tmp_path / "nowhere.tsv", "--out", tmp_path / "K.zarr"), "no such file")
    assert_one_line_refusal(run(path, "--out", tmp_path / "no" / "K.zarr"), "no folder")
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.zarr", "--sigma-w", -1), "sigma_w")
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.zarr", "--memory", "much"), "memory must be")
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.zarr", "--readout", "sequence"), "readout")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "distributed", None)
        refused = run(path, "--out", tmp_path / "K.zarr", "--scheduler", "tcp://127.0.0.1:1")
        assert_one_line_refusal(refused, 'pip install "rntk[distributed]"')
    monkeypatch.setitem(sys.modules, "zarr", None)
    assert_one_line_refusal(run(path, "--out", tmp_path / "K.zarr"), 'pip install "rntk[disk]"')
