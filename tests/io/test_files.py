"""Reading files: what `read` makes of every format, and that every mistake is one `DataFileError` that teaches."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rntk.errors import SequenceError
from rntk.io import DataFileError, LabelledSequences, read
from rntk.sequences import SequenceBatch

ROUND_TRIP = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,  # the same files in every run: a failure is never rerun into a pass
    database=None,
    # Every example writes its own file over the last one, so one folder serves them all.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and gives its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def rows_of(data: LabelledSequences) -> list:
    """The sequences as nested lists: (T,) if univariate, (T, m) otherwise."""
    return [x.tolist() if x.shape[1] > 1 else x[:, 0].tolist() for x in data.X]


def refusal_of(path, **options) -> str:
    """The message with which a file is refused, checked for what every message owes its reader."""
    with pytest.raises(DataFileError) as caught:
        read(path, **options)
    error = caught.value
    message = str(error)
    assert isinstance(error, ValueError)
    assert isinstance(error, SequenceError)
    assert str(path) in message
    assert error.problems
    assert all(problem in message for problem in error.problems)
    assert "What to try" in message or ";" in message  # advice
    assert len(message) < 4000
    return message


# ---- What comes back ---------------------------------------------------------------------------------------


def test_result_holds_a_float64_batch_labels_path_and_format(write):
    path = write("toy.tsv", "1\t0.5\t0.25\n2\t1\t2\n")
    data = read(path)
    assert type(data.X) is SequenceBatch
    assert data.X.dtype == np.float64
    assert data.X.n_channels == 1
    assert rows_of(data) == [[0.5, 0.25], [1.0, 2.0]]
    assert data.y.tolist() == [1, 2]
    assert data.y.dtype == np.int64
    assert data.path == path
    assert data.format == "tsv"
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = None


def test_representation_is_short_whatever_the_labels(write):
    data = read(write("toy.csv", "a,1,2\nbb,3,4\n"))
    assert repr(data).startswith("LabelledSequences(X=SequenceBatch(2 sequences, length 2, 1 channel, float64), y=<str")
    assert "y=None" in repr(read(write("bare.csv", "1,2\n"), label="none"))


def test_path_may_be_a_string_or_path_like(write):
    path = write("toy.tsv", "1\t2\n")
    assert rows_of(read(str(path))) == rows_of(read(path)) == [[2.0]]


@pytest.mark.parametrize("name", ["a.tsv", "a.TSV", "a.txt", "a.Txt"])
def test_suffix_chooses_the_format_in_any_case(write, name):
    assert read(write(name, "1\t2\n")).format == "tsv"


def test_format_overrules_the_suffix(write):
    path = write("GunPoint_TRAIN", "1,0.5,0.25\n")
    assert read(path, format="csv").format == "csv"
    assert rows_of(read(path, format="csv")) == [[0.5, 0.25]]
    assert rows_of(read(write("odd.csv", "1\t0.5\n"), format="tsv")) == [[0.5]]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_blank_lines_and_byte_order_mark_do_not_matter(write, newline, mark):
    for name, lines in {
        "a.tsv": ["", "1\t5\t6", "", "2\t7\t8", ""],
        "a.csv": ["", "1,5,6", "  ", "2,7,8", ""],
        "a.ts": ["", "@classLabel true 1 2", "", "@data", "", "5,6:1", "", "7,8:2", ""],
        "a.arff": ["", "@attribute a real", "@attribute b real", "@attribute c {1,2}", "@data", "5,6,1", "", "7,8,2"],
    }.items():
        data = read(write(name, mark + newline.join(lines)))
        assert rows_of(data) == [[5.0, 6.0], [7.0, 8.0]]
        assert data.y.tolist() == [1, 2]


def test_import_and_reading_need_no_aeon_and_no_pandas(write):
    path = write("toy.ts", "@classLabel true a\n@data\n1,2:a\n")
    code = (
        f"import sys; from rntk.io import read; read({str(path)!r});"
        "assert not {'aeon', 'pandas', 'numba', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- Labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected", "dtype"),
    [
        (["1", "2"], [1, 2], "int64"),
        (["-1", "+1"], [-1, 1], "int64"),
        (["1.0", "2"], [1, 2], "int64"),
        (["1.0000000e+00", "  2.0000000e+00"], [1, 2], "int64"),
        (["007", "8"], [7, 8], "int64"),
        # 2**53 + 1 is no double, and 2**63 - 1 is the last int64: both survive exactly.
        (["9007199254740993", "9223372036854775807"], [2**53 + 1, 2**63 - 1], "int64"),
        (["9007199254740993", "1"], [2**53 + 1, 1], "int64"),
        (["-9223372036854775808", "1"], [-(2**63), 1], "int64"),
        (["-9223372036854775809", "1"], ["-9223372036854775809", "1"], "<U20"),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"], "<U20"),
        (["x" * 256, "1"], ["x" * 256, "1"], "<U256"),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"], "<U19"),
        (["0" * 30 + "5", "6"], [5, 6], "int64"),
        (["0.5", "2"], [0.5, 2.0], "float64"),
        (["1e300", "2"], [1e300, 2.0], "float64"),
        (["walk", "run"], ["walk", "run"], "<U4"),
        (["1", "b"], ["1", "b"], "<U1"),
        (["1_0", "2"], ["1_0", "2"], "<U3"),
        (["inf", "walk"], ["inf", "walk"], "<U4"),
        (["NA", "walk"], ["NA", "walk"], "<U4"),
        (["Ångström", "走る"], ["Ångström", "走る"], "<U8"),
    ],
)
def test_labels_are_integers_targets_or_words(write, words, expected, dtype):
    for name, separator in (("a.tsv", "\t"), ("a.csv", ",")):
        data = read(write(name, "".join(f"{word}{separator}0.5{separator}7\n" for word in words)), **_no_header(name))
        assert data.y.tolist() == expected
        assert data.y.dtype == np.dtype(dtype)


def _no_header(name: str) -> dict:
    return {"header": False} if name.endswith("csv") else {}


@pytest.mark.parametrize("gap", ["", "  ", "?", "NaN", "nan", "-nan"])
def test_missing_label_is_named_by_line(write, gap):
    message = refusal_of(write("a.tsv", f"1\t5\n{gap}\t6\n"))
    assert "line 2: the label is missing" in message
    assert "label='none'" in message
    message = refusal_of(write("a.csv", f"1,5\n{gap},6\n"))
    assert "line 2: the label is missing" in message
    message = refusal_of(write("a.ts", f"@targetLabel true\n@data\n5:1\n6:{gap}\n"))
    assert "line 4: the label is missing" in message


def test_infinite_label_among_numbers(write):
    assert "line 2: the label 'inf' is infinite" in refusal_of(write("a.tsv", "1\t5\ninf\t6\n"))
    assert "line 3: the label '1e999' is infinite" in refusal_of(write("a.ts", "@targetLabel true\n@data\n5:1e999\n"))


def test_label_too_long_to_be_one(write):
    message = refusal_of(write("a.tsv", f"{'x' * 5000}\t5\n"))
    assert "is 5000 characters long" in message
    assert "x" * 100 not in message
    # However many digits, and however many of them are zero, which is where Python's own parser gives up.
    assert "is 5000 characters long" in refusal_of(write("a.tsv", f"{'0' * 5000}\t5\n"))
    refusal_of(write("a.tsv", f"{'9' * 5000}\t5\n"))


# ---- UCR ---------------------------------------------------------------------------------------------------


def test_ucr_against_numpy(write):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(1, 5, 30), rng.standard_normal((30, 17))])
    text = io.StringIO()
    np.savetxt(text, table, delimiter="\t")
    path = write("a.tsv", text.getvalue())
    data = read(path)
    again = np.loadtxt(path, delimiter="\t")
    np.testing.assert_array_equal(data.X.values.reshape(30, 17), again[:, 1:])
    np.testing.assert_array_equal(data.y, again[:, 0])
    assert data.X.is_equal_length


def test_ucr_nan_at_the_end_is_a_length(write):
    data = read(write("a.tsv", "1\t1\t2\t3\n2\t4\tNaN\tNaN\n3\t5\t6\tnan\n4\t7\t\t\n"))
    assert rows_of(data) == [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0], [7.0]]
    assert data.y.tolist() == [1, 2, 3, 4]


def test_ucr_lines_may_be_of_unequal_length(write):
    assert rows_of(read(write("a.tsv", "1\t1\t2\t3\n2\t4\n"))) == [[1.0, 2.0, 3.0], [4.0]]


def test_ucr_label_places(write):
    path = write("a.tsv", "1\t2\t3\n4\t5\t6\n")
    for label, y, rows in (
        ("auto", [1, 4], [[2.0, 3.0], [5.0, 6.0]]),
        ("first", [1, 4], [[2.0, 3.0], [5.0, 6.0]]),
        ("last", [3, 6], [[1.0, 2.0], [4.0, 5.0]]),
    ):
        data = read(path, label=label)
        assert data.y.tolist() == y
        assert rows_of(data) == rows
    data = read(path, label="none")
    assert data.y is None
    assert rows_of(data) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_ucr_single_values_without_labels(write):
    assert rows_of(read(write("a.txt", "5\n6\n"), label="none")) == [[5.0], [6.0]]


def test_ucr_last_label_stands_after_the_padding(write):
    data = read(write("a.tsv", "1\t2\tb\n4\tNaN\ta\n"), label="last")
    assert rows_of(data) == [[1.0, 2.0], [4.0]]
    assert data.y.tolist() == ["b", "a"]


def test_old_ucr_text_separated_by_spaces(write):
    data = read(write("a.txt", "  1.0000000e+00  -6.5e-01   2.0e+00\n  2.0000000e+00   1.0e+00   NaN\n"))
    assert rows_of(data) == [[-0.65, 2.0], [1.0]]
    assert data.y.tolist() == [1, 2]


def test_ucr_wants_numbers(write):
    message = refusal_of(write("a.tsv", "1\t5\t6\n2\tseven\t8\n3\t9\tx\n4\ty\tz\n"))
    assert "3 problems" in message
    assert "line 2, field 2: 'seven' is not a number" in message
    assert "line 3, field 3: 'x' is not a number" in message
    assert "line 4, field 2: 'y' is not a number, the first of 2 such fields in this line" in message


@pytest.mark.parametrize(
    "word", ["1_000", "0x10", "1,5", "1 2", "--1", "1e", "True", "None", "__import__('os')", "1+1"]
)
def test_what_python_might_read_as_a_number_is_still_text(write, word):
    assert f"line 1, field 3: {word!r} is not a number" in refusal_of(write("a.tsv", f"1\t5\t{word}\n"))


def test_ucr_without_values(write):
    message = refusal_of(write("a.tsv", "1\t5\n2\n3\tNaN\tNaN\n"))
    assert "line 2: one field, and no values" in message
    assert "line 3: holds no values" in message
    assert "line 3: holds no values" in refusal_of(write("a.tsv", "1\t5\n2\t6\n3\tNaN\n"), missing="interpolate")


def test_ucr_label_by_name(write):
    message = refusal_of(write("a.tsv", "1\t5\n"), label="species")
    assert "label='species' names a column" in message
    assert "'last'" in message


def test_ucr_separated_by_commas(write):
    message = refusal_of(write("a.txt", "1,0.5,0.25\n"))
    assert "separated by commas, expected tabs" in message
    assert "format='csv'" in message


@pytest.mark.parametrize(("word", "options"), [("inf", {}), ("-Infinity", {}), ("1e999", {"missing": "interpolate"})])
def test_infinite_values(write, word, options):
    assert f"line 2, field 3: {word!r} is infinite" in refusal_of(write("a.tsv", f"1\t5\n2\t6\t{word}\n"), **options)
    assert f"line 2, field 3: {word!r} is infinite" in refusal_of(write("a.csv", f"1,5\n2,6,{word}\n"), **options)
    message = refusal_of(write("a.ts", f"@data\n1,2:3,4\n1,2:3,{word}\n"), **options)
    assert f"line 3, dimension 2, field 2: {word!r} is infinite" in message


# ---- Missing values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", ["NaN", "nan", "?", "NA", "null", "", " "])
def test_gaps_are_errors_that_name_line_field_and_step(write, gap):
    message = refusal_of(write("a.tsv", f"1\t5\t6\t7\n2\t5\t{gap}\t7\n"))
    assert "line 2, field 3 (step 1): the value is missing" in message
    assert "missing='interpolate'" in message
    message = refusal_of(write("a.csv", f"1,5,6,7\n2,5,{gap},7\n"))
    assert "line 2, field 3 (step 1): the value is missing" in message
    message = refusal_of(write("a.ts", f"@data\n5,6,7\n5,{gap},7\n"))
    assert "line 3, field 2 (step 1): the value is missing" in message
    message = refusal_of(write("a.ts", f"@data\n5,6,7:1,2,3\n5,6,7:1,2,{gap}\n"))
    assert "line 3, dimension 2, field 3 (step 2): the value is missing" in message


def test_leading_gap_is_missing_and_several_are_counted(write):
    message = refusal_of(write("a.tsv", "1\tNaN\tNaN\t7\tNaN\n"))
    assert "line 1, field 2 (step 0): the value is missing, the first of 2 in this line" in message


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("1 NaN 3", [1.0, 2.0, 3.0]),
        ("0 NaN NaN NaN 8", [0.0, 2.0, 4.0, 6.0, 8.0]),
        ("NaN NaN 5 7", [5.0, 5.0, 5.0, 7.0]),  # the ends take the nearest value
        ("1 NaN 3 NaN NaN", [1.0, 2.0, 3.0]),  # padding is a length before anything is filled
        ("NaN 4", [4.0, 4.0]),
        ("NaN 4 NaN", [4.0, 4.0]),
        ("1 ? 2 NaN 4 NaN 3", [1.0, 1.5, 2.0, 3.0, 4.0, 3.5, 3.0]),
        # The slope between these is beyond doubles; the value half-way is not.
        ("-1.5e308 NaN 1.5e308", [-1.5e308, 0.0, 1.5e308]),
    ],
)
def test_interpolation_by_hand(write, fields, expected):
    for name, separator in (("a.tsv", "\t"), ("a.csv", ",")):
        path = write(name, separator.join(["1", *fields.split()]) + f"\n2{separator}9\n")
        assert rows_of(read(path, missing="interpolate")) == [expected, [9.0]]
    path = write("a.arff", arff(fields.split(), ["9", *"?" * (len(fields.split()) - 1)]))
    assert rows_of(read(path, missing="interpolate")) == [expected, [9.0]]


def test_interpolation_in_ts_fills_ends_too_and_each_dimension_by_itself(write):
    path = write("a.ts", "@classLabel true a\n@data\n1,?,3,NaN:?,5,?,8:a\n")
    assert rows_of(read(path, missing="interpolate")) == [[[1.0, 5.0], [2.0, 5.0], [3.0, 6.5], [3.0, 8.0]]]


def test_interpolation_against_numpy(write):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(200)
    known = np.flatnonzero(rng.random(200) < 0.3)
    full = np.full(200, np.nan)
    full[known] = x[known]
    path = write("a.ts", "@data\n" + ",".join(map(str, full.tolist())) + "\n")
    expected = np.interp(np.arange(200), known, x[known])
    np.testing.assert_allclose(read(path, missing="interpolate").X.values[:, 0], expected, rtol=0, atol=1e-14)


def test_interpolation_leaves_known_values_alone(write):
    path = write("a.tsv", "1\t0.1\tNaN\t0.3\n2\t0.7\t0.11\t0.13\n")
    rows = rows_of(read(path, missing="interpolate"))
    assert [rows[0][0], rows[0][2], *rows[1]] == [0.1, 0.3, 0.7, 0.11, 0.13]


def test_a_dimension_without_values_cannot_be_filled(write):
    message = refusal_of(write("a.ts", "@data\n1,2:3,4\n1,2:?,?\n"), missing="interpolate")
    assert "line 3: dimension 2 holds no values" in message


# ---- ts ----------------------------------------------------------------------------------------------------

TS_HEADER = """# A comment
%also one
@problemName Toy
@timeStamps false
@missing false
@univariate false
@dimension 2
@equalLength false
@classLabel true Walk Run
@data
"""


def test_ts_multivariate_of_unequal_length(write):
    data = read(write("a.ts", TS_HEADER + "1,2,3:4,5,6:Walk\n# a comment\n7:8:Run\n"))
    assert data.format == "ts"
    assert rows_of(data) == [[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], [[7.0, 8.0]]]
    assert data.y.tolist() == ["Walk", "Run"]


def test_ts_without_labels(write):
    for tags in ("", "@classLabel false\n", "@targetLabel false\n"):
        data = read(write("a.ts", tags + "@data\n1,2,3\n4,5\n"))
        assert data.y is None
        assert rows_of(data) == [[1.0, 2.0, 3.0], [4.0, 5.0]]


def test_ts_label_none_drops_the_announced_label(write):
    data = read(write("a.ts", TS_HEADER + "1,2:4,5:Walk\n"), label="none")
    assert data.y is None
    assert rows_of(data) == [[[1.0, 4.0], [2.0, 5.0]]]


def test_ts_label_last_reads_a_label_that_was_not_announced(write):
    data = read(write("a.ts", "@univariate true\n@data\n1,2:3\n4:5\n"), label="last")
    assert data.y.tolist() == [3, 5]
    assert rows_of(data) == [[1.0, 2.0], [4.0]]


def test_ts_targets_are_real_even_if_whole(write):
    data = read(write("a.ts", "@targetlabel true\n@data\n1,2:3\n4,5:60000000000000000000\n"))
    assert data.y.dtype == np.float64
    assert data.y.tolist() == [3.0, 6e19]


def test_ts_classes_that_are_numbers(write):
    assert read(write("a.ts", "@classLabel true 0.0 1.0\n@data\n5:1.0\n6:0\n")).y.tolist() == [1, 0]
    # Announced as classes, so they stay words.
    assert read(write("a.ts", "@classLabel true 0.5 1.5\n@data\n5:0.5\n6:1.5\n")).y.tolist() == ["0.5", "1.5"]


def test_ts_class_of_several_words(write):
    data = read(write("a.ts", "@classLabel true walk fast run\n@data\n5: walk fast \n6:Run\n"))
    assert data.y.tolist() == ["walk fast", "Run"]


def test_ts_spaces_and_case_of_tags_do_not_matter(write):
    data = read(write("a.ts", "  @UNIVARIATE   TRUE \n@ClassLabel True a\n@author Me, 2020\n@Data\n 1 , 2 : a \n"))
    assert rows_of(data) == [[1.0, 2.0]]
    assert data.y.tolist() == ["a"]


def test_ts_with_time_stamps(write):
    message = refusal_of(write("a.ts", "@timeStamps true\n@data\n(2007-01-01 00:00:00,241.97):1\n"))
    assert "'@timeStamps true'" in message
    assert "not supported" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@univariate true\n", "line 1: the file ends without @data"),
        ("# only\n% comments\n", "the file ends without @data"),
        ("@univariate true\n1,2:a\n@data\n", "line 2: '1,2:a' comes before @data"),
        ("@univariate maybe\n@data\n1\n", "line 1: @univariate takes true or false, got 'maybe'"),
        ("@equalLength\n@data\n1\n", "line 1: @equalLength takes true or false, got ''"),
        ("@univariate true false\n@data\n1\n", "got 'true false'"),
        ("@dimension two\n@data\n1\n", "line 1: @dimension takes a whole number from 1, got 'two'"),
        ("@dimensions 0\n@data\n1\n", "@dimensions takes a whole number from 1, got '0'"),
        ("@seriesLength -3\n@data\n1\n", "@seriesLength takes a whole number from 1, got '-3'"),
        ("@seriesLength " + "9" * 5000 + "\n@data\n1\n", "@seriesLength takes a whole number from 1"),
        ("@univariate true\n@dimension 2\n@data\n1\n", "line 3: the header says both '@univariate true'"),
        ("@classLabel true a\n@targetLabel true\n@data\n1:a\n", "both class labels and target labels"),
    ],
)
def test_ts_header_mistakes(write, text, expected):
    assert expected in refusal_of(write("a.ts", text))


@pytest.mark.parametrize(
    ("tags", "line", "expected"),
    [
        ("@dimension 2", "1,2", "line 4: 1 dimension, the header says 2"),
        ("@dimension 2", "1,2:3,4:5,6", "line 4: 3 dimensions, the header says 2"),
        ("@missing false", "1,2", "line 4: 1 dimension, line 3 has 2"),
        ("@missing false", "1,2:3", "line 4: dimension 2 has 1 values, dimension 1 has 2"),
        ("@missing false", "1,2:3,x", "line 4, dimension 2, field 2: 'x' is not a number"),
        ("@seriesLength 2 \n@equalLength true", "1,2,3:4,5,6", "line 5: 3 steps, the header says 2"),
        ("@equalLength true", "1,2,3:4,5,6", "line 4: 3 steps, '@equalLength true', and line 3 has 2"),
    ],
)
def test_ts_lines_of_the_wrong_shape(write, tags, line, expected):
    assert expected in refusal_of(write("a.ts", f"{tags}\n@data\n1,2:3,4\n{line}\n"))


def test_ts_series_length_of_unequal_series_is_not_held_against_them(write):
    data = read(write("a.ts", "@equalLength false\n@seriesLength 3\n@data\n1,2,3\n4\n"))
    assert data.X.lengths.tolist() == [3, 1]


def test_ts_univariate_with_a_label_that_was_not_announced(write):
    message = refusal_of(write("a.ts", "@univariate true\n@data\n1,2,3:7\n"))
    assert "line 3: 2 dimensions, the header says 1" in message
    assert "@classLabel true" in message
    message = refusal_of(write("a.ts", "@data\n1,2,3:7\n"))
    assert "line 2: dimension 2 has 1 values, dimension 1 has 3" in message
    assert "label='last'" in message


@pytest.mark.parametrize("line", ["1,2", "1,2:3,4"])
def test_ts_label_missing(write, line):
    message = refusal_of(write("a.ts", f"@classLabel true a\n@data\n5,6:7,8:a\n{line}\n"))
    assert "line 4: the label is missing, the line ends in values" in message


def test_ts_label_that_the_header_does_not_list(write):
    message = refusal_of(write("a.ts", "@classLabel true a b\n@data\n1:a\n2:c\n"))
    assert "line 4: the label 'c' is not among the 2 of @classLabel" in message


def test_ts_target_that_is_no_number(write):
    message = refusal_of(write("a.ts", "@targetLabel true\n@data\n1:5\n2:high\n3:1_0\n"))
    assert "line 4: the target 'high' is not a number" in message
    assert "line 5: the target '1_0' is not a number" in message
    assert "line 3" not in message


def test_ts_label_elsewhere(write):
    path = write("a.ts", "@data\n1,2\n")
    for label in ("first", "species"):
        assert "the last part of a line" in refusal_of(path, label=label)


def test_ts_without_data(write):
    assert "it holds no sequences" in refusal_of(write("a.ts", TS_HEADER))


# ---- ts against aeon ---------------------------------------------------------------------------------------


def bundled(name: str) -> Path:
    """A file that ships with aeon; the test is skipped where aeon, or the file, is not there."""
    datasets = pytest.importorskip("aeon.datasets", exc_type=ImportError)
    path = Path(datasets.__file__).parent / "data" / name.partition("_")[0] / name
    if not path.exists():
        pytest.skip(f"this aeon ships without {name}")
    return path


def assert_read_as_by_aeon(path: Path) -> LabelledSequences:
    datasets = pytest.importorskip("aeon.datasets", exc_type=ImportError)
    X, y = datasets.load_from_ts_file(str(path))
    expected = SequenceBatch.from_aeon(X)
    data = read(path)
    np.testing.assert_array_equal(data.X.offsets, expected.offsets)
    np.testing.assert_array_equal(data.X.values, expected.values)
    if data.y.dtype.kind == "f":
        np.testing.assert_array_equal(data.y, y)
    elif data.y.dtype.kind == "i":
        np.testing.assert_array_equal(data.y, y.astype(float))
    else:
        assert [word.lower() for word in data.y] == y.tolist()  # aeon folds the case
    return data


@pytest.mark.parametrize(
    ("name", "lengths", "n_channels", "classes"),
    [
        ("PickupGestureWiimoteZ_TRAIN.ts", (29, 361), 1, list(range(1, 11))),
        ("JapaneseVowels_TRAIN.ts", (7, 26), 12, list(range(1, 10))),
        ("JapaneseVowels_TEST.ts", (7, 29), 12, list(range(1, 10))),
        ("BasicMotions_TRAIN.ts", (100, 100), 6, ["Badminton", "Running", "Standing", "Walking"]),
        ("GunPoint_TEST.ts", (150, 150), 1, [1, 2]),
        ("ArrowHead_TRAIN.ts", (251, 251), 1, [0, 1, 2]),  # a header with few tags
        ("UnitTest_TRAIN.ts", (24, 24), 1, [1, 2]),  # comments that begin with %
    ],
)
def test_bundled_classification_sets_are_read_as_by_aeon(name, lengths, n_channels, classes):
    data = assert_read_as_by_aeon(bundled(name))
    assert (data.X.lengths.min(), data.X.lengths.max()) == lengths
    assert data.X.n_channels == n_channels
    assert np.unique(data.y).tolist() == classes


@pytest.mark.parametrize("name", ["Covid3Month_TRAIN.ts", "CardanoSentiment_TEST.ts"])
def test_bundled_regression_sets_are_read_as_by_aeon(name):
    assert assert_read_as_by_aeon(bundled(name)).y.dtype == np.float64


def test_bundled_set_with_time_stamps_is_refused():
    path = bundled("UnitTest_TRAIN.ts").with_name("UnitTestTimeStamps_TRAIN.ts")
    if not path.exists():
        pytest.skip("this aeon ships without time stamps")
    assert "'@timeStamps true'" in refusal_of(path)


def test_written_by_aeon(tmp_path):
    datasets = pytest.importorskip("aeon.datasets", exc_type=ImportError)
    X = np.random.default_rng(2).standard_normal((6, 3, 5))
    y = np.array(["b", "a", "b", "c", "a", "c"])
    if not hasattr(datasets, "save_to_ts_file"):
        pytest.skip("this aeon writes files in another way")
    datasets.save_to_ts_file(X, y, label_type="classification", path=str(tmp_path), problem_name="toy")
    (path,) = tmp_path.glob("*.ts")
    data = assert_read_as_by_aeon(path)
    assert data.y.tolist() == y.tolist()
    np.testing.assert_allclose(data.X.values.reshape(6, 5, 3), X.transpose(0, 2, 1))


# ---- arff --------------------------------------------------------------------------------------------------

BAG_HEADER = """% A comment
@relation 'Toy'
@attribute relationalAtt relational
@attribute att0 numeric
@attribute att1 numeric
@attribute att2 numeric
@end relationalAtt
@attribute activity {Walk,'Run fast'}
@data
"""


def arff(*rows: list[str]) -> str:
    """A univariate file: one attribute per step, and the class, which is a in every line."""
    steps = "".join(f"@attribute t{k} numeric\n" for k in range(len(rows[0])))
    lines = "".join(",".join([*row, "a"]) + "\n" for row in rows)
    return f"@relation toy\n{steps}@attribute target {{a,b}}\n@data\n{lines}"


def test_arff_univariate(write):
    data = read(
        write(
            "a.arff",
            "@RELATION x\n@Attribute 'my step' REAL\n@attribute u integer\n%no\n"
            "@attribute target {1, 2}\n\n@DATA\n%no\n 1.5 , 2, 2\n3,4e-1,1\n",
        )
    )
    assert data.format == "arff"
    assert rows_of(data) == [[1.5, 2.0], [3.0, 0.4]]
    assert data.y.tolist() == [2, 1]
    assert data.y.dtype == np.int64


def test_arff_multivariate(write):
    data = read(
        write(
            "a.arff",
            BAG_HEADER
            + r"""'1,2,3\n4,5,6',Walk
% a comment
 "7,8,9\n-1,-2,-3" , 'Run fast'
""",
        )
    )
    assert rows_of(data) == [[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], [[7.0, -1.0], [8.0, -2.0], [9.0, -3.0]]]
    assert data.y.tolist() == ["Walk", "Run fast"]


def test_arff_question_marks_at_the_end_are_a_length(write):
    assert rows_of(read(write("a.arff", arff(["1", "2", "3"], ["4", "?", "?"])))) == [[1.0, 2.0, 3.0], [4.0]]
    path = write(
        "b.arff",
        BAG_HEADER
        + r"""'1,2,?\n4,5,?',Walk
'1,?,?\n4,?,?',Walk
""",
    )
    assert rows_of(read(path)) == [[[1.0, 4.0], [2.0, 5.0]], [[1.0, 4.0]]]


def test_arff_gaps(write):
    message = refusal_of(write("a.arff", arff(["1", "2", "3"], ["4", "?", "6"])))
    assert "line 8, field 2 (step 1): the value is missing" in message
    # A step that any dimension has is no padding.
    path = write("b.arff", BAG_HEADER + r"'1,2,?\n4,5,6',Walk")
    assert "line 10, dimension 1, field 3 (step 2): the value is missing" in refusal_of(path)
    assert rows_of(read(path, missing="interpolate")) == [[[1.0, 4.0], [2.0, 5.0], [2.0, 6.0]]]
    path = write("c.arff", BAG_HEADER + r"'1,2,3\n?,?,?',Walk")
    assert "line 10: dimension 2 holds no values" in refusal_of(path, missing="interpolate")
    assert "line 7: holds no values" in refusal_of(write("d.arff", arff(["?", "?", "?"])))


def test_arff_label_places(write):
    path = write("a.arff", "@attribute k {x,y}\n@attribute t0 real\n@attribute t1 real\n@data\nx,5,6\ny,7,?\n")
    for label in ("first", "k"):
        assert read(path, label=label).y.tolist() == ["x", "y"]
        assert rows_of(read(path, label=label)) == [[5.0, 6.0], [7.0]]
    message = refusal_of(path)
    assert "line 1: the attribute 'k' is nominal, expected numbers" in message
    assert "label='k'" in message
    assert "no attribute is named 'z'" in refusal_of(path, label="z")
    message = refusal_of(write("a.arff", "@attribute k {x}\n@attribute t real\n@data\nx,?z\n"), label="first")
    assert "line 4, field 2: '?z' is not a number" in message
    path = write("b.arff", "@attribute t0 real\n@attribute t1 real\n@data\n5,6\n7,8\n")
    assert read(path).y is None
    assert rows_of(read(path)) == [[5.0, 6.0], [7.0, 8.0]]
    assert read(path, label="last").y.tolist() == [6, 8]
    data = read(write("c.arff", arff(["5", "6"])), label="none")
    assert data.y is None
    assert rows_of(data) == [[5.0, 6.0]]


@pytest.mark.parametrize("name", ["target", "Class", "LABEL", "y"])
def test_arff_targets_go_by_their_name(write, name):
    data = read(write("a.arff", f"@attribute t real\n@attribute {name} numeric\n@data\n5,0.5\n6,2\n"))
    assert data.y.tolist() == [0.5, 2.0]
    assert rows_of(data) == [[5.0], [6.0]]


def test_arff_quotes(write):
    text = "@attribute 'it\\'s' real\n@attribute c {'don\\'t', \"a, b\", c}\n@data\n"
    data = read(write("a.arff", text + "'1','don\\'t'\n2,'a, b'\n3,\"c\"\n"))
    assert data.y.tolist() == ["don't", "a, b", "c"]
    assert rows_of(data) == [[1.0], [2.0], [3.0]]
    for line in ("1,'c", "1,c'", "'1'2,c", "1,\"c'"):
        assert "line 5: the quotes do not pair" in refusal_of(write("a.arff", f"{text}1,c\n{line}\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@relation x\n", "line 1: the file ends without @data"),
        ("% only\n", "the file ends without @data"),
        ("@relation x\n@data\n1\n", "line 2: @data, and no attribute is declared"),
        ("@attribute t real\n1,2\n@data\n", "line 2: '1,2' comes before @data"),
        ("@atribute t real\n@data\n1\n", "line 1: '@atribute' is not known"),
        ("@attribute t\n@data\n1\n", "line 1: '@attribute t' declares no attribute"),
        ("@attribute\n@data\n1\n", "line 1: '@attribute' declares no attribute"),
        ("@attribute t complex\n@data\n1\n", "declares no attribute of a known type"),
        ("@attribute 't real\n@data\n1\n", "declares no attribute"),
        ("@attribute t {a,'b}\n@data\n1\n", "declares no attribute"),
        ("@attribute d date yyyy-MM\n@attribute c {a}\n@data\n1,a\n", "line 1: the attribute 'd' is date"),
        (
            "@attribute t real\n@attribute s string\n@attribute c {a}\n@data\n1,x,a\n",
            "line 2: the attribute 's' is string",
        ),
        ("@attribute c {a}\n@data\na\n", "declares no attribute but the label"),
        ("@end x\n@data\n1\n", "line 1: '@end x' ends no relational attribute"),
        ("@attribute r relational\n@attribute t real\n@end s\n@data\n1\n", "line 3: '@end s' ends no relational"),
        (
            "@attribute r relational\n@attribute t real\n@data\n1\n",
            "line 3: the relational attribute of line 1 has no @end",
        ),
        ("@attribute r relational\n@end r\n@data\n1\n", "line 2: the relational attribute 'r' declares no steps"),
        ("@attribute r relational\n@attribute t {a}\n@end r\n@data\n1\n", "line 2: 't' is nominal"),
        ("@attribute r relational\n@attribute s relational\n@end r\n@data\n1\n", "line 2: 's' is relational"),
        (
            "@attribute i real\n@attribute r relational\n@attribute t real\n@end r\n@data\n1,'1'\n",
            "line 2: the attribute 'r' is relational beside others",
        ),
    ],
)
def test_arff_header_mistakes(write, text, expected):
    assert expected in refusal_of(write("a.arff", text))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"'1,2,3\n4,5',Walk", "line 11: dimension 2 has 2 values, the header declares 3"),
        (r"'1,2,3,4\n4,5,6,7',Walk", "line 11: dimension 1 has 4 values, the header declares 3"),
        ("'1,2,3',Walk", "line 11: 1 dimension, line 10 has 2"),
        (r"'1,2,3\n4,5,6\n7,8,9',Walk", "line 11: 3 dimensions, line 10 has 2"),
        (r"'1,2,3\n4,x,6',Walk", "line 11, dimension 2, field 2: 'x' is not a number"),
        (r"'1,2,3\n4,inf,6',Walk", "line 11, dimension 2, field 2: 'inf' is infinite"),
        (r"'1,2,3\n4,5,6',walk", "line 11: the label 'walk' is not among the 2 declared"),
        (r"'1,2,3\n4,5,6',?", "line 11: the label is missing"),
        (r"'1,2,3\n4,5,6'", "line 11: 1 field, the header declares 2"),
        (r"1,2,3\n4,5,6,Walk", "line 11: 6 fields, the header declares 2"),
        (r"'1,2,3\n4,5,6',Walk,{2}", "line 11: 3 fields, the header declares 2"),
        ("{0 '1,2,3', 1 Walk}", "line 11: \"{0 '1,2,3', 1 Walk}\" is a sparse line"),
    ],
)
def test_arff_lines_of_the_wrong_shape(write, line, expected):
    assert expected in refusal_of(write("a.arff", BAG_HEADER + "'1,2,3\\n4,5,6',Walk\n" + line + "\n"))


def test_arff_relation_as_label(write):
    path = write("a.arff", BAG_HEADER + r"'1,2,3\n4,5,6',Walk")
    assert "'relationalAtt' is relational, which a label cannot be" in refusal_of(path, label="first")
    assert read(path, label="activity").y.tolist() == ["Walk"]


def test_arff_without_data(write):
    assert "it holds no sequences" in refusal_of(write("a.arff", BAG_HEADER))


@pytest.mark.parametrize("mark", ["%", "#"])
def test_comments_may_be_in_another_encoding(write, mark):
    text = f"{mark} R. Müller\n".encode("latin-1") + b"@classLabel true a\n@data\n  %\xfc\n1,2:a\nx:a\n"
    assert "line 6, field 1: 'x' is not a number" in refusal_of(write("a.ts", text))  # and lines are counted
    text = b"% M\xfcller\n@attribute t real\n@attribute c {a}\n@data\n1,a\n%\xfc\nx,a\n"
    assert "line 7, field 1: 'x' is not a number" in refusal_of(write("a.arff", text))
    assert "line 1 holds bytes that are not UTF-8" in refusal_of(write("a.arff", b"@relation M\xfc\n" + text))


@pytest.mark.parametrize("line", ["'" + r"\n" * 500_000, " " * 1_000_000 + "'", '"' * 500_000, "'" + "1" * 1_000_000])
def test_arff_takes_no_longer_than_its_length(write, line):
    start = time.process_time()
    assert "the quotes do not pair" in refusal_of(write("a.arff", BAG_HEADER + line + "\n"))
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("name", ["GunPoint_TRAIN.arff", "ArrowHead_TRAIN.arff", "BasicMotions_TRAIN.arff"])
def test_bundled_arff_equals_the_ts_beside_it(name):
    path = bundled(name)
    ours, other = read(path), read(path.with_suffix(".ts"))
    np.testing.assert_array_equal(ours.X.values, other.X.values)
    np.testing.assert_array_equal(ours.X.offsets, other.X.offsets)
    np.testing.assert_array_equal(ours.y, other.y)
    assert ours.y.dtype == other.y.dtype


# ---- csv ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["label", "class", "target", "y", "Label", "CLASS", " y "])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_csv_label_column_by_its_name(write, name, place):
    names, first, second = ["t0", "t1", "t2"], ["1", "2", "3"], ["4", "5", ""]
    for row, cell in ((names, name), (first, "8"), (second, "9")):
        row.insert(place, cell)
    data = read(write("a.csv", "\n".join(map(",".join, (names, first, second)))))
    assert data.y.tolist() == [8, 9]
    assert rows_of(data) == [[1.0, 2.0, 3.0], [4.0, 5.0]]


def test_csv_without_header(write):
    path = write("a.csv", "1,2.5,3\n4,5,\n")
    for label, y, rows in (
        ("auto", [1, 4], [[2.5, 3.0], [5.0]]),
        ("first", [1, 4], [[2.5, 3.0], [5.0]]),
        ("none", None, [[1.0, 2.5, 3.0], [4.0, 5.0]]),
    ):
        data = read(path, label=label)
        assert (None if data.y is None else data.y.tolist()) == y
        assert rows_of(data) == rows
    # The padding of the second row now stands where its label should be.
    assert "line 2: the label is missing" in refusal_of(path, label="last")
    data = read(write("b.csv", "1,2.5,walk\n4,,run\n5,walk\n"), label="last")
    assert data.y.tolist() == ["walk", "run", "walk"]
    assert rows_of(data) == [[1.0, 2.5], [4.0], [5.0]]


def test_csv_with_header_and_label_by_place_or_name(write):
    path = write("a.csv", "species,a,b,kind\n1,2,3,4\n5,6,7,8\n")
    assert read(path).y.tolist() == [1, 5]  # no column has a name that says label: the first one
    assert read(path, label="first").y.tolist() == [1, 5]
    assert read(path, label="last").y.tolist() == [4, 8]
    assert read(path, label="b").y.tolist() == [3, 7]
    assert rows_of(read(path, label="b")) == [[1.0, 2.0, 4.0], [5.0, 6.0, 8.0]]
    assert read(path, label="KIND").y.tolist() == [4, 8]
    data = read(path, label="none")
    assert data.y is None
    assert rows_of(data) == [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]


def test_csv_label_none_never_makes_a_step_of_a_column_named_label(write):
    data = read(write("a.csv", "t0,label,t1\n1,9,2\n"), label="none")
    assert data.y is None
    assert rows_of(data) == [[1.0, 2.0]]


def test_csv_single_column_has_no_label(write):
    data = read(write("a.csv", "1\n2\n"))
    assert data.y is None
    assert rows_of(data) == [[1.0], [2.0]]
    assert rows_of(read(write("b.csv", "value\n1\n2\n"))) == [[1.0], [2.0]]


def test_csv_quotes_spaces_and_commas_in_labels(write):
    data = read(write("a.csv", '"label", "t0","t1"\n"walk, fast", 1, "2"\n"say ""hi""",3,4\n'))
    assert data.y.tolist() == ["walk, fast", 'say "hi"']
    assert rows_of(data) == [[1.0, 2.0], [3.0, 4.0]]


def test_csv_line_numbers_count_lines_within_quotes(write):
    message = refusal_of(write("a.csv", 'label,t0\n"two\nlines",1\nb,x\n'))
    assert "line 4, field 2: 'x' is not a number" in message


@pytest.mark.parametrize(
    ("first", "second", "has_header"),
    [
        ("label,t0,t1", "1,2,3", True),
        ("label,0,1", "a,2,3", True),  # numbered columns, as pandas writes them
        ("0,1,class", "2,3,a", True),
        ("class,0.5,0.7", "a,2,3", True),
        ("y,0,1,2", "yes,2,3,4", True),
        ("y,0.1,0.2", "1,2,3", True),  # a word above numbers
        ("species,t0,t1", "a,2,3", True),
        ("a,b,3,d", "1,2,3,4", True),
        ("walk,0.5,0.7", "run,2,3", False),
        ("walk,1,2", "run,2,3", False),
        ("y,1,2,3", "yes,2,3,4", True),
        ("walk,5,5,5,5", "run,5,6,7,8", False),
        ("walk,4,3,2,1", "run,5,6,7,8", False),
        ("walk,inf,inf,1,2,3", "run,5,6,7,8", None),  # no grid; refused for what it is
        ("walk,1,2,4,8,16", "run,1,2,3,4,5", False),
        ("3,1,2", "4,2,3", False),
        ("0,1,2", "1,2,3", False),
        ("0,1.0,2.0,3.0", "1,2,3,4", False),
    ],
)
def test_csv_header_is_recognised(write, first, second, has_header):
    label = "last" if first.endswith("class") else "auto"
    path = write("a.csv", f"{first}\n{second}\n")
    if has_header is None:
        assert "line 1, field 2: 'inf' is infinite" in refusal_of(path)
    else:
        assert len(read(path, label=label).X) == 2 - has_header


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0,1,2,3", "5,6,7,8"),  # pandas without labels, or a ramp
        ("y,0.5,0.7", "n,0.2,0.3"),  # yes and no
        ("target,0.5,0.7", "other,0.2,0.3"),
        ("species,0,1,2,3", "walk,5,6,7,8"),
        ("species,0.0,0.1,0.2,0.3", "walk,5,6,7,8"),  # columns named after their times, or a ramp
        ("species,0.5,0.7", "1,5,6"),
        ("0,1,2,3,species", "5,6,7,8,9"),
    ],
)
def test_csv_header_in_doubt_is_asked_for(write, first, second):
    path = write("a.csv", f"{first}\n{second}\n")
    message = refusal_of(path)
    assert "line 1 may be a header or a sequence" in message
    assert "header=True" in message
    assert len(read(path, header=True, label="first").X) == 1
    assert len(read(path, header=False, label="last" if "species" in first[1:] else "first").X) == 2


def test_csv_second_row_too_short_to_tell_a_header(write):
    data = read(write("a.csv", "0.5,0.7,walk\n0.1,run\n"), label="last")
    assert data.y.tolist() == ["walk", "run"]


def test_csv_header_given(write):
    path = write("a.csv", "5,6,7\n8,9,10\n")
    assert rows_of(read(path, header=True, label="none")) == [[8.0, 9.0, 10.0]]
    data = read(path, header=True, label="6")
    assert data.y.tolist() == [9]
    assert rows_of(data) == [[8.0, 10.0]]


def test_csv_a_class_named_like_a_place_is_no_header(write):
    data = read(write("a.csv", "last,0.5\nfirst,0.7\n"), label="first")
    assert data.y.tolist() == ["last", "first"]
    data = read(write("a.csv", "0.5,last\n0.7,first\n"), label="last")
    assert data.y.tolist() == ["last", "first"]


@pytest.mark.parametrize(
    "header", ["id,time,value", "case_id,dim_id,reading_id,value", "ds,y", "Date,Open,Close", "timestamp,value,label"]
)
def test_csv_long_tables_are_refused(write, header):
    row = ",".join("1" * header.count(",") + "2")
    message = refusal_of(write("a.csv", f"{header}\n{row}\n{row}\n"))
    assert "long table" in message
    assert "…" not in message  # up to four columns are named
    assert "one row per sequence" in message


@pytest.mark.parametrize("header", ["id,t0,t1,label", ",0,1,label", ",0,1", "Unnamed: 0,t0,t1,y", "t0,,label"])
def test_csv_row_numbers_are_no_steps(write, header):
    row = ",".join(["5"] * (header.count(",") + 1))
    message = refusal_of(write("a.csv", f"{header}\n{row}\n"))
    assert "looks like a row number" in message
    assert "index=False" in message


def test_csv_identifier_may_be_the_label_if_asked_for(write):
    data = read(write("a.csv", "id,a,b\n7,1,2\n"), label="id")
    assert data.y.tolist() == [7]


def test_csv_columns_that_look_like_steps_are_not_taken_for_labels(write):
    for header in ("t0,t1,t2", "x_1,x_2,x_3", "value9,value10,value11"):
        path = write("a.csv", f"{header}\n5,6,7\n")
        message = refusal_of(path)
        assert f"{header.partition(',')[0]!r} looks like a step" in message
        assert "label='first', 'last', 'none'" in message
        assert rows_of(read(path, label="none")) == [[5.0, 6.0, 7.0]]


def test_csv_two_label_columns(write):
    path = write("a.csv", "label,a,target\n1,2,3\n")
    for label in ("auto", "first", "last", "label"):
        assert "besides the label" in refusal_of(path, label=label)
    assert rows_of(read(path, label="none")) == [[2.0]]


def test_csv_label_by_a_name_that_is_not_there(write):
    message = refusal_of(write("a.csv", "a,b,c,d,e,f\n1,2,3,4,5,6\n"), label="species")
    assert "no column is named 'species'; the columns are 'a', 'b', 'c', 'd', 'e', …" in message
    message = refusal_of(write("a.csv", "a,b,c,d,e\n1,2,3,4,5\n"), label="species")
    assert "the columns are 'a', 'b', 'c', 'd', 'e';" in message
    assert "2 columns are named 'A'" in refusal_of(write("a.csv", "a,a,b\n1,2,3\n"), label="A")
    message = refusal_of(write("a.csv", "1,2,3\n"), label="species")
    assert "line 1 is not a header" in message


def test_csv_rows_longer_than_the_header(write):
    message = refusal_of(write("a.csv", "label,a,b\n1,2,3\n1,2,3,4\n"))
    assert "line 3: 4 fields, the header names 3" in message


def test_csv_row_too_short_for_its_label(write):
    assert "line 3: the label is missing" in refusal_of(write("a.csv", "a,b,label\n1,2,3\n1,2\n"))


def test_csv_text_where_a_number_should_be(write):
    message = refusal_of(write("a.csv", "walk,1.5,2,3\nrun,1,two,3\n"))
    assert "line 2, field 3: 'two' is not a number" in message
    # A label in the middle does not shift the count of fields.
    assert "line 2, field 3: 'x' is not a number" in refusal_of(write("a.csv", "a,label,b\n1,0,x\n"))
    assert "line 2, field 3 (step 1): the value is missing" in refusal_of(write("a.csv", "a,label,b,c\n1,0,,4\n"))


def test_csv_label_last_is_suggested(write):
    message = refusal_of(write("a.csv", "0.5,0.7,walk\n0.1,0.2,run\n"))
    assert "line 1, field 3: 'walk' is not a number" in message
    assert "pass label='last'" in message


def test_csv_header_is_suggested(write):
    message = refusal_of(write("a.csv", "walk,one,3,4,5\nrun,2,3,4,5\n"))
    assert "line 1, field 2: 'one' is not a number" in message
    assert "header=True" in message


def test_csv_rows_without_values(write):
    message = refusal_of(write("a.csv", "1,2\n3\n4,,\n"))
    assert "line 2: one field, and no values" in message
    assert "line 3: holds no values" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\t2\t3\n", "separated by tabs, expected commas"),
        ("label;t0\n1;2\n", "separated by semicolons, expected commas"),
        ('"walk,1,2\nrun,3,4\n', "line 1:"),
        ('a,1\n"b"c,2\n', "line 2:"),
        ("x" * 200_000 + ",1\n", "line 1: field larger"),
        ('""\n', "it holds no sequences"),
        ("label,t0\n", "so it holds no sequences"),
        ("label\n1\n", "names no column but the label"),
    ],
)
def test_csv_that_is_no_table(write, text, expected):
    assert expected in refusal_of(write("a.csv", text))


# ---- Files and arguments -----------------------------------------------------------------------------------


def test_missing_file_with_a_hint(write, tmp_path):
    write("GunPoint_TRAIN.tsv", "1\t2\n")
    message = refusal_of(tmp_path / "GunPoint_TRIAN.tsv")
    assert "there is no such file" in message
    assert "did you mean GunPoint_TRAIN.tsv?" in message
    assert "check the path" in refusal_of(tmp_path / "elsewhere.csv")
    assert f"nor the folder {tmp_path / 'none'}" in refusal_of(tmp_path / "none" / "a.csv")


def test_folder(write, tmp_path):
    assert "it is a folder, not a file; pass the path of a file" in refusal_of(tmp_path)
    write("b.ts", "")
    write("a.md", "")
    assert "such as b.ts" in refusal_of(tmp_path)


def test_not_a_regular_file(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in refusal_of(tmp_path / "pipe.csv")


def test_path_the_system_refuses(tmp_path):
    assert "File name too long" in refusal_of(tmp_path / ("x" * 1000 + ".csv"))


def test_file_without_permission(write, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    path = write("a.csv", "1,2\n")
    monkeypatch.setattr(Path, "read_bytes", refuse)  # as the superuser, a file mode would stop nobody
    assert "the system says: Permission denied; check its permissions" in refusal_of(path)


@pytest.mark.parametrize("path", [None, 3, b"a.csv", io.StringIO("1,2"), ["a.csv"]])
def test_path_of_the_wrong_type(path):
    with pytest.raises(DataFileError, match=type(path).__name__):
        read(path)


@pytest.mark.parametrize("path", ["", "a\x00b.csv"])
def test_path_that_names_no_file(path):
    with pytest.raises(DataFileError, match="names no file"):
        read(path)


@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n", "\ufeff"])
@pytest.mark.parametrize("name", ["a.tsv", "a.ts", "a.arff", "a.csv"])
def test_empty_file(write, name, text):
    assert "it is empty" in refusal_of(write(name, text))


@pytest.mark.parametrize("name", ["a.tsv", "a.ts", "a.arff", "a.csv"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"1\t2\n\x00\x01", "line 2 holds a zero byte"),
        (b"1\t2\n3\t\xff\xfe\n", "line 2 holds bytes that are not UTF-8 text, the first being 0xff"),
        ("1\t2\n".encode("utf-16"), "UTF-16"),
        (gzip.compress(b"1\t2\n", mtime=0), "compressed with gzip"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x93NUMPY\x01", "numpy.load"),
        (pickle.dumps({"a": 1}), "not"),
    ],
)
def test_binary_junk(write, name, content, expected):
    assert expected in refusal_of(write(name, content))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.parquet", "'.parquet' is not known"), ("a.tsv.gz", "'.gz' is not known"), ("a", "has no suffix")],
)
def test_unknown_suffix(write, name, expected):
    message = refusal_of(write(name, "1,2\n"))
    assert expected in message
    assert "format='tsv', 'ts', 'arff' or 'csv'" in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"format": "xlsx"}, "format='xlsx' is not known"),
        ({"format": 3}, "format=3 is not known"),
        ({"label": None}, "label=None is not a name"),
        ({"label": 0}, "label=0 is not a name"),
        ({"label": ""}, "label='' is not a name"),
        ({"missing": "mean"}, "missing='mean' is not known"),
        ({"missing": None}, "missing=None is not known"),
        ({"header": "yes"}, "header='yes' is not known"),
        ({"header": True, "format": "tsv"}, "header=True is for .csv files"),
        ({"header": False, "format": "ts"}, "header=False is for .csv files"),
        ({"header": False, "format": "arff"}, "header=False is for .csv files"),
    ],
)
def test_arguments(write, options, expected):
    assert expected in refusal_of(write("a.csv", "1,2\n"), **options)


def test_many_problems_make_a_short_message(write):
    message = refusal_of(
        write("a.tsv", "1\t5\n" + "".join(f"{k}\tx{'y' * 500}\n" for k in range(5000)) + "?\t5\n6\tinf\n")
    )
    assert "5002 problems" in message
    assert "and 4992 more (4992 not numbers)" in message
    # No kind of problem hides behind another.
    assert "line 5002: the label is missing" in message
    assert "line 5003, field 2: 'inf' is infinite" in message


def test_errors_survive_pickling(write):
    with pytest.raises(DataFileError) as caught:
        read(write("a.tsv", "1\tx\n2\ty\n"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.problems == caught.value.problems
    assert len(copy.problems) == 2


# ---- Round trips -------------------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)
labels = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6),
    st.lists(st.text("abcdXYZ äß-", min_size=1, max_size=5).map(str.strip).filter(bool), min_size=1, max_size=6),
)


@st.composite
def labelled_batches(draw, max_channels: int) -> tuple[list[np.ndarray], list]:
    y = draw(labels)
    m = draw(st.integers(1, max_channels))
    sequences = []
    for _ in y:
        length = draw(st.integers(1, 5))
        flat = draw(st.lists(finite, min_size=length * m, max_size=length * m))
        sequences.append(np.array(flat).reshape(length, m))
    return sequences, y


def assert_same(data: LabelledSequences, sequences: list[np.ndarray], y: list | None) -> None:
    assert data.X.lengths.tolist() == [len(x) for x in sequences]
    for ours, theirs in zip(data.X, sequences, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if y is None:
        assert data.y is None
    else:
        assert data.y.tolist() == y
        assert data.y.dtype.kind == ("i" if isinstance(y[0], int) else "U")


def padded(x: np.ndarray, width: int, gap: str) -> list[str]:
    return [*map(repr, x[:, 0].tolist()), *[gap] * (width - len(x))]


@ROUND_TRIP
@given(
    batch=labelled_batches(1), place=st.sampled_from(["first", "last", "none"]), gap=st.sampled_from(["NaN", "", None])
)
def test_round_trip_through_tsv(tmp_path, batch, place, gap):
    sequences, y = batch
    width = max(map(len, sequences)) if gap is not None else 0
    lines = []
    for x, label in zip(sequences, y, strict=True):
        fields = padded(x, width, gap)
        if place != "none":
            fields.insert(0 if place == "first" else len(fields), str(label))
        lines.append("\t".join(fields))
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert_same(read(path, label=place), sequences, None if place == "none" else y)


@ROUND_TRIP
@given(batch=labelled_batches(3), kind=st.sampled_from(["class", "target", "none"]))
def test_round_trip_through_ts(tmp_path, batch, kind):
    sequences, y = batch
    lines = [":".join(",".join(map(repr, channel)) for channel in x.T.tolist()) for x in sequences]
    tags = [f"@dimension {sequences[0].shape[1]}"]
    if kind == "class":
        tags.append("@classLabel true " + " ".join(map(str, y)))
        lines = [f"{line}:{label}" for line, label in zip(lines, y, strict=True)]
    elif kind == "target":
        y = [float(len(x)) / 3 for x in sequences]
        tags.append("@targetLabel true")
        lines = [f"{line}:{label!r}" for line, label in zip(lines, y, strict=True)]
    path = tmp_path / "a.ts"
    path.write_text("\n".join([*tags, "@data", *lines]) + "\n", encoding="utf-8")
    data = read(path)
    if kind == "target":
        assert data.y.dtype == np.float64
        assert data.y.tolist() == y
        y = None
        data = dataclasses.replace(data, y=None)
    assert_same(data, sequences, None if kind == "none" else y)


@ROUND_TRIP
@given(batch=labelled_batches(3))
def test_round_trip_through_arff(tmp_path, batch):
    sequences, y = batch
    width, m = max(map(len, sequences)), sequences[0].shape[1]
    tags = [f"@attribute t{k} numeric" for k in range(width)]
    if m > 1:
        tags = ["@attribute bag relational", *tags, "@end bag"]
    classes = ",".join(f"'{label}'" for label in y)
    lines = []
    for x, label in zip(sequences, y, strict=True):
        channels = [",".join([*map(repr, channel), *["?"] * (width - len(x))]) for channel in x.T.tolist()]
        values = "'" + "\\n".join(channels) + "'" if m > 1 else channels[0]
        lines.append(f"{values},'{label}'")
    path = tmp_path / "a.arff"
    text = "\n".join(["@relation x", *tags, f"@attribute c {{{classes}}}", "@data", *lines])
    path.write_text(text, encoding="utf-8")
    assert_same(read(path), sequences, y)


@ROUND_TRIP
@given(
    batch=labelled_batches(1),
    place=st.integers(0, 5),
    has_header=st.booleans(),
    gap=st.sampled_from(["NaN", "", "NA"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_round_trip_through_csv(tmp_path, batch, place, has_header, gap, quoting):
    sequences, y = batch
    width = max(map(len, sequences))
    place = min(place, width) if has_header else 0
    rows = [padded(x, width, gap) for x in sequences]
    for row, label in zip(rows, y, strict=True):
        row.insert(place, str(label))
    if has_header:
        names = [f"t{k}" for k in range(width)]
        names.insert(place, "label")
        rows.insert(0, names)
    path = tmp_path / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, quoting=quoting).writerows(rows)
    assert_same(read(path, header=None if has_header else False), sequences, y)


@settings(ROUND_TRIP, max_examples=300)
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.text(max_size=60).map(lambda text: text.encode("utf-8", "ignore")),
        st.text('01.5-e,:;\t\n "ayNaN?@data#inf_label', max_size=80).map(str.encode),
        st.text("01,:?a\n", max_size=60).map(lambda text: b"@classLabel true a 0 1\n@data\n" + text.encode()),
        st.text("01,?a'\"\\n\n {}", max_size=60).map(
            lambda text: b"@attribute t real\n@attribute c {a}\n@data\n" + text.encode()
        ),
        st.text("01,?a'\"\\n\n {}", max_size=60).map(lambda text: BAG_HEADER.encode() + text.encode()),
        st.lists(
            st.sampled_from(
                ["@attribute", "@end", "@data", "@relation", "relational", "numeric", "{a,1}", "a", "'", "\n"]
            )
        ).map(lambda words: " ".join(words).encode()),
    ),
    format=st.sampled_from(["tsv", "ts", "arff", "csv"]),
    label=st.sampled_from(["auto", "first", "last", "none", "a"]),
    missing=st.sampled_from(["error", "interpolate"]),
)
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path, content, format, label, missing):
    path = tmp_path / "junk"
    path.write_bytes(content)
    try:
        data = read(path, format=format, label=label, missing=missing)
    except DataFileError as error:
        assert str(path) in str(error)
    else:
        assert np.isfinite(data.X.values).all()
        assert data.y is None or data.y.shape == (len(data.X),)
        assert (data.y is None) or label != "none"


# ---- Speed -------------------------------------------------------------------------------------------------


def test_an_archive_sized_file_takes_well_under_a_second(write):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((4000, 150)).round(8).tolist()
    path = write("a.tsv", "\n".join("1\t" + "\t".join(map(repr, row)) for row in rows))
    took = []
    for _ in range(3):  # processor time, best of three: the machine may be busy with other work
        start = time.process_time()
        data = read(path)
        took.append(time.process_time() - start)
    assert data.X.values.shape == (600_000, 1)
    assert min(took) < 1.0


# -- how numbers are written, and rows of numbers that may be headers -----------------------------------------------


def table(tmp_path, text, **options):
    path = tmp_path / f"table{options.pop('suffix', '.csv')}"
    path.write_text(text)
    return read(path, **options)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("1;2,5;3\n2;-,5;1,5e1\n", ".csv"),
        ("label;t0;t1\n1;2,5;3\n2;-,5;1,5e1\n", ".csv"),
        ('1,"2,5",3\n2,"-,5","1,5e1"\n', ".csv"),
        ("1\t2,5\t3\n2\t-,5\t1,5e1\n", ".tsv"),
    ],
)
def test_decimal_commas_are_read_when_said(tmp_path, text, suffix):
    X, y = table(tmp_path, text, suffix=suffix, decimal=",")
    assert [x.ravel().tolist() for x in X] == [[2.5, 3.0], [-0.5, 15.0]]
    assert y.tolist() == [1, 2]
    with pytest.raises(DataFileError, match="pass decimal=','"):
        table(tmp_path, text, suffix=suffix)


def test_a_semicolon_in_a_label_is_said(tmp_path):
    with pytest.raises(DataFileError, match=r"may be separated by semicolons, or by commas; .*decimal='\.'"):
        table(tmp_path, "1;2,5\n2;3,5\n")
    X, y = table(tmp_path, "1;2,5\n2;3,5\n", decimal=".")
    assert X.values.ravel().tolist() == [5, 5]
    assert y.tolist() == ["1;2", "2;3"]
    assert len(table(tmp_path, "a;b,1,2\nc,1,2\n").X) == 2  # no number either way


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decimal": ";"}, "decimal=';' is not known"),
        ({"decimal": ",", "suffix": ".ts"}, "not for .ts files"),
        ({"decimal": ","}, "'2.5' has a decimal point"),
    ],
)
def test_decimal_is_checked(tmp_path, options, words):
    with pytest.raises(DataFileError, match=words):
        table(tmp_path, "1;2.5\n2;3.5\n", **options)


@pytest.mark.parametrize("first", ["1,2,3,4", "0.0,0.1,0.2,0.3", "1990,1991,1992,1993", "7,0.5,1.0,1.5,2.0"])
def test_a_first_row_of_even_numbers_may_be_a_header(tmp_path, first):
    rows = ["1,0.5,0.2,0.1,0.3", "2,0.3,0.1,0.9,0.2"]
    text = "\n".join([first, *(",".join(row.split(",")[: first.count(",") + 1]) for row in rows)])
    with pytest.raises(DataFileError, match="line 1 may be a header or a sequence"):
        table(tmp_path, text)
    assert len(table(tmp_path, text, header=False).X) == 3
    assert len(table(tmp_path, text, header=True, label="first").X) == 2


def test_straight_lines_are_sequences(tmp_path):
    assert len(table(tmp_path, "1,2,3,4,5\n2,3,4,5,6\n").X) == 2
    assert len(table(tmp_path, "1,5,5,5,5\n2,3,1,5,6\n").X) == 2


def test_long_tables_are_sent_to_from_long(tmp_path):
    with pytest.raises(DataFileError, match=r"rntk\.SequenceBatch\.from_long"):
        table(tmp_path, "id,t,v\n1,0,2.0\n1,1,3.0\n")
