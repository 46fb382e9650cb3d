"""Data frames: wide, nested and long; what may be one or the other is refused with the line for each."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import rntk
from rntk.errors import SequenceError
from rntk.sequences import SequenceBatch, as_batch

pd = pytest.importorskip("pandas")


def polars(columns):
    return pytest.importorskip("polars").DataFrame({name: list(column) for name, column in columns.items()})


def arrow(columns):
    return pytest.importorskip("pyarrow").table({name: list(column) for name, column in columns.items()})


def record_batch(columns):
    return pytest.importorskip("pyarrow").record_batch({name: list(column) for name, column in columns.items()})


LIBRARIES = pytest.mark.parametrize("frame", [pd.DataFrame, polars, arrow, record_batch])
LONG = {"id": [3, 1, 3, 1, 1], "t": [1, 2, 0, 0, 1], "v": [31.0, 12.0, 30.0, 10.0, 11.0], "w": [0, 1, 2, 3, 4]}
WIDE = {"0": [0.5, 1.5, 2.5], "1": [0.25, 1.25, 2.25], "2": [0.1, 0.2, 0.3]}


def message_of(X, **options):
    with pytest.raises(SequenceError) as caught:
        as_batch(X, **options)
    return str(caught.value)


def values_of(batch):
    return [x.tolist() for x in batch]


# -- wide --------------------------------------------------------------------------------------------------------------


@LIBRARIES
def test_rows_are_sequences(frame):
    assert values_of(as_batch(frame(WIDE)))[0] == [[0.5], [0.25], [0.1]]


@LIBRARIES
@pytest.mark.parametrize("name", ["label", " Class", "TARGET", "y"])
@pytest.mark.parametrize("labels", [[0, 1, 0], [0.5, 1.5, 2.0], ["a", "b", "a"]])
def test_a_column_of_labels_is_no_step(frame, name, labels):
    X = frame({name: labels} | WIDE)
    text = message_of(X)
    line = next(line for line in text.splitlines() if "X, y = " in line)
    scope = {"X": X}
    exec(line.partition(": ")[2], scope)
    assert values_of(as_batch(scope["X"])) == values_of(as_batch(frame(WIDE)))
    assert list(np.asarray(scope["y"])) == labels


@LIBRARIES
def test_labels_without_a_name_are_found_by_what_they_are(frame):
    assert "'9' looks like a label" in message_of(frame({"9": [1.0, 2.0, 1.0]} | WIDE))
    assert "'9' looks like a label" in message_of(frame(WIDE | {"9": ["a", "b", "a"]}))
    assert len(as_batch(frame({"9": [0.0, 0.0, 0.0]} | WIDE))) == 3  # all start at zero
    assert len(as_batch(frame({"9": [1.0, 2.0, 1.5]} | WIDE))) == 3
    assert len(as_batch(frame({"8": [1, 2, 1], "9": [1, 2, 2], "10": [2, 2, 1]}))) == 3


def test_layout_says_that_all_columns_are_steps():
    for columns in ({"label": [0, 1, 0]} | WIDE, {"t": [1, 2, 3]} | WIDE, {"id": [1, 2, 3]} | WIDE):
        assert as_batch(pd.DataFrame(columns), layout="time-first").shape == (3, 4, 1)
    dated = pd.DataFrame(WIDE, index=pd.date_range("2020-01-01", periods=3))
    assert "rntk.as_batch([X])" in message_of(dated)
    assert as_batch(dated, layout="time-first").shape == (3, 3, 1)
    assert as_batch([dated]).shape == (1, 3, 3)


@LIBRARIES
def test_ids_of_rows_are_no_steps(frame):
    text = message_of(frame({"case_id": [7, 8, 9]} | WIDE))
    assert "if a row is a sequence: rntk.as_batch(X.drop" in text


@LIBRARIES
def test_dates_are_times(frame):
    dates = [datetime.datetime(2020, 1, day) for day in (1, 2, 3)]
    text = message_of(frame({"when": dates} | WIDE))
    assert "'when' looks like a time" in text
    assert "if X is one sequence, a row a step: rntk.as_batch([X.drop" in text


def test_frames_of_one_sequence_hold_channels():
    groups = [group for _, group in pd.DataFrame(LONG).groupby("id")]
    text = message_of([group[["t", "v"]] for group in groups])
    assert "[frame.drop(columns=['t']) for frame in X]" in text
    assert as_batch([group[["v", "w"]] for group in groups]).shape == (2, None, 2)
    assert as_batch([group[["t", "v"]] for group in groups], layout="time-first").shape == (2, None, 2)
    assert "for _, group in X" in message_of(pd.DataFrame(LONG).groupby("id"))


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.Categorical(["u", "v"]), "b": [1.0, 2.0], "c": [0.5, 0.5]}),
        pd.DataFrame({"a": pd.array(["u", "v"], dtype="string"), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [datetime.date(2020, 1, 1)] * 2, "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [{}, {}], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [1.0, np.inf]}),
        pd.DataFrame({"a": [], "b": []}),
        pd.DataFrame(),
        pd.DataFrame({"a": [1.0, 2.0]}).iloc[:0],
        pd.DataFrame({"a": [1 + 1j, 1]}),
    ],
)
def test_hostile_frames_are_refused(X):
    message_of(X)


def test_hostile_frames_are_read():
    assert as_batch(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])).shape == (1, 2, 1)
    assert as_batch(pd.DataFrame({"a": pd.array([1, 2], dtype="Int8"), "b": [True, False]})).shape == (2, 2, 1)
    assert as_batch(pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 0.0]), "b": [1.5, 2.0]})).shape == (2, 2, 1)


# -- nested ------------------------------------------------------------------------------------------------------------


@LIBRARIES
def test_cells_that_hold_sequences_are_read(frame):
    one = as_batch(frame({"x": [[1.0, 2.0], [3.0]]}))
    assert values_of(one) == [[[1.0], [2.0]], [[3.0]]]
    two = as_batch(frame({"x": [[1.0, 2.0], [3.0]], "z": [[5.0, 6.0], [7.0]]}))
    assert values_of(two) == [[[1.0, 5.0], [2.0, 6.0]], [[3.0, 7.0]]]
    assert values_of(SequenceBatch.from_aeon(frame({"x": [[1.0, 2.0], [3.0]], "z": [[5.0, 6.0], [7.0]]}))) == values_of(
        two
    )


@pytest.mark.parametrize("cell", [pd.Series, np.array, list, tuple])
def test_cells_of_any_kind(cell):
    X = pd.DataFrame({"dim_0": [cell([1.0, 2.0]), cell([3.0])], "dim_1": [cell([4, 5]), cell([6])]})
    assert values_of(as_batch(X)) == [[[1.0, 4.0], [2.0, 5.0]], [[3.0, 6.0]]]


@LIBRARIES
def test_nested_frames_that_do_not_fit(frame):
    text = message_of(frame({"x": [[1.0, 2.0], [3.0]], "target": [0, 1]}))
    assert "the cells of column 'target' are none" in text
    assert "X, y = X.drop" in text
    text = message_of(frame({"x": [[1.0, 2.0], [3.0]], "z": [[5.0, 6.0], [7.0, 8.0]]}))
    assert "the cells of row 1 have the shapes (1,), (2,)" in text
    assert "sequence 1 is None" in message_of(frame({"x": [[1.0], None]}))


# -- long --------------------------------------------------------------------------------------------------------------


@LIBRARIES
def test_long_frames_are_no_wide_ones(frame):
    X = frame(LONG)
    line = next(line for line in message_of(X).splitlines() if "from_long" in line)
    assert line.endswith("rntk.SequenceBatch.from_long(X, id='id', time='t', values=['v', 'w'])")
    expected = [[[10.0, 3.0], [11.0, 4.0], [12.0, 1.0]], [[30.0, 2.0], [31.0, 0.0]]]
    assert values_of(SequenceBatch.from_long(X, id="id", time="t", values=["v", "w"])) == expected
    assert values_of(SequenceBatch.from_long(X, id="id", time="t")) == expected
    in_order = SequenceBatch.from_long(X, id="id", values="v")
    assert values_of(in_order)[0] == [[12.0], [10.0], [11.0]]


def test_long_frames_agree_with_a_loop_over_groups():
    random = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame({"case": random.choice(list("dacb"), n), "v": random.normal(size=n), "w": random.normal(size=n)})
    X["when"] = pd.Timestamp("2020") + pd.to_timedelta(random.permutation(n), unit="h")
    batch = SequenceBatch.from_long(X, id="case", time="when")
    groups = X.groupby("case")
    for x, (_, group) in zip(batch, groups, strict=True):
        np.testing.assert_array_equal(x, group.sort_values("when")[["v", "w"]])
    indexed = X.set_index(["case", "when"])
    assert "from_long(X, id='case', time='when')" in message_of(indexed)
    np.testing.assert_array_equal(SequenceBatch.from_long(indexed, id="case", time="when").values, batch.values)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"id": "case"}, "no column is named 'case' (id=); the columns are 'id', 't', 'v', 'w'"),
        ({}, {"id": "id", "values": ["v", "q"]}, "no column is named 'q' (values=)"),
        ({}, {"id": ["id"], "time": "t"}, "no column is named ['id'] (id=)"),
        ({}, {"id": "id", "time": "id"}, "id= and time= both name 'id'"),
        ({}, {"id": "id", "values": []}, "no column is left for values"),
        ({}, {"id": "id"}, "column 't' doesn't look like a channel"),
        ({"t": [0, 0, 0, 0, 1]}, {"id": "id", "time": "t"}, "id 1 has t 0 more than once; 2 rows repeat a time"),
        ({"t": [0, 1, 2, 3, None]}, {"id": "id", "time": "t"}, "column 't' (time=) has missing entries"),
        ({"id": [1, 1, 2, None, 2]}, {"id": "id", "time": "t"}, "column 'id' (id=) has missing entries"),
        ({"t": list("01234")}, {"id": "id", "time": "t"}, "'10' comes before '9'"),
        ({"id": [1, "a", 1, "a", 2]}, {"id": "id", "time": "t"}, "column 'id' (id=) mixes things"),
        ({"v": [1.0, None, 1.0, 1.0, 1.0]}, {"id": "id", "time": "t"}, "sequence 0 has 1 NaN"),
        ({"v": list("abcde")}, {"id": "id", "time": "t"}, "'v' doesn't look like a channel"),
        ({"v": list("abcde")}, {"id": "id", "time": "t", "values": "v"}, "the string 'd'"),
    ],
)
def test_long_frames_that_cannot_be_read(change, options, words):
    with pytest.raises(SequenceError) as caught:
        SequenceBatch.from_long(pd.DataFrame(LONG | change), **options)
    assert words in str(caught.value)


def test_what_is_no_frame():
    for df in (None, [[1, 2]], {"id": [1]}, np.ones((2, 2)), pd.Series([1.0])):
        with pytest.raises(SequenceError, match="not a data frame"):
            SequenceBatch.from_long(df, id="id")
    with pytest.raises(SequenceError, match="no rows"):
        SequenceBatch.from_long(pd.DataFrame(LONG).iloc[:0], id="id", time="t")


def test_gaps_of_long_frames_are_filled_when_said():
    X = pd.DataFrame({"id": [1, 1, 1], "t": [0, 1, 2], "v": [1.0, None, 3.0]})
    assert SequenceBatch.from_long(X, id="id", time="t", missing="interpolate").values.ravel().tolist() == [1, 2, 3]


def test_columns_of_several_levels_are_asked_about():
    columns = pd.MultiIndex.from_product([["a", "b"], range(3)])
    df = pd.DataFrame(np.arange(12.0).reshape(2, 6), columns=columns)
    with pytest.raises(SequenceError, match="several levels") as caught:
        as_batch(df)
    line = next(line for line in str(caught.value).splitlines() if "transpose" in line)
    read = eval(line.partition(": ")[2], {"rntk": rntk, "X": df})
    assert read.lengths.tolist() == [3, 3]
    np.testing.assert_array_equal(read[0], df.loc[0].to_numpy().reshape(2, 3).T)
    assert as_batch(df, layout="time-first").max_length == 6
