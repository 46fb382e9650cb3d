"""∂Θ(x, y)/∂x_t for every step t of one pair, by one reverse pass (theory.md, section 8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import choose_engine
from ..engine.slopes import join
from ..errors import KernelOverflowError
from ..kernels import NetworkKernel
from ..runtime import Execution
from ..sequences import check_channels_agree
from .sensitivity import require_number_per_pair

Array = NDArray[np.float64]


def input_gradient(kernel: NetworkKernel, x: Any, y: Any) -> Array:
    """Gradient of the tangent kernel Θ(x, y) by its first argument, O(T) for the readout "last".

    Parameters
    ----------
    kernel : NetworkKernel
        An `RNTK` or `NTK`; its readout must give one number per pair ("last", or "mean" in O(T T')).
    x, y
        One sequence each, (T,) or (T, m); lengths may differ. For `NTK`, one vector each.

    Returns
    -------
    gradient
        float64 array of the shape of `x`. As in `kernel(X, Y)` the two count as different sequences: there is no
        same-sequence term of `sigma_h`. Where the kernel has a cusp (ReLU at equal or opposite directions) the
        derivative along the cusp is taken as zero; where x is zero and a network without bias has read nothing else
        yet, it is the mean of both sides.

    Examples
    --------
    >>> from rntk import RNTK, input_gradient
    >>> input_gradient(RNTK("identity", sigma_w=1.0), [1.0, 2.0], [3.0, 4.0])
    array([9., 8.])
    """
    require_number_per_pair(kernel, "input_gradient")
    first, second = kernel.read_batch([x], "x"), kernel.read_batch([y], "y")
    check_channels_agree([first, second], ["x", "y"])
    plan = replace(kernel.plan(), run=Execution(n_jobs=1))
    engine = choose_engine(kernel.engine, plan.network)[0]
    gradient = engine.input_slopes(plan, join(first, second), np.array([0]), np.array([1])).gradient
    if not np.isfinite(gradient).all():
        raise KernelOverflowError(
            f"the gradient overflows for a sequence of length {first.max_length}; take a smaller sigma_w", 0
        )
    return gradient.reshape(np.shape(x))
