"""Gram matrices: as a picture by class, and by their eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .axes import COLOURS, axes_or_new

Array = NDArray[np.float64]


def gram(
    K: Any, y: Any = None, ax: Any = None, *, class_names: Sequence[str] | None = None, label: str = "kernel value"
) -> Any:
    """Heat map of a Gram matrix, rows and columns ordered by class; returns the axes.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix.
    y : array-like of shape (n,), optional
        Labels; without them the order stays.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    class_names : sequence of str, optional
        Names of the classes in sorted order, the labels themselves unless given.
    label : str
        What the colours mean.

    Notes
    -----
    Colours are cividis, which readers of any colour vision see alike. The least twentieth of the values share the
    darkest colour: one odd sequence would take most of the range.
    """
    K = square(K)
    ax = axes_or_new(ax)
    order, names, counts = _by_class(y, len(K))
    values = K[np.ix_(order, order)]
    lowest = float(np.quantile(values, 0.05))
    image = ax.imshow(values, cmap="cividis", interpolation="nearest", vmin=lowest)
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.9, extend="min" if values.min() < lowest else "neither")
    if len(counts):
        ends = np.cumsum(counts)
        for end in ends[:-1]:
            ax.axhline(end - 0.5, color="white", linewidth=1.5)
            ax.axvline(end - 0.5, color="white", linewidth=1.5)
        centres = ends - counts / 2 - 0.5
        shown = names if class_names is None else list(class_names)
        ax.set_xticks(centres, shown)
        ax.set_yticks(centres, shown, rotation=90, va="center")
        ax.tick_params(length=0)
    ax.set(xlabel="sequence" + (", by class" if len(counts) else ""), ylabel="sequence", title=f"{len(K)} sequences")
    return ax


def spectrum(K: Any, ax: Any = None, *, label: str | None = None, colour: str = COLOURS[0]) -> Any:
    """Eigenvalues of a Gram matrix, largest first, as shares of their sum, with the effective rank; returns the axes.

    Call it again with the same axes to compare matrices.
    """
    values = eigenvalue_shares(K)
    rank = effective_rank(K)
    ax = axes_or_new(ax)
    name = "effective rank" if label is None else f"{label}, effective rank"
    # On a logarithmic axis zeros have no place; rounding is all that lies below 1e-17.
    shown = np.maximum(values, 1e-17)
    ax.semilogy(np.arange(1, len(shown) + 1), shown, "o-", markersize=3, color=colour, label=f"{name} {rank:.1f}")
    ax.axvline(rank, color=colour, linestyle=":", linewidth=1)
    ax.set(xlabel="eigenvalue, largest first", ylabel="share of their sum", title="spectrum of the Gram matrix")
    ax.legend(frameon=False)
    return ax


def eigenvalue_shares(K: Any) -> Array:
    """Eigenvalues over their sum, largest first; negative ones, which are rounding, as zero."""
    values = np.maximum(np.linalg.eigvalsh(square(K))[::-1], 0.0)
    total = values.sum()
    return np.asarray(values / total if total > 0 else values)


def effective_rank(K: Any) -> float:
    """exp(entropy of the eigenvalues as shares): n for the identity, 1 for a matrix of rank one, 0 for zero."""
    shares = eigenvalue_shares(K)
    shares = shares[shares > 0]
    return float(np.exp(-np.sum(shares * np.log(shares)))) if shares.size else 0.0


def square(K: Any) -> Array:
    """`K` as a finite square matrix."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
        raise ValueError(f"K must be a square matrix, kernel(X) for instance; its shape is {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("K must be finite")
    return np.asarray(K)


def _by_class(y: Any, count: int) -> tuple[NDArray[np.intp], list[str], NDArray[np.intp]]:
    """Order of the rows, names of the classes, and how many members each has."""
    if y is None:
        return np.arange(count), [], np.empty(0, dtype=np.intp)
    y = np.asarray(y)
    if y.shape != (count,):
        raise ValueError(f"y must hold one label for each of the {count} rows; its shape is {y.shape}")
    names, counts = np.unique(y, return_counts=True)
    return np.argsort(y, kind="stable"), [str(name) for name in names], counts
