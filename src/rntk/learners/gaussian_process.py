"""Exact Gaussian process regression."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, optimize
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from ..errors import ActivationError, KernelOverflowError, check_flag, check_positive, warn
from ..kernels.pairwise import suited
from ..runtime import Bar, progress_bar
from ..sequences import SequenceBatch
from ..sequences.targets import Array, read_values, read_weights
from .base import KernelLearner, Term, as_kernel, gram, shows_progress


class Evidence(NamedTuple):
    """Log marginal likelihood of the training targets and its gradient, and the factorisation behind them."""

    value: float
    gradient: Array
    cholesky: Array
    weights: Array


class RNTKGaussianProcessRegressor(RegressorMixin, KernelLearner):  # type: ignore[misc]
    """Gaussian process regression on sequences of any length, with hyperparameters that maximise the evidence.

    With the covariance of untrained networks, `RNTK(kind="nngp")`, prediction is exact Bayesian inference in the
    infinitely wide network. Several targets share kernel and noise, and are independent otherwise: their evidences add.

    Parameters
    ----------
    kernel : None, kernel or function, default=None
        `RNTK()`, a kernel of rntk or scikit-learn (sums and products too), or a function (X, Y) -> Gram matrix.
    noise : float, default=1e-2
        Variance of the noise on the targets.
    optimizer : "fmin_l_bfgs_b" or None, default="fmin_l_bfgs_b"
        None takes all hyperparameters as given.
    n_restarts_optimizer : int, default=0
        Further starts, from points drawn between the bounds.
    noise_bounds : pair of floats or "fixed", default=(1e-8, 1e3)
        Bounds of `noise`.
    normalize_y : bool, default=False
        Take mean and deviation out of the targets before anything else.
    random_state : int, RandomState or None, default=None
        For the restarts.

    Attributes
    ----------
    kernel_ : object
        The kernel with the hyperparameters found.
    noise_ : float
        The noise found.
    log_marginal_likelihood_value_ : float
        The evidence there.
    sequences_ : SequenceBatch
        The training sequences, without those of weight zero.
    targets_ : ndarray of shape (n,) or (n, targets)
        Their targets, shifted by `y_mean_` and divided by `y_scale_`.
    sample_weight_ : ndarray of shape (n,)
        Their weights.
    y_mean_ : float or ndarray of shape (targets,)
        Zero unless `normalize_y`.
    y_scale_ : float or ndarray of shape (targets,)
        One unless `normalize_y`.
    L_ : ndarray of shape (n, n)
        Cholesky factor of K = k(X, X) + noise / weights.
    alpha_ : ndarray of shape (n,) or (n, targets)
        K⁻¹ targets_.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKGaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal(n) for n in (5, 8, 6, 9, 7, 5)]
    >>> y = [x.sum() for x in X]
    >>> model = RNTKGaussianProcessRegressor(RNTK(readout="mean"), noise=1e-3).fit(X, y)
    >>> mean, std = model.predict(X, return_std=True)
    >>> bool(np.all(np.abs(mean - y) < 0.5))
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        noise: float = 1e-2,
        optimizer: str | None = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        noise_bounds: Any = (1e-8, 1e3),
        normalize_y: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.noise_bounds = noise_bounds
        self.normalize_y = normalize_y
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKGaussianProcessRegressor:
        """Fit to sequences `X` and targets `y`, (n,) or (n, targets); the noise of one is divided by its weight."""
        batch = self._read_training(X)
        y = read_values(y, len(batch))
        self._check_parameters()
        used, weight = read_weights(sample_weight, len(batch))
        batch, y = batch.take(used), (y if y.ndim == 2 and y.shape[1] > 1 else column_or_1d(y, warn=True))[used]
        self.sample_weight_ = np.ones(len(y)) if weight is None else weight
        mean: Any = np.zeros(y.shape[1:])
        scale: Any = np.ones(y.shape[1:])
        if check_flag("normalize_y", self.normalize_y):
            mean = np.average(y, axis=0, weights=weight)
            spread = np.sqrt(np.average(np.square(y - mean), axis=0, weights=weight))
            scale = np.where(spread > 0, spread, 1.0)
        self.y_mean_ = mean if y.ndim == 2 else float(mean)
        self.y_scale_ = scale if y.ndim == 2 else float(scale)
        self.targets_ = (y - self.y_mean_) / self.y_scale_
        self.sequences_ = batch
        self.kernel_, self.noise_ = as_kernel(self.kernel), float(self.noise)
        with progress_bar("Gaussian process", None, shows_progress(self.kernel_)) as bar:
            if self.optimizer is not None and self._bounds().size:
                self.kernel_, self.noise_ = self._optimize(bar)
            with bar.part(0.0):
                found = self._evidence(self.kernel_, self.noise_, gradient=False)
        self.log_marginal_likelihood_value_ = found.value
        self.L_, self.alpha_ = found.cholesky, found.weights
        self._keep(batch)
        return self

    def _check_parameters(self) -> None:
        if self.optimizer not in (None, "fmin_l_bfgs_b"):
            raise ValueError(f'optimizer must be "fmin_l_bfgs_b" or None, not {self.optimizer!r}')
        check_positive("noise", self.noise, or_zero=True)

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

    def _at(self, theta: Array) -> tuple[Any, float]:
        """Kernel and noise with these hyperparameters."""
        own, noise = (theta[:-1], float(np.exp(theta[-1]))) if self._moves_noise else (theta, self.noise_)
        return self.kernel_.clone_with_theta(own) if isinstance(self.kernel_, Kernel) else self.kernel_, noise

    def _optimize(self, bar: Bar) -> tuple[Any, float]:
        """Kernel and noise of largest evidence."""

        count, largest = 0, -np.inf

        def loss(theta: Array) -> tuple[float, Array]:
            nonlocal count, largest
            count += 1
            evidence = f", log evidence {largest:.5g}" if count > 1 else ""
            try:
                with bar.part(0.0, f"evaluation {count}{evidence}"):
                    found = self._evidence(*self._at(theta), gradient=True)
            except (linalg.LinAlgError, KernelOverflowError, ActivationError):
                # No Gaussian process there: far down, and flat, so that the line search turns back.
                return 1e25, np.zeros_like(theta)
            largest = max(largest, found.value)
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
            warn(ConvergenceWarning(f"the evidence was not maximised: {best.message}"))
        return self._at(best.x)

    def _evidence(self, kernel: Any, noise: float, *, gradient: bool) -> Evidence:
        y, n = self.targets_, len(self.targets_)
        moving = np.empty((n, n, 0))
        if gradient and isinstance(kernel, Kernel):
            K, moving = kernel(suited(kernel, self.sequences_), eval_gradient=True)
            K = np.array(K, dtype=np.float64)
        else:
            K = gram(kernel, self.sequences_).copy()
        K[np.diag_indices(n)] += noise / self.sample_weight_
        if not np.isfinite(K).all():
            raise KernelOverflowError("the covariance is too large for float64; scale the sequences down")
        try:
            L = linalg.cholesky(K, lower=True)
        except linalg.LinAlgError:
            least = float(linalg.eigvalsh(K)[0])
            raise linalg.LinAlgError(
                f"the covariance of the training sequences is singular (smallest eigenvalue {least:.2e}), as with "
                f"duplicates and little noise; take noise above {noise:.2e}"
            ) from None
        weights = linalg.cho_solve((L, True), y)
        count = y.size / n  # of targets, which are independent
        value = -0.5 * np.sum(y * weights) - count * (np.log(np.diagonal(L)).sum() + n / 2 * np.log(2 * np.pi))
        slope = np.empty(0)
        if gradient:
            columns = weights.reshape(n, -1)
            inner = columns @ columns.T - count * linalg.cho_solve((L, True), np.eye(n))
            slope = 0.5 * np.einsum("ij,ijp->p", inner, np.asarray(moving, dtype=np.float64))
            if self._moves_noise:
                slope = np.append(slope, 0.5 * noise * np.sum(np.diagonal(inner) / self.sample_weight_))
        return Evidence(float(value), slope, L, weights)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """Evidence at `theta` (logarithms: the kernel's hyperparameters, then the noise unless fixed), or as fitted."""
        at = (self.kernel_, self.noise_) if theta is None else self._at(np.asarray(theta, dtype=np.float64))
        found = self._evidence(*at, gradient=eval_gradient)
        return (found.value, found.gradient) if eval_gradient else found.value

    # -- prediction -----------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, include_noise: bool = False) -> Any:
        """Mean of the posterior at `X`, (n,) or (n, targets); with its deviation or covariance on request.

        A deviation has the mean's shape, a covariance is (n, n) or (n, n, targets): targets are independent.
        `include_noise` adds the noise of a new observation to either.
        """
        if return_std and return_cov:
            raise ValueError("ask for the deviation or for the covariance, not for both")
        new, training = self._read_new(X), self._training()
        added = self.noise_ if include_noise else 0.0
        if return_cov:
            side, cross = training.compare(new)
            half = linalg.solve_triangular(self.L_, cross.T, lower=True)
            covariance = training.pairwise.pairs(side) - half.T @ half + added * np.eye(len(new))
            return self._unscaled(cross @ self.alpha_), np.multiply.outer(covariance, np.square(self.y_scale_))

        def evaluate(side: Any, cross: Array) -> Array:
            mean = cross @ self.alpha_.reshape(len(self.alpha_), -1)
            if not return_std:
                return mean
            half = linalg.solve_triangular(self.L_, cross.T, lower=True)
            variance = training.pairwise.diagonal(side) - np.einsum("ij,ij->j", half, half)
            return np.column_stack([mean, np.sqrt(np.maximum(variance, 0.0) + added)])

        found = training.in_blocks(new, evaluate)
        targets = self.alpha_.shape[1:]
        mean = self._unscaled(found[:, : int(np.prod(targets))].reshape(-1, *targets))
        return (mean, np.multiply.outer(found[:, -1], self.y_scale_)) if return_std else mean

    def _terms(self, x: SequenceBatch) -> list[Term]:
        return [Term(self.kernel_, self.sequences_, (self.alpha_ * self.y_scale_).reshape(len(self.alpha_), -1))]

    def _unscaled(self, mean: Array) -> Array:
        return np.asarray(mean * self.y_scale_ + self.y_mean_)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """(n, n_samples) or (n, targets, n_samples) functions drawn from the posterior, at the sequences in `X`."""
        mean, covariance = self.predict(X, return_cov=True)
        random, n = check_random_state(random_state), len(mean)
        draws = []
        for k in range(mean.size // n):
            value, vector = linalg.eigh(covariance.reshape(n, n, -1)[:, :, k])
            normal = random.standard_normal((n, n_samples))
            draws.append(vector @ (np.sqrt(np.maximum(value, 0.0))[:, None] * normal))
        return np.asarray(mean[..., None] + np.stack(draws, axis=1).reshape(*mean.shape, n_samples))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
