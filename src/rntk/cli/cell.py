"""`rntk cell`: a recurrent cell as a program, the rules it follows, and its kernels on a few sequences."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import JsonOption
from .output import make_console, make_table, print_json
from .refusal import refuse, refusing


def cell(
    name: Annotated[str, typer.Argument(metavar="NAME", help="elman, leaky, gru, lstm, ...")] = "gru",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the cell, such as sigma_w=1.2."),
    ] = None,
    depth: Annotated[int, typer.Option(metavar="N", help="Stacked layers.")] = 1,
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of the sequences that kernels are shown for.")] = 8,
    back: Annotated[bool, typer.Option("--backward", help="Also print the backward program of two steps.")] = False,
    dot: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the program as a graph for Graphviz.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a recurrent cell: its program, its rules, its kernels."""
    import numpy as np

    from ..programs import CELLS, ProgramKernel
    from ..programs.backward import backward

    if name not in CELLS:
        refuse(f"there is no cell {name!r}; there are {', '.join(CELLS)}")
    if steps < 1:
        refuse(f"--steps must be 1 or more, not {steps}")
    given = dict(_parameter(each) for each in set_ or [])
    with refusing(f"the cell {name} can't be made"):
        try:
            kernel = ProgramKernel(name, depth=depth, **given)
        except TypeError as error:
            refuse(str(error))
        program = kernel.program()
    if dot is not None:
        dot.write_text(program.dot() + "\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, steps)).cumsum(axis=1)
    begin = time.perf_counter()
    with refusing(f"the kernels of {name} can't be computed"):
        both = kernel.both(X / np.abs(X).max())
    seconds = time.perf_counter() - begin
    if as_json:
        print_json(
            {
                "cell": name,
                "exact": kernel.exact,
                "why_sampled": kernel.why_sampled,
                "program": program.to_dict(),
                **both._asdict(),
                "seconds": round(seconds, 3),
            }
        )
        return
    console = make_console()
    console.print(str(program))
    console.print("\nRules (27), (28): means are zero but for biases that have one, and")
    console.print(program.rules())
    if back:
        console.print("\nBackward, two steps:")
        console.print(str(backward(program, 2)))
    reason = "exact: every expectation is known" if kernel.exact else f"sampled: {kernel.why_sampled}"
    console.print(f"\nKernels of three random walks of {steps} steps, {reason}")
    table = make_table("pair", "NNGP", "NTK", "standard error")
    for i in range(3):
        for j in range(i, 3):
            table.add_row(
                f"{i + 1}, {j + 1}", f"{both.nngp[i, j]:.4f}", f"{both.ntk[i, j]:.4f}", f"{both.ntk_error[i, j]:.1e}"
            )
    console.print(table)
    console.print(f"Time: {seconds:.1f} s")


def _parameter(text: str) -> tuple[str, Any]:
    """A word KEY=VALUE as a name and a number, or a word."""
    key, equals, value = text.partition("=")
    if not equals:
        refuse(f"--set {text} must be KEY=VALUE")
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            pass
    return key, value
