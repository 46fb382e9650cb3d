"""Engines: how the recursion is computed.

In go an `Architecture` and validated batches; out comes a `Problem`, a plan of independent tiles that `rntk.gram`
runs. Two engines share this contract and no arithmetic: `reference` is for reading, `fused` for speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import scales
from .tiles import Block, Problem, Scale, Tile

__all__ = ["ENGINES", "Block", "Engine", "Problem", "Scale", "Tile", "choose_engine", "load_engine", "scales"]

ENGINES = ("auto", "fused", "reference")


def choose_engine(name: str) -> tuple[str, str]:
    """The engine meant by `name` and the reason, in one sentence.

    The fused engine covers every setting of the reference engine, so "auto" always takes it; whoever wants the
    textbook formulas, for a check or for reading along in a debugger, asks for "reference".

    Examples
    --------
    >>> choose_engine("auto")
    ('fused', 'covers every setting and is the faster one')
    """
    if name == "auto":
        return "fused", "covers every setting and is the faster one"
    if name in ENGINES:
        return name, "asked for by name"
    raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")


class Engine(NamedTuple):
    """What an engine offers: prepare a Gram computation, and kernels of sequences with themselves."""

    make_problem: Callable[..., Problem]
    self_kernels: Callable[..., tuple[Scale, Scale]]


def load_engine(name: str) -> Engine:
    """The engine meant by `name`, imported on first use: compiled code loads only when it runs."""
    chosen, _ = choose_engine(name)
    if chosen == "fused":
        from . import fused

        return Engine(fused.FusedProblem, fused.self_kernels)
    from . import reference

    return Engine(reference.ReferenceProblem, reference.self_kernels)
