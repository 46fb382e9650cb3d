"""Numbers are where they were before the library was rebuilt (`frozen`)."""

from __future__ import annotations

import numpy as np
import pytest

import frozen

#: Processors of different vector width round differently; on the machine that stored them all bits agree.
TOLERANCE = {"float64": 1e-13, "float32": 1e-6}


@pytest.fixture(scope="module")
def stored():
    with np.load(frozen.SOURCE) as content:
        return dict(content)


@pytest.mark.parametrize("number", range(frozen.COUNT))
def test_numbers_are_as_before(number, stored):
    found = frozen.compute(number)
    assert {f"{number}/{name}" for name in found} == {name for name in stored if name.startswith(f"{number}/")}
    for name, value in found.items():
        expected = stored[f"{number}/{name}"]
        assert value.shape == expected.shape, name
        assert value.dtype == expected.dtype, name
        # Derivatives that are zero are rounding of what they are derivatives of.
        scale = max(float(np.abs(part).max()) for part in (expected, stored[f"{number}/ntk"]))
        error = float(np.abs(value - expected).max()) / scale
        assert error <= TOLERANCE[frozen.settings()[number]["dtype"]], name
