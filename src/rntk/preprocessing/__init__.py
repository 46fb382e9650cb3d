"""Preprocessing of sequences: scikit-learn transformers, and the functions they wrap.

In: whatever `rntk.sequences.as_batch` reads, ragged and multivariate included. Out: the same kind of thing, an array
for an array, a list for a list, a `SequenceBatch` for a `SequenceBatch`; float32 stays float32.

Every idea is a function `SequenceBatch -> SequenceBatch`, for code that holds a batch (a search over hyperparameters,
say), and a transformer around it, for pipelines, which documents both. `ChannelScaler` is the only one that learns
something from the training data, so it has no such function; the others may transform without having been fitted. Nor
has `Interpolate`: a batch has no gaps, and what has some is read by ``as_batch(X, missing="interpolate")``.

| transformer | function | what |
|---|---|---|
| `Interpolate` |  | missing values filled in |
| `UnitNorm` | `unit_norm` | each sequence divided by its Euclidean norm |
| `ZNormalize` | `z_normalize` | each channel of each sequence to mean 0 and deviation 1 |
| `ChannelScaler` |  | each channel to mean 0 and deviation 1 over the training data |
| `Differences` | `differences` | x_{t+1} - x_t |
| `CumulativeSum` | `cumulative_sum` | x_1 + ... + x_t |
| `Downsample` | `downsample` | means of blocks of consecutive steps |
| `Clock` | `add_clock` | one more channel: how far the sequence has come |

Arithmetic is in double precision and over the whole batch at once. No finite input gives NaN or infinity: results that
are bounded are computed so that nothing overflows on the way, and the others raise a `SequenceError` that names the
sequence. Imports run one way: ``base`` (the contract of the transformers, sums) <- ``scale``, ``steps``.
"""

from __future__ import annotations

from .scale import ChannelScaler, UnitNorm, ZNormalize, unit_norm, z_normalize
from .steps import (
    Clock,
    CumulativeSum,
    Differences,
    Downsample,
    Interpolate,
    add_clock,
    cumulative_sum,
    differences,
    downsample,
)

__all__ = [
    "ChannelScaler",
    "Clock",
    "CumulativeSum",
    "Differences",
    "Downsample",
    "Interpolate",
    "UnitNorm",
    "ZNormalize",
    "add_clock",
    "cumulative_sum",
    "differences",
    "downsample",
    "unit_norm",
    "z_normalize",
]
