"""`RNTKGaussianProcess` in a model file: hyperparameters, training data, and the factorised covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.pairwise import is_tangent_kernel
from ...learners import RNTKGaussianProcess
from .arrays import Shelf
from .errors import DefectError
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .learner import Learner
from .plain import encode
from .sequences import describe_sequences, restore_sequences


def _describe(model: RNTKGaussianProcess, shelf: Shelf) -> dict[str, Any]:
    return {
        "kernel_": describe_kernel(model.kernel_),
        "noise_": model.noise_,
        "evidence": encode(model.log_marginal_likelihood_value_, "the evidence"),
        "y_mean": model._y_mean,
        "y_scale": model._y_scale,
        "sequences_": describe_sequences(model.sequences_, shelf),
        "y": shelf.put("targets", model._y),
        "alpha_": shelf.put("alpha", model.alpha_),
        "L_": shelf.put("cholesky", model.L_),
    }


def _restore(model: RNTKGaussianProcess, fields: Fields) -> None:
    model.kernel_ = restore_kernel(fields.part("kernel_"))
    model.sequences_ = restore_sequences(fields.part("sequences_"), model.n_channels_in_)
    check_suits(model.kernel_, model.sequences_, f"{fields.where}: kernel_")
    if model.prior not in ("ntk", "nngp") or (model.prior == "nngp" and not is_tangent_kernel(model.kernel_)):
        raise DefectError(f"prior={model.prior!r} does not go with the kernel {type(model.kernel_).__name__}")
    n = len(model.sequences_)
    model.noise_ = fields.number("noise_", 0.0)
    model.log_marginal_likelihood_value_ = fields.value("evidence")
    model._y_mean, model._y_scale = fields.number("y_mean"), fields.number("y_scale", 0.0)
    model._y, model.alpha_ = fields.array("y", (n,)), fields.array("alpha_", (n,))
    model.L_ = fields.array("L_", (n, n))
    if not (np.diagonal(model.L_) > 0).all():
        raise DefectError(f"{fields.where}: L_ is no Cholesky factor, its diagonal is not positive")


GAUSSIAN_PROCESS = Learner(RNTKGaussianProcess, "alpha_", _describe, _restore)
