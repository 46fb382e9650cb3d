"""aeon's classifier and regressor on the searches of rntk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ..errors import need_extra
from ..learners import RNTKClassifier, RNTKRegressor
from ..sequences import SequenceBatch

__all__ = ["RNTKAeonClassifier", "RNTKAeonRegressor"]

BaseClassifier: Any = need_extra("aeon", "aeon.classification").BaseClassifier
BaseRegressor: Any = need_extra("aeon", "aeon.regression").BaseRegressor
check_n_jobs = need_extra("aeon", "aeon.utils.validation").check_n_jobs
Array = NDArray[Any]


class _SearchAdapter:
    """What both have in common: the parameters of the search, what aeon is told about it, and fitting."""

    _tags = {  # noqa: RUF012  (aeon collects it from the classes)
        "X_inner_type": ["np-list", "numpy3D"],
        "algorithm_type": "distance",  # the nearest of aeon's families: whole series compared in pairs
        "capability:multithreading": True,
        "capability:multivariate": True,
        "capability:unequal_length": True,
    }
    _search: type[RNTKClassifier] | type[RNTKRegressor]

    def __init__(
        self,
        n_members: int = 8,
        max_length: int = 200,
        max_sequences: int = 500,
        n_jobs: int = 1,
        random_state: Any = None,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.n_members = n_members
        self.max_length = max_length
        self.max_sequences = max_sequences
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start
        super().__init__()

    def _fit(self, X: Any, y: Any) -> Any:
        self._n_jobs = check_n_jobs(self.n_jobs)
        parameters = {**self.get_params(deep=False), "n_jobs": self._n_jobs}  # type: ignore[attr-defined]
        self.model_ = self._search(**parameters).fit(SequenceBatch.from_aeon(X), y)
        return self

    def _predict(self, X: Any) -> Array:
        return np.asarray(self.model_.predict(SequenceBatch.from_aeon(X)))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings that are cheap enough for aeon's checks: one on all sequences, one chosen on a sample."""
        cheap: dict[str, Any] = {"n_members": 2, "max_length": 6, "progress": False}
        return [cheap, {**cheap, "max_sequences": 6, "n_members": 1}]


class RNTKAeonClassifier(_SearchAdapter, BaseClassifier):  # type: ignore[misc]
    """`rntk.RNTKClassifier` as a classifier of aeon.

    Parameters
    ----------
    n_members : int, default=8
        As in `RNTKClassifier`.
    max_length : int, default=200
        As in `RNTKClassifier`.
    max_sequences : int, default=500
        As in `RNTKClassifier`.
    n_jobs : int, default=1
        Threads, as aeon counts them: -1 is all cores.
    random_state : int, RandomState or None, default=None
        As in `RNTKClassifier`.
    cache : path or None, default=None
        As in `RNTKClassifier`.
    progress : bool or None, default=None
        As in `RNTKClassifier`.
    start : RNTK, NTK or None, default=None
        As in `RNTKClassifier`.

    Attributes
    ----------
    model_ : RNTKClassifier
        The fitted learner, with its `cv_results_`, `best_params_` and `members_`.

    Notes
    -----
    `predict_proba` is a softmax of the scores that decide. It orders classes; it is not calibrated, and no frequency
    is meant by it.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.adapters.aeon import RNTKAeonClassifier
    >>> rng = np.random.default_rng(0)
    >>> t = np.arange(24)
    >>> X = np.stack([np.sin(t * w) + 0.1 * rng.standard_normal(24) for w in (0.3, 0.6) for _ in range(4)])[:, None]
    >>> y = np.array(["slow"] * 4 + ["fast"] * 4)
    >>> RNTKAeonClassifier().fit(X, y).predict(np.sin(t * 0.6)[None, None])
    array(['fast'], dtype='<U4')
    """

    _search = RNTKClassifier

    def _predict_proba(self, X: Any) -> Array:
        """(n, classes): softmax of the scores; not calibrated."""
        scores = self.model_.decision_function(SequenceBatch.from_aeon(X))
        if scores.ndim == 1:  # of two classes: how much better the second does than the first
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return np.asarray(softmax(scores, axis=1))


class RNTKAeonRegressor(_SearchAdapter, BaseRegressor):  # type: ignore[misc]
    """`rntk.RNTKRegressor` as a regressor of aeon.

    Parameters
    ----------
    n_members : int, default=8
        As in `RNTKRegressor`.
    max_length : int, default=200
        As in `RNTKRegressor`.
    max_sequences : int, default=500
        As in `RNTKRegressor`.
    n_jobs : int, default=1
        Threads, as aeon counts them: -1 is all cores.
    random_state : int, RandomState or None, default=None
        As in `RNTKRegressor`.
    cache : path or None, default=None
        As in `RNTKRegressor`.
    progress : bool or None, default=None
        As in `RNTKRegressor`.
    start : RNTK, NTK or None, default=None
        As in `RNTKRegressor`.

    Attributes
    ----------
    model_ : RNTKRegressor
        The fitted learner, with its `cv_results_`, `best_params_` and `members_`.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.adapters.aeon import RNTKAeonRegressor
    >>> X = np.random.default_rng(0).standard_normal((40, 1, 12))
    >>> y = X[:, 0, -1]
    >>> bool(np.corrcoef(RNTKAeonRegressor().fit(X, y).predict(X), y)[0, 1] > 0.7)
    True
    """

    _search = RNTKRegressor
