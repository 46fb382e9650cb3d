"""Layouts that are easily mistaken for each other, and batches in parts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from rntk.errors import SequenceError
from rntk.io import read
from rntk.sequences import SequenceBatch, as_batch


@pytest.mark.parametrize(
    "X", [np.ones((10, 1, 96)), [np.ones((1, 96))] * 3, np.ones((1, 1, 8)), np.ones((4, 6, 100)), [np.ones((7, 8))]]
)
def test_more_channels_than_steps_are_refused_unless_said(X):
    with pytest.raises(SequenceError) as caught:
        as_batch(X)
    assert "rntk.SequenceBatch.from_aeon(X)" in str(caught.value)
    assert 'rntk.as_batch(X, layout="time-first")' in str(caught.value)
    said = as_batch(X, layout="time-first")
    assert said.max_length < said.n_channels
    assert as_batch(said) is said
    assert SequenceBatch.from_aeon(X).n_channels == as_batch(X, layout="channels-first").n_channels == said.max_length


@pytest.mark.parametrize("X", [np.ones((10, 1, 7)), np.ones((10, 1)), np.ones((1, 96)), np.ones((4, 96, 95)), [[1.0]]])
def test_other_short_sequences_are_read(X):
    assert len(as_batch(X)) == len(X)


def test_layouts_are_listed():
    with pytest.raises(ValueError, match='layout must be "time-first" or "channels-first"'):
        as_batch(np.ones((2, 3)), layout="aeon")


def test_a_batch_is_sliced_and_masked():
    batch = as_batch([[0.0], [1.0, 1.0], [2.0], [3.0]])
    for index, expected in (
        (slice(1, 3), [1, 1, 2]),
        (slice(None, None, -2), [3, 1, 1]),
        (np.array([True, False, False, True]), [0, 3]),
        ([False, False, True, False], [2]),
        ([3, 0], [3, 0]),
        ((np.array([2, 1]), ...), [2, 1, 1]),
        (np.array([-1]), [3]),
    ):
        assert batch[index].values.ravel().tolist() == expected
    with pytest.raises(IndexError, match="a mask of 2 entries for a batch of 4"):
        batch[[True, False]]
    with pytest.raises(SequenceError, match="at least one"):
        batch[4:]


def test_a_batch_has_a_shape_by_which_scikit_learn_splits_it():
    batch = as_batch(np.ones((6, 3, 10)), layout="time-first")
    assert batch.shape == (6, 3, 10)
    assert as_batch([[1.0], [1.0, 2.0]]).shape == (2, None, 1)
    first, second = train_test_split(batch, test_size=2, random_state=0)
    assert isinstance(first, SequenceBatch)  # lists of its sequences would be doubtful again
    assert (len(first), len(second)) == (4, 2)


def test_a_file_unpacks(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\t2\t3\n2\t4\t5\n")
    X, y = read(path)
    assert len(X) == 2
    assert y.tolist() == [1, 2]
