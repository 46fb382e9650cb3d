"""The note on the tangent kernel of perceptrons ([N] in docs/theory.md) made runnable: its claims on finite networks.

The note writes a perceptron with L - 1 hidden layers as α̃^(l+1) = W^(l) α^(l)/√n_l + β b^(l), α = σ(α̃), all weights and
biases N(0, 1), the output being α̃^(L). `rntk.NTK` with σ_w = σ_v = 1 and σ_b = β is that network without the bias of
the output, which adds β² to both kernels, finite or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from ...activations import as_activation
from ...kernels import NTK
from ...plot import COLOURS, axes_or_new
from ...runtime import progress_bar
from ...theory.dynamics import Dynamics
from .record import Check, Record

if TYPE_CHECKING:
    from ...finite.comparison import Slope

Array = NDArray[np.float64]

#: β, unless a kernel is given: that of Jacot, Gabriel and Hongler (2018).
BETA = 0.1
#: How many networks of a width are trained at most.
TRAINED = 10
#: A test of a claim that holds has a smaller p-value once in ten thousand times.
LEAST_P_VALUE = 1e-4
#: What the note says, in our words; numbers are its equations.
CLAIMS = {
    "gaussian": "the outputs of a wide network at initialisation are Gaussian",
    "covariance": "their covariance is Σ, (10) and (12)",
    "uncorrelated": "different outputs are uncorrelated, (9)",
    "averages": "averages over units tend to Σ, (12), at rate n^{-1/2}",
    "recursion": "the limit is Θ^(l+1) = Θ^(l) Σ̇^(l+1) + Σ^(l+1), (26), which is what `rntk.NTK` computes",
    "kernel": "the tangent kernel of a network tends to this limit at rate n^{-1/2}",
    "between": "between different outputs it tends to zero, (27)",
    "drift": "the tangent kernel stays nearly constant in training: its drift falls at least like n^{-1/2}",
}


@dataclass(frozen=True)
class PerceptronCase(Record):
    """Perceptrons with one activation and one number of hidden layers.

    Attributes
    ----------
    kernel : repr of the `NTK`. activation, depth : of it; `depth` counts hidden layers.
    ntk, nngp : (W, S) errors ‖Θ̂ - Θ‖/‖Θ‖ and ‖Σ̂ - Σ‖/‖Σ‖ of each network, Frobenius norm over all pairs of inputs.
    between : (W, S) ‖Θ̂ between two outputs‖/‖Θ‖, which the limit says is zero.
    drift : (D, S') largest ‖Θ̂_s - Θ̂_0‖/‖Θ‖ during training, by width of `PerceptronConvergence.trained`.
    recursion : relative distance of `NTK` and the note's recursion.
    gaussian, covariance, uncorrelated : p-values of the outputs of many networks: that they are Gaussian, that their
        covariance is Σ, and that it is zero between different outputs.
    """

    kernel: str
    activation: str
    depth: int
    ntk: Array
    nngp: Array
    between: Array
    drift: Array
    recursion: float
    gaussian: float
    covariance: float
    uncorrelated: float


@dataclass(frozen=True)
class PerceptronConvergence:
    """How finite perceptrons approach their kernels, by width, depth and activation.

    Attributes
    ----------
    widths : (W,) of hidden layers. trained : (D,) those that were trained, for `steps` steps.
    networks : how many were drawn for the law of the outputs, of width `law_width`.
    cases : one `PerceptronCase` for each activation and depth.
    """

    widths: tuple[int, ...]
    trained: tuple[int, ...]
    steps: int
    networks: int
    law_width: int
    cases: tuple[PerceptronCase, ...]

    def slopes(self, name: str) -> dict[tuple[str, int], Slope]:
        """Slope of log error against log width by activation and depth; `name` is "ntk", "nngp", "between", "drift"."""
        from ...finite.comparison import fit_slope

        widths = self.trained if name == "drift" else self.widths
        return {(case.activation, case.depth): fit_slope(widths, getattr(case, name)) for case in self.cases}

    @property
    def checks(self) -> list[Check]:
        """The claims of the note, one by one."""
        return _checks(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "widths": list(self.widths),
            "trained": list(self.trained),
            "steps": self.steps,
            "networks": self.networks,
            "law_width": self.law_width,
            "cases": [
                {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in vars(case).items()}
                for case in self.cases
            ],
            "slopes": {
                name: [
                    {"activation": activation, "depth": depth, **_plain(slope)}
                    for (activation, depth), slope in self.slopes(name).items()
                ]
                for name in ("ntk", "nngp", "between", "drift")
            },
            "checks": [{"claim": c.claim, "holds": c.holds, "evidence": c.evidence} for c in self.checks],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PerceptronConvergence:
        """The record whose `to_dict` gave `values`."""
        cases = tuple(PerceptronCase.from_dict(case) for case in values["cases"])
        widths, trained = tuple(values["widths"]), tuple(values["trained"])
        return cls(widths, trained, values["steps"], values["networks"], values["law_width"], cases)

    def plot(self, ax: Any = None, name: str = "ntk") -> Any:
        """Errors against width on logarithmic axes, beside a line of slope -1/2; returns the axes."""
        if name == "drift" and not self.trained:
            raise ValueError("no network was trained: run the experiment with steps > 0")
        ax = axes_or_new(ax)
        widths = np.array(self.trained if name == "drift" else self.widths, dtype=np.float64)
        slopes = self.slopes(name)
        activations = list(dict.fromkeys(case.activation for case in self.cases))
        depths = list(dict.fromkeys(case.depth for case in self.cases))
        highest = 0.0
        for case in self.cases:
            middle = np.exp(np.log(getattr(case, name)).mean(axis=1))
            highest = max(highest, float(middle[0]))
            slope = slopes[case.activation, case.depth]
            style = ("-o", "--s", ":^")[activations.index(case.activation) % 3]
            colour = COLOURS[depths.index(case.depth) % len(COLOURS)]
            label = f"{case.activation}, depth {case.depth}: slope {slope.value:.2f} ± {slope.error:.2f}"
            ax.plot(widths, middle, style, color=colour, markersize=4, label=label)
        ax.plot(widths, 1.3 * highest * (widths / widths[0]) ** -0.5, color="grey", linewidth=3, alpha=0.4,
                label="slope -1/2")  # fmt: skip
        titles = {"ntk": "‖Θ̂ - Θ‖ / ‖Θ‖", "nngp": "‖Σ̂ - Σ‖ / ‖Σ‖", "between": "‖Θ̂ between outputs‖ / ‖Θ‖",
                  "drift": "largest ‖Θ̂_s - Θ̂_0‖ / ‖Θ‖ in training"}  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="width", ylabel=titles[name], title="perceptrons and their kernel")
        ax.legend(frameon=False)
        return ax


def note_kernels(kernel: NTK, X: Any) -> tuple[Array, Array]:
    """(Σ, Θ) by the note's equations (10), (12), (24) and (26), with a bias at the output; all layers are walked here.

    Σ¹ = ⟨x, x'⟩/m + β²; then Σ = E[σ(g) σ(g')] + β², Σ̇ = E[σ'(g) σ'(g')] for Gaussian g with the Σ before, and
    Θ ← Θ Σ̇ + Σ. Other deviations than one multiply their layer's expectations.
    """
    X, activation, beta = np.asarray(X, dtype=np.float64), as_activation(kernel.activation), float(kernel.sigma_b)  # type: ignore[arg-type]
    weights = [*np.broadcast_to(kernel.sigma_w, kernel.depth), kernel.sigma_v]
    sigma = weights[0] ** 2 * X @ X.T / X.shape[1] + beta**2
    theta = sigma
    for weight in weights[1:]:
        q = np.diag(sigma)
        value, slope = activation.dual(q[:, None], q[None, :], sigma)
        sigma = weight**2 * value + beta**2
        theta = theta * (weight**2 * slope) + sigma
    return np.asarray(sigma), np.asarray(theta)


def perceptron_convergence(
    kernel: NTK | None = None,
    depths: Sequence[int] = (1, 2, 3),
    widths: Sequence[int] = (32, 64, 128, 256, 512),
    seeds: int = 30,
    inputs: int = 6,
    channels: int = 4,
    *,
    networks: int = 300,
    steps: int = 30,
    random_state: int = 0,
    progress: bool | None = None,
) -> PerceptronConvergence:
    """Perceptrons of each width and depth beside `rntk.NTK`, and the law of their outputs.

    Parameters
    ----------
    kernel : an `NTK` whose sigma_b is one number, β; its depth doesn't matter. Unless given, the note's network with
        ReLU and with erf, β = 0.1.
    depths : numbers of hidden layers. widths, seeds : of which widths, and how many networks of each.
    inputs, channels : Gaussian vectors to compare on, and their size.
    networks : drawn for the law of the outputs, of the middle one of `widths`.
    steps : of gradient descent, at half the largest stable learning rate, for every other width and up to ten seeds.
        Targets are ±1 beside the outputs at the start, so that all networks have the same way to go. 0 trains none.

    Raises
    ------
    ValueError : `kernel` has a sigma_b for each layer, where the note has one β, or `networks` are fewer than `inputs`.

    Examples
    --------
    >>> from rntk import NTK
    >>> from rntk.papers.experiments.perceptron import perceptron_convergence
    >>> kernel = NTK("erf", sigma_w=1.0, sigma_b=0.1)
    >>> found = perceptron_convergence(kernel, depths=(1,), widths=(16, 256), seeds=8, networks=20, steps=0)
    >>> abs(found.slopes("ntk")["erf", 1].value + 0.5) < 0.2
    True
    """
    if kernel is not None and np.ndim(kernel.sigma_b) > 0:
        raise ValueError(f"sigma_b must be one number, the note's β, not {kernel.sigma_b!r}")
    if networks <= inputs:
        raise ValueError(f"networks must be more than inputs, {inputs}, to know a covariance; not {networks}")
    kernels = [NTK(name, sigma_w=1.0, sigma_b=BETA) for name in ("relu", "erf")] if kernel is None else [kernel]
    rng = np.random.default_rng(random_state)
    X, y = rng.standard_normal((inputs, channels)), rng.choice([-1.0, 1.0], inputs)
    widths = tuple(int(width) for width in widths)
    trained, law_width = widths[::2] if steps else (), widths[len(widths) // 2]
    first = 10_000 * random_state
    work = sum(each**2 for each in widths) * seeds + law_width**2 * networks
    cases = []
    with progress_bar("perceptrons", work * len(kernels) * len(depths), progress) as advance:
        for each in kernels:
            for depth in depths:
                limit = clone(each).set_params(depth=int(depth))
                ntk, nngp, between = _errors(limit, X, widths, range(first, first + seeds), advance)
                drift = _drift(limit, X, y, trained, range(first, first + min(seeds, TRAINED)), steps)
                law = _law(limit, X, law_width, range(first, first + networks), rng, advance)
                sigma, theta = note_kernels(limit, X)
                both = limit.both(X)
                beta = float(limit.sigma_b) ** 2
                gap = max(_distance(both.ntk + beta, theta), _distance(both.nngp + beta, sigma))
                name = as_activation(limit.activation).name
                cases.append(PerceptronCase(repr(limit), name, int(depth), ntk, nngp, between, drift, gap, *law))
    return PerceptronConvergence(widths, trained, steps, networks, law_width, tuple(cases))


def _distance(got: NDArray[Any], expected: NDArray[Any]) -> float:
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def _errors(kernel: NTK, X: Array, widths: Sequence[int], seeds: range, advance: Any) -> Array:
    """(3, W, S): Θ̂ and Σ̂ against their limits, and Θ̂ between two outputs."""
    from ... import finite

    beta = float(kernel.sigma_b) ** 2  # type: ignore[arg-type]
    both = kernel.both(X)
    errors = np.empty((3, len(widths), len(seeds)))
    for w, width in enumerate(widths):
        net = finite.network(kernel, width, outputs=2)
        for s, seed in enumerate(seeds):
            found = finite.empirical_kernels(net, net.init(seed, X), X)
            # The bias of the output adds β² to the kernels of network and limit alike, and nothing between outputs.
            errors[:, w, s] = (
                _distance(found.ntk[:, :, 0, 0] + beta, both.ntk + beta),
                _distance(found.nngp + beta, both.nngp + beta),
                np.linalg.norm(found.ntk[:, :, 0, 1]) / np.linalg.norm(both.ntk + beta),
            )
            advance(width**2)
    return errors


def _drift(kernel: NTK, X: Array, y: Array, widths: Sequence[int], seeds: range, steps: int) -> Array:
    """(D, S') largest relative movement of the tangent kernel."""
    from ... import finite

    rate = Dynamics(kernel, X, y).largest_learning_rate / 2
    marks = sorted({0, *np.unique(np.geomspace(1, max(steps, 1), 4).astype(int)).tolist()})
    scale = np.linalg.norm(kernel(X))
    drift = np.empty((len(widths), len(seeds)))
    for w, width in enumerate(widths):
        net = finite.network(kernel, width)
        for s, seed in enumerate(seeds):
            start = net.init(seed, X)
            target = y + np.asarray(net(start, X), dtype=np.float64)[:, 0]
            run = finite.train(net, start, X, target, rate, steps, record_at=marks, kernel_drift=True, progress=False)
            assert run.kernel_drift is not None
            drift[w, s] = run.kernel_drift.max() / scale
    return drift


def _law(
    kernel: NTK, X: Array, width: int, seeds: range, rng: np.random.Generator, advance: Any
) -> tuple[float, float, float]:
    """p-values of f = L z with LLᵀ = Σ: that z is standard normal, white within an output, uncorrelated between two."""
    from ... import finite

    net = finite.network(kernel, width, outputs=2)
    beta = float(kernel.sigma_b)  # type: ignore[arg-type]
    outputs = np.empty((len(seeds), len(X), 2))
    for k, seed in enumerate(seeds):
        outputs[k] = np.asarray(net(net.init(seed, X), X)) + beta * rng.standard_normal(2)
        advance(width**2)
    root = np.linalg.cholesky(kernel.nngp(X) + beta**2)
    z = np.linalg.solve(root, outputs)
    R, N = len(z), len(X)
    moments = np.einsum("rap,rbq->pqab", z, z, optimize=True) / R
    upper = np.triu_indices(N)
    # A mean of R products of standard normal numbers has variance 1/R, a mean of squares 2/R.
    within = np.concatenate([(moments[p, p] - np.eye(N))[upper] for p in range(2)])
    squares = np.tile(R / (1 + np.eye(N))[upper], 2) @ within**2
    # Between outputs in units of the covariances measured within each, so that these may be anything.
    one, two = (np.linalg.inv(np.linalg.cholesky(moments[p, p])) for p in range(2))
    return (
        float(stats.kstest(z.ravel(), "norm").pvalue),
        float(stats.chi2.sf(squares, len(within))),
        float(stats.chi2.sf(R * np.sum((one @ moments[0, 1] @ two.T) ** 2), N * N)),
    )


def _plain(slope: Slope) -> dict[str, float | None]:
    return {name: None if np.isnan(each) else each for name, each in slope._asdict().items()}


def _checks(record: PerceptronConvergence) -> list[Check]:
    def said(values: Mapping[tuple[str, int], str]) -> str:
        return "; ".join(f"{activation}, depth {depth}: {value}" for (activation, depth), value in values.items())

    def tested(name: str) -> tuple[bool, str]:
        values = {(case.activation, case.depth): float(getattr(case, name)) for case in record.cases}
        texts = {key: f"p = {value:.2g}" for key, value in values.items()}
        law = f"{record.networks} networks of width {record.law_width}; "
        return min(values.values()) > LEAST_P_VALUE, law + said(texts)

    def falls(name: str, *, at_least: bool = False) -> tuple[bool, str]:
        slopes = record.slopes(name)
        gaps = [(slope.value + 0.5, 4 * slope.error) for slope in slopes.values()]
        holds = all(gap <= allowed if at_least else abs(gap) <= allowed for gap, allowed in gaps)
        texts = {key: f"slope {slope.value:.3f} ± {slope.error:.3f}" for key, slope in slopes.items()}
        return holds, said(texts)

    gap = max(case.recursion for case in record.cases)
    found = {
        "gaussian": tested("gaussian"),
        "covariance": tested("covariance"),
        "uncorrelated": tested("uncorrelated"),
        "averages": falls("nngp"),
        "recursion": (gap < 1e-6, f"largest relative distance {gap:.1e}"),
        "kernel": falls("ntk"),
        "between": falls("between"),
    }
    if record.trained:
        found["drift"] = falls("drift", at_least=True)
    return [Check(CLAIMS[key], *each) for key, each in found.items()]
