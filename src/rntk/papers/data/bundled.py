"""What aeon has: the sets inside the package, and those that it can fetch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ...io.text import refusal
from .facts import archive_facts
from .folder import Listing, SplitFiles, list_sets


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


def fetch(name: str, folder: Path | None) -> Listing:
    """Have aeon fetch a set from the network into a folder, and return what is there then."""
    subject = f"data set {name!r}"
    if folder is None:
        raise refusal(subject, "download=True needs a folder to write to", "pass folder, or set RNTK_DATA")
    if find_spec("aeon") is None:
        raise refusal(subject, "download=True needs aeon, which is not installed", 'pip install "rntk[aeon]"')
    from aeon.datasets import load_classification

    try:
        load_classification(name, split="train", extract_path=str(folder))
    except (ValueError, OSError) as error:
        raise refusal(subject, f"aeon could not fetch it ({error})", "check the name and the connection") from error
    return list_sets(folder)
