"""Gaussian expectations of activations, on both sides of the library, against stored high-precision values.

The reference side is `dual(q1, q2, s)`. The fused side is reached through a kernel: at length one, with σ_u = σ_v = 1
and two channels, vectors x = √(2 q1) (1, 0) and y = √(2 q2) (c, √(1 - c²)) have the variances and the covariance
asked for, so that 𝒦 = V and Θ - 𝒦 = s V'.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest

from oracles import battery, duals
from oracles.partials import closed_form
from rntk import RNTK, HermiteAccuracyWarning, KernelOverflowError, gram, input_gradient
from rntk.activations import (
    FAMILIES,
    NAMED,
    HermiteActivation,
    Homogeneous,
    absolute,
    as_activation,
    cos,
    erf,
    gelu,
    identity,
    leaky_relu,
    name_of,
    rectified_power,
    register,
    register_family,
    relu,
    sigmoid,
    sin,
    sinusoid,
    snake,
    tanh,
    tilted_sin,
)
from rntk.activations.hermite import OWN_MARKS, gaussian_rule
from rntk.errors import ActivationError

STORED = json.loads((Path(duals.__file__).parent / "dual_values.json").read_text())["values"]
LEAKY = f"leaky_relu({duals.LEAKY_SLOPE})"
EXPANDED = {"tanh", "sigmoid", "gelu"}
SMOOTH = {"identity", "erf", "gelu", "sin", *battery.RECENT} - set(battery.POWERS)
#: Everything that has a name, and some of each family.
KNOWN = [*NAMED.values(), *(as_activation(name) for name in ("leaky_relu(0.2)", *battery.RECENT))]
KNOWN = list(dict.fromkeys(KNOWN))
#: Relative to what V and V' can be at most: √(V(q1,q1,q1) V(q2,q2,q2)), likewise V'.
REFERENCE_BOUND = 1e-10


def records(name: str) -> list[dict]:
    """Stored values of one activation; closed forms that have none stored come from the oracle itself."""
    if name in ("relu", "erf", "identity", *battery.RECENT):
        base = [record for record in STORED if record["activation"] == "sin"]
        made = []
        for record in base:
            given = [float(record[key]) for key in ("q1", "q2", "s")]
            if name in battery.RECENT:
                with mpmath.workdps(60):
                    value, slope = closed_form(name).pair(*map(mpmath.mpf, given))[:2]
            else:
                value, slope = duals.dual(name, *given)
            made.append(record | {"activation": name, "value": str(value), "derivative": str(slope)})
        return made
    return [record for record in STORED if record["activation"] == name]


def numbers(record: dict) -> tuple[float, ...]:
    return tuple(float(record[key]) for key in ("q1", "q2", "s", "value", "derivative"))


def activation_named(name: str):
    return as_activation(LEAKY if name == "leaky_relu" else name)


def self_scales(phi, q1: float, q2: float) -> tuple[float, float]:
    """Largest possible V and V' at these variances."""
    q = np.array([q1, q2])
    moments = phi.moments(q)
    slopes = moments.slope * moments.square / q
    return float(np.sqrt(moments.square.prod())), float(np.sqrt(slopes.prod()))


@pytest.mark.parametrize("name", ["relu", "erf", "identity", "leaky_relu", "sin", *battery.RECENT])
def test_closed_forms_of_the_reference_side(name):
    phi = activation_named(name)
    for record in records(name):
        q1, q2, s, value, slope = numbers(record)
        got = phi.dual(np.array([q1]), np.array([q2]), np.array([s]))
        scale, slope_scale = self_scales(phi, q1, q2)
        # arccos at c = ±0.9999 has lost four digits, at ±1 it is taken exactly.
        assert abs(got[0][0] - value) <= 1e-13 * scale, record
        assert abs(got[1][0] - slope) <= 1e-12 * max(slope_scale, abs(slope)), record


@pytest.mark.parametrize("name", sorted(EXPANDED))
def test_quadrature_of_the_reference_side(name):
    """Two-dimensional quadrature: meant to hold for moderate variances."""
    phi = activation_named(name)
    for record in records(name):
        q1, q2, s, value, slope = numbers(record)
        if max(q1, q2) > 10:
            continue
        got = phi.dual(np.array([q1]), np.array([q2]), np.array([s]))
        scale, slope_scale = self_scales(phi, q1, q2)
        assert abs(got[0][0] - value) <= REFERENCE_BOUND * scale, record
        assert abs(got[1][0] - slope) <= REFERENCE_BOUND * slope_scale, record


def fused_duals(name: str, q1: float, q2: float, s: float) -> tuple[float, float, float]:
    """(V, s V') through a kernel of one step, and the error the expansion admits to."""
    c = s / np.sqrt(q1 * q2)
    x = np.sqrt(2 * q1) * np.array([[1.0, 0.0]])
    y = np.sqrt(2 * q2) * np.array([[c, np.sqrt(max(1 - c * c, 0.0))]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HermiteAccuracyWarning)
        nngp, ntk = RNTK(activation_named(name)).both([x], [y])
    admitted = 0.0
    for each in caught:
        if issubclass(each.category, HermiteAccuracyWarning):
            admitted = max(admitted, each.message.error)
    return float(nngp[0, 0]), float(ntk[0, 0] - nngp[0, 0]), admitted


@pytest.mark.parametrize("name", ["relu", "erf", "identity", "leaky_relu", "sin", *battery.RECENT, *sorted(EXPANDED)])
def test_compiled_side(name):
    phi = activation_named(name)
    for record in records(name):
        q1, q2, s, value, slope = numbers(record)
        got, tangent, admitted = fused_duals(name, q1, q2, s)
        assert admitted == 0 or name in EXPANDED
        scale, slope_scale = self_scales(phi, q1, q2)
        tangent_scale = np.sqrt(q1 * q2) * max(slope_scale, abs(slope))
        # The estimate is made at c = 1. At negative c the order that stands in for the rest may have the wrong sign,
        # and the errors of both add: at most twice the estimate.
        bound = max(1e-9, 2 * admitted) if name in EXPANDED else 1e-11
        assert abs(got - value) <= bound * scale, record
        # The estimate for the slope is relative to max(1, V̂'(1)), that is to ψψ' or to √(qq') V'(1).
        assert abs(tangent - s * slope) <= bound * max(scale, tangent_scale), record


@pytest.mark.parametrize("phi", [*KNOWN, leaky_relu(-0.5)], ids=str)
def test_moments_are_the_duals_on_the_diagonal(phi):
    q = np.array([1e-3, 0.3, 1.0, 4.0])
    square, slope, growth = phi.moments(q)
    bound = 1e-10 if phi.name in EXPANDED else 1e-13
    value, slopes = (np.array([float(part[0]) for part in parts]) for parts in zip(*map(one_dual(phi), q), strict=True))
    np.testing.assert_allclose(square, value, rtol=bound)
    np.testing.assert_allclose(slope, q * slopes / value, rtol=bound)
    np.testing.assert_allclose(phi.square(q), square, rtol=1e-15)
    h = 1e-3
    log = [np.log(phi.square(q * np.exp(step * h))) for step in (2, 1, -1, -2)]
    np.testing.assert_allclose(growth, (-log[0] + 8 * log[1] - 8 * log[2] + log[3]) / (12 * h), rtol=1e-8, atol=1e-12)


def one_dual(phi):
    return lambda q: phi.dual(np.array([q]), np.array([q]), np.array([q]))


@pytest.mark.parametrize("phi", KNOWN, ids=str)
def test_moments_of_zero_variance_are_finite(phi):
    q = np.array([0.0, 1e-300])
    square, slope, growth = phi.moments(q)
    assert np.isfinite([square, slope, growth]).all()
    assert square[0] == pytest.approx(float(phi(np.zeros(1))[0]) ** 2, rel=1e-13)


@pytest.mark.parametrize("phi", KNOWN, ids=str)
def test_derivative_is_the_derivative(phi):
    z = np.array([-30.0, -2.0, -0.7, 0.4, 1.5, 9.0])
    h = 1e-5
    np.testing.assert_allclose(phi.derivative(z), (phi(z + h) - phi(z - h)) / (2 * h), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("phi", [phi for phi in KNOWN if not isinstance(phi, HermiteActivation)], ids=str)
def test_closed_forms_are_expectations_of_the_function(phi):
    """By quadrature along two axes; a kink that crosses the second of them costs digits."""
    z, weight = gaussian_rule()
    for q1, q2, c in ((0.3, 1.7, 0.6), (2.0, 0.9, -0.8), (1.1, 1.2, 0.99)):
        x, y = np.sqrt(q1) * z[:, None], np.sqrt(q2) * (c * z[:, None] + np.sqrt(1 - c * c) * z)
        found = phi.dual(q1, q2, c * np.sqrt(q1 * q2))
        bound = 1e-12 if phi.name in SMOOTH else 3e-3
        for got, function in zip(found, (phi, phi.derivative), strict=True):
            expected = weight @ (function(x) * function(y)) @ weight
            scale = np.sqrt((weight @ np.square(function(x[:, 0]))) * (weight @ np.square(function(np.sqrt(q2) * z))))
            assert abs(float(got) - expected) <= bound * scale


def test_waves_and_powers():
    z = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(cos(z), np.cos(z), atol=1e-15)
    np.testing.assert_array_equal(sinusoid(2.0, 0.5)(z), np.sin(2 * z + 0.5))
    np.testing.assert_allclose(snake(0.7)(z), z + np.sin(0.7 * z) ** 2 / 0.7, atol=1e-15)
    np.testing.assert_allclose(tilted_sin(0.7)(z), 0.7 * z + np.sin(z), atol=1e-15)
    np.testing.assert_array_equal(rectified_power(3)(z), np.maximum(z, 0) ** 3)
    assert sinusoid() == sin and sinusoid(1.0, np.pi / 2) == cos
    assert as_activation("snake") == as_activation("snake()") == snake(1.0)
    # A kernel that depends on distances alone: the Gaussian one.
    value, _ = sinusoid(1.0, np.pi / 4).dual(0.7, 1.9, 0.4)
    assert float(value) == pytest.approx(np.exp(0.4 - (0.7 + 1.9) / 2) / 2, rel=1e-15)


@pytest.mark.parametrize(
    "wrong",
    [
        *(f"{name}({a})" for name in ("sinusoid", "snake", "tilted_sin") for a in ("0", "1e200", "1e-200")),
        *("snake(-1)", "leaky_relu(1e200)", "sinusoid(1, 1e300)"),
        *(f"rectified_power({p})" for p in ("1", "2.5", "1e300")),
    ],
)
def test_parameters_out_of_range_are_named(wrong):
    with pytest.raises(ValueError, match=r"(sinusoid|snake|tilted_sin|leaky_relu) needs|whole number from 2"):
        as_activation(wrong)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("wrong", ["a", None, [1.0], float("inf"), float("nan"), 10**400])
def test_parameters_that_are_no_numbers_are_named(family, wrong):
    with pytest.raises(ValueError, match=r"needs a .* it got|whole number from 2"):
        family(wrong)


def test_rectified_powers_overflow_by_name():
    """Variances are squared at every step: soon no float holds them."""
    x = np.full(30, 2.0)
    with pytest.raises(KernelOverflowError, match=r"sequence 0 overflows at step \d+.*rectified_power\(2\)"):
        RNTK("rectified_power(2)")([x])
    assert np.isfinite(RNTK("rectified_power(2)")([x[:5]])).all()


@pytest.mark.parametrize("name", ["rectified_power(2)", "snake(0.5)", "tanh"])
def test_what_the_array_engine_lacks_is_refused_by_name(name):
    with pytest.raises(ValueError, match=rf"{re.escape(name)} has no form.*erf.*gaussian.*sin.*engine=\"fused\""):
        RNTK(name, engine="array")([[1.0, 2.0]])


def test_tiny_inputs_of_a_function_that_is_not_linear_at_zero():
    """Nothing can be taken out of a square: (1e-160)⁴ is zero, not a lifted number put down again."""
    for phi in ("rectified_power(2)", lambda z: z * z):
        K = RNTK(phi)([[1e-160, 2e-160], [1.0, 2.0]])
        assert K[0, 0] == 0 and K[1, 1] > 1


def test_family_of_homogeneous_activations():
    z = np.linspace(-2, 2, 9)
    np.testing.assert_array_equal(relu(z), np.maximum(z, 0))
    np.testing.assert_array_equal(identity(z), z)
    np.testing.assert_array_equal(absolute(z), np.abs(z))
    np.testing.assert_array_equal(leaky_relu(0.2)(z), np.where(z > 0, z, 0.2 * z))
    q = np.array([0.5, 2.0])
    np.testing.assert_allclose(absolute.square(q), q, rtol=1e-15)  # |z|² = z²
    # E|z||z'| at c = 0 is (2/π)√(qq')
    value, slope = absolute.dual(np.array([1.0]), np.array([4.0]), np.array([0.0]))
    assert value[0] == pytest.approx(4 / np.pi, rel=1e-15)
    assert slope[0] == pytest.approx(0.0, abs=1e-16)


# Names and objects ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
def test_names_lead_to_activations(name):
    phi = as_activation(name)
    assert phi is NAMED[name]
    assert repr(phi) == name
    assert as_activation(phi) is phi


def test_leaky_relu_by_name():
    assert as_activation("leaky_relu(0.2)") == leaky_relu(0.2)
    assert as_activation("leaky_relu( -0.5 )") == leaky_relu(-0.5)
    assert as_activation("leaky_relu") == leaky_relu() == leaky_relu(0.01)
    assert as_activation("leaky_relu(1e-3)") == leaky_relu(1e-3)
    assert repr(leaky_relu(0.2)) == "leaky_relu(0.2)"
    assert leaky_relu(0.0) == relu
    assert leaky_relu(1.0) == identity
    assert leaky_relu(-1.0) == absolute


def test_equality_and_hash():
    different = [relu, erf, identity, absolute, sin, tanh, gelu, sigmoid, leaky_relu(0.2)]
    assert len(set(different)) == len(different)
    for i, a in enumerate(different):
        for j, b in enumerate(different):
            assert (a == b) == (i == j)
    assert hash(Homogeneous(0.2)) == hash(leaky_relu(0.2))
    assert type(erf)() == erf
    assert hash(type(erf)()) == hash(erf)
    assert sinusoid() == sin
    assert hash(sinusoid()) == hash(sin)
    assert HermiteActivation("t", np.tanh) == HermiteActivation("t", np.tanh)
    assert HermiteActivation("t", np.tanh) != HermiteActivation("t", np.arctan)
    assert relu != "relu"


def test_activations_that_differ_in_a_derivative_are_two():
    """Everything kept by activation would confuse them otherwise."""
    by_differences, steeper = HermiteActivation("t", np.tanh), HermiteActivation("t", np.tanh, np.cos)
    assert by_differences != steeper
    assert len({by_differences, steeper}) == 2
    assert steeper == HermiteActivation("t", np.tanh, np.cos)
    assert HermiteActivation("tanh", np.tanh, symmetry="odd") != tanh


@pytest.mark.parametrize("phi", [*KNOWN, leaky_relu(1 / 3), sinusoid(-1 / 3, 1e-20), snake(1 / 3)], ids=str)
def test_names_lead_back(phi):
    assert name_of(phi) == phi.name
    assert as_activation(phi.name) == phi


def test_what_has_no_name_says_so():
    assert name_of(HermiteActivation("tanh", np.arctan)) is None
    assert name_of(HermiteActivation("mine", np.arctan)) is None


def test_activations_from_outside_register_themselves(monkeypatch):
    monkeypatch.setattr("rntk.activations.base.NAMED", dict(NAMED))
    monkeypatch.setattr("rntk.activations.base.FAMILIES", dict(FAMILIES))
    softplus = register(HermiteActivation("softplus", lambda z: np.logaddexp(0, z)))
    assert as_activation("softplus") is softplus
    assert name_of(softplus) == "softplus"

    @register_family
    def stretched(width, height):
        return HermiteActivation(f"stretched({width!r}, {height!r})", lambda z: height * np.tanh(z / width))

    assert as_activation("stretched(2, 1e-1)").name == "stretched(2.0, 0.1)"
    for wrong in ("stretched(2)", "stretched"):
        with pytest.raises(ValueError, match=r"unknown activation.*stretched\(width, height\)"):
            as_activation(wrong)
    with pytest.raises(ValueError, match="another activation named tanh"):
        register(HermiteActivation("tanh", np.arctan))


@pytest.mark.parametrize("given", ["rleu", "", "leaky_relu(a)", "RELU"])
def test_unknown_names_list_the_known_ones(given):
    with pytest.raises(ValueError, match=r"unknown activation.*tanh.*relu"):
        as_activation(given)


@pytest.mark.parametrize("given", ["leaky_relu(1-2)", "leaky_relu(..)", "leaky_relu(e)"])
def test_a_slope_that_is_no_number_is_an_error_that_names_the_activation(given):
    with pytest.raises(ValueError, match="leaky_relu"):
        as_activation(given)


@pytest.mark.parametrize("given", [3, None, 0.5, ["relu"]])
def test_what_is_no_activation(given):
    with pytest.raises(ValueError, match="a name, an Activation or a function"):
        as_activation(given)


@pytest.mark.parametrize("slope", [float("nan"), float("inf")])
def test_slope_must_be_finite(slope):
    with pytest.raises(ValueError, match="slope"):
        leaky_relu(slope)


@pytest.mark.parametrize("functions", [(lambda z: z * 1j,), (np.sin, lambda z: np.cos(z) + 0j)])
def test_an_activation_is_real(functions):
    with pytest.raises(ActivationError, match="gives complex numbers"):
        HermiteActivation("wave", *functions).moments(np.ones(1))


def test_callable_of_wrong_shape():
    with pytest.raises(ValueError, match=r"(?s)shape.*elementwise"):
        RNTK(lambda z: np.sum(z))([np.ones(3)])
    with pytest.raises(ValueError, match=r"(?s)shape.*elementwise"):
        RNTK(np.atleast_3d)([np.ones(3)])


# Functions users bring --------------------------------------------------------------------------------------


def test_a_users_tanh_is_the_librarys():
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((length, 1)) for length in (1, 4, 3)]
    mine, named = (RNTK(phi, sigma_w=0.9, sigma_u=0.5, sigma_b=0.2) for phi in (np.tanh, "tanh"))
    # φ' by differences enters the self kernels only where the library can't avoid it.
    np.testing.assert_allclose(mine(X), named(X), rtol=1e-9)
    np.testing.assert_allclose(mine.nngp(X), named.nngp(X), rtol=1e-12)
    np.testing.assert_allclose(mine.diag(X), named.diag(X), rtol=1e-9)


def test_softplus_end_to_end():
    rng = np.random.default_rng(2)
    X = [0.5 * rng.standard_normal((length, 2)) for length in (2, 5, 3, 5)]
    kernel = RNTK(lambda z: np.logaddexp(0.0, z), sigma_w=0.7, sigma_b=0.1)
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > 0
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-10)
    moved = []
    for step in (1e-4, -1e-4):
        shifted = RNTK(kernel.activation, sigma_w=0.7 * np.exp(step), sigma_b=0.1)
        moved.append(shifted(X))
    np.testing.assert_allclose(gradient[:, :, index_of(kernel, "sigma_w")], (moved[0] - moved[1]) / 2e-4, rtol=1e-6)


def index_of(kernel, name: str) -> int:
    """Where the derivative by log `name` stands."""
    free = [hyperparameter.name for hyperparameter in kernel.hyperparameters if not hyperparameter.fixed]
    return free.index(name)


def test_a_kink_by_expansion_warns_and_stays_close():
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((3, 2)) for _ in range(3)]
    with pytest.warns(HermiteAccuracyWarning, match="Kinks"):
        expanded = RNTK(lambda z: np.maximum(z, 0.0)).nngp(X)
    np.testing.assert_allclose(expanded, RNTK().nngp(X), rtol=1e-3)


SYMMETRIC = {"tanh": (np.tanh, "odd"), "arctan": (np.arctan, "odd"), "cosine": (np.cos, "even")}


def test_a_warning_is_shown_once_where_the_gram_matrix_was_asked_for():
    X = np.random.default_rng(0).standard_normal((30, 9))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", HermiteAccuracyWarning)
        gram.compute(RNTK(lambda z: np.maximum(z, 0)), X, X[:9], block=5)
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_odd_and_even_activations_need_half_the_orders(name):
    """The same numbers, derivatives included, as with the orders that are zero."""
    function, symmetry = SYMMETRIC[name]
    short, long = HermiteActivation(name, function, symmetry=symmetry), HermiteActivation(name, function)
    long.symmetry = None  # it is found otherwise
    assert short != long and short == HermiteActivation(name, function, symmetry=symmetry)
    q = np.linspace(0.1, 0.6, 7)
    marks = [each.marks(q, each.moments(q), slopes=False, tolerance=1e-13) for each in (short, long)]
    counts = [len(each) - OWN_MARKS for each in marks]
    assert counts[0] == (counts[1] - 1) // 2 + 1
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((steps, 2)) for steps in (6, 9, 4, 7)]
    for options in ({"depth": 2, "sigma_b": 0.4}, {"readout": "mean", "sigma_h": 0.3}):
        half, whole = (RNTK(each, sigma_w=1.1, sigma_u=0.7, **options) for each in (short, long))
        for found, expected in (
            (half.nngp(X), whole.nngp(X)),
            (half(X, X[:2]), whole(X, X[:2])),
            (half(X, eval_gradient=True)[1], whole(X, eval_gradient=True)[1]),
            *zip(half.nngp(X, eval_gradient=True), whole.nngp(X, eval_gradient=True), strict=True),
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-12 * np.abs(expected).max())
    slopes = [input_gradient(RNTK(each, sigma_u=0.7), X[0], X[1]) for each in (short, long)]
    np.testing.assert_allclose(*slopes, rtol=0, atol=1e-11 * np.abs(slopes[1]).max())


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_tiles_of_any_size_have_the_same_bits(name):
    X, kernel = np.random.default_rng(3).standard_normal((60, 15)) / 2, RNTK(name, sigma_u=0.5)
    whole = kernel(X)
    for block in (1, 37):
        np.testing.assert_array_equal(gram.compute(kernel, X, block=block), whole)


def test_symmetries_have_names():
    with pytest.raises(ValueError, match='symmetry must be "odd", "even" or None, not \'both\''):
        HermiteActivation("mine", np.tanh, symmetry="both")


def test_orders_of_two_batches_agree():
    """Whatever order each side would take alone."""
    rng = np.random.default_rng(6)
    for activation in (tanh, gelu, sigmoid):
        for sizes in ((0.01, 1.0), (1.0, 0.01), (0.3, 0.4), (0.05, 0.05)):
            X, Y = (size * rng.standard_normal((5, 4, 2)) for size in sizes)
            kernel = RNTK(activation, sigma_b=0.1, sigma_u=0.8)
            both = kernel(np.concatenate([X, Y]))
            np.testing.assert_allclose(kernel(X, Y), both[:5, 5:], rtol=0, atol=1e-12 * np.abs(both).max())
            np.testing.assert_allclose(np.diag(kernel(X, X.copy())), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(EXPANDED))
def test_a_sequence_is_as_like_itself_as_its_diagonal_says(name):
    X = np.random.default_rng(7).standard_normal((10, 50, 2))
    kernel = RNTK(name, sigma_w=1.0, sigma_u=0.5, sigma_b=0.1)
    np.testing.assert_allclose(np.diag(kernel(X)), kernel.diag(X), rtol=2e-14)
