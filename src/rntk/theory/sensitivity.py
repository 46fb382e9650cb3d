"""How much a kernel listens to each step: s(t) = |∂Θ(x, x')/∂x_t|, averaged over pairs ([R], section 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.contract import InputSlopes
from ..engine.slopes import Index, in_groups, join
from ..errors import KernelOverflowError, check_count
from ..kernels import NetworkKernel
from ..plot import COLOURS, axes_or_new
from ..programs import ProgramKernel
from ..runtime import Execution, text_table
from ..sequences import SequenceBatch, check_channels_agree
from .differences import slopes_by_differences

Array = NDArray[np.float64]

#: Pairs drawn from a batch unless told otherwise.
PAIRS = 1000


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sensitivity curves of many pairs, averaged. All curves are in the order of time and end at the last step.

    Sequences are compared aligned at their last steps, so curves of unequal lengths are averaged aligned there too:
    entry -1 is the last step, entry -1 - k the step with lag k, over those pairs that are long enough (`count`).

    Attributes
    ----------
    mean : ndarray
        (T,), mean of s(t) over the pairs, T the length of the longest first sequence.
    error : ndarray
        (T,), its standard error, as if pairs were independent; NaN where there is only one.
    count : ndarray
        (T,), pairs that have this step.
    normalised : ndarray
        (T,), mean of s(t)/max_t s(t), each pair's curve divided by its own largest value, as in the paper. Pairs that
        are sensitive to nothing have no such curve and are left out.
    n_pairs, n_silent : int
        How many pairs, and how many of them have s(t) = 0 at every step.
    kernel : str
        What the kernel was.
    pairs : ndarray or None
        (P, T), every pair's s(t), NaN before its first step; None for curves that come from a record.
    """

    mean: Array
    error: Array
    count: Index
    normalised: Array
    n_pairs: int
    n_silent: int
    kernel: str
    pairs: Array | None = None

    def __repr__(self) -> str:
        rows: list[list[Any]] = [
            ["kernel", self.kernel],
            ["pairs", f"{self.n_pairs}, of which {self.n_silent} see nothing" if self.n_silent else self.n_pairs],
            ["steps", len(self.mean)],
            ["first, largest, last", f"{self.mean[0]:.4g}, {self.mean.max():.4g}, {self.mean[-1]:.4g}"],
            ["flatness", f"{self.flatness:.4g} (0 is flat)"],
        ]
        return text_table(["sensitivity", ""], rows, left=2)

    @property
    def lags(self) -> Index:
        """(T,), steps from each entry to the last one: T - 1 down to 0."""
        return np.arange(len(self.mean))[::-1]

    @property
    def flatness(self) -> float:
        """Coefficient of variation of `normalised` over time, steps weighted by `count`: 0 is flat.

        NaN if every pair is silent. One step is flat.
        """
        return float(np.sqrt(misfit(self.normalised, np.ones(len(self.mean)), self.count)))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON; None where there is no number."""
        return {
            "kernel": self.kernel,
            "lags": self.lags.tolist(),
            "mean": self.mean.tolist(),
            "error": [None if np.isnan(value) else value for value in self.error.tolist()],
            "count": self.count.tolist(),
            "normalised": self.normalised.tolist(),
            "flatness": None if np.isnan(self.flatness) else self.flatness,
            "n_pairs": self.n_pairs,
            "n_silent": self.n_silent,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sensitivity:
        """The curves whose `to_dict` gave `values`."""
        mean, error, normalised = (np.array(values[name], dtype=np.float64) for name in ("mean", "error", "normalised"))
        count = np.array(values["count"], dtype=np.int64)
        return cls(mean, error, count, normalised, values["n_pairs"], values["n_silent"], values["kernel"])

    def plot(
        self, ax: Any = None, *, normalised: bool = True, label: str | None = None, colour: str = COLOURS[0]
    ) -> Any:
        """The normalised curve, or the mean with two standard errors on either side; returns the axes.

        Needs matplotlib: pip install "rntk[plot]".
        """
        ax = axes_or_new(ax)
        # With one length steps have numbers; otherwise only their distance from the end means something.
        one_length = bool((self.count == self.count[-1]).all())
        at = 1 + np.arange(len(self.mean)) if one_length else -self.lags
        curve = self.normalised if normalised else self.mean
        ax.plot(at, curve, color=colour, label=label, marker="o" if len(at) == 1 else None)
        if not normalised:
            ax.fill_between(at, curve - 2 * self.error, curve + 2 * self.error, color=colour, alpha=0.2, linewidth=0)
        ax.set(
            xlabel="step" if one_length else "steps from the last",
            ylabel="sensitivity, relative to its largest" if normalised else "sensitivity |∂Θ/∂x|",
        )
        ax.set_ylim(bottom=0)
        if label is not None:
            ax.legend(frameon=False)
        return ax


def sensitivity(
    kernel: NetworkKernel | ProgramKernel,
    X: Any,
    Y: Any = None,
    *,
    pairs: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Sensitivity:
    """How sensitive a kernel is to each step of its inputs, over many pairs of sequences.

    For a pair (x, x') it is s(t) = ‖∂Θ(x, x')/∂x_t‖₂, exact, from one reverse pass per pair in O(T). Where s(t) is
    small, the kernel hardly sees what happens at step t. A flat curve treats all steps alike, which the RNTK paper
    recommends in the absence of other knowledge.

    Parameters
    ----------
    kernel : NetworkKernel or ProgramKernel
        An `RNTK` (or `NTK`) with readout "last" or "mean"; of a `ProgramKernel` derivatives are taken by differences,
        which the result says, at 4 T m values of the kernel per pair.
    X
        Sequences, see `rntk.sequences.as_batch`; lengths may differ.
    Y
        Other sequences, as many as in `X`. Row i of `X` is paired with row i of `Y`, and the derivative is by `X`.
        Without `Y`, pairs (x_i, x_j) with i ≠ j are drawn from `X`: all of them if there are no more than `pairs`,
        otherwise `pairs` different ones at random.
    pairs : int or None
        At most so many pairs; None means 1000 pairs of `X`, or every row of `X` and `Y`.
    seed : int
        Of the draw; the result is the same for the same seed, whatever `n_jobs`.
    n_jobs, progress
        As for the kernel; None takes the kernel's own.

    Returns
    -------
    Sensitivity
        Curves in the order of time, aligned at the last step, with standard errors and counts.

    Raises
    ------
    ValueError
        The readout is "sequence", `X` and `Y` don't go together, or `X` alone has no two sequences.
    KernelOverflowError
        a derivative is too large for float64; the message says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, sensitivity
    >>> X = np.random.default_rng(0).standard_normal((50, 20))
    >>> forgetful = sensitivity(RNTK(sigma_w=1.0), X)
    >>> balanced = sensitivity(RNTK(sigma_w=2**0.5), X)
    >>> balanced.flatness < forgetful.flatness
    True
    >>> bool(forgetful.normalised[0] < 0.01 * forgetful.normalised[-1])
    True

    References
    ----------
    Alemohammad et al., The Recurrent Neural Tangent Kernel, arXiv:2006.10246, equation (20) and Figure 3.
    """
    batch, left, right = choose_pairs(kernel, X, Y, pairs, seed, "sensitivity")
    if isinstance(kernel, ProgramKernel):
        return _by_differences(kernel, batch, left, right)
    n = len(batch) // 2

    def name(i: int) -> tuple[int, str]:
        return (i, "") if Y is None else (i, "X") if i < n else (i - n, "Y")

    return curves(kernel, batch, left, right, n_jobs=n_jobs, progress=progress, name=name)


def _by_differences(kernel: ProgramKernel, batch: SequenceBatch, left: Index, right: Index) -> Sensitivity:
    """`sensitivity` of given pairs, of a kernel without a compiled derivative; its name says so."""
    steps = batch.lengths[left]
    has = np.arange(steps.max()) >= steps.max() - steps[:, None]
    table = np.zeros(has.shape)
    table[has] = np.hypot.reduce(np.concatenate(slopes_by_differences(kernel, batch, left, right)), axis=1)
    count, largest = has.sum(axis=0), table.max(axis=1, keepdims=True)
    heard = largest > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = table.sum(axis=0) / count
        error = np.sqrt(np.square(np.where(has, table - mean, 0.0)).sum(axis=0) / (count - 1) / count)
    shapes = np.divide(table, largest, out=np.zeros(table.shape), where=heard)
    normalised = shapes.sum(axis=0) / np.maximum((has & heard).sum(axis=0), 1)
    name = f"{kernel!r}, by differences"
    return Sensitivity(mean, error, count, normalised, len(left), int((~heard).sum()), name)


def require_number_per_pair(kernel: NetworkKernel, name: str) -> None:
    """Refuse a readout that gives a whole table per pair."""
    if kernel.network().readout.per_step:
        raise ValueError(f'{name} needs one number per pair: take readout="last" or "mean", not "sequence"')


def choose_pairs(
    kernel: Any, X: Any, Y: Any, pairs: int | None, seed: int, name: str
) -> tuple[SequenceBatch, Index, Index]:
    """One batch in float64, and the pairs of its sequences to look at."""
    if not isinstance(kernel, NetworkKernel | ProgramKernel):
        raise ValueError(f"{name} takes an RNTK, NTK or ProgramKernel, not {type(kernel).__name__}")
    if isinstance(kernel, NetworkKernel):
        require_number_per_pair(kernel, name)
    if pairs is not None:
        check_count("pairs", pairs)
    rng = np.random.default_rng(seed)
    first = kernel.read_batch(X, "X")
    n = len(first)
    if Y is None:
        if n < 2:
            raise ValueError(f"{name} compares sequences with one another: X needs two or more, or give Y as well")
        return join(first), *draw_pairs(n, int(pairs or PAIRS), rng)
    second = kernel.read_batch(Y, "Y")
    check_channels_agree([first, second], ["X", "Y"])
    if n != len(second):
        raise ValueError(
            f"row i of X is paired with row i of Y, but X has {n} sequences and Y has {len(second)}; give as many, or "
            "X alone to draw pairs from it"
        )
    rows = np.arange(n) if pairs is None or pairs >= n else np.sort(rng.choice(n, int(pairs), replace=False))
    return join(first, second), rows, n + rows


def draw_pairs(n: int, most: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Ordered pairs (i, j), i ≠ j, of n sequences: all of them, or `most` different ones at random."""
    total = n * (n - 1)
    code = np.arange(total) if total <= most else np.sort(rng.choice(total, most, replace=False))
    left, right = code // (n - 1), code % (n - 1)
    return left, right + (right >= left)


def curves(
    kernel: NetworkKernel,
    batch: SequenceBatch,
    left: Index,
    right: Index,
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
    with_scale: bool = True,
    name: Callable[[int], tuple[int, str]] = lambda i: (i, ""),
) -> Sensitivity:
    """`sensitivity` of given pairs. Without scale only `normalised` has a meaning, and nothing can overflow in it."""
    steps = batch.lengths[left]
    longest = int(steps.max())
    has = np.arange(longest) >= longest - steps[:, None]
    table = np.zeros(has.shape)  # s(t) of every pair, aligned at the last step
    run = Execution(kernel.n_jobs if n_jobs is None else n_jobs, kernel.progress if progress is None else progress)
    plan = replace(kernel.plan(), run=run)
    with run.bar("sensitivity", float(steps.sum())) as advance:
        for group in in_groups(plan, batch, left, right, with_scale=with_scale, name=name):

            def keep(number: int, places: Index, found: InputSlopes, rows: Index = group.places) -> None:
                part = np.zeros((len(places), longest))
                part[has[rows[places]]] = np.hypot.reduce(found.gradient, axis=1)
                table[rows[places]] = part

            group.gradients.each(group.left, group.right, keep, advance)
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if bad.size:
        i, j = int(left[bad[0]]), int(right[bad[0]])
        (at, side), (other, other_side) = name(i), name(j)
        against = f"sequence {other}" + (f" of {other_side}" if other_side else "")
        raise KernelOverflowError(
            f"the sensitivity of {{sequence}} (length {batch.lengths[i]}) against {against} (length "
            f"{batch.lengths[j]}) overflows float64: the kernel grows along the sequences. Take normalize=True, which "
            f"keeps scales apart, or a smaller sigma_w (now {max(plan.network.sigma_w):.4g}; ReLU is balanced at "
            "1.4142), or scale the inputs down",
            sequence=at,
            side=side,
        )
    count, largest = has.sum(axis=0), table.max(axis=1, keepdims=True)
    heard = largest > 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = table.sum(axis=0) / count
        error = np.sqrt(np.square(np.where(has, table - mean, 0.0)).sum(axis=0) / (count - 1) / count)
        shapes = np.divide(table, largest, out=np.zeros(table.shape), where=heard)
        normalised = shapes.sum(axis=0) / np.maximum((has & heard).sum(axis=0), 1)
    table[~has] = np.nan
    return Sensitivity(mean, error, count, normalised, len(left), int((~heard).sum()), repr(kernel), table)


def misfit(curve: Array, target: Array, count: Index) -> float:
    """Σ_t ω_t (curve_t/⟨curve⟩ - target_t/⟨target⟩)², where ⟨·⟩ is the mean with weights ω_t = count_t/Σ count."""
    weight = count / count.sum()
    level, aim = float(weight @ curve), float(weight @ target)
    if not level > 0:
        return float("nan")
    return float(weight @ np.square(curve / level - target / aim))
