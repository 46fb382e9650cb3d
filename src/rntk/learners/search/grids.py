"""The grids of the RNTK paper's appendix A."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from sklearn.gaussian_process.kernels import RBF

from ...kernels import NTK, RNTK
from .candidates import Candidate as Candidate
from .polynomial import Polynomial
from .views import View

FAMILIES = ("rntk", "ntk", "rbf", "polynomial")

#: Appendix A of the RNTK paper.
PAPER_C = (0.01, 0.1, 1.0, 10.0, 100.0)
PAPER_RIDGES = (0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1, 2, 3, 4, 5, 6, 7, 8, 10, 100)
PAPER_SIGMA_W = (1.34, 1.35, 1.36, 1.37, 1.38, 1.39, 1.40, 1.41, 2**0.5, 1.42, 1.43, 1.44, 1.45, 1.46, 1.47)
PAPER_SIGMA_B = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1, 2)
PAPER_SIGMA_H = (0, 0.01, 0.1, 0.5, 1)
PAPER_ALPHA = (0.01, 0.05, 0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 1, 2, 3, 4, 5, 10, 20, 30, 40, 100)


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


def check_family(family: str) -> str:
    """`family` if it is one."""
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, not {family!r}")
    return family
