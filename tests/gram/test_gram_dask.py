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

    def __call__(self, A, B=None):
        self.calls += 1
        if B is not None and A[0, 0] == self.value and self.file.exists():
            raise ArithmeticError("broken")
        return linear(A, B)

    def get_params(self, deep=True):
        return {}


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
    store, flag = tmp_path / "K.gram", tmp_path / "flag"
    kernel = Fragile(flag, X[24, 0])
    flag.touch()
    with pytest.raises(ArithmeticError, match="broken"):  # on tile (3, 4), the last
        compute(kernel, X, out=store, block=8, client=client.scheduler.address)
    flag.unlink()
    begun = rntk.gram.open(store)
    left = [tile for tile in begun.tiles if not begun._store.is_done(tile)]
    assert (3, 4) in left and len(left) < 10
    K = compute(kernel, X, out=store)
    assert kernel.calls == len(left) + 1  # in this process, and once to see that it works
    np.testing.assert_array_equal(K.to_array(), compute(linear, X, block=8).to_array())


def test_the_command_takes_a_scheduler(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 6)).round(3)
    data = tmp_path / "toy.csv"
    data.write_text("\n".join(",".join(map(str, [k % 2, *row])) for k, row in enumerate(X)) + "\n")
    arguments = ["gram", data, "--out", tmp_path / "K.gram", "--block", 5, "--scheduler", client.scheduler.address]
    result = CliRunner().invoke(app, [*map(str, arguments), "--label", "first"])
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(rntk.gram.open(tmp_path / "K.gram").read(), compute(RNTK(), X, block=5).read())
    arguments[3], arguments[-1] = tmp_path / "another.gram", "nonsense://1"
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
    sent, send, collect = [], cluster._Run._send, cluster._Run._collect

    def watch(self):
        send(self)
        sent.append(self.data)

    def lose(self, future):
        if len(self.waiting) < 15 and len(sent) == 1:
            # As if the last worker that has them died: the scheduler forgets them and all tasks that need them.
            client.cancel([self.data], force=True)
        return collect(self, future)

    monkeypatch.setattr(cluster._Run, "_send", watch)
    monkeypatch.setattr(cluster._Run, "_collect", lose)
    K = compute(slow_kernel, X, block=4, client=client)
    assert len(sent) == 2
    np.testing.assert_array_equal(K.to_array(), compute(linear, X, block=4).to_array())


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


def test_small_tiles_travel_in_groups(client, monkeypatch):
    groups, submit = [], client.submit

    def watch(function, data, layout, group, **options):
        groups.append(len(group))
        return submit(function, data, layout, group, **options)

    monkeypatch.setattr(client, "submit", watch)
    X = np.random.default_rng(0).standard_normal((40, 3))
    K = compute(linear, X, block=2, client=client)
    np.testing.assert_allclose(K.to_array(), X @ X.T, atol=1e-13)
    assert sum(groups) == 210
    assert groups[0] == 1 and max(groups) > 10 and len(groups) < 60


def test_a_killed_worker_costs_time_and_nothing_else(client, monkeypatch):
    X = np.random.default_rng(0).standard_normal((40, 3))
    victims, collect = list(client.run(os.getpid).values()), cluster._Run._collect
    killed = []

    def kill(self, future):
        if len(self.waiting) < 40 and not killed:
            killed.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)
        return collect(self, future)

    monkeypatch.setattr(cluster._Run, "_collect", kill)
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
