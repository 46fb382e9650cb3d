"""Causal convolutions of ragged batches, their adjoint, the normal equations; and `ScaledConv1D`, made of them.

A bank of taps is an array L of shape (J, n_y, n_x); the operator A maps it to outputs, (A L)_t = Σ_{j≤t} L_j x_{t-j}
for every step t of every sequence. The functions are A, Aᵀ and AᵀA for the sequences of one batch, without 𝒯(x).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SequenceError
from ..sequences import SequenceBatch, as_batch
from ..sequences.targets import read_values_by_step

Array = NDArray[np.float64]

#: Bytes that one block of the design matrix may take.
BLOCK_BYTES = 1 << 27


def read_inputs(X: Any, name: str = "X", channels: int | None = None) -> SequenceBatch:
    """`X` as float64 sequences, with as many channels as the model has inputs."""
    batch = as_batch(X, name=name).astype(np.float64)
    if channels is not None and batch.n_channels != channels:
        raise SequenceError(f"{name} has {batch.n_channels} channels, the model is for {channels}")
    return batch


def laid_out(values: Array, batch: SequenceBatch, flat: bool = False) -> Any:
    """Rows per step as users know them: (n, T, n_y), or a list of (T_i, n_y); without the last axis if `flat`."""
    values = values[:, 0] if flat else values
    if batch.is_equal_length:
        return values.reshape(len(batch), -1, *values.shape[1:])
    return np.split(values, batch.offsets[1:-1])


def convolve(taps: Array, batch: SequenceBatch) -> Array:
    """A L: y_t = Σ_{j≤t} L_j x_{t-j}, one row per step of the batch, (S, n_y)."""
    out = np.zeros((len(batch.values), taps.shape[1]))
    for lag, rows in _shifted(batch, len(taps)):
        out[rows] += batch.values[rows - lag] @ taps[lag].T
    return out


def correlate(residual: Array, batch: SequenceBatch, lags: int) -> Array:
    """Aᵀ r: G_j = Σ_t r_t x_{t-j}ᵀ summed over all sequences, (J, n_y, n_x)."""
    taps = np.zeros((lags, residual.shape[1], batch.n_channels))
    for lag, rows in _shifted(batch, lags):
        taps[lag] = residual[rows].T @ batch.values[rows - lag]
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


@dataclass(frozen=True, eq=False, repr=False)
class ScaledConv1D:
    """A causal convolution, y_t = Σ_j L_j x_{t-j}, whose taps are L_j = √ρ_j θ_j; what is trained is θ.

    Parameters
    ----------
    rho : ndarray of shape (J,)
        Positive scale factors, `scale_factors(...)` for the twin of a wide linear RNN, ones for a plain convolution.
    theta : ndarray of shape (J, n_y, n_x)
        Parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import ScaledConv1D
    >>> delay = ScaledConv1D.from_taps([[[0.0]], [[1.0]]])
    >>> delay(np.array([[1.0, 2.0, 3.0]]))[0, :, 0]
    array([0., 1., 2.])
    """

    rho: Array
    theta: Array

    def __post_init__(self) -> None:
        rho, theta = np.array(self.rho, dtype=np.float64), np.array(self.theta, dtype=np.float64)
        if rho.ndim != 1 or theta.ndim != 3 or len(theta) != len(rho) or 0 in theta.shape:
            raise ValueError(f"rho must be (J,) and theta (J, n_y, n_x); their shapes are {rho.shape}, {theta.shape}")
        if not (np.isfinite(rho).all() and np.isfinite(theta).all() and (rho >= 0).all()):
            raise ValueError("rho must be finite and not negative, theta finite")
        for name, each in (("rho", rho), ("theta", theta)):
            each.setflags(write=False)
            object.__setattr__(self, name, each)

    @classmethod
    def from_taps(cls, taps: Any, rho: Any = None) -> ScaledConv1D:
        """The convolution with taps L_j, (J, n_y, n_x): θ_j = L_j/√ρ_j (equation (58)). Without `rho`, unscaled."""
        taps = np.asarray(taps, dtype=np.float64)
        if taps.ndim != 3:
            raise ValueError(f"taps must be (J, n_y, n_x), not of shape {taps.shape}")
        rho = np.ones(len(taps)) if rho is None else np.asarray(rho, dtype=np.float64)
        root = np.sqrt(rho)[:, None, None] if rho.shape == (len(taps),) else np.nan
        unreachable = (root == 0) & (taps != 0)
        if np.any(unreachable):
            raise ValueError(f"lag {int(np.argwhere(unreachable)[0][0])} has a tap but scale factor zero")
        return cls(rho, np.divide(taps, root, out=np.zeros_like(taps), where=np.broadcast_to(root != 0, taps.shape)))

    @property
    def taps(self) -> Array:
        """L_j = √ρ_j θ_j, (J, n_y, n_x)."""
        return np.asarray(np.sqrt(self.rho)[:, None, None] * self.theta)

    @property
    def n_x(self) -> int:
        """Number of inputs."""
        return int(self.theta.shape[2])

    @property
    def n_y(self) -> int:
        """Number of outputs."""
        return int(self.theta.shape[1])

    def __call__(self, X: Any) -> Any:
        """Outputs at every step: (N, T, n_y), or a list of (T_i, n_y) for unequal lengths.

        Parameters
        ----------
        X : sequences
            (N, T), (N, T, n_x), or a list of (T_i,) or (T_i, n_x).
        """
        batch = read_inputs(X, channels=self.n_x)
        return laid_out(convolve(self.taps, batch), batch)

    def loss(self, X: Any, y: Any) -> float:
        """½ Σ ‖y_t - f_t‖² over all steps of all sequences."""
        return float(np.square(self._residual(X, y)[1]).sum() / 2)

    def gradient(self, X: Any, y: Any) -> Array:
        """∂loss/∂θ, (J, n_y, n_x), exact: √ρ_j Σ_t (f_t - y_t) x_{t-j}ᵀ."""
        batch, residual = self._residual(X, y)
        return np.asarray(np.sqrt(self.rho)[:, None, None] * correlate(residual, batch, len(self.rho)))

    def _residual(self, X: Any, y: Any) -> tuple[Any, Array]:
        batch = read_inputs(X, channels=self.n_x)
        return batch, convolve(self.taps, batch) - read_values_by_step(y, batch, outputs=self.n_y)

    def __repr__(self) -> str:
        kind = "unscaled" if (self.rho == 1).all() else f"rho {self.rho[0]:.3g} … {self.rho[-1]:.3g}"
        return f"ScaledConv1D({len(self.rho)} lags, n_x={self.n_x}, n_y={self.n_y}, {kind})"
