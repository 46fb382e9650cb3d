"""The gate for targets: the same words for the same mistake, and one rule for what labels are."""

from __future__ import annotations

import numpy as np
import pytest

from rntk.errors import SequenceError
from rntk.sequences import as_batch
from rntk.sequences.targets import read_labels, read_task, read_values, read_values_by_step, read_weights, weigh_classes


@pytest.mark.parametrize("y", [["a", "b", "a"], [1, 2, 2], [True, False, True], np.array([[0.0], [1.0], [0.0]])])
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_of_any_type_are_a_vector(y):
    assert read_labels(y, 3).shape == (3,)


def test_labels_that_cannot_be_learned_are_named():
    for y, words in (
        (None, "y is None"),
        (["a", "b"], "3 sequences and 2 labels"),
        (["a", None, "b"], r"1 of 3 labels are missing .* at positions 1;"),
        (["a", " ", ""], "2 of 3 labels are missing"),
        ([1.0, np.nan, 2.0], "NaN"),
        ([0.1, 0.2, 0.3], "continuous"),
        (["a", "a", "a"], "only one class"),
        (np.array(["a", 1, "b"], dtype=object), "all words or all numbers, and these are of type int, str"),
    ):
        with pytest.raises(ValueError, match=words):
            read_labels(np.array(y, dtype=object) if isinstance(y, list) and None in y else y, 3)


def test_values_are_rows_of_finite_numbers():
    assert read_values([1, 2], 2).tolist() == [1.0, 2.0]
    assert read_values([1, 2], 2, outputs=1).shape == (2, 1)
    assert read_values([[1, 2, 3]], 1, outputs=3).shape == (1, 3)
    assert read_values(np.array([1, 2.5], dtype=object), 2).dtype == np.float64
    pandas = pytest.importorskip("pandas", reason="frames are pandas'")
    assert read_values(pandas.DataFrame({"a": [1, 2], "b": [3, 4]}), 2).shape == (2, 2)


def test_values_that_cannot_be_used_are_explained():
    for y, options, words in (
        (None, {}, "y is None"),
        (["a", "b"], {}, "array of numbers"),
        ([1j, 2j], {}, "array of numbers"),
        ([[1.0], [2.0, 3.0]], {}, "array of numbers"),
        (["1", "2"], {}, "array of numbers"),
        ([1.0], {}, r"y has shape \(1,\), but there are 2 sequences: it must be \(2,\) or \(2, d\)"),
        (1.0, {}, r"y has shape \(\)"),
        (np.zeros((2, 2, 2)), {"name": "initial"}, r"initial has shape \(2, 2, 2\)"),
        (np.zeros((2, 0)), {}, r"y has shape \(2, 0\)"),
        ([1.0], {"unit": "step"}, "one value or row per step, the sequences one after another"),
        ([1.0, 2.0], {"outputs": 2}, r"y has shape \(2,\), but the outputs have \(2, 2\)"),
        ([1.0, 2.0, 3.0], {"outputs": 2}, r"it must be \(2, 2\)"),
        ([0.0, np.inf], {}, "y of sequence 1 is not a finite number"),
    ):
        with pytest.raises(ValueError, match=words):
            read_values(y, 2, **options)


def test_values_by_step_come_in_the_layouts_of_sequences():
    X = as_batch([[1.0, 2.0], [3.0]])
    assert read_values_by_step([[5.0, 6.0], [7.0]], X).tolist() == [[5.0], [6.0], [7.0]]
    assert read_values_by_step([np.ones((2, 3)), np.ones((1, 3))], X, outputs=3).shape == (3, 3)
    for y, options, words in (
        ([[1.0, 2.0]], {}, "2 sequences and 1 targets"),
        ([[1.0, 2.0], [3.0, 4.0]], {}, "sequence 1 has 1 steps, its target 2"),
        ([[1.0, 2.0], [3.0]], {"outputs": 2}, "y has 1 outputs, the model 2"),
        ([[1.0, np.nan], [3.0]], {"name": "y_test"}, "y_test cannot be used"),
    ):
        with pytest.raises(SequenceError, match=words):
            read_values_by_step(y, X, **options)
    with pytest.raises(ValueError, match="y is None"):
        read_values_by_step(None, X)


@pytest.mark.parametrize(
    ("y", "task", "wanted", "kind"),
    [
        ([1, 2, 1, 2], "auto", "classify", "i"),
        ([1, 2, 1, 2], "regress", "regress", "f"),
        ([3, 1, 2, 4], "auto", "regress", "f"),  # no class could be learned from them
        ([3, 1, 2, 4], "classify", "classify", "i"),
        ([0.5, 1.0, 0.5, 1.0], "auto", "regress", "f"),
        ([1.0, 2.0, 1.0, 2.0], "classify", "classify", "i"),
        ([1e300, 2e300, 1e300, 2e300], "classify", "classify", "U"),
        (["a", "b", "c", "d"], "auto", "classify", "U"),
        ([7], "auto", "classify", "i"),
    ],
)
def test_one_rule_says_what_labels_are(y, task, wanted, kind):
    found, labels = read_task(np.array(y), task)
    assert (found, labels.dtype.kind) == (wanted, kind)


def test_labels_that_are_not_what_was_asked_for():
    with pytest.raises(ValueError, match=r"labels of a\.tsv are words, such as 'x'; --task regress needs numbers"):
        read_task(np.array(["x", "y"]), "regress", "a.tsv")
    with pytest.raises(ValueError, match="numbers with fractions, not classes; take --task regress"):
        read_task(np.array([0.5, 1.5]), "classify")
    with pytest.raises(ValueError, match='task must be "auto", "classify" or "regress"'):
        read_task(np.array([1, 2]), "guess")


def test_masked_targets_are_not_read_without_their_mask():
    y = np.ma.masked_array([0, 1, 0, 1], mask=[0, 0, 1, 0])
    for read in (read_labels, read_values, read_weights):
        with pytest.raises(ValueError, match=r"masked array, and 1 of its entries .* position 2"):
            read(y, 4)
    assert read_labels(np.ma.masked_array([0, 1, 0, 1]), 4).tolist() == [0, 1, 0, 1]


def test_words_among_numbers_are_no_labels():
    for y in (["a", 1, "a", 1], np.array(["a", 1, "a", 1], dtype=object)):
        with pytest.raises(ValueError, match="all words or all numbers, and these are of type int, str; y ="):
            read_labels(y, 4)


def test_messages_say_what_may_have_happened():
    with pytest.raises(ValueError, match=r"30 sequences and 20 labels.*transposed"):
        read_labels([0, 1] * 10, 30)
    with pytest.raises(ValueError, match=r"shape \(20,\), but there are 30 sequences.*transposed"):
        read_values(np.zeros(20), 30)
    with pytest.raises(ValueError, match=r"only one class \(0.0\)"):
        read_labels(np.zeros(4), 4)


def test_missing_values_of_pandas_are_named():
    pandas = pytest.importorskip("pandas", reason="nullable arrays are pandas'")
    for array in (pandas.array([1, None, 2], dtype="Int64"), pandas.Series([1, None, 2], dtype="Float64")):
        with pytest.raises(ValueError, match=r"labels are missing|NaN"):
            read_labels(array, 3)
        with pytest.raises(ValueError, match="y of sequence 1 is not a finite number"):
            read_values(array, 3)
    whole = pandas.array([1, 2, 2], dtype="Int64")
    assert read_labels(whole, 3).tolist() == read_values(whole, 3).tolist() == [1, 2, 2]


def test_weights_of_classes_are_positive_numbers():
    labels, weight = np.array(["a", "b", "b"]), np.array([1.0, 2.0, 3.0])
    assert weigh_classes(None, labels, None) is None
    assert weigh_classes({"a": 4, "b": 0.5, "not here": 7}, labels, weight).tolist() == [4.0, 1.0, 1.5]
    assert weigh_classes("balanced", labels, None).tolist() == [1.5, 0.75, 0.75]
    for given, words in (
        ({"a": 0.0, "b": 1.0}, "the class 'a' the weight 0, which must be a positive number"),
        ({"b": -1.0}, "the class 'b' the weight -1"),
        ({"b": np.nan}, "the class 'b' the weight nan"),
        ("balance", 'class_weight must be "balanced", None, or a dict'),
        (3.0, 'class_weight must be "balanced", None, or a dict'),
        ({"c": 1.0}, "classes, .* are not in class_weight"),
    ):
        with pytest.raises(ValueError, match=words):
            weigh_classes(given, labels, weight)
