"""Kernel ridge regression by conjugate gradients: the exact solution, without the Gram matrix in memory."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ... import gram
from ...errors import check_count
from ...kernels.pairwise import settings_of
from ...runtime import parse_bytes, progress_bar, say_bytes
from ...sequences import SequenceBatch
from ..base import Array
from .approximation import features, map_of, reserve
from .blocks import default_tolerance, precision_of, working_copy
from .landmarks import choose_landmarks

#: Vectors as long as the targets that conjugate gradients and their products hold at once.
VECTORS = 12


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Attributes
    ----------
    dual : (n, targets). n_iter : iterations, each a pass over the Gram matrix.
    residual : ‖(K + αI) a - y‖ / ‖y‖ of the worst target, computed afresh at the end.
    """

    dual: Array
    n_iter: int
    residual: float


def solve_conjugate(
    kernel: Any,
    X: SequenceBatch,
    targets: Array,
    alpha: Array,
    weight: Array | None = None,
    *,
    n_landmarks: int = 500,
    memory: Any = "1GB",
    tol: float = 1e-8,
    max_iter: int = 1000,
    random_state: Any = None,
    cache: Any = None,
) -> Solution:
    """Solve (W K W + α_c I) a_c = y_c for every target c, with K = kernel(X) read in tiles.

    Parameters
    ----------
    targets : (n, targets). alpha : (targets,), positive. weight : (n,), the diagonal of W, or None for ones.
    n_landmarks : of the preconditioner, drawn uniformly; 0 for none.
    memory : budget for tiles, preconditioner and vectors. Tiles are kept if all of them fit, else computed again in
        every iteration, or read from `cache`.
    tol : largest relative residual of a target. max_iter : passes at most.
    cache : None, or the store of `rntk.gram.compute` that holds K or shall hold it.

    Warns
    -----
    ConvergenceWarning : `tol` was not reached; with the residual that was.

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
    """
    budget = parse_bytes(memory)
    tol, max_iter = check_tolerance(tol), check_count("max_iter", max_iter, 1)
    count = min(check_count("n_landmarks", n_landmarks, 0), len(X))
    if not (alpha > 0).all():
        raise ValueError(f'solver="cg" needs alpha above zero, not {alpha.min():g}; solver="direct" interpolates')
    working, show = working_copy(kernel), next(iter(settings_of(kernel, "progress")), None)
    free = budget - _reserved(targets, count, budget)
    K = gram.stream(working, X, memory=free) if cache is None else _kept(working, X, cache, free, show)
    invert = None
    if count:
        at = choose_landmarks(working, X, count, "uniform", check_random_state(random_state), budget)
        invert = Preconditioner(working, X, X.take(at), alpha, weight, budget).apply

    # In two steps: squares of very large or small targets are out of range.
    largest = np.abs(targets).max(axis=0)
    largest[largest == 0] = 1.0
    targets = targets / largest
    size = np.linalg.norm(targets, axis=0)
    size[size == 0] = 1.0
    with progress_bar("conjugate gradients", -math.log10(tol), show) as advance:
        watch = Watch(advance, tol)

        def apply(columns: Array) -> Array:
            scale = 1.0 if weight is None else weight[:, None]
            return np.asarray(scale * K.matvec(scale * columns, watch.use) + alpha * columns)

        dual, residual = _iterate(apply, invert, targets / size, tol, max_iter, watch)
    if not residual <= tol:
        warnings.warn(
            f"conjugate gradients stopped after {watch.iterations} iterations (max_iter={max_iter}) with a relative "
            f"residual of {residual:.1e}, above tol={tol:.1e}. More n_landmarks (now {count}) or a larger alpha make "
            "it converge faster; a larger max_iter or tol lets it finish",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Solution(dual * size * largest, watch.iterations, residual)


def _kept(kernel: Any, X: SequenceBatch, cache: Any, memory: int, show: bool | None) -> gram.GramMatrix:
    """The matrix in a store, which may be there already."""
    try:
        return gram.compute(kernel, X, out=cache, memory=memory, progress=show)
    except gram.GramStoreError as error:
        text = str(error).partition(". Give another name")[0].partition("; overwrite=True")[0]
        raise gram.GramStoreError(
            f"cache={str(cache)!r} can't be used: {text}. Give another name, or delete it"
        ) from None


def check_tolerance(tol: Any) -> float:
    """`tol` as a number between 0 and 1."""
    if isinstance(tol, bool) or not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
        raise ValueError(f"tol must be a number between 0 and 1, not {tol!r}")
    return float(tol)


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
    """Counts iterations and feeds the progress bar: digits gained, and how much of the matrix was used again."""

    def __init__(self, advance: Callable[..., None], tol: float) -> None:
        self._advance = advance
        self._wanted = -math.log10(tol)
        self._digits = self._used = 0.0
        self.iterations = 0

    def use(self, share: float) -> None:
        """A share of the matrix was used."""
        self._used = (self._used + share) % 1.0
        self._advance(0.0, f"iteration {self.iterations + 1}, {self._used:.0%} of the matrix")

    def see(self, residual: Array) -> None:
        """The iteration has come to this residual, of targets of unit length."""
        size = float(np.linalg.norm(residual, axis=0).max())
        digits = min(-math.log10(size), self._wanted) if size > 0 else self._wanted
        self._advance(max(digits - self._digits, 0.0))
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

    def watched(residual: Array) -> Array:  # conjugate gradients show their residual to the preconditioner only
        watch.see(residual)
        return residual.copy() if invert is None else np.asarray(invert(residual))

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


class Preconditioner:
    """M of `solve_conjugate`, for every ridge in `alpha`."""

    def __init__(
        self, kernel: Any, X: SequenceBatch, Z: SequenceBatch, alpha: Array, weight: Array | None, memory: int
    ) -> None:
        noise = default_tolerance(precision_of(kernel, X))
        components = map_of(kernel, Z, noise, noise).components
        if not len(components):  # a kernel of zeros needs none
            self.U, self.shrink = np.empty((len(X), 0)), np.empty((0, len(alpha)))
            return
        taken = 8 * len(X) * len(Z) + reserve(len(Z), memory)
        U = features(kernel, X, Z, components, memory, reserved=taken)
        if weight is not None:
            U *= weight[:, None]
        value, vector = linalg.eigh(U.T @ U)
        kept = value > default_tolerance(np.dtype(np.float64)) * value[-1]
        value, turn = value[kept], vector[:, kept] / np.sqrt(value[kept])
        for start in range(0, len(U), 64):  # in place: there is no room for a second matrix of this size
            rows = U[start : start + 64]
            rows[:, : len(value)] = rows @ turn
        self.U = U[:, : len(value)]
        #: (rank, targets), what M takes away along U.
        self.shrink = 1 - (value[:1, None] + alpha) / (value[:, None] + alpha)

    def apply(self, columns: Array) -> Array:
        """M @ columns."""
        return np.asarray(columns - self.U @ (self.shrink * (self.U.T @ columns)))
