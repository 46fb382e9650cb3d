"""The file around a model: a zip of one JSON document and arrays, written whole or not at all, read without trust.

``model.json`` comes first, then one ``.npy`` per array; nothing is compressed, and all is dated 1980: the same model
gives the same bytes. The comment of the zip, the seal, is the SHA-256 of all bytes before it: a file that was cut or
changed says so. `numpy.load` reads the arrays, too.
"""

from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..kernels.description import quote
from ..runtime import replacing

Array = NDArray[Any]
FORMAT = "rntk model"
#: Raised when a file of this version can't be read by the code of the version before.
FORMAT_VERSION = 2
DOCUMENT = "model.json"
SEAL = b"sha256:"
SEAL_SIZE = len(SEAL) + 64


def write_archive(path: Path, text: str, members: Mapping[bytes, str]) -> None:
    """Write a document and the ``.npy`` contents, each with its name."""
    contents = {DOCUMENT: text.encode()} | {f"{name}.npy": content for content, name in members.items()}
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.comment = bytes(SEAL_SIZE)
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name)  # stored as it is, dated 1980 unless told otherwise
            entry.create_system = 3  # Unix, whatever system writes
            archive.writestr(entry, content)
    body = stream.getvalue()[:-SEAL_SIZE]
    with replacing(path, "wb") as file:
        file.write(body + seal_of(body))


def read_archive(path: Path) -> tuple[Any, dict[str, Array]]:
    """The model in the document, and the arrays, of a file whose seal is right; a ValueError or OSError otherwise."""
    try:
        mode = path.stat().st_mode  # asked first: opening a pipe would wait for whoever writes to it
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError("there is no such file") from None
    if not stat.S_ISREG(mode):
        raise ValueError("it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    content = path.read_bytes()
    _check_seal(content)
    with zipfile.ZipFile(BytesIO(content)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("its members are compressed, which those of a model are not")
        if sum(entry.file_size for entry in entries) > len(content):
            raise ValueError(f"its members announce more bytes than the {len(content)} of the file")
        model = _model_in(json.loads(archive.read(DOCUMENT)))
        names = [entry.filename.removesuffix(".npy") for entry in entries if entry.filename.endswith(".npy")]
        return model, {name: from_bytes(archive.read(f"{name}.npy"), f"{name}.npy") for name in names}


def seal_of(body: bytes) -> bytes:
    """What stands at the end of a file, as the comment of the archive."""
    return SEAL + hashlib.sha256(body).hexdigest().encode()


def _check_seal(content: bytes) -> None:
    """Refuse what is no model file, or not as it was written."""
    if not content.startswith(b"PK\x03\x04"):
        what = "it is not a model file of rntk" if content else "it is empty"
        raise ValueError(f"{what}; model files come from rntk.save or `rntk fit`")
    if not DOCUMENT.encode().startswith(content[30 : 30 + len(DOCUMENT)]):
        raise ValueError(f"it is a zip archive, but not a model file of rntk: {DOCUMENT} does not come first")
    if content[-SEAL_SIZE:] != seal_of(content[:-SEAL_SIZE]):
        raise ValueError("it was cut short or changed after it was saved (its SHA-256 differs); copy or save it again")


def _model_in(document: Any) -> Any:
    """The model, from a document in the format that is known."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"it is a zip archive, but not a model file of rntk: {DOCUMENT} says no such format")
    version = document.get("format_version")
    if version == 1:
        raise ValueError("it is in format 1, of rntk before its first release; fit the model again and save it")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"it was written by rntk {quote(document.get('rntk_version'))} in format {quote(version)}, and this rntk "
            f"reads format {FORMAT_VERSION}; install a newer one"
        )
    return document.get("model")


def to_bytes(array: Array) -> bytes:
    """An array as a ``.npy``: little-endian, in the memory order it has, because BLAS rounds by memory order."""
    stream = BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), order="K", copy=False)
    np.save(stream, little, allow_pickle=False)
    return stream.getvalue()


def from_bytes(content: bytes, name: str) -> Array:
    """The array in a ``.npy``, in native byte order."""
    stream = BytesIO(content)
    try:
        array = np.asarray(npy.read_array(stream, allow_pickle=False))  # type: ignore[no-untyped-call]
        if stream.read(1):
            raise ValueError("more bytes than its header announces")
    except Exception as error:  # a header made by hand takes its parser to many kinds of exceptions
        raise ValueError(f"{name} is not an array in the .npy format: {quote(str(error))}") from error
    return array.astype(array.dtype.newbyteorder("="), order="K", copy=False)
