"""Empirical kernels of one network: exact, in blocks that fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.network import KernelPair
from ..sequences import SequenceBatch
from .gradients import Block, Trace, trace
from .network import Network
from .overlaps import output_overlap, tangent_overlap
from .precision import dtype_of
from .weights import Parameters

Array = NDArray[Any]

#: Bytes of backward signals held at a time, unless told otherwise.
MEMORY = 2**27


def empirical_ntk(
    net: Network, parameters: Parameters, X: Any, Y: Any = None, *, state_seed: int = 0, memory: int = MEMORY
) -> Array:
    """Inner products of parameter gradients, ⟨∇f(x), ∇f(y)⟩, of one network: its tangent kernel.

    What `kernel(X, Y)` is the limit of for infinite width. Exact to rounding, whatever the blocks: no Jacobian is
    formed.

    Parameters
    ----------
    net, parameters : a network and its weights, drawn or trained.
    X, Y : sequences, as for the kernel.
    state_seed : seed of the initial states, if sigma_h > 0. X and Y draw their own, so that the same-sequence term is
        on the diagonal of `empirical_ntk(net, parameters, X)` and not in `empirical_ntk(net, parameters, X, X)`, as
        for the kernel.
    memory : bytes that backward signals of one block of sequences may take. The peak is some six times that, plus
        the weights and the result.

    Returns
    -------
    (n, n') array in the precision of the parameters, one row per step for the sequence readout. With d > 1 outputs
    (n, n', d, d): in the limit the kernel times the identity.

    Notes
    -----
    With S steps in all, (S d)² n multiplications for tied weights ("sequence": Σ T² instead of S), beside the
    S n² d of the passes back. `memory` trades against a repetition of the latter.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, finite
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> net = finite.network(RNTK(), width=64)
    >>> finite.empirical_ntk(net, net.init(0, X), X).shape
    (2, 2)
    """
    return on_batches(net, parameters, *_read(net, parameters, X, Y), state_seed, memory, want_nngp=False).ntk


def empirical_nngp(
    net: Network, parameters: Parameters, X: Any, Y: Any = None, *, state_seed: int = 0, memory: int = MEMORY
) -> Array:
    """Covariance of the outputs over draws of the readout alone, σ_v²/n Σ_i h_i(x) h_i(y): what `kernel.nngp` limits.

    Parameters as for `empirical_ntk`. The result is (n, n') for any number of outputs, which are independent; the
    readout weights in `parameters` don't matter.
    """
    return on_batches(net, parameters, *_read(net, parameters, X, Y), state_seed, memory, want_ntk=False).nngp


def empirical_kernels(
    net: Network, parameters: Parameters, X: Any, Y: Any = None, *, state_seed: int = 0, memory: int = MEMORY
) -> KernelPair:
    """Both from one pass, as a named tuple (nngp, ntk); the finite counterpart of `kernel.both`."""
    return on_batches(net, parameters, *_read(net, parameters, X, Y), state_seed, memory)


def _read(net: Network, parameters: Parameters, X: Any, Y: Any) -> tuple[SequenceBatch, SequenceBatch | None]:
    return net.batch(parameters, X, "X"), None if Y is None else net.batch(parameters, Y, "Y")


def on_batches(
    net: Network,
    parameters: Parameters,
    left: SequenceBatch,
    other: SequenceBatch | None,
    state_seed: int,
    memory: int,
    *,
    want_nngp: bool = True,
    want_ntk: bool = True,
) -> KernelPair:
    """Kernels between batches that fit the parameters; `other` is None for those of `left` with itself."""
    symmetric = other is None
    right = left if other is None else other
    dtype, d = dtype_of(parameters), net.outputs
    sizes = [_count_outputs(net, each) for each in (left, right)]
    nngp = np.zeros(sizes if want_nngp else (0, 0), dtype=dtype)
    ntk = np.zeros([size * d for size in sizes] if want_ntk else (0, 0), dtype=dtype)
    tile = max(16, int((memory / dtype.itemsize / 4) ** 0.5))
    blocks = [_blocks(net, each, dtype.itemsize, memory) for each in (left, right)]

    def traces_of(side: int, block: Block) -> tuple[Trace, ...]:
        # Sequences of X and of Y have different draws of the initial state, even where Y is X.
        batch, drawn = (left, right)[side], 0 if symmetric else side
        return trace(net, parameters, batch, block, state_seed=state_seed, side=drawn, signals=want_ntk)

    kept = traces_of(1, blocks[1][0]) if not symmetric and len(blocks[1]) == 1 else None
    for i, one in enumerate(blocks[0]):
        ours = traces_of(0, one)
        for two in blocks[1][i if symmetric else 0 :]:
            theirs = kept or (ours if symmetric and two == one else traces_of(1, two))
            rows, columns = _rows(net, left, one), _rows(net, right, two)
            for a, b in zip(ours, theirs, strict=True):
                if want_nngp:
                    _add(nngp, output_overlap(net.architecture, a, b), rows, columns, 1, mirror=symmetric)
                if want_ntk:
                    overlap = tangent_overlap(net.architecture, a, b, d, tile)
                    _add(ntk, overlap, rows, columns, d, mirror=symmetric)
    if symmetric:
        nngp, ntk = (nngp + nngp.T) / 2, (ntk + ntk.T) / 2  # equal up to rounding already
    if d > 1 and want_ntk:
        ntk = ntk.reshape(sizes[0], d, sizes[1], d).transpose(0, 2, 1, 3)
    return KernelPair(nngp, ntk)


def _add(total: Array, part: Array, rows: slice, columns: slice, d: int, *, mirror: bool) -> None:
    here, there = (slice(each.start * d, each.stop * d) for each in (rows, columns))
    total[here, there] += part
    if mirror and rows != columns:
        total[there, here] += part.T


def _count_outputs(net: Network, batch: SequenceBatch) -> int:
    return len(batch.values) if net.architecture.readout.per_step else len(batch)


def _rows(net: Network, batch: SequenceBatch, block: Block) -> slice:
    """The outputs of a block among those of the batch."""
    if not net.architecture.readout.per_step:
        return slice(block.first, block.last)
    if block.last - block.first > 1:
        return slice(int(batch.offsets[block.first]), int(batch.offsets[block.last]))
    start = int(batch.offsets[block.first])
    return slice(start + block.start, start + block.stop)


def _blocks(net: Network, batch: SequenceBatch, itemsize: int, memory: int) -> list[Block]:
    """As many whole sequences as fit; for the sequence readout one may be too long, and is cut by position."""
    lengths = batch.lengths.tolist()
    every_step = net.architecture.readout.per_step

    def cost(count: int, longest: int, positions: int) -> int:
        return count * longest * positions * net.outputs * net.width * net.architecture.depth * itemsize

    blocks: list[Block] = []
    first = 0
    while first < len(lengths):
        last, longest = first + 1, lengths[first]
        while last < len(lengths):
            longer = max(longest, lengths[last])
            if cost(last + 1 - first, longer, longer if every_step else 1) > memory:
                break
            last, longest = last + 1, longer
        positions = longest if every_step else 1
        size = positions
        if last == first + 1:
            size = max(1, min(positions, memory // cost(1, longest, 1)))
        blocks += [Block(first, last, start, min(start + size, positions)) for start in range(0, positions, size)]
        first = last
    return blocks
