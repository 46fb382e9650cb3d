"""Tiles on the workers of a Dask cluster. Dask is loaded when it is used: pip install "rntk[distributed]"."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.pairwise import with_settings
from ..runtime import parse_bytes, say_bytes
from .errors import ClusterError
from .layout import Layout, Tile
from .work import Work, make_work

Array = NDArray[Any]
#: Seconds a task takes about: small tiles go in groups, so that messages cost little.
TASK_SECONDS = 1.0
#: Seconds to wait for a first worker, or for one to come back when all are gone.
PATIENCE = 60.0
#: Times that Dask may give up on a tile, after losing a few workers each time, before the worker's memory is to blame.
MOST_LOSSES = 2
#: What distributed raises for tasks whose data is lost; it changed.
CANCELLED = (concurrent.futures.CancelledError, asyncio.CancelledError)


def run_on_cluster(
    client: Any, work: Work, layout: Layout, tiles: list[Tile], put: Callable[[Tile, Array], None], budget: int
) -> None:
    """Compute `tiles` on the workers and hand each to `put`, in the order in which they finish.

    Sequences and kernel are sent once, to every worker. Two tasks per thread are under way at a time. What is lost with
    a worker is computed by another one; if the last copy of the sequences is lost, they are sent again.
    """
    refuse_device(work)
    try:
        with client.as_current():  # `wait` asks for the client of the moment, not for that of the futures
            _Run(client, work, layout, tiles, budget).finish(put)
    except OSError as error:
        if client.status == "running":  # then it is about the disk
            raise
        raise ClusterError(f"the Dask scheduler is gone ({error}); the same call goes on with another") from error


def refuse_device(work: Work) -> None:
    """Raise for sequences that can't be sent as they are."""
    if work.device:
        raise TypeError(
            "sequences on a device can't be sent to workers; bring them to the CPU, or compute without Dask"
        )


class _Run:
    """The state of one run: tiles that wait, tasks under way, how long a tile takes."""

    def __init__(self, client: Any, work: Work, layout: Layout, tiles: list[Tile], budget: int) -> None:
        self.client = client
        try:
            import_module("cloudpickle").dumps(work.kernel)
        except Exception as error:  # whatever the kernel's own methods raise
            raise TypeError(f"the kernel can't be sent to workers: {error}") from error
        # One thread each: a worker runs as many tasks at once as it has threads.
        self.work = replace(work, kernel=with_settings(work.kernel, n_jobs=1))
        self.layout = layout
        self.waiting = deque(tiles)
        self.under_way: dict[Any, list[Tile]] = {}
        self.losses: dict[Tile, int] = {}
        self.seconds_per_tile = TASK_SECONDS
        # What one task brings back is held here, and what waits on the workers is held there.
        self.most_together = max(1, int(budget / 8 / (layout.numbers(next(iter(layout))) * work.dtype.itemsize)))
        self.data: Any = None
        self.direct = False

    def finish(self, put: Callable[[Tile, Array], None]) -> None:
        """Compute everything that waits."""
        wait = _import("distributed").wait
        self._send()
        self.direct = _reaches_workers(self.client)
        try:
            while self.waiting or self.under_way:
                self._submit()
                if not self.under_way:
                    self._await_workers()
                    continue
                try:
                    wait(list(self.under_way), timeout=5, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    self._await_workers()
                except CANCELLED:  # some are, and are found just below
                    pass
                for future in [each for each in self.under_way if each.status not in ("pending", "lost")]:
                    for tile, values in self._collect(future):
                        put(tile, values)
                    self._submit()
                if self.data.status in ("cancelled", "lost", "error"):
                    self._send()
        finally:
            with suppress(Exception):  # whatever ended the run says more than a cluster that is gone
                self.client.cancel([*self.under_way, self.data])

    def _collect(self, future: Any) -> list[tuple[Tile, Array]]:
        """The tiles of a task that ended; none if it has to run again."""
        group = self.under_way.pop(future)
        try:
            if self.direct:
                seconds, results = self.client.gather(future, direct=True)
            else:
                seconds, results = future.result(timeout=PATIENCE)
        except TimeoutError:
            if future.status == "error":  # an error of the kernel
                raise
            self.under_way[future] = group  # lost with its worker just now: another one has begun with it
            return []
        except CANCELLED:
            self.waiting.extendleft(reversed(group))
            return []
        except _import("distributed.scheduler").KilledWorker as error:
            self._count_loss(group, error)
            self.waiting.extend(group)
            return []
        self.seconds_per_tile = seconds / len(group)
        return list(zip(group, results, strict=True))

    def _submit(self) -> None:
        """Keep every thread busy, with one more task at hand."""
        threads = sum(self.client.nthreads().values())
        while self.waiting and len(self.under_way) < 2 * threads:
            share = -(-len(self.waiting) // (2 * threads))  # towards the end, something for everybody
            size = min(share, self.most_together, max(1, int(TASK_SECONDS / max(self.seconds_per_tile, 1e-3))))
            group = [self.waiting.popleft() for _ in range(max(1, size))]
            future = self.client.submit(_compute_group, self.data, self.layout, group, pure=False)
            self.under_way[future] = group

    def _send(self) -> None:
        """Give kernel and sequences to every worker."""
        for _ in range(3):
            self._await_workers()
            try:
                self.data = self.client.scatter(self.work, broadcast=True, hash=False)
                return
            except TimeoutError:  # the workers were lost meanwhile
                continue
        raise ClusterError(f"no worker of {self.client.scheduler.address} took the sequences")

    def _await_workers(self) -> None:
        """Return once there is a worker."""
        until = time.monotonic() + PATIENCE
        while not self.client.nthreads():
            if time.monotonic() > until:
                raise ClusterError(
                    f"the cluster at {self.client.scheduler.address} had no worker for {PATIENCE:.0f} seconds; "
                    "start workers, and the same call goes on"
                )
            time.sleep(0.1)

    def _count_loss(self, group: list[Tile], error: Exception) -> None:
        for tile in group:
            self.losses[tile] = self.losses.get(tile, 0) + 1
            if self.losses[tile] >= MOST_LOSSES:
                size = say_bytes(self.layout.numbers(tile) * self.work.dtype.itemsize)
                raise ClusterError(
                    f"workers die on tile {tile} ({size}), perhaps for want of memory; take a smaller block, or fewer "
                    "threads per worker"
                ) from error


def _compute_group(work: Work, layout: Layout, group: list[Tile]) -> tuple[float, list[Array]]:
    """What a worker does: some tiles, and the seconds they took."""
    begin = time.perf_counter()
    results = [work.compute(layout, tile) for tile in group]
    return time.perf_counter() - begin, results


def _reaches_workers(client: Any) -> bool:
    """Whether workers can be asked for results directly. Through the scheduler, every byte travels twice."""
    for address in list(client.nthreads())[:3]:
        try:
            host, port = address.rpartition("://")[2].rsplit(":", 1)
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        except (OSError, ValueError):
            return False
    return True


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """A client for a client or the address of a scheduler; None for None."""
    if client is None:
        yield None
        return
    distributed = _import("distributed")
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            raise TypeError("client must be a synchronous distributed.Client")
        if client.status != "running":
            raise ClusterError(f"the Dask client is {client.status}; make a new one")
        yield client
        return
    if not isinstance(client, str):
        found = type(client).__name__
        raise TypeError(f"client must be a distributed.Client or the address of a scheduler, not {found}")
    try:
        own = distributed.Client(client, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise ClusterError(f"there is no Dask scheduler at {client!r}: {error}") from error
    with own:
        yield own


def tiles_to_share(client: Any) -> int:
    """Tiles that keep all workers busy to the end: a dozen per thread."""
    return 0 if client is None else 12 * sum(client.nthreads().values())


def as_dask(
    kernel: Any,
    X: Any,
    Y: Any = None,
    *,
    kind: str = "ntk",
    dtype: Any = None,
    block: int | None = None,
    memory: int | float | str = "1GB",
) -> Any:
    """The Gram matrix as a `dask.array.Array` whose blocks are the tiles, computed when Dask asks for them.

    Tiles below the diagonal are transposes of those above. Every tile runs on one thread; the numbers are those of
    `compute` with the same block. The sequences are part of the task graph: to send many of them to a cluster, and to
    keep tiles, use `compute` with a client.

    Parameters
    ----------
    kernel, X, Y, kind, dtype, block, memory : as for `rntk.gram.compute`; `memory` is what one tile may take.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> from rntk.gram import as_dask
    >>> K = as_dask(RNTK(), np.ones((50, 20)), block=20)  # doctest: +SKIP
    >>> K.sum(axis=1).compute()  # doctest: +SKIP
    """
    dask, array = _import("dask"), _import("dask.array")
    work = make_work(kernel, X, Y, kind, dtype)
    refuse_device(work)
    layout = work.layout(block, parse_bytes(memory))
    work = replace(work, kernel=with_settings(work.kernel, n_jobs=1))
    shared = dask.delayed(work, pure=False, traverse=False)
    compute = dask.delayed(_compute_tile, pure=False)
    tiles = {
        tile: array.from_delayed(
            compute(shared, layout, tile), layout.tile_shape(tile), dtype=work.dtype, meta=np.empty((0, 0), work.dtype)
        )
        for tile in layout
    }
    rows, columns = layout.blocks
    return array.block(
        [[tiles[i, j] if (i, j) in tiles else tiles[j, i].T for j in range(columns)] for i in range(rows)]
    )


def _compute_tile(work: Work, layout: Layout, tile: Tile) -> Array:
    return work.compute(layout, tile)


def _import(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(
            f'Dask can\'t be imported ({error}): pip install "rntk[distributed]"', name=module.partition(".")[0]
        ) from None
