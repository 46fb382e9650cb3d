"""Pairs of a thousand steps that are hard to tell apart, and their kernels in high precision."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from oracles import high_precision

STEPS = 1000


#: (sigma_w, sigma_u, sigma_b) by activation.
SIGMAS = {
    "relu": [(math.sqrt(2), 1.0, 0.0), (math.sqrt(2), 1.0, 0.1)],
    "erf": [(1.0, 0.01, 0.05), (1.3, 1.0, 0.1)],
}


CASES = [(activation, sigmas) for activation, choices in SIGMAS.items() for sigmas in choices]


@cache
def pairs(dtype: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    x, other, noise = rng.standard_normal((3, STEPS))
    chosen = {f"{distance:g} apart": (x, x + distance * noise) for distance in (1e-12, 1e-9, 1e-6, 1e-3, 1e-1)}
    chosen |= {"equal": (x, x), "opposite": (x, -x), "random": (x, other), "1000 and 700": (x, other[:700])}
    return {name: tuple(z.astype(dtype) for z in pair) for name, pair in chosen.items()}


def exact(activation: str, x, y, sigmas) -> tuple[float, float]:
    oracle = {"relu": high_precision.relu_rntk, "erf": high_precision.erf_rntk}[activation]
    ntk, nngp = oracle(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64), *sigmas)
    return float(ntk), float(nngp)
