"""Preprocessing: what each transformer computes, what it gives back, what it refuses, and that nothing overflows."""

from __future__ import annotations

import pickle
import pkgutil
import sys
import time

import mpmath
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import rntk.preprocessing
from rntk import SequenceBatch, SequenceError, as_batch
from rntk.preprocessing import (
    ChannelScaler,
    Clock,
    CumulativeSum,
    Differences,
    Downsample,
    UnitNorm,
    ZNormalize,
    add_clock,
    cumulative_sum,
    differences,
    downsample,
    unit_norm,
    z_normalize,
)

LARGEST = sys.float_info.max
SMALLEST = 5e-324  # the smallest positive number

STATELESS = {
    "UnitNorm": UnitNorm(),
    "ZNormalize": ZNormalize(),
    "Differences": Differences(),
    "Differences, twice": Differences(order=2),
    "Downsample": Downsample(3),
    "CumulativeSum": CumulativeSum(),
    "Clock": Clock(2.0),
}
ALL = {**STATELESS, "ChannelScaler": ChannelScaler()}
for_every_transformer = pytest.mark.parametrize("transformer", ALL, indirect=True)
for_every_one_that_keeps_channels = pytest.mark.parametrize("transformer", sorted({*ALL} - {"Clock"}), indirect=True)
for_every_stateless = pytest.mark.parametrize("transformer", STATELESS, indirect=True)


@pytest.fixture
def transformer(request):
    """A fresh one for every test."""
    return clone(ALL[request.param])


def ragged(lengths=(5, 1, 8, 2, 5, 13), m=3, seed=0, dtype="float64") -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [(generator.normal(size=(length, m)) * 3 + 1).astype(dtype) for length in lengths]


def block_means(x: np.ndarray, max_length: int) -> np.ndarray:
    size = -(-len(x) // max_length)
    return np.array([x[i : i + size].mean(axis=0) for i in range(0, len(x), size)])


def z_scores(x: np.ndarray) -> np.ndarray:
    deviation = x.std(axis=0)
    return np.where(np.ptp(x, axis=0) == 0, 0.0, (x - x.mean(axis=0)) / np.where(deviation == 0, 1, deviation))


#: What each stateless transformer does to one sequence (T, m), written the obvious way.
FORMULAS = {
    "UnitNorm": lambda x: x / np.linalg.norm(x),
    "ZNormalize": z_scores,
    "Differences": lambda x: np.diff(x, axis=0) if len(x) > 1 else np.zeros_like(x),
    "Differences, twice": lambda x: np.diff(x, 2, axis=0) if len(x) > 2 else np.zeros_like(x[:1]),
    "Downsample": lambda x: block_means(x, 3),
    "CumulativeSum": lambda x: np.cumsum(x, axis=0),
    "Clock": lambda x: np.column_stack([x, np.linspace(-2, 2, len(x)) if len(x) > 1 else [0.0]]),
}


def assert_same(got, expected, rtol=1e-12, atol=1e-13) -> None:
    """The same sequences, item by item, in the same shapes."""
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


# What is computed ---------------------------------------------------------------------------------------------


class TestByHand:
    def test_unit_norm(self):
        assert_same(UnitNorm().fit_transform([[3.0, 4.0], [0.0, 0.0, 0.0], [-7.0]]), [[0.6, 0.8], [0, 0, 0], [-1.0]])

    def test_unit_norm_is_over_all_channels(self):
        x = [[1.0, 2.0], [4.0, 2.0]]  # 1 + 4 + 16 + 4 = 25
        assert_same(UnitNorm().fit_transform([x, [[0.0, 2.0]]]), [np.array(x) / 5, [[0.0, 1.0]]])

    def test_z_normalize(self):
        x = [[1.0, 7.0], [3.0, 7.0]]
        y = [[2.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 4.0], [5.0, 0.0], [5.0, 0.0], [7.0, 0.0], [9.0, 4.0]]
        got = ZNormalize().fit_transform([x, y])
        np.testing.assert_allclose(got[0], [[-1, 0], [1, 0]])
        np.testing.assert_allclose(got[1][:, 0], [-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2])  # mean 5, deviation 2
        np.testing.assert_allclose(got[1][:, 1], (np.array(y)[:, 1] - 1) / np.sqrt(3))

    def test_channel_scaler(self):
        scaler = ChannelScaler().fit([[[1.0, 5.0], [3.0, 5.0]], [[5.0, 5.0]], [[7.0, 5.0]]])
        np.testing.assert_allclose(scaler.mean_, [4, 5])
        np.testing.assert_allclose(scaler.scale_, [np.sqrt(5), 1])
        assert_same(scaler.transform([[[4.0, 6.0], [9.0, 5.0]]]), [[[0, 1], [np.sqrt(5), 0]]])
        assert_same(scaler.inverse_transform([[[0.0, 1.0], [np.sqrt(5), 0.0]]]), [[[4, 6], [9, 5]]])

    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            (1, [[3, 5, 7], [0], [2]]),
            (2, [[2, 2], [0], [0]]),
            (3, [[0], [0], [0]]),
            (4, [[0], [0], [0]]),
            (10**9, [[0], [0], [0]]),
        ],
    )
    def test_differences(self, order, expected):
        assert_same(Differences(order).fit_transform([[1.0, 4.0, 9.0, 16.0], [5.0], [1.0, 3.0]]), expected)

    def test_differences_of_a_higher_order_repeat_the_first(self):
        batch = as_batch(ragged())
        np.testing.assert_allclose(
            differences(batch, 3).values, differences(differences(differences(batch))).values, atol=1e-14
        )

    def test_differences_of_short_sequences_are_zeros_whatever_comes_next(self):
        got = Differences(2).transform([[1.0, 1e3], [2.0, 1e5, 1e9], [7.0]])
        assert_same(got, [[0.0], [1e9 - 1e5 - (1e5 - 2)], [0.0]])

    @pytest.mark.parametrize(
        ("length", "expected"),
        [
            (1, [4.5]),
            (2, [2.0, 7.0]),
            (3, [1.5, 5.5, 8.5]),
            (4, [1, 4, 7, 9]),
            (6, [0.5, 2.5, 4.5, 6.5, 8.5]),
            (9, [0.5, 2.5, 4.5, 6.5, 8.5]),
            (10, list(range(10))),
            (11, list(range(10))),
        ],
    )
    def test_downsample(self, length, expected):
        assert_same(Downsample(length).fit_transform([np.arange(10.0)]), [expected])

    def test_downsample_chooses_the_block_of_each_sequence(self):
        got = Downsample(2).fit_transform([[1.0, 3.0, 5.0, 8.0], [2.0, 4.0], [9.0], [1.0, 2.0, 6.0]])
        assert_same(got, [[2.0, 6.5], [2.0, 4.0], [9.0], [1.5, 6.0]])

    def test_clock_adds_a_channel_to_whatever_came(self):
        assert Clock().fit_transform(np.zeros((2, 5))).shape == (2, 5, 2)
        assert [x.shape for x in Clock().fit_transform([np.zeros((4, 2)), np.zeros((1, 2))])] == [(4, 3), (1, 3)]
        assert Clock().fit_transform(as_batch(np.zeros((2, 5), "float32"))).dtype == np.float32
        for reach in (0, -1, np.inf, np.nan, True, "far"):
            with pytest.raises(ValueError, match="reach must be a positive number"):
                Clock(reach).fit(np.zeros((2, 5)))

    def test_cumulative_sum(self):
        got = CumulativeSum().fit_transform([[[1.0, -1.0], [2.0, 5.0]], [[3.0, 3.0]]])
        assert_same(got, [[[1, -1], [3, 4]], [[3, 3]]])


class TestAgainstFormulas:
    @pytest.mark.parametrize("name", FORMULAS)
    @pytest.mark.parametrize("m", [1, 3])
    def test_ragged(self, name, m):
        X = ragged(m=m)
        assert_same(clone(STATELESS[name]).fit_transform(X), [FORMULAS[name](x) for x in X])

    @pytest.mark.parametrize("name", FORMULAS)
    def test_equal_lengths(self, name):
        X = np.random.default_rng(1).normal(size=(4, 7, 2))
        assert_same(clone(STATELESS[name]).fit_transform(X), [FORMULAS[name](x) for x in X])

    @pytest.mark.parametrize("name", FORMULAS)
    def test_single_precision_is_rounded_only_once(self, name):
        X = ragged(dtype="float32", lengths=(400, 3, 1, 57))
        got = clone(STATELESS[name]).fit_transform(X)
        expected = [FORMULAS[name](x.astype("float64")) for x in X]
        assert all(x.dtype == np.float32 for x in got)
        assert_same(got, [x.astype("float32") for x in expected], rtol=1.2e-7, atol=1e-13)

    def test_channel_scaler_is_standard_scaler_on_all_steps(self):
        train, new = ragged(), ragged(seed=1)
        scaler, rival = ChannelScaler().fit(train), StandardScaler().fit(np.concatenate(train))
        np.testing.assert_allclose(scaler.mean_, rival.mean_)
        np.testing.assert_allclose(scaler.scale_, rival.scale_)
        assert_same(scaler.transform(new), [rival.transform(x) for x in new])
        assert_same(scaler.inverse_transform(scaler.transform(new)), new)

    def test_sums_of_single_precision_are_accumulated_in_double(self):
        x = np.full(200_000, 0.1, dtype="float32")
        total = CumulativeSum().transform([x])[0][-1]
        assert total == np.float32(float(np.float32(0.1)) * len(x))  # in single precision the error is 1e-4
        assert Downsample(1).transform([x])[0][0] == np.float32(0.1)

    def test_differences_undo_sums(self):
        batch = as_batch(ragged())
        undone = list(differences(cumulative_sum(batch)))
        assert_same(undone, [x[1:] if len(x) > 1 else np.zeros_like(x) for x in batch])

    @pytest.mark.parametrize(
        ("function", "transformer"),
        [
            (unit_norm, UnitNorm()),
            (z_normalize, ZNormalize()),
            (cumulative_sum, CumulativeSum()),
            (lambda batch: add_clock(batch, 0.5), Clock(0.5)),
            (lambda batch: differences(batch, 2), Differences(2)),
            (lambda batch: downsample(batch, 3), Downsample(3)),
        ],
    )
    def test_functions_are_what_transformers_do(self, function, transformer):
        batch = as_batch(ragged())
        got, expected = function(batch), transformer.transform(batch)
        assert isinstance(got, SequenceBatch)
        np.testing.assert_array_equal(got.values, expected.values)
        np.testing.assert_array_equal(got.offsets, expected.offsets)


@for_every_stateless
def test_a_sequence_is_transformed_as_if_it_were_alone(transformer):
    X = [*ragged(), 1e300 * np.ones((4, 3)), 1e-300 * np.arange(12.0).reshape(4, 3)]
    together = transformer.transform(X)
    for x, got in zip(X, together, strict=True):
        np.testing.assert_array_equal(transformer.transform([x])[0], got)


@pytest.mark.parametrize("transformer", [UnitNorm(), ZNormalize(), Downsample(3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_idempotent(transformer, dtype):
    constants = np.full((3, 3), 0.1, dtype=dtype)
    once = transformer.fit_transform([*ragged(dtype=dtype), constants, 0 * constants])
    rtol = 1e-14 if dtype == "float64" else 3e-7
    assert_same(transformer.fit_transform(once), once, rtol=rtol, atol=rtol)


# Constants ----------------------------------------------------------------------------------------------------


class TestConstantChannels:
    @pytest.mark.parametrize("value", [0.1, 1 / 3, -0.7, 1e300, LARGEST, -LARGEST, 1e-300, SMALLEST, 0.0, 1e15 + 1])
    @pytest.mark.parametrize("length", [1, 2, 3, 7, 10, 1000])
    def test_a_repeated_number_becomes_exact_zeros(self, value, length):
        x = np.full(length, value)
        (got,) = ZNormalize().fit_transform([x])
        np.testing.assert_array_equal(got, np.zeros(length))
        assert not np.signbit(got).any()
        scaler = ChannelScaler().fit([x])
        assert (scaler.mean_[0], scaler.scale_[0]) == (value, 1.0)
        np.testing.assert_array_equal(scaler.transform([x])[0], np.zeros(length))
        assert (Downsample(2).transform([x])[0] == value).all()

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("value", [0.1, 3.0, 1e30, -7e-30])
    def test_rounding_of_the_size_of_the_values_is_no_variation(self, dtype, value):
        x = np.full(50, value, dtype=dtype)
        x[::3] = np.nextafter(x[0], np.inf, dtype=x.dtype)
        x[::7] = np.nextafter(x[1], -np.inf, dtype=x.dtype)
        assert len(set(x.tolist())) == 3
        (got,) = ZNormalize().transform([x])
        np.testing.assert_array_equal(got, 0)
        assert not np.signbit(got).any()
        assert ChannelScaler().fit([x]).scale_[0] == 1

    @pytest.mark.parametrize("size", [2.0**-1000, 1.0, 2.0**1000])
    def test_the_border_is_four_rounding_units(self, size):
        x = size * np.array([1.0, 1.0 + 4 * np.finfo(float).eps])
        y = size * np.array([1.0, 1.0 + 5 * np.finfo(float).eps])
        assert_same(ZNormalize().transform([x, y]), [[0, 0], [-1, 1]])

    @pytest.mark.parametrize("size", [1e-8, 1e-200, 1e-300, 1e200, LARGEST / 4])
    def test_small_variation_around_zero_is_variation(self, size):
        x = np.random.default_rng(0).normal(size=100)
        expected = z_scores(x)
        assert_same(ZNormalize().transform([x * size]), [expected], rtol=1e-9, atol=1e-12)
        scaler = ChannelScaler().fit([x * size])
        np.testing.assert_allclose(scaler.scale_, x.std() * size, rtol=1e-9)
        assert_same(scaler.transform([x * size]), [expected], rtol=1e-9, atol=1e-12)

    def test_small_variation_on_a_large_level_is_variation(self):
        steps = np.arange(20) % 2
        assert_same(ZNormalize().transform([1.0 + 1e-14 * steps, 2.0**40 + steps]), [2.0 * steps - 1] * 2)

    def test_channels_are_judged_one_by_one(self):
        x = np.stack([np.full(10, 0.1), 1e-200 * np.arange(10), 1e200 * np.arange(10)], axis=1)
        (got,) = ZNormalize().transform([x])
        scores = z_scores(np.arange(10.0))
        np.testing.assert_allclose(got, np.stack([0 * scores, scores, scores], axis=1))


# Numbers of all sizes -----------------------------------------------------------------------------------------

hostile = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, SMALLEST, -SMALLEST, 1e-310, 1e300, -1e300, LARGEST, -LARGEST, 0.1, 1.0]),
)


@st.composite
def hostile_batches(draw) -> SequenceBatch:
    m = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    numbers = draw(st.lists(hostile, min_size=sum(lengths) * m, max_size=sum(lengths) * m))
    values = np.array(numbers).reshape(-1, m)
    if draw(st.booleans()):
        with np.errstate(all="ignore"):
            values = np.clip(values, -3.4e38, 3.4e38).astype("float32")
    return SequenceBatch(values, np.concatenate([[0], np.cumsum(lengths)]))


def assert_sound(got: SequenceBatch, batch: SequenceBatch, added_channels: int = 0) -> None:
    SequenceBatch(got.values, got.offsets)  # checks everything
    assert got.values.flags.c_contiguous
    assert got.offsets.dtype == np.int64
    assert got.dtype == batch.dtype
    assert len(got) == len(batch)
    assert got.n_channels == batch.n_channels + added_channels


@settings(max_examples=300, deadline=None)
@given(batch=hostile_batches())
@pytest.mark.parametrize("name", ALL)
def test_finite_or_an_error_that_names_the_sequence(name, batch):
    transformer = clone(ALL[name])
    try:
        with np.errstate(all="raise"):
            got = transformer.fit(batch).transform(batch)
    except SequenceError as error:
        assert isinstance(transformer, (Differences, CumulativeSum, ChannelScaler))
        named = {int(problem.split()[1]) for problem in error.problems}
        assert named
        # Whoever is not named goes through.
        rest = [i for i in range(len(batch)) if i not in named]
        if rest and not isinstance(transformer, ChannelScaler):
            transformer.transform(batch.take(rest))
    else:
        assert_sound(got, batch, added_channels=int(name == "Clock"))


@settings(max_examples=200, deadline=None)
@given(batch=hostile_batches())
def test_unit_norm_is_right_at_all_sizes(batch):
    tolerance = 16 * float(np.finfo(batch.dtype).eps)
    for x, got in zip(batch, unit_norm(batch), strict=True):
        norm = mpmath.norm([mpmath.mpf(float(number)) for number in x.ravel()])
        expected = [float(mpmath.mpf(float(number)) / norm) if norm else 0.0 for number in x.ravel()]
        np.testing.assert_allclose(got.ravel(), expected, rtol=tolerance, atol=float(np.finfo(batch.dtype).tiny))


@settings(max_examples=200, deadline=None)
@given(batch=hostile_batches())
def test_z_scores_are_right_at_all_sizes(batch):
    resolution = float(np.finfo(batch.dtype).eps)
    with mpmath.workdps(700):  # the squares of 1e308 and 1e-308 side by side
        for x, got in zip(batch, z_normalize(batch), strict=True):
            for channel, scores in zip(x.T.tolist(), got.T, strict=True):
                numbers = [mpmath.mpf(number) for number in channel]
                if max(numbers) - min(numbers) <= 4 * resolution * max(map(abs, numbers)):
                    assert not scores.any()
                    continue
                mean = mpmath.fsum(numbers) / len(numbers)
                deviation = mpmath.sqrt(mpmath.fsum((x - mean) ** 2 for x in numbers) / len(numbers))
                expected = [float((x - mean) / deviation) for x in numbers]
                # Deviations of k rounding units are known to one part in k.
                blur = 8 * 2.3e-16 * float(max(map(abs, numbers)) / deviation)
                np.testing.assert_allclose(scores, expected, rtol=8 * resolution, atol=8 * resolution + blur)


@settings(max_examples=200, deadline=None)
@given(batch=hostile_batches(), max_length=st.integers(1, 6))
def test_block_means_are_right_at_all_sizes(batch, max_length):
    resolution, spacing = float(np.finfo(batch.dtype).eps), float(np.finfo(batch.dtype).smallest_subnormal)
    got = downsample(batch, max_length)
    assert_sound(got, batch)
    assert got.max_length <= max_length
    for x, means in zip(batch, got, strict=True):
        size = -(-len(x) // max_length)
        assert len(means) == -(-len(x) // size)
        for i, mean in enumerate(means):
            block = x[i * size : (i + 1) * size]
            largest = np.abs(block).max(axis=0).astype("float64")
            exact = [float(mpmath.fsum(map(mpmath.mpf, column)) / len(block)) for column in block.T.tolist()]
            error = np.abs(mean.astype("float64") / 2 - np.array(exact) / 2)
            assert (error <= 8 * resolution * largest + spacing).all()
            assert (mean <= block.max(axis=0)).all()
            assert (mean >= block.min(axis=0)).all()
        if len(x) <= max_length:
            np.testing.assert_array_equal(means, x)


class TestOverflow:
    def test_differences(self):
        with pytest.raises(SequenceError, match="sequence 1 has a result too large for float64 at step 0") as caught:
            Differences().transform([[1.0, 2.0], [LARGEST, -LARGEST], [3.0, 4.0, 5.0]])
        assert "differences of order 1 of X" in str(caught.value)
        assert "rescale" in str(caught.value)

    def test_cumulative_sum(self):
        X = [[[1.0, 1.0]], [[0.0, LARGEST], [0.0, 1.0], [0.0, LARGEST], [0.0, -LARGEST]]]
        with pytest.raises(SequenceError, match=r"sequence 1 has .* at step 2, channel 1"):
            CumulativeSum().transform(X)

    def test_cumulative_sum_of_single_precision(self):
        x = np.full(4, 1e38, dtype="float32")
        assert CumulativeSum().transform([x[:3]])[0][-1] == np.float32(3e38)
        with pytest.raises(SequenceError, match="too large for float32 at step 3") as caught:
            CumulativeSum().transform([x])
        assert "float64" in str(caught.value)
        assert CumulativeSum().transform([x.astype("float64")])[0][-1] > 3.9e38

    def test_channel_scaler(self):
        scaler = ChannelScaler().fit([[1e-200, 2e-200]])
        with pytest.raises(SequenceError, match="sequence 2 has"):
            scaler.transform([[1.0], [-5.0], [1e150]])
        with pytest.raises(SequenceError, match="sequence 0 has"):
            ChannelScaler().fit([[1e200, 2e200]]).inverse_transform([[1e150]])

    @pytest.mark.parametrize("length", [2, 80, 104])  # rounding of the last two exceeds the largest number
    def test_deviation_of_the_largest_numbers(self, length):
        x = np.where(np.arange(length) < length // 2, LARGEST, -LARGEST)
        assert_same(ChannelScaler().fit_transform([x]), [np.sign(x)])

    def test_channel_scaler_spans_the_whole_range(self):
        scaler = ChannelScaler().fit([[LARGEST, -LARGEST]])
        assert (scaler.mean_[0], scaler.scale_[0]) == (0.0, LARGEST)
        assert_same(scaler.transform([[LARGEST, -LARGEST]]), [[1.0, -1.0]])
        assert_same(scaler.inverse_transform([[1.0, -1.0]]), [[LARGEST, -LARGEST]])
        level = ChannelScaler().fit([[LARGEST, LARGEST / 2]])  # x - mean overflows, its score does not
        assert_same(level.transform([[-LARGEST]]), [[-7.0]])
        assert_same(level.inverse_transform([[-7.0]]), [[-LARGEST]])
        least = ChannelScaler().fit([[0.0, SMALLEST]])
        assert least.scale_[0] > 0

    def test_many_offenders_are_counted(self):
        with pytest.raises(SequenceError, match="30 problems") as caught:
            CumulativeSum().transform(np.full((30, 2), LARGEST))
        assert "and 20 more" in str(caught.value)


# What is given back -------------------------------------------------------------------------------------------


@for_every_one_that_keeps_channels
class TestForm:
    def test_array(self, transformer):
        X = np.random.default_rng(0).normal(size=(4, 7))
        got = transformer.fit_transform(X)
        assert type(got) is np.ndarray
        assert got.shape == (4, transformer.transform(as_batch(X)).max_length)

    @pytest.mark.parametrize("m", [1, 2])
    def test_array_with_channels(self, transformer, m):
        X = np.random.default_rng(0).normal(size=(4, 7, m))
        got = transformer.fit_transform(X)
        assert type(got) is np.ndarray
        assert got.shape == (4, transformer.transform(as_batch(X)).max_length, m)

    @pytest.mark.parametrize("kind", [list, tuple])
    @pytest.mark.parametrize("lengths", [(4, 2, 7), (5, 5)])
    def test_list(self, transformer, kind, lengths):
        flat = transformer.fit_transform(kind(x[:, 0] for x in ragged(lengths)))
        assert type(flat) is list
        assert all(type(x) is np.ndarray and x.ndim == 1 for x in flat)
        for m in (1, 2):
            got = transformer.fit_transform(kind(ragged(lengths, m=m)))
            assert type(got) is list
            assert all(type(x) is np.ndarray and x.shape[1:] == (m,) for x in got)

    def test_list_of_mixed_items(self, transformer):
        X = [[1.0, 2.0], [[1.0], [2.0]], np.array([3.0, 1.0]), np.array([[3.0], [1.0]]), pd.Series([1.0, 2.0], [5, 6])]
        X += [pd.DataFrame({"a": [1.0, 2.0]}), np.array([[1.0], [2.0], 0], dtype=object)[:2], pa.array([1.0, 2.0])]
        got = transformer.fit_transform(X)
        assert [x.ndim for x in got] == [1, 2, 1, 2, 1, 2, 2, 1]
        assert_same([x.ravel() for x in got[:2]], [got[4], got[5].ravel()])

    def test_batch(self, transformer):
        batch = as_batch(ragged())
        got = transformer.fit_transform(batch)
        assert isinstance(got, SequenceBatch)
        assert_sound(got, batch)

    def test_frame(self, transformer):
        X = np.random.default_rng(0).normal(size=(4, 7))
        got = transformer.fit_transform(pd.DataFrame(X, columns=[f"t{i}" for i in range(7)]))
        assert type(got) is np.ndarray
        np.testing.assert_array_equal(got, transformer.fit_transform(X))

    @pytest.mark.parametrize("wrap", [pd.Series, pa.array, lambda X: np.array([*X, None], dtype=object)[:-1]])
    def test_columns_of_sequences(self, transformer, wrap):
        unequal = [[1.0, 2.0, 4.0, 3.0, 8.0], [3.0, 5.0]]
        got = transformer.fit_transform(wrap(unequal))
        assert type(got) is list
        assert_same(got, transformer.fit_transform(unequal))
        equal = [[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]]
        got = transformer.fit_transform(wrap(equal))
        assert type(got) is np.ndarray
        assert_same(got, transformer.fit_transform(equal))

    def test_column_of_sequences_with_a_channel_axis(self, transformer):
        got = transformer.fit_transform(pd.Series([np.ones((4, 1)), np.arange(4.0)[:, None]]))
        assert type(got) is np.ndarray
        assert got.shape[2:] == (1,)

    def test_tensors_known_by_protocol_only(self, transformer):
        class Tensor:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        X = np.random.default_rng(0).normal(size=(4, 7, 1))
        got = transformer.fit_transform(Tensor(X))
        np.testing.assert_array_equal(got, transformer.fit_transform(X))

    def test_integers_become_double_and_half_becomes_single(self, transformer):
        assert transformer.fit_transform(np.arange(8).reshape(2, 4)).dtype == np.float64
        assert transformer.fit_transform(np.arange(8, dtype="float16").reshape(2, 4)).dtype == np.float32
        assert transformer.fit_transform(np.arange(8, dtype="float32").reshape(2, 4)).dtype == np.float32

    @pytest.mark.parametrize("length", [2, 7])  # 2: Downsample has nothing to do
    def test_results_are_writable_and_the_input_is_left_alone(self, transformer, length):
        X = np.random.default_rng(0).normal(size=(4, length))
        before = X.copy()
        got = transformer.fit_transform(X)
        assert not np.shares_memory(got, X)
        got[:] = 0
        listed = transformer.fit_transform(list(X))
        listed[0][:] = 0
        np.testing.assert_array_equal(X, before)


def test_inverse_gives_back_what_came():
    X = np.random.default_rng(0).normal(size=(4, 7))
    scaler = ChannelScaler().fit(X)
    assert scaler.inverse_transform(X).shape == (4, 7)
    assert scaler.inverse_transform(X[:, :, None]).shape == (4, 7, 1)
    assert [x.ndim for x in scaler.inverse_transform(list(X))] == [1] * 4
    assert isinstance(scaler.inverse_transform(as_batch(X)), SequenceBatch)
    assert scaler.inverse_transform(X.astype("float32")).dtype == np.float32


# What is refused ----------------------------------------------------------------------------------------------


@for_every_transformer
class TestRefusals:
    def test_another_number_of_channels(self, transformer):
        fitted = clone(transformer).fit(ragged(m=3))
        with pytest.raises(SequenceError, match=f"X has 2 channels, but {type(transformer).__name__} .* 3 channels"):
            fitted.transform(ragged(m=2))
        with pytest.raises(SequenceError, match="X has 1 channel, but"):
            fitted.transform(np.ones((2, 3)))
        fitted.fit(ragged(m=2)).transform(ragged(m=2))

    @pytest.mark.parametrize("X", [[[1.0, np.nan]], [[1.0], []], [], "text", None, np.ones(3)])
    def test_what_the_gate_refuses(self, transformer, X):
        with pytest.raises(SequenceError, match="X"):
            clone(transformer).fit(X)
        fitted = clone(transformer).fit([[1.0, 2.0]])
        with pytest.raises(SequenceError, match="X"):
            fitted.transform(X)


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, "2", None, True, np.nan])
@pytest.mark.parametrize(
    ("make", "name"), [(Differences, "order"), (Downsample, "max_length"), (lambda v: Downsample(max_length=v), "max_")]
)
def test_counts_are_checked_in_fit_and_transform(make, name, value):
    transformer = make(value)  # the constructor only stores
    for method in (transformer.fit, transformer.transform):
        with pytest.raises(ValueError, match=f"{name}.*must be a whole number of at least 1, not"):
            method([[1.0, 2.0]])


def test_counts_may_be_numpy_integers():
    assert_same(Differences(np.int64(2)).fit_transform([[1.0, 4.0, 9.0]]), [[2.0]])
    assert_same(Downsample(np.uint8(1)).fit_transform([[1.0, 3.0]]), [[2.0]])


def test_channel_scaler_must_be_fitted():
    scaler = ChannelScaler()
    for method in (scaler.transform, scaler.inverse_transform):
        with pytest.raises(NotFittedError):
            method([[1.0, 2.0]])
    with pytest.raises(SequenceError, match="channels"):
        scaler.fit([[1.0, 2.0]]).inverse_transform(ragged(m=2))


# scikit-learn -------------------------------------------------------------------------------------------------


@for_every_transformer
class TestEstimators:
    def test_clone_parameters_and_pickle(self, transformer):
        fitted = clone(transformer).fit(ragged())
        copy = clone(fitted)
        assert copy.get_params() == transformer.get_params()
        assert not hasattr(copy, "n_channels_in_")
        loaded = pickle.loads(pickle.dumps(fitted))
        assert_same(loaded.transform(ragged(seed=3)), fitted.transform(ragged(seed=3)), rtol=0, atol=0)

    def test_fit_returns_self_and_leaves_parameters_alone(self, transformer):
        fresh = clone(transformer)
        before = fresh.get_params()
        assert fresh.fit(ragged(), np.arange(6)) is fresh
        assert fresh.get_params() == before
        assert fresh.n_channels_in_ == 3

    def test_fit_transform_is_fit_then_transform(self, transformer):
        fitted = clone(transformer).fit(ragged())
        assert_same(clone(transformer).fit_transform(ragged(), np.arange(6)), fitted.transform(ragged()), 0, 0)

    def test_tags(self, transformer):
        tags = get_tags(transformer)
        assert tags.requires_fit == isinstance(transformer, ChannelScaler)
        assert tags.input_tags.three_d_array
        assert tags.transformer_tags is not None
        if not tags.requires_fit:
            check_is_fitted(clone(transformer))
            clone(transformer).transform(ragged())

    def test_output_containers(self, transformer):
        X = np.random.default_rng(0).normal(size=(4, 7))
        transformer = clone(transformer)
        assert transformer.set_output() is transformer
        pipeline = make_pipeline(transformer).set_output(transform="default")
        assert type(pipeline.fit_transform(X)) is np.ndarray
        with pytest.raises(ValueError, match="'pandas' output"):
            transformer.set_output(transform="pandas")
        with sklearn.config_context(transform_output="pandas"):
            assert type(transformer.fit_transform(X)) is np.ndarray

    def test_shows_itself(self, transformer):
        assert type(transformer).__name__ in repr(transformer)
        assert "<div" in make_pipeline(clone(transformer).fit(ragged()))._repr_html_()


def test_pipeline_of_ragged_sequences():
    X = ragged(lengths=(30, 4, 17, 9))
    pipeline = make_pipeline(ChannelScaler(), CumulativeSum(), Downsample(5), UnitNorm())
    got = pipeline.fit_transform(X)
    everything = np.concatenate(X)
    scaled = [(x - everything.mean(axis=0)) / everything.std(axis=0) for x in X]
    expected = [block_means(np.cumsum(x, axis=0), 5) for x in scaled]
    assert_same(got, [x / np.linalg.norm(x) for x in expected], rtol=1e-10, atol=1e-12)


def test_pipeline_with_a_search_over_parameters():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.cumsum(rng.normal(size=(60, 40)) + 5 * np.where(y, 1, -1)[:, None] * np.sin(np.arange(40)), axis=1)
    X += 100 * rng.normal(size=(60, 1))  # a level that hides the classes, and that differences take away
    pipeline = Pipeline([("change", Differences()), ("size", ZNormalize()), ("learn", KNeighborsClassifier(3))])
    search = GridSearchCV(pipeline, {"change__order": [1, 2], "size": [UnitNorm(), ZNormalize()]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    lengths = make_pipeline(Downsample(8), FunctionTransformer(lambda X: X.shape)).fit_transform(X)
    assert lengths == (60, 8)


# The package --------------------------------------------------------------------------------------------------

MODULES = [module.name for module in pkgutil.iter_modules(rntk.preprocessing.__path__, "rntk.preprocessing.")]


def test_promised_names_exist_and_are_documented():
    for name in rntk.preprocessing.__all__:
        promised = getattr(rntk.preprocessing, name)
        assert "Examples" in promised.__doc__


@pytest.mark.parametrize("name", FORMULAS)
def test_whole_batches_at_once(name):
    """No loop over sequences: on many short ones, faster than the formula one by one, measured in the same run."""
    batch = as_batch(np.random.default_rng(0).normal(size=(10_000, 5)))

    def shortest(run, repeats: int) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return min(times)

    one_by_one = shortest(lambda: [FORMULAS[name](x) for x in batch], 1)
    assert shortest(lambda: STATELESS[name].transform(batch), 5) < one_by_one / 2
