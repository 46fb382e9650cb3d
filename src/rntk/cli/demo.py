"""`rntk demo`: classify real series, forecast with error bars, see what decided; print a table and save a picture."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from .extras import require

COMPILE_SECONDS = 20


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the picture.")] = Path("demo-output"),
) -> None:
    """Classify real series, forecast with error bars, see what decided, and save a picture."""
    require("demo", ("aeon.datasets", "matplotlib"))
    picture = _prepare(out)

    from rich import box
    from rich.console import Console
    from rich.table import Table

    from .demonstration import MINIROCKET, OURS, RBF, compare, cut, draw, forecast, load, warm_up, weigh_hours

    console = Console(highlight=False)
    console.print(f"Compiling, MiniRocket too: about {COMPILE_SECONDS} s, and once only.")
    with ProcessPoolExecutor(1, get_context("spawn")) as beside:
        console.print(f"Ready after {warm_up(beside):.0f} s.\n")
        whole = [load(name) for name in ("ItalyPowerDemand", "GunPoint", "ArrowHead")]
        for data in whole:
            console.print(f"  {data.name}: {data.subject} ({len(data.train)} to learn from, {len(data.test)} new)")
        console.print("  Unequal lengths: the same, up to a quarter cut off at either end")
        trials, table = {}, Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("data set", OURS, MINIROCKET, RBF):
            table.add_column(heading, justify="left" if heading == "data set" else "right", no_wrap=True)
        for data in [*whole, *(cut(each) for each in whole[1:])]:
            trials[data.name] = compare(data, beside)
            cells = [f"{trial.accuracy:.1%}" for trial in trials[data.name]]
            table.add_row(data.name, *cells)
    console.print("\n1. Classify, with nothing set by hand: new series classified correctly")
    console.print(table)
    seconds = [sum(tried[k].seconds for tried in trials.values()) for k in range(3)]
    console.print(
        f"Seconds for all: {OURS} {seconds[0]:.1f}, {MINIROCKET} {seconds[1]:.1f}, {RBF} {seconds[2]:.1f}. On whole "
        f"series the first two are about as good; {OURS} takes unequal lengths as they are, for the others they are "
        "padded with zeros.\n"
    )
    weights = weigh_hours(whole[0])
    top = int(weights.by_step.argmax())
    console.print(
        f"2. See what decided. A day's demand for electricity says whether it is winter or summer: what moves {OURS}'s "
        f"decision most is the demand at {top} h, with {weights.by_step[top]:.0%} of the weight in "
        f"{weights.days} days (24 equal hours had {1 / len(weights.by_step):.0%} each).\n"
    )
    airline = forecast()
    console.print(
        f"3. Forecast with error bars. Airline passengers a month ahead: off by {airline.error:.1%} (linear regression "
        f"{airline.error_linear:.1%}, the same month a year before {airline.error_last_year:.1%}), and "
        f"{airline.inside} of {len(airline.mean)} months lie within two deviations.\n"
    )
    draw(whole[0], weights, trials, airline, picture)
    console.print("Next: RNTKClassifier().fit(X, y) with your own series; README.md shows how.")
    console.print("Picture:", str(picture), soft_wrap=True)


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
