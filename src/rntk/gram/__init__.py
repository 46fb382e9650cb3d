"""Gram matrices of any size, in tiles.

`compute` prepares blocks of sequences, compares them pair by pair and keeps what comes, in memory or in a zarr array on
disk, as a `GramMatrix`; `open` finds it again, `cached` keeps many of them in a folder, `stream` computes tiles when
they are used, and `as_dask` is the same matrix for Dask. Tiles are independent, so the result doesn't depend on the
number of threads or workers, or on the order in which they finish.

`layout` (how a matrix is cut), `work` (how a tile is computed), `identity` (what a matrix is of), `store` (where tiles
are kept), `matrix` (how it is used), `compute` and `cluster` (who computes).
"""

from ..errors import ClusterError, DamagedTileError, GramStoreError, StoreFullError
from .cluster import as_dask
from .compute import cached, compute, stream
from .matrix import GramMatrix
from .matrix import open_matrix as open

__all__ = [
    "ClusterError",
    "DamagedTileError",
    "GramMatrix",
    "GramStoreError",
    "StoreFullError",
    "as_dask",
    "cached",
    "compute",
    "open",
    "stream",
]
