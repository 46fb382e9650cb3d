"""`rntk reproduce`: the papers' figures and tables, one by one or all, and a report on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .extras import require
from .output import counted, make_console, make_table
from .refusal import refuse, refusing

if TYPE_CHECKING:
    from ..papers import Study


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments, or all. --list shows them.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--list", help="Show every experiment, what it needs and how long it takes.")
    ] = (False),
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, minutes for all (the default).")] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' sizes.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with data sets; the environment variable RNTK_DATA otherwise."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for records, figures and report.")] = Path("results"),
    jobs: Annotated[int, typer.Option(metavar="N", help="Processes, each with its share of the cores.", min=1)] = 1,
    report: Annotated[
        bool, typer.Option("--report", help="Only judge the records there are again, and write the report.")
    ] = False,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Judge claims with something broken on purpose; fail if one survives.")
    ] = False,
) -> None:
    """Reproduce figures and tables of the papers; go on where an earlier run stopped."""
    from ..papers import STUDIES

    if show:
        _show(STUDIES)
        return
    if quick and full:
        refuse("--quick and --full exclude each other")
    if not names and not report and not mutants:
        refuse("say what to reproduce: names from rntk reproduce --list, or all")
    with refusing():
        chosen = _choose(names or [], STUDIES)
    if mutants:
        _hunt(chosen or list(STUDIES.values()), out, data)
        return
    require("reproduce", ("jinja2", "matplotlib"))

    import matplotlib

    from ..errors import BusyError
    from ..papers import Mode, write_report
    from ..papers import reproduce as run
    from ..papers.data.folder import choose_folder
    from ..papers.report import judge_again

    matplotlib.use("Agg")  # files, never windows
    mode = Mode.FULL if full else Mode.QUICK
    console = make_console()
    failed, interrupted = 0, False
    try:
        if not report:
            with refusing():
                folder = choose_folder(data)
            records = run(chosen, mode, out, folder, jobs, say=lambda line: console.print(line, soft_wrap=True))
            failed = sum(len(record["failures"]) for record in records)
    except BusyError:
        refuse(f"another run writes into {out / mode.value}; wait for it, or pass another --out")
    except OSError as error:
        refuse(f"--out {out} can't be written: {error}")
    except KeyboardInterrupt:
        interrupted = True
        console.print("interrupted; what is finished is kept: the same command goes on from there")
    judge_again(out, mode, STUDIES)
    page = write_report(out, mode, STUDIES)
    console.print(f"report: {page}", soft_wrap=True)
    if interrupted:
        raise typer.Exit(130)
    if failed:
        console.print(f"{counted(failed, 'unit')} failed; the same command tries them again")
        raise typer.Exit(1)


def _hunt(studies: list[Study], out: Path, data: Path | None) -> None:
    """Print the table of mutants and verdicts; exit with 1 if a claim survives one."""
    from ..papers.data.folder import choose_folder
    from ..papers.mutants import hunt, keep

    console = make_console()
    with refusing():
        folder = choose_folder(data)
    rows = hunt(studies, out, folder, say=lambda line: console.print(line, soft_wrap=True))
    table = make_table("experiment", "claim", "broken", "without", "with it", left=5)
    for row in rows:
        told = row["verdict"] if row["killed"] else f"{row['verdict']}: survives"
        table.add_row(row["study"], row["claim"], row["broken"], row["unbroken"], told)
    console.print(table)
    survivors = sum(not row["killed"] for row in rows)
    console.print(f"{counted(len(rows), 'claim')} with something broken, {survivors} survive: {keep(rows, out)}")
    if survivors:
        raise typer.Exit(1)


def _choose(names: list[str], studies: dict[str, Study]) -> list[Study]:
    """The studies meant, in the order of the registry."""
    from ..papers.run import find_study

    wanted = {find_study(name, studies).name for name in names if name != "all"}
    return [study for study in studies.values() if "all" in names or study.name in wanted]


def _show(studies: dict[str, Study]) -> None:
    console = make_console()
    table = make_table("name", "what", "claims", "needs", "quick", "full", left=4)
    for study in studies.values():
        needs = ", ".join([*(f"rntk[{extra}]" for extra in study.extras), *filter(None, [study.needs])])
        name = ", ".join((study.name, *study.aliases))
        times = map(_minutes, study.minutes)
        table.add_row(name, f"{study.source}: {study.title}", str(len(study.claims)), needs, *times)
    totals = [_minutes(sum(times)) for times in zip(*(study.minutes for study in studies.values()), strict=True)]
    table.add_row("all", "", str(sum(len(study.claims) for study in studies.values())), "", *totals)
    console.print(table)
    console.print("Times are for two cores. Data: --data DIR, or the environment variable RNTK_DATA.")


def _minutes(minutes: float) -> str:
    return f"{minutes * 60:.0f} s" if minutes < 1 else f"{minutes:.0f} min"
