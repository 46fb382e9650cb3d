"""Where tiles are kept: in memory, in a zarr array on disk, or nowhere, to be computed when asked for.

On disk a tile is a chunk with a checksum (zarr's `crc32c`), written as a whole; chunks that aren't there read as NaN,
which no kernel value is. So a tile is there if it reads without error and isn't NaN, whenever the run that wrote it
ended, and two runs of one matrix may share a store: they write the same chunks. What the matrix is of stands in the
array's attributes, from its first moment on.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedTileError, GramStoreError, StoreFullError, need_extra
from ..runtime import progress_bar
from .identity import differences, is_known
from .layout import Layout, Tile

Array = NDArray[Any]
TileStore: TypeAlias = "MemoryStore | ZarrStore"
#: zarr's own description of an array, in its folder.
DOCUMENT = "zarr.json"
#: What room compressed tiles take at least, against plain ones; sets of equal sequences aside.
COMPRESSED = 0.5
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class MemoryStore:
    """Tiles in memory, as NumPy arrays. Those that aren't there are computed when they are read, if `compute` says how.

    Parameters
    ----------
    layout : Layout
        How the matrix is cut.
    dtype : dtype
        Of its values.
    compute : function, optional
        From a tile to its values.
    keep : bool
        Whether what was computed is kept.

    Attributes
    ----------
    path : None
        Where it is on disk.
    place : str
        Where it is, in words.
    """

    path: Path | None = None

    def __init__(
        self, layout: Layout, dtype: np.dtype[Any], compute: Callable[[Tile], Array] | None = None, keep: bool = True
    ) -> None:
        self.layout = layout
        self.dtype = dtype
        self.place = "in memory" if compute is None else "computed when read" + (", then kept" if keep else "")
        self._tiles: dict[Tile, Array] = {}
        self._compute = compute
        self._keep = keep

    def count(self) -> int:
        """How many tiles are there, or will be when they are read."""
        return len(self._tiles) if self._compute is None else len(self.layout)

    def write(self, tile: Tile, values: Array) -> None:
        """Keep a tile."""
        self._tiles[tile] = values.view()
        self._tiles[tile].setflags(write=False)

    def read(self, tile: Tile) -> Array:
        """A tile that is there; not to be written to."""
        if self._compute is None or tile in self._tiles:
            return self._tiles[tile]
        values = self._compute(tile)
        if self._keep:
            self.write(tile, values)
        return values

    def find(self, progress: bool | None = None) -> tuple[list[Tile], list[Tile]]:
        """The tiles that are missing, and those that aren't what was written, after reading all of them."""
        return [tile for tile in self.layout if self._compute is None and tile not in self._tiles], []


class ZarrStore:
    """Tiles as chunks of one zarr array, which other programs read too; absent tiles and the mirror image are NaN.

    Parameters
    ----------
    path : Path
        Its folder.

    Attributes
    ----------
    layout, dtype, path, place
        As for `MemoryStore`.
    identity : dict
        What the matrix is of.

    Raises
    ------
    GramStoreError
        There is no stored Gram matrix in this folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = f"in {path}"
        self._document = _read_document(path)
        try:
            stored = self._array.attrs["rntk"]
            self.identity: dict[str, Any] = stored["identity"]
            self.layout = Layout(tuple(stored["layout"].pop("shape")), **stored["layout"])
            if (self._array.shape, self._array.chunks) != (self.layout.shape, self.layout.tile_shape((0, 0))):
                raise ValueError("shapes disagree")
        except Exception as error:  # zarr fails in many ways
            raise GramStoreError(
                f"{path} is no stored Gram matrix, or its {DOCUMENT} is damaged ({error}); give another name, or "
                "delete it"
            ) from None
        self.dtype = np.dtype(self._array.dtype)

    @cached_property
    def _array(self) -> Any:
        return import_zarr().open_array(str(self.path), mode="r+", config={"write_empty_chunks": True})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_array"}

    def count(self) -> int:
        """How many tiles are there."""
        return int(self._array.nchunks_initialized)

    def is_here(self) -> bool:
        """Whether this process finds the same store at the path; a worker on another machine may not."""
        try:
            return (self.path / DOCUMENT).read_bytes() == self._document
        except OSError:
            return False

    def write(self, tile: Tile, values: Array) -> None:
        """Write a chunk, as a whole."""
        self._check_is_here()
        try:
            self._array[self._where(tile)] = values
        except OSError as error:
            if error.errno in FULL:
                raise self._full(len(self.layout) - self.count()) from error
            raise
        if not self.is_here():  # replaced meanwhile: the other matrix must not keep this tile
            (self.path / "c" / str(tile[0]) / str(tile[1])).unlink(missing_ok=True)
            self._check_is_here()

    def read(self, tile: Tile) -> Array:
        """A tile that is there and undamaged; not to be written to."""
        values = self._load(tile)
        if values is None:
            raise GramStoreError(
                f"tile {tile} of {self.path} isn't computed yet; the rntk.gram.compute call that began goes on there"
            )
        return values

    def find(self, progress: bool | None = None) -> tuple[list[Tile], list[Tile]]:
        """The tiles that are missing, and those that aren't what was written, after reading all of them."""
        missing, damaged = [], []
        with progress_bar("checksums", len(self.layout), progress) as advance:
            for tile in self.layout:
                try:
                    if self._load(tile) is None:
                        missing.append(tile)
                except DamagedTileError:
                    damaged.append(tile)
                advance(1)
        return missing, damaged

    def check_room(self, left: int) -> None:
        """Refuse before the work what there is no room for: `left` tiles."""
        if shutil.disk_usage(self.path).free < COMPRESSED * self._bytes(left):
            raise self._full(left)

    def _bytes(self, count: int) -> int:
        """Of so many tiles."""
        return count * self.layout.numbers((0, 0)) * int(self.dtype.itemsize)

    def _full(self, left: int) -> StoreFullError:
        total, free = len(self.layout), shutil.disk_usage(self.path).free
        return StoreFullError(self.path, total - left, total, self._bytes(left), free)

    def _where(self, tile: Tile) -> tuple[slice, slice]:
        return self.layout.rows(tile[0]), self.layout.columns(tile[1])

    def _check_is_here(self) -> None:
        if not self.is_here():
            raise GramStoreError(f"{self.path} is gone or was replaced by another matrix since it was opened")

    def _load(self, tile: Tile) -> Array | None:
        """The tile, or None if it isn't there."""
        self._check_is_here()
        try:
            values: Array = np.ascontiguousarray(self._array[self._where(tile)])
        except (MemoryError, OSError):  # about the machine, not about the tile
            raise
        except Exception:  # a chunk that can't be decoded fails in many ways
            raise DamagedTileError(self.path, [tile]) from None
        values.setflags(write=False)
        return None if np.isnan(values[0, 0]) else values


def _read_document(path: Path) -> bytes:
    if (path / "matrix.json").exists():
        raise GramStoreError(f"{path} was stored by rntk 0.1.0, which this version doesn't read: compute it anew")
    try:
        return (path / DOCUMENT).read_bytes()
    except OSError as error:
        raise GramStoreError(f"{path} is no stored Gram matrix ({error})") from None


def open_same(path: Path, identity: dict[str, Any], block: int | None) -> ZarrStore:
    """The store of an earlier run of the same matrix; a GramStoreError if it is of another one."""
    store = ZarrStore(path)
    there, here = {**store.identity, "block": store.layout.block}, {**identity, "block": block or store.layout.block}
    found = differences(there, here)
    if found:
        unknown = "" if is_known(identity) else " (a function, or a kernel or activation with one in it, needs a key=)"
        raise GramStoreError(
            f"{path} holds another Gram matrix: {'; '.join(found)}{unknown}. Give another name, or delete it "
            "(overwrite=True, --force)"
        )
    return store


def begin(
    path: Path, layout: Layout, dtype: np.dtype[Any], identity: dict[str, Any], compress: bool
) -> tuple[ZarrStore, bool]:
    """A new store and True, or that of another process which was faster."""
    if not path.parent.is_dir():
        raise GramStoreError(f"out={str(path)!r}: there is no folder {path.parent}")
    codecs = import_zarr().codecs
    # Bits of equal rank are brought together: signs, exponents and leading bits of kernel values are alike.
    smaller = codecs.BloscCodec(cname="lz4", clevel=1, shuffle="bitshuffle", typesize=dtype.itemsize)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        import_zarr().create_array(
            str(partial),
            shape=layout.shape,
            chunks=layout.tile_shape((0, 0)),
            dtype=dtype,
            compressors=[*([smaller] if compress else []), codecs.Crc32cCodec()],
            fill_value=np.nan,
            attributes={"rntk": {"layout": asdict(layout), "identity": identity}},
        )
        # In one step: there is no store, or a whole one.
        os.rename(partial, path)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not (path / DOCUMENT).exists():
            raise GramStoreError(f"{path} can't be written: {error}") from error
        return open_same(path, identity, None), False
    return ZarrStore(path), True


def delete(store: ZarrStore) -> None:
    """Remove a store; in one step, and then its files."""
    gone = store.path.with_name(f"{store.path.name}.{uuid.uuid4().hex}.partial")
    os.rename(store.path, gone)
    shutil.rmtree(gone)


def import_zarr() -> Any:
    """The zarr package, or what to do about its absence."""
    return need_extra("disk", "zarr.codecs", "zarr")
