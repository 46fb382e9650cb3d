"""Searches: which kernel, on which view of the sequences, with how much regularisation.

`grids` lists candidates, `views` says what a kernel sees, `store` computes each Gram matrix once, `ridge` judges it in
closed form (`fast`) or by folds (`folds`, the paper's protocol). The two estimators put them together.
"""

from .classifier import RNTKClassifierCV
from .regressor import RNTKRegressorCV

__all__ = ["RNTKClassifierCV", "RNTKRegressorCV"]
