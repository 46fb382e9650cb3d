"""Any activation, by its Hermite expansion: tanh, sigmoid, and whatever callable a user brings.

With a_k(σ) = E[φ(σz) he_k(z)] and he_k the orthonormal Hermite polynomials, V = Σ_k a_k(√q) a_k(√q') c^k. The
coefficients belong to one sequence and one step; a pair costs one multiply-add per order. By Parseval
Σ a_k² = E[φ²], so what a truncation leaves out is known, and that number chooses the order.

Odd activations, such as tanh, have odd orders only, even ones even orders: V = c^f P(c^s) with f, s = 1, 2 or 0, 2
instead of 0, 1, and half the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import ActivationError, HermiteAccuracyWarning, warn
from . import balls, expansion
from .base import Activation, Array, Moments, Step, common_marks, ratio, register
from .compiled import inlined, wide_vectors
from .signatures import FARTHEST

#: Accuracy to which an order is chosen in double precision.
EXACT = 1e-13
#: Orders tried, smallest first.
ORDERS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
#: How far above the tolerance an estimate may lie before a warning says so: the estimate is for c = 1, where the
#: series converges slowest, and most pairs are far from there.
TOLERATED = 1e5
#: Estimates beyond this are refused.
LARGEST_ERROR = 0.5
#: A remainder below this is rounding of some hundred terms.
ROUNDING = 1e-14
#: Step of the differences that stand in for a derivative, relative to z where that is large.
DIFFERENCE = 2e-3
#: Sequence steps whose coefficients are computed at once, to bound memory; and that one product of matrices takes,
#: always as many: how the last bits are rounded depends on that.
CHUNK, ROWS = 2048, 64
#: Marks before the coefficients: q, 1/√q, and how fast the unit vector of coefficients turns along log q.
OWN_MARKS = 3
#: Relative differences of variances below which differences of coefficients are rounding.
CLOSE = 1e-6


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
    name : str
        What to call it in messages.
    function : callable
        φ, applied to NumPy arrays of float64.
    derivative : callable or None
        φ'; without it finite differences of sixth order are used. The kernels hardly need it: the pair step
        differentiates the expansion, not φ.
    symmetry : str or None
        "odd" if φ(-z) = -φ(z) for every z, zero included, "even" if φ(-z) = φ(z): half the work, and opposite sequences
        are as exact as equal ones. Taken on trust; None looks for it at some thousand numbers.
    exact : expansion.Function or None
        φ and φ' of lists of python-flint's `arb`; without it the reference engine knows them to sixteen digits.
    jax : callable or None
        φ in functions of JAX, for `rntk.finite`.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.activations import HermiteActivation
    >>> softplus = HermiteActivation("softplus", lambda z: np.logaddexp(0, z))
    >>> round(float(softplus.square(np.array([1.0]))[0]), 6)
    0.921246
    """

    largest_variance = 1e60
    accuracy, most_bits = 1e-11, 256
    steps_allocate = True

    def __init__(
        self,
        name: str,
        function: Callable[[Array], Array],
        derivative: Callable[[Array], Array] | None = None,
        symmetry: str | None = None,
        exact: expansion.Function | None = None,
        jax: Callable[[Any], Any] | None = None,
    ) -> None:
        if symmetry not in PARITIES:
            raise ValueError(f'symmetry must be "odd", "even" or None, not {symmetry!r}')
        self.name = name
        self.function = function
        self.known_derivative = derivative
        self.symmetry = symmetry or _find_symmetry(function, name)
        self.exact = exact
        self.jax = jax
        fault = _find_fault(self)
        if fault is not None:
            raise ActivationError(
                f"activation {name} {fault}: its derivative is not square-integrable, so the network has no tangent "
                "kernel. Take a steep function that has a derivative, such as erf or tanh"
            )

    def __call__(self, z: Array) -> Array:
        z = np.asarray(z, dtype=np.float64)
        value = _real(self.function(z.copy()), self.name)  # a function may write into what it is given
        if value.shape != z.shape:
            raise ValueError(
                f"activation {self.name} maps an array of shape {z.shape} to one of shape {value.shape}; "
                "it must work elementwise on arrays (try numpy.vectorize)"
            )
        if not np.isfinite(value).all():
            bad = int(np.flatnonzero(~np.isfinite(value))[0])
            raise ActivationError(
                f"activation {self.name} is {value.flat[bad]} at z = {z.flat[bad]:.6g}: it must be finite for every "
                "number that a pre-activation may take. Write it so that nothing overflows there, or scale inputs down"
            )
        return value

    def derivative(self, z: Array) -> Array:
        z = np.asarray(z, dtype=np.float64)
        if self.known_derivative is not None:
            return _real(self.known_derivative(z.copy()), f"the derivative of {self.name}")
        return self._difference(z, DIFFERENCE)

    def _difference(self, z: Array, step: float) -> Array:
        h = step * np.maximum(1.0, np.abs(z))
        pairs = zip((1, 2, 3), (45, -9, 1), strict=True)
        return np.asarray(sum(c * (self(z + i * h) - self(z - i * h)) for i, c in pairs) / (60 * h))

    def textbook_side(self, q: Any) -> expansion.ExpandedSide:
        return expansion.expand(self.exact or self._in_floats, q)

    def textbook(
        self, left: expansion.ExpandedSide, right: expansion.ExpandedSide, s: Any, *, same: bool = False
    ) -> tuple[Any, Any]:
        return (left.values.square, left.slopes.square) if same else expansion.expectations(left, right, s)

    def _in_floats(self, points: list[Any]) -> tuple[list[Any], list[Any]]:
        """φ and φ' at some balls, with radii for what float64 leaves open and for those of the points."""
        z, off = (
            np.array([balls.to_float(part) for part in parts])
            for parts in zip(*((p.mid(), p.rad()) for p in points), strict=True)
        )
        off = off + 2.0**-52 * np.abs(z)
        value, slope = self(z), self.derivative(z)
        step = DIFFERENCE * np.maximum(1.0, np.abs(z))
        curve = np.abs(self.derivative(z + step) - self.derivative(z - step)) / (2 * step)
        slope_doubt = 2.0**-50 * np.abs(slope) + curve * off
        if self.known_derivative is None:
            slope_doubt += np.abs(slope - self._difference(z, 2 * DIFFERENCE))
        value_doubt = 2.0**-52 * np.abs(value) + np.abs(slope) * off
        return tuple(  # type: ignore[return-value]
            [balls.ball(*each) for each in zip(map(float, middle), map(float, radius), strict=True)]
            for middle, radius in ((value, value_doubt), (slope, slope_doubt))
        )

    def square(self, q: Array) -> Array:
        z, weight = symmetric_rule(self._parity)
        root = np.sqrt(q)
        parts = [_rows_dot(np.square(self(root[i : i + CHUNK, None] * z)), weight) for i in range(0, root.size, CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _integrals(self, q: Array) -> Moments:
        """The moments by quadrature, whatever a series makes of them."""
        z, weight = symmetric_rule(self._parity)
        square, slope, growth = np.empty(q.size), np.empty(q.size), np.empty(q.size)
        for i in range(0, q.size, CHUNK):
            part = slice(i, i + CHUNK)
            point = np.sqrt(q[part, None]) * z
            value, rate = self(point), self.derivative(point)
            square[part] = _rows_dot(np.square(value), weight)
            slope[part] = q[part] * _rows_dot(np.square(rate), weight)
            growth[part] = _rows_dot(value * rate * point, weight)
        return Moments(square, ratio(slope, square), ratio(growth, square))

    def moments(self, q: Array) -> Moments:
        exact = self._integrals(q)
        if not q.size:
            return exact
        order, error = self._choose_order(q, EXACT)
        if error.max() <= 10 * EXACT:
            return exact
        # What the truncated series gives at c = 1: a sequence with itself must be no different from a pair of equals.
        slope = np.empty(q.size)
        for i in range(0, q.size, CHUNK):
            part = slice(i, i + CHUNK)
            a = self._coefficients(q[part], order)
            energy = ratio(np.square(a), np.broadcast_to(exact.square[part], a.shape))
            rest, total = _remainder(energy.sum(axis=0))
            slope[part] = self._parity.orders(order) @ energy / total + (order + self._parity.first) * rest
        return exact._replace(slope=slope)

    def marks(
        self,
        q: Array,
        moments: Moments,
        *,
        slopes: bool,
        tolerance: float,
        least: int = 0,
        accumulated: Callable[[Array], float] = np.max,
    ) -> Array:
        shape, q, moments = q.shape, q.ravel(), Moments(*(part.ravel() for part in moments))
        step = self._parity.step
        least = (least - OWN_MARKS) // (2 if slopes else 1) - 1  # orders, without the remainder
        order, errors = self._choose_order(q, tolerance)
        order = max(order, step * least)
        error = float(errors.max())
        if error > tolerance:
            error = accumulated(errors.reshape(shape))
        if error > LARGEST_ERROR:
            raise ActivationError(
                f"the Hermite expansion of {self.name} is off by up to {error:.1g} of the largest value, at order "
                f"{order} and variance up to {q.max():.3g}: that is no result. Scale the inputs down, lower sigma_w or "
                "sigma_u, or take an activation with a closed form: relu, leaky_relu, abs, erf, sin or gelu"
            )
        if error > TOLERATED * tolerance:
            # In words that are the same for all parts of a Gram matrix, so that Python shows them once.
            text = (
                f"the Hermite expansion of {self.name} is accurate to about 1e{np.log10(error):.0f}, not "
                f"{tolerance:.0e}. Kinks and steep activations converge slowly: use relu, leaky_relu, abs, erf or gelu "
                "where they fit, or smaller sigmas"
            )
            warn(HermiteAccuracyWarning(text, error))
        a: Array = self._coefficients(q, order + 2)
        k = self._parity.orders(order)[:, None]
        psi = np.sqrt(moments.square)
        some = np.where(psi > 0, psi, 1.0)  # where ψ is zero, so are all coefficients
        # Divided, not multiplied by 1/ψ: one rounding error for all orders would show in the remainder.
        unit = a[: len(k)] / some
        # The remainder joins as one more order: V̂(1) = 1 holds exactly, and the expansion stays positive definite.
        rest, total = _remainder(np.einsum("kn,kn->n", unit, unit))
        unit /= np.sqrt(total)
        rate = 0.5 * (k * a[: len(k)] + np.sqrt((k + 1.0) * (k + 2.0)) * a[2 // step :])
        rate = rate / some - 0.5 * moments.growth * unit
        spread = 0.5 * np.einsum("kn,kn->n", rate, rate)
        rows = [*(part[None] for part in common_marks(q)), spread[None], unit, np.sqrt(rest)[None]]
        if slopes:
            rows += [rate, np.zeros((1, q.size))]
        return np.asarray(np.concatenate(rows).reshape(-1, *shape))

    def _choose_order(self, q: Array, tolerance: float) -> tuple[int, Array]:
        """Smallest order whose truncation error in V̂ and V̂' is below `tolerance`, and that error, at every variance."""
        # Both errors vary smoothly with q: a few quantiles and the extremes show the worst.
        sample = np.unique(np.sort(q)[np.linspace(0, q.size - 1, min(q.size, 33)).astype(int)])
        square, slope, _ = self._integrals(sample)
        for order in ORDERS:
            a = self._coefficients(sample, order)
            energy = ratio(np.square(a), np.broadcast_to(square, a.shape))
            missing = np.abs(1.0 - energy.sum(axis=0)) * (square > 0)
            missing_slope = np.abs(slope - self._parity.orders(order) @ energy) / np.maximum(slope, 1.0)
            # Twice: at c = -1 the remainder may carry the wrong sign.
            error = 2 * np.maximum(missing, missing_slope)
            if error.max() <= tolerance:
                break
        return order, np.interp(q, sample, error)

    def _coefficients(self, q: Array, order: int) -> Array:
        """(·, n) coefficients a_k(√q) for the orders k below `order` that there are."""
        nodes, basis = symmetric_rule(self._parity)[0], hermite_basis(self._parity, order)
        root = np.sqrt(np.pad(q, (0, -q.size % ROWS)))
        a = np.empty((basis.shape[1], root.size))
        for i in range(0, root.size, CHUNK):
            blocks = self(root[i : i + CHUNK].reshape(-1, ROWS, 1) * nodes) @ basis
            a[:, i : i + CHUNK] = blocks.reshape(-1, basis.shape[1]).T
        return a[:, : q.size]

    @property
    def odd(self) -> bool:  # type: ignore[override]
        return self.symmetry == "odd"

    @property
    def _parity(self) -> Parity:
        return PARITIES[self.symmetry]

    @property
    def parameters(self) -> Array:
        return np.array(self._parity, dtype=np.float64)

    def compiled_steps(self) -> tuple[Step, Step]:
        return _forward, _partials

    def in_jax(self, z: Any) -> Any:
        return (self.jax or self.function)(z)

    def _key(self) -> tuple[object, ...]:
        return (self.name, self.function, self.known_derivative, self.symmetry, self.exact)


def _rows_dot(table: Array, weight: Array) -> Array:
    """table @ weight, every row by itself: `@` rounds a row differently among others."""
    return np.asarray(np.einsum("nz,z->n", table, weight))


def _real(values: Any, name: str) -> Array:
    """What a function gave, as float64."""
    if np.iscomplexobj(values):
        raise ActivationError(f"{name} gives complex numbers, and activations are real: take their real part, say")
    return np.asarray(values, dtype=np.float64)


def _find_symmetry(function: Callable[[Array], Array], name: str) -> str | None:
    """ "odd" or "even" if φ is so to rounding wherever expansions look at it, at five scales from 0.1 to 1000."""
    half = gaussian_rule()[0]
    half = half[half > 0]
    found = {"odd", "even"}
    with np.errstate(all="ignore"):
        for z in (half * scale for scale in (0.1, 1.0, 10.0, 100.0, 1000.0)):
            up, down = (_real(function(sign * z), name) for sign in (1.0, -1.0))
            if up.shape != z.shape or not (np.isfinite(up).all() and np.isfinite(down).all()):
                return None  # whoever calls it there is told
            rounding = 4 * np.finfo(np.float64).eps * np.abs(up).max()
            for kind, difference in (("odd", up + down), ("even", up - down)):
                if np.abs(difference).max() > rounding:
                    found.discard(kind)
    return found.pop() if len(found) == 1 else None


def _find_fault(function: Callable[[Array], Array]) -> str | None:
    """What is wrong with a function whose derivative doesn't look square-integrable, and where; else None.

    Around the four steepest places in [-8, 8] ever shorter intervals are looked at. Across one of length h the integral
    of φ'² is at least (rise)²/h, which falls with h for a function that has a derivative, stays for √|z| and grows for
    a jump.
    """
    grid = np.linspace(-8.0, 8.0, 1025) + 1e-3 / 3
    values = function(grid)
    ranges = _ranges(values)
    for i in np.argsort(ranges)[-4:]:
        cell, middle, rise = grid[1] - grid[0], grid[i + 1], ranges[i]
        start = ranges.max() ** 2 / cell
        while cell > 1e-11:
            # Twice the interval, in cells of half the size: what is steep may lie just beside it.
            cell /= 2
            z = middle + cell * np.arange(-4, 5)
            spans = _ranges(function(z))
            k = int(np.argmax(spans))
            middle, rise = z[k + 1], spans[k]
        # Below this a rise is rounding of the function's values.
        if rise**2 / cell > 0.3 * start and rise > 1e-12 * np.abs(values).max():
            return f"{'jumps' if rise > 0.1 * ranges.max() else 'is as steep as a square root'} at z = {middle:.6g}"
    return None


def _ranges(values: Array) -> Array:
    """Largest less smallest of every three neighbours."""
    windows = np.lib.stride_tricks.sliding_window_view(values, 3)
    return np.asarray(windows.max(axis=1) - windows.min(axis=1))


def _remainder(energy: Array) -> tuple[Array, Array]:
    """What the orders miss of 1, and what to divide them by.

    A remainder that is rounding is shared out among the orders: as the highest of them it would count many times in the
    slope. Where there is no energy at all there is no remainder either.
    """
    rounding = np.abs(1.0 - energy) < ROUNDING
    rest = np.where(rounding | (energy == 0), 0.0, np.maximum(1.0 - energy, 0.0))
    return rest, np.where(rounding, energy, 1.0)


@inlined
def _arrange(d: float, odd: bool, stepped: bool) -> Any:
    """c, the variable x of the series and 1 - x, from a signed distance."""
    v = abs(d)
    c = 1.0 - v if d >= 0.0 else v - 1.0
    if stepped:
        return c, c * c, v * (2.0 - v)
    return c, c, v if d >= 0.0 else 2.0 - v


def _forward(
    parameters: Any, left: Any, right: Any, gap: Any, u: Any, theta: Any, w: Any, q: Any, first: int, n: int
) -> None:
    wide_vectors()
    # Loops from zero: with memory of its own, an unsigned index is not vectorised.
    begin, end, count = np.int64(first), np.int64(n), np.int64(n - first)
    gap, u, theta, w, q = gap[begin:end], u[begin:end], theta[begin:end], w[begin:end], q[begin:end]
    odd, stepped, careful = parameters[0] == 1.0, parameters[1] == 2.0, parameters[2] == 1.0
    marks = left.shape[0]
    # P(x) = P(1) - (1 - x) Q(x): with Q by Horner's rule from the tails of the series, nothing cancels at x = 1.
    x, tail, Q = np.empty(count), np.empty(count), np.empty(count)
    dQ, apart = np.empty(count), np.empty(count)
    K = right[2, begin:end]
    for k in range(count):
        x[k] = _arrange(u[k], odd, stepped)[1]
        tail[k] = Q[k] = dQ[k] = apart[k] = 0.0
    # Several orders at a time, because memory is slower than arithmetic; the lowest is not part of Q.
    j, block = marks - 1, 2 if careful else 4
    while (j - OWN_MARKS) % block != 0:
        a, A = left[j], right[j, begin:end]
        for k in range(count):
            gap_a = a - A[k]
            apart[k] += gap_a * gap_a
            tail[k] += a * A[k]
            dQ[k] = dQ[k] * x[k] + Q[k]
            Q[k] = Q[k] * x[k] + tail[k]
        j -= 1
    while careful and j > OWN_MARKS:
        a, A, b, B = left[j], right[j, begin:end], left[j - 1], right[j - 1, begin:end]
        for k in range(count):
            gap_a, gap_b = a - A[k], b - B[k]
            apart[k] += gap_a * gap_a + gap_b * gap_b
            above = tail[k] + a * A[k]
            middle = Q[k] * x[k] + above
            dQ[k] = (dQ[k] * x[k] + Q[k]) * x[k] + middle
            tail[k] = above + b * B[k]
            Q[k] = middle * x[k] + tail[k]
        j -= 2
    while j > OWN_MARKS:
        a, A, b, B = left[j], right[j, begin:end], left[j - 1], right[j - 1, begin:end]
        e, E, f, F = left[j - 2], right[j - 2, begin:end], left[j - 3], right[j - 3, begin:end]
        for k in range(count):
            t, s, p, d = x[k], tail[k], Q[k], dQ[k]
            d = d * t + p
            s += a * A[k]
            p = p * t + s
            d = d * t + p
            s += b * B[k]
            p = p * t + s
            d = d * t + p
            s += e * E[k]
            p = p * t + s
            dQ[k] = d * t + p
            s += f * F[k]
            Q[k] = p * t + s
            tail[k] = s
        j -= 4
    a, A, spread = left[OWN_MARKS], right[OWN_MARKS, begin:end], left[2]
    for k in range(count):
        gap_a = a - A[k]
        # 1 - P(1): half a squared distance; where that is rounding, its second derivative knows better.
        g = gap[k]
        own = 0.5 * (apart[k] + gap_a * gap_a) if careful else max(1.0 - (tail[k] + a * A[k]), 0.0)
        own = 0.5 * (spread + K[k]) * (g * g) if abs(g) < CLOSE else own
        c, _, m = _arrange(u[k], odd, stepped)
        slope = Q[k] - m * dQ[k]
        value = own + m * Q[k]
        if stepped:
            # V̂ = c^f P(c²): its derivative is f P + 2 c^(f+1) P'.
            series = 1.0 - value
            slope = series + 2.0 * x[k] * slope if odd else 2.0 * c * slope
            if odd:
                value = value + abs(u[k]) * series
                value = value if u[k] >= 0.0 else min(-value, FARTHEST)
        w[k] = value
        q[k] = slope * theta[k]


def _partials(parameters: Any, left: Any, right: Any, gap: Any, u: Any, out: Any, first: int, n: int) -> None:
    wide_vectors()
    # Loops from zero: with memory of its own, an unsigned index is not vectorised.
    begin, end, count = np.int64(first), np.int64(n), np.int64(n - first)
    gap, u, spread, out = gap[begin:end], u[begin:end], right[2, begin:end], out[:, begin:end]
    odd, stepped = parameters[0] == 1.0, parameters[1] == 2.0
    orders = (left.shape[0] - OWN_MARKS) // 2
    # As in `_forward`, with one more derivative; `a` and `b` are the series of either side's rates.
    x, apart = np.empty(count), np.empty(count)
    tail, Q, dQ, ddQ = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    tail_a, Qa, dQa, one_a = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    tail_b, Qb, dQb, one_b = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for k in range(count):
        x[k] = _arrange(u[k], odd, stepped)[1]
        tail[k] = Q[k] = dQ[k] = ddQ[k] = apart[k] = 0.0
        tail_a[k] = Qa[k] = dQa[k] = one_a[k] = tail_b[k] = Qb[k] = dQb[k] = one_b[k] = 0.0
    for j in range(orders - 1, -1, -1):
        at = OWN_MARKS + j
        a, da = left[at], left[orders + at]
        A, dA = right[at, begin:end], right[orders + at, begin:end]
        for k in range(count):
            # By rates of a unit vector, which are orthogonal to it: differences, that vanish for equal sides.
            one_a[k] += da * (A[k] - a)
            one_b[k] += dA[k] * (a - A[k])
            apart[k] += (a - A[k]) * (a - A[k])
        if j == 0:
            break
        for k in range(count):
            ddQ[k] = ddQ[k] * x[k] + dQ[k]
            dQ[k] = dQ[k] * x[k] + Q[k]
            tail[k] += a * A[k]
            Q[k] = Q[k] * x[k] + tail[k]
        for k in range(count):
            dQa[k] = dQa[k] * x[k] + Qa[k]
            tail_a[k] += da * A[k]
            Qa[k] = Qa[k] * x[k] + tail_a[k]
        for k in range(count):
            dQb[k] = dQb[k] * x[k] + Qb[k]
            tail_b[k] += a * dA[k]
            Qb[k] = Qb[k] * x[k] + tail_b[k]
    for k in range(count):
        d, g = u[k], gap[k]
        c, _, m = _arrange(d, odd, stepped)
        own = 0.5 * (left[2] + spread[k]) * (g * g) if abs(g) < CLOSE else 0.5 * apart[k]
        value = own + m * Q[k]
        first_slope, second = Q[k] - m * dQ[k], 2.0 * (dQ[k] - m * ddQ[k])
        series_a, series_b = one_a[k] - m * Qa[k], one_b[k] - m * Qb[k]
        slope_a, slope_b = Qa[k] - m * dQa[k], Qb[k] - m * dQb[k]
        rest_a, rest_b, sign = m * Qa[k], m * Qb[k], 1.0
        if stepped:
            series = 1.0 - value
            lead = c if odd else 1.0
            by = 2.0 * (x[k] if odd else c)
            second = lead * ((6.0 if odd else 2.0) * first_slope + 4.0 * x[k] * second)
            first_slope = (series if odd else 0.0) + by * first_slope
            slope_a = (series_a if odd else 0.0) + by * slope_a
            slope_b = (series_b if odd else 0.0) + by * slope_b
            if odd:
                sign = 1.0 if d >= 0.0 else -1.0
                value = sign * (value + abs(d) * series)
                value = value if d >= 0.0 else min(value, FARTHEST)
                rest_a = rest_a * abs(c) + abs(d) * one_a[k]
                rest_b = rest_b * abs(c) + abs(d) * one_b[k]
        out[0, k] = value
        out[1, k] = first_slope
        out[2, k] = -second
        out[3, k] = sign * rest_a
        out[4, k] = sign * rest_b
        out[5, k] = slope_a
        out[6, k] = slope_b
        out[7, k] = -sign * one_a[k]
        out[8, k] = -sign * one_b[k]


def _sigmoid_derivative(z: Array) -> Array:
    return np.asarray(special.expit(z) * special.expit(-z))


def _tanh_derivative(z: Array) -> Array:
    return np.asarray(1 / np.square(np.cosh(np.clip(z, -350, 350))))


def _exact_tanh(points: list[Any]) -> tuple[list[Any], list[Any]]:
    return [z.tanh() for z in points], [z.sech() ** 2 for z in points]


def _exact_sigmoid(points: list[Any]) -> tuple[list[Any], list[Any]]:
    return [((z / 2).tanh() + 1) / 2 for z in points], [(z / 2).sech() ** 2 / 4 for z in points]


def _jax_tanh(z: Any) -> Any:
    import jax.numpy as jnp

    return jnp.tanh(z)


def _jax_sigmoid(z: Any) -> Any:
    import jax

    return jax.nn.sigmoid(z)


tanh = register(HermiteActivation("tanh", np.tanh, _tanh_derivative, symmetry="odd", exact=_exact_tanh, jax=_jax_tanh))
sigmoid = register(
    HermiteActivation("sigmoid", special.expit, _sigmoid_derivative, exact=_exact_sigmoid, jax=_jax_sigmoid)
)
