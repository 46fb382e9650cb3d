"""The folder of a stored matrix: what it is of, who writes to it, and its index of tiles.

``matrix.json`` says what the matrix is of and is written last when a store begins: without it there is no store yet.
``tiles.index`` holds the checksums. Whoever writes has a lock on it, which the system takes back however a run ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

from .errors import GramStoreError
from .identity import differences

FORMAT = "rntk gram"
#: Raised when a store of this version can't be read by the code of the version before.
FORMAT_VERSION = 1
DOCUMENT, INDEX = "matrix.json", "tiles.index"
#: What a run that ended before its first tile may leave behind.
_OWN = {INDEX, "tiles.bin", "zarr.json", "c"}


class StoreFolder:
    """A folder with a matrix, open for reading, or for writing under a lock.

    Attributes
    ----------
    document : what `matrix.json` says.
    index : descriptor of the index, if `writable`.
    """

    def __init__(self, path: Path, document: dict[str, Any], writable: bool = False) -> None:
        self.path = path
        self.document = document
        self.writable = writable
        self._descriptors: list[int] = []
        if writable:
            self.index = self.open_file(INDEX)
            try:
                _lock(self.index, path)
            except GramStoreError:
                self.close()
                raise

    @property
    def salt(self) -> bytes:
        """What seals of this matrix have in common: entries of another one don't pass."""
        return str(self.document["id"]).encode()

    def stamp(self) -> tuple[int, int]:
        """What changes when another matrix takes the place of this one."""
        try:
            found = (self.path / DOCUMENT).stat()
        except FileNotFoundError:
            raise GramStoreError(f"{self.path} is gone, or no longer a stored Gram matrix") from None
        return found.st_ino, found.st_mtime_ns

    def open_file(self, name: str) -> int:
        """A descriptor for reading and writing, closed with the folder."""
        descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._descriptors.append(descriptor)
        return descriptor

    def close(self) -> None:
        """Close files; the lock goes with them."""
        self.writable = False
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads.
        return {"path": self.path, "document": self.document, "writable": False, "_descriptors": []}


def write_at(descriptor: int, content: Any, offset: int) -> None:
    """Write all of `content`; a full disk is an OSError."""
    view = memoryview(content)
    while len(view):
        if hasattr(os, "pwrite"):
            count = os.pwrite(descriptor, view, offset)
        else:  # Windows
            os.lseek(descriptor, offset, os.SEEK_SET)
            count = os.write(descriptor, view)
        view, offset = view[count:], offset + count


def read_document(path: Path) -> dict[str, Any]:
    """What `matrix.json` says, once its digest is found right."""
    try:
        content = json.loads((path / DOCUMENT).read_text("utf-8"))
    except FileNotFoundError:
        found = "there is no such folder" if not path.exists() else f"it holds no {DOCUMENT}"
        raise GramStoreError(f"{path} is no stored Gram matrix: {found}") from None
    except NotADirectoryError:
        raise GramStoreError(f"{path} is no stored Gram matrix: it is a file, not a folder") from None
    except (ValueError, RecursionError) as error:
        raise GramStoreError(f"{path / DOCUMENT} is damaged ({error}); overwrite=True starts anew") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise GramStoreError(f"{path} is no stored Gram matrix: {DOCUMENT} says no such format")
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise GramStoreError(f"{path} has format {version!r}, and this rntk reads format {FORMAT_VERSION}")
    if content.pop("sha256", None) != _digest(content):
        raise GramStoreError(f"{path / DOCUMENT} was changed after being written; overwrite=True starts anew")
    return content


def begin(path: Path, document: dict[str, Any]) -> StoreFolder:
    """A new folder, or one in which a run ended before it was a store; the document is still to be written."""
    if not path.parent.is_dir():
        raise GramStoreError(f"out={str(path)!r}: there is no folder {path.parent}")
    if path.exists() and not path.is_dir():
        raise GramStoreError(f"out={str(path)!r} is a file; a stored Gram matrix is a folder, so give another name")
    path.mkdir(exist_ok=True)
    names = {each.name for each in path.iterdir() if not each.name.endswith(".partial")}
    if DOCUMENT in names:
        raise GramStoreError(f"another run has just begun with {path}; wait for it, or give another name")
    # The index is the first file of a store: what lies there without it is somebody else's.
    foreign = sorted(names - _OWN if INDEX in names else names)
    if foreign:
        raise GramStoreError(f"out={str(path)!r} is a folder with other things in it ({foreign[0]}); give another name")
    folder = StoreFolder(
        path, {"format": FORMAT, "format_version": FORMAT_VERSION, "id": uuid.uuid4().hex, **document}, True
    )
    if (path / DOCUMENT).exists():  # by a run that had the lock until now
        folder.close()
        raise GramStoreError(f"another run has just begun with {path}; wait for it, or give another name")
    # Remains of a run that ended early are of another matrix, perhaps.
    for name in _OWN - {INDEX}:
        _remove(path / name)
    os.ftruncate(folder.index, 0)
    return folder


def commit(folder: StoreFolder) -> None:
    """Write the document: from here on the folder is a store."""
    text = json.dumps({**folder.document, "sha256": _digest(folder.document)}, indent=1)
    partial = folder.path / f"{DOCUMENT}.{uuid.uuid4().hex}.partial"
    with partial.open("x", encoding="utf-8") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, folder.path / DOCUMENT)


def resume(path: Path, identity: dict[str, Any], block: int | None, *, writable: bool) -> StoreFolder:
    """The folder of a matrix that began, if it is of what is asked for now; without `block`, cut in any way."""
    document = read_document(path)
    there = document["identity"]
    differ = differences(there, {**identity, "block": there["block"] if block is None else block})
    if differ:
        raise GramStoreError(
            f"{path} holds another Gram matrix: {'; '.join(differ)}. Give another name, or pass overwrite=True to "
            "delete it"
        )
    return StoreFolder(path, document, writable)


def delete(path: Path) -> None:
    """Delete a store, and nothing that isn't one."""
    if not path.exists():
        return
    if not (path / INDEX).exists() or not {DOCUMENT, "zarr.json", "tiles.bin"} & set(os.listdir(path)):
        raise GramStoreError(f"{path} is no stored Gram matrix, so overwrite=True doesn't delete it; give another name")
    folder = StoreFolder(path, {}, writable=True)  # nobody else writes to it
    try:
        (path / DOCUMENT).unlink(missing_ok=True)  # first: half a store is none
        shutil.rmtree(path)
    finally:
        folder.close()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _lock(descriptor: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise GramStoreError(f"another run writes to {path}; wait for it, or give another name") from None
    except OSError:  # a file system without locks
        return
