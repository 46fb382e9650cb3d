"""What all learners share: reading data, kernel values of any kernel on it, and the training side kept prepared."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from .. import gram as gram_room
from ..kernels import RNTK, pairwise
from ..kernels.pairwise import compares_vectors, read_sequences, settings_of
from ..runtime import progress_bar
from ..sequences import SequenceBatch, check_channels
from ..sequences.targets import Array

#: Bytes of kernel values held at once during prediction.
BLOCK_BYTES = 1 << 26


class Term(NamedTuple):
    """A sum of kernel values, Σ_j k(view(x), z_j) c_j, part of what a model says of x.

    Attributes
    ----------
    kernel : object
        The kernel k.
    sequences : SequenceBatch
        What x is compared with, z.
    coefficients : ndarray of shape (n, k)
        A column of c for each column of the decision function, or of the targets.
    view : callable or None
        From a batch to what the kernel sees of it, sequence by sequence; None is the batch itself.
    """

    kernel: Any
    sequences: SequenceBatch
    coefficients: Array
    view: Callable[[SequenceBatch], SequenceBatch] | None = None

    def look(self, batch: SequenceBatch) -> SequenceBatch:
        """What the kernel sees."""
        return batch if self.view is None else self.view(batch)

    def seen_through(self, view: Callable[[SequenceBatch], SequenceBatch]) -> Term:
        """The same of sequences that `view` makes first."""
        return self._replace(view=lambda batch: self.look(view(batch)))


class KernelLearner(BaseEstimator):  # type: ignore[misc]
    """Base of the learners. Their parameter `kernel` is None, a kernel object, or a function of two sets.

    Those that predict keep in `sequences_` what new sequences are compared with.
    """

    kernel: Any
    kernel_: Any
    sequences_: SequenceBatch

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if (fit := vars(cls).get("fit")) is None:
            return

        @wraps(fit)
        def all_or_nothing(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = dict(vars(self))
            try:
                return fit(self, *args, **kwargs)
            except BaseException:  # the learner is what it was
                self.__dict__ = before
                raise

        cls.fit = all_or_nothing

    def _read_training(self, X: Any) -> SequenceBatch:
        batch = read_sequences(X)
        self.n_channels_in_ = batch.n_channels
        if batch.is_equal_length:
            self.n_features_in_ = batch.max_length
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_  # of an earlier fit: unequal lengths have no number of features
        return batch

    def _read_new(self, X: Any) -> SequenceBatch:
        check_is_fitted(self)
        batch = read_sequences(X)
        check_channels(batch, self.n_channels_in_, self)
        if (
            any(map(compares_vectors, self._fitted_kernels()))
            and batch.is_equal_length
            and batch.max_length != self.n_features_in_
        ):
            raise ValueError(
                f"X has {batch.max_length} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: its kernel compares sequences step by step. Kernels such as RNTK take any length"
            )
        return batch

    def _fitted_kernels(self) -> list[Any]:
        return [self.kernel_]

    def _terms(self, x: SequenceBatch) -> list[Term] | None:
        """Sums of kernel values whose derivative by a sequence, at `x`, is that of what the model says of it.

        What it says is `decision_function`, or of a regressor `predict`. None where there are no such sums.
        """
        return None

    # -- what new sequences are compared with: prepared on first use, never pickled or saved -----------------------

    def _keep(self, sequences: SequenceBatch) -> None:
        self.sequences_ = sequences
        self._prepared = self._prepare()

    def _prepare(self) -> Any:
        return PreparedSequences(self.kernel_, self.sequences_)

    def _training(self) -> Any:
        if "_prepared" not in self.__dict__:  # loaded, not fitted
            self._prepared = self._prepare()
        return self._prepared

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_prepared"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class PreparedSequences:
    """Sequences that others are compared with again and again: what belongs to them alone is computed once.

    Parameters
    ----------
    kernel : object
        Any kernel that `rntk.kernels.pairwise.of` takes.
    sequences : SequenceBatch
        The columns of what `gram` returns.
    """

    def __init__(self, kernel: Any, sequences: SequenceBatch) -> None:
        self.pairwise = pairwise.of(kernel)
        self.sequences = sequences
        self._side: Any = None

    def __len__(self) -> int:
        return len(self.sequences)

    def gram(self, new: SequenceBatch) -> Array:
        """Kernel values of new sequences with these, in the kernel's precision."""
        return self.compare(new)[1]

    def between(self) -> Array:
        """Kernel values of these sequences with one another.

        kernel(Z, Z), not kernel(Z): noise that a kernel adds on its diagonal is none of what is shared.
        """
        return self.gram(self.sequences)

    def in_blocks(self, new: SequenceBatch, use: Callable[[Any, Array], Array]) -> Array:
        """`use(side, K)` of consecutive parts of `new`, joined, so that few kernel values exist at once.

        `side` is the part as `pairwise` has prepared it, K its kernel values with these sequences.
        """
        rows = max(1, BLOCK_BYTES // (8 * len(self)))
        found = []
        with progress_bar("Prediction", len(new), shows_progress(self.pairwise.kernel)) as bar:
            for a in range(0, len(new), rows):
                part = new if len(new) <= rows else new.take(np.arange(a, min(a + rows, len(new))))
                with bar.part(len(part)):
                    found.append(use(*self.compare(part)))
        return np.concatenate(found)

    def compare(self, new: SequenceBatch) -> tuple[Any, Array]:
        """New sequences as `pairwise` prepares them, and their kernel values with these."""
        if self._side is None:
            self.pairwise.plan(self.sequences)  # what is prepared later has at least what these need
            self._side = self.pairwise.prepare(self.sequences)
        side = self.pairwise.prepare(new)
        return side, self.pairwise.pairs(side, self._side)


def as_kernel(kernel: Any) -> Any:
    """What a user calls a kernel, as one that may be changed: `RNTK()` for None, copies of kernels, functions."""
    if kernel is None:
        return RNTK()
    if isinstance(kernel, Kernel):
        if pairwise.of(kernel).per_step:
            raise ValueError(
                f'{kernel} has no single value per pair of sequences; take readout="last" or "mean" instead of '
                'readout="sequence"'
            )
        return clone(kernel)
    if callable(kernel) and not isinstance(kernel, type):
        return kernel
    raise ValueError(
        f"kernel must be a kernel of rntk or scikit-learn, or a function of two sets of sequences, not {kernel!r}"
    )


def shows_progress(kernel: Any) -> bool | None:
    """What a kernel, or one of those that it is made of, says about progress bars."""
    said = settings_of(kernel, "progress")
    return True if True in said else False if False in said else None


def gram(kernel: Any, X: SequenceBatch, cache: Any = None) -> Array:
    """The Gram matrix of `X` with itself, as float64; kept in the folder `cache`, or read from there."""
    K = pairwise.of(kernel).gram(X) if cache is None else gram_room.cached(cache, kernel, X).to_array()
    return np.asarray(K, dtype=np.float64)
