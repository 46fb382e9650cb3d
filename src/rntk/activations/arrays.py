"""Closed forms of V̂ and V̂' as array expressions: the contract that the array engine asks for, and what forms share.

They are written in the namespace of the caller's arrays, `xp`. Like the compiled steps they take a signed distance
(u = 1 - c, or beyond a right angle -(1 + c)) and the relative difference of variances, give w = 1 - V̂ and V̂', and keep
the digits of w however close two sequences are (theory.md, section 7).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from .arc_coefficients import ARCSIN64
from .compiled import horner

#: Deviations below which an activation is linear to the last digit.
LINEAR = 1e-10
TINY = 1e-305

#: (arcsin(√z)/√z - 1)/z on [0, 1/4].
arcsin_series = horner(ARCSIN64, float)  # type: ignore[arg-type]


class ArrayForm(ABC):
    """What the array engine asks of an activation, for arrays of one namespace.

    Parameters
    ----------
    xp : module
        The array namespace.
    """

    homogeneous: bool = False
    odd: bool = False

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    @abstractmethod
    def norm(self, root: Any) -> Any:
        """ψ for a deviation √q."""

    @abstractmethod
    def marks(self, root: Any) -> tuple[Any, ...]:
        """What `step` needs to know of each side, for deviations √q."""

    @abstractmethod
    def growth(self, root: Any) -> tuple[Any, Any]:
        """d log ψ²/d log q, and its own derivative; not asked of homogeneous activations."""

    @abstractmethod
    def step(self, d: Any, gap: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        """(w, V̂') at the signed distance d (23), w signed too if φ is odd; `gap` is (q - q')/√(q q')."""


def signed(xp: Any, d: Any, v: Any, w: Any, root: Any, root2: Any) -> Any:
    """w of an odd activation, signed as d is; where both variances are tiny it is the distance itself."""
    w = xp.where((root < LINEAR) & (root2 < LINEAR), v, w)
    return xp.where(d >= 0, w, opposite(xp, w))


def opposite(xp: Any, v: Any) -> Any:
    """The signed distance of sides that are v from being opposite; never zero, which would mean equal."""
    return -xp.where(v > 0, v, xp.full_like(v, float(xp.finfo(v.dtype).smallest_normal)))


def arccos(xp: Any, y: Any, r: Any) -> Any:
    """arccos(r) for r in [0, 1]; y is 1 - r, given with all its digits."""
    return 2 * xp.atan2(xp.sqrt(y), xp.sqrt(1 + r))


def not_zero(xp: Any, x: Any) -> Any:
    """x, but not zero: for denominators of what is zero anyway."""
    return xp.where(x > TINY, x, xp.full_like(x, TINY))


def inverse(xp: Any, x: Any) -> Any:
    """1/x, and 0 where x is 0."""
    some = x > 0
    return xp.where(some, 1 / xp.where(some, x, xp.ones_like(x)), xp.zeros_like(x))
