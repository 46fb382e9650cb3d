"""rntk: exact kernels of infinitely wide recurrent networks.

What stands in `__all__`, here and in the parts `adapters`, `finite`, `gram`, `io`, `linear`, `papers`, `plot`,
`preprocessing` and `theory`, is promised; the rest may move. Names load on first use, so that `import rntk` costs
nothing: scikit-learn and Numba come in with the first kernel.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "NTK",
    "RNTK",
    "RNTKSVC",
    "ConjugateGradients",
    "HermiteAccuracyWarning",
    "KernelOverflowError",
    "NystromFeatures",
    "RNTKClassifier",
    "RNTKGaussianProcessRegressor",
    "RNTKRegressor",
    "RNTKRidge",
    "RNTKRidgeClassifier",
    "Sensitivity",
    "SequenceBatch",
    "SequenceError",
    "StepFeatures",
    "activations",
    "as_batch",
    "explain",
    "input_gradient",
    "load",
    "read",
    "save",
    "sensitivity",
    "suggest",
]

_HOME = {
    "NTK": "rntk.kernels",
    "RNTK": "rntk.kernels",
    "RNTKSVC": "rntk.learners",
    "ConjugateGradients": "rntk.learners",
    "HermiteAccuracyWarning": "rntk.errors",
    "KernelOverflowError": "rntk.errors",
    "NystromFeatures": "rntk.learners",
    "RNTKClassifier": "rntk.learners",
    "RNTKClassifierCV": "rntk.learners",
    "RNTKGaussianProcessRegressor": "rntk.learners",
    "RNTKRegressor": "rntk.learners",
    "RNTKRegressorCV": "rntk.learners",
    "RNTKRidge": "rntk.learners",
    "RNTKRidgeClassifier": "rntk.learners",
    "StepFeatures": "rntk.learners",
    "Sensitivity": "rntk.theory",
    "SequenceBatch": "rntk.sequences",
    "SequenceError": "rntk.errors",
    "as_batch": "rntk.sequences",
    "explain": "rntk.learners",
    "input_gradient": "rntk.theory",
    "load": "rntk.io",
    "read": "rntk.io",
    "save": "rntk.io",
    "sensitivity": "rntk.theory",
    "suggest": "rntk.theory",
}

#: Parts that load when they are first touched, `rntk.finite` for example.
_PARTS = (
    "activations",
    "adapters",
    "errors",
    "finite",
    "gram",
    "io",
    "kernels",
    "learners",
    "linear",
    "papers",
    "plot",
    "preprocessing",
    "sequences",
    "theory",
)

if TYPE_CHECKING:
    from . import activations as activations
    from .errors import HermiteAccuracyWarning as HermiteAccuracyWarning
    from .errors import KernelOverflowError as KernelOverflowError
    from .errors import SequenceError as SequenceError
    from .io import load as load
    from .io import read as read
    from .io import save as save
    from .kernels import NTK as NTK
    from .kernels import RNTK as RNTK
    from .learners import RNTKSVC as RNTKSVC
    from .learners import ConjugateGradients as ConjugateGradients
    from .learners import NystromFeatures as NystromFeatures
    from .learners import RNTKClassifier as RNTKClassifier
    from .learners import RNTKClassifierCV as RNTKClassifierCV
    from .learners import RNTKGaussianProcessRegressor as RNTKGaussianProcessRegressor
    from .learners import RNTKRegressor as RNTKRegressor
    from .learners import RNTKRegressorCV as RNTKRegressorCV
    from .learners import RNTKRidge as RNTKRidge
    from .learners import RNTKRidgeClassifier as RNTKRidgeClassifier
    from .learners import StepFeatures as StepFeatures
    from .learners import explain as explain
    from .sequences import SequenceBatch as SequenceBatch
    from .sequences import as_batch as as_batch
    from .theory import Sensitivity as Sensitivity
    from .theory import input_gradient as input_gradient
    from .theory import sensitivity as sensitivity
    from .theory import suggest as suggest


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"rntk.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    near = get_close_matches(name, [*__all__, *_PARTS], 1) if not name.startswith("_") else []
    raise AttributeError(f"module 'rntk' has no attribute {name!r}" + (f"; is it {near[0]!r}?" if near else ""))


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS, "__version__"})
