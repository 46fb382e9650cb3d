"""When to look at the network: times of gradient flow or steps of gradient descent, for one eigenvalue at a time.

Along an eigenvector with eigenvalue μ, what is left of the error at the start is e^{-ηsμ} after time s of gradient
flow, and (1 - ημ)^s after s steps of gradient descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import check_positive

Array = NDArray[np.float64]
#: What lies above ημ = 2 by no more than this lies there by rounding.
ROUNDING = 8 * np.finfo(float).eps


@dataclass(frozen=True)
class Instants:
    """Moments of training, read from the arguments of a call by `read_clock`.

    Parameters
    ----------
    at : ndarray
        (S,) times or numbers of steps, non-negative; infinity is the end of training.
    shape : tuple of int
        The caller's shape of `at`; () for a single moment.
    learning_rate : float
        η.
    steps : bool
        Whether `at` counts steps of gradient descent.
    """

    at: Array
    shape: tuple[int, ...]
    learning_rate: float
    steps: bool

    @property
    def elapsed(self) -> Array:
        """(S,) ηs."""
        with np.errstate(over="ignore"):
            return self.learning_rate * self.at

    def decay(self, mu: Array) -> Array:
        """(S, N) share of the error left along eigenvalues `mu` (N,) > 0: e^{-ηsμ} or (1 - ημ)^s."""
        with np.errstate(over="ignore"):
            return np.asarray(self._sign(mu) * np.exp(self._exponent(mu)))

    def gain(self, mu: Array) -> Array:
        """(S, N) (1 - decay) / μ, without cancellation where ηsμ is small: there it tends to ηs."""
        exponent, sign = self._exponent(mu), self._sign(mu)
        with np.errstate(over="ignore"):
            return np.asarray(np.where(sign > 0, -np.expm1(exponent), 1 + np.exp(exponent)) / mu)

    def _sign(self, mu: Array) -> Array:
        """Sign of (1 - ημ)^s: beyond ημ = 1 a step overshoots, and odd steps land on the other side."""
        if not self.steps:
            return np.ones((len(self.at), len(mu)))
        # An infinite number of steps has no parity and needs none: nothing is left by then.
        odd = np.mod(np.where(np.isinf(self.at), 0.0, self.at), 2) == 1
        return np.where(odd[:, None] & (self.learning_rate * mu > 1), -1.0, 1.0)

    def _exponent(self, mu: Array) -> Array:
        """(S, N) log |decay|, as precise near ημ = 0 and 2, where |1 - ημ| is close to one, as elsewhere."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.steps:
                pace = self.learning_rate * mu
                # From one to two, pace - 1 has no rounding error; beyond two, rounding aside, the error grows.
                pace = np.where((pace > 2) & (pace <= 2 + ROUNDING), 2.0, pace)
                rate = np.where(pace <= 1, np.log1p(-np.minimum(pace, 1)), np.log(np.maximum(pace - 1, 0)))
            else:
                rate = -self.learning_rate * mu
            # Before the first step nothing has happened, even where one step leaves no error (rate -inf).
            return np.where(self.at[:, None] > 0, self.at[:, None] * rate, 0.0)


def read_clock(time: Any, steps: Any, learning_rate: Any) -> Instants:
    """The arguments of a call, checked: exactly one of `time` and `steps`, numbers or arrays of any shape.

    Raises
    ------
    ValueError
        Both or neither given; a value negative, NaN or (steps) fractional; a learning rate not positive.
    """
    if (time is None) == (steps is None):
        raise ValueError(
            "give either time= (gradient flow) or steps= (gradient descent), "
            + ("not both" if time is not None else "for example time=np.inf for the end of training")
        )
    name, given = ("time", time) if steps is None else ("steps", steps)
    try:
        at = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or an array of numbers, not {given!r}") from None
    if at.size == 0:
        raise ValueError(f"{name} is empty; give at least one")
    wrong = ~(at >= 0)  # NaN too
    if steps is not None:
        wrong |= np.isfinite(at) & (at != np.floor(at))
    if wrong.any():
        kind = "whole numbers from 0 on" if steps is not None else "numbers from 0 on"
        raise ValueError(f"{name} must be {kind}, or np.inf for the end of training, not {at[wrong].flat[0]:g}")
    return Instants(at.ravel(), at.shape, check_positive("learning_rate", learning_rate), steps is not None)
