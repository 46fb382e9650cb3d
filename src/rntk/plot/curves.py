"""Curves: what several results have to say, on one pair of axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .axes import COLOURS, axes_or_new

STYLES = ("-", "--", ":", "-.")


def sensitivity(curves: Any, ax: Any = None) -> Any:
    """Sensitivity against time for one or several kernels; returns the axes.

    Parameters
    ----------
    curves : Sensitivity or mapping
        One, or several by name.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    """
    ax = axes_or_new(ax)
    for k, (name, curve) in enumerate(_named(curves)):
        curve.plot(ax, label=name or curve.kernel, colour=look(k)[0])
        ax.get_lines()[-1].set_linestyle(look(k)[1])
    ax.set_title("sensitivity")
    ax.legend(frameon=False)
    return ax


def training(curves: Any, ax: Any = None) -> Any:
    """Losses against steps; returns the axes.

    Parameters
    ----------
    curves : mapping or one curve
        Names to (steps, losses), or to results of `rntk.finite.train` and `rntk.linear.train`, which know their own; or
        one of these. For the infinite network give `(steps, dynamics.loss(...).expected)`.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    """
    ax = axes_or_new(ax)
    for k, (name, curve) in enumerate(_named(curves)):
        colour, style = look(k)
        if isinstance(curve, tuple):
            steps, losses = curve
        else:
            steps, losses = curve.steps, getattr(curve, "loss", None)
            losses = curve.error if losses is None else losses
        steps, losses = np.asarray(steps, dtype=float), np.asarray(losses, dtype=float)
        if steps.shape != losses.shape or steps.ndim != 1:
            raise ValueError(f"{name or 'curve'} has {steps.shape} steps and {losses.shape} losses; they must agree")
        ax.semilogy(steps, losses, style, color=colour, label=name or "loss")
    ax.set(xlabel="step of gradient descent", ylabel="loss", title="training")
    ax.legend(frameon=False)
    return ax


def memory_profile(profile: Any, ax: Any = None) -> Any:
    """Scale factors and taps by lag, of `rntk.linear.memory_profile(...)`; returns the axes."""
    return profile.plot(ax)


def kernel_by_angle(kernels: Any, ax: Any = None, *, steps: int = 1, points: int = 181) -> Any:
    """Kernels of two sequences against the angle between them; returns the axes.

    Every step of x is (1, 0), every step of x' is (cos α, sin α). Values are divided by that at α = 0, so that kernels
    of any scale compare.

    Parameters
    ----------
    kernels : kernel or mapping
        One kernel of rntk, or several by name.
    ax : Axes, optional
        Where to draw; a new figure unless given.
    steps : int
        Length of both sequences.
    points : int
        How many angles.
    """
    ax = axes_or_new(ax)
    angle = np.linspace(0.0, np.pi, points)
    x = np.tile([1.0, 0.0], (1, steps, 1))
    others = np.repeat(np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, None, :], steps, axis=1)
    for k, (name, kernel) in enumerate(_named(kernels)):
        colour, style = look(k)
        values = np.asarray(kernel(x, others))[0]
        ax.plot(np.degrees(angle), values / values[0], style, color=colour, label=name or repr(kernel))
    ax.set(xlabel="angle α in degrees", ylabel="Θ(α) / Θ(0)", title=f"{steps} step{'s' if steps > 1 else ''}")
    ax.set_xticks([0, 45, 90, 135, 180])
    ax.legend(frameon=False)
    return ax


def look(k: int) -> tuple[str, str]:
    """Colour and line style of curve k: styles repeat what colours say."""
    return COLOURS[k % len(COLOURS)], STYLES[k % len(STYLES)]


def _named(things: Any) -> list[tuple[str | None, Any]]:
    if isinstance(things, Mapping):
        return [(str(name), each) for name, each in things.items()]
    return [(None, things)]
