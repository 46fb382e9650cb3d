"""`rntk.NTK` against stored Gram matrices of the neural-tangents library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import oracles
from rntk import NTK

CONTENT = json.loads((Path(oracles.__file__).parent / "neural_tangents_values.json").read_text())


def label(case: dict) -> str:
    return f"{case['activation']} depth {case['depth']} m {case['inputs']} w {case['w_std']:.3g} b {case['b_std']:g}"


def test_all_cases_are_there():
    assert len(CONTENT["cases"]) == 48


@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize("case", CONTENT["cases"], ids=label)
def test_gram_matrices_agree(case, engine):
    """Relative to √(K_ii K_jj)."""
    X = np.array(CONTENT["inputs"][case["inputs"]])
    kernel = NTK(
        case["activation"],
        sigma_w=case["w_std"],
        sigma_b=case["b_std"],
        sigma_v=case["sigma_v"],
        depth=case["depth"],
        engine=engine,
    )
    # The reference takes arccos of a correlation: X against itself as another batch would cost it half the digits.
    others = [kernel.both(X)] + ([kernel.both(X, X)] if engine == "fused" else [])
    for kind in ("nngp", "ntk"):
        expected = np.array(case[kind])
        # All inputs are parallel at m = 1 without a bias: neural-tangents itself loses half its digits.
        parallel = case["inputs"] == "1" and case["b_std"] == 0 and case["activation"] == "relu"
        tolerance = 1e-7 if parallel and kind == "ntk" else 1e-12
        root = np.sqrt(np.diag(expected))
        for got in (getattr(pair, kind) for pair in others):
            assert (np.abs(got - expected) / np.outer(root, root)).max() <= tolerance
