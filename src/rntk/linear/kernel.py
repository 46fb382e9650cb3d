"""ρ_j, what a wide linear RNN has in store for lag j, and its kernel in closed form (Theorems 3.2 and 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelOverflowError, check_count, check_positive
from ..kernels import RNTK
from ..sequences import SequenceBatch
from .filters import convolve, correlate, read_inputs

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


def block_toeplitz(x: Any, lags: int | None = None) -> Array:
    """𝒯(x), (J n_x, T): column t holds x_t, x_{t-1}, …, x_{t-J+1} below one another, zeros before the start (18).

    Parameters
    ----------
    x : array-like of shape (T,) or (T, n_x)
        One sequence.
    lags : int, optional
        J, T unless given.

    Examples
    --------
    >>> from rntk.linear import block_toeplitz
    >>> block_toeplitz([1.0, 2.0, 3.0])
    array([[1., 2., 3.],
           [0., 1., 2.],
           [0., 0., 1.]])
    """
    values = read_inputs([x], "x").values
    T, n_x = values.shape
    lags = T if lags is None else check_count("lags", lags)
    matrix = np.zeros((lags, n_x, T))
    for j in range(min(lags, T)):
        matrix[j, :, j:] = values[: T - j].T
    return matrix.reshape(lags * n_x, T)


def limit_kernel(n_x: int = 1, *, nu_w: float = 0.3, nu_f: float = 1.0, nu_c: float = 1.0, **options: Any) -> RNTK:
    """The general kernel object with the same values: identity activation, an output at every step, raw weights.

    `rntk.finite.network(limit_kernel(...), width)` is the network itself. `options` go to `RNTK`.
    """
    nu_w, nu_f, nu_c = check_variances(nu_w=nu_w, nu_f=nu_f, nu_c=nu_c)
    settings: dict[str, Any] = {"readout": "sequence", "parameterization": "standard", **options}
    sigma_u = (nu_f * check_count("n_x", n_x)) ** 0.5  # RNTK divides the variance of inputs by their number
    return RNTK("identity", sigma_w=nu_w**0.5, sigma_u=sigma_u, sigma_v=nu_c**0.5, **settings)


def sequence_kernel(
    X: Any, Y: Any = None, *, nu_w: float = 0.3, nu_f: float = 1.0, nu_c: float = 1.0, outputs: int = 1
) -> Array:
    """K = 𝒯(x)ᵀ D(ρ) 𝒯(x') ⊗ I, one row per step of every sequence and output (equation (20)).

        K_{t,s}(x, x') = Σ_j ρ_j x_{t-j}·x'_{s-j}

    The ρ of a linear RNN obey a recursion, so every entry follows from the one before on its diagonal: one product of
    inputs and a few operations per entry, whatever T is. Agrees with `limit_kernel(...)` to rounding.

    Parameters
    ----------
    X : sequences
        The rows.
    Y : sequences, optional
        The columns, X unless given.
    nu_w : float
        Variance of the recurrent weights.
    nu_f, nu_c : float
        Variances of the input and output weights.
    outputs : int
        n_y; the kernel is repeated on the diagonal for each.

    Returns
    -------
    ndarray of shape (ΣT n_y, ΣT' n_y)
        Outputs fastest.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import limit_kernel, sequence_kernel
    >>> X = [np.array([1.0, 2.0]), np.array([0.5, -1.0, 1.0])]
    >>> bool(np.allclose(sequence_kernel(X), limit_kernel()(X)))
    True
    """
    left = read_inputs(X)
    right = left if Y is None else read_inputs(Y, "Y", left.n_channels)
    nu_w, nu_f, nu_c = check_variances(nu_w=nu_w, nu_f=nu_f, nu_c=nu_c)
    outputs = check_count("outputs", outputs)
    with np.errstate(over="ignore", invalid="ignore"):
        K = _diagonals(left, right, nu_w, nu_f, nu_c)
    if not np.isfinite(K).all():
        raise KernelOverflowError(f"the kernel overflows: take smaller inputs, or nu_w below {nu_w:g}", 0)
    return K if outputs == 1 else np.asarray(np.kron(K, np.eye(outputs)), dtype=np.float64)


def _diagonals(left: SequenceBatch, right: SequenceBatch, nu_w: float, nu_f: float, nu_c: float) -> Array:
    """With G = x·x': S_{t,s} = G + ν_W S_{t-1,s-1} sums ν^j, D_{t,s} = S_{t-1,s-1} + ν_W D_{t-1,s-1} sums jν^(j-1)."""
    K = np.asarray(left.values @ right.values.T)
    starts = right.offsets[:-1]
    order = np.argsort(-left.lengths, kind="stable")
    geometric = derivative = np.zeros((0, K.shape[1]))
    for t in range(left.max_length):
        running = int(np.count_nonzero(left.lengths > t))
        rows = left.offsets[order[:running]] + t
        fresh = K[rows]
        if t == 0:
            geometric, derivative = fresh, np.zeros_like(fresh)
        else:
            before, slope = _one_step_back(geometric[:running], starts), _one_step_back(derivative[:running], starts)
            geometric, derivative = fresh + nu_w * before, before + nu_w * slope
        K[rows] = (nu_c + nu_f) * geometric + nu_c * nu_f * derivative
    return K


def _one_step_back(state: Array, starts: NDArray[np.int64]) -> Array:
    """Columns moved one step on in time; nothing comes before the start of a sequence."""
    moved = np.empty_like(state)
    moved[:, 1:] = state[:, :-1]
    moved[:, starts] = 0.0
    return moved


def kernel_product(X: Any, Y: Any, v: Any, *, nu_w: float = 0.3, nu_f: float = 1.0, nu_c: float = 1.0) -> Array:
    """K(X, Y) v without K: correlate v with Y, scale by ρ, convolve with X. O(ΣT log T) by FFT.

    Parameters
    ----------
    X, Y : sequences
        The rows and the columns.
    v : array-like of shape (ΣT',) or (ΣT', k)
        One value, or one vector, per step of every sequence of Y.
    nu_w : float
        Variance of the recurrent weights.
    nu_f, nu_c : float
        Variances of the input and output weights.

    Returns
    -------
    ndarray of shape (ΣT,) or (ΣT, k)

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import kernel_product, sequence_kernel
    >>> X = [np.array([1.0, 2.0]), np.array([0.5, -1.0, 1.0])]
    >>> bool(np.allclose(kernel_product(X, X, np.ones(5)), sequence_kernel(X) @ np.ones(5)))
    True
    """
    left = read_inputs(X)
    right = read_inputs(Y, "Y", left.n_channels)
    v = np.asarray(v, dtype=np.float64)
    if v.ndim not in (1, 2) or len(v) != len(right.values):
        raise ValueError(f"v must have one row for each of the {len(right.values)} steps of Y; its shape is {v.shape}")
    lags = min(left.max_length, right.max_length)
    rho = scale_factors(lags, nu_w, nu_f, nu_c)
    taps = rho[:, None, None] * correlate(v.reshape(len(v), -1), right, lags)
    return convolve(taps, left).reshape(len(left.values), *v.shape[1:])
