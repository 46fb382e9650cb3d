"""Views: what a kernel of a search gets to see of a sequence.

A view is a chain of the library's preprocessing functions, named so that a saved model can name it. All are made of
one sequence at a time: nothing is learned from other sequences, so nothing leaks.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...preprocessing import differences, unit_norm, z_normalize
from ...preprocessing.blocks import block_means
from ...sequences import SequenceBatch

#: Name of each view and what it shows.
VIEWS = {
    "as given": "the sequence as it is",
    "unit norm": "the sequence divided by its norm, as in the RNTK paper",
    "values": "mean 0 and deviation 1 in every channel",
    "differences": "steps from one value to the next, z-normalised",
}


@dataclass(frozen=True)
class View:
    """A way to look at sequences.

    Attributes
    ----------
    name : one of `VIEWS`. block : how many steps are averaged into one before anything else; 1 keeps all.
    """

    name: str
    block: int = 1

    def __post_init__(self) -> None:
        if self.name not in VIEWS:
            raise ValueError(f"a view is one of {', '.join(map(repr, VIEWS))}, not {self.name!r}")

    def __call__(self, batch: SequenceBatch) -> SequenceBatch:
        """The sequences of `batch` as this view shows them."""
        if self.name == "as given":
            return block_means(batch, self.block)
        if self.name == "unit norm":
            return unit_norm(block_means(batch, self.block))
        values = z_normalize(block_means(z_normalize(batch), self.block))
        return values if self.name == "values" else z_normalize(differences(values))
