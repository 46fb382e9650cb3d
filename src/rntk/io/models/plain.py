"""Parameter values as JSON and back: numbers, words, tuples, arrays, and nothing that could run.

JSON has null, true, numbers, strings and lists of its own. Everything else is an object with a tag:
``{"tuple": […]}``, ``{"float": "inf"}``, ``{"scalar": 2, "dtype": "int64"}``, ``{"array": […], "dtype": "float64"}``,
``{"settings": {…}}`` for a dictionary with words as keys, ``{"pairs": […]}`` for any other. Floats survive exactly:
Python writes the shortest digits that read back as the same double.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .errors import DefectError, quote

#: NumPy's types of plain numbers, by name.
NUMBERS = ("float64", "float32", "float16", "bool", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)))
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_DEPTH = 8


def encode(value: Any, name: str) -> Any:
    """`value` as JSON; `name` is what the user calls it."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.name not in NUMBERS:
            raise DefectError(f"{name} is of type {value.dtype}, which a model file does not hold")
        tag = "array" if isinstance(value, np.ndarray) else "scalar"
        return {tag: encode(value.tolist(), name), "dtype": value.dtype.name}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, list):
        return [encode(each, name) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(each, name) for each in value]}
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {"settings": {key: encode(each, name) for key, each in value.items()}}
    if isinstance(value, dict):
        return {"pairs": [[encode(key, name), encode(each, name)] for key, each in value.items()]}
    raise DefectError(
        f"{name}={quote(value)} is a Python object that a file can't describe; give numbers, words or None "
        "instead (set_params changes a parameter of a fitted model)"
    )


def decode(found: Any, where: str, depth: int = 0) -> Any:
    """The value that `encode` described; `where` is its place in the file."""
    if depth > _DEPTH:
        raise DefectError(f"{where} is nested too deeply")
    if found is None or isinstance(found, bool | str):
        return found
    if isinstance(found, int) and abs(found) < 2**63:
        return found
    if isinstance(found, float) and math.isfinite(found):
        return found
    if isinstance(found, list):
        return [decode(each, where, depth + 1) for each in found]
    if isinstance(found, dict):
        return _decode_tagged(found, where, depth)
    raise DefectError(f"{where} is {quote(found)}, which is no value of a model")


def _decode_tagged(found: dict[str, Any], where: str, depth: int) -> Any:
    tags = sorted(found)
    if tags == ["float"] and isinstance(found["float"], str) and found["float"] in _NOT_FINITE:
        return _NOT_FINITE[found["float"]]
    if tags == ["tuple"] and isinstance(found["tuple"], list):
        return tuple(decode(each, where, depth + 1) for each in found["tuple"])
    if tags == ["settings"] and isinstance(found["settings"], dict):
        return {key: decode(each, where, depth + 1) for key, each in found["settings"].items()}
    if tags == ["pairs"] and isinstance(found["pairs"], list):
        pairs = [decode(each, where, depth + 1) for each in found["pairs"]]
        if all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            try:
                return dict(pairs)
            except TypeError:
                pass  # a key that no dictionary takes
    if tags in (["array", "dtype"], ["dtype", "scalar"]) and found["dtype"] in NUMBERS:
        tag = "array" if "array" in found else "scalar"
        value = decode(found[tag], where, depth + 1)
        try:
            array = np.array(value, dtype=found["dtype"])
        except (ValueError, TypeError, OverflowError) as error:
            raise DefectError(f"{where} is not an array of {found['dtype']}: {error}") from error
        if tag == "array":
            return array
        if array.ndim == 0:
            return array[()]
    raise DefectError(f"{where} is {quote(found)}, which is no value of a model")
