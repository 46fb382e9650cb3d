"""`RNTKGaussianProcessRegressor` in a model file: hyperparameters, training data, and the factorised covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...learners import RNTKGaussianProcessRegressor
from .arrays import Shelf
from .errors import DefectError
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .learner import Learner
from .plain import encode
from .sequences import describe_sequences, restore_sequences


def _describe(model: RNTKGaussianProcessRegressor, shelf: Shelf) -> dict[str, Any]:
    return {
        "kernel_": describe_kernel(model.kernel_),
        "noise_": model.noise_,
        "evidence": encode(model.log_marginal_likelihood_value_, "the evidence"),
        "y_mean": model.y_mean_,
        "y_scale": model.y_scale_,
        "sequences_": describe_sequences(model.sequences_, shelf),
        "y": shelf.put("targets", model.targets_),
        "sample_weight_": shelf.put("weights", model.sample_weight_),
        "alpha_": shelf.put("alpha", model.alpha_),
        "L_": shelf.put("cholesky", model.L_),
    }


def _restore(model: RNTKGaussianProcessRegressor, fields: Fields) -> None:
    model.kernel_ = restore_kernel(fields.part("kernel_"))
    model.sequences_ = restore_sequences(fields.part("sequences_"), model.n_channels_in_)
    check_suits(model.kernel_, model.sequences_, f"{fields.where}: kernel_")
    n = len(model.sequences_)
    model.noise_ = fields.number("noise_", 0.0)
    model.log_marginal_likelihood_value_ = fields.value("evidence")
    model.y_mean_, model.y_scale_ = fields.number("y_mean"), fields.number("y_scale", 0.0)
    model.targets_, model.alpha_ = fields.array("y", (n,)), fields.array("alpha_", (n,))
    model.sample_weight_ = fields.array("sample_weight_", (n,))
    model.L_ = fields.array("L_", (n, n))
    if not (np.diagonal(model.L_) > 0).all():
        raise DefectError(f"{fields.where}: L_ is no Cholesky factor, its diagonal is not positive")


GAUSSIAN_PROCESS = Learner(RNTKGaussianProcessRegressor, "alpha_", _describe, _restore)
