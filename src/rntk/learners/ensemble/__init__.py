"""The default learners: a fixed ensemble of kernels on views, whose weights leave-one-out decides.

`views` says what a kernel gets to see, `recipe` which kernel reads which view, `leave_one_out` fits ridges and judges
them in closed form, `stacking` weighs what comes out, and the classifier and regressor of `learners` put it together.
"""

from .learners import RNTKClassifier, RNTKRegressor

__all__ = ["RNTKClassifier", "RNTKRegressor"]
