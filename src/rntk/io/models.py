"""Fitted learners in files: `save` writes one, `load` gives it back, and both predict the same to the last bit.

In goes a fitted learner or transformer of rntk, or a scikit-learn `Pipeline` of them; out comes a ``.rntk`` file
(``archive``). What a file may hold is written down in ``schema``, one row per class: constructor parameters and learned
attributes, that is plain values, kernels, arrays, sequences, and objects of other registered classes. `register` adds a
class from outside the package.

A file is data. Loading constructs registered classes and no others, reads no pickle, and runs nothing of the file;
whatever is wrong with one is a `ModelFileError`. The seal finds accidents, not forgers: a forged file can make a model
that predicts nonsense or refuses to, and nothing worse.
"""

from __future__ import annotations

import json
import os
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from .. import __version__
from ..errors import ModelFileError, check_path
from ..kernels.description import PlainForm, quote
from ..sequences import SequenceBatch
from .archive import FORMAT, FORMAT_VERSION, Array, read_archive, to_bytes, write_archive
from .schema import ROWS, Row, register, row_of

__all__ = ["ModelFileError", "load", "register", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted learner to a file, by custom named ``.rntk``.

    Parameters
    ----------
    model : object
        A fitted learner or transformer of rntk, or a scikit-learn `Pipeline` of them; with kernels `RNTK`, `NTK`,
        scikit-learn's, and their sums, products and powers.
    path : str or path-like
        Where to. A file that is there is replaced, at once and only by a complete one.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        There is nothing to save yet.
    ModelFileError
        The model holds something a file can't describe (a Python function as kernel or activation, a random generator
        as `random_state`), or the file can't be written.

    Notes
    -----
    The constructor's parameters are written too, except folders of this machine, such as `cache`.

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
    form = ModelForm({})
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "rntk_version": __version__}
    try:
        text = json.dumps({**head, "model": form.encode(model, "model")}, indent=1, allow_nan=False)
        form.decode_object(json.loads(text)["model"], "model")  # what `load` would refuse is refused now
    except NotFittedError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"this {type(model).__name__} cannot be saved: {error}") from error
    try:
        write_archive(where, text, form.members)
    except OSError as error:
        raise ModelFileError(f"{where} cannot be written: {error.strerror or error}") from error


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted learner in a file that `save` wrote.

    Nothing in the file is executed, so a file from elsewhere is safe to load.

    Parameters
    ----------
    path : str or path-like
        The file.

    Raises
    ------
    ModelFileError
        There is no such file; it is no model file, damaged, of another format, or holds what no model has.

    Examples
    --------
    See `save`.
    """
    where = _as_path(path, "loaded")
    try:
        model, arrays = read_archive(where)
        return ModelForm(arrays).decode_object(model, "model")
    except OSError as error:
        raise ModelFileError(f"{where} cannot be loaded: {error.strerror or error}") from error
    except Exception as error:  # a file made by hand takes zipfile and json to a dozen kinds of exceptions
        raise ModelFileError(f"{where} cannot be loaded: {str(error) or type(error).__name__}") from error


class ModelForm(PlainForm):
    """Plain values, and beyond them arrays by name, sequences, and objects of registered classes.

    Parameters
    ----------
    arrays : dict
        Arrays by name; encoding adds to them.

    Attributes
    ----------
    members : dict
        Name of each array by its bytes, so that equal ones are kept once: members of an ensemble share their sequences.
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays
        self.members: dict[bytes, str] = {}

    def encode(self, value: Any, name: str) -> Any:
        """`value` as JSON; what is not plain becomes an array, or what its row says."""
        if isinstance(value, SequenceBatch):
            parts = {part: getattr(value, part) for part in ("values", "offsets")}
            return {"sequences": [self.encode(each, f"{name}.{part}") for part, each in parts.items()]}
        if isinstance(value, np.ndarray) and value.dtype == object and all(type(each) is str for each in value.flat):
            return {"words": value.tolist()}
        if (row := row_of(value)) is not None:
            return self.encode_object(value, row, name)
        if isinstance(value, BaseEstimator):
            raise ValueError(
                f"{name} is a {type(value).__name__}, unknown to model files; rntk.io.register adds a class"
            )
        return super().encode(value, name)

    def encode_array(self, array: Array, name: str) -> str:
        """The name of an array that was put aside."""
        if array.dtype.kind not in "fiubU" or (array.dtype.kind != "U" and array.dtype.itemsize > 8):
            raise ValueError(f"{name} is an array of {array.dtype}, and a model file holds numbers and words")
        content = to_bytes(array)
        if content not in self.members:
            name = f"{name}-{len(self.arrays)}" if name in self.arrays else name
            self.members[content], self.arrays[name] = name, array
        return self.members[content]

    def encode_object(self, value: Any, row: Row, name: str) -> dict[str, Any]:
        """Parameters and learned attributes of an object of a registered class."""
        word, parameters = row.cls.__name__, signature(row.cls).parameters
        held = [each for each in (*parameters, *row.entries) if each in vars(value) and each not in row.local]
        if row.entries.keys() - row.optional - set(held):
            raise NotFittedError(f"this {word} is not fitted, so there is nothing to save; call fit first")
        learned = {each for each in vars(value) if each.endswith("_") and not each.startswith("_")}
        if unknown := learned - row.entries.keys():
            raise ValueError(f"the schema of {word} says nothing of {', '.join(sorted(unknown))} (rntk.io.register)")
        return {"class": word, "holds": {each: self.encode(getattr(value, each), f"{name}.{each}") for each in held}}

    def decode(self, found: Any, name: str) -> Any:
        """The value that `encode` turned into JSON."""
        match found:
            case {"sequences": [values, offsets]}:
                return SequenceBatch(self.decode(values, name), self.decode(offsets, name))
            case {"words": list(words)} if all(isinstance(word, str) for word in words):
                return np.array(words, dtype=object)
            case {"class": _}:
                return self.decode_object(found, name)
        return super().decode(found, name)

    def decode_array(self, content: Any, name: str) -> Array:
        """The array of a name."""
        if not isinstance(content, str) or content not in self.arrays:
            raise ValueError(f"{name} is {quote(content)}, expected the name of an array in the file")
        return self.arrays[content]

    def decode_object(self, found: Any, name: str) -> Any:
        """An object of a registered class, as its row wants it."""
        match found:
            case {"class": str(word), "holds": dict(held)} if word in ROWS:
                row, known = ROWS[word], signature(ROWS[word].cls).parameters
            case _:
                raise ValueError(f"{name} is {quote(found)}, expected an object of a class known to rntk.io.register")
        if unknown := held.keys() - ({*known} - {*row.local}) - row.entries.keys():
            raise ValueError(f"{name} has {quote(min(unknown))}, which the file of a {word} does not hold")
        decoded = {key: self.decode(each, f"{name}.{key}") for key, each in held.items()}
        value = row.cls(**{key: each for key, each in decoded.items() if key in known})
        for key in [key for key in decoded if key not in known]:
            setattr(value, key, decoded[key])
        row.check(value, name, {})
        return value


def _as_path(path: Any, purpose: str) -> Path:
    try:
        return check_path("path", path)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be {purpose}: {error}") from None
