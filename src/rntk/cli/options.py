"""The arguments that commands share, and what they stand for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
TaskOption = Annotated[
    str,
    typer.Option(
        metavar="TASK",
        help="auto, classify or regress; auto: numbers are targets if they have fractions or none occurs twice, other "
        "labels classes.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")]


def read_data(path: Path, label: str, format: str | None, missing: str) -> LabelledSequences:
    """The sequences in a file, or a refusal."""
    from ..io import read

    with refusing():
        return read(path, format=format, label=label, missing=missing)  # type: ignore[arg-type]  # `read` says what it takes


def load_model(path: Path) -> Any:
    """The learner in a file, or a refusal."""
    from ..io import load

    with refusing():
        return load(path)


def check_target(path: Path, force: bool, inputs: tuple[Path, ...] = ()) -> None:
    """Refuse a file that can't be written: better now than after the work."""
    try:
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            path.stat()
    except OSError as error:  # a name too long, say, about which exists() is silent from Python 3.14 on
        refuse(f"--out {path} can't be written: {error.strerror or error}")
    if path.is_dir():
        refuse(f"--out {path} is a folder; give the name of a file in it")
    if not path.parent.is_dir():
        refuse(f"--out {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        refuse(f"--out {path}: the folder {path.parent} can't be written to")
    if path.exists() and not path.is_file():
        refuse(f"--out {path} is not a regular file, and only those are replaced; give another name")
    if path.exists() and any(each.exists() and path.samefile(each) for each in inputs):
        refuse(f"--out {path} is one of the files to read; give another name")
    if path.exists() and not force:
        refuse(f"--out {path} exists; pass --force to replace it, or give another name")


def predict(model: Any, model_path: Path, data: LabelledSequences) -> Any:
    """The model's predictions for the sequences of a file, or a refusal."""
    expected, found = model.n_channels_in_, data.X.n_channels
    if expected != found:
        refuse(f"{model_path} was fitted to {_channels(expected)}, and {data.path} has {_channels(found)}")
    with refusing(f"{model_path} can't predict {data.path}"):
        return model.predict(data.X)


def _channels(count: int) -> str:
    return f"{count} channel{'s' if count != 1 else ''}"
