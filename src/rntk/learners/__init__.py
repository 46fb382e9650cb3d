"""Learners on any sequence kernel, in the manner of scikit-learn.

In go sequences (whatever `rntk.as_batch` reads) and targets; out come predictions. `base` reads data and keeps the
training side of the kernel prepared, `rntk.sequences.targets` reads labels, values and weights; each learner is one
module on top: `search` chooses kernels, `svm`, `ridge` and `gaussian_process` take one; `nystrom` and `steps`, with the
`landmarks` they share, and `conjugate` are for more sequences than a Gram matrix in memory allows. `explanation` says
which steps decided what a fitted one says.
"""

from .conjugate import ConjugateGradients
from .explanation import Explanation, explain
from .gaussian_process import RNTKGaussianProcessRegressor
from .nystrom import NystromFeatures
from .ridge import RNTKRidge, RNTKRidgeClassifier
from .search import RNTKClassifier, RNTKRegressor
from .steps import StepFeatures
from .svm import RNTKSVC

#: Other names for the learners that choose kernels themselves.
RNTKClassifierCV = RNTKClassifier
RNTKRegressorCV = RNTKRegressor

__all__ = [
    "RNTKSVC",
    "ConjugateGradients",
    "Explanation",
    "NystromFeatures",
    "RNTKClassifier",
    "RNTKGaussianProcessRegressor",
    "RNTKRegressor",
    "RNTKRidge",
    "RNTKRidgeClassifier",
    "StepFeatures",
    "explain",
]
