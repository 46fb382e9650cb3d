"""`trace(cell)`: the Netsor program of a cell, a plain list of instructions for one step.

Names of vectors: "x" the inputs, "h-" a state before the step, "h" the same after it, "1" the vector of ones, "b" a
vector of weights, anything else what an instruction gives. In print a step is shown: h[t-1], h[t].
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from ..errors import check_count
from .language import FUNCTIONS, ONE, Function, Vector, Weight, can_be_named, function_named

INPUT, ONES = "x", "1"


@dataclass(frozen=True)
class MatMul:
    """out = A h (24)."""

    out: str
    matrix: str
    of: tuple[str, ...]

    def right_side(self, show: Callable[[str], str]) -> str:
        return f"{self.matrix} {show(self.of[0])}"


@dataclass(frozen=True)
class LinComp:
    """out = Σ a_i g_i (25), of any vectors."""

    out: str
    coefficients: tuple[float, ...]
    of: tuple[str, ...]

    def right_side(self, show: Callable[[str], str]) -> str:
        text = ""
        for a, each in zip(self.coefficients, self.of, strict=True):
            size, name = f"{abs(a):.4g}", show(each)
            term = size if name == ONES else name if abs(a) == 1 else f"{size} {name}"
            text += (" - " if a < 0 else " + ") + term if text else ("-" if a < 0 else "") + term
        return text


@dataclass(frozen=True)
class Nonlin:
    """out = φ(g_1, …, g_k), unit by unit (26)."""

    out: str
    function: Function
    of: tuple[str, ...]

    def right_side(self, show: Callable[[str], str]) -> str:
        if self.function.name == "*":
            return " ⊙ ".join(map(show, self.of))
        return f"{self.function.name}({', '.join(map(show, self.of))})"


@dataclass(frozen=True)
class Normalise:
    """out = (g - its mean)/its deviation over units, two numbers that have limits."""

    out: str
    of: tuple[str, ...]

    def right_side(self, show: Callable[[str], str]) -> str:
        return f"normalise({show(self.of[0])})"


Instruction = MatMul | LinComp | Nonlin | Normalise
KINDS = {kind.__name__: kind for kind in (MatMul, LinComp, Nonlin, Normalise)}


@dataclass(frozen=True)
class Program:
    """The instructions of one step, in order; what they read and what they leave for the next.

    Attributes
    ----------
    name : str
        What the cell is called.
    weights : tuple of Weight
        A-vars, without the readout v.
    states : tuple of str
        What a step hands to the next, zero before the first unless `initial` says otherwise.
    initial : tuple of float
        Deviations of the states before the first step: drawn once per sequence, not trained.
    instructions : tuple of Instruction
    output : str
        What the readout multiplies.
    readout_mean : float
        Mean of the entries of v, over the deviation; zero for every program that has a tangent kernel.

    Examples
    --------
    >>> from rntk.programs import cells, trace
    >>> print(trace(cells.elman, activation="erf", sigma_w=1.2, sigma_b=0.1))
    A-vars: W ~ N(0, 1.2²/n), U ~ N(0, 1²/m), b ~ N(0, 0.1²), v ~ N(0, σ_v²/n)
    h[0] = 0
    for t = 1 … T
        g1[t] = W h[t-1]                  MatMul
        g2[t] = U x[t]                    MatMul
        g3[t] = g1[t] + g2[t] + b         LinComp
        h[t] = erf(g3[t])                 Nonlin
    y = vᵀ h[T]
    """

    name: str
    weights: tuple[Weight, ...]
    states: tuple[str, ...]
    initial: tuple[float, ...]
    instructions: tuple[Instruction, ...]
    output: str
    readout_mean: float = 0.0

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        """What makes each vector."""
        return {each.out: each for each in self.instructions}

    @cached_property
    def weight(self) -> dict[str, Weight]:
        """A-vars by name."""
        return {each.name: each for each in self.weights}

    def g_vars(self) -> list[str]:
        """Vectors that are Gaussian: products with matrices, and linear combinations of such."""
        from .structure import Structure

        gaussian = Structure(self).gaussian
        return [each.out for each in self.instructions if each.out in gaussian]

    def show(self, name: str) -> str:
        """A vector in print."""
        if name.endswith("-"):
            return f"{name[:-1]}[t-1]"
        return name if name == ONES or name in self.weight else f"{name}[t]"

    def __str__(self) -> str:
        spread = [
            f"{w.name} ~ N({w.mean:g}, {w.sigma:.4g}²{'' if w.vector else self._columns(w)})" for w in self.weights
        ]
        lines = [f"A-vars: {', '.join(spread)}, v ~ N({self.readout_mean:g}, σ_v²/n)"]
        for state, sigma in zip(self.states, self.initial, strict=True):
            lines.append(f"{state}[0] = 0" if sigma == 0 else f"{state}[0] ~ N(0, {sigma:.4g}²), its own per sequence")
        lines.append("for t = 1 … T")
        sides = [(f"    {self.show(each.out)} = {each.right_side(self.show)}", each) for each in self.instructions]
        width = max(34, max(len(text) for text, _ in sides))
        lines += [f"{text:<{width}}    {type(each).__name__}" for text, each in sides]
        return "\n".join([*lines, f"y = vᵀ {self.output}[T]"])

    def rules(self) -> str:
        """What rules (27) and (28) say of the Gaussian vectors, in print: μ where it isn't zero, and Σ of two steps."""
        lines = []
        for each in self.instructions:
            if each.out not in self.g_vars():
                continue
            name = f"Σ({each.out}[t], {each.out}'[s])"
            if isinstance(each, MatMul):
                square, of = f"{self.weight[each.matrix].sigma:.4g}²", self.show(each.of[0])
                other = of.replace("[t", "'[s")
                inner = f"<{of}, {other}>/m" if each.of[0] == INPUT else f"E[{of} {other}]"
                lines.append(f"{name} = {square} {inner}")
            else:
                coefficients = each.coefficients if isinstance(each, LinComp) else (1.0,) * len(each.of)
                terms = []
                for c, of in zip(coefficients, each.of, strict=True):
                    if of in self.weight:
                        term = f"{self.weight[of].sigma:.4g}²"
                    elif of == ONES:
                        continue
                    else:
                        term = f"Σ({self.show(of)}, {self.show(of).replace('[t', chr(39) + '[s')})"
                    terms.append(term if abs(c) == 1 else f"{abs(c):.4g}² {term}")
                over = " over both variances' roots" if isinstance(each, Normalise) else ""
                lines.append(f"{name} = {' + '.join(terms)}{over}")
        return "\n".join(lines)

    def _columns(self, weight: Weight) -> str:
        reads = {each.of[0] for each in self.instructions if isinstance(each, MatMul) and each.matrix == weight.name}
        return "/m" if reads == {INPUT} else "/n"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON.

        Raises
        ------
        ValueError
            A function of the program has no name that says all about it.
        """
        steps = []
        for each in self.instructions:
            plain: dict[str, Any] = {"kind": type(each).__name__, **vars(each)}
            if isinstance(each, Nonlin):
                if not can_be_named(each.function):
                    raise ValueError(
                        f"{self.show(each.out)} = {each.right_side(self.show)} uses code of your own, and code is not "
                        "written down; take functions that rntk.activations knows by name, or keep it with pickle"
                    )
                plain["function"] = each.function.name
            steps.append(plain)
        return {**vars_of(self), "weights": [asdict(each) for each in self.weights], "instructions": steps}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Program:
        """The program whose `to_dict` gave `values`; nothing in them is trusted."""
        steps: list[Any] = []
        try:
            for given in values["instructions"]:
                plain: dict[str, Any] = {key: tuple(e) if isinstance(e, list) else e for key, e in given.items()}
                kind: Any = KINDS[plain.pop("kind")]
                if kind is Nonlin:
                    plain["function"] = function_named(str(plain["function"]))
                    if plain["function"] is None:
                        raise ValueError(f"there is no function named {given['function']!r}")
                steps.append(kind(**plain))
            plain = {key: tuple(each) if isinstance(each, list) else each for key, each in values.items()}
            weights = tuple(Weight(**each) for each in values["weights"])
            program = cls(**{**plain, "weights": weights, "instructions": tuple(steps)})
        except (KeyError, TypeError) as error:
            raise ValueError(f"these values describe no program: {error}") from error
        return checked(program)

    def dot(self) -> str:
        """The step as a graph in the language of Graphviz: `dot -Tsvg` draws it."""
        lines = [f'digraph "{self.name}" {{', "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
        for each in self.instructions:
            label = f"{self.show(each.out)} = {each.right_side(self.show)}"
            lines.append(f'  "{each.out}" [label="{label}"];')
            lines += [f'  "{source}" -> "{each.out}";' for source in each.of if source != ONES]
        lines += [f'  "{state}-" [label="{state}[t-1]", shape=oval];' for state in self.states]
        return "\n".join([*lines, f'  "{self.output}" -> "y";', "}"])


def vars_of(program: Program) -> dict[str, Any]:
    """The fields of a program, without what is worked out from them, tuples as lists."""
    fields = {name: getattr(program, name) for name in program.__dataclass_fields__}
    return {name: list(each) if isinstance(each, tuple) else each for name, each in fields.items()}


def checked(program: Program) -> Program:
    """The program, if every instruction reads only what there is."""
    known = {INPUT, ONES, *(f"{state}-" for state in program.states), *(w.name for w in program.weights if w.vector)}
    matrices = {w.name for w in program.weights if not w.vector}
    for each in program.instructions:
        arity = each.function.arguments if isinstance(each, Nonlin) else None if isinstance(each, LinComp) else 1
        if arity is not None and len(each.of) != arity:
            raise ValueError(f"{each.out} reads {len(each.of)} vectors instead of {arity}")
        if isinstance(each, LinComp) and len(each.of) != len(each.coefficients):
            raise ValueError(f"{each.out} has {len(each.coefficients)} coefficients for {len(each.of)} vectors")
        if missing := [name for name in each.of if name not in known]:
            raise ValueError(f"{each.out} reads {missing[0]}, which nothing has made yet")
        if isinstance(each, MatMul) and each.matrix not in matrices:
            raise ValueError(f"{each.out} multiplies with {each.matrix}, and there is no such matrix")
        if INPUT in each.of and not isinstance(each, MatMul):
            raise ValueError(f"{each.out} reads the inputs, which only a matrix can")
        known.add(each.out)
    if missing := [name for name in (*program.states, program.output) if name not in program.by_name]:
        raise ValueError(f"no instruction gives {missing[0]}")
    if len(program.initial) != len(program.states):
        raise ValueError(f"there are {len(program.states)} states and {len(program.initial)} initial deviations")
    names = [*program.by_name, *program.weight, INPUT, ONES]
    if len(names) < len(program.instructions) + len(program.weights) + 2 or len(set(names)) < len(names):
        raise ValueError("two vectors or weights of the program have one name; call states and weights otherwise")
    return program


Cell = Callable[..., Any]


def parameters_of(cell: Cell) -> dict[str, Any]:
    """The parameters of a cell, its keyword-only arguments, with their defaults."""
    found = inspect.signature(cell).parameters.values()
    return {each.name: each.default for each in found if each.kind is each.KEYWORD_ONLY}


def states(count: Callable[..., int]) -> Callable[[Cell], Cell]:
    """For cells whose number of states depends on their parameters: `cell(x, *h, ...)` has `count(**parameters)`."""

    def mark(cell: Cell) -> Cell:
        cell.count_states = count  # type: ignore[attr-defined]
        return cell

    return mark


def state_names(cell: Cell, parameters: Mapping[str, Any]) -> list[str]:
    """The states of a cell: its arguments after the inputs."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(cell).parameters.values()
    names = [each.name for each in found if each.kind in kinds]
    if not names:
        raise ValueError(
            f"a cell takes the inputs of a step and its states, cell(x, h, *, ...); {cell!r} takes nothing"
        )
    for each in found:
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            if not hasattr(cell, "count_states"):
                raise ValueError(f"how many states *{each.name} are, rntk.programs.states must say of {cell!r}")
            count = check_count("the number of states", cell.count_states(**parameters))
            names += [f"{each.name}_{k}_" for k in range(count)] if count > 1 else [each.name]
    return names[1:]


def trace(cell: Cell, *, depth: int = 1, sigma_h: float | Sequence[float] = 0.0, **parameters: Any) -> Program:
    """The program of a cell.

    Parameters
    ----------
    cell : callable
        `cell(x, h, ..., *, parameters)`: inputs of a step and states before it to states after it, in the same order.
        The first state is what the readout multiplies; with one more vector returned, that one comes first and is.
    depth : int
        Layers: the outputs of one are the inputs of the next, and every layer has weights of its own.
    sigma_h : float or sequence of float
        Deviation of the first state before the first step, drawn once per sequence; one number, or one per layer.
    **parameters
        Of the cell. A list or tuple is one value per layer.

    Returns
    -------
    Program

    Raises
    ------
    ValueError
        The cell is not made of what programs know; the message says where.

    Examples
    --------
    >>> from rntk.programs import matrix, nonlinearity, trace
    >>> def cell(x, h, *, sigma=1.0):
    ...     return nonlinearity("erf")(matrix("W", sigma) @ h + matrix("U") @ x)
    >>> [type(each).__name__ for each in trace(cell).instructions]
    ['MatMul', 'MatMul', 'LinComp', 'Nonlin']
    """
    depth = check_count("depth", depth)
    name = getattr(cell, "__name__", type(cell).__name__)
    known = parameters_of(cell)
    if unknown := sorted(set(parameters) - set(known)):
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    starts = per_layer("sigma_h", sigma_h, depth)
    writer = _Writer(depth)
    below: Vector = Vector("input")
    for layer in range(depth):
        own = {key: _of_layer(known[key], key, value, layer, depth) for key, value in parameters.items()}
        states = state_names(cell, {**known, **own})
        before = [Vector("state") for _ in states]
        after = cell(below, *before, **own)
        after = tuple(after) if isinstance(after, tuple | list) else (after,)
        extra = len(after) - len(states)
        if extra not in (0, 1) or not after or not all(isinstance(each, Vector) for each in after):
            raise ValueError(
                f"{name} must return its {len(states)} states after the step, each a vector, or an output before them; "
                f"it returned {after!r}"
            )
        writer.layer(layer, below, dict(zip(states, before, strict=True)), after[extra:], after[0])
        writer.initial += [starts[layer] if k == 0 else 0.0 for k in range(len(states))]
        below = after[0]
    return checked(writer.program(name))


def per_layer(name: str, value: Any, depth: int) -> list[float]:
    """One number per layer."""
    values = [float(each) for each in value] if isinstance(value, Sequence) else [float(value)] * depth
    if len(values) != depth or not all(each >= 0 for each in values):
        raise ValueError(f"{name} must be a number from 0 on, or {depth} of them, one per layer, not {value!r}")
    return values


def _of_layer(default: Any, name: str, value: Any, layer: int, depth: int) -> Any:
    if not isinstance(value, list | tuple) or (
        isinstance(default, list | tuple) and not isinstance(value[0], list | tuple)
    ):
        return value
    if len(value) != depth:
        raise ValueError(f"{name} must be one value or one per layer ({depth}), not {value!r}")
    return value[layer]


class _Writer:
    """Puts the nodes of all layers in order and gives them names."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.names: dict[Vector, str] = {ONE: ONES}
        self.weights: dict[str, Weight] = {}
        self.states: list[str] = []
        self.initial: list[float] = []
        self.instructions: list[Instruction] = []
        self.automatic: set[str] = set()
        self.made: dict[Any, str] = {}  # equal operations on equal vectors are one
        self.output = ""

    def layer(
        self, layer: int, below: Vector, before: dict[str, Vector], after: tuple[Vector, ...], output: Vector
    ) -> None:
        end = "" if self.depth == 1 else str(layer + 1)
        self.names.setdefault(below, INPUT)
        for state, node in before.items():
            self.names[node] = f"{state}{end}-"
        for node in [*after, output]:
            self._write(node, end)
        for state, node in zip(before, after, strict=True):
            name = f"{state}{end}"
            self.states.append(name)
            old = self.names[node]
            if old in self.automatic:
                self._rename(old, name)
            else:
                self.instructions.append(LinComp(name, (1.0,), (old,)))
        self.output = self.names[output]

    def _write(self, node: Vector, end: str) -> str:
        """The name of a node, after the instructions that make it; without recursion, cells may be long."""
        waiting = [node]
        while waiting:
            each = waiting[-1]
            if each in self.names:
                waiting.pop()
            elif missing := [part for part in each.of if part not in self.names]:
                waiting += reversed(missing)
            else:
                self.names[each] = self._instruct(each, end)
        return self.names[node]

    def _instruct(self, node: Vector, end: str) -> str:
        of = tuple(self.names[each] for each in node.of)
        if node.kind in ("input", "state"):
            raise ValueError("a cell may only use the inputs and states that it is given")
        if node.kind == "bias":
            return self._weight(node.detail, end)
        key = node.kind, node.detail, of
        if key in self.made:
            return self.made[key]
        out = self.made[key] = f"{'k' if node.kind == 'nonlin' else 'g'}{len(self.instructions) + 1}"
        if node.kind == "matmul":
            self.instructions.append(MatMul(out, self._weight(node.detail, end), of))
        elif node.kind == "lincomp":
            self.instructions.append(LinComp(out, node.detail, of))
        elif node.kind == "normalise":
            self.instructions.append(Normalise(out, of))
        else:
            self.instructions.append(Nonlin(out, node.detail, of))
        self.automatic.add(out)
        return out

    def _weight(self, weight: Weight, end: str) -> str:
        own = replace(weight, name=weight.name + end)
        if own.name in ("v", INPUT):
            raise ValueError(
                f"{own.name} is the {'readout' if own.name == 'v' else 'inputs'}; call the weights otherwise. The "
                "readout must be used nowhere else: gradients would then depend on what they are multiplied by"
            )
        if self.weights.setdefault(own.name, own) != own:
            raise ValueError(f"there are two weights named {own.name} with different deviations or shapes")
        return own.name

    def _rename(self, old: str, new: str) -> None:
        self.automatic.discard(old)
        self.made = {
            (kind, detail, tuple(new if o == old else o for o in of)): new if out == old else out
            for (kind, detail, of), out in self.made.items()
        }
        self.names = {node: new if name == old else name for node, name in self.names.items()}
        self.instructions = [
            replace(each, out=new if each.out == old else each.out, of=tuple(new if o == old else o for o in each.of))
            for each in self.instructions
        ]

    def program(self, name: str) -> Program:
        weights, instructions = tuple(self.weights.values()), tuple(self.instructions)
        return Program(name, weights, tuple(self.states), tuple(self.initial), instructions, self.output)


__all__ = ["FUNCTIONS", "LinComp", "MatMul", "Nonlin", "Normalise", "Program", "trace"]
