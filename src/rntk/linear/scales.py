"""ρ_j, what a wide linear RNN has in store for lag j."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelOverflowError, check_count

Array = NDArray[np.float64]


def scale_factors(T: int, nu_w: float, nu_f: float = 1.0, nu_c: float = 1.0) -> Array:
    """Scale factors ρ_0 … ρ_{T-1} of the convolution that an infinitely wide linear RNN is (equation (21)).

        ρ_j = ν_C (j ν_F ν_W^(j-1) + ν_W^j) + ν_F ν_W^j

    Parameters
    ----------
    T : number of lags. nu_w, nu_f, nu_c : variances of the entries of W, F and C; stable networks have nu_w < 1.

    Returns
    -------
    (T,) array. Weights of C add ν_F ν_W^j, those of F ν_C ν_W^j, and the j copies of W on the way from x_{t-j} to y_t
    the rest.

    Raises
    ------
    KernelOverflowError : nu_w > 1 and so many lags that ρ is no finite number.

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
    checked = []
    for name, value in values.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not 0 <= number < float("inf") or (number == 0 and name != "nu_w"):
            kind = "non-negative" if name == "nu_w" else "positive"
            raise ValueError(f"{name} is a variance and must be a {kind} number, not {value!r}")
        checked.append(number)
    return tuple(checked)
