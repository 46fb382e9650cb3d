"""What becomes of the outputs of all steps: weights of steps, some of which look at the sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_positive
from ..network import READOUTS, Last, Readout, as_readout

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Attention(Readout):
    """Σ_t α_t h_t with α = softmax(β <h_t, h_T>/n) over the steps: those count most that are like the last one.

    In the limit <h_t, h_T>/n is a number, E[h_t h_T], and no weight moves it to first order: α is the same in the
    tangent kernel.

    Attributes
    ----------
    sharpness : float
        β.
    """

    sharpness: float = 1.0
    name = "attention"

    def __post_init__(self) -> None:
        check_positive("sharpness", self.sharpness, or_zero=True)

    def weights(self, lengths: Index) -> Array | None:
        raise ValueError("attention depends on the sequences: take ProgramKernel, where it is known")


def as_program_readout(readout: str | Readout) -> Readout:
    """The readout of this name, "attention" among them, or the one given."""
    return Attention() if readout == "attention" else as_readout(readout)


def step_weights(readout: Readout, lengths: Index, similarity: list[Array] | None) -> list[Array]:
    """(T,) for each sequence, what each step counts for; `similarity` are E[h_t h_T] of each, for attention."""
    if isinstance(readout, Last):
        return [np.eye(length)[-1] for length in lengths]
    if isinstance(readout, Attention):
        assert similarity is not None
        scores = [readout.sharpness * (each - each.max()) for each in similarity]
        return [np.exp(each) / np.exp(each).sum() for each in scores]
    given = readout.step_weights(lengths)
    flat = np.ones(lengths.sum()) if given is None else given
    return [each / len(each) for each in np.split(flat, np.cumsum(lengths)[:-1])]


def check_readout(readout: Any) -> Readout:
    """A readout with one number per sequence."""
    found = as_program_readout(readout)
    if found.per_step:
        names = [name for name, each in READOUTS.items() if not each.per_step]
        raise ValueError(f"programs give one number per sequence: take {', '.join(names)} or attention as the readout")
    return found
