"""Where tiles are kept: in memory, in a file that is mapped, in zarr, or nowhere, to be computed when asked for.

All offer the same: `is_done` (whether a tile is there), `write`, `read`. On disk a tile is complete or absent: its
numbers are written first, then its checksum. Whenever the process ends, an entry in the index means that the tile it
stands for was written as a whole.
"""

from __future__ import annotations

import errno
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runtime import progress_bar
from .errors import DamagedTileError, GramStoreError
from .folder import INDEX, StoreFolder, write_at
from .layout import Layout, Tile

Array = NDArray[Any]


class TileStore(ABC):
    """Tiles of one matrix.

    Attributes
    ----------
    layout : how the matrix is cut.
    dtype : of its values.
    path : where it is, None in memory.
    """

    path: Path | None = None

    def __init__(self, layout: Layout, dtype: np.dtype[Any]) -> None:
        self.layout = layout
        self.dtype = dtype

    @property
    def place(self) -> str:
        """Where tiles are, in words."""
        return "in memory"

    @abstractmethod
    def is_done(self, tile: Tile) -> bool:
        """Whether the tile is there."""

    def count_done(self) -> int:
        """How many tiles are there."""
        return sum(map(self.is_done, self.layout))

    @abstractmethod
    def write(self, tile: Tile, values: Array) -> None:
        """Keep a tile; on disk, so that it is complete or absent whatever happens."""

    @abstractmethod
    def read(self, tile: Tile) -> Array:
        """A tile that is there; not to be written to."""

    def check(self, tile: Tile) -> bool:
        """Whether the tile is what was written, read anew."""
        return True

    def find_damage(self, progress: bool | None = None) -> list[Tile]:
        """The tiles that are there and aren't what was written, all of them read anew."""
        done = [tile for tile in self.layout if self.is_done(tile)]
        damaged = []
        with progress_bar("checksums", len(done), progress) as advance:
            for tile in done:
                if not self.check(tile):
                    damaged.append(tile)
                advance(1)
        return damaged

    def close(self) -> None:  # noqa: B027  most stores have nothing to close
        """End writing."""


class MemoryStore(TileStore):
    """Tiles in memory."""

    def __init__(self, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(layout, dtype)
        self._tiles: dict[Tile, Array] = {}

    def is_done(self, tile: Tile) -> bool:
        return tile in self._tiles

    def write(self, tile: Tile, values: Array) -> None:
        kept = values.view()
        kept.setflags(write=False)
        self._tiles[tile] = kept

    def read(self, tile: Tile) -> Array:
        return self._tiles[tile]


class ComputedStore(MemoryStore):
    """Tiles that are computed when they are read; every time, unless told to `keep` them."""

    def __init__(
        self, layout: Layout, dtype: np.dtype[Any], compute: Callable[[Layout, Tile], Array], keep: bool
    ) -> None:
        super().__init__(layout, dtype)
        self._compute = compute
        self._keep = keep

    @property
    def place(self) -> str:
        return "computed when read" + (", then kept" if self._keep else "")

    def is_done(self, tile: Tile) -> bool:
        return True

    def read(self, tile: Tile) -> Array:
        if not super().is_done(tile):
            values = self._compute(self.layout, tile)
            if not self._keep:
                return values
            self.write(tile, values)
        return super().read(tile)


class DiskStore(TileStore):
    """Tiles in a folder, with an index of checksums. Subclasses put the numbers where they belong.

    The index has 8 bytes per tile: CRC-32 of its numbers, and a seal over that, the tile and the matrix, by which an
    entry that was cut or changed is told from a good one. Zeros mean that the tile is absent.
    """

    def __init__(self, folder: StoreFolder, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(layout, dtype)
        self.folder = folder
        self.path = folder.path
        self._salt = folder.salt
        self._entries = np.zeros((len(layout), 2), dtype="<u4")
        content = np.frombuffer((self.path / INDEX).read_bytes()[: self._entries.nbytes], dtype=np.uint8)
        self._entries.reshape(-1).view(np.uint8)[: content.size] = content
        #: Tiles whose checksum was found right since the store was opened.
        self._checked: set[Tile] = set()
        self._stamp = None if folder.writable else folder.stamp()

    @property
    def place(self) -> str:
        return f"in {self.path}"

    def is_done(self, tile: Tile) -> bool:
        return bool(self._entries[self.layout.slot(tile)].any())

    def count_done(self) -> int:
        return int(self._entries.any(axis=1).sum())

    def write(self, tile: Tile, values: Array) -> None:
        checksum = zlib.crc32(values.data)
        self._put(tile, values)
        slot = self.layout.slot(tile)
        entry = np.array([checksum, self._seal(slot, checksum)], dtype="<u4")
        write_at(self.folder.index, entry.tobytes(), slot * entry.nbytes)
        self._entries[slot] = entry

    def read(self, tile: Tile) -> Array:
        if not self.is_done(tile):
            raise GramStoreError(
                f"tile {tile} of {self.path} isn't computed yet; the rntk.gram.compute call that began goes on there"
            )
        values = self._load(tile, known=tile in self._checked)
        if values is None:
            raise DamagedTileError(self.path, [tile])
        return values

    def check(self, tile: Tile) -> bool:
        return self._load(tile, known=False) is not None

    def _load(self, tile: Tile, known: bool) -> Array | None:
        """The tile, or None if it isn't what was written; `known` if that was found out before."""
        if self._stamp is not None and self.folder.stamp() != self._stamp:
            raise GramStoreError(f"{self.path} was replaced by another matrix since it was opened; open it again")
        values: Array | None
        try:
            values = self._get(tile)
        except MemoryError:
            raise
        except OSError as error:
            if error.errno != errno.EIO:  # that is damage; everything else is about the machine
                raise GramStoreError(f"tile {tile} of {self.path} can't be read: {error}") from error
            values = None
        except Exception:  # a chunk of zarr that can't be decoded fails in many ways
            values = None
        if values is not None and not known:
            slot = self.layout.slot(tile)
            checksum, seal = (int(part) for part in self._entries[slot])
            if seal != self._seal(slot, checksum) or zlib.crc32(values.data) != checksum:
                values = None
        (self._checked.discard if values is None else self._checked.add)(tile)
        return values

    def close(self) -> None:
        # Nothing is forced to the disk: what a loss of power takes away, the checksums tell.
        self.folder.close()

    def _seal(self, slot: int, checksum: int) -> int:
        # Never zero, so that no entry looks absent.
        return zlib.crc32(self._salt + slot.to_bytes(8, "little") + checksum.to_bytes(4, "little")) or 1

    @abstractmethod
    def _put(self, tile: Tile, values: Array) -> None: ...

    @abstractmethod
    def _get(self, tile: Tile) -> Array: ...


class MappedStore(DiskStore):
    """Tiles one after another in one file, row of tiles by row of tiles; read through a map of memory.

    Written by `os.pwrite`: through a map, a full disk would end the process by a signal. The file is sparse: tiles to
    come take no room yet.
    """

    NAME = "tiles.bin"

    def __init__(self, folder: StoreFolder, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(folder, layout, dtype)
        self._file = folder.path / self.NAME
        size = layout.numbers() * dtype.itemsize
        if folder.writable:
            self._descriptor = folder.open_file(self.NAME)
            if os.fstat(self._descriptor).st_size != size:
                os.ftruncate(self._descriptor, size)
        else:
            found = self._file.stat().st_size if self._file.exists() else 0
            if found != size:
                raise GramStoreError(f"{self._file} has {found} bytes, not the {size} of this matrix")

    def _put(self, tile: Tile, values: Array) -> None:
        write_at(self._descriptor, values.data.cast("B"), self.layout.start(tile) * self.dtype.itemsize)

    def _get(self, tile: Tile) -> Array:
        # One map per tile: mapped as a whole, every page read would count as memory of this process.
        start = self.layout.start(tile) * self.dtype.itemsize
        mapped = np.memmap(self._file, self.dtype, mode="r", offset=start, shape=self.layout.tile_shape(tile))
        return np.asarray(mapped)


class ZarrStore(DiskStore):
    """Tiles as chunks of one zarr array, which other programs read too; absent tiles and the mirror image are NaN.

    Compression is LZ4 after the bits of all numbers of equal rank are brought together: signs, exponents and leading
    bits of kernel values are alike, the others are noise. Blocks that don't shrink are stored as they are. Chunks at
    the edge are larger than the tile they hold; zarr's own checksum covers the rest of their bytes.
    """

    def __init__(self, folder: StoreFolder, layout: Layout, dtype: np.dtype[Any], compress: bool = False) -> None:
        super().__init__(folder, layout, dtype)
        zarr = import_zarr()
        if folder.writable and not self._opens():
            (folder.path / "zarr.json").unlink(missing_ok=True)
            codecs = zarr.codecs
            smaller = codecs.BloscCodec(cname="lz4", clevel=1, shuffle="bitshuffle", typesize=dtype.itemsize)
            zarr.create_array(
                str(folder.path),
                shape=layout.shape,
                chunks=layout.tile_shape((0, 0)),
                dtype=dtype,
                compressors=[*([smaller] if compress else []), codecs.Crc32cCodec()],
                fill_value=np.nan,
                attributes={"symmetric": layout.symmetric},
                config={"write_empty_chunks": True},  # without a look at every number whether it is NaN
            )
        if folder.writable:
            for leftover in folder.path.glob("c/*/*.partial"):  # of a run that was killed
                leftover.unlink(missing_ok=True)
        elif not self._opens():
            raise GramStoreError(
                f"{folder.path / 'zarr.json'} is damaged or missing; the rntk.gram.compute call that made it mends it"
            )
        self._array = zarr.open_array(
            str(folder.path), mode="r+" if folder.writable else "r", config={"write_empty_chunks": True}
        )

    def _opens(self) -> bool:
        """Whether zarr finds an array of this shape, cut in this way."""
        try:
            found = import_zarr().open_array(str(self.folder.path), mode="r")
            expected = (self.layout.shape, self.layout.tile_shape((0, 0)), self.dtype)
            return bool((found.shape, found.chunks, found.dtype) == expected)
        except Exception:  # zarr fails in many ways
            return False

    def _where(self, tile: Tile) -> tuple[slice, slice]:
        return self.layout.rows(tile[0]), self.layout.columns(tile[1])

    def _put(self, tile: Tile, values: Array) -> None:
        self._array[self._where(tile)] = values

    def _get(self, tile: Tile) -> Array:
        values = np.ascontiguousarray(self._array[self._where(tile)])
        values.setflags(write=False)
        return values


def import_zarr() -> Any:
    """The zarr package, or what to do about its absence."""
    try:
        zarr = import_module("zarr")
        import_module("zarr.codecs")
    except ImportError as error:
        raise ModuleNotFoundError(
            f'stores named .zarr need zarr, which can\'t be imported ({error}): pip install "rntk[distributed]"; '
            "those named .gram need nothing",
            name="zarr",
        ) from None
    if not hasattr(zarr, "create_array"):
        raise ModuleNotFoundError(f"stores named .zarr need zarr 3, and this is {zarr.__version__}", name="zarr")
    return zarr
