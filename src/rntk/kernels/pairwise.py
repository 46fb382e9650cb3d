"""Any kernel on any sequences: the form in which it takes them, its values, and copies of it with other settings.

A kernel here is one of the library, one of scikit-learn, or a function of two sets of sequences.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, KernelOperator

from ..errors import SequenceError
from ..sequences import SequenceBatch, as_batch
from .network import NetworkKernel

Array = NDArray[Any]
#: Bytes of kernel values held at once during prediction.
BLOCK_BYTES = 1 << 26


def evaluate(kernel: Any, X: SequenceBatch, Y: SequenceBatch | None = None, kind: str = "ntk") -> Any:
    """kernel(X), or kernel(X, Y), as it comes; for `kind` "nngp" of the kernel's method of that name.

    Without `Y` a kernel object may add noise to the diagonal. A function gets the same sequences twice.
    """
    function = kernel if kind == "ntk" else kernel.nngp
    left = suited(kernel, X)
    if Y is not None:
        return function(left, suited(kernel, Y))
    return function(left) if isinstance(kernel, Kernel) else function(left, left)


def suited(kernel: Any, X: SequenceBatch) -> Any:
    """The sequences in the form that this kernel takes.

    Kernels of the library take the batch. Kernels of scikit-learn that want vectors, and `NTK`, take (n, T m): all
    steps of all channels in a row. Functions take an array where lengths are equal, otherwise a list of (T_i, m).
    """
    if compares_vectors(kernel):
        if X.n_channels > 1 and any(getattr(each, "compares_vectors", True) is False for each in leaves_of(kernel)):
            raise ValueError(
                f"{kernel} mixes kernels of sequences and of vectors, and {X.n_channels} channels in a row are no "
                "sequence; compute the parts apart and add their matrices"
            )
        if not X.is_equal_length:
            raise ValueError(
                f"{type(kernel).__name__} compares vectors of one length; these sequences have lengths "
                f"{X.lengths.min()} to {X.lengths.max()}. Take RNTK, or pad or cut them first"
            )
        return X.values.reshape(len(X), -1)
    if isinstance(kernel, Kernel):
        return X
    if X.is_equal_length:
        return X.values.reshape(len(X), -1, X.n_channels) if X.n_channels > 1 else X.values.reshape(len(X), -1)
    return [sequence[:, 0] if X.n_channels == 1 else sequence for sequence in X]


def compares_vectors(kernel: Any) -> bool:
    """Whether a kernel takes all steps of all channels in a row, so that lengths must agree."""
    return isinstance(kernel, Kernel) and any(
        bool(getattr(each, "compares_vectors", each.requires_vector_input)) for each in leaves_of(kernel)
    )


def leaves_of(kernel: Any) -> list[Any]:
    """The kernels that a sum, product or power of scikit-learn is made of; anything else is one itself."""
    if isinstance(kernel, KernelOperator):
        return [*leaves_of(kernel.k1), *leaves_of(kernel.k2)]
    return leaves_of(kernel.kernel) if isinstance(kernel, Exponentiation) else [kernel]


def settings_of(kernel: Any, name: str) -> list[Any]:
    """The values of a parameter in a kernel, and in the kernels that a sum or a product is made of."""
    if not hasattr(kernel, "get_params"):
        return []
    return [value for key, value in kernel.get_params().items() if key.rpartition("__")[2] == name]


def with_settings(kernel: Any, **settings: Any) -> Any:
    """A copy of the kernel, or of the kernels it is made of, with those of the settings that they have."""
    if not (hasattr(kernel, "get_params") and hasattr(kernel, "set_params")):
        return kernel
    wanted = {
        key: settings[key.rpartition("__")[2]] for key in kernel.get_params() if key.rpartition("__")[2] in settings
    }
    return copy.deepcopy(kernel).set_params(**wanted) if wanted else kernel


def read_sequences(X: Any) -> SequenceBatch:
    """`as_batch`, whose refusals also use the words of scikit-learn, since its tools and its users look for them."""
    if sparse.issparse(X):
        raise SequenceError("Sparse data was passed for X, but sequences are dense: pass X.toarray()")
    try:
        return as_batch(X)
    except SequenceError as error:
        if not isinstance(X, np.ndarray):
            raise
        if X.dtype.kind == "c":
            words = "Complex data not supported"
        elif X.ndim == 2 and X.shape[1] == 0:
            words = f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        elif X.ndim == 1 and X.dtype.kind in "biuf":
            words = "Reshape your data: X.reshape(1, -1) is one sequence, X.reshape(-1, 1) many of one step"
        else:
            raise
        raise SequenceError(f"{error}\n{words}", error.problems) from None


def gram(kernel: Any, X: SequenceBatch, Y: SequenceBatch | None = None) -> Array:
    """kernel(X), or kernel(X, Y), as a float64 matrix, whatever kind of kernel it is."""
    shape = (len(X), len(X if Y is None else Y))
    K = np.asarray(evaluate(kernel, X, Y), dtype=np.float64)
    if K.shape != shape:
        hint = '; readout="sequence" has no single value per pair' if K.size > np.prod(shape) else ""
        raise ValueError(f"the kernel returned a matrix of shape {K.shape} where {shape} was expected{hint}")
    if not np.isfinite(K).all():
        raise ValueError("the kernel returned values that are not finite numbers")
    return K


def self_gram(kernel: Any, X: SequenceBatch) -> Array:
    """k(x, x) for every x, as `kernel(X)` has it on its diagonal."""
    if isinstance(kernel, Kernel):
        return np.asarray(kernel.diag(suited(kernel, X)), dtype=np.float64)
    return np.array([gram(kernel, X.take([i]))[0, 0] for i in range(len(X))])


def in_blocks(
    new: SequenceBatch, columns: int, evaluate: Callable[[SequenceBatch], Array], block_bytes: int = BLOCK_BYTES
) -> Array:
    """`evaluate` on consecutive parts of `new`, so that no more than `block_bytes` of kernel values exist at once."""
    rows = max(1, block_bytes // (8 * max(columns, 1)))
    parts = [evaluate(new.take(np.arange(a, min(a + rows, len(new))))) for a in range(0, len(new), rows)]
    return np.concatenate(parts)


def is_tangent_kernel(kernel: Any) -> bool:
    """Whether `kernel` is a network's: then it has an NNGP kernel beside the tangent kernel."""
    return isinstance(kernel, NetworkKernel)
