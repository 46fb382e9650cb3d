"""How many digits the fused engine delivers, against 120-digit arithmetic.

The hard cases of theory.md, section 7: sequences that are equal, almost equal, or opposite, a thousand steps long.
`pytest -rP` shows the
measured errors. In float32 the oracle gets the rounded inputs, so that only the engine's own error counts.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from helpers.long_pairs import CASES, exact, pairs
from oracles.duals import WORKING_DIGITS
from rntk import RNTK
from rntk.activations import relu
from rntk.activations.signatures import FARTHEST32

BOUNDS = {"float64": 1e-12, "float32": 2e-4}


def kernels(activation: str, x, y, sigmas, dtype: str) -> tuple[float, float]:
    sigma_w, sigma_u, sigma_b = sigmas
    kernel = RNTK(activation, sigma_w=sigma_w, sigma_u=sigma_u, sigma_b=sigma_b, dtype=dtype)
    nngp, ntk = kernel.both([x], [y])
    return float(ntk[0, 0]), float(nngp[0, 0])


def errors(activation: str, x, y, sigmas, dtype: str) -> list[float]:
    got, expected = kernels(activation, x, y, sigmas, dtype), exact(activation, x, y, sigmas)
    return [abs(a - b) / abs(b) for a, b in zip(got, expected, strict=True)]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", pairs("float64"))
@pytest.mark.parametrize("activation, sigmas", CASES, ids=[f"{a} {s[0]:.3g} {s[1]:g} {s[2]:g}" for a, s in CASES])
def test_a_thousand_steps(activation, sigmas, name, dtype):
    worst = errors(activation, *pairs(dtype)[name], sigmas, dtype)
    print(f"relative error of NTK and NNGP: {worst[0]:.1e} {worst[1]:.1e}")
    assert max(worst) <= BOUNDS[dtype]


@pytest.mark.parametrize("activation, sigmas", CASES, ids=[f"{a} {s[0]:.3g} {s[1]:g} {s[2]:g}" for a, s in CASES])
def test_the_diagonal_of_a_thousand_steps(activation, sigmas):
    x = pairs("float64")["equal"][0]
    ntk, nngp = exact(activation, x, x, sigmas)
    sigma_w, sigma_u, sigma_b = sigmas
    kernel = RNTK(activation, sigma_w=sigma_w, sigma_u=sigma_u, sigma_b=sigma_b)
    assert kernel([x])[0, 0] == pytest.approx(ntk, rel=1e-12)
    assert kernel.diag([x])[0] == pytest.approx(ntk, rel=1e-12)
    assert kernel.nngp([x])[0, 0] == pytest.approx(nngp, rel=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("activation, sigmas", CASES, ids=[f"{a} {s[0]:.3g} {s[1]:g} {s[2]:g}" for a, s in CASES])
def test_a_few_steps(activation, sigmas, channels, steps):
    """Relative to √(K(x,x) K(y,y)). Opposite ReLU inputs are known to √ε only: c + 1 is a difference (section 7)."""
    rng = np.random.default_rng(steps)
    x, other = rng.standard_normal((2, steps, channels))
    for name, y in {"random": other, "near": x + 1e-6 * other, "equal": x, "opposite": -x}.items():
        scales = [
            math.sqrt(a * b)
            for a, b in zip(exact(activation, x, x, sigmas), exact(activation, y, y, sigmas), strict=True)
        ]
        got, expected = kernels(activation, x, y, sigmas, "float64"), exact(activation, x, y, sigmas)
        worst = max(abs(a - b) / scale for a, b, scale in zip(got, expected, scales, strict=True))
        print(f"{name}: {worst:.1e}")
        assert worst <= (1e-7 if name == "opposite" else 1e-13), name


@pytest.mark.parametrize("dtype, bound", [("float64", 6e-16), ("float32", 2.5e-7)])
def test_arc_polynomials(dtype, bound):
    """w and V̂' of the compiled ReLU step over all of [0, 2], against (24) in high precision.

    Both are small somewhere (w at u = 0, V̂' at u = 2): the error is relative for w up to u = 1, and measured
    against one elsewhere.
    """
    rng = np.random.default_rng(2)
    u = np.concatenate([[0.0, 1.0, 2.0], 10.0 ** rng.uniform(-20, 0, 200), rng.uniform(0, 2, 200)]).astype(dtype)
    u = u[u.argsort()]
    # Beyond one, distances are handed over as minus what is left to two.
    distance, one = np.where(u <= 1, u, np.minimum(u - 2, FARTHEST32)).astype(dtype), np.ones_like(u)
    w, q, nothing = np.empty_like(u), np.empty_like(u), np.empty((0, u.size), dtype)
    relu.forward(np.dtype(dtype))(
        relu.parameters.astype(dtype), nothing[:, 0], nothing, one, distance, one, w, q, 0, u.size
    )
    worst = 0.0
    with mpmath.workdps(WORKING_DIGITS):
        for at, got_w, got_slope in zip(u, w, q, strict=True):
            c = 1 - mpf(float(at))
            slope = 1 - mpmath.acos(c) / mpmath.pi
            exact_w = 1 - (mpmath.sqrt(1 - c * c) / mpmath.pi + c * slope)
            scale = exact_w if 0 < at <= 1 else 1
            worst = max(worst, float(abs(got_w - exact_w) / scale), float(abs(got_slope - slope)))
    print(f"largest error: {worst:.1e}")
    assert worst <= bound
