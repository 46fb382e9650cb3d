"""A Griffe extension for mkdocs.yml: functions that are named like their files.

`rntk.theory.sensitivity` is the function that the package promises, not the file it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class FunctionsNamedLikeFiles(griffe.Extension):
    """Shows what `__all__` of a package promises where a module of that name hides it."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Called by Griffe when all of a package is there."""
        loader.resolve_aliases()
        for module in _packages(pkg):
            for name in map(str, module.exports or []):
                inside = module.members.get(name)
                if isinstance(inside, griffe.Module) and name in inside.members:
                    module.members[name] = griffe.Alias(name, inside.members[name], parent=module)


def _packages(module: griffe.Module) -> Iterator[griffe.Module]:
    for inside in [each for each in module.members.values() if isinstance(each, griffe.Module)]:
        yield from _packages(inside)
    yield module
