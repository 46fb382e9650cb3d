"""The gate for data: what `as_batch` accepts, what it refuses, and what every `SequenceBatch` guarantees."""

from __future__ import annotations

import array
import copy
import dataclasses
import datetime
import fractions
import io
import pickle
import subprocess
import sys
from collections import OrderedDict, UserList, deque
from decimal import Decimal

import numpy as np
import pytest

from rntk.errors import ProblemReport, SequenceError
from rntk.sequences import SequenceBatch, as_batch

FLOAT_TYPES = ("float32", "float64")


def assert_invariants(batch: SequenceBatch) -> None:
    """All that code downstream relies on without checking."""
    values, offsets = batch.values, batch.offsets
    assert type(values) is np.ndarray
    assert type(offsets) is np.ndarray
    assert values.ndim == 2
    assert values.shape[1] >= 1
    assert values.dtype in (np.dtype("float32"), np.dtype("float64"))
    assert values.dtype.isnative
    assert values.flags.c_contiguous
    assert values.flags.aligned
    assert not values.flags.writeable
    assert np.isfinite(values).all()
    assert offsets.dtype == np.int64
    assert offsets.flags.c_contiguous
    assert not offsets.flags.writeable
    assert offsets[0] == 0
    assert offsets[-1] == len(values)
    assert len(offsets) >= 2
    assert (np.diff(offsets) > 0).all()


def assert_holds(batch: SequenceBatch, sequences: list, dtype: str) -> None:
    """The batch satisfies its invariants and holds exactly these (T_i, m) sequences."""
    assert_invariants(batch)
    assert batch.dtype == np.dtype(dtype)
    assert len(batch) == len(sequences)
    for got, wanted in zip(batch, sequences, strict=True):
        np.testing.assert_array_equal(got, np.asarray(wanted, dtype=dtype))
        assert got.shape == np.shape(wanted)


def message_of(X, **options) -> str:
    with pytest.raises(SequenceError) as caught:
        as_batch(X, **options)
    return str(caught.value)


def problems_of(X, **options) -> tuple[str, ...]:
    with pytest.raises(SequenceError) as caught:
        as_batch(X, **options)
    return caught.value.problems


def ragged(lengths=(3, 1, 4), m=2, seed=0) -> list:
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(length, m)) for length in lengths]


class TestWhatIsAccepted:
    def test_two_dimensional_array_is_univariate_sequences_in_rows(self):
        X = np.arange(6.0).reshape(2, 3)
        assert_holds(as_batch(X), [[[0], [1], [2]], [[3], [4], [5]]], "float64")

    def test_three_dimensional_array_is_sequence_time_channel(self):
        X = np.arange(24.0).reshape(2, 4, 3)
        assert_holds(as_batch(X), list(X), "float64")

    @pytest.mark.parametrize("container", [list, tuple, deque, UserList])
    def test_list_likes_of_arrays_are_ragged_sequences(self, container):
        sequences = ragged()
        assert_holds(as_batch(container(sequences)), sequences, "float64")

    def test_one_dimensional_object_array_is_a_list(self):
        sequences = ragged()
        X = np.empty(len(sequences), dtype=object)
        X[:] = sequences
        assert_holds(as_batch(X), sequences, "float64")

    def test_nested_lists_of_numbers(self):
        assert_holds(as_batch([[1, 2.5, True], [4]]), [[[1], [2.5], [1]], [[4]]], "float64")
        assert_holds(as_batch([[[1, 2]], [[3, 4], [5, 6]]]), [[[1, 2]], [[3, 4], [5, 6]]], "float64")

    def test_one_dimensional_sequences_mix_with_single_channel_ones(self):
        batch = as_batch([np.array([1.0, 2.0]), np.array([[3.0]]), [4, 5]])
        assert_holds(batch, [[[1], [2]], [[3]], [[4], [5]]], "float64")

    def test_a_list_of_one_two_dimensional_array_is_one_sequence(self):
        X = np.arange(6.0).reshape(3, 2)
        assert_holds(as_batch([X]), [X], "float64")

    def test_ranges_buffers_and_numpy_subclasses(self):
        items = [
            range(3),
            array.array("d", [1, 2]),
            memoryview(np.array([5.0])),
            np.array([[1.0], [2.0]]).view(np.matrix),
        ]
        assert_holds(as_batch(items), [[[0], [1], [2]], [[1], [2]], [[5]], [[1], [2]]], "float64")

    def test_buffers_keep_their_precision(self):
        assert as_batch([array.array("f", [1, 2])]).dtype == np.float32

    def test_memory_maps_become_plain_arrays(self, tmp_path):
        np.save(tmp_path / "X.npy", np.arange(6.0).reshape(2, 3))
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
        batch = as_batch(X)
        assert_holds(batch, [[[0], [1], [2]], [[3], [4], [5]]], "float64")
        assert np.shares_memory(batch.values, X)

    def test_numbers_of_unusual_types(self):
        items = [[Decimal("1.5"), fractions.Fraction(1, 4), np.float32(2), 10**30, np.True_]]
        assert_holds(as_batch(items), [[[1.5], [0.25], [2], [1e30], [1]]], "float64")

    def test_object_arrays_of_numbers(self):
        assert_holds(as_batch(np.array([[1, 2.5]], dtype=object)), [[[1], [2.5]]], "float64")

    def test_masked_arrays_without_masked_values(self):
        X = np.ma.array([[1.0, 2.0]], mask=False)
        assert_holds(as_batch(X), [[[1], [2]]], "float64")
        assert_holds(as_batch([X[0], np.ma.array([3.0])]), [[[1], [2]], [[3]]], "float64")

    @pytest.mark.parametrize("make", [lambda X: X[::-1, ::2], lambda X: np.asfortranarray(X), lambda X: X.T])
    def test_any_memory_layout(self, make):
        X = make(np.arange(48.0).reshape(4, 12))
        assert_holds(as_batch(X), [row[:, None] for row in X], "float64")

    def test_unaligned_and_byte_swapped_arrays(self):
        raw = np.zeros(8 * 6 + 1, dtype=np.uint8)
        unaligned = raw[1:].view(np.float64).reshape(2, 3)
        unaligned[:] = np.arange(6.0).reshape(2, 3)
        assert not unaligned.flags.aligned
        for X in (unaligned, np.arange(6.0).reshape(2, 3).astype(">f8")):
            assert_holds(as_batch(X), [[[0], [1], [2]], [[3], [4], [5]]], "float64")
        swapped = np.arange(6.0).reshape(2, 3).astype(">f4")
        assert_holds(as_batch(swapped), [[[0], [1], [2]], [[3], [4], [5]]], "float32")

    def test_a_sequence_batch_passes_through(self):
        batch = as_batch(ragged())
        assert as_batch(batch) is batch
        assert as_batch(batch, dtype="float64") is batch
        assert as_batch(batch, dtype="float32").dtype == np.float32

    def test_nothing_is_guessed_about_aeon_layout(self):
        X = np.zeros((5, 2, 300))  # surely 2 channels and 300 steps, but the caller must say so
        with pytest.raises(SequenceError, match="2 steps and 300 channels"):
            as_batch(X)
        assert as_batch(X, layout="time-first").shape == (5, 2, 300)
        assert as_batch(X, layout="channels-first").shape == (5, 300, 2)


class TestForeignLibraries:
    def test_pandas_frame_rows_are_sequences(self):
        pandas = pytest.importorskip("pandas")
        X = np.arange(6.0).reshape(2, 3)
        assert_holds(as_batch(pandas.DataFrame(X)), [row[:, None] for row in X], "float64")
        mixed = pandas.DataFrame({"a": np.array([1, 2], "float32"), "b": [3, 4]})
        assert_holds(as_batch(mixed), [[[1], [3]], [[2], [4]]], "float64")

    def test_pandas_nullable_columns(self):
        pandas = pytest.importorskip("pandas")
        full = pandas.DataFrame({"a": pandas.array([1, 2], dtype="Int64")})
        assert_holds(as_batch(full), [[[1]], [[2]]], "float64")
        holed = pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": [1.0, 2.0]})
        assert [line.split()[1] for line in problems_of(holed)] == ["1"]

    def test_lists_of_series_and_frames(self):
        pandas = pytest.importorskip("pandas")
        series, frame = pandas.Series([1.0, 2.0]), pandas.DataFrame({"only": [3.0]})
        assert_holds(as_batch([series, frame]), [[[1], [2]], [[3]]], "float64")

    def test_series_of_lists_and_of_arrays(self):
        pandas = pytest.importorskip("pandas")
        assert_holds(as_batch(pandas.Series([[1, 2], [3]])), [[[1], [2]], [[3]]], "float64")
        sequences = ragged()
        assert_holds(as_batch(pandas.Series(sequences)), sequences, "float64")

    def test_series_of_numbers_is_a_single_sequence(self):
        pandas = pytest.importorskip("pandas")
        assert "X[None, :]" in message_of(pandas.Series([1.0, 2.0]))

    @pytest.mark.parametrize("kind", ["list_", "large_list", "list_view"])
    def test_arrow_lists(self, kind):
        arrow = pytest.importorskip("pyarrow")
        column = arrow.array([[9.0], [1.0, 2.0], [3.0]], getattr(arrow, kind)(arrow.float32()))
        assert_holds(as_batch(column), [[[9]], [[1], [2]], [[3]]], "float32")
        assert_holds(as_batch(column[1:]), [[[1], [2]], [[3]]], "float32")

    def test_arrow_chunked_arrays(self):
        arrow = pytest.importorskip("pyarrow")
        column = arrow.chunked_array([[[1, 2]], [[3], [4, 5]]])
        assert_holds(as_batch(column), [[[1], [2]], [[3]], [[4], [5]]], "float64")

    def test_arrow_fixed_size_lists(self):
        arrow = pytest.importorskip("pyarrow")
        column = arrow.array([[9, 9], [1, 2], [3, 4]], arrow.list_(arrow.float64(), 2))
        assert_holds(as_batch(column[1:]), [[[1], [2]], [[3], [4]]], "float64")

    def test_arrow_nested_lists_are_multivariate(self):
        arrow = pytest.importorskip("pyarrow")
        sequences = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]
        assert_holds(as_batch(arrow.array(sequences)), sequences, "float64")

    def test_arrow_tensors_keep_their_shape(self):
        arrow = pytest.importorskip("pyarrow")
        X = np.arange(12.0).reshape(2, 3, 2)
        column = arrow.FixedShapeTensorArray.from_numpy_ndarray(X)
        assert_holds(as_batch(column), list(X), "float64")
        assert_holds(as_batch(arrow.chunked_array([column])), list(X), "float64")

    def test_arrow_nulls_and_empty_lists_are_reported(self):
        arrow = pytest.importorskip("pyarrow")
        lines = problems_of(arrow.array([[1.0, None], None, [], [1.0]]))
        assert [line.split()[:3] for line in lines] == [
            ["sequence", "0", "has"],
            ["sequence", "1", "is"],
            ["sequence", "2", "is"],
        ]
        assert problems_of(arrow.array([[1, None], [2]])) == ("sequence 0 has 1 NaN at step 1",)
        assert problems_of(arrow.array([[1.0], []]))[0].startswith("sequence 1 is empty")
        assert "X[None, :]" in message_of(arrow.array([1.0, 2.0]))
        assert "holds no sequences" in message_of(arrow.array([], arrow.list_(arrow.float64())))

    def test_jax_arrays(self):
        jax_numpy = pytest.importorskip("jax.numpy")
        X = jax_numpy.arange(6.0, dtype="float32").reshape(2, 3)
        assert_holds(as_batch(X), [[[0], [1], [2]], [[3], [4], [5]]], "float32")
        assert_holds(as_batch([X[0], X[1, :2]]), [[[0], [1], [2]], [[3], [4]]], "float32")
        assert as_batch(X.astype("bfloat16")).dtype == np.float32
        assert as_batch([X[0].astype("bfloat16"), np.zeros(2)]).dtype == np.float64
        lines = problems_of([X[0].astype("bfloat16"), np.array([np.nan], "float16")])  # these do not promote
        assert lines == ("sequence 1 has 1 NaN at step 0",)

    def test_objects_that_only_speak_dlpack(self):
        class Tensor:
            def __init__(self, values):
                self.values = values

            def __dlpack__(self, **options):
                return self.values.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

        X = np.arange(6.0).reshape(2, 3)
        batch = as_batch(Tensor(X))
        assert_holds(batch, [row[:, None] for row in X], "float64")
        assert np.shares_memory(batch.values, X)
        assert_holds(as_batch([Tensor(X[0])]), [X[0][:, None]], "float64")

    def test_a_refused_conversion_is_quoted(self):
        class Tensor:
            def __array__(self, dtype=None, copy=None):
                raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

        assert "requires grad" in message_of(Tensor())
        assert problems_of([[1.0], Tensor()])[0].startswith("sequence 1 is an object of type Tensor")

    def test_lack_of_memory_is_not_called_bad_data(self):
        class Enormous:
            def __array__(self, dtype=None, copy=None):
                raise MemoryError

        for X in (Enormous(), [Enormous()], [[Enormous()]]):
            with pytest.raises(MemoryError):
                as_batch(X)

    def test_importing_the_gate_imports_none_of_them(self):
        code = (
            "import sys, rntk.sequences; "
            "print([m for m in ('pandas', 'pyarrow', 'torch', 'jax', 'polars') if m in sys.modules])"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "[]"


class TestPrecision:
    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("bool", "float64"),
            ("int8", "float64"),
            ("uint64", "float64"),
            ("float16", "float32"),
            ("float32", "float32"),
            ("float64", "float64"),
            ("longdouble", "float64"),
        ],
    )
    def test_dtype_kept(self, given, kept):
        X = np.array([[0, 1, 1]]).astype(given)
        assert_holds(as_batch(X), [[[0], [1], [1]]], kept)
        assert_holds(as_batch([X[0]]), [[[0], [1], [1]]], kept)

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (("float32", "float16"), "float32"),
            (("float32", "float64"), "float64"),
            (("float32", "int8"), "float64"),
            (("float16", "bool"), "float64"),
        ],
    )
    def test_mixed_input_takes_the_wider_type(self, given, kept):
        X = [np.array([1, 0]).astype(dtype) for dtype in given]
        assert_holds(as_batch(X), [[[1], [0]], [[1], [0]]], kept)

    @pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), ">f4"])
    def test_the_argument_overrides(self, dtype):
        assert_holds(as_batch([[1, 2]], dtype=dtype), [[[1], [2]]], "float32")
        assert_holds(as_batch(np.ones((1, 2), "float64"), dtype=dtype), [[[1], [1]]], "float32")

    def test_float_means_float64(self):
        assert as_batch(np.ones((1, 2), "float32"), dtype=float).dtype == np.float64

    @pytest.mark.parametrize("dtype", ["int32", "float16", "complex64", "nonsense", object(), np.longdouble])
    def test_other_dtypes_are_refused(self, dtype):
        assert problems_of([[1.0]], dtype=dtype)[0].startswith("dtype must be 'float32'")

    def test_a_wrong_dtype_does_not_hide_wrong_data(self):
        assert len(problems_of([[np.nan], [1.0]], dtype="int32")) == 2

    def test_overflow_in_the_cast_is_reported_with_its_place(self):
        X = np.ones((3, 4))
        X[1, 2] = 1e300
        text = message_of(X, dtype="float32")
        assert "sequence 1 has 1 value(s) too large for float32 at step 2" in text
        assert "dtype='float64'" in text
        assert "infinite" not in text
        assert message_of(list(X), dtype="float32") == text

    def test_overflow_and_infinity_are_told_apart(self):
        (line,) = problems_of([[1.0, 1e39, -np.inf, np.nan]], dtype="float32")
        expected = "1 NaN and 1 infinite value(s) and 1 value(s) too large for float32, the first at step 1"
        assert line == f"sequence 0 has {expected}"

    @pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider type here")
    def test_extended_precision_overflow(self):
        X = np.array([[1, np.longdouble("1e400")]])
        assert "too large for float64 at step 1" in problems_of(X)[0]

    def test_python_integers_beyond_float64(self):
        assert "too large for float64 at step 1" in problems_of([[1, 10**400]])[0]

    def test_underflow_is_not_an_error(self):
        assert_holds(as_batch([[1e-300]], dtype="float32"), [[[0.0]]], "float32")


class TestMemory:
    @pytest.mark.parametrize("dtype", FLOAT_TYPES)
    @pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (1, 1), (1, 1, 1)])
    def test_contiguous_float_arrays_are_not_copied(self, shape, dtype):
        X = np.ones(shape, dtype)
        batch = as_batch(X)
        assert np.shares_memory(batch.values, X)
        assert X.flags.writeable
        X[0, 0] = 7.0  # documented: the view follows
        assert batch.values[0, 0] == 7.0

    def test_a_single_array_in_a_list_is_not_copied_and_stays_writable(self):
        X = np.ones((4, 2))
        assert np.shares_memory(as_batch([X]).values, X)
        assert X.flags.writeable

    def test_arrow_values_are_not_copied(self):
        arrow = pytest.importorskip("pyarrow")
        column = arrow.array([[1.0, 2.0], [3.0]])
        assert np.shares_memory(as_batch(column).values, column.values.to_numpy())

    def test_a_cast_copies(self):
        X = np.ones((4, 5))
        assert not np.shares_memory(as_batch(X, dtype="float32").values, X)

    def test_values_cannot_be_written_through_the_batch(self):
        batch = as_batch(np.ones((2, 3)))
        for view in (batch.values, batch.offsets, batch[0], next(iter(batch))):
            with pytest.raises(ValueError, match="read-only"):
                view[0] = 0


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("X", "words"),
        [
            (None, "X is None"),
            ("abc", "X is the string 'abc'"),
            (b"abc", "X is the bytes b'abc'"),
            (bytearray(b"abc"), "type bytearray"),
            (3.5, "X is a bare number"),
            (2, "X is a bare number"),
            (True, "X is a bare number"),
            (1j, "X is a complex number"),
            (np.float64(2), "X is a bare number"),
            (np.array(2.0), "X is a bare number"),
            (np.datetime64("2020-01-01"), "type datetime64"),
            (object(), "type object"),
            (len, "type builtin_function_or_method"),
        ],
    )
    def test_things_that_are_no_collection(self, X, words):
        assert words in message_of(X)

    @pytest.mark.parametrize(
        "X",
        [
            {},
            {"a": [1.0]},
            OrderedDict(a=[1.0]),
            {1.0},
            frozenset({1.0}),
            {"a": [1.0]}.values(),
            {1: 2}.keys(),
        ],
    )
    def test_mappings_and_sets_are_told_to_become_lists(self, X):
        assert "pass a list" in message_of(X)
        assert "pass a list" in message_of([X])

    @pytest.mark.parametrize("make", [iter, lambda X: (x for x in X), lambda X: map(np.asarray, X), zip])
    def test_iterators_are_told_to_become_lists(self, make):
        assert "pass a list" in message_of(make([[1.0, 2.0]]))

    @pytest.mark.parametrize("X", [np.arange(5.0), np.arange(5), list(range(5)), range(5), (1.0,) * 5])
    def test_a_single_sequence_is_told_how_to_be_passed(self, X):
        text = message_of(X, name="train")
        assert "train is one sequence of 5 numbers" in text
        assert "train[None, :]" in text
        assert "[train]" in text

    @pytest.mark.parametrize("X", [[], (), np.empty((0, 3)), np.empty((0, 3, 2)), np.array([]), deque()])
    def test_no_sequences(self, X):
        assert "X holds no sequences" in message_of(X)

    def test_no_steps_and_no_channels_in_an_array(self):
        assert len(problems_of(np.empty((3, 0)))) == 1
        assert "empty (shape (3, 0)" in message_of(np.empty((3, 0)))
        assert "empty (shape (3, 0, 2)" in message_of(np.empty((3, 0, 2)))
        assert "no channels (shape (3, 2, 0))" in message_of(np.empty((3, 2, 0)))
        assert len(problems_of(np.empty((3, 0, 0)))) == 2

    def test_no_steps_and_no_channels_in_a_list(self):
        lines = problems_of([[1.0], [], np.empty((0, 3)), np.empty((3, 0)), [[]]])
        assert [line.split(" (")[0] for line in lines] == [
            "sequence 1 is empty",
            "sequence 2 is empty",
            "sequence 3 has no channels",
            "sequence 4 has no channels",
        ]

    def test_wrong_number_of_dimensions_shows_the_shape(self):
        assert "X has 4 dimensions (shape (1, 2, 3, 4))" in message_of(np.zeros((1, 2, 3, 4)))
        assert "sequence 1 has 3 dimensions (shape (2, 3, 4))" in message_of([np.zeros(2), np.zeros((2, 3, 4))])
        assert "sequence 1 is a bare number" in message_of([np.zeros(2), 4.0])
        assert "sequence 1 is a bare number" in message_of([np.zeros(2), np.array(4.0)])

    def test_channel_mismatch_says_who_has_how_many(self):
        X = [np.zeros((2, 3)), np.zeros((2, 4)), np.zeros((1, 3)), np.zeros(5)]
        text = message_of(X)
        assert "3 in sequences 0, 2; 4 in sequence 1; 1 in sequence 3" in text
        assert "from_aeon" in text

    def test_channel_mismatch_stays_short(self):
        text = message_of([np.zeros((2, width)) for width in range(1, 2001)])
        assert len(text) < 700
        assert "1995 other numbers" in text
        text = message_of([np.zeros((2, 1 + (i == 77))) for i in range(2000)])
        assert "1 in sequences 0, 1, 2, 3, 4 and 1994 more; 2 in sequence 77" in text

    @pytest.mark.parametrize(
        ("dtype", "words"),
        [
            ("U3", "strings"),
            ("S3", "strings"),
            ("complex64", "complex numbers"),
            ("datetime64[s]", "dates"),
            ("timedelta64[s]", "time differences"),
            ([("a", "f8")], "no real numbers"),
        ],
    )
    def test_dtypes_without_real_numbers(self, dtype, words):
        X = np.zeros((2, 3), dtype)
        assert f"X holds {words} (dtype" in message_of(X)
        assert f"X holds {words} (dtype" in message_of(X[0])
        assert f"sequence 1 holds {words} (dtype" in message_of([np.zeros(3), X[0]])

    @pytest.mark.parametrize(
        ("cell", "words"),
        [
            ("oops", "the string 'oops'"),
            (b"oops", "the bytes b'oops'"),
            (1j, "a complex number"),
            (np.complex64(1j), "a complex number"),
            (datetime.date(2020, 1, 1), "type date"),
            (np.datetime64("2020-01-01"), "datetime64"),
            (np.timedelta64(1, "s"), "timedelta64"),
            (np.timedelta64(1, "ns"), "timedelta64"),  # whose item() is an integer
            ({}, "type dict"),
            (Decimal("sNaN"), "type Decimal"),
        ],
    )
    def test_a_wrong_cell_is_found(self, cell, words):
        cells = np.empty((3, 2, 2), dtype=object)
        cells[:] = 1.0
        cells[1, 1, 0] = cell
        (line,) = problems_of(cells)
        assert line.startswith("sequence 1 has a value that is no real number (")
        assert words in line
        assert line.endswith("at step 1, channel 0")
        assert problems_of(list(cells)) == (line,)
        assert problems_of(cells.tolist()) == (line,)

    def test_wrong_cells_are_counted(self):
        wrong, absent = problems_of([[1.0, "a", b"b", None, 2.0]])
        assert "2 times" in wrong
        assert "(the string 'a') at step 1" in wrong
        assert "a missing value (None) at step 3" in absent

    def test_numeric_strings_are_not_parsed(self):
        assert "the string '1'" in message_of([["1", "2"]])

    def test_byte_arrays_are_not_read_as_small_integers(self):
        assert problems_of([[bytearray(b"ab"), bytearray(b"cd")]]) == ("sequence 0 holds bytes",)

    def test_ragged_steps_within_a_sequence(self):
        assert "sequence 1 is a nested list that does not stack" in message_of([[1.0], [[1.0], [1.0, 2.0]]])

    def test_masked_values(self):
        X = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 0], [0, 1, 1]])
        (line,) = problems_of(X)
        assert line == "sequence 1 has 2 times a masked value, first at step 1"
        assert problems_of(list(X)) == (line,)
        assert problems_of([[1.0], [1.0, np.ma.masked]]) == ("sequence 1 holds masked values",)
        assert problems_of([[X[1], X[1]]]) == ("sequence 0 holds masked values",)
        assert problems_of([[[np.ma.masked, 1.0]]]) == ("sequence 0 holds masked values",)
        assert "masked" in problems_of([[1.0], np.ma.masked])[0]

    def test_what_lies_under_a_mask_does_not_matter_but_the_rest_does(self):
        X = np.ma.array([[1.0, np.nan], [np.nan, 1.0]], mask=[[0, 1], [0, 0]])
        assert len(problems_of(X)) == 2

    def test_sparse_matrices(self):
        sparse = pytest.importorskip("scipy.sparse")
        for matrix in (sparse.csr_matrix(np.eye(2)), sparse.coo_array(np.eye(2))):
            assert ".toarray()" in message_of(matrix)
            assert "sequence 0 is" in message_of([matrix])

    def test_batches_inside_lists(self):
        assert "itself a SequenceBatch" in message_of([as_batch([[1.0]])])

    def test_a_list_that_contains_itself(self):
        X: list = [1.0]
        X.append(X)
        assert "X" in message_of(X)


class TestNotFinite:
    def test_place_and_count_univariate(self):
        X = np.ones((3, 5))
        X[1, 2] = X[1, 4] = np.nan
        assert problems_of(X) == ("sequence 1 has 2 NaN, the first at step 2",)
        assert problems_of(list(X)) == problems_of(X)

    def test_place_and_count_multivariate(self):
        X = np.ones((3, 5, 2))
        X[2, 3, 1] = -np.inf
        assert problems_of(X) == ("sequence 2 has 1 infinite value(s) at step 3, channel 1",)

    def test_ragged_places_are_counted_within_the_sequence(self):
        X = ragged((3, 1, 4))
        X[2][1, 0] = np.nan
        X[0][2, 1] = np.inf
        assert problems_of(X) == (
            "sequence 0 has 1 infinite value(s) at step 2, channel 1",
            "sequence 2 has 1 NaN at step 1, channel 0",
        )

    def test_indices_are_those_of_the_user_when_other_sequences_are_unreadable(self):
        lines = problems_of([None, [1.0], [], np.zeros((2, 2)), [1.0, np.nan], np.full((1, 2), np.inf)])
        assert "X mixes different numbers of channels: 1 in sequences 1, 4; 2 in sequences 3, 5" in lines[0]
        assert [line[:10] for line in lines[1:]] == [f"sequence {i}" for i in (0, 2, 4, 5)]

    @pytest.mark.parametrize("channels", [1, 3])
    def test_trailing_nan_point_to_from_padded(self, channels):
        X = np.ones((4, 6, channels))
        X[2, 4:] = np.nan
        text = message_of(X)
        assert "NaN is never a length marker" in text
        assert "SequenceBatch.from_padded(values, lengths)" in text
        assert "sequence 2" in text.split("What to try")[1]
        assert "impute" not in text

    def test_interior_nan_point_to_imputation(self):
        X = np.ones((4, 6))
        X[2, 4] = np.nan
        text = message_of(X)
        assert "NaN is never a length marker" in text
        assert "those of sequence 2" in text
        assert "rntk.preprocessing.Interpolate().fit_transform(X)" in text
        assert "from_padded" not in text

    def test_nan_in_one_channel_up_to_the_end_is_not_padding(self):
        X = np.ones((2, 6, 2))
        X[0, 4:, 1] = np.nan
        text = message_of(X)
        assert "Interpolate" in text
        assert "from_padded" not in text

    def test_trailing_infinity_is_not_padding(self):
        text = message_of([[1.0, np.nan, np.inf]])
        assert "from_padded" not in text
        assert "infinite" in text.split("What to try")[1]

    def test_both_kinds_of_nan_give_both_hints(self):
        text = message_of([[1.0, np.nan], [np.nan, 1.0]])
        assert "trailing NaN of sequence 0" in text
        assert "those of sequence 1" in text

    def test_a_sequence_of_nothing_but_nan_is_to_be_dropped(self):
        text = message_of([[1.0, 2.0], [np.nan, np.nan]])
        assert "drop sequence 1" in text
        assert "from_padded" not in text

    def test_hints_cover_sequences_the_message_leaves_out(self):
        X = np.ones((50, 4))
        X[:40, 1] = np.nan
        X[45, 2:] = np.nan
        text = message_of(X)
        assert "sequence 45" not in text.split("What to try")[0]
        assert "trailing NaN of sequence 45" in text

    def test_a_non_finite_value_is_found_wherever_it_hides_in_a_large_array(self):
        X = np.zeros((50, 4001))
        for position in (0, 65535, 65536, X.size - 1):
            X.flat[position] = np.nan
            row, step = divmod(position, 4001)
            assert problems_of(X) == (f"sequence {row} has 1 NaN at step {step}",)
            X.flat[position] = 0.0


class TestMessages:
    def test_everything_at_once(self):
        X = [[1.0], None, "text", [], np.zeros((2, 2, 2)), [np.nan, 1.0], {}, [1.0, "a"], np.zeros((1, 2))]
        text = message_of(X, name="series")
        assert text.startswith("series cannot be used as sequences (8 problems):")
        assert "series mixes" in text
        for index in range(1, 8):
            assert f"- sequence {index} " in text

    def test_long_lists_are_cut_and_counted_by_kind(self):
        X = [[np.nan]] * 40 + [[]] * 3 + [None]
        text = message_of(X)
        lines = [line for line in text.splitlines() if line.startswith("  - sequence")]
        assert len(lines) == 10
        assert "(44 problems)" in text
        assert "... and 34 more (2 empty, 32 not finite)" in text
        assert "sequence 40 is empty" in text  # the first of every kind is shown
        assert "sequence 43 is None" in text

    def test_ten_problems_are_all_shown_and_eleven_are_not(self):
        assert "more" not in message_of([[]] * 10)
        assert "... and 1 more (1 empty)" in message_of([[]] * 11)

    def test_a_message_about_a_huge_array_is_short(self):
        assert len(message_of(np.full((100_000, 3), np.nan))) < 1200

    @pytest.mark.parametrize(
        "X",
        [
            None,
            3,
            {},
            iter([]),
            [],
            [[]],
            [[np.nan]],
            [[np.inf]],
            [["a"]],
            [[10**400]],
            [[1, [2]]],
            [[1.0], [[1.0, 2.0]]],
            np.zeros(3),
            np.zeros((1, 1, 1, 1)),
            np.zeros((2, 2), complex),
            np.ma.masked_all((1, 2)),
        ],
    )
    def test_every_message_names_the_argument_and_ends_with_what_to_try(self, X):
        text = message_of(X, name="panel")
        assert text.startswith("panel ")
        head, _, advice = text.partition("\nWhat to try:\n")
        assert head.count("\n  - ") >= 1
        assert advice.startswith("  - ")

    def test_dtype_problems_come_with_advice(self):
        assert "What to try" in message_of([[1.0]], dtype="int8")

    def test_errors_are_value_errors_and_survive_pickle(self):
        with pytest.raises(ValueError, match="cannot be used") as caught:
            as_batch([[np.nan]])
        assert isinstance(caught.value, SequenceError)
        clone = pickle.loads(pickle.dumps(caught.value))
        assert type(clone) is SequenceError
        assert str(clone) == str(caught.value)
        assert clone.problems == caught.value.problems != ()

    def test_strings_in_messages_are_cut(self):
        assert len(message_of("x" * 10_000)) < 300

    def test_a_report_without_problems_makes_no_error(self):
        report = ProblemReport("X")
        assert not report
        with pytest.raises(AssertionError):
            report.error()


class TestBatch:
    def test_shape_properties(self):
        batch = as_batch(ragged((3, 1, 4), m=2))
        assert len(batch) == 3
        assert batch.n_channels == 2
        assert batch.lengths.tolist() == [3, 1, 4]
        assert batch.lengths.dtype == np.int64
        assert batch.max_length == 4
        assert batch.dtype == np.float64
        assert not batch.is_equal_length
        assert as_batch(np.ones((3, 2))).is_equal_length
        assert as_batch([[1.0, 2.0]]).is_equal_length

    def test_indexing(self):
        sequences = ragged((3, 1, 4))
        batch = as_batch(sequences)
        for index in (0, 1, 2, -1, -3, np.int64(1)):
            np.testing.assert_array_equal(batch[index], sequences[index])
            assert np.shares_memory(batch[index], batch.values)
            assert not batch[index].flags.writeable
        for index in (3, -4):
            with pytest.raises(IndexError, match="batch of 3"):
                batch[index]
        for index in (1.0, None, "a"):
            with pytest.raises(TypeError, match="take"):
                batch[index]

    def test_iteration_agrees_with_indexing(self):
        batch = as_batch(ragged((3, 1, 4)))
        for index, sequence in enumerate(batch):
            np.testing.assert_array_equal(sequence, batch[index])
            assert not sequence.flags.writeable
        assert index == 2

    @pytest.mark.parametrize("indices", [[2, 0], [1], [0, 0, 1], [-1, 0], np.array([3, 2, 1, 0], "uint8"), (1, 3)])
    def test_take(self, indices):
        sequences = ragged((3, 1, 4, 2))
        taken = as_batch(sequences).take(indices)
        assert_holds(taken, [sequences[i] for i in indices], "float64")

    def test_take_of_a_run_shares_memory(self):
        sequences = ragged((3, 1, 4, 2))
        batch = as_batch(sequences)
        taken = batch.take([1, 2])
        assert_holds(taken, sequences[1:3], "float64")
        assert np.shares_memory(taken.values, batch.values)

    def test_take_refuses_what_is_no_index(self):
        batch = as_batch(ragged((3, 1, 4)))
        with pytest.raises(SequenceError, match="at least one"):
            batch.take([])
        for indices in ([3], [0, -4], np.array([2**63], "uint64")):
            with pytest.raises(IndexError, match=r"outside a batch of 3"):
                batch.take(indices)
        with pytest.raises(TypeError, match="flatnonzero"):
            batch.take([True, False, True])
        for indices in (1, [1.0], [[0, 1]], ["a"]):
            with pytest.raises(TypeError, match="one-dimensional array of integers"):
                batch.take(indices)

    def test_reversed_reads_every_sequence_backwards(self):
        sequences = ragged((3, 1, 4))
        batch = as_batch(sequences)
        assert_holds(batch.reversed(), [sequence[::-1] for sequence in sequences], "float64")
        assert_holds(batch.reversed().reversed(), sequences, "float64")

    def test_astype(self):
        batch = as_batch(ragged((3, 1)))
        assert batch.astype(batch.dtype) is batch
        assert batch.astype("float64") is batch
        single = batch.astype("float32")
        assert_holds(single, [sequence.astype("float32") for sequence in batch], "float32")
        assert_invariants(single.astype(np.float64))
        with pytest.raises(SequenceError, match="dtype must be"):
            batch.astype("int32")

    def test_astype_reports_overflow(self):
        batch = as_batch([[1.0], [1.0, 1e300]])
        with pytest.raises(SequenceError, match=r"sequence 1 has 1 value\(s\) too large for float32 at step 1"):
            batch.astype("float32")
        with pytest.raises(SequenceError, match="train cannot"):
            as_batch(batch, dtype="float32", name="train")

    def test_frozen_slotted_and_compared_by_identity(self):
        batch = as_batch([[1.0]])
        with pytest.raises(dataclasses.FrozenInstanceError):
            batch.values = np.zeros((1, 1))
        assert not hasattr(batch, "__dict__")
        assert batch == batch
        assert batch != as_batch([[1.0]])
        assert len({batch, as_batch([[1.0]])}) == 2

    def test_repr_is_short_and_says_the_shape(self):
        assert repr(as_batch(ragged((3, 1)))) == "SequenceBatch(2 sequences, lengths 1 to 3, 2 channels, float64)"
        assert repr(as_batch([[1.0, 2.0]])) == "SequenceBatch(1 sequence, length 2, 1 channel, float64)"

    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize("m", [1, 2])
    def test_pickle(self, protocol, m):
        sequences = ragged((3, 1, 4), m=m)
        clone = pickle.loads(pickle.dumps(as_batch(sequences), protocol=protocol))
        assert_holds(clone, sequences, "float64")

    def test_pickle_with_out_of_band_buffers(self):
        batch = as_batch(ragged())
        buffers: list = []
        data = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
        assert buffers
        assert_holds(pickle.loads(data, buffers=buffers), list(batch), "float64")

    def test_joblib_round_trip(self):
        joblib = pytest.importorskip("joblib")
        batch, stream = as_batch(ragged()), io.BytesIO()
        joblib.dump(batch, stream)
        stream.seek(0)
        assert_holds(joblib.load(stream), list(batch), "float64")

    def test_copies(self):
        X = np.ones((2, 3))
        batch = as_batch(X)
        assert np.shares_memory(copy.copy(batch).values, X)
        detached = copy.deepcopy(batch)
        assert not np.shares_memory(detached.values, X)
        for clone in (copy.copy(batch), detached):
            assert_holds(clone, list(batch), "float64")


class TestConstructor:
    def test_accepts_the_layout_and_leaves_the_callers_flags_alone(self):
        values, offsets = np.arange(6.0).reshape(3, 2), np.array([0, 1, 3])
        batch = SequenceBatch(values, offsets)
        assert_holds(batch, [values[:1], values[1:]], "float64")
        assert np.shares_memory(batch.values, values)
        assert values.flags.writeable
        assert offsets.flags.writeable
        offsets[1] = 2
        assert batch.offsets.tolist() == [0, 1, 3]

    def test_makes_the_layout_contiguous(self):
        values = np.asfortranarray(np.arange(6.0).reshape(3, 2))
        assert_holds(SequenceBatch(values, np.array([0, 3], "int32")), [values], "float64")

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ([[1.0]], "plain NumPy array"),
            (np.ma.masked_all((1, 1)), "plain NumPy array"),
            (np.ones((1, 1), int), "float32 or float64"),
            (np.ones((1, 1), ">f8"), "float32 or float64"),
            (np.ones(1), r"shape \(S, m\)"),
            (np.ones((1, 0)), r"shape \(S, m\)"),
            (np.array([[np.nan]]), "sequence 0 has 1 NaN at step 0"),
        ],
    )
    def test_refuses_other_values(self, values, words):
        with pytest.raises(SequenceError, match=words):
            SequenceBatch(values, np.array([0, 1]))

    @pytest.mark.parametrize(
        ("offsets", "words"),
        [
            ([0.0, 3.0], "integers"),
            ([[0, 3]], "integers"),
            ([0], "n >= 1"),
            ([1, 3], "start at 0"),
            ([0, 2], "end at the number of steps, 3"),
            ([0, 2, 2, 3], "sequence 1 has no steps"),
            ([0, 4, 3], "strictly increase"),
        ],
    )
    def test_refuses_other_offsets(self, offsets, words):
        with pytest.raises(SequenceError, match=words):
            SequenceBatch(np.ones((3, 1)), np.array(offsets))

    def test_unsigned_offsets_cannot_wrap_around(self):
        with pytest.raises(SequenceError, match="strictly increase"):
            SequenceBatch(np.ones((3, 1)), np.array([0, 4, 3], "uint64"))

    def test_tells_all_problems_at_once(self):
        with pytest.raises(SequenceError) as caught:
            SequenceBatch(np.ones(3, int), np.array([1, 0]))
        assert len(caught.value.problems) == 4
        assert "as_batch" in str(caught.value)


class TestFromAeon:
    def test_three_dimensional(self):
        X = np.arange(24.0).reshape(2, 3, 4)  # 3 channels, 4 steps
        assert_holds(SequenceBatch.from_aeon(X), [x.T for x in X], "float64")

    def test_two_dimensional_is_univariate(self):
        X = np.arange(6.0).reshape(2, 3)
        assert_holds(SequenceBatch.from_aeon(X), [row[:, None] for row in X], "float64")

    def test_lists(self):
        sequences = ragged((3, 1, 4))
        assert_holds(SequenceBatch.from_aeon([x.T for x in sequences]), sequences, "float64")
        assert_holds(SequenceBatch.from_aeon([[[1.0, 2.0]], np.array([3.0])]), [[[1], [2]], [[3]]], "float64")

    def test_agrees_with_a_collection_made_by_aeon(self):
        pytest.importorskip("aeon")
        from aeon.testing.data_generation import make_example_3d_numpy_list

        X, _ = make_example_3d_numpy_list(n_cases=3, n_channels=2, random_state=0)
        assert_holds(SequenceBatch.from_aeon(X), [x.T for x in X], "float64")

    def test_univariate_arrays_are_not_copied(self):
        X = np.ones((3, 1, 5))
        assert np.shares_memory(SequenceBatch.from_aeon(X).values, X)
        assert X.flags.writeable

    def test_dtype_and_passing_through(self):
        batch = SequenceBatch.from_aeon(np.ones((2, 3, 4)), dtype="float32")
        assert batch.dtype == np.float32
        assert SequenceBatch.from_aeon(batch) is batch

    def test_problems_are_told_in_steps_and_channels(self):
        X = np.ones((2, 3, 4))
        X[1, 2, 0] = np.nan
        with pytest.raises(SequenceError, match="sequence 1 has 1 NaN at step 0, channel 2"):
            SequenceBatch.from_aeon(X)
        with pytest.raises(SequenceError, match="3 in sequence 0; 2 in sequence 1"):
            SequenceBatch.from_aeon([np.ones((3, 4)), np.ones((2, 4))])
        with pytest.raises(SequenceError, match="no channels"):
            SequenceBatch.from_aeon(np.ones((2, 0, 4)))
        with pytest.raises(SequenceError, match="empty"):
            SequenceBatch.from_aeon(np.ones((2, 3, 0)))
        with pytest.raises(SequenceError, match="sequence 0 is empty"):
            SequenceBatch.from_aeon([np.ones((3, 0))])

    def test_hierarchical_frames_are_refused_not_misread(self):
        pandas = pytest.importorskip("pandas")
        index = pandas.MultiIndex.from_product([[0, 1], [0, 1, 2]])
        frame = pandas.DataFrame({"a": np.arange(6.0)}, index=index)
        with pytest.raises(SequenceError, match=r"from_long\(X.rename_axis"):
            SequenceBatch.from_aeon(frame)


class TestFromPadded:
    @pytest.mark.parametrize("filler", [0.0, np.nan, np.inf, 1e300])
    @pytest.mark.parametrize("dtype", FLOAT_TYPES)
    def test_padding_is_ignored(self, filler, dtype):
        values = np.full((3, 4), filler)
        values[0, :2], values[1, :4], values[2, :1] = [1, 2], [3, 4, 5, 6], [7]
        batch = SequenceBatch.from_padded(values, [2, 4, 1], dtype=dtype)
        assert_holds(batch, [[[1], [2]], [[3], [4], [5], [6]], [[7]]], dtype)

    def test_multivariate(self):
        values = np.arange(24.0).reshape(2, 4, 3)
        values[1, 2:] = np.nan
        assert_holds(SequenceBatch.from_padded(values, (4, 2)), [values[0], values[1, :2]], "float64")

    def test_masked_and_missing_padding(self):
        masked = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 1], [0, 1, 1]])
        assert_holds(SequenceBatch.from_padded(masked, [2, 1]), [[[1], [1]], [[1]]], "float64")
        nested = [[1.0, None], [2.0, 3.0]]
        assert_holds(SequenceBatch.from_padded(nested, [1, 2]), [[[1]], [[2], [3]]], "float64")

    def test_full_rows_are_not_copied(self):
        for values in (np.ones((2, 3)), np.ones((2, 3, 4))):
            assert np.shares_memory(SequenceBatch.from_padded(values, [3, 3]).values, values)
            assert values.flags.writeable

    def test_problems_inside_the_lengths_are_told(self):
        values = np.array([[1.0, np.nan, np.nan], [1.0, 2.0, np.nan]])
        with pytest.raises(SequenceError, match="sequence 0 has 1 NaN at step 1") as caught:
            SequenceBatch.from_padded(values, [2, 2])
        assert len(caught.value.problems) == 1
        masked = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 1], [0, 1, 1]])
        with pytest.raises(SequenceError, match="sequence 1 has a masked value at step 1"):
            SequenceBatch.from_padded(masked, [2, 2])

    def test_lengths_out_of_range_are_all_told(self):
        with pytest.raises(SequenceError) as caught:
            SequenceBatch.from_padded(np.ones((4, 3)), np.array([0, 3, 4, -1]))
        assert [line.split(",")[0] for line in caught.value.problems] == [
            "sequence 0 has length 0",
            "sequence 2 has length 4",
            "sequence 3 has length -1",
        ]

    def test_masked_lengths_are_refused(self):
        with pytest.raises(SequenceError, match="lengths"):
            SequenceBatch.from_padded(np.ones((2, 3)), np.ma.array([1, 2], mask=[0, 1]))

    @pytest.mark.parametrize(
        "lengths", [[1.0, 2.0], [True, True], 2, [[1, 2]], [1], [1, 2, 3], None, "ab", [1, None], [1, 10**30]]
    )
    def test_other_lengths_are_refused(self, lengths):
        with pytest.raises(SequenceError, match="lengths"):
            SequenceBatch.from_padded(np.ones((2, 3)), lengths)

    @pytest.mark.parametrize(
        "values",
        [None, np.ones(3), np.ones((2, 3, 4, 5)), np.ones((2, 0)), np.ones((0, 2)), [[1.0], [1.0, 2.0]]],
    )
    def test_other_values_are_refused(self, values):
        with pytest.raises(SequenceError, match="values"):
            SequenceBatch.from_padded(values, [1, 1])

    def test_problems_of_both_arguments_come_together(self):
        with pytest.raises(SequenceError) as caught:
            SequenceBatch.from_padded(np.zeros((2, 3), complex), [1.5, 2.5], dtype="int8")
        assert len(caught.value.problems) == 3
