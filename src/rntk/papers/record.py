"""Records on disk: written whole or not at all, sealed by a digest, so that damage is noticed."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from .. import __version__
from ..runtime import replacing
from .study import Plain, Study, Unit

#: Raised when the layout of records changes.
FORMAT = 1


class DamagedRecordError(Exception):
    """A file that isn't what was written: cut off, edited, or no record at all."""


def plain(value: Any) -> Any:
    """`value` as JSON has it: NumPy's numbers and arrays become Python's, NaN and infinities become None."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def digest(content: Any) -> str:
    """SHA-256 of plain values in canonical form."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_sealed(path: Path, content: Plain) -> None:
    """Write plain values with their digest; a reader sees the old file or the new one, never part of one."""
    content = plain(content)
    text = json.dumps({**content, "sha256": digest(content)}, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(path, text + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file, in its folder, under another name first: an interrupted run leaves whole files or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text)


def read_sealed(path: Path) -> Plain:
    """What `write_sealed` wrote, without the digest; `DamagedRecordError` if it is something else."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, ValueError) as error:
        raise DamagedRecordError(f"{path} is no JSON ({error})") from None
    if not isinstance(content, dict) or "sha256" not in content:
        raise DamagedRecordError(f"{path} has no seal")
    seal = content.pop("sha256")
    if digest(content) != seal:
        raise DamagedRecordError(f"{path} was changed after it was written: its digest differs")
    return content


def pack(entries: dict[str, Plain]) -> Plain:
    """Entries of units as a record has them: what was found under "units", when and where under "run"."""
    units: Plain = {}
    run: Plain = {"environments": {}, "units": {}}
    for name, entry in entries.items():
        units[name] = {key: entry[key] for key in ("key", "config", "result")}
        place = {key: entry["run"][key] for key in ("machine", "versions")}
        mark = digest(place)[:8]
        run["environments"][mark] = place
        when = {key: value for key, value in entry["run"].items() if key not in place}
        run["units"][name] = {**when, "environment": mark}
    return {"units": units, "run": run}


def unpack(record: Plain) -> dict[str, Plain]:
    """The entries that `pack` made a record of."""
    found: dict[str, Plain] = {}
    for name, unit in record["units"].items():
        when = dict(record["run"]["units"][name])
        found[name] = {**unit, "run": {**record["run"]["environments"][when.pop("environment")], **when}}
    return found


class StudyFolder:
    """The folder of one study: `record.json`, figures, and `units/` while units are still to come."""

    def __init__(self, path: Path, study: Study) -> None:
        self.path = path
        self.study = study
        self.journal = path / "units"
        #: What was found damaged, in words.
        self.damage: list[str] = []

    def key(self, unit: Unit) -> str:
        """What tells results apart: the study and its revision, the version of rntk, and the unit's settings."""
        said = {"study": self.study.name, "revision": self.study.revision, "rntk": __version__}
        return digest(plain({**said, "config": unit.config}))

    def finished(self, units: list[Unit]) -> dict[str, Plain]:
        """Entries of units that are done, by name. Damaged files are set aside under another name, and noted."""
        kept: dict[str, Plain] = {}
        record = self._read(self.path / "record.json")
        if record is not None:
            kept.update({entry["key"]: entry for entry in unpack(record).values()})
        for path in sorted(self.journal.glob("*.json")):
            entry = self._read(path)
            if entry is not None:
                kept[entry["key"]] = entry
        keys = {unit.name: self.key(unit) for unit in units}
        return {name: kept[key] for name, key in keys.items() if key in kept}

    def keep(self, unit: Unit, result: Plain, run: Plain) -> Plain:
        """Write the result of a unit; the entry that goes into the record."""
        entry = plain({"key": self.key(unit), "config": unit.config, "result": result, "run": run})
        write_sealed(self.journal / f"{unit.name}.json", entry)
        return dict(entry)

    def write_record(self, record: Plain) -> None:
        """Write the record; the journal, which it contains, goes."""
        write_sealed(self.path / "record.json", {"format": FORMAT, **record})
        for path in self.journal.glob("*.json"):
            path.unlink()
        if self.journal.is_dir() and not any(self.journal.iterdir()):
            self.journal.rmdir()

    def _read(self, path: Path) -> Plain | None:
        if not path.exists():
            return None
        try:
            return read_sealed(path)
        except DamagedRecordError as problem:
            aside = path.with_name(f"{path.name}.damaged")
            os.replace(path, aside)
            self.damage.append(f"{problem}; set aside as {aside.name}, what it held is computed anew")
            return None
