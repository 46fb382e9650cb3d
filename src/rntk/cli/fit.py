"""`rntk fit`: fit the default learner to the sequences in a file, and save the model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    DataArgument,
    DecimalOption,
    ForceOption,
    FormatOption,
    HeaderOption,
    JsonOption,
    LabelOption,
    MissingOption,
    TaskOption,
    check_target,
    read_data,
)
from .output import make_console, print_json
from .refusal import refuse, refusing

if TYPE_CHECKING:
    from ..io import LabelledSequences


def fit(
    data: DataArgument,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="File for the model, by custom named .rntk.")],
    task: TaskOption = "auto",
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; all cores unless given.")] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of what was computed: an interrupted fit goes on.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="For the landmarks of many sequences.", min=0, max=2**32 - 1),
    ] = 0,
    label: LabelOption = "auto",
    format: FormatOption = None,
    missing: MissingOption = "error",
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit the default learner to labelled sequences, and save the model."""
    check_target(out, force, (data,))
    content = read_data(data, label, format, missing, header, decimal)
    classify, y = _targets(content, task)

    from .. import __version__
    from ..io import save
    from ..learners import RNTKClassifier, RNTKRegressor

    learner = RNTKClassifier if classify else RNTKRegressor
    model = learner(n_jobs=jobs, random_state=seed, cache=cache)
    begin = time.perf_counter()
    with refusing(f"{data} can't be fitted"):
        model.fit(content.X, y)
    seconds = time.perf_counter() - begin
    with refusing():
        save(model, out)
    report = {"rntk_version": __version__} | model.report()
    report |= {"data": str(data), "model": str(out), "seed": seed, "seconds": round(seconds, 3)}
    if as_json:
        print_json(report)
        return
    console = make_console()
    console.print(model.summary(), soft_wrap=True)
    console.print(f"Time: {seconds:.1f} s")
    console.print("Model:", str(out), soft_wrap=True)


def _targets(content: LabelledSequences, task: str) -> tuple[bool, Any]:
    """Whether to classify, and the labels in the type that goes with it."""
    if content.y is None:
        refuse(f"{content.path} has no labels, and fit learns from labels; --label says where they stand")

    from ..sequences.targets import read_task

    with refusing():
        found, y = read_task(content.y, task, str(content.path))
    if found == "classify" and len(set(y.tolist())) == 1:
        refuse(f"{content.path} has a single class, {str(y[0])!r}; a classifier needs at least two")
    return found == "classify", y
