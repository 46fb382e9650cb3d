"""Arbitrary junk at the gate: a batch that keeps every promise, or one SequenceError, and nothing else."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rntk.errors import SequenceError
from rntk.sequences import SequenceBatch, as_batch

HOSTILE = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,  # the same junk in every run: a failure is never rerun into a pass
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Uncooperative:
    """Something that speaks every protocol and answers none."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")

    def __getitem__(self, index):
        raise RuntimeError("no")

    def __float__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


def numbers() -> st.SearchStrategy:
    return st.one_of(
        st.floats(),
        st.floats(width=32),
        st.integers(),
        st.integers(min_value=10**300, max_value=10**320),
        st.booleans(),
        st.decimals(),
        st.fractions(),
        st.sampled_from([np.float32(1.5), np.float16(2), np.int8(3), np.True_, np.longdouble(2)]),
    )


def oddities() -> st.SearchStrategy:
    return st.one_of(
        st.none(),
        st.text(max_size=4),
        st.binary(max_size=4),
        st.complex_numbers(),
        st.dates(),
        st.sampled_from([np.datetime64("NaT", "s"), np.timedelta64(3, "s"), np.timedelta64(3, "ns")]),
        st.sampled_from([np.ma.masked, np.str_("a"), np.complex64(1j)]),
        st.sampled_from([datetime.timedelta(1), Decimal("sNaN"), Ellipsis, NotImplemented, len, int, np.ndarray]),
        st.builds(Uncooperative),
        st.builds(lambda: iter([1.0])),
    )


def arrays() -> st.SearchStrategy:
    dtypes = st.one_of(
        npst.scalar_dtypes(),
        npst.floating_dtypes(),
        npst.integer_dtypes(),
        npst.boolean_dtypes(),
        st.sampled_from([np.dtype("U2"), np.dtype([("a", "f4"), ("b", "i2")]), np.dtype("longdouble")]),
    )
    shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
    plain = npst.arrays(dtypes, shapes)
    objects = npst.arrays(np.dtype(object), shapes, elements=st.one_of(numbers(), oddities()))
    masked = st.builds(
        lambda values, keep: np.ma.array(values, mask=np.arange(values.size).reshape(values.shape) % 2 >= keep),
        npst.arrays(npst.floating_dtypes(), shapes),
        st.integers(0, 2),
    )
    return st.one_of(plain, objects, masked)


def junk() -> st.SearchStrategy:
    leaves = st.one_of(numbers(), oddities(), arrays())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.integers(), inner, max_size=2),
            st.lists(inner, min_size=1, max_size=3).map(object_array),
        ),
        max_leaves=12,
    )


def object_array(items: list) -> np.ndarray:
    cells = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        cells[position] = item
    return cells


def check_batch(batch: SequenceBatch, dtype: str | None) -> None:
    values, offsets = batch.values, batch.offsets
    assert type(values) is np.ndarray
    assert values.ndim == 2
    assert values.shape[1] >= 1
    assert values.dtype in ([np.dtype(dtype)] if dtype else [np.dtype("float32"), np.dtype("float64")])
    assert values.dtype.isnative
    assert values.flags.c_contiguous
    assert values.flags.aligned
    assert not values.flags.writeable
    assert np.isfinite(values).all()
    assert offsets.dtype == np.int64
    assert not offsets.flags.writeable
    assert offsets[0] == 0
    assert offsets[-1] == len(values)
    assert len(offsets) >= 2
    assert (np.diff(offsets) >= 1).all()
    assert len(repr(batch)) < 120


def pass_the_gate(convert, name: str, dtype: str | None) -> SequenceBatch | None:
    """Run a conversion; return the batch, or None after a proper SequenceError."""
    problems: tuple[str, ...] = ()
    try:
        batch = convert()
    except SequenceError as error:
        text, problems = str(error), error.problems
    if not problems:
        check_batch(batch, dtype)
        return batch
    assert text.startswith(name)
    assert "What to try" in text
    assert len(problems) <= 10
    assert all(problems)
    assert len(text) < 5000
    return None


DTYPES = st.sampled_from([None, "float32", "float64"])


@HOSTILE
@given(junk(), DTYPES)
def test_anything_at_all(X, dtype):
    pass_the_gate(lambda: as_batch(X, dtype=dtype), "X cannot", dtype)


@HOSTILE
@given(st.lists(junk(), max_size=4), DTYPES)
def test_lists_of_anything(X, dtype):
    pass_the_gate(lambda: as_batch(X, dtype=dtype, name="panel"), "panel cannot", dtype)


@HOSTILE
@given(junk(), DTYPES)
def test_anything_as_aeon(X, dtype):
    pass_the_gate(lambda: SequenceBatch.from_aeon(X, dtype=dtype), "X cannot", dtype)


@HOSTILE
@given(
    st.one_of(arrays(), junk()),
    st.one_of(junk(), npst.arrays(npst.integer_dtypes(), st.integers(0, 3), elements=st.integers(0, 4))),
    DTYPES,
)
def test_anything_as_padded(values, lengths, dtype):
    pass_the_gate(lambda: SequenceBatch.from_padded(values, lengths, dtype=dtype), "values cannot", dtype)


@HOSTILE
@given(junk())
def test_anything_as_dtype(dtype):
    def convert() -> SequenceBatch:
        return as_batch([[1.0, 2.0]], dtype=dtype)

    pass_the_gate(convert, "X cannot", None)


@HOSTILE
@given(npst.arrays(npst.floating_dtypes(), npst.array_shapes(min_dims=2, max_dims=3, max_side=4)), DTYPES)
def test_an_array_and_the_list_of_its_rows_are_the_same_batch_or_the_same_error(X, dtype):
    outcomes = []
    for version in (X, list(X), tuple(X), object_array(list(X))):
        try:
            batch = as_batch(version, dtype=dtype)
            outcomes.append((batch.values.tobytes(), batch.values.shape, batch.offsets.tobytes(), batch.dtype))
        except SequenceError as error:
            outcomes.append(str(error))
    assert all(outcome == outcomes[0] for outcome in outcomes)


@HOSTILE
@given(npst.arrays(npst.floating_dtypes(), npst.array_shapes(min_dims=2, max_dims=3, max_side=4)), DTYPES)
def test_refusal_is_exactly_non_finiteness_for_well_shaped_floats(X, dtype):
    with np.errstate(all="ignore"):
        default = "float32" if X.dtype.itemsize <= 4 else "float64"
        expected = X.astype(dtype or default)
    batch = pass_the_gate(lambda: as_batch(X, dtype=dtype), "X cannot", dtype)
    assert (batch is not None) == bool(np.isfinite(expected).all())
    if batch is not None:
        np.testing.assert_array_equal(batch.values.reshape(X.shape), expected)


FINITE = st.floats(-1e6, 1e6)
RAGGED = st.integers(1, 3).flatmap(
    lambda m: st.lists(
        npst.arrays(np.float64, st.tuples(st.integers(1, 5), st.just(m)), elements=FINITE),
        min_size=1,
        max_size=6,
    )
)


@HOSTILE
@given(RAGGED, st.data())
def test_good_sequences_survive_every_route(sequences, data):
    batch = as_batch(sequences)
    lengths = [len(sequence) for sequence in sequences]
    padded = np.full((len(sequences), max(lengths), sequences[0].shape[1]), np.nan)
    for row, sequence in zip(padded, sequences, strict=True):
        row[: len(sequence)] = sequence
    routes = [
        batch,
        as_batch([sequence.tolist() for sequence in sequences]),
        SequenceBatch.from_aeon([sequence.T for sequence in sequences]),
        SequenceBatch.from_padded(padded, lengths),
        SequenceBatch(np.concatenate(sequences), np.cumsum([0, *lengths])),
        pickle.loads(pickle.dumps(batch)),
        batch.reversed().reversed(),
        batch.take(range(len(batch))),
    ]
    for route in routes:
        check_batch(route, "float64")
        np.testing.assert_array_equal(route.values, np.concatenate(sequences))
        assert route.lengths.tolist() == lengths
    order = data.draw(st.lists(st.integers(-len(batch), len(batch) - 1), min_size=1, max_size=8))
    taken = batch.take(order)
    check_batch(taken, "float64")
    assert len(taken) == len(order)
    for got, index in zip(taken, order, strict=True):
        np.testing.assert_array_equal(got, sequences[index])


@HOSTILE
@given(RAGGED, st.data())
def test_one_planted_defect_is_named_exactly(sequences, data):
    index = data.draw(st.integers(0, len(sequences) - 1))
    step = data.draw(st.integers(0, len(sequences[index]) - 1))
    m = sequences[index].shape[1]
    channel = data.draw(st.integers(0, m - 1))
    sequences[index][step, channel] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    with pytest.raises(SequenceError) as caught:
        as_batch(sequences)
    (line,) = caught.value.problems
    assert line.startswith(f"sequence {index} has 1 ")
    assert line.endswith(f"at step {step}" + (f", channel {channel}" if m > 1 else ""))


@pytest.mark.parametrize("cell", [Fraction(10**400), Decimal("1e400"), -(10**400), Decimal("Infinity"), 1e400])
def test_numbers_beyond_float64_never_pass(cell):
    assert pass_the_gate(lambda: as_batch([[cell, 1.0]]), "X cannot", None) is None
