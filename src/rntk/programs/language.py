"""What a cell is written in: weights, vectors of one entry per unit, and the three operations of a Netsor program.

Nothing is computed here. Every operation makes a new node that knows what it was made of; `program.trace` puts the
nodes that a cell returns in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..activations import Activation, as_activation, find, name_of

Array = NDArray[np.float64]
#: Step of the differences that stand in for a partial derivative, relative to the argument where that is large.
DIFFERENCE = 2e-3


@dataclass(frozen=True, eq=False)
class Function:
    """A function of one or more numbers, applied unit by unit.

    Attributes
    ----------
    name : str
        What programs print.
    arguments : int
        How many numbers it takes.
    value : callable
        Arrays to an array of their shape.
    partials : tuple of callable
        ∂/∂(argument k), of the same arrays; empty for differences of sixth order.
    jax : callable or None
        The same in functions of JAX; without it `value` has to do.
    activation : Activation or None
        What knows the Gaussian expectations of a function of one number.
    """

    name: str
    arguments: int
    value: Callable[..., Any]
    partials: tuple[Callable[..., Any], ...] = ()
    jax: Callable[..., Any] | None = None
    activation: Activation | None = None

    def __call__(self, *vectors: Vector) -> Vector:
        """The vector of the function's values."""
        if len(vectors) != self.arguments:
            raise ValueError(f"{self.name} takes {self.arguments} vectors, not {len(vectors)}")
        return Vector("nonlin", tuple(_unit_by_unit(each, self.name) for each in vectors), self)

    def partial(self, k: int, *values: Any) -> Any:
        """The derivative by argument k."""
        if self.partials:
            return self.partials[k](*values)
        h = DIFFERENCE * np.maximum(1.0, np.abs(values[k]))

        def moved(i: int) -> Any:
            return self.value(*values[:k], values[k] + i * h, *values[k + 1 :])

        return sum(c * (moved(i) - moved(-i)) for i, c in ((1, 45), (2, -9), (3, 1))) / (60 * h)

    def in_jax(self, *values: Any) -> Any:
        """The value for arrays of JAX."""
        return (self.jax or self.value)(*values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        same = self.activation == other.activation if self.activation else self.value is other.value
        return same and (self.name, self.arguments) == (other.name, other.arguments)

    def __hash__(self) -> int:
        return hash((self.name, self.arguments))


def nonlinearity(
    function: str | Activation | Callable[..., Any],
    *partials: Callable[..., Any],
    arguments: int = 1,
    name: str | None = None,
    jax: Callable[..., Any] | None = None,
) -> Function:
    """A function that cells may apply to vectors, unit by unit.

    Parameters
    ----------
    function : str, Activation or callable
        A name that `rntk.activations` knows, or a function of one or more NumPy arrays.
    *partials : callable
        Its derivatives by each argument; without them differences are taken.
    arguments : int
        How many vectors it takes.
    name : str or None
        What programs print.
    jax : callable or None
        The same in functions of JAX, for finite networks, if `function` doesn't take JAX's arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.programs import nonlinearity
    >>> nonlinearity("tanh").name
    'tanh'
    >>> smaller = nonlinearity(np.minimum, lambda a, b: a < b, lambda a, b: a >= b, arguments=2)
    >>> smaller.name
    'minimum'
    """
    if isinstance(function, Function):
        return function
    if arguments == 1:
        phi = as_activation(function)
        derivative = partials[0] if partials else phi.derivative
        return Function(str(name or phi.name), 1, phi, (derivative,), jax or phi.in_jax, phi)
    if not callable(function):
        raise ValueError(f"a function of {arguments} vectors must be given as code, not as {function!r}")
    if partials and len(partials) != arguments:
        raise ValueError(f"give {arguments} partial derivatives, or none; there are {len(partials)}")
    return Function(name or str(getattr(function, "__name__", "function")), arguments, function, partials, jax)


def _times(a: Any, b: Any) -> Any:
    return a * b


#: a ⊙ b.
PRODUCT = Function("*", 2, _times, (lambda a, b: b, lambda a, b: a), _times)
FUNCTIONS = {PRODUCT.name: PRODUCT}


def function_named(name: str) -> Function | None:
    """The function that a saved program names; None if there is none."""
    return FUNCTIONS.get(name) or (nonlinearity(name) if find(name) is not None else None)


def can_be_named(function: Function) -> bool:
    """Whether a name says all about a function."""
    if function.name in FUNCTIONS:
        return FUNCTIONS[function.name] is function
    return function.activation is not None and name_of(function.activation) == function.name


@dataclass(frozen=True, eq=False)
class Vector:
    """A vector with an entry per unit, or the inputs of a step; made by operations, never by hand.

    Adding, subtracting and multiplying by numbers gives a linear combination; `*` of two vectors goes unit by unit.
    """

    kind: str  # "input", "state", "bias", "one", "matmul", "lincomp", "nonlin" or "normalise"
    of: tuple[Vector, ...] = ()
    detail: Any = None

    def __add__(self, other: Vector | float) -> Vector:
        return linear((1.0, self), (1.0, other))

    def __sub__(self, other: Vector | float) -> Vector:
        return linear((1.0, self), (-1.0, other))

    def __neg__(self) -> Vector:
        return linear((-1.0, self))

    def __rsub__(self, other: float) -> Vector:
        return linear((1.0, other), (-1.0, self))

    def __mul__(self, other: Vector | float) -> Vector:
        return PRODUCT(self, other) if isinstance(other, Vector) else linear((other, self))

    def __truediv__(self, number: float) -> Vector:
        return linear((1.0 / number, self))

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return f"<vector: {self.kind}>"


#: The vector of ones, which numbers in sums stand for.
ONE = Vector("one")


def linear(*terms: tuple[float, Vector | float]) -> Vector:
    """Σ c v; linear combinations within it are opened."""
    total: dict[Vector, float] = {}
    for coefficient, each in terms:
        if not isinstance(each, Vector):
            each, coefficient = ONE, coefficient * _number(each)
        coefficient = _number(coefficient)
        parts = zip(each.detail, each.of, strict=True) if each.kind == "lincomp" else [(1.0, each)]
        for c, part in parts:
            total[_unit_by_unit(part, "a sum")] = total.get(part, 0.0) + coefficient * c
    total = {part: c for part, c in total.items() if c != 0} or {ONE: 0.0}
    if len(total) == 1 and (part := next(iter(total))) is not ONE and total[part] == 1:
        return part
    return Vector("lincomp", tuple(total), tuple(total.values()))


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"coefficients of vectors must be finite numbers, not {value!r}")
    return number


def _unit_by_unit(vector: Any, where: str) -> Vector:
    if not isinstance(vector, Vector):
        raise TypeError(f"{where} takes vectors, not {vector!r}")
    if vector.kind == "input":
        raise ValueError(
            f"the inputs have a number per channel, not per unit, so {where} can't take them: multiply them by a "
            'matrix first, matrix("U", sigma_u) @ x'
        )
    return vector


@dataclass(frozen=True)
class Weight:
    """A weight matrix or vector (an A-var): independent Gaussian entries, in the ntk parameterisation.

    Attributes
    ----------
    name : str
    sigma : float
        Entries of a matrix have the deviation σ/√(number of columns), those of a vector σ.
    vector : bool
        Whether it is a vector.
    mean : float
        Of a vector's entries.
    """

    name: str
    sigma: float
    vector: bool = False
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"weights are called by names such as W or U_z, not {self.name!r}")
        if not (math.isfinite(self.sigma) and self.sigma >= 0 and math.isfinite(self.mean)):
            raise ValueError(f"the deviation of {self.name} must be a number from 0 on, not {self.sigma!r}")

    def __matmul__(self, vector: Vector) -> Vector:
        if self.vector:
            raise TypeError(f"{self.name} is a vector, and only matrices multiply")
        if not isinstance(vector, Vector):
            raise TypeError(f"{self.name} multiplies a vector, not {vector!r}")
        return Vector("matmul", (vector,), self)


def matrix(name: str, sigma: float = 1.0) -> Weight:
    """A weight matrix: `matrix("W", sigma_w) @ h`.

    Parameters
    ----------
    name : str
        One name is one matrix, wherever it stands in a cell.
    sigma : float
        Entries are σ/√n times standard normal numbers, n the number of columns; those numbers are trained.
    """
    return Weight(name, float(sigma))


def vector(name: str, sigma: float = 1.0, mean: float = 0.0) -> Vector:
    """A vector of weights, such as a bias: entries are mean + σ times standard normal numbers, which are trained."""
    return Vector("bias", (), Weight(name, float(sigma), True, float(mean)))


def normalise(of: Vector) -> Vector:
    """Layer normalisation: a vector less its mean over units, divided by its deviation."""
    return Vector("normalise", (_unit_by_unit(of, "normalise"),))
