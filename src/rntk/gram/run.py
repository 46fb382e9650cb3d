"""From a kernel and sequences to a `GramMatrix`: `compute` now, and on where an earlier run ended, `stream` later."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runtime import parse_bytes, progress_bar
from .cluster import connected, run_on_cluster, tiles_to_share
from .errors import GramStoreError, StoreFullError, name_tiles
from .folder import DOCUMENT, StoreFolder, begin, commit, delete, resume
from .layout import SMALLEST_BLOCK, Tile, fitting_block
from .matrix import GramMatrix, open_store
from .matrix import open as open_matrix
from .stores import ComputedStore, DiskStore, MemoryStore, TileStore, import_zarr
from .work import Work, make_work

Array = NDArray[Any]


def compute(
    kernel: Any,
    X: Any,
    Y: Any = None,
    out: Any = None,
    *,
    kind: str = "ntk",
    dtype: Any = None,
    block: int | None = None,
    memory: int | float | str = "1GB",
    compress: bool | None = None,
    client: Any = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    overwrite: bool = False,
) -> GramMatrix:
    """Compute the Gram matrix of `kernel` tile by tile, into memory or onto disk.

    On disk every finished tile is kept: after an interruption, a crash or a full disk the same call goes on from there.
    A store knows its data and its kernel; of a kernel or activation that is a function, the code and what it reads in
    its own module, but not what other modules do.

    Parameters
    ----------
    kernel : a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix. A function gets arrays of parts of X
        and Y where lengths are equal, lists of sequences otherwise.
    X, Y : sequences, see `rntk.sequences.as_batch`. Without Y the matrix is symmetric, and only tiles on and above the
        diagonal are computed and kept. Tiles of arrays on a device are computed there.
    out : None for memory; a name that ends in .gram for a folder with a file that is mapped, in .zarr for a zarr array.
    kind : "ntk" for kernel(X), "nngp" for kernel.nngp(X).
    dtype : "float32" or "float64", for kernel and result; None is that of the kernel.
    block : sequences per side of a tile. None is that of the store where there is one; otherwise it is chosen so that
        everything fits into `memory` and a tile takes a second or so.
    memory : bytes, or a text such as "1GB", for what is held beside X and Y: tiles at work, and the result if `out` is
        None.
    compress : for a new .zarr: whether tiles are compressed, which saves a seventh to a quarter of the room and takes
        a few hundredths of the time. None does; other stores can't.
    client : a `dask.distributed.Client`, or the address of a scheduler: its workers compute the tiles, one thread each,
        and this process writes them. The numbers of kernels of rntk are the same, bit for bit.
    n_jobs : threads; None is what the kernel says.
    progress : None shows a bar on a terminal after two seconds; True always; False never.
    overwrite : delete a store that holds another matrix.

    Returns
    -------
    GramMatrix : complete. Its `found` says how many tiles an earlier run had left.

    Raises
    ------
    GramStoreError : `out` holds another matrix (the message says what differs), or something else.
    StoreFullError : the disk is full; what is finished is kept.
    KernelOverflowError : a value is too large; `sequence` is its index in X, or in Y.
    ClusterError : the cluster of `client` is gone, or its workers die; what is finished is kept.
    ValueError : the matrix doesn't fit into `memory`, or an argument makes no sense.

    Warns
    -----
    RuntimeWarning : tiles in the store were damaged; they are computed anew.

    Notes
    -----
    Dask tells its workers to give memory back to the system at once, and taking it again costs up to a fifth of the
    time of short sequences. With ``MALLOC_TRIM_THRESHOLD_=268435456`` and ``MALLOC_MMAP_THRESHOLD_=33554432`` in the
    environment of the workers (Dask's setting ``distributed.nanny.pre-spawn-environ``) they keep it.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> from rntk.gram import compute
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> K = compute(RNTK(), X, block=20)
    >>> K
    GramMatrix(50 x 50, float64, in memory)
    >>> bool(np.allclose(K @ np.ones(50), RNTK()(X).sum(axis=1)))
    True
    """
    budget = parse_bytes(memory)
    work = make_work(kernel, X, Y, kind, dtype, n_jobs)
    target = _check_target(out, compress)
    block = fitting_block(block, work.shape)
    if target is not None:
        finished = _finished(work, target, block, progress)
        if finished is not None:
            return finished
    with connected(client) as cluster:
        tiles = tiles_to_share(cluster)
        store: TileStore
        if target is None:
            store = MemoryStore(work.layout_in_memory(block, budget, tiles), work.dtype)
        else:
            try:
                store = _open_or_begin(work, target, block, budget, tiles, compress, overwrite)
            except PermissionError as error:
                raise GramStoreError(f"{target} can't be written: {error}") from error
        try:
            found = _fill(store, work, cluster, budget, progress)
        finally:
            store.close()
    return GramMatrix(store if target is None else open_matrix(target)._store, found)


def stream(
    kernel: Any,
    X: Any,
    Y: Any = None,
    *,
    kind: str = "ntk",
    dtype: Any = None,
    block: int | None = None,
    memory: int | float | str = "1GB",
    n_jobs: int | None = None,
) -> GramMatrix:
    """The Gram matrix as tiles that are computed when they are read: for products, without room for the whole.

    If all tiles fit into `memory` they are kept, otherwise every product computes them again.

    Parameters
    ----------
    kernel, X, Y, kind, dtype, block, memory, n_jobs : as for `rntk.gram.compute`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import LinearOperator, eigsh
    >>> from rntk import RNTK
    >>> from rntk.gram import stream
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> K = stream(RNTK(), X, memory="1MB")
    >>> K
    GramMatrix(300 x 300, float64, computed when read, then kept)
    >>> largest = eigsh(LinearOperator(K.shape, K.matvec, dtype=K.dtype), k=1, return_eigenvectors=False)
    >>> bool(np.isclose(largest[0], np.linalg.eigvalsh(RNTK()(X))[-1]))
    True
    """
    budget = parse_bytes(memory)
    work = make_work(kernel, X, Y, kind, dtype, n_jobs)
    keep = True
    try:
        layout = work.layout_in_memory(block, budget)
        keep = block is not None or layout.block >= min(SMALLEST_BLOCK, max(layout.shape))
    except ValueError:  # it doesn't fit
        keep = False
    if not keep:
        layout = work.layout(block, budget)
    return GramMatrix(ComputedStore(layout, work.dtype, work.compute, keep))


def _finished(work: Work, target: Path, block: int | None, progress: bool | None) -> GramMatrix | None:
    """The stored matrix, if it is this one, complete and undamaged: then nobody needs to write."""
    if not (target / DOCUMENT).exists():
        return None
    try:
        matrix = GramMatrix(open_store(resume(target, work.identity, block, writable=False)))
        if matrix.complete:
            matrix.verify(progress)
            return matrix
    except GramStoreError:  # is dealt with by whoever may write
        pass
    return None


def _check_target(out: Any, compress: bool | None) -> Path | None:
    if compress is not None and not isinstance(compress, (bool, np.bool_)):
        raise ValueError(f"compress must be True, False or None, not {compress!r}")
    if out is not None and not isinstance(out, (str, os.PathLike)):
        raise TypeError(f"out must be None or a path, not {type(out).__name__}")
    target = None if out is None else Path(os.fsdecode(out)).absolute()
    if target is not None and target.suffix not in (".gram", ".zarr"):
        raise ValueError(f"out must be None or a name that ends in .gram or .zarr, not {str(out)!r}")
    if target is not None and target.is_symlink():
        target = _follow(target)
    if compress and (target is None or target.suffix != ".zarr"):
        raise ValueError("only .zarr stores are compressed")
    if target is not None and target.suffix == ".zarr":
        import_zarr()
    return target


def _follow(link: Path) -> Path:
    """Where a link leads; what lies there must be named alike, since the name says what it is."""
    try:
        target = link.resolve()
        if target.is_symlink():  # one of a circle of links; Python up to 3.12 says so itself
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except (OSError, RuntimeError) as error:
        raise GramStoreError(f"out={str(link)!r} is a link that leads nowhere: {error}") from None
    if target.suffix != link.suffix:
        raise GramStoreError(f"out={str(link)!r} is a link to {target}, which doesn't end in {link.suffix}")
    return target


def _open_or_begin(
    work: Work,
    target: Path,
    block: int | None,
    budget: int,
    tiles: int,
    compress: bool | None,
    overwrite: bool,
) -> DiskStore:
    """The store of an earlier run of the same matrix, or a new one."""
    if (target / DOCUMENT).exists():
        try:
            folder = resume(target, work.identity, block, writable=True)
            with _closing_on_error(folder):
                _check_budget(work, folder.document["identity"]["block"], budget, target)
                return open_store(folder)
        except GramStoreError:
            if not overwrite:
                raise
    layout = work.layout(block, budget, tiles)
    work.try_out()  # before anything is deleted or begun
    if (target / DOCUMENT).exists():
        delete(target)
    document = {
        "identity": {**work.identity, "block": layout.block},
        "shape": layout.shape,
        "symmetric": layout.symmetric,
        "target": target.suffix[1:],
        "compress": target.suffix == ".zarr" if compress is None else compress,
    }
    folder = begin(target, document)
    with _closing_on_error(folder):
        store = open_store(folder)
        commit(folder)
        return store


def _check_budget(work: Work, block: int, budget: int, target: Path) -> None:
    try:
        work.layout(block, budget)
    except ValueError as error:
        raise GramStoreError(
            f"{target} was begun with block={block}, and that doesn't fit any more ({error}); give it the memory it "
            "was begun with, or pass overwrite=True to begin anew"
        ) from None


@contextmanager
def _closing_on_error(folder: StoreFolder) -> Iterator[None]:
    try:
        yield
    except BaseException:
        folder.close()
        raise


def _fill(store: TileStore, work: Work, client: Any, budget: int, progress: bool | None) -> int:
    """Compute the tiles that are missing or damaged; returns how many were there."""
    layout = store.layout
    damaged = store.find_damage(progress)
    if damaged:
        warnings.warn(
            f"{name_tiles(damaged)} of {store.path} changed after being written; computed anew",
            RuntimeWarning,
            stacklevel=3,
        )
    fine = {tile for tile in layout if store.is_done(tile)} - set(damaged)
    missing = [tile for tile in layout if tile not in fine]
    if not missing:
        return len(fine)
    _check_room(store, missing)
    with progress_bar("Gram matrix", layout.numbers(), progress) as advance:
        advance(layout.numbers() - sum(map(layout.numbers, missing)))

        def keep(tile: Tile, values: Array) -> None:
            store.write(tile, values)
            advance(layout.numbers(tile))

        with _writer(store, missing, keep) as put:
            if client is None:
                for tile in missing:
                    put(tile, work.compute(layout, tile))
            else:
                run_on_cluster(client, work, layout, missing, put, budget)
    return len(fine)


def _check_room(store: TileStore, missing: list[Tile]) -> None:
    """Stop before the work, not in the middle of it, if there is no room for the result."""
    if not isinstance(store, DiskStore) or store.folder.document["compress"]:
        return
    needed = sum(map(store.layout.numbers, missing)) * store.dtype.itemsize
    usage = shutil.disk_usage(store.folder.path)
    if usage.total > 0 and usage.free < needed:
        raise StoreFullError(store.path, len(store.layout) - len(missing), len(store.layout), needed, usage.free)


@contextmanager
def _writer(
    store: TileStore, missing: list[Tile], keep: Callable[[Tile, Array], None]
) -> Iterator[Callable[[Tile, Array], None]]:
    """A function that hands tiles to a thread which keeps them, while the next one is computed.

    One tile may wait. An error of the thread comes out of the next call, or at the end.
    """
    waiting: Queue[tuple[Tile, Array] | None] = Queue(maxsize=1)
    left = set(missing)
    errors: list[BaseException] = []

    def work() -> None:
        while (item := waiting.get()) is not None:
            if errors:
                continue  # take what comes, so that nobody waits for room in the queue
            try:
                keep(*item)
                left.discard(item[0])
            except BaseException as error:
                errors.append(error)

    def complain() -> None:
        if not errors:
            return
        error = errors[0]
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            needed = sum(map(store.layout.numbers, left)) * store.dtype.itemsize
            free = 0 if store.path is None else shutil.disk_usage(store.path).free
            raise StoreFullError(store.path, len(store.layout) - len(left), len(store.layout), needed, free) from error
        raise error

    def put(tile: Tile, values: Array) -> None:
        complain()
        waiting.put((tile, values))

    thread = threading.Thread(target=work, name="rntk-writer", daemon=True)
    thread.start()
    try:
        yield put
    finally:
        # Also after an error or an interrupt: what is computed is kept.
        _end(thread, waiting)
    complain()


def _end(thread: threading.Thread, waiting: Queue[Any]) -> None:
    """Wait for the thread, however often somebody interrupts: its files must not be closed under it."""
    interrupt: KeyboardInterrupt | None = None
    told = False
    while thread.is_alive():
        try:
            if not told:
                waiting.put(None)
                told = True
            thread.join()
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
