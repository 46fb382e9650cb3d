"""Where files are: the user's data folder, and what lies in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...io.text import refusal

DataPath = str | os.PathLike[str]

#: The environment variable that names the data folder where nobody passes one.
VARIABLE = "RNTK_DATA"
#: Suffixes of data sets, the preferred one first.
SUFFIXES = (".tsv", ".txt", ".ts", ".arff")
RECORDING = "s1_data.mat"


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The two files of a data set, and its name as they spell it."""

    name: str
    train: Path
    test: Path


@dataclass(slots=True)
class Listing:
    """The data sets of a folder by name in lower case, and training files without a test file beside them."""

    pairs: dict[str, SplitFiles] = field(default_factory=dict)
    halves: dict[str, Path] = field(default_factory=dict)


def choose_folder(folder: DataPath | None) -> Path | None:
    """Return the folder that was passed, else the one that the environment names, else None; refuse what is none."""
    chosen = _name_folder(folder)
    if chosen is not None and not chosen.is_dir():
        said = "folder" if folder is not None else f"the environment variable {VARIABLE}"
        raise refusal(chosen, f"{said} says that data are there, and it is no folder", "check its spelling")
    return chosen


def _name_folder(folder: DataPath | None) -> Path | None:
    named = os.environ.get(VARIABLE, "").strip() if folder is None else os.fspath(folder)
    return Path(named).expanduser() if named else None


def list_sets(folder: Path) -> Listing:
    """Return the data sets in a folder, in its subfolders, and in folders of their own name one level deeper.

    Of several files of one set, the nearest to `folder` counts, then the first in `SUFFIXES`.
    """
    listing = Listing()
    for place, depth in _places(folder):
        found = {entry.name.casefold(): entry for entry in _entries(place) if entry.is_file()}
        for suffix in SUFFIXES:
            end = f"_train{suffix}"
            for key, train in found.items():
                name = key.removesuffix(end)
                if name == key or name in listing.pairs or (depth == 2 and name != place.name.casefold()):
                    continue
                test = found.get(f"{name}_test{suffix}")
                if test is None:
                    listing.halves.setdefault(name, train)
                else:
                    listing.pairs[name] = SplitFiles(train.name[: len(name)], train, test)
    return listing


def _places(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the folder and two levels of subfolders, the nearest first."""
    level = [folder]
    for depth in range(3):
        for place in level:
            yield place, depth
        if depth < 2:
            level = [
                entry
                for place in level
                for entry in _entries(place)
                if not entry.name.startswith(".") and entry.is_dir()
            ]


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, in order of names; nothing if the system does not let us look."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def find_prices(folder: DataPath | None = None) -> Path | None:
    """Return the file of daily prices in a data folder: a ``.csv`` whose name begins with GOOG; None if there is none.

    `load_prices` reads it. Without `folder`, ``RNTK_DATA`` names it.
    """
    return _find(folder, lambda name: name.startswith("goog") and name.endswith(".csv"))


def find_recording(folder: DataPath | None = None) -> Path | None:
    """Return ``s1_data.mat`` in a data folder, None if it is not there.

    `rntk.papers.data.recording.load_recording` reads it. Without `folder`, ``RNTK_DATA`` names it.
    """
    return _find(folder, lambda name: name == RECORDING)


def _find(folder: DataPath | None, fits: Callable[[str], bool]) -> Path | None:
    root = _name_folder(folder)
    entries = [] if root is None else _entries(root)
    return next((entry for entry in entries if fits(entry.name.casefold()) and entry.is_file()), None)
