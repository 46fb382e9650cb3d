"""Arrays of a model: each under a name, equal ones once, as the bytes of a ``.npy``."""

from __future__ import annotations

import hashlib
import math
import re
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DefectError, quote

Array = NDArray[Any]

#: The header NumPy writes for plain numbers. Checked before NumPy reads it: a dtype or a size that no model has is
#: refused before anything is interpreted or allocated.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)"
    rb"\{'descr': '((?:<[fiu][248])|(?:\|[iub]1))', 'fortran_order': (?:False|True), "
    rb"'shape': \(([0-9, ]{0,60})\), \} *\n",
    re.DOTALL,
)


class Shelf:
    """The arrays of a model that is being saved."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.digests: dict[str, str] = {}
        self._names: dict[str, str] = {}  # by digest: the members of a search share their sequences

    def put(self, name: str, array: Array) -> str:
        """Keep `array`, and return the name it has from now on: `name`, or that of an equal one kept before."""
        array = np.asarray(array)
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise DefectError(f"{name} is an array of {array.dtype}, which a model file does not hold")
        array = array.astype(array.dtype.newbyteorder("="), copy=False)  # as it will be when it comes back
        digest = digest_of(to_bytes(array))
        if digest not in self._names:
            if name in self.arrays:
                name = f"{name}-{len(self.arrays)}"
            self.arrays[name], self.digests[name], self._names[digest] = array, digest, name
        return self._names[digest]


def to_bytes(array: Array) -> bytes:
    """`array` as a ``.npy``: little-endian, in the memory order it has, because BLAS rounds by memory order."""
    stream = BytesIO()
    if not array.flags.f_contiguous:
        array = np.ascontiguousarray(array)
    little = array.astype(array.dtype.newbyteorder("<"), order="K", copy=False)
    np.save(stream, little, allow_pickle=False)
    return stream.getvalue()


def from_bytes(content: bytes, name: str) -> Array:
    """The array in a ``.npy`` of plain numbers, in native byte order."""
    header = _HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(header[1], "little"):
        raise DefectError(f"{name} is not an array of numbers in the .npy format")
    sizes = [int(size) for size in re.findall(rb"[0-9]+", header[3])]
    expected = math.prod(sizes) * int(header[2][-1:])
    if len(content) - header.end() != expected:
        raise DefectError(
            f"{name} announces {quote(expected)} bytes of numbers and holds {len(content) - header.end()}"
        )
    try:
        array = np.load(BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DefectError(f"{name} is not a readable array: {error}") from error
    return np.asarray(array.astype(array.dtype.newbyteorder("="), copy=False))


def digest_of(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
