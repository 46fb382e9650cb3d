"""Empirical kernels averaged over networks, with the standard errors of the averages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import check_choice, check_dtype
from ..kernels.network import KernelPair
from ..runtime import progress_bar
from ..sequences import check_channels_agree
from .empirical import MEMORY, on_batches
from .network import FiniteNetwork

Array = NDArray[Any]


class Average(NamedTuple):
    """A mean over networks.

    Attributes
    ----------
    mean : ndarray
        The mean of the kernels, float64.
    error : ndarray
        Its standard error, entry by entry; NaN for a single network.
    networks : int
        How many.
    """

    mean: Array
    error: Array
    networks: int


def average(
    net: FiniteNetwork,
    X: Any,
    Y: Any = None,
    *,
    kind: str = "ntk",
    seeds: int | Iterable[int] = 10,
    dtype: Any = "float32",
    memory: int = MEMORY,
    progress: bool | None = None,
) -> Average:
    """Mean of an empirical kernel over draws of all weights and initial states, with standard errors.

    The mean differs from the limit by O(1/n), a single network by O(1/√n).

    Parameters
    ----------
    net : FiniteNetwork
        The network.
    X : sequences
        As for the kernel.
    Y : sequences, optional
        As for the kernel.
    kind : "ntk" or "nngp"
        Of `empirical_ntk`, or of `empirical_nngp`.
    seeds : int or iterable of int
        How many networks, or their seeds. One is held in memory at a time.
    dtype : "float32" or "float64"
        Precision of the networks.
    memory : int
        As for `empirical_ntk`.
    progress : bool or None
        None shows a bar on a terminal after two seconds; True always; False never.

    Returns
    -------
    Average

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, finite
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> average = finite.average(finite.network(RNTK(), width=64), X, seeds=50)
    >>> bool((abs(average.mean - RNTK()(X)) < 5 * average.error).all())
    True
    """
    check_choice("kind", kind, ("ntk", "nngp"))
    chosen = seed_list(seeds)
    found = []
    with progress_bar(f"width {net.width}", len(chosen), progress) as advance:
        for pair in samples(net, X, Y, chosen, dtype, memory):
            found.append(getattr(pair, kind).astype(np.float64))
            advance(1)
    return Average(*mean_and_error(np.stack(found, axis=-1)), len(chosen))


def mean_and_error(found: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over networks (last axis) and its standard error, NaN for one network."""
    count, mean = found.shape[-1], found.mean(axis=-1)
    return mean, found.std(axis=-1, ddof=1) / count**0.5 if count > 1 else np.full_like(mean, np.nan)


def samples(net: FiniteNetwork, X: Any, Y: Any, seeds: list[int], dtype: Any, memory: int) -> Iterator[KernelPair]:
    """The kernels of one network after another; a seed draws weights and initial states."""
    left, right = net.read(X, "X"), None if Y is None else net.read(Y, "Y")
    if right is not None:
        check_channels_agree([left, right], ["X", "Y"])
    steps = max(each.max_length for each in (left, right) if each is not None)
    for seed in seeds:
        parameters = net.draw(seed, left.n_channels, steps, check_dtype(dtype))
        yield on_batches(net, parameters, left, right, seed, memory)


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """0, 1, … or the seeds given."""
    chosen = list(range(seeds)) if isinstance(seeds, (int, np.integer)) else [int(seed) for seed in seeds]
    if not chosen:
        raise ValueError(f"seeds must name at least one network, not {seeds!r}")
    return chosen
