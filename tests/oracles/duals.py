"""High-precision Gaussian expectations of activations: V = E[φ(z1) φ(z2)] and V' = E[φ'(z1) φ'(z2)].

(z1, z2) ~ N(0, [[q1, s], [s, q2]]), as in THEORY section 2. Every ``*_dual(q1, q2, s)`` returns the pair
(V, V') at the precision of the surrounding ``mpmath.workdps``; `dual` picks one by name and sets the
precision itself.

Closed forms exist for identity, ReLU, leaky ReLU, erf, sin and GELU. tanh has none and goes through
`lattice_dual`; sigmoid is tanh in disguise. `lattice_dual` also serves the entire activations, which is how
the closed forms and the lattice sums check each other.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import mul

import mpmath
from mpmath import mpf

Pair = tuple[mpf, mpf]
Dual = Callable[[mpf, mpf, mpf], Pair]

WORKING_DIGITS = 120
LATTICE_DIGITS = 30
LEAKY_SLOPE = 0.01


def exact(value: object) -> mpf:
    """The number itself: a float64 converts without rounding, an mpf keeps every digit it has."""
    return value if isinstance(value, mpf) else mpf(float(value))


# Closed forms -----------------------------------------------------------------------------------------------


def identity_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    return s, mpf(1)


def relu_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    """Arc-cosine kernels of degree one and zero, in the textbook form.

    Where a variance is zero the correlation is undefined and is taken as 0. V is 0 all the same, and the
    V' so chosen only ever multiplies a tangent kernel that is 0: a zero variance means a zero past.
    """
    scale = mpmath.sqrt(q1 * q2)
    c = s / scale if scale else mpf(0)
    c = max(mpf(-1), min(mpf(1), c))  # |c| <= 1 by Cauchy-Schwarz; only the last digit can stick out
    obtuse = mpmath.pi - mpmath.acos(c)
    return scale * (mpmath.sqrt(1 - c * c) + c * obtuse) / (2 * mpmath.pi), obtuse / (2 * mpmath.pi)


def leaky_relu_dual(q1: mpf, q2: mpf, s: mpf, slope: float = LEAKY_SLOPE) -> Pair:
    """φ(z) = a z + (1 - a) relu(z), and E[z1 relu(z2)] = s/2, so V = a s + (1 - a)² V_relu."""
    a = exact(slope)
    value, derivative = relu_dual(q1, q2, s)
    return a * s + (1 - a) ** 2 * value, a + (1 - a) ** 2 * derivative


def erf_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    product = (1 + 2 * q1) * (1 + 2 * q2)
    return (
        2 / mpmath.pi * mpmath.asin(2 * s / mpmath.sqrt(product)),
        4 / (mpmath.pi * mpmath.sqrt(product - 4 * s * s)),
    )


def sin_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    """From E[cos(z1 ± z2)] = exp(-(q1 + q2)/2 ∓ s)."""
    damping = mpmath.exp(-(q1 + q2) / 2)
    return damping * mpmath.sinh(s), damping * mpmath.cosh(s)


def gelu_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    """φ(z) = z Φ(z) with Φ the normal distribution function, by Stein's lemma.

    With p = Φ' and D = (1 + q1)(1 + q2) - s² the pieces are
        E[Φ1 Φ2]       = 1/4 + arcsin(s / √((1 + q1)(1 + q2))) / 2π
        E[z2 p2 Φ1]    = s / (2π (1 + q2) √D)            (and with 1, 2 exchanged)
        E[z1 z2 p1 p2] = s / (2π D^(3/2))
        E[z2 p1 Φ2]    = (q2 - s²/(1 + q1)) / (2π √D)
    V' adds the first three kinds; V = E[z1 · z2Φ1Φ2] = q1 E[z2 p1 Φ2] + s (E[Φ1 Φ2] + E[z2 Φ1 p2]).
    """
    a1, a2 = 1 + q1, 1 + q2
    determinant = a1 * a2 - s * s
    density = 1 / (2 * mpmath.pi * mpmath.sqrt(determinant))
    both_positive = mpf(1) / 4 + mpmath.asin(s / mpmath.sqrt(a1 * a2)) / (2 * mpmath.pi)
    value = s * both_positive + density * (q1 * (q2 - s * s / a1) + s * s / a2)
    return value, both_positive + s * density * (1 / a1 + 1 / a2 + 1 / determinant)


# Lattice sums -----------------------------------------------------------------------------------------------


def lattice_dual(
    phi: Callable[[mpf], mpf],
    dphi: Callable[[mpf], mpf],
    pole: float,
    q1: mpf,
    q2: mpf,
    s: mpf,
) -> Pair:
    """(V, V') of an analytic activation by the trapezoidal rule, to about `LATTICE_DIGITS` digits.

    ``pole`` is the distance of the nearest pole of φ from the real axis (``inf`` for entire φ). On the
    whole plane the trapezoidal rule converges exponentially in 1/h, so the sum is done at a step h taken
    from the two things that limit it (the pole, and the width of the Gaussian near |c| = 1) and again at
    0.72 h. The two must agree.
    """
    with mpmath.workdps(LATTICE_DIGITS + 30):
        q1, q2, s = exact(q1), exact(q2), exact(s)
        c = s / mpmath.sqrt(q1 * q2)
        if c < 0:  # E[φ(z1) φ(z2)] = E[φ(z1) φ(-y)] with y = -z2, which is correlated positively with z1
            pairs = [(phi, lambda z: phi(-z)), (dphi, lambda z: dphi(-z))]
        else:
            pairs = [(phi, phi), (dphi, dphi)]
        c = abs(c)
        if c != 1 and 1 - c < mpf("1e-9"):
            raise ValueError(f"1 - |c| = {mpmath.nstr(1 - c, 3)}: use c = 1 exactly or stay 1e-9 away from it")
        exponent = mpmath.log(10) * (LATTICE_DIGITS + 4)
        largest = mpmath.sqrt(max(q1, q2))
        steps = [2 * mpmath.pi / (mpmath.sqrt(2 * exponent * (1 + 2 * max(q1, q2))))]
        if pole != mpmath.inf:
            steps.append(2 * mpmath.pi * pole / (largest * exponent))
        if c != 1:
            steps.append(2 * mpmath.pi * mpmath.sqrt((1 - c) / exponent))
        step = min(steps) * mpf("0.8")
        reach = mpmath.sqrt(2 * exponent)
        result = []
        for f1, f2 in pairs:
            first, second = (
                _lattice_sum(f1, f2, mpmath.sqrt(q1), mpmath.sqrt(q2), c, h, reach) for h in (step, step * 18 / 25)
            )
            scale = max(abs(second), mpmath.sqrt(q1 * q2) * mpf("1e-6"))
            if abs(first - second) > scale * mpf(10) ** -(LATTICE_DIGITS - 5):
                raise ArithmeticError(f"lattice sums disagree: {first} and {second} at q1={q1}, q2={q2}, s={s}")
            result.append(second)
        return result[0], result[1]


def _lattice_sum(f1, f2, sigma1: mpf, sigma2: mpf, c: mpf, h: mpf, reach: mpf) -> mpf:
    """h² Σ_ij p(ih, jh) f1(σ1 ih) f2(σ2 jh) for the normal density p of correlation 0 <= c <= 1.

    The density splits into e^{-x²/2(1+c)} e^{-y²/2(1+c)} e^{-c(x-y)²/2(1-c²)}: one factor per axis and one
    that depends on i - j alone. All are at most 1, so integers with a fixed binary point carry the sums
    exactly.
    """
    count = int(mpmath.ceil(reach / h))
    lattice = [h * i for i in range(-count, count + 1)]
    if c == 1:
        terms = (mpmath.exp(-x * x / 2) * f1(sigma1 * x) * f2(sigma2 * x) for x in lattice)
        return mpmath.fsum(terms) * h / mpmath.sqrt(2 * mpmath.pi)
    bits = mpmath.mp.prec
    weight = [mpmath.exp(-x * x / (2 * (1 + c))) for x in lattice]
    left = [int(mpmath.ldexp(w * f1(sigma1 * x), bits)) for w, x in zip(weight, lattice, strict=True)]
    right = [int(mpmath.ldexp(w * f2(sigma2 * x), bits)) for w, x in zip(weight, lattice, strict=True)]
    if c == 0:
        total = mpf(sum(left) * sum(right))
    else:
        total = mpf(sum(map(mul, left, right)))
        for distance in range(1, len(lattice)):
            band = mpmath.exp(-c * (h * distance) ** 2 / (2 * (1 - c * c)))
            if band < mpf(10) ** -(LATTICE_DIGITS + 6):
                break
            total += band * (sum(map(mul, left[distance:], right)) + sum(map(mul, left, right[distance:])))
    return mpmath.ldexp(total, -2 * bits) * h * h / (2 * mpmath.pi * mpmath.sqrt(1 - c * c))


def tanh_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    """By lattice sum; tanh has its nearest poles at ±iπ/2."""
    return lattice_dual(mpmath.tanh, lambda z: mpmath.sech(z) ** 2, mpmath.pi / 2, q1, q2, s)


def sigmoid_dual(q1: mpf, q2: mpf, s: mpf) -> Pair:
    """σ(z) = (1 + tanh(z/2))/2 and E[tanh] = 0, so V = (1 + V_tanh)/4 and V' = V'_tanh/16 at q/4, s/4."""
    value, derivative = tanh_dual(exact(q1) / 4, exact(q2) / 4, exact(s) / 4)
    return (1 + value) / 4, derivative / 16


DUALS: dict[str, Dual] = {
    "identity": identity_dual,
    "relu": relu_dual,
    "leaky_relu": leaky_relu_dual,
    "erf": erf_dual,
    "sin": sin_dual,
    "gelu": gelu_dual,
    "tanh": tanh_dual,
    "sigmoid": sigmoid_dual,
}


def dual(phi: str, q1: object, q2: object, s: object) -> Pair:
    """(V, V') of the activation named ``phi`` at exactly these covariances.

    Closed forms come with at least 50 digits, tanh and sigmoid with about 25. ``leaky_relu`` has slope
    `LEAKY_SLOPE` and ``gelu`` is the exact one, z Φ(z).

    >>> value, derivative = dual("relu", 1, 1, 1)
    >>> float(value), float(derivative)
    (0.5, 0.5)
    """
    with mpmath.workdps(WORKING_DIGITS):
        value, derivative = DUALS[phi](exact(q1), exact(q2), exact(s))
        return +value, +derivative
