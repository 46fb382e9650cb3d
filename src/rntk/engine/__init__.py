"""Engines: how the recursion is computed.

In go a `Plan` and batches; out come sides, all that belongs to each sequence alone, and from pairs of sides Gram
matrices (`contract`). Two engines share it and no arithmetic: `reference` is for reading and for checks,
`fused` for speed; what they have in common beyond it, both directions of reading and normalisation, is in `sides`. A
third one, `array`, is for sequences that lie on a device other than the CPU, where all of the work and the result stay.
"""

from __future__ import annotations

from typing import Any

from ..network import Network
from .array.libraries import foreign_arrays, is_elsewhere, place_of
from .contract import Engine, NotOfferedError, Plan, Values

__all__ = ["ENGINES", "REVISION", "Engine", "NotOfferedError", "Plan", "Values", "choose_engine", "load_engine"]

#: Raised when any bit of the arithmetic changes: stored Gram matrices of another revision are computed anew.
REVISION = 3
ENGINES = ("auto", "fused", "reference", "array")


def choose_engine(name: str, network: Network | None = None, *data: Any) -> tuple[Engine, str]:
    """The engine meant by `name` for a network and sequences, and the reason, in one sentence.

    The fused engine covers every setting, so "auto" takes it for whatever the CPU can read, tensors of other libraries
    in host memory included: it is far faster there than any sequence of array operations. What lies on another device
    is computed on that device, by "array". Whoever wants the textbook formulas, for a check or for reading along in a
    debugger, asks for "reference"; whoever wants the result as a tensor on the CPU asks for "array".

    Examples
    --------
    >>> engine, reason = choose_engine("auto")
    >>> engine.name, reason
    ('fused', 'covers every setting and is the fastest one on a CPU')
    """
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")
    if name != "auto":
        return load_engine(name), "asked for by name"
    for X in data:
        for array in foreign_arrays(X):
            if is_elsewhere(array):
                return load_engine("array"), f"the data lies on {place_of(array)}, and is computed where it lies"
    fused = load_engine("fused")
    if network is not None and not {type(cell) for cell in network.cells} <= fused.cells:
        return load_engine("reference"), "the only one that knows these cells"
    return fused, "covers every setting and is the fastest one on a CPU"


def load_engine(name: str) -> Engine:
    """The engine of this name, imported on first use: compiled code loads only when it runs."""
    if name == "array":
        from .array import ArrayEngine

        return ArrayEngine()
    if name == "fused":
        from .fused import FusedEngine

        return FusedEngine()
    from .reference import ReferenceEngine

    return ReferenceEngine()
