"""`RNTKRegressor` in a model file: dual coefficients, and the sequences they belong to."""

from __future__ import annotations

from typing import Any

from ..estimators import RNTKRegressor
from .arrays import Shelf
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .learner import Learner
from .sequences import describe_sequences, restore_sequences


def _describe(model: RNTKRegressor, shelf: Shelf) -> dict[str, Any]:
    return {
        "kernel_": describe_kernel(model.kernel_),
        "dual_coef_": shelf.put("dual", model.dual_coef_),
        "several_targets": model.dual_coef_.ndim == 2,
        "sequences_": describe_sequences(model.sequences_, shelf),
    }


def _restore(model: RNTKRegressor, fields: Fields) -> None:
    model.kernel_ = restore_kernel(fields.part("kernel_"))
    model.sequences_ = restore_sequences(fields.part("sequences_"), model.n_channels_in_)
    check_suits(model.kernel_, model.sequences_, f"{fields.where}: kernel_")
    targets = (None,) if fields.flag("several_targets") else ()
    model.dual_coef_ = fields.array("dual_coef_", (len(model.sequences_), *targets))


REGRESSOR = Learner(RNTKRegressor, "dual_coef_", _describe, _restore)
