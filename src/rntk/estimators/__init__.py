"""Learners on any sequence kernel, in the manner of scikit-learn.

In go sequences (whatever `rntk.as_batch` reads) and targets; out come predictions. `base` reads data and evaluates
kernels, of the library or not, in bounded memory; each learner is one module on top; `search` chooses kernels.
"""

from .classifier import RNTKClassifier
from .gaussian_process import RNTKGaussianProcess
from .regressor import RNTKRegressor
from .search import RNTKClassifierCV, RNTKRegressorCV

__all__ = ["RNTKClassifier", "RNTKClassifierCV", "RNTKGaussianProcess", "RNTKRegressor", "RNTKRegressorCV"]
