"""Finite networks beside their limit: the networks that `RNTK` and `NTK` describe, at any width (JAX).

In goes a kernel and a width, out comes the network the kernel is the limit of: with weights to draw, outputs,
empirical kernels, and training by gradient descent. A network is always made from the kernel object, so the two can't
drift apart.

The path: `inputs` (ragged data for `lax.scan`) and `weights` (what is drawn, and the factors in front) → `forward`
(equations (1) to (3)) → `network` (what users hold) → `empirical` (kernels, as inner products of gradients that are
never formed) → `average`, `comparison`, `training`. JAX is loaded here and by what trains networks in other rooms.
"""

# ruff: noqa: E402  JAX is asked for before anything that loads it
from __future__ import annotations

from ..errors import DivergenceError, need_extra

need_extra("finite", "jax")

from .average import Average, average
from .comparison import Comparison, compare
from .empirical import empirical_kernels, empirical_nngp, empirical_ntk
from .network import FiniteNetwork, network
from .precision import precision
from .training import Training, train

__all__ = [
    "Average",
    "Comparison",
    "DivergenceError",
    "FiniteNetwork",
    "Training",
    "average",
    "compare",
    "empirical_kernels",
    "empirical_nngp",
    "empirical_ntk",
    "network",
    "precision",
    "train",
]
