"""The backward program: gradients of the output are a Netsor program too (appendix B.2 of the RNTK paper).

δu = √n ∂f/∂u for every vector u at every step, from the last one back, as instructions. By Corollary 1 the transposed
matrices Wᵀ act as if they were independent of W, if the readout v is used nowhere else and has no mean: `check_fresh`
looks whether it is so. Then Π[δu, δu'] = E[δu δu'] follows from the same rules, and with it the tangent kernel, as a
sum over weights of backward times forward moments: another way to what `rules` and `tangents` find without going back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sequences import SequenceBatch
from .expectations import GaussianSide, expectations, spread
from .program import INPUT, ONES, LinComp, MatMul, Nonlin, Normalise, Program
from .rules import At, Table
from .sampled import Drawn, SampleSet
from .sampling import moments_over_units
from .structure import Factor

Array = NDArray[np.float64]
READOUT = "v"


@dataclass(frozen=True)
class Transposed:
    """out = Aᵀ δ, at a step; the forward product that it belongs to."""

    out: str
    matrix: str
    of: str
    product: At

    def __str__(self) -> str:
        return f"{self.out} = {self.matrix}ᵀ {self.of}"


@dataclass(frozen=True)
class SlopeTimes:
    """out = ∂_k φ(…) ⊙ δ, at the arguments of a forward instruction; of a normalisation, δ over its deviation."""

    out: str
    made: At
    argument: int
    of: str
    text: str

    def __str__(self) -> str:
        return f"{self.out} = {self.text} ⊙ {self.of}"


@dataclass(frozen=True)
class Sum:
    """out = Σ a δ."""

    out: str
    coefficients: tuple[float, ...]
    of: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.out} = {LinComp(self.out, self.coefficients, self.of).right_side(str)}"


@dataclass(frozen=True, eq=False)
class Backward:
    """The backward program of a network that has read `steps` steps.

    Attributes
    ----------
    program : Program
    steps : int
    instructions : tuple
        In the order in which they are computed.
    signals : dict
        The name of δ of every product with a matrix and every vector of weights, by vector and step (from 0).
    """

    program: Program
    steps: int
    instructions: tuple[Transposed | SlopeTimes | Sum, ...]
    signals: dict[At, str]

    def __str__(self) -> str:
        return "\n".join(map(str, self.instructions))


def check_fresh(program: Program) -> None:
    """Refuse a program whose readout breaks the condition of Corollary 1."""
    if program.readout_mean != 0:
        raise ValueError(
            f"the readout v has the mean {program.readout_mean:g}: gradients then depend on the weights that they are "
            "multiplied by (Corollary 1 of the RNTK paper asks for a fresh readout without mean), and no rule here "
            "gives the tangent kernel; take readout_mean=0"
        )
    if READOUT in program.weight:
        raise ValueError("the readout v is used within the program, and Corollary 1 asks for a fresh one")


def backward(program: Program, steps: int) -> Backward:
    """The backward program, its readout at the last step.

    Examples
    --------
    >>> from rntk.programs import CELLS, trace
    >>> from rntk.programs.backward import backward
    >>> print(backward(trace(CELLS["elman"], activation="erf"), 2))
    δg3[2] = erf'(g3[2]) ⊙ v
    Wᵀδg1[2] = Wᵀ δg3[2]
    δg3[1] = erf'(g3[1]) ⊙ Wᵀδg1[2]
    Wᵀδg1[1] = Wᵀ δg3[1]
    """
    check_fresh(program)
    found: list[Any] = []
    signals: dict[At, str] = {}
    adjoint: dict[At, list[tuple[float, str]]] = defaultdict(list)
    adjoint[At(program.output, steps - 1)].append((1.0, READOUT))
    parts: Counter[str] = Counter()
    uses = Counter(name.rstrip("-") for each in program.instructions for name in each.of) + Counter([program.output])

    def add(name: str, t: int, coefficient: float, signal: str) -> None:
        if name.endswith("-"):
            if t > 0:
                adjoint[At(name[:-1], t - 1)].append((coefficient, signal))
        elif name not in (ONES, INPUT):
            adjoint[At(name, t)].append((coefficient, signal))

    def collect(at: At) -> str | None:
        """The name of δ of a vector, all its parts summed up."""
        terms = adjoint.pop(at, [])
        if len(terms) == 1 and terms[0][0] == 1.0:
            return terms[0][1]
        if not terms:
            return None
        out = f"δ{at.name}[{at.step + 1}]"
        found.append(Sum(out, tuple(c for c, _ in terms), tuple(signal for _, signal in terms)))
        return out

    for t in reversed(range(steps)):
        for each in reversed(program.instructions):
            at = At(each.out, t)
            signal = collect(at)
            if signal is None:
                continue
            if isinstance(each, MatMul):
                signals[at] = signal
                if each.of[0] != INPUT:
                    out = f"{each.matrix}ᵀδ{each.out}[{t + 1}]"
                    found.append(Transposed(out, each.matrix, signal, at))
                    add(each.of[0], t, 1.0, out)
            elif isinstance(each, LinComp):
                for c, name in zip(each.coefficients, each.of, strict=True):
                    add(name, t, c, signal)
            else:
                for k, name in enumerate(each.of):
                    if name.endswith("-") and t == 0:
                        continue
                    of, step = (name[:-1], t) if name.endswith("-") else (name, t + 1)
                    out = f"δ{of}[{step}]"
                    if uses[of] > 1:  # one part of several
                        parts[out] += 1
                        out = f"δ{of}{chr(8320 + parts[out])}[{step}]"
                    found.append(SlopeTimes(out, at, k, signal, _slope_text(program, each, k, t)))
                    add(name, t, 1.0, out)
        for weight in program.weights:
            if weight.vector and (signal := collect(At(weight.name, t))) is not None:
                signals[At(weight.name, t)] = signal
    return Backward(program, steps, tuple(found), signals)


def _slope_text(program: Program, made: Nonlin | Normalise, k: int, t: int) -> str:
    def show(name: str) -> str:
        if name.endswith("-"):
            return f"{name[:-1]}[{t}]"
        return name if name in program.weight else f"{name}[{t + 1}]"

    if isinstance(made, Normalise):
        return f"1/deviation({show(made.of[0])})"
    if made.function.name == "*":
        return show(made.of[1 - k])
    prime = "'" if made.function.arguments == 1 else f"_{k + 1}"
    return f"{made.function.name}{prime}({', '.join(map(show, made.of))})"


@dataclass(eq=False)
class BackwardMoments:
    """Π between the backward programs of two sequences (or of two batches, all pairs at once).

    A backward vector is Σ (functions of forward vectors) × (v, or a product with a transposed matrix); moments of the
    latter are numbers, as matrices forget units. How the former are averaged is what subclasses say.
    """

    left: Backward
    right: Backward
    tied: bool
    sigma_v: float
    memo: dict[tuple[str, str], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.made = tuple({each.out: each for each in side.instructions} for side in (self.left, self.right))

    def leaf(self, a: str, b: str) -> Any:
        """E[δ δ'] of v and of products with transposed matrices."""
        if (a, b) not in self.memo:
            ours, theirs = self.made[0].get(a), self.made[1].get(b)
            value: Any = 0.0
            if a == b == READOUT:
                value = self.sigma_v**2
            elif isinstance(ours, Transposed) and isinstance(theirs, Transposed):
                shared = self.tied or ours.product.step == theirs.product.step
                if shared and ours.matrix == theirs.matrix:
                    value = self.left.program.weight[ours.matrix].sigma ** 2 * self.moment(ours.of, theirs.of)
            self.memo[a, b] = value
        return self.memo[a, b]

    def open(self, side: int, name: str) -> list[tuple[float, tuple[SlopeTimes, ...], str]]:
        """A backward vector as Σ coefficient × slopes × leaf."""
        made = self.made[side].get(name)
        if isinstance(made, Sum):
            parts = zip(made.coefficients, made.of, strict=True)
            return [(c * d, slopes, leaf) for c, of in parts for d, slopes, leaf in self.open(side, of)]
        if isinstance(made, SlopeTimes):
            return [(d, (made, *slopes), leaf) for d, slopes, leaf in self.open(side, made.of)]
        return [(1.0, (), name)]

    def moment(self, a: str, b: str) -> Any:
        """E[δ δ'] of two backward vectors."""
        total: Any = 0.0
        for c, slopes, leaf in self.open(0, a):
            for d, others, other in self.open(1, b):
                number = self.leaf(leaf, other)
                if np.any(number):
                    total = total + c * d * number * self.average(slopes, others)
        return total

    def average(self, ours: tuple[SlopeTimes, ...], theirs: tuple[SlopeTimes, ...]) -> Any:
        """E of the product of slopes of both sequences."""
        raise NotImplementedError


@dataclass(eq=False)
class ExactBackward(BackwardMoments):
    """Π by closed forms: rules (27) and (28) on the backward program, equations (17) to (19) for the simple RNN."""

    table: Table | None = None

    def average(self, ours: tuple[SlopeTimes, ...], theirs: tuple[SlopeTimes, ...]) -> Any:
        table = self.table
        assert table is not None
        left, right = (
            [factor for slope in slopes for factor in self._factors(owner, slope)]
            for owner, slopes in zip(table.owners, (ours, theirs), strict=True)
        )
        value: Any = 1.0
        for factor, rate, at, side in left:
            meeting = [
                k
                for k, (other, *_) in enumerate(right)
                if table.structure.roots[factor.of] & table.structure.roots[other.of]
            ]
            if not meeting:
                value = value * _alone(side, rate)[:, None]
                continue
            _, other_rate, other_at, other_side = right.pop(meeting[0])
            if rate != other_rate:
                raise ValueError("a slope meets a value of the same Gaussian: the rules have no closed form for that")
            covariance = table.pair(at, other_at).moment - spread(side.mean, other_side.mean, True)
            value = value * expectations(side, other_side, covariance, crossed=True)[int(rate)]
        for _, rate, _, side in right:
            value = value * _alone(side, rate)
        return value

    def _factors(self, owner: Table, slope: SlopeTimes) -> list[tuple[Factor, bool, At, GaussianSide]]:
        made = owner.program.by_name[slope.made.name]
        t = slope.made.step
        if isinstance(made, Normalise):
            raise ValueError("slopes of normalised vectors are numbers of each sequence; ask for the tangent kernel")
        assert isinstance(made, Nonlin)
        if made.function.arguments == 1:
            found = [(Factor(made.function, made.of[0]), True)]
        else:
            rest = [name for k, name in enumerate(made.of) if k != slope.argument]
            found = [(factor, False) for name in rest for factor in owner.structure.factors(name) or ()]
        return [(factor, rate, At(factor.of, t), owner.side(factor, t)) for factor, rate in found]


def _alone(side: GaussianSide, rate: bool) -> Array:
    """E[f], or E[f']."""
    if not rate:
        return side.expected
    root = np.sqrt(side.variance)
    return np.asarray(np.divide(side.series[1], root, out=np.zeros_like(root), where=root > 0))


@dataclass(eq=False)
class SampledBackward(BackwardMoments):
    """Π from forward samples: slopes are known at each sample, and E is the mean over them."""

    values: tuple[list[dict[str, Any]], ...] = ()

    def average(self, ours: tuple[SlopeTimes, ...], theirs: tuple[SlopeTimes, ...]) -> Any:
        product: Any = 1.0
        for side, slopes in enumerate((ours, theirs)):
            for slope in slopes:
                product = product * self._slope(side, slope)
        return float(np.mean(product))

    def _slope(self, side: int, slope: SlopeTimes) -> Any:
        values = self.values[side][slope.made.step]
        made = self.left.program.by_name[slope.made.name]
        arguments = [values[name] for name in made.of]
        if isinstance(made, Normalise):
            return moments_over_units(arguments[0][None])[1][0]
        assert isinstance(made, Nonlin)
        return made.function.partial(slope.argument, *arguments)


def tangent_kernel(moments: BackwardMoments, forward: Any, rates: Mapping[str, float]) -> Any:
    """Σ over weights, and over the steps of both sequences, of Π times what the weights multiply (11).

    `forward(u, u')` is the moment of two vectors at a step; of products with inputs that of the inputs.
    """
    program, total = moments.left.program, 0.0
    for a, ours in moments.left.signals.items():
        for b, theirs in moments.right.signals.items():
            name, other = (_weight(program, at.name) for at in (a, b))
            if name != other or not (moments.tied or a.step == b.step):
                continue
            weight = program.weight[name]
            rate = rates.get(name, rates.get(name.rstrip("0123456789"), 1.0))
            inner = 1.0 if weight.vector else forward(a, b)
            total = total + rate * weight.sigma**2 * moments.moment(ours, theirs) * inner
    return total


def _weight(program: Program, name: str) -> str:
    made = program.by_name.get(name)
    return made.matrix if isinstance(made, MatMul) else name


def exact_moments(
    program: Program, left: SequenceBatch, right: SequenceBatch, *, tied: bool = True, sigma_v: float = 1.0
) -> ExactBackward:
    """Π of all pairs of two batches of equal lengths within each; `.moment(δ, δ')` and `.table` are (N, N')."""
    sides = [backward(program, batch.max_length) for batch in (left, right)]
    owners = [Table.own(program, batch, tied, {}) for batch in (left, right)]
    table = Table.cross(*owners)
    for _ in table.each_output([(t, s) for t in range(left.max_length) for s in range(right.max_length)]):
        pass
    return ExactBackward(sides[0], sides[1], tied, sigma_v, table=table)


def source_moment(table: Table) -> Any:
    """`forward` of `tangent_kernel` by the rules."""

    def forward(a: At, b: At) -> Any:
        ours, theirs = (table.program.by_name[at.name] for at in (a, b))
        if ours.of[0] == INPUT:
            return table.inner(a.step, b.step)
        return table.pair(At(ours.of[0], a.step), At(theirs.of[0], b.step)).moment

    return forward


def sampled_kernel(
    samples: SampleSet, r: int, a: int, b: int, rates: Mapping[str, float], sigma_v: float = 1.0
) -> float:
    """The tangent kernel of two sequences in one replicate, by the backward program on its forward samples."""
    ours, theirs = samples.kept[r][a], samples.kept[r][b]
    values = tuple(each.values for each in (ours, theirs))
    sides = [backward(samples.program, len(each.inputs)) for each in (ours, theirs)]
    moments = SampledBackward(sides[0], sides[1], samples.tied, sigma_v, values=values)

    def forward(p: At, q: At) -> float:
        first, second = (samples.program.by_name[at.name].of[0] for at in (p, q))
        if first == INPUT:
            return float(ours.inputs[p.step] @ theirs.inputs[q.step] / ours.inputs.shape[1])
        return float(np.mean(_at(ours, first, p.step) * _at(theirs, second, q.step)))

    outputs = float(np.mean(ours.output[-1] * theirs.output[-1]))
    return sigma_v**2 * rates.get(READOUT, 1.0) * outputs + float(tangent_kernel(moments, forward, rates))


def _at(drawn: Drawn, source: str, step: int) -> Array:
    return np.asarray(drawn.sources[source][step])
