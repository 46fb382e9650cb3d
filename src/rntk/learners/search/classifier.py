"""Classification with everything chosen from the training data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from ..svm import RNTKClassifier, check_labels
from .base import KernelSearch
from .fast import Verdict
from .folds import MAX_ITERATIONS, class_folds, svm_scores
from .grids import PAPER_C, paper_grid
from .store import GramStore, with_threads

Array = NDArray[Any]


class RNTKClassifierCV(ClassifierMixin, KernelSearch):  # type: ignore[misc]
    """Classifier of sequences that chooses its kernels and regularisation by itself.

    Parameters
    ----------
    search : "fast" judges kernels on two views of the sequences (z-normalised values, and their differences) by
        closed-form leave-one-out of kernel ridge regression, and averages the `n_members` best. "paper" is the protocol
        of the RNTK paper, appendix A: unit norm, 900 kernels × 5 values of C, 10-fold cross-validation of an SVM.
    family : "rntk", or "ntk", "rbf", "polynomial" for comparison.
    n_members : how many models vote ("fast").
    max_length : longer sequences are averaged down to this many steps where a kernel costs O(T²) ("fast").
    max_sequences : with more, kernels are chosen on a stratified sample of this size ("fast").
    n_jobs : threads; None is all cores.
    random_state : for folds and samples.
    cache : folder that keeps Gram matrices, so that an interrupted search goes on where it stopped.
    progress : None shows a bar on a terminal after two seconds; True always; False never.
    start : a kernel to try first, with its σ_w as it is and 5 % to either side ("fast"): `rntk.suggest(X).kernel`, say.

    Attributes
    ----------
    classes_ : the labels.
    cv_results_ : what was tried and how it did, as in scikit-learn's searches. best_params_, best_score_, best_index_.
    members_ : the models that vote ("fast"). best_estimator_ : the SVM ("paper").
    loo_score_ : leave-one-out accuracy of the vote ("fast"): chosen on the same data, so a little too good.

    Notes
    -----
    Ties: higher accuracy, then smaller squared error of the left-out scores, then the larger ridge, then whatever is
    listed first.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w) + 0.1 * rng.standard_normal(n) for w in (0.3, 0.6) for n in (20, 30, 25, 28)]
    >>> y = ["slow"] * 4 + ["fast"] * 4
    >>> RNTKClassifierCV().fit(X, y).predict([np.sin(np.arange(40) * 0.6)])
    array(['fast'], dtype='<U4')
    """

    def fit(self, X: Any, y: Any) -> RNTKClassifierCV:
        """Choose and fit on sequences `X` and labels `y`."""
        batch = self._read_training(X)
        y = check_labels(y, len(batch))
        self._check_parameters()
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.search == "paper":
            store = GramStore(batch, self.cache, self.n_jobs)
            folds = class_folds(y, 10, check_random_state(self.random_state))
            candidates = paper_grid(self.family)
            scores = svm_scores(candidates, store, y, folds, PAPER_C, self.progress)
            best, cost = self._record_grid(candidates, scores, "C", PAPER_C)
            self._view = best.view
            self.best_estimator_ = RNTKClassifier(
                with_threads(best.kernel, self.n_jobs), C=cost, max_iter=MAX_ITERATIONS
            )
            self.best_estimator_.fit(best.view(batch), y)
            return self
        # One column per class, +1 for members and -1 for others; two classes need one.
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)

        def judge(part: Array | None) -> Any:
            own, wanted = (codes, targets) if part is None else (codes[part], targets[part])

            def verdict(scores: Array) -> Verdict:
                missed = scores.argmax(axis=1) != own
                return Verdict(1 - float(missed.mean()), float(np.mean(np.square(scores - wanted))), 1.0 * missed)

            return verdict

        left_out = self._fit_fast(batch, targets, codes, judge)
        self.loo_score_ = float(np.mean(left_out.argmax(axis=1) == codes))
        return self

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, else (n, classes): scores, the largest of which decides."""
        if hasattr(self, "best_estimator_"):
            return self.best_estimator_.decision_function(self._view(self._read_new(X)))
        scores = self._member_scores(self._read_new(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        if hasattr(self, "best_estimator_"):
            return self.best_estimator_.predict(self._view(self._read_new(X)))
        scores = self._member_scores(self._read_new(X))
        return np.asarray(self.classes_[scores.argmax(axis=1)])
