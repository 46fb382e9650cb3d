"""Write ``battery_values.json``: kernels and derivatives of the cases of `battery` to 20 significant digits.

Run from the repository root: ``python -m tests.oracles.make_battery_values [activation ...]``. Cases that are already
in the file, with the inputs they have now, are kept; with ``--again`` they are computed anew. All of them take about 12
minutes where gmpy2 is installed, which mpmath uses by itself, and several times as long elsewhere.

The recursion of THEORY section 3 runs in textbook order with forward tangents for every derivative. Each case is
computed with some digits and again with many more, and both must agree to `AGREEMENT` digits in every quantity before
the second is stored; otherwise both precisions rise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mpmath
from mpmath import mpf

from .battery import ACTIVATIONS, HYPERPARAMETERS, LATTICE, QUANTITIES, SOURCE, STEPS, Case, cases, digest, sequences
from .lattice import Sigmoid, Tanh
from .partials import Activation, closed_form

AGREEMENT = 25
DIGITS = 20
CLOSED_DIGITS = 160
LATTICE_DIGITS = 40
SPARE_DIGITS = 25  # of the recursion beyond those of a lattice sum
SAVE_SECONDS = 20.0

Tangent = list[mpf]  # derivatives by log σw, log σu, log σb and by x at three steps
DIRECTIONS = len(HYPERPARAMETERS) + len(STEPS)
Vectors = list[list[mpf]]


# The recursion with tangents ---------------------------------------------------------------------------------


@dataclass
class Network:
    """An activation, variances σ² of one layer, the number of layers, and the steps by which x is differentiated."""

    activation: Activation
    w: mpf
    u: mpf
    b: mpf
    depth: int
    steps: tuple[int, ...]


@dataclass
class Activated:
    """V and V' at one layer and step, with their tangents."""

    value: mpf
    slope: mpf
    d_value: Tangent
    d_slope: Tangent


def zeros() -> Tangent:
    return [mpf(0)] * DIRECTIONS


def along(*terms: tuple[mpf, Tangent]) -> Tangent:
    """Σ factor · tangent."""
    return [mpmath.fsum(factor * tangent[k] for factor, tangent in terms) for k in range(DIRECTIONS)]


def recursion(
    network: Network,
    inputs: list[tuple[mpf, Tangent]],
    dual: Callable[[int, int, mpf, Tangent], Activated],
) -> tuple[mpf, mpf, Tangent]:
    """NTK and NNGP at the last step, and the tangent of the NTK.

    ``inputs`` are ⟨x, y⟩/m with tangents, and ``dual`` maps layer, step, Σ and its tangent to V and V'.
    """
    w, u, b = network.w, network.u, network.b
    nothing = Activated(mpf(0), mpf(0), zeros(), zeros())
    past = [(nothing, mpf(0), zeros())] * network.depth  # V, Θ and its tangent at the step before
    for step, (inner, d_inner) in enumerate(inputs):
        below, theta_below, d_theta_below = Activated(inner, mpf(0), d_inner, zeros()), mpf(0), zeros()
        for layer in range(network.depth):
            back, theta_back, d_theta_back = past[layer]
            sigma = w * back.value + u * below.value + b
            d_sigma = along((w, back.d_value), (u, below.d_value))
            for k, part in enumerate((w * back.value, u * below.value, b)):  # σ² has derivative 2σ² by log σ
                d_sigma[k] += 2 * part
            carried, lifted = w * back.slope * theta_back, u * below.slope * theta_below
            theta = sigma + carried + lifted
            d_theta = along(
                (mpf(1), d_sigma),
                (w * back.slope, d_theta_back),
                (w * theta_back, back.d_slope),
                (u * below.slope, d_theta_below),
                (u * theta_below, below.d_slope),
            )
            d_theta[0] += 2 * carried
            d_theta[1] += 2 * lifted
            below, theta_below, d_theta_below = dual(layer, step, sigma, d_sigma), theta, d_theta
            past[layer] = below, theta, d_theta
    d_ntk = along((mpf(1), below.d_value), (below.slope, d_theta_below), (theta_below, below.d_slope))
    return below.value + below.slope * theta_below, below.value, d_ntk


@dataclass
class Alone:
    """A sequence by itself: its variances by layer and step with tangents, and its own kernels."""

    q: list[list[mpf]]
    d_q: list[list[Tangent]]
    ntk: mpf
    nngp: mpf
    d_ntk: Tangent


def alone(network: Network, x: Vectors, moving: bool) -> Alone:
    """``moving``: the sequence is the one by whose inputs is differentiated."""
    q: list[list[mpf]] = [[] for _ in range(network.depth)]
    d_q: list[list[Tangent]] = [[] for _ in range(network.depth)]

    def dual(layer: int, step: int, sigma: mpf, d_sigma: Tangent) -> Activated:
        q[layer].append(sigma)
        d_q[layer].append(d_sigma)
        own = network.activation.own(sigma)
        return Activated(own.value, own.slope, along((own.value_q, d_sigma)), along((own.slope_q, d_sigma)))

    inputs = []
    for t, vector in enumerate(x):
        tangent = zeros()
        for k, step in enumerate(network.steps):
            if moving and t == step:
                tangent[len(HYPERPARAMETERS) + k] = 2 * vector[0] / len(vector)
        inputs.append((mpmath.fdot(vector, vector) / len(vector), tangent))
    return Alone(q, d_q, *recursion(network, inputs, dual))


@dataclass
class Together:
    """Kernels of a pair. ``kinks`` marks the directions in which the NTK has no derivative."""

    ntk: mpf
    nngp: mpf
    d_ntk: Tangent
    kinks: set[int] = field(default_factory=set)


def together(network: Network, x: Vectors, y: Vectors, of_x: Alone, of_y: Alone) -> Together:
    """The pair, aligned at the last steps of both sequences."""
    skip_x, skip_y = max(0, len(x) - len(y)), max(0, len(y) - len(x))
    channels = len(x[0])
    kinks: set[int] = set()

    def dual(layer: int, step: int, sigma: mpf, d_sigma: Tangent) -> Activated:
        q, d_q = of_x.q[layer][step + skip_x], of_x.d_q[layer][step + skip_x]
        r, d_r = of_y.q[layer][step + skip_y], of_y.d_q[layer][step + skip_y]
        if not (q and r):  # THEORY section 5, zero variance: Σ and Θ are zero whatever moves, V' is not asked for
            if sigma or any(d_sigma):
                raise ArithmeticError("a covariance with a step of zero variance is not zero")
            if network.activation.at_zero is not None:
                return Activated(network.activation.at_zero**2, mpf(0), zeros(), zeros())
        p = network.activation.pair(q, r, sigma)
        if p.parallel:
            # c = ±1 stays so if there is one direction only: one channel, no bias, no past. It also stays so when all
            # layers move by a factor. Otherwise 1 - |c| grows with the square of the step, and V' with its root.
            rigid = channels == 1 and not network.b and step == 0
            for k in range(DIRECTIONS):
                if k >= len(HYPERPARAMETERS) and not rigid and (d_q[k] or d_r[k] or d_sigma[k]):
                    kinks.add(k)
                elif abs(d_sigma[k] / sigma - (d_q[k] / q + d_r[k] / r) / 2) > mpf(10) ** (-mpmath.mp.dps // 2):
                    raise ArithmeticError("a correlation of one moves")
        return Activated(
            p.value,
            p.slope,
            along((p.slope, d_sigma), (p.value_q, d_q), (p.value_r, d_r)),
            along((p.slope_s, d_sigma), (p.slope_q, d_q), (p.slope_r, d_r)),
        )

    inputs = []
    for t, (a, b) in enumerate(zip(x[skip_x:], y[skip_y:], strict=True)):
        tangent = zeros()
        for k, step in enumerate(network.steps):
            if t + skip_x == step:
                tangent[len(HYPERPARAMETERS) + k] = b[0] / channels
        inputs.append((mpmath.fdot(a, b) / channels, tangent))
    return Together(*recursion(network, inputs, dual), kinks)


# Cases -------------------------------------------------------------------------------------------------------


def activation(name: str, digits: int) -> Activation:
    return {"tanh": Tanh, "sigmoid": Sigmoid}[name](digits) if name in LATTICE else closed_form(name)


def solve(case: Case, digits: int) -> dict[str, mpf | None]:
    """All quantities of a case with this many working digits, or with lattice sums of this many digits."""
    size = 4 * abs(round(math.log10(case.scale)))  # numbers of very different size meet where inputs are large or small
    with mpmath.workdps(digits + size + (SPARE_DIGITS if case.activation in LATTICE else 0)):
        x, y = ([[mpf(float(value)) for value in row] for row in sequence] for sequence in sequences(case))
        w, u, b = (mpf(sigma) ** 2 for sigma in case.sigmas)
        network = Network(activation(case.activation, digits), w, u, b, case.depth, case.steps)
        of_x, of_y = alone(network, x, True), alone(network, y, False)
        pair = together(network, x, y, of_x, of_y)
        result: dict[str, mpf | None] = {}
        for name, kernels in (("xy", pair), ("xx", of_x), ("yy", of_y)):
            result |= {f"ntk_{name}": kernels.ntk, f"nngp_{name}": kernels.nngp}
        for k, (sigma, variance) in enumerate(zip(HYPERPARAMETERS, (w, u, b), strict=True)):
            for name, kernels in (("xy", pair), ("xx", of_x)):
                result[f"d_log_{sigma}_{name}"] = kernels.d_ntk[k] if variance else None
        for k, step in enumerate(STEPS, start=len(HYPERPARAMETERS)):
            result[f"d_x_{step}"] = None if k in pair.kinks else pair.d_ntk[k]
        return {name: result[name] for name in QUANTITIES}


def agree(first: dict[str, mpf | None], second: dict[str, mpf | None]) -> list[str]:
    """Names of the quantities in which two answers differ after `AGREEMENT` digits."""
    differing = []
    for name, value in second.items():
        other = first[name]
        if (value is None) != (other is None):
            differing.append(name)
        elif value is not None:
            with mpmath.workdps(2 * AGREEMENT):
                if not abs(value - other) <= abs(value) * mpf(10) ** -AGREEMENT:
                    differing.append(name)
    return differing


def confirmed(case: Case) -> dict[str, str | int | None]:
    """The entry of a case: decimals of the second of two answers that agree."""
    lattice = case.activation in LATTICE
    digits = LATTICE_DIGITS if lattice else CLOSED_DIGITS
    for _ in range(4):
        more = digits * 5 // 4 if lattice else digits * 3 // 2
        first, second = solve(case, digits), solve(case, more)
        differing = agree(first, second)
        if not differing:
            return {"digest": digest(case), "working_digits": more} | {k: decimal(v) for k, v in second.items()}
        digits *= 2
    raise ArithmeticError(f"{case.name}: {more} digits leave {differing} unsettled")


def decimal(value: mpf | None) -> str | None:
    if value is None:
        return None
    if not value:
        return "0"
    with mpmath.workdps(2 * DIGITS):
        return mpmath.nstr(value, DIGITS, strip_zeros=False, min_fixed=1, max_fixed=0)


def save(entries: dict[str, dict], path: Path) -> None:
    """One line per case, in the order of `cases`; the old file is replaced when the new one is complete."""
    head = {
        "made_by": "tests/oracles/make_battery_values.py",
        "mpmath": mpmath.__version__,
        "values": f"{DIGITS} significant digits; null where there is no derivative",
    }
    order = [case.name for case in cases() if case.name in entries]
    lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in order]
    opening = json.dumps(head, indent=1).removesuffix("\n}")
    text = opening + ',\n "cases": {\n  ' + ",\n  ".join(lines) + "\n }\n}\n"
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write battery_values.json.")
    parser.add_argument("activations", nargs="*", metavar="activation", help=f"some of {', '.join(ACTIVATIONS)}")
    parser.add_argument("--again", action="store_true", help="compute cases anew that are already there")
    parser.add_argument("--target", type=Path, default=SOURCE)
    options = parser.parse_args()
    if unknown := set(options.activations) - set(ACTIVATIONS):
        parser.error(f"unknown activations: {', '.join(sorted(unknown))}")
    stored = json.loads(options.target.read_text(encoding="utf-8"))["cases"] if options.target.exists() else {}
    everything = cases()
    entries = {case.name: stored[case.name] for case in everything if case.name in stored}
    wanted = [case for case in everything if case.activation in (options.activations or ACTIVATIONS)]
    missing = [c for c in wanted if options.again or entries.get(c.name, {}).get("digest") != digest(c)]
    begin = saved = time.monotonic()
    for count, case in enumerate(missing, start=1):
        started = time.monotonic()
        entries[case.name] = confirmed(case)
        now = time.monotonic()
        print(f"{count}/{len(missing)}  {now - started:6.2f} s  {case.name}", flush=True)
        if now - saved > SAVE_SECONDS:
            save(entries, options.target)
            saved = now
    save(entries, options.target)
    print(f"{len(missing)} cases in {time.monotonic() - begin:.0f} s, {len(entries)} in all")


if __name__ == "__main__":
    main()
