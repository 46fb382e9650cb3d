"""What a model file may hold: one row per class, which says what each learned attribute must be.

An entry of a row is a class, a class with sizes, or a list with the entry of its items: ``"noise_": float``,
``"dual_coef_": (np.ndarray, "n", ...)``, ``"members_": [Member]``. Sizes have names, and a name means one number
throughout a row and the rows of its parts: there are as many dual coefficients as sequences,
``"sequences_": (SequenceBatch, "n", "channels")``. An integer with a size is that size. From "classes" follow "others"
(one less), "pairs" and "columns" (one for two classes). A question mark after the name of an attribute says that it is
not always there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer

from ..kernels import description
from ..kernels.description import quote
from ..learners import (
    RNTKSVC,
    ConjugateGradients,
    NystromFeatures,
    RNTKClassifier,
    RNTKGaussianProcessRegressor,
    RNTKRegressor,
    RNTKRidge,
    RNTKRidgeClassifier,
    StepFeatures,
)
from ..learners.search.ensemble import Member
from ..learners.search.views import View
from ..learners.steps import check_readout
from ..linear import ConvRegressor, LinearRNNRegressor, ScaledConv1D
from ..preprocessing import ChannelScaler, Clock, CumulativeSum, Differences, Downsample, UnitNorm, ZNormalize
from ..sequences import SequenceBatch

Array = np.ndarray
Sizes = dict[str, int]


@dataclass(frozen=True)
class Row:
    """How objects of one class are written down.

    Attributes
    ----------
    cls : type
        The class; subclasses are not meant.
    entries : dict
        What each learned attribute, and each parameter that is to be checked, must be.
    optional : frozenset of str
        Those that are not always there.
    agree : callable
        Raises a ValueError if attributes that are fine by themselves do not go together.
    local : tuple of str
        Parameters that name folders of one machine. Not written: whoever loads the file has other folders, and a file
        should not say where its reader writes.
    """

    cls: type
    entries: dict[str, Any]
    optional: frozenset[str]
    agree: Callable[[Any], None]
    local: tuple[str, ...]

    def check(self, value: Any, name: str, sizes: Sizes) -> None:
        """Raise a ValueError unless the object is what the row says; sizes are shared with the parts of it."""
        for key, entry in self.entries.items():
            found = getattr(value, key, None)
            if (hasattr(value, key) or key not in self.optional) and not _fits(found, entry, sizes):
                shown = f"{found.dtype} of shape {found.shape}" if isinstance(found, Array) else quote(found)
                raise ValueError(f"{name}.{key} is {shown}, expected {_say(entry)}")
        self.agree(value)


#: The classes that a model file may name.
ROWS: dict[str, Row] = {}


def register(
    cls: type,
    entries: Mapping[str, Any] | None = None,
    agree: Callable[[Any], None] = lambda value: None,
    local: tuple[str, ...] = ("cache",),
) -> type:
    """Let model files hold objects of a class; gives it back.

    Parameters
    ----------
    cls : type
        A learner, transformer, dataclass or kernel. Its constructor stores its parameters, under their names, and does
        nothing else that matters; its name must be free.
    entries : dict
        What each learned attribute must be, see `rntk.io.schema`.
    agree : callable, optional
        Raises a ValueError if attributes that are fine by themselves do not go together.
    local : tuple of str
        Parameters that are not written, because they name folders.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from rntk.io import register
    >>> class MeanRegressor(BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.mean_ = np.mean(y, axis=0, keepdims=True)
    ...         return self
    >>> register(MeanRegressor, {"mean_": (np.ndarray, "targets")}).__name__
    'MeanRegressor'
    """
    if issubclass(cls, Kernel):
        return description.register(cls)
    if cls.__name__ in ROWS and ROWS[cls.__name__].cls is not cls:
        raise ValueError(f"there is another class named {cls.__name__}; give this one a name of its own")
    given = dict(entries or {})
    optional = frozenset(key.rstrip("?") for key in given if key.endswith("?"))
    ROWS[cls.__name__] = Row(cls, {key.rstrip("?"): entry for key, entry in given.items()}, optional, agree, local)
    return cls


def row_of(value: Any) -> Row | None:
    """The row of an object's class, None if there is none."""
    row = ROWS.get(type(value).__name__)
    return row if row is not None and row.cls is type(value) else None


def _fits(value: Any, entry: Any, sizes: Sizes) -> bool:
    """Whether a value is what an entry says; sizes are looked up, or found."""
    if isinstance(entry, list):
        return isinstance(value, list | tuple) and all(_fits(each, entry[0], sizes) for each in value)
    kind, *names = entry if isinstance(entry, tuple) else (entry,)
    if not isinstance(value, kind):
        return False
    if (row := row_of(value)) is not None:
        row.check(value, row.cls.__name__, sizes)
    if isinstance(value, Array) and value.dtype.kind == "f" and not np.isfinite(value).all():
        return False
    if not names:
        return True
    shape = value.shape if isinstance(value, Array) else (value,)
    if isinstance(value, SequenceBatch):
        shape = (len(value), value.n_channels)
    if names[-1] is ...:
        shape = (*shape[: len(names) - 1], ...)
    for name, size in zip(names, shape, strict=False):
        if sizes.setdefault(name, size) != size:
            return False
        if name == "classes":
            sizes |= {"others": size - 1, "pairs": size * (size - 1) // 2, "columns": 1 if size == 2 else size}
    return len(names) == len(shape)


def _say(entry: Any) -> str:
    """What an entry says, for messages."""
    if isinstance(entry, list):
        return f"a list of {_say(entry[0])}"
    kind, *names = entry if isinstance(entry, tuple) else (entry,)
    sizes = ", ".join("…" if name is ... else name for name in names)
    return f"{'finite ' if kind is Array else ''}{kind.__name__}{f' of sizes ({sizes})' if names else ''}"


def _check_support(machine: Any) -> None:
    """Whether there are as many support vectors as their classes say."""
    counts = machine.n_support_
    if counts.min() < 0 or counts.sum(dtype=np.int64) != len(machine.sequences_):
        raise ValueError(f"n_support_ must add up to {len(machine.sequences_)} sequences")


def _check_targets(process: Any) -> None:
    """Whether what a Gaussian process keeps of each target is of as many targets."""
    for name in ("alpha_", "y_mean_", "y_scale_"):
        found = np.asarray(getattr(process, name))
        shape = found.shape[1:] if name == "alpha_" else found.shape
        if shape != process.targets_.shape[1:] or found.dtype.kind != "f" or not np.isfinite(found).all():
            raise ValueError(f"{name} must be finite numbers, one per target")


def _check_pieces(features: Any) -> None:
    """Whether features of steps are of a kernel that has such."""
    check_readout(features.kernel_)


# -- the table ---------------------------------------------------------------------------------------------------------

_CHANNELS = {"n_channels_in_": (int, "channels"), "n_features_in_?": int}
_KERNEL = _CHANNELS | {"kernel_": Kernel}
_SEQUENCES = _KERNEL | {"sequences_": (SequenceBatch, "n", "channels")}
_RIDGE = _SEQUENCES | {"dual_coef_": (Array, "n", ...), "n_iter_": int, "residual_?": float}
_BEST = {"cv_results_": dict, "best_index_": int, "best_params_": dict, "best_score_": float, "loo_score_": float}
_SEARCH = _CHANNELS | _BEST | {"sequences_": (SequenceBatch, "n", "channels"), "members_": [Member], "notes_?": [str]}
_FILTERS = _CHANNELS | {"convolution_": ScaledConv1D, "n_outputs_": (int, "outputs"), "flat_targets_": bool}
_LINEAR = {"coef_": Array, "intercept_": object, "n_features_in_": int}
_WEIGHTS = _LINEAR | {"n_iter_": type(None), "solver_": str}

register(RNTKRidge, _RIDGE)
register(RNTKRidgeClassifier, {"classes_": (Array, "classes")} | _RIDGE | {"dual_coef_": (Array, "n", "columns")})
register(ConjugateGradients)
register(
    RNTKGaussianProcessRegressor,
    _SEQUENCES
    | {"noise_": float, "log_marginal_likelihood_value_": float, "alpha_": (Array, "n", ...), "L_": (Array, "n", "n")}
    | {"targets_": (Array, "n", ...), "sample_weight_": (Array, "n"), "y_mean_": object, "y_scale_": object},
    _check_targets,
)
register(
    RNTKSVC,
    _SEQUENCES
    | {"classes_": (Array, "classes"), "support_": (Array, "n"), "n_support_": (Array, "classes")}
    | {"dual_coef_": (Array, "others", "n"), "intercept_": (Array, "pairs"), "n_iter_": (Array, "pairs")},
    _check_support,
)
register(RNTKClassifier, {"classes_": (Array, "outputs")} | _SEARCH)
register(RNTKRegressor, {"y_mean_": (Array, ...), "y_scale_": (Array, ...)} | _SEARCH)
register(Member, {"view": View, "kernel": Kernel, "ridge": float, "dual": (Array, "n", "outputs")})
register(View, {"block": int, "clock": float, "mean": [float], "deviation": [float]})
register(LinearRNNRegressor, _FILTERS)
register(ConvRegressor, _FILTERS)
register(ScaledConv1D, {"rho": (Array, "lags"), "theta": (Array, "lags", "outputs", "channels")})

for _cls in (UnitNorm, ZNormalize, Differences, CumulativeSum, Downsample, Clock):
    register(_cls, {"n_channels_in_?": int})
register(
    ChannelScaler, {"n_channels_in_": (int, "channels"), "mean_": (Array, "channels"), "scale_": (Array, "channels")}
)
_LANDMARKS = _KERNEL | {
    "sequences_": (SequenceBatch, "landmarks", "channels"),
    "landmark_indices_": (Array, "landmarks"),
    "components_": (Array, "rank", "landmarks"),
    "eigenvalues_": (Array, "rank"),
    "rank_": (int, "rank"),
    "rank_tolerance_": float,
}
register(NystromFeatures, _LANDMARKS)
register(StepFeatures, _LANDMARKS | {"landmark_steps_": (Array, "landmarks")}, _check_pieces)
# Pipelines, and the linear models that go behind features.
register(Pipeline, {"steps": [tuple]}, local=("memory",))
register(Ridge, _WEIGHTS)
register(RidgeClassifier, _WEIGHTS | {"classes_?": Array, "_label_binarizer": LabelBinarizer})
_CHOSEN = {"alpha_": object, "best_score_": object}
register(RidgeCV, _LINEAR | _CHOSEN)
register(RidgeClassifierCV, _LINEAR | _CHOSEN | {"classes_?": Array, "_label_binarizer": LabelBinarizer})
register(LabelBinarizer, {"classes_": Array, "y_type_": str, "sparse_input_": bool})
