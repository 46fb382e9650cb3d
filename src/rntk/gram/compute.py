"""From a kernel and sequences to a `GramMatrix`: `compute` now, and on where an earlier run ended, `stream` later."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..errors import GramStoreError, check_path, name_tiles, warn
from ..runtime import parse_bytes, progress_bar
from .cluster import compute_on_workers, connected, tiles_to_share
from .identity import is_known
from .layout import Tile
from .matrix import GramMatrix
from .store import MemoryStore, TileStore, ZarrStore, begin, delete, import_zarr, open_same
from .work import SMALLEST_BLOCK, TileMaker, Work, make_work

Array = NDArray[Any]


def compute(
    kernel: Any,
    X: Any,
    Y: Any = None,
    out: Any = None,
    *,
    key: str | None = None,
    dtype: Any = None,
    block: int | None = None,
    memory: int | float | str = "1GB",
    compress: bool = True,
    client: Any = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    overwrite: bool = False,
) -> GramMatrix:
    """Compute the Gram matrix of `kernel` tile by tile, into memory or onto disk.

    On disk every finished tile is kept: after an interruption, a crash or a full disk the same call goes on from there,
    and two processes may compute one matrix together. A store knows its sequences and its kernel.

    Parameters
    ----------
    kernel : object
        A kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix. A function gets arrays of parts of X and
        Y where lengths are equal, lists of sequences otherwise.
    X : sequences
        See `rntk.sequences.as_batch`. Tiles of arrays on a device are computed there.
    Y : sequences, optional
        Without it the matrix is symmetric, and only tiles on and above the diagonal are computed and kept.
    out : path, optional
        A name that ends in .zarr, for a zarr array on disk; None for memory.
    key : str, optional
        What a function, or the function in a kernel or an activation, is known by; parameters count beside it. Without
        a key a store of such a kernel is never taken for that of a later call: the same function may read other things
        by then. Give another key whenever the function, or anything it reads, is another one.
    dtype : "float32", "float64" or None
        For kernel and result; None is that of the kernel.
    block : int, optional
        Sequences per side of a tile. None is that of the store where there is one; otherwise it is chosen so that
        everything fits into `memory` and a tile takes a second or so.
    memory : int or str
        Bytes, or a text such as "1GB", for what is held beside X and Y: tiles at work, sequences prepared for them, and
        the result if `out` is None.
    compress : bool
        For a new store: whether tiles are compressed, which saves a seventh to a quarter of the room.
    client : distributed.Client or str, optional
        A client of Dask, or the address of a scheduler: its workers compute the tiles, one thread each. If they find
        the store under its path, as in a shared folder, they write their tiles themselves; otherwise this process does.
        The numbers of kernels of rntk are the same, bit for bit.
    n_jobs : int, optional
        Threads; None is what the kernel says.
    progress : bool, optional
        None shows a bar on a terminal after two seconds; True always; False never.
    overwrite : bool
        Delete a store that holds another matrix.

    Returns
    -------
    GramMatrix
        Complete. Its `found` says how many tiles an earlier run had left.

    Raises
    ------
    GramStoreError
        `out` holds another matrix (the message says what differs), or something else.
    StoreFullError
        The disk is full; what is finished is kept.
    KernelOverflowError
        A value is too large; `sequence` is its index in X, or in Y.
    ClusterError
        The cluster of `client` is gone, or its workers die; what is finished is kept.
    ValueError
        The matrix doesn't fit into `memory`, or an argument makes no sense.

    Warns
    -----
    RuntimeWarning
        Tiles in the store were damaged; they are computed anew.

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
    work = make_work(kernel, X, Y, dtype, n_jobs)
    if key is not None and not isinstance(key, str):
        raise TypeError(f"key must be a text, not {type(key).__name__}")
    target, block = _check_target(out), None if block is None else work.fitting_block(block)
    with connected(client) as cluster:
        share = tiles_to_share(cluster)
        store: TileStore
        if target is None:
            store = MemoryStore(work.layout_in_memory(block, budget, share), work.dtype)
            missing, damaged = list(store.layout), list[Tile]()
            budget -= store.layout.numbers() * work.dtype.itemsize
        else:
            store, new = _open_or_begin(work, target, key, block, budget, share, bool(compress), overwrite)
            missing, damaged = (list(store.layout), []) if new else store.find(progress)
            if missing or damaged:  # in tiles of an earlier run's size, perhaps
                work.layout(store.layout.block, budget)
                store.check_room(len(missing) + len(damaged))
        if damaged:
            warn(RuntimeWarning(f"{name_tiles(damaged)} of {target} changed after being written; computed anew"))
        found = len(store.layout) - len(missing) - len(damaged)
        if found < len(store.layout):
            _fill(store, work, cluster, {*missing, *damaged}, budget, progress)
    return GramMatrix(store, found)


def _check_target(out: Any) -> Path | None:
    if out is None:
        return None
    given = check_path("out", out)
    if given.suffix != ".zarr":
        raise ValueError(f"out must be None or a name that ends in .zarr, not {str(out)!r}")
    if given.is_file():
        raise GramStoreError(f"out={str(out)!r} is a file, and a store is a folder; give another name")
    import_zarr()
    return Path(os.path.realpath(given))  # wherever a link leads, and this process goes from here


def _open_or_begin(
    work: Work,
    target: Path,
    key: str | None,
    block: int | None,
    budget: int,
    tiles: int,
    compress: bool,
    overwrite: bool,
) -> tuple[ZarrStore, bool]:
    """The store of an earlier run of the same matrix, or a new one and True."""
    identity = work.identity(key)
    old = None
    if target.is_dir() and any(target.iterdir()):
        try:
            return open_same(target, identity, block), False
        except GramStoreError:
            if not overwrite:
                raise
            old = ZarrStore(target)  # raises if it is none: nothing else is ever deleted
    layout = work.layout(block, budget, tiles)
    work.try_out()  # before anything is deleted or begun
    if old is not None and old.is_here():  # and no other process was faster
        delete(old)
    return begin(target, layout, work.dtype, identity, compress)


def _fill(store: TileStore, work: Work, client: Any, missing: set[Tile], budget: int, progress: bool | None) -> None:
    """Compute the tiles that are missing."""
    layout = store.layout
    tiles = TileMaker(work if client is None else work.alone(), layout, budget)
    wanted = [tile for tile in tiles.in_order() if tile in missing]
    with progress_bar("Gram matrix", layout.numbers(), progress) as advance:
        advance(layout.numbers() - layout.numbers(*wanted))

        def keep(tile: Tile, values: Array | None) -> None:
            if values is not None:  # else it was written by who computed it
                store.write(tile, values)
            advance(layout.numbers(tile))

        if client is None:
            for tile in wanted:
                keep(tile, tiles.compute(tile))
        else:
            compute_on_workers(client, tiles, store, wanted, keep, budget)


def stream(
    kernel: Any,
    X: Any,
    Y: Any = None,
    *,
    dtype: Any = None,
    block: int | None = None,
    memory: int | float | str = "1GB",
    n_jobs: int | None = None,
) -> GramMatrix:
    """The Gram matrix as tiles that are computed when they are read: for products, without room for the whole.

    If all tiles fit into `memory` they are kept, otherwise every product computes them again, from sequences that are
    prepared once if there is room for that.

    Parameters
    ----------
    kernel, X, Y, dtype, block, memory, n_jobs
        As for `rntk.gram.compute`.

    Returns
    -------
    GramMatrix

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
    work = make_work(kernel, X, Y, dtype, n_jobs)
    keep = True
    try:
        layout = work.layout_in_memory(block, budget)
        keep = block is not None or layout.block >= min(SMALLEST_BLOCK, max(layout.shape))
    except ValueError:  # it doesn't fit
        keep = False
    if not keep:
        layout = work.layout(block, budget)
    else:
        budget -= layout.numbers() * work.dtype.itemsize
    return GramMatrix(MemoryStore(layout, work.dtype, TileMaker(work, layout, budget).compute, keep))


def cached(
    folder: Any,
    kernel: Any,
    X: Any,
    Y: Any = None,
    *,
    key: str | None = None,
    memory: int | float | str = "1GB",
    progress: bool | None = False,
) -> GramMatrix:
    """kernel(X), or kernel(X, Y), from a folder of Gram matrices where it is there; otherwise computed and kept there.

    Every matrix is a store of `compute`, named by what it is of, so that one folder serves many kernels, sequences and
    processes. What a store can't be recognised by is computed every time and not kept.

    Parameters
    ----------
    folder : path or None
        Made if need be. None keeps nothing.
    kernel, X, Y, key, memory, progress
        As for `rntk.gram.compute`.

    Returns
    -------
    GramMatrix
        Complete.

    Raises
    ------
    ValueError
        `folder` can't be used.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> from rntk.gram import cached
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     K = cached(folder, RNTK(), np.ones((5, 3)))
    ...     bool((K.to_array() == cached(folder, RNTK(), np.ones((5, 3))).to_array()).all())
    True
    """
    work = make_work(kernel, X, Y, None)
    identity = None if folder is None else work.identity(key)
    how: dict[str, Any] = {"key": key, "memory": memory, "progress": progress}
    if identity is None or not is_known(identity):
        return compute(kernel, X, Y, **how)
    place = check_path("cache", folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cache={str(folder)!r} can't be used as a folder: {error.strerror}") from None
    name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
    out = place / f"{name}.zarr"
    try:
        return compute(kernel, X, Y, out, **how)
    except GramStoreError:  # damaged beyond its tiles; it is nobody's but ours
        shutil.rmtree(out, ignore_errors=True)
        return compute(kernel, X, Y, out, **how)
