"""Gram matrices from tiles: run a plan on all cores, watch it, put the blocks in place, in memory or beyond it.

Two sizes of tiles. `run_tiles` is what kernels use: in goes a `Problem`, out come `Grams` in memory. `compute` is for
matrices of any size: it calls a kernel on blocks of sequences and keeps what comes in memory, in a mapped file or in
zarr, as a `GramMatrix`; `open` finds it again, `stream` computes tiles when they are used, and `as_dask` is the same
matrix for Dask. Tiles are independent, so the result doesn't depend on the number of threads or workers, or on the
order in which they finish.

A matrix beyond memory: `layout` (how it is cut), `work` (how a tile is computed), `identity` (what it is of), `folder`
and `stores` (where tiles are kept), `matrix` (how it is used), `run` and `cluster` (who computes).
"""

from .cluster import as_dask
from .errors import ClusterError, DamagedTileError, GramStoreError, StoreFullError
from .matrix import GramMatrix, open
from .run import compute, stream

__all__ = [
    "ClusterError",
    "DamagedTileError",
    "GramMatrix",
    "GramStoreError",
    "StoreFullError",
    "as_dask",
    "compute",
    "open",
    "stream",
]
