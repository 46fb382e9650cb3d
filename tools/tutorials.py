"""Run the Python blocks of Markdown pages, and keep the outputs and pictures that tutorials show true.

    python tools/tutorials.py                          # all of docs/tutorials
    python tools/tutorials.py docs/tutorials/memory.md

The blocks of a page run from top to bottom in one namespace. What follows a block on its page, with nothing but empty
lines between, is its result: a fenced block marked `text` is what it prints, an image is the figure it leaves open.
This script writes both anew; `tests/test_docs.py` runs the same blocks and compares.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n*^```text\n(?P<output>.*?)^```\n)?(?:\n*^!\[[^\]]*\]\((?P<picture>[^)]+)\)$)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A block of code; `output` and `picture` are None where the page shows none; `span` is where `output` stands."""

    code: str
    line: int
    output: str | None
    picture: str | None
    span: tuple[int, int]


def read_blocks(text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    return [
        Block(
            match["code"],
            text.count("\n", 0, match.start("code")),
            match["output"],
            match["picture"],
            match.span("output"),
        )
        for match in BLOCK.finditer(text)
    ]


def run(page: Path) -> Iterator[tuple[Block, str, bool]]:
    """Execute a page block by block: each block, what it printed, and whether it left a figure open.

    Figures are closed before the next block runs. Tracebacks name the line of the page.
    """
    from matplotlib import pyplot

    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in read_blocks(page.read_text(encoding="utf-8")):
        code = compile("\n" * block.line + block.code, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        yield block, printed.getvalue(), bool(pyplot.get_fignums())
        pyplot.close("all")


def agree(shown: str, printed: str, relative: float = 0.02, absolute: float = 0.011) -> bool:
    """Whether two outputs say the same: equal words, and numbers that differ by rounding or by another machine."""
    words = [" ".join(NUMBER.sub("0", each).split()) for each in (shown, printed)]
    numbers = [[float(number) for number in NUMBER.findall(each)] for each in (shown, printed)]
    return words[0] == words[1] and all(
        abs(a - b) <= absolute + relative * abs(a) for a, b in zip(*numbers, strict=True)
    )


def rewrite(page: Path) -> None:
    """Run a page, and put what it prints and draws in place."""
    from matplotlib import pyplot

    text = page.read_text(encoding="utf-8")
    parts: list[str] = []
    end = 0
    for block, printed, drawn in run(page):
        if (block.output is not None) != bool(printed) or (block.picture is not None) != drawn:
            raise ValueError(
                f"{page.name}, line {block.line}: the page needs a text block where it prints, an image where "
                f"it draws; here it prints {printed!r} and {'draws' if drawn else 'does not draw'}"
            )
        if block.output is not None:
            parts += [text[end : block.span[0]], printed]
            end = block.span[1]
        if block.picture is not None:
            target = page.parent / block.picture
            target.parent.mkdir(exist_ok=True)
            pyplot.savefig(target, metadata={"Date": None})
    page.write_text("".join(parts) + text[end:], encoding="utf-8")


def main(pages: list[Path]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    # The same picture gives the same file; letters stay letters, which makes files small.
    matplotlib.rcParams.update({"svg.hashsalt": "rntk", "svg.fonttype": "none", "figure.figsize": (6.4, 3.6)})
    for page in pages or sorted(TUTORIALS.glob("*.md")):
        rewrite(page)
        print(page.name)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
