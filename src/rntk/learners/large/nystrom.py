"""Explicit features of a kernel from landmarks, for linear models on many sequences."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from ...errors import check_count
from ...runtime import parse_bytes
from ..base import Array, KernelLearner
from .approximation import features, map_of, reserve
from .blocks import count_rows, default_tolerance, precision_of, working_copy
from .landmarks import SELECTIONS, choose_landmarks


class NystromFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelLearner):  # type: ignore[misc]
    """Features of sequences of any length whose products approximate a kernel: ΦΦᵀ = K_nm K_mm⁺ K_mn.

    The m landmarks are some of the training sequences. n sequences cost n m kernel values instead of n², and a linear
    model on Φ is a kernel machine on all of them. With every sequence a landmark the products are exact.

    Parameters
    ----------
    kernel : None for `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix. It must be
        positive semi-definite.
    n_landmarks : how many; all sequences where there are fewer.
    selection : "uniform"; "kmeans++" draws each far from those before it, by the squared distance
        k(x, x) + k(z, z) - 2 k(x, z); "leverage" draws by ridge leverage scores, estimated with a uniform pilot of as
        many landmarks. The last two look at a uniform sample of ten sequences per landmark where there are more. They
        pay where a few sequences are unlike the rest.
    rank_tolerance : eigenvalues of K_mm up to this part of the largest are left out. None is 100 units in the last
        place of the kernel's precision, 2e-14 or 1e-5: below, they are rounding. Nothing is added to the diagonal.
    memory : budget for kernel values and the work on them, bytes or a text such as "1GB". The features themselves,
        which the caller asked for, come on top.
    dtype : of the features, "float32" or "float64"; None is the kernel's own.
    random_state : for the choice of landmarks.
    n_jobs : threads of rntk's kernels; None leaves that to each kernel.
    progress : None shows a bar on a terminal after two seconds; True always; False never.

    Attributes
    ----------
    landmark_indices_, landmarks_ : which training sequences, and those sequences. "kmeans++" never takes a duplicate,
        so it may find fewer than asked for.
    components_ : (rank, m); Φ = k(X, landmarks_) components_.T.
    rank_ : number of features. eigenvalues_ : (rank,), of K_mm, largest first.
    kernel_ : the kernel used. rank_tolerance_ : the tolerance used.

    Raises
    ------
    ValueError : a parameter is none; the landmarks don't fit into `memory`; the kernel is zero between all landmarks,
        or not positive semi-definite.

    Notes
    -----
    Noise that a kernel adds on the diagonal of `kernel(X)` only (`sigma_h` of `RNTK`, scikit-learn's `WhiteKernel`) is
    not in the features: it belongs into the ridge of the linear model.

    Features of many sequences are large: 100 000 with 2 000 landmarks are 800 MB in float32. Behind them in a pipeline,
    `Ridge(solver="cholesky", copy_X=False)` makes no copy of them, `RidgeClassifier` with the same options one.

    References
    ----------
    Williams and Seeger, *Using the Nyström method to speed up kernel machines*, NIPS 2000. Oglic and Gärtner, *Nyström
    method with kernel k-means++ samples as landmarks*, ICML 2017. Alaoui and Mahoney, *Fast randomized kernel ridge
    regression with statistical guarantees*, NIPS 2015. Musco and Musco, *Recursive sampling for the Nyström method*,
    NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from rntk import RNTK, NystromFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in range(20, 60)]
    >>> y = np.repeat(["slow", "fast"], 40)
    >>> kernel = RNTK(normalize=True, readout="mean")
    >>> model = make_pipeline(NystromFeatures(kernel, n_landmarks=20, random_state=0), RidgeClassifier(alpha=0.1))
    >>> model.fit(X, y).score(X, y)
    1.0
    >>> model[0].transform(X).shape
    (80, 20)
    """

    def __init__(
        self,
        kernel: Any = None,
        n_landmarks: int = 500,
        selection: str = "uniform",
        rank_tolerance: float | None = None,
        memory: Any = "1GB",
        dtype: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.rank_tolerance = rank_tolerance
        self.memory = memory
        self.dtype = dtype
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> NystromFeatures:
        """Choose landmarks among the sequences `X`; `y` is ignored."""
        memory, wanted = self._check_parameters()
        batch = self._read_training(X)
        self.kernel_ = self._make_kernel()
        kernel = working_copy(self.kernel_, self.n_jobs)
        count = min(int(self.n_landmarks), len(batch))
        count_rows(count, memory, reserve(count, memory))  # refused before the work, not after
        precision = precision_of(kernel, batch)
        noise = default_tolerance(precision)
        random = check_random_state(self.random_state)
        self.landmark_indices_ = choose_landmarks(kernel, batch, count, self.selection, random, memory)
        self.landmarks_ = batch.take(self.landmark_indices_)
        self.rank_tolerance_ = noise if self.rank_tolerance is None else float(self.rank_tolerance)
        found = map_of(kernel, self.landmarks_, self.rank_tolerance_, noise)
        if not len(found.eigenvalues):
            raise ValueError(f"the kernel is zero between all {count} landmarks: there is nothing to make features of")
        self.eigenvalues_ = found.eigenvalues
        self.rank_ = len(found.eigenvalues)
        # Of a kernel in double precision in that too: its values needn't fit into float32, even if the features do.
        self.components_ = found.components.astype(precision if wanted is None else np.result_type(precision, wanted))
        return self

    def transform(self, X: Any) -> Array:
        """(n, rank) features of the sequences in `X`."""
        new = self._read_new(X)
        memory, wanted = self._check_parameters()
        return features(
            working_copy(self.kernel_, self.n_jobs),
            new,
            self.landmarks_,
            self.components_,
            memory,
            dtype=wanted,
            progress=self.progress,
        )

    def _check_parameters(self) -> tuple[int, np.dtype[Any] | None]:
        """The budget in bytes and the precision asked for."""
        check_count("n_landmarks", self.n_landmarks, 1)
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection must be one of {', '.join(SELECTIONS)}, not {self.selection!r}")
        tolerance = self.rank_tolerance
        if tolerance is not None and not (
            isinstance(tolerance, numbers.Real) and not isinstance(tolerance, bool) and 0 <= float(tolerance) < 1
        ):
            raise ValueError(f"rank_tolerance must be a number from 0 to below 1, or None, not {tolerance!r}")
        if self.dtype is None:
            return parse_bytes(self.memory), None
        try:
            wanted = np.dtype(self.dtype)
        except TypeError:
            wanted = np.dtype(object)
        if wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32, float64 or None, not {self.dtype!r}")
        return parse_bytes(self.memory), wanted

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the precision is the kernel's, or asked for
        return tags
