"""A Griffe extension for mkdocs.yml: docstrings as this library writes them, in the form that the NumPy parser reads.

Here an item of a section is `name : what it is`, often several in one line and without a type, since signatures have
those. Griffe would take the words for a type. So they move below the name:

    kernel : repr. width : of the networks.        kernel
                                                       repr.
                                                   width
                                                       of the networks.

Tables between lines of equals signs become Markdown's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)
NAMES = r"\*{0,2}[A-Za-z_][\w.]*(?:, (?:\*{0,2}[A-Za-z_]\w*|…))*"
ITEM = re.compile(rf"^(?P<names>{NAMES}) :(?: (?P<text>.*))?$")
NEXT = re.compile(rf"(?<=[.;]) (?={NAMES} : )")
TABLE = re.compile(r"^=+(?: +=+)+\n(?P<rows>(?:.*\n)+?)=+(?: +=+)+$", re.MULTILINE)
#: A line that has no room for the next word within so many letters goes on below; after a shorter one something begins.
FULL = 100


class ReadableDocstrings(griffe.Extension):
    """Rewrites every docstring of a package, and shows functions that are named like their files."""

    def on_object(self, *, obj: griffe.Object, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Called by Griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Called by Griffe when all of a package is there."""
        loader.resolve_aliases()
        for module in _packages(pkg):
            for name in map(str, module.exports or []):
                inside = module.members.get(name)
                if isinstance(inside, griffe.Module) and name in inside.members:
                    # `analysis.sensitivity` is the function that the package promises, not the file it comes from.
                    module.members[name] = griffe.Alias(name, inside.members[name], parent=module)


def _packages(module: griffe.Module) -> Iterator[griffe.Module]:
    for inside in [each for each in module.members.values() if isinstance(each, griffe.Module)]:
        yield from _packages(inside)
    yield module


def readable(docstring: str) -> str:
    """The docstring in numpydoc's form, tables as Markdown; unchanged if it is so already."""
    docstring = TABLE.sub(_table, docstring)
    parts = SECTION.split(docstring)
    text = [parts[0]]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Parameters", "Attributes", "Raises", "Returns"):
            body = "\n" + "\n".join(_items(title, body)) + "\n\n"
        text.append(f"{title}\n{'-' * len(title)}{body}")
    return "".join(text)


def _items(title: str, body: str) -> list[str]:
    """Lines of a section, every name on its own line and what is said of it below."""
    lines: list[str] = []
    for first, rest in _entries(body):
        *before, last = NEXT.split(first)
        goes_on = bool(rest) and len(first) + 1 + len(rest[0].partition(" ")[0]) > FULL
        for head, below in [*((each, []) for each in before), (last, rest)]:
            item = ITEM.match(head)
            if item is None:
                # A type or an exception with its words below; of results there may be nothing but words.
                words = title == "Returns" and " " in head and not rest
                lines += [":", *_below(head, below)] if words or goes_on else [head, *_below("", below)]
                continue
            names, words = item["names"].removesuffix(", …"), item["text"] or ""
            if below and words and not goes_on and words[-1] not in ".;:,":
                words += "."  # a type, and then a sentence of its own
            for name in names.split(", "):  # each has its own type and default
                result = title == "Returns" and (name.islower() or len(name) == 1)  # others are classes: types
                lines += [name + " :" if result else name, *_below(words, below)]
    return lines


def _entries(body: str) -> list[tuple[str, list[str]]]:
    """First lines of items, and the lines that belong to them."""
    entries: list[tuple[str, list[str]]] = []
    for line in body.strip("\n").split("\n"):
        # Words that fill several lines begin all of them at the margin.
        prose = bool(entries) and not entries[-1][1] and ITEM.match(line) is None and len(entries[-1][0]) > FULL - 20
        if entries and (prose or line.startswith(" ") or not line):
            entries[-1][1].append(line.strip())
        else:
            entries.append((line, []))
    return entries


def _below(words: str, rest: list[str]) -> list[str]:
    return ["    " + line for line in [*([words] if words else []), *rest]]


def _table(match: re.Match[str]) -> str:
    """Rows of a table; its columns are where the lines of equals signs say."""
    edges = [(edge.start(), edge.end()) for edge in re.finditer("=+", match[0].split("\n")[0])]
    rows = [
        [row[a : b if k < len(edges) - 1 else None].strip() for k, (a, b) in enumerate(edges)]
        for row in match["rows"].rstrip("\n").split("\n")
    ]
    head = ["| " + " | ".join(" " for _ in edges) + " |", "|" + "---|" * len(edges)]
    return "\n" + "\n".join([*head, *("| " + " | ".join(row) + " |" for row in rows)])
