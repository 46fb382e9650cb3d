"""What a search tries: lists of candidates, each a view and a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from ...kernels import NTK, RNTK
from ...sequences import SequenceBatch
from .polynomial import Polynomial
from .views import View, scaled_view

FAMILIES = ("rntk", "ntk", "rbf", "polynomial")

#: Appendix A of the RNTK paper.
PAPER_C = (0.01, 0.1, 1.0, 10.0, 100.0)
PAPER_RIDGES = (0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1, 2, 3, 4, 5, 6, 7, 8, 10, 100)
PAPER_SIGMA_W = (1.34, 1.35, 1.36, 1.37, 1.38, 1.39, 1.40, 1.41, 2**0.5, 1.42, 1.43, 1.44, 1.45, 1.46, 1.47)
PAPER_SIGMA_B = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1, 2)
PAPER_SIGMA_H = (0, 0.01, 0.1, 0.5, 1)
PAPER_ALPHA = (0.01, 0.05, 0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 1, 2, 3, 4, 5, 10, 20, 30, 40, 100)


@dataclass(frozen=True)
class Candidate:
    """One kernel on one view; `settings` says which in plain words."""

    view: View
    kernel: Any
    settings: dict[str, Any] = field(hash=False, compare=False)


def paper_grid(family: str) -> list[Candidate]:
    """The kernels of appendix A: 900 RNTKs, 540 NTKs, 18 RBFs, 30 polynomials, all on sequences of unit norm."""
    return [Candidate(View("unit norm"), kernel, settings) for settings, kernel in _paper_kernels(check_family(family))]


def _paper_kernels(family: str) -> Iterator[tuple[dict[str, Any], Any]]:
    if family == "rntk":
        for w, b, h in product(PAPER_SIGMA_W, PAPER_SIGMA_B, PAPER_SIGMA_H):
            yield {"sigma_w": w, "sigma_b": b, "sigma_h": h}, RNTK(sigma_w=w, sigma_b=b, sigma_h=h)
    elif family == "ntk":
        for depth, w, b in product(range(1, 11), (0.5, 1, 2**0.5, 2, 2.5, 3), (0, 0.01, 0.1, 0.2, 0.5, 0.8, 1, 2, 5)):
            yield {"depth": depth, "sigma_w": w, "sigma_b": b}, NTK(depth=depth, sigma_w=w, sigma_b=b)
    elif family == "rbf":
        for alpha in PAPER_ALPHA:
            yield {"alpha": alpha}, RBF(length_scale=(2 * alpha) ** -0.5)
    else:
        for degree, offset in product(range(1, 6), (0, 0.1, 0.2, 0.5, 1, 2)):
            yield {"degree": degree, "offset": offset}, Polynomial(degree=degree, offset=offset)


def fast_grid(family: str, batch: SequenceBatch, max_length: int) -> list[Candidate]:
    """What `search="fast"` tries on the sequences of `batch`, view by view.

    The mean readout costs O(T²), so it sees long sequences averaged down, at two resolutions: models that look at
    different scales agree by more than chance only where both are right.
    """
    coarse, fine = (-(-batch.max_length // steps) for steps in (max(1, max_length // 2), max_length))
    blocks = sorted({coarse, fine}, reverse=True)
    found: list[Candidate] = []

    def add(view: View | None, kernels: Iterator[tuple[dict[str, Any], Any]]) -> None:
        if view is not None:
            found.extend(Candidate(view, kernel, {**_said(view), **settings}) for settings, kernel in kernels)

    for name in ("values", "differences"):
        if check_family(family) != "rntk":
            add(View(name), _vector_kernels(family))
            continue
        add(View(name, coarse), _mean_kernels((0.7, 1.0, 1.25, 1.38), (0.0, 0.3, 1.0)))
        if fine != coarse:
            add(View(name, fine), _mean_kernels((1.0, 1.25, 1.38), (0.3,)))
        for block in blocks:
            add(View(name, block, clock=3.0), _mean_kernels((1.0, 1.25, 1.38), (0.3,)))
        add(View(name), _last_kernels())
    if family == "rntk":
        add(View("unit norm"), _smooth_kernels())
        add(scaled_view(batch, coarse), _mean_kernels((1.0, 1.25), (0.3, 1.0)))
    else:
        add(scaled_view(batch, 1), _vector_kernels(family))
    return found


def started_with(kernel: Any, batch: SequenceBatch, max_length: int) -> list[Candidate]:
    """A kernel of the user's, and the same with its σ_w a little smaller and larger, on values and on differences."""
    if kernel is None:
        return []
    block = -(-batch.max_length // max_length) if getattr(kernel, "readout", "last") == "mean" else 1
    sigma_w = np.asarray(kernel.sigma_w, dtype=np.float64)
    return [
        Candidate(
            view,
            clone(kernel).set_params(sigma_w=(sigma_w * factor).tolist()),
            {**_said(view), "start": True, "sigma_w": (sigma_w * factor).tolist()},
        )
        for view in (View("values", block), View("differences", block))
        for factor in (1.0, 0.95, 1.05)
    ]


def _said(view: View) -> dict[str, Any]:
    return {"view": view.name, "block": view.block, "clock": view.clock}


def _mean_kernels(sigma_w: tuple[float, ...], sigma_b: tuple[float, ...]) -> Iterator[tuple[dict[str, Any], Any]]:
    for w, b in product(sigma_w, sigma_b):
        settings: dict[str, Any] = {"readout": "mean", "sigma_w": w, "sigma_b": b}
        yield settings, RNTK(**settings, normalize=True, dtype="float32")


def _last_kernels() -> Iterator[tuple[dict[str, Any], Any]]:
    for b in (1.0, 10.0):
        settings: dict[str, Any] = {"readout": "last", "sigma_w": 1.38, "sigma_b": b}
        yield settings, RNTK(**settings, normalize=True, dtype="float32")


def _smooth_kernels() -> Iterator[tuple[dict[str, Any], Any]]:
    """Nearly polynomial in the inputs, for classes that differ by little: in double precision, for tiny ridges."""
    for w, b, u in ((1.0, 0.1, 1.0), (1.0, 0.1, 5.0), (1.2, 1.0, 1.0)):
        settings: dict[str, Any] = {"readout": "last", "activation": "erf", "sigma_w": w, "sigma_b": b, "sigma_u": u}
        yield settings, RNTK(**settings, normalize=True)


def _vector_kernels(family: str) -> Iterator[tuple[dict[str, Any], Any]]:
    if family == "ntk":
        for depth, b in product((1, 3, 6, 10), (0.0, 0.5, 2.0)):
            yield {"depth": depth, "sigma_b": b}, NTK(depth=depth, sigma_w=2**0.5, sigma_b=b, normalize=True)
    elif family == "rbf":
        # z-normalised sequences: distances are of the order of the square root of the number of steps.
        for scale in (1, 2, 4, 8, 16, 32):
            yield {"length_scale": scale}, RBF(length_scale=float(scale))
    else:
        for degree, offset in product(range(1, 6), (0, 1)):
            yield {"degree": degree, "offset": offset}, Polynomial(degree=degree, offset=offset, cosine=True)


def check_family(family: str) -> str:
    """`family` if it is one."""
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, not {family!r}")
    return family


def relative_ridges(kernel: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Ridges of `search="fast"` for `kernel`, as multiples of the mean of the Gram matrix's diagonal.

    None is below what rounding leaves of small eigenvalues.
    """
    return np.logspace(-5, 1, 13) if getattr(kernel, "dtype", None) == "float32" else np.logspace(-10, 1, 23)
