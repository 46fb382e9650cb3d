"""Linear RNN paper, Theorem 3.3: taps of wide networks are Gaussian, their kernel is that of a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ...linear import LinearRNN, sequence_kernel
from ...plot import COLOURS, axes_or_new
from ...runtime import progress_bar
from .record import Record

if TYPE_CHECKING:
    from ...finite.comparison import Slope

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearLimit(Record):
    """How finite linear RNNs approach their limit.

    Attributes
    ----------
    widths : (W,). errors : (W, S) ‖K̂ - K‖/‖K‖ over all pairs of steps (t, s), sequences and outputs.
    nu_w : variance of W's entries. lags : T.
    tap_p_values : (W, T) for each lag, of the Kolmogorov-Smirnov test that the entries of L_j over all networks are
        N(0, ν_C ν_F ν_W^j).
    tap_variances : (W, T) their mean squares over ν_C ν_F ν_W^j. tap_samples : entries behind each of them.
    tap_kurtosis : (W, T) excess kurtosis, zero for Gaussian numbers.
    """

    widths: tuple[int, ...]
    errors: Array
    nu_w: float
    tap_p_values: Array
    tap_variances: Array
    tap_kurtosis: Array
    tap_samples: int

    @property
    def slope(self) -> Slope:
        """Slope of log error against log width; theory says -1/2."""
        from ...finite.comparison import fit_slope

        return fit_slope(self.widths, self.errors)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "widths": list(self.widths),
            "errors": self.errors.tolist(),
            "nu_w": self.nu_w,
            "slope": self.slope._asdict(),
            "tap_p_values": self.tap_p_values.tolist(),
            "tap_variances": self.tap_variances.tolist(),
            "tap_kurtosis": self.tap_kurtosis.tolist(),
            "tap_samples": self.tap_samples,
        }

    def plot(self, ax: Any = None) -> Any:
        """Error against width; returns the axes."""
        ax = axes_or_new(ax)
        slope = self.slope
        low, high = np.exp(np.quantile(np.log(self.errors), (0.16, 0.84), axis=1))
        middle = np.exp(np.log(self.errors).mean(axis=1))
        ax.fill_between(self.widths, low, high, color=COLOURS[0], alpha=0.2)
        ax.loglog(
            self.widths, middle, "o-", color=COLOURS[0], label=f"networks, slope {slope.value:.2f} ± {slope.error:.2f}"
        )
        ax.set(xlabel="width n", ylabel="‖K̂ - K‖ / ‖K‖", title="tangent kernel of linear RNNs, all steps and outputs")
        ax.legend(frameon=False)
        return ax


def linear_limit(
    widths: Sequence[int] = (25, 50, 100, 200, 400, 800),
    seeds: int = 40,
    *,
    n_x: int = 3,
    n_y: int = 2,
    T: int = 8,
    sequences: int = 3,
    nu_w: float = 0.5,
    nu_f: float = 1.0,
    nu_c: float = 1.0,
    random_state: int = 0,
    progress: bool | None = None,
) -> LinearLimit:
    """Theorem 3.3: `seeds` networks of each width beside K = 𝒯ᵀD(ρ)𝒯 ⊗ I, and the law of their taps.

    Examples
    --------
    >>> from rntk.papers.experiments import linear_limit
    >>> found = linear_limit(widths=(20, 80, 320), seeds=6, T=4)
    >>> abs(found.slope.value + 0.5) < 0.3
    True
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((sequences, T, n_x))
    variances = {"nu_w": nu_w, "nu_f": nu_f, "nu_c": nu_c}
    limit = sequence_kernel(X, outputs=n_y, **variances)
    expected = nu_c * nu_f * nu_w ** np.arange(T)
    errors = np.empty((len(widths), seeds))
    tests = np.empty((3, len(widths), T))
    with progress_bar("networks", len(widths) * seeds, progress) as advance:
        for w, width in enumerate(widths):
            taps = np.empty((T, seeds, n_y * n_x))
            for s in range(seeds):
                rnn = LinearRNN.random(width, n_x, n_y, seed=rng, **variances)
                errors[w, s] = np.linalg.norm(rnn.ntk(X) - limit) / np.linalg.norm(limit)
                taps[:, s] = rnn.impulse_response(T).reshape(T, -1)
                advance(1)
            for j in range(T):
                sample = taps[j].ravel() / np.sqrt(expected[j])
                tests[:, w, j] = stats.kstest(sample, "norm").pvalue, np.mean(sample**2), stats.kurtosis(sample)
    p_values, squares, kurtosis = tests
    return LinearLimit(tuple(widths), errors, nu_w, p_values, squares, kurtosis, seeds * n_x * n_y)
