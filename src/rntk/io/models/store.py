"""`save` and `load`, the door to model files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from .archive import FORMAT, FORMAT_VERSION, parse, read_archive, to_text, write_archive
from .arrays import Array, Shelf
from .classifier import CLASSIFIER
from .errors import DefectError, ModelFileError
from .fields import Fields
from .gaussian_process import GAUSSIAN_PROCESS
from .learner import Learner
from .linear import CONVOLUTION, LINEAR_RNN
from .regressor import REGRESSOR, RIDGE_CLASSIFIER
from .searches import CLASSIFIER_SEARCH, REGRESSOR_SEARCH

#: The classes a model file may name.
LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        CLASSIFIER,
        RIDGE_CLASSIFIER,
        REGRESSOR,
        GAUSSIAN_PROCESS,
        CLASSIFIER_SEARCH,
        REGRESSOR_SEARCH,
        LINEAR_RNN,
        CONVOLUTION,
    )
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted learner to a file, by custom named ``.rntk``.

    Parameters
    ----------
    model : a fitted `RNTKSVC`, `RNTKRidgeClassifier`, `RNTKRidge`, `RNTKGaussianProcessRegressor`,
        `RNTKClassifier`, `RNTKRegressor`, `rntk.linear.LinearRNNRegressor` or `ConvRegressor`; with kernels `RNTK`,
        `NTK`, scikit-learn's RBF, Matern, RationalQuadratic, DotProduct, WhiteKernel and ConstantKernel, and their
        sums, products and powers.
    path : where to. A file that is there is replaced, at once and only by a complete one.

    Raises
    ------
    sklearn.exceptions.NotFittedError : there is nothing to save yet.
    ModelFileError : the model holds something a file can't describe (a Python function as kernel or activation, a
        random generator as `random_state`), or the file can't be written.

    Notes
    -----
    The constructor's parameters are written too, except `cache`: a folder of this machine.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rntk import RNTKRidge
    >>> model = RNTKRidge(alpha=0.1).fit([[1.0, 2.0], [3.0], [2.0, 2.0, 1.0]], [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.rntk")
    ...     copy = load(Path(folder) / "model.rntk")
    >>> bool((copy.predict([[1.0, 1.0]]) == model.predict([[1.0, 1.0]])).all())
    True
    """
    where = _as_path(path, "saved")
    learner = LEARNERS.get(type(model).__name__)
    if learner is None or type(model) is not learner.cls:
        raise ModelFileError(f"a {type(model).__name__} cannot be saved: a model file holds {', '.join(LEARNERS)}")
    try:
        shelf = Shelf()
        described = learner.to_json(model, shelf)
        text = to_text(
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "rntk_version": __version__,
                "learner": described,
                "arrays": shelf.digests,
            }
        )
        _rebuild(parse(text.encode()), shelf.arrays)  # what `load` would refuse is refused now
    except DefectError as defect:
        raise ModelFileError(f"this {learner.name} cannot be saved: {defect}") from defect
    try:
        write_archive(where, text, shelf)
    except DefectError as defect:
        raise ModelFileError(f"{where} cannot be written: {defect}") from defect


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted learner in a file that `save` wrote.

    Nothing in the file is executed, so a file from elsewhere is safe to load.

    Raises
    ------
    ModelFileError : there is no such file; it is no model file, damaged, of a newer format, or holds what no model has.

    Examples
    --------
    See `save`.
    """
    where = _as_path(path, "loaded")
    try:
        document, arrays = read_archive(where)
        return _rebuild(document, arrays)
    except DefectError as defect:
        raise ModelFileError(f"{where} cannot be loaded: {defect}") from defect


def _rebuild(document: Any, arrays: Mapping[str, Array]) -> Any:
    fields = Fields.of(document, "the description", arrays).part("learner")
    return LEARNERS[fields.text("class", LEARNERS)].from_json(fields)


def _as_path(path: object, purpose: str) -> Path:
    if isinstance(path, str | os.PathLike):
        name = os.fsdecode(path)
        if name and "\0" not in name:
            return Path(name)
    raise ModelFileError(f"{path!r} cannot be {purpose}: it is not the path of a file")
