"""A Gram matrix made of tiles, used without ever being in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedTileError, check_path
from .layout import Tile
from .store import TileStore, ZarrStore

Array = NDArray[Any]


class GramMatrix:
    """Kernel values K of shape (n, n'), tile by tile; `rntk.gram.compute`, `stream` and `open` return one.

    Tile (i, j) holds the rows of block i and the columns of block j, `block` sequences each. Of a symmetric matrix only
    tiles with i <= j are kept; the others are their mirror images. Tiles on disk are checked whenever they are read.

    Attributes
    ----------
    shape : (int, int)
        Of the matrix.
    dtype : dtype
        Of its values.
    symmetric : bool
        Whether it is the matrix of one batch of sequences.
    block : int
        Sequences per side of a tile.
    path : Path or None
        The folder it is stored in, None in memory.
    found : int
        Tiles that an earlier run had left in the store when this matrix was computed, or opened.
    """

    def __init__(self, store: TileStore, found: int | None = None) -> None:
        self._store = store
        layout = store.layout
        self.shape: tuple[int, int] = layout.shape
        self.dtype = store.dtype
        self.symmetric = layout.symmetric
        self.block = layout.block
        self.path = store.path
        self.found = store.count() if found is None else found

    @property
    def tiles(self) -> list[Tile]:
        """The tiles that are kept, (i, j)."""
        return list(self._store.layout)

    @property
    def complete(self) -> bool:
        """Whether every tile is there."""
        return self._store.count() == len(self._store.layout)

    def tile(self, i: int, j: int) -> Array:
        """Values of block i with block j, not to be written to.

        Parameters
        ----------
        i : int
            Block of rows.
        j : int
            Block of columns.

        Returns
        -------
        array

        Raises
        ------
        IndexError
            There are fewer blocks.
        GramStoreError
            The tile isn't computed yet.
        DamagedTileError
            It isn't what was written.
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
        rows, columns
            Slices, arrays of integers, or arrays of n (n') booleans.

        Returns
        -------
        array
        """
        left, right = _positions(rows, self.shape[0], "rows"), _positions(columns, self.shape[1], "columns")
        values = np.empty((len(left), len(right)), self.dtype)
        for i in np.unique(left // self.block):
            here = np.flatnonzero(left // self.block == i)
            for j in np.unique(right // self.block):
                there = np.flatnonzero(right // self.block == j)
                inside = np.ix_(left[here] - i * self.block, right[there] - j * self.block)
                values[np.ix_(here, there)] = self.tile(int(i), int(j))[inside]
        return values

    def matvec(self, v: Any, advance: Callable[[float], None] = lambda share: None) -> Array:
        """K v, one tile at a time; the same as ``K @ v``.

        With this, `shape` and `dtype`, SciPy's iterative solvers take the matrix for a linear operator.

        Parameters
        ----------
        v : array of shape (n',) or (n', k)
        advance : function, optional
            Is told which share of the matrix was used, tile by tile.

        Returns
        -------
        array of shape (n,) or (n, k)
        """
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.to_array(), dtype=dtype)

    def to_array(self) -> Array:
        """The whole matrix in memory, mirror image included."""
        values = np.empty(self.shape, self.dtype)
        layout = self._store.layout
        for i, j in layout:
            tile, rows, columns = self.tile(i, j), layout.rows(i), layout.columns(j)
            values[rows, columns] = tile
            if self.symmetric and i != j:
                values[columns, rows] = tile.T
        return values

    def verify(self, progress: bool | None = None) -> None:
        """Read every tile that is there and compare checksums.

        Parameters
        ----------
        progress : bool, optional
            As for `rntk.gram.compute`.

        Raises
        ------
        DamagedTileError
            Some aren't what was written; its `tiles` names them all.
        """
        _, damaged = self._store.find(progress)
        if damaged:
            assert self.path is not None
            raise DamagedTileError(self.path, damaged)

    def __repr__(self) -> str:
        done, total = self._store.count(), len(self._store.layout)
        state = "" if done == total else f", {done} of {total} tiles"
        return f"GramMatrix({self.shape[0]} x {self.shape[1]}, {self.dtype}{state}, {self._store.place})"


def open_matrix(path: Any) -> GramMatrix:
    """The matrix that `rntk.gram.compute` stored in `path`, for reading.

    One that isn't complete opens too: `complete` says so, and reading a tile that is not there raises.

    Parameters
    ----------
    path : path
        As it was given to `compute` as `out`.

    Returns
    -------
    GramMatrix

    Raises
    ------
    GramStoreError
        There is no stored matrix, or its description is damaged.
    """
    return GramMatrix(ZarrStore(check_path("path", path).absolute()))  # wherever this process goes from here


def _positions(index: Any, n: int, name: str) -> NDArray[np.int64]:
    """The rows or columns meant, counted from zero."""
    try:
        found = np.arange(n)[index if isinstance(index, slice) or len(index) else slice(0)]
    except (IndexError, TypeError) as error:
        raise IndexError(f"{name} must be a slice, integers below {n} or {n} booleans ({error})") from None
    return found
