"""Sequences and views in a model file."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from ...errors import SequenceError
from ...learners.search.views import VIEWS, View
from ...sequences import SequenceBatch
from .arrays import Shelf
from .errors import DefectError, quote
from .fields import Fields
from .plain import encode


def describe_sequences(batch: SequenceBatch, shelf: Shelf) -> dict[str, Any]:
    """A batch: its values and its offsets."""
    return {
        "values": shelf.put("sequences-values", batch.values),
        "offsets": shelf.put("sequences-offsets", batch.offsets),
        "dtype": batch.dtype.name,
    }


def restore_sequences(fields: Fields, n_channels: int) -> SequenceBatch:
    """The batch, through the same checks as any other."""
    values = fields.array("values", (None, n_channels), fields.text("dtype", ("float64", "float32")))
    offsets = fields.array("offsets", (None,), np.int64)
    try:
        return SequenceBatch(values, offsets)
    except SequenceError as error:
        raise DefectError(f"{fields.where} is no batch of sequences: {'; '.join(error.problems)}") from error


def describe_view(view: View) -> dict[str, Any]:
    """What a kernel of a search sees."""
    return {name: encode(value, f"the {name} of a view") for name, value in asdict(view).items()}


def restore_view(fields: Fields, n_channels: int) -> View:
    """The view of this name; "scaled" has a mean and a deviation per channel, the others have none."""
    for name in fields.found:
        if name not in ("name", "block", "clock", "mean", "deviation"):
            # A view that has learned more than this module knows of would be saved without it.
            raise DefectError(f"{fields.where} has {quote(name)}, which no view has here")
    kind, block = fields.text("name", VIEWS), fields.integer("block", 1)
    clock, mean, deviation = (fields.value(name) for name in ("clock", "mean", "deviation"))
    if not _is_finite(clock) or clock < 0:
        raise DefectError(f"{fields.where}: clock must be a number, at least 0")
    count = n_channels if kind == "scaled" else 0
    for each in (mean, deviation):
        if not isinstance(each, tuple) or len(each) != count or not all(map(_is_finite, each)):
            raise DefectError(f"{fields.where}: mean and deviation must be {count} finite numbers each")
    if not all(each > 0 for each in deviation):
        raise DefectError(f"{fields.where}: a deviation must be positive")
    return View(kind, block, clock, mean, deviation)


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
