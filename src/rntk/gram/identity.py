"""What a stored matrix is of, in words that can be compared: digests of the data, parameters of the kernel.

A store belongs to one identity. What doesn't change numbers (threads, progress, bounds of hyperparameters) is left out.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import json
import pickle
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..activations import Activation
from ..sequences import SequenceBatch

#: Parameters of kernels that leave every number as it is.
WITHOUT_EFFECT = ("n_jobs", "progress")
#: Arrays up to this size are written out, so that a message can show what differs.
SHORT = 16
#: Packages whose code is known by its version, or its name.
LIBRARIES = ("rntk", "sklearn", "numpy", "scipy", "builtins", "numba")
#: Characters of a value, beyond which its digest is kept instead.
LONG = 2000


def digest_batch(batch: SequenceBatch) -> str:
    """SHA-256 of the sequences: their values, dtype and lengths."""
    digest = hashlib.sha256(f"{batch.values.dtype.str}{batch.values.shape}{batch.offsets.shape}".encode())
    digest.update(batch.offsets.data)
    digest.update(batch.values.data)
    return digest.hexdigest()


def describe(value: Any) -> Any:
    """`value` as JSON has it: equal for what computes the same, as far as that can be told.

    Kernels are their class and parameters. Functions are their name, their compiled code and what they read: values
    they enclose, globals, and functions and classes of the same module in the same way. Those of other modules are
    names. Other objects are what they hold, and the methods of their class.

    Raises
    ------
    ValueError : an object has no parameters, attributes or pickle to be known by.
    """
    return _Description(_module_of(value)).of(value)


class _Description:
    """One description: the module whose code counts, and the functions and classes that were described already."""

    def __init__(self, module: str | None) -> None:
        self.module = module
        self.seen: list[Any] = []

    def of(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.dtype):
            return value.name
        if isinstance(value, (np.generic, complex, bytes)):
            found = value.item() if isinstance(value, np.generic) else value
            return found if isinstance(found, (bool, int, float, str)) else repr(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return self._array(value)
        if isinstance(value, (list, tuple)):
            return _shortened([self.of(each) for each in value])
        if isinstance(value, (set, frozenset)):
            return _shortened(sorted((self.of(each) for each in value), key=_text))
        if isinstance(value, dict):
            if all(isinstance(key, str) for key in value):
                return _shortened({key: self.of(each) for key, each in sorted(value.items())})
            return _shortened(sorted(([self.of(key), self.of(each)] for key, each in value.items()), key=_text))
        return self._object(value)

    def _array(self, value: Any) -> Any:
        if value.size <= SHORT and value.dtype.kind in "biuf":
            return value.tolist()
        digest = hashlib.sha256(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
        return {"array": list(value.shape), "sha256": digest.hexdigest()}

    def _object(self, value: Any) -> Any:
        if inspect.isfunction(value):
            return self._function(value)
        if inspect.isfunction(getattr(value, "py_func", None)):  # compiled by Numba
            return {"compiled": self._function(value.py_func)}
        if inspect.isfunction(getattr(value, "__wrapped__", None)):  # functools.lru_cache and its like
            return {"wrapped": self._function(value.__wrapped__), "by": _name(type(value))}
        if isinstance(value, functools.partial):
            return {"partial": self.of(value.func), "arguments": self.of([*value.args, value.keywords])}
        if inspect.ismethod(value):
            return {"method": self.of(value.__func__), "of": self.of(value.__self__)}
        if isinstance(value, ModuleType):
            return {"module": value.__name__}
        if isinstance(value, property):
            return {"property": [self.of(value.fget), self.of(value.fset)]}
        if isinstance(value, type):
            return self._class(value)
        if inspect.isbuiltin(value) or isinstance(value, np.ufunc):
            return {"name": f"{getattr(value, '__module__', None) or 'numpy'}.{value.__name__}"}
        if hasattr(value, "get_params"):
            kept = {name: each for name, each in value.get_params(deep=False).items() if _matters(name)}
            return {**self._class(type(value)), **{name: self.of(each) for name, each in kept.items()}}
        return self._instance(value)

    def _instance(self, value: Any) -> Any:
        """An object by what it holds."""
        named = self._class(type(value))
        if any(value is each for each in self.seen):
            return named
        self.seen.append(value)
        held = dict(getattr(value, "__dict__", {}))
        plain = not any("__reduce__" in vars(each) for each in type(value).__mro__[:-1])
        if isinstance(value, (Activation, np.vectorize)) or (held and plain):
            # What begins with an underscore has been found out from the rest.
            return {**named, "holds": {name: self.of(each) for name, each in held.items() if not name.startswith("_")}}
        try:
            return {**named, "sha256": hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()}
        except Exception as error:  # pickle raises whatever the object's own methods raise
            raise ValueError(
                f"a store on disk must recognise its kernel, and {_name(type(value))} has neither get_params nor a "
                f"pickle ({error}); pass a function, give the class get_params(deep), or leave out=None"
            ) from None

    def _class(self, value: type) -> dict[str, Any]:
        """A class by its name and, in the module that counts, by its methods."""
        named: dict[str, Any] = {"class": _name(value)}
        own = [each for each in value.__mro__ if each.__module__ == self.module]
        if own and not any(value is each for each in self.seen):
            self.seen.append(value)
            parts = {name: each for base in reversed(own) for name, each in vars(base).items()}
            named["does"] = {
                name: self._read(each) for name, each in sorted(parts.items()) if not _is_plain(name, each)
            }
        return named

    def _function(self, function: Any) -> Any:
        name = _name(function)
        if function.__module__ != self.module or any(function is each for each in self.seen):
            return {"function": name}
        self.seen.append(function)
        code, known = function.__code__, function.__globals__
        loaded, stored = _names(code)
        enclosed = [self._read(each) for each in (function.__defaults__, function.__kwdefaults__, *_cells(function))]
        return {
            "function": name,
            "inside": enclosed,
            # What it writes to itself, a counter say, is no input.
            "reads": {each: self._read(known[each]) for each in sorted(loaded - stored) if each in known},
            "code": hashlib.sha256(_text(_describe_code(code)).encode()).hexdigest(),
        }

    def _read(self, value: Any) -> Any:
        """Something that code reads."""
        try:
            return self.of(value)
        except (ValueError, RecursionError):  # a lock, an open file, a list of itself: nothing that numbers come from
            return {"class": _name(type(value))}


def _module_of(value: Any) -> str | None:
    """The module of a function, of an object's class, or of the first of its parts that has one; not a library's."""
    for inner in ("func", "pyfunc", "py_func", "__wrapped__", "__func__", "function"):
        if callable(getattr(value, inner, None)):
            return _module_of(getattr(value, inner))
    module = str(value.__module__ if inspect.isfunction(value) else type(value).__module__)
    if module.partition(".")[0] not in LIBRARIES:
        return module
    parts = value.get_params(deep=False).values() if hasattr(value, "get_params") else ()
    return next((found for each in parts if callable(each) and (found := _module_of(each)) is not None), None)


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shortened(value: Any) -> Any:
    text = _text(value)
    return value if len(text) <= LONG else {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def _matters(name: str) -> bool:
    return name not in WITHOUT_EFFECT and not name.endswith("_bounds")


def _is_plain(name: str, part: Any) -> bool:
    """Whether a part of a class says nothing of what it does: names that Python itself gives, and places of slots."""
    given = name.startswith("__") and not isinstance(part, (FunctionType, staticmethod, classmethod, property))
    return given or inspect.isgetsetdescriptor(part) or inspect.ismemberdescriptor(part)


def _cells(function: Any) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not set yet
            found.append(None)
    return found


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Globals that code loads, and those that it stores; functions inside it included."""
    loaded, stored = set(), set()
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded.add(str(each.argval))
        elif each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stored.add(str(each.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            more, others = _names(constant)
            loaded, stored = loaded | more, stored | others
    return loaded, stored


def _describe_code(code: CodeType) -> list[Any]:
    """What compiled Python does, without the lines it came from."""
    return [code.co_code.hex(), list(code.co_names), [_describe_constant(each) for each in code.co_consts]]


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
    # As text: NaN is equal to itself there.
    return [] if _text(there) == _text(here) else [f"{name} is {_short(there)} there and {_short(here)} here"]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:12]}…"
