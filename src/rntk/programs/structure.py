"""What a program's structure says, before any number is known: which vectors are Gaussian, which are independent, and
whether every expectation that the rules need is one of a product of two functions of one Gaussian each.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from .language import PRODUCT, Function
from .program import INPUT, ONES, LinComp, MatMul, Nonlin, Normalise, Program


class Factor(NamedTuple):
    """A function of one Gaussian vector; None is the vector itself."""

    function: Function | None
    of: str


class Structure:
    """Facts about a program.

    Attributes
    ----------
    gaussian : frozenset of str
        Vectors that are Gaussian: linear in products with matrices, in vectors of weights and in Gaussian states.
    remembers : bool
        Whether a state enters otherwise than by a matrix. If not, moments at steps (t, s) ask for those at
        (t - 1, s - 1) only, so that the recursion runs along diagonals of the table of steps.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.gaussian = self._find_gaussian()
        self.roots = self._find_roots()
        linear = [each for each in program.instructions if not isinstance(each, MatMul)]
        self.remembers = any(name.endswith("-") for each in linear for name in each.of)

    def _find_gaussian(self) -> frozenset[str]:
        program, states = self.program, set(self.program.states)
        while True:
            found = {ONES, *(w.name for w in program.weights if w.vector), *(f"{state}-" for state in states)}
            for each in program.instructions:
                linear = isinstance(each, LinComp | Normalise) and found.issuperset(each.of)
                if isinstance(each, MatMul) or linear:
                    found.add(each.out)
            if states <= found:
                return frozenset(found)
            states &= found

    def _find_roots(self) -> dict[str, frozenset[str]]:
        """What each Gaussian vector is made of: vectors without common roots are independent (fifth rule of (28))."""
        program = self.program
        roots = {w.name: frozenset([w.name]) for w in program.weights} | {ONES: frozenset()}
        for state in program.states:
            roots[f"{state}-"] = frozenset([f"{state}-"])
        while True:
            for each in program.instructions:
                if each.out in self.gaussian:
                    sources = (each.matrix,) if isinstance(each, MatMul) else each.of
                    roots[each.out] = frozenset().union(*(roots[source] for source in sources))
            grown = {f"{s}-": roots[f"{s}-"] | roots[s] for s in program.states if s in self.gaussian}
            if all(roots[name] == found for name, found in grown.items()):
                return roots
            roots |= grown

    def factors(self, name: str) -> tuple[Factor, ...] | None:
        """A vector as a product of functions of independent Gaussian vectors; None if it isn't one."""
        if name in self.gaussian:
            return (Factor(None, name),)
        made = self.program.by_name.get(name)
        if not isinstance(made, Nonlin):
            return None
        if made.function is PRODUCT:
            parts = [self.factors(each) for each in made.of]
            if None in parts:
                return None
            found = tuple(factor for part in parts for factor in part or ())
            seen: set[str] = set()
            for factor in found:
                if seen & self.roots[factor.of]:
                    return None
                seen |= self.roots[factor.of]
            return found
        if made.function.activation is not None and made.of[0] in self.gaussian:
            return (Factor(made.function, made.of[0]),)
        return None

    @cached_property
    def obstacle(self) -> str | None:
        """Why expectations have to be sampled; None if all of them are known."""
        reached, waiting = set(), [self.program.output, *self.program.states]
        while waiting:
            name = waiting.pop()
            made = self.program.by_name.get(name)
            if name in reached or made is None:
                continue
            reached.add(name)
            waiting += [each for each in made.of if each != INPUT]
            inner = any(
                isinstance(user, Nonlin) and user.function is PRODUCT and name in user.of for user in self.users
            )
            if isinstance(made, Nonlin) and self.factors(name) is None and not (inner and self.factors(name)):
                what = "multiplies" if made.function is PRODUCT else "is a function of"
                return (
                    f"{self.program.show(name)} = {made.right_side(self.program.show)} {what} vectors that are not "
                    "independent Gaussians"
                )
        return None

    @property
    def users(self) -> tuple[Nonlin, ...]:
        """Instructions that apply a function."""
        return tuple(each for each in self.program.instructions if isinstance(each, Nonlin))
