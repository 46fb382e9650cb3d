"""Closed forms of V̂ and V̂' as array expressions, in the unit-vector form of theory.md, section 7.

The compiled steps live with their activations; these live here, because what they are written in, the namespace of
the caller's arrays, exists in this engine only. Like those they take u = 1 - c and give w = 1 - V̂ and V̂', and keep
the digits of w however close two sequences are.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from ...activations import Activation, Homogeneous
from ...activations.error_function import ErrorFunction
from ...activations.sine import Sine

#: Below this u, the ReLU family's w is a short series: the closed form would subtract nearly equal terms. At this u it
#: loses two bits, and the next term of the series is below rounding.
SMALL = 0.01
#: Terms of that series by precision.
TERMS = {"float32": 3, "float64": 6}


class Dual(Protocol):
    """What the recursion asks of an activation. Arrays are of the namespace the dual was made for."""

    homogeneous: bool

    def norm(self, root: Any) -> Any:
        """ψ for a deviation √q."""
        ...

    def marks(self, root: Any) -> tuple[Any, ...]:
        """What `step` needs to know of each side, for deviations √q."""
        ...

    def step(self, u: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        """(w, V̂') at u in [0, 2] (23)."""
        ...


def dual_of(activation: Activation, xp: Any, precision: str) -> Dual:
    """The array form of an activation, for arrays of namespace `xp`."""
    if isinstance(activation, Homogeneous):
        return HomogeneousDual(activation, xp, TERMS[precision])
    if isinstance(activation, ErrorFunction):
        return ErrorFunctionDual(xp)
    if isinstance(activation, Sine):
        return SineDual(xp)
    raise ValueError(
        f"{activation.name} has no closed form, and the array engine has only those: relu, leaky_relu(a), identity, "
        'abs, erf, sin. Take one of them (erf is close to tanh), or bring the arrays to the CPU and take engine="fused"'
    )


class HomogeneousDual:
    """ReLU, leaky ReLU, identity, absolute value: (24) with the angle θ = arccos c in place of polynomials.

    w = u - β (sin θ - θ cos θ)/π and V̂' = 1 - β θ/π. From u, θ = 2 arctan(√u/√(2-u)) has a small relative error, and
    where the difference of sines cancels, (25) takes over.
    """

    homogeneous = True

    def __init__(self, activation: Homogeneous, xp: Any, terms: int) -> None:
        self.xp = xp
        self.root = math.sqrt(activation.unit_square)
        self.beta = (1 - activation.a) ** 2 / (1 + activation.a**2)
        self.series = [
            math.sqrt(2) / math.pi * math.comb(2 * k, k) / 8**k / (2 * k + 1) / (k + 1.5) for k in range(terms)
        ]

    def norm(self, root: Any) -> Any:
        return self.root * root

    def marks(self, root: Any) -> tuple[Any, ...]:
        return ()

    def step(self, u: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        if self.beta == 0:
            return u, xp.ones_like(u)
        near, far = xp.sqrt(u), xp.sqrt(2 - u)  # √u and √(2-u): sin θ is their product
        turn = xp.atan2(near, far)
        turn *= 2 * self.beta / math.pi  # β θ/π
        far *= near
        far *= self.beta / math.pi
        far -= turn * (1 - u)
        tail = u * self.series[-1]
        for coefficient in self.series[-2:0:-1]:
            tail += coefficient
            tail *= u
        tail += self.series[0]
        tail *= u
        tail *= near
        tail *= self.beta
        return u - xp.where(u < SMALL, tail, far), 1 - turn


class ErrorFunctionDual:
    """erf: (28) and (29)."""

    homogeneous = False

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def norm(self, root: Any) -> Any:
        # arcsin(2q/(1+2q)) = arctan(2q/√(1+4q)): nothing cancels.
        q = root * root
        return self.xp.sqrt(2 / math.pi * self.xp.atan(2 * q / self.xp.sqrt(1 + 4 * q)))

    def marks(self, root: Any) -> tuple[Any, ...]:
        xp, q = self.xp, root * root
        psi = self.norm(root)
        rho = xp.sqrt(2 * q / (1 + 2 * q))
        # ρ, τ²/2, ψ, 1/ψ and half the angle arccos ρ² of a sequence with itself.
        return rho, 0.5 / (1 + 2 * q), psi, _inverse(xp, psi), 0.5 * xp.atan2(xp.sqrt(1 + 4 * q), 2 * q)

    def step(self, u: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (rho, tau, psi, over, angle), (rho2, tau2, psi2, over2, angle2) = left, right
        gap, product, over = rho - rho2, rho * rho2, over * over2
        y = 0.5 * gap * gap + (tau + tau2) + product * u  # 1 - r as a sum of non-negative terms (28)
        y = xp.clip(y, 0.0, 2.0)
        r = xp.clip(product * (1 - u), -1.0, 1.0)
        # r near 1: half the squared distance of the two activations, from angles; nothing of order one cancels.
        turn = 2 * xp.atan2(xp.sqrt(y), xp.sqrt(2 - y)) - (angle + angle2)
        close = 2 / math.pi * turn - 0.5 * (psi - psi2) * (psi - psi2)
        w = xp.where(y < 0.5, close * over, 1 - 2 / math.pi * xp.asin(r) * over)
        # Equal sides stay equal to the last bit: in a chaotic network a rounding error would grow with every step.
        w = xp.where((u == 0) & (gap == 0), xp.zeros_like(w), w)
        deficit = xp.clip(y * (2 - y), 1e-300, 1.0)
        return w, 2 / math.pi * product * over / xp.sqrt(deficit)


class SineDual:
    """sin: (30), with the exponent of the larger of the two terms taken out."""

    homogeneous = False

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def norm(self, root: Any) -> Any:
        return self.xp.sqrt(-0.5 * self.xp.expm1(-2 * root * root))

    def marks(self, root: Any) -> tuple[Any, ...]:
        return root, _inverse(self.xp, self.norm(root))

    def step(self, u: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, Any]:
        xp = self.xp
        (root, over), (root2, over2) = left, right
        gap, product = root - root2, root * root2
        c = 1 - u
        positive = c >= 0
        # (q+q')/2 - |s| as a sum of non-negative terms; u or 2 - u, whichever measures from the nearer end.
        distance = 0.5 * gap * gap + product * xp.where(positive, u, 2 - u)
        peak = 0.5 * xp.exp(-distance) * (over * over2)
        tail = xp.expm1(-2 * product * xp.abs(c))
        value = -peak * tail
        w = 1 - xp.where(positive, value, -value)
        # Equal sides stay equal to the last bit, as for erf.
        w = xp.where((u == 0) & (gap == 0), xp.zeros_like(w), w)
        return w, product * peak * (2 + tail)


def _inverse(xp: Any, x: Any) -> Any:
    """1/x, and 0 where x is 0."""
    some = x > 0
    return xp.where(some, 1 / xp.where(some, x, xp.ones_like(x)), xp.zeros_like(x))
