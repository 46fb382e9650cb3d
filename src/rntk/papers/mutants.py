"""Claims put to the test: each judged once with something broken on purpose, when it must fail."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from .record import plain, read_sealed, write_sealed
from .study import Mode, Mutant, NotRunError, Plain, Results, Study, Verdict

#: A claim that was reproduced, with conditions or without.
HOLDS = (Verdict.REPRODUCED.value, Verdict.CONDITIONS.value)
FILE = "mutants.json"


def hunt(
    studies: Iterable[Study], out: Path, data: Path | None = None, say: Callable[[str], None] = lambda line: None
) -> list[Plain]:
    """Judge every claim that has a mutant with it and without, and keep the table in out/mutants.json.

    Parameters
    ----------
    studies : iterable of Study
        Whose mutants are tried.
    out : Path
        The folder of results; mutants without settings change the results in the full records there.
    data : Path
        Folder of data sets.
    say : callable
        Is told what happens, line by line.

    Returns
    -------
    list of dict
        Rows with study, claim, broken (what is), kind ("computed" or "recorded"), unbroken and verdict (without it and
        with it), and killed: whether the claim held and no longer does.
    """
    rows = []
    for study in studies:
        whole: dict[str, dict[str, str]] = {}
        for mutant in study.mutants:
            kind = "recorded" if mutant.settings is None else "computed"
            try:
                key = repr((kind, mutant.only, mutant.settings))
                if key not in whole:
                    whole[key] = _verdicts(study, _results(study, mutant, out, data))
                with _broken(mutant):
                    found = _results(study, mutant, out, data)
                if mutant.result is not None:
                    for name, result in found.items():
                        mutant.result(name, result)
                with_it = _verdicts(study, found)
            except NotRunError as why:
                say(f"{study.name}, {mutant.broken}: not run, {why}")
                continue
            for claim in mutant.claims:
                before, after = whole[key][claim], with_it[claim]
                killed = (before in HOLDS, after in HOLDS) == ((False, True) if mutant.misprint else (True, False))
                killed = killed and Verdict.NOT_RUN.value not in (before, after)
                row = {"study": study.name, "claim": claim, "broken": mutant.broken, "kind": kind}
                rows.append({**row, "unbroken": before, "verdict": after, "killed": killed})
                say(f"{study.name}, {claim}: {mutant.broken}: {before} → {after}{'' if killed else ' SURVIVES'}")
    return rows


def keep(rows: list[Plain], out: Path) -> Path:
    """Write the table; rows of studies that were not tried now stay as they are there."""
    path = out / FILE
    tried = {row["study"] for row in rows}
    old = read_sealed(path)["mutants"] if path.exists() else []
    write_sealed(path, {"mutants": [*(row for row in old if row["study"] not in tried), *rows]})
    return path


@contextmanager
def _broken(mutant: Mutant) -> Iterator[None]:
    """With the mutant's target replaced by what it makes of it."""
    if not mutant.target or mutant.by is None:
        yield
        return
    module, _, path = mutant.target.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    with patch.object(owner, name, mutant.by(getattr(owner, name))):
        yield


def _results(study: Study, mutant: Mutant, out: Path, data: Path | None) -> dict[str, Plain]:
    """Plain results by unit: of the record, or computed with the mutant's settings."""
    if mutant.settings is None:
        path = out / Mode.FULL.value / study.name / "record.json"
        if not path.exists():
            raise NotRunError(f"there is no {path}")
        units = read_sealed(path)["units"]
        return {name: copy.deepcopy(unit["result"]) for name, unit in units.items()}
    if study.obstacle():
        raise NotRunError(study.obstacle())
    units = [unit for unit in study.units(Mode.QUICK, data) if not mutant.only or unit.name in mutant.only]
    return {unit.name: plain(study.compute(data, **{**unit.config, **mutant.settings})) for unit in units}


def _verdicts(study: Study, found: dict[str, Plain]) -> dict[str, str]:
    return {row["key"]: row["verdict"] for row in study.verdicts(Results(found))}
