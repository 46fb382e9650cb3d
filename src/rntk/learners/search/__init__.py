"""Searches: which kernels, on which views of the sequences, with how much regularisation.

`candidates` lists what is tried, `views` says what a kernel sees, `leave_one_out` judges a Gram matrix in closed form,
and the learners of `ensemble` put them together.
"""

from .ensemble import RNTKClassifier, RNTKRegressor

__all__ = ["RNTKClassifier", "RNTKRegressor"]
