"""Double precision without touching JAX's global switch.

JAX makes float64 arrays only while its flag `jax_enable_x64` is up. The flag belongs to the user: this package raises
it for the time of a computation in double precision, in this thread only, and leaves it as it was.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from ..errors import check_dtype


def precision(dtype: Any) -> AbstractContextManager[Any]:
    """A context in which JAX computes in `dtype`.

    The functions of `rntk.finite` enter it by themselves. Your own JAX code needs it around whatever it does with
    parameters in float64, differentiation included.

    Parameters
    ----------
    dtype : "float32" or "float64"
        Single precision needs nothing: the context then changes nothing.

    Examples
    --------
    >>> import jax, numpy as np
    >>> from rntk import RNTK, finite
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> net = finite.network(RNTK(), width=8)
    >>> parameters = net.init(0, X, dtype="float64")
    >>> with finite.precision("float64"):
    ...     gradient = jax.grad(lambda p: net(p, X).sum())(parameters)
    >>> gradient["forward"]["V"].dtype, jax.numpy.zeros(1).dtype
    (dtype('float64'), dtype('float32'))
    """
    if check_dtype(dtype) == np.float32:
        return nullcontext()
    enable: Any = getattr(jax, "enable_x64", None)
    if enable is None:  # JAX before 0.8
        enable = importlib.import_module("jax.experimental").enable_x64
    context: AbstractContextManager[Any] = enable(True)
    return context


def dtype_of(parameters: Any) -> np.dtype[Any]:
    """The precision of parameters, which decides that of everything made from them."""
    kinds = {np.dtype(leaf.dtype) for leaf in jax.tree_util.tree_leaves(parameters)}
    if len(kinds) != 1:
        raise ValueError(f"parameters must all have one dtype, not {sorted(map(str, kinds)) or 'be empty'}")
    return check_dtype(kinds.pop())
