"""How far back a linear model looks, and how far training can make it look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_count
from ..kernels import RNTK
from ..plot import COLOURS, axes_or_new
from .filters import ScaledConv1D
from .kernel import scale_factors
from .regressors import FilterRegressor
from .rnn import LinearRNN

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MemoryProfile:
    """What a model has in store for each lag j; from `memory_profile`.

    Attributes
    ----------
    rho : ndarray of shape (J,)
        Scale factors: how fast gradient descent learns lag j.
    taps : ndarray of shape (J,) or None
        ‖L_j‖ of the model itself; None for a kernel.
    initial : ndarray of shape (J,) or None
        √(n_x n_y ν_C ν_F ν_W^j), the size of L_j at initialisation (24); None where there is none.
    """

    rho: Array
    taps: Array | None = None
    initial: Array | None = None

    def effective_length(self, share: float = 0.99) -> int:
        """The number of lags that hold `share` of Σ ρ_j."""
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, not {share!r}")
        total = np.cumsum(self.rho)
        return int(np.searchsorted(total, share * total[-1] * (1 - 1e-12)) + 1)

    @property
    def mean_lag(self) -> float:
        """Σ j ρ_j / Σ ρ_j."""
        return float(np.arange(len(self.rho)) @ self.rho / self.rho.sum())

    def plot(self, ax: Any = None) -> Any:
        """ρ_j, and ‖L_j‖ where there are taps, on a logarithmic axis; returns the axes."""
        ax = axes_or_new(ax)
        lags = np.arange(len(self.rho))
        ax.semilogy(lags, self.rho, "o-", markersize=3, color=COLOURS[0], label="scale factor ρ_j")
        if self.initial is not None:
            ax.semilogy(lags, self.initial, "--", color=COLOURS[2], label="taps at initialisation, expected")
        if self.taps is not None:
            ax.semilogy(lags, self.taps, "s", markersize=3, color=COLOURS[1], label="taps ‖L_j‖")
        ax.set(xlabel="lag j", ylabel="size", title=f"{self.effective_length()} lags hold 99 % of Σ ρ_j")
        ax.legend(frameon=False)
        return ax


def memory_profile(model: Any, lags: int | None = None) -> MemoryProfile:
    """ρ_j, taps and effective memory of a linear model.

    Parameters
    ----------
    model : LinearRNNRegressor, ConvRegressor, ScaledConv1D, LinearRNN or RNTK
        Regressors are fitted; the variances of a `LinearRNN` are estimated from its weights; an `RNTK` has identity
        activation and raw weights (see `limit_kernel`).
    lags : int, optional
        How many; needed for `LinearRNN` and `RNTK`, which have no end.

    Returns
    -------
    MemoryProfile

    Examples
    --------
    >>> from rntk.linear import limit_kernel, memory_profile
    >>> memory_profile(limit_kernel(nu_w=0.3), lags=50).effective_length()
    6
    """
    if isinstance(model, FilterRegressor):
        profile = memory_profile(model.convolution_, lags)
        return MemoryProfile(profile.rho, profile.taps)
    if isinstance(model, ScaledConv1D):
        count = len(model.rho) if lags is None else min(check_count("lags", lags), len(model.rho))
        return MemoryProfile(model.rho[:count], np.linalg.norm(model.taps[:count], axis=(1, 2)))
    if lags is None:
        raise ValueError(f"{type(model).__name__} looks back without end: say how many lags to show")
    count = check_count("lags", lags)
    if isinstance(model, LinearRNN):
        nu_w, nu_f, nu_c = (float(np.mean(np.square(each))) for each in (model.W, model.F, model.C))
        taps = np.linalg.norm(model.impulse_response(count), axis=(1, 2))
        start = np.sqrt(model.n_x * model.n_y * nu_c * nu_f * nu_w ** np.arange(count))
        return MemoryProfile(scale_factors(count, nu_w, nu_f, nu_c), taps, start)
    if isinstance(model, RNTK):
        network = model.network()
        plain = network.depth == 1 and network.sigma_b[0] == 0 and network.sigma_h[0] == 0
        if network.activation.name != "identity" or network.parameterization != "standard" or not plain:
            raise ValueError(
                'memory_profile takes kernels of linear RNNs: activation="identity", parameterization="standard", one '
                "layer, no bias or initial state; for others see rntk.sensitivity"
            )
        # Per input channel: RNTK divides σ_u² by their number, which only the data tell.
        nu_w, nu_f, nu_c = network.sigma_w[0] ** 2, network.sigma_u[0] ** 2, network.sigma_v**2
        return MemoryProfile(
            scale_factors(count, nu_w, nu_f, nu_c), None, np.sqrt(nu_c * nu_f * nu_w ** np.arange(count))
        )
    raise TypeError(f"memory_profile takes linear models, not {type(model).__name__}")
