"""Linear RNN paper, Theorem 3.3: taps of wide networks are Gaussian, their kernel is that of a convolution."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ...linear import LinearRNN, limit_kernel
from ...plot import COLOURS, axes_or_new
from ..study import FIRST, Claim, Criterion, Finding, Mutant, Plain, Proof, Results, Study, Unit, multiplied
from .drawing import finished


def _taps(width: int, T: int, rng: np.random.Generator, **variances: float) -> NDArray[np.float64]:
    """(T,) one entry of each tap of a random network."""
    return LinearRNN.random(width, 1, 1, seed=rng, **variances).impulse_response(T)[:, 0, 0]


def _with_one_factor(taps: Any) -> Any:
    """Taps of all lags times one random number of each network."""
    return lambda width, T, rng, **variances: taps(width, T, rng, **variances) * np.exp(0.5 * rng.standard_normal())


def _wrong_limit(limit_kernel: Any) -> Any:
    def wrong(*args: Any, **options: Any) -> Any:
        kernel = limit_kernel(*args, **options)
        return lambda X: 1.25 * kernel(X)

    return wrong


SMALL: Plain = {"widths": [25, 100, 400], "seeds": 12, "networks": 400}


class LinearTheorem33(Study):
    """Networks of each width beside K = 𝒯ᵀD(ρ)𝒯 ⊗ I, and the law of their taps."""

    name = "linear-theorem-3.3"
    title = "A wide linear RNN is a convolution with scaled taps"
    source = "Implicit Bias of Linear RNNs, Theorem 3.3"
    extras = ("finite",)
    minutes = (0.1, 0.5)
    quick = (
        Unit("networks", {"widths": [25, 50, 100, 200], "seeds": 30, "networks": 400, "random_state": 0}, weight=2.0),
    )
    full = (
        Unit(
            "networks",
            {"widths": [25, 50, 100, 200, 400], "seeds": 40, "networks": 800, "random_state": 1},
            weight=15.0,
        ),
    )
    claims = (
        Claim(
            "kernel",
            "the kernel of finite linear RNNs converges to 𝒯ᵀD(ρ)𝒯 ⊗ I",
            "slope of the error within 0.05 and three standard errors of -1/2",
            "limit n → ∞",
        ),
        Claim(
            "taps",
            "taps of random wide RNNs are Gaussian with variance ν_C ν_F ν_W^j",
            "no Kolmogorov-Smirnov test and no variance rejects at 5 %, corrected for their number",
            "limit n → ∞",
            since="2026-11-18",
            before=True,
            history=(
                Criterion(
                    "no test rejects at 5 %, corrected for their number",
                    FIRST,
                    "six entries of one network were taken for independent, and no variance was tested",
                ),
            ),
        ),
        Claim(
            "independent",
            "taps of different lags are independent, (a)",
            "correlations of taps and of their squares, over all pairs of lags, don't reject at 5 %",
            "limit n → ∞",
            since="2026-11-18",
            before=True,
        ),
    )

    mutants = (
        Mutant("kernel times 1.25", ("kernel",), f"{__name__}:limit_kernel", _wrong_limit, settings=SMALL),
        Mutant("taps times 1.25", ("taps",), f"{__name__}:_taps", multiplied(1.25), settings=SMALL),
        Mutant("one factor on all lags", ("independent",), f"{__name__}:_taps", _with_one_factor, settings=SMALL),
    )

    def compute(
        self, data: Path | None, *, widths: list[int], seeds: int, networks: int, T: int = 8, random_state: int = 0
    ) -> Plain:
        """`errors` (W, S), ‖K̂ - K‖/‖K‖ over all pairs of steps (t, s), sequences and outputs; and by width and lag, of
        one entry of L_j of each of so many `networks` in units of √(ν_C ν_F ν_W^j), (W, T):

        `tap_p_values` of the Kolmogorov-Smirnov test that it is standard normal, `tap_variances` (mean squares), and
        `tap_kurtosis` (excess, zero for Gaussian numbers). `tap_correlations` and `square_correlations` (W, T, T) are
        those of the entry at two lags, and of its square: both vanish where lags are independent.
        """
        rng = np.random.default_rng(random_state)
        n_x, n_y, nu_w = 3, 2, 0.5
        X = rng.standard_normal((3, T, n_x))
        variances = {"nu_w": nu_w, "nu_f": 1.0, "nu_c": 1.0}
        limit = np.kron(limit_kernel(n_x, **variances)(X), np.eye(n_y))
        expected = nu_w ** np.arange(T)
        errors = np.empty((len(widths), seeds))
        tests = np.empty((3, len(widths), T))
        together = np.empty((2, len(widths), T, T))
        for w, width in enumerate(widths):
            for s in range(seeds):
                rnn = LinearRNN.random(width, n_x, n_y, seed=rng, **variances)
                errors[w, s] = np.linalg.norm(rnn.ntk(X) - limit) / np.linalg.norm(limit)
            taps = np.array([_taps(width, T, rng, **variances) for _ in range(networks)]) / np.sqrt(expected)
            for j, sample in enumerate(taps.T):
                tests[:, w, j] = stats.kstest(sample, "norm").pvalue, np.mean(sample**2), stats.kurtosis(sample)
            together[:, w] = np.corrcoef(taps.T), np.corrcoef(taps.T**2)
        law = dict(zip(("tap_p_values", "tap_variances", "tap_kurtosis"), tests, strict=True))
        pairs = dict(zip(("tap_correlations", "square_correlations"), together, strict=True))
        return {"widths": widths, "errors": errors, "nu_w": nu_w, **law, **pairs, "tap_samples": networks}

    def judge(self, results: Results) -> Iterator[Finding]:
        """The rate of the kernel, and the law of the taps at the largest width."""
        from ...finite.comparison import fit_slope

        found = results["networks"]
        slope = fit_slope(found.widths, found.errors)
        holds = abs(slope.value + 0.5) < 0.05 + 3 * slope.error
        weight = Proof(found.errors.shape[1], slope.error, 0.05 + 3 * slope.error, "slope")
        yield Finding("kernel", holds, f"slope {slope.value:.3f} ± {slope.error:.3f}", weight)
        count, lags = found.tap_samples, found.tap_p_values.shape[1]
        least, far = found.tap_p_values[-1].min(), np.abs(found.tap_variances[-1] - 1).max()
        error = (2 / count) ** 0.5
        allowed = float(stats.norm.isf(0.025 / (2 * lags))) * error
        n, ks = found.widths[-1], "Kolmogorov-Smirnov tests"
        ours = f"n = {n}: least p of {lags} {ks} {least:.3f}, variances within {far:.1%}"
        weight = Proof(count, error, allowed, "variance of a tap over the predicted one")
        yield Finding("taps", bool(least * 2 * lags > 0.05 and far < allowed), ours, weight)
        pairs = np.triu_indices(lags, 1)
        both = [found.tap_correlations[-1][pairs], found.square_correlations[-1][pairs]]
        p_values = [float(stats.chi2.sf(count * np.sum(each**2), len(each))) for each in both]
        narrow = float(np.abs(found.square_correlations[0][pairs]).max())
        ours = (
            f"n = {n}: p = {p_values[0]:.3f} for correlations, {p_values[1]:.3f} for those of squares, the largest "
            f" {np.abs(both[1]).max():.3f} (n = {found.widths[0]}: {narrow:.3f})"
        )
        room = float(stats.norm.isf(0.025 / (2 * len(both[0])))) * count**-0.5
        weight = Proof(count, count**-0.5, room, "correlation of two lags")
        yield Finding("independent", min(p_values) > 0.025, ours, weight)

    def figures(self, results: Results) -> dict[str, Any]:
        """Error against width."""
        from ...finite.comparison import fit_slope

        found = results["networks"]
        ax = axes_or_new()
        slope, log = fit_slope(found.widths, found.errors), np.log(found.errors)
        low, high = np.exp(np.quantile(log, (0.16, 0.84), axis=1))
        ax.fill_between(found.widths, low, high, color=COLOURS[0], alpha=0.2)
        label = f"networks, slope {slope.value:.2f} ± {slope.error:.2f}"
        ax.loglog(found.widths, np.exp(log.mean(axis=1)), "o-", color=COLOURS[0], label=label)
        title = "tangent kernel of linear RNNs, all steps and outputs"
        return {"theorem-3.3": finished(ax, "width n", "‖K̂ - K‖ / ‖K‖", title)}
