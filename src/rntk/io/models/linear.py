"""`LinearRNNRegressor` and `ConvRegressor` in a model file: scale factors, and the parameters of the convolution."""

from __future__ import annotations

from typing import Any

from ...linear import ConvRegressor, LinearRNNRegressor, ScaledConv1D
from .arrays import Shelf
from .errors import DefectError
from .fields import Fields
from .learner import Learner


def _describe(model: Any, shelf: Shelf) -> dict[str, Any]:
    return {
        "rho": shelf.put("rho", model.convolution_.rho),
        "theta": shelf.put("theta", model.convolution_.theta),
        "flat_targets": model.flat_targets_,
    }


def _restore(model: Any, fields: Fields) -> None:
    rho = fields.array("rho", (None,))
    theta = fields.array("theta", (len(rho), None, model.n_channels_in_))
    if (rho < 0).any() or 0 in theta.shape:
        raise DefectError(f"{fields.where}: rho must not be negative, and theta not empty")
    model.convolution_ = ScaledConv1D(rho, theta)
    model.n_outputs_ = theta.shape[1]
    model.flat_targets_ = fields.flag("flat_targets")


LINEAR_RNN = Learner(LinearRNNRegressor, "convolution_", _describe, _restore)
CONVOLUTION = Learner(ConvRegressor, "convolution_", _describe, _restore)
