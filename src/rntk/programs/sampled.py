"""Kernels of programs by sampling: one sample set, drawn once per sequence, and tables over pairs of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ..errors import check_dtype
from ..runtime import Execution
from .program import INPUT, MatMul, Program
from .sampling import Noise, Replicate
from .tangents import Compiled, TangentRecursion, compiled_recursion

Array = NDArray[Any]


@dataclass(eq=False)
class Drawn:
    """What is kept of a sequence in one replicate.

    Attributes
    ----------
    inputs : ndarray
        (T, m).
    output : ndarray
        (T, M) what the readout multiplies.
    sources : dict
        (T, M) what matrices multiply, by name.
    factors : ndarray
        (F, T, M) local derivatives.
    values : list of dict
        (M,) every vector by name, at each step; empty unless asked for.
    """

    inputs: Array
    output: Array
    sources: dict[str, Array]
    factors: Array
    values: list[dict[str, Array]]


def one_thread_each() -> AbstractContextManager[Any]:
    """A context in which matrix products stay on their thread: replicates are what runs at once."""
    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits


class SampleSet:
    """Samples of a program for any number of sequences; those that come later are drawn given the earlier ones.

    Parameters
    ----------
    program : Program
    tied : bool
        Whether all steps share their weights.
    points : int
        Samples of each scramble.
    scrambles : int
        Independent replicates, at least two.
    seed : int
    method : {"auto", "sobol", "random", "network"}
        "auto" is Sobol points as long as the first sequences have fewer steps in all than there are points, otherwise
        real networks of that width.

    Attributes
    ----------
    known : dict
        The number of every sequence, by its bytes.
    """

    def __init__(
        self,
        program: Program,
        *,
        tied: bool = True,
        points: int = 1024,
        scrambles: int = 16,
        seed: int = 0,
        method: str = "auto",
        dtype: Any = "float64",
        keep_values: bool = False,
    ) -> None:
        self.keep_values = keep_values
        self.dtype = check_dtype(dtype)
        self.program, self.tied, self.points, self.seed, self.method = program, tied, points, seed, method
        self.recursion = TangentRecursion(program)
        self.compiled = Compiled.of(self.recursion)
        hidden = (each.of[0] for each in program.instructions if isinstance(each, MatMul))
        self.sources = [name for name in dict.fromkeys(hidden) if name != INPUT]
        self.known: dict[bytes, int] = {}
        self.sequences: list[Array] = []
        self.lock = RLock()
        self.kept: list[list[Drawn]] = [[] for _ in range(scrambles)]
        self.replicates: list[Replicate] = []

    def add(self, sequences: list[Array], run: Execution) -> list[int]:
        """The numbers of some sequences, (T, m) each; those that are new are drawn, all together.

        In networks nothing is drawn yet: what a sequence makes of them depends on no other one, so nothing is kept.
        """
        keys = [each.tobytes() + str(each.shape).encode() for each in sequences]
        new: dict[bytes, Array] = {
            key: each for key, each in zip(keys, sequences, strict=True) if key not in self.known
        }
        if new:
            if not self.replicates:
                self._begin(sum(map(len, new.values())))
            for key, each in new.items():
                self.known[key] = len(self.known)
                if self.method == "network":
                    self.sequences.append(each)
            if self.method != "network":
                with one_thread_each():
                    run.each(lambda r: self._keep(r, list(new.values())), list(range(len(self.replicates))))
        return [self.known[key] for key in keys]

    def _begin(self, rows: int) -> None:
        if self.method == "auto":
            self.method = "sobol" if rows <= self.points else "network"
        self.replicates = [self._replicate(r) for r in range(len(self.kept))]

    def _replicate(self, r: int) -> Replicate:
        child = np.random.SeedSequence(self.seed, spawn_key=(r,))
        noise = Noise(self.points, np.random.default_rng(child), sobol=self.method == "sobol")
        network = (self.seed, r) if self.method == "network" else None
        return Replicate(self.program, self.points, self.tied, network, noise)

    def _keep(self, r: int, sequences: list[Array]) -> float:
        self.kept[r] += self._draw(self.replicates[r], sequences)
        return 1.0

    @contextmanager
    def of_replicate(self, r: int, numbers: set[int]) -> Iterator[Mapping[int, Drawn]]:
        """What is kept of some sequences in one replicate, or made for as long as it is needed."""
        if self.method != "network":
            yield dict(enumerate(self.kept[r]))
            return
        order = sorted(numbers)
        yield dict(zip(order, self._draw(self._replicate(r), [self.sequences[k] for k in order]), strict=True))

    def _draw(self, replicate: Replicate, sequences: list[Array]) -> list[Drawn]:
        names, M = self.recursion.derivatives, self.points
        fresh = [
            Drawn(
                each,
                np.empty((len(each), M)),
                {name: np.empty((len(each), M)) for name in self.sources},
                np.empty((len(names), len(each), M), self.dtype),
                [],
            )
            for each in sequences
        ]

        def keep(values: dict[str, Any], live: list[int], t: int) -> None:
            factors = [np.broadcast_to(each, (len(live), M)) for each in self.recursion.values(values)]
            for k, i in enumerate(live):
                fresh[i].output[t] = values[self.program.output][k]
                for name in self.sources:
                    fresh[i].sources[name][t] = values[name][k]
                if self.keep_values:
                    fresh[i].values.append({name: each[k if len(each) > 1 else 0] for name, each in values.items()})
                for number, factor in enumerate(factors):
                    fresh[i].factors[number, t] = factor[k]

        replicate.run(sequences, keep)
        return fresh

    # -- tables --------------------------------------------------------------------------------------------------------

    def moments(self, a: Drawn, b: Drawn) -> Array:
        """(T, T') E[h h'] of the outputs of two sequences, in one replicate."""
        return np.asarray(a.output @ b.output.T / self.points)

    def direct(self, a: Drawn, b: Drawn, rates: Mapping[str, float]) -> Array:
        """(pairs of families, T, T') what the weights that two families share contribute themselves."""
        grams: dict[Any, Array] = {}
        found = np.zeros((len(self.recursion.direct), len(a.inputs), len(b.inputs)))
        for k, pair in enumerate(self.recursion.direct):
            for factor, left, right in self.recursion.links[pair]:
                name = self.recursion.weight_of(left)
                sources = self.recursion.reads(left), self.recursion.reads(right)
                if sources not in grams:
                    grams[sources] = self._gram(a, b, *sources)
                rate = rates.get(name, rates.get(name.rstrip("0123456789"), 1.0))
                found[k] += rate * factor * self.program.weight[name].sigma ** 2 * grams[sources]
        return found

    def _gram(self, a: Drawn, b: Drawn, left: str | None, right: str | None) -> Array:
        if left is None or right is None:
            return np.ones((len(a.inputs), len(b.inputs)))
        if left == INPUT:
            return np.asarray(a.inputs @ b.inputs.T / a.inputs.shape[1])
        return np.asarray(a.sources[left] @ b.sources[right].T / self.points)

    def tangents(self, a: Drawn, b: Drawn, rates: Mapping[str, float], work: Array | None = None) -> Array:
        """(T, T') covariance of the tangents of the outputs of two sequences, in one replicate."""
        direct = self.direct(a, b, rates)
        _, T, S = direct.shape
        slots, numbers, tables = self.compiled.sizes
        shape = slots, 2, S + 1, self.points
        if work is None or work.shape[2] <= S:
            work = np.empty(shape, self.dtype)
        out = np.zeros((tables, T + 1, S + 1))
        compiled_recursion(self.dtype)(
            self.compiled.code,
            self.compiled.scales,
            self.tied,
            a.factors,
            b.factors,
            direct,
            work,
            np.zeros(numbers),
            out,
        )
        return out[self.recursion.output_table, 1:, 1:]

    def memory(self, steps: int) -> Array:
        """Memory that `tangents` of sequences up to a length can use again and again."""
        return np.empty((self.compiled.sizes[0], 2, steps + 1, self.points), self.dtype)
