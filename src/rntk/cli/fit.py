"""`rntk fit`: choose kernels for the sequences in a file, fit, and save the model."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .extras import require
from .options import (
    DataArgument,
    ForceOption,
    FormatOption,
    JsonOption,
    LabelOption,
    Missing,
    MissingOption,
    check_target,
    read_data,
)
from .output import counted, make_console, make_table, print_json, short
from .refusal import refuse, refusing

if TYPE_CHECKING:
    from ..io import LabelledSequences


class TaskOption(StrEnum):
    """What the labels are."""

    AUTO = "auto"
    CLASSIFY = "classify"
    REGRESS = "regress"


TASK_HELP = "auto: numbers are targets if they have fractions or none occurs twice, other labels classes."


def fit(
    data: DataArgument,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="File for the model, by custom named .rntk.")],
    task: Annotated[TaskOption, typer.Option(help=TASK_HELP)] = (TaskOption.AUTO),
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; all cores unless given.")] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of Gram matrices: an interrupted search goes on.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", help="For the sample of many sequences that kernels are chosen on.", min=0, max=2**32 - 1
        ),
    ] = 0,
    label: LabelOption = "auto",
    format: FormatOption = None,
    missing: MissingOption = Missing.ERROR,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Choose kernels for labelled sequences, fit, and save the model."""
    check_target(out, force, (data,))
    if cache is not None:
        require("disk", ("zarr",))
    content = read_data(data, label, format, missing)
    classify, y = _targets(content, task)

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
    report = _report(model, content, y, classify)
    report |= {"data": str(data), "model": str(out), "seed": seed, "seconds": round(seconds, 3)}
    if as_json:
        print_json(report)
    else:
        _show(report)


def _targets(content: LabelledSequences, task: TaskOption) -> tuple[bool, Any]:
    """Whether to classify, and the labels in the type that goes with it."""
    if content.y is None:
        refuse(f"{content.path} has no labels, and fit learns from labels; --label says where they stand")

    from ..sequences.targets import read_task

    with refusing():
        found, y = read_task(content.y, task.value, str(content.path))
    if found == "classify" and len(set(y.tolist())) == 1:
        refuse(f"{content.path} has a single class, {str(y[0])!r}; a classifier needs at least two")
    return found == "classify", y


# -- the report ---------------------------------------------------------------------------------------------------


def _report(model: Any, content: LabelledSequences, y: Any, classify: bool) -> dict[str, Any]:
    from .. import __version__

    lengths, results = content.X.lengths, model.cv_results_
    order = results["rank_test_score"].argsort()[: len(model.members_)]
    return {
        "rntk_version": __version__,
        "task": "classify" if classify else "regress",
        "n_sequences": len(content.X),
        "n_channels": content.X.n_channels,
        "min_length": int(lengths.min()),
        "max_length": int(lengths.max()),
        "classes": model.classes_.tolist() if classify else None,
        "n_candidates": len(results["params"]),
        "chosen": [_chosen(results, k) for k in order],
        "score": _score(model, y, classify),
    }


def _chosen(results: dict[str, Any], k: int) -> dict[str, Any]:
    """Settings and score of one candidate; scores are accuracies, or minus squared errors."""
    ridge, score = float(results["ridge"][k]), float(results["mean_test_score"][k])
    return {**results["params"][k], "ridge": ridge, "score": score}


def _score(model: Any, y: Any, classify: bool) -> dict[str, Any]:
    """How good the model is on sequences it has not seen, as far as the training data tells."""
    # R² compares with the mean of the targets.
    value = float(model.loo_score_) if classify or y.var() > 0 else None
    measure = "accuracy" if classify else "r2"
    return {"measure": measure, "by": "leave-one-out", "of": "the model", "value": value}


def _show(report: dict[str, Any]) -> None:
    console = make_console()
    lengths = sorted({report["min_length"], report["max_length"]})
    classes = f", {counted(len(report['classes']), 'class', 'classes')}" if report["classes"] else ""
    console.print(
        f"{'Classification' if classes else 'Regression'}: {counted(report['n_sequences'], 'sequence')}{classes}, "
        f"{counted(report['n_channels'], 'channel')}, {' to '.join(map(str, lengths))} steps"
    )
    chosen = report["chosen"]
    console.print(f"Tried {report['n_candidates']} candidates; the {len(chosen)} best, which are averaged:")
    headings = list(dict.fromkeys(name for each in chosen for name in each))
    words = sum(isinstance(chosen[0].get(name), str) for name in headings)
    headings.sort(key=lambda name: not isinstance(chosen[0].get(name), str))  # words first; the sort is stable
    table = make_table(*headings, left=words)
    for each in chosen:
        table.add_row(*(short(each.get(name, "")) for name in headings))
    console.print(table)
    console.print(_describe_score(report["score"]))
    console.print(f"Time: {report['seconds']:.1f} s")
    console.print("Model:", report["model"], soft_wrap=True)


def _describe_score(score: dict[str, Any]) -> str:
    name = "accuracy" if score["measure"] == "accuracy" else "R²"
    by = score["by"].capitalize()
    if score["value"] is None:
        return f"{by} {name}: none, because all targets are equal"
    value = f"{score['value']:.1%}" if score["measure"] == "accuracy" else f"{score['value']:.4f}"
    return f"{by} {name} of {score['of']}: {value} (it was chosen on the same data, so this is a little too good)"
