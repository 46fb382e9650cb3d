"""Write ``neural_tangents_values.json``: NTK and NNGP matrices of MLPs from the neural-tangents library.

neural-tangents 0.6.5 imports names that newer JAX has removed (``jax.core.Jaxpr``), so it lives in an
environment of its own, and what is tested against is the stored file. It was made on Python 3.11 with

    python -m venv /tmp/nt
    /tmp/nt/bin/pip install neural-tangents==0.6.5 jax==0.4.20 jaxlib==0.4.20 "numpy<2" "scipy<1.13"
    /tmp/nt/bin/python tests/oracles/make_neural_tangents_values.py

The network is ``depth`` times [Dense(W_std, b_std), φ] and a last Dense(W_std=sigma_v) without a bias, all
in NTK parameterisation: the recurrent network of THEORY section 1 at length one with σ_u = W_std and
σ_b = b_std. All in float64; each matrix is 4 x 4 for the 4 rows of its inputs.

Accuracy, against 120-digit values: 1e-15 of √(K_ii K_jj), except for the ReLU NTK off the diagonal at m = 1
without a bias. All inputs are parallel there, the angle of two pre-activations is 0 or π, rounding moves it
by √ε, and entries are off by up to 1e-8.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"  # read when jax is first imported

import neural_tangents
import numpy as np
from neural_tangents import stax

TARGET = Path(__file__).with_name("neural_tangents_values.json")
ACTIVATIONS = {"relu": stax.Relu, "erf": stax.Erf}
DEPTHS = (1, 2, 3, 5)
DEVIATIONS = ((float(np.sqrt(2)), 0.0, 1.0), (1.0, 0.1, 1.0), (1.5, 0.5, 0.7))  # W_std, b_std, sigma_v
DIMENSIONS = (1, 5)


def kernels(activation: str, depth: int, w_std: float, b_std: float, sigma_v: float, inputs: np.ndarray) -> dict:
    """NTK and NNGP of one MLP on all pairs of rows."""
    layers = []
    for _ in range(depth):
        layers += [stax.Dense(1, W_std=w_std, b_std=b_std or None), ACTIVATIONS[activation]()]
    _, _, kernel = stax.serial(*layers, stax.Dense(1, W_std=sigma_v, b_std=None))
    result = kernel(inputs, inputs, ("ntk", "nngp"))
    matrices = {"ntk": np.asarray(result.ntk), "nngp": np.asarray(result.nngp)}
    if any(matrix.dtype != np.float64 for matrix in matrices.values()):
        raise TypeError("neural-tangents did not compute in float64")
    return {name: matrix.tolist() for name, matrix in matrices.items()}


def main() -> None:
    rng = np.random.default_rng(20240501)
    inputs = {str(m): rng.standard_normal((4, m)) for m in DIMENSIONS}
    cases = []
    for m, rows in inputs.items():
        for activation in ACTIVATIONS:
            for depth in DEPTHS:
                for w_std, b_std, sigma_v in DEVIATIONS:
                    settings = {"activation": activation, "depth": depth, "inputs": m}
                    settings |= {"w_std": w_std, "b_std": b_std, "sigma_v": sigma_v}
                    cases.append(settings | kernels(activation, depth, w_std, b_std, sigma_v, rows))
    packages = ("neural-tangents", "jax", "jaxlib", "numpy")
    content = {
        "made_by": "tests/oracles/make_neural_tangents_values.py",
        "versions": {"python": platform.python_version()}
        | {package: importlib.metadata.version(package) for package in packages},
        "network": "depth x [Dense(w_std, b_std), activation], Dense(1, sigma_v) without bias",
        "inputs": {m: rows.tolist() for m, rows in inputs.items()},
        "cases": cases,
    }
    if neural_tangents.__version__ != content["versions"]["neural-tangents"]:
        raise ImportError("imported neural-tangents is not the installed one")
    TARGET.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
