"""What records of experiments share: they come back from plain numbers, and check what the papers say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, get_args, get_origin, get_type_hints

import numpy as np


@dataclass(frozen=True)
class Check:
    """A sentence of a paper, whether it holds for a record, and the numbers that say so."""

    claim: str
    holds: bool
    evidence: str


class Record:
    """A frozen dataclass of numbers, texts, tuples and arrays. `to_dict` may add what follows from its fields."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The record whose `to_dict` gave `values`."""
        hints = get_type_hints(cls)
        return cls(**{each.name: _restore(values[each.name], hints[each.name]) for each in fields(cls)})  # type: ignore[arg-type]


def _restore(value: Any, hint: Any) -> Any:
    kind = get_origin(hint)
    if hasattr(kind, "__value__"):  # a named alias (PEP 695), as NDArray is from NumPy 2.5 on
        hint = kind.__value__[get_args(hint)]
        kind = get_origin(hint)
    if kind is np.ndarray:
        (dtype,) = get_args(get_args(hint)[1])
        return np.array(value, dtype=dtype)
    return tuple(value) if kind is tuple else value
