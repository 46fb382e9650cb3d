"""Sums over runs of consecutive steps that can neither overflow nor drown in rounding.

A run is a whole sequence, a block of one, or all steps of a batch: rows ``offsets[j]:offsets[j + 1]`` of the values.
Every channel of every run is first divided by the power of two just above its largest magnitude. That is exact,
but for values some 300 orders of magnitude below the largest, which vanish beside it anyway. It leaves numbers below 1
whose squares and sums are harmless, be the data of size 1e-300 or 1e300.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "Moments", "Runs", "quietly", "scale_runs"]

FloatArray = NDArray[np.floating[Any]]

#: Overflow is looked for in results, where it can be named, not warned about on the way there.
quietly = np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")

#: A range of this many rounding units of the largest magnitude is what computing a constant twice may leave.
_ROUNDING_UNITS = 4


class Moments(NamedTuple):
    """Means and population standard deviations of k scaled runs, and their S steps minus the means."""

    means: NDArray[np.float64]  # (k, m)
    deviations: NDArray[np.float64]  # (k, m)
    centred: NDArray[np.float64]  # (S, m)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of steps, scaled by powers of two. S steps, k runs, m channels."""

    values: NDArray[np.float64]  # (S, m), x / 2**exponent: magnitudes below 1
    offsets: NDArray[np.int64]  # (k + 1,)
    exponents: NDArray[np.int32]  # (k, m)
    lowest: NDArray[np.float64]  # (k, m), smallest scaled value
    highest: NDArray[np.float64]  # (k, m), largest scaled value
    resolution: float  # spacing of the numbers of the data's dtype at 1

    def spread(self, per_run: NDArray[Any]) -> NDArray[Any]:
        """Return (S, m): for every step the entry of its run in (k, m)."""
        return np.repeat(per_run, np.diff(self.offsets), axis=0)

    def sums(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (k, m): the sums of (S, m) over each run."""
        return np.asarray(np.add.reduceat(steps, self.offsets[:-1], axis=0))

    def means(self) -> NDArray[np.float64]:
        """Return (k, m): the scaled mean of each run."""
        means = self.sums(self.values) / np.diff(self.offsets)[:, None]
        # A mean lies between the extremes; rounding may push it out, so that 0.1 repeated would not average to 0.1.
        return np.clip(means, self.lowest, self.highest)

    def moments(self) -> Moments:
        """Return means and standard deviations of the scaled runs, and the steps without their means."""
        counts = np.diff(self.offsets)[:, None]
        means = self.means()
        centred = self.values - self.spread(means)
        # The mean is rounded at the size of the values; what it missed shows now, at the size of the deviations.
        centred -= self.spread(self.sums(centred) / counts)
        deviations = np.sqrt(self.sums(centred * centred) / counts)
        # Half the range bounds the deviation (Popoviciu); rounded above it, that of the largest floats would overflow.
        deviations = np.minimum(deviations, (self.highest - self.lowest) / 2)
        return Moments(means, deviations, centred)

    def are_constant(self) -> NDArray[np.bool_]:
        """Return (k, m): whether a run is constant up to the rounding of its own size.

        Judged by the range, which is exact. The computed deviation of a constant is not reliably zero, and no
        absolute bound is right for all units of measurement.
        """
        largest = np.maximum(-self.lowest, self.highest)
        return np.asarray(self.highest - self.lowest <= _ROUNDING_UNITS * self.resolution * largest)


def scale_runs(values: FloatArray, offsets: NDArray[np.int64]) -> Runs:
    """Return the runs of finite `values` (S, m) between strictly increasing `offsets` (k + 1,), in double precision."""
    starts = offsets[:-1]
    lowest = np.minimum.reduceat(values, starts, axis=0).astype(np.float64)
    highest = np.maximum.reduceat(values, starts, axis=0).astype(np.float64)
    _, exponents = np.frexp(np.maximum(-lowest, highest))
    per_step = np.repeat(exponents, np.diff(offsets), axis=0)
    return Runs(
        values=np.ldexp(values.astype(np.float64, copy=False), -per_step),
        offsets=offsets,
        exponents=exponents,
        lowest=np.ldexp(lowest, -exponents),
        highest=np.ldexp(highest, -exponents),
        resolution=float(np.finfo(values.dtype).eps),
    )
