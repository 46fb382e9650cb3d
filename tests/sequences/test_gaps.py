"""Missing values: one word and one formula at the gate, in readers, in preprocessing and on the command line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from rntk.errors import SequenceError
from rntk.io import read
from rntk.learners import RNTKRidge
from rntk.preprocessing import Interpolate, ZNormalize
from rntk.sequences import SequenceBatch, as_batch
from rntk.sequences.gaps import interpolate

NAN = np.nan


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_filling_agrees_with_numpy(dtype):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 30, size=40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = random.normal(size=(offsets[-1], 3)).astype(dtype)
    values[random.random(values.shape) < 0.4] = NAN
    filled = interpolate(values, offsets)
    assert filled.dtype == dtype
    for start, stop in pairwise(offsets):
        for channel in range(3):
            x = values[start:stop, channel]
            known = np.flatnonzero(~np.isnan(x))
            if known.size:
                expected = np.interp(np.arange(len(x)), known, x[known])
                np.testing.assert_allclose(filled[start:stop, channel], expected, rtol=1e-5)
            else:
                assert np.isnan(filled[start:stop, channel]).all()


def test_filling_does_not_overflow():
    values = np.array([[-1.7e308], [NAN], [1.7e308]])
    assert interpolate(values, np.array([0, 3])).ravel()[1] == 0
    with pytest.raises(SequenceError, match="too large for float32"):
        as_batch([[1e300, NAN, 1.0]], dtype="float32", missing="interpolate")


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, NAN, 3.0], [NAN, 5.0]],
        [[1.0, None, 3.0], [None, 5.0]],
        [np.ma.masked_array([1, 7, 3], [0, 1, 0]), np.ma.masked_array([2.0, 5.0], [1, 0])],
        (np.array([1, NAN, 3], dtype="float32"), np.array([NAN, 5], dtype="float32")),
    ],
)
def test_gaps_of_any_kind_are_filled_when_said(X):
    with pytest.raises(SequenceError, match=r"rntk.preprocessing.Interpolate\(\).fit_transform\(X\)"):
        as_batch(X)
    batch = as_batch(X, missing="interpolate")
    assert batch.values.ravel().tolist() == [1, 2, 3, 5, 5]
    filled = Interpolate().fit_transform(X)
    assert [x.tolist() for x in filled] == [[1, 2, 3], [5, 5]]
    assert filled[0].dtype == batch.dtype


def test_gaps_in_other_layouts():
    X = np.array([[[1.0, NAN, 3.0], [4.0, 4.0, NAN]]])
    filled = [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0]]
    assert SequenceBatch.from_aeon(X, missing="interpolate")[0].tolist() == filled
    assert SequenceBatch.from_padded(X.transpose(0, 2, 1), [3], missing="interpolate")[0].tolist() == filled
    assert SequenceBatch.from_padded([[1.0, NAN, 3.0, NAN]], [3], missing="interpolate").lengths == [3]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [2.0, 2.5], "c": [3.0, 3.5]})
    assert Interpolate().fit_transform(frame).tolist() == [[1, 2, 3], [2.5, 2.5, 3.5]]


def test_data_without_gaps_is_a_view_and_the_callers_data_stays():
    X = np.array([[1.0, 2.0]])
    assert np.shares_memory(as_batch(X, missing="interpolate").values, X)
    X = np.array([[1.0, NAN]])
    as_batch(X, missing="interpolate")
    assert np.isnan(X[0, 1])


def test_where_nothing_is_known_nothing_is_filled():
    with pytest.raises(SequenceError) as caught:
        as_batch([np.array([[1.0, NAN], [2.0, NAN]]), np.ones((2, 2))], missing="interpolate")
    assert "sequence 0, channel 1 holds no values" in str(caught.value)
    for X in ([[NAN], [1.0]], [[None], [1.0]], np.ma.masked_all((2, 3))):
        with pytest.raises(SequenceError, match="sequence 0 holds no values"):
            Interpolate().fit(X)
    with pytest.raises(SequenceError, match="infinite"):
        Interpolate().fit([[1.0, NAN, np.inf]])


def test_the_words_are_those_of_readers():
    for call in (lambda: as_batch([[1.0]], missing="mean"), lambda: as_batch([[1.0]], missing=True)):
        with pytest.raises(ValueError, match='missing must be "error" or "interpolate"'):
            call()


def test_readers_fill_alike(tmp_path):
    path = tmp_path / "gaps.ts"
    path.write_text(
        "@problemName x\n@timeStamps false\n@univariate true\n@classLabel true a b\n@data\n?,1,?,?,4,?:a\n2,?,4:b\n"
    )
    X, _ = read(path, missing="interpolate")
    again = as_batch([[NAN, 1, NAN, NAN, 4, NAN], [2, NAN, 4]], missing="interpolate")
    np.testing.assert_array_equal(X.values, again.values)


def test_a_pipeline_fills_gaps():
    X = [[1.0, NAN, 3.0, 1.0], [2.0, 1.0, NAN], [0.0, 1.0], [NAN, 2.0, 2.5]]
    y = [0.0, 1.0, 0.5, 0.2]
    model = make_pipeline(Interpolate(), ZNormalize(), RNTKRidge()).fit(X, y)
    filled = make_pipeline(ZNormalize(), RNTKRidge()).fit(Interpolate().fit_transform(X), y)
    np.testing.assert_array_equal(model.predict(X), filled.predict(Interpolate().transform(X)))
    with pytest.raises(SequenceError, match="is expecting 1 channel"):
        model.predict([[[1.0, 2.0], [NAN, 1.0]]])
