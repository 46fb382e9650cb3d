"""Derivatives of a kernel by its inputs where there is no compiled form: differences of fourth order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..programs import ProgramKernel
from ..sequences import SequenceBatch

Array = NDArray[np.float64]
#: Step of a difference, relative to the root mean square of a sequence, and how values around are weighed.
STEP, AWAY, WEIGHTS = 1e-3, (-2, -1, 1, 2), (1, -8, 8, -1)


def slopes_by_differences(kernel: ProgramKernel, batch: SequenceBatch, left: Any, right: Any) -> list[Array]:
    """(T, m) ∂K(x, y)/∂x of pairs of a batch.

    Sampled kernels are moved on the same samples, units of real networks: derivatives of one smooth function, as far
    from the limit as its values are.
    """
    kernel = clone(kernel)
    if not kernel.exact:
        kernel.set_params(sampler="network", sample_dtype="float64")
    found = []
    for i, j in zip(left, right, strict=True):
        x = np.asarray(batch[i], dtype=np.float64)
        step = STEP * (np.sqrt(np.mean(x**2)) or 1.0)
        moved = [x + away * step * unit.reshape(x.shape) for unit in np.eye(x.size) for away in AWAY]
        values = kernel(moved, [batch[j]])[:, 0].reshape(x.size, len(AWAY))
        found.append((values @ np.array(WEIGHTS) / (12 * step)).reshape(x.shape))
    return found
