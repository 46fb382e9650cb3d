"""The phase of a recurrent network: whether differences between sequences die out or grow, and how fast.

With inputs of one variance r at every step, the variance of a unit goes to a fixed point, q* = σ_w² E[φ²] + σ_u² r +
σ_b², and the correlation of two sequences whose inputs have the correlation ρ to one of C(c). The slope χ of C at one
decides: below one small differences are forgotten (order), above one they grow (chaos), and on the edge a network
remembers longest. See Poole et al. 2016, Schoenholz et al. 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..activations import Activation, as_activation
from ..errors import check_positive
from ..kernels import RNTK
from ..plot import COLOURS, axes_or_new
from ..programs import ProgramKernel, nonlinearity
from ..programs.expectations import GaussianSide, expectations
from ..runtime import text_table

Array = NDArray[np.float64]
#: χ this close to one is called critical.
CRITICAL = 1e-6
#: Variances beyond it are no fixed point.
LARGEST = 1e12


@dataclass(frozen=True, repr=False)
class Phase:
    """Fixed points of one recurrent layer, and how fast it goes there.

    Attributes
    ----------
    state : {"ordered", "critical", "chaotic"}
    variance : float
        q*, infinite if variances grow without end.
    chi : float
        χ = σ_w² E[φ'²] at q*: by what small differences, and squared gradients, are multiplied at each step.
    correlation : float
        c*, where the correlation of two sequences goes whose inputs have the correlation given.
    slope : float
        dC/dc at c*.
    time_scale : float
        Steps after which a difference of correlations has fallen to 1/e: -1/log(slope).
    variance_scale : float
        The same of variances.
    nngp, ntk : float
        𝒦 and Θ of a sequence with itself for T → ∞: Θ* = 𝒦* + σ_v² E[φ'²] q*/(1 - χ), infinite unless ordered.
    """

    state: str
    variance: float
    chi: float
    correlation: float
    slope: float
    time_scale: float
    variance_scale: float
    nngp: float
    ntk: float
    sigma_w: float
    sigma_b: float
    activation: Activation
    inputs: float

    def __repr__(self) -> str:
        rows = [
            ["variance q*", f"{self.variance:.6g}"],
            ["χ", f"{self.chi:.6g}"],
            ["correlation c*", f"{self.correlation:.6g}"],
            ["time scale", f"{self.time_scale:.4g} steps"],
            ["Θ for T → ∞", f"{self.ntk:.6g}"],
        ]
        return text_table(["phase", self.state], rows, left=2)

    def plot(self, ax: Any = None) -> Any:
        """The edge of chaos in the plane of σ_w and σ_b, and this network; returns the axes.

        Needs matplotlib: pip install "rntk[plot]".
        """
        ax = axes_or_new(ax)
        sigma_w, sigma_b = edge_of_chaos(self.activation, inputs=self.inputs)
        ax.plot(sigma_w, sigma_b, color=COLOURS[0], label=f"edge of chaos, {self.activation.name}")
        ax.plot([self.sigma_w], [self.sigma_b], "o", color=COLOURS[1], label=f"this network: {self.state}")
        ax.set(xlabel="deviation of the recurrent weights, σ_w", ylabel="deviation of the biases, σ_b")
        ax.legend(frameon=False)
        return ax


def phase(kernel: Any, *, inputs: float = 0.0, correlation: float = 1.0) -> Phase:
    """The phase of a recurrent layer under inputs without end.

    Parameters
    ----------
    kernel : RNTK or ProgramKernel
        Of one layer of Elman cells.
    inputs : float
        r = |x_t|²/m at every step.
    correlation : float
        ρ of the inputs of two sequences, at equal steps.

    Returns
    -------
    Phase

    Examples
    --------
    >>> from rntk import RNTK
    >>> from rntk.theory import phase
    >>> phase(RNTK("tanh", sigma_w=0.9)).state, phase(RNTK("tanh", sigma_w=1.5)).state
    ('ordered', 'chaotic')
    >>> phase(RNTK("relu", sigma_w=2**0.5)).state
    'critical'

    References
    ----------
    Schoenholz, Gilmer, Ganguli, Sohl-Dickstein, Deep Information Propagation, ICLR 2017.
    """
    check_positive("inputs", inputs, or_zero=True)
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation must lie between -1 and 1, not {correlation!r}")
    phi, w, u, b, v = _parameters(kernel)
    rest = u**2 * inputs + b**2
    q = fixed_point(lambda q: w**2 * _squares(phi, q)[0] + rest, rest)
    if not np.isfinite(q):
        square, slope = _squares(phi, 1.0)
        chi = w**2 * slope if phi.homogeneous else np.nan
        state = "critical" if abs(chi - 1) < CRITICAL else "chaotic"
        return Phase(state, np.inf, chi, 1.0, chi, np.inf, np.inf, np.inf, np.inf, w, b, phi, inputs)
    square, slope = _squares(phi, q)
    chi = w**2 * slope
    state = "critical" if abs(chi - 1) < CRITICAL else "ordered" if chi < 1 else "chaotic"
    c, at = _correlation(phi, q, w, b**2 + u**2 * inputs * correlation, chi)
    step = 1e-5 * max(q, 1e-3)
    moving = (
        w**2 * (_squares(phi, q + step)[0] - _squares(phi, max(q - step, 0.0))[0]) / (q + step - max(q - step, 0.0))
    )
    nngp = v**2 * square
    ntk = nngp + v**2 * slope * q / (1 - chi) if chi < 1 - CRITICAL else nngp if q == 0 else np.inf
    return Phase(state, q, chi, c, at, _scale(at), _scale(moving), nngp, ntk, w, b, phi, inputs)


def edge_of_chaos(activation: Any, *, inputs: float = 0.0, variances: Any = None) -> tuple[Array, Array]:
    """(σ_w, σ_b) on the edge of chaos, for one variance q* after another.

    On the edge σ_w² = 1/E[φ'²] and σ_b² = q* - σ_w² E[φ²] - r, with expectations at q*; points without such a bias are
    left out. `inputs` is r, with the deviation of the input weights in it.

    Examples
    --------
    >>> from rntk.theory import edge_of_chaos
    >>> sigma_w, sigma_b = edge_of_chaos("relu")
    >>> bool(abs(sigma_w**2 - 2).max() < 1e-12 and sigma_b.max() < 1e-6)
    True
    """
    phi = as_activation(activation)
    q = np.geomspace(1e-8, 20.0, 400) if variances is None else np.asarray(variances, dtype=np.float64)
    squares, slopes = GaussianSide(nonlinearity(phi), np.zeros_like(q), q).square
    w = 1 / slopes
    b = q - w * squares - inputs
    keep = b >= -1e-12 * q
    return np.sqrt(w[keep]), np.sqrt(np.maximum(b[keep], 0.0))


def _parameters(kernel: Any) -> tuple[Activation, float, float, float, float]:
    if isinstance(kernel, ProgramKernel) and kernel.cell == "elman":
        given = kernel.get_params()
        names = ("activation", "sigma_w", "sigma_u", "sigma_b", "sigma_v", "depth")
        kernel = RNTK(**{name: given[name] for name in names})
    if not isinstance(kernel, RNTK) or kernel.network().depth != 1:
        raise ValueError(
            f"phase knows one layer of Elman cells, RNTK(depth=1) or ProgramKernel('elman'), not {kernel!r}"
        )
    network = kernel.network()
    return network.activation, network.sigma_w[0], network.sigma_u[0], network.sigma_b[0], network.sigma_v


def _squares(phi: Activation, q: float) -> tuple[float, float]:
    """E[φ²] and E[φ'²] at a variance."""
    if q == 0:
        value, slope = phi(np.zeros(1))[0], phi.derivative(np.zeros(1))[0]
        return float(value**2), float(_squares(phi, 1.0)[1] if phi.homogeneous else slope**2)
    square, slope = GaussianSide(nonlinearity(phi), np.zeros(1), np.array([q])).square
    return float(square[0]), float(slope[0])


def fixed_point(step: Callable[[float], float], start: float) -> float:
    """Where variances go from `start`, or from one where nothing comes in; infinite if they grow without end."""
    low = start if start > 0 else 1.0
    if abs(step(low) - low) <= 1e-14 * low:
        return low
    factor = 2.0 if step(low) > low else 0.5
    high = low * factor
    while (step(high) > high) == (factor > 1):
        low, high = high, high * factor
        if high > LARGEST or (factor < 1 and high < start):
            return np.inf if factor > 1 else start
        if high < 1e-14:
            return 0.0
    return float(brentq(lambda q: step(q) - q, min(low, high), max(low, high), xtol=1e-15, rtol=1e-14))


def _correlation(phi: Activation, q: float, w: float, shared: float, chi: float) -> tuple[float, float]:
    """c* and the slope of C there; C(c) = (σ_w² V(q, q, q c) + what the inputs and biases share)/q."""
    if q == 0:
        return 1.0, chi
    grid = np.concatenate([np.linspace(-1.0, 1.0, 2001)[:-1], 1 - np.geomspace(1e-3, 1e-9, 60), [1.0]])

    def image(c: Array) -> tuple[Array, Array]:
        side = GaussianSide(nonlinearity(phi), np.zeros(len(c)), np.full(len(c), q))
        value, slope = expectations(side, side, q * c, crossed=False)
        return (w**2 * value + shared) / q, w**2 * slope

    gap = image(grid)[0] - grid
    falls = np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0))
    if (chi <= 1 and abs(gap[-1]) < 1e-12) or not len(falls):
        return 1.0, chi
    low, high = grid[falls[0]], grid[falls[0] + 1]
    c = float(brentq(lambda c: float(image(np.array([c]))[0][0] - c), low, high, xtol=1e-14)) if low < high else high
    return c, float(image(np.array([c]))[1][0])


def _scale(slope: float) -> float:
    """Steps in which something that is multiplied by a slope falls to 1/e."""
    if not 0 < abs(slope) < 1:
        return 0.0 if slope == 0 else np.inf
    return float(-1 / np.log(abs(slope)))
