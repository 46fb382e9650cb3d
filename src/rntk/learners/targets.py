"""What learners are told to predict: labels, values and weights, read once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

Array = NDArray[Any]


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


def check_targets(y: Any, count: int) -> Array:
    """Targets as finite floats, (n,) or (n, targets)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", ensure_min_samples=0)
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, not {y.ndim}")
    if len(y) != count:
        raise ValueError(f"{count} sequences and {len(y)} targets: there must be one target per sequence")
    return np.asarray(y)


def check_weights(sample_weight: Any, count: int) -> tuple[NDArray[np.int64], Array | None]:
    """Which of `count` sequences have a weight above zero, and those weights; None where all are alike.

    The others are as if they were not there.
    """
    if sample_weight is None:
        return np.arange(count), None
    weight = _check_sample_weight(sample_weight, np.empty(count), dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(f"weights of sequences must not be negative; the smallest is {weight.min():g}")
    if not weight.any():
        raise ValueError("all weights are zero, so there is no sequence to learn from")
    used = np.flatnonzero(weight)
    return used, weight[used]
