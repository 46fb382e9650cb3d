"""`rntk demo`: classify real series with the RNTK and with RBF, print a table, save a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .extras import require

DATA_SETS = ("GunPoint", "ArrowHead")


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the picture.")] = Path("demo-output"),
) -> None:
    """Classify real data with the RNTK and with RBF, and save a picture."""
    require("demo", ("aeon.datasets", "matplotlib"))
    picture = _prepare(out)

    from rich import box
    from rich.console import Console
    from rich.table import Table

    from .demonstration import classify_cut_series, draw, load, try_rbf, try_rntk, warm_up

    console = Console(highlight=False)
    console.print("Getting compiled code ready: compiling once takes some seconds; later runs load it.")
    console.print(f"Ready after {warm_up():.1f} s. Two data sets, two kernels:")
    table = Table(
        title="Accuracy on the test series; every setting was chosen on the training series",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in ("data set", "kernel", "accuracy", "chosen on the training series", "time"):
        table.add_column(heading, justify="right" if heading in ("accuracy", "time") else "left", no_wrap=True)
    sets, verdicts, remarks = [], [], []
    for name in DATA_SETS:
        data = load(name)
        console.print(f"  {name}: {data.subject}; {len(data.train)} series to learn from, {len(data.test)} to test")
        ours, theirs = try_rntk(data), try_rbf(data)
        for trial in (ours, theirs):
            table.add_row(
                name if trial is ours else "",
                trial.kernel,
                f"{trial.accuracy:.1%}",
                trial.chosen,
                f"{trial.seconds:.1f} s",
            )
        table.add_section()
        sets.append(data)
        verdicts.append(_verdict(name, len(data.test), ours.accuracy - theirs.accuracy))
        from_whole, from_cut = classify_cut_series(data)
        remarks.append(f"on {name} {from_cut:.1%} if it learned from cut series, {from_whole:.1%} if from whole ones")
    draw(sets, picture)
    console.print()
    console.print(table)
    console.print(f"What it means: {'; '.join(verdicts)}. Neither kernel wins everywhere: try both on your data.\n")
    console.print(
        "Unequal lengths need no padding. With up to half of every test series cut off at its start, the RNTK gets "
        f"{'; '.join(remarks)}. RBF needs series of one length.\n"
    )
    console.print("What to try next: RNTKClassifier().fit(X, y) with your own list of sequences; README.md says more.")
    console.print("Picture:", str(picture), soft_wrap=True)


def _verdict(name: str, count: int, lead: float) -> str:
    series = round(abs(lead) * count)
    if series == 0:
        return f"on {name} both are equally good"
    return f"on {name} {'RNTK' if lead > 0 else 'RBF'} gets {series} more of {count} series right"


def _prepare(out: Path) -> Path:
    """The picture's path, its folder made and found writable: better now than after the work."""
    path = out / "rntk-demo.png"
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out {out} is a file, not a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise typer.BadParameter(f"--out {out} can't be written to: {error.strerror}") from None
    return path
