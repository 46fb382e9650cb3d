"""Tiles on a Dask cluster: the same numbers, also when workers die, and the matrix as a Dask array."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest
from typer.testing import CliRunner

import rntk.gram
from helpers.refusals import assert_one_line_refusal
from rntk import RNTK, KernelOverflowError
from rntk.cli import app
from rntk.gram import ClusterError, as_dask, cluster, compute
from rntk.gram.store import ZarrStore

WITHOUT = 'clusters need dask: pip install "rntk[distributed]"'
needs_dask = pytest.mark.skipif(not (find_spec("dask") and find_spec("distributed")), reason=WITHOUT)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason=WITHOUT)
    dask = pytest.importorskip("dask", reason=WITHOUT)
    options = {}
    if "forkserver" in multiprocessing.get_all_start_methods():
        # Workers, also those that replace killed ones, begin with everything imported: seconds each on a busy machine.
        options = {"distributed.worker.multiprocessing-method": "forkserver"}
        with dask.config.set(options):
            context = distributed.utils.get_mp_context()
        context.set_forkserver_preload(["distributed", "rntk.kernels", "rntk.engine.fused"])
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as local,
        distributed.Client(local) as connected,
    ):
        yield connected


def linear(A, B=None):
    return A @ (A if B is None else B).T


def slow_kernel(A, B=None):
    time.sleep(0.05)
    return linear(A, B)


class Fragile:
    """A kernel that fails on one tile as long as a file is there, and counts its calls."""

    def __init__(self, file, value) -> None:
        self.file, self.value, self.calls = file, value, 0

    def __call__(self, A, B):
        self.calls += 1
        if B is not A and A[0, 0] == self.value and len(A) > 2 and self.file.exists():
            raise ArithmeticError("broken")
        return linear(A, B)


def ragged(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(3, 9), 2)) for _ in range(count)]


def test_workers_compute_the_same_numbers(client):
    X, Y, kernel = ragged(23), ragged(9, seed=1), RNTK(sigma_h=0.5, normalize=True, dtype="float32")
    for other in (None, Y):
        K = compute(kernel, X, other, block=5, client=client)
        np.testing.assert_array_equal(K.to_array(), compute(kernel, X, other, block=5).to_array())


def test_an_address_will_do_and_a_local_run_goes_on_with_the_store(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    store, flag = tmp_path / "K.zarr", tmp_path / "flag"
    kernel = Fragile(flag, X[24, 0])
    flag.touch()
    with pytest.raises(ArithmeticError, match="broken"):  # on tile (3, 4), the last
        compute(kernel, X, out=store, block=8, client=client.scheduler.address, key="fragile")
    flag.unlink()
    left, _ = rntk.gram.open(store)._store.find()
    assert (3, 4) in left and len(left) < 10
    kernel.calls = 0
    K = compute(kernel, X, out=store, key="fragile")
    assert kernel.calls == len(left)  # in this process
    np.testing.assert_array_equal(K.to_array(), compute(linear, X, block=8).to_array())


@pytest.mark.parametrize("reachable", [True, False])
def test_workers_write_their_tiles_if_they_find_the_store(client, tmp_path, monkeypatch, reachable):
    X, kept, write = ragged(30), [], ZarrStore.write

    def watch(self, tile, values):
        kept.append(tile)
        write(self, tile, values)

    monkeypatch.setattr(ZarrStore, "write", watch)
    if not reachable:  # as on another machine, which sees another folder there
        state = ZarrStore.__getstate__
        monkeypatch.setattr(ZarrStore, "__getstate__", lambda self: {**state(self), "path": tmp_path / "elsewhere"})
    K = compute(RNTK(), X, out=tmp_path / "K.zarr", block=5, client=client)
    assert len(kept) == (0 if reachable else 21)  # by this process
    np.testing.assert_array_equal(K.to_array(), compute(RNTK(), X, block=5).to_array())


def test_the_command_takes_a_scheduler(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 6)).round(3)
    data = tmp_path / "toy.csv"
    data.write_text("\n".join(",".join(map(str, [k % 2, *row])) for k, row in enumerate(X)) + "\n")
    arguments = ["gram", data, "--out", tmp_path / "K.zarr", "--block", 5, "--scheduler", client.scheduler.address]
    result = CliRunner().invoke(app, [*map(str, arguments), "--label", "first"])
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(rntk.gram.open(tmp_path / "K.zarr").read(), compute(RNTK(), X, block=5).read())
    arguments[3], arguments[-1] = tmp_path / "another.zarr", "nonsense://1"
    refused = CliRunner().invoke(app, [*map(str, arguments), "--label", "first"])
    assert_one_line_refusal(refused, "no Dask scheduler")


def test_an_overflow_on_a_worker_names_the_sequence(client):
    X = [np.ones(5) for _ in range(20)]
    X[13] = np.ones(5) * 1e20
    with pytest.raises(KernelOverflowError, match=r"kernel of sequence 13 \(length 5\)") as caught:
        compute(RNTK(dtype="float32"), X, block=4, client=client)
    assert caught.value.sequence == 13


def test_sequences_that_are_lost_are_sent_again(client, monkeypatch):
    X = np.random.default_rng(0).standard_normal((28, 3))
    rounds, waits, one_round, wait = [], [], cluster._one_round, cluster._wait

    def watch(client, shared, store, wanted, *rest):
        rounds.append((shared, len(wanted)))
        return one_round(client, shared, store, wanted, *rest)

    def lose(client, futures):
        done = wait(client, futures)
        waits.append(len(done))
        if len(rounds) == 1 and len(waits) == 3:
            # As if the last worker that has them died: the scheduler forgets them and all tasks that need them.
            client.cancel([rounds[0][0]], force=True)
        return done

    monkeypatch.setattr(cluster, "_one_round", watch)
    monkeypatch.setattr(cluster, "_wait", lose)
    K = compute(slow_kernel, X, block=4, client=client)
    assert len(rounds) == 2 and rounds[1][1] < rounds[0][1] == 28
    np.testing.assert_array_equal(K.to_array(), compute(linear, X, block=4).to_array())


def test_tiles_that_are_lost_again_and_again_are_an_error(client, monkeypatch):
    rounds = []

    def lose(client, shared, store, wanted, *rest):
        rounds.append(len(wanted))
        return wanted

    monkeypatch.setattr(cluster, "_one_round", lose)
    with pytest.raises(ClusterError, match=r"workers die on tile \(0, 0\) \(32 bytes\), perhaps for want of memory"):
        compute(linear, np.ones((6, 2)), block=2, client=client)
    assert rounds == [6, 6, 6]  # once, and twice more


@needs_dask
def test_a_cluster_that_is_not_there():
    with pytest.raises(ClusterError, match="there is no Dask scheduler at 'nonsense://1'"):
        compute(RNTK(), np.ones((3, 2)), client="nonsense://1")


def test_what_can_not_be_sent(client):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="the kernel can't be sent to workers"):
        compute(lambda A, B: A @ B.T if lock else 0, np.ones((3, 2)), client=client)
    other = type(client)(client.scheduler.address, set_as_default=False)
    other.close()
    with pytest.raises(ClusterError, match="the Dask client is closed; make a new one"):
        compute(RNTK(), np.ones((3, 2)), client=other)


def test_no_workers(client, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    monkeypatch.setattr(client, "nthreads", dict)
    with pytest.raises(ClusterError, match=r"had no worker for 0 seconds; start workers, and the same call goes on"):
        compute(RNTK(), np.ones((3, 2)), client=client)


def test_a_task_is_a_strip_of_tiles(client, monkeypatch):
    strips, submit = [], client.submit

    def watch(function, shared, store, strip, **options):
        strips.append(len(strip))
        return submit(function, shared, store, strip, **options)

    monkeypatch.setattr(client, "submit", watch)
    X = np.random.default_rng(0).standard_normal((40, 3))
    K = compute(linear, X, block=2, client=client)
    np.testing.assert_allclose(K.to_array(), X @ X.T, atol=1e-13)
    assert sum(strips) == 210 and len(strips) <= 24


def test_a_killed_worker_costs_time_and_nothing_else(client, monkeypatch):
    X = np.random.default_rng(0).standard_normal((40, 3))
    victims, wait = list(client.run(os.getpid).values()), cluster._wait
    killed = []

    def kill(client, futures):
        done = wait(client, futures)
        if not killed:
            killed.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)
        return done

    monkeypatch.setattr(cluster, "_wait", kill)
    K = compute(slow_kernel, X, block=4, client=client)
    assert killed
    np.testing.assert_array_equal(K.to_array(), compute(linear, X, block=4).to_array())


@needs_dask
@pytest.mark.parametrize("two", [False, True])
def test_as_a_dask_array(two):
    X, Y = ragged(11), ragged(7, seed=1) if two else None
    K = as_dask(RNTK(), X, Y, block=4)
    assert K.chunks == ((4, 4, 3), (4, 3) if two else (4, 4, 3))
    expected = compute(RNTK(), X, Y, block=4).to_array()
    np.testing.assert_array_equal(K.compute(scheduler="threads"), expected)
    np.testing.assert_allclose(K.sum(axis=0).compute(scheduler="threads"), expected.sum(axis=0), rtol=1e-12)


@needs_dask
def test_a_dask_array_computes_every_tile_once():
    calls, lock = [], threading.Lock()

    def kernel(A, B=None):
        with lock:
            calls.append(len(A))
        return linear(A, B)

    X = np.random.default_rng(0).standard_normal((12, 3))
    K = as_dask(kernel, X, block=3)
    assert not calls
    np.testing.assert_allclose(K.compute(scheduler="threads"), X @ X.T, atol=1e-13)
    assert len(calls) == 10  # of 16 blocks


def test_without_dask_the_extra_is_named(monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (
        lambda: as_dask(RNTK(), np.ones((3, 2))),
        lambda: compute(RNTK(), np.ones((3, 2)), client="tcp://x:1"),
    ):
        with pytest.raises(ModuleNotFoundError, match=r"pip install \"rntk\[distributed\]\""):
            call()
