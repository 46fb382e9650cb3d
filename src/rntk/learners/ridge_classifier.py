"""Classification by kernel ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from .base import Array
from .ridge import RidgeLearner
from .svm import check_labels


class RNTKRidgeClassifier(ClassifierMixin, RidgeLearner):  # type: ignore[misc]
    """Least squares classification of sequences of any length: one ridge regression per class, on targets ±1.

    Close to a support vector machine in accuracy, a single linear system for all classes, and with `solver="cg"` it
    never holds the Gram matrix. What it keeps is every sequence, where `RNTKClassifier` keeps support vectors.

    Parameters
    ----------
    kernel : None for `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.
    alpha : ridge, one number, or one per class (two classes are one regression).
    class_weight : "balanced", a dictionary, or None.
    solver, n_landmarks, memory, tol, max_iter, random_state, cache : as for `RNTKRegressor`.

    Attributes
    ----------
    classes_ : the labels. kernel_ : the kernel used.
    dual_coef_ : (n, classes), or (n, 1) of the second of two classes against the first.
    sequences_, n_iter_, residual_ : as in `RNTKRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in (20, 30, 25, 28)]
    >>> y = ["slow"] * 4 + ["fast"] * 4
    >>> model = RNTKRidgeClassifier(RNTK(normalize=True, readout="mean"), alpha=0.1).fit(X, y)
    >>> model.predict([np.sin(np.arange(40) * 0.6)])
    array(['fast'], dtype='<U4')
    """

    def __init__(
        self,
        kernel: Any = None,
        alpha: Any = 1.0,
        class_weight: Any = None,
        solver: str = "direct",
        n_landmarks: int = 500,
        memory: Any = "1GB",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        cache: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.class_weight = class_weight
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.cache = cache

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRidgeClassifier:
        """Fit to sequences `X` and labels `y`, one per sequence; a weight of zero is as if it were not there."""
        batch = self._read_training(X)
        y = check_labels(y, len(batch))
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, y, dtype=np.float64)
        if self.class_weight is not None:
            weight = compute_sample_weight(self.class_weight, y)
            sample_weight = weight if sample_weight is None else weight * sample_weight
        sides = LabelBinarizer(neg_label=-1, pos_label=1)
        targets = np.asarray(sides.fit_transform(y), dtype=np.float64)
        self.dual_coef_ = self._fit_targets(batch, targets, sample_weight)
        self.classes_ = sides.classes_
        return self

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, positive for the second; else (n, classes), largest for the class predicted."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        values = self.decision_function(X)
        return np.asarray(self.classes_[values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(np.int64)])
