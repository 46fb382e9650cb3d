"""The contract every activation meets."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ActivationError, HermiteAccuracyWarning, warn
from . import balls
from .arrays import ArrayForm
from .compiled import FunctionPointer, compile_pointer
from .signatures import forward_signature, partials_signature

Array = NDArray[Any]
#: A function that Numba compiles.
Step = Callable[..., None]

#: Doubts up to this, relative to the largest value, go without a word; those beyond `LARGEST_DOUBT` are no result.
SMALL_DOUBT, LARGEST_DOUBT = 1e-9, 0.1


class Moments(NamedTuple):
    """What one activation makes of one variance q: the per-sequence numbers of theory.md, section 7.

    Attributes
    ----------
    square : ndarray
        ψ² = E[φ(√q z)²].
    slope : ndarray
        dV̂/dc at c = 1, that is q E[φ'(√q z)²] / ψ².
    growth : ndarray
        d log ψ² / d log q.
    """

    square: Array
    slope: Array
    growth: Array


class Activation(ABC):
    """An activation φ, its Gaussian expectations, and its compiled pair step.

    For (z₁, z₂) centred Gaussian with variances q₁, q₂, covariance s and correlation c,

        V = E[φ(z₁) φ(z₂)],    V' = E[φ'(z₁) φ'(z₂)] = ∂V/∂s.

    Descriptions of the same expectations live side by side, one per engine: `textbook` is the printed formula, in
    ball arithmetic, for the reference engine; `moments`, `marks` and `compiled_steps` are the unit-vector form for the
    fused engine; `array_form` is the same for the array engine, where there is one. The first shares no arithmetic with
    the others. `in_jax` is φ itself, for finite networks. To add an activation, write one subclass (or one
    `HermiteActivation`) in one file, and `register` it.
    """

    #: Name by which users ask for it.
    name: str
    #: True if φ(k z) = k φ(z) for every k > 0: then scales can be kept apart from directions.
    homogeneous: bool = False
    #: True if φ(-z) = -φ(z): then opposite sides are to each other as equal ones, but for the sign of V.
    odd: bool = False
    #: Accuracy of its textbook form, relative to the largest value: zero for closed forms, whatever bits it takes.
    accuracy: float = 0.0
    #: Bits of ball arithmetic that the textbook form makes use of.
    most_bits: int = balls.BITS[-1]
    #: Variances beyond it are refused, unless φ is homogeneous.
    largest_variance: float = 4e307
    #: True if the compiled pair step creates arrays.
    steps_allocate: bool = False

    @abstractmethod
    def __call__(self, z: Array) -> Array:
        """φ(z), elementwise."""

    @abstractmethod
    def derivative(self, z: Array) -> Array:
        """φ'(z), elementwise."""

    def textbook_side(self, q: Any) -> Any:
        """What `textbook` wants to know of a variance: the variance, unless there is more to prepare."""
        return q

    @abstractmethod
    def textbook(self, left: Any, right: Any, s: Any, *, same: bool = False) -> tuple[Any, Any]:
        """(V, V') for two prepared variances and a covariance, all of them balls (`rntk.activations.balls`).

        `same` says that all three are one variance: not only equal, but the same unknown number.
        """

    def settled(self, compute: Callable[[], list[tuple[Any, Any]]]) -> list[Any]:
        """The results of `compute`, pairs of a ball and what it may be at most, with as many bits as they need.

        A warning says how well they are known where that is not to nine digits, an error where it is not to one.
        """
        for bits in balls.BITS:
            with balls.precision(bits):
                found = compute()
                doubt = max((balls.doubt(value, most) for value, most in found), default=0.0)
            if doubt <= self.accuracy or bits >= self.most_bits:
                break
        if not doubt <= LARGEST_DOUBT:
            raise ActivationError(
                f"{bits} bits don't tell this kernel of {self.name} to one digit. Take smaller sigmas or inputs, or an "
                'activation with a closed form, or engine="fused"'
            )
        if doubt > SMALL_DOUBT:
            text = f"the kernel of {self.name} is known to {doubt:.1e} of the largest value it may have, and no better"
            warn(HermiteAccuracyWarning(text, doubt))
        return [value for value, _ in found]

    def dual(self, q1: Any, q2: Any, s: Any) -> tuple[Array, Array]:
        """(V, V') for variances `q1`, `q2` and covariance `s` (broadcast together), by `textbook`.

        One number at a time: for reading and for checks. Needs python-flint.
        """
        shape = np.broadcast_shapes(*map(np.shape, (q1, q2, s)))
        numbers = zip(*map(np.ravel, np.broadcast_arrays(q1, q2, s)), strict=True)
        pairs = [self._dual(*map(float, each)) for each in numbers]
        V, V_dot = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return V.reshape(shape), V_dot.reshape(shape)

    def _dual(self, q1: float, q2: float, s: float) -> tuple[float, float]:
        def compute() -> list[tuple[Any, Any]]:
            left, right = ((q := balls.ball(value), self.textbook_side(q)) for value in (q1, q2))
            # A covariance that only rounding made larger than both variances allow is theirs.
            most = balls.ball(q1) if q1 == q2 else (left[0] * right[0]).sqrt()
            both = self.textbook(left[1], right[1], max(min(balls.ball(s), most), -most))
            own = [self.textbook(side, side, q, same=True) for q, side in (left, right)]
            return [(value, (a * b).sqrt()) for value, a, b in zip(both, *own, strict=True)]

        V, V_dot = self.settled(compute)
        return balls.to_float(V), balls.to_float(V_dot)

    def square(self, q: Array) -> Array:
        """ψ² = V(q, q, q) for every variance in `q`."""
        return self.moments(q).square

    @abstractmethod
    def moments(self, q: Array) -> Moments:
        """ψ², slope and growth for every variance in `q`; q = 0 gives finite numbers."""

    @property
    def linear_at_zero(self) -> bool:
        """Whether φ is linear to the last digit at deviations of 1e-18: a scale can be taken out of such inputs."""
        square, _, growth = self.moments(np.array([0.0, 1e-36]))
        return bool(square[0] == 0 and abs(growth[1] - 1) < 1e-9)

    @abstractmethod
    def marks(
        self,
        q: Array,
        moments: Moments,
        *,
        slopes: bool,
        tolerance: float,
        least: int = 0,
        accumulated: Callable[[Array], float] = np.max,
    ) -> Array:
        """(M, *q.shape) numbers of one side that the compiled pair step needs at variances `q`: q, 1/√q, and its own.

        With `slopes` also those that only `partials` needs. Closed forms ignore what concerns expansions:
        `tolerance` bounds the error at one step, `least` the number of marks, so that two batches can agree, and
        `accumulated` says what errors at every step make of the kernel.
        """

    @property
    def parameters(self) -> Array:
        """Numbers the compiled pair step needs whatever the pair, float64."""
        return np.empty(0)

    @abstractmethod
    def compiled_steps(self) -> tuple[Step, Step]:
        """The pair step and its derivatives, as functions that Numba compiles; see `rntk.activations.signatures`."""

    def forward(self, dtype: np.dtype[Any]) -> FunctionPointer:
        """The pair step for `dtype`; compiled on first use, kept on disk."""
        return compile_pointer(self.compiled_steps()[0], forward_signature(dtype), allocates=self.steps_allocate)

    def partials(self, dtype: np.dtype[Any]) -> FunctionPointer:
        """Its derivatives, likewise."""
        return compile_pointer(self.compiled_steps()[1], partials_signature(dtype), allocates=self.steps_allocate)

    def array_form(self, xp: Any, precision: str) -> ArrayForm:
        """V̂ and V̂' for arrays of the namespace `xp`, for `precision` "float64" or "float32".

        Raises
        ------
        ValueError
            The activation has no such form.
        """
        raise ValueError(
            f"{self.name} has no form that the array engine could compute. It has: {', '.join(_with_array_form())}. "
            'Take one of them (erf is close to tanh), or bring the arrays to the CPU and take engine="fused"'
        )

    def in_jax(self, z: Any) -> Any:
        """φ(z) of JAX arrays, for finite networks; unless written out, `__call__` has to do it."""
        return self(z)

    def _key(self) -> tuple[object, ...]:
        """What tells two activations of one class apart."""
        return ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Activation) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self), *self._key()))

    def __repr__(self) -> str:
        return self.name


#: Activations that can be asked for by name.
NAMED: dict[str, Activation] = {}
#: Functions that make activations from numbers, asked for as "name(number, …)".
FAMILIES: dict[str, Callable[..., Activation]] = {}

Kind = TypeVar("Kind", bound=Activation)
Family = TypeVar("Family", bound=Callable[..., Activation])

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CALL = re.compile(rf"(\w+)(?:\(\s*((?:{_NUMBER}(?:\s*,\s*{_NUMBER})*)?)\s*\))?")


def register(activation: Kind) -> Kind:
    """Let `activation` be asked for by its name; gives it back.

    Parameters
    ----------
    activation : Activation
        Its name must be free, or belong to an equal activation.

    Returns
    -------
    Activation
        The same.
    """
    _claim(activation.name, NAMED.get(activation.name, activation) == activation)
    NAMED[activation.name] = activation
    return activation


def register_family(family: Family) -> Family:
    """Let the activations that a function makes from numbers be asked for as "name(number, …)"; gives it back.

    The name is that of the function. Each activation's own name must be what it can be asked for by, in full digits.

    Parameters
    ----------
    family : callable
        Numbers in, an `Activation` out.

    Returns
    -------
    callable
        The same.
    """
    name = family.__name__
    _claim(name, FAMILIES.get(name, family) is family)
    FAMILIES[name] = family
    return family


def _claim(name: str, free: bool) -> None:
    if not free:
        raise ValueError(f"there is another activation named {name}; give this one a name of its own")


def check_parameter(needed: str, value: Any, least: float = 1e-100, *, signed: bool = False) -> float:
    """`value` as a number from `least` to 1e100, or minus that if `signed`, so that squares are finite."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not least <= (abs(number) if signed else number) <= 1e100:
        raise ValueError(f"{needed} from {least:g} to 1e100{', or minus that' * signed}; it got {value!r}")
    return number


def find(name: str) -> Activation | None:
    """The activation of a name, such as "relu" or "leaky_relu(0.2)"; None if there is none."""
    if name in NAMED:
        return NAMED[name]
    call = _CALL.fullmatch(name)
    if call is None or call[1] not in FAMILIES:
        return None
    try:
        return FAMILIES[call[1]](*(float(number) for number in re.findall(_NUMBER, call[2] or "")))
    except TypeError:  # more numbers than it takes, or fewer
        return None


def name_of(activation: Activation) -> str | None:
    """The name by which `find` gives an equal activation; None if there is none."""
    return activation.name if find(activation.name) == activation else None


def known_names() -> list[str]:
    """All names, families with their parameters."""
    families = (f"{name}({', '.join(signature(family).parameters)})" for name, family in FAMILIES.items())
    return [*NAMED, *families]


def _with_array_form() -> list[str]:
    """Names of what the array engine can compute."""
    return [name for name, each in NAMED.items() if type(each).array_form is not Activation.array_form]


def ratio(numerator: Array, denominator: Array) -> Array:
    """numerator / denominator, and 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def inverse_root(q: Array, at_zero: float = 0.0) -> Array:
    """1/√q, and `at_zero` where q is 0."""
    root = np.sqrt(q)
    return np.asarray(np.divide(1.0, root, out=np.full_like(root, at_zero), where=root > 0))


def common_marks(q: Array) -> list[Array]:
    """What the marks of every activation begin with: q, and 1/√q, one where q is 0: zero is not close to everything."""
    return [q, inverse_root(q, at_zero=1.0)]
