"""What a stored matrix is of, in words that can be compared: digests of the data, parameters of the kernel.

A store belongs to one identity. What doesn't change numbers (threads, progress, bounds of hyperparameters) is left out.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import pickle
from types import CodeType
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


def describe(value: Any) -> Any:
    """`value` as JSON has it: equal for what computes the same, as far as that can be told.

    Kernels are their class and parameters, functions their name and compiled code (not the globals they read),
    everything else unknown is the digest of its pickle.
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
        return [describe(each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: describe(each) for key, each in sorted(value.items())}
    return _describe_object(value)


def _describe_object(value: Any) -> Any:
    named = {"class": f"{type(value).__module__}.{type(value).__qualname__}"}
    if isinstance(value, Activation):
        parts = {name: part for name, part in vars(value).items() if not name.startswith("_")}  # those are found out
        return {**named, "name": value.name, "parts": describe(parts)}
    if hasattr(value, "get_params") and not isinstance(value, type):
        kept = {name: each for name, each in value.get_params(deep=False).items() if _matters(name)}
        return {**named, **{name: describe(each) for name, each in kept.items()}}
    if isinstance(value, functools.partial):
        return {"partial": describe(value.func), "arguments": describe([*value.args, value.keywords])}
    if inspect.ismethod(value):
        return {"method": value.__name__, "of": describe(value.__self__)}
    if inspect.isfunction(value):
        inside = inspect.getclosurevars(value).nonlocals
        given = [value.__defaults__, value.__kwdefaults__, inside]
        code = json.dumps(_describe_code(value.__code__), sort_keys=True)
        said = {"function": f"{value.__module__}.{value.__qualname__}", "inside": describe(given)}
        return {**said, "code": hashlib.sha256(code.encode()).hexdigest()}
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
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
    constants = [_describe_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


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
