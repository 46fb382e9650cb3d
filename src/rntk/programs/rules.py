"""Rules (27) and (28) as an interpreter, where every expectation is known: a table of second moments.

M[u_t, v_s] = E[u_t v'_s] for any two vectors of a program at steps t and s of two sequences, and T[u_t, v_s], the
covariance of their tangents: what u_t and v'_s do when all weights move by independent standard normal numbers. The
tangents are a program themselves, d(W h) = dW h + W dh, with the same rules; nothing is transposed. For a readout that
is used nowhere else and has no mean, σ_v² (M + T) of the outputs is the tangent kernel.

    LinComp   both are bilinear
    MatMul    M = σ² M[h, h'],  T = σ² (rate M[h, h'] + T[h, h'])   for the same matrix, 0 for two
    Nonlin    M = E[φ φ'],      T = E[φ_z φ'_z] T[g, g']             (6), with a factor for each independent Gaussian

The rate of a group of weights is its learning rate: 0 for one that is frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..sequences import SequenceBatch
from .expectations import GaussianSide, expectations, spread
from .language import Weight
from .program import INPUT, ONES, LinComp, MatMul, Nonlin, Normalise, Program
from .structure import Factor, Structure

Array = NDArray[np.float64]


class At(NamedTuple):
    """A vector at a step, counted from 0."""

    name: str
    step: int


class Pair(NamedTuple):
    """Second moments of two vectors, and the covariance of their tangents."""

    moment: Any
    tangent: Any


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Sequences of any lengths as one array; nothing at a step depends on later ones, so padding is never seen.

    Attributes
    ----------
    values : ndarray
        (N, T, m), zero after the end of a sequence.
    lengths : ndarray
        (N,).
    """

    values: Array
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, batch: SequenceBatch) -> PaddedBatch:
        values = np.zeros((len(batch), batch.max_length, batch.n_channels))
        for i, sequence in enumerate(batch):
            values[i, : len(sequence)] = sequence
        return cls(values, batch.lengths)


@dataclass(eq=False)
class Table:
    """M and T of two batches, all pairs of sequences at once; filled as far as it is asked.

    Attributes
    ----------
    program, structure
        The program, and what is known of it.
    left, right : PaddedBatch
        Without `crossed` they are the same batch, and sequences meet themselves only: arrays are (N,), else (N, N').
    crossed : bool
    owners : tuple of Table
        The same of each batch alone, where variances come from.
    tied : bool
        Whether all steps share their weights.
    rates : mapping
        Learning rates of groups of weights; 1 if not named.
    same : ndarray or None
        Where two sequences are one, so that they share their state before the first step.
    """

    program: Program
    structure: Structure
    left: PaddedBatch
    right: PaddedBatch
    crossed: bool
    owners: tuple[Table, ...]
    tied: bool
    rates: Mapping[str, float]
    same: Any
    pairs: dict[tuple[At, At], Pair] = field(default_factory=dict)
    sides: dict[tuple[Any, At], GaussianSide] = field(default_factory=dict)

    @classmethod
    def own(cls, program: Program, batch: SequenceBatch, tied: bool, rates: Mapping[str, float]) -> Table:
        """Every sequence of a batch with itself."""
        padded = PaddedBatch.of(batch)
        return cls(program, Structure(program), padded, padded, False, (), tied, rates, 1.0)

    @classmethod
    def cross(cls, a: Table, b: Table | None) -> Table:
        """All pairs, from tables of sequences by themselves; without `b` of `a` with itself, each sequence the same."""
        same = np.eye(len(a.left.values)) if b is None else 0.0
        b = a if b is None else b
        return cls(a.program, a.structure, a.left, b.left, True, (a, b), a.tied, a.rates, same)

    @property
    def shape(self) -> tuple[int, ...]:
        n = len(self.left.values)
        return (n, len(self.right.values)) if self.crossed else (n,)

    def rate(self, weight: Weight) -> float:
        """The learning rate of a weight: by its name, or by that of the cell, which has no number of a layer."""
        return float(self.rates.get(weight.name, self.rates.get(weight.name.rstrip("0123456789"), 1.0)))

    # -- vectors of one side -------------------------------------------------------------------------------------------

    def resolve(self, at: At) -> At:
        """The vector by another name: a state before a step is that after the last one."""
        name, step = at
        if not name.endswith("-"):
            return at
        return At(name[:-1], step - 1) if step else At(name, 0)

    def linear(self, at: At, owner: Table) -> list[tuple[Any, At]] | None:
        """A vector as Σ c v if an instruction says so; c may be a number per sequence."""
        made = self.program.by_name.get(at.name)
        if isinstance(made, LinComp):
            return [(c, At(each, at.step)) for c, each in zip(made.coefficients, made.of, strict=True)]
        if isinstance(made, Normalise):
            of = At(made.of[0], at.step)
            mean, square = owner.mean(of), owner.pair(of, of).moment
            spread_ = np.sqrt(np.maximum(square - mean**2, 0.0))
            over = np.divide(1.0, spread_, out=np.zeros_like(spread_), where=spread_ > 0)
            return [(over, of), (-mean * over, At(ONES, at.step))]
        return None

    def mean(self, at: At) -> Array:
        """(N,) μ (27); of a table of single sequences."""
        at = self.resolve(at)
        if at.name == ONES:
            return np.ones(self.shape)
        if parts := self.linear(at, self):
            return np.asarray(sum(c * self.mean(each) for c, each in parts))
        made = self.program.by_name.get(at.name)
        if isinstance(made, Nonlin):
            factors = [self.side(factor, at.step).expected for factor in self.structure.factors(at.name) or ()]
            return np.asarray(np.prod(factors, axis=0))
        weight = self.program.weight.get(at.name)
        return np.full(self.shape, 0.0 if weight is None else weight.mean)

    def side(self, factor: Factor, step: int) -> GaussianSide:
        """A function of a Gaussian vector at a step, of every sequence."""
        key = factor.function, self.resolve(At(factor.of, step))
        if key not in self.sides:
            mean = self.mean(key[1])
            self.sides[key] = GaussianSide(factor.function, mean, self.pair(key[1], key[1]).moment - mean**2)
        return self.sides[key]

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def pair(self, a: At, b: At) -> Pair:
        """M and T of two vectors."""
        a, b = self.resolve(a), self.resolve(b)
        found = self.pairs.get((a, b))
        if found is None:
            found = self._pair(a, b)
            if not self.crossed:
                self.pairs[b, a] = found
            elif a == b and self.owners[0] is self.owners[1]:
                # A sequence with itself, bit by bit: a kink would see the rounding of a correlation of one.
                own = self.owners[0].pair(a, a)
                found = Pair(*(np.array(np.broadcast_to(table, self.shape)) for table in found))
                for table, diagonal in zip(found, own, strict=True):
                    np.fill_diagonal(table, diagonal)
            self.pairs[a, b] = found
        return found

    def _pair(self, a: At, b: At) -> Pair:
        owners = self.owners or (self, self)
        if parts := self.linear(a, owners[0]):
            column = (slice(None), None) if self.crossed else ()
            return _sum((c if np.isscalar(c) else c[column], self.pair(each, b)) for c, each in parts)
        if parts := self.linear(b, owners[1]):
            return _sum((c, self.pair(a, each)) for c, each in parts)
        if (gaussian := self._leaves(a, b)) is not None:
            return gaussian
        ours = [(factor, owners[0].side(factor, a.step)) for factor in self._factors(a)]
        theirs = [(factor, owners[1].side(factor, b.step)) for factor in self._factors(b)]
        values: list[Any] = []
        slopes: list[Any] = []
        for factor, side in ours:
            meeting = [k for k, (other, _) in enumerate(theirs) if self._related(factor, other)]
            if not meeting:
                values.append(side.expected[:, None] if self.crossed else side.expected)
                slopes.append(0.0)
                continue
            other, other_side = theirs.pop(meeting[0])
            moment, tangent = self.pair(At(factor.of, a.step), At(other.of, b.step))
            covariance = moment - spread(side.mean, other_side.mean, self.crossed)
            value, slope = expectations(side, other_side, covariance, crossed=self.crossed)
            values.append(value)
            slopes.append(slope * tangent)
        values += [side.expected for _, side in theirs]
        slopes += [0.0] * len(theirs)
        moment = np.prod(np.broadcast_arrays(np.ones(self.shape), *values), axis=0)
        tangent = np.zeros(self.shape)
        for k, slope in enumerate(slopes):
            if np.ndim(slope):
                term = slope
                for j, value in enumerate(values):
                    term = term if j == k else term * value
                tangent = tangent + term
        return Pair(moment, tangent)

    def _factors(self, at: At) -> tuple[Factor, ...]:
        found = self.structure.factors(at.name) if at.name in self.program.by_name else (Factor(None, at.name),)
        assert found is not None, at
        return found

    def _related(self, left: Factor, right: Factor) -> bool:
        """Whether two Gaussians may depend on one another."""
        roots = self.structure.roots
        return bool(roots[left.of] & roots[right.of])

    def _leaves(self, a: At, b: At) -> Pair | None:
        """Products with matrices, vectors of weights, ones and first states; None if either is a function of some."""
        program = self.program
        made, other = program.by_name.get(a.name), program.by_name.get(b.name)
        if ONES in (a.name, b.name) or (made is None) != (other is None):
            if (isinstance(made, Nonlin) or isinstance(other, Nonlin)) and ONES not in (a.name, b.name):
                return None
            owners = self.owners or (self, self)
            return Pair(spread(owners[0].mean(a), owners[1].mean(b), self.crossed), np.zeros(self.shape))
        if isinstance(made, Nonlin) or isinstance(other, Nonlin):
            return None
        shares = self.tied or a.step == b.step
        if made is None:
            if a.name != b.name:
                owners = self.owners or (self, self)
                return Pair(spread(owners[0].mean(a), owners[1].mean(b), self.crossed), np.zeros(self.shape))
            weight = program.weight.get(a.name)
            if weight is None:  # a state before the first step
                sigma = program.initial[program.states.index(a.name[:-1])]
                return Pair(np.broadcast_to(sigma**2 * self.same, self.shape), np.zeros(self.shape))
            square = weight.sigma**2 * shares
            return Pair(np.full(self.shape, weight.mean**2 + square), np.full(self.shape, self.rate(weight) * square))
        assert isinstance(made, MatMul)
        assert isinstance(other, MatMul)
        if made.matrix != other.matrix or not shares:
            return Pair(np.zeros(self.shape), np.zeros(self.shape))
        weight = program.weight[made.matrix]
        if (made.of[0] == INPUT) != (other.of[0] == INPUT):
            raise ValueError(f"{made.matrix} multiplies the inputs and a vector of another size")
        if made.of[0] == INPUT:
            moment, tangent = self.inner(a.step, b.step), 0.0
        else:
            moment, tangent = self.pair(At(made.of[0], a.step), At(other.of[0], b.step))
        return Pair(weight.sigma**2 * moment, weight.sigma**2 * (self.rate(weight) * moment + tangent))

    def inner(self, t: int, s: int) -> Array:
        """<x_t, x'_s>/m."""
        x, y = self.left.values[:, t], self.right.values[:, s]
        # Summed in one order, so that equal sequences have a correlation of one to the last bit.
        return np.asarray(np.einsum("nm,km->nk" if self.crossed else "nm,nm->n", x, y) / x.shape[1])

    # -- outputs -------------------------------------------------------------------------------------------------------

    def each_output(self, steps: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], Pair]]:
        """M and T of the output at pairs of steps; the table is filled from its beginning: nothing recurs far."""
        wanted, out = set(steps), self.program.output
        if self.structure.remembers or not self.tied:
            last = np.max(steps, axis=0)
            order = [(t, s) for t in range(last[0] + 1) for s in range(last[1] + 1)]
        else:
            order = sorted({(t - k, s - k) for t, s in steps for k in range(min(t, s) + 1)})
        for owner in self.owners:
            owner.fill(max(max(each) for each in order))
        row = 0
        for t, s in order:
            if t > row and self.owners:  # nothing looks further back than one step
                row = t
                self.pairs = {key: pair for key, pair in self.pairs.items() if key[0].step >= t - 1}
            pair = self.pair(At(out, t), At(out, s))
            if (t, s) in wanted:
                yield (t, s), pair

    def fill(self, last: int) -> None:
        """The outputs of a table of single sequences, up to a step that they have."""
        for t in range(min(last + 1, self.left.values.shape[1])):
            self.pair(At(self.program.output, t), At(self.program.output, t))


def _sum(parts: Any) -> Pair:
    moment: Any = 0.0
    tangent: Any = 0.0
    for c, pair in parts:
        moment, tangent = moment + c * pair.moment, tangent + c * pair.tangent
    return Pair(moment, tangent)
