"""Spikes of somatosensory cortex and the velocity of a hand, from the file that the linear RNN paper's authors name."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

Array = NDArray[np.float64]

#: Seconds per bin of the recording.
BIN = 0.05
#: A step between two bins counts as a gap where position departs this far (cm) from what velocity says.
GAP = 0.5
SOURCE = (
    "the recording is data/s1_data.mat of https://github.com/KordingLab/spykesML (Benjamin et al. 2018, "
    "doi 10.3389/fncom.2018.00056): download it and pass its path"
)


class Recording(NamedTuple):
    """Spike counts (n, neurons) in 50 ms bins, hand velocity (n, 2), and where unbroken segments start and end."""

    spikes: Array
    velocity: Array
    segments: tuple[tuple[int, int], ...]


def load_recording(path: str | Path) -> Recording:
    """The S1 recording from its MATLAB file. The file isn't part of this package; errors say where to get it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; {SOURCE}")
    try:
        raw = loadmat(path)
        spikes, velocity, position = (np.asarray(raw[name], dtype=np.float64) for name in ("spikes", "vel", "pos"))
    except (MatReadError, NotImplementedError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no recording with spikes, vel and pos ({error}); {SOURCE}") from error
    if spikes.ndim != 2 or velocity.shape != (len(spikes), 2) or position.shape != velocity.shape:
        shapes = f"{spikes.shape}, {velocity.shape} and {position.shape}"
        raise ValueError(
            f"{path} has spikes, vel and pos of shapes {shapes}, not (n, neurons), (n, 2), (n, 2); {SOURCE}"
        )
    departs = np.abs(np.diff(position, axis=0) - BIN * velocity[:-1]).max(axis=1) > GAP
    edges = [0, *(np.flatnonzero(departs) + 1).tolist(), len(spikes)]
    return Recording(spikes, velocity, tuple(pairwise(edges)))


def recorded_windows(recording: Recording, first: int, last: int, length: int) -> tuple[Array, Array]:
    """Sequences of `length` bins one after another, (N, length, ·), none across a gap."""
    starts = [
        start
        for low, high in recording.segments
        for start in range(max(low, first), min(high, last) - length + 1, length)
    ]
    if not starts:
        raise ValueError(f"no unbroken {length} bins between {first} and {last}; take shorter sequences")
    at = np.array(starts)[:, None] + np.arange(length)
    return recording.spikes[at], recording.velocity[at]
