r"""The tangent kernel of a sampled program: one table recursion over pairs of steps (t, s), on the forward samples.

Given all forward samples, tangents are linear in Gaussian vectors that are independent of the samples, so second
moments say everything. With y the states that enter a step unit by unit, g^k the Gaussian vectors of a step (families),
A = ∂y_t/∂y_{t-1} and P^k = ∂y_t/∂g^k, local derivatives that the trace knows, and a prime for the second sequence:

    Θ^{km}[t,s] = direct + Σ σ² E cov(da, da')       over the matrices that both read, a what they multiply
    U[t,s] = A_t U[t-1,s] + Σ P^k_t Θ^{km}[t,s] P'^m_s,    N[t,s] = N[t,s-1] A'_s + U[t,s]       cov(dy_t, dy'_s)
    X^k[t,s] = A_t X^k[t-1,s] + Σ P^m_t Θ^{mk}[t,s]                                             cov(dy_t, dg'^k_s)
    X'^k[t,s] = X'^k[t,s-1] A'_s + Σ Θ^{km}[t,s] P'^m_s                                         cov(dg^k_t, dy'_s)

What a matrix multiplies is a function of earlier and present states and of earlier families of the step; its derivative
by them, of either side, weighs N, X, X' and Θ. Only what is structurally not zero and needed is computed: for most
cells a pair of numbers per sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, njit, types
from numpy.typing import NDArray

from ..activations.compiled import INSIDE, compile_function, inlined
from .program import INPUT, ONES, LinComp, MatMul, Nonlin, Normalise, Program
from .sampling import moments_over_units

Array = NDArray[Any]
#: What a derivative is by: ("old", state), ("new", state) or ("family", number).
Key = tuple[str, Any]
#: Samples that are worked on at a time: what is touched stays in the first cache.
BLOCK = 256


class Family(NamedTuple):
    """A Gaussian vector of a step: Σ c of products with matrices and vectors of weights that go nowhere else."""

    name: str
    terms: tuple[tuple[float, str], ...]


class Operation(NamedTuple):
    """One line of the compiled recursion; -1 is absent.

    `slot += number · x · source · y`, or `number += ...` of its mean over samples: x and y are local derivatives of the
    two sequences at their steps, `source` a slot at step s or, if `back`, s - 1, of this row or, if `above`, the last.
    """

    kind: int
    target: int
    number: int
    x: int
    source: int
    above: int
    back: int
    y: int


ASSIGN, ADD, MEAN, COPY, CLEAR, DIRECT, RECALL, STORE = range(8)


class TangentRecursion:
    """What there is to compute for a program: families, local derivatives, and operations in their order.

    Attributes
    ----------
    families : list of Family
    memory : list of str
        States y.
    derivatives : list of (str, Key)
        The local derivatives that operations read: ∂(vector)/∂(key).
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.families = find_families(program)
        pointwise = [each for each in program.instructions if not isinstance(each, MatMul)]
        used = {name for each in pointwise for name in each.of}
        self.memory = [state for state in program.states if f"{state}-" in used]
        self.derivatives: list[tuple[str, Key]] = []
        self.shape, self.steps = self.differentiate(None)
        self._slots: dict[Any, int] = {}
        self._numbers: dict[Any, int] = {}
        self._tables: dict[Any, int] = {}
        self._find_links()
        self._find_structure()
        self.operations = self._schedule()

    # -- local derivatives ---------------------------------------------------------------------------------------------

    def differentiate(self, values: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Derivatives of every vector by states before and after the step and by families, and those of the states y.

        Without values only structure: numbers where they are the same for all samples, None elsewhere.
        """
        found: dict[str, dict[Key, Any]] = {ONES: {}}
        tops = {family.name: k for k, family in enumerate(self.families)}
        for state in self.program.states:
            found[f"{state}-"] = {("old", state): 1.0} if state in self.memory else {}
        for weight in self.program.weights:
            if weight.vector:
                found[weight.name] = {("family", tops[weight.name]): 1.0} if weight.name in tops else {}
        #: The same with states after the step opened too: by what was there before.
        deep, steps = dict(found), {}
        for each in self.program.instructions:
            weights: list[Any] = [None] * len(each.of)
            if isinstance(each, LinComp):
                weights = list(each.coefficients)
            elif values is not None and isinstance(each, Normalise):
                weights = [moments_over_units(values[each.of[0]])[1]]
            elif values is not None and isinstance(each, Nonlin):
                arguments = [values[of] for of in each.of]
                weights = [each.function.partial(k, *arguments) if found[of] else 0.0 for k, of in enumerate(each.of)]
            family = tops.get(each.out)
            inside = set() if family is None else {name for _, name in self.families[family].terms}
            taken = () if isinstance(each, MatMul) else zip(weights, each.of, strict=True)
            terms = [(c, of) for c, of in taken if of not in inside]
            own = {} if family is None else {("family", family): 1.0}
            opened = own | combine((c, deep[of]) for c, of in terms)
            changed = any(deep[of] is not found[of] for _, of in terms)
            deep[each.out] = opened
            found[each.out] = own | combine((c, found[of]) for c, of in terms) if changed else opened
            if each.out in self.memory:
                steps[each.out] = opened
                found[each.out] = {("new", each.out): 1.0}
        return found, steps

    def values(self, values: dict[str, Any]) -> list[Any]:
        """The local derivatives that operations read, at one step: (L, M) arrays, or numbers."""
        found, steps = self.differentiate(values)
        return [(steps if name in self.memory else found)[name][key] for name, key in self.derivatives]

    def _derivative(self, name: str, key: Key, *, step: bool = False) -> int:
        """The place of a derivative among those that operations read; -1 if it is one."""
        table = self.steps if step else self.shape
        value = table[name][key]
        if value is not None and np.ndim(value) == 0 and value == 1.0:
            return -1
        if (name, key) not in self.derivatives:
            self.derivatives.append((name, key))
        return self.derivatives.index((name, key))

    # -- structure -----------------------------------------------------------------------------------------------------

    def _find_links(self) -> None:
        """Which families share weights, and through which products."""
        program, self.links = self.program, {}
        self.direct: list[tuple[int, int]] = []
        for k, first in enumerate(self.families):
            for m, second in enumerate(self.families):
                pairs = [
                    (c * d, a, b)
                    for c, a in first.terms
                    for d, b in second.terms
                    if self.weight_of(a) == self.weight_of(b)
                ]
                if pairs:
                    self.links[k, m] = pairs
                    self.direct.append((k, m))
        #: Vectors whose covariance of tangents is asked for after the step, pair by pair.
        self.readable: list[tuple[str, str]] = [(program.output, program.output)]
        for pairs in self.links.values():
            for _, a, b in pairs:
                sources = [self._source(each) for each in (a, b)]
                if all(each is not None and each.endswith("-") for each in sources):
                    pair = tuple(str(each)[:-1] for each in sources)
                    if pair not in self.readable:
                        self.readable.append(pair)  # type: ignore[arg-type]

    def weight_of(self, leaf: str) -> str:
        """The weight behind a term of a family."""
        made = self.program.by_name.get(leaf)
        return made.matrix if isinstance(made, MatMul) else leaf

    def _source(self, leaf: str) -> str | None:
        """What a product multiplies; None for inputs, and for vectors of weights."""
        made = self.program.by_name.get(leaf)
        return made.of[0] if isinstance(made, MatMul) and made.of[0] != INPUT else None

    def reads(self, leaf: str) -> str | None:
        """What a product multiplies, inputs too; None for vectors of weights."""
        made = self.program.by_name.get(leaf)
        return made.of[0] if isinstance(made, MatMul) else None

    def _find_structure(self) -> None:
        """Which covariances can be other than zero: pairs of states, and states with families."""
        y, steps = self.memory, self.steps
        A = {(i, j) for i in y for j in y if ("old", j) in steps[i]}
        P = {(i, k) for i in y for k in range(len(self.families)) if ("family", k) in steps[i]}
        self.A, self.P = A, P
        U = {(i, j) for i, k in P for j, m in P if (k, m) in self.links}
        X = {(i, m) for i, k in P for m in range(len(self.families)) if (k, m) in self.links}
        while True:
            more = {(i, j) for i, p in A for q, j in U if q == p} | U
            more_x = {(i, k) for i, p in A for q, k in X if q == p} | X
            if (more, more_x) == (U, X):
                break
            U, X = more, more_x
        N = set(U)
        while (more := {(i, j) for j, p in A for i, q in N if q == p} | N) != N:
            N = more
        self.U, self.X, self.N = U, X, N

    # -- operations ----------------------------------------------------------------------------------------------------

    def _slot(self, *quantity: Any) -> int:
        return self._slots.setdefault(quantity, len(self._slots))

    def _number(self, *quantity: Any) -> int:
        return self._numbers.setdefault(quantity, len(self._numbers))

    def _covariance(self, v: str, w: str, target: int) -> list[Operation]:
        """Operations that add E cov(dv, dw') at this pair of steps to a number."""
        found = []
        for ours, theirs in ((a, b) for a in self.shape[v] for b in self.shape[w]):
            x, y = self._derivative(v, ours), self._derivative(w, theirs)
            (kind, i), (other, j) = ours, theirs
            if kind == "family" and other == "family":
                if (i, j) in self.links:
                    found.append(Operation(MEAN, target, self._number("theta", i, j), x, -1, 0, 0, y))
                continue
            if kind == "family":
                quantity, exists = ("X'", j, i), (j, i) in self.X
            elif other == "family":
                quantity, exists = ("X", i, j), (i, j) in self.X
            else:
                quantity, exists = ("N", i, j), (i, j) in self.N
            if exists:
                self._need(*quantity)
                above, back = int(kind == "old"), int(other == "old")
                found.append(Operation(MEAN, target, -1, x, self._slot(*quantity), above, back, y))
        return found

    def _need(self, quantity: str, i: Any, j: Any) -> None:
        """Note that a covariance is needed, with all it is made of."""
        if (quantity, i, j) in self.needed:
            return
        self.needed.add((quantity, i, j))
        if quantity == "N":
            if (i, j) in self.U:
                self._need("U", i, j)
            for y in self.memory:
                if (j, y) in self.A and (i, y) in self.N:
                    self._need("N", i, y)
            return
        known = self.U if quantity == "U" else self.X
        for y in self.memory:
            if (i, y) in self.A and (y, j) in known:
                self._need(quantity, y, j)

    def _updates(self, quantity: str, i: Any, j: Any) -> list[Operation]:
        """Operations that make a covariance at this pair of steps."""
        target, terms = self._slot(quantity, i, j), []
        if quantity == "N":
            if (i, j) in self.U:
                terms.append(Operation(ADD, target, -1, -1, self._slot("U", i, j), 0, 0, -1))
            terms += [
                Operation(ADD, target, -1, -1, self._slot("N", i, y), 0, 1, self._derivative(j, ("old", y), step=True))
                for y in self.memory
                if (j, y) in self.A and (i, y) in self.N
            ]
        elif quantity == "X'":  # i the state of the second sequence, j the family of the first
            terms += [
                Operation(ADD, target, -1, -1, self._slot("X'", y, j), 0, 1, self._derivative(i, ("old", y), step=True))
                for y in self.memory
                if (i, y) in self.A and (y, j) in self.X
            ]
            terms += [
                Operation(
                    ADD,
                    target,
                    self._number("theta", j, m),
                    -1,
                    -1,
                    0,
                    0,
                    self._derivative(i, ("family", m), step=True),
                )
                for (n, m) in sorted(self.P)
                if n == i and (j, m) in self.links
            ]
        else:
            known = self.U if quantity == "U" else self.X
            terms += [
                Operation(
                    ADD, target, -1, self._derivative(i, ("old", y), step=True), self._slot(quantity, y, j), 1, 0, -1
                )
                for y in self.memory
                if (i, y) in self.A and (y, j) in known
            ]
            for n, k in sorted(self.P):
                if n != i:
                    continue
                x = self._derivative(i, ("family", k), step=True)
                if quantity == "X":
                    if (k, j) in self.links:
                        terms.append(Operation(ADD, target, self._number("theta", k, j), x, -1, 0, 0, -1))
                    continue
                terms += [
                    Operation(
                        ADD,
                        target,
                        self._number("theta", k, m),
                        x,
                        -1,
                        0,
                        0,
                        self._derivative(j, ("family", m), step=True),
                    )
                    for o, m in sorted(self.P)
                    if o == j and (k, m) in self.links
                ]
        return [each._replace(kind=ASSIGN) if n == 0 else each for n, each in enumerate(terms)]

    def _schedule(self) -> list[Operation]:
        """All operations, in an order in which everything is there when it is read."""
        self.needed: set[Any] = set()
        # Names first, so that it is known what is needed: numbers of sources in the step, and after it.
        inner = {
            pair: self._covariance(*pair, self._number("inner", *pair))
            for pairs in self.links.values()
            for pair in dict.fromkeys(self._sources(a, b) for _, a, b in pairs)
            if pair is not None and not pair[0].endswith("-") and not pair[1].endswith("-")
        }
        mixed = [
            pair
            for pairs in self.links.values()
            for _, a, b in pairs
            if (pair := self._sources(a, b)) is not None and pair[0].endswith("-") != pair[1].endswith("-")
        ]
        if mixed:
            raise ValueError(
                f"one matrix multiplies {self.program.show(mixed[0][0])} and {self.program.show(mixed[0][1])}, a state "
                "before the step and a vector within it; give each a matrix of its own"
            )
        after = {pair: self._covariance(*pair, self._number("after", *pair)) for pair in self.readable}
        order = [each.out for each in self.program.instructions]
        weights = [w.name for w in self.program.weights]
        place = {name: k for k, name in enumerate([*weights, *order])}
        done: set[Any] = set()
        operations: list[Operation] = []

        def ready(at: int) -> None:
            """Covariances of states and families that are there by now."""
            for quantity, i, j in sorted(
                self.needed - done, key=lambda each: ("UNX".find(each[0][0]), each[0], str(each))
            ):
                other = place[j] if quantity in "UN" else place[self.families[j].name]
                if max(place[i], other) <= at:
                    operations.extend(self._updates(quantity, i, j))
                    done.add((quantity, i, j))

        for name in sorted(place, key=place.__getitem__):
            here = [k for k, family in enumerate(self.families) if family.name == name]
            for k in here:
                for m in range(len(self.families)):
                    if (k, m) in self.links and place[self.families[m].name] <= place[name]:
                        for both in dict.fromkeys([(k, m), (m, k)]):
                            operations += self._theta(both, inner, done)
            if here or name in self.memory:
                ready(place[name])
        for pair, covariance in after.items():
            number = self._number("after", *pair)
            operations += [Operation(CLEAR, number, -1, -1, -1, 0, 0, -1), *covariance]
            operations.append(Operation(STORE, self._table(*pair), number, -1, -1, 0, 0, -1))
        return operations

    def _table(self, v: str, w: str) -> int:
        return self._tables.setdefault((v, w), len(self._tables))

    def _sources(self, a: str, b: str) -> tuple[str, str] | None:
        sources = self._source(a), self._source(b)
        return None if None in sources else sources  # type: ignore[return-value]

    def _theta(self, pair: tuple[int, int], inner: dict[Any, list[Operation]], done: set[Any]) -> list[Operation]:
        """Θ of two families: what their weights do themselves, and what is handed on to what they multiply."""
        theta = self._number("theta", *pair)
        found = [Operation(DIRECT, theta, self.direct.index(pair), -1, -1, 0, 0, -1)]
        for factor, a, b in self.links[pair]:
            sources = self._sources(a, b)
            if sources is None:
                continue
            sigma = self.program.weight[self.weight_of(a)].sigma
            self.scales.append(factor * sigma**2)
            scale = len(self.scales) - 1
            if sources[0].endswith("-"):
                table = self._table(sources[0][:-1], sources[1][:-1])
                found.append(Operation(RECALL, theta, table, scale, -1, 0, 0, -1))
                continue
            own = self._number("inner", *sources)
            if ("inner", sources) not in done:
                found[:0] = [Operation(CLEAR, own, -1, -1, -1, 0, 0, -1), *inner[sources]]
                done.add(("inner", sources))
            found.append(Operation(COPY, theta, own, scale, -1, 0, 0, -1))
        return found

    @cached_property
    def scales(self) -> list[float]:
        """Factors σ² of products, by number."""
        return []

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Slots, numbers and tables that operations use."""
        return max(len(self._slots), 1), len(self._numbers), len(self._tables)

    @property
    def output_table(self) -> int:
        """The table with E cov of the output's tangents."""
        return self._tables[self.program.output, self.program.output]


def combine(parts: Any) -> dict[Key, Any]:
    """Σ c d over derivatives; None is a number per sample that isn't known yet."""
    total: dict[Key, Any] = {}
    for c, derivatives in parts:
        for key, d in derivatives.items():
            term = None if c is None or d is None else c * d
            before = total.get(key, 0.0)
            total[key] = None if term is None or before is None else before + term
    return total


def find_families(program: Program) -> list[Family]:
    """The Gaussian vectors of a step, as few as there can be: sums whose terms go nowhere else are one."""
    leaves = {each.out for each in program.instructions if isinstance(each, MatMul)}
    leaves |= {weight.name for weight in program.weights if weight.vector}
    users: dict[str, list[str]] = {name: [] for name in leaves}
    for each in program.instructions:
        for name in each.of:
            if name in leaves:
                users[name].append(each.out)
    found = []
    for each in program.instructions:
        if isinstance(each, LinComp):
            terms = zip(each.coefficients, each.of, strict=True)
            own = [(c, name) for c, name in terms if name in leaves and len(users[name]) == 1]
            if own:
                found.append(Family(each.out, tuple(own)))
    inside = {name for family in found for _, name in family.terms}
    vectors, made = sorted(leaves - set(program.by_name)), [each.out for each in program.instructions]
    order = {name: k for k, name in enumerate([*vectors, *made])}
    found += [Family(name, ((1.0, name),)) for name in leaves - inside if users[name]]
    return sorted(found, key=lambda family: order[family.name])


@dataclass(frozen=True, eq=False)
class Compiled:
    """A recursion as arrays, ready to run."""

    code: NDArray[np.int64]
    scales: NDArray[np.float64]
    sizes: tuple[int, int, int]

    @classmethod
    def of(cls, recursion: TangentRecursion) -> Compiled:
        code = np.array(recursion.operations, dtype=np.int64).reshape(-1, 8)
        return cls(code, np.array(recursion.scales, dtype=np.float64), recursion.sizes)


#: Sums may be taken in any order: they are means of samples.
_summing = njit(**(INSIDE | {"fastmath": {"contract", "reassoc"}}))


@_summing  # type: ignore[untyped-decorator]
def _sum(a: Any) -> float:
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i]
    return float(total)


@_summing  # type: ignore[untyped-decorator]
def _sum2(a: Any, b: Any) -> float:
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return float(total)


@_summing  # type: ignore[untyped-decorator]
def _sum3(a: Any, b: Any, c: Any) -> float:
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i] * c[i]
    return float(total)


@inlined
def _is_like(code: Any, j: int) -> bool:
    """Whether the next operation adds another product of two derivatives to the same slot."""
    n = j + 1
    adds = code[n, 0] == 1 and code[n, 1] == code[j, 1]
    return bool(adds and code[n, 3] >= 0 and code[n, 4] < 0 and code[n, 7] >= 0)


@cache
def compiled_recursion(dtype: np.dtype[Any]) -> Any:
    """`_recur` for a precision."""
    real = from_dtype(dtype)
    i64, f64 = types.int64, types.float64
    factors = types.Array(real, 3, "C")
    return compile_function(
        _recur,
        types.void(
            types.Array(i64, 2, "C"), types.Array(f64, 1, "C"), types.boolean, factors, factors,
            types.Array(f64, 3, "C"), types.Array(real, 4, "C"), types.Array(f64, 1, "C"), types.Array(f64, 3, "C"),
        ),
    )  # fmt: skip


def _recur(
    code: Any, scales: Any, tied: bool, x: Any, y: Any, direct: Any, slots: Any, numbers: Any, tables: Any
) -> None:
    """Run the operations for all pairs of steps of two sequences.

    x, y (factors, T, M) local derivatives; direct (pairs of families, T, T'); slots (slots, 2, T' + 1 or more, M) is
    memory to work in, and tables (tables, T + 1, T' + 1) begins as zeros.
    """
    samples, steps = x.shape[2], code.shape[0]
    slots[:, :, 0] = 0.0
    slots[:, 1] = 0.0  # the row before the first
    for t in range(direct.shape[1]):
        row = t % 2
        for s in range(direct.shape[2]):
            shared = tied or t == s
            k = 0
            while k < steps:
                kind, target, number = code[k, 0], code[k, 1], code[k, 2]
                if kind == 4:
                    numbers[target] = 0.0
                elif kind == 5:
                    numbers[target] = direct[number, t, s] if shared else 0.0
                elif kind == 6:
                    if shared:
                        numbers[target] += scales[code[k, 3]] * tables[number, t, s]
                elif kind == 3:
                    if shared:
                        numbers[target] += scales[code[k, 3]] * numbers[number]
                elif kind == 7:
                    tables[target, t + 1, s + 1] = numbers[number]
                if kind >= 3:
                    k += 1
                    continue
                # Operations on samples, as many as follow one another: block after block, to stay in the first cache.
                last = k
                while last < steps and code[last, 0] <= 2:
                    last += 1
                for begin in range(0, samples, 256):
                    end = min(begin + 256, samples)
                    j = k - 1
                    while j + 1 < last:
                        j += 1
                        kind, target, number = code[j, 0], code[j, 1], code[j, 2]
                        cx, source, cy = code[j, 3], code[j, 4], code[j, 7]
                        factor = 1.0 if number < 0 else numbers[number]
                        a = x[cx if cx >= 0 else 0, t, begin:end]
                        b = y[cy if cy >= 0 else 0, s, begin:end]
                        at = s if code[j, 6] == 1 else s + 1
                        from_row = 1 - row if code[j, 5] == 1 else row
                        c = slots[source if source >= 0 else 0, from_row, at, begin:end]
                        if kind == 2:
                            if source < 0:
                                if cx < 0 and cy < 0:
                                    total = float(end - begin)
                                elif cy < 0:
                                    total = _sum(a)
                                elif cx < 0:
                                    total = _sum(b)
                                else:
                                    total = _sum2(a, b)
                            elif cx < 0 and cy < 0:
                                total = _sum(c)
                            elif cy < 0:
                                total = _sum2(a, c)
                            elif cx < 0:
                                total = _sum2(c, b)
                            else:
                                total = _sum3(a, b, c)
                            numbers[target] += factor * total / samples
                            continue
                        d = slots[target, row, s + 1, begin:end]
                        f = a.dtype.type(factor)
                        if kind == 0:
                            for i in range(end - begin):
                                d[i] = 0.0
                        if source < 0:
                            if cx >= 0 and cy >= 0 and j + 1 < last and _is_like(code, j):
                                # Two at a time: half as often to memory and back.
                                j += 1
                                f2 = a.dtype.type(1.0 if code[j, 2] < 0 else numbers[code[j, 2]])
                                a2, b2 = x[code[j, 3], t, begin:end], y[code[j, 7], s, begin:end]
                                for i in range(end - begin):
                                    d[i] += f * a[i] * b[i] + f2 * a2[i] * b2[i]
                            elif cx < 0 and cy < 0:
                                for i in range(end - begin):
                                    d[i] += f
                            elif cy < 0:
                                for i in range(end - begin):
                                    d[i] += f * a[i]
                            elif cx < 0:
                                for i in range(end - begin):
                                    d[i] += f * b[i]
                            else:
                                for i in range(end - begin):
                                    d[i] += f * a[i] * b[i]
                        elif cx < 0 and cy < 0:
                            for i in range(end - begin):
                                d[i] += f * c[i]
                        elif cy < 0:
                            for i in range(end - begin):
                                d[i] += f * a[i] * c[i]
                        elif cx < 0:
                            for i in range(end - begin):
                                d[i] += f * b[i] * c[i]
                        else:
                            for i in range(end - begin):
                                d[i] += f * a[i] * b[i] * c[i]
                k = last
