"""Gram matrices of training sequences in a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .. import gram
from ..gram.work import make_work
from ..sequences import SequenceBatch


def stored_gram(
    folder: Any, kernel: Any, X: SequenceBatch, memory: Any = "1GB", progress: bool | None = False
) -> gram.GramMatrix:
    """The Gram matrix of `X`, read from `folder` or computed and kept there, under a name made of kernel and data."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cache={str(folder)!r} can't be used as a folder: {error.strerror}") from None
    identity = make_work(kernel, X, None, "ntk", None, None).identity
    name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
    return gram.compute(kernel, X, out=place / f"{name}.gram", memory=memory, progress=progress)
