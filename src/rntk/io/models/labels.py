"""Class labels in a model file: numbers as an array, words as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, Shelf
from .errors import DefectError, quote
from .fields import Fields
from .plain import NUMBERS

#: NumPy stores every word at the width of the longest.
_WIDEST = 10_000


def describe_labels(classes: Array, shelf: Shelf) -> dict[str, Any]:
    """Classes in the order of the learner; `restore_labels` gives them back with their dtype."""
    if classes.dtype.kind == "U":
        return {"words": classes.tolist(), "width": classes.dtype.itemsize // 4}
    if classes.dtype == object and all(type(label) is str for label in classes):
        return {"words": classes.tolist()}
    if classes.dtype.name not in NUMBERS:
        kind = f"{classes.dtype} such as {quote(classes[0])}" if classes.size else str(classes.dtype)
        raise DefectError(f"the class labels are of type {kind}; a model file holds numbers and words")
    return {"numbers": shelf.put("classes", classes), "dtype": classes.dtype.name}


def restore_labels(fields: Fields) -> Array:
    """The classes, at least two, in ascending order."""
    if fields.has("numbers"):
        classes = fields.array("numbers", (None,), fields.text("dtype", NUMBERS))
    else:
        classes = _words(fields)
    if len(classes) < 2 or not bool(np.all(classes[1:] > classes[:-1])):
        raise DefectError(f"{fields.where} must be at least two classes, each once, in ascending order")
    return classes


def _words(fields: Fields) -> Array:
    words = fields.value("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DefectError(f"{fields.where}: words must be a list of texts")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise DefectError(f"{fields.where} holds half of a character pair, which is no text") from None
    if not fields.has("width"):
        return np.array(words, dtype=object)
    width = fields.integer("width", max(map(len, words), default=1) or 1, _WIDEST)
    return np.array(words, dtype=f"U{width}")
