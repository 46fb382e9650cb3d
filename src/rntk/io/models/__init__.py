"""Fitted learners in files: `save` writes one, `load` gives it back, and both predict the same to the last bit.

In goes a fitted `RNTKSVC`, `RNTKRidgeClassifier`, `RNTKRidge`, `RNTKGaussianProcessRegressor`, `RNTKClassifier`,
`RNTKRegressor`, or a regressor of `rntk.linear`; out comes a ``.rntk`` file: a zip, nothing compressed, of
``model.json`` (format, versions, class, parameters, kernels, numbers, and the SHA-256 of every array) and one ``.npy``
per array. The same model gives the same bytes. The zip's comment, the seal, is the SHA-256 of everything before it: a
file that was cut or changed says so.

A file is data. Loading instantiates classes of explicit lists and no others, reads no pickle, and runs nothing of the
file; whatever is wrong with one is a `ModelFileError`. The seal finds accidents, not forgers: a forged file can make a
model that predicts nonsense, and nothing worse.

Imports run one way: ``errors`` <- ``arrays`` (names and bytes of arrays) and ``plain`` (parameter values as JSON) <-
``fields`` (JSON with its types checked) <- ``kernels``, ``labels``, ``sequences`` <- one module per learner, the only
place that knows what it consists of <- ``store`` (the door), with ``archive`` (the zip) beside it.
"""

from __future__ import annotations

from .errors import ModelFileError
from .store import load, save

__all__ = ["ModelFileError", "load", "save"]
