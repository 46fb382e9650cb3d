"""Gradient descent on a scaled convolution in closed form, and the bound of Theorem 4.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ..sequences.targets import read_values_by_step
from ..theory.dynamics.clock import read_clock
from .filters import ScaledConv1D, convolve, normal_equations, read_inputs

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class ConvolutionDescent:
    """The whole path of full-batch gradient descent, θ ← θ - η ∇L with L = ½ Σ ‖y_t - f_t‖², without taking it.

    From `ConvolutionDescent.of(convolution, X, y)`. With M = D^½AᵀAD^½ = VΛVᵀ and the residual b at the start,

        θ_s = θ_0 + V (I - (I - ηΛ)^s) Λ⁻¹ Vᵀ D^½ Aᵀ b.

    The same path, with the same learning rate, as that of an infinitely wide linear RNN with the same taps at the
    start and ρ from `scale_factors`.

    Attributes
    ----------
    start : ScaledConv1D
        The convolution before training.
    eigenvalues : ndarray of shape (P,)
        Of M, ascending; P = J n_x.
    norm : float
        ‖A‖, the largest singular value of the data.
    residual : float
        ‖b‖.
    gradient : float
        ‖Aᵀb‖.
    """

    start: ScaledConv1D
    eigenvalues: Array
    norm: float
    residual: float
    gradient: float
    _vectors: Array
    _slope: Array  # Vᵀ D^½ Aᵀ b, (P, n_y)

    @classmethod
    def of(cls, convolution: ScaledConv1D, X: Any, y: Any) -> ConvolutionDescent:
        """Everything that depends on the data, from one eigendecomposition.

        Examples
        --------
        >>> import numpy as np
        >>> from rntk.linear import ConvolutionDescent, ScaledConv1D, scale_factors
        >>> X = np.random.default_rng(0).standard_normal((20, 10))
        >>> model = ScaledConv1D(scale_factors(10, 0.3), np.zeros((10, 1, 1)))
        >>> descent = ConvolutionDescent.of(model, X, X)
        >>> loss = descent.loss([0, 10, 100], learning_rate=0.5 * descent.critical_rate)
        >>> bool(loss[0] > loss[1] > loss[2])
        True
        """
        batch = read_inputs(X, channels=convolution.n_x)
        b = read_values_by_step(y, batch, outputs=convolution.n_y) - convolve(convolution.taps, batch)
        gram, moments = normal_equations(batch, b, len(convolution.rho))
        scale = np.repeat(np.sqrt(convolution.rho), batch.n_channels)
        values, vectors = linalg.eigh(gram * np.outer(scale, scale))
        return cls(
            start=convolution,
            eigenvalues=np.maximum(values, 0.0),
            norm=float(np.sqrt(max(linalg.eigvalsh(gram)[-1], 0.0))),
            residual=float(np.linalg.norm(b)),
            gradient=float(np.linalg.norm(moments)),
            _vectors=vectors,
            _slope=vectors.T @ (scale[:, None] * moments),
        )

    @property
    def critical_rate(self) -> float:
        """Learning rates below 2/λmax converge; infinite where there is nothing to learn from."""
        return float(2 / self.eigenvalues[-1]) if self.eigenvalues[-1] > 0 else float("inf")

    def taps(self, steps: Any, learning_rate: float) -> Array:
        """Taps after each number of steps, (R, J, n_y, n_x)."""
        moved = self._moved(steps, learning_rate)
        root = np.sqrt(self.start.rho)[:, None, None]
        lags, n_y, n_x = self.start.theta.shape
        found = np.empty((len(moved), lags, n_y, n_x))
        for k, filled in enumerate(moved):
            change = self._vectors @ (filled[:, None] * self._slope)
            found[k] = self.start.taps + root * change.reshape(lags, n_x, n_y).transpose(0, 2, 1)
        return found

    def at(self, steps: int, learning_rate: float) -> ScaledConv1D:
        """The convolution after `steps` steps."""
        return ScaledConv1D.from_taps(self.taps([steps], learning_rate)[0], self.start.rho)

    def loss(self, steps: Any, learning_rate: float) -> Array:
        """L = ½ Σ ‖y_t - f_t‖² after each number of steps, (R,)."""
        seen = self.eigenvalues > 0
        left = read_clock(None, steps, learning_rate).decay(self.eigenvalues[seen])
        gain = np.square(self._slope[seen]).sum(axis=1) / self.eigenvalues[seen]
        # What descent can never reach, ‖b‖² - Σ gain, is zero or more up to rounding.
        floor = max(self.residual**2 - gain.sum(), 0.0)
        return np.asarray((floor + np.square(left) @ gain) / 2)

    def bounds(self) -> tuple[float, float]:
        """B_1, B_2 of Theorem 4.1: for η < B_1, ‖L_j^s - L_j^0‖ ≤ B_2 ρ_j η s for every lag j and step s (25).

            B_1 = 1/(ρmax ‖A‖²),   B_2 = ‖A‖ ‖b‖

        The proof in the paper takes B_2 = ‖Aᵀb‖, its equation (60), because ‖I - ηAᵀAD‖ ≤ 1; but that matrix isn't
        symmetric, its norm can exceed one, and so can the bound be broken. With u = ηAᵀ Σ_k (I - ηADAᵀ)^k b, whose
        matrices are symmetric, B_2 = ‖A‖ ‖b‖ follows and holds. `gradient` is the paper's constant.
        """
        largest = float(self.start.rho.max() * self.norm**2)
        return 1 / largest if largest > 0 else float("inf"), self.norm * self.residual

    def _moved(self, steps: Any, learning_rate: float) -> Array:
        """(1 - (1 - ηλ)^s)/λ, which is ηs at λ = 0, (R, P)."""
        clock, seen = read_clock(None, steps, learning_rate), self.eigenvalues > 0
        moved = np.repeat(clock.elapsed[:, None], seen.size, axis=1)
        moved[:, seen] = clock.gain(self.eigenvalues[seen])
        return moved

    def __repr__(self) -> str:
        return (
            f"ConvolutionDescent({self.start!r}, residual {self.residual:.4g}, critical rate {self.critical_rate:.4g})"
        )
