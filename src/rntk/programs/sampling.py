"""Samples of all vectors of a program, for programs whose expectations have no closed form.

One sample is one unit of the infinitely wide network: all its numbers, at all steps of all sequences, jointly. They are
drawn step by step. A product of a matrix with a vector a is Gaussian, with covariances σ² E[a a'] over all steps and
sequences that went before, and E is the mean over the samples: so covariances are those of some vectors, positive
semi-definite, and later sequences are drawn given earlier ones, which stay as they are. Where there are more steps than
samples a real network of this width takes the place, which has the same law.

Normal numbers come from scrambled Sobol points, their dimensions in random order, several scrambles apart: each is a
recursion of its own, and their spread is the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from .program import INPUT, ONES, LinComp, MatMul, Nonlin, Normalise, Program

Array = NDArray[Any]
#: Dimensions of Sobol points that are known; beyond them numbers are plain random.
DIMENSIONS = 21201
#: White noise on Gaussian vectors, relative to the largest variance: it keeps factors of covariances apart.
NUGGET = 1e-10
BITS = 32


@cache
def sobol_directions(count: int) -> NDArray[np.uint32]:
    """(count, dimensions) direction numbers of Sobol's sequence, those of the bits of an index below 2^count."""
    from scipy.stats import qmc

    engine = qmc.Sobol(DIMENSIONS, scramble=False)
    found, before = [], np.zeros(DIMENSIONS, dtype=np.uint32)
    for bit in range(count):
        engine.reset()
        engine.fast_forward(2**bit)
        point = (engine.random(1)[0] * 2.0**BITS).astype(np.uint32)
        before = point ^ before  # the Gray code of 2^b has two bits, b and b - 1
        found.append(before)
    return np.stack(found)


class Noise:
    """Standard normal numbers, a row of M at a time: scrambled Sobol points, or plain random ones."""

    def __init__(self, points: int, rng: np.random.Generator, *, sobol: bool) -> None:
        self.points, self.rng = points, rng
        self.bits = int(points - 1).bit_length()
        self.sobol = sobol and points == 2**self.bits
        self.dimensions = np.empty(0, np.int64)
        self.used = 0

    def reserve(self, count: int) -> None:
        """Say how many rows come next: they share the lowest free dimensions, in random order."""
        first = len(self.dimensions)
        free = min(count, DIMENSIONS - first) if self.sobol else 0
        self.dimensions = np.concatenate([self.dimensions, first + self.rng.permutation(max(free, 0))])

    def rows(self, count: int) -> Array:
        """(count, M) numbers."""
        chosen = self.dimensions[self.used : self.used + count]
        self.used += count
        plain = self.rng.standard_normal((count - len(chosen), self.points))
        return np.concatenate([self._sobol(chosen), plain]) if len(chosen) else plain

    def _sobol(self, dimensions: NDArray[np.int64]) -> Array:
        directions = sobol_directions(self.bits)[:, dimensions]
        # A random lower triangular matrix of bits on the digits of each coordinate, then a shift.
        scrambled, one = np.zeros_like(directions), np.uint32(1)
        for k in range(BITS):
            place = np.uint32(BITS - 1 - k)
            column = self.rng.integers(0, 2**32, len(dimensions), dtype=np.uint32)
            column = (column & ((one << place) - one)) | (one << place)
            scrambled ^= ((directions >> place) & one) * column
        x = self.rng.integers(0, 2**32, (len(dimensions), 1), dtype=np.uint32)
        for direction in scrambled:
            x = np.concatenate([x, x ^ direction[:, None]], axis=1)
        return np.asarray(ndtri((x + 0.5) / 2.0**BITS))


@dataclass(eq=False)
class Growing:
    """Vectors that matrices multiply, as far as they are drawn, and the factor of their second moments.

    All matrices that multiply the same vectors share it; each has noise of its own.
    """

    sources: Array
    root: Array
    noise: dict[Any, Array] = field(default_factory=dict)

    def extend(self, sources: Array) -> None:
        """Take in more vectors, (k, M)."""
        old, new = len(self.sources), len(sources)
        self.sources = np.concatenate([self.sources, sources])
        covariance = sources @ self.sources.T / sources.shape[1]
        grown = np.zeros((old + new, old + new))
        grown[:old, :old] = self.root
        if old:
            grown[old:, :old] = solve_triangular(self.root, covariance[:, :old].T, lower=True, check_finite=False).T
        rest = covariance[:, old:] - grown[old:, :old] @ grown[old:, :old].T
        largest = np.diagonal(covariance[:, old:]).max()
        rest[np.diag_indices(new)] += NUGGET * max(largest, 1e-300)
        grown[old:, old:] = np.linalg.cholesky((rest + rest.T) / 2)
        self.root = grown

    def product(self, matrix: Any, count: int, noise: Noise) -> Array:
        """(count, M) products of a matrix with the vectors that came last, given all its products so far."""
        known = self.noise.get(matrix, np.empty((0, noise.points)))
        self.noise[matrix] = np.concatenate([known, noise.rows(len(self.sources) - len(known))])
        return np.asarray(self.root[-count:] @ self.noise[matrix])


@dataclass(eq=False)
class Replicate:
    """One set of M samples.

    Attributes
    ----------
    program : Program
    points : int
        M.
    tied : bool
    network : tuple of int or None
        Where products are those of real matrices, what their entries are drawn from; these depend on nothing else.
    noise : Noise
        Of products, and of all that is the same for all sequences.
    """

    program: Program
    points: int
    tied: bool
    network: tuple[int, ...] | None
    noise: Noise
    growing: dict[Any, Growing] = field(default_factory=dict)
    fixed: dict[Any, Array] = field(default_factory=dict)

    def run(self, sequences: list[Array], keep: Callable[[dict[str, Any], list[int], int], None]) -> None:
        """Draw all vectors of all steps of some sequences, (T_i, m) each, given those drawn before."""
        program, shape = self.program, (len(sequences), self.points)
        products = sum(isinstance(each, MatMul) and each.of[0] != INPUT for each in program.instructions)
        steps = 1 if self.tied else max(map(len, sequences))
        new = 0 if self.fixed else steps * (len(program.weights) - products) * max(1, sequences[0].shape[1])
        self.noise.reserve(products * sum(map(len, sequences)) + new)
        states = {
            name: sigma * self._first(name, sequences) if sigma else np.zeros(shape)
            for name, sigma in zip(program.states, program.initial, strict=True)
        }
        for t in range(max(map(len, sequences))):
            live = [i for i, each in enumerate(sequences) if len(each) > t]
            x = np.stack([sequences[i][t] for i in live])
            values: dict[str, Any] = {f"{name}-": state[live] for name, state in states.items()}
            self.step(values, x, t)
            for name, state in states.items():
                state[live] = values[name]
            keep(values, live, t)

    def step(self, values: dict[str, Any], x: Array, t: int) -> None:
        """Fill in all vectors of a step, (L, M) each."""
        taken: set[Any] = set()  # vectors that a matrix has multiplied in this step already
        values[ONES] = np.ones((1, self.points))
        for weight in self.program.weights:
            if weight.vector:
                drawn = self._fixed((weight.name, None if self.tied else t), (1,))
                values[weight.name] = weight.mean + weight.sigma * drawn
        for each in self.program.instructions:
            of: list[Any] = [values.get(name) for name in each.of]
            out: Any
            if isinstance(each, MatMul):
                out = self._product(each, x if each.of[0] == INPUT else of[0], t, taken)
            elif isinstance(each, LinComp):
                out = sum(c * v for c, v in zip(each.coefficients, of, strict=True))
            elif isinstance(each, Nonlin):
                out = each.function.value(*of)
            else:
                assert isinstance(each, Normalise)
                mean, over = moments_over_units(of[0])
                out = (of[0] - mean) * over
            values[each.out] = np.broadcast_to(out, (len(x), self.points))

    def _first(self, name: str, sequences: list[Array]) -> Array:
        """(N, M) numbers behind a state before the first step, each sequence's own."""
        if self.network is None:
            return self.noise.rng.standard_normal((len(sequences), self.points))
        return np.stack([self._keyed((name, each.tobytes()), (self.points,)) for each in sequences])

    def _keyed(self, key: Any, shape: tuple[int, ...]) -> Array:
        """Normal numbers that depend on a name only."""
        assert self.network is not None
        seed, *branch = self.network
        sequence = np.random.SeedSequence(seed, spawn_key=(*branch, crc32(repr(key).encode())))
        return np.random.default_rng(sequence).standard_normal(shape)

    def _fixed(self, key: Any, shape: tuple[int, ...]) -> Array:
        """Noise that is the same for all sequences: of vectors of weights, and of matrices that multiply inputs."""
        if key not in self.fixed:
            size = shape[0], self.points
            self.fixed[key] = self.noise.rows(shape[0]) if self.network is None else self._keyed(key, size)
        return self.fixed[key]

    def _product(self, each: MatMul, source: Array, t: int, taken: set[Any]) -> Array:
        sigma, key = self.program.weight[each.matrix].sigma, (each.matrix, None if self.tied else t)
        if each.of[0] == INPUT:
            columns = source.shape[1]
            return np.asarray(sigma / np.sqrt(columns) * (source @ self._fixed(key, (columns,))))
        if not source.any():
            return np.zeros_like(source)
        if self.network is not None:
            if key not in self.fixed:
                self.fixed[key] = self._keyed(key, (self.points, self.points))
            return np.asarray(sigma / np.sqrt(self.points) * (source @ self.fixed[key]))
        alone = (
            sum(isinstance(other, MatMul) and other.matrix == each.matrix for other in self.program.instructions) == 1
        )
        group = each.of[0] if alone else each.matrix, key[1]
        if group not in self.growing:
            self.growing[group] = Growing(np.empty((0, self.points)), np.empty((0, 0)))
        growing = self.growing[group]
        if not alone or group not in taken:
            growing.extend(source)
            taken.add(group)
        return sigma * growing.product(each.matrix, len(source), self.noise)


def moments_over_units(values: Array) -> tuple[Array, Array]:
    """The mean over samples and one over the deviation, (L, 1) each."""
    mean, spread = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    return mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
