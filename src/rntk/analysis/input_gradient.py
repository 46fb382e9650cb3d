"""∂Θ(x, y)/∂x_t for every step t, by one reverse pass (theory.md, section 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..activations import Moments
from ..architecture import Architecture
from ..engine.fused.units import Units, unit_parts
from ..engine.fused.walk import Walk, walk
from ..errors import KernelOverflowError
from ..kernels import NetworkKernel
from ..sequences import SequenceBatch

Array = NDArray[np.float64]


def input_gradient(kernel: NetworkKernel, x: Any, y: Any) -> Array:
    """Gradient of the tangent kernel Θ(x, y) by its first argument, O(T) for the readout "last".

    Parameters
    ----------
    kernel : an `RNTK` or `NTK`; its readout must give one number per pair ("last", or "mean" in O(T T')).
    x, y : one sequence each, (T,) or (T, m); lengths may differ. For `NTK`, one vector each.

    Returns
    -------
    gradient : float64 array of the shape of `x`. As in `kernel(X, Y)` the two count as different sequences: there is no
        same-sequence term of `sigma_h`. Where the kernel has a cusp (ReLU at equal or opposite directions) the
        derivative along the cusp is taken as zero.

    Examples
    --------
    >>> from rntk import RNTK, input_gradient
    >>> input_gradient(RNTK("identity", sigma_w=1.0), [1.0, 2.0], [3.0, 4.0])
    array([9., 8.])
    """
    architecture = kernel._architecture()
    if architecture.readout == "sequence":
        raise ValueError('input_gradient needs one number per pair: take readout="last" or "mean"')
    first, second = kernel._read([x], "x"), kernel._read([y], "y")
    if first.n_channels != second.n_channels:
        raise ValueError(f"x has {first.n_channels} channels and y has {second.n_channels}; they must agree")
    pairs = [(first, second)]
    if kernel._reads_both_ways:
        pairs.append((first.reversed(), second.reversed()))
    value, gradient = 0.0, np.zeros(first.values.shape)
    for way, (a, b) in enumerate(pairs):
        part, slope = _Pair(architecture, a, b, same=False).gradient()
        value, gradient = value + part, gradient + (slope[::-1] if way else slope)
    if kernel.normalize:
        # K / √(K_xx K_yy): the quotient rule; K_xx moves by twice its derivative in one argument.
        own, own_gradient = 0.0, np.zeros_like(gradient)
        for way, (a, _) in enumerate(pairs):
            part, slope = _Pair(architecture, a, a, same=True).gradient()
            own, own_gradient = own + part, own_gradient + 2 * (slope[::-1] if way else slope)
        other = sum(_Pair(architecture, b, b, same=True).gradient()[0] for _, b in pairs)
        if own > 0 and other > 0:
            gradient = (gradient - value / own * own_gradient / 2) / np.sqrt(own * other)
    if not np.isfinite(gradient).all():
        raise KernelOverflowError(
            f"the gradient overflows for a sequence of length {first.max_length}; take a smaller sigma_w", 0
        )
    return gradient.reshape(np.shape(x))


@dataclass(frozen=True)
class _End:
    """One sequence of the pair: everything about it alone, (L, T) each."""

    walk: Walk
    units: Units
    marks: Array  # (M, L, T)
    psi: Array  # (T,), norms of the last layer


@dataclass(frozen=True)
class _Step:
    """What the forward pass keeps of one layer at one step: lanes of u, Θ̂ and the activation's partials."""

    theta: Array
    partials: Array  # (7, n)
    w_in: Array
    q_in: Array
    free: Array  # whether the lane is computed from its parts (False: untied, nothing shared)


class _Pair:
    """The recursion of one pair, forwards and backwards.

    For `last` there is one lane, the second sequence's step aligned with the first one's; for `mean` there is one lane
    per step of the second sequence, and state moves one lane on per step, as in the fused sweep.
    """

    def __init__(self, architecture: Architecture, x: SequenceBatch, y: SequenceBatch, *, same: bool) -> None:
        self.architecture, self.same = architecture, same
        self.table = architecture.readout == "mean"
        joint = SequenceBatch(
            np.concatenate([x.values, y.values]).astype(np.float64),
            np.array([0, len(x.values), len(x.values) + len(y.values)]),
        )
        path = walk(architecture, joint)
        units = unit_parts(architecture, joint, path, with_bias=True)
        marks = architecture.activation.marks(path.q, path.moments, slopes=True, tolerance=1e-13)
        with np.errstate(over="ignore"):
            psi = np.ldexp(np.sqrt(path.moments.square[-1]), path.exponent[-1])
        cut = len(x.values)
        self.channels = x.n_channels
        self.x, self.y = (_end(path, units, marks, psi, part) for part in (slice(0, cut), slice(cut, None)))
        self.steps_x, self.steps_y = cut, len(y.values)
        self._partials = architecture.activation.lanes(np.dtype(np.float64)).partials
        self._parameters = architecture.activation.parameters

    def gradient(self) -> tuple[float, Array]:
        """Θ(x, y) and its derivative by x, (T, m)."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, history, ends = self._forward()
            return value, self._backward(value, history, ends)

    def _columns(self, t: int) -> NDArray[np.int64]:
        """Steps of y that step t of x meets."""
        if self.table:
            return np.arange(self.steps_y)
        aligned = t + self.steps_y - self.steps_x
        return np.array([aligned]) if aligned >= 0 else np.empty(0, dtype=np.int64)

    def _forward(self) -> tuple[float, dict[tuple[int, int], _Step], list[tuple[Array, Array]]]:
        depth, n = self.architecture.depth, self.steps_y if self.table else 1
        w, q = np.ones((depth, n)), np.zeros((depth, n))
        if self.same:
            w[:, 0] = 0.0
        history: dict[tuple[int, int], _Step] = {}
        ends: list[tuple[Array, Array]] = []
        value = 0.0
        for t in range(self.steps_x):
            at = self._columns(t)
            if at.size == 0:
                ends.append((np.empty(0), np.empty(0)))
                continue
            for layer in range(depth):
                w_in, q_in = w[layer].copy(), q[layer].copy()
                if self.table and t > 0:
                    w_in, q_in = np.concatenate([[1.0], w_in[:-1]]), np.concatenate([[0.0], q_in[:-1]])
                elif self.table:
                    w_in = np.concatenate([w_in[:1], np.ones(n - 1)])
                under = (w[layer - 1], q[layer - 1]) if layer else (np.zeros(n), np.zeros(n))
                u, theta = self._mix(layer, t, at, w_in, q_in, *under)
                free = np.full(n, True)
                if not self.architecture.tied:
                    free = at == t
                    u, theta = np.where(free, u, 1.0), np.where(free, theta, 0.0)
                out = np.zeros((7, 1, n))
                right = np.ascontiguousarray(self.y.marks[:, layer][:, at])
                self._partials(self._parameters, self.x.marks[:, layer, t : t + 1], right, u[None], out, 1, 0, n)
                partials = out[:, 0]
                # On a cusp nothing moves: unit vectors that coincide stay a distance of second order apart.
                partials[2] = np.where((u <= 1e-15) | (u >= 2 - 1e-15), 0.0, partials[2])
                if len(right) == 0:
                    partials[3:] = 0.0
                history[layer, t] = _Step(theta, partials, w_in, q_in, free)
                w[layer], q[layer] = partials[0], partials[1] * theta
            ends.append((w[-1].copy(), q[-1].copy()))
            value += float(np.sum(self._weights(t, at) * self._readout(*ends[-1])))
        return value, history, ends

    def _weights(self, t: int, at: NDArray[np.int64]) -> Array:
        """What (t, s) counts for in the readout: ψ ψ', averaged or at the last step only."""
        if self.table:
            return np.asarray(self.x.psi[t] * self.y.psi[at] / (self.steps_x * self.steps_y))
        return np.asarray(self.x.psi[t] * self.y.psi[at] * (t == self.steps_x - 1))

    def _readout(self, w: Array, q: Array) -> Array:
        return self.architecture.readout_factor * (1 - w) + self.architecture.sigma_v**2 * q

    def _factors(self, layer: int) -> tuple[float, float, float, float, float, float]:
        """Forward factors (of W, U, b) and gradient factors, per unit of what they multiply."""
        network = self.architecture
        su2 = network.sigma_u[layer] ** 2
        forward = su2 / self.channels if layer == 0 else su2
        gw, gu, gb = network.gradient_factors(layer, self.channels)
        return network.sigma_w[layer] ** 2, forward, network.sigma_b[layer] ** 2, gw, gu, gb

    def _mix(
        self, layer: int, t: int, at: NDArray[np.int64], w_in: Array, q_in: Array, w_below: Array, q_below: Array
    ) -> tuple[Array, Array]:
        """(21) and the general form of (22)."""
        fw, fu, fb, gw, gu, gb = self._factors(layer)
        x, y = self.x.units, self.y.units
        rho, rho2 = x.recurrent[layer, t], y.recurrent[layer, at]
        bias, bias2 = x.bias[layer, t], y.bias[layer, at]
        u = 0.5 * (fw * (rho - rho2) ** 2 + fb * (bias - bias2) ** 2) + fw * rho * rho2 * w_in
        theta = fw * rho * rho2 * q_in + gw * rho * rho2 * (1 - w_in) + gb * bias * bias2
        if layer == 0:
            gap = x.inputs[:, t, None] - y.inputs[:, at]
            u = u + 0.5 * fu * np.square(gap).sum(axis=0)
            theta = theta + gu * (x.inputs[:, t] @ y.inputs[:, at])
        else:
            beta, beta2 = x.below[layer, t], y.below[layer, at]
            u = u + fu * (0.5 * (beta - beta2) ** 2 + beta * beta2 * w_below)
            theta = theta + beta * beta2 * (fu * q_below + gu * (1 - w_below))
        return u, theta

    def _backward(self, value: float, history: dict[tuple[int, int], _Step], ends: list[tuple[Array, Array]]) -> Array:
        network, depth, steps = self.architecture, self.architecture.depth, self.steps_x
        n = self.steps_y if self.table else 1
        units, y = self.x.units, self.y.units
        growth = self.x.walk.moments.growth
        # Adjoints of log q, and of the parts of x's unit vectors.
        log_q, recurrent, below = np.zeros((depth, steps)), np.zeros((depth, steps)), np.zeros((depth, steps))
        bias, inputs = np.zeros((depth, steps)), np.zeros((self.channels, steps))
        w_bar, q_bar = np.zeros((depth, n)), np.zeros((depth, n))
        for t in range(steps - 1, -1, -1):
            at = self._columns(t)
            if at.size == 0:
                break
            weight = self._weights(t, at)
            w_bar[-1] -= weight * network.readout_factor
            q_bar[-1] += weight * network.sigma_v**2
            log_q[-1, t] += growth[-1, t] / 2 * np.sum(weight * self._readout(*ends[t]))
            for layer in range(depth - 1, -1, -1):
                step = history[layer, t]
                _, slope, curve, w_log, _, slope_log, _ = step.partials
                u_bar = (slope * w_bar[layer] + curve * step.theta * q_bar[layer]) * step.free
                theta_bar = slope * q_bar[layer] * step.free
                log_q[layer, t] += np.sum(w_log * w_bar[layer] + slope_log * step.theta * q_bar[layer])
                fw, fu, fb, gw, gu, gb = self._factors(layer)
                rho, rho2 = units.recurrent[layer, t], y.recurrent[layer, at]
                similar = 1 - step.w_in
                recurrent[layer, t] = np.sum(
                    rho2 * (theta_bar * (fw * step.q_in + gw * similar) - u_bar * fw * similar)
                )
                bias[layer, t] = np.sum(y.bias[layer, at] * (theta_bar * gb - u_bar * fb))
                if layer == 0:
                    inputs[:, t] = y.inputs[:, at] @ (theta_bar * gu - u_bar * fu)
                else:
                    beta, beta2 = units.below[layer, t], y.below[layer, at]
                    under = history[layer - 1, t]
                    near, q_under = 1 - under.partials[0], under.partials[1] * under.theta
                    below[layer, t] = np.sum(beta2 * (theta_bar * (fu * q_under + gu * near) - u_bar * fu * near))
                    w_bar[layer - 1] += beta * beta2 * (u_bar * fu - theta_bar * gu)
                    q_bar[layer - 1] += theta_bar * beta * beta2 * fu
                w_bar[layer] = rho * rho2 * (u_bar * fw - theta_bar * gw)
                q_bar[layer] = theta_bar * rho * rho2 * fw
                if self.table:  # the state came from one lane before
                    w_bar[layer] = np.concatenate([w_bar[layer, 1:], [0.0]])
                    q_bar[layer] = np.concatenate([q_bar[layer, 1:], [0.0]])
        return self._through_variances(log_q, recurrent, below, bias, inputs)

    def _through_variances(self, log_q: Array, recurrent: Array, below: Array, bias: Array, inputs: Array) -> Array:
        """From the unit vectors of x back to x itself: their parts and log q depend on all earlier steps."""
        network, units, growth = self.architecture, self.x.units, self.x.walk.moments.growth
        gradient = np.zeros((self.steps_x, self.channels))
        for t in range(self.steps_x - 1, -1, -1):
            for layer in range(network.depth - 1, -1, -1):
                rho, beta = units.recurrent[layer, t], units.below[layer, t]
                by_rho, by_beta = rho * recurrent[layer, t], beta * below[layer, t]
                log_q[layer, t] -= 0.5 * (by_rho + by_beta + units.bias[layer, t] * bias[layer, t])
                if layer == 0:
                    log_q[0, t] -= 0.5 * units.inputs[:, t] @ inputs[:, t]
                total = log_q[layer, t]
                if t > 0:
                    share = network.sigma_w[layer] ** 2 * rho**2
                    log_q[layer, t - 1] += growth[layer, t - 1] * (share * total + 0.5 * by_rho)
                if layer > 0:
                    share = network.sigma_u[layer] ** 2 * beta**2
                    log_q[layer - 1, t] += growth[layer - 1, t] * (share * total + 0.5 * by_beta)
                else:
                    moving = inputs[:, t] + 2 * network.sigma_u[0] ** 2 / self.channels * total * units.inputs[:, t]
                    gradient[t] = units.bias[0, t] * moving
        return gradient


def _end(path: Walk, units: Units, marks: Array, psi: Array, part: slice) -> _End:
    return _End(
        Walk(path.q[:, part], path.exponent[:, part], Moments(*(each[:, part] for each in path.moments))),
        Units(units.recurrent[:, part], units.below[:, part], units.inputs[:, part], units.bias[:, part]),
        np.ascontiguousarray(marks[:, :, part]),
        psi[part],
    )
