"""One page on everything: made from records alone, with every picture inside it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .figures import embed
from .store import DamagedRecordError, read_sealed
from .study import Mode, NotRunError, Plain, Results, Study, Verdict

TEMPLATE = "report.html.j2"


def read_records(folder: Path) -> tuple[list[Plain], list[str]]:
    """The records under `folder`, and what is damaged, in words."""
    records, damage = [], []
    for path in sorted(folder.glob("*/record.json")):
        try:
            records.append(read_sealed(path))
        except DamagedRecordError as problem:
            damage.append(str(problem))
    return records, damage


def write_report(out: Path, mode: Mode, studies: Mapping[str, Study]) -> Path:
    """Write out/mode/report.html from the records there; returns its path.

    Parameters
    ----------
    studies : by name, in the order of the page; they draw the figures from the results that records hold.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    folder = out / mode.value
    records, damage = read_records(folder)
    order = {name: position for position, name in enumerate(studies)}
    records.sort(key=lambda record: order.get(record["study"], len(order)))
    rows = [_row(record, studies.get(record["study"])) for record in records]
    counts = Counter(claim["verdict"] for record in records for claim in record["claims"])
    page = Environment(
        loader=PackageLoader("rntk.papers.reproduce", "templates"), autoescape=True, undefined=StrictUndefined
    ).get_template(TEMPLATE)
    text = page.render(
        mode=mode.value,
        rows=rows,
        counts=[(verdict.value, counts[verdict.value]) for verdict in Verdict],
        damage=damage,
        absent=[name for name in studies if name not in {record["study"] for record in records}],
        made=datetime.now(UTC).strftime("%Y-%m-%d"),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    partial = path.with_name(f".report.{os.getpid()}.partial")
    partial.write_text(text, "utf-8")
    os.replace(partial, path)
    return path


def _row(record: Plain, study: Study | None) -> dict[str, Any]:
    """What the page shows of a record."""
    results = Results({name: unit["result"] for name, unit in record["units"].items()})
    units = record["run"]["units"].values()
    return {
        **record,
        "pictures": embed(study, results) if study is not None else {},
        "tables": _tables(study, results),
        "seconds": sum(unit["seconds"] for unit in units),
        "finished": max((unit["finished"] for unit in units), default=""),
        "environments": list(record["run"]["environments"].values()),
        "configs": {name: unit["config"] for name, unit in record["units"].items()},
        "verdicts": dict(Counter(claim["verdict"] for claim in record["claims"])),
    }


def _tables(study: Study | None, results: Results) -> dict[str, list[list[str]]]:
    try:
        return study.tables(results) if study is not None else {}
    except NotRunError:
        return {}
