"""Explicit features of a kernel from some of the sequences, for linear models on many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..sequences import SequenceBatch
from .base import PreparedSequences
from .landmarks import LandmarkFeatures, choose_landmarks, count_rows, quiet, reserve


class NystromFeatures(LandmarkFeatures):
    """Features of sequences of any length whose products approximate a kernel: ΦΦᵀ = K_nm K_mm⁺ K_mn.

    The m landmarks are some of the training sequences. n sequences cost n m kernel values instead of n², and a linear
    model on Φ is a kernel machine on all of them. With every sequence a landmark the products are exact.

    Parameters
    ----------
    kernel : None, kernel or function, default=None
        `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix. It must be positive
        semi-definite. Threads and progress bars are what it says.
    n_landmarks : int, default=500
        How many; all sequences where there are fewer.
    selection : {"uniform", "kmeans++", "leverage"}, default="uniform"
        "kmeans++" draws each far from those before it, by the squared distance k(x, x) + k(z, z) - 2 k(x, z);
        "leverage" draws by ridge leverage scores, estimated with a uniform pilot of as many landmarks. The last two
        look at a uniform sample of ten sequences per landmark where there are more. They pay where a few sequences are
        unlike the rest.
    rank_tolerance : float or None, default=None
        Eigenvalues of K_mm up to this part of the largest are left out. None is 100 units in the last place of the
        kernel's precision, 2e-14 or 1e-5: below, they are rounding. Nothing is added to the diagonal.
    memory : int or str, default="1GB"
        Budget for kernel values and the work on them, bytes or a text. The features themselves, which the caller asked
        for, come on top.
    dtype : "float32", "float64" or None, default=None
        Of the features; None is the kernel's own.
    random_state : int, RandomState or None, default=None
        For the choice of landmarks.

    Attributes
    ----------
    landmark_indices_ : ndarray of shape (m,)
        Which training sequences are landmarks. "kmeans++" never takes a duplicate, so it may find fewer than asked for.
    sequences_ : SequenceBatch
        The landmarks.
    components_ : ndarray of shape (rank, m)
        Φ = k(X, sequences_) components_.T.
    rank_ : int
        Number of features.
    eigenvalues_ : ndarray of shape (rank,)
        Of K_mm, largest first.
    kernel_ : object
        The kernel used.
    rank_tolerance_ : float
        The tolerance used.

    Raises
    ------
    ValueError
        A parameter is none; the landmarks don't fit into `memory`; the kernel is zero between all landmarks, or not
        positive semi-definite.

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
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.rank_tolerance = rank_tolerance
        self.memory = memory
        self.dtype = dtype
        self.random_state = random_state

    def _choose(self, batch: SequenceBatch, random: np.random.RandomState, memory: int) -> SequenceBatch:
        count = min(int(self.n_landmarks), len(batch))
        count_rows(count, memory, reserve(count, memory))  # refused before the work, not after
        self.landmark_indices_ = choose_landmarks(quiet(self.kernel_), batch, count, self.selection, random, memory)
        return batch.take(self.landmark_indices_)

    def _prepare(self) -> PreparedSequences:
        return PreparedSequences(quiet(self.kernel_), self.sequences_)
