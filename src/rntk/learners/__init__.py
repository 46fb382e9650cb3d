"""Learners on any sequence kernel, in the manner of scikit-learn.

In go sequences (whatever `rntk.as_batch` reads) and targets; out come predictions. `base` reads data and evaluates
kernels, of the library or not, in bounded memory; each learner is one module on top; `large` is for more sequences than
a Gram matrix in memory allows; `search` chooses kernels.
"""

from .gaussian_process import RNTKGaussianProcess
from .large import NystromFeatures
from .ridge import RNTKRegressor
from .ridge_classifier import RNTKRidgeClassifier
from .search import RNTKClassifierCV, RNTKRegressorCV
from .svm import RNTKClassifier

__all__ = [
    "NystromFeatures",
    "RNTKClassifier",
    "RNTKClassifierCV",
    "RNTKGaussianProcess",
    "RNTKRegressor",
    "RNTKRegressorCV",
    "RNTKRidgeClassifier",
]
