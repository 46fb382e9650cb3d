"""What the ensemble is made of: parts, each a view of the sequences and a kernel on it.

Nothing is searched. One kernel reads each view: small training sets can't tell kernels apart, and large ones hardly
need to. What differs between data sets is which view matters, and that the weights of the ensemble find out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...kernels import RNTK, NetworkKernel
from ...sequences import SequenceBatch
from ..landmarks import LandmarkFeatures
from ..nystrom import NystromFeatures
from ..steps import StepFeatures
from .views import WINDOW, View, differs_in_level_or_size

#: Up to as many training sequences kernels are computed exactly.
EXACT = 1000
#: Steps at most of values and differences; of windows; and of scaled values and spectra.
STEPS, WINDOWS, FINE = 100, 128, 256
#: A spectrum is of this part of the longest sequence, or of `SHORTEST` steps.
PART, SHORTEST = 1 / 16, 8
#: Steps of the recursion at most that one sequence takes against all others, with kernels that read values and, of
#: vectors, those that read windows and spectra: among more sequences they see fewer steps.
WORK, VECTOR_WORK = 6e6, 2.5e6
#: Steps of a landmark's history, on views of single values and of vectors.
HISTORY, SHORT_HISTORY = 20, 8
#: A window spans at most this part of the longest sequence.
REACH = 0.9
#: Eigenvalues between landmarks below this part of the largest are rounding in single precision.
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Component:
    """A kernel on a view.

    Attributes
    ----------
    view : View
        What the kernel sees.
    kernel : object
        The kernel.
    history : int
        Steps that landmarks remember.
    """

    view: View
    kernel: Any
    history: int = HISTORY

    def landmarks(self, n: int, n_landmarks: int, seed: int) -> LandmarkFeatures | None:
        """What stands for the kernel with `n` training sequences; None is the kernel itself."""
        if n <= EXACT:
            return None
        precise: Any = {"rank_tolerance": TOLERANCE, "dtype": "float64", "random_state": seed}
        if not averages(self.kernel):
            return NystromFeatures(self.kernel, n_landmarks, **precise)
        return StepFeatures(self.kernel, n_landmarks, self.history, **precise)

    def cost(self, n: int, batch: SequenceBatch, n_landmarks: int) -> float:
        """About how many steps of a recursion `n` sequences like those of `batch` take."""
        steps = float(batch.lengths.mean()) / self.view.block
        if not averages(self.kernel):
            return n * min(n, n_landmarks) * steps
        return n**2 / 2 * steps**2 if n <= EXACT else n * steps * n_landmarks * self.history


def parts_for(batch: SequenceBatch, n: int) -> list[Component]:
    """The parts for `n` sequences like those of `batch`, view by view; views are still to be fitted."""
    longest = batch.max_length

    def block(most: int, work: float) -> int:
        return -(-longest // affordable(most, work, n))

    parts = []
    for name in ("values", "differences"):
        whole = block(STEPS, WORK)
        parts += [Component(View(name, whole), mean_kernel(1.25, 0.3, "nngp"))]
        parts += [Component(View(name, whole, clock=3.0), mean_kernel(1.25, 0.3))]
    if differs_in_level_or_size(batch):
        parts += [Component(View("scaled", block(FINE, WORK)), mean_kernel(1.25, 0.3))]
    apart = block(WINDOWS, VECTOR_WORK)
    parts += [
        Component(View("windows", apart, span=span), mean_kernel(1.0, 0.1), SHORT_HISTORY) for span in spans(longest)
    ]
    length = min(max(SHORTEST, math.ceil(PART * longest)), longest)
    spectrum = View("spectrum", block(FINE, VECTOR_WORK), span=length)
    return [*parts, Component(spectrum, mean_kernel(1.0, 0.3), SHORT_HISTORY)]


def averages(kernel: Any) -> bool:
    """Whether landmarks among steps can stand for a kernel."""
    return isinstance(kernel, NetworkKernel) and kernel.network().readout.averages


def affordable(most: int, work: float, n: int) -> int:
    """How many steps, at most `most`, keep `n` exact kernel values within `work`."""
    return most if n > EXACT else min(most, math.isqrt(int(work / n)))


def mean_kernel(sigma_w: float, sigma_b: float, kind: str = "ntk") -> RNTK:
    """What reads a view: the normalised kernel that averages over all steps."""
    return RNTK(readout="mean", sigma_w=sigma_w, sigma_b=sigma_b, normalize=True, kind=kind, dtype="float32")


def spans(longest: int) -> list[int]:
    """1, 2, 4, …: steps between the values of a window, as long as it isn't longer than the sequences."""
    widest = REACH * longest / (WINDOW - 1)
    return [1, *(2**k for k in range(1, 63) if 2**k < widest)]


def started_with(kernel: Any, batch: SequenceBatch) -> list[Component]:
    """A kernel of the user's on values and on differences."""
    if kernel is None:
        return []
    whole = isinstance(kernel, NetworkKernel) and not averages(kernel)  # costs no more with all steps
    block = 1 if whole else -(-batch.max_length // STEPS)
    return [Component(View(name, block), kernel) for name in ("values", "differences")]
