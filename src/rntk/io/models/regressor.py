"""`RNTKRidge` and `RNTKRidgeClassifier` in a model file: dual coefficients, and the sequences they belong to."""

from __future__ import annotations

from typing import Any

from ...learners import RNTKRidge, RNTKRidgeClassifier
from .arrays import Shelf
from .errors import DefectError
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .labels import describe_labels, restore_labels
from .learner import Learner
from .plain import encode
from .sequences import describe_sequences, restore_sequences


def _describe(model: Any, shelf: Shelf) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kernel_": describe_kernel(model.kernel_),
        "dual_coef_": shelf.put("dual", model.dual_coef_),
        "several_targets": model.dual_coef_.ndim == 2,
        "sequences_": describe_sequences(model.sequences_, shelf),
        "n_iter_": int(model.n_iter_),
    }
    if hasattr(model, "residual_"):
        found["residual_"] = encode(float(model.residual_), "residual_")
    return found


def _restore(model: Any, fields: Fields) -> None:
    model.kernel_ = restore_kernel(fields.part("kernel_"))
    model.sequences_ = restore_sequences(fields.part("sequences_"), model.n_channels_in_)
    check_suits(model.kernel_, model.sequences_, f"{fields.where}: kernel_")
    targets = (None,) if fields.flag("several_targets") else ()
    model.dual_coef_ = fields.array("dual_coef_", (len(model.sequences_), *targets))
    # Neither is in files from before there was a second solver.
    model.n_iter_ = fields.integer("n_iter_", 0) if fields.has("n_iter_") else 1
    if fields.has("residual_"):
        model.residual_ = fields.value("residual_")
        if not isinstance(model.residual_, float):
            raise DefectError(f"{fields.where}: residual_ must be a number")


def _describe_classifier(model: RNTKRidgeClassifier, shelf: Shelf) -> dict[str, Any]:
    return {"classes_": describe_labels(model.classes_, shelf), **_describe(model, shelf)}


def _restore_classifier(model: RNTKRidgeClassifier, fields: Fields) -> None:
    model.classes_ = restore_labels(fields.part("classes_"))
    _restore(model, fields)
    columns = 1 if len(model.classes_) == 2 else len(model.classes_)
    if model.dual_coef_.shape[1:] != (columns,):
        raise DefectError(f"{fields.where}: dual_coef_ must have {columns} columns for {len(model.classes_)} classes")


REGRESSOR = Learner(RNTKRidge, "dual_coef_", _describe, _restore)
RIDGE_CLASSIFIER = Learner(RNTKRidgeClassifier, "classes_", _describe_classifier, _restore_classifier)
