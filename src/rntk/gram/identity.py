"""What a stored matrix is of, in words that can be compared.

A store belongs to one identity: the sequences, the kernel by its class and parameters, the precision, and the revision
of the arithmetic. A kernel with anything else in it, such as a function of the user's, has no description of its own:
the caller names that part by a `key`, or the matrix is never taken for that of a later call.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import numpy as np

from ..engine import REVISION
from ..kernels.description import describe
from ..sequences import SequenceBatch

#: What the identity of a kernel begins with that isn't known.
UNKNOWN = "unknown"


def identify(
    kernel: Any, dtype: np.dtype[Any], X: SequenceBatch, Y: SequenceBatch | None, key: str | None
) -> dict[str, Any]:
    """What tells a Gram matrix from others, as JSON has it.

    Of a kernel that can't be described and has no `key` it is like no other, not even that of the same call again.
    """
    known = describe(kernel, partly=key is not None) or {}
    if key is not None:
        known["key"] = key
    return {
        "X": digest(X),
        "Y": None if Y is None else digest(Y),
        **(known or {"kernel": f"{UNKNOWN} {uuid.uuid4().hex}"}),
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


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """Where two descriptions differ, one line each."""
    if isinstance(there, dict) and isinstance(here, dict):
        lines = []
        for key in (*there, *(key for key in here if key not in there)):
            inner = f"{name}.{key}" if name else key
            lines += differences(there.get(key, "nothing"), here.get(key, "nothing"), inner)
        return lines
    if (
        isinstance(there, list)
        and isinstance(here, list)
        and len(there) == len(here) == 2
        and isinstance(here[1], dict)
    ):
        # A kernel is the name of its class and its parameters.
        return [*differences(there[0], here[0], name), *differences(there[1], here[1], name)]
    return [] if there == here else [f"{name} is {_short(there)} there and {_short(here)} here"]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:12]}…"
