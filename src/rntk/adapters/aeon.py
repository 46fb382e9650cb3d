"""aeon's classifier and regressor on the default learners of rntk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import need_extra
from ..learners import RNTKClassifier, RNTKRegressor
from ..sequences import SequenceBatch

__all__ = ["RNTKAeonClassifier", "RNTKAeonRegressor"]

BaseClassifier: Any = need_extra("aeon", "aeon.classification").BaseClassifier
BaseRegressor: Any = need_extra("aeon", "aeon.regression").BaseRegressor
check_n_jobs = need_extra("aeon", "aeon.utils.validation").check_n_jobs
Array = NDArray[Any]


class _Adapter:
    """What both have in common: what aeon is told about them, and fitting."""

    _tags = {  # noqa: RUF012  (aeon collects it from the classes)
        "X_inner_type": ["np-list", "numpy3D"],
        "algorithm_type": "distance",  # the nearest of aeon's families: whole series compared in pairs
        "capability:multithreading": True,
        "capability:multivariate": True,
        "capability:unequal_length": True,
    }
    _learner: type[RNTKClassifier] | type[RNTKRegressor]
    n_jobs: int

    def _fit(self, X: Any, y: Any) -> Any:
        self._n_jobs = check_n_jobs(self.n_jobs)
        parameters = {**self.get_params(deep=False), "n_jobs": self._n_jobs}  # type: ignore[attr-defined]
        self.model_ = self._learner(**parameters).fit(SequenceBatch.from_aeon(X), y)
        return self

    def _predict(self, X: Any) -> Array:
        return np.asarray(self.model_.predict(SequenceBatch.from_aeon(X)))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for aeon's checks."""
        return [{"progress": False}, {"progress": False, "n_landmarks": 8}]


class RNTKAeonClassifier(_Adapter, BaseClassifier):  # type: ignore[misc]
    """`rntk.RNTKClassifier` as a classifier of aeon.

    Parameters
    ----------
    n_landmarks : int, default=512
        As in `RNTKClassifier`.
    class_weight : dict, "balanced" or None, default=None
        As in `RNTKClassifier`.
    n_jobs : int, default=1
        Threads, as aeon counts them: -1 is all cores.
    random_state : int, RandomState or None, default=0
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

    _learner = RNTKClassifier

    def __init__(
        self,
        n_landmarks: int = 512,
        class_weight: Any = None,
        n_jobs: int = 1,
        random_state: Any = 0,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start
        super().__init__()

    def _predict_proba(self, X: Any) -> Array:
        return np.asarray(self.model_.predict_proba(SequenceBatch.from_aeon(X)))


class RNTKAeonRegressor(_Adapter, BaseRegressor):  # type: ignore[misc]
    """`rntk.RNTKRegressor` as a regressor of aeon.

    Parameters
    ----------
    n_landmarks : int, default=512
        As in `RNTKRegressor`.
    n_jobs : int, default=1
        Threads, as aeon counts them: -1 is all cores.
    random_state : int, RandomState or None, default=0
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

    _learner = RNTKRegressor

    def __init__(
        self,
        n_landmarks: int = 512,
        n_jobs: int = 1,
        random_state: Any = 0,
        cache: Any = None,
        progress: bool | None = None,
        start: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.cache = cache
        self.progress = progress
        self.start = start
        super().__init__()
