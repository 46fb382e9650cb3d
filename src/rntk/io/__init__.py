"""Labelled sequences from files: `read` takes a path and gives the batch and its labels.

In: a UCR ``.tsv`` or ``.txt``, an aeon or sktime ``.ts``, a Weka ``.arff``, or a ``.csv`` with one sequence per row.
Out: a frozen `LabelledSequences`, whose `X` came through the gate (`rntk.sequences.as_batch`) in float64.

Files are data: text is split and turned into numbers, and nothing in a file is ever evaluated or unpickled. Every
mistake in a file, or in the call, is a `DataFileError` that names the file, the line and what to do; all problems
of a file come in one message. Messages count lines and fields from 1, as editors do, and steps from 0, as the rest
of rntk does.

Imports run one way: ``errors`` <- ``source`` (bytes to text) and ``fields`` (text to numbers) <- ``labels`` (text to
classes and targets) <- ``ucr``, ``ts``, ``arff``, ``table`` (one format each) <- ``reader`` (the one door).
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
