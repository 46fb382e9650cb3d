"""`rntk explore`: a page in the browser where a kernel's settings are moved and their effect is seen at once."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .extras import require
from .options import (
    DecimalOption,
    FormatOption,
    HeaderOption,
    LabelOption,
    MissingOption,
    TaskOption,
    read_data,
)
from .output import make_console
from .refusal import refuse, refusing

if TYPE_CHECKING:
    from ..explore import Subject

#: Real data sets that ship with aeon, by name.
BUNDLED = ("GunPoint", "ArrowHead")


def explore(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]", help="A .tsv, .ts, .arff or .csv file; GunPoint or ArrowHead; generated data if left out."
        ),
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page, or only print where.")] = True,
    task: TaskOption = "auto",
    label: LabelOption = "auto",
    format: FormatOption = None,
    missing: MissingOption = "error",
    header: HeaderOption = None,
    decimal: DecimalOption = None,
) -> None:
    """Move a kernel's settings on a page in the browser, and see what they do."""
    require("explore", ("bokeh.server.server",))
    subject = _subject(data, task, label, format, missing, header, decimal)

    from ..explore.server import PageServer

    try:
        server = PageServer(subject, port)
    except OSError as error:
        refuse(f"--port {port} can't be used: {os.strerror(error.errno or 0)}; leave it out to take a free one")
    console = make_console()

    def started() -> None:
        console.print(f"{subject.name}: {subject.describe()}", soft_wrap=True)
        console.print(f"{server.address} (only on this machine; Ctrl-C ends it)", soft_wrap=True)
        if browser:
            webbrowser.open(server.address)

    server.run(started)
    console.print("ended")


def _subject(data: Path | None, task: str, *how: Any) -> Subject:
    """What to look at, or a refusal."""
    from ..explore import Subject, cylinder_bell_funnel

    if data is None:
        return cylinder_bell_funnel()
    if str(data) in BUNDLED and not data.exists():
        require("aeon", ("aeon.datasets",))
        from .demonstration import load

        bundled = load(str(data))
        return Subject.of(bundled.name, bundled.train, bundled.train_labels)
    content = read_data(data, *how)
    with refusing():
        return Subject.of(data.name, content.X, content.y, task)
