"""Optional dependencies: which extras exist, what they need, and what is there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

from .refusal import refuse


def require(extra: str, modules: Iterable[str]) -> None:
    """Import `modules`, or stop with the one line that says how to get them."""
    from ..errors import MissingExtraError, need_extra

    try:
        need_extra(extra, *modules)
    except MissingExtraError as error:
        refuse(str(error))


def missing_packages() -> dict[str, list[str]]:
    """For every extra of the installed rntk, the packages it still lacks."""
    needs: dict[str, list[str]] = {extra: [] for extra in metadata.metadata("rntk").get_all("Provides-Extra") or []}
    for line in metadata.requires("rntk") or []:
        package = re.match(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        if package is None or extra is None:
            continue
        # An extra made of others names rntk itself: "rntk[plot,aeon]".
        nested = package[1] == "rntk" and package[2]
        needs[extra[1]] += [f"[{part.strip()}]" for part in package[2].split(",")] if nested else [package[1]]
    return {extra: sorted(name for name in _resolve(extra, needs) if not _is_installed(name)) for extra in needs}


def _resolve(extra: str, needs: dict[str, list[str]], seen: frozenset[str] = frozenset()) -> set[str]:
    """The packages of an extra, those of the extras it is made of included."""
    packages: set[str] = set()
    for need in needs.get(extra, []):
        if not need.startswith("["):
            packages.add(need)
        elif need[1:-1] not in seen:
            packages |= _resolve(need[1:-1], needs, seen | {extra})
    return packages


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
