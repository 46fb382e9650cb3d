"""`RNTKClassifier` and `RNTKRegressor` in a model file: the members that vote, and the record."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...learners import RNTKClassifier, RNTKRegressor
from ...learners.search.ensemble import Member
from ...sequences import SequenceBatch
from .arrays import Array, Shelf
from .errors import DefectError
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .labels import describe_labels, restore_labels
from .learner import Learner
from .plain import encode
from .sequences import describe_sequences, describe_view, restore_sequences, restore_view

#: Columns of `cv_results_` that hold one number per candidate. They report what was tried: no prediction reads them,
#: so they may hold what a search may find, NaN included.
COLUMNS = {
    "mean_test_score": np.float64,
    "loo_error": np.float64,
    "ridge": np.float64,
    "rank_test_score": np.int64,
    "seconds": np.float64,
}


def _describe_search(model: Any, shelf: Shelf) -> dict[str, Any]:
    found: dict[str, Any] = {
        "best_index_": int(model.best_index_),
        "best_params_": encode(model.best_params_, "best_params_"),
        "best_score_": encode(model.best_score_, "best_score_"),
        "tried": {
            "params": encode(model.cv_results_["params"], "cv_results_"),
            **{
                name: shelf.put(f"tried-{name}", model.cv_results_[name])
                for name in COLUMNS
                if name in model.cv_results_
            },
        },
    }
    found["loo_score_"] = encode(model.loo_score_, "loo_score_")
    found["sequences_"] = describe_sequences(model.sequences_, shelf)
    found["members_"] = [_describe_member(each, i, shelf) for i, each in enumerate(model.members_)]
    return found


def _describe_member(member: Member, index: int, shelf: Shelf) -> dict[str, Any]:
    return {
        "view": describe_view(member.view),
        "kernel": describe_kernel(member.kernel),
        "ridge": member.ridge,
        "dual": shelf.put(f"member-{index}-dual", member.dual),
    }


def _restore_search(model: Any, fields: Fields, columns: int | None) -> None:
    """`columns` is the number of targets of every member."""
    tried = fields.part("tried")
    params = tried.value("params")
    if not isinstance(params, list) or not params or not all(isinstance(each, dict) for each in params):
        raise DefectError(f"{tried.where}: params must be a list of settings")
    model.cv_results_ = {"params": params} | {
        name: tried.array(name, (len(params),), dtype, finite=False)
        for name, dtype in COLUMNS.items()
        if tried.has(name)
    }
    model.best_index_ = fields.integer("best_index_", 0, len(params) - 1)
    model.best_params_ = fields.value("best_params_")
    model.best_score_ = fields.value("best_score_")
    if not isinstance(model.best_params_, dict) or not isinstance(model.best_score_, float):
        raise DefectError(f"{fields.where}: best_params_ and best_score_ must be settings and a number")
    model.loo_score_ = fields.number("loo_score_")
    model.sequences_ = restore_sequences(fields.part("sequences_"), model.n_channels_in_)
    members: list[Member] = []
    for part in fields.parts("members_"):
        members.append(_restore_member(part, model.sequences_, columns))
        columns = members[-1].dual.shape[1]
    model.members_ = members


def _restore_member(fields: Fields, sequences: SequenceBatch, columns: int | None) -> Member:
    view = restore_view(fields.part("view"), sequences.n_channels)
    kernel = restore_kernel(fields.part("kernel"))
    check_suits(kernel, view(sequences), f"{fields.where}: kernel")
    dual: Array = fields.array("dual", (len(sequences), columns))
    return Member(view, kernel, fields.number("ridge", 0.0), dual)


def _describe_classifier(model: RNTKClassifier, shelf: Shelf) -> dict[str, Any]:
    return {"classes_": describe_labels(model.classes_, shelf), **_describe_search(model, shelf)}


def _restore_classifier(model: RNTKClassifier, fields: Fields) -> None:
    model.classes_ = restore_labels(fields.part("classes_"))
    _restore_search(model, fields, len(model.classes_))


def _describe_regressor(model: RNTKRegressor, shelf: Shelf) -> dict[str, Any]:
    found = _describe_search(model, shelf)
    found["several_targets"] = model.y_mean_.ndim > 0
    found["mean"], found["scale"] = shelf.put("mean", model.y_mean_.ravel()), shelf.put("scale", model.y_scale_.ravel())
    return found


def _restore_regressor(model: RNTKRegressor, fields: Fields) -> None:
    _restore_search(model, fields, None)
    columns = model.members_[0].dual.shape[1]
    several = fields.flag("several_targets")
    if columns != 1 and not several:
        raise DefectError(f"{fields.where}: {columns} targets where there is one")
    shape = (columns,) if several else ()
    model.y_mean_ = fields.array("mean", (columns,)).reshape(shape)
    model.y_scale_ = fields.array("scale", (columns,)).reshape(shape)


CLASSIFIER_SEARCH = Learner(RNTKClassifier, "best_params_", _describe_classifier, _restore_classifier)
REGRESSOR_SEARCH = Learner(RNTKRegressor, "best_params_", _describe_regressor, _restore_regressor)
