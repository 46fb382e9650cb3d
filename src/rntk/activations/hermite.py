"""Any activation, by its Hermite expansion: tanh, GELU, sigmoid, and whatever callable a user brings.

With a_k(σ) = E[φ(σz) he_k(z)] and he_k the orthonormal Hermite polynomials, V = Σ_k a_k(√q) a_k(√q') c^k. The
coefficients belong to one sequence and one step; a pair costs one multiply-add per order. By Parseval
Σ a_k² = E[φ²], so what a truncation leaves out is known, and that number chooses the order.

Odd activations, such as tanh, have odd orders only, even ones even orders: V = c^f P(c^s) with f, s = 1, 2 or 0, 2
instead of 0, 1, and half the coefficients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..compiled import compile_pointer, wide_vectors
from ..errors import HermiteAccuracyWarning
from .base import Activation, Array, Lanes, Moments, ratio
from .signatures import forward_signature, partials_signature

#: Accuracy to which an order is chosen in double precision.
EXACT = 1e-13
#: Orders tried, smallest first.
ORDERS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
#: How far above the tolerance an estimate may lie before a warning says so: the estimate is for c = 1, where the
#: series converges slowest, and most pairs are far from there.
TOLERATED = 1e5
#: A remainder below this is rounding of some hundred terms.
ROUNDING = 1e-14
#: Sequence steps whose coefficients are computed at once: bounds memory, changes no number.
CHUNK = 2048


@cache
def gaussian_rule() -> tuple[Array, Array]:
    """Nodes and weights of E[f(z)], z standard normal, exact to rounding for f smooth on either side of zero.

    Gauss-Legendre panels that shrink towards zero, where φ(σz) bends for large σ and where kinks sit; the density
    beyond 13 is below 1e-37.
    """
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-7, 0), np.arange(1.0, 14.0)])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (nodes + 1)).ravel()
    density = (half * weights).ravel() * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return np.concatenate([-z[::-1], z]), np.concatenate([density[::-1], density])


class Parity(NamedTuple):
    """Which orders k = first + step j an activation has: all (0, 1), the odd ones (1, 2) or the even ones (0, 2)."""

    first: int
    step: int

    def orders(self, below: int) -> NDArray[np.int64]:
        """Those below a number."""
        return np.arange(self.first, below, self.step)


PARITIES = {None: Parity(0, 1), "odd": Parity(1, 2), "even": Parity(0, 2)}


@cache
def symmetric_rule(parity: Parity) -> tuple[Array, Array]:
    """`gaussian_rule` for squares of φ and for products with its polynomials: half is enough if both halves agree."""
    z, weight = gaussian_rule()
    half = z > 0
    return (z, weight) if parity.step == 1 else (z[half], 2 * weight[half])


@cache
def hermite_basis(parity: Parity, order: int) -> Array:
    """(nodes, ·) values of the orthonormal Hermite polynomials below `order` that there are, times the weights."""
    z, weight = symmetric_rule(parity)
    basis = np.empty((z.size, order))
    basis[:, 0], basis[:, 1] = 1.0, z
    for k in range(1, order - 1):
        basis[:, k + 1] = (z * basis[:, k] - np.sqrt(k) * basis[:, k - 1]) / np.sqrt(k + 1)
    return np.ascontiguousarray(basis[:, parity.orders(order)] * weight[:, None])


class HermiteActivation(Activation):
    """A vectorised function φ of a real number and, if known, its derivative.

    Parameters
    ----------
    name : what to call it in messages.
    function : φ, applied to NumPy arrays of float64.
    derivative : φ'; without it finite differences of sixth order are used. The kernels hardly need it: the pair
        step differentiates the expansion, not φ.
    symmetry : "odd" if φ(-z) = -φ(z) for every z, zero included, "even" if φ(-z) = φ(z): half the work. Taken on
        trust, so None unless you are sure.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.activations import HermiteActivation
    >>> softplus = HermiteActivation("softplus", lambda z: np.logaddexp(0, z))
    >>> round(float(softplus.square(np.array([1.0]))[0]), 6)
    0.921246
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Array], Array],
        derivative: Callable[[Array], Array] | None = None,
        symmetry: str | None = None,
    ) -> None:
        if symmetry not in PARITIES:
            raise ValueError(f'symmetry must be "odd", "even" or None, not {symmetry!r}')
        self.name = name
        self.function = function
        self.known_derivative = derivative
        self.symmetry = symmetry

    def __call__(self, z: Array) -> Array:
        z = np.asarray(z, dtype=np.float64)
        value = np.asarray(self.function(z), dtype=np.float64)
        if value.shape != z.shape:
            raise ValueError(
                f"activation {self.name} maps an array of shape {z.shape} to one of shape {value.shape}; "
                "it must work elementwise on arrays (try numpy.vectorize)"
            )
        return value

    def derivative(self, z: Array) -> Array:
        z = np.asarray(z, dtype=np.float64)
        if self.known_derivative is not None:
            return np.asarray(self.known_derivative(z), dtype=np.float64)
        h = 2e-3 * np.maximum(1.0, np.abs(z))
        pairs = zip((1, 2, 3), (45, -9, 1), strict=True)
        return np.asarray(sum(c * (self(z + i * h) - self(z - i * h)) for i, c in pairs) / (60 * h))

    def dual(self, q1: Array, q2: Array, s: Array) -> tuple[Array, Array]:
        q1, q2, s = np.broadcast_arrays(q1, q2, s)
        z, weight = gaussian_rule()
        inner = np.abs(z) < 9  # the density beyond is 1e-18
        z, weight = z[inner], weight[inner]
        value, slope = np.empty(s.shape), np.empty(s.shape)
        for i in np.ndindex(s.shape):
            a, b = np.sqrt(q1[i]), np.sqrt(q2[i])
            c = np.clip(s[i] / (a * b), -1.0, 1.0) if a * b > 0 else 0.0
            second = b * (c * z[:, None] + np.sqrt(1 - c * c) * z)
            value[i] = (weight * self(a * z)) @ self(second) @ weight
            slope[i] = (weight * self.derivative(a * z)) @ self.derivative(second) @ weight
        return value, slope

    def square(self, q: Array) -> Array:
        z, weight = symmetric_rule(self._parity)
        root = np.sqrt(q)
        parts = [np.square(self(root[i : i + CHUNK, None] * z)) @ weight for i in range(0, root.size, CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def moments(self, q: Array) -> Moments:
        z, weight = symmetric_rule(self._parity)
        square, slope, growth = np.empty(q.size), np.empty(q.size), np.empty(q.size)
        for i in range(0, q.size, CHUNK):
            part = slice(i, i + CHUNK)
            point = np.sqrt(q[part, None]) * z
            value, rate = self(point), self.derivative(point)
            square[part] = np.square(value) @ weight
            slope[part] = q[part] * (np.square(rate) @ weight)
            growth[part] = (value * rate * point) @ weight
        exact = Moments(square, ratio(slope, square), ratio(growth, square))
        order, error = self._choose_order(q, exact, EXACT)
        if error <= 10 * EXACT:
            return exact
        # What the truncated series gives at c = 1: a sequence with itself must be no different from a pair of equals.
        slope = np.empty(q.size)
        for i in range(0, q.size, CHUNK):
            part = slice(i, i + CHUNK)
            a = self._coefficients(q[part], order)
            energy = ratio(np.square(a), np.broadcast_to(square[part], a.shape))
            rest, total = _remainder(energy.sum(axis=0))
            slope[part] = self._parity.orders(order) @ energy / total + (order + self._parity.first) * rest
        return exact._replace(slope=slope)

    def marks(self, q: Array, moments: Moments, *, slopes: bool, tolerance: float, least: int = 0) -> Array:
        shape, q, moments = q.shape, q.ravel(), Moments(*(part.ravel() for part in moments))
        step = self._parity.step
        least = (least // 2 if slopes else least) - 1  # rows without the remainder's
        order, error = self._choose_order(q, moments, tolerance)
        order = max(order, step * least)
        if error > TOLERATED * tolerance:
            warnings.warn(
                HermiteAccuracyWarning(
                    f"the Hermite expansion of {self.name} is accurate to {error:.1e}, not {tolerance:.1e}, at "
                    f"order {order} and variance up to {q.max():.3g}. Kinks and steep activations converge slowly: "
                    "use relu, leaky_relu, abs or erf where they fit, or smaller sigmas"
                ),
                stacklevel=2,
            )
        a: Array = self._coefficients(q, order + 2)
        k = self._parity.orders(order)[:, None]
        psi = np.sqrt(moments.square)
        some = np.where(psi > 0, psi, 1.0)  # where ψ is zero, so are all coefficients
        # Divided, not multiplied by 1/ψ: one rounding error for all orders would show in the remainder.
        unit = a[: len(k)] / some
        # The remainder joins as one more order: V̂(1) = 1 holds exactly, and the expansion stays positive definite.
        rest, total = _remainder(np.einsum("kn,kn->n", unit, unit))
        unit /= np.sqrt(total)
        rest = np.sqrt(rest)
        rows = [unit, rest[None]]
        if slopes:
            rate = 0.5 * (k * a[: len(k)] + np.sqrt((k + 1.0) * (k + 2.0)) * a[2 // step :])
            rows += [rate / some - 0.5 * moments.growth * unit]
            rows += [np.zeros((1, q.size))]
        return np.asarray(np.concatenate(rows).reshape(-1, *shape))

    def _choose_order(self, q: Array, moments: Moments, tolerance: float) -> tuple[int, float]:
        """Smallest order whose truncation error in V̂ and V̂' is below `tolerance` at every variance in `q`."""
        # Both errors vary smoothly with q: a few quantiles and the extremes show the worst.
        sample = np.unique(np.argsort(q)[np.linspace(0, q.size - 1, min(q.size, 33)).astype(int)])
        square, slope = moments.square[sample], moments.slope[sample]
        error = np.inf
        for order in ORDERS:
            a = self._coefficients(q[sample], order)
            energy = ratio(np.square(a), np.broadcast_to(square, a.shape))
            missing = np.abs(1.0 - energy.sum(axis=0)) * (square > 0)
            missing_slope = np.abs(slope - self._parity.orders(order) @ energy) / np.maximum(slope, 1.0)
            # Twice: at c = -1 the remainder may carry the wrong sign.
            error = 2 * float(max(missing.max(), missing_slope.max()))
            if error <= tolerance:
                break
        return order, error

    def _coefficients(self, q: Array, order: int) -> Array:
        """(·, n) coefficients a_k(√q) for the orders k below `order` that there are."""
        nodes, basis = symmetric_rule(self._parity)[0], hermite_basis(self._parity, order)
        root = np.sqrt(q)
        a = np.empty((basis.shape[1], q.size))
        for i in range(0, q.size, CHUNK):
            a[:, i : i + CHUNK] = (self(root[i : i + CHUNK, None] * nodes) @ basis).T
        return a

    @property
    def _parity(self) -> Parity:
        return PARITIES[self.symmetry]

    @property
    def parameters(self) -> Array:
        return np.array(self._parity, dtype=np.float64)

    def lanes(self, dtype: np.dtype[Any]) -> Lanes:
        return Lanes(
            compile_pointer(_forward, forward_signature(dtype), allocates=True),
            compile_pointer(_partials, partials_signature(dtype), allocates=True),
        )

    def _key(self) -> tuple[object, ...]:
        return (self.name, self.function, self.symmetry)


def _remainder(energy: Array) -> tuple[Array, Array]:
    """What the orders miss of 1, and what to divide them by.

    A remainder that is rounding is shared out among the orders: as the highest of them it would count many times in the
    slope. Where there is no energy at all there is no remainder either.
    """
    rounding = np.abs(1.0 - energy) < ROUNDING
    rest = np.where(rounding | (energy == 0), 0.0, np.maximum(1.0 - energy, 0.0))
    return rest, np.where(rounding, energy, 1.0)


def _forward(parameters: Any, left: Any, right: Any, w: Any, q: Any, rows: int, first: int, n: int) -> None:
    wide_vectors()
    real = w.dtype.type
    one, two = real(1), real(2)
    blur = real(64 * np.finfo(w.dtype).eps)
    odd, stepped = parameters[0] == one, parameters[1] == two
    order, count = left.shape[0], n - first
    c, x = np.empty(count, w.dtype), np.empty(count, w.dtype)
    value, slope = np.empty(count, w.dtype), np.empty(count, w.dtype)
    for r in range(rows):
        wr, qr, A = w[r, first:n], q[r, first:n], right[order - 1, first:n]
        a = left[order - 1, r]
        for k in range(count):
            c[k] = max(min(one - wr[k], one), -one)
            x[k] = c[k] * c[k] if stepped else c[k]
            value[k] = a * A[k]
            slope[k] = real(0)
        # Horner's rule for P and P'; four orders at a time, because memory is slower than arithmetic.
        j = order - 2
        while (j + 1) % 4 != 0:
            a, A = left[j, r], right[j, first:n]
            for k in range(count):
                slope[k] = slope[k] * x[k] + value[k]
                value[k] = value[k] * x[k] + a * A[k]
            j -= 1
        while j > 0:
            a, b, d, e = left[j, r], left[j - 1, r], left[j - 2, r], left[j - 3, r]
            A, B = right[j, first:n], right[j - 1, first:n]
            D, E = right[j - 2, first:n], right[j - 3, first:n]
            for k in range(count):
                t, p, s = x[k], value[k], slope[k]
                s = s * t + p
                p = p * t + a * A[k]
                s = s * t + p
                p = p * t + b * B[k]
                s = s * t + p
                p = p * t + d * D[k]
                slope[k] = s * t + p
                value[k] = p * t + e * E[k]
            j -= 4
        if stepped:
            for k in range(count):
                # V̂ = c^f P(c²): its derivative is f P + 2 c^(f+1) P'.
                slope[k] = value[k] + two * x[k] * slope[k] if odd else two * c[k] * slope[k]
                value[k] = c[k] * value[k] if odd else value[k]
        for k in range(count):
            # Equal sides stay equal to the last bit: in a chaotic network a rounding error would grow every step.
            gap = one - value[k]
            wr[k] = real(0) if c[k] == one and abs(gap) < blur else gap
            qr[k] *= slope[k]


def _partials(parameters: Any, left: Any, right: Any, u: Any, out: Any, rows: int, first: int, n: int) -> None:
    wide_vectors()
    real = u.dtype.type
    zero, one, two = real(0), real(1), real(2)
    blur = real(64 * np.finfo(u.dtype).eps)
    odd, stepped = parameters[0] == one, parameters[1] == two
    order, count = left.shape[0] // 2, n - first
    c, x = np.empty(count, u.dtype), np.empty(count, u.dtype)
    # Horner's rule with its derivatives: s0 holds P, s1 P', s2 P''/2; a0, b0 the mixed series, a1, b1 theirs.
    s0, s1, s2 = np.empty(count, u.dtype), np.empty(count, u.dtype), np.empty(count, u.dtype)
    a0, a1 = np.empty(count, u.dtype), np.empty(count, u.dtype)
    b0, b1 = np.empty(count, u.dtype), np.empty(count, u.dtype)
    for r in range(rows):
        for k in range(count):
            c[k] = max(min(one - u[r, first + k], one), -one)
            x[k] = c[k] * c[k] if stepped else c[k]
            s0[k] = s1[k] = s2[k] = a0[k] = a1[k] = b0[k] = b1[k] = zero
        for j in range(order - 1, -1, -1):
            a, da = left[j, r], left[order + j, r]
            A, dA = right[j, first:n], right[order + j, first:n]
            for k in range(count):
                s2[k] = s2[k] * x[k] + s1[k]
                s1[k] = s1[k] * x[k] + s0[k]
                s0[k] = s0[k] * x[k] + a * A[k]
            for k in range(count):
                a1[k] = a1[k] * x[k] + a0[k]
                a0[k] = a0[k] * x[k] + da * A[k]
            for k in range(count):
                b1[k] = b1[k] * x[k] + b0[k]
                b0[k] = b0[k] * x[k] + a * dA[k]
        if stepped:
            # From P(x), x = c², to V̂ = c^f P; V̂'' is 6 c P' + 4 c³ P'' (odd) or 2 P' + 4 c² P'' (even).
            for k in range(count):
                lead = c[k] if odd else one
                by = two * (x[k] if odd else c[k])
                s2[k] = lead * (((two + one) if odd else one) * s1[k] + two * two * x[k] * s2[k])
                s1[k] = (s0[k] if odd else zero) + by * s1[k]
                a1[k] = (a0[k] if odd else zero) + by * a1[k]
                b1[k] = (b0[k] if odd else zero) + by * b1[k]
                s0[k] *= lead
                a0[k] *= lead
                b0[k] *= lead
        for k in range(count):
            at = first + k
            gap = one - s0[k]
            out[0, r, at] = zero if c[k] == one and abs(gap) < blur else gap
            out[1, r, at] = s1[k]
            out[2, r, at] = -two * s2[k]
            out[3, r, at] = -a0[k]
            out[4, r, at] = -b0[k]
            out[5, r, at] = a1[k]
            out[6, r, at] = b1[k]


def _gelu(z: Array) -> Array:
    return np.asarray(z * special.ndtr(z))


def _gelu_derivative(z: Array) -> Array:
    return np.asarray(special.ndtr(z) + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))


def _sigmoid_derivative(z: Array) -> Array:
    return np.asarray(special.expit(z) * special.expit(-z))


def _tanh_derivative(z: Array) -> Array:
    return np.asarray(1 / np.square(np.cosh(np.clip(z, -350, 350))))


tanh = HermiteActivation("tanh", np.tanh, _tanh_derivative, symmetry="odd")
gelu = HermiteActivation("gelu", _gelu, _gelu_derivative)
sigmoid = HermiteActivation("sigmoid", special.expit, _sigmoid_derivative)
