"""Deviations that let a kernel listen to its steps in a wanted way, found without labels ([R], section 3.4)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from ..activations import Activation
from ..engine.slopes import Index, join, marks_per_step
from ..errors import ActivationError, HermiteAccuracyWarning, KernelOverflowError, check_count
from ..kernels import RNTK
from ..plot import COLOURS
from ..runtime import progress_bar, text_table
from ..sequences import SequenceBatch
from .sensitivity import Sensitivity, curves, draw_pairs, misfit, require_number_per_pair

Array = NDArray[np.float64]

#: Sequences that are looked at: enough for their mean curve.
SEQUENCES = 48
#: Where every step costs hundreds of integrals, sequences of so many steps in all, but no less than so many.
EXPANSION_STEPS, EXPANSION_SEQUENCES = 500, 4
#: A setting counts as good as another if its curve is not further from the target by more than this share.
TOLERANCE = 0.05
#: What the search visits before it refines. sigma_w is relative to the value at which a network is balanced.
GRID = {
    "sigma_w": tuple(2.0 ** np.linspace(-1.5, 1.5, 9)),
    "sigma_u": (1.0, 0.3, 0.1, 0.03, 0.01, 3.0),
    "sigma_b": (0.03, 0.1, 0.3, 1.0),
    "sigma_h": (0.1, 0.3, 1.0),
}
SIMPLEST = {"sigma_u": 1.0, "sigma_b": 0.0, "sigma_h": 0.0}
#: Evaluations of a search along sigma_w, and of the last one, along all deviations that matter.
LINE_EVALUATIONS, LAST_EVALUATIONS = 14, 60


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Hyperparameters, and why.

    Attributes
    ----------
    kernel : RNTK
        An `RNTK` with the suggested deviations.
    curve : Sensitivity
        Its sensitivity over the pairs that were looked at.
    target : ndarray
        (T,), what the normalised curve should be proportional to, in the order of time.
    objective : float
        How far it is from there, J in `suggest`. Its root is a relative deviation: 0.2 is 20 %.
    explanation : str
        The same in plain sentences.
    n_tried : int
        Settings evaluated.
    """

    kernel: RNTK
    curve: Sensitivity
    target: Array
    objective: float
    explanation: str
    n_tried: int

    def __repr__(self) -> str:
        found = [(name, np.asarray(getattr(self.kernel, name))) for name in ("sigma_w", *SIMPLEST)]
        table = text_table(["suggested", ""], [(name, np.array2string(value, precision=4)) for name, value in found])
        return f"{table}\n\n{fill(self.explanation, 100)}"

    def plot(self, ax: Any = None) -> Any:
        """The normalised curve, and the target at the same mean; returns the axes.

        Needs matplotlib: pip install "rntk[plot]".
        """
        ax = self.curve.plot(ax, label="suggested")
        weight = self.curve.count / self.curve.count.sum()
        aim = self.target * (weight @ self.curve.normalised) / (weight @ self.target)
        ax.plot(ax.lines[-1].get_xdata(), aim, color=COLOURS[1], linestyle="--", label="target")
        ax.legend(frameon=False)
        return ax


def suggest(
    X: Any,
    activation: str | Activation | Callable[[Any], Any] = "relu",
    *,
    emphasis: str | Any = None,
    pairs: int = 500,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Suggestion:
    r"""Deviations (σ_w, σ_u, σ_b, σ_h) whose kernel listens to all steps alike, or to those you name; no labels needed.

    With n̄(t) the normalised sensitivity of a kernel averaged over pairs of your sequences (`Sensitivity.normalised`)
    and e(t) the target, it minimises

        J = Σ_t ω_t (n̄(t)/⟨n̄⟩ - e(t)/⟨e⟩)²,    ⟨·⟩ = Σ_t ω_t (·),    ω_t ∝ number of pairs that have step t,

    whose root, for a flat target, is the coefficient of variation of n̄ over time (`Sensitivity.flatness`). First along
    σ_w with the other deviations at their simplest values, then on a grid of the others, then in all directions that
    turned out to matter. Where settings are equal within 5 % of the root of J, the simplest is taken: σ_b = 0, σ_h = 0,
    σ_u = 1, and σ_w at its balance (√2 for ReLU). For the ReLU family σ_u only sets the scale of σ_b and σ_h, so it
    stays 1.

    Parameters
    ----------
    X
        Sequences, see `rntk.sequences.as_batch`; lengths may differ.
    activation : str or Activation or callable
        As for `RNTK`.
    emphasis
        None for a flat target; "late" for e(t) ∝ t, "early" for the reverse; or T non-negative numbers, T the length of
        the longest sequence, in the order of time (sequences are aligned at their last steps).
    pairs : int
        At most so many pairs, drawn from at most 48 of the sequences; from about ten where the activation has no closed
        form and each sequence costs much more. The search then takes seconds.
    seed : int
        Of the draw; the same seed gives the same suggestion.
    n_jobs, progress
        As for `RNTK`.
    options
        Further parameters of `RNTK` (`depth`, `readout`, `normalize`, ...). A deviation given here is kept.

    Returns
    -------
    Suggestion
        With `kernel`, its `curve`, `objective`, `explanation`, `plot`.

    Raises
    ------
    ValueError
        `emphasis` doesn't fit, fewer than two sequences, or no setting is sensitive to anything.

    Notes
    -----
    The curve depends on the data: what is flat for one set of sequences need not be for another. A flat curve is a
    starting point, not a promise of accuracy; if you have labels, let `RNTKClassifier` decide.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import suggest
    >>> X = np.random.default_rng(0).standard_normal((30, 40))
    >>> found = suggest(X)
    >>> bool(abs(found.kernel.sigma_w - 2**0.5) < 0.03)
    True
    """
    start = RNTK(activation, **options)
    require_number_per_pair(start, "suggest")
    batch = join(start.read_batch(X))
    free = [name for name in ("sigma_w", *SIMPLEST) if name not in options]
    if start.network().activation.homogeneous and "sigma_u" in free:
        free.remove("sigma_u")  # it only scales
    batch, left, right = _sample(start, batch, pairs, seed)
    target = _target(emphasis, batch)
    search = _Search(start, batch, left, right, target, n_jobs)
    most = LINE_EVALUATIONS * (sum(map(len, GRID.values())) + 2) + LAST_EVALUATIONS
    with progress_bar("suggest", most, progress) as advance:
        search.advance = advance
        chosen = search.run(free)
    kernel = search.kernel(chosen)
    curve = curves(kernel, batch, left, right, n_jobs=n_jobs, progress=False)
    objective = misfit(curve.normalised, target, curve.count)
    n_tried = len(search.seen)
    explanation = _explain(kernel, free, emphasis, objective, search, curve)
    return Suggestion(kernel, curve, target, objective, explanation, n_tried)


def _sample(kernel: RNTK, batch: SequenceBatch, pairs: int, seed: int) -> tuple[SequenceBatch, Index, Index]:
    """Some of the sequences, and pairs of them; the longest sequence is always among those."""
    n = len(batch)
    if n < 2:
        raise ValueError("suggest compares sequences with one another: X needs two or more")
    check_count("pairs", pairs)
    rng = np.random.default_rng(seed)
    most = SEQUENCES
    if _expands(kernel):
        most = max(EXPANSION_STEPS // batch.max_length, EXPANSION_SEQUENCES)
    longest = int(np.argmax(batch.lengths))
    others = rng.permutation(np.delete(np.arange(n), longest))[: most - 1]
    batch = batch.take(np.sort(np.append(others, longest)))
    return batch, *draw_pairs(len(batch), int(pairs), rng)


def _expands(kernel: RNTK) -> bool:
    """Whether the activation is a series: a closed form keeps a few numbers per step."""
    return marks_per_step(kernel.network()) > 16


def _target(emphasis: Any, batch: SequenceBatch) -> Array:
    steps = batch.max_length
    if emphasis is None:
        return np.ones(steps)
    if isinstance(emphasis, str):
        if emphasis not in ("early", "late"):
            raise ValueError(f'emphasis must be None, "early", "late" or an array, not {emphasis!r}')
        ramp = np.linspace(1 / steps, 1.0, steps)
        return ramp if emphasis == "late" else np.ascontiguousarray(ramp[::-1])
    target = np.asarray(emphasis, dtype=np.float64)
    if target.shape != (steps,):
        raise ValueError(
            f"emphasis needs one number per step of the longest sequence, shape ({steps},), not {target.shape}"
        )
    if not (np.isfinite(target).all() and (target >= 0).all() and target.any()):
        raise ValueError("emphasis must be finite, non-negative and not all zero")
    return target


@dataclass
class _Search:
    """Every setting evaluated so far, by its deviations; the same one is never computed twice."""

    start: RNTK
    batch: SequenceBatch
    left: Index
    right: Index
    target: Array
    n_jobs: int | None
    seen: dict[tuple[tuple[str, float], ...], float] = field(default_factory=dict)
    advance: Callable[[float], None] = lambda amount: None

    @property
    def balance(self) -> float:
        """The σ_w at which small signals neither grow nor fade."""
        activation = self.start.network().activation
        if activation.homogeneous:
            return float(np.sqrt(1 / activation.square(np.ones(1))[0]))
        slope = abs(float(activation.derivative(np.zeros(1))[0]))
        return 1 / slope if slope > 0 else 1.0

    def kernel(self, setting: dict[str, float]) -> RNTK:
        return RNTK(**(self.start.get_params() | setting))

    def cost(self, setting: dict[str, float]) -> float:
        """J; infinite where there is none."""
        key = tuple(setting.items())
        if key not in self.seen:
            try:
                with warnings.catch_warnings():  # nobody asked for this setting yet
                    warnings.simplefilter("ignore", HermiteAccuracyWarning)
                    curve = curves(
                        self.kernel(setting), self.batch, self.left, self.right, n_jobs=self.n_jobs, progress=False,
                        with_scale=False,
                    )  # fmt: skip
                value = misfit(curve.normalised, self.target, curve.count)
            except (ActivationError, KernelOverflowError):
                value = np.inf
            self.seen[key] = value if np.isfinite(value) else np.inf
            self.advance(1)
        return self.seen[key]

    def run(self, free: list[str]) -> dict[str, float]:
        """The simplest of the best settings; see `suggest`."""
        simplest = {name: SIMPLEST[name] for name in free if name in SIMPLEST}
        if "sigma_w" in free:
            simplest = {"sigma_w": self.balance, **simplest}
            self.cost(simplest)
            best = self._along_sigma_w(simplest, [self.balance * each for each in GRID["sigma_w"]])
        else:
            best = simplest
            self.cost(simplest)
        if "sigma_u" in free:
            best = self._try_each(best, "sigma_u", whole_line=True)
        for name in ("sigma_b", "sigma_h"):
            if name in free:
                best = self._try_each(best, name)
        chosen = self._simplest_of_the_best()
        if free:
            self._in_all_directions(chosen)
        return self._simplest_of_the_best()

    def _try_each(self, best: dict[str, float], name: str, *, whole_line: bool = False) -> dict[str, float]:
        """Other values of one deviation, each with σ_w adapted to it."""
        for value in GRID[name][:: 2 if _expands(self.start) else 1]:
            setting = best | {name: value}
            if "sigma_w" in setting:
                scale, width = (self.balance, GRID["sigma_w"]) if whole_line else (best["sigma_w"], (0.7, 1.0, 1.4))
                setting = self._along_sigma_w(setting, [scale * each for each in width])
            if self.cost(setting) < self.cost(best):
                best = setting
        return best

    def _along_sigma_w(self, setting: dict[str, float], grid: list[float]) -> dict[str, float]:
        """The best σ_w: on the grid, then between the neighbours of the best point there."""
        costs = [self.cost(setting | {"sigma_w": rounded(value)}) for value in grid]
        at = int(np.argmin(costs))
        if not np.isfinite(costs[at]):
            return setting
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
        optimize.minimize_scalar(
            lambda log: self.cost(setting | {"sigma_w": rounded(np.exp(log))}),
            bounds=(np.log(low), np.log(high)),
            method="bounded",
            options={"maxiter": LINE_EVALUATIONS, "xatol": 1e-4},
        )
        return self._best(lambda other: all(other[name] == setting[name] for name in setting if name != "sigma_w"))

    def _in_all_directions(self, setting: dict[str, float]) -> None:
        """Refine every deviation that isn't at its simplest value."""
        names = [name for name, value in setting.items() if value > 0 and value != SIMPLEST.get(name)]
        if len(names) < 2:  # along σ_w alone it has been refined already
            return

        def cost(logs: Array) -> float:
            return self.cost(setting | {name: rounded(np.exp(log)) for name, log in zip(names, logs, strict=True)})

        logs = np.log([setting[name] for name in names])
        optimize.minimize(
            cost,
            logs,
            method="Nelder-Mead",
            bounds=[(log - 1.5, log + 1.5) for log in logs],
            options={
                "maxfev": LAST_EVALUATIONS,
                "initial_simplex": np.vstack([logs, logs + np.diag(np.where(np.array(names) == "sigma_w", 0.03, 0.5))]),
                "xatol": 1e-3,
                "fatol": 1e-6,
            },
        )

    def _best(self, among: Callable[[dict[str, float]], bool] = lambda setting: True) -> dict[str, float]:
        """The setting with the lowest cost; the first one of equals."""
        return min((setting for setting in self._settings() if among(setting)), key=self.cost)

    def _settings(self) -> list[dict[str, float]]:
        return [dict(key) for key in self.seen]

    def _simplest_of_the_best(self) -> dict[str, float]:
        best = self.cost(self._best())
        if not np.isfinite(best):
            raise ValueError("no setting is sensitive to any step of these sequences: are they all zero?")
        # Distances add up like roots of J; a curve that is as good as on target needs no comparison.
        limit = ((1 + TOLERANCE) * np.sqrt(best) + 1e-6) ** 2
        good = [setting for setting in self._settings() if self.cost(setting) <= limit]

        def complexity(setting: dict[str, float]) -> tuple[int, bool, float]:
            extras = sum(setting[name] != SIMPLEST[name] for name in setting if name in SIMPLEST)
            return extras, setting.get("sigma_w") != self.balance, self.cost(setting)

        return min(good, key=complexity)


def rounded(value: float) -> float:
    """Four significant digits: what is suggested is what was evaluated, and can be written down."""
    return float(f"{value:.4g}")


def _explain(
    kernel: RNTK, free: list[str], emphasis: Any, objective: float, search: _Search, curve: Sensitivity
) -> str:
    """Two or three sentences: what was found, against what, and what didn't matter."""
    aim = {None: "is flattest", "early": "falls most evenly", "late": "rises most evenly"}
    wanted = aim[emphasis] if emphasis is None or isinstance(emphasis, str) else "follows the given emphasis best"
    plain = [name for name in free if getattr(kernel, name) == SIMPLEST.get(name)]
    found = ", ".join(f"{name} = {getattr(kernel, name):.4g}" for name in free if name not in plain)
    sentences = [
        f"With {found or 'the deviations given'} the sensitivity over time {wanted}, of {len(search.seen)} settings "
        f"tried on {curve.n_pairs} pairs of {len(search.batch)} sequences: it deviates from its target by "
        f"{np.sqrt(objective):.0%} of its mean."
    ]
    before = search.cost({})
    if np.isfinite(before):
        sentences.append(f"{search.start!r} deviates by {np.sqrt(before):.0%}.")
    if plain:
        values = ", ".join(f"{name} = {SIMPLEST[name]:g}" for name in plain)
        sentences.append(f"Other values than {values} don't bring it closer by more than {TOLERANCE:.0%}.")
    return " ".join(sentences)
