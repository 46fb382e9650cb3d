"""Gaussian expectations of products of two functions, for arrays of variances and covariances.

In goes what each side is, a function of a Gaussian with some mean and variances, and covariances; out come
E[f(z) f'(z')] and the same of the derivatives. One activation without mean uses what `rntk.activations` knows: closed
forms as array expressions, expansions as compiled steps. Anything else, two different functions or a mean, is a series
of Hermite polynomials.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..activations import Activation
from ..activations.hermite import gaussian_rule
from ..activations.signatures import FARTHEST
from ..errors import HermiteAccuracyWarning, warn
from .language import Function

Array = NDArray[np.float64]
#: Accuracy that expansions aim at, and orders of the general series.
TOLERANCE, ORDERS = 1e-13, 256
#: Missing share of the squares from which on the general series warns.
DOUBTFUL = 1e-6


class GaussianSide:
    """f(μ + √q z) for standard normal z, one (μ, q) per sequence; without a function z itself.

    Parameters
    ----------
    function : Function or None
    mean, variance : ndarray
        (N,) μ and q.
    """

    def __init__(self, function: Function | None, mean: Array, variance: Array) -> None:
        self.function = function
        self.mean = mean
        self.variance = np.maximum(variance, 0.0)
        self.centred = not mean.any()
        self._marks: dict[int, Array] = {}
        self._series: Array | None = None
        if self.activation is not None and self.centred:
            self.moments = self.activation.moments(self.variance)

    @property
    def activation(self) -> Activation | None:
        return None if self.function is None else self.function.activation

    @property
    def expected(self) -> Array:
        """(N,) E[f]."""
        return self.mean if self.function is None else self.series[0]

    @property
    def square(self) -> tuple[Array, Array]:
        """(N,) E[f²] and E[f'²]."""
        if self.function is None:
            return self.variance + self.mean**2, np.ones_like(self.mean)
        if self.centred:
            slope = np.divide(
                self.moments.slope * self.moments.square,
                self.variance,
                out=np.zeros_like(self.variance),
                where=self.variance > 0,
            )
            return np.asarray(self.moments.square), slope
        z, weight = rule_around(self.mean, self.variance)
        point = self.mean[:, None] + np.sqrt(self.variance)[:, None] * z
        values, slopes = self.function.value(point), self.function.partial(0, point)
        return tuple(np.einsum("nz,nz->n", weight, np.square(each)) for each in (values, slopes))

    @property
    def series(self) -> Array:
        """(K, N) E[f(μ + √q z) he_k(z)]."""
        if self._series is None:
            root = np.sqrt(self.variance)
            if self.function is None:
                self._series = np.stack([self.mean, root])
            else:
                z, weight = rule_around(self.mean, self.variance)
                values = self.function.value(self.mean[:, None] + root[:, None] * z) * weight
                before, now, rows = np.zeros_like(z), np.ones_like(z), []
                for k in range(ORDERS):
                    rows.append(np.einsum("nz,nz->n", values, now))
                    before, now = now, (z * now - np.sqrt(k) * before) / np.sqrt(k + 1)
                self._series = np.stack(rows)
        return self._series

    def marks(self, least: int = 0) -> Array:
        """What the compiled step of the activation wants to know."""
        phi = self.activation
        assert phi is not None
        if least not in self._marks:
            found = phi.marks(self.variance, self.moments, slopes=False, tolerance=TOLERANCE, least=least)
            self._marks[least] = self._marks[len(found)] = found
        return self._marks[least]


def expectations(left: GaussianSide, right: GaussianSide, covariance: Array, *, crossed: bool) -> tuple[Array, Array]:
    """E[f f'] and the same of the derivatives; (N, N') arrays if all pairs are meant (`crossed`), otherwise (N,)."""
    if left.function is None and right.function is None:
        return covariance + spread(left.mean, right.mean, crossed), np.ones_like(covariance)
    if left.function == right.function and left.centred and right.centred:
        return _of_activation(left, right, covariance, crossed)
    return _of_series(left, right, covariance, crossed)


def spread(left: Array, right: Array, crossed: bool) -> Array:
    """Products of numbers per sequence, for all pairs or one by one."""
    return left[:, None] * right if crossed else left * right


def _of_activation(left: GaussianSide, right: GaussianSide, s: Array, crossed: bool) -> tuple[Array, Array]:
    phi = left.activation
    assert phi is not None
    if not crossed and left is right and np.array_equal(s, left.variance):
        return left.square
    n = np.sqrt(spread(left.variance, right.variance, crossed))
    safe = np.where(n > 0, n, 1.0)
    c = np.clip(np.where(n > 0, s / safe, 0.0), -1.0, 1.0)
    near, far = (np.maximum(np.where(n > 0, (n - sign * s) / safe, 1.0), 0.0) for sign in (1, -1))
    d = np.where(c >= 0, near, np.minimum(-far, FARTHEST))
    own, other = left.variance, right.variance
    gap = ((own[:, None] - other) if crossed else own - other) / safe
    norm = np.sqrt(spread(left.moments.square, right.moments.square, crossed))
    if type(phi).array_form is not Activation.array_form:
        form = phi.array_form(np, "float64")
        first, second = (np.sqrt(each) for each in (own, other))
        ours = tuple(each[:, None] if crossed else each for each in form.marks(first))
        with np.errstate(all="ignore"):
            w, slope = form.step(d, gap, ours, form.marks(second))
    else:
        w, slope = _compiled(phi, left, right, d, gap, crossed)
    value = np.where(w < 0, -w - 1.0, 1.0 - w) if phi.odd else 1.0 - w
    return norm * value, np.where(n > 0, slope * norm / safe, 0.0)


def _compiled(
    phi: Activation, left: GaussianSide, right: GaussianSide, d: Array, gap: Array, crossed: bool
) -> tuple[Array, Array]:
    ours, theirs = left.marks(), right.marks()
    most = max(len(ours), len(theirs))
    ours, theirs = left.marks(most) if len(ours) < most else ours, right.marks(most) if len(theirs) < most else theirs
    step, parameters = phi.forward(np.dtype(np.float64)), np.append(phi.parameters, 1.0)
    w, slope = np.empty_like(d), np.empty_like(d)
    first, ones = np.uint64(0), np.ones(d.shape[-1] if crossed else 1)
    theirs = np.ascontiguousarray(theirs)
    for i in range(len(left.variance)):
        at: Any = i if crossed else slice(i, i + 1)
        marks = theirs if crossed else np.ascontiguousarray(theirs[:, i : i + 1])
        lane = [np.ascontiguousarray(each[at]) for each in (gap, d)]
        out = np.empty_like(lane[0]), np.empty_like(lane[0])
        step(parameters, ours[:, i], marks, *lane, ones, *out, first, np.uint64(len(lane[0])))
        w[at], slope[at] = out
    return w, slope


def _of_series(left: GaussianSide, right: GaussianSide, s: Array, crossed: bool) -> tuple[Array, Array]:
    """Mehler's formula (7), for any two functions and any means."""
    n = np.sqrt(spread(left.variance, right.variance, crossed))
    safe = np.where(n > 0, n, 1.0)
    c = np.clip(np.where(n > 0, s / safe, 0.0), -1.0, 1.0)
    a, b = left.series, right.series
    orders = min(len(a), len(b))
    value, slope = np.zeros_like(c), np.zeros_like(c)
    for k in range(orders - 1, -1, -1):
        product = spread(a[k], b[k], crossed)
        slope = slope * c + k * product if k else slope
        value = value * c + product
    if orders == ORDERS:
        missing = spread(_missing(left), _missing(right), crossed) * np.abs(c) ** orders
        if missing.max(initial=0.0) > DOUBTFUL:
            text = f"a product of two functions is known to {missing.max():.1e} of its largest value, and no better"
            warn(HermiteAccuracyWarning(text, float(missing.max())))
    if left is right and not crossed and np.array_equal(s, left.variance):
        return left.square
    return value, np.where(n > 0, slope / safe, 0.0)


def _missing(side: GaussianSide) -> Array:
    """Root of the share of E[f²] that the series leaves out."""
    square = side.square[0]
    rest = np.maximum(square - np.einsum("kn,kn->n", side.series, side.series), 0.0)
    return np.asarray(np.sqrt(np.divide(rest, square, out=np.zeros_like(rest), where=square > 0)))


@cache
def _half_rule() -> tuple[Array, Array]:
    """Nodes from 0 on and their widths: `gaussian_rule`'s panels, twice as far."""
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-7, 0), np.arange(1.0, 27.0)])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (nodes + 1)).ravel(), (half * weights).ravel()


def rule_around(mean: Array, variance: Array) -> tuple[Array, Array]:
    """(N, nodes) nodes and weights for E[f(μ + √q z)] of functions with a kink at zero: panels shrink towards it."""
    if not mean.any():
        z, weight = gaussian_rule()
        return np.broadcast_to(z, (len(mean), len(z))), np.broadcast_to(weight, (len(mean), len(z)))
    root = np.sqrt(variance)
    kink = np.clip(np.divide(-mean, root, out=np.zeros_like(mean), where=root > 0), -13.0, 13.0)
    away, width = _half_rule()
    z = np.concatenate([kink[:, None] - away[::-1], kink[:, None] + away], axis=1)
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return z, np.concatenate([width[::-1], width]) * density
