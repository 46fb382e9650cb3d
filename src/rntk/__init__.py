"""rntk: exact kernels of infinitely wide recurrent networks.

Everything named in `__all__` is promised; the rest may move. Names load on first use, so that `import rntk` costs
nothing: scikit-learn and Numba come in with the first kernel.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

__all__ = [
    "NTK",
    "RNTK",
    "HermiteAccuracyWarning",
    "KernelOverflowError",
    "NystromFeatures",
    "RNTKClassifier",
    "RNTKClassifierCV",
    "RNTKGaussianProcess",
    "RNTKRegressor",
    "RNTKRegressorCV",
    "RNTKRidgeClassifier",
    "Sensitivity",
    "SequenceBatch",
    "SequenceError",
    "activations",
    "as_batch",
    "input_gradient",
    "sensitivity",
    "suggest",
]

_HOME = {
    "NTK": "rntk.kernels",
    "RNTK": "rntk.kernels",
    "HermiteAccuracyWarning": "rntk.errors",
    "KernelOverflowError": "rntk.errors",
    "NystromFeatures": "rntk.estimators",
    "RNTKClassifier": "rntk.estimators",
    "RNTKClassifierCV": "rntk.estimators",
    "RNTKGaussianProcess": "rntk.estimators",
    "RNTKRegressor": "rntk.estimators",
    "RNTKRegressorCV": "rntk.estimators",
    "RNTKRidgeClassifier": "rntk.estimators",
    "Sensitivity": "rntk.analysis",
    "SequenceBatch": "rntk.sequences",
    "SequenceError": "rntk.errors",
    "as_batch": "rntk.sequences",
    "input_gradient": "rntk.analysis",
    "sensitivity": "rntk.analysis",
    "suggest": "rntk.analysis",
}

#: Parts that load when they are first touched, `rntk.finite` for example.
_PARTS = (
    "activations",
    "adapters",
    "datasets",
    "dynamics",
    "experiments",
    "files",
    "finite",
    "gram",
    "linear",
    "metrics",
    "models",
    "plot",
    "preprocessing",
    "reproduce",
    "theory",
)

if TYPE_CHECKING:
    from . import activations as activations
    from .analysis import Sensitivity as Sensitivity
    from .analysis import input_gradient as input_gradient
    from .analysis import sensitivity as sensitivity
    from .analysis import suggest as suggest
    from .errors import HermiteAccuracyWarning as HermiteAccuracyWarning
    from .errors import KernelOverflowError as KernelOverflowError
    from .errors import SequenceError as SequenceError
    from .estimators import NystromFeatures as NystromFeatures
    from .estimators import RNTKClassifier as RNTKClassifier
    from .estimators import RNTKClassifierCV as RNTKClassifierCV
    from .estimators import RNTKGaussianProcess as RNTKGaussianProcess
    from .estimators import RNTKRegressor as RNTKRegressor
    from .estimators import RNTKRegressorCV as RNTKRegressorCV
    from .estimators import RNTKRidgeClassifier as RNTKRidgeClassifier
    from .kernels import NTK as NTK
    from .kernels import RNTK as RNTK
    from .sequences import SequenceBatch as SequenceBatch
    from .sequences import as_batch as as_batch


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"rntk.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rntk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS, "__version__"})
