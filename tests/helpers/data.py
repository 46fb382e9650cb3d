"""Toy data."""

from __future__ import annotations

import numpy as np


def waves(seed, n=24, channels=1, classes=2, lengths=(8, 15)):
    """Noisy sine waves of unequal length; the class is their frequency."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for k in range(n):
        steps = np.arange(rng.integers(*lengths))
        wave = np.sin((0.4 + 0.5 * (k % classes)) * steps[:, None] + rng.uniform(0, 6, channels))
        X.append(wave + 0.05 * rng.standard_normal(wave.shape))
        y.append(k % classes)
    return X, np.array(y)
