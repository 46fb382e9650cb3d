"""Exact Gaussian process regression."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, optimize
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from ..kernels.pairwise import gram, in_blocks, is_tangent_kernel, self_gram, suited
from ..sequences import SequenceBatch
from .base import Array, KernelLearner
from .ridge import check_targets


class Evidence(NamedTuple):
    """Log marginal likelihood of the training targets and its gradient, and the factorisation behind them."""

    value: float
    gradient: Array
    cholesky: Array
    weights: Array


class RNTKGaussianProcess(RegressorMixin, KernelLearner):  # type: ignore[misc]
    """Gaussian process regression on sequences of any length, with hyperparameters that maximise the evidence.

    Parameters
    ----------
    kernel : None for `RNTK()`, a kernel of rntk or scikit-learn (sums and products too), or a function.
    noise : variance of the noise on the targets.
    prior : "ntk" takes the kernel as it is; "nngp" the covariance of untrained networks, for which prediction is exact
        Bayesian inference in the infinitely wide network. Only for kernels of rntk.
    optimizer : "fmin_l_bfgs_b", or None to take all hyperparameters as given.
    n_restarts_optimizer : further starts, from points drawn between the bounds.
    noise_bounds : bounds of `noise`, or "fixed".
    normalize_y : take mean and deviation out of the targets before anything else.
    random_state : for the restarts.

    Attributes
    ----------
    kernel_, noise_ : with the hyperparameters found. log_marginal_likelihood_value_ : the evidence there.
    sequences_, alpha_, L_ : training sequences, K⁻¹y, and the Cholesky factor of K = k(X, X) + noise I.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKGaussianProcess
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal(n) for n in (5, 8, 6, 9, 7, 5)]
    >>> y = [x.sum() for x in X]
    >>> model = RNTKGaussianProcess(RNTK(readout="mean"), noise=1e-3).fit(X, y)
    >>> mean, std = model.predict(X, return_std=True)
    >>> bool(np.all(np.abs(mean - y) < 0.5))
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        noise: float = 1e-2,
        prior: str = "ntk",
        optimizer: str | None = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        noise_bounds: Any = (1e-8, 1e3),
        normalize_y: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.prior = prior
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.noise_bounds = noise_bounds
        self.normalize_y = normalize_y
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RNTKGaussianProcess:
        """Fit to sequences `X` and targets `y`, (n,)."""
        batch = self._read_training(X)
        y = check_targets(y, len(batch))
        if y.ndim == 2 and y.shape[1] != 1:
            raise ValueError(f"y has {y.shape[1]} columns; a Gaussian process takes one target, so fit one model each")
        y = column_or_1d(y, warn=True)
        self._check_parameters()
        self._y_mean = float(y.mean()) if self.normalize_y else 0.0
        spread = float(y.std()) if self.normalize_y else 1.0
        self._y_scale = spread if spread > 0 else 1.0
        self.sequences_, self._y = batch, (y - self._y_mean) / self._y_scale
        self.kernel_, self.noise_ = self._make_kernel(), float(self.noise)
        if self.prior == "nngp" and not is_tangent_kernel(self.kernel_):
            raise ValueError('prior="nngp" needs a kernel of rntk: others have no network behind them')
        if self.optimizer is not None and self._bounds().size:
            self._optimize()
        found = self._evidence(gradient=False)
        self.log_marginal_likelihood_value_ = found.value
        self.L_, self.alpha_ = found.cholesky, found.weights
        return self

    def _check_parameters(self) -> None:
        if self.prior not in ("ntk", "nngp"):
            raise ValueError(f'prior must be "ntk" or "nngp", not {self.prior!r}')
        if self.optimizer not in (None, "fmin_l_bfgs_b"):
            raise ValueError(f'optimizer must be "fmin_l_bfgs_b" or None, not {self.optimizer!r}')
        if not isinstance(self.noise, (int, float, np.number)) or not 0 <= self.noise < np.inf:
            raise ValueError(f"noise must be a non-negative number, not {self.noise!r}")

    # -- hyperparameters: those of the kernel in its own order, then the noise, all as logarithms -------------------

    @property
    def _moves_noise(self) -> bool:
        return not (isinstance(self.noise_bounds, str) and self.noise_bounds == "fixed") and self.noise_ > 0

    def _theta(self) -> Array:
        own = self.kernel_.theta if isinstance(self.kernel_, Kernel) else np.empty(0)
        return np.append(own, np.log(self.noise_)) if self._moves_noise else np.asarray(own)

    def _bounds(self) -> Array:
        own = self.kernel_.bounds if isinstance(self.kernel_, Kernel) else np.empty((0, 2))
        own = np.asarray(own).reshape(-1, 2)
        return np.vstack([own, np.log(self.noise_bounds)]) if self._moves_noise else own

    def _at(self, theta: Array) -> RNTKGaussianProcess:
        """A copy with other hyperparameters, sharing the data."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        own = theta[:-1] if self._moves_noise else theta
        if isinstance(self.kernel_, Kernel):
            other.kernel_ = self.kernel_.clone_with_theta(own)
        if self._moves_noise:
            other.noise_ = float(np.exp(theta[-1]))
        return other

    def _optimize(self) -> None:
        def loss(theta: Array) -> tuple[float, Array]:
            try:
                found = self._at(theta)._evidence(gradient=True)
            except (linalg.LinAlgError, ValueError):
                # No Gaussian process there: far down, and flat, so that the line search turns back.
                return 1e25, np.zeros_like(theta)
            return -found.value, -found.gradient

        bounds, random = self._bounds(), check_random_state(self.random_state)
        starts = [np.clip(self._theta(), bounds[:, 0], bounds[:, 1])]
        starts += [random.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(self.n_restarts_optimizer)]
        # Evidences are sums of logarithms of the order of n: differences of 1e-10 of that no longer mean anything.
        options = {"ftol": 1e-10, "maxiter": 500}
        results = [
            optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            for start in starts
        ]
        best = min(results, key=lambda result: float(result.fun))
        if not best.success and best.status != 2:  # 2: the line search met rounding, that is the optimum
            warnings.warn(f"the evidence was not maximised: {best.message}", ConvergenceWarning, stacklevel=3)
        found = self._at(best.x)
        self.kernel_, self.noise_ = found.kernel_, found.noise_

    def _prior_gram(self, X: SequenceBatch, Y: SequenceBatch | None = None) -> Array:
        if self.prior == "nngp":
            return np.asarray(
                self.kernel_.nngp(suited(self.kernel_, X), None if Y is None else suited(self.kernel_, Y))
            )
        return gram(self.kernel_, X, Y)

    def _prior_gradient(self, X: SequenceBatch) -> tuple[Array, Array]:
        if not isinstance(self.kernel_, Kernel):
            return self._prior_gram(X), np.empty((len(X), len(X), 0))
        evaluate = self.kernel_.nngp if self.prior == "nngp" else self.kernel_
        K, moving = evaluate(suited(self.kernel_, X), eval_gradient=True)
        return np.asarray(K, dtype=np.float64), np.asarray(moving, dtype=np.float64)

    def _evidence(self, *, gradient: bool) -> Evidence:
        X, y, n = self.sequences_, self._y, len(self._y)
        K, moving = self._prior_gradient(X) if gradient else (self._prior_gram(X), np.empty((n, n, 0)))
        K = K.copy()
        K[np.diag_indices(n)] += self.noise_
        try:
            L = linalg.cholesky(K, lower=True)
        except linalg.LinAlgError:
            least = float(linalg.eigvalsh(K)[0])
            raise linalg.LinAlgError(
                f"the covariance of the training sequences is singular (smallest eigenvalue {least:.2e}), as with "
                f"duplicates and little noise; take noise above {self.noise_:.2e}"
            ) from None
        weights = linalg.cho_solve((L, True), y)
        value = -0.5 * y @ weights - np.log(np.diagonal(L)).sum() - n / 2 * np.log(2 * np.pi)
        slope = np.empty(0)
        if gradient:
            inner = np.outer(weights, weights) - linalg.cho_solve((L, True), np.eye(n))
            slope = 0.5 * np.einsum("ij,ijp->p", inner, moving)
            if self._moves_noise:
                slope = np.append(slope, 0.5 * self.noise_ * np.trace(inner))
        return Evidence(float(value), slope, L, weights)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """Evidence at `theta` (logarithms: the kernel's hyperparameters, then the noise unless fixed), or as fitted."""
        at = self if theta is None else self._at(np.asarray(theta, dtype=np.float64))
        found = at._evidence(gradient=eval_gradient)
        return (found.value, found.gradient) if eval_gradient else found.value

    # -- prediction -----------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, include_noise: bool = False) -> Any:
        """Mean of the posterior at `X`; with its deviation or covariance on request.

        `include_noise` adds the noise of a new observation to either.
        """
        if return_std and return_cov:
            raise ValueError("ask for the deviation or for the covariance, not for both")
        new = self._read_new(X)
        if return_cov:
            cross = self._prior_gram(new, self.sequences_)
            half = linalg.solve_triangular(self.L_, cross.T, lower=True)
            covariance = self._prior_gram(new) - half.T @ half
            if include_noise:
                covariance[np.diag_indices(len(new))] += self.noise_
            return self._unscaled(cross @ self.alpha_), covariance * self._y_scale**2

        def evaluate(part: SequenceBatch) -> Array:
            cross = self._prior_gram(part, self.sequences_)
            mean = cross @ self.alpha_
            if not return_std:
                return mean[:, None]
            half = linalg.solve_triangular(self.L_, cross.T, lower=True)
            explained = np.einsum("ij,ij->j", half, half)
            variance = np.maximum(self._prior_diagonal(part) - explained, 0.0)
            return np.stack([mean, np.sqrt(variance + (self.noise_ if include_noise else 0.0))], axis=1)

        found = in_blocks(new, 2 * len(self.sequences_), evaluate)
        mean = self._unscaled(found[:, 0])
        return (mean, found[:, 1] * self._y_scale) if return_std else mean

    def _prior_diagonal(self, X: SequenceBatch) -> Array:
        if self.prior == "nngp":
            return np.array([self._prior_gram(X.take([i]))[0, 0] for i in range(len(X))])
        return self_gram(self.kernel_, X)

    def _unscaled(self, mean: Array) -> Array:
        return np.asarray(mean * self._y_scale + self._y_mean)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """(n, n_samples) functions drawn from the posterior, at the sequences in `X`."""
        mean, covariance = self.predict(X, return_cov=True)
        value, vector = linalg.eigh(covariance)
        normal = check_random_state(random_state).standard_normal((len(mean), n_samples))
        return np.asarray(mean[:, None] + vector @ (np.sqrt(np.maximum(value, 0.0))[:, None] * normal))
