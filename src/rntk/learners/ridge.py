"""Kernel ridge regression, and classification by it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.class_weight import compute_sample_weight

from ..errors import say_value
from ..sequences import SequenceBatch
from ..sequences.targets import Array, read_labels, read_values, read_weights
from .base import KernelLearner, Term, as_kernel, gram
from .conjugate import ConjugateGradients


class _Ridge(KernelLearner):
    """Kernel ridge regression of a table (n, targets), behind the regressor and the classifier."""

    def __init__(
        self,
        kernel: Any = None,
        alpha: Any = 1.0,
        solver: Any = "direct",
        random_state: Any = None,
        cache: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.solver = solver
        self.random_state = random_state
        self.cache = cache

    def _fit_table(self, batch: SequenceBatch, targets: Array, weight: Array | None) -> Array:
        """Dual coefficients (n, targets); sets everything else that is learned."""
        if self.solver != "direct" and not isinstance(self.solver, ConjugateGradients):
            raise ValueError(f'solver must be "direct" or ConjugateGradients(...), not {self.solver!r}')
        self.kernel_ = as_kernel(self.kernel)
        alpha = np.broadcast_to(check_ridge(self.alpha), targets.shape[1])
        root = None if weight is None else np.sqrt(weight)
        targets = targets if root is None else targets * root[:, None]
        self.__dict__.pop("residual_", None)  # of an earlier fit by the other solver
        if self.solver == "direct":
            K = gram(self.kernel_, batch, self.cache)
            K = K if root is None else K * np.outer(root, root)
            dual = np.empty(targets.shape)
            for value in np.unique(alpha):  # one factorisation for targets of one ridge
                dual[:, alpha == value] = solve_ridge(K, targets[:, alpha == value], float(value))
            self.n_iter_ = 1
        else:
            found = self.solver.solve(self.kernel_, batch, targets, alpha, root, self.random_state, self.cache)
            dual, self.n_iter_, self.residual_ = found.dual, found.n_iter, found.residual
        self._keep(batch)
        return dual if root is None else np.asarray(dual * root[:, None])

    def _terms(self, x: SequenceBatch) -> list[Term]:
        return [Term(self.kernel_, self.sequences_, self.dual_coef_.reshape(len(self.dual_coef_), -1))]

    def _values(self, X: Any) -> Array:
        """Values at the sequences in `X`, with as many columns as the dual coefficients."""
        new = self._read_new(X)
        return np.asarray(self._training().in_blocks(new, lambda _, K: K @ self.dual_coef_))


class RNTKRidge(RegressorMixin, _Ridge):  # type: ignore[misc]
    """Kernel ridge regression on sequences of any length: minimises ‖y - f‖² + alpha ‖f‖².

    It is the mean of infinitely many infinitely wide networks trained to the end by gradient descent (alpha = 0), or
    with the ridge of docs/theory.md.

    Parameters
    ----------
    kernel : None, kernel or function, default=None
        `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.
    alpha : float or array of shape (targets,), default=1.0
        The ridge. Zero interpolates; where the Gram matrix is singular (duplicate sequences, say) that means the
        least-squares solution of smallest norm.
    solver : "direct" or ConjugateGradients, default="direct"
        "direct" factorises the Gram matrix: 8 n² bytes, O(n³). `rntk.learners.ConjugateGradients()` finds the same
        solution from tiles of it, in bounded memory, for alpha > 0.
    random_state : int, RandomState or None, default=None
        For the landmarks of conjugate gradients.
    cache : path or None, default=None
        A folder that keeps Gram matrices, so that a second fit, with another alpha say, finds them.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, targets)
        One coefficient per training sequence.
    kernel_ : object
        The kernel used.
    sequences_ : SequenceBatch
        The training sequences, without those of weight zero.
    n_iter_ : int
        Iterations of conjugate gradients; 1 for "direct".
    residual_ : float
        Relative residual of the worst target; only of conjugate gradients.

    Warns
    -----
    ConvergenceWarning
        Conjugate gradients did not reach their `tol`; the message says how far they came.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKRidge
    >>> from rntk.learners import ConjugateGradients
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal(n) for n in (5, 8, 6, 9, 7, 5)]
    >>> y = [x.mean() for x in X]
    >>> RNTKRidge(alpha=0.0).fit(X, y).score(X, y) > 0.999
    True
    >>> model = RNTKRidge(alpha=0.1, solver=ConjugateGradients(n_landmarks=3), random_state=0).fit(X, y)
    >>> bool(np.allclose(model.dual_coef_, RNTKRidge(alpha=0.1).fit(X, y).dual_coef_))
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRidge:
        """Fit to sequences `X` and targets `y`, (n,) or (n, targets)."""
        batch = self._read_training(X)
        y = read_values(y, len(batch))
        used, weight = read_weights(sample_weight, len(batch))
        y = y[used]
        dual = self._fit_table(batch.take(used), y.reshape(len(y), -1), weight)
        self.dual_coef_ = dual.reshape(y.shape)
        return self

    def predict(self, X: Any) -> Array:
        """Values at the sequences in `X`, (n,) or (n, targets)."""
        return self._values(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class RNTKRidgeClassifier(ClassifierMixin, _Ridge):  # type: ignore[misc]
    """Least squares classification of sequences of any length: one ridge regression per class, on targets ±1.

    Close to a support vector machine in accuracy, a single linear system for all classes, and with
    `ConjugateGradients` it never holds the Gram matrix. What it keeps is every sequence, where `RNTKSVC` keeps support
    vectors.

    Parameters
    ----------
    kernel : None, kernel or function, default=None
        As in `RNTKRidge`.
    alpha : float or array of shape (classes,), default=1.0
        The ridge; two classes are one regression.
    class_weight : "balanced", dict or None, default=None
        Factors of the weights of sequences.
    solver : "direct" or ConjugateGradients, default="direct"
        As in `RNTKRidge`.
    random_state : int, RandomState or None, default=None
        As in `RNTKRidge`.
    cache : path or None, default=None
        As in `RNTKRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The labels.
    dual_coef_ : ndarray of shape (n, classes) or (n, 1)
        One column per class; of two classes one, of the second against the first.
    kernel_ : object
        The kernel used.
    sequences_ : SequenceBatch
        As in `RNTKRidge`.
    n_iter_ : int
        As in `RNTKRidge`.
    residual_ : float
        As in `RNTKRidge`.

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
        solver: Any = "direct",
        random_state: Any = None,
        cache: Any = None,
    ) -> None:
        super().__init__(kernel, alpha, solver, random_state, cache)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RNTKRidgeClassifier:
        """Fit to sequences `X` and labels `y`, one per sequence; a weight of zero is as if it were not there."""
        batch = self._read_training(X)
        y = read_labels(y, len(batch))
        used, weight = read_weights(sample_weight, len(batch))
        y = read_labels(y[used], len(used))
        if self.class_weight is not None:
            own = compute_sample_weight(self.class_weight, y)
            weight = own if weight is None else own * weight
        signs = LabelBinarizer(neg_label=-1, pos_label=1)
        targets = np.asarray(signs.fit_transform(y), dtype=np.float64)
        self.dual_coef_ = self._fit_table(batch.take(used), targets, weight)
        self.classes_ = signs.classes_
        return self

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, positive for the second; else (n, classes), largest for the class predicted."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        values = self.decision_function(X)
        return np.asarray(self.classes_[values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(np.int64)])


def solve_ridge(K: Array, targets: Array, alpha: float) -> Array:
    """(K + alpha I)⁻¹ targets; the solution of smallest norm where that matrix is singular."""
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += alpha
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(linalg.solve(shifted, targets, assume_a="pos"))
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        value, vector = linalg.eigh(shifted)
        # Directions whose eigenvalue is rounding carry no information about the targets.
        kept = value > len(K) * np.finfo(float).eps * max(value[-1], 0.0)
        vector = vector[:, kept]
        return np.asarray((vector / value[kept]) @ (vector.T @ targets))


def check_ridge(alpha: Any) -> Array:
    """`alpha` as non-negative numbers."""
    try:
        value = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    except (TypeError, ValueError):
        value = np.array([np.nan])
    if value.ndim > 1 or not np.isfinite(value).all() or (value < 0).any():
        raise ValueError(f"alpha must be a non-negative number, or one per target, not {say_value(alpha)}")
    return value
