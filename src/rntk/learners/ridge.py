"""Kernel ridge regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_array

from ..kernels.pairwise import gram, in_blocks
from ..sequences import SequenceBatch
from .base import Array, KernelLearner
from .large import solve_conjugate


class RidgeLearner(KernelLearner):
    """Kernel ridge regression of a table (n, targets), behind the regressor and the classifier."""

    # Set by the constructors of subclasses.
    alpha: Any
    solver: str
    n_landmarks: int
    memory: Any
    tol: float
    max_iter: int
    random_state: Any
    cache: Any
    # Set by their `fit`.
    dual_coef_: Array
    residual_: float

    def _fit_targets(self, batch: SequenceBatch, targets: Array, sample_weight: Any = None) -> Array:
        """Dual coefficients (used, targets) of the sequences kept; sets everything else that is learned."""
        if self.solver not in ("direct", "cg"):
            raise ValueError(f'solver must be "direct" or "cg", not {self.solver!r}')
        self.kernel_ = self._make_kernel()
        alpha = np.broadcast_to(check_ridge(self.alpha), targets.shape[1])
        weight = None
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, targets)
            if (sample_weight < 0).any():
                raise ValueError(f"weights of sequences must not be negative; the smallest is {sample_weight.min():g}")
            weight = np.sqrt(sample_weight)
            targets = targets * weight[:, None]
        if self.solver == "direct":
            dual = solve_directly(gram(self.kernel_, batch), targets, alpha, weight)
            self.n_iter_ = 1
            if hasattr(self, "residual_"):
                del self.residual_  # of an earlier fit by the other solver
        else:
            found = solve_conjugate(
                self.kernel_,
                batch,
                targets,
                alpha,
                weight,
                n_landmarks=self.n_landmarks,
                memory=self.memory,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=self.random_state,
                cache=self.cache,
            )
            dual, self.n_iter_, self.residual_ = found.dual, found.n_iter, found.residual
        if weight is not None:
            dual *= weight[:, None]
        used = np.flatnonzero(np.any(dual != 0, axis=1))
        used = used if used.size else np.array([0])
        self.sequences_ = batch.take(used)
        return np.asarray(dual[used])

    def _values(self, X: Any) -> Array:
        """Values at the sequences in `X`, with as many columns as the dual coefficients."""
        new = self._read_new(X)
        return in_blocks(
            new,
            len(self.sequences_),
            lambda part: gram(self.kernel_, part, self.sequences_) @ self.dual_coef_,
        )


class RNTKRegressor(RegressorMixin, RidgeLearner):  # type: ignore[misc]
    """Kernel ridge regression on sequences of any length: minimises ‖y - f‖² + alpha ‖f‖².

    It is the mean of infinitely many infinitely wide networks trained to the end by gradient descent (alpha = 0), or
    with the ridge of docs/theory.md.

    Parameters
    ----------
    kernel : None for `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.
    alpha : ridge, one number or one per target. Zero interpolates; where the Gram matrix is singular (duplicate
        sequences, say) that means the least-squares solution of smallest norm.
    solver : "direct" factorises the Gram matrix: 8 n² bytes, O(n³). "cg" finds the same solution by conjugate
        gradients on tiles of it, in bounded memory, for alpha > 0.
    n_landmarks, random_state : for "cg": landmarks of its preconditioner, 0 for none, and how they are drawn.
    memory : for "cg": budget in bytes or as a text. Tiles are kept if they fit, else computed in every iteration.
    cache : for "cg": a name that ends in .gram or .zarr, for tiles on disk: computed once, or by an earlier
        `rntk.gram.compute(kernel, X, out=cache)`, and read in every iteration. None for none.
    tol, max_iter : for "cg": largest relative residual ‖(K + αI) a - y‖ / ‖y‖ of a target, and most iterations.

    Attributes
    ----------
    dual_coef_ : (n,) or (n, targets). kernel_ : the kernel used.
    sequences_ : the training sequences with a non-zero dual coefficient.
    n_iter_ : iterations of "cg"; 1 for "direct". residual_ : the relative residual of the worst target ("cg").

    Warns
    -----
    ConvergenceWarning : "cg" did not reach `tol`; the message says how far it came.

    Notes
    -----
    "cg" is preconditioned by the Nyström approximation K̂ = U diag(μ) Uᵀ of its r-dimensional landmarks,

        M = I - U diag(1 - (μ_r + α) / (μ + α)) Uᵀ,

    so that iterations grow with what the landmarks miss and not with the condition number. One pass over the tiles
    serves all targets. Details are with `rntk.learners.large.solve_conjugate`.

    References
    ----------
    Rudi, Carratino and Rosasco, *FALKON: an optimal large scale kernel method*, NIPS 2017. Frangella, Tropp and Udell,
    *Randomized Nyström preconditioning*, SIAM Journal on Matrix Analysis and Applications 44, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal(n) for n in (5, 8, 6, 9, 7, 5)]
    >>> y = [x.mean() for x in X]
    >>> RNTKRegressor(alpha=0.0).fit(X, y).score(X, y) > 0.999
    True
    >>> model = RNTKRegressor(alpha=0.1, solver="cg", n_landmarks=3, random_state=0).fit(X, y)
    >>> bool(np.allclose(model.dual_coef_, RNTKRegressor(alpha=0.1).fit(X, y).dual_coef_))
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        alpha: Any = 1.0,
        solver: str = "direct",
        n_landmarks: int = 500,
        memory: Any = "1GB",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        cache: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.cache = cache

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRegressor:
        """Fit to sequences `X` and targets `y`, (n,) or (n, targets)."""
        batch = self._read_training(X)
        y = check_targets(y, len(batch))
        dual = self._fit_targets(batch, y.reshape(len(y), -1), sample_weight)
        self.dual_coef_ = dual.reshape(len(dual), *y.shape[1:])
        return self

    def predict(self, X: Any) -> Array:
        """Values at the sequences in `X`, (n,) or (n, targets)."""
        return self._values(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def solve_directly(K: Array, targets: Array, alpha: Array, weight: Array | None) -> Array:
    """(W K W + α_c I)⁻¹ y_c for every target c, with a factorisation for every different ridge."""
    dual = np.empty(targets.shape)
    if weight is not None:
        K = K * np.outer(weight, weight)
    for value in np.unique(alpha):
        dual[:, alpha == value] = solve_ridge(K, targets[:, alpha == value], float(value))
    return dual


def solve_ridge(K: Array, targets: Array, alpha: float) -> Array:
    """(K + alpha I)⁻¹ targets; the solution of smallest norm where that matrix is singular."""
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += alpha
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(shifted, targets, assume_a="pos"))
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        value, vector = linalg.eigh(shifted)
        # Directions whose eigenvalue is rounding carry no information about the targets.
        kept = value > len(K) * np.finfo(float).eps * max(value[-1], 0.0)
        vector = vector[:, kept]
        return np.asarray((vector / value[kept]) @ (vector.T @ targets))


def check_targets(y: Any, count: int) -> Array:
    """Targets as finite floats, (n,) or (n, targets)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", ensure_min_samples=0)
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, not {y.ndim}")
    if len(y) != count:
        raise ValueError(f"{count} sequences and {len(y)} targets: there must be one target per sequence")
    return np.asarray(y)


def check_ridge(alpha: Any) -> Array:
    """`alpha` as non-negative numbers."""
    value = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    if value.ndim > 1 or not np.isfinite(value).all() or (value < 0).any():
        raise ValueError(f"alpha must be a non-negative number, or one per target, not {alpha!r}")
    return value
