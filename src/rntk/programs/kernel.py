"""`ProgramKernel(cell)`: the kernel of any recurrent cell, for whatever takes a kernel of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter, Kernel

from ..errors import check_choice, check_count, check_flag, check_positive
from ..kernels.description import register
from ..network import Readout
from ..runtime import Execution
from ..sequences import SequenceBatch, as_batch, check_channels_agree
from .cells import CELLS
from .program import Cell, Program, parameters_of, trace
from .readout import Attention, check_readout, step_weights
from .rules import At, Table
from .sampled import SampleSet, one_thread_each
from .structure import Structure

Array = NDArray[np.float64]
Index = NDArray[np.int64]
#: Numbers that tables of exact programs may hold at a time.
TABLE = 2**24
#: Step of the differences by the log of a hyperparameter.
DIFFERENCE = 1e-4
BOUNDS = (1e-3, 1e3)


class Estimate(NamedTuple):
    """Gram matrices and their standard errors, zero where nothing is sampled."""

    nngp: Array
    ntk: Array
    nngp_error: Array
    ntk_error: Array


class ProgramKernel(GenericKernelMixin, Kernel):  # type: ignore[misc]
    r"""Kernel of the infinitely wide network whose recurrent cell is a program (docs/theory.md, section 11).

    Where every expectation that the rules need is one of a product of two functions of one Gaussian each, it is exact.
    Otherwise, where gates multiply, it is sampled: the mean over `scrambles` independent sets of `points` samples, with
    a standard error. One set of samples serves all sequences, so that Gram matrices belong together.

    Parameters
    ----------
    cell : str or callable
        "elman", "leaky", "residual", "gru", "lstm", "minimal", "multiplicative", "normalised", "state_space",
        "dilated", or a function of your own (`rntk.programs.trace`).
    kind : {"ntk", "nngp"}
        The tangent kernel Θ of training by gradient descent, or the kernel 𝒦 of the untrained network's outputs.
    readout : {"last", "mean", "attention"} or Readout
        Which steps the output sees.
    depth : int
        Stacked layers.
    tied : bool
        False gives every step its own weights. For gated cells that is another kernel, at equal lengths too.
    sigma_v : float
        Deviation of the readout weights.
    sigma_h : float or sequence of float
        Deviation of the first state before the first step, its own for every sequence.
    rates : dict or None
        Learning rates of groups of weights by name, such as {"W": 0.0, "v": 1.0}; 1 if not named, 0 is frozen.
    normalize : bool
        Divide by √(K(x,x) K(x',x')).
    points : int
        Samples in each scramble, where the program is sampled: a power of two.
    scrambles : int
        Independent sets of samples; from 16 on their spread is a standard error to rely on.
    seed : int
        Of the samples.
    sampler : {"network", "sobol", "random", "auto"}
        Where samples come from. "network": units of real networks of width `points`, drawn from the seed alone, so that
        the value of a pair never depends on other sequences. "sobol": scrambled Sobol points, for smooth cells two to
        three times closer to the limit; new sequences are drawn given all that the kernel object has seen, and another
        object has the same values only if it sees the same sequences in the same order. "random" is the same without
        Sobol points, "auto" is Sobol unless the first sequences have more steps in all than there are points.
    sample_dtype : {"float32", "float64"}
        Of the tangents at each sample, where the program is sampled: single precision is far below the sampling error,
        and twice as fast. Everything else is in double precision.
    sigma_bounds : dict or None
        Bounds of hyperparameters by name, a pair or "fixed". Those are the positive deviations of the cell and of v.
    n_jobs : int or None
        Threads; None is all cores.
    progress : bool or None
        None shows a bar on a terminal after two seconds.
    **parameters
        Of the cell.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk import RNTK
    >>> from rntk.programs import ProgramKernel
    >>> X = [np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.5])]
    >>> bool(np.allclose(ProgramKernel("elman")(X), RNTK()(X), rtol=1e-12))
    True
    >>> gru = ProgramKernel("gru", sigma_w=1.2)
    >>> gru.exact
    False
    """

    compares_vectors = False

    def __init__(
        self,
        cell: str | Cell = "elman",
        *,
        kind: str = "ntk",
        readout: str | Readout = "last",
        depth: int = 1,
        tied: bool = True,
        sigma_v: float = 1.0,
        sigma_h: float | Sequence[float] = 0.0,
        rates: Mapping[str, float] | None = None,
        normalize: bool = False,
        points: int = 1024,
        scrambles: int = 16,
        seed: int = 0,
        sampler: str = "network",
        sample_dtype: Any = "float32",
        sigma_bounds: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        **parameters: Any,
    ) -> None:
        self.cell = cell
        self.kind = kind
        self.readout = readout
        self.depth = depth
        self.tied = tied
        self.sigma_v = sigma_v
        self.sigma_h = sigma_h
        self.rates = rates
        self.normalize = normalize
        self.points = points
        self.scrambles = scrambles
        self.seed = seed
        self.sampler = sampler
        self.sample_dtype = sample_dtype
        self.sigma_bounds = sigma_bounds
        self.n_jobs = n_jobs
        self.progress = progress
        known = self._cell_parameters()
        own = set(signature(type(self)).parameters)
        if clash := own & set(known):
            raise ValueError(f"the cell's parameter {min(clash)} has the name of one of the kernel; call it otherwise")
        if unknown := sorted(set(parameters) - set(known)):
            raise TypeError(f"{self._cell_name()} has no parameter {unknown[0]!r}; it has {', '.join(known) or 'none'}")
        for name, default in known.items():
            setattr(self, name, parameters.get(name, default))

    # -- scikit-learn --------------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters, those of the cell among them."""
        known = self._cell_parameters()
        return {**super().get_params(deep), **{name: getattr(self, name, known[name]) for name in known}}

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The positive deviations of the cell and of the readout."""
        found = []
        for name in sorted(["sigma_v", *self._cell_parameters()]):
            value = getattr(self, name)
            if name.startswith("sigma_") and isinstance(value, int | float) and not isinstance(value, bool):
                limits = (self.sigma_bounds or {}).get(name, BOUNDS) if value > 0 else "fixed"
                found.append(Hyperparameter(name, "numeric", limits))
        return found

    def is_stationary(self) -> bool:
        """False: these kernels see where a sequence lies, not only differences."""
        return False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __deepcopy__(self, memo: Any) -> ProgramKernel:
        return type(self)(**self.get_params(deep=False))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.get_params() == other.get_params()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        defaults = {name: each.default for name, each in signature(type(self)).parameters.items()}
        defaults |= self._cell_parameters()
        shown = [
            f"{name}={float(value) if isinstance(value, np.floating) else value!r}"
            for name, value in self.get_params(deep=False).items()
            if name != "cell" and value is not defaults[name] and value != defaults[name]
        ]
        first = repr(self.cell) if isinstance(self.cell, str) else self._cell_name()
        return f"ProgramKernel({', '.join([first, *shown])})"

    # -- what it is ----------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The program of the cell, with every parameter checked."""
        values = {name: getattr(self, name) for name in self._cell_parameters()}
        return trace(self._cell(), depth=self.depth, sigma_h=self.sigma_h, **values)

    @property
    def exact(self) -> bool:
        """Whether nothing has to be sampled."""
        return self.why_sampled is None

    @property
    def why_sampled(self) -> str | None:
        """The instruction whose expectations are not known; None if all are."""
        return Structure(self.program()).obstacle

    def _cell(self) -> Cell:
        if not isinstance(self.cell, str):
            if not callable(self.cell):
                raise TypeError(f"a cell is a name or a function, not {self.cell!r}")
            return self.cell
        if self.cell not in CELLS:
            raise ValueError(f"there is no cell {self.cell!r}; there are {', '.join(CELLS)}, or pass a function")
        return CELLS[self.cell]

    def _cell_name(self) -> str:
        return str(getattr(self._cell(), "__name__", type(self.cell).__name__))

    def _cell_parameters(self) -> dict[str, Any]:
        return parameters_of(self._cell())

    # -- kernels -------------------------------------------------------------------------------------------------------

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix of the kernel of this kind.

        Parameters
        ----------
        X, Y
            Sequences, see `rntk.sequences.as_batch`.
        eval_gradient : bool
            Also return the derivatives by the log of every free hyperparameter, by differences (on the same samples).

        Returns
        -------
        K
            (n, n').
        gradient
            (n, n, P); only with `eval_gradient`.
        """
        check_choice("kind", self.kind, ("ntk", "nngp"))
        if not eval_gradient:
            return getattr(self._kernels(X, Y, (self.kind,)), self.kind)
        if Y is not None:
            raise ValueError("the gradient can only be evaluated for kernel(X), without Y")
        theta, columns = self.theta, []
        for k in range(len(theta)):
            up, down = (self.clone_with_theta(theta + sign * DIFFERENCE * np.eye(len(theta))[k]) for sign in (1, -1))
            columns.append((up(X) - down(X)) / (2 * DIFFERENCE))
        K = self(X)
        return K, np.stack(columns, axis=2) if columns else np.empty((*K.shape, 0))

    def nngp(self, X: Any, Y: Any = None) -> Array:
        """Gram matrix of the NNGP kernel 𝒦."""
        return self._kernels(X, Y, ("nngp",)).nngp

    def both(self, X: Any, Y: Any = None) -> Estimate:
        """Both Gram matrices, with their standard errors."""
        return self._kernels(X, Y, ("nngp", "ntk"))

    def with_error(self, X: Any, Y: Any = None) -> tuple[Array, Array]:
        """The Gram matrix and the standard error of each value: zeros if the program is exact."""
        found = self._kernels(X, Y, (self.kind,))
        return getattr(found, self.kind), getattr(found, f"{self.kind}_error")

    def diag(self, X: Any) -> Array:
        """Diagonal of `kernel(X)`."""
        batch = self.read_batch(X)
        if self.normalize:
            return np.ones(len(batch))
        return np.asarray(getattr(self._compute(batch, None, (self.kind,), diagonal=True), self.kind))

    def read_batch(self, X: Any, name: str = "X") -> SequenceBatch:
        """User data through the gate, in double precision."""
        return as_batch(X, name=name).astype("float64")

    def _kernels(self, X: Any, Y: Any, kinds: tuple[str, ...]) -> Estimate:
        left, right = self.read_batch(X), None if Y is None else self.read_batch(Y, "Y")
        if right is not None:
            check_channels_agree([left, right], ["X", "Y"])
        found = self._compute(left, right, kinds)
        if not check_flag("normalize", self.normalize):
            return found
        parts = dict(found._asdict())
        for kind in kinds:
            sides = [left, left if right is None else right]
            a, b = (getattr(self._compute(each, None, (kind,), diagonal=True), kind) for each in sides)
            scale = np.sqrt(np.outer(a, b))
            for name in (kind, f"{kind}_error"):
                parts[name] = np.divide(parts[name], scale, out=np.zeros_like(scale), where=scale > 0)
            if right is None:
                np.fill_diagonal(parts[kind], np.diagonal(parts[kind]) > 0)
        return Estimate(**parts)

    def _compute(
        self, left: SequenceBatch, right: SequenceBatch | None, kinds: tuple[str, ...], *, diagonal: bool = False
    ) -> Estimate:
        readout, program = check_readout(self.readout), self.program()
        check_positive("sigma_v", self.sigma_v, or_zero=True)
        check_flag("tied", self.tied)
        rates = self._rates(program)
        structure = Structure(program)
        if structure.obstacle is None:
            make: Any = _Exact(program, self.tied, rates)
        else:
            make = _Sampled(self._samples(), rates, self._run())
        return _scaled(make.kernels(readout, left, right, kinds, diagonal), self.sigma_v, rates.get("v", 1.0))

    def _rates(self, program: Program) -> dict[str, float]:
        rates = {name: float(rate) for name, rate in (self.rates or {}).items()}
        known = {"v", *program.weight, *(name.rstrip("0123456789") for name in program.weight)}
        for name, rate in rates.items():
            if name not in known:
                raise ValueError(f"rates name {name!r}, and the groups of weights are {', '.join(sorted(known))}")
            check_positive(f"the rate of {name}", rate, or_zero=True)
        return rates

    def _run(self) -> Execution:
        return Execution(self.n_jobs, self.progress)

    def _samples(self) -> SampleSet:
        """The samples of this object, begun anew when a parameter that they depend on has changed."""
        program = self.program()
        facts = program, self.tied, self.points, self.scrambles, self.seed, self.sampler, self.sample_dtype
        if getattr(self, "_sampled", (None, None))[0] != facts:
            check_count("points", self.points, 2)
            check_count("scrambles", self.scrambles, 2)
            check_choice("sampler", self.sampler, ("auto", "sobol", "random", "network"))
            found = SampleSet(
                program,
                tied=self.tied,
                points=self.points,
                scrambles=self.scrambles,
                seed=self.seed,
                method=self.sampler,
                dtype=self.sample_dtype,
            )
            self._sampled = facts, found
        return self._sampled[1]


def _scaled(found: list[Array], sigma_v: float, rate: float) -> Estimate:
    """Kernels from M and T of the outputs: a list of (2, ..., R) for each replicate."""
    moment, tangent = (np.stack([each[k] for each in found]) * sigma_v**2 for k in (0, 1))
    parts = []
    for values in (moment, rate * moment + tangent):
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros_like(values[0])
        parts.append((values.mean(axis=0), error))
    (nngp, nngp_error), (ntk, ntk_error) = parts
    return Estimate(nngp, ntk, nngp_error, ntk_error)


class _Exact:
    """Outputs by the rules."""

    def __init__(self, program: Program, tied: bool, rates: Mapping[str, float]) -> None:
        self.program, self.tied, self.rates = program, tied, rates

    def kernels(
        self, readout: Readout, left: SequenceBatch, right: SequenceBatch | None, kinds: tuple[str, ...], diagonal: bool
    ) -> list[Any]:
        """[(M, T)] after the readout."""
        if diagonal:
            return [self._own(readout, left)]
        columns = left if right is None else right
        size = len(self.program.instructions) * (self._rows(readout, left) * self._rows(readout, columns))
        block = max(1, int((TABLE / size) ** 0.5))
        total = np.zeros((2, len(left), len(columns)))
        for i in range(0, len(left), block):
            for j in range(i if right is None else 0, len(columns), block):
                a, b = (np.arange(k, min(k + block, n)) for k, n in ((i, len(left)), (j, len(columns))))
                part = self._block(readout, left.take(a), None if right is None and i == j else columns.take(b))
                total[:, i : i + block, j : j + block] = part
                if right is None and j > i:
                    total[:, j : j + block, i : i + block] = np.swapaxes(part, 1, 2)
        return [total]

    def _rows(self, readout: Readout, batch: SequenceBatch) -> int:
        steps = batch.max_length if readout.every_step or not batch.is_equal_length else 2
        return int(min(steps, 2 if not readout.every_step else steps))

    def _weights(self, readout: Readout, table: Table, lengths: Index) -> list[Array]:
        similarity = None
        if isinstance(readout, Attention):
            out = self.program.output
            for _ in table.each_output([(t, s) for t in range(max(lengths)) for s in range(max(lengths))]):
                pass
            similarity = [
                np.array([table.pair(At(out, t), At(out, n - 1)).moment[i] for t in range(n)])
                for i, n in enumerate(lengths)
            ]
        return step_weights(readout, lengths, similarity)

    def _block(self, readout: Readout, left: SequenceBatch, right: SequenceBatch | None) -> Array:
        owners = [Table.own(self.program, each, self.tied, self.rates) for each in (left, right) if each is not None]
        table = Table.cross(owners[0], owners[1] if right is not None else None)
        weights = [self._weights(readout, each, each.left.lengths) for each in owners]
        ours, theirs = weights[0], weights[-1]
        steps = sorted({(t, s) for t in _used(ours) for s in _used(theirs)})
        total = np.zeros((2, *table.shape))
        for (t, s), pair in table.each_output(steps):
            weight = np.outer(_column(ours, t), _column(theirs, s))
            for k, part in enumerate(pair):
                total[k] += np.where(weight, weight * part, 0.0)
        return total

    def _own(self, readout: Readout, batch: SequenceBatch) -> Array:
        table = Table.own(self.program, batch, self.tied, self.rates)
        weights = self._weights(readout, table, batch.lengths)
        steps = sorted({(t, s) for each in weights for t in np.flatnonzero(each) for s in np.flatnonzero(each)})
        total = np.zeros((2, len(batch)))
        for (t, s), pair in table.each_output([(int(t), int(s)) for t, s in steps]):
            weight = _column(weights, t) * _column(weights, s)
            for k, part in enumerate(pair):
                total[k] += np.where(weight, weight * part, 0.0)
        return total


def _used(weights: list[Array]) -> list[int]:
    """Steps that count in some sequence."""
    return sorted({int(t) for each in weights for t in np.flatnonzero(each)})


def _column(weights: list[Array], t: int) -> Array:
    """What step t counts for in each sequence."""
    return np.array([each[t] if t < len(each) else 0.0 for each in weights])


class _Sampled:
    """Outputs by samples, one replicate after another on the threads."""

    def __init__(self, samples: SampleSet, rates: Mapping[str, float], run: Execution) -> None:
        self.samples, self.rates, self.run = samples, rates, run

    def kernels(
        self, readout: Readout, left: SequenceBatch, right: SequenceBatch | None, kinds: tuple[str, ...], diagonal: bool
    ) -> list[Any]:
        """(M, T) after the readout, of each replicate."""
        samples = self.samples
        with samples.lock:
            # Training sequences stand second, and come first: their samples are then the same as without new ones.
            columns = None if right is None else samples.add([np.ascontiguousarray(each) for each in right], self.run)
            rows = samples.add([np.ascontiguousarray(each) for each in left], self.run)
        lengths = [each.lengths for each in (left, left if right is None else right)]
        numbers = [rows, rows if columns is None else columns]
        shape = (2, len(left)) if diagonal else (2, len(left), len(numbers[1]))
        found = [np.zeros(shape) for _ in samples.kept]
        if diagonal:
            pairs = [(i, i) for i in range(len(rows))]
        else:
            pairs = [(i, j) for i in range(len(rows)) for j in range(i if right is None else 0, len(numbers[1]))]
        cost = float(sum(lengths[0][i] * lengths[1][j] for i, j in pairs))

        def work(r: int) -> float:
            with samples.of_replicate(r, {*rows, *numbers[1]}) as kept:
                memory = samples.memory(int(lengths[1].max()))
                weights = [self._weights(readout, kept, each, n) for each, n in zip(numbers, lengths, strict=True)]
                for i, j in pairs:
                    a, b = kept[rows[i]], kept[numbers[1][j]]
                    wanted = (
                        samples.moments(a, b),
                        samples.tangents(a, b, self.rates, memory) if "ntk" in kinds else None,
                    )
                    for k, table in enumerate(wanted):
                        if table is None:
                            continue
                        value = weights[0][i] @ table @ weights[1][j]
                        at = (i,) if diagonal else (i, j)
                        found[r][(k, *at)] = value
                        if right is None and not diagonal:
                            found[r][k, j, i] = value
            return cost

        with self.run.bar("samples", cost * len(found)) as advance, one_thread_each():
            self.run.each(work, list(range(len(found))), advance)
        return found

    def _weights(self, readout: Readout, kept: Any, rows: list[int], lengths: Index) -> list[Array]:
        similarity = None
        if isinstance(readout, Attention):
            similarity = [self.samples.moments(kept[i], kept[i])[:, -1] for i in rows]
        return step_weights(readout, lengths, similarity)


register(ProgramKernel)
