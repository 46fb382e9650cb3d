"""ρ_j, what a wide linear RNN has in store for lag j, and its kernel in closed form (Theorems 3.2 and 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelOverflowError, check_count, check_positive
from ..kernels import RNTK

Array = NDArray[np.float64]


def scale_factors(T: int, nu_w: float, nu_f: float = 1.0, nu_c: float = 1.0) -> Array:
    """Scale factors ρ_0 … ρ_{T-1} of the convolution that an infinitely wide linear RNN is (equation (21)).

        ρ_j = ν_C (j ν_F ν_W^(j-1) + ν_W^j) + ν_F ν_W^j

    Parameters
    ----------
    T : int
        Number of lags.
    nu_w : float
        Variance of the entries of W; stable networks have nu_w < 1.
    nu_f, nu_c : float
        Variances of the entries of F and C.

    Returns
    -------
    ndarray of shape (T,)
        Weights of C add ν_F ν_W^j, those of F ν_C ν_W^j, and the j copies of W on the way from x_{t-j} to y_t the rest.

    Raises
    ------
    KernelOverflowError
        nu_w > 1 and so many lags that ρ is no finite number.

    Examples
    --------
    >>> from rntk.linear import scale_factors
    >>> scale_factors(4, nu_w=0.5)
    array([2. , 2. , 1.5, 1. ])
    """
    lags = np.arange(check_count("T", T))
    nu_w, nu_f, nu_c = check_variances(nu_w=nu_w, nu_f=nu_f, nu_c=nu_c)
    with np.errstate(over="ignore", invalid="ignore"):
        power = nu_w**lags
        rho = (nu_c + nu_f) * power + nu_c * nu_f * lags * nu_w ** np.maximum(lags - 1, 0)
    if not np.isfinite(rho).all():
        first = int(np.flatnonzero(~np.isfinite(rho))[0])
        raise KernelOverflowError(
            f"the scale factors overflow at lag {first}: nu_w = {nu_w:g} > 1 is an unstable network; take nu_w < 1", 0
        )
    return np.asarray(rho, dtype=np.float64)


def check_variances(**values: Any) -> tuple[float, ...]:
    """Variances as finite numbers; that of W may be zero."""
    return tuple(
        check_positive(f"the variance {name}", value, or_zero=name == "nu_w") for name, value in values.items()
    )


def limit_kernel(n_x: int = 1, *, nu_w: float = 0.3, nu_f: float = 1.0, nu_c: float = 1.0, **options: Any) -> RNTK:
    """The general kernel object with the same values: identity activation, an output at every step, raw weights.

    `rntk.finite.network(limit_kernel(...), width)` is the network itself. `options` go to `RNTK`.
    """
    nu_w, nu_f, nu_c = check_variances(nu_w=nu_w, nu_f=nu_f, nu_c=nu_c)
    settings: dict[str, Any] = {"readout": "sequence", "parameterization": "standard", **options}
    sigma_u = (nu_f * check_count("n_x", n_x)) ** 0.5  # RNTK divides the variance of inputs by their number
    return RNTK("identity", sigma_w=nu_w**0.5, sigma_u=sigma_u, sigma_v=nu_c**0.5, **settings)
