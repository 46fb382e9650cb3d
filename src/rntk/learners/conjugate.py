"""Kernel ridge regression by conjugate gradients: the exact solution, without the Gram matrix in memory."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import gram
from ..errors import check_count, say_bytes, warn
from ..runtime import parse_bytes, progress_bar
from ..sequences import SequenceBatch
from ..sequences.targets import Array
from .base import PreparedSequences
from .landmarks import choose_landmarks, default_tolerance, features, map_of, progress_of, quiet, reserve

#: Vectors as long as the targets that conjugate gradients and their products hold at once.
VECTORS = 12


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Attributes
    ----------
    dual : ndarray of shape (n, targets)
        The coefficients.
    n_iter : int
        Iterations, each a pass over the Gram matrix.
    residual : float
        ‖(K + αI) a - y‖ / ‖y‖ of the worst target, computed afresh at the end.
    """

    dual: Array
    n_iter: int
    residual: float


@dataclass(frozen=True)
class ConjugateGradients:
    """A solver of `RNTKRidge` and `RNTKRidgeClassifier` that reads the Gram matrix in tiles and never holds it.

    Parameters
    ----------
    tol : float, default=1e-8
        Largest relative residual ‖(K + αI) a - y‖ / ‖y‖ of a target.
    max_iter : int, default=1000
        Most iterations.
    n_landmarks : int, default=500
        Of the preconditioner, drawn uniformly; 0 for none.
    memory : int or str, default="1GB"
        Budget for tiles, preconditioner and vectors, in bytes or as a text. Tiles are kept if all of them fit, else
        computed again in every iteration, or read from the learner's `cache`.

    Notes
    -----
    The preconditioner comes from the Nyström approximation K̂ = U diag(μ) Uᵀ, with r orthonormal columns, μ falling:

        M = I - U diag(1 - (μ_r + α) / (μ + α)) Uᵀ.

    Along U that is (μ_r + α) (K̂ + αI)⁻¹; the rest, where eigenvalues of K are about μ_r and less, it leaves as it is.
    Iterations then depend on what the landmarks miss, ‖K - K̂‖ / α, instead of ‖K‖ / α. With 0 for μ_r it would be
    α (K̂ + αI)⁻¹ = I - U diag(μ / (μ + α)) Uᵀ, by Woodbury's formula. That takes the rest of K for zero: where it is
    far above α, as it is for few landmarks and a small ridge, it takes several times as many iterations.

    All targets advance together: they are one system, I ⊗ K plus the ridges, of which one pass over the tiles serves
    every target. The step lengths are shared, so the iterations are those of the joint system: its eigenvalues are the
    same, hence the bound is too, and there are about as many as the hardest target takes alone. Targets are scaled to
    unit length first, so that none hides behind another.

    References
    ----------
    Rudi, Carratino and Rosasco, *FALKON: an optimal large scale kernel method*, NIPS 2017: preconditioned conjugate
    gradients for the coefficients of landmarks alone; here every sequence has one, as in the direct solution.
    Frangella, Tropp and Udell, *Randomized Nyström preconditioning*, SIAM Journal on Matrix Analysis and
    Applications 44, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKRidge
    >>> from rntk.learners import ConjugateGradients
    >>> X = np.random.default_rng(0).standard_normal((60, 8))
    >>> model = RNTKRidge(alpha=0.1, solver=ConjugateGradients(n_landmarks=10), random_state=0).fit(X, X[:, 0])
    >>> model.residual_ < 1e-8
    True
    """

    tol: float = 1e-8
    max_iter: int = 1000
    n_landmarks: int = 500
    memory: int | float | str = "1GB"

    def __post_init__(self) -> None:
        tol = self.tol
        if isinstance(tol, bool) or not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
            raise ValueError(f"tol must be a number between 0 and 1, not {tol!r}")
        check_count("max_iter", self.max_iter, 1)
        check_count("n_landmarks", self.n_landmarks, 0)
        parse_bytes(self.memory)

    def solve(
        self,
        kernel: Any,
        X: SequenceBatch,
        targets: Array,
        alpha: Array,
        root: Array | None = None,
        random_state: Any = None,
        cache: Any = None,
    ) -> Solution:
        """Solve (W K W + α_c I) a_c = y_c for every target c, with K = kernel(X).

        Parameters
        ----------
        kernel : object
            Any kernel. Threads and progress are what it says.
        X : SequenceBatch
            n sequences.
        targets : ndarray of shape (n, targets)
            The right-hand sides.
        alpha : ndarray of shape (targets,)
            Positive.
        root : ndarray of shape (n,) or None
            The diagonal of W; None for ones.
        random_state : int, RandomState or None
            For the landmarks.
        cache : path or None
            Folder where the matrix is kept, or shall be.

        Warns
        -----
        ConvergenceWarning
            `tol` was not reached; with the residual that was.
        """
        budget, count = parse_bytes(self.memory), min(self.n_landmarks, len(X))
        if not (alpha > 0).all():
            raise ValueError(
                f'ConjugateGradients need alpha above zero, not {alpha.min():g}; solver="direct" interpolates'
            )
        working, show = quiet(kernel), progress_of(kernel)
        free = budget - _reserved(targets, count, budget)
        if cache is None:
            K = gram.stream(working, X, memory=free)
        else:
            K = gram.cached(cache, working, X, memory=free, progress=show)
        invert: Callable[[Array], Array] = np.copy
        if count:
            at = choose_landmarks(working, X, count, "uniform", check_random_state(random_state), budget)
            invert = preconditioner(PreparedSequences(working, X.take(at)), X, alpha, root, budget)

        # In two steps: squares of very large or small targets are out of range.
        largest = np.abs(targets).max(axis=0)
        largest[largest == 0] = 1.0
        targets = targets / largest
        size = np.linalg.norm(targets, axis=0)
        size[size == 0] = 1.0
        scale = 1.0 if root is None else root[:, None]

        def apply(columns: Array) -> Array:
            return np.asarray(scale * (K @ (scale * columns)) + alpha * columns)

        with progress_bar("conjugate gradients", -math.log10(self.tol), show) as advance:
            watch = Watch(advance, self.tol)
            dual, residual = _iterate(apply, invert, targets / size, self.tol, self.max_iter, watch)
        if not residual <= self.tol:
            text = (
                f"conjugate gradients stopped after {watch.iterations} iterations (max_iter={self.max_iter}) with a "
                f"relative residual of {residual:.1e}, above tol={self.tol:.1e}. More n_landmarks (now {count}) or a "
                "larger alpha make it converge faster; a larger max_iter or tol lets it finish"
            )
            warn(ConvergenceWarning(text))
        return Solution(dual * size * largest, watch.iterations, residual)


def _reserved(targets: Array, landmarks: int, memory: int) -> int:
    """Bytes for everything but tiles; refused if that leaves none for tiles."""
    n = len(targets)
    needed = VECTORS * 8 * targets.size + 8 * n * landmarks + (reserve(landmarks, memory) if landmarks else 0)
    if needed >= memory:
        raise ValueError(
            f"{n} sequences with {targets.shape[1]} targets and n_landmarks={landmarks} need more than "
            f"{say_bytes(needed)}, and memory is {say_bytes(memory)}; take fewer landmarks or more memory"
        )
    return needed


class Watch:
    """Counts iterations and feeds the progress bar: digits gained."""

    def __init__(self, advance: Callable[..., None], tol: float) -> None:
        self._advance = advance
        self._wanted = -math.log10(tol)
        self._digits = 0.0
        self.iterations = 0

    def see(self, residual: Array) -> None:
        """The iteration has come to this residual, of targets of unit length."""
        size = float(np.linalg.norm(residual, axis=0).max())
        digits = min(-math.log10(size), self._wanted) if size > 0 else self._wanted
        self._advance(max(digits - self._digits, 0.0), f"iteration {self.iterations + 1}")
        self._digits = max(digits, self._digits)

    def count(self, _: Any) -> None:
        """One more iteration."""
        self.iterations += 1


def _iterate(apply: Any, invert: Any, targets: Array, tol: float, max_iter: int, watch: Watch) -> tuple[Array, float]:
    """Conjugate gradients until the true residual is below `tol`, no longer falls, or `max_iter` are used up.

    The residual that the iteration carries along drifts from the true one. So that is computed at the end, and where it
    is still too large the iteration begins again for what is left.
    """
    shape = targets.shape

    def stacked(function: Any) -> Any:
        return LinearOperator(
            (targets.size, targets.size), lambda x: function(x.reshape(shape)).ravel(), dtype=np.float64
        )

    def watched(residual: Array) -> Any:  # conjugate gradients show their residual to the preconditioner only
        watch.see(residual)
        return invert(residual)

    dual, left = np.zeros(shape), targets
    residual = float(np.linalg.norm(targets, axis=0).max())
    while watch.iterations < max_iter and residual > tol:
        step, _ = cg(
            stacked(apply),
            left.ravel(),
            rtol=0.0,
            atol=tol / 2,
            maxiter=max_iter - watch.iterations,
            M=stacked(watched),
            callback=watch.count,
        )
        dual += step.reshape(shape)
        left = targets - apply(dual)
        watch.see(left)
        residual, before = float(np.linalg.norm(left, axis=0).max()), residual
        if not residual < before / 2:  # rounding, or no positive definite matrix
            break
    return dual, residual


def preconditioner(
    landmarks: PreparedSequences, X: SequenceBatch, alpha: Array, root: Array | None, memory: int
) -> Callable[[Array], Array]:
    """M of `ConjugateGradients`, for every ridge in `alpha`, as what it does to (n, targets)."""
    components = map_of(landmarks).components
    if not len(components):  # a kernel of zeros needs none
        return np.copy
    taken = 8 * len(X) * len(landmarks) + reserve(len(landmarks), memory)
    U = features(landmarks, X, components, memory, reserved=taken)
    if root is not None:
        U *= root[:, None]
    value, vector = linalg.eigh(U.T @ U)
    kept = value > default_tolerance(np.dtype(np.float64)) * value[-1]
    value, turn = value[kept], vector[:, kept] / np.sqrt(value[kept])
    for start in range(0, len(U), 64):  # in place: there is no room for a second matrix of this size
        rows = U[start : start + 64]
        rows[:, : len(value)] = rows @ turn
    U = U[:, : len(value)]
    shrink = 1 - (value[:1, None] + alpha) / (value[:, None] + alpha)
    return lambda columns: np.asarray(columns - U @ (shrink * (U.T @ columns)))
