"""Files: labelled sequences in (`read`), fitted learners out and in again (`save`, `load`).

`read` takes a UCR ``.tsv`` or ``.txt``, an aeon or sktime ``.ts``, a Weka ``.arff``, or a ``.csv`` with one sequence
per row, and gives a frozen `LabelledSequences`, whose `X` came through the gate (`rntk.sequences.as_batch`) in float64.
Every mistake in a file, or in the call, is a `DataFileError` that names the file, the line and what to do; all problems
of a file come in one message. Messages count lines and fields from 1, as editors do, and steps from 0, as the rest of
rntk does. A new format is a file and a row in ``reader``.

`save` takes a fitted learner, or a pipeline, and writes one ``.rntk`` file; `load` gives it back. A new learner is a
row in ``schema``; a class from outside the package joins by `register`.

Files are data: nothing in one is ever evaluated or unpickled. Imports run one way: ``text`` (what formats have in
common) <- ``ucr``, ``ts``, ``arff``, ``table`` <- ``reader``; ``archive`` (the zip) and ``schema`` (what may be in it)
<- ``models``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import DataFileError
from .reader import LabelledSequences, read

if TYPE_CHECKING:
    from .models import ModelFileError, load, register, save

__all__ = ["DataFileError", "LabelledSequences", "ModelFileError", "load", "read", "register", "save"]


def __getattr__(name: str) -> Any:
    # Reading data needs neither scikit-learn nor Numba; models need both.
    if name in __all__:
        return getattr(import_module(f"{__name__}.models"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
