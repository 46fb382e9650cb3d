"""Which training sequences to set aside, so that training can be stopped before it learns the rest by heart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def hold_out(labels: NDArray[np.intp], fraction: float, random: np.random.RandomState) -> tuple[Rows, Rows]:
    """Rows to train on and rows to set aside, about `fraction` of each class.

    Every class keeps a sequence to train on, so one that has only one sequence is not validated. Small classes take
    turns: what the shares of all classes add up to is set aside, the largest fractions of a sequence first. At least
    one sequence is set aside if any class has two; if none has, nothing is.
    """
    counts = np.bincount(labels)
    share = np.minimum(fraction * counts, counts - 1)
    share[counts == 0] = 0
    total = max(round(share.sum()), int((counts > 1).any()))
    taken = np.floor(share).astype(np.intp)
    # Equal fractions of a sequence go to a random class. Classes of one are last, and never reached.
    order = np.lexsort((random.random_sample(len(counts)), taken - share))
    order = order[taken[order] < counts[order] - 1]
    taken[order[: total - taken.sum()]] += 1
    aside = [random.permutation(np.flatnonzero(labels == label))[:count] for label, count in enumerate(taken)]
    chosen = np.sort(np.concatenate(aside))
    return np.setdiff1d(np.arange(len(labels)), chosen), chosen
