"""From a path to text: which file, and whether it holds text at all."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from .errors import refusal

__all__ = ["SUFFIXES", "find_file", "numbered_lines", "read_text"]

#: The suffixes read without asking, and the formats they mean.
SUFFIXES = {".tsv": "tsv", ".txt": "tsv", ".ts": "ts", ".arff": "arff", ".csv": "csv"}

# What users keep beside text files, by the first bytes.
_CONTAINERS = {
    b"PK\x03\x04": ("a zip archive (also .npz and .xlsx are)", "unpack it, or export the data as .csv"),
    b"\x1f\x8b": ("compressed with gzip", "unpack it first"),
    b"BZh": ("compressed with bzip2", "unpack it first"),
    b"\xfd7zXZ\x00": ("compressed with xz", "unpack it first"),
    b"\x93NUMPY": ("a NumPy .npy file", "load it with numpy.load and pass the array to rntk.as_batch"),
}
_ENCODE = "save it as UTF-8 text"


def find_file(path: Path) -> None:
    """Raise unless there is a regular file at the path, with a hint at what may have been meant."""
    try:
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            path.stat()  # is_file() and the like keep other errors to themselves from Python 3.14 on
        if path.is_file():
            return
        if path.is_dir():
            inside = sorted(entry.name for entry in path.iterdir() if entry.suffix.lower() in SUFFIXES)
            advice = f"pass a file in it, such as {inside[0]}" if inside else "pass the path of a file"
            raise refusal(path, "it is a folder, not a file", advice)
        if path.exists():
            raise refusal(path, "it is not a regular file", "write the data to a file first")
        if not path.parent.is_dir():
            raise refusal(path, f"there is no such file, nor the folder {path.parent}", "check the path")
        names = [entry.name for entry in islice(path.parent.iterdir(), 1000)]  # comparing names takes its time
        close = difflib.get_close_matches(path.name, names, n=1)
    except OSError as error:
        raise refusal(path, f"the system says: {error.strerror or error}", "check the path") from error
    raise refusal(path, "there is no such file", f"did you mean {close[0]}?" if close else "check the path")


def read_text(path: Path, comments: bytes = b"") -> str:
    """Return the text of a file, its lines separated by ``\\n`` whatever system wrote it.

    Lines that begin with one of `comments` may hold any bytes: some of the archive's files name their authors in
    another encoding.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise refusal(path, f"the system says: {error.strerror or error}", "check its permissions") from error
    for start, (what, advice) in _CONTAINERS.items():
        if content.startswith(start):
            raise refusal(path, f"it is {what}, not text", advice)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise refusal(path, "it is encoded as UTF-16", _ENCODE)
    if b"\x00" in content:
        line = content[: content.index(b"\x00")].count(b"\n") + 1
        raise refusal(path, f"line {line} holds a zero byte, so it is binary data, not text", "pass a text file")
    if comments and not content.isascii():
        content = re.sub(rb"(?m)^[ \t]*[%s][^\r\n]*" % comments, b"", content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = f"line {line} holds bytes that are not UTF-8 text, the first being 0x{content[error.start]:02x}"
        raise refusal(path, problem, f"pass a text file; if it is one, {_ENCODE}") from error
    if not text.strip():
        raise refusal(path, "it is empty", "pass a file with one sequence per line")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    # Not `splitlines`, which also splits at characters that no editor counts as the end of a line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.isspace():
            yield number, line
