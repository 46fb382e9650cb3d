"""A mean over the steps on one side, the last step on the other."""

import numpy as np
import pytest

from rntk import RNTK


@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize(
    "options", [{}, {"activation": "erf", "depth": 2}, {"tied": False}], ids=["relu", "erf", "untied"]
)
def test_it_is_the_mean_over_prefixes(engine, kind, options):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((length, 2)) for length in (7, 3, 12)]
    Z = [rng.standard_normal((length, 2)) for length in (4, 1, 9, 4)]
    kernel = RNTK(readout="mean", sigma_b=0.3, kind=kind, engine=engine, **options)
    last = RNTK(readout="last", sigma_b=0.3, kind=kind, **options)
    by_hand = [np.mean([last([x[: t + 1]], Z)[0] for t in range(len(x))], axis=0) for x in X]
    np.testing.assert_allclose(kernel.against_last(X, Z), by_hand, rtol=1e-12)


def test_normalized_by_what_each_side_reads():
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((3, 8)), rng.standard_normal((2, 5))
    mean, last = RNTK(readout="mean"), RNTK(readout="last")
    expected = mean.against_last(X, Z) / np.sqrt(np.outer(mean.diag(X), last.diag(Z)))
    np.testing.assert_allclose(RNTK(readout="mean", normalize=True).against_last(X, Z), expected, rtol=1e-12)


def test_it_needs_a_mean():
    with pytest.raises(ValueError, match='readout="mean"'):
        RNTK().against_last(np.ones((2, 3)), np.ones((2, 3)))
