"""A hook of mkdocs.yml: formulas as MathML.

They are translated while the site is built, so that pages need no script and no network to show them: browsers draw
MathML by themselves. latex2mathml does the translation. What it says in ways that browsers have given up, or leaves to
guessing (which of two bars is the left one), is put right here.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from html import unescape
from typing import Any

log = logging.getLogger("mkdocs.hooks.rntk")
FORMULA = re.compile(r'<(?P<tag>div|span) class="arithmatex">\\[\[(](?P<tex>.*?)\\[\])]</(?P=tag)>', re.DOTALL)
NUMBER = re.compile(r"\\tag\{(\w+)\}")
#: Bars by side, which pass the translator as letters that mean nothing else.
BARS = {
    "\\lvert": ("\ue000", "prefix", "|"),
    "\\rvert": ("\ue001", "postfix", "|"),
    "\\lVert": ("\ue002", "prefix", "‖"),
    "\\rVert": ("\ue003", "postfix", "‖"),
}
#: What browsers draw better in other words: letters of other alphabets have codes of their own; the names of functions
#: need a little space; ∞, ∂ and ∇ are no operators between two things, and / is one without space.
BETTER = (
    (re.compile(r'<mi mathvariant="(script|double-struck)">([A-Z])</mi>'), lambda match: _letter(match[1], match[2])),
    (
        re.compile(r"<(m[io])>(\w*(?:sin|cos|sinh|cosh)|log|max|min|lim|cov)</\1>"),
        r'<mo form="prefix" lspace="0.1em" rspace="0.17em">\2</mo>',
    ),
    (re.compile(r"<mo>(&#x0221E;|&#x02202;|&#x02207;)</mo>"), r"<mi>\1</mi>"),
    (re.compile(r"<mo>&#x0002F;</mo>"), '<mo lspace="0" rspace="0">/</mo>'),
    (re.compile(r"<mi>&#x0007E;</mi>"), "<mo>∼</mo>"),
)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Called by MkDocs for every page: render its formulas."""
    return render_formulas(html)


def render_formulas(html: str) -> str:
    """A page with its formulas as MathML; a numbered equation can be linked to as #equation-12."""
    return FORMULA.sub(lambda match: render(unescape(match["tex"]), block=match["tag"] == "div"), html)


def render(tex: str, block: bool) -> str:
    """One formula as HTML."""
    from latex2mathml.converter import convert

    number = NUMBER.search(tex)
    # Of the environments with aligned columns, latex2mathml knows this one.
    plain = NUMBER.sub("", tex).replace("{aligned}", "{align*}").strip()
    for command, (mark, _, _) in BARS.items():
        plain = plain.replace(command, mark)
    formula = convert(plain, display="block" if block else "inline")
    for mark, form, bar in BARS.values():
        formula = re.sub(f"<m[io]>{mark}</m[io]>", f'<mo stretchy="false" form="{form}">{bar}</mo>', formula)
    for pattern, words in BETTER:
        formula = pattern.sub(words, formula)
    if "\\" in formula or ">&<" in formula or re.search("[\ue000-\ue003]", formula):
        log.warning("part of a formula wasn't understood: %s", tex)
    if not block:
        return formula
    label = f'<span class="equation-number">({number[1]})</span>' if number else ""
    anchor = f' id="equation-{number[1]}"' if number else ""
    return f'<div class="equation"{anchor}><div class="formula">{formula}</div>{label}</div>'


def _letter(alphabet: str, letter: str) -> str:
    name = f"{alphabet.upper()} CAPITAL {letter}"
    try:
        return f"<mi>{unicodedata.lookup(f'MATHEMATICAL {name}')}</mi>"
    except KeyError:  # ℝ, ℋ and a few more are older than the others
        return f"<mi>{unicodedata.lookup(name)}</mi>"
