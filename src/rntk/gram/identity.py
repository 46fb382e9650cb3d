"""What a stored matrix is of, in words that can be compared.

A store belongs to one identity: the sequences, the kernel by its class and parameters, the precision, and the revision
of the arithmetic. A kernel with anything else in it, such as a function of the user's, has no description of its own:
the caller names it by a `key`, or the matrix is never taken for that of a later call.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from ..activations import Activation, as_activation
from ..engine import REVISION
from ..sequences import SequenceBatch

#: Packages whose kernels compute what their parameters say.
KNOWN = ("rntk.kernels.", "sklearn.gaussian_process.kernels")
#: What the identity of a kernel begins with that isn't known.
UNKNOWN = "unknown"
#: Parameters of kernels that leave every number as it is.
WITHOUT_EFFECT = ("n_jobs", "progress")


def identify(
    kernel: Any, kind: str, dtype: np.dtype[Any], X: SequenceBatch, Y: SequenceBatch | None, key: str | None
) -> dict[str, Any]:
    """What tells a Gram matrix from others, as JSON has it.

    Of a kernel that can't be described and has no `key` it is like no other, not even that of the same call again.
    """
    described = _describe(kernel)
    known: dict[str, Any] = {"kernel": described} if described is not None else {}
    if key is not None:
        known["key"] = key
    return {
        "X": digest(X),
        "Y": None if Y is None else digest(Y),
        **(known or {"kernel": f"{UNKNOWN} {uuid.uuid4().hex}"}),
        "kind": kind,
        "dtype": dtype.name,
        "revision": REVISION,
    }


def is_known(identity: dict[str, Any]) -> bool:
    """Whether a later call can have the same identity."""
    return not str(identity.get("kernel", "")).startswith(UNKNOWN)


def digest(batch: SequenceBatch) -> str:
    """SHA-256 of the sequences: their values, dtype and lengths."""
    found = hashlib.sha256(f"{batch.values.dtype.str}{batch.values.shape}{batch.offsets.shape}".encode())
    found.update(batch.offsets.data)
    found.update(batch.values.data)
    return found.hexdigest()


def _describe(kernel: Any) -> dict[str, Any] | None:
    """Class and parameters of a kernel as plain values; None if there is anything in it that isn't one."""
    if not (isinstance(kernel, Kernel) and type(kernel).__module__.startswith(KNOWN)):
        return None
    found: dict[str, Any] = {"class": type(kernel).__name__}
    try:
        for name, value in kernel.get_params(deep=False).items():
            if name not in WITHOUT_EFFECT and not name.endswith("_bounds"):
                found[name] = _plain(value)
    except TypeError:
        return None
    return found


def _plain(value: Any) -> Any:
    """A parameter as JSON has it, or a TypeError."""
    if isinstance(value, Activation):
        if not _is_registered(value):
            raise TypeError("an activation of the user's")
        return value.name
    if isinstance(value, Kernel):
        described = _describe(value)
        if described is None:
            raise TypeError("a kernel of the user's")
        return described
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError("not a plain value")


def _is_registered(activation: Activation) -> bool:
    try:
        return as_activation(activation.name) == activation
    except ValueError:
        return False


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


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= 60 else f"{text[:12]}…"
