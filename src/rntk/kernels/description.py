"""A kernel as plain values, and back: what a model file holds of it, and what a stored Gram matrix is recognised by.

Plain values are what JSON has: null, true, numbers, words, lists. Everything else is an object with one entry that says
what it is: ``{"tuple": […]}``, ``{"float": "inf"}``, ``{"scalar": ["int64", 2]}``, ``{"array": ["int8", [2], […]]}``,
``{"dict": [[key, value], …]}``, ``{"activation": "tanh"}``, ``{"readout": "mean"}``,
``{"kernel": ["RBF", {"length_scale": 1.0, …}]}``. A sum is a kernel whose parameters are kernels. Floats survive
exactly: Python writes the shortest digits that read back as the same double. Code can't be written down, so a function
has no description, neither as a kernel nor as an activation.
"""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    KernelOperator,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from ..activations import Activation, HermiteActivation, as_activation, find, known_names, name_of
from ..engine import ENGINES
from ..errors import check_choice, check_dtype
from ..network import READOUTS, Readout, as_readout
from ..runtime import count_threads
from .feedforward import NTK
from .network import NetworkKernel
from .pairwise import leaves_of
from .recurrent import RNTK

#: The classes a description may name.
KERNELS: dict[str, type] = {}
#: NumPy's types of plain numbers, by name.
NUMBERS = ("float64", "float32", "float16", "bool", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)))
#: Parameters of kernels that change no number; nor do bounds.
IDLE = ("n_jobs", "progress")

_SHORT = reprlib.Repr()  # in bounded time, however large or deep a thing is
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def register(kernel: type) -> type:
    """Let descriptions name a class of kernels; gives it back.

    Parameters
    ----------
    kernel : type
        A subclass of scikit-learn's `Kernel` whose parameters are plain values or kernels. Its name must be free.
    """
    if KERNELS.setdefault(kernel.__name__, kernel) is not kernel:
        raise ValueError(f"there is another kernel named {kernel.__name__}; give this one a name of its own")
    return kernel


for _kernel in (RNTK, NTK, RBF, Matern, RationalQuadratic, ExpSineSquared, DotProduct, WhiteKernel, ConstantKernel):
    register(_kernel)
for _kernel in (Sum, Product, Exponentiation):
    register(_kernel)


def describe(kernel: Any, partly: bool = False) -> dict[str, Any] | None:
    """What the numbers of a kernel depend on, as plain values by which it can be recognised.

    Left out is what changes no number: `n_jobs`, `progress`, bounds of hyperparameters, and how a number, an activation
    or a readout is written.

    Parameters
    ----------
    kernel : object
        A kernel of rntk or scikit-learn, or a function.
    partly : bool
        Describe what can be, instead of nothing, where there is code in the kernel.

    Returns
    -------
    dict or None
        Different for kernels with different parameters or functions, in any process. None if that can't be promised:
        for functions, for activations that aren't of this package, and for classes that are of neither package.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> describe(RBF(2.0))
    {'kernel': ['RBF', {'length_scale': 2.0}]}
    >>> describe(lambda X, Y: X @ Y.T) is None
    True
    """
    try:
        found = NumbersForm(partly).encode(kernel, "kernel")
    except (ValueError, RecursionError):
        return None
    known = isinstance(kernel, Kernel) and (partly or all(map(_is_known_code, leaves_of(kernel))))
    return dict(found) if known else None


class PlainForm:
    """Parameter values, kernels among them, as JSON has them; `encode` and `decode` are each other's inverse.

    Both call the value by `name` in messages, and raise a ValueError for what they can't express.
    """

    def encode(self, value: Any, name: str) -> Any:
        """`value` in plain form."""
        if isinstance(value, str):
            return str(value)
        if isinstance(value, np.ndarray):
            return {"array": self.encode_array(value, name)}
        if isinstance(value, np.generic) and value.dtype.name in NUMBERS:
            return {"scalar": [value.dtype.name, self.encode(value.item(), name)]}
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, list):
            return [self.encode(each, f"{name}.{k}") for k, each in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": self.encode(list(value), name)}
        if isinstance(value, dict):
            pairs = [[key, each] for key, each in value.items()]
            return {"dict": [[self.encode(key, name), self.encode(each, f"{name}.{key}")] for key, each in pairs]}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, float | np.floating)):
            return np.dtype(value).name
        if isinstance(value, Activation) and (known := name_of(value)) is not None:
            return {"activation": known}
        if isinstance(value, Readout) and READOUTS.get(value.name) == value:
            return {"readout": value.name}
        if isinstance(value, Kernel):
            given = self.parameters_of(value)
            return {"kernel": [self.class_of(value), {k: self.encode(v, f"{name}.{k}") for k, v in given.items()}]}
        if callable(value):
            raise ValueError(
                f"{name} is a Python function ({quote(getattr(value, '__name__', value))}), and code is not written "
                f"down; take a kernel of rntk or scikit-learn, or one of the activations "
                f"{', '.join(known_names())}, or keep the model with pickle"
            )
        raise ValueError(
            f"{name}={quote(value)} is a Python object that can't be described; give numbers, words or None instead "
            "(set_params changes a parameter of a fitted model)"
        )

    def parameters_of(self, kernel: Any) -> dict[str, Any]:
        """What is written down of a kernel."""
        return dict(kernel.get_params(deep=False))

    def class_of(self, kernel: Any) -> str:
        """What its class is called."""
        name = type(kernel).__name__
        if type(kernel) is not KERNELS.get(name):
            raise ValueError(f"a kernel of class {name} can't be described; known are {', '.join(KERNELS)}")
        return name

    def encode_array(self, array: Any, name: str) -> Any:
        """What stands for an array: type, shape and numbers."""
        if array.dtype.name not in NUMBERS:
            raise ValueError(f"{name} is an array of {array.dtype}, expected numbers")
        return [array.dtype.name, list(array.shape), self.encode(array.ravel().tolist(), name)]

    def decode(self, found: Any, name: str) -> Any:
        """The value that `encode` put into plain form; any other input is a ValueError."""
        try:
            match found:
                case None | bool() | int() | float() | str():
                    return found
                case list():
                    return [self.decode(each, f"{name}.{k}") for k, each in enumerate(found)]
                case {"tuple": list(items)}:
                    return tuple(self.decode(items, name))
                case {"dict": list(pairs)}:
                    return {self.decode(key, name): self.decode(each, f"{name}.{key}") for key, each in pairs}
                case {"float": "inf" | "-inf" | "nan" as word}:
                    return float(word)
                case {"scalar": [dtype, number]} if dtype in NUMBERS:
                    return np.dtype(dtype).type(self.decode(number, name))
                case {"array": content}:
                    return self.decode_array(content, name)
                case {"activation": str(word)}:
                    return as_activation(word)
                case {"readout": str(word)}:
                    return as_readout(word)
                case {"kernel": [str(word), dict(given)]} if word in KERNELS:
                    parameters = {key: self.decode(each, f"{name}.{key}") for key, each in given.items()}
                    return _checked(KERNELS[word](**parameters))
        except (TypeError, OverflowError, RecursionError) as error:  # an unknown parameter, a list as a key, …
            raise ValueError(f"{name} can't be used: {error}") from error
        raise ValueError(f"{name} is {quote(found)}, which is no value of a model")

    def decode_array(self, content: Any, name: str) -> Any:
        """The array that `encode_array` wrote down."""
        dtype, shape, numbers = content
        if dtype not in NUMBERS:
            raise ValueError(f"{name} is an array of {quote(dtype)}, expected numbers")
        return np.array(self.decode(numbers, name), dtype=dtype).reshape(shape)


class NumbersForm(PlainForm):
    """What the numbers of a kernel depend on, alike for equal numbers; if `partly`, code is just called so."""

    def __init__(self, partly: bool) -> None:
        self.partly = partly

    def encode(self, value: Any, name: str) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            value = value.tolist()
        try:
            found = super().encode((find(value) or value) if isinstance(value, str) else value, name)
        except ValueError:
            if not self.partly:
                raise
            return "code"
        match found:
            case {"tuple": plain} | {"activation": plain} | {"readout": plain}:
                return plain
        return found

    def parameters_of(self, kernel: Any) -> dict[str, Any]:
        given = super().parameters_of(kernel).items()
        return {key: each for key, each in given if key not in IDLE and not key.endswith("_bounds")}

    def class_of(self, kernel: Any) -> str:
        return type(kernel).__name__ if self.partly else super().class_of(kernel)


def quote(value: object, limit: int = 60) -> str:
    """A value for a message: on one line, and short however long it is."""
    text = _SHORT.repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_known_code(kernel: Kernel) -> bool:
    """Whether the names of a kernel, its activation, readout and cells mean the same code in every process."""
    code: list[Any] = [type(kernel)]
    if isinstance(kernel, NetworkKernel):
        network = kernel.network()
        activation = network.activation
        code += [type(network.readout), *map(type, network.cells)]
        code += [activation.exact if isinstance(activation, HermiteActivation) else type(activation)]
    return all(str(getattr(each, "__module__", "")).partition(".")[0] in ("rntk", "sklearn") for each in code)


def _checked(kernel: Any) -> Any:
    """The kernel, if it can be evaluated."""
    if isinstance(kernel, NetworkKernel):
        kernel.network(), check_dtype(kernel.dtype), count_threads(kernel.n_jobs)
        check_choice("engine", kernel.engine, ENGINES)
    elif isinstance(kernel, KernelOperator | Exponentiation):
        parts = kernel.get_params(deep=False)
        if not all(isinstance(each, float | int if name == "exponent" else Kernel) for name, each in parts.items()):
            raise ValueError(f"{type(kernel).__name__} is made of kernels, and of a number if it is a power")
    else:
        vectors = np.eye(2, max(1, np.size(getattr(kernel, "length_scale", 1.0))))
        try:
            with np.errstate(all="ignore"):
                finite = np.isfinite(kernel(vectors, vectors)).all()
        except Exception as error:  # it depends on the kernel how it trips over a parameter
            raise ValueError(f"{quote(kernel)} can't be evaluated: {error}") from error
        if not finite:
            raise ValueError(f"{quote(kernel)} has values that are not finite")
    return kernel
