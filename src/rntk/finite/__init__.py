"""Finite networks beside their limit: the networks that `RNTK` and `NTK` describe, at any width (JAX).

In goes a kernel and a width, out comes the network the kernel is the limit of: with weights to draw, outputs,
empirical kernels, and training by gradient descent. A network is always made from the kernel object, so the two can't
drift apart.

The path: `inputs` (ragged data for `lax.scan`) and `weights` (what is drawn, and the factors in front) → `forward`
(equations (1) to (3)) → `network` (what users hold) → `gradients` (backward signals of every unit) → `overlaps` (inner
products of gradients that are never formed) → `kernels` (blocks that fit in memory) → `average`, `comparison`,
`training`. Only this package needs JAX, and it is loaded nowhere else.
"""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'rntk.finite needs JAX, which can\'t be imported ({error}): pip install "rntk[finite]"', name="jax"
    ) from error

from .average import Average, average_nngp, average_ntk
from .comparison import Comparison, compare
from .kernels import empirical_kernels, empirical_nngp, empirical_ntk
from .network import Network, network
from .precision import precision
from .training import DivergenceError, Training, train

__all__ = [
    "Average",
    "Comparison",
    "DivergenceError",
    "Network",
    "Training",
    "average_nngp",
    "average_ntk",
    "compare",
    "empirical_kernels",
    "empirical_nngp",
    "empirical_ntk",
    "network",
    "precision",
    "train",
]
