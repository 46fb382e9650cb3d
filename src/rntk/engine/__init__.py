"""Engines: how the recursion is computed.

In go an `Architecture` and validated batches; out comes a `Problem`, a plan of independent tiles that `rntk.gram`
runs. Two engines share this contract and no arithmetic: `reference` is for reading, `fused` for speed.

A third one, `array_api`, is for sequences that lie on a device other than the CPU. Tiles run on threads of the host and
end in its memory; there, all of the work and the result stay on the device, so that engine assembles its own matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import scales
from .array.libraries import foreign_arrays, is_elsewhere, place_of
from .tiles import Block, Problem, Scale, Tile

__all__ = [
    "ENGINES",
    "REVISION",
    "Block",
    "Engine",
    "Problem",
    "Scale",
    "Tile",
    "choose_engine",
    "load_engine",
    "scales",
]

#: Raised when any bit of the arithmetic changes: stored Gram matrices of another revision are computed anew.
REVISION = 1
ENGINES = ("auto", "fused", "reference", "array")


def choose_engine(name: str, *data: Any) -> tuple[str, str]:
    """The engine meant by `name` for the sequences in `data`, and the reason, in one sentence.

    The fused engine covers every setting, so "auto" takes it for whatever the CPU can read, tensors of other libraries
    in host memory included: it is far faster there than any sequence of array operations. What lies on another device
    is computed on that device, by "array". Whoever wants the textbook formulas, for a check or for reading along in a
    debugger, asks for "reference"; whoever wants the result as a tensor on the CPU asks for "array".

    Examples
    --------
    >>> choose_engine("auto")
    ('fused', 'covers every setting and is the fastest one on a CPU')
    """
    if name == "auto":
        for X in data:
            for array in foreign_arrays(X):
                if is_elsewhere(array):
                    return "array", f"the data lies on {place_of(array)}, and is computed where it lies"
        return "fused", "covers every setting and is the fastest one on a CPU"
    if name in ENGINES:
        return name, "asked for by name"
    raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")


class Engine(NamedTuple):
    """What an engine offers: prepare a Gram computation, and kernels of sequences with themselves."""

    make_problem: Callable[..., Problem]
    self_kernels: Callable[..., tuple[Scale, Scale]]


def load_engine(name: str) -> Engine:
    """The engine of tiles meant by `name`, imported on first use: compiled code loads only when it runs."""
    chosen, _ = choose_engine(name)
    if chosen == "array":
        raise ValueError("the array engine has no tiles; see rntk.engine.array.ArrayProblem")
    if chosen == "fused":
        from . import fused

        return Engine(fused.FusedProblem, fused.self_kernels)
    from . import reference

    return Engine(reference.ReferenceProblem, reference.self_kernels)
