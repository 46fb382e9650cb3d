"""Figures of a study, drawn from its results; and one page on all studies, made from records and their figures."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..runtime import replacing
from .record import DamagedRecordError, plain, read_sealed, write_sealed, write_whole
from .study import Mode, NotRunError, Plain, Results, Study, Verdict

#: Dots per inch of PNG files.
DPI = 144


def write_figures(study: Study, results: Results, folder: Path) -> list[str]:
    """Write every figure as PNG and SVG; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, pictures in _draw(study, results, "png", "svg"):
        for suffix, picture in pictures.items():
            with replacing(folder / f"{name}.{suffix}", "wb") as file:
                file.write(picture)
        names.append(name)
    return names


def _draw(study: Study, results: Results, *suffixes: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Figures by name, as files of these kinds; none where results for them are missing, or matplotlib is."""
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError:
        return
    # No date and no random identifiers: the same results give the same file.
    with matplotlib.rc_context({"figure.max_open_warning": 0, "svg.hashsalt": f"rntk {study.name}"}):
        try:
            figures = study.figures(results)
        except NotRunError:
            return
        for name, figure in figures.items():
            found = {}
            for suffix in suffixes:
                file = io.BytesIO()
                metadata = {"Date": None} if suffix == "svg" else {}
                figure.savefig(file, format=suffix, dpi=DPI, metadata=metadata, bbox_inches="tight")
                found[suffix] = file.getvalue()
            pyplot.close(figure)
            yield name, found


def write_report(out: Path, mode: Mode, studies: Mapping[str, Study]) -> Path:
    """Write out/mode/report.html from the records there; returns its path.

    Parameters
    ----------
    out : Path
        The folder of results.
    mode : Mode
        Which of them.
    studies : mapping
        By name, in the order of the page; they make tables of the results that records hold.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    folder = out / mode.value
    records, damage = [], []
    for path in sorted(folder.glob("*/record.json")):
        try:
            records.append(read_sealed(path))
        except DamagedRecordError as problem:
            damage.append(str(problem))
    order = {name: position for position, name in enumerate(studies)}
    records.sort(key=lambda record: order.get(record["study"], len(order)))
    counts = Counter(claim["verdict"] for record in records for claim in record["claims"])
    pages = Environment(loader=PackageLoader("rntk.papers", "templates"), autoescape=True, undefined=StrictUndefined)
    finished = [unit["finished"] for record in records for unit in record["run"]["units"].values()]
    text = pages.get_template("report.html.j2").render(
        mode=mode.value,
        rows=[_row(record, studies.get(record["study"]), folder) for record in records],
        counts=[(verdict.value, counts[verdict.value]) for verdict in Verdict],
        damage=damage,
        absent=[name for name in studies if name not in {record["study"] for record in records}],
        summary=_summary(records),
        until=max(finished, default="")[:10],
    )
    write_whole(folder / "report.html", text)
    return folder / "report.html"


def judge_again(out: Path, mode: Mode, studies: Mapping[str, Study]) -> None:
    """Judge the results in the records of out/mode by the criteria of `studies`, and keep what that gives in them."""
    for path in sorted((out / mode.value).glob("*/record.json")):
        try:
            record = read_sealed(path)
        except DamagedRecordError:
            continue  # the report says so
        if record["study"] in studies:
            judged = judged_by(studies[record["study"]], record)
            if judged != record:
                write_sealed(path, judged)


def judged_by(study: Study, record: Plain) -> Plain:
    """The record with what the study's criteria make of its results today."""
    missing = {name: f"{name} failed: {failure}" for name, failure in record["failures"].items()}
    results = Results({name: unit["result"] for name, unit in record["units"].items()}, missing, record["obstacle"])
    return {**record, "title": study.title, "source": study.source, "claims": plain(study.verdicts(results))}


def _summary(records: list[Plain]) -> dict[str, list[dict[str, Any]]]:
    """What the page opens with: claims by what became of them, those that hold by study."""
    found: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("holds", "conditions", "differs", "misprints", "open")
    }
    for record in records:
        by: dict[str, list[Plain]] = {}
        for claim in record["claims"]:
            by.setdefault(claim["verdict"], []).append(claim)
        said = {"study": record["study"], "title": record["title"], "of": len(record["claims"])}
        if holding := [claim for claim in by.get(Verdict.REPRODUCED, []) if not claim["misprint"]]:
            found["holds"].append({**said, "claims": holding})
        found["conditions"] += [{**said, **claim} for claim in by.get(Verdict.CONDITIONS, [])]
        for claim in by.get(Verdict.DIFFERS, []):
            found["misprints" if claim["misprint"] else "differs"].append({**said, **claim})
        if undecided := by.get(Verdict.TOO_FEW, []) + by.get(Verdict.NOT_RUN, []):
            found["open"].append({**said, "claims": undecided})
    return found


def _row(record: Plain, study: Study | None, folder: Path) -> dict[str, Any]:
    """What the page shows of a record."""
    results = Results({name: unit["result"] for name, unit in record["units"].items()})
    units = record["run"]["units"].values()
    drawn = {name: folder / record["study"] / f"{name}.svg" for name in record["figures"]}
    return {
        **record,
        "pictures": {
            name: "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
            for name, path in drawn.items()
            if path.exists()
        },
        "tables": study.tables(results) if study is not None and results else {},
        "seconds": sum(unit["seconds"] for unit in units),
        "finished": max((unit["finished"] for unit in units), default=""),
        "environments": list(record["run"]["environments"].values()),
        "configs": {name: unit["config"] for name, unit in record["units"].items()},
        "verdicts": dict(Counter(claim["verdict"] for claim in record["claims"])),
    }
