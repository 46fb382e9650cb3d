"""What the archives state about their sets: sizes, lengths, classes. The numbers are in ``archive_facts.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """Sizes of a data set, as its archive states them.

    Attributes
    ----------
    train, test : int
        Number of sequences in the two parts.
    shortest, longest : int
        Steps of the shortest and the longest sequence in either part; equal in most sets.
    channels, classes : int
        Values per step, and different labels.
    source : str
        Where the numbers are from.
    notes : tuple of str
        What to know before a result is believed, normalisation for example.
    """

    train: int
    test: int
    shortest: int
    longest: int
    channels: int
    classes: int
    source: str
    notes: tuple[str, ...] = ()


@cache
def archive_facts() -> Mapping[str, ArchiveFacts]:
    """Facts by the archive's name of a set: the RNTK paper's 56, sets of unequal length or of several channels.

    Examples
    --------
    >>> from rntk.papers.data import archive_facts
    >>> facts = archive_facts()["GunPoint"]
    >>> facts.train, facts.test, facts.longest, facts.classes
    (50, 150, 150, 2)
    """
    content = json.loads(files(__package__).joinpath("archive_facts.json").read_text("utf-8"))
    return MappingProxyType(
        {
            name: ArchiveFacts(
                **entry | {"source": content["sources"][entry["source"]], "notes": tuple(entry.get("notes", ()))}
            )
            for name, entry in content["sets"].items()
        }
    )
