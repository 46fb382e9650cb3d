"""Causal convolution of ragged batches, its adjoint, and the normal equations: 𝒯(x) without ever forming it.

A bank of taps is an array L of shape (J, n_y, n_x); the operator A maps it to outputs, (A L)_t = Σ_{j≤t} L_j x_{t-j}
for every step t of every sequence. Everything here is A, Aᵀ or AᵀA for the sequences of one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ..sequences import SequenceBatch

Array = NDArray[np.float64]
Method = Literal["auto", "fft", "direct"]

#: Bytes that one block of padded spectra or of the design matrix may take.
BLOCK_BYTES = 1 << 27
METHODS = ("auto", "fft", "direct")


def convolve(taps: Array, batch: SequenceBatch, method: str = "auto") -> Array:
    """A L: y_t = Σ_{j≤t} L_j x_{t-j}, one row per step of the batch, (S, n_y)."""
    lags, n_y, n_x = taps.shape
    out = np.zeros((len(batch.values), n_y))
    if _chosen(method, batch, lags, n_y) == "direct":
        for lag, rows in _shifted(batch, lags):
            out[rows] += batch.values[rows - lag] @ taps[lag].T
        return out
    taps = taps[: batch.max_length]  # later ones reach no step, and would wrap around
    for part, rows, size in _blocks(batch, lags, n_x + n_y):
        spectrum = np.einsum("fyx,nfx->nfy", fft.rfft(taps, size, axis=0), fft.rfft(part, size, axis=1), optimize=True)
        padded = fft.irfft(spectrum, size, axis=1)[:, : part.shape[1]]
        out[rows[rows >= 0]] = padded[rows >= 0]
    return out


def correlate(residual: Array, batch: SequenceBatch, lags: int, method: str = "auto") -> Array:
    """Aᵀ r: G_j = Σ_t r_t x_{t-j}ᵀ summed over all sequences, (J, n_y, n_x)."""
    n_y = residual.shape[1]
    taps = np.zeros((lags, n_y, batch.n_channels))
    if _chosen(method, batch, lags, n_y) == "direct":
        for lag, rows in _shifted(batch, lags):
            taps[lag] = residual[rows].T @ batch.values[rows - lag]
        return taps
    spectrum: Any = 0.0
    size = 0
    for part, rows, size in _blocks(batch, lags, batch.n_channels + n_y):
        padded = np.where((rows >= 0)[..., None], residual[rows], 0.0)
        pair = fft.rfft(padded, size, axis=1), fft.rfft(part, size, axis=1).conj()
        spectrum = spectrum + np.einsum("nfy,nfx->fyx", *pair, optimize=True)
    reached = min(lags, batch.max_length)
    taps[:reached] = fft.irfft(spectrum, size, axis=0)[:reached]
    return taps


def normal_equations(batch: SequenceBatch, targets: Array | None, lags: int) -> tuple[Array, Array]:
    """AᵀA, (J n_x, J n_x), and Aᵀ y, (J n_x, n_y), the same for every output; index j n_x + i is lag j of channel i.

    The design matrix is made in blocks of rows. Entries with equal j - k differ only in the few products at the ends of
    sequences, but taking these away from one another would lose digits that ridgeless fits need.
    """
    unknowns = lags * batch.n_channels
    gram = np.zeros((unknowns, unknowns))
    moments = np.zeros((unknowns, 0 if targets is None else targets.shape[1]))
    for design, rows in design_blocks(batch, lags):
        gram += design.T @ design
        if targets is not None:
            moments += design.T @ targets[rows]
    return gram, moments


def design_blocks(batch: SequenceBatch, lags: int) -> Iterator[tuple[Array, slice]]:
    """Rows of A, (B, J n_x): row t holds x_t, x_{t-1}, …, zeros before the start of a sequence."""
    m, steps = batch.n_channels, len(batch.values)
    age = ages(batch)
    height = max(1, BLOCK_BYTES // (8 * lags * m))
    for start in range(0, steps, height):
        rows = np.arange(start, min(start + height, steps))
        back = rows[:, None] - np.arange(lags)
        known = np.arange(lags) <= age[rows][:, None]
        design = np.where(known[..., None], batch.values[np.where(known, back, 0)], 0.0)
        yield design.reshape(len(rows), lags * m), slice(start, start + len(rows))


def ages(batch: SequenceBatch) -> NDArray[np.int64]:
    """How many steps of its sequence come before each row of the batch."""
    return np.arange(len(batch.values)) - np.repeat(batch.offsets[:-1], batch.lengths)


def _shifted(batch: SequenceBatch, lags: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """For every lag the rows that have a step so far back in their own sequence."""
    rows, age = np.arange(len(batch.values)), ages(batch)
    for lag in range(lags):
        kept = age >= lag
        rows, age = rows[kept], age[kept]
        if rows.size == 0:
            return
        yield lag, rows


def _blocks(batch: SequenceBatch, lags: int, channels: int) -> Iterator[tuple[Array, NDArray[np.int64], int]]:
    """Sequences in blocks padded with zeros at their end: values (n, T, m), the row of each (-1: padding), FFT size.

    All blocks have one size, so that spectra of taps can be shared and added. Zeros after the end of a sequence change
    nothing before it.
    """
    longest = batch.max_length
    size = fft.next_fast_len(longest + min(lags, longest) - 1, real=True)
    count = max(1, BLOCK_BYTES // (16 * size * channels))
    step = np.arange(longest)
    for start in range(0, len(batch), count):
        first, length = batch.offsets[start : start + count + 1][:-1], batch.lengths[start : start + count]
        rows = np.where(step < length[:, None], first[:, None] + step, -1)
        yield np.where((rows >= 0)[..., None], batch.values[rows], 0.0), rows, size


def _chosen(method: str, batch: SequenceBatch, lags: int, n_y: int) -> str:
    """FFT where it saves work: about 8 log₂ T operations per value against one multiplication per lag."""
    if method not in METHODS:
        raise ValueError(f'method must be "auto", "fft" or "direct", not {method!r}')
    if method != "auto":
        return method
    longest, m = batch.max_length, batch.n_channels
    direct = len(batch.values) * min(lags, longest) * m * n_y
    size = 2 * longest
    padded = len(batch) * size * (8 * np.log2(size) * (m + n_y) + 2 * m * n_y)
    return "fft" if padded < direct else "direct"
