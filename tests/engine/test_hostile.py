"""Hostile but legal input: a kernel gives finite, symmetric, positive semi-definite numbers, or one clear error.

The gate has its own junk (`test_sequences_hostile.py`); everything here passes it. Values and deviations span the
whole range of floating point, sequences repeat, mirror and vanish, and every option is mixed with every other.
Any exception but the promised ones, and any warning of NumPy's, fails the test.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rntk import NTK, RNTK, HermiteAccuracyWarning, KernelOverflowError, SequenceError
from rntk.errors import ActivationError

HOSTILE = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,  # the same junk in every run: a failure is never rerun into a pass
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

ACTIVATIONS = ["relu", "leaky_relu(0.1)", "identity", "abs", "erf", "sin", "tanh"]
MILD_VALUES = [0.0, 1.0, -1.0, 0.3, -2.5]
WILD_VALUES = [*MILD_VALUES, -0.0, 5e-324, 2e-308, 1e-300, 1e-160, 1e-9, 1e6, 1e100, -1e150, 1e154, 1e308, -1e308]
MILD_SIGMAS = [1.0, 0.5, 2**0.5, 0.0]
WILD_SIGMAS = [*MILD_SIGMAS, 1e-12, 1e-3, 3.0, 1e6, 1e49]
#: Smallest eigenvalue of the cosine matrix that rounding may leave, over the largest.
NEGATIVE = {"float64": -1e-9, "float32": -1e-4}
#: Rows whose diagonal is below this are rounded to subnormal numbers: their cosines are noise.
FAINT = {"float64": 1e-290, "float32": 1e-30}

#: How far kernel.diag(X) may be from the diagonal of kernel(X), by (expanded in Hermite polynomials, dtype). An
#: expansion only warns beyond a thousand times its tolerance.
AGREEMENT = {(False, "float64"): 1e-9, (False, "float32"): 1e-3, (True, "float64"): 1e-8, (True, "float32"): 1e-2}


# ---- What goes in ------------------------------------------------------------------------------------------


def mostly(mild: list[float], wild: list[float]) -> st.SearchStrategy[st.SearchStrategy[float]]:
    """Tame examples as often as wild ones: where everything is extreme, everything overflows and nothing is tested."""
    return st.sampled_from([mild, wild]).map(st.sampled_from)


@st.composite
def batches(draw: Any, channels: int, largest: int = 5) -> list[np.ndarray]:
    """Sequences of extreme values: arbitrary, constant, equal to an earlier one, opposite, nearly equal, cut short."""
    values = draw(mostly(MILD_VALUES, WILD_VALUES))
    sequences: list[np.ndarray] = []
    for _ in range(draw(st.integers(1, largest))):
        kinds = ["free", "constant"] + (["equal", "opposite", "near", "suffix"] if sequences else [])
        kind = draw(st.sampled_from(kinds))
        if kind in ("free", "constant"):
            length = draw(st.integers(1, 12))
            steps = length if kind == "free" else 1
            drawn = draw(st.lists(values, min_size=steps * channels, max_size=steps * channels))
            array = np.array(drawn).reshape(steps, channels)
            sequences.append(array if kind == "free" else np.repeat(array, length, axis=0))
            continue
        earlier = draw(st.sampled_from(sequences))
        sequences.append(
            {
                "equal": earlier.copy(),
                "opposite": -earlier,
                "near": earlier * (1 - 2**-52),
                "suffix": earlier[-draw(st.integers(1, len(earlier))) :],
            }[kind]
        )
    return sequences


@st.composite
def deviations(draw: Any, names: list[str], depth: int) -> dict[str, Any]:
    """Standard deviations: one number each, or now and then one per layer."""
    sigma = draw(mostly(MILD_SIGMAS, WILD_SIGMAS))
    return {
        name: draw(
            st.one_of(sigma, sigma, st.lists(sigma, min_size=depth, max_size=depth)) if name != "sigma_v" else sigma
        )
        for name in names
    }


@st.composite
def recurrent(draw: Any, activation: str, **fixed: Any) -> RNTK:
    """An RNTK with every option drawn, except those given."""
    depth = draw(st.integers(1, 3))
    names = ["sigma_w", "sigma_u", "sigma_b", "sigma_h", "sigma_v"]
    options = draw(deviations(names, depth))
    # Weights trained as they are must start somewhere: "standard" refuses input weights that are zero.
    parameterizations = ["ntk", "standard"] if np.min(options["sigma_u"]) > 0 else ["ntk"]
    options |= {
        "depth": depth,
        "readout": draw(st.sampled_from(["last", "mean", "sequence"])),
        "bidirectional": draw(st.booleans()),
        "tied": draw(st.sampled_from([True, False])),
        "parameterization": draw(st.sampled_from(parameterizations)),
        "normalize": draw(st.booleans()),
        "dtype": draw(st.sampled_from(["float64", "float32"])),
    }
    return RNTK(activation, n_jobs=1, **options | fixed)


@st.composite
def feedforward(draw: Any, activation: str) -> NTK:
    """An NTK with every option drawn."""
    depth = draw(st.integers(1, 3))
    return NTK(
        activation,
        depth=depth,
        normalize=draw(st.booleans()),
        dtype=draw(st.sampled_from(["float64", "float32"])),
        n_jobs=1,
        **draw(deviations(["sigma_w", "sigma_b", "sigma_v"], depth)),
    )


# ---- What must come out ------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What a call gave: None where the library refused, and whether it warned that an expansion is inaccurate."""

    result: Any
    inaccurate: bool


def attempt(function: Any, *arguments: Any, **options: Any) -> Outcome:
    """The result, or None where the library refused with one of its own errors and a message."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HermiteAccuracyWarning)
        try:
            result = function(*arguments, **options)
        except (ActivationError, KernelOverflowError, SequenceError) as refusal:
            assert len(str(refusal)) > 20, "an error without an explanation"
            result = None
    return Outcome(result, any(issubclass(each.category, HermiteAccuracyWarning) for each in caught))


def size_of(kernel: Any, X: list[np.ndarray]) -> int:
    return sum(map(len, X)) if getattr(kernel, "readout", "last") == "sequence" else len(X)


def assert_is_gram(kernel: Any, X: list[np.ndarray], K: np.ndarray) -> None:
    """Shape, precision, finite, exactly symmetric, no negative diagonal, positive semi-definite."""
    n = size_of(kernel, X)
    assert K.shape == (n, n)
    assert K.dtype == kernel.dtype
    assert np.isfinite(K).all()
    assert np.array_equal(K, K.T)
    diagonal = np.diag(K)
    assert (diagonal >= 0).all()
    if kernel.normalize:
        assert np.isin(diagonal, (0.0, 1.0)).all()
    visible = np.flatnonzero(diagonal > FAINT[kernel.dtype])
    if visible.size:
        root = np.sqrt(diagonal[visible].astype(np.float64))
        cosines = K[np.ix_(visible, visible)] / root[:, None] / root
        eigenvalues = np.linalg.eigvalsh(cosines)
        assert eigenvalues[0] >= NEGATIVE[kernel.dtype] * eigenvalues[-1], f"smallest eigenvalue {eigenvalues[0]}"


def run(examples: Any, property_holds: Any) -> None:
    """Try `property_holds` on every example; it tells whether there was a result to check, and often there must be."""
    outcomes: Counter[bool] = Counter()

    @HOSTILE
    @given(examples)
    def check(example: Any) -> None:
        outcomes[bool(property_holds(*example))] += 1

    check()
    assert outcomes[True] > 0.3 * outcomes.total(), f"most examples were refused, so little was tested: {outcomes}"


def with_batches(kernels: Any, count: int = 1) -> Any:
    """(kernel, batch, ...) with batches of one number of channels."""
    return st.integers(1, 3).flatmap(lambda m: st.tuples(kernels, *[batches(m)] * count))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gram_matrices_are_finite_symmetric_and_positive(activation: str) -> None:
    def property_holds(kernel: RNTK, X: list[np.ndarray]) -> bool:
        outcome = attempt(kernel, X)
        for K in (outcome.result, attempt(kernel.nngp, X).result):
            if K is not None:
                assert_is_gram(kernel, X, K)
        tangent, diagonal = outcome.result, attempt(kernel.diag, X).result
        if tangent is not None:
            assert diagonal is not None, "kernel(X) has a diagonal and kernel.diag(X) refuses"
            assert diagonal.shape == (len(tangent),)
            assert diagonal.dtype == tangent.dtype
            assert np.isfinite(diagonal).all()
            assert (diagonal >= 0).all()
            if not outcome.inaccurate:
                tolerance = AGREEMENT[activation == "tanh", kernel.dtype]
                np.testing.assert_allclose(diagonal, np.diag(tangent), rtol=tolerance, atol=FAINT[kernel.dtype])
        return tangent is not None

    run(with_batches(recurrent(activation)), property_holds)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_normalised_kernels_never_overflow(activation: str) -> None:
    """What `normalize` promises: scales are kept apart, so cosines exist however large the kernel is."""

    def property_holds(kernel: RNTK, X: list[np.ndarray], Y: list[np.ndarray]) -> bool:
        for call in (kernel, kernel.nngp):
            for K in (attempt(call, X).result, attempt(call, X, Y).result):
                if K is None:  # bounded activations refuse inputs whose square is no float: no scale to take out
                    assert activation in ("erf", "sin", "tanh"), "a normalised kernel overflowed"
                    return False
                assert np.abs(K).max() <= 1 - 10 * NEGATIVE[kernel.dtype]
        return True

    run(with_batches(recurrent(activation, normalize=True), 2), property_holds)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_finite_and_symmetric(activation: str) -> None:
    def property_holds(kernel: RNTK, X: list[np.ndarray]) -> bool:
        result = attempt(kernel, X, eval_gradient=True).result
        if result is None:
            return False
        K, gradient = result
        assert_is_gram(kernel, X, K)
        assert gradient.shape == (*K.shape, len(kernel.theta))
        assert gradient.dtype == K.dtype
        assert np.isfinite(gradient).all()
        assert np.array_equal(gradient, gradient.transpose(1, 0, 2))
        np.testing.assert_allclose(K, attempt(kernel, X).result, rtol=-NEGATIVE[kernel.dtype], atol=0)
        return True

    run(with_batches(recurrent(activation)), property_holds)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_cross_kernels_are_finite(activation: str) -> None:
    def property_holds(kernel: RNTK, X: list[np.ndarray], Y: list[np.ndarray]) -> bool:
        pair = attempt(kernel.both, X, Y).result
        if pair is None:
            return False
        for K in pair:
            assert K.shape == (size_of(kernel, X), size_of(kernel, Y))
            assert K.dtype == kernel.dtype
            assert np.isfinite(K).all()
        return True

    run(with_batches(recurrent(activation), 2), property_holds)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feedforward_kernels_too(activation: str) -> None:
    vectors = st.tuples(st.integers(1, 5), st.integers(1, 4), mostly(MILD_VALUES, WILD_VALUES)).flatmap(
        lambda shape: st.lists(
            st.lists(shape[2], min_size=shape[1], max_size=shape[1]).map(np.array), min_size=shape[0], max_size=shape[0]
        )
    )

    def property_holds(kernel: NTK, X: list[np.ndarray]) -> bool:
        result = attempt(kernel, X, eval_gradient=True).result
        if result is None:
            return False
        K, gradient = result
        assert_is_gram(kernel, X, K)
        assert gradient.shape == (*K.shape, len(kernel.theta))
        assert np.isfinite(gradient).all()
        return True

    run(st.tuples(feedforward(activation), vectors), property_holds)
