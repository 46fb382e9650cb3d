"""The training kernel in its eigenbasis, and the functions of it that training computes.

Parameters that start at θ_0 move only along gradients at the training points: θ = θ_0 + J^T a, with J the gradients and
K = J J^T the tangent kernel. For L = ½ |f(X) - y|² + ½ λ |θ - θ_0|² gradient flow and gradient descent become

    da/ds = η (y - f_0(X) - (K + λI) a),    a ← a + η (y - f_0(X) - (K + λI) a),    a = 0 at the start,

so that a_s = g_s(K + λI) (y - f_0(X)) with g_s(μ) = (1 - e^{-ηsμ})/μ, or (1 - (1 - ημ)^s)/μ, and everywhere

    f_s(x) = f_0(x) + Θ(x, X) a_s.

The ridge enters g_s alone: Θ(x, X), and K on the way from a_s to f_s(X), stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .clock import Array, Instants


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of K, with a ridge.

    Parameters
    ----------
    values : ndarray
        (N,) eigenvalues of K, ascending, none negative.
    vectors : ndarray
        (N, N), in columns.
    ridge : float
        λ ≥ 0.
    rounding : float
        Relative rounding error of the entries of K.

    Notes
    -----
    An eigenvalue of K + λI below N times the rounding of the largest one is *unresolved*: whether it is zero
    (duplicates) or merely small (smooth activations) can't be told from K. Its direction moves as if it were zero,
    g_s = ηs. That is right as long as ηsμ is small, where leaving it out would cost up to half of the digits with
    smooth activations. But it multiplies the rounding errors of Θ(x, X) by ηs, so the direction fades out before they
    become visible, around ηsμ_max = 1/√rounding, and is absent at the end of training. What remains there is the
    solution of smallest norm, as in `RNTKRidge`.
    """

    values: Array
    vectors: Array
    ridge: float
    rounding: float

    @classmethod
    def of(cls, K: Array, ridge: float, rounding: float) -> Spectrum:
        """Decompose K, (N, N), symmetric. It is positive semi-definite, so what is below zero is rounding."""
        values, vectors = linalg.eigh(K)
        return cls(np.maximum(values, 0.0), vectors, ridge, rounding)

    @property
    def shifted(self) -> Array:
        """(N,) eigenvalues μ of K + λI, ascending."""
        return self.values + self.ridge

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """(N,) whether an eigenvalue of K + λI is more than rounding."""
        return np.asarray(self.shifted > len(self.values) * self.rounding * self.shifted[-1])

    @property
    def largest_learning_rate(self) -> float:
        """2/μ_max; infinite for K + λI = 0."""
        return _two_over(self.shifted[-1])

    @property
    def critical_learning_rate(self) -> float:
        """2/(μ_min + μ_max) over the resolved eigenvalues."""
        moving = self.shifted[self.resolved]
        return _two_over(moving[0] + moving[-1]) if moving.size else float("inf")

    def gain(self, clock: Instants) -> Array:
        """(S, N) g_s(μ): what a unit of error at the start has added to a_s."""
        self._check_stable(clock)
        resolved, elapsed = self.resolved, clock.elapsed
        gain = np.zeros((len(clock.at), len(self.values)))
        gain[:, resolved] = clock.gain(self.shifted[resolved])
        if not resolved.all():
            with np.errstate(over="ignore", invalid="ignore"):
                faded = elapsed * np.exp(-((elapsed * self.shifted[-1]) ** 2) * self.rounding)
            gain[:, ~resolved] = np.where(np.isinf(elapsed), 0.0, faded)[:, None]
        return gain

    def residual(self, clock: Instants) -> Array:
        """(S, N) 1 - λ_K g_s(μ): what is left of the error at the training points; the ridge keeps some forever."""
        self._check_stable(clock)
        resolved, mu = self.resolved, self.shifted
        left = np.ones((len(clock.at), len(mu)))
        # (μ - λ_K + λ_K e^{-ηsμ}) / μ: no difference of nearly equal numbers, so late losses keep their digits.
        kept = (self.ridge + self.values[resolved] * clock.decay(mu[resolved])) / mu[resolved]
        left[:, resolved] = kept
        return left

    def _check_stable(self, clock: Instants) -> None:
        if not clock.steps:
            return
        top, rate = self.shifted[-1], clock.learning_rate
        slack = 4 * np.finfo(float).eps  # so that 2/μ_max itself passes
        names = "K + ridge I" if self.ridge else "the training kernel"
        if rate * top > 2 * (1 + slack):
            raise ValueError(
                f"gradient descent diverges with learning_rate={rate:.6g}: the largest eigenvalue of {names} is "
                f"{top:.6g}, and the error along it grows {rate * top - 1:.4g}-fold with every step. Take a learning "
                f"rate below largest_learning_rate={self.largest_learning_rate:.6g}; critical_learning_rate="
                f"{self.critical_learning_rate:.6g} contracts the slowest direction fastest"
            )
        if rate * top >= 2 * (1 - slack) and np.isinf(clock.at).any():
            raise ValueError(
                f"gradient descent has no limit with learning_rate={rate:.6g}: at exactly 2/{top:.6g} the error along "
                f"the largest eigenvalue of {names} changes sign with every step and never shrinks. Take less"
            )


def _two_over(value: float) -> float:
    return 2 / float(value) if value > 0 else float("inf")
