"""Views: what a kernel of a search gets to see of a sequence.

A view is a chain of the library's preprocessing functions, named so that a saved model can name it. Each is made of
one sequence at a time; "scaled" carries the mean and deviation of the training data with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...preprocessing import ChannelScaler, add_clock, differences, unit_norm, z_normalize
from ...preprocessing.steps import block_means
from ...sequences import SequenceBatch

#: Sequences whose means and sizes differ by less than this, in units of the whole set's deviation, count as alike.
SAME = 0.05
#: Name of each view and what it shows.
VIEWS = {
    "scaled": "every channel shifted and scaled by what it is on all training sequences together",
    "unit norm": "the sequence divided by its norm, as in the RNTK paper",
    "values": "mean 0 and deviation 1 in every channel",
    "differences": "steps from one value to the next, z-normalised",
}


@dataclass(frozen=True)
class View:
    """A way to look at sequences.

    Attributes
    ----------
    name : str
        One of `VIEWS`.
    block : int
        How many steps are averaged into one before anything else; 1 keeps all.
    clock : float
        0, or how far one more channel runs over every sequence, from -clock √m to clock √m beside its m channels: it
        tells what happens early from what happens late.
    mean : tuple of floats
        Of the training data, per channel; for "scaled" only.
    deviation : tuple of floats
        Likewise.
    """

    name: str
    block: int = 1
    clock: float = 0.0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in VIEWS:
            raise ValueError(f"a view is one of {', '.join(map(repr, VIEWS))}, not {self.name!r}")

    def __str__(self) -> str:
        return ", ".join(
            [self.name, *([f"blocks of {self.block}"] if self.block > 1 else []), *(["clock"] if self.clock else [])]
        )

    def __call__(self, batch: SequenceBatch) -> SequenceBatch:
        """The sequences of `batch` as this view shows them."""
        shown = self._look(batch)
        return add_clock(shown, self.clock * batch.n_channels**0.5) if self.clock else shown

    def _look(self, batch: SequenceBatch) -> SequenceBatch:
        if self.name == "scaled":
            values = (batch.values - np.asarray(self.mean)) / np.asarray(self.deviation)
            return block_means(SequenceBatch(values, batch.offsets), self.block)
        if self.name == "unit norm":
            return unit_norm(block_means(batch, self.block))
        values = z_normalize(block_means(z_normalize(batch), self.block))
        return values if self.name == "values" else z_normalize(differences(values))


def scaled_view(batch: SequenceBatch, block: int) -> View | None:
    """The view "scaled" as the sequences of `batch` have it; None where it would show no more than "values".

    That is so where every sequence has been z-normalised, as in most sets of the UCR archive.
    """
    scaler = ChannelScaler().fit(batch)
    counts = batch.lengths[:, None]
    starts = batch.offsets[:-1]
    standard = (batch.values - scaler.mean_) / scaler.scale_
    means = np.add.reduceat(standard, starts) / counts
    sizes = np.sqrt(np.add.reduceat(np.square(standard), starts) / counts)
    if means.std() < SAME and sizes.std() < SAME:
        return None
    return View("scaled", block, mean=tuple(map(float, scaler.mean_)), deviation=tuple(map(float, scaler.scale_)))
