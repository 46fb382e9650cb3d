"""What every kernel of an infinitely wide network has in common: the scikit-learn `Kernel` protocol."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter, Kernel

from ..engine import Engine, choose_engine
from ..engine.contract import Plan, Values
from ..errors import SequenceError, check_dtype
from ..network import Direction, Final, Network
from ..runtime import Execution
from ..sequences import SequenceBatch

Array = NDArray[Any]


class KernelPair(NamedTuple):
    """Both kernels of one network: of the untrained outputs (nngp) and of training by gradient descent (ntk)."""

    nngp: Array
    ntk: Array


class NetworkKernel(GenericKernelMixin, Kernel):  # type: ignore[misc]
    """A kernel between inputs of an infinitely wide network, usable wherever scikit-learn takes a kernel.

    Subclasses say which network (`network`) and how they read data (`read_batch`); everything else is here.
    Hyperparameters are the standard deviations, in log space. One that is zero is a structural choice (no bias, no
    initial state): it has no logarithm, so it is fixed.
    """

    #: Whether data is vectors rather than sequences (`rntk.kernels.pairwise.suited`).
    compares_vectors = False
    # Set by the constructors of subclasses.
    normalize: bool
    kind: str
    dtype: Any
    engine: str
    n_jobs: int | None
    progress: bool | None

    @abstractmethod
    def network(self) -> Network:
        """The network, with every parameter checked."""

    @abstractmethod
    def read_batch(self, X: Any, name: str = "X") -> SequenceBatch:
        """User data through the gate."""

    # -- kernels ----------------------------------------------------------------------------------------------

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix of the tangent kernel Θ, or of the NNGP kernel 𝒦 for `kind="nngp"`.

        Parameters
        ----------
        X, Y
            Sequences, see `rntk.sequences.as_batch`. Without `Y` the result is symmetric, and its diagonal holds the
            same-sequence term of `sigma_h`, as the noise of scikit-learn's `WhiteKernel`; `kernel(X, X)` does not.
        eval_gradient : bool
            Also return the derivative by the log of every free hyperparameter (only without `Y`).

        Returns
        -------
        K
            (n, n') array, or one row per step of `X` and column per step of `Y` for `readout="sequence"`. From
            sequences on a device, an array of their library on that device (`rntk.engine.choose_engine`).
        gradient
            (n, n, P), in the order of `theta`; only with `eval_gradient`.

        Raises
        ------
        SequenceError
            The data can't be used; the message lists every problem.
        KernelOverflowError
            a value is too large for `dtype`; the message says what to do.
        """
        if _is_one_sequence(X) and _is_one_sequence(Y):
            raise SequenceError(
                "X and Y are one sequence each, and a kernel compares sets: kernel([x], [y])[0, 0] is their value. As "
                "the metric of neighbours or clusters take kernel.distance, which is small where a kernel is large"
            )
        if not eval_gradient:
            return getattr(self._pairs(self.plan(), X, Y), self.network().kind)
        if Y is not None:
            raise ValueError("the gradient can only be evaluated for kernel(X), without Y")
        values = self._pairs(self.plan_gradient(), X, None)
        return getattr(values, self.network().kind), values.gradient

    def nngp(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix of the NNGP kernel 𝒦, the covariance of the outputs of untrained networks: `kind="nngp"`."""
        return self.of_kind("nngp")(X, Y, eval_gradient)

    def of_kind(self, kind: str) -> Self:
        """This kernel, or the other one of the same network."""
        other = copy.copy(self)
        other.kind = kind
        return other

    def both(self, X: Any, Y: Any = None) -> KernelPair:
        """Both Gram matrices from one pass, as a named tuple (nngp, ntk)."""
        if self.normalize:  # each by its own diagonal
            return KernelPair(self.nngp(X, Y), self.of_kind("ntk")(X, Y))
        values = self._pairs(self.plan("nngp", "ntk"), X, Y)
        return KernelPair(values.nngp, values.ntk)

    def against_last(self, X: Any, Z: Any) -> Any:
        """(n, n'): this kernel with a mean over the steps of `X` and the last step of `Z`, Σ_t Θ(x₁…x_t, z)/T.

        The columns of the tables that `readout="mean"` sums up: short pieces `Z` as landmarks among steps.

        Raises
        ------
        ValueError
            The readout is no mean.
        """
        plan, final = self.plans_against_last()
        engine, (left, right) = self.read(X, Z)
        side = engine.prepare(plan, left)
        return getattr(engine.pairs(side, engine.prepare(final, right, side.needs)), plan.network.kind)

    def diag(self, X: Any) -> Array:
        """Diagonal of `kernel(X)`: O(N T) for the readouts "last" and "sequence", O(N T²) for "mean"."""
        plan = self.plan()
        engine, (batch,) = self.read(X)
        return cast(Array, engine.diagonal(plan, batch))

    def distance(self, X: Any, Y: Any = None) -> Any:
        """Distances √(Θ(x, x) + Θ(y, y) - 2 Θ(x, y)) of sequences in the kernel's feature space, (n, n').

        Two arrays (T,) are one sequence each, and their distance is one number: so `metric=kernel.distance` works in
        scikit-learn's neighbours and clusterings. They call it for every pair and take no unequal lengths; with
        `metric="precomputed"` they take the distances of any sequences, computed at once.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from rntk import RNTK
        >>> X, y = [[1.0, 2.0], [1.0, 1.0, 2.0], [-1.0, -2.0]], ["up", "up", "down"]
        >>> kernel = RNTK(normalize=True)
        >>> model = KNeighborsClassifier(1, metric="precomputed").fit(kernel.distance(X), y)
        >>> model.predict(kernel.distance([[-1.0, -3.0, -4.0]], X))
        array(['down'], dtype='<U4')
        """
        if self.network().readout.per_step:
            raise ValueError(f'{self!r} has no single value per pair of sequences; take readout="last" or "mean"')
        if _is_one_sequence(X) and _is_one_sequence(Y):
            return float(self.distance([X, Y])[0, 1])
        if Y is None:
            K = np.asarray(self(X), dtype=np.float64)
            left = right = np.diagonal(K)
        else:
            K, left, right = (np.asarray(each, dtype=np.float64) for each in (self(X, Y), self.diag(X), self.diag(Y)))
        return np.sqrt(np.maximum(left[:, None] + right - 2 * K, 0.0))

    def is_stationary(self) -> bool:
        """False: these kernels see where a sequence lies, not only differences."""
        return False

    # -- spine: a plan, sides, pairs ----------------------------------------------------------------------------

    def plan(self, *kinds: str, directions: tuple[Direction, ...] = ()) -> Plan:
        """What is to be computed, for an engine: by default the kernel of this one's kind."""
        network = self.network()
        run = Execution(self.n_jobs, self.progress)
        return Plan(network, check_dtype(self.dtype), kinds or (network.kind,), directions, run, type(self).__name__)

    def plans_against_last(self) -> tuple[Plan, Plan]:
        """What is to be computed of either side of `against_last`."""
        plan = self.plan()
        if not plan.network.readout.averages:
            raise ValueError(f'only a mean over steps has another side to it; take readout="mean" in {self!r}')
        return plan, replace(plan, network=replace(plan.network, readout=Final()))

    def plan_gradient(self) -> Plan:
        """The same with derivatives by the log of every free hyperparameter."""
        return self.plan(directions=tuple(self._directions()))

    def read(self, X: Any, Y: Any = None) -> tuple[Engine, list[Any]]:
        """The engine for this data, and the data as batches that it takes."""
        engine = choose_engine(self.engine, self.network(), X, Y)[0]
        named = [("X", X)] if Y is None else [("X", X), ("Y", Y)]
        return engine, engine.read(self.read_batch, *named)

    def _pairs(self, plan: Plan, X: Any, Y: Any) -> Values:
        engine, (left, *right) = self.read(X, Y)
        side = engine.prepare(plan, left)
        return engine.pairs(side, engine.prepare(plan, right[0], side.needs) if right else None)

    # -- hyperparameters --------------------------------------------------------------------------------------

    def _hyperparameter(self, name: str) -> Hyperparameter:
        value = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
        bounds = getattr(self, f"{name}_bounds")
        fixed = (isinstance(bounds, str) and bounds == "fixed") or not (value > 0).all()
        return Hyperparameter(name, "numeric", "fixed" if fixed else bounds, value.size)

    def _directions(self) -> list[Direction]:
        """One direction per entry of `theta`, in its order."""
        depth = self.network().depth
        directions = []
        for hyperparameter in self.hyperparameters:
            if hyperparameter.fixed:
                continue
            layers = [None] if hyperparameter.n_elements == 1 else list(range(hyperparameter.n_elements))
            directions += [self._direction(hyperparameter.name, depth, layer) for layer in layers]
        return directions

    def _direction(self, name: str, depth: int, layer: int | None) -> Direction:
        return Direction.along(name, depth, layer)

    def __hash__(self) -> int:
        """One for all of a class: what is equal has one hash, and parameters may change."""
        return hash(type(self))

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
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


def _is_one_sequence(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biuf"


def hyperparameter(name: str) -> property:
    """The `hyperparameter_…` property scikit-learn looks for."""
    return property(lambda self: self._hyperparameter(name))
