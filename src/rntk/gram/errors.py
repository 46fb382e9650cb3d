"""What can be wrong with a Gram matrix on disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

from ..runtime import say_bytes


class GramStoreError(ValueError):
    """A store can't be used as asked: it is none, belongs to other data or another kernel, or lacks a tile."""


class DamagedTileError(GramStoreError):
    """Tiles on disk aren't what was written.

    Attributes
    ----------
    tiles : the damaged ones, (i, j).
    """

    def __init__(self, path: Any, tiles: Sequence[tuple[int, int]]) -> None:
        super().__init__(path, tuple(tiles))
        self.tiles = tuple(tiles)

    def __str__(self) -> str:
        return (
            f"{name_tiles(self.tiles)} of {self.args[0]} changed after being written: the checksum differs. "
            "The rntk.gram.compute call that made the store computes damaged tiles anew"
        )


class ClusterError(RuntimeError):
    """A Dask cluster can't be reached, has no workers left, or its workers die on a tile; finished tiles are kept."""


class StoreFullError(OSError):
    """No room for the next tile; those before it are kept."""

    def __init__(self, path: Any, done: int, total: int, needed: int, free: int) -> None:
        message = (
            f"no room for {path}: {done} of {total} tiles are complete, the others need {say_bytes(needed)}, and "
            f"{say_bytes(free)} are free. Make room, and the same call goes on from there"
        )
        super().__init__(errno.ENOSPC, message)
        self._arguments = (path, done, total, needed, free)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreFullError, self._arguments

    def __str__(self) -> str:
        return str(self.strerror)


def name_tiles(tiles: Sequence[tuple[int, int]], limit: int = 5) -> str:
    """Tiles in a message: all of them, or the first few and how many more."""
    named = ", ".join(f"({i}, {j})" for i, j in tiles[:limit])
    more = f" and {len(tiles) - limit} more" if len(tiles) > limit else ""
    return f"tile{'s' if len(tiles) > 1 else ''} {named}{more}"
