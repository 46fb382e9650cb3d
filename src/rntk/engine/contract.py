"""What every engine offers: prepare sequences once, then compare them in pairs, as often as needed.

In go a `Plan` (which network, which of its kernels, in which precision, how to run) and a batch; out comes a side, all
that belongs to each of its sequences alone. Two sides give Gram matrices, a batch its diagonal. What is prepared for
one plan serves no other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelOverflowError
from ..network import Cell, Direction, Elman, Network
from ..runtime import Execution
from ..sequences import SequenceBatch

#: How a kernel reads what users give it: (data, name in messages) to a batch.
Reader = Callable[[Any, str], SequenceBatch]


@dataclass(frozen=True)
class Plan:
    """What is to be computed.

    Attributes
    ----------
    network : Network
    dtype : dtype
        Of the result.
    kinds : tuple of {"nngp", "ntk"}
        Which Gram matrices are wanted.
    directions : tuple of Direction
        Along which the kernel of the network's kind is differentiated.
    run : Execution
        Threads and progress.
    title : str
        What a progress bar is called.
    rough : bool
        Whether numbers of about the right size will do where a network normalises, because the caller does so again.
    """

    network: Network
    dtype: np.dtype[Any]
    kinds: tuple[str, ...]
    directions: tuple[Direction, ...] = ()
    run: Execution = Execution()  # noqa: RUF009
    title: str = "Gram matrix"
    rough: bool = False


class Values(NamedTuple):
    """Gram matrices (n, n'), None where not wanted, and (n, n', P) derivatives along the plan's directions."""

    nngp: Any
    ntk: Any
    gradient: Any


class InputSlopes(NamedTuple):
    """Kernel values of some pairs (x, y) and their derivatives by x.

    Attributes
    ----------
    value : ndarray
        (P,).
    gradient : ndarray
        (S, m), of all steps of the first sequences, pair after pair.
    offsets : ndarray
        (P + 1,), where each pair begins.
    """

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    offsets: NDArray[np.int64]


class NotOfferedError(ValueError):
    """An engine was asked for something that it doesn't compute; the message says which one does."""


class Engine(ABC):
    """Prepares sides and compares them."""

    #: What users call it.
    name: ClassVar[str]
    #: Whether it computes derivatives by log σ.
    has_sigma_slopes: ClassVar[bool] = False
    #: The cells it knows.
    cells: ClassVar[frozenset[type[Cell]]] = frozenset({Elman})

    def check(self, plan: Plan) -> None:
        """Refuse what this engine doesn't compute."""
        unknown = {type(cell) for cell in plan.network.cells} - self.cells
        if unknown:
            raise NotOfferedError(
                f'the {self.name} engine has no {unknown.pop().__name__} cells; take engine="reference" or "auto"'
            )
        if plan.directions and not self.has_sigma_slopes:
            raise NotOfferedError(
                f"the {self.name} engine has no derivatives by hyperparameters; bring the arrays to the CPU (X.cpu() "
                'in PyTorch, jax.device_get(X) in JAX) and take engine="fused"'
            )

    @abstractmethod
    def read(self, reader: Reader, *named: tuple[str, Any]) -> list[Any]:
        """Batches of what users gave, (name, data) each, that can be compared with one another."""

    def needs(self, plan: Plan, *batches: Any) -> Any:
        """What sides that meet must have alike, such as the terms of an expansion, for all of these sequences."""
        return None

    @abstractmethod
    def prepare(self, plan: Plan, batch: Any, needs: Any = None) -> Any:
        """A side: all that belongs to each sequence alone, with at least what `needs` says.

        Two sides that are compared are made alike where they aren't. Whoever cuts sequences into parts asks for the
        needs of all of them first: then no part is prepared twice.
        """

    @abstractmethod
    def pairs(self, a: Any, b: Any = None) -> Values:
        """Gram matrices of two sides; without `b` of one with itself, with what σ_h adds to its diagonal."""

    def input_slopes(
        self, plan: Plan, batch: SequenceBatch, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> InputSlopes:
        """Derivatives of the kernel of pairs (left[p], right[p]) of a batch by their first sequence."""
        raise NotOfferedError(
            f'the {self.name} engine has no derivatives by sequences; bring them to the CPU, and take engine="fused"'
        )

    @abstractmethod
    def diagonal(self, plan: Plan, batch: Any) -> Any:
        """The diagonal of the Gram matrix of the network's kind, without the matrix."""


def refuse_overflow(plan: Plan, K: Any, left: SequenceBatch, right: SequenceBatch | None, xp: Any = np) -> None:
    """Raise a `KernelOverflowError` that names the sequence to blame if K has values that are not finite."""
    # Most of the time one look at the sum says it all.
    if bool(xp.isfinite(xp.sum(K))) or bool(xp.all(finite := xp.isfinite(K))):
        return
    # The sequence to blame is in most of the values that overflowed.
    bad = xp.where(finite, xp.zeros_like(K), xp.ones_like(K))
    name, batch, count = "X", left, xp.sum(bad, axis=1)
    if not bool(xp.max(count) > xp.max(xp.sum(bad, axis=0))):
        name, batch, count = "Y", left if right is None else right, xp.sum(bad, axis=0)
    j = int(xp.argmax(count))
    if plan.network.readout.per_step:
        j = int(np.searchsorted(batch.offsets, j, side="right") - 1)
    raise KernelOverflowError(
        f"the kernel of {{sequence}} (length {batch.lengths[j]}) overflows "
        f"{plan.dtype}: its variance grows along the sequence. Take normalize=True, which keeps scales apart, "
        f"or a smaller sigma_w (now {max(plan.network.sigma_w):.4g}; ReLU is balanced at 1.4142), or scale the "
        "inputs down" + (', or dtype="float64"' if plan.dtype == np.float32 else ""),
        sequence=j,
        side="" if right is None or right is left else name,
    )
