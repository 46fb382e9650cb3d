"""Proposition 2.1: linear RNNs and convolutions compute the same maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rnn import LinearRNN

Array = NDArray[np.float64]


def to_taps(rnn: LinearRNN, T: int) -> Array:
    """The T taps of the convolution that computes what `rnn` does on sequences of up to T steps (part (a))."""
    return rnn.impulse_response(T)


def from_taps(taps: Any, structure: str = "delay") -> LinearRNN:
    """A linear RNN with the impulse response `taps`, (T, n_y, n_x), of T min(n_x, n_y) units (part (b)).

    Parameters
    ----------
    structure : "delay" is a line of T memory cells that forgets after T steps: the same map as the convolution for
        sequences of any length, and stable. "modes" is the paper's construction: W has the distinct eigenvalues
        e^{2πik/T}, in real form rotations of pairs of units; it repeats its response every T steps, so it equals the
        convolution for sequences of up to T steps.

    Notes
    -----
    Both W/√n have norm one and both are exact up to rounding. Real distinct poles, as in the paper's proof, need the
    inverse of a Vandermonde matrix whose condition grows exponentially in T; the roots of unity make it a unitary
    Fourier matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import from_taps, to_taps
    >>> taps = np.random.default_rng(0).standard_normal((64, 2, 3))
    >>> bool(np.abs(to_taps(from_taps(taps), 64) - taps).max() < 1e-12)
    True
    """
    taps = np.asarray(taps, dtype=np.float64)
    if taps.ndim != 3 or 0 in taps.shape or not np.isfinite(taps).all():
        raise ValueError(f"taps must be finite, (T, n_y, n_x), not of shape {taps.shape}")
    T, n_y, n_x = taps.shape
    if structure == "delay":
        step, start, weights = np.eye(T, k=-1), np.eye(T)[0], np.eye(T)
    elif structure == "modes":
        step, start, weights = _rotations(T)
    else:
        raise ValueError(f'structure must be "delay" or "modes", not {structure!r}')
    # For one channel: h_t = step h_{t-1} + start x_t, and `weights[j]` reads x_{t-j} from the state.
    width = min(n_x, n_y)
    n = T * width
    W = np.kron(step, np.eye(width)) * n**0.5
    if n_x <= n_y:
        F = np.kron(start[:, None], np.eye(width))
        C = np.einsum("jk,jyx->ykx", weights, taps).reshape(n_y, n)
    else:  # the transposed network: the taps are in F
        W = W.T
        C = np.kron(start, np.eye(width))
        F = np.einsum("jk,jyx->kyx", weights, taps).reshape(n, n_x)
    # L_j = n^{-(j+1)/2} C W^j F: one factor √n is left, shared between F and C so that neither is large.
    return LinearRNN(W, F * n**0.25, C * n**0.25)


def _rotations(T: int) -> tuple[Array, Array, Array]:
    """Step, start and readout of T real modes: eigenvalues 1, e^{±2πik/T}, and -1 for even T.

    With c_k the start in mode k, S^j start has the entries cos, sin of 2πjk/T times √2/√T: an orthonormal Fourier basis
    in j, so that reading x_{t-j} is its transpose.
    """
    step, start, basis = np.zeros((T, T)), np.zeros(T), np.zeros((T, T))
    times, at = np.arange(T), 0
    for k in range(T // 2 + 1):
        angle = 2 * np.pi * k / T
        if k == 0 or 2 * k == T:
            step[at, at] = 1.0 if k == 0 else -1.0
            start[at] = 1 / T**0.5
            basis[:, at] = step[at, at] ** times / T**0.5
            at += 1
        else:
            cos, sin = np.cos(angle), np.sin(angle)
            step[at : at + 2, at : at + 2] = [[cos, -sin], [sin, cos]]
            start[at] = (2 / T) ** 0.5
            # k·times modulo T first: large arguments of cos would lose digits.
            turns = 2 * np.pi * ((k * times) % T) / T
            basis[:, at], basis[:, at + 1] = start[at] * np.cos(turns), start[at] * np.sin(turns)
            at += 2
    return step, start, basis
