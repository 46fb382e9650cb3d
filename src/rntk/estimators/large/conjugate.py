"""Kernel ridge regression by conjugate gradients: the exact solution, without the Gram matrix in memory."""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ...sequences import SequenceBatch
from ..base import Array, gram
from .approximation import features, map_of, reserve
from .blocks import default_tolerance, precision_of, split, working_copy
from .budget import BYTES_PER_VALUE, check_count, read_memory, say_memory
from .landmarks import choose_landmarks

#: Sequences per side of a tile, at most and at least: larger ones gain no speed, smaller ones lose much.
LARGEST_TILE, SMALLEST_TILE = 2048, 64
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
) -> Solution:
    """Solve (W K W + α_c I) a_c = y_c for every target c, with K = kernel(X) read in tiles.

    Parameters
    ----------
    targets : (n, targets). alpha : (targets,), positive. weight : (n,), the diagonal of W, or None for ones.
    n_landmarks : of the preconditioner, drawn uniformly; 0 for none.
    memory : budget for tiles, preconditioner and vectors. Tiles are kept if all of them fit, else computed again in
        every iteration.
    tol : largest relative residual of a target. max_iter : passes at most.

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
    budget = read_memory(memory)
    tol, max_iter = check_tolerance(tol), check_count("max_iter", max_iter, 1)
    count = min(check_count("n_landmarks", n_landmarks, 0), len(X))
    if not (alpha > 0).all():
        raise ValueError(f'solver="cg" needs alpha above zero, not {alpha.min():g}; solver="direct" interpolates')
    working = working_copy(kernel)
    K = TiledGram(working, X, budget, reserved=_reserved(targets, count, budget))
    invert = None
    if count:
        at = choose_landmarks(working, X, count, "uniform", check_random_state(random_state), budget)
        invert = Preconditioner(working, X, X.take(at), alpha, weight, budget).apply

    def apply(columns: Array) -> Array:
        found = K.times(columns) if weight is None else weight[:, None] * K.times(weight[:, None] * columns)
        found += alpha * columns
        return found

    size = np.linalg.norm(targets, axis=0)
    size[size == 0] = 1.0
    dual, n_iter, residual = _iterate(apply, invert, targets / size, tol, max_iter)
    if not residual <= tol:
        warnings.warn(
            f"conjugate gradients stopped after {n_iter} iterations (max_iter={max_iter}) with a relative residual of "
            f"{residual:.1e}, above tol={tol:.1e}. More n_landmarks (now {count}) or a larger alpha make it converge "
            "faster; a larger max_iter or tol lets it finish",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Solution(dual * size, n_iter, residual)


def check_tolerance(tol: Any) -> float:
    """`tol` as a number between 0 and 1."""
    if isinstance(tol, bool) or not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
        raise ValueError(f"tol must be a number between 0 and 1, not {tol!r}")
    return float(tol)


def _reserved(targets: Array, landmarks: int, memory: int) -> int:
    """Bytes for everything but tiles; refused if that leaves none for tiles."""
    n = len(targets)
    needed = VECTORS * 8 * targets.size + 8 * n * landmarks + (reserve(landmarks, memory) if landmarks else 0)
    least = needed + BYTES_PER_VALUE * min(SMALLEST_TILE, n) ** 2
    if least > memory:
        raise ValueError(
            f"{n} sequences with {targets.shape[1]} targets and n_landmarks={landmarks} need at least "
            f"{say_memory(least)}, and memory is {say_memory(memory)}; take fewer landmarks or more memory"
        )
    return needed


def _iterate(apply: Any, invert: Any, targets: Array, tol: float, max_iter: int) -> tuple[Array, int, float]:
    """Conjugate gradients until the true residual is below `tol`, no longer falls, or `max_iter` are used up.

    The residual that the iteration carries along drifts from the true one. So that is computed at the end, and where it
    is still too large the iteration begins again for what is left.
    """
    shape, used = targets.shape, 0

    def stacked(function: Any) -> Any:
        return LinearOperator(
            (targets.size, targets.size), lambda x: function(x.reshape(shape)).ravel(), dtype=np.float64
        )

    def tick(_: Array) -> None:
        nonlocal used
        used += 1

    dual, left = np.zeros(shape), targets
    residual = float(np.linalg.norm(targets, axis=0).max())
    while used < max_iter and residual > tol:
        step, _ = cg(
            stacked(apply),
            left.ravel(),
            rtol=0.0,
            atol=tol / 2,
            maxiter=max_iter - used,
            M=None if invert is None else stacked(invert),
            callback=tick,
        )
        dual += step.reshape(shape)
        left = targets - apply(dual)
        residual, before = float(np.linalg.norm(left, axis=0).max()), residual
        if not residual < before / 2:  # rounding, or no positive definite matrix
            break
    return dual, used, residual


class TiledGram:
    """kernel(X) in tiles, on and above the diagonal, of which products are made without the matrix.

    Parameters
    ----------
    memory, reserved : the budget in bytes, and how much of it is taken.

    Attributes
    ----------
    side : sequences per side of a tile.
    kept : the precision in which tiles are kept from one product to the next, None where they don't fit. Products are
        in double precision, so float64 saves a conversion; the kernel's own loses nothing.
    """

    def __init__(self, kernel: Any, X: SequenceBatch, memory: int, reserved: int = 0) -> None:
        free, n = memory - reserved, len(X)
        side = min(n, LARGEST_TILE, max(SMALLEST_TILE, math.isqrt(free // (2 * BYTES_PER_VALUE))))
        self.side = math.ceil(n / math.ceil(n / side))  # tiles of equal size: no small ones at the end
        values, working = n * (n + self.side) // 2, BYTES_PER_VALUE * self.side**2
        choices = (np.dtype(np.float64), precision_of(kernel, X))
        self.kept = next((each for each in choices if values * each.itemsize + working <= free), None)
        self._kernel, self._parts = kernel, list(split(X, self.side))
        self._tiles: dict[tuple[int, int], Array] = {}

    def tile(self, i: int, j: int) -> Array:
        """Kernel values between blocks i and j of sequences, j ≥ i."""
        if (i, j) in self._tiles:
            return self._tiles[i, j]
        # Without a second batch for the diagonal, which holds the noise of the kernel if it has any.
        found = gram(self._kernel, self._parts[i][1], self._parts[j][1] if j > i else None)
        if self.kept is not None:
            self._tiles[i, j] = found = found.astype(self.kept, copy=False)
        return found

    def times(self, columns: Array) -> Array:
        """kernel(X) @ columns."""
        found = np.zeros_like(columns)
        for i, (row, _) in enumerate(self._parts):
            for j in range(i, len(self._parts)):
                column, tile = self._parts[j][0], self.tile(i, j)
                found[row] += tile @ columns[column]
                if j > i:
                    found[column] += tile.T @ columns[row]
        return found


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
        for start in range(0, len(U), SMALLEST_TILE):  # in place: there is no room for a second matrix of this size
            rows = U[start : start + SMALLEST_TILE]
            rows[:, : len(value)] = rows @ turn
        self.U = U[:, : len(value)]
        #: (rank, targets), what M takes away along U.
        self.shrink = 1 - (value[:1, None] + alpha) / (value[:, None] + alpha)

    def apply(self, columns: Array) -> Array:
        """M @ columns."""
        return np.asarray(columns - self.U @ (self.shrink * (self.U.T @ columns)))
