"""Windows cut at random from one long series, and the value that comes next: the regression of the RNTK paper.

In goes a series, out come windows of random position and length as one batch, and the value after each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...sequences import SequenceBatch

Array = NDArray[np.float64]


def sinusoid(samples: int = 1000, noise: float = 0.05, random_state: int | np.random.Generator = 0) -> Array:
    """One period of a sine of amplitude 1, with white Gaussian noise of deviation `noise`; (samples,).

    Examples
    --------
    >>> from rntk.papers.data.segments import sinusoid
    >>> sinusoid(5, noise=0).round(4)
    array([ 0.    ,  0.9511,  0.5878, -0.5878, -0.9511])
    """
    rng = np.random.default_rng(random_state)
    return np.sin(2 * np.pi * np.arange(samples) / samples) + noise * rng.standard_normal(samples)


def windows(
    series: Array,
    count: int,
    shortest: int,
    longest: int,
    rng: np.random.Generator,
    first: int = 0,
    last: int | None = None,
    *,
    following: Array | None = None,
) -> tuple[SequenceBatch, Array]:
    """`count` windows of `series`, and the value after each, (count,).

    Lengths are uniform between `shortest` and `longest`, both included. Positions are uniform among those where window
    and next value lie in series[first:last]. The next values are those of `following` where it is given: the series
    without its noise, say.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.papers.data.segments import windows
    >>> batch, targets = windows(np.arange(100.0), 3, 2, 4, np.random.default_rng(0))
    >>> [(window[-1, 0] + 1 == target) for window, target in zip(batch, targets)]
    [np.True_, np.True_, np.True_]
    """
    part = np.asarray(series, dtype=np.float64)[first:last]
    if part.ndim != 1 or not 1 <= shortest <= longest < len(part) or count < 1:
        raise ValueError(
            f"can't cut {count} windows of {shortest} to {longest} steps and a next value out of "
            f"{' × '.join(map(str, part.shape))} values"
        )
    lengths = rng.integers(shortest, longest + 1, count)
    starts = rng.integers(0, len(part) - lengths)  # the last start leaves room for the window and one value
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    at = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    source = part if following is None else np.asarray(following, dtype=np.float64)[first:last]
    if source.shape != part.shape:
        raise ValueError(f"series and following must have the same length, not {len(part)} and {len(source)}")
    return SequenceBatch(part[at][:, None], offsets), source[starts + lengths]


def zero_padded(batch: SequenceBatch, length: int, side: str = "end") -> Array:
    """Windows of one channel as rows of an (n, length) array, with zeros at their "end" or "start"."""
    if batch.n_channels != 1 or batch.max_length > length:
        raise ValueError(f"can't pad {batch!r} to {length} values each")
    step = np.arange(len(batch.values)) - np.repeat(batch.offsets[:-1], batch.lengths)
    if side == "start":
        step += np.repeat(length - batch.lengths, batch.lengths)
    out = np.zeros((len(batch), length))
    out[np.repeat(np.arange(len(batch)), batch.lengths), step] = batch.values[:, 0]
    return out


def last_values(batch: SequenceBatch) -> Array:
    """The last value of each window of one channel, (n,): what predicts the next one without learning."""
    return np.array(batch.values[batch.offsets[1:] - 1, 0], dtype=np.float64)
