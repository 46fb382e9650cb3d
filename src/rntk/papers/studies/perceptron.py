"""The note on the tangent kernel of perceptrons ([N] in docs/theory.md) made runnable: its claims on finite networks.

The note writes a perceptron with L - 1 hidden layers as α̃^(l+1) = W^(l) α^(l)/√n_l + β b^(l), α = σ(α̃), all weights and
biases N(0, 1), the output being α̃^(L). `rntk.NTK` with σ_w = σ_v = 1 and σ_b = β is that network without the bias of
the output, which adds β² to both kernels, finite or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ...activations import as_activation
from ...kernels import NTK
from ...plot import COLOURS, axes_or_new
from ...theory.dynamics import Dynamics
from ..study import EXACT, Claim, Finding, Mutant, Plain, Proof, Results, Study, Unit, multiplied
from .drawing import finished

if TYPE_CHECKING:
    from ...finite.comparison import Slope

Array = NDArray[np.float64]

#: The note's network with two activations; β is that of Jacot, Gabriel and Hongler (2018).
KERNELS: tuple[Plain, ...] = tuple({"activation": name, "sigma_w": 1.0, "sigma_b": 0.1} for name in ("relu", "erf"))
#: How many networks of a width are trained at most.
TRAINED = 10
#: A test of a claim that holds has a smaller p-value once in ten thousand times.
LEAST_P_VALUE = 1e-4
#: The same in standard errors.
LEAST_SIGMAS = float(stats.norm.isf(LEAST_P_VALUE / 2))
RATE = "slope within four standard errors of -1/2, for every activation and depth"
LAW = f"no test has p below {LEAST_P_VALUE:g}"
LABELS = {"ntk": "‖Θ̂ - Θ‖ / ‖Θ‖", "drift": "largest ‖Θ̂_s - Θ̂_0‖ / ‖Θ‖ in training"}


def _unit(weight: float, **sizes: Any) -> tuple[Unit]:
    return (Unit("networks", {**sizes, "random_state": 0}, weight),)


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


SMALL: Plain = {
    "depths": [1],
    "widths": [32, 128, 512],
    "seeds": 12,
    "networks": 150,
    "steps": 5,
    "kernels": KERNELS[:1],
}


def _one_readout(call: Any) -> Any:
    """Both outputs share half of their weights."""

    def outputs(*args: Any, **options: Any) -> Any:
        found = np.asarray(call(*args, **options))
        return found if found.shape[1] == 1 else np.stack([found[:, 0], found.sum(axis=1) / 2**0.5], axis=1)

    return outputs


def _leaking(kernels: Any) -> Any:
    """A part of the kernel of an output that doesn't vanish between outputs."""

    def empirical(*args: Any, **options: Any) -> Any:
        found = kernels(*args, **options)
        ntk = np.array(found.ntk)
        ntk[:, :, 0, 1] += 0.3 * ntk[:, :, 0, 0]
        return found._replace(ntk=ntk)

    return empirical


def _times_root_width(name: str, found: Plain) -> None:
    for case in found["cases"]:
        case["drift"] = (np.array(case["drift"]) * np.array(found["trained"])[:, None]).tolist()


class Perceptron(Study):
    """Perceptrons of each width, depth and activation beside `rntk.NTK`, and the law of their outputs."""

    name = "perceptron"
    aliases = ("mlp-ntk",)
    title = "Finite perceptrons approach their tangent kernel"
    source = "Neural Tangent Kernel Derivation (a note)"
    extras = ("finite",)
    minutes = (0.4, 1)
    quick = _unit(15.0, depths=[1, 2], widths=[32, 64, 128, 256], seeds=15, networks=200, steps=15)
    full = _unit(45.0, depths=[1, 2, 3], widths=[32, 64, 128, 256, 512], seeds=30, networks=300)
    claims = (
        Claim("gaussian", "the outputs of a wide network at initialisation are Gaussian", LAW),
        Claim("covariance", "their covariance is Σ, (10) and (12)", LAW),
        Claim("uncorrelated", "different outputs are uncorrelated, (9)", LAW),
        Claim("averages", "averages over units tend to Σ, (12), at rate n^{-1/2}", RATE),
        Claim(
            "recursion",
            "the limit is Θ^(l+1) = Θ^(l) Σ̇^(l+1) + Σ^(l+1), (26), which is what `rntk.NTK` computes",
            "relative distance below 1e-6",
        ),
        Claim("kernel", "the tangent kernel of a network tends to this limit at rate n^{-1/2}", RATE),
        Claim("between", "between different outputs it tends to zero, (27)", RATE),
        Claim(
            "drift",
            "the tangent kernel stays nearly constant in training: its drift falls at least like n^{-1/2}",
            "slope at most -1/2, give or take four standard errors",
        ),
    )

    mutants = (
        Mutant("Σ times 1.5", ("gaussian", "covariance"), "rntk.kernels:NTK.nngp", multiplied(1.5), SMALL),
        Mutant(
            "outputs that share weights", ("uncorrelated",), "rntk.finite:FiniteNetwork.__call__", _one_readout, SMALL
        ),
        Mutant(
            "Θ and Σ times 1.25", ("averages", "recursion", "kernel"), "rntk.kernels:NTK.both", multiplied(1.25), SMALL
        ),
        Mutant("a part that two outputs share", ("between",), "rntk.finite:empirical_kernels", _leaking, SMALL),
        Mutant("drift times n", ("drift",), result=_times_root_width),
    )

    def compute(
        self,
        data: Path | None,
        *,
        depths: list[int],
        widths: list[int],
        seeds: int,
        networks: int,
        inputs: int = 6,
        steps: int = 30,
        kernels: Sequence[Plain] = KERNELS,
        random_state: int = 0,
    ) -> Plain:
        """`cases`, one for each kernel and depth, on Gaussian vectors.

        ntk, nngp : (W, S) errors ‖Θ̂ - Θ‖/‖Θ‖ and ‖Σ̂ - Σ‖/‖Σ‖ of each network, Frobenius norm over all pairs.
        between : (W, S) ‖Θ̂ between two outputs‖/‖Θ‖, which the limit says is zero.
        drift : (D, S') largest ‖Θ̂_s - Θ̂_0‖/‖Θ‖ during training, for every other width and up to ten seeds.
        recursion : relative distance of `NTK` and the note's recursion.
        gaussian, covariance, uncorrelated : p-values of the outputs of `networks` networks of the middle width: that
            they are Gaussian, that their covariance is Σ, and that it is zero between different outputs.

        Training is gradient descent at half the largest stable learning rate. Targets are ±1 beside the outputs at the
        start, so that all networks have the same way to go. No `steps` train none.
        """
        rng = np.random.default_rng(random_state)
        X, y = rng.standard_normal((inputs, 4)), rng.choice([-1.0, 1.0], inputs)
        trained, law_width = widths[::2] if steps else [], widths[len(widths) // 2]
        first = 10_000 * random_state
        cases = []
        for options in kernels:
            for depth in depths:
                kernel = NTK(**options, depth=depth)
                ntk, nngp, between = _errors(kernel, X, widths, range(first, first + seeds))
                drift = _drift(kernel, X, y, trained, range(first, first + min(seeds, TRAINED)), steps)
                law = _law(kernel, X, law_width, range(first, first + networks), rng)
                sigma, theta = note_kernels(kernel, X)
                both, beta = kernel.both(X), float(options["sigma_b"]) ** 2
                gap = max(_distance(both.ntk + beta, theta), _distance(both.nngp + beta, sigma))
                what = {"kernel": repr(kernel), "activation": as_activation(kernel.activation).name, "depth": depth}
                errors = {"ntk": ntk, "nngp": nngp, "between": between, "drift": drift, "recursion": gap}
                cases.append({**what, **errors, **law})
        settings = {"widths": widths, "trained": trained, "steps": steps, "networks": networks, "law_width": law_width}
        return {**settings, "cases": cases}

    def judge(self, results: Results) -> Iterator[Finding]:
        """The claims of the note, each for all activations and depths."""
        found = results["networks"]

        def said(texts: Sequence[str]) -> str:
            cases = zip(found.cases, texts, strict=True)
            return "; ".join(f"{case['activation']}, depth {case['depth']}: {text}" for case, text in cases)

        law = f"{found.networks} networks of width {found.law_width}; "
        for name in ("gaussian", "covariance", "uncorrelated"):
            values = [case[name] for case in found.cases]
            error = (2 * found.networks) ** -0.5
            weight = Proof(found.networks, error, LEAST_SIGMAS * error, "deviation of outputs over the predicted one")
            yield Finding(
                name, min(values) > LEAST_P_VALUE, law + said([f"p = {value:.2g}" for value in values]), weight
            )
        gap = max(case["recursion"] for case in found.cases)
        yield Finding("recursion", gap < 1e-6, f"largest relative distance {gap:.1e}", EXACT)
        for key, name in {"averages": "nngp", "kernel": "ntk", "between": "between", "drift": "drift"}.items():
            if name == "drift" and not len(found.trained):
                continue
            slopes = _slopes(found, name)
            gaps = [(slope.value + 0.5, 4 * slope.error) for slope in slopes]
            holds = all(gap <= allowed if name == "drift" else abs(gap) <= allowed for gap, allowed in gaps)
            error, count = max(slope.error for slope in slopes), len(found.cases[0][name][0])
            weight = Proof(count, error, 4 * error, "slope")
            yield Finding(
                key, holds, said([f"slope {slope.value:.3f} ± {slope.error:.3f}" for slope in slopes]), weight
            )

    def figures(self, results: Results) -> dict[str, Any]:
        """Errors and drift against width on logarithmic axes, beside a line of slope -1/2."""
        found = results["networks"]
        styles = dict(zip(dict.fromkeys(case["activation"] for case in found.cases), ("-o", "--s", ":^"), strict=False))
        colours = dict(zip(dict.fromkeys(case["depth"] for case in found.cases), COLOURS, strict=False))
        figures = {}
        for name in LABELS if len(found.trained) else ["ntk"]:
            ax = axes_or_new()
            widths = np.array(found.trained if name == "drift" else found.widths, dtype=np.float64)
            middles = [np.exp(np.log(case[name]).mean(axis=1)) for case in found.cases]
            for case, middle, slope in zip(found.cases, middles, _slopes(found, name), strict=True):
                activation, depth = case["activation"], case["depth"]
                label = f"{activation}, depth {depth}: slope {slope.value:.2f} ± {slope.error:.2f}"
                ax.plot(widths, middle, styles[activation], color=colours[depth], markersize=4, label=label)
            line = 1.3 * max(middle[0] for middle in middles) * (widths / widths[0]) ** -0.5
            ax.plot(widths, line, color="grey", linewidth=3, alpha=0.4, label="slope -1/2")
            figure = finished(ax, "width", LABELS[name], "perceptrons and their kernel", xscale="log", yscale="log")
            figures[f"perceptron-{name}"] = figure
        return figures


def _slopes(found: Any, name: str) -> list[Slope]:
    """Slopes of log error against log width, one for each case."""
    from ...finite.comparison import fit_slope

    return [fit_slope(found.trained if name == "drift" else found.widths, case[name]) for case in found.cases]


def _distance(got: NDArray[Any], expected: NDArray[Any]) -> float:
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def _errors(kernel: NTK, X: Array, widths: Sequence[int], seeds: range) -> Array:
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


def _law(kernel: NTK, X: Array, width: int, seeds: range, rng: np.random.Generator) -> Plain:
    """p-values of f = L z with LLᵀ = Σ: that z is standard normal, white within an output, uncorrelated between two."""
    from ... import finite

    net = finite.network(kernel, width, outputs=2)
    beta = float(kernel.sigma_b)  # type: ignore[arg-type]
    outputs = np.empty((len(seeds), len(X), 2))
    for k, seed in enumerate(seeds):
        outputs[k] = np.asarray(net(net.init(seed, X), X)) + beta * rng.standard_normal(2)
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
    return {
        "gaussian": float(stats.kstest(z.ravel(), "norm").pvalue),
        "covariance": float(stats.chi2.sf(squares, len(within))),
        "uncorrelated": float(stats.chi2.sf(R * np.sum((one @ moments[0, 1] @ two.T) ** 2), N * N)),
    }
