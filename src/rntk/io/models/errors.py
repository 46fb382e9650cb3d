"""`ModelFileError`, and the reason for one before the file is known."""

from __future__ import annotations

import reprlib

from ...errors import ModelFileError as ModelFileError


class DefectError(Exception):
    """What is wrong with a model or its description. Raised inside the package; `save` and `load` add the file."""


#: `repr` in bounded time, however large or deep a thing in a file is.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def quote(value: object, limit: int = 60) -> str:
    """What stands in a file, for a message: on one line, and short however long it is."""
    text = _SHORT.repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
