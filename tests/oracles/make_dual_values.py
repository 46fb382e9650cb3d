"""Write ``dual_values.json``: V and V' of five activations to 20 significant digits (about two minutes).

Run from the repository root: ``python -m tests.oracles.make_dual_values``.

Each value belongs to the float64 numbers q1, q2, s stored with it as decimal strings that round-trip; s is
the float64 nearest to c √(q1 q2), and the pairs (q1, q2) are chosen so that this is exact at c = 1. Values
that have a closed form and a lattice sum are computed both ways and must agree before anything is written.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath

from .duals import LEAKY_SLOPE, dual, lattice_dual

TARGET = Path(__file__).with_name("dual_values.json")
ACTIVATIONS = ("tanh", "sigmoid", "gelu", "sin", "leaky_relu")
VARIANCES = ((0.001, 0.001), (1.0, 1.0), (0.25, 4.0), (100.0, 0.25), (100.0, 100.0))
CORRELATIONS = (-0.999, -0.9, -0.3, 0.0, 0.5, 0.9, 0.99, 0.9999, 1.0)
ENTIRE = {
    "sin": (mpmath.sin, mpmath.cos),
    "gelu": (lambda z: z * mpmath.ncdf(z), lambda z: mpmath.ncdf(z) + z * mpmath.npdf(z)),
}


def values() -> list[dict[str, str]]:
    """One record per activation, pair of variances and correlation."""
    records = []
    for name in ACTIVATIONS:
        for q1, q2 in VARIANCES:
            for c in CORRELATIONS:
                s = c * math.sqrt(q1 * q2)
                pair = dual(name, q1, q2, s)
                if name in ENTIRE:
                    _confirm(name, pair, lattice_dual(*ENTIRE[name], mpmath.inf, q1, q2, s))
                arguments = {"activation": name, "q1": repr(q1), "q2": repr(q2), "c": repr(c), "s": repr(s)}
                digits = (mpmath.nstr(number, 20, strip_zeros=False) for number in pair)
                records.append(arguments | dict(zip(("value", "derivative"), digits, strict=True)))
    return records


def _confirm(name: str, closed: tuple, lattice: tuple) -> None:
    for a, b in zip(closed, lattice, strict=True):
        if abs(a - b) > mpmath.mpf("1e-24") * max(1, abs(a)):
            raise ArithmeticError(f"{name}: closed form {a}, lattice sum {b}")


def main() -> None:
    content = {
        "made_by": "tests/oracles/make_dual_values.py",
        "mpmath": mpmath.__version__,
        "value": "E[phi(z1) phi(z2)], (z1, z2) ~ N(0, [[q1, s], [s, q2]])",
        "derivative": "E[phi'(z1) phi'(z2)]",
        "gelu": "z * Phi(z), the exact form",
        "leaky_relu_slope": repr(LEAKY_SLOPE),
        "values": values(),
    }
    TARGET.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
