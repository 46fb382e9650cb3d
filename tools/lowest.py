"""The lowest versions that pyproject.toml allows, as constraints for pip: `python tools/lowest.py test`.

They are those of the library's own dependencies and of the extras named. `make test-lowest` installs them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
PROJECT: dict[str, Any] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]


def constraints(extras: list[str]) -> list[str]:
    """`name==version` for each package that is declared as `name>=version`, by the library or by an extra."""
    lines = PROJECT["dependencies"] + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return sorted({f"{name}=={version}" for name, version in floors(lines)})


def floors(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    """Names and lowest versions of what is declared; an extra made of others, `rntk[plot,disk]`, stands for those."""
    for line in lines:
        name, extras, version = re.match(r"([\w.-]+)(?:\[(.*?)\])?(?:[>=]=([\w.]+))?", line).groups()
        if name != PROJECT["name"]:
            yield name, version
        else:
            for extra in extras.split(","):
                yield from floors(PROJECT["optional-dependencies"][extra])


if __name__ == "__main__":
    print(*constraints(sys.argv[1:]), sep="\n")
