"""`rntk predict`: what a saved model says about the sequences in a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
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
    ModelArgument,
    check_target,
    load_model,
    read_data,
)
from .options import predict as predict_with
from .output import counted, make_console, make_table, print_json, short
from .refusal import refuse

if TYPE_CHECKING:
    from ..io import LabelledSequences

#: Rows on the screen; a file takes all.
MOST_ROWS = 40


def predict(
    model: ModelArgument,
    data: DataArgument,
    out: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="File for the predictions.")] = None,
    label: LabelOption = "auto",
    format: FormatOption = None,
    missing: MissingOption = "error",
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Predict the labels of sequences; pass --label none if the file has no labels."""
    if out is not None:
        check_target(out, force, (model, data))
    learner = load_model(model)
    content = read_data(data, label, format, missing, header, decimal)
    if label == "auto":
        _check_labels(learner, data, content)
    predictions = predict_with(learner, model, content)
    headings = ["sequence", *_names(predictions), *([] if content.y is None else ["label"])]
    if out is not None:
        _write(out, headings, _rows(predictions, content.y))
    if as_json:
        print_json(
            {
                "model": str(model),
                "data": str(data),
                "out": None if out is None else str(out),
                "task": "classify" if hasattr(learner, "classes_") else "regress",
                "n_sequences": len(predictions),
                "predictions": predictions,
                "labels": content.y,
            }
        )
        return
    console = make_console()
    if out is not None:
        console.print(f"{counted(len(predictions), 'prediction')}:", str(out), soft_wrap=True)
        return
    table = make_table(*headings)
    for row, _ in zip(_rows(predictions, content.y), range(MOST_ROWS), strict=False):
        table.add_row(*map(short, row))
    console.print(table)
    if len(predictions) > MOST_ROWS:
        console.print(f"… and {len(predictions) - MOST_ROWS} more; --out FILE.csv or --json gives all")


def _check_labels(learner: Any, data: Path, content: LabelledSequences) -> None:
    """Refuse labels that are more likely values: what is predicted for often has no labels."""
    if content.y is None or content.y.dtype.kind not in "iuf":  # words are no values
        return
    advice = "; if they are values, pass --label none; if they are labels, say where they stand: --label first or last"
    known = getattr(learner, "classes_", None)
    if known is not None and not {str(each) for each in known.tolist()} & {str(each) for each in content.y.tolist()}:
        some = ", ".join(map(str, known.tolist()[:4])) + (", …" if len(known) > 4 else "")
        refuse(f"{data} was read with labels such as {content.y[0]}, and none is a class of the model ({some}){advice}")
    fitted = getattr(learner, "sequences_", None)
    if known is None and fitted is not None and fitted.is_equal_length:
        steps = fitted.max_length
        if (content.X.lengths == steps - 1).all():
            refuse(
                f"{data} was read with labels such as {content.y[0]}, and its sequences are then one step shorter than "
                f"the {steps} steps of the training sequences{advice}"
            )


def _names(predictions: Any) -> list[str]:
    """Headings of the predictions: one, or one per target."""
    if predictions.ndim == 1:
        return ["prediction"]
    return [f"prediction_{k}" for k in range(predictions.shape[1])]


def _rows(predictions: Any, labels: Any) -> Iterator[list[Any]]:
    """Number of the sequence, from 0 as everywhere in rntk, predictions, and the label if there is one."""
    for i, found in enumerate(predictions.reshape(len(predictions), -1).tolist()):
        yield [i, *found, *([] if labels is None else [labels[i].item()])]


def _write(path: Path, headings: list[str], rows: Iterator[list[Any]]) -> None:
    from ..runtime import replacing

    try:
        with replacing(path) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(headings)
            writer.writerows(rows)
    except OSError as error:
        refuse(f"--out {path} can't be written: {error.strerror or error}")
