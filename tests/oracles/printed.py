"""Formulas of the papers as they are printed."""

from __future__ import annotations

import numpy as np
from mpmath import mpf

from .duals import relu_dual


def paper_sum(x, y, sw, su, sb, sv, depth: int, printed: bool) -> float:
    """Θ = Σ_l Σ_t Π[l,t] Σ[l,t] + 𝒦 for ReLU and equal lengths, with Π of appendix B.3 in float64."""

    def covariances(a, b):
        """Σ[l, t], without an initial state."""
        table = np.zeros((depth, len(a)))
        for t in range(len(a)):
            for layer in range(depth):
                past = value(layer, t - 1, a, b, table) if t else 0.0
                below = value(layer - 1, t, a, b, table) if layer else a[t] @ b[t] / a.shape[1]
                table[layer, t] = sw**2 * past + su**2 * below + sb**2
        return table

    def value(layer, t, a, b, table):
        if a is b:
            return table[layer, t] / 2
        return float(relu_dual(mpf(qx[layer, t]), mpf(qy[layer, t]), mpf(table[layer, t]))[0])

    qx, qy = covariances(x, x), covariances(y, y)
    sigma = covariances(x, y)
    last = len(x) - 1
    pi = np.zeros((depth + 1, len(x) + 1))  # padded by zeros: what lies beyond the last layer or step
    for layer in reversed(range(depth)):
        for t in reversed(range(len(x))):
            _, slope = relu_dual(mpf(qx[layer, t]), mpf(qy[layer, t]), mpf(sigma[layer, t]))
            above = pi[layer + 1, t + 1] if printed else pi[layer + 1, t]
            seed = sv**2 if layer == depth - 1 and t == last else 0.0
            pi[layer, t] = float(slope) * (seed + sw**2 * pi[layer, t + 1] + su**2 * above)
    return np.sum(pi[:-1, :-1] * sigma) + sv**2 * value(depth - 1, last, x, y, sigma)
