"""Why a fitted model says what it says of a sequence: which steps decided, and which training sequences are near.

In go a model and one sequence; out come derivatives of the decision by every step, and distances in the kernel's
feature space. Where the model is sums of kernel values (`KernelLearner._terms`), derivatives are exact, from one
reverse pass per training sequence; of anything else they are differences of what the model says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ..engine import choose_engine
from ..engine.slopes import join
from ..errors import KernelOverflowError, check_count, say_value
from ..kernels import pairwise
from ..kernels.pairwise import is_ours, read_sequences, settings_of, suited
from ..plot import axes_or_new
from ..sequences import SequenceBatch
from ..sequences.targets import Array
from .base import KernelLearner, Term

#: Numbers of derivatives, or of sequences, that exist at once.
BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class Explanation:
    """What decided about one sequence.

    Attributes
    ----------
    sequence : ndarray of shape (T, m)
        The sequence.
    gradient : ndarray of shape (T, m)
        Derivatives of `score` by its values.
    score : float
        What is explained: of a classifier how far `target` is ahead of `against` in the decision function, of a
        regressor the value predicted.
    target : object
        The class that is explained, or the number of the target.
    against : object
        The class that comes next, or the best one where `target` isn't it; None for regressors.
    method : {"gradients", "differences"}
        How derivatives were computed.
    neighbours : ndarray of shape (k,)
        The nearest of the model's `sequences_`, nearest first; empty where a model keeps none to compare with.
    distances : ndarray of shape (k,)
        Their distances in the kernel's feature space, √(k(x, x) + k(z, z) - 2 k(x, z)); with several kernels the root
        of the mean of the squares.
    """

    sequence: Array
    gradient: Array
    score: float
    target: Any
    against: Any
    method: str
    neighbours: NDArray[np.int64]
    distances: Array

    def __repr__(self) -> str:
        said = f"target {self.target}"
        if self.against is not None:
            said = f"{say_value(self.target)} rather than {say_value(self.against)}"
        near = f", nearest training sequences {self.neighbours.tolist()}" if len(self.neighbours) else ""
        return f"Explanation({said}, score {self.score:.4g}, {len(self.sequence)} steps, {self.method}{near})"

    @property
    def weight(self) -> Array:
        """(T,): how much each step decides, ‖∂score/∂x_t‖ divided by the largest; zeros where nothing does."""
        largest = np.abs(self.gradient).max()
        if not largest > 0:
            return np.zeros(len(self.gradient))
        size = np.linalg.norm(self.gradient / largest, axis=1)  # squares of what is as large would overflow
        return np.asarray(size / size.max())

    def plot(self, ax: Any = None) -> Any:
        """The sequence, coloured by `weight`; returns the axes. Needs matplotlib: pip install "rntk[plot]"."""
        ax = axes_or_new(ax)
        at = 1 + np.arange(len(self.sequence))
        for channel in self.sequence.T:
            ax.plot(at, channel, color="0.8", linewidth=1, zorder=1)
            points = ax.scatter(at, channel, c=self.weight, cmap="cividis_r", vmin=0, vmax=1, s=16, zorder=2)
        ax.figure.colorbar(points, ax=ax, label="weight in the decision, relative to its largest")
        ahead = "" if self.against is None else f" rather than {self.against}"
        ax.set(xlabel="step", ylabel="value", title=f"{self.target}{ahead}" if ahead else f"target {self.target}")
        return ax


def explain(model: Any, x: Any, target: Any = None, *, n_neighbours: int = 3) -> Explanation:
    """Which steps of a sequence decide what a fitted model says of it, and which training sequences are near.

    Parameters
    ----------
    model : object
        A fitted classifier with a `decision_function`, or a regressor: learners of this library, pipelines, or any that
        reads sequences.
    x : array of shape (T,) or (T, m)
        One sequence.
    target : object, default=None
        The class to explain; None is the one predicted. Of a regressor with several targets, the number of one.
    n_neighbours : int, default=3
        How many of the nearest training sequences to name, at most.

    Returns
    -------
    Explanation
        Derivatives of the decision by every step, and neighbours.

    Raises
    ------
    ValueError
        The model has no decision function, or doesn't know `target`; `x` is not one sequence.

    Notes
    -----
    Derivatives are exact for learners of one kernel of this library, `RNTKSVC` with two classes, and ensembles of such,
    also behind transformers in a pipeline. Of features and linear models, of other kernels, and of `RNTKSVC` with more
    classes, they are central differences, for 2 T m predictions; `method` says which. Where φ has a kink, as ReLU,
    the decision of an NTK needn't have a derivative at every step.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, RNTKRidgeClassifier, explain
    >>> X = np.random.default_rng(0).standard_normal((40, 12))
    >>> y = np.where(X[:, 7] > 0, "up", "down")
    >>> model = RNTKRidgeClassifier(RNTK(sigma_w=1.0, sigma_b=0.3)).fit(X, y)
    >>> found = explain(model, X[0])
    >>> found.gradient.shape, found.method
    ((12, 1), 'gradients')
    >>> int(found.neighbours[0]), float(found.distances[0]) < 1e-6  # itself
    (0, True)
    """
    check_count("n_neighbours", n_neighbours, 0)
    if not hasattr(model, "predict"):
        raise ValueError(f"explain(model, x) explains fitted classifiers and regressors, not {say_value(model)}")
    batch = read_sequences([x])
    score, target, against, columns = _decided(model, _say(model, batch)[0], target)
    terms = terms_of(model, batch)
    ours = terms is not None and all(is_ours(term.kernel) for term in terms)
    if terms is not None and ours:
        gradient = np.zeros_like(batch.values, dtype=np.float64)
        for term in terms:
            gradient += _back(term, batch, _slopes(term, columns, batch))
    else:
        gradient = differences_of(lambda each: _say(model, each) @ columns, batch, precision_of(model))
    neighbours, distances = _nearest(terms or [], batch, n_neighbours)
    method = "gradients" if ours else "differences"
    return Explanation(batch.values.astype(np.float64), gradient, score, target, against, method, neighbours, distances)


def terms_of(model: Any, x: SequenceBatch) -> list[Term] | None:
    """The sums of kernel values of a model; those of the last step of a pipeline, seen through the others."""
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        before, last = model[:-1], model[-1]

        def view(batch: SequenceBatch) -> SequenceBatch:
            return read_sequences(before.transform(batch))

        if not isinstance(last, KernelLearner) or (terms := last._terms(view(x))) is None:
            return None
        return [term.seen_through(view) for term in terms]
    return model._terms(x) if isinstance(model, KernelLearner) else None


def _say(model: Any, batch: SequenceBatch) -> Array:
    """(n, k): what the model says, a column per class or target; of two classes one."""
    said = getattr(model, "decision_function" if is_classifier(model) else "predict", None)
    if said is None:
        raise ValueError(
            f"{type(model).__name__} has no decision_function to explain; take a model that scores classes"
        )
    found = np.asarray(said(batch), dtype=np.float64)
    return found.reshape(len(found), -1)


def _decided(model: Any, values: Array, target: Any) -> tuple[float, Any, Any, Array]:
    """The score that is explained, the class (or target) that it is of, the class against it, and its columns."""
    if not is_classifier(model):
        k = 0 if target is None else check_count("target", target, 0, most=len(values) - 1)
        columns = np.eye(len(values))[k]
        return float(values @ columns), k, None, columns
    classes = np.asarray(model.classes_)
    binary = len(values) == 1
    by_class = np.array([-values[0], values[0]]) / 2 if binary else values
    k = int(by_class.argmax())
    if target is not None:
        at = np.flatnonzero(classes == target)
        if not len(at):
            raise ValueError(f"target={target!r} is none of the classes {', '.join(map(repr, classes.tolist()))}")
        k = int(at[0])
    other = int(np.where(np.arange(len(classes)) == k, -np.inf, by_class).argmax())
    columns = np.eye(len(classes))[k] - np.eye(len(classes))[other]
    columns = columns[1:] if binary else columns
    return float(values @ columns), classes[k], classes[other], columns


# -- derivatives -------------------------------------------------------------------------------------------------------


def _slopes(term: Term, columns: Array, x: SequenceBatch) -> Array:
    """Σ_j (coefficients columns)_j ∂k(v, z_j)/∂v at v = view(x)."""
    shown, weight = term.look(x), term.coefficients @ columns
    left, right = (term.kernel.read_batch(suited(term.kernel, each)) for each in (shown, term.sequences))
    used = np.flatnonzero(weight)
    found = np.zeros(shown.values.shape, dtype=np.float64)
    plan = replace(term.kernel.plan(), dtype=np.dtype(np.float64))
    engine = choose_engine(term.kernel.engine, plan.network)[0]
    rows = max(1, BLOCK_NUMBERS // shown.values.size)
    for begin in range(0, len(used), rows):
        some = used[begin : begin + rows]
        pairs = join(left, right.take(some))
        slopes = engine.input_slopes(plan, pairs, np.zeros(len(some), np.int64), 1 + np.arange(len(some)))
        found += np.tensordot(weight[some], slopes.gradient.reshape(len(some), *found.shape), axes=1)
    if not np.isfinite(found).all():
        raise KernelOverflowError("the derivatives overflow for {sequence}; take a smaller sigma_w", 0)
    return found


def _back(term: Term, x: SequenceBatch, slopes: Array) -> Array:
    """From derivatives by what the term sees to those by the sequence itself."""
    if term.view is None:
        return slopes
    precision = term.look(x).dtype  # some views are in single precision
    return differences_of(lambda each: np.tensordot(_values(term.look(each), len(each)), slopes, axes=2), x, precision)


def _values(batch: SequenceBatch, n: int) -> Array:
    return np.asarray(batch.values.reshape(n, -1, batch.n_channels), dtype=np.float64)


def differences_of(function: Callable[[SequenceBatch], Array], x: SequenceBatch, precision: Any = np.float64) -> Array:
    """(T, m): central differences of a function of sequences, (n,) of n, at the only one in `x`."""
    values = x.values.astype(np.float64)
    largest = np.abs(values).max(axis=0)
    largest = np.where(largest > 1e-300, largest, 1.0)
    spread = (values / largest).std(axis=0)  # squares of the values themselves may overflow
    step = np.cbrt(np.finfo(precision).eps) * largest * np.where(spread > 0, spread, 1.0)
    found = np.empty(values.size)
    rows = max(1, BLOCK_NUMBERS // (2 * values.size))
    for begin in range(0, values.size, rows):
        at = np.arange(begin, min(begin + rows, values.size))
        moved = np.repeat(values.reshape(1, -1), 2 * len(at), axis=0)
        by = step[at % x.n_channels]
        moved[np.arange(len(at)), at] += by
        moved[len(at) + np.arange(len(at)), at] -= by
        said = function(
            SequenceBatch.from_checked(moved.reshape(-1, x.n_channels), len(values) * np.arange(len(moved) + 1))
        )
        found[at] = (said[: len(at)] - said[len(at) :]) / (2 * by)
    return found.reshape(values.shape)


def precision_of(model: Any) -> Any:
    """float32 if a kernel of the model, or features, compute in that: steps of differences must be larger then."""
    parts = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    kernels = [kernel for each in parts if isinstance(each, KernelLearner) for kernel in each._fitted_kernels()]
    said = [dtype for each in [*parts, *kernels] for dtype in settings_of(each, "dtype") if dtype is not None]
    return np.float32 if any(np.dtype(dtype) == np.float32 for dtype in said) else np.float64


def _nearest(terms: list[Term], x: SequenceBatch, count: int) -> tuple[NDArray[np.int64], Array]:
    if not terms or len({len(term.sequences) for term in terms}) > 1:
        return np.empty(0, np.int64), np.empty(0)
    squares = np.zeros(len(terms[0].sequences))
    for term in terms:
        kernel = pairwise.of(term.kernel)
        shown = term.look(x)
        kernel.plan(shown, term.sequences)
        left, right = kernel.prepare(shown), kernel.prepare(term.sequences)
        both = kernel.diagonal(left).astype(np.float64) + kernel.diagonal(right)
        squares += np.maximum(both - 2 * kernel.pairs(left, right)[0], 0.0) / len(terms)
    near = np.argsort(squares, kind="stable")[:count]
    return near, np.sqrt(squares[near])
