"""`network(kernel, width)`: the finite network that a kernel is the limit of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from ..errors import check_count, check_dtype
from ..kernels.network import NetworkKernel
from ..network import READOUTS, Elman, Network
from ..programs import ProgramKernel
from ..sequences import SequenceBatch
from . import weights
from .activations import check_twin, jax_function
from .forward import run
from .inputs import Reading, read
from .precision import dtype_of, precision
from .program import ProgramNetwork
from .weights import DIRECTIONS, Parameters


@dataclass(frozen=True)
class FiniteNetwork:
    """A network of finite width; made by `network(kernel, width)`. It holds no weights: `init` draws them.

    Attributes
    ----------
    network : Network
        What the kernel computes, with every option checked.
    width : int
        Units per layer, n.
    outputs : int
        Number of outputs, d.
    activation : callable
        φ as a function of JAX arrays.
    read : callable
        How the kernel reads user data.
    """

    network: Network
    width: int
    outputs: int
    activation: Callable[[Any], Any] = field(repr=False)
    read: Callable[[Any, str], SequenceBatch] = field(repr=False, compare=False)

    def init(self, seed: int, X: Any, *, steps: int | None = None, dtype: Any = "float32") -> Parameters:
        """Random weights for data like `X`.

        Parameters
        ----------
        seed : int
            A seed gives the same weights in both precisions.
        X : sequences
            Data the network will see; only its number of channels and, for untied networks, the length of its longest
            sequence matter.
        steps : int, optional
            For untied networks: steps to have weights for, if more than the longest sequence in `X`.
        dtype : "float32" or "float64"
            Everything computed from the parameters is in this precision.

        Returns
        -------
        dict
            {"forward": {"W": (W_1, …, W_L), "U": (U_1, …), "b": (b_1, …), "V": V}}, and "backward" if bidirectional.
            W_l is (n, n), U_l (n, m) or (n, n), b_l (n,), V (d, n), with the step as first axis of W, U and b if
            untied. What `parameterization="ntk"` trains are standard normal numbers. Groups that don't exist (σ_b = 0)
            are None.

        Examples
        --------
        >>> import numpy as np
        >>> from rntk import RNTK, finite
        >>> net = finite.network(RNTK(depth=2), width=100)
        >>> parameters = net.init(0, np.zeros((5, 10, 3)))
        >>> [U.shape for U in parameters["forward"]["U"]]
        [(100, 3), (100, 100)]
        """
        batch, dtype = self.read(X, "X"), check_dtype(dtype)
        longest = batch.max_length
        if steps is not None and (self.network.tied or steps < longest):
            reason = "only untied networks have weights by step" if self.network.tied else f"X has {longest} steps"
            raise ValueError(f"steps={steps!r} makes no sense: {reason}")
        return self.draw(seed, batch.n_channels, steps or longest, dtype)

    def draw(self, seed: int, channels: int, steps: int, dtype: np.dtype[Any]) -> Parameters:
        """Random weights for data of known shape."""
        shape = (self.width, self.outputs, self.directions, channels, steps)
        with precision(dtype):
            return weights.draw(self.network, *shape, seed, dtype)

    def __call__(self, parameters: Parameters, X: Any, *, state_seed: int | None = None) -> jax.Array:
        """Outputs f(x): (n, d), or one row per step of every sequence for the sequence readout.

        Parameters
        ----------
        parameters : dict
            From `init`, or a step of training away from there.
        X : sequences
            Whatever the kernel reads; unequal lengths need no padding.
        state_seed : int, optional
            For networks with sigma_h > 0, which draw an initial state for every sequence: the seed of these draws.
            Sequence i of a batch has its own state; other sequences need another seed.

        Notes
        -----
        Differentiable by `parameters` and traceable in them: `jax.jit(lambda p: net(p, X))`. In loops read the data
        once, `inputs = net.inputs(parameters, X)`, and call `net.apply(parameters, inputs)`. Around float64 parameters
        your own transformations need `rntk.finite.precision("float64")`.

        Examples
        --------
        >>> import numpy as np
        >>> from rntk import RNTK, finite
        >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
        >>> net = finite.network(RNTK(), width=100, outputs=2)
        >>> net(net.init(0, X), X).shape
        (2, 2)
        """
        with precision(dtype_of(parameters)):
            outputs: jax.Array = _apply(self, parameters, self.inputs(parameters, X, state_seed=state_seed))
        return outputs

    def inputs(self, parameters: Parameters, X: Any, *, state_seed: int | None = None) -> tuple[Reading, ...]:
        """`X` read once, checked against the parameters: a pytree for `apply`."""
        batch = self.batch(parameters, X, "X")
        if state_seed is None and max(self.network.sigma_h) > 0:
            raise ValueError(
                "with sigma_h > 0 every sequence has a random initial state of its own: pass state_seed, another one "
                "for other sequences"
            )
        dtype = dtype_of(parameters)
        with precision(dtype):
            return read(batch, self.network, self.width, self.directions, dtype, state_seed)

    def apply(self, parameters: Parameters, inputs: tuple[Reading, ...]) -> jax.Array:
        """Outputs for data from `inputs`; nothing is checked, everything can be traced."""
        forms = zip(DIRECTIONS, inputs, strict=False)
        return sum(  # type: ignore[return-value]
            run(self.network, self.activation, parameters[name], reading).outputs for name, reading in forms
        )

    def batch(self, parameters: Parameters, X: Any, name: str) -> SequenceBatch:
        """`X` through the kernel's gate, with shapes that fit the parameters."""
        batch = self.read(X, name)
        W, U, b = (parameters[DIRECTIONS[0]][group][0] for group in ("W", "U", "b"))
        if U is not None and U.shape[-1] != batch.n_channels:
            raise ValueError(
                f"{name} has {batch.n_channels} channels, the parameters are for {U.shape[-1]}; draw them with "
                f"net.init(seed, {name})"
            )
        steps = [len(each) for each in (W, U, b) if each is not None]
        if not self.network.tied and steps and steps[0] < batch.max_length:
            raise ValueError(
                f"{name} has a sequence of {batch.max_length} steps, the parameters of this untied network have "
                f"weights for {steps[0]}; draw them with net.init(seed, {name}) or give init more steps"
            )
        return batch

    @property
    def every_step(self) -> bool:
        """Whether there is an output at every step of a sequence, not one for all of it."""
        return self.network.readout.per_step

    @property
    def directions(self) -> int:
        """1, or 2 if bidirectional: a second, independent network reads backwards, and the outputs are added."""
        return 1 + self.network.bidirectional


_apply = partial(jax.jit, static_argnums=0)(FiniteNetwork.apply)


def network(kernel: Any, width: int, outputs: int = 1, *, activation: Callable[[Any], Any] | None = None) -> Any:
    """The finite network whose limit for infinite width is `kernel`.

    Parameters
    ----------
    kernel : RNTK, NTK or ProgramKernel
        With any options but `normalize`. Its options are copied: what becomes of the kernel afterwards doesn't change
        the network.
    width : int
        Units per layer, n.
    outputs : int
        Number of outputs, d, each with its own readout weights. In the limit outputs are independent.
    activation : callable, optional
        φ in `jax.numpy`, for kernels made with your own function of NumPy arrays. It is compared with the kernel's on a
        grid. Functions that work on both, such as `lambda z: z * abs(z)`, needn't be given twice.

    Returns
    -------
    FiniteNetwork, or ProgramNetwork
        With weights by the names of the program.

    Raises
    ------
    TypeError
        `kernel` isn't the kernel of one network.
    ValueError
        The kernel is normalised, JAX can't differentiate its activation, or a size isn't a positive integer.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK, finite
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> kernel = RNTK()
    >>> net = finite.network(kernel, width=1000)
    >>> K = finite.empirical_ntk(net, net.init(0, X), X)
    >>> bool(np.abs(K - kernel(X)).max() < 0.2 * kernel(X).max())
    True
    """
    if isinstance(kernel, ProgramKernel) and not kernel.normalize and activation is None:
        return ProgramNetwork.of(kernel, width, outputs)
    if not isinstance(kernel, NetworkKernel):
        raise TypeError(
            f"a network is made from an RNTK, NTK or ProgramKernel, not from {type(kernel).__name__}; of a sum or "
            "product of kernels pass the parts"
        )
    if kernel.normalize:
        raise ValueError(
            "no finite network has the normalised kernel, which divides by values of the limit; make the network from "
            "the same kernel with normalize=False"
        )
    for name, size in (("width", width), ("outputs", outputs)):
        check_count(name, size)
    network = kernel.network()
    if network.readout not in READOUTS.values() or {type(cell) for cell in network.cells} != {Elman}:
        raise ValueError(
            f"finite networks have Elman cells and the readouts {', '.join(READOUTS)}; {kernel!r} has others. Add them "
            "to rntk/finite/forward.py"
        )
    if activation is None:
        function = jax_function(network.activation)
    else:
        function = check_twin(network.activation, activation)
    return FiniteNetwork(network, int(width), int(outputs), function, kernel.read_batch)
