"""How much can be computed while one watches: sequences, steps and pairs within a budget of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .settings import Settings

#: Nanoseconds of one core for a Gram matrix and for a sensitivity curve; all of a redraw is to stay under 200 ms.
GRAM_TIME, SENSITIVITY_TIME = 100e6, 40e6
#: How many times that a picture may take that isn't quick: some ten seconds.
PATIENCE = 100
#: Sequences and pairs of a quick picture, and of another one: more can't be told apart on a screen.
QUICK_SEQUENCES, MOST_SEQUENCES = 150, 400
QUICK_PAIRS, MOST_PAIRS = 200, 400
#: Below so many sequences and steps the other of the two is cut first.
SEQUENCES, STEPS = 60, 48
#: Fewest sequences, pairs for the sensitivity, and sequences they are drawn from.
FEWEST_SEQUENCES, FEWEST_PAIRS, FEWEST_PAIRED = 12, 12, 5


class Cost(NamedTuple):
    """Nanoseconds of one core and layer: per step of a sequence, and per pair of steps that meet, for each readout.

    The first three are for kernel values, the others for gradients.
    """

    step: float
    last: float
    mean: float
    slope_step: float
    slope_last: float
    slope_mean: float


#: As measured on one core of a Xeon with AVX-512, rounded up.
COSTS = {
    **dict.fromkeys(("relu", "identity", "abs"), Cost(50, 6, 4, 100, 120, 45)),
    **dict.fromkeys(("erf", "sin", "gelu"), Cost(300, 24, 14, 900, 600, 130)),
}
#: Activations that are expanded in polynomials, anew at every step.
EXPANSION = Cost(120_000, 300, 260, 160_000, 5_000, 2_500)


@dataclass(frozen=True)
class Budget:
    """What to compute.

    Attributes
    ----------
    sequences : int
        How many.
    block : int
        How many steps are averaged into one.
    pairs, paired : int
        How many pairs for the sensitivity, and how many of the sequences they are drawn from.
    """

    sequences: int
    block: int
    pairs: int
    paired: int


def plan(settings: Settings, n: int, length: float, quick: bool = True) -> Budget:
    """The largest part of `n` sequences of mean `length` that a kernel gets through in time.

    First sequences are left out, down to `SEQUENCES`; then steps are averaged, down to `STEPS`; then sequences again,
    and steps again. With `quick` false there is `PATIENCE` times as much time.
    """
    cost = COSTS.get(settings.activation, EXPANSION)
    table = settings.readout == "mean"
    times = 1 if quick else PATIENCE

    def fits(count: int, steps: float) -> bool:
        met = count**2 / 2 * (cost.mean * steps**2 if table else cost.last * steps)
        return settings.depth * (count * steps * cost.step + met) <= times * GRAM_TIME

    count, block = min(n, QUICK_SEQUENCES if quick else MOST_SEQUENCES), 1
    for fewest, shortest in ((SEQUENCES, STEPS), (FEWEST_SEQUENCES, 1)):
        while count > fewest and not fits(count, length / block):
            count -= 1
        while length / (block + 1) >= shortest and not fits(count, length / block):
            block += 1
    steps = length / block
    # Half of the time for the sequences, half for the pairs.
    share = times * SENSITIVITY_TIME / 2 / settings.depth
    pairs = share / (cost.slope_mean * steps**2 if table else cost.slope_last * steps)
    paired = share / (cost.slope_step * steps)
    return Budget(
        count,
        block,
        int(min(max(pairs, FEWEST_PAIRS), QUICK_PAIRS if quick else MOST_PAIRS)),
        int(min(max(paired, FEWEST_PAIRED), count)),
    )
