"""`Dynamics`: what infinitely wide networks predict at any moment of their training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ...errors import check_positive
from ...kernels import RNTK
from ...kernels.network import NetworkKernel
from ...kernels.pairwise import read_sequences
from ...sequences.losses import read_loss
from .clock import Array, Instants, read_clock
from .flow import coefficients
from .process import Process, read_targets


class LossCurves(NamedTuple):
    """Losses L = ½ Σ_i |f(x_i) - y_i|² (a sum) at the moments asked for, in their shape.

    `of_mean` is the loss of the mean prediction, that is of an ensemble of infinitely many networks; `spread` is what
    the randomness of one network's initialisation adds, ½ d Σ_i Var f(x_i) for d outputs; `expected` is their sum, the
    mean loss of single networks.
    """

    of_mean: Array
    spread: Array

    @property
    def expected(self) -> Array:
        """Mean over initialisations of the loss of one network."""
        return np.asarray(self.of_mean + self.spread)


@dataclass(frozen=True, eq=False, repr=False)
class Dynamics:
    """Training of an infinitely wide network on sequences `X` with targets `y`, in closed form.

    The loss is L(θ) = ½ Σ_i |f(x_i) - y_i|² + ½ λ |θ - θ_0|²: a sum, not an average over the N values, and λ (`ridge`)
    pulls towards the initial parameters. After time s of gradient flow dθ/ds = -η ∇L,

        f_s(x) = f_0(x) + Θ(x, X) (K + λI)⁻¹ (I - e^{-ηs(K + λI)}) (y - f_0(X)),    K = Θ(X, X),

    and after s steps θ ← θ - η ∇L of gradient descent the same with (I - η(K + λI))^s instead of the exponential.
    Over random initialisations f_0 is a Gaussian process with mean zero and the NNGP kernel 𝒦 as covariance, so f_s is
    one too. The d outputs of a network are independent copies. One eigendecomposition of K, O(N³), serves every call.

    Parameters
    ----------
    kernel
        `RNTK`, `NTK`, or None for `RNTK()`. With `normalize=True` only means can be had, see Notes.
    X
        N training sequences, anything `rntk.as_batch` reads; unequal lengths where the kernel takes them.
    y
        (N,) or (N, d) targets. With `readout="sequence"` there is one value per step: (ΣT_i,) or (ΣT_i, d), the
        sequences one after another, and the same holds for every "one per sequence" below.
    ridge : float
        λ ≥ 0.

    Attributes
    ----------
    eigenvalues : ndarray
        (N,) those of K, without the ridge, ascending.
    kernel, X, y, ridge
        As used.
    critical_learning_rate, largest_learning_rate : float
        For gradient descent.

    Raises
    ------
    ValueError
        `y` doesn't fit `X` or isn't finite, the ridge is negative, or the kernel isn't a network's.

    Notes
    -----
    - New sequences count as different from the training sequences, also where they are equal: with `sigma_h > 0` they
      start from an initial state of their own. `X=None` in the calls below means the training sequences themselves.
    - Eigenvalues that are zero up to rounding (duplicates among `X`) do no harm: see `rntk.theory.dynamics.spectrum`.
    - `normalize=True` divides each of the two kernels by its own diagonal, and no network has both of the results.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> from rntk.theory.dynamics import Dynamics
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal(n) for n in (5, 8, 6, 9, 7, 5)]
    >>> y = [x.mean() for x in X]
    >>> training = Dynamics(RNTK(), X, y)
    >>> mean, std = training.predict(X[:2], time=[0.0, 1.0, np.inf], return_std=True)
    >>> mean.shape, std.shape
    ((3, 2), (3, 2))
    >>> bool(np.allclose(mean[-1], y[:2]))
    True
    >>> rate = training.critical_learning_rate
    >>> losses = training.loss(steps=[0, 10, 1000], learning_rate=rate)
    >>> bool(np.all(np.diff(losses.expected) < 0))
    True

    References
    ----------
    Alemohammad et al., The Recurrent Neural Tangent Kernel, Theorem 2 and section 2.
    """

    kernel: Any
    X: Any
    y: Any
    ridge: float = 0.0
    _process: Process = field(init=False)

    def __post_init__(self) -> None:
        kernel = RNTK() if self.kernel is None else self.kernel
        if not isinstance(kernel, NetworkKernel):
            raise ValueError(f"kernel must be an RNTK or NTK, since only networks are trained, not {self.kernel!r}")
        ridge = check_positive("ridge", self.ridge, or_zero=True)
        kernel, batch = clone(kernel), read_sequences(self.X)
        y = read_targets(self.y, "y", kernel, batch).copy()
        y.flags.writeable = False
        process = Process.of(kernel, batch, ridge)
        used = {"kernel": kernel, "X": batch, "y": y, "ridge": ridge, "_process": process}
        for name, value in used.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        ridge = f", ridge={self.ridge:g}" if self.ridge else ""
        return f"Dynamics({self.kernel!r}, {self.X!r}, y of shape {self.y.shape}{ridge})"

    # -- learning rates -------------------------------------------------------------------------------------------

    @property
    def eigenvalues(self) -> Array:
        """(N,) eigenvalues of K = Θ(X, X), ascending, without the ridge."""
        return self._process.spectrum.values.copy()

    @property
    def critical_learning_rate(self) -> float:
        """η* = 2/(μ_min + μ_max), μ the eigenvalues of K + λI; for the loss ½ Σ_i |f(x_i) - y_i|², a sum.

        Of all learning rates it has the smallest worst factor max |1 - ημ| by which a step of gradient descent
        multiplies an error, and it is the bound in Theorem 2. Eigenvalues that are zero up to rounding don't count:
        nothing is learned along them. Infinite if all are.
        """
        return self._process.spectrum.critical_learning_rate

    @property
    def largest_learning_rate(self) -> float:
        """2/μ_max, μ the eigenvalues of K + λI: beyond it gradient descent on ½ Σ_i |f(x_i) - y_i|² diverges."""
        return self._process.spectrum.largest_learning_rate

    # -- predictions ----------------------------------------------------------------------------------------------

    def predict(
        self,
        X: Any = None,
        *,
        time: Any = None,
        steps: Any = None,
        learning_rate: float = 1.0,
        return_std: bool = False,
        return_cov: bool = False,
    ) -> Any:
        """Mean over random initialisations of the outputs at `X`, at any moment of training.

        With A_s = Θ(x, X) (K + λI)⁻¹ (I - e^{-ηs(K + λI)}), or its counterpart for gradient descent, the mean is A_s y
        and the covariance of each output 𝒦(x, x') - A_s 𝒦(X, x') - 𝒦(x, X) A_s'^T + A_s 𝒦(X, X) A_s'^T. The loss is
        ½ Σ_i |f(x_i) - y_i|² + ½ λ |θ - θ_0|², a sum over the training values.

        Parameters
        ----------
        X
            n new sequences; None for the training sequences themselves.
        time
            s ≥ 0 of gradient flow dθ/ds = -η ∇L, a number or an array; np.inf is the end of training.
        steps
            Of gradient descent θ ← θ - η ∇L instead, likewise.
        learning_rate : float
            η. Gradient flow depends on η s alone.
        return_std : bool
            Also return the standard deviation; in blocks of sequences, so that `X` may be long.
        return_cov : bool
            Also return the covariance between all pairs in `X`.

        Returns
        -------
        mean
            The shape of `time` or `steps`, then (n,) or (n, d) as `y` has it.
        std
            The shape of `time` or `steps`, then (n,): the same for each of the d outputs. Only with `return_std`. At
            new sequences it is a difference of variances: below some 1e-8 of its value at the start it is rounding.
        cov
            The shape of `time` or `steps`, then (n, n). Only with `return_cov`.

        Raises
        ------
        ValueError
            Gradient descent diverges with this learning rate; both or none of `time` and `steps` given.

        Examples
        --------
        >>> from rntk.theory.dynamics import Dynamics
        >>> training = Dynamics(None, [[1.0, 2.0], [2.0, 1.0, 0.5]], [1.0, -1.0], ridge=0.1)
        >>> mean, cov = training.predict([[1.0, 1.0, 1.0]], steps=[0, 1, 5], learning_rate=0.02, return_cov=True)
        >>> mean.shape, cov.shape
        ((3, 1), (3, 1, 1))
        """
        if return_std and return_cov:
            raise ValueError("ask for the deviation or for the covariance, not for both")
        clock, points = read_clock(time, steps, learning_rate), None if X is None else read_sequences(X)
        if not return_std:
            mean = self._in_shape(self._process.moved(points, clock, _columns(self.y)), clock)
            if not return_cov:
                return mean
            covariance = self._process.covariance(points, clock)
            return mean, covariance.reshape(*clock.shape, *covariance.shape[1:])
        moved, variance = self._process.moved_and_variance(points, clock, _columns(self.y))
        return self._in_shape(moved, clock), np.sqrt(variance).T.reshape(*clock.shape, -1)

    def follow(
        self,
        initial: Any,
        X: Any = None,
        initial_new: Any = None,
        *,
        time: Any = None,
        steps: Any = None,
        learning_rate: float = 1.0,
        loss: str = "squared",
    ) -> Array:
        """Outputs of one given network as it is trained, from its outputs f_0 before training.

        f_s(x) = f_0(x) + A_s (y - f_0(X)) with A_s as in `predict`; the loss is ½ Σ_i |f(x_i) - y_i|² + ½ λ |θ - θ_0|².
        Any other loss ℓ takes an ODE solver (or a loop over steps) instead of the closed form, (3) and (4) of the
        paper: df_s(x)/ds = -η Θ(x, X) ∂ℓ/∂f(f_s(X), y), and outputs over initialisations are no Gaussian process then.

        Parameters
        ----------
        initial
            f_0 at the training sequences, in the shape of `y`.
        X, initial_new
            n new sequences and f_0 there, (n,) or (n, d) as `y` has it. Without them, the outputs at the training
            sequences are returned.
        time, steps, learning_rate
            As for `predict`; with another loss than "squared" finite ones only.
        loss : "squared", "huber" or "cross-entropy"
            As for `rntk.finite.train`.

        Returns
        -------
        outputs
            The shape of `time` or `steps`, then (n,) or (n, d).

        Examples
        --------
        >>> from rntk.theory.dynamics import Dynamics
        >>> training = Dynamics(None, [[1.0, 2.0], [2.0, 1.0, 0.5]], [1.0, -1.0])
        >>> training.follow([0.3, 0.2], time=[0.0, 1e3]).round(6)
        array([[ 0.3,  0.2],
               [ 1. , -1. ]])
        """
        clock = read_clock(time, steps, learning_rate)
        if (X is None) != (initial_new is None):
            raise ValueError("X and initial_new go together: new sequences, and the untrained network's outputs there")
        start = read_targets(initial, "initial", self.kernel, self.X, like=self.y)
        points, base = None, start
        if X is not None:
            points = read_sequences(X)
            base = read_targets(initial_new, "initial_new", self.kernel, points, like=self.y)
        if loss == "squared":
            moved = self._process.moved(points, clock, _columns(self.y - start))
        else:
            rule = read_loss(loss, _columns(self.y))
            K, cross = self._process.kernels(points)
            a = coefficients(K, _columns(start), _columns(self.y), rule, self.ridge, clock)
            moved = np.einsum("nm,smd->nsd", cross, a)
        return np.asarray(base + self._in_shape(moved, clock))

    def loss(
        self, X: Any = None, y: Any = None, *, time: Any = None, steps: Any = None, learning_rate: float = 1.0
    ) -> LossCurves:
        """Loss ½ Σ_i |f_s(x_i) - y_i|² along training: of the mean prediction, and expected of one random network.

        A sum over the sequences, not an average, and without the term of the ridge.

        Parameters
        ----------
        X, y
            New sequences and their targets, (n,) or (n, d); without them, the training set.
        time, steps, learning_rate
            As for `predict`.

        Returns
        -------
        LossCurves
            `of_mean`, `spread` and their sum `expected`, each of the shape of `time` or `steps`.

        Examples
        --------
        >>> import numpy as np
        >>> from rntk.theory.dynamics import Dynamics
        >>> training = Dynamics(None, [[1.0, 2.0], [2.0, 1.0, 0.5]], [1.0, -1.0])
        >>> training.loss(time=[0.0, np.inf]).of_mean
        array([1., 0.])
        """
        clock = read_clock(time, steps, learning_rate)
        if (X is None) != (y is None):
            raise ValueError("X and y go together: new sequences and their targets")
        target = _columns(self.y)
        if X is None:
            error, variance = self._process.training_error(clock, target), self._process.training_variance(clock)
        else:
            points = read_sequences(X)
            wanted = _columns(read_targets(y, "y", self.kernel, points, like=self.y))
            moved, spread = self._process.moved_and_variance(points, clock, target)
            error, variance = np.sum((moved - wanted[:, None]) ** 2, axis=(0, 2)), np.sum(spread, axis=0)
        halves = error / 2, target.shape[1] * variance / 2
        return LossCurves(*(each.reshape(clock.shape) for each in halves))

    def _in_shape(self, outputs: Array, clock: Instants) -> Array:
        """(n, S, d) in the shape of the moments asked for, then that of the targets."""
        return np.moveaxis(outputs, 0, 1).reshape(*clock.shape, len(outputs), *self.y.shape[1:])


def _columns(values: Array) -> Array:
    """(n,) or (n, d) as (n, d)."""
    return values.reshape(len(values), -1)
