"""Every activation where it is hard: against stored values of more than twenty digits.

`oracles.battery` says what the cases are: networks that are ordered, critical and chaotic (or growing), of one and
three layers, pairs that are equal, opposite, 1e-15 to 1e-1 apart, zero, unequally long, of inputs from 1e-150 to 1e150.
Here each of them is asked for both kernels, the diagonal, derivatives by hyperparameters and derivatives by inputs, by
every engine that offers them. One table says how many digits are due. `pytest -rP` shows how many there are.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

from oracles import battery
from rntk import RNTK, HermiteAccuracyWarning, KernelOverflowError
from rntk.engine.slopes import PairGradients, join
from rntk.errors import ActivationError
from rntk.sequences import as_batch

HOMOGENEOUS = ("relu", "leaky_relu", "identity", "abs")
CLOSED = ("erf", "sin", "gelu")

#: Largest error by family and quantity, and of the reference engine for closed forms of any family. Kernels: relative
#: to √(K(x,x) K(y,y)); "close": relative to themselves, for pairs that are equal, nearly equal or nearly opposite.
#: "sigma": derivatives by log σ, relative to themselves or to √(K(x,x) K(y,y)), whichever is larger. "input": by
#: inputs, relative to the largest of a case, or to what a change of the whole sequence would make of the kernel.
DIGITS = {
    "homogeneous": {"kernel": 1e-12, "close": 1e-12, "diagonal": 1e-12, "sigma": 1e-11, "input": 1e-10},
    "closed": {"kernel": 1e-11, "close": 1e-11, "diagonal": 1e-12, "sigma": 1e-8, "input": 1e-8},
    "expanded": {"kernel": 1e-9, "close": 1e-9, "diagonal": 1e-9, "sigma": 1e-7, "input": 1e-7},
    "reference": {"kernel": 3e-16, "close": 3e-16, "diagonal": 3e-16, "sigma": 3e-16},
}
#: Larger inputs of odd activations are refused by the array engine.
LARGEST_ARRAY = 1e145
#: Pairs whose derivatives the reference engine is asked for, in the network that is hardest: each takes it a second.
REFERENCE_DERIVATIVES = ("equal", "opposite", "apart 1e-09", "unequal")
#: Pairs of expansions that the reference engine is asked for: it takes seconds for each, and refuses near-duplicates in
#: chaotic networks.
REFERENCE_EXPANDED = ("random", "apart 1e-03")
#: A sequence and a multiple of it, rounded: where φ has a kink, the derivative by an input follows the direction of
#: that rounding, of which the last few of sixteen digits are left.
ROUNDED_MULTIPLE = 1e-2
#: Derivatives are refused beyond this input, where variances reach 1e203.
LARGEST_INPUT = 1e99
#: Inputs up to which expansions promise the digits above; beyond, they say how many there are.
LARGEST_EXPANDED = 5.0


def family(case: battery.Case) -> str:
    if case.activation in HOMOGENEOUS:
        return "homogeneous"
    return "closed" if case.activation in CLOSED else "expanded"


def is_close(case: battery.Case) -> bool:
    return "apart" in case.pair or case.pair in ("equal", "scaled", "huge")


def overflows(record: battery.Record) -> bool:
    return max(log for name, log in record.logs.items() if log is not None and name.startswith(("ntk", "nngp"))) > 709.5


def is_resolved(case: battery.Case) -> bool:
    """Whether an expansion has orders enough for these inputs."""
    return case.activation not in battery.LATTICE or (case.scale <= LARGEST_EXPANDED and case.pair != "huge")


def kernel_of(case: battery.Case, **options) -> RNTK:
    sigma_w, sigma_u, sigma_b = case.sigmas
    name = f"leaky_relu({battery.LEAKY_SLOPE})" if case.activation == "leaky_relu" else case.activation
    return RNTK(name, sigma_w=sigma_w, sigma_u=sigma_u, sigma_b=sigma_b, depth=case.depth, **options)


@cache
def groups() -> dict[tuple, list[battery.Record]]:
    """Records by network: their sequences go through one call."""
    found = defaultdict(list)
    for record in battery.load().values():
        case = record.case
        found[case.activation, case.setting, case.depth, case.channels].append(record)
    return found


def gathered(records):
    """All sequences of some cases, and which of them each case compares."""
    sequences, at = [], []
    for record in records:
        x, y = battery.sequences(record.case)
        at.append((len(sequences), len(sequences) + 1))
        sequences += [x, y]
    return sequences, np.array(at).T


class Errors:
    """The largest error of each kind, and where; `admitted` is what an expansion says that its own may be."""

    def __init__(self, admitted: float = 0.0, engine: str = "fused") -> None:
        self.engine = engine
        self.worst: dict[str, tuple[float, str]] = {}
        self.violations: list[str] = []
        self.admitted = admitted

    def note(self, kind: str, error: float, case: battery.Case, bound: float) -> None:
        # Derivatives of an expansion lose another factor of its order.
        bound = max(bound, self.admitted * (100 if kind in ("sigma", "input") else 1))
        if not error <= self.worst.get(kind, (-1.0, ""))[0]:
            self.worst[kind] = (error, case.name)
        if not error <= bound:
            self.violations.append(f"{case.name}: {kind} off by {error:.1e}, allowed {bound:.0e}")

    def digits(self, case: battery.Case) -> dict[str, float]:
        """What is due."""
        closed = case.activation not in battery.LATTICE
        return DIGITS["reference" if self.engine == "reference" and closed else family(case)]

    def check(self) -> None:
        for kind, (error, name) in self.worst.items():
            print(f"{kind:10s} {error:.1e}  {name}")
        assert not self.violations, "\n".join(self.violations)


@contextmanager
def admissions(activation: str) -> Iterator[list[float]]:
    """The errors that expansions admit to inside; other warnings of ours are errors, as everywhere."""
    found: list[float] = []
    if activation not in battery.LATTICE:
        yield found
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HermiteAccuracyWarning)
        yield found
    found += [each.message.error for each in caught if isinstance(each.message, HermiteAccuracyWarning)]


def scale_of(record: battery.Record, kind: str = "ntk") -> float:
    log = 0.5 * (record.logs[f"{kind}_xx"] + record.logs[f"{kind}_yy"])
    return math.exp(log) if log > -700 else 0.0


def check_kernels(errors: Errors, record: battery.Record, got: dict[str, dict[str, float]]) -> None:
    case, digits = record.case, errors.digits(record.case)
    for kind, values in got.items():
        true, scale = record.values[f"{kind}_xy"], scale_of(record, kind)
        gap = abs(values["xy"] - true)
        errors.note("kernel", gap / scale if scale else gap, case, digits["kernel"])
        if is_close(case) and abs(true) > 1e-290:
            errors.note("close", gap / abs(true), case, digits["close"])
        for own in ("xx", "yy"):
            true = record.values[f"{kind}_{own}"]
            errors.note("diagonal", abs(values[own] - true) / max(true, 1e-290), case, digits["diagonal"])


def check_sigmas(errors: Errors, record: battery.Record, names: list[str], xy, xx) -> None:
    case = record.case
    for pair, got, scale in (("xy", xy, scale_of(record)), ("xx", xx, record.values["ntk_xx"])):
        for sigma in battery.HYPERPARAMETERS:
            true = record.values[f"d_log_{sigma}_{pair}"]
            if true is not None and sigma in names:
                error = abs(got[names.index(sigma)] - true) / max(abs(true), scale, 1e-290)
                errors.note("sigma", error, case, errors.digits(case)["sigma"])


def check_inputs(errors: Errors, record: battery.Record, x, gradient) -> None:
    case = record.case
    true = [record.values[f"d_x_{step}"] for step in battery.STEPS]
    if None in true:
        return
    scale = max(*map(abs, true), scale_of(record) / np.sqrt(np.square(x / case.scale).mean()) / case.scale, 1e-290)
    bound = DIGITS[family(case)]["input"]
    if case.pair == "scaled" and case.activation in battery.KINKED:
        bound = ROUNDED_MULTIPLE
    for step, value in zip(case.steps, true, strict=True):
        errors.note("input", abs(gradient[step, 0] - value) / scale, case, bound)


def test_inputs_are_those_the_values_belong_to():
    for records in groups().values():
        for record in records:
            assert battery.digest(record.case) == record.digest


def by_network(networks):
    return pytest.mark.parametrize("network", networks, ids=lambda network: "-".join(map(str, network)))


CLOSED_NETWORKS = [network for network in groups() if network[0] not in battery.LATTICE]


def check_entries(errors: Errors, record: battery.Record, K, i: int, j: int) -> None:
    got = {
        kind: {pair: float(getattr(K, kind)[p]) for pair, p in (("xy", (i, j)), ("xx", (i, i)), ("yy", (j, j)))}
        for kind in ("ntk", "nngp")
    }
    check_kernels(errors, record, got)


@by_network(groups())
def test_kernels(network):
    records = [record for record in groups()[network] if not overflows(record) and is_resolved(record.case)]
    kernel, (sequences, (first, second)) = kernel_of(records[0].case), gathered(records)
    with admissions(network[0]) as admitted:
        K = kernel.both(sequences)
    errors = Errors(max(admitted, default=0.0))
    for record, i, j in zip(records, first, second, strict=True):
        check_entries(errors, record, K, i, j)
    errors.check()


@by_network(CLOSED_NETWORKS)
def test_kernels_of_the_array_engine(network):
    odd = network[0] in ("erf", "sin")
    records = [
        record
        for record in groups()[network]
        if not overflows(record) and not (odd and record.case.scale > LARGEST_ARRAY)
    ]
    sequences, (first, second) = gathered(records)
    K, errors = kernel_of(records[0].case, engine="array").both(sequences), Errors(engine="array")
    for record, i, j in zip(records, first, second, strict=True):
        check_entries(errors, record, K, i, j)
    errors.check()


@by_network(CLOSED_NETWORKS)
def test_kernels_of_the_reference_engine(network):
    """Textbook formulas, right to the last digit everywhere."""
    errors = Errors(engine="reference")
    for record in groups()[network]:
        if not overflows(record):
            check_entries(errors, record, kernel_of(record.case, engine="reference").both(battery_pair(record)), 0, 1)
    errors.check()


@by_network(
    [
        pytest.param(network, marks=() if network[1] in ("ordered", "critical") else pytest.mark.slow)
        for network in groups()
        if network[0] in battery.LATTICE and network[2] == 3
    ]
)
def test_expansions_of_the_reference_engine(network):
    """What it can't tell to nine digits it warns of, by no less than its error."""
    for record in groups()[network]:
        if record.case.pair in REFERENCE_EXPANDED:
            with admissions(network[0]) as admitted:
                K = kernel_of(record.case, engine="reference").both(battery_pair(record))
            errors = Errors(max(admitted, default=0.0), engine="reference")
            check_entries(errors, record, K, 0, 1)
            errors.check()


def battery_pair(record: battery.Record) -> list[np.ndarray]:
    return list(battery.sequences(record.case))


@by_network([network for network in CLOSED_NETWORKS if network[1] in ("growing", "chaotic") and network[3] == 1])
def test_derivatives_of_the_reference_engine(network):
    errors = Errors(engine="reference")
    for record in groups()[network]:
        if record.case.pair in REFERENCE_DERIVATIVES and record.case.scale == 1 and not overflows(record):
            kernel = kernel_of(record.case, engine="reference")
            _, gradient = kernel(battery_pair(record), eval_gradient=True)
            names = [each.name for each in kernel.hyperparameters if not each.fixed]
            check_sigmas(errors, record, names, gradient[0, 1], gradient[0, 0])
    errors.check()


@by_network(groups())
def test_derivatives(network):
    records = [
        record
        for record in groups()[network]
        if not overflows(record) and is_resolved(record.case) and record.case.scale < LARGEST_INPUT
    ]
    kernel, (sequences, (first, second)) = kernel_of(records[0].case), gathered(records)
    names = [each.name for each in kernel.hyperparameters if not each.fixed]
    with admissions(network[0]) as admitted:
        _, gradient = kernel(sequences, eval_gradient=True)
        found = PairGradients(kernel.plan(), join(as_batch(sequences)))(first, second)
    errors = Errors(max(admitted, default=0.0))
    for k, (record, i, j) in enumerate(zip(records, first, second, strict=True)):
        check_sigmas(errors, record, names, gradient[i, j], gradient[i, i])
        check_inputs(errors, record, sequences[i], found.gradient[found.offsets[k] : found.offsets[k + 1]])
    errors.check()


OVERFLOWING = [record for records in groups().values() for record in records if overflows(record)]


@pytest.mark.parametrize("record", OVERFLOWING, ids=lambda record: record.case.name)
def test_what_no_float_can_hold_is_refused(record):
    engines = ("fused", "reference", "array") if record.case.activation not in battery.LATTICE else ("fused",)
    for engine in engines:
        with pytest.raises(KernelOverflowError):
            kernel_of(record.case, engine=engine).both(battery_pair(record))


@pytest.mark.parametrize("activation", ["erf", "sin"])
def test_the_array_engine_names_variances_it_cannot_hold(activation):
    with pytest.raises(KernelOverflowError, match="sequence 1 of X overflows"):
        RNTK(activation, engine="array")([[1.0], [1e146]])


UNRESOLVED = [record for records in groups().values() for record in records if not is_resolved(record.case)]


@pytest.mark.parametrize("record", UNRESOLVED, ids=lambda record: record.case.name)
def test_expansions_know_their_error(record):
    """Beyond what they resolve, expansions warn of an error that is above the one they make, or refuse."""
    try:
        with admissions(record.case.activation) as admitted:
            K = kernel_of(record.case).both(battery_pair(record))
    except ActivationError as refusal:
        assert "that is no result" in str(refusal)
        assert record.case.scale > 20 or record.case.pair == "huge"
        return
    error = abs(float(K.ntk[0, 1]) - record.values["ntk_xy"]) / scale_of(record)
    assert admitted
    print(f"{error:.1e}, admitted {max(admitted):.1e}")
    assert error <= max(DIGITS["expanded"]["kernel"], *admitted)
