"""A hook of mkdocs.yml: the gallery of reproduced experiments, from the records that `rntk reproduce` writes."""

from __future__ import annotations

import json
import logging
import re
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

log = logging.getLogger("mkdocs.hooks.rntk")
RESULTS = Path(__file__).resolve().parents[1] / "results" / "full"
PAGE = "gallery.md"
#: Where the studies stand on the page.
MARK = "<!-- studies -->"
NOTHING = """!!! note "Nothing to show yet"

    There are no results under `results/full`. `rntk reproduce all --full` makes them, in hours; the next build of this
    site shows them."""


class Gallery(NamedTuple):
    """The gallery as Markdown; `pictures` by their address on the site; `problems` in words."""

    text: str
    pictures: dict[str, Path]
    problems: list[str]


def read_gallery(folder: Path) -> Gallery:
    """Title, source, pictures and claims of every record, in the order of their folders."""
    parts: list[str] = []
    pictures: dict[str, Path] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*/record.json")):
        figures = {f"gallery/{path.parent.name}/{each.name}": each for each in sorted(path.parent.glob("*.svg"))}
        try:
            parts.append(_study(json.loads(path.read_text(encoding="utf-8")), figures))
            pictures |= figures
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{path} can't be shown: {type(error).__name__}: {error}")
    return Gallery("\n\n".join(parts) if parts else NOTHING, pictures, problems)


def _study(record: dict[str, Any], figures: dict[str, Path]) -> str:
    """One study as Markdown. What records say is text, so it is escaped."""
    title = re.sub(r"([\\`*_{}\[\]<>#|$&])", r"\\\1", " ".join(record["title"].split()))
    lines = [f"## {title}", "", f'<p class="source">{escape(record["source"])}</p>', ""]
    for address, figure in figures.items():
        words = escape(f"{record['title']}: {figure.stem}")
        lines += [f'<p><img class="figure" src="{escape(address)}" alt="{words}"></p>', ""]
    rows = "".join(map(_claim, record["claims"]))
    head = "<tr><th>claim</th><th>paper</th><th>here</th><th>verdict</th></tr>"
    lines += [f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>", ""]
    if record.get("command"):
        lines.append(f"Again: `{record['command']}`")
    return "\n".join(lines).rstrip()


def _claim(claim: dict[str, Any]) -> str:
    verdict, reason = claim["verdict"], claim.get("reason") or ""
    kind = re.sub(r"\W+", "-", verdict)
    said = f'<strong class="verdict-{kind}">{escape(verdict)}</strong>' + (f"<br>{escape(reason)}" if reason else "")
    # A line of its own would end the table for Markdown.
    cells = [" ".join(escape(str(claim[name])).split()) for name in ("sentence", "paper", "ours")]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in [*cells, " ".join(said.split())]) + "</tr>"


# What MkDocs calls ----------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Put the pictures of the gallery beside its page."""
    from mkdocs.structure.files import File

    for address, path in read_gallery(RESULTS).pictures.items():
        files.append(File.generated(config, address, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill the gallery; a record that can't be shown is a warning, which `--strict` makes an error."""
    if page.file.src_uri != PAGE:
        return markdown
    gallery = read_gallery(RESULTS)
    for problem in gallery.problems:
        log.warning(problem)
    return markdown.replace(MARK, gallery.text)
