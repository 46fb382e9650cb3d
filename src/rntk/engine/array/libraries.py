"""Whose arrays are these, and where do they lie?

An array of another library is known by the namespace it offers (`__array_namespace__`), or by coming from a library
that array-api-compat wraps. Nothing is imported to find out: who has a tensor has imported its library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import SequenceError, need_extra

#: Libraries whose arrays offer no namespace of their own, in some versions at least; array-api-compat wraps them.
WRAPPED = ("torch", "cupy")


@dataclass(frozen=True)
class Library:
    """Functions for arrays, and the device they work on.

    Attributes
    ----------
    xp
        The functions of the array API standard.
    device
        Where new arrays are made.
    name : str
        Of the library, for messages.
    double : bool
        Whether the device computes in float64.
    """

    xp: Any
    device: Any
    name: str
    double: bool

    def dtype(self, name: str) -> Any:
        """The library's own float32 or float64."""
        return getattr(self.xp, name)


def foreign_arrays(X: Any) -> list[Any]:
    """The arrays of other libraries that `X` is or, as a list, holds; empty for NumPy and everything else."""
    if isinstance(X, (list, tuple)):
        kinds = {kind for kind in set(map(type, X)) if _is_foreign(kind)}
        return [item for item in X if type(item) in kinds] if kinds else []
    return [X] if _is_foreign(type(X)) else []


def _is_foreign(kind: type) -> bool:
    if issubclass(kind, (np.ndarray, np.generic)):
        return False
    if hasattr(kind, "__array_namespace__"):
        return True
    return hasattr(kind, "__dlpack__") and any(base.__module__.partition(".")[0] in WRAPPED for base in kind.__mro__)


def _device(array: Any) -> Any:
    device = getattr(array, "device", "cpu")
    return device() if callable(device) else device


def place_of(array: Any) -> str:
    """Where an array lies, in words: "cpu", "cuda:0"."""
    return str(_device(array))


def is_elsewhere(array: Any) -> bool:
    """Whether an array lies on a device other than the CPU."""
    device = _device(array)
    # PyTorch calls the kind of a device its type, JAX its platform; others put it into the device's name.
    kinds = (getattr(device, attribute, None) for attribute in ("type", "platform"))
    return "cpu" not in next((kind for kind in kinds if isinstance(kind, str)), str(device)).lower()


def _compat() -> Any:
    """array-api-compat, or the copy that recent versions of scikit-learn carry."""
    for name in ("array_api_compat", "sklearn.externals.array_api_compat"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return need_extra("gpu", "array_api_compat")


def library_of(named: list[tuple[str, Any]]) -> Library:
    """The one library and the one device of all arrays, each given with what to call it in a message."""
    compat = _compat()
    found: dict[tuple[str, str], str] = {}  # (library, place) -> the first array there
    for name, array in named:
        several = isinstance(array, list)
        for i, each in enumerate(array if several else [array]):
            found.setdefault((library_name(each), place_of(each)), f"sequence {i} of {name}" if several else name)
    if len(found) > 1:
        seen = ", ".join(f"{name} is of {library} on {place}" for (library, place), name in found.items())
        raise SequenceError(
            f"all sequences must be arrays of one library on one device, but {seen}. Nothing is moved behind your "
            "back: move them yourself, for instance with Y.to(X.device) in PyTorch or jax.device_put(Y, X.device) in "
            "JAX; data in NumPy goes over with torch.as_tensor or jax.numpy.asarray"
        )
    array = named[0][1][0] if isinstance(named[0][1], list) else named[0][1]
    devices = array.devices() if callable(getattr(array, "devices", None)) else ()
    if len(devices) > 1:
        raise SequenceError(
            f"{named[0][0]} is spread over {len(devices)} devices; put it on one, with jax.device_put(X, "
            "jax.devices()[0]), and split the work by hand: kernel(X[:k]), kernel(X[:k], X[k:]), kernel(X[k:])"
        )
    xp, device = compat.array_namespace(array), compat.device(array)
    return Library(xp, device, library_name(array), _has_double(xp, device))


def library_name(array: Any) -> str:
    """The package an array comes from."""
    root = type(array).__module__.partition(".")[0]
    return {"jaxlib": "jax"}.get(root, root)


def to_host(array: Any) -> np.ndarray[Any, Any]:
    """A copy of an array in host memory, as NumPy has it: for results that go to disk. The engine itself never asks."""
    name = library_name(array)
    if name == "torch":
        return np.asarray(array.detach().cpu().numpy())
    if name == "cupy":
        return np.asarray(array.get())
    return np.asarray(array) if name == "jax" else np.from_dlpack(array)


def _has_double(xp: Any, device: Any) -> bool:
    if not hasattr(xp, "__array_namespace_info__"):
        return True
    return "float64" in xp.__array_namespace_info__().dtypes(device=device, kind="real floating")


def check_precision(library: Library, dtype: str, homogeneous: bool, activation: str) -> None:
    """Refuse what the device can't compute: float64 is missing on some, and JAX hides it unless told otherwise."""
    if library.double or (homogeneous and dtype == "float32"):
        return
    advice = (
        'let JAX use it, jax.config.update("jax_enable_x64", True) before any array is made'
        if library.name == "jax"
        else "bring the arrays to the CPU"
    )
    if homogeneous:
        raise ValueError(
            f'{library.name} on {library.device} has no float64: take dtype="float32" in the kernel, or {advice}'
        )
    raise ValueError(
        f"{activation} is computed in float64 and then rounded, because single precision loses too many digits on long "
        f"sequences, and {library.name} on {library.device} has no float64: {advice}, or take relu, which computes in "
        "float32"
    )


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of JAX arrays as one program.

    Called one by one, JAX compiles every operation for every shape it meets, some ten seconds in all before the first
    result; a whole step compiles in a fraction of one, and then runs without storing what lies between.
    """
    import jax

    return jax.jit(function)
