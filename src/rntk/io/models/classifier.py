"""`RNTKSVC` in a model file: dual coefficients of a support vector machine, and the sequences it looks at."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...learners import RNTKSVC
from .arrays import Shelf
from .errors import DefectError
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .labels import describe_labels, restore_labels
from .learner import Learner
from .sequences import describe_sequences, restore_sequences


def _describe(model: RNTKSVC, shelf: Shelf) -> dict[str, Any]:
    return {
        "kernel_": describe_kernel(model.kernel_),
        "classes_": describe_labels(model.classes_, shelf),
        "support_": shelf.put("support", np.asarray(model.support_, dtype=np.int64)),
        "sequences_": describe_sequences(model.sequences_, shelf),
        "n_support_": shelf.put("n-support", np.asarray(model.n_support_, dtype=np.int64)),
        "dual_coef_": shelf.put("dual", model.dual_coef_),
        "intercept_": shelf.put("intercept", model.intercept_),
        "n_iter_": shelf.put("iterations", np.asarray(model.n_iter_, dtype=np.int64)),
    }


def _restore(model: RNTKSVC, fields: Fields) -> None:
    model.kernel_ = restore_kernel(fields.part("kernel_"))
    model.classes_ = restore_labels(fields.part("classes_"))
    model.sequences_ = restore_sequences(fields.part("sequences_"), model.n_channels_in_)
    check_suits(model.kernel_, model.sequences_, f"{fields.where}: kernel_")
    classes, count = len(model.classes_), len(model.sequences_)
    pairs = classes * (classes - 1) // 2
    model.support_ = fields.array("support_", (count,), np.int64)
    model.n_support_ = fields.array("n_support_", (classes,), np.int64)
    if model.n_support_.min() < 0 or model.n_support_.sum() != count:
        raise DefectError(f"{fields.where}: n_support_ must add up to {count} sequences")
    model.dual_coef_ = fields.array("dual_coef_", (classes - 1, count))
    model.intercept_ = fields.array("intercept_", (pairs,))
    model.n_iter_ = fields.array("n_iter_", (pairs,), np.int64)


CLASSIFIER = Learner(RNTKSVC, "intercept_", _describe, _restore)
