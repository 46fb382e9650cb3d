"""The recursion q_{t+1} = Σ_i A_i G_i(q_t, u_t)/√n as the caller describes it, checked once, and its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import check_count
from .gaussian import Array

#: G(q) or G(q, u): rows (B, d_q) and (B, d_u) to rows (B, d_q).
RowFunction = Callable[..., Any]

#: Negative eigenvalues and asymmetry of `cov0`, relative to its largest entry, that pass as rounding.
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Recursion:
    """Everything but the width.

    Attributes
    ----------
    functions : tuple of RowFunction
        G_i.
    nu : ndarray
        (L,) ν_i, the variance of the entries of A_i.
    cov0 : ndarray
        (d, d) covariance of a row of q_0.
    T : int
        Number of states, q_0 to q_{T-1}.
    inputs : ndarray or None
        (M, T, d_u) equally likely input paths, or None.
    """

    functions: tuple[RowFunction, ...]
    nu: Array
    cov0: Array
    T: int
    inputs: Array | None

    @property
    def d(self) -> int:
        """d_q, the length of a row."""
        return len(self.cov0)

    @property
    def active(self) -> list[int]:
        """Functions that count: those with ν_i > 0."""
        return [int(i) for i in np.flatnonzero(self.nu)]

    @property
    def paths(self) -> int:
        """M, 1 without inputs."""
        return 1 if self.inputs is None else len(self.inputs)

    def draw_paths(self, count: int, rng: np.random.Generator) -> Array | None:
        """(count, T, d_u) input paths, each of the M as often as any other as far as `count` allows."""
        if self.inputs is None:
            return None
        return np.asarray(self.inputs[rng.permutation(self.paths)[np.arange(count) % self.paths]])

    def values(self, i: int, t: int, q: Array, u: Array | None) -> Array:
        """(B, d) G_i of rows q, (B, d), and inputs u, (B, d_u), at step t; finite."""
        given = [q] if u is None else [q, u]
        given = [each.view() for each in given]
        for each in given:
            each.flags.writeable = False
        call = f"G[{i}](q)" if u is None else f"G[{i}](q, u)"
        where = f"at step {t}, called as {call} with " + " and ".join(
            f"{name} of shape {each.shape}" for name, each in zip("qu", given, strict=False)
        )
        try:
            with np.errstate(all="ignore"):  # what isn't finite is reported below
                found = np.asarray(self.functions[i](*given))
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(f"G[{i}] failed {where}: {error}") from error
        if found.shape != q.shape or found.dtype.kind not in "fiub":
            raise ValueError(
                f"G[{i}] must return real numbers of shape {q.shape}, a row for each row of q, but returned "
                f"{found.dtype} of shape {found.shape} {where}"
            )
        found = found.astype(np.float64, copy=False)
        bad = ~np.isfinite(found).all(axis=1)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            seen = f"q = {q[row]}" if u is None else f"q = {q[row]}, u = {u[row]}"
            raise ValueError(
                f"G[{i}] is not finite for {bad.sum()} of {len(q)} rows at step {t}, the first with {seen}; "
                "G must be finite everywhere, since Gaussian rows reach everywhere"
            )
        return found

    def checked(self, block: Array, s: int, t: int) -> Array:
        """`block` = cov(Q_s, Q_t), which must be finite."""
        if not np.isfinite(block).all():
            raise ValueError(
                f"cov(Q_{s}, Q_{t}) is too large for float64: the recursion explodes. Take smaller nu, or T < {t + 1}"
            )
        return block


def read_recursion(G: Any, nu: Any, cov0: Any, T: Any, inputs: Any) -> Recursion:
    """A `Recursion` from what a caller passes, or one ValueError that says what was expected and what came."""
    functions = _read_functions(G)
    steps = read_count("T", T, 1, "the number of states Q_0 to Q_{T-1}")
    return Recursion(functions, _read_nu(nu, len(functions)), _read_cov0(cov0), steps, _read_inputs(inputs, steps))


def read_count(name: str, value: Any, least: int, meaning: str) -> int:
    """`value` as an integer that is not below `least`."""
    return check_count(f"{name}, {meaning},", value, least)


def _read_functions(G: Any) -> tuple[RowFunction, ...]:
    if callable(G):
        raise ValueError(f"G must be a list of functions, one for each matrix A_i, not {G!r}; try [G]")
    if not isinstance(G, Sequence) or isinstance(G, str) or not G or not all(callable(each) for each in G):
        raise ValueError(f"G must be a list of at least one function, one for each matrix A_i, not {G!r:.80}")
    return tuple(G)


def _read_array(name: str, value: Any, shape: str) -> Array:
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, {shape}, not {value!r:.80}") from None
    if not np.isfinite(found).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(found))[0])
        raise ValueError(f"{name} must be finite, but {name}[{', '.join(map(str, at))}] is {found[at]}")
    return found


def _read_nu(nu: Any, count: int) -> Array:
    found = _read_array("nu", nu, f"({count},)")
    if found.shape != (count,) and (found.ndim or count > 1):
        raise ValueError(f"nu must hold one variance for each of the {count} functions, but has shape {found.shape}")
    if (found < 0).any():
        raise ValueError(f"nu holds variances and can't be negative, but is {nu!r:.80}")
    return found.reshape(count)


def _read_cov0(cov0: Any) -> Array:
    found = _read_array("cov0", cov0, "(d_q, d_q) or a scalar for d_q = 1")
    found = found.reshape(1, 1) if found.ndim == 0 else found
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise ValueError(f"cov0 must be square, (d_q, d_q), or a scalar for d_q = 1, but has shape {found.shape}")
    slack = ROUNDING * np.abs(found).max()
    gap = np.abs(found - found.T)
    if (gap > slack).any():
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(f"cov0 must be symmetric, but cov0[{i}, {j}] is {found[i, j]:.6g} and not {found[j, i]:.6g}")
    found = (found + found.T) / 2
    smallest = float(np.linalg.eigvalsh(found)[0])
    if smallest < -slack:
        raise ValueError(f"cov0 must be positive semi-definite, but has the eigenvalue {smallest:.6g}")
    return found


def _read_inputs(inputs: Any, steps: int) -> Array | None:
    if inputs is None:
        return None
    shapes = f"(T, d_u) or (M, T, d_u) with T = {steps}"
    found = _read_array("inputs", inputs, shapes)
    if found.ndim not in (2, 3) or found.shape[-2] != steps or not found.size:
        hint = "; try inputs[:, None]" if found.shape == (steps,) else ""
        raise ValueError(f"inputs must have the shape {shapes}, but have {found.shape}{hint}")
    return found.reshape(-1, *found.shape[-2:])
