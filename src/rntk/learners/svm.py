"""Support vector classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from ..kernels.pairwise import gram, in_blocks
from ..sequences import SequenceBatch
from .base import Array, KernelLearner


class RNTKClassifier(ClassifierMixin, KernelLearner):  # type: ignore[misc]
    """C-support vector machine on sequences of any length.

    Parameters
    ----------
    kernel : None for `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.
    C : weight of errors against margin. Kernels of unit size, `RNTK(normalize=True)`, make one value mean the same for
        every data set.
    class_weight : "balanced", a dictionary, or None.
    tol, max_iter : when libsvm stops; -1 is no limit.

    Attributes
    ----------
    classes_ : the labels. kernel_ : the kernel used. svc_ : the fitted scikit-learn `SVC`.
    support_, support_sequences_ : which training sequences matter, and those sequences; nothing else is kept.
    n_iter_ : iterations of libsvm, one number per pair of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in (20, 30, 25, 28)]
    >>> y = ["slow"] * 4 + ["fast"] * 4
    >>> model = RNTKClassifier(RNTK(normalize=True, readout="mean"), C=10).fit(X, y)
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKClassifier:
        """Fit to sequences `X` and labels `y`, one per sequence; a weight of zero is as if it were not there."""
        batch = self._read_training(X)
        y = check_labels(y, len(batch))
        self.kernel_ = self._make_kernel()
        self._fit_gram(gram(self.kernel_, batch), batch, y, sample_weight)
        return self

    def _fit_gram(self, K: Array, batch: SequenceBatch, y: Array, sample_weight: Any = None) -> None:
        used = np.arange(len(batch))
        if sample_weight is not None:
            # libsvm leaves these out too, but then counts its support vectors among those that remain: scikit-learn
            # would look for them in the wrong columns of a Gram matrix.
            sample_weight = _check_sample_weight(sample_weight, K)
            used = np.flatnonzero(sample_weight > 0)
            if len(np.unique(y[used])) < 2:
                raise ValueError("the sequences of positive weight have only one class or none; two are needed")
            K, y, sample_weight = K[np.ix_(used, used)], y[used], sample_weight[used]
        self.svc_ = SVC(
            kernel="precomputed", C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter
        ).fit(K, y, sample_weight)
        self.classes_ = self.svc_.classes_
        self.n_iter_ = self.svc_.n_iter_
        self.support_ = used[self.svc_.support_]
        self.support_sequences_ = batch.take(self.support_)
        self.n_training_ = len(used)

    def _evaluate(self, X: Any, method: str) -> Array:
        new = self._read_new(X)

        def evaluate(part: SequenceBatch) -> Array:
            # libsvm reads the columns of support vectors and no others.
            K = np.zeros((len(part), self.n_training_))
            K[:, self.svc_.support_] = gram(self.kernel_, part, self.support_sequences_)
            return np.asarray(getattr(self.svc_, method)(K))

        return in_blocks(new, self.n_training_, evaluate)

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, else (n, classes): how far on the side of each class."""
        return self._evaluate(X, "decision_function")

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        return self._evaluate(X, "predict")


def check_labels(y: Any, count: int) -> Array:
    """Labels as a vector, one per sequence, of at least two classes."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if len(y) != count:
        raise ValueError(f"{count} sequences and {len(y)} labels: there must be one label per sequence")
    if y.dtype.kind in "OSUT":
        missing = [i for i, label in enumerate(y.tolist()) if _is_missing(label)]
        if missing:
            named = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
            raise ValueError(
                f"{len(missing)} of {count} labels are missing (None, NaN or empty), at positions {named}; "
                "leave those sequences out, or give their class a name"
            )
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if len(np.unique(y)) < 2:
        raise ValueError(f"the labels have only one class ({y[0]!r}); a classifier needs at least two")
    return np.asarray(y)


def _is_missing(label: Any) -> bool:
    """None, NaN, pandas' NA, or nothing but spaces."""
    if isinstance(label, (str, bytes)):
        return not label.strip()
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label
