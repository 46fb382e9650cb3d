"""What a search tries: candidates, each a kernel on a view of the sequences."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import clone

from ...kernels import RNTK, NetworkKernel
from ...programs import ProgramKernel
from ...sequences import SequenceBatch
from ...sequences.targets import Array
from .views import View, scaled_view

Settings = dict[str, Any]


def _means(sigma_w: tuple[float, ...], sigma_b: tuple[float, ...]) -> list[Settings]:
    return [{"readout": "mean", "sigma_w": w, "sigma_b": b} for w, b in product(sigma_w, sigma_b)]


LAST: list[Settings] = [{"readout": "last", "sigma_w": 1.38, "sigma_b": b} for b in (1.0, 10.0)]
#: Nearly polynomial in the inputs, for classes that differ by little.
SMOOTH: list[Settings] = [
    {"readout": "last", "activation": "erf", "sigma_w": w, "sigma_b": b, "sigma_u": u}
    for w, b, u in ((1.0, 0.1, 1.0), (1.0, 0.1, 5.0), (1.2, 1.0, 1.0))
]


#: Seconds per pair-step, and per n³ of an eigendecomposition, on a slow machine: less than a minute needs no measuring.
SLOW_STEP, SLOW_CUBE = 5e-9, 2e-9


@dataclass(frozen=True)
class Candidate:
    """One kernel on one view; `settings` says what is special about the kernel."""

    view: View
    kernel: Any
    settings: Settings = field(hash=False, compare=False)

    @property
    def params(self) -> Settings:
        """View and settings in plain words."""
        return {"view": self.view.name, "block": self.view.block, "clock": self.view.clock, **self.settings}

    def cost(self, batch: SequenceBatch) -> float:
        """Pair-steps of its Gram matrix, for the progress bar."""
        steps = float(batch.lengths.mean()) / self.view.block
        table = self.settings.get("readout") == "mean"
        return len(batch) ** 2 / 2 * (steps**2 if table else steps)


def candidates_for(batch: SequenceBatch, max_length: int) -> list[Candidate]:
    """What is tried on the sequences of `batch`, view by view.

    The mean readout costs O(T²), so it sees long sequences averaged down, at two resolutions: models that look at
    different scales agree by more than chance only where both are right.
    """
    coarse, fine = (-(-batch.max_length // steps) for steps in (max(1, max_length // 2), max_length))
    found: list[tuple[View, list[Settings]]] = []
    for name in ("values", "differences"):
        found.append((View(name, coarse), _means((0.7, 1.0, 1.25, 1.38), (0.0, 0.3, 1.0))))
        if fine != coarse:
            found.append((View(name, fine), _means((1.0, 1.25, 1.38), (0.3,))))
        for block in sorted({coarse, fine}, reverse=True):
            found.append((View(name, block, clock=3.0), _means((1.0, 1.25, 1.38), (0.3,))))
        found.append((View(name), LAST))
    found.append((View("unit norm"), SMOOTH))
    scaled = scaled_view(batch, coarse)
    if scaled is not None:
        found.append((scaled, _means((1.0, 1.25), (0.3, 1.0))))
    return [
        # Single precision is enough but for tiny ridges.
        Candidate(view, RNTK(**each, normalize=True, dtype="float64" if each in SMOOTH else "float32"), each)
        for view, settings in found
        for each in settings
    ]


def started_with(kernel: Any, batch: SequenceBatch, max_length: int) -> list[Candidate]:
    """A kernel of the user's, and the same with its σ_w a little smaller and larger, on values and on differences."""
    if kernel is None:
        return []
    if isinstance(kernel, ProgramKernel):
        # Its tables are over all pairs of steps, whatever the readout.
        view = View("values", -(-batch.max_length // max_length))
        return [Candidate(view, clone(kernel), {"start": True})]
    block = -(-batch.max_length // max_length) if kernel.network().readout.every_step else 1
    sigma_w = np.asarray(kernel.sigma_w, dtype=np.float64)
    return [
        Candidate(
            view,
            clone(kernel).set_params(sigma_w=(sigma_w * factor).tolist()),
            {"start": True, "sigma_w": (sigma_w * factor).tolist()},
        )
        for view in (View("values", block), View("differences", block))
        for factor in (1.0, 0.95, 1.05)
    ]


def estimate_seconds(work: list[tuple[list[Candidate], SequenceBatch]], prepare: Callable[[Any], Any]) -> float:
    """About how long it takes to compute candidates on batches and judge them; measured unless it is clearly little.

    `prepare` gives the kernel of a candidate as it will be used.
    """
    steps = [(sum(each.cost(batch) for each in part), len(part) * float(len(batch)) ** 3) for part, batch in work]
    cost, cubes = map(sum, zip(*steps, strict=True))
    if cost * SLOW_STEP + cubes * SLOW_CUBE < 60:
        return 0.0
    dearest = max(work[0][0], key=lambda each: each.cost(work[0][1]))
    few = work[0][1].take(np.arange(min(len(work[0][1]), 48)))
    kernel, shown = prepare(dearest.kernel), dearest.view(few)
    kernel(shown)  # compiled
    begin = time.perf_counter()
    K = kernel(shown)
    per_step = (time.perf_counter() - begin) / dearest.cost(few)
    size = 300
    K = np.resize(np.asarray(K, dtype=np.float64), (size, size))
    begin = time.perf_counter()
    linalg.eigh(K + K.T)
    return cost * per_step + cubes * (time.perf_counter() - begin) / size**3


def relative_ridges(kernel: NetworkKernel | ProgramKernel) -> Array:
    """Ridges for `kernel`, as multiples of the mean of the Gram matrix's diagonal.

    None is below what rounding leaves of small eigenvalues.
    """
    if isinstance(kernel, ProgramKernel):
        return np.logspace(-10, 1, 23) if kernel.exact else np.logspace(-5, 1, 13)
    return np.logspace(-5, 1, 13) if kernel.plan().dtype == np.float32 else np.logspace(-10, 1, 23)
