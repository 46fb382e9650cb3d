"""Any kernel on any sequences: the form in which it takes them, its values, and copies of it with other settings.

A kernel here is one of the library, one of scikit-learn, or a function of two sets of sequences.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, KernelOperator, Product, Sum

from ..engine import Engine, choose_engine, load_engine
from ..engine.array.libraries import foreign_arrays, is_elsewhere, to_host
from ..errors import SequenceError
from ..sequences import SequenceBatch, as_batch, check_channels_agree
from .network import NetworkKernel

Array = NDArray[Any]
#: Copies of its arguments that a kernel may make which isn't ours, on the high side.
COPIES = 16


class Pairwise(ABC):
    """Any kernel in three verbs: prepare sequences once, compare them as often as needed, ask for the diagonal.

    `of` makes one. Learners, Gram matrices and dynamics hold what `prepare` gives and never look inside.

    Attributes
    ----------
    kernel : object
        The kernel.
    dtype : dtype
        What its values come in.
    per_step : bool
        Whether a Gram matrix has a row per step instead of one per sequence.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.dtype = np.result_type(*(settings_of(kernel, "dtype") or ["float64"]))
        self.per_step = False

    def read(self, *named: tuple[str, Any]) -> list[Any]:
        """What users gave, (name, data) each, as batches; sequences on a device stay there if the kernel takes them."""
        if any(is_elsewhere(array) for _, data in named for array in foreign_arrays(data)):
            raise TypeError(f"sequences on a device are for kernels of networks, not for {called(self.kernel)}")
        batches = [as_batch(data, name=name) for name, data in named]
        for batch in batches:
            suited(self.kernel, batch)  # refuses what the kernel can't read
        check_channels_agree(batches, [name for name, _ in named])
        return batches

    def plan(self, *batches: SequenceBatch) -> None:  # noqa: B027
        """Learn what must be the same for all sequences that will be compared, such as the terms of an expansion."""

    @abstractmethod
    def prepare(self, batch: SequenceBatch) -> Any:
        """All that belongs to each sequence alone; opaque."""

    @abstractmethod
    def pairs(self, a: Any, b: Any = None) -> Array:
        """Gram matrix of what was prepared; without `b` of `a` with itself, where noise is added to the diagonal."""

    @abstractmethod
    def diagonal(self, a: Any) -> Array:
        """The diagonal of `pairs(a)`."""

    def cost(self, left: Any, right: Any) -> float:
        """Work for all pairs of sequences of these lengths, in steps of a recursion."""
        return float(len(left) * len(right) * min(left.mean(), right.mean()))

    @abstractmethod
    def nbytes(self, a: Any) -> int:
        """Memory that something prepared takes, about."""

    def gram(self, X: SequenceBatch, Y: SequenceBatch | None = None) -> Array:
        """Gram matrix of batches, where nobody keeps what was prepared."""
        self.plan(X) if Y is None else self.plan(X, Y)
        return self.pairs(self.prepare(X), None if Y is None else self.prepare(Y))


def of(kernel: Any) -> Pairwise:
    """A kernel of the library or of scikit-learn, a sum, product or power of them, or a function, as `Pairwise`."""
    if type(kernel) in (Sum, Product, Exponentiation):
        return _Combined(kernel)
    return _Network(kernel) if is_ours(kernel) else _Plain(kernel)


def is_ours(kernel: Any) -> bool:
    """Whether the library's engines compute a kernel: a subclass may compute its values itself."""
    return isinstance(kernel, NetworkKernel) and all(
        getattr(type(kernel), verb) is getattr(NetworkKernel, verb) for verb in ("__call__", "diag")
    )


class _Network(Pairwise):
    """Kernels of this library: sides of an engine."""

    kernel: NetworkKernel

    def __init__(self, kernel: NetworkKernel) -> None:
        super().__init__(kernel)
        self._plan = kernel.plan()
        self.per_step = self._plan.network.readout.per_step
        self._needs: Any = None
        self._engine: Engine = choose_engine(kernel.engine, self._plan.network)[0]

    def read(self, *named: tuple[str, Any]) -> list[Any]:
        engine = choose_engine(self.kernel.engine, self._plan.network, *(data for _, data in named))[0]
        return engine.read(self.kernel.read_batch, *named) if engine.name == "array" else super().read(*named)

    def cost(self, left: Any, right: Any) -> float:
        return self._plan.network.cost(left, right)

    def nbytes(self, a: Any) -> int:
        return int(a.nbytes)

    def plan(self, *batches: Any) -> None:
        batches = tuple(map(self._suited, batches))
        self._needs = self._engine.needs(self._plan, *batches)

    def _suited(self, batch: Any) -> Any:
        """The batch as the engine takes it; where it lies says which engine that is."""
        if not isinstance(batch, SequenceBatch):
            self._engine = load_engine("array")
            return batch
        batch = self.kernel.read_batch(suited(self.kernel, batch))
        return self._engine.read(lambda data, _: data, ("X", batch))[0]

    def prepare(self, batch: Any) -> Any:
        batch = self._suited(batch)
        return self._engine.prepare(self._plan, batch, self._needs)

    def pairs(self, a: Any, b: Any = None) -> Array:
        return to_host(getattr(self._engine.pairs(a, b), self._plan.network.kind))

    def diagonal(self, a: Any) -> Array:
        return to_host(self._engine.diagonal(self._plan, a.batch))


class AgainstLast(_Network):
    """A mean over the steps of one side, the last step of the other: `NetworkKernel.against_last`, in parts.

    The last steps are normalised. The other side is where the kernel normalises, but roughly, to a number per row: what
    its mean over steps is takes O(T²), and whoever makes features divides by their norms.
    """

    def __init__(self, kernel: NetworkKernel) -> None:
        super().__init__(kernel)
        plan, final = kernel.plans_against_last()
        self._plan = replace(plan, rough=True)
        self._final = replace(final, network=replace(final.network, normalize=True))

    def prepare_last(self, batch: SequenceBatch) -> Any:
        """All that belongs to the last step of each sequence alone."""
        return self._engine.prepare(self._final, self._suited(batch), self._needs)


class _Plain(Pairwise):
    """Kernels without anything to prepare: the data in the form that they take."""

    def prepare(self, batch: SequenceBatch) -> Any:
        return suited(self.kernel, batch), len(batch)

    def nbytes(self, a: Any) -> int:
        # A function may copy what it gets, in double precision, a few times.
        return COPIES * 8 * sum(np.size(each) for each in a[0])

    def pairs(self, a: Any, b: Any = None) -> Array:
        (left, n), (right, m) = a, a if b is None else b
        # Without a second argument a kernel object may add noise to the diagonal; a function gets the same data twice.
        alone = b is None and isinstance(self.kernel, Kernel)
        K = np.asarray(self.kernel(left) if alone else self.kernel(left, right))
        if not self.per_step and K.shape != (n, m):
            raise ValueError(f"the kernel returned a matrix of shape {K.shape} where {(n, m)} was expected")
        if K.dtype.kind not in "fiu":
            raise ValueError(f"the kernel must give real numbers, and these are {K.dtype}")
        if not np.isfinite(K).all():
            raise ValueError("the kernel returned values that are not finite numbers")
        return K

    def diagonal(self, a: Any) -> Array:
        data, n = a
        if isinstance(self.kernel, Kernel):
            return np.asarray(self.kernel.diag(data))
        return np.array([self.kernel(data[i : i + 1], data[i : i + 1])[0, 0] for i in range(n)])


class _Combined(Pairwise):
    """A sum, product or power: its parts prepared apart."""

    def __init__(self, kernel: Any) -> None:
        super().__init__(kernel)
        power = isinstance(kernel, Exponentiation)
        self.parts = [of(each) for each in ((kernel.kernel,) if power else (kernel.k1, kernel.k2))]
        self.per_step = any(part.per_step for part in self.parts)

    def read(self, *named: tuple[str, Any]) -> list[Any]:
        networks = all(isinstance(part, _Network) for part in self.parts)
        return self.parts[0].read(*named) if networks else super().read(*named)

    def plan(self, *batches: SequenceBatch) -> None:
        for part in self.parts:
            part.plan(*batches)

    def cost(self, left: Any, right: Any) -> float:
        return sum(part.cost(left, right) for part in self.parts)

    def nbytes(self, a: Any) -> int:
        return sum(part.nbytes(x) for part, x in zip(self.parts, a, strict=True))

    def prepare(self, batch: SequenceBatch) -> Any:
        if isinstance(batch, SequenceBatch):
            suited(self.kernel, batch)  # refuses what its parts can't read together
        return [part.prepare(batch) for part in self.parts]

    def pairs(self, a: Any, b: Any = None) -> Array:
        others = [None] * len(self.parts) if b is None else b
        return self._combine([part.pairs(x, y) for part, x, y in zip(self.parts, a, others, strict=True)])

    def diagonal(self, a: Any) -> Array:
        return self._combine([part.diagonal(x) for part, x in zip(self.parts, a, strict=True)])

    def _combine(self, values: list[Array]) -> Array:
        if isinstance(self.kernel, Exponentiation):
            return np.asarray(values[0] ** self.kernel.exponent)
        return np.asarray(values[0] + values[1] if isinstance(self.kernel, Sum) else values[0] * values[1])


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
            name = next(type(each).__name__ for each in leaves_of(kernel) if compares_vectors(each))
            raise ValueError(
                f"{name} compares vectors of one length; these sequences have lengths {X.lengths.min()} to "
                f"{X.lengths.max()}. Take RNTK, or pad or cut them first"
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


def called(kernel: Any) -> str:
    """What messages call a kernel: its class, or the name of a function."""
    return str(getattr(kernel, "__name__", type(kernel).__name__))


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
        raise SequenceError(f"{error}\n{words}", error.problems, error.subject) from None
