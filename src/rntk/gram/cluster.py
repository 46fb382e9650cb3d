"""Tiles on the workers of a Dask cluster. Dask is loaded when it is used: pip install "rntk[distributed]"."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ClusterError, need_extra, say_bytes
from ..runtime import parse_bytes
from ..sequences import SequenceBatch
from .layout import Tile
from .store import TileStore, ZarrStore
from .work import TileMaker, Work, make_work

Array = NDArray[Any]
#: Tasks per thread of a cluster: enough that all are busy to the end, few enough that messages cost little.
TASKS = 12
#: Times that tiles are submitted: those lost with their workers once more, and once more.
ROUNDS = 3
#: Seconds to wait for a first worker, or for one to come back when all are gone.
PATIENCE = 60.0
#: What distributed raises for tasks whose data is lost; it changed.
CANCELLED = (concurrent.futures.CancelledError, asyncio.CancelledError)

#: Takes a tile that is done, and its values unless the worker has written them.
Keep = Callable[[Tile, Array | None], None]


def compute_on_workers(
    client: Any, tiles: TileMaker, store: TileStore, wanted: list[Tile], keep: Keep, budget: int
) -> None:
    """Compute the tiles that are wanted on the workers.

    Sequences and kernel are sent once to every worker, which keeps what it prepares of them. A task is a strip of
    tiles; workers that find the store write into it and send nothing back. What is lost with a worker is submitted
    again.
    """
    refuse_device(tiles.work)
    try:
        need_extra("distributed", "cloudpickle").dumps(tiles.work.kernel)
    except Exception as error:  # whatever the kernel's own methods raise
        raise TypeError(f"the kernel can't be sent to workers: {error}") from error
    size = tiles.layout.numbers((0, 0)) * tiles.work.dtype.itemsize
    most = max(1, budget // (8 * size))  # what one task brings back is held here, and what waits is held there
    place = store if isinstance(store, ZarrStore) else None
    try:
        with client.as_current():  # `wait` asks for the client of the moment, not for that of the futures
            for _ in range(ROUNDS):
                _await_workers(client)
                try:
                    shared = client.scatter(tiles, broadcast=True, hash=False)
                except TimeoutError:  # the workers were lost meanwhile
                    continue
                wanted = _one_round(client, shared, place, wanted, keep, most)
                if not wanted:
                    return
    except OSError as error:
        if client.status == "running":  # then it is about the disk
            raise
        raise ClusterError(f"the Dask scheduler is gone ({error}); the same call goes on with another") from error
    raise ClusterError(
        f"workers die on tile {wanted[0]} ({say_bytes(size)}), perhaps for want of memory; take a smaller block, or "
        "fewer threads per worker"
    )


def refuse_device(work: Work) -> None:
    """Raise for sequences that can't be sent as they are."""
    if not isinstance(work.X, SequenceBatch):
        raise TypeError(
            "sequences on a device can't be sent to workers; bring them to the CPU, or compute without Dask"
        )


def _one_round(
    client: Any, shared: Any, store: ZarrStore | None, wanted: list[Tile], keep: Keep, most: int
) -> list[Tile]:
    """Submit all tiles once, two tasks per thread at a time; returns those that were lost."""
    length = min(most, -(-len(wanted) // (TASKS * max(1, _threads(client)))))
    waiting = deque(wanted[k : k + length] for k in range(0, len(wanted), length))
    under_way: dict[Any, list[Tile]] = {}
    lost: list[Tile] = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < 2 * max(1, _threads(client)):
                future = client.submit(_compute_strip, shared, store, waiting[0], pure=False)
                under_way[future] = waiting.popleft()
            for future in _wait(client, under_way):
                strip = under_way.pop(future)
                try:
                    results = future.result(timeout=PATIENCE)
                except TimeoutError:
                    if future.status == "error":  # an error of the kernel
                        raise
                    under_way[future] = strip  # lost with its worker just now: another one has begun with it
                except (*CANCELLED, need_extra("distributed", "distributed.scheduler").KilledWorker):
                    lost += strip
                else:
                    for tile, values in zip(strip, results, strict=True):
                        keep(tile, values)
            if shared.status in ("cancelled", "lost", "error"):  # with the last worker that had it
                return lost + [tile for strip in (*under_way.values(), *waiting) for tile in strip]
    finally:
        with suppress(Exception):  # whatever ended the run says more than a cluster that is gone
            client.cancel([*under_way, shared])
    return lost


def _compute_strip(tiles: TileMaker, store: ZarrStore | None, strip: list[Tile]) -> list[Array | None]:
    """What a worker does: some tiles, into the store if it is there."""
    if store is None or not store.is_here():
        return [tiles.compute(tile) for tile in strip]
    for tile in strip:
        store.write(tile, tiles.compute(tile))
    return [None] * len(strip)


def _wait(client: Any, futures: Any) -> list[Any]:
    """The futures that ended, after waiting for one."""
    try:
        need_extra("distributed", "distributed").wait(list(futures), timeout=5, return_when="FIRST_COMPLETED")
    except TimeoutError:
        _await_workers(client)
    except CANCELLED:  # some are, and are found just below
        pass
    return [future for future in futures if future.status not in ("pending", "lost")]


def _await_workers(client: Any) -> None:
    """Return once there is a worker."""
    until = time.monotonic() + PATIENCE
    while not client.nthreads():
        if time.monotonic() > until:
            raise ClusterError(
                f"the cluster at {client.scheduler.address} had no worker for {PATIENCE:.0f} seconds; start workers, "
                "and the same call goes on"
            )
        time.sleep(0.1)


def _threads(client: Any) -> int:
    return int(sum(client.nthreads().values()))


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """A client for a client or the address of a scheduler; None for None."""
    if client is None:
        yield None
        return
    distributed = need_extra("distributed", "distributed")
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
        opened = distributed.Client(client, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise ClusterError(f"there is no Dask scheduler at {client!r}: {error}") from error
    with opened:
        yield opened


def tiles_to_share(client: Any) -> int:
    """Tiles that keep all workers busy to the end."""
    return 0 if client is None else TASKS * _threads(client)


def as_dask(
    kernel: Any,
    X: Any,
    Y: Any = None,
    *,
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
    kernel, X, Y, dtype, block
        As for `rntk.gram.compute`.
    memory : int or str
        What one tile, and sequences prepared for tiles, may take.

    Returns
    -------
    dask.array.Array

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> from rntk.gram import as_dask
    >>> K = as_dask(RNTK(), np.ones((50, 20)), block=20)  # doctest: +SKIP
    >>> K.sum(axis=1).compute()  # doctest: +SKIP
    """
    dask, array = need_extra("distributed", "dask"), need_extra("distributed", "dask.array")
    work, budget = make_work(kernel, X, Y, dtype), parse_bytes(memory)
    refuse_device(work)
    layout = work.layout(block, budget)
    shared = dask.delayed(TileMaker(work.alone(), layout, budget), pure=False, traverse=False)
    compute = dask.delayed(TileMaker.compute, pure=False)
    tiles = {
        tile: array.from_delayed(
            compute(shared, tile), layout.tile_shape(tile), dtype=work.dtype, meta=np.empty((0, 0), work.dtype)
        )
        for tile in layout
    }
    rows, columns = layout.blocks
    return array.block(
        [[tiles[i, j] if (i, j) in tiles else tiles[j, i].T for j in range(columns)] for i in range(rows)]
    )
