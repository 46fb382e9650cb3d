"""`ScaledConv1D`: y_t = Σ_j √ρ_j θ_j x_{t-j} (equation (8))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import laid_out, read_inputs, read_targets
from .filters import convolve, correlate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScaledConv1D:
    """A causal convolution whose taps are L_j = √ρ_j θ_j; what is trained is θ.

    Parameters
    ----------
    rho : (J,) positive scale factors, `scale_factors(...)` for the twin of a wide linear RNN, ones for a plain
        convolution. theta : (J, n_y, n_x) parameters.

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

    def __call__(self, X: Any, *, method: str = "auto") -> Any:
        """Outputs at every step: (N, T, n_y), or a list of (T_i, n_y) for unequal lengths.

        Parameters
        ----------
        method : "direct" sums over lags, "fft" multiplies spectra, "auto" takes what needs less work.
        """
        batch = read_inputs(X, channels=self.n_x)
        return laid_out(convolve(self.taps, batch, method), batch)

    def loss(self, X: Any, y: Any, *, method: str = "auto") -> float:
        """½ Σ ‖y_t - f_t‖² over all steps of all sequences."""
        return float(np.square(self._residual(X, y, method)[1]).sum() / 2)

    def gradient(self, X: Any, y: Any, *, method: str = "auto") -> Array:
        """∂loss/∂θ, (J, n_y, n_x), exact: √ρ_j Σ_t (f_t - y_t) x_{t-j}ᵀ."""
        batch, residual = self._residual(X, y, method)
        return np.asarray(np.sqrt(self.rho)[:, None, None] * correlate(residual, batch, len(self.rho), method))

    def _residual(self, X: Any, y: Any, method: str) -> tuple[Any, Array]:
        batch = read_inputs(X, channels=self.n_x)
        target = read_targets(y, batch)
        if target.shape[1] != self.n_y:
            raise ValueError(f"y has {target.shape[1]} outputs, the convolution {self.n_y}")
        return batch, convolve(self.taps, batch, method) - target

    def __repr__(self) -> str:
        kind = "unscaled" if (self.rho == 1).all() else f"rho {self.rho[0]:.3g} … {self.rho[-1]:.3g}"
        return f"ScaledConv1D({len(self.rho)} lags, n_x={self.n_x}, n_y={self.n_y}, {kind})"
