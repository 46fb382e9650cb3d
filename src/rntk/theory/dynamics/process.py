"""The Gaussian process that the outputs are during training: kernels of one training set, and its two moments.

Shapes: n points, N training values, S moments, d outputs. What has length N stands in the eigenbasis V of K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...kernels import KernelPair
from ...kernels.pairwise import suited
from ...sequences import SequenceBatch
from ...sequences.targets import read_values
from .clock import Array, Instants
from .spectrum import Spectrum

#: Bytes of kernel values and results held at once.
BLOCK_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class Process:
    """Training sequences, and both kernels between them. Points are new sequences, or None for the training sequences.

    Parameters
    ----------
    kernel
        a network's kernel.
    X : SequenceBatch
        The training sequences.
    spectrum : Spectrum
        Of K = Θ(X, X).
    nngp : ndarray or None
        (N, N) V^T 𝒦(X, X) V, None for normalised kernels, which have no covariance.
    """

    kernel: Any
    X: SequenceBatch
    spectrum: Spectrum
    nngp: Array | None

    @classmethod
    def of(cls, kernel: Any, X: SequenceBatch, ridge: float) -> Process:
        """Evaluate both kernels on the training sequences, and decompose K."""
        data = suited(kernel, X)
        pair = None if kernel.normalize else kernel.both(data)
        prior, K = (None, kernel(data)) if pair is None else (pair.nngp, getattr(pair, kernel.kind))
        spectrum = Spectrum.of(np.asarray(K, dtype=np.float64), ridge, float(np.finfo(K.dtype).eps))
        V = spectrum.vectors
        return cls(kernel, X, spectrum, None if prior is None else V.T @ np.asarray(prior, dtype=np.float64) @ V)

    def moved(self, points: SequenceBatch | None, clock: Instants, error: Array) -> Array:
        """(n, S, d) A_s error: how far outputs have moved, for an error at the start (N, d), not in the eigenbasis."""
        gain, error = self.spectrum.gain(clock), self.spectrum.vectors.T @ error
        if points is None:
            return _moved(self._training_cross, gain, error)
        return self._in_blocks(points, gain, error, lambda part: _moved(self._cross(part), gain, error))

    def moved_and_variance(self, points: SequenceBatch | None, clock: Instants, error: Array) -> tuple[Array, Array]:
        """`moved`, and the variance of each output over initialisations, (n, S)."""
        nngp, start = self._covariance_at_start(), self.spectrum.vectors.T @ error
        if points is None:
            left = (self.spectrum.vectors * q for q in self.spectrum.residual(clock))
            spread = _variance([np.sum((Q @ nngp) * Q, axis=1) for Q in left])
            return self.moved(None, clock, error), spread
        gain = self.spectrum.gain(clock)

        def evaluate(part: SequenceBatch) -> Array:
            prior, B, C = self._prior_variance(part), *self._both_cross(part)
            spread = _variance([prior + np.sum((A @ nngp - 2 * B) * A, axis=1) for A in (C * g for g in gain)])
            return np.concatenate([_moved(C, gain, start), spread[:, :, None]], axis=2)

        found = self._in_blocks(points, gain, error, evaluate)
        return found[:, :, :-1], found[:, :, -1]

    def covariance(self, points: SequenceBatch | None, clock: Instants) -> Array:
        """(S, n, n) covariance of each output over initialisations."""
        nngp = self._covariance_at_start()
        if points is None:
            left = (self.spectrum.vectors * q for q in self.spectrum.residual(clock))
            return np.stack([_symmetric(Q @ nngp @ Q.T) for Q in left])
        prior = np.asarray(self.kernel.nngp(suited(self.kernel, points)), dtype=np.float64)
        B, C = self._both_cross(points)
        moving = (C * g for g in self.spectrum.gain(clock))
        return np.stack([prior + _symmetric((A @ nngp - 2 * B) @ A.T) for A in moving])

    def training_variance(self, clock: Instants) -> Array:
        """(S,) sum over the training values of the variance of one output, O(N) per moment."""
        return np.asarray(self.spectrum.residual(clock) ** 2 @ np.maximum(np.diagonal(self._covariance_at_start()), 0))

    def training_error(self, clock: Instants, error: Array) -> Array:
        """(S,) sum of squares of what is left of an error at the start (N, d), O(N) per moment."""
        square = np.sum((self.spectrum.vectors.T @ error) ** 2, axis=1)
        return np.asarray(self.spectrum.residual(clock) ** 2 @ square)

    def kernels(self, points: SequenceBatch | None) -> tuple[Array, Array]:
        """(N, N) K, and (n, N) Θ(x, X), neither in the eigenbasis."""
        V = self.spectrum.vectors
        K = self._training_cross @ V.T
        return K, K if points is None else self._cross(points) @ V.T

    # -- kernels with the training set, in its eigenbasis ---------------------------------------------------------

    @property
    def _training_cross(self) -> Array:
        """(N, N) K V, by the eigenvalues, without those that are rounding."""
        return np.asarray(self.spectrum.vectors * np.where(self.spectrum.resolved, self.spectrum.values, 0.0))

    def _cross(self, points: SequenceBatch) -> Array:
        """(n, N) Θ(x, X) V."""
        K = self.kernel(suited(self.kernel, points), suited(self.kernel, self.X))
        return np.asarray(K, dtype=np.float64) @ self.spectrum.vectors

    def _both_cross(self, points: SequenceBatch) -> KernelPair:
        """(n, N) each: 𝒦(x, X) V and Θ(x, X) V."""
        pair = self.kernel.both(suited(self.kernel, points), suited(self.kernel, self.X))
        pair = KernelPair(pair.nngp, getattr(pair, self.kernel.kind))
        return KernelPair(*(np.asarray(each, dtype=np.float64) @ self.spectrum.vectors for each in pair))

    def _prior_variance(self, points: SequenceBatch) -> Array:
        """(n,) 𝒦(x, x) with the same-sequence term of `sigma_h`, which only `nngp(X)` has."""
        return np.asarray(self.kernel.of_kind("nngp").diag(suited(self.kernel, points)), dtype=np.float64)

    def _covariance_at_start(self) -> Array:
        if self.nngp is None:
            raise ValueError(
                "normalize=True leaves no covariance over initialisations: it divides the tangent kernel and the NNGP "
                "kernel by different numbers, and no network has both results. Take normalize=False, or only the mean "
                "(predict without return_std or return_cov; its loss is np.sum((mean - y) ** 2) / 2)"
            )
        return self.nngp

    def _in_blocks(self, points: SequenceBatch, gain: Array, error: Array, evaluate: Any) -> Array:
        """`evaluate` on parts of `points` whose kernels and results fit into memory."""
        rows = points.max_length if per_step(self.kernel) else 1  # per sequence
        each = 8 * rows * (5 * gain.shape[1] + 2 * len(gain) * (error.shape[1] + 1))
        size = max(1, BLOCK_BYTES // each)
        parts = (points.take(np.arange(a, min(a + size, len(points)))) for a in range(0, len(points), size))
        return np.concatenate([evaluate(part) for part in parts])


def per_step(kernel: Any) -> bool:
    """Whether a kernel has one row per step of a sequence, not one per sequence."""
    return bool(kernel.network().readout.per_step)


def read_targets(values: Any, name: str, kernel: Any, batch: SequenceBatch, like: Array | None = None) -> Array:
    """One finite number, or d of them, for each sequence (or step) of `batch`; with `like`, as many as there."""
    unit, count = ("step", len(batch.values)) if per_step(kernel) else ("sequence", len(batch))
    found = read_values(values, count, unit=unit, name=name)
    if like is not None and found.shape[1:] != like.shape[1:]:
        raise ValueError(
            f"{name} has shape {found.shape}, but the training targets have shape {like.shape}: only the number of "
            f"{unit}s may differ"
        )
    return found


def _moved(cross: Array, gain: Array, error: Array) -> Array:
    """(n, S, d) cross diag(gain_s) error, as one product of matrices."""
    weights = gain.T[:, :, None] * error[:, None, :]
    return np.asarray((cross @ weights.reshape(len(error), -1)).reshape(len(cross), *weights.shape[1:]))


def _variance(moments: list[Array]) -> Array:
    """(n, S) from one (n,) for each moment. A variance isn't negative: what is below zero is rounding."""
    return np.maximum(np.stack(moments, axis=1), 0.0)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
