"""`LinearRNN`, h_t = W h_{t-1}/√n + F x_t, y_t = C h_t/√n (equation (1)), and its convolution (Proposition 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_choice, check_count
from .filters import design_blocks, laid_out, read_inputs
from .kernel import check_variances

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LinearRNN:
    """A linear recurrent network of n units, with the factors 1/√n of the wide limit.

    Parameters
    ----------
    W : ndarray of shape (n, n)
        Transition.
    F : ndarray of shape (n, n_x)
        Input.
    C : ndarray of shape (n_y, n)
        Output.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import LinearRNN
    >>> rnn = LinearRNN.random(100, n_x=3, n_y=2, nu_w=0.3, seed=0)
    >>> rnn(np.ones((5, 10, 3))).shape
    (5, 10, 2)
    """

    W: Array
    F: Array
    C: Array

    def __post_init__(self) -> None:
        W, F, C = (np.array(each, dtype=np.float64) for each in (self.W, self.F, self.C))
        n = len(W)
        fitting = F.shape == (n, *F.shape[1:2]) and C.shape == (*C.shape[:1], n)
        if W.shape != (n, n) or not fitting or 0 in (*F.shape, *C.shape):
            raise ValueError(
                f"W must be (n, n), F (n, n_x) and C (n_y, n); their shapes are {W.shape}, {F.shape} and {C.shape}"
            )
        for name, each in (("W", W), ("F", F), ("C", C)):
            if not np.isfinite(each).all():
                raise ValueError(f"{name} must be finite")
            each.setflags(write=False)
            object.__setattr__(self, name, each)

    @classmethod
    def random(
        cls,
        n: int,
        n_x: int = 1,
        n_y: int = 1,
        *,
        nu_w: float = 0.3,
        nu_f: float = 1.0,
        nu_c: float = 1.0,
        seed: int | np.random.Generator | None = None,
    ) -> LinearRNN:
        """Independent Gaussian entries with variances ν_W, ν_F, ν_C (equation (4))."""
        n, n_x, n_y = check_count("n", n), check_count("n_x", n_x), check_count("n_y", n_y)
        w, f, c = np.sqrt(check_variances(nu_w=nu_w, nu_f=nu_f, nu_c=nu_c))
        rng = np.random.default_rng(seed)
        return cls(
            w * rng.standard_normal((n, n)), f * rng.standard_normal((n, n_x)), c * rng.standard_normal((n_y, n))
        )

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.W)

    @property
    def n_x(self) -> int:
        """Number of inputs."""
        return int(self.F.shape[1])

    @property
    def n_y(self) -> int:
        """Number of outputs."""
        return len(self.C)

    def __call__(self, X: Any) -> Any:
        """Outputs at every step: (N, T, n_y), or a list of (T_i, n_y) for unequal lengths. Runs the states."""
        batch = read_inputs(X, channels=self.n_x)
        out = np.empty((len(batch.values), self.n_y))
        transition = self.W.T / self.n**0.5
        order = np.argsort(-batch.lengths, kind="stable")  # long ones first: those still running are a prefix
        state = np.zeros((len(batch), self.n))
        for t in range(batch.max_length):
            running = int(np.count_nonzero(batch.lengths > t))
            rows = batch.offsets[order[:running]] + t
            state[:running] = state[:running] @ transition + batch.values[rows] @ self.F.T
            out[rows] = state[:running] @ self.C.T / self.n**0.5
        return laid_out(out, batch)

    def impulse_response(self, T: int) -> Array:
        """Taps L_j = n^{-(j+1)/2} C W^j F, (T, n_y, n_x) (equation (9))."""
        if self.n_x < self.n_y:  # carry the narrower end through the powers of W
            return LinearRNN(self.W.T, self.C.T, self.F.T).impulse_response(T).transpose(0, 2, 1)
        taps = np.empty((check_count("T", T), self.n_y, self.n_x))
        transition, left = self.W / self.n**0.5, self.C / self.n**0.5
        for tap in taps:
            tap[:] = left @ self.F
            left = left @ transition
        return taps

    def tap_kernel(self, T: int) -> Array:
        """Γ, the tangent kernel of the taps: inner products of ∂L_j/∂(W, F, C), (T, n_y, n_x, T, n_y, n_x).

        All outputs are linear in the taps, so Γ holds everything about the tangent kernel of this network on any data
        (`ntk`). For n → ∞ it tends to D(ρ) ⊗ I (Theorem 3.3). O(T n²) operations, nothing larger than W is formed.
        """
        T = check_count("T", T)
        transition, root = self.W / self.n**0.5, self.n**0.5
        left, right = np.empty((T, self.n_y, self.n)), np.empty((T, self.n, self.n_x))
        left[0], right[0] = self.C / root, self.F / root
        for j in range(1, T):
            left[j], right[j] = left[j - 1] @ transition, transition @ right[j - 1]
        outer = np.einsum("iyn,jzn->iyjz", left, left, optimize=True)  # P_i P_jᵀ with P_i = n^{-(i+1)/2} C W^i
        inner = np.einsum("inx,jnw->ixjw", right, right, optimize=True)  # Q_iᵀ Q_j with Q_i = n^{-(i+1)/2} W^i F
        found = np.einsum("jykz,xw->jyxkzw", outer, np.eye(self.n_x))
        found += np.einsum("yz,jxkw->jyxkzw", np.eye(self.n_y), inner)
        # ∂L_j/∂W sums over the j places in CW…WF where W stands: i factors before it, j - 1 - i after.
        for j in range(1, T):
            for k in range(1, T):
                p, q = outer[:j, :, :k], inner[j - 1 :: -1][:, :, k - 1 :: -1]
                found[j, :, :, k] += np.einsum("iykz,ixkw->yxzw", p, q, optimize=True)
        return np.asarray(found)

    def ntk(self, X: Any, Y: Any = None) -> Array:
        """Empirical tangent kernel, one row per step of every sequence and output (outputs fastest)."""
        first = read_inputs(X, channels=self.n_x)
        second = first if Y is None else read_inputs(Y, "Y", self.n_x)
        lags = max(first.max_length, second.max_length)
        kernel = self.tap_kernel(lags).transpose(1, 4, 0, 2, 3, 5).reshape(self.n_y, self.n_y, lags * self.n_x, -1)
        a, b = (np.concatenate([rows for rows, _ in design_blocks(each, lags)]) for each in (first, second))
        blocks = np.einsum("sp,yzpq,tq->sytz", a, kernel, b, optimize=True)
        return np.asarray(blocks.reshape(len(a) * self.n_y, len(b) * self.n_y))

    @property
    def spectral_radius(self) -> float:
        """Largest modulus of an eigenvalue of W/√n; for random W it tends to √ν_W (the paper prints ν_W)."""
        return float(np.abs(np.linalg.eigvals(self.W)).max() / self.n**0.5)

    def __repr__(self) -> str:
        return f"LinearRNN(n={self.n}, n_x={self.n_x}, n_y={self.n_y})"


def from_taps(taps: Any, structure: str = "delay") -> LinearRNN:
    """A linear RNN with the impulse response `taps`, (T, n_y, n_x), of T min(n_x, n_y) units (part (b)).

    Parameters
    ----------
    taps : array-like of shape (T, n_y, n_x)
        What to realise.
    structure : "delay" or "modes"
        "delay" is a line of T memory cells that forgets after T steps: the same map as the convolution for
        sequences of any length, and stable. "modes" is the paper's construction: W has the distinct eigenvalues
        e^{2πik/T}, in real form rotations of pairs of units; it repeats its response every T steps, so it equals the
        convolution for sequences of up to T steps.

    Notes
    -----
    Both W/√n have norm one and both are exact up to rounding. Real distinct poles, as in the paper's proof, need the
    inverse of a Vandermonde matrix whose condition grows exponentially in T; the roots of unity make it a unitary
    Fourier matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.linear import from_taps
    >>> taps = np.random.default_rng(0).standard_normal((64, 2, 3))
    >>> bool(np.abs(from_taps(taps).impulse_response(64) - taps).max() < 1e-12)
    True
    """
    taps = np.asarray(taps, dtype=np.float64)
    if taps.ndim != 3 or 0 in taps.shape or not np.isfinite(taps).all():
        raise ValueError(f"taps must be finite, (T, n_y, n_x), not of shape {taps.shape}")
    T, n_y, n_x = taps.shape
    if check_choice("structure", structure, ("delay", "modes")) == "delay":
        step, start, weights = np.eye(T, k=-1), np.eye(T)[0], np.eye(T)
    else:
        step, start, weights = _rotations(T)
    # For one channel: h_t = step h_{t-1} + start x_t, and `weights[j]` reads x_{t-j} from the state.
    width = min(n_x, n_y)
    n = T * width
    W = np.kron(step, np.eye(width)) * n**0.5
    if n_x <= n_y:
        F = np.kron(start[:, None], np.eye(width))
        C = np.einsum("jk,jyx->ykx", weights, taps).reshape(n_y, n)
    else:  # the transposed network: the taps are in F
        W = W.T
        C = np.kron(start, np.eye(width))
        F = np.einsum("jk,jyx->kyx", weights, taps).reshape(n, n_x)
    # L_j = n^{-(j+1)/2} C W^j F: one factor √n is left, shared between F and C so that neither is large.
    return LinearRNN(W, F * n**0.25, C * n**0.25)


def _rotations(T: int) -> tuple[Array, Array, Array]:
    """Step, start and readout of T real modes: eigenvalues 1, e^{±2πik/T}, and -1 for even T.

    With c_k the start in mode k, S^j start has the entries cos, sin of 2πjk/T times √2/√T: an orthonormal Fourier basis
    in j, so that reading x_{t-j} is its transpose.
    """
    step, start, basis = np.zeros((T, T)), np.zeros(T), np.zeros((T, T))
    times, at = np.arange(T), 0
    for k in range(T // 2 + 1):
        angle = 2 * np.pi * k / T
        if k == 0 or 2 * k == T:
            step[at, at] = 1.0 if k == 0 else -1.0
            start[at] = 1 / T**0.5
            basis[:, at] = step[at, at] ** times / T**0.5
            at += 1
        else:
            cos, sin = np.cos(angle), np.sin(angle)
            step[at : at + 2, at : at + 2] = [[cos, -sin], [sin, cos]]
            start[at] = (2 / T) ** 0.5
            # k·times modulo T first: large arguments of cos would lose digits.
            turns = 2 * np.pi * ((k * times) % T) / T
            basis[:, at], basis[:, at + 1] = start[at] * np.cos(turns), start[at] * np.sin(turns)
            at += 2
    return step, start, basis
