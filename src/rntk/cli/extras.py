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
    needs: dict[str, list[str]] = {}
    for line in metadata.requires("rntk") or []:
        match = re.match(r"([\w.-]+)\s*(?:\[([^\]]*)\])?.*extra\s*==\s*['\"]([\w-]+)", line)
        if match:
            # An extra made of others names rntk itself: "rntk[plot,aeon]".
            nested = match[2].split(",") if match[1] == "rntk" else []
            needs.setdefault(match[3], []).extend([f"[{part.strip()}]" for part in nested] or [match[1]])

    def packages(extra: str) -> set[str]:
        parts = (packages(need[1:-1]) if need.startswith("[") else {need} for need in needs.get(extra, []))
        return set[str]().union(*parts)

    return {extra: sorted(name for name in packages(extra) if not _is_installed(name)) for extra in needs}


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
