"""Compute the frozen values anew."""

import numpy as np

from . import COUNT, SOURCE, compute

np.savez_compressed(
    SOURCE, **{f"{number}/{name}": value for number in range(COUNT) for name, value in compute(number).items()}
)
