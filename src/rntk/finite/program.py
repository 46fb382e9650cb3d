"""Finite networks of programs: the same instructions with matrices of a width, in JAX.

Weights go by the names of the program. The empirical tangent kernel is a sum over products with matrices of inner
products of backward signals times those of what the matrices multiply, as for other networks: no gradient is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from ..errors import check_count, check_dtype
from ..kernels.network import KernelPair
from ..network import Last, Readout
from ..programs import Attention, LinComp, MatMul, Nonlin, Program, ProgramKernel
from ..programs.program import INPUT, ONES
from ..programs.readout import check_readout, step_weights
from ..sequences import SequenceBatch
from .inputs import STATES, WEIGHTS, generator
from .precision import dtype_of, precision

Array = NDArray[Any]
#: A pytree of JAX arrays: one for each weight of the program by its name, and "v".
ProgramWeights = dict[str, Any]


class ProgramReading(NamedTuple):
    """N sequences as a program reads them; a pytree.

    Attributes
    ----------
    values : array of shape (T, N, m)
    weights : array of shape (T, N)
        What the readout makes of each step; 1 where there is one, for attention.
    last : array of shape (N,)
        The last step of each sequence.
    states : dict
        (N, n) of each state before the first step.
    """

    values: Any
    weights: Any
    last: Any
    states: dict[str, Any]


class Pass(NamedTuple):
    """What a network computed: outputs (N, d), what the readout multiplies (N, n), and what matrices multiply, by the
    name of their product: (T, N, ·)."""

    outputs: Any
    pooled: Any
    sources: dict[str, Any]


@dataclass(frozen=True)
class ProgramNetwork:
    """The network of finite width of a program; made by `network(ProgramKernel(...), width)`.

    Attributes
    ----------
    program : Program
    width : int
        n.
    outputs : int
        d.
    tied : bool
    sigma_v : float
    readout : Readout
    rates : tuple of (str, float)
        Learning rates of groups of weights: factors of the tangent kernel.
    """

    program: Program
    width: int
    outputs: int
    tied: bool
    sigma_v: float
    readout: Readout
    rates: tuple[tuple[str, float], ...]
    every_step = False

    @classmethod
    def of(cls, kernel: ProgramKernel, width: int, outputs: int) -> ProgramNetwork:
        """The network whose limit is `kernel`."""
        rates = tuple(sorted((kernel.rates or {}).items()))
        readout = check_readout(kernel.readout)
        width, outputs = check_count("width", width), check_count("outputs", outputs)
        return cls(kernel.program(), width, outputs, kernel.tied, float(kernel.sigma_v), readout, rates)

    def read(self, X: Any, name: str = "X") -> SequenceBatch:
        """User data through the gate."""
        return ProgramKernel("elman").read_batch(X, name)

    def init(self, seed: int, X: Any, *, steps: int | None = None, dtype: Any = "float32") -> ProgramWeights:
        """Standard normal weights for data like `X`, by the names of the program; "v" is the readout (d, n).

        Untied networks have one more axis in front, the step.
        """
        batch = self.read(X)
        return self.draw(seed, batch.n_channels, steps or batch.max_length, check_dtype(dtype))

    def draw(self, seed: int, channels: int, steps: int, dtype: np.dtype[Any]) -> ProgramWeights:
        """Weights for data of known shape."""
        reads = {each.matrix: each.of[0] for each in self.program.instructions if isinstance(each, MatMul)}
        copies, found = () if self.tied else (steps,), {}
        shapes: dict[str, tuple[int, ...]] = {"v": (self.outputs, self.width)}
        for weight in self.program.weights:
            columns = () if weight.vector else (channels if reads[weight.name] == INPUT else self.width,)
            shapes[weight.name] = (*copies, self.width, *columns)
        with precision(dtype):
            for name, shape in shapes.items():
                rng = generator(seed, (WEIGHTS, self.width, 0, crc32(name.encode())))
                found[name] = jnp.asarray(rng.standard_normal(shape).astype(dtype))
        return found

    def __call__(self, parameters: ProgramWeights, X: Any, *, state_seed: int = 0) -> jax.Array:
        """Outputs f(x), (N, d)."""
        with precision(dtype_of(parameters)):
            outputs: jax.Array = _outputs(self, parameters, self.inputs(parameters, X, state_seed=state_seed))
        return outputs

    def inputs(self, parameters: ProgramWeights, X: Any, *, state_seed: int = 0, side: int = 0) -> ProgramReading:
        """`X` read once, for `apply`."""
        batch, dtype = self.batch(parameters, X, "X"), dtype_of(parameters)
        T, N = batch.max_length, len(batch)
        values, weights = np.zeros((T, N, batch.n_channels)), np.zeros((T, N))
        attends = isinstance(self.readout, Attention)
        counts = [np.ones(n) for n in batch.lengths] if attends else step_weights(self.readout, batch.lengths, None)
        for i, (sequence, count) in enumerate(zip(batch, counts, strict=True)):
            values[: len(sequence), i], weights[: len(sequence), i] = sequence, count
        states = {}
        for k, (name, sigma) in enumerate(zip(self.program.states, self.program.initial, strict=True)):
            if sigma:
                rows = [
                    generator(state_seed, (STATES, self.width, side, 0, k, i)).standard_normal(self.width)
                    for i in range(N)
                ]
                states[name] = sigma * np.array(rows)
            else:
                states[name] = np.zeros((N, self.width))
        with precision(dtype):
            arrays = ProgramReading(values, weights, np.zeros(N), states)
            ready: ProgramReading = jax.tree_util.tree_map(lambda each: jnp.asarray(each.astype(dtype)), arrays)
            return ready._replace(last=jnp.asarray(batch.lengths - 1))

    def batch(self, parameters: ProgramWeights, X: Any, name: str) -> SequenceBatch:
        """`X` through the gate, with shapes that fit the parameters."""
        batch = self.read(X, name)
        for each in self.program.instructions:
            if isinstance(each, MatMul) and each.of[0] == INPUT:
                columns = parameters[each.matrix].shape[-1]
                if columns != batch.n_channels:
                    raise ValueError(f"{name} has {batch.n_channels} channels, the parameters are for {columns}")
                if not self.tied and len(parameters[each.matrix]) < batch.max_length:
                    raise ValueError(f"{name} has {batch.max_length} steps, and there are weights for fewer")
        return batch

    def apply(self, parameters: ProgramWeights, inputs: ProgramReading) -> jax.Array:
        """Outputs for data from `inputs`; nothing is checked, everything can be traced."""
        outputs: jax.Array = run(self, parameters, inputs).outputs
        return outputs


_outputs = partial(jax.jit, static_argnums=0)(ProgramNetwork.apply)


def run(
    net: ProgramNetwork, parameters: ProgramWeights, inputs: ProgramReading, disturbances: dict[str, Any] | None = None
) -> Pass:
    """Read the sequences. Disturbances, (T, N, n) by the name of a product, are added to it: the derivative by them at
    zero is the backward signal."""
    program, T = net.program, inputs.values.shape[0]
    weights = {name: parameters[name] for name in program.weight}
    products = [each for each in program.instructions if isinstance(each, MatMul)]

    def step(states: dict[str, Any], now: Any) -> Any:
        x, added, own = now
        values: dict[str, Any] = {INPUT: x, ONES: jnp.ones((1, net.width), x.dtype)}
        values |= {f"{name}-": state for name, state in states.items()}
        used = weights if net.tied else own
        for weight in program.weights:
            if weight.vector:
                values[weight.name] = weight.mean + weight.sigma * used[weight.name]
                if added is not None:
                    values[weight.name] = values[weight.name] + added[weight.name]
        for each in program.instructions:
            of = [values[name] for name in each.of]
            if isinstance(each, MatMul):
                scale = program.weight[each.matrix].sigma / of[0].shape[-1] ** 0.5
                out = scale * jnp.matmul(of[0], used[each.matrix].T, precision=lax.Precision.HIGHEST)
                out = out if added is None else out + added[each.out]
            elif isinstance(each, LinComp):
                out = sum(c * v for c, v in zip(each.coefficients, of, strict=True))
            elif isinstance(each, Nonlin):
                out = each.function.in_jax(*of)
            else:
                mean = of[0].mean(axis=-1, keepdims=True)
                out = (of[0] - mean) / jnp.sqrt(((of[0] - mean) ** 2).mean(axis=-1, keepdims=True))
            values[each.out] = out
        rows = inputs.values.shape[1]
        after = {name: jnp.broadcast_to(values[name], (rows, net.width)) for name in states}
        return after, (values[program.output], {each.out: values[each.of[0]] for each in products})

    own = None if net.tied else {name: each[:T] for name, each in weights.items()}
    _, (outputs, sources) = lax.scan(step, inputs.states, (inputs.values, disturbances, own))
    pooled = _pool(net, outputs, inputs)
    readout = net.program.readout_mean + parameters["v"]
    f = net.sigma_v / net.width**0.5 * jnp.matmul(pooled, readout.T, precision=lax.Precision.HIGHEST)
    return Pass(f, pooled, sources)


def _pool(net: ProgramNetwork, outputs: Any, inputs: ProgramReading) -> Any:
    """Σ over steps of the readout's weights times the outputs."""
    rows = jnp.arange(outputs.shape[1])
    if isinstance(net.readout, Last):
        return outputs[inputs.last, rows]
    weights = inputs.weights
    if isinstance(net.readout, Attention):
        last = outputs[inputs.last, rows]
        scores = net.readout.sharpness * jnp.einsum("tni,ni->tn", outputs, last) / net.width
        weights = jax.nn.softmax(jnp.where(weights > 0, scores, -jnp.inf), axis=0)
    return jnp.einsum("tn,tni->ni", weights, outputs)


# -- empirical kernels -------------------------------------------------------------------------------------------------


def program_kernels(
    net: ProgramNetwork, parameters: ProgramWeights, left: SequenceBatch, right: SequenceBatch | None, state_seed: int
) -> KernelPair:
    """Both empirical kernels of one network; `right` is None for those of `left` with itself."""
    with precision(dtype_of(parameters)):
        a = _traced(net, parameters, net.inputs(parameters, left, state_seed=state_seed))
        b = (
            a
            if right is None
            else _traced(net, parameters, net.inputs(parameters, right, state_seed=state_seed, side=1))
        )
    n, d = net.width, net.outputs
    nngp = net.sigma_v**2 / n * a.pooled @ b.pooled.T
    rates = dict(net.rates)
    # (d, N, d, N')
    ntk = rates.get("v", 1.0) * np.einsum("ij,cd->cidj", nngp, np.eye(d))
    for name, weight in net.program.weight.items():
        rate = rates.get(name, rates.get(name.rstrip("0123456789"), 1.0))
        groups = a.signals[name], b.signals[name]
        for p in groups[0]:
            for q in groups[1]:
                inner = None if weight.vector else (a.sources[p], b.sources[q])
                scale = rate * weight.sigma**2 / (1 if inner is None else inner[0].shape[-1])
                ntk += scale * _overlap(net.tied, groups[0][p], groups[1][q], inner)
    ntk = np.moveaxis(ntk, (0, 2), (2, 3))
    return KernelPair(nngp, ntk[:, :, 0, 0] if d == 1 else ntk)


def _overlap(tied: bool, signal: Array, other: Array, inner: tuple[Array, Array] | None) -> Array:
    """(d, N, d, N') Σ over steps of <δ, δ'> <a, a'>, all pairs of steps if weights are tied, otherwise equal ones."""
    if tied:
        deltas = np.einsum("ctnk,dsmk->ctndsm", signal, other, optimize=True)
        if inner is None:
            return np.asarray(deltas.sum(axis=(1, 4)))
        return np.asarray(np.einsum("ctndsm,tnsm->cndm", deltas, np.einsum("tnk,smk->tnsm", *inner, optimize=True)))
    T = min(signal.shape[1], other.shape[1])
    deltas = np.einsum("ctnk,dtmk->ctndm", signal[:, :T], other[:, :T], optimize=True)
    if inner is None:
        return np.asarray(deltas.sum(axis=1))
    return np.asarray(
        np.einsum("ctndm,tnm->cndm", deltas, np.einsum("tnk,tmk->tnm", inner[0][:T], inner[1][:T], optimize=True))
    )


class Traced(NamedTuple):
    """Factors of gradients: pooled states (N, n), what products multiply (T, N, ·), and backward signals
    (d, T, N, n) of each weight by the product where it is used."""

    pooled: Array
    sources: dict[str, Array]
    signals: dict[str, dict[str, Array]]


def _traced(net: ProgramNetwork, parameters: ProgramWeights, inputs: ProgramReading) -> Traced:
    pooled, sources, deltas = _factors(net, parameters, inputs)
    arrays = {name: np.asarray(each) for name, each in deltas.items()}
    signals: dict[str, dict[str, Array]] = {name: {} for name in net.program.weight}
    for each in net.program.instructions:
        if isinstance(each, MatMul):
            signals[each.matrix][each.out] = arrays[each.out]
    for weight in net.program.weights:
        if weight.vector:
            signals[weight.name][weight.name] = arrays[weight.name]
    return Traced(np.asarray(pooled), {name: np.asarray(each) for name, each in sources.items()}, signals)


@partial(jax.jit, static_argnums=0)
def _factors(net: ProgramNetwork, parameters: ProgramWeights, inputs: ProgramReading) -> Any:
    T, N, _ = inputs.values.shape
    names = [each.out for each in net.program.instructions if isinstance(each, MatMul)]
    names += [weight.name for weight in net.program.weights if weight.vector]
    still = {name: jnp.zeros((T, N, net.width), inputs.values.dtype) for name in names}

    def outputs(disturbances: dict[str, Any]) -> Any:
        found = run(net, parameters, inputs, disturbances)
        return found.outputs, found

    f, back, found = jax.vjp(outputs, still, has_aux=True)
    chosen = jnp.broadcast_to(jnp.eye(net.outputs, dtype=f.dtype)[:, None], (net.outputs, *f.shape))
    return found.pooled, found.sources, lax.map(lambda each: back(each)[0], chosen)
