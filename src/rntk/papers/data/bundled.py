"""What aeon has: the sets inside the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from .facts import archive_facts
from .folder import SplitFiles, list_sets


def bundled_sets() -> dict[str, SplitFiles]:
    """Return the sets of the archives inside the aeon package by name in lower case; none without aeon.

    aeon is not imported for it. Its folder holds other things as well, such as material for its own tests, so that
    only sets count of which the archive states facts.
    """
    spec = find_spec("aeon")
    known = {name.casefold() for name in archive_facts()}
    return {
        name: pair
        for place in (spec.submodule_search_locations if spec else None) or ()
        for name, pair in list_sets(Path(place) / "datasets" / "data").pairs.items()
        if name in known
    }
