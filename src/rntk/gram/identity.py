"""What a stored matrix is of, in words that can be compared: digests of the data, parameters of the kernel.

A store belongs to one identity. What doesn't change numbers (threads, progress, bounds of hyperparameters) is left out.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import pickle
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from ..activations import Activation
from ..sequences import SequenceBatch

#: Parameters of kernels that leave every number as it is.
WITHOUT_EFFECT = ("n_jobs", "progress")
#: Arrays up to this size are written out, so that a message can show what differs.
SHORT = 16


def digest_batch(batch: SequenceBatch) -> str:
    """SHA-256 of the sequences: their values, dtype and lengths."""
    digest = hashlib.sha256(f"{batch.values.dtype.str}{batch.values.shape}{batch.offsets.shape}".encode())
    digest.update(batch.offsets.data)
    digest.update(batch.values.data)
    return digest.hexdigest()


def describe(value: Any, inside: tuple[Any, ...] = ()) -> Any:
    """`value` as JSON has it: equal for what computes the same, as far as that can be told.

    Kernels are their class and parameters. Functions are their name, their compiled code, and what they read: values
    they enclose, globals, and functions of their own module in the same way; functions of other modules are names.
    Everything else unknown is the digest of its pickle, and what its class does when it is called.

    inside : the functions on the way here, so that one which names itself comes to an end.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.size <= SHORT:
            return value.tolist()
        content = f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
        return {"array": list(value.shape), "sha256": hashlib.sha256(content).hexdigest()}
    if isinstance(value, (list, tuple)):
        return [describe(each, inside) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted((describe(each, inside) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: describe(each, inside) for key, each in sorted(value.items())}
    if inspect.isfunction(value):
        return _describe_function(value, inside)
    if inspect.isfunction(getattr(value, "py_func", None)):  # compiled by Numba
        return {"compiled": _describe_function(value.py_func, inside)}
    return _describe_object(value, inside)


def _describe_function(function: Any, inside: tuple[Any, ...]) -> Any:
    name = f"{function.__module__}.{function.__qualname__}"
    if any(function is each for each in inside):
        return {"function": name}
    if inside and function.__module__ != inside[0].__module__:
        return {"function": name}
    within, code = (*inside, function), function.__code__
    given = [function.__defaults__, function.__kwdefaults__, *_enclosed(function)]
    known = function.__globals__
    content = json.dumps(_describe_code(code), sort_keys=True)
    return {
        "function": name,
        "inside": describe(given, within),
        "reads": {each: _describe_global(known[each], within) for each in sorted(_names(code)) if each in known},
        "code": hashlib.sha256(content.encode()).hexdigest(),
    }


def _enclosed(function: Any) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not set yet
            found.append(None)
    return found


def _names(code: CodeType) -> set[str]:
    """Names that code looks up, those of functions inside it included. Attributes are among them."""
    return set(code.co_names).union(*(_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _describe_global(value: Any, inside: tuple[Any, ...]) -> Any:
    try:
        return describe(value, inside)
    except ValueError:  # a lock, an open file: nothing that numbers come from
        return {"class": f"{type(value).__module__}.{type(value).__qualname__}"}


def _describe_object(value: Any, inside: tuple[Any, ...]) -> Any:
    named: dict[str, Any] = {"class": f"{type(value).__module__}.{type(value).__qualname__}"}
    if isinstance(value, Activation):
        parts = {name: part for name, part in vars(value).items() if not name.startswith("_")}  # those are found out
        return {**named, "name": value.name, "parts": describe(parts, inside)}
    if hasattr(value, "get_params") and not isinstance(value, type):
        kept = {name: each for name, each in value.get_params(deep=False).items() if _matters(name)}
        return {**named, **{name: describe(each, inside) for name, each in kept.items()}}
    if isinstance(value, functools.partial):
        return {"partial": describe(value.func, inside), "arguments": describe([*value.args, value.keywords], inside)}
    if inspect.ismethod(value):
        return {"method": describe(value.__func__, inside), "of": describe(value.__self__, inside)}
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    if isinstance(value, type) or inspect.isbuiltin(value):
        return {"name": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
    called = vars(type(value)).get("__call__")
    if inspect.isfunction(called):
        named["call"] = describe(called, inside)
    try:
        return {**named, "sha256": hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()}
    except Exception as error:  # pickle raises whatever the object's own methods raise
        raise ValueError(
            f"a store on disk must recognise its kernel, and {named['class']} has neither get_params nor a pickle "
            f"({error}); pass a function, give the class get_params(deep), or leave out=None"
        ) from None


def _matters(name: str) -> bool:
    return name not in WITHOUT_EFFECT and not name.endswith("_bounds")


def _describe_code(code: CodeType) -> list[Any]:
    """What compiled Python does, without the lines it came from."""
    constants = [_describe_constant(each) for each in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _describe_constant(constant: Any) -> Any:
    if isinstance(constant, CodeType):
        return _describe_code(constant)
    # The order of a set differs from process to process.
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """Where two descriptions differ, one line each."""
    if isinstance(there, dict) and isinstance(here, dict):
        lines = []
        for key in (*there, *(key for key in here if key not in there)):
            inner = f"{name}.{key}" if name else key
            lines += differences(there.get(key, "nothing"), here.get(key, "nothing"), inner)
        return lines
    return [] if there == here else [f"{name} is {_short(there)} there and {_short(here)} here"]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:12]}…"
