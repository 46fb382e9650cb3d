"""Losses ℓ(f, y) between outputs and targets, sums over all values, with their slopes; for NumPy's arrays and JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import check_choice


class Loss(NamedTuple):
    """A loss of outputs f and targets y, both (n, d).

    Attributes
    ----------
    value : callable
        (xp, f, y) to the number ℓ(f, y); xp is the module of the arrays, `numpy` or `jax.numpy`.
    slope : callable
        (xp, f, y) to ∂ℓ/∂f, (n, d).
    """

    value: Callable[[Any, Any, Any], Any]
    slope: Callable[[Any, Any, Any], Any]


def _entropy(xp: Any, f: Any, y: Any) -> Any:
    if f.shape[1] == 1:
        return xp.sum(xp.logaddexp(xp.zeros_like(f), -y * f))
    top = xp.max(f, axis=1, keepdims=True)
    return xp.sum(top[:, 0] + xp.log(xp.sum(xp.exp(f - top), axis=1))) - xp.sum(y * f)


def _entropy_slope(xp: Any, f: Any, y: Any) -> Any:
    if f.shape[1] == 1:
        return -y * xp.exp(-xp.logaddexp(xp.zeros_like(f), y * f))
    shares = xp.exp(f - xp.max(f, axis=1, keepdims=True))
    return shares / xp.sum(shares, axis=1, keepdims=True) - y


def _huber(xp: Any, f: Any, y: Any) -> Any:
    off = xp.abs(f - y)
    return xp.sum(xp.where(off <= 1, off**2 / 2, off - 0.5))


#: By name: ½ Σ |f - y|²; with the absolute value beyond a distance of one; and logistic for one output (targets ±1),
#: softmax for several (rows of y are probabilities).
LOSSES: dict[str, Loss] = {
    "squared": Loss(lambda xp, f, y: xp.sum((f - y) ** 2) / 2, lambda xp, f, y: f - y),
    "huber": Loss(_huber, lambda xp, f, y: xp.clip(f - y, -1, 1)),
    "cross-entropy": Loss(_entropy, _entropy_slope),
}


def read_loss(name: Any, y: NDArray[np.float64]) -> Loss:
    """The loss of this name; a ValueError where there is none, or where targets (n, d) aren't such as it takes.

    Examples
    --------
    >>> import numpy as np
    >>> loss = read_loss("cross-entropy", np.array([[1.0], [-1.0]]))
    >>> float(loss.value(np, np.zeros((2, 1)), np.array([[1.0], [-1.0]])).round(4))
    1.3863
    """
    loss = LOSSES[check_choice("loss", name, tuple(LOSSES))]
    if name != "cross-entropy":
        return loss
    if y.shape[1] == 1:
        if not (np.abs(y) == 1).all():
            raise ValueError(
                f'loss="cross-entropy" with one output needs targets -1 and 1, not {y[np.abs(y) != 1][0]:g}'
            )
    elif not ((y >= 0).all() and np.allclose(y.sum(axis=1), 1)):
        raise ValueError('loss="cross-entropy" needs rows of y that are probabilities, 1 for the class and 0 elsewhere')
    return loss
