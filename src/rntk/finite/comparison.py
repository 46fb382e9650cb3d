"""`compare(kernel, widths)`: how fast finite networks approach their limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..kernels import NTK
from ..kernels.network import NetworkKernel
from ..plot import COLOURS, axes_or_new
from ..runtime import progress_bar
from .average import mean_and_error, samples, seed_list
from .empirical import MEMORY
from .network import network

Array = NDArray[np.float64]

#: Lengths of the Gaussian signals compared unless data is given, and size of the vectors for `NTK`.
LENGTHS = (3, 4, 5, 6, 7, 8)
VECTORS = (6, 8)


class Slope(NamedTuple):
    """Slope of log error against log width, and its standard error; theory expects -1/2."""

    value: float
    error: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """Errors of finite networks against the limit, ‖K̂ - K‖/‖K‖ in the Frobenius norm; from `compare`.

    Attributes
    ----------
    kernel : str
        The kernel, as it prints.
    widths : tuple of int
        W widths.
    seeds : tuple of int
        S seeds.
    ntk, nngp : ndarrays of shape (W, S)
        Error of each network.
    """

    kernel: str
    widths: tuple[int, ...]
    seeds: tuple[int, ...]
    ntk: Array
    nngp: Array

    @property
    def ntk_slope(self) -> Slope:
        """Fit of the errors of the tangent kernel."""
        return fit_slope(self.widths, self.ntk)

    @property
    def nngp_slope(self) -> Slope:
        """Fit of the errors of the NNGP kernel."""
        return fit_slope(self.widths, self.nngp)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, for JSON."""
        errors = {name: {"errors": getattr(self, name).tolist()} for name in ("ntk", "nngp")}
        return {"kernel": self.kernel, "widths": list(self.widths), "seeds": list(self.seeds), **errors}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Comparison:
        """The comparison whose `to_dict` gave `values`."""
        errors = [np.array(values[name]["errors"], dtype=np.float64) for name in ("ntk", "nngp")]
        return cls(values["kernel"], tuple(values["widths"]), tuple(values["seeds"]), *errors)

    def plot(self, ax: Any = None) -> Any:
        """Errors against width on logarithmic axes, beside a line of slope -1/2; returns the axes.

        Needs matplotlib: pip install "rntk[plot]".
        """
        ax = axes_or_new(ax)
        widths = np.array(self.widths, dtype=np.float64)
        series = (
            ("NTK", self.ntk, self.ntk_slope, COLOURS[0], "o"),
            ("NNGP", self.nngp, self.nngp_slope, COLOURS[1], "s"),
        )
        for name, errors, slope, colour, marker in series:
            mean, error = mean_and_error(errors)
            label = f"{name}, slope {_show(slope)}"
            ax.errorbar(widths, mean, np.nan_to_num(error), color=colour, marker=marker, capsize=3, label=label)
        start = np.nanmean(self.ntk[0])
        ax.plot(widths, start * (widths / widths[0]) ** -0.5, color="grey", linestyle="--", label="slope -1/2")
        ax.set(xscale="log", yscale="log", xlabel="width", ylabel="relative error", title=self.kernel)
        ax.legend(frameon=False)
        return ax

    def __repr__(self) -> str:
        means = [mean_and_error(errors)[0] for errors in (self.ntk, self.nngp)]
        lines = [
            f"{self.kernel} against networks of finite width, {len(self.seeds)} each",
            "  width  NTK error  NNGP error",
            *(f"{w:7d}{a:11.4f}{b:12.4f}" for w, a, b in zip(self.widths, *means, strict=True)),
            f"  slope {_show(self.ntk_slope)} (NTK), {_show(self.nngp_slope)} (NNGP); theory -1/2",
        ]
        return "\n".join(lines)


def compare(
    kernel: NetworkKernel,
    widths: Sequence[int] = (32, 64, 128, 256, 512),
    seeds: int | Iterable[int] = 10,
    X: Any = None,
    *,
    dtype: Any = "float32",
    memory: int = MEMORY,
    progress: bool | None = None,
) -> Comparison:
    """Errors of finite networks against `kernel`, for each width and seed.

    A single network is off by O(1/√n): the error falls with slope -1/2 on logarithmic axes.

    Parameters
    ----------
    kernel : RNTK or NTK
        Without `normalize`.
    widths : sequence of int
        Widths to try.
    seeds : int or iterable of int
        How many networks of each width, or their seeds.
    X : sequences, optional
        Six Gaussian signals of length 3 to 8 (for `NTK`, vectors) unless given.
    dtype : "float32" or "float64"
        Precision of the networks. The limit is computed in that of the kernel.
    memory : int
        As for `empirical_ntk`.
    progress : bool or None
        None shows a bar on a terminal after two seconds; True always; False never.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from rntk import RNTK, finite
    >>> comparison = finite.compare(RNTK(), widths=(32, 128, 512), seeds=10)
    >>> abs(comparison.ntk_slope.value + 0.5) < 0.2
    True
    """
    chosen = seed_list(seeds)
    nets = [network(kernel, width) for width in widths]
    if not nets:
        raise ValueError("widths must not be empty")
    data = gaussian_signals(kernel) if X is None else X
    limit = kernel.both(data)
    errors = np.empty((2, len(nets), len(chosen)))
    # The work grows with the square of the width.
    with progress_bar("finite networks", sum(net.width**2 for net in nets) * len(chosen), progress) as advance:
        for i, net in enumerate(nets):
            for j, sample in enumerate(samples(net, data, None, chosen, dtype, memory)):
                errors[:, i, j] = [relative_distance(sample.ntk, limit.ntk), relative_distance(sample.nngp, limit.nngp)]
                advance(net.width**2)
    return Comparison(repr(kernel), tuple(net.width for net in nets), tuple(chosen), errors[0], errors[1])


def gaussian_signals(kernel: NetworkKernel, seed: int = 0) -> Any:
    """Data to compare on when none is given."""
    rng = np.random.default_rng(seed)
    if isinstance(kernel, NTK):
        return rng.standard_normal(VECTORS)
    return [rng.standard_normal(length) for length in LENGTHS]


def relative_distance(got: NDArray[Any], expected: NDArray[Any]) -> float:
    """‖got - expected‖/‖expected‖ in the Frobenius norm."""
    scale = np.linalg.norm(expected)
    if scale == 0:
        raise ValueError("the kernel is zero on these data: there is nothing to be relative to")
    return float(np.linalg.norm(got.astype(np.float64) - expected) / scale)


def fit_slope(widths: Sequence[float], errors: Array) -> Slope:
    """Least squares of the log error of every network against the log of its width.

    Logarithms first, means after: errors of narrow networks have long tails, and one outlier would tilt a fit of means.
    """
    if len(set(widths)) < 2 or not (errors > 0).all():
        return Slope(float("nan"), float("nan"))
    x = np.repeat(np.log(np.asarray(widths, dtype=np.float64))[:, None], errors.shape[1], axis=1).ravel()
    y = np.log(errors).ravel()
    fit = stats.linregress(x, y)
    return Slope(float(fit.slope), float(fit.stderr) if len(x) > 2 else float("nan"))


def _show(slope: Slope) -> str:
    return f"{slope.value:.3f}" + ("" if np.isnan(slope.error) else f" ± {slope.error:.3f}")
