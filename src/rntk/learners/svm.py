"""Support vector classification."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC

from ..sequences import SequenceBatch
from ..sequences.targets import Array, read_labels, read_weights
from .base import KernelLearner, Term, as_kernel, gram


class RNTKSVC(ClassifierMixin, KernelLearner):  # type: ignore[misc]
    """C-support vector machine on sequences of any length.

    Parameters
    ----------
    kernel : None, kernel or function, default=None
        `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.
    C : float, default=1.0
        Weight of errors against margin. Kernels of unit size, `RNTK(normalize=True)`, make one value mean the same for
        every data set.
    class_weight : "balanced", dict or None, default=None
        Factors of C for each class.
    tol : float, default=1e-3
        When libsvm stops.
    max_iter : int, default=-1
        Its most iterations; -1 is no limit.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The labels.
    kernel_ : object
        The kernel used.
    support_ : ndarray of shape (n_support,)
        Which training sequences matter, class by class.
    sequences_ : SequenceBatch
        Those sequences; no others are kept.
    n_support_ : ndarray of shape (classes,)
        How many there are of each class.
    dual_coef_ : ndarray of shape (classes - 1, n_support)
        Their coefficients, as in scikit-learn's `SVC`: those of a sequence of class i against every other class.
    intercept_ : ndarray of shape (classes (classes - 1) / 2,)
        One for every pair of classes.
    n_iter_ : ndarray of shape (classes (classes - 1) / 2,)
        Iterations of libsvm.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKSVC
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in (20, 30, 25, 28)]
    >>> y = ["slow"] * 4 + ["fast"] * 4
    >>> model = RNTKSVC(RNTK(normalize=True, readout="mean"), C=10).fit(X, y)
    >>> model.predict([np.sin(np.arange(40) * 0.6)])
    array(['fast'], dtype='<U4')
    """

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKSVC:
        """Fit to sequences `X` and labels `y`, one per sequence; a weight of zero is as if it were not there."""
        batch = self._read_training(X)
        y = read_labels(y, len(batch))
        used, weight = read_weights(sample_weight, len(batch))
        batch, y = batch.take(used), read_labels(y[used], len(used))
        self.kernel_ = as_kernel(self.kernel)
        machine = SVC(
            kernel="precomputed", C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter
        ).fit(gram(self.kernel_, batch), y, weight)
        self.classes_ = machine.classes_
        self.support_ = used[machine.support_]
        self.n_support_ = machine.n_support_
        self.dual_coef_ = machine.dual_coef_
        self.intercept_ = machine.intercept_
        self.n_iter_ = machine.n_iter_
        self._keep(batch.take(machine.support_))
        return self

    def _terms(self, x: SequenceBatch) -> list[Term] | None:
        # Of more classes, votes have no derivative and what follows them is no sum.
        return [Term(self.kernel_, self.sequences_, self.dual_coef_.T)] if len(self.classes_) == 2 else None

    def _compare(self, X: Any) -> Array:
        """(n, pairs of classes): positive for the first class of a pair; of two classes, for the second."""
        new = self._read_new(X)
        ends = np.cumsum(self.n_support_)
        classes = [slice(end - count, end) for end, count in zip(ends, self.n_support_, strict=True)]

        def compare(_: Any, K: Array) -> Array:
            # (n, classes - 1) for each class: what its sequences say against each of the others.
            terms = [K[:, own] @ self.dual_coef_[:, own].T for own in classes]
            return np.stack(
                [terms[i][:, j - 1] + terms[j][:, i] for i, j in combinations(range(len(classes)), 2)], axis=1
            )

        return np.asarray(self._training().in_blocks(new, compare) + self.intercept_)

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, positive for the second; else (n, classes): votes, and among equals the margins."""
        values = self._compare(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        votes, margins = self._tally(values)
        return np.asarray(votes + margins / (3 * (np.abs(margins) + 1)))  # never as much as half a vote

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`: those with most votes, of equals the first."""
        values = self._compare(X)
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(values[:, 0] >= 0).astype(np.int64)])
        return np.asarray(self.classes_[self._tally(values)[0].argmax(axis=1)])

    def _tally(self, values: Array) -> Array:
        """(n, classes) twice: how many pairs each class has won, and by how much in all."""
        votes, margins = tally = np.zeros((2, len(values), len(self.classes_)))
        for (i, j), value in zip(combinations(range(len(self.classes_)), 2), values.T, strict=True):
            votes[:, i] += value > 0
            votes[:, j] += value <= 0
            margins[:, i] += value
            margins[:, j] -= value
        return tally
