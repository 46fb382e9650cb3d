"""Sequence-to-sequence ridge regression: the infinitely wide linear RNN, and the plain convolution beside it."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ..errors import check_count
from ..learners.ridge import check_ridge, solve_ridge
from ..sequences import SequenceBatch, check_channels
from ..sequences.targets import read_values_by_step
from .filters import ScaledConv1D, convolve, laid_out, normal_equations, read_inputs
from .kernel import scale_factors

Array = NDArray[np.float64]


class FilterRegressor(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base: minimises Σ ‖y_t - Σ_j √ρ_j θ_j x_{t-j}‖² + alpha ‖θ‖²; subclasses say what ρ is."""

    alpha: Any
    lags: int | None

    @abstractmethod
    def _scale_factors(self, lags: int) -> Array:
        """ρ_0 … ρ_{J-1}."""

    def fit(self, X: Any, y: Any) -> FilterRegressor:
        """Fit to sequences `X` and targets `y` with one value or vector per step.

        Parameters
        ----------
        X : sequences
            (n, T), (n, T, n_x), or a list of (T_i,) or (T_i, n_x).
        y : sequences
            The same with outputs for channels.

        Returns
        -------
        self
        """
        batch = read_inputs(X)
        targets = read_values_by_step(y, batch)
        lags = batch.max_length if self.lags is None else check_count("lags", self.lags)
        alpha = check_ridge(self.alpha)
        if alpha.size != 1:
            raise ValueError(f"alpha must be one non-negative number, not {self.alpha!r}")
        rho = self._scale_factors(lags)
        reached = min(lags, batch.max_length)  # no step has seen later lags: their parameters stay zero
        theta = np.zeros((lags, targets.shape[1], batch.n_channels))
        theta[:reached] = _ridge(batch, targets, rho[:reached], float(alpha[0]))
        self.convolution_ = ScaledConv1D(rho, theta)
        self.n_channels_in_ = batch.n_channels
        self.n_outputs_ = targets.shape[1]
        self.flat_targets_ = _is_flat(y)
        return self

    def predict(self, X: Any) -> Any:
        """Outputs at every step, laid out as the targets were: (n, T[, n_y]), or a list for unequal lengths."""
        check_is_fitted(self)
        batch = read_inputs(X)
        check_channels(batch, self.n_channels_in_, self)
        return laid_out(convolve(self.taps_, batch), batch, self.flat_targets_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² over all steps of all sequences, averaged over outputs; `sample_weight` is one number per sequence."""
        check_is_fitted(self)
        batch = read_inputs(X)
        check_channels(batch, self.n_channels_in_, self)
        weight = None if sample_weight is None else np.repeat(np.asarray(sample_weight, float), batch.lengths)
        return float(r2_score(read_values_by_step(y, batch), convolve(self.taps_, batch), sample_weight=weight))

    @property
    def taps_(self) -> Array:
        """Fitted taps L_j, (J, n_y, n_x)."""
        check_is_fitted(self)
        return self.convolution_.taps

    @property
    def rho_(self) -> Array:
        """Scale factors, (J,)."""
        check_is_fitted(self)
        return self.convolution_.rho

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        return tags


class LinearRNNRegressor(FilterRegressor):
    """Kernel ridge regression with the kernel of a linear RNN: outputs at every step, any lengths.

    It is the mean of infinitely many infinitely wide linear RNNs trained to the end by gradient descent (alpha = 0), or
    with a ridge. Solved for J n_x parameters per output, where the Gram matrix would have a row for every step of every
    sequence.

    Parameters
    ----------
    nu_w : float
        Variance of the recurrent weights at initialisation. It is the memory: lags much beyond 1/(1 - ν_W) are costly
        to use.
    nu_f, nu_c : float
        Variances of the input and output weights.
    alpha : float
        Ridge.
    lags : int, optional
        How far back outputs may look; the longest sequence in `fit` unless given.

    Attributes
    ----------
    taps_ : ndarray of shape (J, n_y, n_x)
        Fitted taps.
    rho_ : ndarray of shape (J,)
        Scale factors.
    convolution_ : ScaledConv1D
        Both.
    n_channels_in_, n_outputs_ : int
        n_x and n_y.
    flat_targets_ : bool
        Whether targets came without an axis of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import LinearRNN, LinearRNNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((n, 2)) for n in (30, 40, 25, 35)]
    >>> y = LinearRNN.random(4, n_x=2, seed=0)(X)
    >>> LinearRNNRegressor(alpha=1e-6, lags=10).fit(X, y).score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        nu_w: float = 0.3,
        nu_f: float = 1.0,
        nu_c: float = 1.0,
        alpha: float = 1.0,
        lags: int | None = None,
    ) -> None:
        self.nu_w = nu_w
        self.nu_f = nu_f
        self.nu_c = nu_c
        self.alpha = alpha
        self.lags = lags

    def _scale_factors(self, lags: int) -> Array:
        return scale_factors(lags, self.nu_w, self.nu_f, self.nu_c)


class ConvRegressor(FilterRegressor):
    """The same with all ρ_j = 1: a plain causal convolution with a ridge, without bias towards short lags.

    Parameters
    ----------
    alpha : float
        As for `LinearRNNRegressor`.
    lags : int, optional
        As for `LinearRNNRegressor`.
    """

    def __init__(self, alpha: float = 1.0, lags: int | None = None) -> None:
        self.alpha = alpha
        self.lags = lags

    def _scale_factors(self, lags: int) -> Array:
        return np.ones(lags)


def _is_flat(y: Any) -> bool:
    """Whether targets came without an axis of outputs, as numbers per step."""
    try:
        return np.ndim(y[0]) == 1
    except (KeyError, IndexError, TypeError):
        return False


def _ridge(batch: SequenceBatch, targets: Array, rho: Array, alpha: float) -> Array:
    """θ, (J, n_y, n_x): (D^½ AᵀA D^½ + alpha I) θ = D^½ Aᵀ y for each output."""
    lags, m, outputs = len(rho), batch.n_channels, targets.shape[1]
    gram, moments = normal_equations(batch, targets, lags)
    scale = np.repeat(np.sqrt(rho), m)
    theta = _determined(gram, moments, scale) if alpha == 0 else None
    if theta is None:
        theta = solve_ridge(gram * np.outer(scale, scale), scale[:, None] * moments, alpha)
    return np.asarray(theta.reshape(lags, m, outputs).transpose(0, 2, 1))


def _determined(gram: Array, moments: Array, scale: Array) -> Array | None:
    """The least-squares solution where the data determine it, None where they don't.

    It doesn't depend on ρ then, so it is found without them: scaled, lags with tiny ρ_j would be lost to rounding.
    """
    if (scale == 0).any():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(gram, moments, assume_a="pos") / scale[:, None])
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        return None
