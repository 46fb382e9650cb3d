"""Regression with everything chosen from the training data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from ..ridge import RNTKRegressor, check_targets
from .base import KernelSearch
from .fast import Verdict
from .folds import plain_folds, ridge_scores
from .grids import PAPER_RIDGES, paper_grid
from .store import GramStore, with_threads

Array = NDArray[Any]


class RNTKRegressorCV(RegressorMixin, KernelSearch):  # type: ignore[misc]
    """Regression on sequences that chooses its kernels and ridge by itself.

    Parameters
    ----------
    search : "fast" as in `RNTKClassifierCV`, judged by the squared error of left-out targets; "paper" is appendix A.2
        of the RNTK paper: its kernels and ridges, 5-fold cross-validation.
    family, n_members, max_length, max_sequences, n_jobs, random_state, cache, progress, start : as for
        `RNTKClassifierCV`.

    Attributes
    ----------
    cv_results_, best_params_, best_score_, best_index_ : as in `RNTKClassifierCV`; scores are minus squared errors.
    members_ : the models that are averaged ("fast"). best_estimator_ : the model ("paper").
    loo_score_ : leave-one-out R² of the average ("fast"): chosen on the same data, so a little too good.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTKRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 12))
    >>> y = X[:, -1]
    >>> RNTKRegressorCV().fit(X, y).score(X, y) > 0.5
    True
    """

    def fit(self, X: Any, y: Any) -> RNTKRegressorCV:
        """Choose and fit on sequences `X` and targets `y`, (n,)."""
        batch = self._read_training(X)
        y = check_targets(y, len(batch))
        if len(batch) < 2:
            raise ValueError("a search needs at least 2 sequences, got n_samples = 1")
        self._check_parameters()
        if self.search == "paper":
            store = GramStore(batch, self.cache, self.n_jobs)
            folds = plain_folds(len(batch), 5, check_random_state(self.random_state))
            candidates = paper_grid(self.family)
            scores = ridge_scores(candidates, store, y, folds, PAPER_RIDGES, self.progress)
            best, ridge = self._record_grid(candidates, scores, "ridge", PAPER_RIDGES)
            self._view = best.view
            self.best_estimator_ = RNTKRegressor(with_threads(best.kernel, self.n_jobs), alpha=ridge)
            self.best_estimator_.fit(best.view(batch), y)
            return self
        table = y.reshape(len(y), -1)
        self._shape = y.shape[1:]
        self._mean, spread = table.mean(axis=0), table.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        targets = (table - self._mean) / self._scale

        def judge(part: Array | None) -> Any:
            wanted = targets if part is None else targets[part]

            def verdict(left_out: Array) -> Verdict:
                losses = np.square(left_out - wanted).mean(axis=1)
                return Verdict(-float(losses.mean()), float(losses.mean()), losses)

            return verdict

        left_out = self._fit_fast(batch, targets, None, judge)
        self.loo_score_ = float(r2_score(targets, left_out))
        return self

    def predict(self, X: Any) -> Array:
        """Values at the sequences in `X`."""
        if hasattr(self, "best_estimator_"):
            return self.best_estimator_.predict(self._view(self._read_new(X)))
        values = self._member_scores(self._read_new(X)) * self._scale + self._mean
        return np.asarray(values.reshape(len(values), *self._shape))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
