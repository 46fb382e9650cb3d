"""Explicit features of kernels that average over steps, linear in the number of sequences and in their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import check_count
from ..kernels import RNTK, pairwise
from ..kernels.pairwise import AgainstLast, is_ours, with_settings
from ..network import Readout
from ..sequences import SequenceBatch
from ..sequences.targets import Array
from .base import PreparedSequences, as_kernel
from .landmarks import CANDIDATES, Indices, LandmarkFeatures, choose_landmarks, count_rows, quiet, reserve


class StepFeatures(LandmarkFeatures):
    """Features of sequences of any length whose products approximate a kernel that averages over steps.

    Such a kernel is a product of means, k(x, x') = mean_t mean_s Θ(x₁…x_t, x'₁…x'_s): so landmarks needn't be whole
    sequences. They are m steps of the training sequences, each a short piece z that ends there and holds what the
    state remembers. With W = Θ(z, z') between their last steps the features are Φ(x) = mean_t Θ(x₁…x_t, z) W^(-1/2),
    of norm one where the kernel is normalised. A sequence of T steps costs m T r steps of the recursion, whatever the
    number of sequences, where each pair of them costs the kernel T². A linear model on Φ is a kernel machine on all.

    Parameters
    ----------
    kernel : None or RNTK, default=None
        `RNTK(readout="mean")`, or one with another readout that weighs steps, of any activation and depth, with
        tied weights. Threads and progress bars are what it says.
    n_landmarks : int, default=256
        How many pieces; all steps of all sequences where there are fewer. Error falls with their number.
    history : int or None, default=32
        Steps of a piece at most: what lies further back is not in the features. 16 are enough for ReLU with sigma_w of
        1.0, 32 with 1.25, more for networks that remember longer; `kernel_error` tells. None takes every piece from the
        first step on; with all steps as landmarks the products are then exact, up to `rank_tolerance`.
    selection : {"uniform", "kmeans++", "leverage"}, default="uniform"
        "uniform" takes as many steps of every sequence, at random; the others choose among ten times as many of those,
        as in `NystromFeatures`, by the kernel between pieces.
    rank_tolerance : float or None, default=None
        Eigenvalues of W, whose diagonal is one, up to this part of the largest are left out. None is 100 units in the
        last place of the kernel's precision, 2e-14 or 1e-5: below, they are rounding.
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
        From which training sequence each landmark comes.
    landmark_steps_ : ndarray of shape (m,)
        The step of it at which the piece ends, from 0.
    sequences_ : SequenceBatch
        The pieces.
    components_ : ndarray of shape (rank, m)
        What kernel values with the pieces are multiplied by, transposed.
    rank_ : int
        Number of features.
    eigenvalues_ : ndarray of shape (rank,)
        Of W, largest first.
    kernel_ : RNTK
        The kernel used.
    rank_tolerance_ : float
        The tolerance used.

    Raises
    ------
    ValueError
        A parameter is none; the kernel has no readout that averages, or its weights are untied, so that steps have
        nothing in common; the landmarks don't fit into `memory`.

    See Also
    --------
    NystromFeatures : Whole sequences as landmarks, for kernels with any readout.

    Notes
    -----
    `kernel_error` says how far the products are from the kernel. Read in both directions, a piece stands for one step
    read forwards and one read backwards together, so that more of them are needed.

    The initial state of `sigma_h` that a sequence shares only with itself is not in the features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from rntk import RNTK, StepFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in range(20, 60)]
    >>> y = np.repeat(["slow", "fast"], 40)
    >>> kernel = RNTK(sigma_w=1.0, sigma_b=0.3, readout="mean", normalize=True)
    >>> model = make_pipeline(StepFeatures(kernel, n_landmarks=50, random_state=0), RidgeClassifierCV())
    >>> model.fit(X, y).score(X, y)
    1.0
    >>> model[0].kernel_error(X) < 0.01
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        n_landmarks: int = 256,
        history: int | None = 32,
        selection: str = "uniform",
        rank_tolerance: float | None = None,
        memory: Any = "1GB",
        dtype: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.history = history
        self.selection = selection
        self.rank_tolerance = rank_tolerance
        self.memory = memory
        self.dtype = dtype
        self.random_state = random_state

    def _check_parameters(self) -> tuple[int, np.dtype[Any] | None]:
        if self.history is not None:
            check_count("history", self.history, 1)
        return super()._check_parameters()

    def _kernel(self) -> Any:
        return check_readout(RNTK(readout="mean") if self.kernel is None else as_kernel(self.kernel))

    @property
    def _unit_rows(self) -> bool:
        return bool(self.kernel_.network().normalize)

    def _choose(self, batch: SequenceBatch, random: np.random.RandomState, memory: int) -> SequenceBatch:
        count = min(int(self.n_landmarks), len(batch.values))
        count_rows(count, memory, reserve(count, memory))  # refused before the work, not after
        among = count if self.selection == "uniform" else CANDIDATES * count
        sequence, step = draw_steps(batch, self.kernel_.network().readout, among, random)
        pieces = pieces_of(batch, sequence, step, self.history)
        if self.selection != "uniform":
            chosen = choose_landmarks(last_of(self.kernel_), pieces, count, self.selection, random, memory)
            sequence, step, pieces = sequence[chosen], step[chosen], pieces.take(chosen)
        self.landmark_indices_, self.landmark_steps_ = sequence, step
        return pieces

    def _prepare(self) -> PreparedPieces:
        return PreparedPieces(quiet(self.kernel_), self.sequences_)


class PreparedPieces(PreparedSequences):
    """Pieces whose last steps are compared with means over the steps of other sequences."""

    pairwise: AgainstLast

    def __init__(self, kernel: RNTK, pieces: SequenceBatch) -> None:
        super().__init__(kernel, pieces)
        self.pairwise = AgainstLast(kernel)

    def between(self) -> Array:
        """Kernel values between the last steps."""
        return pairwise.of(last_of(self.pairwise.kernel)).gram(self.sequences, self.sequences)

    def compare(self, new: SequenceBatch) -> tuple[Any, Array]:
        if self._side is None:
            self.pairwise.plan(self.sequences)
            self._side = self.pairwise.prepare_last(self.sequences)
        side = self.pairwise.prepare(new)
        return side, self.pairwise.pairs(side, self._side)


def check_readout(kernel: Any) -> RNTK:
    """The kernel, if it averages over steps that have something in common."""
    if not (isinstance(kernel, RNTK) and is_ours(kernel)):
        raise ValueError(
            f'StepFeatures takes an RNTK with readout="mean", or one that weighs steps, not {kernel!r}; '
            "NystromFeatures takes any kernel"
        )
    network = kernel.network()
    if not network.readout.averages:
        raise ValueError(
            f'StepFeatures needs a kernel that averages over steps: take readout="mean" in {kernel!r}, '
            "or NystromFeatures"
        )
    if not network.tied:
        raise ValueError(
            f"in {kernel!r} different steps share no weights, so short pieces can't stand for them; take tied=True, or "
            "NystromFeatures"
        )
    return kernel


def last_of(kernel: RNTK) -> Any:
    """The kernel between last steps, normalised."""
    return with_settings(kernel, readout="last", normalize=True, progress=False)


# -- steps -------------------------------------------------------------------------------------------------------------


def draw_steps(
    batch: SequenceBatch, readout: Readout, count: int, random: np.random.RandomState
) -> tuple[Indices, Indices]:
    """At most `count` different steps, (sequence, step) in order, of every sequence as many as of the others.

    Within a sequence they are drawn by what they count for in the readout. Sequences with few steps that count give
    all of theirs.
    """
    weights = readout.step_weights(batch.lengths)
    chance = np.ones(len(batch.values)) if weights is None else np.abs(weights)
    left = np.add.reduceat(chance > 0, batch.offsets[:-1], dtype=np.int64)
    if not left.any():
        raise ValueError(f"{readout!r} gives every step of these sequences the weight zero")
    taken = np.zeros_like(left)
    count = min(count, int(left.sum()))
    while count:
        more = np.flatnonzero(left > taken)
        more = more if len(more) <= count else np.sort(random.choice(more, count, replace=False))
        taken[more] += 1
        count -= len(more)
    sequence = np.repeat(np.arange(len(batch)), taken)
    step = []
    for i in np.flatnonzero(taken):
        own = chance[batch.offsets[i] : batch.offsets[i + 1]]
        step.append(np.sort(random.choice(len(own), taken[i], replace=False, p=own / own.sum())))
    return sequence, np.concatenate(step).astype(np.int64)


def pieces_of(batch: SequenceBatch, sequence: Indices, step: Indices, history: int | None) -> SequenceBatch:
    """The `history` steps of each `sequence` that end at its `step`; fewer where it begins later."""
    lengths = step + 1 if history is None else np.minimum(step + 1, history)
    ends = np.cumsum(lengths)
    first = batch.offsets[sequence] + step + 1 - lengths
    rows = np.repeat(first - (ends - lengths), lengths) + np.arange(ends[-1])
    return SequenceBatch.from_checked(batch.values[rows], np.concatenate([[0], ends]).astype(np.int64))
