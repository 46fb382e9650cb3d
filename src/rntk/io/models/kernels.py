"""Kernels in a model file: a name of an explicit list, and parameters.

A sum, product or power holds the kernels it is made of. Functions can't be written down, neither as kernels nor as
activations, and say so when a model is saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from ...activations import Activation, as_activation, known_names, name_of
from ...engine import choose_engine
from ...errors import check_dtype
from ...kernels import NTK, RNTK, NetworkKernel
from ...kernels.pairwise import compares_vectors
from ...learners.search.polynomial import Polynomial
from ...runtime import count_threads
from ...sequences import SequenceBatch
from .errors import DefectError, quote
from .fields import Fields
from .plain import encode

#: The classes a file may name, and for those of vectors what each parameter must be.
NETWORKS: dict[str, type] = {"RNTK": RNTK, "NTK": NTK}
CLASSICAL: dict[type, dict[str, str]] = {
    Polynomial: {"degree": "count", "offset": "number", "cosine": "flag"},
    RBF: {"length_scale": "scale"},
    Matern: {"length_scale": "scale", "nu": "order"},
    RationalQuadratic: {"length_scale": "positive", "alpha": "positive"},
    DotProduct: {"sigma_0": "number"},
    WhiteKernel: {"noise_level": "number"},
    ConstantKernel: {"constant_value": "number"},
}
PAIRS: dict[str, Any] = {"Sum": Sum, "Product": Product}
LEAVES: dict[str, Any] = NETWORKS | {cls.__name__: cls for cls in CLASSICAL}
#: Sums nest to the left, one level per term.
DEEPEST = 100
#: Layers of a network: beyond anything of use, and far below what would fill the memory.
MOST_LAYERS = 10_000


def describe_kernel(kernel: Any, level: int = 0) -> dict[str, Any]:
    """The kernel as JSON."""
    name = type(kernel).__name__
    if level > DEEPEST:
        raise DefectError(f"the kernel is nested more than {DEEPEST} levels deep")
    if type(kernel) is PAIRS.get(name):
        return {"kernel": name, "parts": [describe_kernel(each, level + 1) for each in (kernel.k1, kernel.k2)]}
    if type(kernel) is Exponentiation:
        exponent = encode(kernel.exponent, "exponent")
        return {"kernel": name, "parts": [describe_kernel(kernel.kernel, level + 1)], "exponent": exponent}
    if type(kernel) is LEAVES.get(name):
        parameters = kernel.get_params(deep=False)
        return {"kernel": name, "parameters": {key: _encode(key, value) for key, value in parameters.items()}}
    if not isinstance(kernel, Kernel) and callable(kernel):
        raise DefectError(
            f"its kernel is a Python function ({getattr(kernel, '__name__', name)}), and code is not written to model "
            "files; take a kernel of rntk or scikit-learn, or keep the model with pickle"
        )
    raise DefectError(
        f"its kernel is a {name}; a model file holds {', '.join(LEAVES)} and their sums, products and powers"
    )


def _encode(name: str, value: Any) -> Any:
    if name == "activation" and not isinstance(value, str):
        return {"activation": _name_activation(value)}
    if name == "dtype":
        return np.dtype(value).name
    return encode(value, name)


def _name_activation(activation: Any) -> str:
    """The name that `as_activation` turns into this activation."""
    if isinstance(activation, Activation):
        name = name_of(activation)
        if name is not None:
            return name
    raise DefectError(
        f"its kernel has the activation {quote(activation)}, a Python function, and code is not written to model "
        f"files; take one of {', '.join(known_names())}, or keep the model with pickle"
    )


def restore_kernel(fields: Fields, level: int = 0) -> Any:
    """The kernel that `describe_kernel` described, its parameters checked."""
    if level > DEEPEST:
        raise DefectError(f"{fields.where} is nested too deeply")
    name = fields.text("kernel", (*LEAVES, *PAIRS, "Exponentiation"))
    if name in LEAVES:
        return _restore_leaf(LEAVES[name], fields)
    parts = [restore_kernel(part, level + 1) for part in fields.parts("parts")]
    if len(parts) != (2 if name in PAIRS else 1):
        raise DefectError(f"{fields.where}: a {name} of {len(parts)} kernels")
    if name in PAIRS:
        return PAIRS[name](*parts)
    exponent = fields.value("exponent")
    _check("number", "exponent", exponent, fields.where)
    return Exponentiation(parts[0], exponent)


def _restore_leaf(cls: type, fields: Fields) -> Any:
    given = fields.part("parameters")
    parameters: dict[str, Any] = {}
    known = cls().get_params(deep=False)
    for name in given.found:
        if name not in known:
            raise DefectError(f"{given.where} has {quote(name)}, a parameter that {cls.__name__} does not have here")
        value = given.found[name]
        if name == "activation" and isinstance(value, dict):
            parameters[name] = _restore_activation(given.part(name))
        else:
            parameters[name] = given.value(name)
    kernel = cls(**parameters)
    try:
        if isinstance(kernel, NetworkKernel):
            _check_network(kernel)
        else:
            for name, kind in CLASSICAL[cls].items():
                _check(kind, name, getattr(kernel, name), given.where)
        for hyperparameter in kernel.hyperparameters:  # scikit-learn compares bounds with values here
            if not hyperparameter.fixed:
                np.asarray(hyperparameter.bounds, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise DefectError(f"{given.where} can't be used: {error}") from error
    return kernel


def _restore_activation(fields: Fields) -> Activation:
    try:
        return as_activation(fields.text("activation"))
    except ValueError as error:
        raise DefectError(f"{fields.where} can't be used: {error}") from error


def _check_network(kernel: Any) -> None:
    if not isinstance(kernel.depth, bool) and isinstance(kernel.depth, int | np.integer) and kernel.depth > MOST_LAYERS:
        raise ValueError(f"depth={kernel.depth} is more than {MOST_LAYERS}")
    kernel.network()
    check_dtype(kernel.dtype)
    choose_engine(kernel.engine)
    count_threads(kernel.n_jobs)
    flags = [getattr(kernel, name, False) for name in ("normalize", "bidirectional", "tied")]
    if not all(isinstance(flag, bool | np.bool_ | int) for flag in flags):
        raise ValueError("normalize, bidirectional and tied must be true or false")
    if not (kernel.progress is None or isinstance(kernel.progress, bool)):
        raise ValueError(f"progress must be true, false or null, not {kernel.progress!r}")
    if getattr(kernel, "readout", "last") == "sequence":
        raise ValueError('readout="sequence" has no single value per pair, so no learner can have it')


def _check(kind: str, name: str, value: Any, where: str) -> None:
    """One parameter of a kernel of vectors."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        array = np.asarray(None)
    fine = array.dtype.kind in "fiu" and (array.ndim == 0 or (kind == "scale" and array.ndim == 1 and array.size > 0))
    if kind == "flag":
        fine = isinstance(value, bool | np.bool_)
    elif fine and kind == "count":
        fine = array.dtype.kind in "iu" and 0 <= int(value) <= 1000
    elif fine and kind == "order":  # of a Matérn kernel; infinity is RBF
        fine = float(value) > 0 and not math.isnan(float(value))
    elif fine:
        fine = bool(np.isfinite(array).all()) and (kind == "number" or bool((array > 0).all()))
    if not fine:
        raise DefectError(f"{where}: {name} is {quote(value)}, which this kernel can't use")


def check_suits(kernel: Any, batch: SequenceBatch, where: str) -> None:
    """Raise unless the kernel can compare these sequences; the rules are those of `evaluation.suited`."""
    leaves = list(_leaves(kernel))
    as_vectors = compares_vectors(kernel)
    size = int(batch.lengths[0]) * batch.n_channels
    unequal = not batch.is_equal_length
    if as_vectors and unequal:
        raise DefectError(f"{where} compares vectors of one length, and the sequences have several")
    for leaf in leaves:
        scale = np.asarray(getattr(leaf, "length_scale", 1.0))
        if scale.ndim == 1 and scale.size not in (1, size):
            raise DefectError(f"{where} has {scale.size} length scales for vectors of {size} numbers")
        if isinstance(leaf, NTK) and not as_vectors and (unequal or batch.n_channels > 1):
            raise DefectError(f"{where} compares vectors, and the sequences are none")


def _leaves(kernel: Any) -> Iterator[Any]:
    if type(kernel) in PAIRS.values():
        yield from _leaves(kernel.k1)
        yield from _leaves(kernel.k2)
    elif isinstance(kernel, Exponentiation):
        yield from _leaves(kernel.kernel)
    else:
        yield kernel
