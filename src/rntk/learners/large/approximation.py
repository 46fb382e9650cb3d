"""The Nyström formula: features from kernel values with a few landmarks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ...kernels.pairwise import gram
from ...runtime import progress_bar, say_bytes
from ...sequences import SequenceBatch
from ..base import Array
from .blocks import count_rows, split


class NystromMap(NamedTuple):
    """φ(x) = components k(Z, x), so that φ(x)·φ(y) = k(x, Z) K_ZZ⁺ k(Z, y).

    Attributes
    ----------
    components : (rank, m), rows u / √λ of eigenpairs K_ZZ u = λ u, largest first.
    eigenvalues : (rank,), those λ.
    """

    components: Array
    eigenvalues: Array


def reserve(landmarks: int, memory: int) -> int:
    """Bytes for the matrix between landmarks, its eigenvectors and the work on them."""
    needed = 4 * 8 * landmarks**2
    if needed > memory:
        raise ValueError(
            f"n_landmarks={landmarks} need about {say_bytes(needed)} for the matrix between them, and memory is "
            f"{say_bytes(memory)}; take fewer landmarks or more memory"
        )
    return needed


def map_of(kernel: Any, Z: SequenceBatch, tolerance: float, noise: float) -> NystromMap:
    """The map of these landmarks; of rank 0 if the kernel is zero between all of them.

    Parameters
    ----------
    tolerance : eigenvalues up to this part of the largest are left out.
    noise : part of the largest eigenvalue by which rounding may have moved the others; a negative one beyond is none.
    """
    # kernel(Z, Z), not kernel(Z): noise on the diagonal is no part of what features can explain.
    K = gram(kernel, Z, Z)
    K += K.T
    K /= 2
    value, vector = linalg.eigh(K, overwrite_a=True, check_finite=False)
    largest = float(value[-1])
    if value[0] < -max(tolerance, noise) * max(largest, 0.0) or largest < 0:
        raise ValueError(
            f"the kernel is not positive semi-definite: eigenvalues between the landmarks go from {value[0]:.3g} to "
            f"{largest:.3g}, so there are no features with these products"
        )
    kept = value > tolerance * largest
    value, vector = value[kept][::-1], vector[:, kept][:, ::-1]
    return NystromMap(np.ascontiguousarray((vector / np.sqrt(value)).T), value)


def features(
    kernel: Any,
    X: SequenceBatch,
    Z: SequenceBatch,
    components: Array,
    memory: int,
    *,
    dtype: np.dtype[Any] | None = None,
    reserved: int = 0,
    progress: bool | None = False,
) -> Array:
    """(n, rank) features of `X`, from blocks of rows; products in the precision of `components`, results in `dtype`."""
    rows = count_rows(len(Z), memory, reserved)
    found = np.empty((len(X), len(components)), components.dtype if dtype is None else dtype)
    with progress_bar("features", len(X), progress) as advance:
        for place, part in split(X, rows):
            K = gram(kernel, part, Z).astype(components.dtype, copy=False)
            if found.dtype == components.dtype:
                np.matmul(K, components.T, out=found[place])
            else:
                with np.errstate(over="ignore"):  # reported just below
                    found[place] = K @ components.T
            if not np.isfinite(found[place]).all():
                raise ValueError(f"features are too large for {found.dtype}; take float64, or scale the sequences down")
            advance(len(part))
    return found
