"""The arguments that commands share, and what they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import counted
from .refusal import refuse, refusing

if TYPE_CHECKING:
    from ..io import LabelledSequences


DataArgument = Annotated[Path, typer.Argument(metavar="DATA", help="Sequences: a .tsv, .ts, .arff or .csv file.")]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `rntk fit` saved.")]
LabelOption = Annotated[
    str, typer.Option(metavar="WHERE", help="Where labels stand: auto, first, last, none, or a column's name.")
]
FormatOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Format of DATA if its suffix does not tell: tsv, ts, arff or csv.")
]
MissingOption = Annotated[
    str, typer.Option(metavar="WHAT", help="Missing values: error refuses the file, interpolate fills them in.")
]
HeaderOption = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first row of a .csv holds names; looked at.")
]
DecimalOption = Annotated[str | None, typer.Option(metavar="SIGN", help="Decimal sign in a .csv or .tsv: . or ,")]
TaskOption = Annotated[
    str,
    typer.Option(
        metavar="TASK",
        help="auto, classify or regress; auto regresses on numbers with fractions, or all different.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")]


def read_data(
    path: Path, label: str, format: str | None, missing: str, header: bool | None, decimal: str | None
) -> LabelledSequences:
    """The sequences in a file, or a refusal."""
    from ..io import read

    with refusing():
        # `read` says what it takes for `missing`.
        return read(path, format=format, label=label, missing=missing, header=header, decimal=decimal)  # type: ignore[arg-type]


def load_model(path: Path) -> Any:
    """The learner in a file, or a refusal."""
    from ..io import load

    with refusing():
        return load(path)


def check_target(path: Path, force: bool, inputs: tuple[Path, ...] = ()) -> None:
    """Refuse a file that can't be written: better now than after the work."""
    from ..errors import check_path

    with refusing():
        check_path("--out", path)
    there = path.exists()
    for wrong, reason in (
        (path.is_dir(), " is a folder; give the name of a file in it"),
        (not path.parent.is_dir(), f": there is no folder {path.parent}"),
        (not os.access(path.parent, os.W_OK), f": the folder {path.parent} can't be written to"),
        (there and not path.is_file(), " is not a regular file, and only those are replaced; give another name"),
        (there and any(each.exists() and path.samefile(each) for each in inputs), " is one of the files to read"),
        (there and not force, " exists; pass --force to replace it, or give another name"),
    ):
        if wrong:
            refuse(f"--out {path}{reason}")


def predict(model: Any, model_path: Path, data: LabelledSequences) -> Any:
    """The model's predictions for the sequences of a file, or a refusal."""
    if model.n_channels_in_ != data.X.n_channels:
        needed, there = counted(model.n_channels_in_, "channel"), counted(data.X.n_channels, "channel")
        refuse(f"{model_path} was fitted to {needed}, and {data.path} has {there}")
    with refusing(f"{model_path} can't predict {data.path}"):
        return model.predict(data.X)
