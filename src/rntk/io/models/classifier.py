"""`RNTKClassifier` in a model file: the support vector machine as libsvm left it, and the sequences it looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from ...learners import RNTKClassifier
from .arrays import Shelf
from .errors import DefectError
from .fields import Fields
from .kernels import check_suits, describe_kernel, restore_kernel
from .labels import describe_labels, restore_labels
from .learner import Learner
from .sequences import describe_sequences, restore_sequences

#: Prediction takes a row of this many kernel values; no Gram matrix of training is larger.
MOST_SEQUENCES = 10**7


def _describe(model: RNTKClassifier, shelf: Shelf) -> dict[str, Any]:
    svc = model.svc_
    return {
        "kernel_": describe_kernel(model.kernel_),
        "classes_": describe_labels(model.classes_, shelf),
        "n_training_": model.n_training_,
        "support_": shelf.put("support", np.asarray(model.support_, dtype=np.int64)),
        "support_sequences_": describe_sequences(model.support_sequences_, shelf),
        "svc": {
            "support": shelf.put("svc-support", np.asarray(svc.support_, dtype=np.int32)),
            "n_support": shelf.put("svc-n-support", np.asarray(svc._n_support, dtype=np.int32)),
            # Of two classes scikit-learn keeps these with either sign; libsvm's own is the one it predicts by.
            "dual": shelf.put("svc-dual", svc._dual_coef_),
            "intercept": shelf.put("svc-intercept", svc._intercept_),
            "class_weight": shelf.put("svc-class-weight", svc.class_weight_),
            "iterations": shelf.put("svc-iterations", np.asarray(svc.n_iter_, dtype=np.int32)),
            "fit_status": int(svc.fit_status_),
        },
    }


def _restore(model: RNTKClassifier, fields: Fields) -> None:
    model.kernel_ = restore_kernel(fields.part("kernel_"))
    model.classes_ = restore_labels(fields.part("classes_"))
    model.n_training_ = fields.integer("n_training_", 2, MOST_SEQUENCES)
    model.support_sequences_ = restore_sequences(fields.part("support_sequences_"), model.n_channels_in_)
    check_suits(model.kernel_, model.support_sequences_, f"{fields.where}: kernel_")
    model.svc_ = _restore_svc(model, fields.part("svc"))
    model.n_iter_ = model.svc_.n_iter_
    # Among all sequences given to `fit`; the machine counts those of positive weight only.
    model.support_ = fields.array("support_", (len(model.support_sequences_),), np.int64)


def _restore_svc(model: RNTKClassifier, fields: Fields) -> Any:
    """A scikit-learn `SVC` with the attributes that its `fit` would have set.

    libsvm follows the indices in these arrays without a look: what they may be is checked here, all of it.
    """
    classes, n_support, n = len(model.classes_), len(model.support_sequences_), model.n_training_
    pairs = classes * (classes - 1) // 2
    support = fields.array("support", (n_support,), np.int32)
    per_class = fields.array("n_support", (classes,), np.int32)
    if support.min() < 0 or support.max() >= n or len(np.unique(support)) != n_support:
        raise DefectError(f"{fields.where}: support must name {n_support} different sequences of {n}")
    if per_class.min() < 0 or per_class.sum(dtype=np.int64) != n_support:
        raise DefectError(f"{fields.where}: n_support must add up to {n_support} sequences")
    dual = fields.array("dual", (classes - 1, n_support))
    intercept = fields.array("intercept", (pairs,))
    svc = SVC(kernel="precomputed", C=model.C, class_weight=model.class_weight, tol=model.tol, max_iter=model.max_iter)
    binary = classes == 2
    attributes = {
        "classes_": model.classes_,
        "class_weight_": fields.array("class_weight", (classes,)),
        "support_": support,
        "support_vectors_": np.empty((0, 0)),  # as libsvm has it for a precomputed kernel
        "_n_support": per_class,
        "_dual_coef_": np.ascontiguousarray(dual),
        "dual_coef_": -dual if binary else dual,
        "_intercept_": intercept,
        "intercept_": -intercept if binary else intercept.copy(),
        "_probA": np.empty(0),
        "_probB": np.empty(0),
        "fit_status_": fields.integer("fit_status", 0, 1),
        "n_iter_": fields.array("iterations", (pairs,), np.int32),
        "shape_fit_": (n, n),
        "n_features_in_": n,
        "_sparse": False,
        "_gamma": 0.0,
        "_effective_probability": False,
    }
    attributes["_num_iter"] = attributes["n_iter_"]
    for name, value in attributes.items():
        setattr(svc, name, value)
    return svc


CLASSIFIER = Learner(RNTKClassifier, "n_training_", _describe, _restore)
