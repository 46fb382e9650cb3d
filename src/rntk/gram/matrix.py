"""A Gram matrix made of tiles, used without ever being in memory as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DamagedTileError, GramStoreError
from .folder import StoreFolder, read_document
from .layout import Layout, Tile
from .stores import MappedStore, TileStore, ZarrStore

Array = NDArray[Any]


class GramMatrix:
    """Kernel values K of shape (n, n'), tile by tile; `rntk.gram.compute`, `stream` and `open` return one.

    Tile (i, j) holds the rows of block i and the columns of block j, `block` sequences each. Of a symmetric matrix only
    tiles with i <= j are kept; the others are their mirror images. Tiles on disk are checked against their checksums
    when they are first read.

    Attributes
    ----------
    shape, dtype : of the matrix.
    symmetric : whether it is the matrix of one batch of sequences.
    block : sequences per side of a tile.
    path : the folder it is stored in, None in memory.
    found : tiles that an earlier run had left in the store when this matrix was computed, or opened.
    """

    def __init__(self, store: TileStore, found: int | None = None) -> None:
        self._store = store
        layout = store.layout
        self.shape: tuple[int, int] = layout.shape
        self.dtype = store.dtype
        self.symmetric = layout.symmetric
        self.block = layout.block
        self.path = store.path
        self.found = store.count_done() if found is None else found

    @property
    def tiles(self) -> list[Tile]:
        """The tiles that are kept, (i, j)."""
        return list(self._store.layout)

    @property
    def complete(self) -> bool:
        """Whether every tile is there."""
        return self._store.count_done() == len(self._store.layout)

    def tile(self, i: int, j: int) -> Array:
        """Values of block i with block j, not to be written to.

        Raises
        ------
        IndexError : there are fewer blocks.
        GramStoreError : the tile isn't computed yet.
        DamagedTileError : it isn't what was written.
        """
        rows, columns = self._store.layout.blocks
        if not (0 <= i < rows and 0 <= j < columns):
            raise IndexError(f"tile ({i}, {j}) of {rows} x {columns} blocks")
        if self.symmetric and i > j:
            return self._store.read((j, i)).T
        return self._store.read((i, j))

    def read(self, rows: Any = slice(None), columns: Any = slice(None)) -> Array:
        """`K[rows][:, columns]` as an array of its own.

        Parameters
        ----------
        rows, columns : slices, arrays of integers, or arrays of n (n') booleans.
        """
        layout = self._store.layout
        own = _positions(rows, self.shape[0], "rows")
        other = _positions(columns, self.shape[1], "columns")
        values = np.empty((len(own), len(other)), self.dtype)
        column_parts = _by_block(other, layout.block)
        for i, row_places, row_inside in _by_block(own, layout.block):
            for j, places, inside in column_parts:
                values[_both(row_places, places)] = self.tile(i, j)[_both(row_inside, inside)]
        return values

    def matvec(self, v: Any) -> Array:
        """K v for v of shape (n',) or (n', k), one tile at a time; the same as ``K @ v``.

        With this, `shape` and `dtype`, SciPy's iterative solvers take the matrix for a linear operator.
        """
        return self._times(v, lambda amount: None)

    def _times(self, v: Any, advance: Callable[[float], None]) -> Array:
        """K v; `advance` is told which share of the matrix was used."""
        v = np.asarray(v)
        if v.ndim not in (1, 2) or v.shape[0] != self.shape[1] or v.dtype.kind not in "fiub":
            raise ValueError(
                f"K has shape {self.shape}, so v must be a real array of shape ({self.shape[1]},) or "
                f"({self.shape[1]}, k); it has shape {v.shape} and dtype {v.dtype}"
            )
        v = v.astype(np.result_type(self.dtype, v.dtype), copy=False)
        product = np.zeros((self.shape[0], *v.shape[1:]), v.dtype)
        layout = self._store.layout
        total = layout.numbers()
        for i, j in layout:
            values, rows, columns = self.tile(i, j), layout.rows(i), layout.columns(j)
            product[rows] += values @ v[columns]
            if self.symmetric and i != j:
                product[columns] += values.T @ v[rows]
            advance(values.size / total)
        return product

    def __matmul__(self, v: Any) -> Array:
        return self.matvec(v)

    def to_array(self) -> Array:
        """The whole matrix in memory, mirror image included."""
        return self.read()

    def verify(self, progress: bool | None = None) -> None:
        """Read every tile that is there and compare checksums; `progress` as for `rntk.gram.compute`.

        Raises
        ------
        DamagedTileError : some aren't what was written; its `tiles` names them all.
        """
        damaged = self._store.find_damage(progress)
        if damaged:
            assert self.path is not None
            raise DamagedTileError(self.path, damaged)

    def __repr__(self) -> str:
        done, total = self._store.count_done(), len(self._store.layout)
        state = "" if done == total else f", {done} of {total} tiles"
        return f"GramMatrix({self.shape[0]} x {self.shape[1]}, {self.dtype}{state}, {self._store.place})"


def open(path: Any) -> GramMatrix:
    """The matrix that `rntk.gram.compute` stored in `path`, for reading.

    One that isn't complete opens too: `complete` says so, and reading a tile that is not there raises.

    Raises
    ------
    GramStoreError : there is no stored matrix, or its description is damaged.
    """
    place = Path(os.fsdecode(path)).absolute()  # wherever this process goes from here
    return GramMatrix(open_store(StoreFolder(place, read_document(place))))


def open_store(folder: StoreFolder) -> MappedStore | ZarrStore:
    """The tiles in a folder, in the form its document says."""
    document = folder.document
    try:
        layout = Layout(tuple(document["shape"]), document["identity"]["block"], document["symmetric"])
        dtype = np.dtype(document["identity"]["dtype"])
        if document["target"] == "zarr":
            return ZarrStore(folder, layout, dtype, document["compress"])
        return MappedStore(folder, layout, dtype)
    except FileNotFoundError as error:
        raise GramStoreError(f"{folder.path} is no whole store, files are missing: {error}") from None


def _positions(index: Any, n: int, name: str) -> NDArray[np.int64]:
    """The rows or columns meant, counted from zero."""
    if isinstance(index, slice):
        return np.arange(n)[index]
    found = np.asarray(index)
    found = found.astype(np.int64) if found.shape == (0,) else found
    if found.ndim != 1 or found.dtype.kind not in "iub" or (found.dtype.kind == "b" and len(found) != n):
        raise TypeError(
            f"{name} must be a slice, integers or {n} booleans, not something of shape {found.shape}, {found.dtype}"
        )
    if found.dtype.kind != "b" and found.size and not (-n <= found.min() and found.max() < n):
        raise IndexError(f"{name} has {found.min()} to {found.max()}, and there are {n}")
    return np.asarray(np.arange(n)[found])


def _by_block(positions: NDArray[np.int64], block: int) -> list[tuple[int, Any, Any]]:
    """For every block that is met: its number, places in the result, places in the block; slices where they do."""
    of = positions // block
    parts = []
    for i in np.unique(of):
        places = np.flatnonzero(of == i)
        parts.append((int(i), _as_slice(places), _as_slice(positions[places] - i * block)))
    return parts


def _as_slice(places: NDArray[np.int64]) -> Any:
    if len(places) == places[-1] - places[0] + 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _both(rows: Any, columns: Any) -> Any:
    """An index of a rectangle: NumPy pairs two arrays off against each other otherwise."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    return np.ix_(rows, columns)
