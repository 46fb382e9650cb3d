"""Data sets by name, from a folder that the user has: `load` gives a `DataSet`, `load_prices` a `Prices`.

In: a folder of files as the archives offer them, passed as `folder` or named by the environment variable
``RNTK_DATA``; or the few sets that come inside the aeon package. Out: frozen records, whose sequences came through
`rntk.io.read`. Nothing is fetched from the network.

`load` compares a set with what the archive states about it (`archive_facts`). A file that was cut short, an older
split or another version of a set would otherwise show up as an odd accuracy, and nobody would know why.

Imports run one way: ``facts`` (sizes), ``folder`` (where files are), ``bundled`` (what aeon has) <- ``loading``;
``prices`` and ``recording`` stand beside them. ``segments`` cuts windows from one long series, ``made`` draws tasks.
"""

from __future__ import annotations

from .facts import ArchiveFacts, archive_facts
from .folder import find_prices, find_recording
from .loading import DataSet, available, find_files, load
from .prices import Prices, load_prices

__all__ = [
    "ArchiveFacts",
    "DataSet",
    "Prices",
    "archive_facts",
    "available",
    "find_files",
    "find_prices",
    "find_recording",
    "load",
    "load_prices",
]
