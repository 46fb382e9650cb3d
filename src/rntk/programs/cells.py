"""Cells of the literature, each a program of a dozen lines."""

from __future__ import annotations

from typing import Any

from .language import Vector, matrix, nonlinearity, normalise, vector


def elman(
    x: Vector, h: Vector, *, activation: Any = "relu", sigma_w: float = 2**0.5, sigma_u: float = 1.0, sigma_b: float = 0.0
) -> Vector:
    """h ← φ(W h + U x + b)."""
    g = matrix("W", sigma_w) @ h + matrix("U", sigma_u) @ x
    return nonlinearity(activation)(g + vector("b", sigma_b) if sigma_b else g)
