"""The zip around a model: written in one piece or not at all, and read without trusting a byte of it.

Layout: ``model.json`` first, then one ``.npy`` per array, stored, not compressed, dated 1980; at the end, as the
comment of the zip, the seal: SHA-256 of all bytes before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from .arrays import Array, Shelf, digest_of, from_bytes, to_bytes
from .errors import DefectError, quote

FORMAT = "rntk model"
#: Raised when a file of this version can't be read by the code of the version before.
FORMAT_VERSION = 1
DOCUMENT = "model.json"
#: No document of a model comes near it; the largest, of a search over 4500 candidates, has less than one MiB.
LARGEST_DOCUMENT = 1 << 25
SEAL = b"sha256:"
_SEAL_BYTES = len(SEAL) + 64
_MEMBER = re.compile(r"[a-z0-9_-]{1,60}\.npy")
_CHUNK = 1 << 20


def to_text(document: Mapping[str, Any]) -> str:
    """The document as it is written: ASCII, the same for the same model."""
    text = json.dumps(document, indent=1, allow_nan=False)
    if len(text) > LARGEST_DOCUMENT:
        raise DefectError(f"its description has {len(text)} characters, more than the {LARGEST_DOCUMENT} of the format")
    return text


def parse(content: bytes) -> Any:
    """The JSON in `content`; strict where Python's reader is not: no NaN, no name twice."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name occurs twice in one object")
        return found

    try:
        return json.loads(content.decode(), parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise DefectError(f"{DOCUMENT} is not readable: {error}") from error


# -- writing ------------------------------------------------------------------------------------------------------


def write_archive(path: Path, text: str, shelf: Shelf) -> None:
    """Write the file under another name first: at `path` is the old file, or the whole new one, or none."""
    target = Path(os.path.realpath(path))  # a link stays a link
    partial = target.with_name(f".{uuid.uuid4().hex}.partial")
    try:
        if target.is_dir():
            raise DefectError("it is a folder")
        if not target.parent.is_dir():
            raise DefectError(f"there is no folder {path.parent}")
        try:
            with partial.open("x+b") as stream:
                _fill(stream, text, shelf)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise DefectError(f"the system says: {error.strerror or error}") from error


def _fill(stream: BinaryIO, text: str, shelf: Shelf) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"\0" * _SEAL_BYTES
        archive.writestr(_entry(DOCUMENT), text)
        for name, array in shelf.arrays.items():
            archive.writestr(_entry(f"{name}.npy"), to_bytes(array))
    size = stream.seek(0, os.SEEK_END)
    seal = SEAL + _hash_start(stream, size - _SEAL_BYTES).encode()
    stream.seek(size - _SEAL_BYTES)
    stream.write(seal)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the first date a zip knows
    entry.create_system = 3  # Unix, whatever system writes
    entry.external_attr = 0o644 << 16
    return entry


def _hash_start(stream: BinaryIO, size: int) -> str:
    """SHA-256 of the first `size` bytes."""
    digest, left = hashlib.sha256(), size
    stream.seek(0)
    while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest()


# -- reading ------------------------------------------------------------------------------------------------------


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The document and the arrays of a file whose seal, names, sizes and digests are right."""
    try:
        # Asked first: opening a pipe would wait for whoever writes to it.
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise DefectError("there is no such file") from None
        if not stat.S_ISREG(mode):
            raise DefectError("it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
        with path.open("rb") as stream:
            size = _check_seal(stream)
            try:
                return _read_members(stream, size)
            except (DefectError, MemoryError):
                raise
            except Exception as error:  # a zip made by hand takes zipfile to a dozen kinds of exceptions
                raise DefectError(f"its zip structure is damaged: {quote(str(error))}") from error
    except OSError as error:
        raise DefectError(f"the system says: {error.strerror or error}") from error


def _check_seal(stream: BinaryIO) -> int:
    """The size of the file, once its seal is found to be right."""
    start = stream.read(30 + len(DOCUMENT))
    if not start.startswith(b"PK\x03\x04"):
        what = "it is empty" if not start else "it is not a model file of rntk"
        raise DefectError(f"{what}; model files come from rntk.io.models.save or `rntk fit`")
    if start[30:] != DOCUMENT.encode()[: len(start[30:])]:
        raise DefectError(f"it is a zip archive, but not a model file of rntk: {DOCUMENT} does not come first")
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _SEAL_BYTES))
    seal = stream.read(_SEAL_BYTES)
    if not seal.startswith(SEAL):
        raise DefectError(
            "it does not end as a model file does; it was cut short or changed, so copy it or save it again"
        )
    if seal != SEAL + _hash_start(stream, size - _SEAL_BYTES).encode():
        raise DefectError("its content was changed after it was saved (the SHA-256 differs); copy it or save it again")
    return size


def _read_members(stream: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, Array]]:
    with zipfile.ZipFile(stream) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if DOCUMENT not in entries:
            raise DefectError(f"it holds no {DOCUMENT}")
        _check_sizes(archive.infolist(), size)
        document = parse(archive.read(DOCUMENT))
        digests = _check_head(document)
        for name in entries:
            if name != DOCUMENT and not _MEMBER.fullmatch(name):
                raise DefectError(f"it holds a member named {quote(name)}, which no model has")
        listed = {f"{name}.npy" for name in digests} | {DOCUMENT}
        if len(archive.infolist()) != len(entries) or listed != entries.keys():
            raise DefectError(f"its members are not the ones that {DOCUMENT} lists, each once")
        arrays = {}
        for name, digest in digests.items():
            content = archive.read(f"{name}.npy")
            if digest_of(content) != digest:
                raise DefectError(f"{name}.npy is not the array that was saved (its SHA-256 differs)")
            arrays[name] = from_bytes(content, f"{name}.npy")
        return document, arrays


def _check_sizes(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse to unpack anything: members are stored as they are, so together they are smaller than the file."""
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise DefectError(f"its member {quote(entry.filename)} is compressed or encrypted, which no model has")
        if entry.filename == DOCUMENT and entry.file_size > LARGEST_DOCUMENT:
            raise DefectError(f"its {DOCUMENT} announces {entry.file_size} bytes, more than {LARGEST_DOCUMENT}")
    total = sum(entry.file_size for entry in entries)
    if total > size:
        raise DefectError(f"its members announce {total} bytes, more than the {size} of the file")


def _check_head(document: Any) -> dict[str, str]:
    """Digests of the arrays, from a document in a format that is known."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DefectError(f"it is a zip archive, but not a model file of rntk: {DOCUMENT} says no such format")
    version = document.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise DefectError(f"its format version is {quote(version)}, expected a whole number from 1")
    if version > FORMAT_VERSION:
        raise DefectError(
            f"it was written by rntk {quote(document.get('rntk_version'))} in format {quote(version)}, and this rntk "
            f"reads formats up to {FORMAT_VERSION}; install a newer one"
        )
    digests = document.get("arrays")
    if not isinstance(digests, dict) or not all(isinstance(digest, str) for digest in digests.values()):
        raise DefectError(f"{DOCUMENT} does not list its arrays")
    return digests
