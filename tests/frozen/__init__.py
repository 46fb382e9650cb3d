"""Numbers of this library as they were before it was rebuilt: 200 kernels drawn from all there is, and some learners.

`python -m tests.frozen` computes them anew and stores them; `tests/engine/test_frozen.py` compares. They say that
nothing moved, not that it is right: that is for the oracles. Store them again only with
a reason, in a commit that gives it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from rntk import RNTK, HermiteAccuracyWarning, input_gradient

SOURCE = Path(__file__).with_name("values.npz")
COUNT = 200
ACTIVATIONS = ("relu", "erf", "leaky_relu(0.2)", "sin", "identity", "gelu", "abs", "tanh", "relu", "sigmoid")


def settings() -> list[dict[str, Any]]:
    """Parameters of all kernels, by number."""
    return [_draw(number) for number in range(COUNT)]


def _draw(number: int) -> dict[str, Any]:
    rng = np.random.default_rng([17, number])
    activation = ACTIVATIONS[number % len(ACTIVATIONS)]
    depth = int(rng.choice([1, 1, 2, 3]))
    by_layer = depth > 1 and rng.random() < 0.3

    def sigma(low: float, high: float, zero: float) -> Any:
        if rng.random() < zero:
            return 0.0
        values = rng.uniform(low, high, size=depth if by_layer else 1).round(3).tolist()
        return values if by_layer else values[0]

    engine = "array" if number % 9 == 4 else "reference" if number % 17 == 3 else "fused"
    if engine == "array" and activation in ("tanh", "sigmoid"):
        engine = "fused"
    return {
        "activation": activation,
        "sigma_w": sigma(0.5, 1.8, 0.0),
        "sigma_u": sigma(0.4, 1.3, 0.0),
        "sigma_b": sigma(0.1, 0.6, 0.5),
        "sigma_h": sigma(0.1, 0.9, 0.6),
        "sigma_v": round(float(rng.uniform(0.5, 1.5)), 3),
        "depth": depth,
        "readout": str(rng.choice(["last", "mean", "sequence"])),
        "bidirectional": bool(rng.random() < 0.3),
        "tied": bool(rng.random() < 0.7),
        "parameterization": str(rng.choice(["ntk", "standard"])),
        "normalize": bool(rng.random() < 0.3),
        "dtype": str(rng.choice(["float64", "float64", "float32"])),
        "engine": engine,
    }


def sequences(number: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two batches: unequal lengths, a duplicate, a near-duplicate and a negative among them."""
    rng = np.random.default_rng([18, number])
    channels = int(rng.integers(1, 4))
    setting = settings()[number]
    longest = 5 if setting["engine"] == "reference" or setting["readout"] == "sequence" else 14
    X = [rng.standard_normal((int(length), channels)) for length in rng.integers(1, longest, size=4)]
    X += [X[0].copy(), X[1] + 1e-9 * rng.standard_normal(X[1].shape)]
    Y = [-X[2], *(rng.standard_normal((int(length), channels)) for length in rng.integers(1, longest, size=2))]
    return X, Y


def compute(number: int) -> dict[str, np.ndarray]:
    """Everything a kernel gives, by name."""
    setting, (X, Y) = settings()[number], sequences(number)
    kernel = RNTK(**setting, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HermiteAccuracyWarning)
        found = {"ntk": kernel(X), "cross": kernel(X, Y), "nngp": kernel.nngp(X), "diag": kernel.diag(X)}
        fast = setting["activation"] not in ("tanh", "sigmoid") or setting["engine"] != "reference"
        if setting["engine"] != "array" and fast:
            found["gradient"] = kernel(X[:3], eval_gradient=True)[1]
        if setting["engine"] == "fused" and setting["readout"] != "sequence":
            found["input"] = input_gradient(kernel, X[3], Y[1])
    return {name: np.asarray(value) for name, value in found.items()}
