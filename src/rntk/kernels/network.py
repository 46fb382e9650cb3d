"""What every kernel of an infinitely wide network has in common: the scikit-learn `Kernel` protocol."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter, Kernel

from ..engine import Engine, Scale, choose_engine, load_engine, scales
from ..engine.assemble import Grams, run_tiles
from ..errors import KernelOverflowError
from ..network import Architecture, Direction
from ..runtime import count_threads, progress_bar
from ..sequences import SequenceBatch

if TYPE_CHECKING:
    from ..engine.array import ArrayProblem

Array = NDArray[Any]


# Overflow is looked for in the result, where it can be named, not warned about on the way there.
_quietly = np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore")


class KernelPair(NamedTuple):
    """Both kernels of one network: of the untrained outputs (nngp) and of training by gradient descent (ntk)."""

    nngp: Array
    ntk: Array


class NetworkKernel(GenericKernelMixin, Kernel):  # type: ignore[misc]
    """A kernel between inputs of an infinitely wide network, usable wherever scikit-learn takes a kernel.

    Subclasses say which network (`_architecture`) and how they read data (`_read`); everything else is here.
    Hyperparameters are the standard deviations, in log space. One that is zero is a structural choice (no bias, no
    initial state): it has no logarithm, so it is fixed.
    """

    #: Whether data is vectors rather than sequences (`rntk.kernels.pairwise.suited`).
    compares_vectors = False
    # Set by the constructors of subclasses.
    normalize: bool
    dtype: Any
    engine: str
    n_jobs: int | None
    progress: bool | None

    @abstractmethod
    def _architecture(self) -> Architecture:
        """The network, with every parameter checked."""

    @abstractmethod
    def _read(self, X: Any, name: str) -> SequenceBatch:
        """User data through the gate."""

    @property
    def _reads_both_ways(self) -> bool:
        return False

    # -- kernels ----------------------------------------------------------------------------------------------

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix of the tangent kernel Θ.

        Parameters
        ----------
        X, Y : sequences, see `rntk.sequences.as_batch`. Without `Y` the result is symmetric, and its diagonal holds
            the same-sequence term of `sigma_h`, as the noise of scikit-learn's `WhiteKernel`; `kernel(X, X)` does not.
        eval_gradient : also return the derivative by the log of every free hyperparameter (only without `Y`).

        Returns
        -------
        K : (n, n') array, or one row per step of `X` and column per step of `Y` for `readout="sequence"`. From
            sequences on a device, an array of their library on that device (`rntk.engine.choose_engine`).
        gradient : (n, n, P), in the order of `theta`; only with `eval_gradient`.

        Raises
        ------
        SequenceError : the data can't be used; the message lists every problem.
        KernelOverflowError : a value is too large for `dtype`; the message says what to do.
        """
        if not eval_gradient:
            return self._kernels(X, Y, want_nngp=False).ntk
        if Y is not None:
            raise ValueError("the gradient can only be evaluated for kernel(X), without Y")
        grams = self._kernels(X, None, want_nngp=False, directions=self._directions())
        return grams.ntk, grams.gradient

    def nngp(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix of the NNGP kernel 𝒦: the covariance of the outputs of untrained networks.

        With `eval_gradient` (and without `Y`) also its derivatives, as in `kernel(X, eval_gradient=True)`.
        """
        if not eval_gradient:
            return self._kernels(X, Y, want_ntk=False).nngp
        if Y is not None:
            raise ValueError("the gradient can only be evaluated for kernel.nngp(X), without Y")
        grams = self._kernels(X, None, want_ntk=False, directions=self._directions())
        return grams.nngp, grams.gradient

    def both(self, X: Any, Y: Any = None) -> KernelPair:
        """Both Gram matrices from one pass, as a named tuple (nngp, ntk)."""
        if self.normalize:  # each by its own diagonal
            return KernelPair(self.nngp(X, Y), self(X, Y))
        grams = self._kernels(X, Y)
        return KernelPair(grams.nngp, grams.ntk)

    @_quietly
    def diag(self, X: Any) -> Array:
        """Diagonal of `kernel(X)`: O(N T) for the readouts "last" and "sequence", O(N T²) for "mean"."""
        if choose_engine(self.engine, X)[0] == "array":
            problem = self._array_problem(X, None, "ntk")
            values: Array = problem.diagonal()
            self._check_finite(
                values[None, :], problem.architecture, problem.X.shape, problem.X.shape, problem.library.xp
            )
            return values
        architecture, batch = self._architecture(), self._read(X, "X")
        dtype = self._dtype()
        _, ntk = self._self_kernels(load_engine(self.engine), architecture, batch)
        if self.normalize:
            return (ntk.mantissa > 0).astype(dtype)
        values = scales.to_float(ntk).astype(dtype)
        self._check_finite(values[None], architecture, batch, batch)
        return values

    def is_stationary(self) -> bool:
        """False: these kernels see where a sequence lies, not only differences."""
        return False

    @_quietly
    def _kernels(
        self,
        X: Any,
        Y: Any,
        *,
        want_nngp: bool = True,
        want_ntk: bool = True,
        directions: list[Direction] | None = None,
    ) -> Grams:
        if choose_engine(self.engine, X, Y)[0] == "array":
            return self._array_kernels(X, Y, want_nngp=want_nngp, want_ntk=want_ntk, directions=directions)
        architecture, dtype = self._architecture(), self._dtype()
        engine = load_engine(self.engine)
        left = self._read(X, "X")
        right = None if Y is None else self._read(Y, "Y")
        if right is not None and right.n_channels != left.n_channels:
            raise ValueError(f"X has {left.n_channels} channels and Y has {right.n_channels}; they must agree")
        normalizers: tuple[Scale | None, Scale | None] = (None, None)
        if self.normalize:
            kind = 1 if want_ntk else 0
            normalizers = tuple(  # type: ignore[assignment]
                None if each is None else scales.inverse_root(self._self_kernels(engine, architecture, each)[kind])
                for each in (left, right)
            )
        total: Grams | None = None
        for way in (False, True)[: 1 + self._reads_both_ways]:
            ends = [each if each is None or not way else each.reversed() for each in (left, right)]
            order = [_flip(architecture, each) if way and each is not None else None for each in (left, right)]
            turned = tuple(
                scale if scale is None or at is None else scales.take(scale, at)
                for scale, at in zip(normalizers, order, strict=True)
            )
            problem = engine.make_problem(
                architecture,
                *ends,
                directions or [],
                dtype,
                turned,
                threads=count_threads(self.n_jobs),
                gradient_of="ntk" if want_ntk else "nngp",
            )
            grams = run_tiles(
                problem,
                n_jobs=self.n_jobs,
                progress=self.progress,
                title=type(self).__name__,
                want_nngp=want_nngp,
                want_ntk=want_ntk,
            )
            total = (
                grams if total is None else _sum(total, grams, order[0], order[1] if right is not None else order[0])
            )
        assert total is not None
        return self._finish(total, architecture, left, right)

    def _array_kernels(
        self, X: Any, Y: Any, *, want_nngp: bool, want_ntk: bool, directions: list[Direction] | None
    ) -> Grams:
        """`_kernels` by the array engine: the result is where the data is."""
        if directions is not None:
            raise ValueError(
                "the array engine has no derivatives by hyperparameters; bring the arrays to the CPU (X.cpu() in "
                'PyTorch, jax.device_get(X) in JAX) and take engine="fused"'
            )
        problem = self._array_problem(X, Y, "ntk" if want_ntk else "nngp")
        wanted = [kind for kind, want in (("nngp", want_nngp), ("ntk", want_ntk)) if want]
        with progress_bar(type(self).__name__, problem.cost, self.progress) as advance:
            found = dict(zip(wanted, problem.grams(wanted, advance), strict=True))
        for K in found.values():
            self._check_finite(K, problem.architecture, problem.X.shape, problem.Y.shape, problem.library.xp)
        nothing = np.empty((0, 0, 0))
        return Grams(found.get("nngp", nothing), found.get("ntk", nothing), nothing)

    def _array_problem(self, X: Any, Y: Any, kind: str) -> ArrayProblem:
        from ..engine.array import ArrayProblem, read_arrays

        batches = read_arrays(self._read, X, Y)
        return ArrayProblem(
            self._architecture(),
            *batches,
            dtype=self._dtype().name,
            both_ways=self._reads_both_ways,
            normalize=kind if self.normalize else None,
        )

    def _finish(
        self, grams: Grams, architecture: Architecture, left: SequenceBatch, right: SequenceBatch | None
    ) -> Grams:
        """Exact ones on a normalised diagonal, and a check that nothing overflowed."""
        if self.normalize and right is None:
            if grams.gradient.size:
                K = grams.ntk if grams.ntk.size else grams.nngp
                grams = Grams(grams.nngp, grams.ntk, _normalized_gradient(K, grams.gradient))
            for K in (grams.nngp, grams.ntk):
                diagonal = np.einsum("ii->i", K)
                diagonal[diagonal > 0] = 1.0
        for K in (grams.nngp, grams.ntk, *np.moveaxis(grams.gradient, 2, 0)):
            self._check_finite(K, architecture, left, left if right is None else right)
        return grams

    def _self_kernels(self, engine: Engine, architecture: Architecture, batch: SequenceBatch) -> tuple[Scale, Scale]:
        dtype, threads = self._dtype(), count_threads(self.n_jobs)
        total = engine.self_kernels(architecture, batch, dtype, threads)
        if self._reads_both_ways:
            back = engine.self_kernels(architecture, batch.reversed(), dtype, threads)
            at = _flip(architecture, batch)
            total = tuple(  # type: ignore[assignment]
                scales.add(a, b if at is None else scales.take(b, at)) for a, b in zip(total, back, strict=True)
            )
        return total

    def _check_finite(
        self, K: Array, architecture: Architecture, left: SequenceBatch, right: SequenceBatch, xp: Any = np
    ) -> None:
        finite = xp.isfinite(K)
        if bool(xp.all(finite)):
            return
        # The sequence to blame is in most of the values that overflowed.
        bad = xp.where(finite, xp.zeros_like(K), xp.ones_like(K))
        name, batch, count = "X", left, xp.sum(bad, axis=1)
        if not bool(xp.max(count) > xp.max(xp.sum(bad, axis=0))):
            name, batch, count = "Y", right, xp.sum(bad, axis=0)
        j = int(xp.argmax(count))
        if architecture.readout == "sequence":
            j = int(np.searchsorted(batch.offsets, j, side="right") - 1)
        raise KernelOverflowError(
            f"the kernel of {{sequence}} (length {batch.lengths[j]}) overflows "
            f"{self._dtype()}: its variance grows along the sequence. Take normalize=True, which keeps scales apart, "
            f"or a smaller sigma_w (now {max(architecture.sigma_w):.4g}; ReLU is balanced at 1.4142), or scale the "
            "inputs down" + (', or dtype="float64"' if self._dtype() == np.float32 else ""),
            sequence=j,
            side="" if left is right else name,
        )

    def _dtype(self) -> np.dtype[Any]:
        try:
            dtype: np.dtype[Any] = np.dtype(self.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, not {self.dtype!r}")
        return dtype

    # -- hyperparameters --------------------------------------------------------------------------------------

    def _hyperparameter(self, name: str) -> Hyperparameter:
        value = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
        bounds = getattr(self, f"{name}_bounds")
        fixed = (isinstance(bounds, str) and bounds == "fixed") or not (value > 0).all()
        return Hyperparameter(name, "numeric", "fixed" if fixed else bounds, value.size)

    def _directions(self) -> list[Direction]:
        """One direction per entry of `theta`, in its order."""
        depth = self._architecture().depth
        directions = []
        for hyperparameter in self.hyperparameters:
            if hyperparameter.fixed:
                continue
            layers = [None] if hyperparameter.n_elements == 1 else list(range(hyperparameter.n_elements))
            directions += [self._direction(hyperparameter.name, depth, layer) for layer in layers]
        return directions

    def _direction(self, name: str, depth: int, layer: int | None) -> Direction:
        return Direction.along(name, depth, layer)

    def __repr__(self) -> str:
        defaults = type(self)().get_params()
        shown = []
        for name, value in self.get_params().items():
            if isinstance(value, (str, bool, int, type(None))) or callable(value):
                text, differs = repr(value), value is not defaults[name] and value != defaults[name]
            else:
                text = np.array2string(np.asarray(value), precision=4, separator=", ")
                differs = not np.array_equal(np.asarray(value), np.asarray(defaults[name]))
            if differs:
                shown.append(f"{name}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"


def hyperparameter(name: str) -> property:
    """The `hyperparameter_…` property scikit-learn looks for."""
    return property(lambda self: self._hyperparameter(name))


def _flip(architecture: Architecture, batch: SequenceBatch) -> NDArray[np.int64] | None:
    """Where step t of a sequence read forwards stands in the Gram matrix of the batch read backwards."""
    if architecture.readout != "sequence":
        return None
    return np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)])


def _sum(a: Grams, b: Grams, rows: NDArray[np.int64] | None, columns: NDArray[np.int64] | None) -> Grams:
    """a + b, with the rows and columns of b put in the order given."""
    parts = []
    for first, second in ((a.nngp, b.nngp), (a.ntk, b.ntk), (a.gradient, b.gradient)):
        if second.size and rows is not None and columns is not None:
            second = second[np.ix_(rows, columns)]
        parts.append(first + second)
    return Grams(*parts)


def _normalized_gradient(K: Array, gradient: Array) -> Array:
    """Quotient rule for K_ij / √(d_i d_j); K and gradient are already divided, up to rounding, by √(d_i d_j)."""
    diagonal, moving = np.einsum("ii->i", K), np.einsum("iip->ip", gradient)
    rate = np.divide(moving, diagonal[:, None], out=np.zeros_like(moving), where=diagonal[:, None] > 0) / 2
    return np.asarray(gradient - K[:, :, None] * (rate[:, None] + rate[None]))
