"""Explicit features of a kernel from landmarks: what `NystromFeatures` and `StepFeatures` share.

In go sequences, a kernel and a budget of memory; out come features whose products approximate the kernel, so that no
Gram matrix of all sequences is needed. Landmarks are few things of the kernel's feature space that stand for the
others: whole sequences, or steps of them. How they are chosen is written at the end.
"""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from ..errors import check_choice, check_count, check_dtype, say_bytes
from ..kernels import pairwise
from ..kernels.pairwise import Pairwise, settings_of, with_settings
from ..runtime import parse_bytes, progress_bar
from ..sequences import SequenceBatch
from ..sequences.targets import Array
from .base import BLOCK_BYTES, KernelLearner, PreparedSequences, as_kernel

Indices = NDArray[np.int64]
SELECTIONS = ("uniform", "kmeans++", "leverage")
#: Bytes behind a kernel value in use: as the kernel returns it, as float64, and in the precision of a product.
BYTES_PER_VALUE = 24
#: Sequences looked at per landmark. Beyond, a uniform sample of them is searched instead of all.
CANDIDATES = 10
#: Columns of kernel values per round of seeding.
COLUMNS = 64
#: Steps of sequences prepared at once, if those are more than one: tens of megabytes.
BLOCK_STEPS = 1 << 18


class LandmarkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelLearner):  # type: ignore[misc]
    """Base of the transformers with landmarks: whitened kernel values with them are the features.

    Subclasses choose the landmarks (`_choose`), and say how sequences are compared with them (`_prepare`).
    """

    n_landmarks: int
    selection: str
    rank_tolerance: float | None
    memory: Any
    dtype: Any
    random_state: Any

    @abstractmethod
    def _choose(self, batch: SequenceBatch, random: np.random.RandomState, memory: int) -> SequenceBatch:
        """The landmarks; where they come from becomes an attribute."""

    @property
    def _unit_rows(self) -> bool:
        """Whether features of every sequence are scaled to norm one."""
        return False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks among the sequences `X`; `y` is ignored."""
        memory, wanted = self._check_parameters()
        batch = self._read_training(X)
        self.kernel_ = self._kernel()
        self._keep(self._choose(batch, check_random_state(self.random_state), memory))
        found = map_of(self._training(), self.rank_tolerance)
        if not len(found.eigenvalues):
            raise ValueError("the kernel is zero between all landmarks: there is nothing to make features of")
        self.rank_tolerance_ = found.tolerance
        self.eigenvalues_ = found.eigenvalues
        self.rank_ = len(found.eigenvalues)
        # Of a kernel in double precision in that too: its values needn't fit into float32, even if the features do.
        self.components_ = found.components.astype(
            found.precision if wanted is None else np.result_type(found.precision, wanted)
        )
        return self

    def _kernel(self) -> Any:
        return as_kernel(self.kernel)

    def transform(self, X: Any) -> Array:
        """(n, rank) features of the sequences in `X`."""
        new = self._read_new(X)
        memory, wanted = self._check_parameters()
        show = progress_of(self.kernel_)
        return features(
            self._training(), new, self.components_, memory, dtype=wanted, progress=show, unit_rows=self._unit_rows
        )

    def kernel_error(self, X: Any, n_sequences: int = 50) -> float:
        """How far products of features are from the kernel, on a few of the sequences in `X`.

        Parameters
        ----------
        X
            Sequences.
        n_sequences : int, default=50
            How many of them are compared, all pairs; drawn by `random_state` if there are more. The kernel itself is
            computed between them, so this costs what their Gram matrix costs.

        Returns
        -------
        float
            ‖H(ΦΦᵀ - K)H‖ / ‖HKH‖ in Frobenius norms, where H removes means, as an intercept does: 0 is exact, 1 is no
            better than a constant.
        """
        check_count("n_sequences", n_sequences, 2)
        new = self._read_new(X)
        if len(new) > n_sequences:
            at = check_random_state(self.random_state).choice(len(new), n_sequences, replace=False)
            new = new.take(np.sort(at))
        # kernel(X, X), not kernel(X): noise on the diagonal is no feature.
        K = np.asarray(pairwise.of(quiet(self.kernel_)).gram(new, new), dtype=np.float64)
        found = self.transform(new).astype(np.float64)
        found -= found.mean(axis=0)
        K = K - K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)
        size = float(np.linalg.norm(K))
        return float(np.linalg.norm(found @ found.T - K)) / size if size > 0 else 0.0

    def _check_parameters(self) -> tuple[int, np.dtype[Any] | None]:
        """The budget in bytes and the precision asked for."""
        check_count("n_landmarks", self.n_landmarks, 1)
        check_choice("selection", self.selection, SELECTIONS)
        tolerance = self.rank_tolerance
        if tolerance is not None and not (
            isinstance(tolerance, numbers.Real) and not isinstance(tolerance, bool) and 0 <= float(tolerance) < 1
        ):
            raise ValueError(f"rank_tolerance must be a number from 0 to below 1, or None, not {tolerance!r}")
        return parse_bytes(self.memory), None if self.dtype is None else check_dtype(self.dtype)

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the precision is the kernel's, or asked for
        return tags


# -- kernels in blocks -------------------------------------------------------------------------------------------------


def quiet(kernel: Any) -> Any:
    """The kernel without progress bars of its own, which would come and go with every block."""
    return with_settings(kernel, progress=False)


def progress_of(kernel: Any) -> bool | None:
    """What the kernel says about progress bars."""
    return next(iter(settings_of(kernel, "progress")), None)


def reserve(landmarks: int, memory: int) -> int:
    """Bytes for the matrix between landmarks, its eigenvectors and the work on them."""
    needed = 4 * 8 * landmarks**2
    if needed > memory:
        raise ValueError(
            f"n_landmarks={landmarks} need about {say_bytes(needed)} for the matrix between them, and memory is "
            f"{say_bytes(memory)}; take fewer landmarks or more memory"
        )
    return needed


def count_rows(columns: int, memory: int, reserved: int = 0) -> int:
    """Rows of a block with this many columns, at least one, of what `memory` leaves beside `reserved` bytes.

    Blocks of more than `BLOCK_BYTES` are no faster, so a large budget is not used up.
    """
    row = BYTES_PER_VALUE * columns
    if memory < reserved + row:
        raise ValueError(
            f"memory is {say_bytes(memory)}, and {columns} landmarks need at least {say_bytes(reserved + row)}; "
            "take more memory or fewer landmarks"
        )
    return max(1, min((memory - reserved) // row, BLOCK_BYTES // (8 * columns)))


def split(X: SequenceBatch, rows: int) -> Iterator[tuple[slice, SequenceBatch]]:
    """Consecutive parts of at most `rows` sequences and `BLOCK_STEPS` steps, and where they stand, without copies."""
    start = 0
    while start < len(X):
        most = int(np.searchsorted(X.offsets, X.offsets[start] + BLOCK_STEPS, side="right")) - 1
        stop = min(start + rows, len(X), max(most, start + 1))
        yield slice(start, stop), X.take(np.arange(start, stop))
        start = stop


def precision_of(kernel: Pairwise, K: Array) -> np.dtype[Any]:
    """float32 if the kernel, or one that it is made of, computes in that, else float64; `K` are values of it."""
    return np.dtype(np.float32 if np.dtype(np.float32) in (kernel.dtype, K.dtype) else np.float64)


def default_tolerance(precision: np.dtype[Any]) -> float:
    """Eigenvalues below this part of the largest are rounding of kernel values: a hundred units in the last place."""
    return 100 * float(np.finfo(precision).eps)


# -- the Nyström formula -----------------------------------------------------------------------------------------------


class NystromMap(NamedTuple):
    """φ(x) = components k(Z, x), so that φ(x)·φ(y) = k(x, Z) K_ZZ⁺ k(Z, y).

    Attributes
    ----------
    components : ndarray of shape (rank, m)
        Rows u / √λ of eigenpairs K_ZZ u = λ u, largest first.
    eigenvalues : ndarray of shape (rank,)
        Those λ.
    tolerance : float
        Eigenvalues up to this part of the largest were left out.
    precision : dtype
        In which the kernel computes.
    """

    components: Array
    eigenvalues: Array
    tolerance: float
    precision: np.dtype[Any]


def map_of(landmarks: PreparedSequences, tolerance: float | None = None) -> NystromMap:
    """The map of these landmarks; of rank 0 if the kernel is zero between all of them."""
    K = landmarks.between()
    precision = precision_of(landmarks.pairwise, K)
    noise = default_tolerance(precision)  # by which rounding may have moved eigenvalues
    tolerance = noise if tolerance is None else float(tolerance)
    K = np.asarray(K, dtype=np.float64)
    value, vector = linalg.eigh((K + K.T) / 2, overwrite_a=True, check_finite=False)
    largest = float(value[-1])
    if value[0] < -max(tolerance, noise) * max(largest, 0.0) or largest < 0:
        raise ValueError(
            f"the kernel is not positive semi-definite: eigenvalues between the landmarks go from {value[0]:.3g} to "
            f"{largest:.3g}, so there are no features with these products"
        )
    kept = value > tolerance * largest
    value, vector = value[kept][::-1], vector[:, kept][:, ::-1]
    return NystromMap(np.ascontiguousarray((vector / np.sqrt(value)).T), value, tolerance, precision)


def features(
    landmarks: PreparedSequences,
    X: SequenceBatch,
    components: Array,
    memory: int,
    *,
    dtype: np.dtype[Any] | None = None,
    reserved: int = 0,
    progress: bool | None = False,
    unit_rows: bool = False,
) -> Array:
    """(n, rank) features of `X`, from blocks of rows; products in the precision of `components`, results in `dtype`."""
    rows = count_rows(len(landmarks), memory, reserved)
    found = np.empty((len(X), len(components)), components.dtype if dtype is None else dtype)
    with progress_bar("features", len(X), progress) as advance:
        for place, part in split(X, rows):
            K = landmarks.gram(part).astype(components.dtype, copy=False)
            if found.dtype == components.dtype:
                np.matmul(K, components.T, out=found[place])
            else:
                with np.errstate(over="ignore"):  # reported just below
                    found[place] = K @ components.T
            if unit_rows:
                size = np.linalg.norm(found[place], axis=1, keepdims=True)
                np.divide(found[place], size, out=found[place], where=size > 0)
            if not np.isfinite(found[place]).all():
                raise ValueError(f"features are too large for {found.dtype}; take float64, or scale the sequences down")
            advance(len(part))
    return found


# -- landmarks ---------------------------------------------------------------------------------------------------------


def choose_landmarks(
    kernel: Any, X: SequenceBatch, count: int, selection: str, random: np.random.RandomState, memory: int
) -> Indices:
    """Positions of at most `count` landmarks in `X`; see `NystromFeatures` for what `selection` means."""
    if count >= len(X):
        return np.arange(len(X))
    if selection == "uniform":
        return np.sort(random.choice(len(X), count, replace=False)).astype(np.int64)
    at = np.arange(len(X))
    if len(X) > CANDIDATES * count:
        at = np.sort(random.choice(len(X), CANDIDATES * count, replace=False))
        X = X.take(at)
    chosen = (spread_out if selection == "kmeans++" else hard_to_explain)(kernel, X, count, random, memory)
    return at[chosen].astype(np.int64)


def spread_out(kernel: Any, X: SequenceBatch, count: int, random: np.random.RandomState, memory: int) -> Indices:
    """k-means++ seeding: each landmark drawn with probability proportional to the distance to the nearest before it.

    The distance is squared and in feature space, k(x, x) + k(z, z) - 2 k(x, z). Draws are made many at a time, since
    columns of kernel values are cheaper together. That changes nothing: a draw made by the distances d' before this
    round and kept with probability d/d' follows the distances d after the draws kept before it.

    Duplicates of a landmark are never drawn, so there may be fewer landmarks than asked for.
    """
    all_ = PreparedSequences(kernel, X)
    chosen = [int(random.randint(len(X)))]
    first = all_.gram(X.take(chosen))
    rounding = default_tolerance(precision_of(all_.pairwise, first))
    size = _squares(all_.pairwise, X)
    far = _distance(first[0], size, chosen[0], rounding)
    most = max(1, min(COLUMNS, memory // (BYTES_PER_VALUE * len(X))))
    while len(chosen) < count and far.any():
        draws = random.choice(len(X), min(most, len(chosen), count - len(chosen)), p=far / far.sum())
        before = far
        for values, draw in zip(all_.gram(X.take(draws)), draws, strict=True):
            if random.random_sample() * before[draw] < far[draw]:
                chosen.append(int(draw))
                far = np.minimum(far, _distance(values, size, draw, rounding))
    return np.array(chosen, dtype=np.int64)


def _squares(kernel: Pairwise, X: SequenceBatch) -> Array:
    """k(x, x) for every x, without the noise that some kernels add on the diagonal of kernel(X)."""
    few = kernel.prepare(X.take(np.arange(min(len(X), 8))))
    if np.allclose(kernel.diagonal(few), np.diagonal(kernel.pairs(few, few)), rtol=1e-5, atol=0.0):
        return np.asarray(kernel.diagonal(kernel.prepare(X)), dtype=np.float64)
    parts = [kernel.prepare(part) for _, part in split(X, 16)]
    return np.asarray(np.concatenate([np.diagonal(kernel.pairs(part, part)) for part in parts]), dtype=np.float64)


def _distance(values: Array, size: Array, at: int, rounding: float) -> Array:
    """Squared distances to sequence `at`; zero where they are rounding, and at that sequence itself."""
    both = size + size[at]
    distance = both - 2 * values.astype(np.float64)
    distance[distance <= rounding * both] = 0.0
    distance[at] = 0.0
    return np.asarray(distance)


def hard_to_explain(kernel: Any, X: SequenceBatch, count: int, random: np.random.RandomState, memory: int) -> Indices:
    """Landmarks drawn by approximate ridge leverage scores l_i = (K (K + λI)⁻¹)_ii.

    A uniform pilot S of `count` sequences stands for the others: K is replaced by K_nS (n/s) K_Sn where it is inverted,
    which gives, by Woodbury,

        l_i ≈ (1/λ) (k(x_i, x_i) - k(x_i, S) (K_SS + (s/n) λ I)⁻¹ k(S, x_i)),

    at most 1. What the pilot doesn't explain scores high. λ is the mean tail, (1/c) Σ_{j>c} λ_j with c = count/2 and
    the eigenvalues of K estimated by (n/s) times those of K_SS.
    """
    n = len(X)
    pilot = PreparedSequences(kernel, X.take(np.sort(random.choice(n, count, replace=False))))
    K = pilot.gram(pilot.sequences)
    rounding = default_tolerance(precision_of(pilot.pairwise, K))
    K = np.asarray(K, dtype=np.float64)
    value, vector = linalg.eigh((K + K.T) / 2)
    value = np.maximum(value, 0.0)  # rounding can leave them a little below zero
    if value[-1] == 0:
        return np.sort(random.choice(n, count, replace=False)).astype(np.int64)
    half = max(1, count // 2)
    share = count / n
    ridge = max(value[: count - half].sum() / share / half, rounding * value[-1])
    size = _squares(pilot.pairwise, X)
    score = np.empty(n)
    for place, part in split(X, count_rows(count, memory, reserve(count, memory))):
        explained = np.square(pilot.gram(part) @ vector) / (value + share * ridge)
        score[place] = (size[place] - explained.sum(axis=1)) / ridge
    # A floor far below any score of use, so that there are always enough to draw.
    score = np.clip(score, 1e-12, 1.0)
    return np.sort(random.choice(n, count, replace=False, p=score / score.sum())).astype(np.int64)
