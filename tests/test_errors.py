"""Errors tell programs by attributes what they tell people by text, and survive a trip between processes."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from rntk import errors
from rntk.activations import balls
from rntk.errors import (
    KernelOverflowError,
    MissingExtraError,
    SequenceError,
    check_choice,
    check_count,
    check_dtype,
    check_positive,
    need_extra,
)
from rntk.sequences import as_batch


@pytest.mark.parametrize(
    "error",
    [
        SequenceError("X is odd", ["odd"], "X"),
        errors.DataFileError("a.tsv cannot be read: why", ["why"], "a.tsv"),
        errors.BusyError("store"),
        KernelOverflowError("{sequence} overflows", 3, "Y"),
        errors.DivergenceError("training diverges", step=7),
        errors.DamagedTileError("store", [(0, 1)]),
        errors.StoreFullError("store", 1, 3, 2000, 100),
        MissingExtraError("plot", "matplotlib", "No module named 'matplotlib'"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_processes_whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_the_sequence_to_blame_can_be_known_by_another_index():
    error = KernelOverflowError("the variance of {sequence} overflows", 3, "X")
    assert str(error) == "the variance of sequence 3 of X overflows"
    moved = error.known_as(103)
    assert (moved.sequence, moved.side) == (103, "")
    assert str(moved) == "the variance of sequence 103 overflows"
    assert str(KernelOverflowError("{braces} and %s stay", 1)) == "{braces} and %s stay"


def test_data_can_be_known_by_another_name():
    with pytest.raises(SequenceError) as caught:
        as_batch([[1.0], []], name="/tmp/data-17.tsv")
    assert caught.value.subject == "/tmp/data-17.tsv"
    renamed = caught.value.known_as("mine.tsv")
    assert str(renamed).startswith("mine.tsv cannot be used")
    assert "/tmp" not in str(renamed)
    assert renamed.problems == caught.value.problems


def test_a_missing_extra_names_what_is_missing(monkeypatch):
    assert need_extra("plot", "json", "json.decoder").__name__ == "json.decoder"
    with pytest.raises(MissingExtraError) as caught:
        need_extra("gpu", "json", "no_such_library.arrays")
    assert (caught.value.extra, caught.value.name) == ("gpu", "no_such_library")
    assert 'pip install "rntk[gpu]"' in str(caught.value)


def test_balls_are_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    balls.flint.cache_clear()
    with pytest.raises(MissingExtraError, match=r"rntk\[reference\]"):
        balls.flint()


def test_what_a_module_needs_itself_is_named(tmp_path, monkeypatch):
    (tmp_path / "outer_library_of_a_test.py").write_text("import inner_library_of_a_test\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError) as caught:
        need_extra("plot", "outer_library_of_a_test")
    assert caught.value.name == "inner_library_of_a_test"


def test_numbers_are_checked():
    assert check_count("n", np.int64(3)) == 3
    assert check_positive("rate", np.float32(0.5)) == 0.5
    assert check_positive("rate", 0, or_zero=True) == 0
    for value in (0, 1.0, True, "2", None):
        with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
            check_count("n", value)
    for value in (0, -1, np.nan, np.inf, True, "1", None, [1.0, 2.0]):
        with pytest.raises(ValueError, match="rate must be a positive number"):
            check_positive("rate", value)
    with pytest.raises(ValueError, match="rate must be a non-negative number"):
        check_positive("rate", -1, or_zero=True)


def test_choices_are_listed():
    assert check_choice("loss", "sum", ("sum", "mean")) == "sum"
    for value in ("max", None, ["sum"]):
        with pytest.raises(ValueError, match='loss must be "sum", "mean" or "none", not'):
            check_choice("loss", value, ("sum", "mean", "none"))


def test_precisions_are_two():
    assert check_dtype("float32") == check_dtype(np.float32) == np.float32
    for value in ("float16", int, "no type"):
        with pytest.raises(ValueError, match="dtype must be float32 or float64"):
            check_dtype(value)


def test_numbers_of_numpy_are_said_without_their_type():
    with pytest.raises(ValueError, match=r"not -1.0$"):
        check_positive("rate", np.float64(-1))
    with pytest.raises(ValueError, match="n must be at most 9, not 1000000000"):
        check_count("n", 10**9, most=9)
