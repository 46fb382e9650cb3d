"""Views: what a member of the ensemble gets to see of a sequence.

In goes a batch, out comes another: one or more channels, as many steps as the view has positions. A view is made of one
sequence at a time, but for numbers that `fit` takes from the training sequences and the view carries with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...preprocessing import ChannelScaler, add_clock, differences, z_normalize
from ...preprocessing.steps import block_means
from ...sequences import SequenceBatch
from ...sequences.batch import offsets_of
from ...sequences.targets import Array

#: Sequences whose means and sizes differ by less than this, in units of the whole set's deviation, count as alike.
SAME = 0.05
#: Values in a window.
WINDOW = 9
#: What a deviation is at least, in units of the median deviation of windows; and a magnitude, of the median one.
LEAST_DEVIATION, LEAST_MAGNITUDE = 0.1, 0.01
#: Name of each view and what it shows.
VIEWS = {
    "values": "mean 0 and deviation 1 in every channel",
    "differences": "steps from one value to the next, z-normalised",
    "scaled": "every channel shifted and scaled by what it is on all training sequences together",
    "windows": "nine values around a position, mean 0 and deviation 1 in each window",
    "spectrum": "how strong each frequency is around a position, as a logarithm",
}


@dataclass(frozen=True)
class View:
    """A way to look at sequences.

    Attributes
    ----------
    name : str
        One of `VIEWS`.
    block : int
        How many steps are averaged into one before anything else; in "windows" and "spectrum", how many lie between
        positions.
    clock : float
        0, or how far one more channel runs over every sequence, from -clock √m to clock √m beside its m channels: it
        tells what happens early from what happens late.
    span : int
        Steps between the values of a window; length of what a spectrum is of.
    floor : float
        Of the training data: what is added to deviations and magnitudes, so that noise is not blown up.
    mean : tuple of floats
        Of the training data, per channel; for "scaled" and "spectrum".
    deviation : tuple of floats
        Likewise.
    """

    name: str
    block: int = 1
    clock: float = 0.0
    span: int = 1
    floor: float = 0.0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in VIEWS:
            raise ValueError(f"a view is one of {', '.join(map(repr, VIEWS))}, not {self.name!r}")

    def __str__(self) -> str:
        apart = self.name in ("windows", "spectrum")
        said = {"windows": f"every {self.span}.", "spectrum": f"of {self.span} steps"}.get(self.name)
        blocks = f"{self.block} apart" if apart else f"blocks of {self.block}"
        parts = [self.name, said, blocks if self.block > 1 else None, "clock" if self.clock else None]
        return ", ".join(part for part in parts if part)

    def fit(self, batch: SequenceBatch) -> View:
        """The view with what it takes from the training sequences `batch`."""
        if self.name == "scaled":
            scaler = ChannelScaler().fit(batch)
            return replace(self, mean=_numbers(scaler.mean_), deviation=_numbers(scaler.scale_))
        if self.name == "windows":
            deviations = _windows(batch, self.span, self.block)[0].std(axis=1)
            return replace(self, floor=LEAST_DEVIATION * _typical(deviations))
        if self.name == "spectrum":
            magnitudes, _ = _magnitudes(batch, self.span, self.block)
            floor = LEAST_MAGNITUDE * _typical(magnitudes)
            logs = np.log(magnitudes + floor)
            deviation = logs.std(axis=0)
            deviation[deviation < 1e-6] = 1.0  # frequencies that all sequences have alike
            return replace(self, floor=floor, mean=_numbers(logs.mean(axis=0)), deviation=_numbers(deviation))
        return self

    def __call__(self, batch: SequenceBatch) -> SequenceBatch:
        """The sequences of `batch` as this view shows them."""
        shown = self._look(batch)
        return add_clock(shown, self.clock * batch.n_channels**0.5) if self.clock else shown

    def channels(self, count: int) -> int:
        """How many channels it makes of `count`."""
        if self.name == "windows":
            return count * WINDOW
        return count * (self.span // 2 + 1) if self.name == "spectrum" else count + bool(self.clock)

    def _look(self, batch: SequenceBatch) -> SequenceBatch:
        if self.name == "scaled":
            values = (batch.values - np.asarray(self.mean)) / np.asarray(self.deviation)
            return block_means(SequenceBatch(values, batch.offsets), self.block)
        if self.name == "windows":
            found, offsets = _windows(batch, self.span, self.block)
            found -= found.mean(axis=1, keepdims=True)
            found /= found.std(axis=1, keepdims=True) + np.float32(self.floor)
            return SequenceBatch.from_checked(found.reshape(len(found), -1), offsets)
        if self.name == "spectrum":
            found, offsets = _magnitudes(batch, self.span, self.block)
            logs = (np.log(found + self.floor) - np.asarray(self.mean)) / np.asarray(self.deviation)
            return SequenceBatch.from_checked(logs, offsets)
        values = z_normalize(block_means(z_normalize(batch), self.block))
        return values if self.name == "values" else z_normalize(differences(values))


def differs_in_level_or_size(batch: SequenceBatch) -> bool:
    """Whether the view "scaled" would show more of the sequences than "values" does.

    It would not where every sequence has been z-normalised, as in most sets of the UCR archive.
    """
    scaler = ChannelScaler().fit(batch)
    counts = batch.lengths[:, None]
    starts = batch.offsets[:-1]
    standard = (batch.values - scaler.mean_) / scaler.scale_
    means = np.add.reduceat(standard, starts) / counts
    sizes = np.sqrt(np.add.reduceat(np.square(standard), starts) / counts)
    return bool(means.std() >= SAME or sizes.std() >= SAME)


def _around(
    batch: SequenceBatch, reach: NDArray[np.int64], apart: int, length: int = 1
) -> tuple[Array, NDArray[np.int64]]:
    """(P, len(reach), m): values at every `apart`-th step and at `reach` from it, edges repeated; and offsets of P.

    `length` steps from a position on are inside the sequence, if it is as long as that.
    """
    counts = np.maximum(batch.lengths - length, 0) // apart + 1
    offsets = offsets_of(counts)
    position = (np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)) * apart
    last = np.repeat(batch.lengths - 1, counts)[:, None]
    rows = np.clip(position[:, None] + reach, 0, last) + np.repeat(batch.offsets[:-1], counts)[:, None]
    return batch.values[rows], offsets


def _windows(batch: SequenceBatch, span: int, apart: int) -> tuple[Array, NDArray[np.int64]]:
    half = WINDOW // 2
    return _around(z_normalize(batch).astype(np.float32), span * np.arange(-half, half + 1), apart)


def _magnitudes(batch: SequenceBatch, span: int, apart: int) -> tuple[Array, NDArray[np.int64]]:
    """(P, frequencies · m): magnitudes of overlapping parts of `span` steps under a Hann window."""
    parts, offsets = _around(z_normalize(batch), np.arange(span), apart, span)
    bell = np.hanning(span + 2)[1:-1, None]
    found = np.abs(np.fft.rfft(parts * bell, axis=1))
    return found.reshape(len(found), -1), offsets


def _typical(sizes: Array) -> float:
    """The median, or the mean where that is zero, or one."""
    return float(np.median(sizes)) or float(sizes.mean()) or 1.0


def _numbers(array: Array) -> tuple[float, ...]:
    return tuple(map(float, array))
